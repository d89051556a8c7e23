"""Caches answers about frozen objects by identity."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

_Subject = TypeVar("_Subject")
_Answer = TypeVar("_Answer")


class ByIdentity(Generic[_Subject, _Answer]):
    """A function that remembers its answer for each object, which must never change, as long as the object lives.

    Objects are compared by identity, because comparing or hashing a document takes longer than answering. The cache
    keeps no object alive, so an answer must not hold its own subject.
    """

    def __init__(self, answer: Callable[[_Subject], _Answer]) -> None:
        self._answer = answer
        # An answer is dropped before another object can get the id of its subject.
        self._known: dict[int, tuple[_Answer, weakref.ref[_Subject]]] = {}

    def __call__(self, subject: _Subject) -> _Answer:
        identity = id(subject)
        try:
            return self._known[identity][0]
        except KeyError:
            pass
        answer = self._answer(subject)
        self._known[identity] = (answer, weakref.ref(subject, lambda _: self._known.pop(identity, None)))
        return answer
