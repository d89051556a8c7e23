"""How many rows each of many items has, with the sums that tell which item stands where.

Sums are kept for blocks of items: a height changes, and a row is found, at next to no cost however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable

_BLOCK = 256


class Heights:
    """Heights in rows, by item; an item may have none."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self._sums: list[int] = []
        self._sum_up_from(0)

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, item: int) -> int:
        return self._heights[item]

    def __setitem__(self, item: int, height: int) -> None:
        self._sums[item // _BLOCK] += height - self._heights[item]
        self._heights[item] = height

    def append(self, height: int) -> None:
        """One item more."""
        if len(self._heights) % _BLOCK == 0:
            self._sums.append(0)
        self._heights.append(height)
        self._sums[-1] += height

    def cut(self, count: int) -> None:
        """Keep only the first items."""
        del self._heights[count:]
        self._sum_up_from(count // _BLOCK)

    @property
    def total(self) -> int:
        """Rows of all items."""
        return sum(self._sums)

    def start_of(self, item: int) -> int:
        """The row at which an item begins; behind the last one, the number of rows."""
        block = item // _BLOCK
        return sum(self._sums[:block]) + sum(self._heights[block * _BLOCK : item])

    def item_at(self, row: int) -> int:
        """The item to which a row belongs. Raises IndexError when there is no such row."""
        if not 0 <= row < self.total:
            raise IndexError(f"no row {row} among {self.total}")
        block = 0
        while row >= self._sums[block]:
            row -= self._sums[block]
            block += 1
        item = block * _BLOCK
        while row >= self._heights[item]:
            row -= self._heights[item]
            item += 1
        return item

    def shown_from(self, first: int) -> int:
        """How many items from `first` on have rows."""
        return sum(height > 0 for height in self._heights[first:])

    def _sum_up_from(self, block: int) -> None:
        starts = range(block * _BLOCK, len(self._heights), _BLOCK)
        self._sums[block:] = [sum(self._heights[start : start + _BLOCK]) for start in starts]
