"""Opens the standard streams that the caller has closed (`<&-`, `>&-`), as hooks and supervisors do."""

from __future__ import annotations

import os
import sys


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
