"""Read-only processes, which can write no file, start no program and send nothing."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

# The app refuses actions that would write (`tui.kit.actions`). In addition, a hook for Python's audit events refuses
# all other writing calls, even those of libraries. Python has no way to remove such a hook. SQLite writes without audit
# events, so the history opens its file for reading only.

READ_ONLY_REASON = "this is a read-only view: nothing is run, edited or written here"

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_REFUSED = frozenset(
    {
        *("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn"),
        *("pty.spawn", "os.startfile", "webbrowser.open", "os.kill", "os.killpg", "ctypes.dlopen", "ctypes.dlsym"),
        *("os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown"),
        *("os.utime", "os.setxattr", "os.removexattr", "tempfile.mkstemp", "tempfile.mkdtemp"),
        *("shutil.move", "shutil.rmtree", "shutil.copyfile", "socket.bind", "socket.sendto", "socket.sendmsg"),
        *("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"),
    }
)

_is_read_only = False
_log = logging.getLogger(__name__)


class ReadOnlyError(PermissionError):
    """An attempt of a read-only process to write, start or send something."""

    def __init__(self, action: str) -> None:
        super().__init__(f"{READ_ONLY_REASON} ({action})")
        _log.warning("refused, because this process is read-only: %s", action)
        self.strerror = READ_ONLY_REASON


def is_read_only() -> bool:
    return _is_read_only


def refuse_if_read_only(action: str) -> None:
    """Raise ReadOnlyError if this process is read-only. `action` describes the refused action."""
    if _is_read_only:
        raise ReadOnlyError(action)


def become_read_only(log: Path, sockets: Sequence[Path] = ()) -> None:
    """Make this process read-only until its end.

    The process can still write into the folder `log`. It can also connect to sockets in the folders `sockets`, where
    other processes send their events."""
    global _is_read_only
    # Some libraries import `ctypes` late, for example dateutil. The hook would refuse this import, because `ctypes`
    # loads a shared library. `ctypes` is therefore imported before the hook is set.
    import ctypes  # noqa: F401

    _is_read_only = True
    sys.dont_write_bytecode = True
    log.mkdir(parents=True, exist_ok=True)
    own, nothing = f"{_plain(log)}{os.sep}", (os.devnull, os.fsencode(os.devnull))
    theirs = tuple(f"{_plain(folder)}{os.sep}" for folder in sockets)

    def check(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes = isinstance(flags, int) and bool(flags & _WRITING)
            writes = writes or (isinstance(mode, str) and not set(mode).isdisjoint("wax+"))
            if writes and not isinstance(path, int) and path not in nothing and not _plain(path).startswith(own):
                raise ReadOnlyError(f"writing {_named(path)}")
        elif event == "os.mkdir":
            if not os.path.isdir(os.fsdecode(arguments[0])):  # type: ignore[arg-type]  # noqa: PTH112 (called for each open)
                raise ReadOnlyError(f"creating {_named(arguments[0])}")
        elif event == "sqlite3.connect":
            if "?mode=ro" not in str(arguments[0]) and arguments[0] != ":memory:":
                raise ReadOnlyError(f"opening {_named(arguments[0])} for writing")
        elif event == "socket.connect":
            to = arguments[1]
            if not isinstance(to, str) or not _plain(to).startswith(theirs):
                raise ReadOnlyError(f"connecting to {_named(to)}")
        elif event in _REFUSED:
            raise ReadOnlyError(event)

    sys.addaudithook(check)


def _plain(path: object) -> str:
    """Make a path absolute and remove `..` from it, without following links."""
    return os.path.abspath(os.fsdecode(path))  # type: ignore[arg-type]  # noqa: PTH100 (follows no links)


def _named(place: object) -> str:
    if isinstance(place, tuple):
        return ":".join(map(str, place[:2]))
    if isinstance(place, str | bytes | os.PathLike):
        return os.fsdecode(place)
    return str(place)
