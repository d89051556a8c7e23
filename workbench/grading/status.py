"""How a run ends, and the case that its repeats add up to: all there is to know of each status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol, TypeAlias

StatusRole = Literal["passed", "warned", "failed", "error", "muted"]
"""The role that colours a status: in the app that of the theme, elsewhere that of terminals and pages."""


class _Facts(NamedTuple):
    name: str
    word: str
    counted: str
    total: str
    query: str
    sign: str
    ascii: str
    role: StatusRole
    urgency: int
    meaning: str
    graded: bool = False
    good: bool = False
    owed: bool = False
    final: bool = True


class Status(StrEnum):
    """The status of a run.

    An error is a fault of the infrastructure, never of the model; a run that is not graded ended well, and its case
    expects nothing yet."""

    PASSED = _Facts(
        "passed",
        word="passed",
        counted="passed",
        total="passed",
        query="passed",
        sign="✓",
        ascii="Y",
        role="passed",
        urgency=6,
        meaning="the model did what the case requires",
        graded=True,
        good=True,
        owed=True,
    )
    WARNED = _Facts(
        "warned",
        word="warned",
        counted="warned",
        total="warned",
        query="warned",
        sign="!",
        ascii="!",
        role="warned",
        urgency=2,
        meaning="good enough to pass, worth a look; an issue; a warning of a suite",
        graded=True,
        good=True,
        owed=True,
    )
    FAILED = _Facts(
        "failed",
        word="failed",
        counted="failed",
        total="failed",
        query="failed",
        sign="✗",
        ascii="N",
        role="failed",
        urgency=1,
        meaning="the model called tools wrongly",
        graded=True,
        owed=True,
    )
    ERROR = _Facts(
        "error",
        word="error",
        counted="in error",
        total="errors",
        query="error",
        sign="▲",
        ascii="E",
        role="error",
        urgency=0,
        meaning="the infrastructure failed, never the model; a suite that cannot run",
        owed=True,
    )
    SKIPPED = _Facts(
        "skipped",
        word="skipped",
        counted="skipped",
        total="skipped",
        query="skipped",
        sign="-",
        ascii="-",
        role="muted",
        urgency=4,
        meaning="the case says so, or its result could decide nothing any more",
    )
    STOPPED = _Facts(
        "stopped",
        word="stopped",
        counted="stopped",
        total="stopped",
        query="stopped",
        sign="■",
        ascii="#",
        role="muted",
        urgency=3,
        meaning="you stopped it, so it is not graded",
        owed=True,
        final=False,
    )
    NOT_GRADED = _Facts(
        "not graded",
        word="not graded",
        counted="not graded",
        total="not_graded",
        query="ungraded",
        sign="◌",
        ascii="U",
        role="muted",
        urgency=5,
        meaning="the case expects nothing yet",
    )

    # The members are in the order in which counts are listed.
    _value_: str
    """Its name in recordings, histories and JSON, which never changes."""
    word: str
    """Its name in every text, and so its `str`."""
    counted: str
    """Its word behind a number, as in "3 in error"."""
    total: str
    """The key of its number in the totals of JSON reports."""
    query: str
    """The word that filters cases by it."""
    sign: str
    ascii: str
    """The sign on terminals without others."""
    role: StatusRole
    urgency: int
    """Its place among all, 0 for the one to look at first."""
    meaning: str
    """Its description in the help."""
    graded: bool
    """Whether the model was judged."""
    good: bool
    """Whether it was judged good enough."""
    owed: bool
    """Whether a verdict was wanted, whether or not there is one."""
    final: bool
    """Whether the run is over; a resumed batch makes the others again."""

    def __new__(cls, name: str, *facts: object) -> Status:
        status = str.__new__(cls, name)
        status._value_ = name
        for fact, value in zip(_Facts._fields[1:], facts, strict=True):
            setattr(status, fact, value)
        return status

    @property
    def mark(self) -> tuple[str, StatusRole]:
        """Return its sign and the role that colours it."""
        return self.sign, self.role

    @property
    def column(self) -> str:
        """Return the name of the column, or the key in JSON, that counts it in a history."""
        return self._value_.replace(" ", "_")

    __repr__ = str.__repr__  # a status compares equal to its name, and looks like it in a session of Python

    def __str__(self) -> str:
        return self.word

    def __format__(self, form: str) -> str:
        return format(self.word, form)


Verdict: TypeAlias = Literal[Status.PASSED, Status.WARNED, Status.FAILED, "not applicable", Status.ERROR]
"""The status of a grade. `ERROR`: a check could not be evaluated, or the grader refuses the case; the model is not
judged."""

NOT_APPLICABLE: Literal["not applicable"] = "not applicable"

WORST_FIRST: tuple[Status, ...] = tuple(sorted(Status, key=lambda status: status.urgency))
"""All statuses, the most urgent first."""

GOOD_WORDS = " or ".join(status.word for status in Status if status.good)
"""The word for runs and cases that count as good."""


def worst_of(statuses: Iterable[Status]) -> Status | None:
    """Return the most urgent of some statuses, `None` for none."""
    return min(statuses, key=lambda status: status.urgency, default=None)


def passed_if(holds: bool) -> Literal[Status.PASSED, Status.FAILED]:
    """Return the status of a check that holds or not."""
    return Status.PASSED if holds else Status.FAILED


class _Count:
    """The number of one status, as an attribute."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def __get__(self, instance: StatusCounts, owner: type) -> int:
        return instance.counts[self._status]


class StatusCounts:
    """The common part of counts by status.

    Every status is in `counts`, and its number an attribute called as in JSON reports: `Status.total`."""

    counts: Mapping[Status, int]
    passed, warned, failed, errors, skipped, stopped, not_graded = map(_Count, Status)

    @property
    def graded(self) -> int:
        """How many were judged."""
        return sum(count for status, count in self.counts.items() if status.graded)

    @property
    def good(self) -> int:
        """How many were judged good enough."""
        return sum(count for status, count in self.counts.items() if status.good)

    @property
    def counted(self) -> list[tuple[int, Status]]:
        """The counts that lists show: passed and failed always, the others unless they are 0."""
        always = (Status.PASSED, Status.FAILED)
        return [(self.counts[status], status) for status in Status if self.counts[status] or status in always]


def counts_of(statuses: Mapping[Status, int]) -> Mapping[Status, int]:
    """Return the number of every status, 0 for those that are not there."""
    return {status: statuses.get(status, 0) for status in Status}


PASS_SCORE = 0.8
"""The score that `dimensions` requires to pass, whatever the suite's thresholds are."""


class _Judged(Protocol):
    @property
    def verdict(self) -> Verdict: ...
    @property
    def status(self) -> Status | None: ...


def disagree(grades: Iterable[_Judged]) -> bool:
    """Return whether one grader would let the run pass, or warn, and another would fail it."""
    statuses = set()
    for grade in grades:
        if grade.verdict not in (NOT_APPLICABLE, Status.ERROR):
            statuses.add(grade.status)
    return Status.FAILED in statuses and len(statuses) > 1
