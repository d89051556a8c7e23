"""JUnit XML for GitLab, Jenkins and GitHub Actions. `docs/reports.md` has the mapping.

Each pair of a suite and a model becomes a JUnit test suite, and each of its cases a test case. Memory holds only the
indices of all cases and the names in one suite."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

from workbench.grading.argument_counts import valid_arguments_in, valid_arguments_of
from workbench.grading.status import Status
from workbench.numerals import counted_of, score_text
from workbench.show.spans import plain
from workbench.show.text import Paint
from workbench.show.views.grades import cut, doubt_texts, issue_lines
from workbench.show.views.server_output import output_lines
from workbench.show.views.trajectory import trajectory_lines
from workbench.show.visible import after, visible
from workbench.suite.files import relative_to_repository
from workbench.version import __version__

if TYPE_CHECKING:
    from workbench.grading.grade import RunResult
    from workbench.grading.repeats import CaseResult
    from workbench.show.views.runs_report import RunsReport, ShownCase

_TEXT_MAX = 20_000
"""Maximum length in characters of a failure's text and of a run's steps."""
_MESSAGE_MAX = 1_000
_STEPS_MAX = 20_000_000
"""Length of a report in characters above which steps are omitted. GitLab accepts files of up to 30 MB."""

_NEVER_IN_XML = re.compile("[\ufffe\uffff]")
"""Characters that `visible` keeps and XML 1.0 forbids. A parser would refuse the whole file."""
_IN_TEXT = {'"': "&quot;"}
# A parser turns a line break or a tab in an attribute into a blank. A character reference prevents this.
_IN_ATTRIBUTE = _IN_TEXT | {"\n": "&#10;", "\t": "&#9;"}


class _Group(NamedTuple):
    """A suite with a model. `cases` has indices in the list of all cases."""

    suite: str
    model: str
    cases: array[int]
    statuses: Counter[str]
    # The number is in a list, because a field of a named tuple cannot be reassigned.
    duration_ms: list[float]


def junit_pieces(report: RunsReport) -> Iterator[str]:
    """Yield the JUnit report. Each piece holds one test case."""
    cases = report.quality.cases
    groups = _groups(cases)
    statuses = sum((group.statuses for group in groups), Counter[str]())
    duration = sum(group.duration_ms[0] for group in groups)
    # Unfinished runs are errors in a separate test suite at the end.
    statuses["error"] += len(report.missing) + len(report.broken)
    missed = _missed_demands(report)
    statuses["failed"] += len(missed)
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="workbench"{_counts(statuses, duration)}>\n'
    written = 0
    for group in groups:
        # Finding the repository reads folders, so it is done once for all cases of a suite.
        file = report.secrets.redact(relative_to_repository(group.suite))
        yield from _suite_head(report, group, file)
        names = Counter(cases[place].runs[0].case_name for place in group.cases)
        given: set[str] = set()
        for place in group.cases:
            shown = report.shown_case(cases[place])
            name = _name(shown, names, given)
            piece = "".join(_test_case(shown, file, name, report, with_steps=written < _STEPS_MAX))
            written += len(piece)
            yield piece
        yield "  </testsuite>\n"
    yield from _missing(report)
    yield from _broken(report)
    yield from _demands(missed)
    yield "</testsuites>\n"


def _missing(report: RunsReport) -> Iterator[str]:
    if not report.missing:
        return
    count = len(report.missing)
    yield f'  <testsuite name="missing runs" tests="{count}" failures="0" errors="{count}" skipped="0" time="0.000">\n'
    for each in report.missing:
        file, model = map(report.secrets.redact, (relative_to_repository(each.suite), each.model))
        name = report.secrets.redact(each.case_name)
        yield f'    <testcase classname="{_attribute(f"{file} [{model}]")}" name="{_attribute(name)}" time="0.000">\n'
        verb = "are"
        if each.missing == 1:
            verb = "is"
        why = f"{counted_of(each.missing, each.planned, 'run')} {verb} missing"
        yield f"{_element('error', 'missing', [why])}    </testcase>\n"
    yield "  </testsuite>\n"


def _broken(report: RunsReport) -> Iterator[str]:
    if not report.broken:
        return
    count = len(report.broken)
    yield f'  <testsuite name="broken suites" tests="{count}" failures="0" errors="{count}" skipped="0" time="0.000">\n'
    for each in report.broken:
        file = _attribute(report.secrets.redact(relative_to_repository(each.suite)))
        yield f'    <testcase classname="{file}" name="suite" time="0.000">\n'
        problems = [report.secrets.redact(problem) for problem in each.problems]
        yield f"{_element('error', 'broken', problems)}    </testcase>\n"
    yield "  </testsuite>\n"


def _missed_demands(report: RunsReport) -> Mapping[str, Sequence[str]]:
    """Return the lines of each missed gate and aggregate, and of a regression, by a unique name.

    Such a demand fails the command even if every case passed."""
    from workbench.show.views.gates import demands

    redact = report.secrets.redact
    missed: dict[str, Sequence[str]] = {}
    for demand in demands(report.quality, report.suite_names, with_model=True):
        if demand.met is False:
            lines = [redact(plain(line)) for line in demand.lines]
            missed[_unique(lines[0].partition(": ")[0], missed)] = lines
    if report.against is not None and report.against.failed:
        missed[_unique("baseline", missed)] = [redact(report.against.verdict)]
    return missed


def _demands(missed: Mapping[str, Sequence[str]]) -> Iterator[str]:
    if not missed:
        return
    counts = f'tests="{len(missed)}" failures="{len(missed)}" errors="0" skipped="0"'
    yield f'  <testsuite name="missed demands" {counts} time="0.000">\n'
    for name, lines in missed.items():
        yield f'    <testcase classname="demands" name="{_attribute(name)}" time="0.000">\n'
        yield f"{_element('failure', 'missed', lines)}    </testcase>\n"
    yield "  </testsuite>\n"


def _groups(cases: Sequence[CaseResult]) -> list[_Group]:
    groups: dict[tuple[str, str], _Group] = {}
    for place, case in enumerate(cases):
        first = case.runs[0]
        key = (first.suite, first.model)
        # An array holds a hundred thousand positions in 800 kB. Each case is read again when it is written.
        group = groups.get(key) or groups.setdefault(key, _Group(*key, array("L"), Counter(), [0.0]))
        group.cases.append(place)
        group.statuses[_shown_status(case)] += 1
        group.duration_ms[0] += _duration_ms(case)
    return list(groups.values())


def _shown_status(case: CaseResult) -> Status:
    """Return the status of a test case in the report, which must agree with the exit code of the command.

    A case that failed and is not in quarantine is failed. Any other case is an error if one of its runs ended in an
    error. A failed case in quarantine without such a run is skipped."""
    in_quarantine = case.runs[0].grading.quarantined
    if case.status == Status.FAILED and not in_quarantine:
        return Status.FAILED
    if any(run.status == Status.ERROR for run in case.runs):
        return Status.ERROR
    if case.status == Status.FAILED:
        return Status.SKIPPED
    return case.status


def _has_no_verdict(status: Status) -> bool:
    return not status.graded and status is not Status.ERROR


def _duration_ms(case: CaseResult) -> float:
    return sum(run.loop_ms for run in case.runs)


def _counts(statuses: Counter[str], duration_ms: float) -> str:
    return (
        f' tests="{sum(statuses.values())}" failures="{statuses["failed"]}" errors="{statuses["error"]}"'
        f' time="{duration_ms / 1000:.3f}"'
    )


def _suite_head(report: RunsReport, group: _Group, file: str) -> Iterator[str]:
    model = report.secrets.redact(group.model)
    skipped = sum(group.statuses[status] for status in Status if _has_no_verdict(status))
    suite = report.suites.get(group.suite)
    title = file
    if suite is not None:
        title = report.secrets.redact(suite.name)
    properties = {"workbench": __version__, "suite": file, "model": model, "batch": report.batch}
    yield f'  <testsuite name="{_attribute(f"{title} [{model}]")}"'
    yield f'{_counts(group.statuses, group.duration_ms[0])} skipped="{skipped}"'
    yield f' timestamp="{_attribute(report.started_at)}" file="{_attribute(file)}">\n'
    yield from _properties(properties, "    ")


def _name(case: ShownCase, names: Counter[str], given: set[str]) -> str:
    """Return the name of a case, made unique within its suite, because GitLab counts tests with equal names as one."""
    first = case.result.runs[0]
    name = first.case_name
    if names[name] > 1:
        name = f"{name} ({first.case_id})"
    # A name with its id appended may equal the plain name of another case.
    name = _unique(name, given)
    given.add(name)
    return name


def _unique(name: str, given: Container[str]) -> str:
    unique, number = name, 1
    while unique in given:
        number += 1
        unique = f"{name} #{number}"
    return unique


def _test_case(case: ShownCase, file: str, name: str, report: RunsReport, *, with_steps: bool) -> Iterator[str]:
    result, redact = case.result, report.secrets.redact
    first = result.runs[0]
    yield f'    <testcase classname="{_attribute(f"{file} [{first.model}]")}" name="{_attribute(name)}"'
    yield f' file="{_attribute(file)}"'
    if case.line is not None:
        yield f' line="{case.line}"'
    yield f' time="{_duration_ms(result) / 1000:.3f}">\n'
    since: list[str] = []
    facts = _facts(result, report.batch)
    if report.against is not None and (sentence := report.against.sentence_of(first)) is not None:
        since.append(redact(sentence))
        facts["baseline"] = since[0]
    yield from _properties(facts, "      ")
    yield from _outcome(result, since)
    steps = "the steps are left out: the report would be too large"
    if with_steps:
        steps = _steps(result.runs)
    if steps:
        yield f"      <system-out>{_text(steps)}</system-out>\n"
    yield "    </testcase>\n"


def _facts(result: CaseResult, batch: int | None) -> dict[str, object]:
    """Return the properties of a test case. A property without a value is `None`."""
    first = result.runs[0]
    facts: dict[str, object] = {
        "case_id": first.case_id,
        "model": first.model,
        "status": result.status.value,
        "score": result.score,
        "agent": first.agent and first.agent.title,
        "grader": result.grader,
    }
    if len(result.runs) > 1:
        facts |= {"runs": len(result.runs), "rule": result.rule}
    costs = [run.cost_usd for run in result.runs]
    # A sum without the runs of unknown cost would look like the whole cost.
    if None not in costs:
        facts["cost_usd"] = sum(cost or 0.0 for cost in costs)
    if any(run.trajectory.user_requests for run in result.runs):
        of_users = [run.user_cost_usd for run in result.runs]
        facts["user_requests"] = sum(run.trajectory.user_requests for run in result.runs)
        facts["user_ms"] = sum(run.trajectory.user_latency_ms for run in result.runs)
        facts |= dict.fromkeys(("user_input_tokens", "user_output_tokens", "user_cost_usd"))
        if of_players := list(filter(None, (run.user_usage for run in result.runs))):
            facts["user_input_tokens"] = sum(usage.input_tokens for usage in of_players)
            facts["user_output_tokens"] = sum(usage.output_tokens for usage in of_players)
        if None not in of_users:
            facts["user_cost_usd"] = sum(usd or 0.0 for usd in of_users)
    usages = list(filter(None, (run.trajectory.usage for run in result.runs)))
    if usages:
        facts["input_tokens"] = sum(usage.input_tokens for usage in usages)
        facts["output_tokens"] = sum(usage.output_tokens for usage in usages)
    arguments = valid_arguments_in(valid_arguments_of(run).tools for run in result.runs)
    if arguments.tools:
        facts |= {"checked_calls": arguments.checked, "valid_calls": arguments.valid}
    facts["batch"] = batch
    return facts


def _outcome(result: CaseResult, regressions: Sequence[str]) -> Iterator[str]:
    """Yield the XML elements for the outcome of a test case.

    `regressions` has sentences on the change since the baseline. A case that passed although some of its runs failed is
    reported as flaky."""
    shown = _shown_status(result)
    if shown == "error":
        # The type must not be a word such as `symbol` or `file`. GitLab uses Rails, which reads these words as its own
        # types.
        yield _element("error", "infrastructure", [*_errors_counted(result), *_lines_of_all(result)])
    elif shown == "failed":
        yield _element("failure", "failed", [*_lines_of_all(result), *regressions])
    elif result.status == Status.FAILED:
        yield _element("skipped", "quarantined", ["failed, in quarantine", *_lines_of_all(result)])
    elif _has_no_verdict(result.status):
        lines = [result.status.word, *_lines_of_all(result), *regressions]
        if len(lines) == 2:
            lines = [": ".join(lines)]
        yield _element("skipped", result.status.value, lines)
    else:
        for run in result.runs:
            if run.status == Status.FAILED:
                yield _element("flakyFailure", "failed", _lines_of(run), child="stackTrace")


def _errors_counted(result: CaseResult) -> list[str]:
    if len(result.runs) == 1:
        return []
    errors = sum(run.status == Status.ERROR for run in result.runs)
    return [f"{errors} of {len(result.runs)} runs ended in an error"]


def _lines_of_all(result: CaseResult) -> list[str]:
    if len(result.runs) == 1:
        return _lines_of(result.runs[0])
    counts = f"{result.good} of {len(result.graded)} graded runs passed, by {result.rule}"
    lines = [counts + after(", mean score ", score_text(result.score, ""))]
    for run in result.runs:
        if not run.passed:
            lines.append(f"run {run.repeat + 1}: {run.status}")
            for line in _lines_of(run):
                lines.append(f"  {line}")
    return lines


def _lines_of(run: RunResult) -> list[str]:
    lines = issue_lines(run)
    for step in run.steps:
        if step.status is not None and step.status != Status.PASSED:
            lines.append(f"step {step.step}: {step.status}: {step.why}")
    if run.status == Status.ERROR:
        for output in run.trajectory.server_outputs:
            lines += output_lines(output, Paint(False), 0)
    return lines


def _element(name: str, kind: str, lines: Sequence[str], *, child: str = "") -> str:
    """Return an XML element with the first line as its message and all lines as its text.

    The text repeats the first line, because GitLab does not show messages."""
    message = _attribute(cut(next(iter(lines), ""), _MESSAGE_MAX))
    text = _text(cut("\n".join(lines), _TEXT_MAX))
    if child:
        text = f"<{child}>{text}</{child}>"
    return f'      <{name} type="{kind}" message="{message}">{text}</{name}>\n'


def _steps(runs: Sequence[RunResult]) -> str:
    lines: list[str] = []
    for run in runs:
        if len(runs) > 1:
            lines.append(f"run {run.repeat + 1}: {run.status}")
        lines += trajectory_lines(run.trajectory)
        for line in doubt_texts(run):
            lines.append(f"▲ {line}")
    return cut("\n".join(lines), _TEXT_MAX)


def _properties(values: Mapping[str, object], pad: str) -> Iterator[str]:
    yield f"{pad}<properties>\n"
    for name, value in values.items():
        if value is not None:
            yield f'{pad}  <property name="{name}" value="{_attribute(str(value))}"/>\n'
    yield f"{pad}</properties>\n"


def _text(text: str) -> str:
    return escape(_printable(text), _IN_TEXT)


def _attribute(text: str) -> str:
    return escape(_printable(text), _IN_ATTRIBUTE)


def _printable(text: str) -> str:
    return _NEVER_IN_XML.sub("\ufffd", visible(text))
