"""Keep the program running if its caller closed a standard stream or standard error cannot be written.

Hooks and supervisors close them (`<&-`, `>&-`)."""

from __future__ import annotations

import errno
import os
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


def open_closed_descriptors() -> None:
    """Connect each closed standard stream of this process and of those that it starts to nothing.

    Otherwise the next file or socket would get its number, and be taken for it: uvloop aborts the process when it
    closes one.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the least free number: this one
            os.set_inheritable(opened, True)


def open_closed_streams() -> None:
    """Do the same, and let Python read nothing from them and write to nobody."""
    open_closed_descriptors()
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115 (open to the end)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


class _Dispensable(FileIO):
    """A file whose content is lost where there is no room for it.

    Nobody can be told: it is standard error."""

    def __init__(self, stream: TextIOWrapper) -> None:
        super().__init__(stream.fileno(), "w", closefd=False)
        self._stream = stream  # closes the file when nothing holds it any more

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            return memoryview(data).nbytes


def dispensable(stream: TextIOWrapper) -> TextIOWrapper:
    """Return a text stream to the same file that loses unwritable output, unless its reader has gone."""
    return TextIOWrapper(BufferedWriter(_Dispensable(stream)), stream.encoding)
