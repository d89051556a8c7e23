"""The socket of a batch: who may open it, what each viewer receives, and that no viewer delays the batch."""

from __future__ import annotations

import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from workbench.config.folders import Folders
from workbench.limits import MAX_VIEWER_BACKLOG_BYTES
from workbench.remote import records
from workbench.remote import records as finding
from workbench.remote import viewer as viewing
from workbench.remote.batch_server import ViewerServer
from workbench.remote.records import (
    PROTOCOL,
    AttachError,
    DetachedBatch,
    claim_process,
    encode_message,
    is_running,
    record_of,
    remove_stale,
    socket_address,
    write_record,
)
from workbench.remote.viewer import Connection, ConnectionEndedError
from workbench.version import __version__

LINE = encode_message(said="x" * 100_000)


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short path: sockets need one."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def folders_in(folder: Path) -> Folders:
    return Folders(*(folder / name for name in ("state", "log", "config", "data")))


def known_at(path: Path, **more: Any) -> DetachedBatch:
    about = {"history": "/h.sqlite3", "batch": 7, "command": "run", "version": __version__, "pid": 1}
    return DetachedBatch(**{**about, "socket": str(path), "planned": 3, "started_at": "2026", **more})


@contextmanager
def serving(
    folder: Path, before: tuple[bytes, ...] = (), version: str = __version__
) -> Iterator[tuple[ViewerServer, DetachedBatch]]:
    path = socket_address(folders_in(folder), folder / "h.sqlite3", 7)
    stopped: list[bool] = []
    hello = encode_message(protocol=PROTOCOL, version=version)
    server = ViewerServer(path, hello, lambda: (encode_message(over=1), *before), lambda: stopped.append(True))
    try:
        yield server, known_at(path)
    finally:
        server.close()
        assert not path.exists()


def watching(server: ViewerServer, known: DetachedBatch) -> Connection:
    connection = Connection(known, "watch")
    assert connection.receive() == {"over": 1}
    return connection


def test_only_its_user_can_open_it_and_a_viewer_hears_what_was_and_what_comes(tmp_path: Path) -> None:
    with serving(tmp_path, (encode_message(said="before"),)) as (server, known):
        path = Path(known.socket)
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.lstat().st_mode) == 0o700
        viewers = [watching(server, known) for _ in range(20)]
        viewers[1].send(do="watch")  # once more shows nothing again
        server.broadcast(encode_message(said="now"))
        for viewer in viewers:
            assert [viewer.receive()["said"] for _ in range(2)] == ["before", "now"]
        viewers[0].close()
        server.broadcast(encode_message(said="later"))
        assert [viewer.receive()["said"] for viewer in viewers[1:]] == ["later"] * 19
        for viewer in viewers:
            viewer.close()


def test_a_viewer_that_does_not_read_is_told_that_it_was_dropped_and_holds_up_nobody(tmp_path: Path) -> None:
    with serving(tmp_path) as (server, known):
        stuck, reading = watching(server, known), watching(server, known)
        for number in range(3 * MAX_VIEWER_BACKLOG_BYTES // len(LINE)):
            server.broadcast(encode_message(number=number, said="x" * 100_000))
            assert reading.receive()["number"] == number
        waiting = max(viewer.backlog_bytes for viewer in server._viewers)
        assert waiting <= MAX_VIEWER_BACKLOG_BYTES + len(LINE)
        numbers: list[int] = []
        with pytest.raises(ConnectionEndedError, match="read too slowly"):
            while True:
                numbers.append(stuck.receive()["number"])
        assert numbers == [*range(len(numbers))], "what it got is whole lines"
        stuck.close()
        reading.close()


def test_a_viewer_of_another_version_is_told_so_and_may_still_stop_the_batch(tmp_path: Path) -> None:
    with serving(tmp_path, version="9.9.9") as (_, known):
        with pytest.raises(AttachError, match=r"batch 7 runs in Workbench 9\.9\.9, and this is .*batches --stop 7"):
            Connection(known, "watch")
        Connection(known, "stop").close()
    with serving(tmp_path) as (_, known), socket.socket(socket.AF_UNIX) as raw:
        raw.connect(known.socket)
        raw.sendall(b'{"protocol": 99, "version": "0", "do": "watch"}\nnonsense\n')
        said = raw.makefile("rb").read()
        assert said == encode_message(protocol=PROTOCOL, version=__version__) + encode_message(
            refused=f"this batch runs in Workbench {__version__}: attach with that version"
        )


def test_a_report_goes_no_faster_than_it_is_read_and_one_who_does_not_read_is_let_go(tmp_path: Path) -> None:
    with serving(tmp_path) as (server, known):
        viewer = watching(server, known)
        viewer.send(report={"form": "json"})
        asking, wanted = server.requests.get(timeout=10)
        assert wanted == {"form": "json"}
        most = 0

        def pieces() -> Iterator[bytes]:
            nonlocal most
            for _ in range(3 * MAX_VIEWER_BACKLOG_BYTES // len(LINE)):
                most = max(most, asking.backlog_bytes)
                yield LINE

        server.send(asking, pieces(), patience_s=0.05)
        assert MAX_VIEWER_BACKLOG_BYTES // 4 < most < MAX_VIEWER_BACKLOG_BYTES
        viewer.close()


def test_neither_side_takes_without_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewing, "MAX_PIPED_BYTES", 1 << 16)
    with serving(tmp_path, (LINE,)) as (server, known):
        with pytest.raises(AttachError, match="a line of more than"):
            watching(server, known).receive()
        asking = Connection(known, "stop")
        asking.send(report={})
        asking.send(report={})
        with pytest.raises(AttachError, match="is already in progress"):
            asking.receive()
        server.requests.get(timeout=10)
        assert server.requests.empty()


def test_a_path_that_is_too_long_is_replaced_by_a_short_one(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = folders_in(short / ("long" * 30))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short / "r"))
    assert socket_address(folders, short / "h", 1).parent == short / "r" / "toolcall-workbench"
    monkeypatch.setattr(records, "MAX_SOCKET_PATH_BYTES", 1)
    with pytest.raises(AttachError, match=r"no safe place for the socket of a batch: .*the path is too long"):
        socket_address(folders, short / "h", 1)


def test_a_folder_that_is_a_link_is_not_trusted(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = folders_in(short)
    (short / "elsewhere").mkdir()
    folders.state.mkdir()
    folders.detached.symlink_to(short / "elsewhere")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short / "r"))
    assert socket_address(folders, short / "h", 1).parent.parent == short / "r"


def test_what_is_known_stays_and_the_socket_of_a_killed_process_does_not(short: Path) -> None:
    folders = folders_in(short)
    path = socket_address(folders, Path("/h.sqlite3"), 7)
    path.touch()
    known = known_at(path)
    write_record(folders, known)
    assert not is_running(folders, known), "nobody has claimed it"
    with pytest.raises(ConnectionEndedError, match="batch 7 cannot be reached"):
        Connection(known, "watch")
    remove_stale(folders)
    assert not path.exists() and record_of(folders, known.file, 7) == known
    claim_process(folders, known.file, 7)
    assert is_running(folders, known)
    ended = known_at(path, exit_code=1, said=("that was it",))
    write_record(folders, ended)
    assert record_of(folders, known.file, 7) == ended and not is_running(folders, ended)


def test_of_several_batches_that_go_on_it_is_asked_which(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ones = [finding.NamedBatch(short / "a b.sqlite3", number) for number in (3, 2, 1)]
    monkeypatch.setattr(finding, "running_batches", lambda _folders: ones)
    with pytest.raises(AttachError) as refused:
        finding.find_batch(folders_in(short), short / "history.sqlite3", None)
    there = f"--history '{short}/a b.sqlite3'"
    assert str(refused.value).endswith(f"name one of them: 3 {there}, 2 {there} or 1 {there}")
