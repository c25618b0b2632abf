"""A conversation on a server, as a terminal holds one: what is said next, to whom, and what came of it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from headwater.cli import exits
from headwater.cli.pick import NotFound, find_session_if_there
from headwater.cli.reach import Reached, session_path
from headwater.cli.showing import say
from headwater.cli.unlisted import unlisted
from headwater.cli.words import queue_waits
from headwater.client import ApiError
from headwater.errors import HeadwaterError
from headwater.upstream import demo

_TYPES: Final = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
_ID: Final = "an id has letters of a to z, digits and _ . : ~ - only, and no more than 128 of them."
_DEMO: Final = f"{demo.NAME}/story"


class Unsaid(HeadwaterError):
    """Nothing was said, for the reason given; the command ends with this code."""

    def __init__(self, message: str, code: int = exits.USAGE) -> None:
        super().__init__(message)
        self.code = code


class Conversation:
    """Made with the first message; `session_id` is None until then."""

    def __init__(self, server: Reached, model: str | None = None, system: str | None = None) -> None:
        self._server = server
        self.model = model
        """None: the session's, or the server's default."""
        self.system = system
        self.session_id: str | None = None
        self.run_id: str | None = None
        """The newest."""
        self.images: list[Path] = []
        """They go with the next message."""

    async def open(self, session_id: str) -> dict[str, Any]:
        """Go on with this one. Raises `ApiError`."""
        session: dict[str, Any] = await self._server.client.ask("GET", session_path(session_id))
        self.session_id = str(session["id"])
        self.run_id = session["active_run_id"]
        if session["queue_paused"]:
            say(queue_waits(session["queued"], True, self.session_id))
        return session

    async def open_last(self) -> dict[str, Any] | None:
        """None: there is none yet."""
        found = await self._server.client.ask("GET", "/api/sessions?limit=1")
        return await self.open(found["sessions"][0]["id"]) if found["sessions"] else None

    async def open_or_begin(self, given: str) -> None:
        """By its id, or the end of it; else one is made that is called so. Raises `Unsaid`."""
        try:
            session_id = await find_session_if_there(self._server.client, given)
        except NotFound as error:
            raise Unsaid(str(error)) from None
        if session_id is None:
            await self._begin_as(given)
            say(f"{given} is a new conversation.")
            return
        await self.open(session_id)
        if session_id != given:
            say(f"going on with {session_id}")

    async def say(self, content: str, images: Sequence[Path] = ()) -> str:
        """The run that answers. Raises `ApiError` and `Unsaid`; then nothing was said."""
        parts = [{"type": "image", "blob": await self._blob(path)} for path in (*images, *self.images)]
        if self.session_id is None:
            await self._begin(None)
        answer = await self._post(session_path(str(self.session_id), "/messages"), {"content": content, "parts": parts})
        self.images.clear()
        return self._began(answer)

    async def go_on(self) -> str:
        """With an answer that was cut."""
        return self._began(await self._post(f"/api/runs/{self.run_id}/continue", {}))

    async def again(self) -> str | None:
        """The last answer, given anew. None: there is none."""
        items = (await self._server.client.ask("GET", session_path(str(self.session_id), "/messages")))["items"]
        answers = [item for item in items if item["kind"] == "message" and item["role"] == "assistant"]
        if not answers:
            return None
        path = session_path(str(self.session_id), f"/messages/{answers[-1]['id']}/regenerate")
        return self._began(await self._post(path, {}))

    # ------------------------------------------------------------------- asking

    def _began(self, answer: dict[str, Any]) -> str:
        self.run_id = str(answer["run"]["id"])
        return self.run_id

    async def _begin(self, session_id: str | None) -> None:
        body = {"id": session_id, "parameters": {"model": self.model, "system": self.system}}
        session = await self._server.client.ask("POST", "/api/sessions", body)
        self.session_id = str(session["id"])

    async def _begin_as(self, session_id: str) -> None:
        try:
            await self._begin(session_id)
        except ApiError as error:
            if error.status != 400 or _fact(error, "param") != "id":
                raise
            raise Unsaid(f"a new conversation can't be called {session_id!r}: {_ID}") from None

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        asked = {**body, "model": self.model, "parameters": {"system": self.system}}
        try:
            answer: dict[str, Any] = await self._server.client.ask("POST", path, asked)
        except ApiError as error:
            if error.code == "session_busy":
                raise Unsaid(_busy(_fact(error, "active_run_id"))) from None
            if self.model is not None or error.status != 400 or _fact(error, "param") != "model":
                raise
            self.model = await self._demo(error)
            answer = await self._server.client.ask("POST", path, {**asked, "model": self.model})
        return answer

    async def _demo(self, error: ApiError) -> str:
        """For a first look, with no key: nobody should have to choose before there is anything to choose from.

        But nobody should take its story for the answer of a model of theirs. Raises the error, or `Unsaid`.
        """
        server = self._server
        names = [model["id"] for model in (await server.client.ask("GET", "/v1/models"))["data"]]
        if not all(name.startswith(f"{demo.NAME}/") for name in names):
            raise error
        if lacking := unlisted(server, names):
            raise Unsaid(
                "\n".join([*lacking, f"Once that is set right, ask again; or name a model: -m {_DEMO}"]), exits.FAILED
            )
        if server.settings is not None and server.settings.upstreams:
            raise error
        if not server.embedded:
            _warn_of_demo(server)
        return _DEMO

    async def _blob(self, path: Path) -> str:
        data = _bytes(path)
        media_type = next((name for magic, name in _TYPES.items() if data.startswith(magic)), None)
        if media_type is None:
            raise Unsaid(f"{path} is no PNG, JPEG, GIF or WebP.")
        return await self._server.client.put_blob(data, media_type)


def _fact(error: ApiError, name: str) -> Any:
    said = error.answer.get("error") if isinstance(error.answer, dict) else None
    return said.get(name) if isinstance(said, dict) else None


def _busy(run_id: str) -> str:
    going_on = f"a run of this conversation goes on: {run_id}"
    return f"{going_on}\nTo follow it: headwater attach {run_id}\nTo stop it: headwater stop {run_id}"


def _warn_of_demo(server: Reached) -> None:
    """It may have an upstream that fails, and does not say so.

    Raises `Unsaid` in a script, for a server that was named: somebody will have had a reason to name it.
    """
    only = f"{server.client.url} names demo models only: it has no upstream, or none that gives a list of its models."
    if server.settings is None and not sys.stdout.isatty():
        raise Unsaid(f"{only} If a demo is to answer: -m {_DEMO}")
    say(f"{only} So {_DEMO} answers.")


def _bytes(path: Path) -> bytes:
    try:
        return path.expanduser().read_bytes()
    except OSError as error:
        raise Unsaid(f"{path} can't be read: {error.strerror}.") from None
