"""Chat completions: OpenAI's first dialect, and everybody's."""

from typing import Final

from headwater.dialects.chat.decode import ChatDecoder
from headwater.dialects.chat.encode import ChatEncoder, whole
from headwater.dialects.chat.parse import parse_request as parse
from headwater.dialects.chat.render import render_request as render
from headwater.dialects.endings import refusal as error
from headwater.events import DialectName

__all__ = ["decoder", "encoder", "error", "name", "parse", "render", "whole"]

name: Final[DialectName] = "chat"

decoder = ChatDecoder
encoder = ChatEncoder
