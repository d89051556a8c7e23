"""The statuses of runs and cases: words, signs, roles, order and counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol, TypeAlias

StatusRole = Literal["passed", "warned", "failed", "error", "muted"]
"""The role that selects the colour of a status in the app's themes, in terminals and on pages."""


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

    An error is a fault of the infrastructure, never of the model. A run with the status "not graded" ended normally,
    but its case expects nothing yet."""

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

    # Lists of counts have the order of the enum's members.
    _value_: str
    """The name of the status in recordings, histories and JSON. It never changes."""
    word: str
    """The name of the status in every text, and its `str`."""
    counted: str
    """The word of the status after a number, as in "3 in error"."""
    total: str
    """The key of the status in the totals of JSON reports."""
    query: str
    """The word in a filter that selects cases with the status."""
    sign: str
    ascii: str
    """The sign on terminals that show only ASCII."""
    role: StatusRole
    urgency: int
    """The rank of the status by urgency. The most urgent status has 0."""
    meaning: str
    """The description of the status in the help."""
    graded: bool
    """Whether the model was judged."""
    good: bool
    """Whether the model was judged good enough."""
    owed: bool
    """Whether the run should have a verdict, even if it has none."""
    final: bool
    """Whether the run is finished. A resumed batch repeats runs with the other statuses."""

    def __new__(cls, name: str, *facts: object) -> Status:
        status = str.__new__(cls, name)
        status._value_ = name
        for fact, value in zip(_Facts._fields[1:], facts, strict=True):
            setattr(status, fact, value)
        return status

    @property
    def mark(self) -> tuple[str, StatusRole]:
        """The sign of the status and the role that colours it."""
        return self.sign, self.role

    @property
    def column(self) -> str:
        """The column of the history, and the key in JSON, that holds the number of runs with this status."""
        return self._value_.replace(" ", "_")

    # A status equals its stored name as a string, so `repr` shows that name too.
    __repr__ = str.__repr__

    # `StrEnum` would print the stored name, which must never change. Texts show the word.
    def __str__(self) -> str:
        return self.word

    def __format__(self, form: str) -> str:
        return format(self.word, form)


Verdict: TypeAlias = Literal[Status.PASSED, Status.WARNED, Status.FAILED, "not applicable", Status.ERROR]
"""The status of a grade. It is `ERROR` if a check could not be evaluated or the grader refuses the case."""

NOT_APPLICABLE: Literal["not applicable"] = "not applicable"

WORST_FIRST: tuple[Status, ...] = tuple(sorted(Status, key=lambda status: status.urgency))
"""All statuses, the most urgent first."""

GRADED = tuple(status for status in Status if status.graded)
GOOD = tuple(status for status in Status if status.good)
FINAL = tuple(status for status in Status if status.final)

GOOD_WORDS = " or ".join(status.word for status in GOOD)
"""The words of the statuses that count as good, joined by "or"."""


def worst_of(statuses: Iterable[Status]) -> Status | None:
    """Return the most urgent of some statuses, or `None` if there are none."""
    return min(statuses, key=lambda status: status.urgency, default=None)


def passed_or_failed(holds: bool) -> Literal[Status.PASSED, Status.FAILED]:
    """Return `PASSED` if a condition holds, else `FAILED`."""
    return Status.PASSED if holds else Status.FAILED


class _Count:
    def __init__(self, status: Status) -> None:
        self._status = status

    def __get__(self, instance: StatusCounts, owner: type) -> int:
        return instance.counts[self._status]


class StatusCounts:
    """The base class of objects that count runs or cases by status.

    `counts` has a number for every status. Each number is also an attribute with the name of `Status.total`: `passed`,
    `errors`, `not_graded` and so on."""

    counts: Mapping[Status, int]
    # The order is that of the members of `Status`.
    passed, warned, failed, errors, skipped, stopped, not_graded = map(_Count, Status)

    @property
    def graded(self) -> int:
        return sum(map(self.counts.__getitem__, GRADED))

    @property
    def good(self) -> int:
        return good_count(self.counts)

    @property
    def counted(self) -> list[tuple[int, Status]]:
        """The numbers to show in lists, each with its status.

        The numbers for passed and failed are always included, other numbers only if they are not 0."""
        always = (Status.PASSED, Status.FAILED)
        return [(self.counts[status], status) for status in Status if self.counts[status] or status in always]


def good_count(counts: Mapping[Status, int]) -> int:
    return sum(count for status, count in counts.items() if status.good)


def counts_of(statuses: Mapping[Status, int]) -> Mapping[Status, int]:
    """Return a number for every status. Statuses that are missing in `statuses` get 0."""
    return {status: statuses.get(status, 0) for status in Status}


PASS_SCORE = 0.8
"""The score that `dimensions` requires to pass, regardless of the suite's thresholds."""


class _Judged(Protocol):
    @property
    def verdict(self) -> Verdict: ...
    @property
    def status(self) -> Status | None: ...


def graders_disagree(grades: Iterable[_Judged]) -> bool:
    """Return whether some grader would fail a run that another grader would pass or warn."""
    statuses = set()
    for grade in grades:
        if grade.verdict not in (NOT_APPLICABLE, Status.ERROR):
            statuses.add(grade.status)
    return Status.FAILED in statuses and len(statuses) > 1
