"""The overview of the HTML report: verdict, totals, gates, changes since the baseline, errors, causes and models.

The overview is markup without a script. Its links select cases in the part that the script draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple
from urllib.parse import urlencode

from workbench.analysis.batch_diff import CaseChange
from workbench.analysis.causes import CauseNumbers, ToolPair
from workbench.analysis.measures import COST, LATENCY, PASS_RATE, SCORE, TOKENS, VALID_ARGUMENTS
from workbench.analysis.side_by_side import Comparison
from workbench.grading.status import Status, passed_or_failed
from workbench.numerals import count_text, counted, pace_text
from workbench.show.doc import Paragraph, line_of
from workbench.show.forms import LINES_MAX
from workbench.show.html.charts import charts
from workbench.show.html.elements import Element, Node, blocks, el, filled_el, scrolled, section, sign, spans, table
from workbench.show.spans import plain
from workbench.show.views.agents import agent_lines
from workbench.show.views.agreement import agreement_lines
from workbench.show.views.baseline import baseline_notes, baseline_view
from workbench.show.views.batch_diff import changes_blocks
from workbench.show.views.comparison import error_items, errors_of, tests_view, totals_matrix
from workbench.show.views.failures import NO_CALL, NOT_EXPECTED, frequency_text, subject_text
from workbench.show.views.gates import Demand, demands
from workbench.show.views.grades import judging_text
from workbench.show.views.runs_report import RunsReport
from workbench.show.views.timing import timing_line
from workbench.show.views.totals import unchecked_lines
from workbench.show.views.trajectory import repaired_line
from workbench.show.views.values import percentiles_text, usage_text
from workbench.show.views.verdict import Verdict
from workbench.show.when import utc_time
from workbench.suite.files import relative_to_cwd

PageKind = Literal["runs", "comparison", "changes"]

_SUITES_MAX = 6


class Overview(NamedTuple):
    """The facts that the overview shows.

    `links` maps suite, case and model to the address of the first run that did not pass. If all runs passed, it is the
    address of the first run."""

    kind: PageKind
    report: RunsReport
    verdict: Verdict
    comparison: Comparison
    exit_code: int
    links: Mapping[tuple[str, str, str], str]


def overview(overview: Overview) -> Iterator[Node]:
    """Yield the sections of the overview. A section without content is omitted."""
    comparison = overview.comparison
    same = comparison.on_same_cases
    yield _heading(overview)
    # The page of changes shows two batches of one model. Totals over both batches and charts of models are useless
    # there.
    if overview.kind == "changes":
        same = ()
    else:
        yield _totals(overview.report)
        for note in _notes(overview.report):
            yield el("p", f"▲ {note}", class_="notice")
        yield _demands(overview)
    yield _since_baseline(overview)
    yield _errors(overview)
    yield _causes(overview)
    yield _models(overview)
    yield filled_el("section", charts(comparison.totals, same, comparison), class_="charts", aria_label="Charts")


def widths(report: RunsReport) -> str:
    """Return the CSS rules for the lengths of the bars, which are shares of runs."""
    # The page's policy forbids style attributes, so each bar has its own rule.
    rules: list[str] = []
    # The rules have the order of the elements in `_totals` and `_causes`.
    for at, count in enumerate(filter(None, report.totals.counts.values()), 1):
        rules.append(f".shares :nth-child({at}) {{ flex-grow: {count}; }}\n")
    causes = [len(group.indices) for group in report.failures.groups]
    for at, count in enumerate(causes, 1):
        length = f"calc(100% * {count} / {max(causes)})"
        rules.append(f".causes li:nth-child({at}) .fill {{ inline-size: {length}; }}\n")
    return "".join(rules)


def _heading(overview: Overview) -> Element:
    report, (good, text, details) = overview.report, overview.verdict
    facts = [utc_time(report.started_at)]
    if report.batch is not None:
        facts.append(f"batch {report.batch}")
    if report.timing is not None:
        facts.append(timing_line(report.timing))
    facts += [f"exit code {overview.exit_code}", f"Workbench {report.program_version}"]
    title: list[Node] = [el("span", text)]
    role = ""
    if good is not None:
        title.insert(0, sign(passed_or_failed(good)))
        role = passed_or_failed(good).role
    return el(
        "header",
        el("p", _suites_text(report), class_="kicker"),
        el("h1", title),
        (el("p", detail, class_="detail") for detail in details),
        el("p", " · ".join(filter(None, facts)), class_="quiet"),
        class_=f"verdict {role}",
    )


def _suites_text(report: RunsReport) -> str:
    names = list(dict.fromkeys(report.suite_names.values()))
    text = " · ".join(names[:_SUITES_MAX])
    more = len(names) - _SUITES_MAX
    if more > 0:
        return f"{text} and {more} more"
    return text


def _totals(report: RunsReport) -> Element:
    bar: list[Element] = []
    texts: list[str] = []
    for status, count in report.totals.counts.items():
        if count:
            texts.append(f"{count_text(count)} {status.counted}")
            bar.append(el("span", f"{status.sign} {count_text(count)}", class_=status.role, title=texts[-1]))
    shares = el("div", bar, class_="shares", role="img", aria_label=", ".join(texts))
    tiles = []
    for name, value, note in _tiles(report):
        tiles.append(el("div", el("dt", name), el("dd", value), filled_el("dd", note, class_="note")))
    return el("section", shares, el("dl", tiles), class_="figures", aria_label="Totals")


def _tiles(report: RunsReport) -> Iterator[tuple[str, str, str]]:
    totals, timing = report.totals, report.timing
    with_forks = without_cost = ""
    if forks := sum(result.is_fork for result in report.results):
        with_forks = f"and {counted(forks, 'fork')}"
    if unknown := totals.runs_of_unknown_cost:
        without_cost = f"{counted(unknown, 'run')} unknown"
    yield "runs", count_text(totals.runs), with_forks
    yield PASS_RATE.title, PASS_RATE.text(totals.pass_rate), "of graded runs"
    yield SCORE.pooled[0].title, SCORE.text(totals.mean_score), ""
    if totals.valid_arguments.tools:
        checked = counted(totals.valid_arguments.checked, "call")
        yield VALID_ARGUMENTS.title, VALID_ARGUMENTS.text(totals.valid_arguments.rate), f"of {checked}"
    if totals.latency is not None:
        yield LATENCY.title, LATENCY.text(totals.latency.p50_ms), percentiles_text(totals.latency)
    if totals.usage is not None:
        yield TOKENS.title, TOKENS.text(totals.tokens), usage_text(totals.usage)
    yield COST.title, COST.text(totals.cost_usd), without_cost
    if totals.judging.asked:
        yield "judging", count_text(totals.judging.asked), judging_text(totals.judging)
    if timing is not None and timing.cases_a_minute:
        yield "cases a minute", pace_text(timing.cases_a_minute), ""


def _notes(report: RunsReport) -> Iterator[str]:
    if (repaired := repaired_line(report.results)) is not None:
        yield repaired
    yield from agent_lines(report.results)
    yield from unchecked_lines(report.results, report.secrets.redacted)
    yield from map(plain, agreement_lines(report.totals.agreement))


def _demands(overview: Overview) -> Element | None:
    """Return the gates and aggregates, or `None` if there are none.

    Missed gates come first, then met gates, then aggregates without a gate."""
    with_model = len(overview.comparison.models) > 1
    each = sorted(
        demands(overview.report.quality, overview.report.suite_names, with_model=with_model), key=_missed_first
    )
    if not each:
        return None
    title = "Gates" if each[0].met is not None else "Aggregates"
    return section("demands", title, el("ul", map(_demand, each), class_="card demands"))


def _missed_first(demand: Demand) -> int:
    return (False, True, None).index(demand.met)


def _demand(demand: Demand) -> Element:
    line = spans(demand.line)
    below = [el("p", spans(line)) for line in demand.below]
    if demand.met is None:
        return el("li", line, below)
    status = passed_or_failed(demand.met)
    return el("li", el("strong", status.sign), " ", line, below, class_=status.role)


def _since_baseline(overview: Overview) -> Element | None:
    against = overview.report.against
    if against is None:
        return None

    def link(change: CaseChange) -> str | None:
        if change.after is None:
            return None
        return overview.links.get(
            (relative_to_cwd(str(against.suites[change.suite].file)), change.case_id, change.model)
        )

    if overview.kind == "changes":
        title = "What changed"
        view = [*changes_blocks(against.diff.changes, against.suites, with_model=len(against.diff.models) > 1)]
        for note in baseline_notes(against):
            view.append(Paragraph(line_of(note, "muted")))
    else:
        title = "Since the baseline"
        view = [*baseline_view(against, as_document=True, max_changes=LINES_MAX)]
    return section("baseline", title, el("div", blocks(view, link), class_="card"))


def _errors(overview: Overview) -> Element | None:
    found = errors_of(overview.comparison)
    if not found:
        return None
    link = el("a", "show their cases", href=f"#{urlencode({'status': Status.ERROR.value})}")
    return section("errors", "Errors", el("div", blocks([error_items(found)]), el("p", link), class_="card demands"))


def _causes(overview: Overview) -> Element | None:
    failures = overview.report.failures
    if not failures.groups:
        return None
    title = "Why runs of both batches failed" if overview.kind == "changes" else "Why runs failed"
    causes = el("ol", map(_cause, failures.groups), class_="causes")
    return section("causes", title, causes, _confused_tools(failures.confusion.confused_pairs))


def _confused_tools(mixed: Sequence[tuple[ToolPair, int]]) -> Element | None:
    if not mixed:
        return None
    rows = []
    for (expected, called), count in mixed:
        rows.append([expected or NOT_EXPECTED, called or NO_CALL, count_text(count)])
    confusion = scrolled("Expected and called tools", table(("expected", "called", "times"), rows))
    summary = el("summary", f"Tools called in place of others: {count_text(len(mixed))}")
    return el("details", summary, confusion, class_="card")


def _cause(group: CauseNumbers) -> Element:
    link = el(
        "a",
        el("strong", group.cause),
        f" {frequency_text(group)}",
        el("span", class_="fill", aria_hidden="true"),
        class_="cause",
        href=f"#{urlencode({'cause': group.cause})}",
        title="show only cases with this cause",
    )
    subjects = filled_el("p", subject_text(group), class_="quiet")
    return el("li", link, el("p", f"{group.advice}.", class_="advice"), subjects)


def _models(overview: Overview) -> Element:
    comparison = overview.comparison
    # On the page of changes, the section on changes already has the tests between the batches.
    if overview.kind == "changes":
        comparison = replace(comparison, pairs=())
    title = "Models" if len(comparison.models) > 1 else "Model"
    tests = el("div", blocks(tests_view(comparison)), class_="tests")
    return section("models", title, blocks([totals_matrix(comparison)]), tests)
