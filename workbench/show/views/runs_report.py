"""The interface through which writers read a report on runs. `evaluation.report.Report` implements it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from workbench.suite.grading_model import Gate

if TYPE_CHECKING:
    from workbench.analysis.causes import FailureNumbers
    from workbench.analysis.early_stop_state import PairEarlyStop
    from workbench.analysis.gates import Quality
    from workbench.analysis.totals import Totals
    from workbench.grading.grade import RunResult
    from workbench.grading.repeats import CaseResult
    from workbench.show.views.baseline import AgainstBaseline
    from workbench.show.views.grade_moves import Regraded
    from workbench.show.views.timing import Timing
    from workbench.suite.model import Case, Suite


_Value = TypeVar("_Value")


class Redactor(Protocol):
    """An object that removes secrets from the values of reports."""

    def redacted(self, value: _Value) -> _Value: ...
    def json_may_contain(self, text: str) -> bool: ...


class TextRedactor(Redactor, Protocol):
    """An object that removes secrets from results and from texts."""

    def redact(self, text: str) -> str: ...


class ShownRun(NamedTuple):
    """A run without secrets, and the case by which it was graded.

    `case` is `None` if its suite can no longer be read. `line` is the line of the case in the suite's file, from 1, or
    `None` if there is no file."""

    result: RunResult
    case: Case | None
    line: int | None


class ShownCase(NamedTuple):
    """A case with one model and its combined result, without secrets. The fields are as in `ShownRun`."""

    result: CaseResult
    case: Case | None
    line: int | None


class MissingRuns(NamedTuple):
    """A planned case with one model. `missing` of its `planned` runs never finished."""

    suite: str
    case_id: str
    case_name: str
    model: str
    missing: int
    planned: int


class BrokenSuite(NamedTuple):
    """A suite that did not run because of errors: its path, and its errors as lines with places."""

    suite: str
    problems: tuple[str, ...]
    line: int | None


class RunsReport(Protocol):
    """The runs of an evaluation, with their totals, gates and failures, as the writers of reports read them."""

    @property
    def program_version(self) -> str: ...
    @property
    def started_at(self) -> str: ...
    @property
    def results(self) -> Sequence[RunResult]: ...
    @property
    def interrupted(self) -> bool: ...
    @property
    def incomplete(self) -> bool: ...
    @property
    def broken(self) -> Sequence[BrokenSuite]: ...
    @property
    def missing(self) -> Sequence[MissingRuns]: ...
    @property
    def batch(self) -> int | None: ...
    @property
    def timing(self) -> Timing | None: ...
    @property
    def against(self) -> AgainstBaseline | None: ...
    @property
    def regraded(self) -> Sequence[Regraded] | None: ...
    @property
    def suites(self) -> Mapping[str, Suite]: ...
    @property
    def suite_names(self) -> Mapping[str, str]: ...
    @property
    def suite_gates(self) -> Mapping[str, Gate]: ...
    @property
    def secrets(self) -> TextRedactor: ...
    @property
    def exit_code(self) -> int: ...
    @property
    def nothing_graded(self) -> str | None: ...
    @property
    def quality(self) -> Quality: ...
    @property
    def failures(self) -> FailureNumbers: ...
    @property
    def watched(self) -> Sequence[PairEarlyStop]: ...
    @property
    def totals(self) -> Totals: ...
    @property
    def totals_per_model(self) -> Mapping[str, Totals]: ...
    def shown_runs(self) -> Iterator[ShownRun]:
        """Yield all runs, one at a time."""
        ...

    def shown_case(self, case: CaseResult) -> ShownCase:
        """Return a case of `quality.cases`, without secrets."""
        ...
