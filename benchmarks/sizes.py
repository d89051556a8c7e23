"""The sizes of benchmarks: as documented, or with `--brief` just large enough to show that a benchmark works."""

from __future__ import annotations

import os
import sys
from typing import TypeVar

_Size = TypeVar("_Size")
_VARIABLE = "BENCHMARKS_BRIEF"

if "--brief" in sys.argv:
    sys.argv.remove("--brief")
    os.environ[_VARIABLE] = "1"  # for the processes that a benchmark starts


def sized(full: _Size, brief: _Size) -> _Size:
    """Return the size to measure with."""
    return brief if os.environ.get(_VARIABLE) else full
