"""A copy of the file while somebody writes to it: of one moment, whole, or none at all."""

import stat
from pathlib import Path

import apsw
import pytest

from headwater.errors import StoreError
from headwater.store.sqlite.backup import back_up


def test_it_is_of_one_moment_and_its_owners_alone(tmp_path: Path) -> None:
    path, copy = tmp_path / "h.db", tmp_path / "copy.db"
    writer = apsw.Connection(str(path))
    writer.pragma("journal_mode", "wal")
    writer.execute("create table t(a)")
    writer.execute("insert into t values(1)")
    writer.execute("begin immediate")
    writer.execute("insert into t values(2)")
    # Neither held up by who writes, nor told of what is not committed.
    assert back_up(path, copy) == copy.stat().st_size
    writer.execute("commit")
    read = apsw.Connection(str(copy))
    assert read.execute("select a from t").fetchall() == [(1,)]
    read.close()
    writer.close()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert {file.name for file in tmp_path.iterdir()} == {"h.db", "copy.db"}


def test_there_must_be_something_to_copy(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no"):
        back_up(tmp_path / "h.db", tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_is_no_backup(tmp_path: Path) -> None:
    path, copy = tmp_path / "h.db", tmp_path / "copy.db"
    connection = apsw.Connection(str(path))
    connection.execute("create table t(a text, unique(a))")
    with connection:
        connection.executemany("insert into t values(?)", [(f"row {number} " * 50,) for number in range(500)])
    connection.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:20_000] + b"\xff" * 40_000 + whole[60_000:])
    with pytest.raises(StoreError, match="damaged"):
        back_up(path, copy)
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match="damaged"):
        back_up(path, copy)
    assert [file.name for file in tmp_path.iterdir()] == ["h.db"]


def test_a_place_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    apsw.Connection(str(path)).close()
    with pytest.raises(StoreError):
        back_up(path, tmp_path / "none" / "copy.db")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").touch()
    with pytest.raises(StoreError):
        back_up(path, tmp_path / "folder")


@pytest.mark.parametrize("name", ["h.db", "h.db-wal", "link", "link.lock"])
def test_the_file_itself_is_no_place_for_its_copy(tmp_path: Path, name: str) -> None:
    path = tmp_path / "h.db"
    apsw.Connection(str(path)).pragma("user_version", 7)
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "link.lock").symlink_to(tmp_path / "h.db.lock")
    with pytest.raises(StoreError, match="the store itself"):
        back_up(path, tmp_path / name)
    # By another name it is not written over, either.
    with pytest.raises(StoreError, match="the store itself"):
        back_up(tmp_path / "link", path)


def test_what_is_written_on_the_way_is_not_the_file_itself(tmp_path: Path) -> None:
    path = tmp_path / "h.db.partial"
    apsw.Connection(str(path)).pragma("user_version", 7)
    with pytest.raises(StoreError, match="the store itself"):
        back_up(path, tmp_path / "h.db")
    assert path.exists()
