"""For tests of what is built on this package.

`check_chat`, `check_messages` and `check_responses` take the JSON of a request
to an upstream and list what OpenAI or Anthropic would refuse it for.
`ManualClock` is time that passes when it is told to.
"""

from headwater.checks import check_chat, check_messages, check_responses
from headwater.testing.clock import ManualClock

__all__ = ["ManualClock", "check_chat", "check_messages", "check_responses"]
