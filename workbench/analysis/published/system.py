"""The form of a published system's report: one line, more lines, and the numbers under its own names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.suite.model import Case
from workbench.trajectory.events import JsonValue


@dataclass(frozen=True)
class Summary:
    """`headline` is one line without the system's name; `details` are further lines; `numbers` is a JSON object."""

    headline: str
    details: tuple[str, ...]
    numbers: Mapping[str, JsonValue]


@dataclass(frozen=True)
class System:
    """A published system. Its functions get graded runs of one suite to which its grader applies, at least one, each
    with the grader's own verdict as its status.

    `summary` gets the runs with one model; `with_cases`, where the system has one, replaces it and also gets the cases
    by run, as far as they are known; `comparison`, where the system has one, gets the runs with all of several models.
    """

    summary: Callable[[Sequence[RunResult]], Summary]
    comparison: Callable[[Sequence[RunResult]], Summary] | None = None
    with_cases: Callable[[Sequence[RunResult], Mapping[str, Case]], Summary] | None = None


def share(part: int, whole: int, digits: int) -> float:
    """Returns a rounded percentage; 0 of nothing."""
    return round(100 * part / whole, digits) if whole else 0.0
