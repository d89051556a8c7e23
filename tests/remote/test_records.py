"""The folder of sockets: no other user can open, replace or redirect it."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from tests.programs import program_of
from workbench.config.folders import Folders
from workbench.remote.records import AttachError, own_folder, socket_folder, socket_places


def folders_in(folder: Path) -> Folders:
    return program_of(folder).folders


def test_a_folder_is_made_for_its_owner_alone_and_a_loose_one_is_tightened(tmp_path: Path) -> None:
    made = own_folder(tmp_path / "a" / "b")
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    made.chmod(0o777)
    assert stat.S_IMODE(own_folder(made).stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["a link", "a dangling link", "a file"])
def test_what_is_no_folder_of_its_own_is_refused_and_left_alone(tmp_path: Path, kind: str) -> None:
    place, target = tmp_path / "place", tmp_path / "target"
    if kind == "a file":
        place.write_text("mine")
    else:
        place.symlink_to(target)
    if kind == "a link":
        target.mkdir(mode=0o755)
    with pytest.raises(PermissionError, match="is a symbolic link" if "link" in kind else "is a file, not a folder"):
        own_folder(place)
    assert not target.exists() or stat.S_IMODE(target.stat().st_mode) == 0o755
    assert kind != "a file" or place.read_text() == "mine"


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "place"
    place.mkdir(mode=0o755)
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(PermissionError, match=rf"belongs to another user \(id {owner}\)"):
        own_folder(place)
    assert stat.S_IMODE(place.stat().st_mode) == 0o755


def test_a_folder_that_everybody_may_replace_is_refused_unless_a_sticky_bit_forbids_that(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(PermissionError, match=f"all users may replace files in {shared}"):
        own_folder(shared / "deep" / "place")
    shared.chmod(0o1777)
    assert own_folder(shared / "deep" / "place").is_dir()


def test_a_path_too_long_for_a_socket_leads_to_the_next_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        folders = folders_in(tmp_path / ("long" * 25))
        assert socket_folder(folders) == Path(short) / "toolcall-workbench"


def test_without_a_safe_place_every_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        _every_reason_is_said(Path(short), monkeypatch)


def _every_reason_is_said(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = short / "r"
    runtime.mkdir()
    (runtime / "toolcall-workbench").symlink_to(short)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    folders = folders_in(short / ("long" * 25))
    places = socket_places(folders)[:2]
    monkeypatch.setattr("workbench.remote.records.socket_places", lambda _: places)
    with pytest.raises(AttachError) as caught:
        socket_folder(folders)
    assert f"{places[0]}: the path is too long for a socket" in str(caught.value)
    assert f"{places[1]}: the path is a symbolic link" in str(caught.value)
    assert "XDG_RUNTIME_DIR" in str(caught.value)
