"""A report on runs as GitHub Markdown, for pull requests and job summaries.

The verdict is first, details are folded, and the report is cut to the size that GitHub accepts. Markup in text from
models, tools and suites is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from workbench.grading.repeats import CaseResult
from workbench.grading.status import Status, passed_or_failed
from workbench.numerals import count_text, counted, counted_of, score_text
from workbench.show.markdown import code, document, document_table, fenced, table, text
from workbench.show.spans import plain
from workbench.show.text import Paint
from workbench.show.views.agents import agent_lines
from workbench.show.views.baseline import baseline_view
from workbench.show.views.cases import repeats_lines
from workbench.show.views.failures import causes_table
from workbench.show.views.gates import demands
from workbench.show.views.grades import cut, doubt_texts, expected_lines, issue_lines, metric_text
from workbench.show.views.runs_report import RunsReport, ShownCase
from workbench.show.views.timing import timing_line
from workbench.show.views.totals import checked_text, endpoint_text, models_table, not_made_text, unchecked_lines
from workbench.show.views.trajectory import made_lines, repaired_line, trajectory_lines
from workbench.show.views.user_turns import gave_up_text
from workbench.show.views.verdict import broken_text
from workbench.show.visible import after, one_line
from workbench.suite.files import relative_to_repository

COMMENT_MAX = 65_536
"""GitHub's limit of a comment or description in characters. It is used as a number of bytes, which is never smaller."""
SUMMARY_MAX = 900_000
"""Maximum bytes of a job summary. GitHub shows nothing of a summary above 1 MiB."""

_ISSUES_MAX = 20
_LINE_MAX = 500
_STEPS_MAX = 4_000
_ENDING_MAX = 400
"""Bytes reserved for the note on the omitted part."""

_PLAIN = Paint(False)
_VERDICTS = {
    0: "✓ Everything passed",
    1: "✗ Not everything passed",
    2: "▲ The report is incomplete",
    3: "▲ Some runs ended in an error",
    4: "▲ Nothing was graded",
    130: "■ Interrupted",
}
_BAD = (Status.FAILED, Status.ERROR, Status.STOPPED)
"""The statuses whose cases are listed in detail, in order."""


def markdown_pieces(report: RunsReport, max_bytes: int = COMMENT_MAX) -> Iterator[str]:
    """Yield the report, cut to `max_bytes` bytes. If it is cut, a note at the end counts the omitted cases."""
    left = max_bytes - _ENDING_MAX
    for part in _summary_blocks(report):
        left -= len(part.encode())
        if left < 0:
            yield "\nThe rest is left out: it is longer than GitHub takes.\n"
            return
        yield part
    cases = report.quality.cases
    bad = cases.number(*_BAD)
    if bad > 1:
        yield f"\n### {counted(bad, 'case')} that did not pass\n"
    elif bad:
        yield "\n### Did not pass\n"
    for place, case in enumerate(cases.of(*_BAD)):
        part = "\n".join(_case_details(report.shown_case(case), report)) + "\n"
        left -= len(part.encode())
        if left < 0:
            there_are = f"{count_text(bad - place)} of them are left out"
            size = count_text(max_bytes)
            yield f"\n**{there_are}**: the report is cut at {size} bytes, which GitHub takes. {_WHOLE}\n"
            return
        yield part
    yield from _case_table(report, left)


_WHOLE = "Write it to a file of another form (`--report report.html`) to have all of it."


def _summary_blocks(report: RunsReport) -> Iterator[str]:
    verdict = _VERDICTS[report.exit_code]
    if report.exit_code == 0 and report.totals.failed:
        verdict = "✓ Good enough"
    yield f"## {verdict}\n\n"
    if report.broken:
        yield f"{text(report.secrets.redact(broken_text(report.broken)))}.\n\n"
        problems = [report.secrets.redact(one_line(line)) for suite in report.broken for line in suite.problems]
        yield f"{_items(problems)}\n"
    if report.nothing_graded is not None:
        why = text(report.secrets.redact(report.nothing_graded))
        yield f"{why[:1].upper()}{why[1:]}.\n\n"
    yield f"{_totals_line(report)}\n"
    models = report.totals_per_model
    if models:
        redacted = {}
        for model, totals in models.items():
            redacted[report.secrets.redact(model)] = totals
        yield f"\n{document_table(models_table(redacted))}\n"
    if invalid := report.totals.valid_arguments.invalid_tools:
        tools = []
        for tool in invalid:
            calls = f"{one_line(tool.tool)}: calls valid {checked_text(tool.valid, tool.checked)}"
            tools.append(report.secrets.redact(calls))
        yield f"\n### Tools called with invalid arguments\n\n{_items(tools)}"
    if unchecked := [*unchecked_lines(report.results, report.secrets.redacted)]:
        yield "\n" + _items(report.secrets.redact(f"▲ {line}") for line in unchecked)
    yield from _invalid_call_lines(report)
    if (repaired := repaired_line(report.results)) is not None:
        yield f"\n▲ {text(report.secrets.redact(repaired))}\n"
    for line in agent_lines(report.results):
        yield f"\n{text(report.secrets.redact(line))}\n"
    names, with_model = report.suite_names, len(models) > 1
    if asked := [*demands(report.quality, names, with_model=with_model)]:
        sign = passed_or_failed(report.quality.gates_met).sign
        lines: list[str] = []
        for demand in asked:
            lines += map(plain, (demand.line, *demand.below))
        yield f"\n### {sign} Gates\n\n" + _items(map(report.secrets.redact, lines))
    if report.against is not None:
        yield f"\n{document(baseline_view(report.against, as_document=True), report.secrets.redact)}"
    if causes := report.secrets.redacted(report.failures).groups:
        yield f"\n### Why\n\n{document_table(causes_table(causes))}\n"


def _totals_line(report: RunsReport) -> str:
    cases, totals = report.quality.cases, report.totals
    good = cases.number(Status.PASSED, Status.WARNED)
    parts = [f"{counted_of(good, len(cases), 'case')} passed"]
    if totals.runs != len(cases):
        parts.append(counted(totals.runs, "run"))
    if totals.cost_limited:
        parts.append(not_made_text(totals.cost_limited))
    if totals.endpoint_faults:
        parts.append(endpoint_text(totals.endpoint_faults, totals.failed))
    if report.timing is not None:
        parts.append(timing_line(report.timing))
    if report.batch is not None:
        parts.append(f"batch {report.batch}")
    return " · ".join(parts)


def _case_details(case: ShownCase, report: RunsReport) -> Iterator[str]:
    result = case.result
    first = result.runs[0]
    run = result.decisive_run
    summary = result.status.sign
    if len(result.runs) > 1:
        summary += f" {result.good} of {len(result.graded)}"
    summary += after(" ", score_text(result.score, ""))
    title = escape(cut(one_line(report.secrets.redact(first.case_name)), _LINE_MAX)) or "–"
    yield f"\n<details><summary>{summary} <code>{title}</code>"
    yield f"<code>{escape(one_line(first.model))}</code></summary>\n"
    place = report.secrets.redact(relative_to_repository(first.suite))
    if case.line is not None:
        place += f":{case.line}"
    yield f"{code(place)}\n"
    if len(result.runs) > 1:
        yield _items(line.strip() for line in repeats_lines(result, _PLAIN, with_arguments=False))
    issues = issue_lines(run)
    yield _items(_first_cut(issues))
    if len(issues) > _ISSUES_MAX:
        yield f"- and {counted(len(issues) - _ISSUES_MAX, 'other issue')}\n"
    if run.metrics:
        metrics = []
        for each in run.metrics:
            metrics.append(cut(f"{passed_or_failed(each.holds).sign} {metric_text(each)}", _LINE_MAX))
        yield "Checks of the answer:\n\n" + _items(metrics)
    if case.case is not None:
        yield from _fenced("Expected", expected_lines(case.case, run.grade))
    yield from _fenced("Actual", made_lines(run.trajectory))
    steps = cut("\n".join(trajectory_lines(run.trajectory)), _STEPS_MAX)
    if steps:
        yield f"Steps:\n\n{fenced(steps.splitlines())}\n"
    yield "</details>\n"


def _first_cut(lines: Sequence[str]) -> Iterator[str]:
    # One run may have thousands of issues, and GitHub shows nothing of a text that is too long.
    for line in lines[:_ISSUES_MAX]:
        yield cut(line, _LINE_MAX)


def _fenced(name: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"{name}:\n\n{fenced(_first_cut(lines))}\n"


def _case_table(report: RunsReport, max_bytes: int) -> Iterator[str]:
    head = ["\n<details><summary>All cases</summary>\n", *table(("", "case", "model", "score"), ())]
    max_bytes -= sum(len(line.encode()) + 1 for line in head)
    if max_bytes < 0 or not report.quality.cases:
        return
    yield _lines(head)
    cases = report.quality.cases
    for place, case in enumerate(cases):
        row = _row(case, report)
        max_bytes -= len(row.encode()) + 1
        if max_bytes < 0:
            yield f"\n{count_text(len(cases) - place)} more cases are left out. {_WHOLE}\n"
            break
        yield f"{row}\n"
    yield "\n</details>\n"


def _invalid_call_lines(report: RunsReport) -> Iterator[str]:
    """Yield the calls in passed runs that were invalid or that a server answered with an error."""
    shown: list[str] = []
    for run in report.results:
        if doubt_texts(run):
            redacted = report.secrets.redacted(run)
            title = f"{one_line(redacted.case_name)}, {one_line(redacted.model)}"
            for line in doubt_texts(redacted):
                shown.append(f"{title}: {line}")
        # One line more than is shown is enough to know that there are further lines.
        if len(shown) > _ISSUES_MAX:
            break
    if not shown:
        return
    yield "\n### In runs that passed\n\n"
    yield _items(_first_cut(shown))
    if len(shown) > _ISSUES_MAX:
        yield f"- and more. {_WHOLE}\n"


def _row(case: CaseResult, report: RunsReport) -> str:
    first, redact = case.runs[0], report.secrets.redact
    name, model = cut(redact(first.case_name), _LINE_MAX), cut(redact(first.model), _LINE_MAX)
    gave_up = sum(run.user_outcome == "gave up" for run in case.runs)
    score = score_text(case.score) + after(", ", gave_up_text(gave_up, len(case.runs)))
    cells = (case.status.sign, text(name), code(model), score)
    # `table` escapes the cells. Its first lines are dropped, because the head of the table is already written.
    return list(table(("", "", "", ""), [cells]))[-1]


def _items(lines: Iterable[str]) -> str:
    return _lines(f"- {text(line)}" for line in lines)


def _lines(lines: Iterable[str] | Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
