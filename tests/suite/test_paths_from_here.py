"""Paths relative to the current folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.suite.files import relative_to_cwd


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a suite and a link to it."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "suite.toml").touch()
    (folder / "link.toml").symlink_to("suite.toml")
    return folder


@pytest.mark.parametrize("path", ["suite.toml", "./suite.toml", "no/../suite.toml", "link.toml", "../here/suite.toml"])
def test_one_file_has_one_path(here: Path, path: str) -> None:
    assert {relative_to_cwd(path), relative_to_cwd(str(here / path)), relative_to_cwd(relative_to_cwd(path))} == {
        "suite.toml"
    }


def test_what_is_not_below_is_told_from_here_too(here: Path) -> None:
    assert relative_to_cwd(str(here.parent / "other" / "a.toml")) == "../other/a.toml"


@pytest.mark.parametrize("path", ["\ud800.toml", "a\0b"])
def test_what_no_file_can_be_called_stays(path: str) -> None:
    assert relative_to_cwd(path) == path


def test_a_path_from_nowhere_stays(here: Path) -> None:
    (here / "suite.toml").unlink()
    (here / "link.toml").unlink()
    here.rmdir()
    assert relative_to_cwd("suite.toml") == "suite.toml"


def test_another_current_folder_is_another_beginning(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert relative_to_cwd(str(here / "suite.toml")) == "suite.toml"
    monkeypatch.chdir(here.parent)
    assert relative_to_cwd(str(here / "suite.toml")) == "here/suite.toml"
