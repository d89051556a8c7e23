"""Results whose grades are mostly computed when they are first read, so that grading delays no model request.

Only the grade that decides the status is computed at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from workbench.grading.grade import Grade, RunResult
from workbench.grading.packed import LazyResult

GradesCallback = Callable[[], tuple[Grade, ...]]
"""Returns the grades of the graders that do not decide."""


class DeferredResult(LazyResult):
    """A result in which the grades that do not decide the status are computed when they are first read.

    `whole` is the equal result with all grades. Any thread may read a deferred result. Two threads may compute the same
    grades at once, so computing them must always give equal grades."""

    __slots__ = ("_first", "_others")

    _first: RunResult
    _others: GradesCallback | None

    @staticmethod
    def of(first: RunResult, grade_others: GradesCallback) -> RunResult:
        """Return a result that has the grade of its deciding grader now and computes the other grades later."""
        late: DeferredResult = object.__new__(DeferredResult)
        object.__setattr__(late, "_first", first)
        object.__setattr__(late, "_others", grade_others)
        return late

    @property
    def whole(self) -> RunResult:
        """The result with all grades in memory."""
        first, others = self._first, self._others
        if others is None:
            return self._first
        whole = replace(first, grades=(*first.grades[:1], *others()))
        # The order matters: a thread that finds no `_others` must find all grades in `_first`.
        object.__setattr__(self, "_first", whole)
        object.__setattr__(self, "_others", None)
        return whole

    @property
    def small(self) -> RunResult:
        return self.whole.small


def plain_result(result: RunResult) -> RunResult:
    """Return a deferred result as a plain result if all its grades are computed. A plain result is faster to read."""
    if isinstance(result, DeferredResult) and result._others is None:
        return result._first
    return result


def replace_fields(result: RunResult, **changes: Any) -> RunResult:
    """Return a copy of a result with some fields changed. Grades that are not computed yet stay deferred."""
    if isinstance(result, DeferredResult) and (others := result._others) is not None:
        return DeferredResult.of(replace(result._first, **changes), others)
    return replace(result, **changes)


def _of_first(name: str) -> property:
    return property(lambda self: getattr(self._first, name))


_OF_DECIDING_GRADE = ("grade", "score", "reason", "issues", "is_broken", "grader", "verdict", "has_free_calls")
"""The properties that follow from the deciding grade."""

for _name in (*[field.name for field in fields(RunResult) if field.name != "grades"], *_OF_DECIDING_GRADE):
    setattr(DeferredResult, _name, _of_first(_name))
