"""The `--history` option of commands in messages."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from workbench.config.folders import history_option, user_folders


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own history, and a current folder that is no project."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return user_folders().history


def test_the_history_that_a_command_finds_by_itself_is_not_named(own: Path) -> None:
    assert history_option(own) == ""
    beside = Path(".workbench/history.sqlite3")
    beside.parent.mkdir()
    Path("workbench.toml").touch()
    assert (history_option(beside), history_option(beside.absolute())) == ("", "")
    assert shlex.split(history_option(own)) == ["--history", str(own)], "the project's is found here"


def test_another_one_is_named_as_a_shell_reads_it(own: Path) -> None:
    other = own.with_name("an 'other' $HOME.sqlite3")
    assert shlex.split(history_option(other)) == ["--history", str(other)]


def test_where_the_current_folder_is_gone_the_history_is_named(own: Path) -> None:
    Path().absolute().rmdir()
    assert history_option(own) == f" --history {own}"
