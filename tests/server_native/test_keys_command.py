"""`headwater keys`, as a process of its own, beside a server that is running."""

import asyncio
from pathlib import Path

import pytest

from tests.commands import finished
from tests.server_native.serving import TWO_OWNERS, served, settings_of, store_url

pytestmark = pytest.mark.anyio


def found_in(folder: Path, text: str) -> bool:
    return any(text.encode() in path.read_bytes() for path in folder.iterdir())


async def keys(url: str, *arguments: str) -> tuple[int, str, str]:
    return await asyncio.to_thread(finished, "keys", *arguments, environ={"HEADWATER_STORE__URL": url})


async def test_a_key_that_is_made_is_let_in_until_it_is_revoked(tmp_path: Path) -> None:
    url = store_url("sqlite", tmp_path)
    code, key, told = await keys(
        url.reveal(), "create", "ann", "--name", "laptop", "--scope", "chat", "--scope", "admin"
    )
    assert code == 0
    key = key.strip()
    key_id = told.partition(" ")[0]
    # The key itself is nowhere in the file: its hash is.
    assert not found_in(tmp_path, key)
    async with served(settings_of(url)) as server:
        assert (await server.get("/api/me")).status == 401
        me = (await server.get("/api/me", key=key)).json
        assert me == {
            "owner": "ann",
            "scopes": ["chat", "admin"],
            "models": ["*"],
            "key_id": key_id,
            "default_model": None,
        }
        code, listed, _ = await keys(url.reveal(), "list")
        assert (code, key in listed, "laptop" in listed, key_id in listed) == (0, False, True, True)
        assert await keys(url.reveal(), "revoke", key_id) == (0, "", "")
        assert "revoked" in (await keys(url.reveal(), "list"))[1]
    async with served(settings_of(url)) as server:
        assert (await server.get("/api/me", key=key)).code == "key_unknown"
        # The last one is gone, and that lets nobody in.
        assert (await server.get("/api/me")).code == "key_needed"


async def test_what_was_said_before_there_were_keys_is_adopted(tmp_path: Path) -> None:
    url = store_url("sqlite", tmp_path)
    async with served(settings_of(url)) as server:
        session_id = await server.session(title="Old")
        assert await keys(url.reveal(), "adopt", "ann") == (
            0,
            "1 conversation, and all runs outside of conversations, are ann's now.\n",
            "",
        )
        assert (await server.get(f"/api/sessions/{session_id}")).status == 404
    async with served(settings_of(url, keys=TWO_OWNERS)) as server:
        assert (await server.get(f"/api/sessions/{session_id}", key="ann")).json["title"] == "Old"


async def test_what_stays_where_it_is_when_it_is_adopted_is_named(tmp_path: Path) -> None:
    url = store_url("sqlite", tmp_path)
    async with served(settings_of(url, keys=TWO_OWNERS)) as server:
        for id in ("old", "older"):
            assert (await server.post("/api/sessions", {"id": id, "title": "Ann's"}, key="ann")).status == 201
    async with served(settings_of(url)) as server:
        for id, said in {
            "new": (0, "1 conversation, and all runs outside of conversations, are ann's now.\n", ""),
            "old": (
                0,
                "0 conversations, and all runs outside of conversations, are ann's now.\n",
                "1 stays local's, as ann has one of the same id: old\n",
            ),
            "older": (
                0,
                "0 conversations, and all runs outside of conversations, are ann's now.\n",
                "2 stay local's, as ann has one of the same id: old, older\n",
            ),
        }.items():
            await server.session(id=id)
            assert await keys(url.reveal(), "adopt", "ann") == said


@pytest.mark.parametrize(
    ("arguments", "url", "said"),
    [
        (["create", "ann", "--scope", "root"], "sqlite:FOLDER/h.db", "a scope is chat, approve or admin"),
        (["create", " "], "sqlite:FOLDER/h.db", "an owner has a name"),
        (["revoke", "key_x"], "sqlite:FOLDER/h.db", "there is no key key_x"),
        (["list"], "memory:", "would be gone at once"),
        (["list"], "sqlite:FOLDER/file/h.db", "h.db"),
    ],
)
async def test_what_can_not_be_done_is_said(tmp_path: Path, arguments: list[str], url: str, said: str) -> None:
    (tmp_path / "file").touch()
    code, out, err = await keys(url.replace("FOLDER", str(tmp_path)), *arguments)
    assert code in (1, 2)
    assert out == ""
    assert said in err
    assert "Traceback" not in err
