"""A conversation on a server, as a terminal holds one: what is said next, to whom, and what came of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from headwater.cli.reach import Reached, session_path
from headwater.client import ApiError

_TYPES: Final = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
_DEMO: Final = "demo/story"


class BadImage(Exception):
    pass


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
        return session

    async def open_last(self) -> dict[str, Any] | None:
        """None: there is none yet."""
        found = await self._server.client.ask("GET", "/api/sessions?limit=1")
        return await self.open(found["sessions"][0]["id"]) if found["sessions"] else None

    async def open_or_begin(self, session_id: str) -> None:
        """By the id that somebody chose for it."""
        try:
            await self.open(session_id)
        except ApiError as error:
            if error.status != 404:
                raise
            await self._begin(session_id)

    async def say(self, content: str, images: Sequence[Path] = ()) -> str:
        """The run that answers. Raises `ApiError` and `BadImage`; then nothing was said."""
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

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        asked = {**body, "model": self.model, "parameters": {"system": self.system}}
        try:
            answer: dict[str, Any] = await self._server.client.ask("POST", path, asked)
        except ApiError as error:
            if self.model is not None or not await self._only_demo(error):
                raise
            # A first look, with no key: nobody should have to choose before there is anything to choose from.
            self.model = _DEMO
            answer = await self._server.client.ask("POST", path, {**asked, "model": self.model})
        return answer

    async def _only_demo(self, error: ApiError) -> bool:
        said = error.answer["error"] if isinstance(error.answer, dict) else {}
        if error.status != 400 or said.get("param") != "model":
            return False
        models = await self._server.client.ask("GET", "/v1/models")
        return all(model["owned_by"] == "demo" for model in models["data"])

    async def _blob(self, path: Path) -> str:
        data = _bytes(path)
        media_type = next((name for magic, name in _TYPES.items() if data.startswith(magic)), None)
        if media_type is None:
            raise BadImage(f"{path} is no PNG, JPEG, GIF or WebP.")
        return await self._server.client.put_blob(data, media_type)


def _bytes(path: Path) -> bytes:
    try:
        return path.expanduser().read_bytes()
    except OSError as error:
        raise BadImage(f"{path} can't be read: {error.strerror}.") from None
