"""What a message says, as this dialect has it: one text, one refusal, one reasoning.

Where another dialect has several texts or thoughts, a blank line stands
between them: in a stream and in an answer in one piece alike.
"""

from typing import Final

from msgspec import Struct

from headwater.conversation import Assistant, Opaque, Reasoning, Text
from headwater.events import DialectName

_BREAK: Final = "\n\n"


class Joints(Struct):
    """Where one text, or thought, has ended: `before_…` gives what goes in front of the next."""

    _text_said: bool = False
    _text_ended: bool = False
    _thought_said: bool = False
    _thought_ended: bool = False

    def before_text(self) -> str:
        ended, self._text_said, self._text_ended = self._text_ended, True, False
        return _BREAK if ended else ""

    def before_thought(self) -> str:
        ended, self._thought_said, self._thought_ended = self._thought_ended, True, False
        return _BREAK if ended else ""

    def end_text(self) -> None:
        self._text_ended = self._text_said

    def end_turn(self) -> None:
        self._text_ended = self._text_said
        self._thought_ended = self._thought_said

    def end_thought(self, dialect: DialectName | None) -> None:
        """Its state has come. This dialect's own goes with all of the reasoning."""
        self._thought_ended = self._thought_said and dialect not in (None, "chat")


class Said:
    def __init__(self, message: Assistant) -> None:
        joints = Joints()
        texts: list[str] = []
        refusals: list[str] = []
        thoughts: list[str] = []
        for part in message.parts:
            match part:
                case Text(text=text, refusal=True):
                    refusals.append(text)
                case Text(text=text):
                    texts += [joints.before_text(), text]
                case Reasoning(text=text, dialect=dialect):
                    thoughts += [joints.before_thought(), text] if text else []
                    joints.end_thought(dialect)
                case Opaque(dialect="responses", data={"type": "message"}):
                    joints.end_text()
                case _:
                    """A call, or what has no words."""
        self.text = "".join(texts)
        self.refusal = "".join(refusals)
        self.reasoning = "".join(thoughts)
