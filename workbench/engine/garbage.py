"""Reduces garbage collection while batches run."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""The number of new objects that triggers a collection of the youngest generation."""

_lock = threading.Lock()
_under_way = 0
_before: tuple[int, int, int] = (0, 0, 0)
_is_frozen_by_others = False


@contextmanager
def garbage_collected_rarely() -> Iterator[None]:
    """Make garbage collection rare within the context.

    Collections skip objects that exist already, such as suites and plans, unless the program has frozen objects itself.
    The outermost context restores all settings."""
    # Most collections would free nothing: runs create few cycles, and their results stay in memory until the report.
    global _under_way, _before, _is_frozen_by_others
    with _lock:
        _under_way += 1
        if _under_way == 1:
            _before = gc.get_threshold()
            if _before[0] != 0:  # 0 switches collection off
                gc.set_threshold(max(_before[0], OBJECTS_BETWEEN_COLLECTIONS), *_before[1:])
            # Python has only one set of frozen objects. Thawing would also thaw the objects that other code froze.
            # Counting frozen objects takes up to 0.1 s for a million, so the result is remembered.
            _is_frozen_by_others = _is_frozen_by_others or gc.get_freeze_count() > 0
            if not _is_frozen_by_others:
                gc.freeze()
    try:
        yield
    finally:
        with _lock:
            _under_way -= 1
            if _under_way == 0:
                gc.set_threshold(*_before)
                if not _is_frozen_by_others:
                    gc.unfreeze()
