"""Storage for a million runs: sequences that create their items on access, and columns with few distinct values."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Generic, TypeVar, overload

_Item = TypeVar("_Item")
_Other = TypeVar("_Other")
_Value = TypeVar("_Value", bound=Hashable)


class LazySequence(Sequence[_Item]):
    """A sequence that creates its items on access and equals any sequence with equal items."""

    def at(self, index: int) -> _Item:
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> _Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[_Item]: ...
    def __getitem__(self, index: int | slice) -> _Item | Sequence[_Item]:
        if isinstance(index, slice):
            return tuple(self.at(each) for each in range(*index.indices(len(self))))
        return self.at(range(len(self))[index])

    def __iter__(self) -> Iterator[_Item]:
        return map(self.at, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(one == another for one, another in zip(self, other, strict=True))

    # As for lists, equality compares items. Items may be unhashable, so the sequence is unhashable too.
    __hash__ = None  # type: ignore[assignment]


class MappedSequence(LazySequence[_Item], Generic[_Other, _Item]):
    """A sequence that applies a function to the items of another sequence, each time an item is read."""

    def __init__(self, items: Sequence[_Other], make: Callable[[_Other], _Item]) -> None:
        self._items = items
        self._make = make

    def __len__(self) -> int:
        return len(self._items)

    def at(self, index: int) -> _Item:
        return self._make(self._items[index])


class SelectedSequence(LazySequence[_Item]):
    """Some of the items of another sequence, by index."""

    def __init__(self, items: Sequence[_Item], indices: Sequence[int]) -> None:
        self._items = items
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    def at(self, index: int) -> _Item:
        return self._items[self._indices[index]]


class CodedColumn(Generic[_Value]):
    """A column of a table with few distinct values.

    Each value is stored once, and `codes` has a number for each row."""

    def __init__(self) -> None:
        self._values: list[_Value] = []
        self._codes: dict[_Value, int] = {}
        self.codes = array("I")

    @property
    def kinds(self) -> int:
        return len(self._values)

    def append(self, value: _Value) -> None:
        code = self._codes.get(value)
        if code is None:
            code = self._codes[value] = len(self._values)
            self._values.append(value)
        self.codes.append(code)

    def __getitem__(self, index: int) -> _Value:
        return self._values[self.codes[index]]

    def where(self, fits: Callable[[_Value], bool]) -> Iterator[int]:
        """Return the rows whose value `fits` accepts. `fits` is called once for each distinct value."""
        fitting = {code for code, value in enumerate(self._values) if fits(value)}
        if fitting:
            return (place for place, code in enumerate(self.codes) if code in fitting)
        return iter(())
