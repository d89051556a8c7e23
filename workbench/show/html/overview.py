"""What the HTML report shows before its cases: the verdict, totals, demands, what changed since the baseline, errors,
causes of failures and the models. It needs no script; its links choose cases for the script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal, NamedTuple
from urllib.parse import urlencode

from workbench.analysis.batch_diff import CaseChange
from workbench.analysis.causes import CauseNumbers
from workbench.analysis.measures import COST, LATENCY, PASS_RATE, SCORE, TOKENS, VALID_ARGUMENTS
from workbench.analysis.side_by_side import Comparison
from workbench.grading.status import GOOD_WORDS, Status, passed_if
from workbench.numerals import count_text, counted, counted_of, pace_text
from workbench.show.doc import Paragraph, line_of
from workbench.show.forms import LINES_MAX
from workbench.show.html.charts import charts
from workbench.show.html.elements import Element, Node, blocks, el, scrolled, section, sign, spans, table
from workbench.show.spans import plain
from workbench.show.views.agreement import agreement_lines
from workbench.show.views.baseline import baseline_notes, baseline_view
from workbench.show.views.batch_diff import changes_blocks
from workbench.show.views.comparison import error_items, errors_of, tests_view, totals_matrix
from workbench.show.views.failures import NO_CALL, NOT_EXPECTED, concerned, often
from workbench.show.views.gates import Demand, demands
from workbench.show.views.grade_moves import moves_text
from workbench.show.views.grades import judging_text
from workbench.show.views.runs_report import RunsReport
from workbench.show.views.timing import timing_line
from workbench.show.views.totals import endpoint_text, not_made_text, unchecked_lines
from workbench.show.views.trajectory import repaired_line
from workbench.show.views.values import percentiles_text, usage_text
from workbench.show.when import utc_time
from workbench.suite.files import from_here

PageKind = Literal["runs", "comparison", "changes"]

_SUITES_MAX = 6


class Verdict(NamedTuple):
    """Whether all is well, in one line, and what that rests on.

    `good` is `None` where nothing is judged."""

    good: bool | None
    text: str
    details: tuple[str, ...] = ()


class Overview(NamedTuple):
    """What the overview is about.

    `links` lead to the run that is looked at first, by suite, case and model."""

    kind: PageKind
    report: RunsReport
    verdict: Verdict
    comparison: Comparison
    exit_code: int
    links: Mapping[tuple[str, str, str], str]

    @property
    def suite_names(self) -> dict[str, str]:
        """The names of the suites by the paths that runs have."""
        return {path: suite.name for path, suite in self.report.suites.items()}


def overview(shown: Overview) -> Iterator[Node]:
    """Yield the sections for which there is something to show."""
    yield _heading(shown)
    if shown.kind != "changes":
        yield _totals(shown.report)
        yield (el("p", f"▲ {note}", class_="notice") for note in _notes(shown.report))
        yield _demands(shown)
    yield _since_baseline(shown)
    yield _errors(shown)
    yield _causes(shown)
    yield _models(shown)
    same = shown.comparison.on_same_cases if shown.kind != "changes" else ()
    drawn = charts(shown.comparison.totals, same, shown.comparison)
    if drawn:
        yield el("section", drawn, class_="charts", aria_label="Charts")


def widths(report: RunsReport) -> str:
    """Return the style of the bars, whose lengths are numbers of runs: the page's policy allows it nowhere else."""
    shares = [count for count in report.totals.counts.values() if count]
    causes = [len(group.indices) for group in report.failures.groups]
    grow = (f".shares :nth-child({at}) {{ flex-grow: {count}; }}\n" for at, count in enumerate(shares, 1))
    most = max(causes, default=1)
    fill = (
        f".causes li:nth-child({at}) .fill {{ inline-size: calc(100% * {count} / {most}); }}\n"
        for at, count in enumerate(causes, 1)
    )
    return "".join((*grow, *fill))


def _heading(shown: Overview) -> Element:
    report, (good, text, details) = shown.report, shown.verdict
    status = None if good is None else passed_if(good)
    facts = [
        utc_time(report.started_at),
        f"batch {report.batch}" if report.batch is not None else "",
        timing_line(report.timing) if report.timing is not None else "",
        f"exit code {shown.exit_code}",
        f"Workbench {report.program_version}",
    ]
    names = list(dict.fromkeys(suite.name for suite in report.suites.values()))
    more = f" and {len(names) - _SUITES_MAX} more" if len(names) > _SUITES_MAX else ""
    return el(
        "header",
        el("p", " · ".join(names[:_SUITES_MAX]) + more, class_="kicker"),
        el("h1", sign(status) if status is not None else None, el("span", text)),
        (el("p", detail, class_="detail") for detail in details),
        el("p", " · ".join(filter(None, facts)), class_="quiet"),
        class_=f"verdict {status.role if status is not None else ''}",
    )


def verdict_of(report: RunsReport) -> Verdict:
    """Return whether a command with this report succeeds, and why not."""
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
        f"{counted_of(failed, len(quality.cases), 'case')} failed" if failed and not missed else "",
    ]
    why = "; ".join(filter(None, reasons)) if not good else ""
    passed = totals.passed + totals.warned
    counts = f"{counted_of(passed, totals.graded, 'graded run')} {GOOD_WORDS}"
    moved = [each.move for each in report.regraded or ()]
    again = (moves_text(moved) or "no grade differs from the recorded one") if moved else ""
    text = why or ("everything passed" if passed == totals.graded else "good enough")
    faults = endpoint_text(totals.endpoint_faults, totals.failed) if totals.endpoint_faults else ""
    not_made = not_made_text(totals.cost_limited) if totals.cost_limited else ""
    return Verdict(good, text[:1].upper() + text[1:], (counts, *filter(None, [not_made, faults, again])))


def _totals(report: RunsReport) -> Element:
    counts = [
        (f"{count_text(count)} {status.counted}", status) for status, count in report.totals.counts.items() if count
    ]
    bar = (
        el("span", f"{status.sign} {count_text(report.totals.counts[status])}", class_=status.role, title=text)
        for text, status in counts
    )
    label = ", ".join(text for text, _ in counts)
    tiles = (
        el("div", el("dt", name), el("dd", value), el("dd", note, class_="note") if note else None)
        for name, value, note in _tiles(report)
    )
    shares = el("div", bar, class_="shares", role="img", aria_label=label)
    return el("section", shares, el("dl", tiles), class_="figures", aria_label="Totals")


def _tiles(report: RunsReport) -> Iterator[tuple[str, str, str]]:
    """Yield the names of numbers, the numbers, and notes on them."""
    totals, timing = report.totals, report.timing
    forks = sum(result.is_fork for result in report.results)
    yield "runs", count_text(totals.runs), f"and {counted(forks, 'fork')}" if forks else ""
    yield PASS_RATE.title, PASS_RATE.text(totals.pass_rate), "of graded runs"
    yield SCORE.pooled[0].title, SCORE.text(totals.mean_score), ""
    if totals.valid_arguments.tools:
        checked = counted(totals.valid_arguments.checked, "call")
        yield VALID_ARGUMENTS.title, VALID_ARGUMENTS.text(totals.valid_arguments.rate), f"of {checked}"
    if totals.latency is not None:
        yield LATENCY.title, LATENCY.text(totals.latency.p50_ms), percentiles_text(totals.latency)
    if totals.usage is not None:
        yield TOKENS.title, TOKENS.text(totals.tokens), usage_text(totals.usage)
    unknown = totals.runs_of_unknown_cost
    yield COST.title, COST.text(totals.cost_usd), f"{counted(unknown, 'run')} unknown" if unknown else ""
    if totals.judging.asked:
        yield "judging", count_text(totals.judging.asked), judging_text(totals.judging)
    if timing is not None and timing.cases_a_minute:
        yield "cases a minute", pace_text(timing.cases_a_minute), ""


def _notes(report: RunsReport) -> Iterator[str]:
    """Yield what a reader has to know of the numbers."""
    if (repaired := repaired_line(report.results)) is not None:
        yield repaired
    yield from unchecked_lines(report.results, report.secrets.redacted)
    yield from map(plain, agreement_lines(report.totals.agreement))


def _demands(shown: Overview) -> Element | None:
    """Return the gates and aggregates, those that are missed first and those that demand nothing last."""
    with_model = len(shown.comparison.models) > 1
    each = sorted(demands(shown.report.quality, shown.suite_names, with_model=with_model), key=_missed_first)
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
    status = passed_if(demand.met)
    return el("li", el("strong", status.sign), " ", line, below, class_=status.role)


def _since_baseline(shown: Overview) -> Element | None:
    against = shown.report.against
    if against is None:
        return None

    def link(change: CaseChange) -> str | None:
        key = from_here(str(against.suites[change.suite].file)), change.case_id, change.model
        return shown.links.get(key) if change.after is not None else None

    if shown.kind == "changes":
        title = "What changed"
        view = [
            *changes_blocks(against.diff.changes, against.suites, with_model=len(against.diff.models) > 1),
            *(Paragraph(line_of(note, "muted")) for note in baseline_notes(against)),
        ]
    else:
        title = "Since the baseline"
        view = [*baseline_view(against, as_document=True, most=LINES_MAX)]
    return section("baseline", title, el("div", blocks(view, link), class_="card"))


def _errors(shown: Overview) -> Element | None:
    """Return why runs ended in an error, equal reasons together."""
    found = errors_of(shown.comparison)
    if not found:
        return None
    link = el("a", "show their cases", href=f"#{urlencode({'status': Status.ERROR.value})}")
    return section("errors", "Errors", el("div", blocks([error_items(found)]), el("p", link), class_="card demands"))


def _causes(shown: Overview) -> Element | None:
    failures = shown.report.failures
    if not failures.groups:
        return None
    title = "Why runs of both batches failed" if shown.kind == "changes" else "Why runs failed"
    mixed = failures.confusion.mixed_up
    rows = ([expected or NOT_EXPECTED, called or NO_CALL, count_text(count)] for (expected, called), count in mixed)
    confusion = scrolled("Expected and called tools", table(("expected", "called", "times"), rows))
    summary = el("summary", f"Tools called in place of others: {count_text(len(mixed))}")
    others = el("details", summary, confusion, class_="card") if mixed else None
    return section("causes", title, el("ol", map(_cause, failures.groups), class_="causes"), others)


def _cause(group: CauseNumbers) -> Element:
    link = el(
        "a",
        el("strong", group.cause),
        f" {often(group)}",
        el("span", class_="fill", aria_hidden="true"),
        class_="cause",
        href=f"#{urlencode({'cause': group.cause})}",
        title="show only cases with this cause",
    )
    subjects = el("p", concerned(group), class_="quiet") if group.subjects else None
    return el("li", link, el("p", f"{group.advice}.", class_="advice"), subjects)


def _models(shown: Overview) -> Element:
    comparison = shown.comparison
    if shown.kind == "changes":
        comparison = replace(comparison, pairs=())  # each model is tested against itself, above
    title = "Models" if len(comparison.models) > 1 else "Model"
    tests = el("div", blocks(tests_view(comparison)), class_="tests")
    return section("models", title, blocks([totals_matrix(comparison)]), tests)
