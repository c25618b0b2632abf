"""Judges of upstream requests, as strict as the real providers.

Each takes the JSON of a request and lists what OpenAI or Anthropic would refuse it for. Pure.
"""

from headwater.checks.chat import check_chat
from headwater.checks.messages import check_messages
from headwater.checks.responses import check_responses

__all__ = ["check_chat", "check_messages", "check_responses"]
