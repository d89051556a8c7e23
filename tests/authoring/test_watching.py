"""Changes of files and folders are noticed, and an unchanged folder is not listed again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.authoring import file_watch
from workbench.authoring.file_watch import FolderWatch


def test_files_that_come_go_and_change_are_seen(tmp_path: Path) -> None:
    watch = FolderWatch()
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "no.toml").touch()
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "a" / "other.txt").touch()
    one, two = tmp_path / "one.toml", below / "two.toml"
    one.touch()
    assert watch.scan([tmp_path]).keys() == {one}
    two.write_text("x")
    before = watch.scan([tmp_path])
    assert before.keys() == {one, two}
    two.write_text("xy")
    after = watch.scan([tmp_path])
    assert (after[one], after[two]) != (before[one], before[two]) and after[one] == before[one]
    one.rename(below / "one.toml")
    assert watch.scan([tmp_path]).keys() == {below / "one.toml", two}
    assert watch.scan([tmp_path / "gone", two]) == {}


def test_installed_packages_are_not_watched_unless_they_are_named(tmp_path: Path) -> None:
    for name in ("venv/lib", "web/node_modules", "site-packages"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "x.toml").touch()
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    watch = FolderWatch()
    assert watch.scan([tmp_path]) == {}
    assert watch.scan([tmp_path / "site-packages"]).keys() == {tmp_path / "site-packages" / "x.toml"}


def test_a_folder_is_listed_again_only_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.toml").touch()
    os.utime(tmp_path, (1, 1))
    watch = FolderWatch()
    found = watch.scan([tmp_path])
    monkeypatch.setattr(file_watch, "_entries", lambda folder: pytest.fail(f"{folder} was listed"))
    assert watch.scan([tmp_path]) == found != {}
