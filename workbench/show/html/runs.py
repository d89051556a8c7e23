"""The HTML report of the runs of an evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from workbench.analysis.comparison import cells_of
from workbench.analysis.side_by_side import compared
from workbench.grading.run_summary import RunSummary, summary_of
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.show.html.page import page_pieces
from workbench.show.html.records import PageHead, PageVerdict, facts_of, page_case
from workbench.show.html.scatter import scatters
from workbench.show.json.comparison import ModelReport, pair_report
from workbench.show.json.report import JsonReport, ReportDocument
from workbench.show.text import Paint
from workbench.show.views.baseline import confirmation_lines
from workbench.show.views.batch_diff import counts_text
from workbench.show.views.grade_move_kinds import moves_text
from workbench.show.views.totals import endpoint_text, not_made_text
from workbench.suite.files import from_here


def page_of_runs(report: JsonReport) -> Iterator[str]:
    """Yields the page, one run after the other."""
    return _page(report, "runs", verdict_of(report))


def page_of_comparison(report: JsonReport, exit_code: int, *, only_differences: bool) -> Iterator[str]:
    """Yields the page of models that are compared, which `only_differences` lets begin with the cases that differ."""
    models = len({run.model for run in report.results})
    cases = len({(run.suite, run.case_id) for run in report.results})
    text = f"{counted(models, 'model')} compared on {counted(cases, 'case')}"
    details = ("Not all of its runs finished.",) if report.interrupted else ()
    verdict = PageVerdict(good=None, text=text, details=details)
    return _page(report, "comparison", verdict, exit_code=exit_code, only_differences=only_differences)


def page_of_changes(report: JsonReport, title: str) -> Iterator[str]:
    """Yields the page of a batch beside an earlier one, whose runs are in the report too: `title` names both."""
    assert report.against is not None
    verdict = PageVerdict(good=None, text=counts_text(report.against.diff, Paint(False)), details=(title,))
    return _page(report, "changes", verdict, exit_code=0)


def _page(
    report: JsonReport,
    kind: Literal["runs", "comparison", "changes"],
    verdict: PageVerdict,
    *,
    exit_code: int | None = None,
    only_differences: bool = False,
) -> Iterator[str]:
    document = report.document_without_records()
    summaries = _summaries(report)
    comparison = compared(
        cells_of(_that_count(summaries)),
        tuple(run.model for run in summaries),
        {path: suite.name for path, suite in report.suites.items()},
        {path: suite.gate for path, suite in report.suites.items()},
        report.watched if kind == "comparison" else (),
    )
    names = list(dict.fromkeys(suite.name for suite in report.suites.values()))
    if exit_code is not None:
        document = document.model_copy(update={"exit_code": exit_code})
    head = PageHead(
        kind=kind,
        only_differences=only_differences,
        title=f"{', '.join(names[:3])}{' …' if len(names) > 3 else ''} – Workbench",
        verdict=verdict,
        models=comparison.models,
        totals=tuple(map(ModelReport.model_validate, comparison.totals)),
        pairs=tuple(map(pair_report, comparison.pairs)) if kind != "changes" else (),
        suites={from_here(path): suite.name for path, suite in report.suites.items()},
        report=document,
    )
    tags = {(path, case.id): case.tags for path, suite in report.suites.items() for case in suite.cases}
    places = {(row.suite, row.case_id): place for place, row in enumerate(comparison.rows)}
    columns = {model: place for place, model in enumerate(comparison.models)}
    return page_pieces(
        head,
        (page_case(row, tags.get((row.suite, row.case_id), ())) for row in comparison.rows),
        facts_of(zip(summaries, report.results, strict=True), places, columns, _causes(document)),
        report.shown_runs(),
        report.secrets,
        scatters(report.secrets.redacted(comparison.on_same_cases)) if kind != "changes" else (),
    )


def _summaries(report: JsonReport) -> list[RunSummary]:
    """Returns the runs in numbers. Those of the same repeat, from several batches, count on."""
    seen: Counter[tuple[str, str, str, bool]] = Counter()
    summaries = []
    for result in report.results:
        run = summary_of(result)
        key = (run.suite, run.case_id, run.model, run.is_fork)
        summaries.append(replace(run, repeat=seen[key]))
        seen[key] += 1
    return summaries


def _that_count(summaries: Sequence[RunSummary]) -> Iterable[RunSummary]:
    """Returns the runs that count: forks only where all runs are forks."""
    if all(run.is_fork for run in summaries):
        return [replace(run, is_fork=False) for run in summaries]
    return summaries


def _causes(document: ReportDocument) -> Mapping[int, Sequence[str]]:
    """Returns the causes of failed runs, the main one first, by the number of the run."""
    found: dict[int, list[str]] = {}
    for group in document.failures.causes:
        for number in group.runs:
            causes = found.setdefault(number, [])
            causes.insert(0 if number in group.main else len(causes), group.cause)
    return found


def verdict_of(report: JsonReport) -> PageVerdict:
    """Returns whether a command with this report succeeds, and why not."""
    totals, quality, good = report.totals, report.quality, report.exit_code == 0
    missed = [gate for gate in quality.gates if not gate.met]
    aggregates = [each for each in quality.aggregates if not each.met]
    failed = quality.cases.number(Status.FAILED)
    reasons = [
        "not all runs finished" if report.interrupted else "",
        "something that belongs here is missing" if report.incomplete else "",
        f"{counted(totals.errors, 'run')} ended in an error" if totals.errors else "",
        f"{len(missed)} of {counted(len(quality.gates), 'gate')} missed" if missed else "",
        f"{counted(len(aggregates), 'aggregate')} missed" if aggregates else "",
        report.against.verdict if report.against is not None and report.against.failed else "",
        report.nothing_graded or "",
        f"{failed:,} of {counted(len(quality.cases), 'case')} failed" if failed and not missed else "",
    ]
    why = "; ".join(filter(None, reasons)) if not good else ""
    passed = totals.passed + totals.warned
    counts = f"{passed:,} of {counted(totals.graded, 'graded run')} passed or were warned"
    moved = [each.move for each in report.regraded or ()]
    again = (moves_text(moved) or "no grade differs from the recorded one") if moved else ""
    text = why or ("everything passed" if passed == totals.graded else "good enough")
    faults = endpoint_text(totals.endpoint_faults, totals.failed) if totals.endpoint_faults else ""
    not_made = not_made_text(totals.cost_limited) if totals.cost_limited else ""
    since = [line for _, line in confirmation_lines(report.against)] if report.against is not None else []
    since += report.against.suite_changes if report.against is not None else ()
    details = (counts, *filter(None, [not_made, faults, again]), *since)
    return PageVerdict(good=good, text=text[:1].upper() + text[1:], details=details)
