"""`headwater backup`: a copy of one moment, beside a server that goes on writing."""

import asyncio
import re
import stat
from pathlib import Path

import pytest

from headwater.testing import Simulator
from tests.commands import finished
from tests.server.house import Line, asking
from tests.server.test_process import get, post, serve, upstream

pytestmark = pytest.mark.anyio


async def test_beside_a_server_in_full_flow_all_that_was_shown_is_in_the_copy(tmp_path: Path) -> None:
    there, restored = tmp_path / "there", tmp_path / "restored"
    there.mkdir()
    restored.mkdir()
    environ = {"HEADWATER_STORE__URL": f"sqlite:{there / 'h.db'}"}
    async with Simulator() as simulator:
        async with serve(there, upstream(simulator)) as served:
            await post(served, "/v1/chat/completions", **asking("chat", "up/sim/tokens-3", "One", session_id="s"))
            lines = []
            for number in range(8):
                line = await Line.open(served.url)
                body = asking("chat", "up/sim/tokens-100000@500", "Two", session_id=f"live-{number}", stream=True)
                line.ask("/v1/chat/completions", body)
                await line.until(b"t20 ")
                lines.append(line)
            code, out, err = await asyncio.to_thread(
                finished, "backup", str(restored / "h.db"), folder=there, environ=environ
            )
            assert (code, err) == (0, "")
            assert re.search(r"h\.db: \d+\.\d MB", out)
            # Nobody was held up.
            for line in lines:
                await line.until(b"t40 ")
                await line.leave()
        assert stat.S_IMODE((restored / "h.db").stat().st_mode) == 0o600
        assert [file.name for file in restored.iterdir()] == ["h.db"]
        async with serve(restored, upstream(simulator)) as served:
            items = (await get(served, "/api/sessions/s/messages")).json()["items"]
            assert [item["content"] for item in items] == ["One", "t0 t1 t2 "]
            for number in range(8):
                items = (await get(served, f"/api/sessions/live-{number}/messages")).json()["items"]
                # What was running then has nobody who runs it: it is interrupted, with what had come.
                assert items[1]["status"] == "partial"
                assert items[1]["content"].startswith(" ".join(f"t{n}" for n in range(21)) + " ")
                assert items[2]["code"] == "interrupted"


def test_what_is_there_is_replaced_only_if_that_is_wanted(tmp_path: Path) -> None:
    environ = {"HEADWATER_STORE__URL": f"sqlite:{tmp_path / 'h.db'}"}
    assert finished("keys", "create", "ann", environ=environ)[0] == 0
    copy = tmp_path / "copy.db"
    copy.write_text("mine")
    code, _, err = finished("backup", str(copy), environ=environ)
    assert code == 2
    assert "--force" in err
    assert copy.read_text() == "mine"
    assert finished("backup", str(copy), "--force", environ=environ)[0] == 0
    assert "ann" in finished("keys", "list", environ={"HEADWATER_STORE__URL": f"sqlite:{copy}"})[1]


def inodes(folder: Path) -> dict[Path, int]:
    return {file: file.stat().st_ino for file in folder.iterdir()}


async def test_the_store_itself_is_never_replaced(tmp_path: Path) -> None:
    environ = {"HEADWATER_STORE__URL": f"sqlite:{tmp_path / 'h.db'}"}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with serve(tmp_path) as served:
        await post(served, "/v1/chat/completions", **asking("chat", "demo/echo", "One", session_id="s"))
        (tmp_path / "symbolic").symlink_to(tmp_path / "h.db")
        (tmp_path / "hard").hardlink_to(tmp_path / "h.db")
        (elsewhere / "there").symlink_to(tmp_path)
        names = ("h.db", "h.db-wal", "h.db-shm", "h.db.lock", "symbolic", "hard", "elsewhere/../h.db")
        before = inodes(tmp_path)
        for name in (*names, "elsewhere/there/h.db"):
            code, out, err = await asyncio.to_thread(
                finished, "backup", name, "--force", folder=tmp_path, environ=environ
            )
            assert (name, code, out) == (name, 2, "")
            assert "is the store itself" in err
        assert inodes(tmp_path) == before
        await post(served, "/v1/chat/completions", **asking("chat", "demo/echo", "Two", session_id="s"))
    async with serve(tmp_path) as served:
        items = (await get(served, "/api/sessions/s/messages")).json()["items"]
        assert [item["content"] for item in items] == ["One", "One", "Two", "Two"]


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("memory:", 2, "nothing to be kept"),
        ("postgresql://me:secret@db.example/x", 2, "pg_dump"),
        ("sqlite:{folder}/none.db", 1, "there is no"),
    ],
)
def test_what_can_not_be_copied_is_said(tmp_path: Path, url: str, code: int, said: str) -> None:
    environ = {"HEADWATER_STORE__URL": url.format(folder=tmp_path)}
    found, out, err = finished("backup", str(tmp_path / "copy.db"), environ=environ)
    assert (found, out) == (code, "")
    assert said in err
    assert "secret" not in err
    assert list(tmp_path.iterdir()) == []
