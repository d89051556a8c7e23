"""Caches answers about frozen objects by identity."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

_Subject = TypeVar("_Subject")
_Answer = TypeVar("_Answer")

MOST_KNOWN = 2048
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
        # An answer is dropped before another object can get the id of its subject.
        self._known: dict[int, _Known[_Subject, _Answer]] = {}

    def __call__(self, subject: _Subject) -> _Answer:
        identity = id(subject)
        try:
            return self._known[identity].answer
        except KeyError:
            pass
        answer = self._answer(subject)
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[identity] = _Known.of(subject, answer, self._known)
        return answer


class _Known(weakref.ref[_Subject], Generic[_Subject, _Answer]):
    """A reference to a subject that holds the answer about it, and drops both when the subject is gone."""

    __slots__ = ("among", "answer", "identity")
    answer: _Answer
    identity: int
    among: dict[int, _Known[_Subject, _Answer]]

    @staticmethod
    def of(
        subject: _Subject, answer: _Answer, among: dict[int, _Known[_Subject, _Answer]]
    ) -> _Known[_Subject, _Answer]:
        known: _Known[_Subject, _Answer] = _Known(subject, _forget)
        known.identity, known.answer, known.among = id(subject), answer, among
        return known


def _forget(known: weakref.ref[_Subject]) -> None:
    assert isinstance(known, _Known)
    known.among.pop(known.identity, None)
