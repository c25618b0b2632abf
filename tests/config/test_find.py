"""Which file is read."""

from pathlib import Path

import pytest

from headwater.config.load import find_file, user_folder


def test_a_file_that_is_named_is_the_one_even_if_it_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "headwater.toml").touch()
    named = tmp_path / "other.toml"
    assert find_file(named, folder=tmp_path, environ={}, platform="linux") == named


def test_the_folder_comes_before_the_users_own(tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    (home / ".config" / "headwater").mkdir(parents=True)
    here.mkdir()
    environ = {"HOME": str(home)}
    assert find_file(None, folder=here, environ=environ, platform="linux") is None
    users = home / ".config" / "headwater" / "headwater.toml"
    users.touch()
    assert find_file(None, folder=here, environ=environ, platform="linux") == users
    (here / "headwater.toml").touch()
    assert find_file(None, folder=here, environ=environ, platform="linux") == here / "headwater.toml"
    assert find_file(None, folder=tmp_path, environ={}, platform="linux") is None


@pytest.mark.parametrize(
    ("platform", "environ", "folder"),
    [
        ("linux", {"HOME": "/home/me"}, "/home/me/.config/headwater"),
        ("linux", {"HOME": "/home/me", "XDG_CONFIG_HOME": "/etc/me"}, "/etc/me/headwater"),
        ("linux", {"HOME": "/home/me", "XDG_CONFIG_HOME": "me"}, "/home/me/.config/headwater"),
        ("linux", {}, None),
        ("darwin", {"HOME": "/Users/me"}, "/Users/me/Library/Application Support/headwater"),
        ("darwin", {}, None),
        ("win32", {"APPDATA": "C:/me"}, "C:/me/headwater"),
        ("win32", {}, None),
    ],
)
def test_the_users_folder_is_by_the_custom_of_the_platform(
    platform: str, environ: dict[str, str], folder: str | None
) -> None:
    assert user_folder(environ, platform) == (None if folder is None else Path(folder))


def test_a_folder_that_can_not_be_looked_into_has_no_file(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": f"/{'x' * 300}"}
    assert find_file(None, folder=tmp_path, environ=environ, platform="linux") is None
