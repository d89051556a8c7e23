"""Caches answers about frozen objects by identity."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

_Subject = TypeVar("_Subject")
_Answer = TypeVar("_Answer")

MAX_KNOWN = 2048
"""How many answers one function remembers. More subjects than that are those of a batch, whose runs are not looked at
again."""


class ByIdentity(Generic[_Subject, _Answer]):
    """A function that remembers its answer for each object, which must never change, as long as the object lives; with
    too many of them it forgets all and begins anew.

    Objects are compared by identity, because comparing or hashing a document takes longer than answering. The cache
    keeps no object alive, so an answer must not hold its own subject.
    """

    def __init__(self, answer: Callable[[_Subject], _Answer]) -> None:
        self._answer = answer
        self._known: dict[int, tuple[weakref.ref[_Subject], _Answer]] = {}

    def __call__(self, subject: _Subject) -> _Answer:
        identity = id(subject)
        try:
            return self._known[identity][1]
        except KeyError:
            pass
        answer = self._answer(subject)
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        # Drops the answer before another object can get the id of its subject.
        self._known[identity] = (weakref.ref(subject, lambda _: self._known.pop(identity, None)), answer)
        return answer
