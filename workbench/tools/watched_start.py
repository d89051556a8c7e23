"""Starts a command that does not outlive Workbench.

Run as a script of its own, by `workbench.tools.server_process`.

This process leads a process group. It leaves a watcher behind in the group and becomes the command. The watcher waits
for Workbench's end, which it sees by the end of a socket that only Workbench holds open, or by the end of the process
itself, and then kills its own group. While the watcher lives the group has a member, so that its number cannot mean
another group; and the command never runs without a watcher.

Processes that left the group are found by a mark: an environment variable with an id of this one start, which
everything inherits that the command starts, and nothing else has.

Imports here delay every start of a server: only modules that the interpreter has already loaded are used.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # `signal` imports `enum`, which takes as long as all the rest
import os
import sys

MARK = "WORKBENCH_STARTED_AS"
"""The environment variable that holds the mark."""

_PASSES = 100
"""How often processes are looked for that marked ones have started meanwhile."""


def main() -> None:
    """Read the command from standard input, and nothing else, and become it.

    The arguments are the numbers of two open files: the socket to Workbench, and a pipe for the number of the error if
    the command cannot be started."""
    alive, failed = int(sys.argv[1]), int(sys.argv[2])
    _close_all_but(alive, failed)
    parent = os.getppid()
    workbench = _opened_process(parent)
    if os.getppid() != parent:
        os._exit(1)
    words, environment = _command()
    try:
        middle = os.fork()
        if middle == 0:
            # The watcher is not a child of the command: a command that waits for its children does not wait for it.
            if os.fork() == 0:
                _watch(alive, workbench, [0, 1, 2, failed], environment.get(MARK.encode(), b""))
            os._exit(0)
        os.waitpid(middle, 0)
        _become(words, environment, alive, failed)
    except OSError as error:
        os.write(failed, str(error.errno).encode())
    os._exit(127)


def _close_all_but(*needed: int) -> None:
    """Close everything else that was left open, except for the standard streams.

    uvloop leaves open the descriptors of which it made these streams, and a process that holds them hides the end of
    the command's output."""
    try:
        names = os.listdir("/dev/fd")  # noqa: PTH208 (pathlib's import takes longer than all the rest)
    except OSError:  # a system without such a list
        return
    for name in names:
        if int(name) > 2 and int(name) not in needed:
            try:
                os.close(int(name))
            except OSError:
                continue  # what listed them is closed already


def _become(words: list[bytes], environment: dict[bytes, bytes], alive: int, failed: int) -> None:
    os.set_inheritable(alive, False)
    os.set_inheritable(failed, False)
    for number in (_signal.SIGPIPE, getattr(_signal, "SIGXFSZ", _signal.SIGPIPE)):
        _signal.signal(number, _signal.SIG_DFL)  # Python ignores them, and ignored signals stay ignored
    os.execvpe(words[0], words, environment)


def _opened_process(number: int) -> int:
    """Return a descriptor that becomes readable when a process ends; -1 where the system has none."""
    try:
        return os.pidfd_open(number)
    except (AttributeError, OSError):
        return -1


def _watch(alive: int, workbench: int, others: list[int], mark: bytes) -> None:
    """Wait until Workbench has ended, then end the marked processes and this process group, the watcher included.

    Never returns."""
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
        end_marked(mark)  # the watcher itself has no mark
    finally:
        os.kill(0, _signal.SIGKILL)


def end_marked(mark: bytes, group: int = 0) -> list[tuple[int, bytes]]:
    """Kill every process with a mark in its initial environment; return their ids and command lines.

    Processes in a group that was killed already are left out. It finds nothing on a system without /proc, and no
    process that was started with another environment."""
    ended: dict[int, bytes] = {}
    for _ in range(_PASSES if mark else 0):
        found = _marked(b"%s=%s" % (MARK.encode(), mark), ended, group)
        if not found:
            break
        ended.update(found)
    return list(ended.items())


def _marked(variable: bytes, known: dict[int, bytes], group: int) -> dict[int, bytes]:
    """Kill marked processes outside of a group that are not known yet, and return them."""
    found: dict[int, bytes] = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208 (as above)
    except OSError:
        return found
    for name in names:
        if not name.isdecimal() or int(name) in known:
            continue
        # The descriptor is opened first: should the number go to another process meanwhile, that one is not killed.
        process = _opened_process(int(name))
        try:
            marked = variable in _content(f"/proc/{name}/environ").split(b"\0")
            if marked and os.getpgid(int(name)) != group:
                command = _content(f"/proc/{name}/cmdline")
                _kill(int(name), process)
                found[int(name)] = command.rstrip(b"\0").replace(b"\0", b" ")
        except OSError:
            continue  # another user's, or over
        finally:
            if process >= 0:
                os.close(process)
    return found


def _kill(number: int, process: int) -> None:
    if process >= 0:
        _signal.pidfd_send_signal(process, _signal.SIGKILL)
    else:
        os.kill(number, _signal.SIGKILL)


def _content(file: str) -> bytes:
    """Return the content of a file of /proc.

    Environments may be large."""
    opened = os.open(file, os.O_RDONLY)
    pieces = []
    try:
        while piece := os.read(opened, 1 << 16):
            pieces.append(piece)
    finally:
        os.close(opened)
    return b"".join(pieces)


def _command() -> tuple[list[bytes], dict[bytes, bytes]]:
    """Return the words of the command, and its environment."""
    words, variables = _texts(), _texts()
    return words, dict(variable.split(b"=", 1) for variable in variables)


def _texts() -> list[bytes]:
    """Return texts from the form that `packed` writes."""
    size = int(_read(8))
    return _read(size).split(b"\0")[:-1]


def _read(size: int) -> bytes:
    """Return exactly this many bytes: the next one belongs to the command."""
    read = b""
    while len(read) < size:
        piece = os.read(0, size - len(read))
        if not piece:
            os._exit(1)
        read += piece
    return read


def packed(texts: list[bytes]) -> bytes:
    """Return texts as `_texts` reads them: the size in eight digits, then each with a NUL behind it.

    Raises ValueError for a text with NUL, which no command and no variable can hold."""
    if any(b"\0" in text for text in texts):
        raise ValueError("embedded null byte")
    whole = b"".join(text + b"\0" for text in texts)
    return b"%08d%s" % (len(whole), whole)


if __name__ == "__main__":
    main()
