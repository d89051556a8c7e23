"""Keeps the program running if its caller has closed a standard stream, or if standard error cannot be written to."""

from __future__ import annotations

import errno
import os
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


def open_closed_descriptors() -> None:
    """Connect each closed standard stream of this process and its child processes to `/dev/null`."""
    # A hook or a supervisor may start the program with closed standard streams (`<&-`, `>&-`). The next file that is
    # opened would get the number of such a stream, and output would be written into it.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The system assigns the lowest free number, which is that of the closed stream.
            opened = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(opened, True)


def open_closed_streams() -> None:
    """Connect closed standard streams to `/dev/null`, and set `sys.stdin`, `sys.stdout` and `sys.stderr` to them."""
    open_closed_descriptors()
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


class _Dispensable(FileIO):
    """A file that silently drops output that cannot be written, for example on a full disk."""

    def __init__(self, stream: TextIOWrapper) -> None:
        super().__init__(stream.fileno(), "w", closefd=False)
        # The reference keeps the stream alive. If it were garbage collected, the file would be closed.
        self._stream = stream

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            return memoryview(data).nbytes


def dispensable(stream: TextIOWrapper) -> TextIOWrapper:
    """Return a stream to the same file that silently drops output that cannot be written.

    Use it for standard error, whose failures cannot be reported anywhere. Writing to a closed pipe still raises an
    error."""
    return TextIOWrapper(BufferedWriter(_Dispensable(stream)), stream.encoding)
