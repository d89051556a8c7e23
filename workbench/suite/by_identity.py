"""Answers about frozen objects, found out once for each object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

_Subject = TypeVar("_Subject")
_Answer = TypeVar("_Answer")


class ByIdentity(Generic[_Subject, _Answer]):
    """A function that remembers what it answered about an object, which must never change.

    It goes by which object it is, not by what that holds: to compare or hash a document takes longer than to answer.
    At `most` so many answers are kept, with their objects, and then forgotten all at once.
    """

    def __init__(self, answer: Callable[[_Subject], _Answer], most: int = 1024) -> None:
        self._answer = answer
        self._most = most
        # With its subject kept, an id cannot become that of another object.
        self._known: dict[int, tuple[_Subject, _Answer]] = {}

    def __call__(self, subject: _Subject) -> _Answer:
        known = self._known.get(id(subject))
        if known is None:
            if len(self._known) >= self._most:
                self._known.clear()
            known = self._known[id(subject)] = (subject, self._answer(subject))
        return known[1]
