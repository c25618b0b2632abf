"""The dialects, by name."""

from typing import Final

from headwater.dialects import chat, messages, responses
from headwater.dialects.base import Dialect
from headwater.events import DialectName

DIALECTS: Final[dict[DialectName, Dialect]] = {"chat": chat, "responses": responses, "messages": messages}
