"""How often each name occurs among many things, of which only those that changed are counted again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)


class Tally(Generic[_Key]):
    """Names of keys, and how often each occurs; a key may have any number of names."""

    def __init__(self) -> None:
        self._names: dict[_Key, tuple[str, ...]] = {}
        self._totals: Counter[str] = Counter()

    def put(self, key: _Key, names: tuple[str, ...]) -> None:
        """Give a key other names than it had."""
        self._totals.subtract(self._names.get(key, ()))
        self._totals.update(names)
        self._names[key] = names

    @property
    def totals(self) -> Mapping[str, int]:
        """The names that occur, with how often they do."""
        return +self._totals
