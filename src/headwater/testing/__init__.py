"""For tests of what is built on this package.

`check_chat`, `check_messages` and `check_responses` take the JSON of a request
to an upstream and list what OpenAI or Anthropic would refuse it for.
`ManualClock` is time that passes when it is told to.
`Simulator` is a model provider that answers, and fails, as a script says.
"""

from headwater.checks import check_chat, check_messages, check_responses
from headwater.testing.clock import ManualClock
from headwater.testing.simulator import Simulator

__all__ = ["ManualClock", "Simulator", "check_chat", "check_messages", "check_responses"]
