"""Starts a command that ends when Workbench ends. `workbench.tools.server_process` runs this file as a script."""

from __future__ import annotations

# Imports delay every start of a server, so only modules are used that the interpreter has loaded anyway. `_signal` is
# one of them. `signal` would import `enum`, which takes as long as everything else.
import _signal  # type: ignore[import-not-found]
import os
import sys

# This process leads a process group. It starts a watcher in the group, and then becomes the command. The watcher waits
# until Workbench ends or closes its end of a socket, which no other process holds open. Then it kills its own group. As
# long as the watcher lives, no other group can get the group's number. The command never runs without a watcher. Other
# processes of the command have left the group. They are found by a mark: an environment variable with an id of this
# start, which every process that the command starts inherits.

MARK = "WORKBENCH_STARTED_AS"
"""The environment variable by which the processes of a server are found. Its value is an id of the server's start."""

_MAX_SEARCHES = 100
"""The maximum number of searches for processes of a server. It is limited because a process may start others during a
search."""


def main() -> None:
    """Read a command from standard input, and replace this process by the command.

    The command gets everything that follows on standard input. The arguments are the numbers of two open files: the
    socket to Workbench, and a pipe that gets the error number if the command cannot be started."""
    alive, failed = int(sys.argv[1]), int(sys.argv[2])
    parent = os.getppid()
    workbench = _opened_process(parent)
    # If the parent has changed, Workbench has ended, and the descriptor may belong to another process.
    if os.getppid() != parent:
        os._exit(1)
    words, environment = _command()
    try:
        middle = os.fork()
        if middle == 0:
            # The watcher must not be a child of the command, because the command may wait for all its children.
            if os.fork() == 0:
                _watch(alive, workbench, [0, 1, 2, failed], environment.get(MARK.encode(), b""))
            os._exit(0)
        os.waitpid(middle, 0)
        _become(words, environment, alive, failed)
    except OSError as error:
        os.write(failed, str(error.errno).encode())
    os._exit(127)


def _become(words: list[bytes], environment: dict[bytes, bytes], alive: int, failed: int) -> None:
    os.set_inheritable(alive, False)
    os.set_inheritable(failed, False)
    # Python ignores these signals. Without this reset, the command would ignore them, too.
    for number in (_signal.SIGPIPE, getattr(_signal, "SIGXFSZ", _signal.SIGPIPE)):
        _signal.signal(number, _signal.SIG_DFL)
    os.execvpe(words[0], words, environment)


def _opened_process(number: int) -> int:
    """Return a descriptor that becomes readable when a process ends, -1 on a system without such descriptors."""
    try:
        return os.pidfd_open(number)
    except (AttributeError, OSError):
        return -1


def _watch(alive: int, workbench: int, others: list[int], mark: bytes) -> None:
    """Wait until Workbench has ended, then kill the marked processes and this process group. Never returns."""
    _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
    for number in others:
        os.close(number)
    os.chdir("/")
    try:
        import select

        ends = select.poll()
        for number in (alive, workbench):
            if number >= 0:
                ends.register(number, select.POLLIN)
        while not ends.poll():
            pass
        kill_marked_processes(mark)  # the watcher itself has no mark
    finally:
        os.kill(0, _signal.SIGKILL)


def kill_marked_processes(mark: bytes, group: int = 0) -> list[tuple[int, bytes]]:
    """Kill every process whose environment had a mark at its start. Return their ids and command lines.

    Processes in the process group `group` are left out, because it is killed as a whole. On a system without /proc, no
    process is found. A process that was started with another environment is never found."""
    ended: dict[int, bytes] = {}
    if not mark:
        return []
    for _ in range(_MAX_SEARCHES):
        found = _kill_marked(b"%s=%s" % (MARK.encode(), mark), ended, group)
        if not found:
            break
        ended.update(found)
    return list(ended.items())


def _kill_marked(variable: bytes, known: dict[int, bytes], group: int) -> dict[int, bytes]:
    """Kill marked processes, except those in `known` and in `group`. Return their ids and command lines."""
    found: dict[int, bytes] = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208 (as above)
    except OSError:
        return found
    for name in names:
        if not name.isdecimal() or int(name) in known:
            continue
        # The signal goes to a descriptor, which is opened first. If the process ends, another process with the same
        # number is not killed.
        process = _opened_process(int(name))
        try:
            marked = variable in _content_of_proc(f"/proc/{name}/environ").split(b"\0")
            if marked and os.getpgid(int(name)) != group:
                command = _content_of_proc(f"/proc/{name}/cmdline")
                _kill(int(name), process)
                found[int(name)] = command.rstrip(b"\0").replace(b"\0", b" ")
        except OSError:
            continue  # a process of another user, or a process that has ended
        finally:
            if process >= 0:
                os.close(process)
    return found


def _kill(number: int, process: int) -> None:
    if process >= 0:
        _signal.pidfd_send_signal(process, _signal.SIGKILL)
    else:
        os.kill(number, _signal.SIGKILL)


def _content_of_proc(file: str) -> bytes:
    """Return the content of a file in /proc. Its size is not known beforehand."""
    opened = os.open(file, os.O_RDONLY)
    pieces = []
    try:
        while piece := os.read(opened, 1 << 16):
            pieces.append(piece)
    finally:
        os.close(opened)
    return b"".join(pieces)


def _command() -> tuple[list[bytes], dict[bytes, bytes]]:
    words, variables = _read_texts(), _read_texts()
    return words, dict(variable.split(b"=", 1) for variable in variables)


def _read_texts() -> list[bytes]:
    size = int(_read(8))
    return _read(size).split(b"\0")[:-1]


def _read(size: int) -> bytes:
    """Read exactly `size` bytes of standard input, because the bytes after them belong to the command."""
    read = b""
    while len(read) < size:
        piece = os.read(0, size - len(read))
        if not piece:
            os._exit(1)
        read += piece
    return read


def packed(texts: list[bytes]) -> bytes:
    """Pack texts into bytes: the total size in eight digits, then each text with a NUL after it.

    Raises ValueError for a text with a NUL, which commands and variables cannot have."""
    if any(b"\0" in text for text in texts):
        raise ValueError("embedded null byte")
    whole = b"".join(text + b"\0" for text in texts)
    return b"%08d%s" % (len(whole), whole)


if __name__ == "__main__":
    main()
