"""A suite is saved as a whole or not at all, and never over the changes of another program."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from workbench.suite.files import ChangedOnDiskError, FileState, SavingError, save, state_of
from workbench.suite.suite_file import load_suite

OLD = "format = 1\r\nname = 'é'\r\n"
NEW = "format = 1\nname = 'new'"
NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "s.toml"
    file.write_bytes(OLD.encode())
    return file


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_the_text_is_on_the_disk_to_the_byte(path: Path) -> None:
    state = save(path, NEW, state_of(path))
    assert path.read_bytes() == NEW.encode()
    assert state == state_of(path)
    assert save(path, OLD, state).hash == load_suite(path).hash
    assert path.read_bytes() == OLD.encode()
    assert names(path.parent) == ["s.toml"]


def test_the_hash_of_a_loaded_suite_is_enough_to_save_it(path: Path) -> None:
    save(path, NEW, FileState(load_suite(path).hash))
    assert path.read_bytes() == NEW.encode()


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    save(tmp_path / "s.toml", NEW, None)
    assert (tmp_path / "s.toml").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o755])
def test_the_mode_is_kept(path: Path, mode: int) -> None:
    path.chmod(mode)
    save(path, NEW, state_of(path))
    assert path.stat().st_mode & 0o777 == mode


def test_a_link_stays_a_link_and_what_it_leads_to_is_written(path: Path) -> None:
    folder = path.parent / "links"
    folder.mkdir()
    (folder / "a.toml").symlink_to("b.toml")
    (folder / "b.toml").symlink_to(path)
    save(folder / "a.toml", NEW, state_of(path))
    assert (folder / "a.toml").readlink() == Path("b.toml")
    assert path.read_text() == NEW
    assert names(folder) == ["a.toml", "b.toml"]


def test_a_file_that_changed_is_not_overwritten_even_with_its_old_size_and_time(path: Path) -> None:
    state, status = state_of(path), path.stat()
    theirs = OLD.replace("1", "2").encode()
    path.write_bytes(theirs)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(ChangedOnDiskError, match="changed on disk since it was read") as raised:
        save(path, NEW, state)
    assert raised.value.found == state_of(path)
    assert path.read_bytes() == theirs
    assert names(path.parent) == ["s.toml"]


def test_a_file_that_was_only_touched_is_overwritten(path: Path) -> None:
    state = state_of(path)
    os.utime(path, ns=(1, 1))
    save(path, NEW, state)
    assert path.read_text() == NEW


def test_a_file_that_is_gone_or_there_unexpectedly_is_told_apart(path: Path) -> None:
    state = state_of(path)
    with pytest.raises(ChangedOnDiskError, match="the file already exists"):
        save(path, NEW, None)
    path.unlink()
    with pytest.raises(ChangedOnDiskError, match="deleted since it was read") as raised:
        save(path, NEW, state)
    assert raised.value.found is None
    assert state_of(path) is None
    assert names(path.parent) == []


def test_a_file_is_read_again_only_when_size_or_time_differ(path: Path) -> None:
    state = state_of(path)
    assert state_of(path, state) is state
    path.write_text(NEW)
    assert state_of(path, state) not in (state, None)


def test_what_cannot_be_written_to_is_named(path: Path) -> None:
    (path.parent / "loop").symlink_to("loop")
    os.mkfifo(path.parent / "pipe")
    before = names(path.parent)
    for name, message in (
        (".", "not a regular file"),
        ("pipe", "not a regular file"),
        ("loop", "a link that leads to itself"),
        ("gone/s.toml", "no longer exists; save somewhere else"),
    ):
        with pytest.raises(SavingError, match=message):
            save(path.parent / name, NEW, None)
    with pytest.raises(SavingError, match="line 2 contains half of a character"):
        save(path, "a = 1\nb = '\ud800'", state_of(path))
    assert names(path.parent) == before


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_failing_disk_leaves_the_old_file_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fails(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    message = os.strerror(number) if number == errno.EIO else "the disk is full; make room"
    with pytest.raises(SavingError, match=message):
        save(path, NEW, state_of(path))
    assert path.read_bytes() == OLD.encode()
    assert names(path.parent) == ["s.toml"]


def child(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = f"import os, sys\nfrom pathlib import Path\nfrom workbench.suite.files import *\n{program}"
    return subprocess.run([sys.executable, "-B", "-c", code, *arguments], capture_output=True, text=True, timeout=60)


SAVE = """
try:
    save(Path(sys.argv[1]), "x" * 100_000, state_of(Path(sys.argv[1])))
except SavingError as error:
    print(error)
"""


def test_a_file_that_cannot_be_written_to_its_end_leaves_the_old_one(path: Path) -> None:
    done = child(f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n{SAVE}", str(path))
    assert done.stdout == f"{path} was not saved: the disk is full; make room, or save somewhere else\n", done.stderr
    assert path.read_bytes() == OLD.encode()
    assert names(path.parent) == ["s.toml"]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can reach, with a file that everybody may write."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "s.toml").write_bytes(OLD.encode())
        (folder / "s.toml").chmod(0o666)
        yield folder


@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "reason"),
    [
        (0o555, 0o666, "the folder {folder} is not writable; make it writable, or save somewhere else"),
        (0o777, 0o444, "the file is read-only; make it writable or save under another name"),
    ],
)
def test_what_is_read_only_is_left_alone(open_folder: Path, folder_mode: int, file_mode: int, reason: str) -> None:
    file = open_folder / "s.toml"
    file.chmod(file_mode)
    open_folder.chmod(folder_mode)
    done = child(f"if os.geteuid() == 0:\n    os.setuid({NOBODY})\n{SAVE}", str(file))
    open_folder.chmod(0o755)
    assert done.stdout == f"{file} was not saved: {reason.format(folder=open_folder)}\n", done.stderr
    assert file.read_bytes() == OLD.encode()
    assert names(open_folder) == ["s.toml"]


WRITER = """
path = Path(sys.argv[1])
texts = ["a" * 300_000, "b" * 300_000]
state = save(path, texts[0], state_of(path))
print("saving", flush=True)
while True:
    texts.reverse()
    state = save(path, texts[0], state)
"""


@pytest.mark.parametrize("readings", first_of([1, 20, 100], 1))
def test_a_killed_writer_leaves_the_old_file_or_the_new_one(path: Path, readings: int) -> None:
    code = f"import sys\nfrom pathlib import Path\nfrom workbench.suite.files import *\n{WRITER}"
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "saving\n"
        seen = 0
        while seen < readings:
            assert path.read_text() in ("a" * 300_000, "b" * 300_000)
            seen += 1
        writer.send_signal(signal.SIGKILL)
    assert path.read_text() in ("a" * 300_000, "b" * 300_000)
    assert [name for name in names(path.parent) if not name.startswith(".")] == ["s.toml"]
