"""Many events, few paints: what arrives from another thread is collected, and its first piece asks for one delivery.

Nothing waiting means nothing asked for, so an idle screen has no timer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_Item = TypeVar("_Item")


class Drain(Generic[_Item]):
    """Collects items from any thread. `wake` is called (on the putting thread) when the first one comes in."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._items: list[_Item] = []
        self._awake = False

    @property
    def is_waiting(self) -> bool:
        """Whether there is something to deliver."""
        return self._awake

    def put(self, item: _Item) -> None:
        """Add one item."""
        with self._lock:
            self._items.append(item)
            first, self._awake = not self._awake, True
        if first:
            self._wake()

    def take(self) -> list[_Item]:
        """Everything collected, in order; the next item wakes again."""
        with self._lock:
            items, self._items = self._items, []
            self._awake = False
        return items
