"""For tests of what is built on this package: judges as strict as the real providers.

`check_chat`, `check_messages` and `check_responses` take the JSON of a request
to an upstream and list what OpenAI or Anthropic would refuse it for.
"""

from headwater.testing.chat_request import check_chat
from headwater.testing.messages_request import check_messages
from headwater.testing.responses_request import check_responses

__all__ = ["check_chat", "check_messages", "check_responses"]
