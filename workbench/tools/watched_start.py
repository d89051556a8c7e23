"""Starts a command that does not outlive Workbench. Run as a script of its own, by `workbench.tools.stdio`.

This process leads a process group. It leaves a watcher behind in the group and becomes the command. The watcher waits
for Workbench's end, which it sees by the end of a socket that only Workbench holds open, or by the end of the process
itself, and then kills its own group. While the watcher lives the group has a member, so that its number cannot mean
another group; and the command never runs without a watcher.

Imports here delay every start of a server: only modules that the interpreter has already loaded are used.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # `signal` imports `enum`, which takes as long as all the rest
import os
import sys


def main() -> None:
    """Read the command from standard input, and nothing else, and become it. The arguments are the numbers of two open
    files: the socket to Workbench, and a pipe for the number of the error if the command cannot be started."""
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
                _watch(alive, workbench, [0, 1, 2, failed])
            os._exit(0)
        os.waitpid(middle, 0)
        _become(words, environment, alive, failed)
    except OSError as error:
        os.write(failed, str(error.errno).encode())
    os._exit(127)


def _close_all_but(*needed: int) -> None:
    """Close what else was left open, except for the standard streams. uvloop leaves open what it made these streams of,
    and whoever holds that keeps the end of the command's output from being seen."""
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
    """Returns a descriptor that becomes readable when a process ends; -1 where the system has none."""
    try:
        return os.pidfd_open(number)
    except (AttributeError, OSError):
        return -1


def _watch(alive: int, workbench: int, others: list[int]) -> None:
    """Wait until Workbench has ended, then end this process group, the watcher included. Never returns."""
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
    finally:
        os.kill(0, _signal.SIGKILL)


def _command() -> tuple[list[bytes], dict[bytes, bytes]]:
    """Returns the words of the command, and its environment."""
    words, variables = _texts(), _texts()
    return words, dict(variable.split(b"=", 1) for variable in variables)


def _texts() -> list[bytes]:
    """Returns texts from the form that `packed` writes."""
    size = int(_read(8))
    return _read(size).split(b"\0")[:-1]


def _read(size: int) -> bytes:
    """Returns exactly this many bytes: the next one belongs to the command."""
    read = b""
    while len(read) < size:
        piece = os.read(0, size - len(read))
        if not piece:
            os._exit(1)
        read += piece
    return read


def packed(texts: list[bytes]) -> bytes:
    """Returns texts as `_texts` reads them: the size in eight digits, then each with a NUL behind it. Raises ValueError
    for a text with NUL, which no command and no variable can hold."""
    if any(b"\0" in text for text in texts):
        raise ValueError("embedded null byte")
    whole = b"".join(text + b"\0" for text in texts)
    return b"%08d%s" % (len(whole), whole)


if __name__ == "__main__":
    main()
