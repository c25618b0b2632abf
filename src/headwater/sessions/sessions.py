"""What is done with a session and needs its tree: said, edited, answered again, gone on with, forked, shown, exported.

Over a store, and thin: what a run is to be started with is given back as a `Start`, for whoever runs it to hand over
(with its `multitask` and its idempotency key); the store alone decides who may. Nothing here starts a run.
"""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from headwater.clock import Clock
from headwater.conversation import Assistant, Message, Request, User
from headwater.errors import CallerError
from headwater.events import Completed
from headwater.lifecycle import RunState
from headwater.records import QueueEntry, Run, Session, SessionMessage, Transcript, Under, path_to
from headwater.sessions.context import Context, added, context, reworded
from headwater.sessions.export import to_json, to_markdown
from headwater.sessions.images import all_shown, blobs_in
from headwater.sessions.titles import title_of
from headwater.sessions.view import View, view
from headwater.sessions.way import newest_under, with_results
from headwater.store.base import Store
from headwater.store.results import Missing, SessionChange, Start


class Export(Struct, frozen=True):
    media_type: str
    body: bytes


class Sessions:
    def __init__(self, store: Store, clock: Clock, make_id: Callable[[str], str]) -> None:
        """`make_id` takes a prefix."""
        self._store = store
        self._clock = clock
        self._make_id = make_id

    # ------------------------------------------------------------ to start a run

    def said(self, run: Run, request: Request, *, create_session: bool = False) -> Start:
        """What a request adds to the run's session, at its head (C63). The first thing said gives it its title."""
        new = added(request.messages)
        title = next((title_of(message) for message in new if isinstance(message, User)), None)
        messages = tuple(map(self._new, new))
        return Start(run=run, request=request, messages=messages, create_session=create_session, title=title)

    async def edited(self, run: Run, request: Request, message_id: str) -> Start | Missing:
        """The request's message in place of an earlier one: a new branch, beside the old one."""
        found = await self._find(run, message_id)
        if isinstance(found, Missing):
            return found
        if not isinstance(found.message.message, User):
            raise CallerError(
                "Only what you have said can be edited. An answer can be given again.",
                status=409,
                code="not_editable",
            )
        return replace(self.said(run, request), place=Under(found.message.parent_id))

    async def reworded(self, waiting: QueueEntry, said: Message) -> Request | Missing:
        """What a run that waits is to ask, with this message in the place of what came with it."""
        if [type(message.message) for message in waiting.messages] != [User]:
            raise CallerError(
                "Only a message of yours can be edited. This waits to answer what was said before, or several at once.",
                status=409,
                code="not_editable",
            )
        body = await self._store.body(waiting.run.owner, waiting.run.id)
        if body is None:
            return Missing("run")
        asked = body.request or Request(())
        return replace(asked, messages=reworded(asked.messages, said))

    async def regenerated(self, run: Run, request: Request, message_id: str) -> Start | Missing:
        """A message answered again, or an answer given again: a new branch, beside the old one.

        The request has no messages, but may have another model or other parameters.
        """
        found = await self._find(run, message_id)
        if isinstance(found, Missing):
            return found
        answer = found.answer()
        if answer is None:
            return Start(run=run, request=request, place=Under(message_id))
        run = replace(run, continues=found.cut_run(answer))
        return Start(run=run, request=request, place=Under(answer.parent_id))

    async def gone_on_with(self, run: Run, request: Request, cut: Run) -> Start | Missing:
        """The answer of a run that was cut short, continued in a new message; the old one stays as it is.

        `cut` is a run of the same session, or what a fork's copy tells of one (`run_of_copy`).
        """
        if cut.outcome is None:
            raise CallerError("This run is still going on.", status=409, code="run_active")
        if isinstance(cut.outcome, Completed):
            raise CallerError("This run is complete: there is nothing to go on with.", status=409, code="run_complete")
        transcript = await self._transcript(run)
        if transcript is None:
            return Missing("session")
        answers = [
            message.id
            for message in transcript.messages
            if message.run_id == cut.id and isinstance(message.message, Assistant)
        ]
        if not answers and cut.parent_id is None:
            raise CallerError("This run never began: there is nothing to go on with.", status=409, code="run_not_begun")
        if not answers:
            # Nothing of it was kept: what it was to answer is answered again.
            return Start(run=run, request=request, place=Under(cut.parent_id))
        place = Under(with_results(transcript.messages, answers[-1]))
        return Start(run=replace(run, continues=cut.id), request=request, place=place)

    async def run_of_copy(self, owner: str, session_id: str, run_id: str) -> Run | None:
        """A run as the copy of its answer in a fork tells of it: the fork may have but a part, and it may be gone."""
        transcript = await self._store.transcript(owner, session_id)
        for message in reversed(() if transcript is None else transcript.messages):
            if message.run_id == run_id and message.outcome is not None:
                return Run(
                    id=run_id,
                    owner=owner,
                    model=message.model or "",
                    created_at=message.created_at,
                    state=RunState.ENDED,
                    session_id=session_id,
                    outcome=message.outcome,
                )
        return None

    def _new(self, message: Message) -> SessionMessage:
        return SessionMessage(
            id=self._make_id("msg"),
            message=message,
            created_at=self._clock.unix_s(),
            blobs=blobs_in([message]),
        )

    # ---------------------------------------------------------- while it is running

    async def context(self, run: Run, request: Request, window_tokens: int | None = None) -> Context | Missing:
        """What the model is asked, once the run has begun. `window_tokens`: what fits into its context."""
        transcript = await self._transcript(run)
        if transcript is None:
            return Missing("session")
        built = context(transcript, run, request, window_tokens)
        messages = await all_shown(self._store, run.owner, built.request.messages)
        return replace(built, request=replace(built.request, messages=messages))

    # ------------------------------------------------------------------- to look at

    async def view(self, owner: str, session_id: str, head_id: str | None = None) -> View | Missing:
        transcript = await self._store.transcript(owner, session_id)
        return Missing("session") if transcript is None else view(transcript, head_id)

    async def export(self, owner: str, session_id: str, format: Literal["md", "json"]) -> Export | Missing:
        transcript = await self._store.transcript(owner, session_id)
        if transcript is None:
            return Missing("session")
        if format == "json":
            return Export("application/json", to_json(transcript))
        return Export("text/markdown; charset=utf-8", to_markdown(transcript).encode())

    # -------------------------------------------------------------------- branches

    async def change(self, owner: str, session_id: str, change: SessionChange) -> Session | Missing:
        """All of it, or nothing. A `head_id` shows the branch that this message is on, to its newest end."""
        if change.head_id is not None:
            transcript = await self._store.transcript(owner, session_id)
            if transcript is None:
                return Missing("session")
            change = replace(change, head_id=newest_under(transcript.messages, change.head_id))
        return await self._store.change_session(owner, session_id, change)

    async def fork(self, owner: str, session_id: str, message_id: str) -> Session | Missing:
        """A new session with all up to this message, and with the results of the tools that it called."""
        transcript = await self._store.transcript(owner, session_id)
        if transcript is None:
            return Missing("session")
        end_id = with_results(transcript.messages, message_id)
        return await self._store.fork(owner, session_id, end_id, self._make_id("ses"))

    # --------------------------------------------------------------------- finding

    async def _transcript(self, run: Run) -> Transcript | None:
        return None if run.session_id is None else await self._store.transcript(run.owner, run.session_id)

    async def _find(self, run: Run, message_id: str) -> "_Found | Missing":
        transcript = await self._transcript(run)
        if transcript is None:
            return Missing("session")
        path = path_to(transcript.messages, message_id)
        return _Found(path) if path else Missing("message")


class _Found(Struct, frozen=True):
    """A message, at the end of the path to it."""

    path: list[SessionMessage]

    @property
    def message(self) -> SessionMessage:
        return self.path[-1]

    def answer(self) -> SessionMessage | None:
        """Where the run that left it began to answer. None: it is itself something to be answered."""
        if isinstance(self.message.message, User):
            return None
        mine = (message for message in self.path if message.run_id == self.message.run_id)
        return next((message for message in mine if isinstance(message.message, Assistant)), None)

    def cut_run(self, answer: SessionMessage) -> str | None:
        """The run that this answer goes on from."""
        return next((message.run_id for message in self.path if message.id == answer.continues), None)
