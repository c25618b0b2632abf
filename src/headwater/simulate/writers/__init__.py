"""Answers as bytes, in each provider's own manner."""

from typing import Final

from headwater.events import DialectName
from headwater.simulate.writers.base import MakeWriter, Part, Piece, Writer
from headwater.simulate.writers.chat import ChatWriter
from headwater.simulate.writers.messages import MessagesWriter
from headwater.simulate.writers.responses import ResponsesWriter

WRITERS: Final[dict[DialectName, MakeWriter]] = {
    "chat": ChatWriter,
    "responses": ResponsesWriter,
    "messages": MessagesWriter,
}

__all__ = ["WRITERS", "Part", "Piece", "Writer"]
