"""What can become of a feature in a dialect."""

from typing import Final, Literal

from msgspec import Struct

from headwater.events import DialectName


class Fate(Struct, frozen=True):
    kind: Literal["carried", "changed", "dropped", "refused"]
    why: str = ""


CARRIED: Final = Fate("carried")


def changed(why: str) -> Fate:
    """It is told in other words: noted."""
    return Fate("changed", why)


def dropped(why: str) -> Fate:
    """It is not told: noted."""
    return Fate("dropped", why)


def refused(why: str) -> Fate:
    """Without it the answer would be to another question: refused."""
    return Fate("refused", why)


class Row(Struct, frozen=True, kw_only=True):
    """A feature's fate in each dialect."""

    chat: Fate = CARRIED
    responses: Fate = CARRIED
    messages: Fate = CARRIED

    def fate(self, dialect: DialectName) -> Fate:
        return {"chat": self.chat, "responses": self.responses, "messages": self.messages}[dialect]
