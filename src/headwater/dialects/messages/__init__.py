"""Messages: Anthropic's dialect."""

from typing import Final

from headwater.dialects.base import Encoder, Head
from headwater.dialects.messages.answer import error, whole
from headwater.dialects.messages.decode import MessagesDecoder
from headwater.dialects.messages.encode import MessagesEncoder, ping
from headwater.dialects.messages.parse import parse_request as parse
from headwater.dialects.messages.render import render_request as render
from headwater.events import DialectName, FailureStyle

__all__ = ["decoder", "encoder", "error", "name", "parse", "ping", "render", "whole"]

name: Final[DialectName] = "messages"

decoder = MessagesDecoder


def encoder(head: Head, *, include_usage: bool, style: FailureStyle) -> Encoder:
    """Usage is always included; and a failure has one form only, on which every client raises."""
    return MessagesEncoder(head)
