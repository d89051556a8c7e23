"""Finished runs packed small: what happened in them, and what it came to, is unpacked when somebody looks.

A run of a few rounds takes some fifty kilobytes as objects and two packed, and a comparison has thousands of them.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from workbench.grading.grade import RunResult
from workbench.trajectory.events import Event

WHOLE_RUNS = 256
"""How many finished runs stay as they are: those that were looked at last."""


@dataclass
class Content:
    """Everything about a run that takes room: its events and, when it is over, its result."""

    events: list[Event] = field(default_factory=list)
    result: RunResult | None = None


def packed(content: Content) -> bytes:
    """The content, small."""
    file = io.BytesIO()
    pickler = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _REDUCERS
    pickler.dump((content.events, content.result))
    return zlib.compress(file.getbuffer(), 1)


def unpacked(data: bytes) -> Content:
    """The content, equal to what was packed. What is unpacked was packed by this program in this process: pickle is no
    way in for anybody."""
    return Content(*pickle.loads(zlib.decompress(data)))


def _read_only(mapping: Mapping[Any, Any]) -> Mapping[Any, Any]:
    return MappingProxyType(mapping)


_REDUCERS = copyreg.dispatch_table.copy()
_REDUCERS[MappingProxyType] = lambda mapping: (_read_only, (dict(mapping),))


class Shelf:
    """Which finished runs are whole. The one that was not looked at for the longest time is packed when there are more
    than `limit`."""

    def __init__(self, limit: int = WHOLE_RUNS) -> None:
        self._limit = limit
        self._whole: dict[int, Callable[[], None]] = {}

    def use(self, key: int, pack: Callable[[], None]) -> None:
        """Somebody looks at a run; `key` tells it apart while it lives, `pack` makes it small."""
        if self._whole.pop(key, None) is None and len(self._whole) >= self._limit:
            oldest = next(iter(self._whole))
            self._whole.pop(oldest)()
        self._whole[key] = pack
