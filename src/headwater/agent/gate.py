"""Which calls wait for a person, and what the person has said.

The store alone decides whose answer stands, also where nobody has answered in time: that, too, is put there as an
answer, so that somebody who says yes a moment later is told that it was a no.
"""

import hashlib
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from headwater.accumulate import Accumulator, Call
from headwater.agent.tools import Tool
from headwater.clock import Clock
from headwater.events import ApprovalAsked, ApprovalGiven
from headwater.records import Approval, Run
from headwater.source import Sink, emit
from headwater.store.base import Store
from headwater.store.results import SessionChange

NOBODY: Final = "timeout"
"""Who has said no when nobody has answered in time."""
_TOO_LATE: Final = "Nobody answered in time."


class Go(Struct, frozen=True):
    pass


class Refuse(Struct, frozen=True):
    text: str


class Wait(Struct, frozen=True):
    until: datetime | None


Verdict = Go | Refuse | Wait


def digest_of(name: str, arguments: str) -> str:
    """Of a call as it is shown to a person: an answer is for this, and nothing else."""
    return hashlib.sha256(f"{name}\n{arguments}".encode()).hexdigest()


class Gate:
    def __init__(self, store: Store, clock: Clock, run: Run, patterns: tuple[str, ...], timeout_s: float) -> None:
        self._store = store
        self._clock = clock
        self._run = run
        self._patterns = patterns
        self._timeout_s = timeout_s

    async def verdict(self, call: Call, tool: Tool, sink: Sink) -> Verdict:
        """What comes of it is in the sink, too."""
        if not any(fnmatchcase(tool.full_name, pattern) for pattern in self._patterns):
            return Go()
        known = sink.fold.approvals.get(call.id)
        if isinstance(known, ApprovalGiven):
            return _verdict(known)
        if await self._is_remembered(call, tool, sink.fold):
            return Go() if known is None else await self._answered(call, tool, self._yes(call), sink)
        if known is None:
            known = self._ask(call, sink)
        answers = [one for one in await self._store.approvals(self._run.id) if one.call_id == call.id]
        if not answers and known.expires_at is not None and known.expires_at.timestamp() <= self._clock.unix_s():
            return await self._answered(call, tool, self._no(call), sink)
        if answers:
            return await self._said(answers[0], tool, sink)
        return Wait(known.expires_at)

    def _ask(self, call: Call, sink: Sink) -> ApprovalAsked:
        expires_at = datetime.fromtimestamp(self._clock.unix_s() + self._timeout_s, UTC)
        digest = digest_of(call.name, call.arguments)
        asked = ApprovalAsked(call.id, call.name, call.arguments, digest, expires_at)
        emit(sink, asked)
        return asked

    # ------------------------------------------------------------------ answers

    def _yes(self, call: Call) -> Approval:
        return Approval(call_id=call.id, decision="yes", by=self._run.owner, at=self._clock.unix_s())

    def _no(self, call: Call) -> Approval:
        return Approval(call_id=call.id, decision="no", by=NOBODY, at=self._clock.unix_s(), reason=_TOO_LATE)

    async def _answered(self, call: Call, tool: Tool, approval: Approval, sink: Sink) -> Verdict:
        """An answer of ours, unless somebody was faster."""
        stands = await self._store.approve(self._run.owner, self._run.id, approval)
        return await self._said(stands if isinstance(stands, Approval) else approval, tool, sink)

    async def _said(self, approval: Approval, tool: Tool, sink: Sink) -> Verdict:
        if approval.remember == "session" and approval.decision == "yes":
            await self._remember(tool)
        given = ApprovalGiven(approval.call_id, approval.decision, approval.reason, approval.remember, approval.by)
        emit(sink, given)
        return _verdict(given)

    # ---------------------------------------------------------------- remembering

    async def _is_remembered(self, call: Call, tool: Tool, fold: Accumulator) -> bool:
        for other in fold.calls:
            given = fold.approvals.get(other.id)
            if other.name == call.name and isinstance(given, ApprovalGiven) and _is_for_all(given):
                return True
        if self._run.session_id is None:
            return False
        session = await self._store.session(self._run.owner, self._run.session_id)
        return session is not None and tool.full_name in session.approved

    async def _remember(self, tool: Tool) -> None:
        """Outside of sessions the run's own log does."""
        if self._run.session_id is None:
            return
        session = await self._store.session(self._run.owner, self._run.session_id)
        if session is not None and tool.full_name not in session.approved:
            change = SessionChange(approved=(*session.approved, tool.full_name))
            await self._store.change_session(self._run.owner, self._run.session_id, change)


def _is_for_all(given: ApprovalGiven) -> bool:
    return given.decision == "yes" and given.remember == "session"


def _verdict(given: ApprovalGiven) -> Verdict:
    if given.decision == "yes":
        return Go()
    if given.by == NOBODY:
        return Refuse(f"This call needs a person's approval. {_TOO_LATE} It was not run.")
    return Refuse("A person said no to this call, and it was not run." + (f" {given.reason}" if given.reason else ""))
