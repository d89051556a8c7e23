"""The verdict on a batch: whether its command succeeds, and why. The app and all reports share its words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from workbench.grading.status import GOOD_WORDS, Status
from workbench.numerals import counted, counted_of
from workbench.show.spans import Line, Span, plain
from workbench.show.views.totals import endpoint_text, not_made_text, run_totals, score_fact
from workbench.show.visible import one_line
from workbench.suite.files import relative_to_cwd

if TYPE_CHECKING:
    from workbench.show.views.runs_report import BrokenSuite, RunsReport

_MAX_NAMED = 3


class Verdict(NamedTuple):
    """The outcome of a batch in one line, with reasons. `good` is `None` if the outcome is neither good nor bad."""

    good: bool | None
    text: str
    details: tuple[str, ...] = ()


def verdict_of(report: RunsReport) -> Verdict:
    """Return whether the command behind this report succeeds, with reasons."""
    totals, good = report.totals, report.exit_code == 0
    passed = totals.passed + totals.warned
    text = "everything passed" if passed == totals.graded else "good enough"
    if not good:
        text = "; ".join(_reasons(report)) or text
    details = [f"{counted_of(passed, totals.graded, 'graded run')} {GOOD_WORDS}"]
    if totals.cost_limited:
        details.append(not_made_text(totals.cost_limited))
    if totals.endpoint_faults:
        details.append(endpoint_text(totals.endpoint_faults, totals.failed))
    if moved := [each.move for each in report.regraded or ()]:
        # Lazy import: only reports on regrades need this module.
        from workbench.show.views.grade_moves import moves_text

        details.append(moves_text(moved) or "no grade differs from the recorded one")
    for suite in report.broken:
        details += suite.problems
    return Verdict(good, text[:1].upper() + text[1:], tuple(details))


def result_line(report: RunsReport) -> Line:
    """Return the verdict as the first line of a summary, with its sign."""
    status = _STATUSES.get(report.exit_code, Status.ERROR)
    return (Span(f"{status.sign} {one_line(verdict_of(report).text)}", status.role),)


def summary_text(report: RunsReport) -> str:
    """Return the verdict, the counts and the mean score in one line."""
    facts = [plain(result_line(report)), plain(next(run_totals(report.totals))), score_fact(report.totals)]
    return " · ".join(filter(None, facts))


_STATUSES = {0: Status.PASSED, 1: Status.FAILED, 130: Status.STOPPED}
"""The statuses whose signs precede the verdict, by exit code."""
_BAD = (Status.FAILED, Status.ERROR, Status.STOPPED)


def brief_lines(report: RunsReport, details: str, width: int, verdict: Line | None = None) -> Iterator[Line]:
    """Yield three lines: the verdict, the ids of cases that did not pass, and `details`, which says where to look.

    If all cases passed, the line of ids is omitted. `verdict`, if given, replaces the report's verdict."""
    how_many = ""
    if verdict is None and report.exit_code == 0:
        how_many = f": {verdict_of(report).details[0]}"
    yield (*(verdict or result_line(report)), Span(how_many))
    parts = []
    for status in _BAD:
        ids = list(dict.fromkeys(one_line(case.runs[0].case_id) for case in report.quality.cases.of(status)))
        if ids:
            parts.append(f"{status.counted}: {names_that_fit(ids, width - _MORE_CELLS)}")
    if parts:
        yield (Span("; ".join(parts)),)
    yield (Span(f"details: {details}", "muted"),)


_MORE_CELLS = 24
"""Number of cells in a line that are reserved for the words around the names."""


def names_that_fit(names: Sequence[str], width: int) -> str:
    """Return the names that fit into `width` cells, but at least one name, and the number of the other names."""
    shown, left = 0, width
    for name in names:
        left -= cell_len(name) + 2
        if shown and left < 0:
            break
        shown += 1
    text = ", ".join(names[:shown])
    if shown < len(names):
        return f"{text} and {len(names) - shown} more"
    return text


def _reasons(report: RunsReport) -> Iterator[str]:
    """Yield the reasons why the command behind this report fails, the gravest first."""
    totals, quality, against = report.totals, report.quality, report.against
    missed = sum(not gate.met for gate in quality.gates)
    if report.interrupted:
        yield "not all runs finished"
    if report.broken:
        yield broken_text(report.broken)
    elif report.incomplete:
        yield "a file or a run could not be used"
    for each in quality.user_errors:
        if not each.met:
            yield each.text
    if totals.errors:
        yield f"{counted(totals.errors, 'run')} ended in an error"
    if missed:
        yield f"{missed} of {counted(len(quality.gates), 'gate')} missed"
    if aggregates := sum(not each.met for each in quality.aggregates):
        yield f"{counted(aggregates, 'aggregate')} missed"
    if against is not None and against.failed:
        yield against.verdict
    if report.nothing_graded:
        yield report.nothing_graded
    failed = quality.cases.number(Status.FAILED)
    if failed and not missed:
        yield f"{counted_of(failed, len(quality.cases), 'case')} failed"


def broken_text(broken: Sequence[BrokenSuite]) -> str:
    """Return a sentence that names the suites that did not run because of errors."""
    names = ", ".join(one_line(relative_to_cwd(each.suite)) for each in broken[:_MAX_NAMED])
    if len(broken) > _MAX_NAMED:
        names += f" and {len(broken) - _MAX_NAMED} more"
    have = "has errors and was not run" if len(broken) == 1 else "have errors and were not run"
    return f"{counted(len(broken), 'suite')} {have}: {names}"
