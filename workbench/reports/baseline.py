"""A batch compared with its baseline, as lines for a terminal and as a part of the JSON report."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from pydantic import Field

from workbench.analysis.batch_diff import BatchDiff
from workbench.dataclasses import dataclass
from workbench.history.records import BatchRow, Regrade, SuiteRef
from workbench.reports.batch_diff import change_lines, changes_table, counts_text, notes_of, test_lines
from workbench.reports.batch_diff_json import BatchTestReport, ChangeReport, change_report, test_reports
from workbench.reports.history_list import called
from workbench.reports.json_base import ReportModel
from workbench.reports.markdown import text
from workbench.reports.paint import Paint
from workbench.reports.when import local_time
from workbench.suite.numerals import counted

FailOn = Literal["regression"]

_CHANGES_MAX = 100
"""So many changes are listed in Markdown."""

_NAMES = "the baseline", "this batch"
"""The names of the two batches in sentences."""


@dataclass(frozen=True)
class AgainstBaseline:
    """The changes since the baseline, for the cases that were selected. `suites` are by their keys; `grading` is the
    regrade of the baseline that was used; `fail_on` is what is demanded."""

    batch: BatchRow
    grading: Regrade | None
    diff: BatchDiff
    suites: Mapping[str, SuiteRef]
    fail_on: FailOn | None
    notes: tuple[str, ...] = ()
    """Reasons beside what broke."""

    @property
    def regressed(self) -> bool:
        """Whether a case broke or is gone."""
        return bool(self.diff.of("broke") or self.diff.of("gone"))

    @property
    def is_empty(self) -> bool:
        """Whether no case was graded both times, so that nothing is known of regressions."""
        return not (self.diff.compared or self.regressed)

    @property
    def failed(self) -> bool:
        """Whether the demand is not met."""
        return self.fail_on == "regression" and self.regressed

    @property
    def verdict(self) -> str:
        """Whether there is a regression, in one line."""
        broke, gone = len(self.diff.of("broke")), len(self.diff.of("gone"))
        parts = [f"{counted(broke, 'case')} broke"] if broke else []
        parts += [f"{counted(gone, 'case')} {'is' if gone == 1 else 'are'} gone"] if gone else []
        if self.is_empty:
            return f"nothing was compared: no case was graded here and in the baseline {called(self.batch)}"
        since = f"since the baseline {called(self.batch)}"
        return f"regression: {' and '.join(parts)} {since}" if parts else f"no regression {since}"


def baseline_lines(
    against: AgainstBaseline, width: int | None, paint: Paint, *, only_worse: bool = False
) -> Iterator[str]:
    """Yields the changes, and the verdict as the last line. With `only_worse`, single cases are shown only if they
    broke, are gone or in error. Without `width`, nothing is cut."""
    diff = against.diff
    changes = [change for change in diff.changes if not only_worse or change.kind in ("broke", "gone", "errored")]
    again = f", as regraded on {local_time(against.grading.graded_at)}" if against.grading is not None else ""
    title = f"against the baseline {called(against.batch)} of {local_time(against.batch.started_at)}{again}"
    yield ""
    yield paint(title, "strong")
    yield f"  {counts_text(diff, paint)}"
    for sentence in test_lines(against.diff.tests, *_NAMES):
        yield from (f"  {line}" for line in _wrapped(sentence, width))
    for note in (*notes_of(diff, *_NAMES, against.suites), *against.notes):
        yield from (paint(f"  {line}", "quiet") for line in _wrapped(note, width))
    with_model = len(diff.models) > 1
    yield from change_lines(changes, against.suites, width, paint, with_model=with_model)
    if changes:
        yield ""
    if against.is_empty:
        yield paint(f"▲ {against.verdict}", "warn")
        return
    yield paint(f"✗ {against.verdict}", "bad") if against.regressed else paint(f"✓ {against.verdict}", "good")


def _wrapped(sentence: str, width: int | None) -> list[str]:
    """Returns lines to stand behind an indent of two; without `width`, one."""
    if width is None:
        return [sentence]
    return textwrap.wrap(sentence, max(width - 2, 20), break_on_hyphens=False)


def baseline_notes(against: AgainstBaseline) -> Iterator[str]:
    """Yields whether the changes are more than chance, and what else there is to know of the comparison."""
    yield from test_lines(against.diff.tests, *_NAMES)
    yield from notes_of(against.diff, *_NAMES, against.suites)
    yield from against.notes


def baseline_markdown(against: AgainstBaseline, redact: Callable[[str], str] = str) -> Iterator[str]:
    """Yields pieces of Markdown: the verdict, the tests, what broke and what was mended since the baseline; `redact`
    takes secrets out of its texts."""
    sign = "▲" if against.is_empty else "✓"
    if against.regressed:
        sign = "✗"
    yield f"\n### {sign} {text(redact(against.verdict))}\n\n{counts_text(against.diff, Paint(False))}\n"
    for note in baseline_notes(against):
        yield f"\n{text(redact(note))}.\n"
    changes = against.diff.changes
    if changes:
        with_model = len(against.diff.models) > 1
        shown = changes_table(changes[:_CHANGES_MAX], against.suites, with_model=with_model, redact=redact)
        yield "\n" + "".join(f"{line}\n" for line in shown)
        if (more := len(changes) - _CHANGES_MAX) > 0:
            yield f"\nand {counted(more, 'other change')}.\n"


class BaselineReport(ReportModel):
    """The batch compared with its baseline."""

    batch: int = Field(description="number of the baseline in the history")
    name: str | None
    started_at: str = Field(description="ISO 8601")
    grading: int | None = Field(description="which grading of the baseline; null for the original one")
    fail_on: FailOn | None = Field(description="what was demanded")
    regressed: bool = Field(description="whether a case broke or is gone")
    compared: int = Field(description="number of cases graded in both")
    as_before: int = Field(description="number of these with the same status and score")
    left_out: int = Field(
        description="number of cases in both batches that were not graded in both, without new errors"
    )
    changes: tuple[ChangeReport, ...]
    tests: tuple[BatchTestReport, ...]
    notes: tuple[str, ...] = Field(description="further facts about the comparison, such as which models are left out")


def baseline_report(against: AgainstBaseline) -> BaselineReport:
    """Returns the comparison for the JSON report."""
    diff = against.diff
    return BaselineReport(
        batch=against.batch.number,
        name=against.batch.name,
        started_at=against.batch.started_at,
        grading=against.grading.number if against.grading is not None else None,
        fail_on=against.fail_on,
        regressed=against.regressed,
        compared=diff.compared,
        as_before=diff.as_before,
        left_out=diff.left_out,
        changes=tuple(change_report(change, against.suites) for change in diff.changes),
        tests=test_reports(against.diff.tests, *_NAMES),
        notes=(*notes_of(diff, *_NAMES, against.suites), *against.notes),
    )
