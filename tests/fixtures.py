"""The recorded streams of `tests/wire`, each with what it must be read as beside it."""

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from headwater.accumulate import Accumulator
from headwater.dialects import DIALECTS
from headwater.events import DialectName, Event, Outcome
from headwater.judge import Rules, Transport
from headwater.turn import TurnEnd, TurnReader

WIRE = Path(__file__).parent / "wire"


class Given(Struct, frozen=True, forbid_unknown_fields=True):
    """How the upstream is configured, and how its connection ended."""

    transport: Transport = "clean"
    needs_finish_reason: bool = True
    allow_empty: bool = False
    think_tags: bool = True


class Fixture(Struct, forbid_unknown_fields=True):
    what: str
    events: list[Event]
    outcome: Outcome
    given: Given = Given()
    dialect: DialectName = "chat"
    name: str = ""
    data: bytes = b""

    def reader(self, accumulator: Accumulator | None = None, **limits: Any) -> TurnReader:
        return TurnReader(
            DIALECTS[self.dialect].decoder("call_x"),
            accumulator or Accumulator(),
            rules=Rules(self.given.needs_finish_reason, self.given.allow_empty),
            think_tags=self.given.think_tags,
            **limits,
        )

    def read(self, pieces: list[bytes], accumulator: Accumulator | None = None) -> TurnEnd:
        """All events and the outcome, with the bytes arriving in these pieces."""
        reader = self.reader(accumulator)
        events = [event for piece in pieces for event in reader.feed(piece)]
        end = reader.end(self.given.transport)
        return TurnEnd(events + end.events, end.outcome)


def load_fixtures() -> list[Fixture]:
    fixtures = []
    for path in sorted(WIRE.glob("*/*.sse")):
        fixture = msgspec.json.decode(path.with_suffix(".json").read_bytes(), type=Fixture)
        fixture.dialect = msgspec.convert(path.parent.name, DialectName)
        fixture.name = f"{path.parent.name}/{path.stem}"
        fixture.data = path.read_bytes()
        fixtures.append(fixture)
    return fixtures


FIXTURES = load_fixtures()
