"""Responses: OpenAI's second dialect, in which an answer is a list of items."""

from typing import Final

from headwater.dialects.base import Encoder, Head
from headwater.dialects.endings import refusal as error
from headwater.dialects.responses.decode import ResponsesDecoder
from headwater.dialects.responses.encode import ResponsesEncoder, whole
from headwater.dialects.responses.parse import parse_request as parse
from headwater.dialects.responses.render import render_request as render
from headwater.events import DialectName, FailureStyle

__all__ = ["decoder", "encoder", "error", "name", "parse", "render", "whole"]

name: Final[DialectName] = "responses"

decoder = ResponsesDecoder


def encoder(head: Head, *, include_usage: bool, style: FailureStyle) -> Encoder:
    """Usage is always told here, and there is one style: every client takes it for what it is."""
    return ResponsesEncoder(head)
