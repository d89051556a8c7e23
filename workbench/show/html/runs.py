"""The HTML reports of runs: of one batch, of compared models, and of changes between two batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlencode

from workbench.analysis.causes import FailureNumbers
from workbench.analysis.comparison import cells_of
from workbench.analysis.early_stop_state import PairEarlyStop
from workbench.analysis.side_by_side import compare_cells
from workbench.grading.run_summary import RunSummary, summary_of
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.show.html.overview import Overview, PageKind, overview, widths
from workbench.show.html.page import page_pieces
from workbench.show.html.records import PageHead, cases_of, facts_of
from workbench.show.spans import plain
from workbench.show.views.batch_diff import counts_line
from workbench.show.views.runs_report import RunsReport
from workbench.show.views.verdict import Verdict, verdict_of
from workbench.suite.files import relative_to_cwd


def page_of_runs(report: RunsReport) -> Iterator[str]:
    """Yield the page of a batch, one run at a time."""
    return _page(report, "runs", verdict_of(report), report.exit_code)


def page_of_comparison(report: RunsReport, exit_code: int, *, only_differences: bool) -> Iterator[str]:
    """Yield the page of compared models. With `only_differences`, the matrix begins with the cases that differ."""
    models = len({run.model for run in report.results})
    cases = len({(run.suite, run.case_id) for run in report.results})
    text = f"{counted(models, 'model')} compared on {counted(cases, 'case')}"
    details: tuple[str, ...] = ()
    if report.interrupted:
        details = ("Not all of its runs finished.",)
    verdict = Verdict(None, text, details)
    return _page(report, "comparison", verdict, exit_code, only_differences=only_differences)


def page_of_changes(report: RunsReport, title: str) -> Iterator[str]:
    """Yield the page of the changes between two batches. The report holds the runs of both, and `title` names both."""
    assert report.against is not None
    return _page(report, "changes", Verdict(None, plain(counts_line(report.against.diff)), (title,)), 0)


def _page(
    report: RunsReport, kind: PageKind, verdict: Verdict, exit_code: int, *, only_differences: bool = False
) -> Iterator[str]:
    summaries = _summaries(report)
    watched: Sequence[PairEarlyStop] = ()
    if kind == "comparison":
        watched = report.watched
    models = tuple(run.model for run in summaries)
    comparison = compare_cells(
        cells_of(_counting_runs(summaries)), models, report.suite_names, report.suite_gates, watched
    )
    links = _links(summaries, comparison.models, with_baseline_run=kind == "changes")
    tags: dict[tuple[str, str], Sequence[str]] = {}
    for path, suite in report.suites.items():
        for case in suite.cases:
            tags[path, case.id] = case.tags
    places = {}
    for place, row in enumerate(comparison.rows):
        places[row.suite, row.case_id] = place
    return page_pieces(
        f"{_suites_text(report)} – Workbench",
        overview(Overview(kind, report, verdict, comparison, exit_code, links)),
        widths(report),
        PageHead(models=comparison.models, only_differences=only_differences),
        cases_of(comparison, report.results, tags),
        facts_of(summaries, report.results, places, comparison.models, _causes(report.failures)),
        report.shown_runs(),
        report.secrets,
        report.program_version,
    )


def _suites_text(report: RunsReport) -> str:
    names = list(dict.fromkeys(report.suite_names.values()))
    # A browser tab's title has no room for more than three names.
    text = ", ".join(names[:3])
    if len(names) > 3:
        return f"{text} …"
    return text


def _summaries(report: RunsReport) -> list[RunSummary]:
    """Return summaries of the runs, in which the repeats of each case and model are numbered anew.

    The runs may come from two batches, which both number their repeats from 0."""
    seen: Counter[tuple[str, str, str, bool]] = Counter()
    summaries = []
    for result in report.results:
        run = summary_of(result)
        key = (run.suite, run.case_id, run.model, run.is_fork)
        summaries.append(replace(run, repeat=seen[key]))
        seen[key] += 1
    return summaries


def _counting_runs(summaries: Sequence[RunSummary]) -> Iterable[RunSummary]:
    """Return the runs that count in totals. Forks count only if all runs are forks."""
    if all(run.is_fork for run in summaries):
        return [replace(run, is_fork=False) for run in summaries]
    return summaries


def _links(
    summaries: Sequence[RunSummary], models: Sequence[str], *, with_baseline_run: bool
) -> Mapping[tuple[str, str, str], str]:
    """Return the addresses of the runs that the cells of the matrix open, by suite, case and model.

    A cell opens the first run that did not pass, or the first run if all passed. With `with_baseline_run`, the first
    run of the case in the earlier batch opens beside that run."""
    first: dict[tuple[str, str, str], int] = {}
    chosen: dict[tuple[str, str, str], int] = {}
    for number, run in enumerate(summaries, 1):
        key = relative_to_cwd(run.suite), run.case_id, run.model
        first.setdefault(key, number)
        if run.status != Status.PASSED:
            chosen.setdefault(key, number)
    links = {}
    for (suite, case_id, model), number in (first | chosen).items():
        parameters = {"run": number}
        earlier = suite, case_id, _earlier(model, models)
        if with_baseline_run and earlier in first:
            parameters["beside"] = first[earlier]
        links[suite, case_id, model] = f"#{urlencode(parameters)}"
    return links


def _earlier(model: str, models: Sequence[str]) -> str:
    """Return the earlier batch's column for a model, such as `careful (#12)`, or "" if it has none.

    `model` is the column of the later batch."""
    others = [each for each in models if each != model]
    # If the earlier batch had another model, no name of a column matches. If there are only two columns, the other
    # column must be the earlier batch's.
    if len(models) == 2:
        return others[0]
    return next((each for each in others if each.startswith(f"{model} (")), "")


def _causes(failures: FailureNumbers) -> Mapping[int, Sequence[str]]:
    found: dict[int, list[str]] = {}
    for group in failures.groups:
        main = set(group.main_indices)
        for number in group.indices:
            causes = found.setdefault(number, [])
            causes.insert(0 if number in main else len(causes), group.cause)
    return found
