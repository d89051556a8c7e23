"""Finds the causes of failed runs from their grades, and counts the confused tools."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from workbench.analysis.causes import (
    ASKED_BACK_ADVICE,
    BASELINE_ADVICE,
    BASELINE_MODEL,
    CAUSES,
    REPEATED_ADVICE,
    SECONDARY_CAUSES,
    USED_UP_ADVICE,
    Cause,
    CauseFold,
    CauseGroup,
    ConfusionCounts,
    FailedRun,
    FailureNumbers,
    Failures,
    Subject,
    Symptom,
    ToolPair,
    causes_of,
)
from workbench.checks.values import describe_value
from workbench.grading.endpoint_faults import advice_about_fault
from workbench.grading.grade import CallPairing, Issue, IssueKind, RunResult, StepGrade, reason_of
from workbench.grading.packed import LazyResult
from workbench.grading.run_facts import MadeCall
from workbench.grading.status import Status
from workbench.grading.traits import TRAITS
from workbench.suite.expected_calls import ANY_TOOL, ExpectedCall, comparable_name, same_tool, tool_text
from workbench.suite.model import Case
from workbench.suite.variants import model_of
from workbench.trajectory.trajectory import CallRecord, tools_of

# The confusion table.


def confusion_of(runs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> ConfusionCounts:
    """Return the confusion table of runs. A run is given as its expected tools and its called tools, in order.

    Within a run, equal tools are paired first, regardless of position. The rest is paired in order: each pair shows the
    tool called in place of an expected tool. The rules of the deciding grader are ignored."""
    fold = ConfusionFold()
    for expected, called in runs:
        fold.add(expected, called)
    return fold.found()


class ConfusionFold:
    """A confusion table that is updated by each run. `confusion_of` explains the counts."""

    def __init__(self) -> None:
        self._counts: Counter[ToolPair] = Counter()
        self._names: dict[str, str] = {}
        self._known: dict[str, str] = {}

    def add(self, expected: Sequence[str], called_tools: Sequence[str]) -> None:
        self._counts.update(_pairs([*map(self._canonical, expected)], [*map(self._canonical, called_tools)]))

    def found(self) -> ConfusionCounts:
        return ConfusionCounts(self._counts)

    def _canonical(self, name: str) -> str:
        # Providers change the spelling of names, so all calls of a tool count under the first spelling.
        if name not in self._known:
            self._known[name] = self._names.setdefault(comparable_name(name), name)
        return self._known[name]


def _pairs(expected: Sequence[str], called_tools: Sequence[str]) -> Iterator[ToolPair]:
    if expected == called_tools:
        # As in most runs.
        yield from zip(expected, called_tools, strict=True)
        return
    open_calls = Counter(called_tools)
    left: list[str] = []
    for tool in expected:
        if open_calls[tool]:
            open_calls[tool] -= 1
            yield tool, tool
        else:
            left.append(tool)
    # Expected tools are paired with the first of several equal calls, so the last calls remain.
    over: deque[str] = deque()
    for tool in reversed(called_tools):
        if open_calls[tool]:
            open_calls[tool] -= 1
            over.appendleft(tool)
    for tool in left:
        yield tool, over.popleft() if over else None
    for tool in over:
        yield None, tool


def failures_of(runs: Iterable[tuple[RunResult, Case | None]]) -> Failures:
    """Return the failed runs with their causes.

    Each run comes with the case that graded it, or with `None` if the run does not count. Only one run is in memory at
    a time."""
    failed: list[FailedRun] = []

    def keep(index: int, result: RunResult, symptoms: tuple[Symptom, ...]) -> None:
        failed.append(FailedRun(index, result.small, symptoms))

    found = failure_numbers(runs, keep)
    by_cause: dict[Cause, list[FailedRun]] = {}
    for run in failed:
        for cause in run.causes:
            by_cause.setdefault(cause, []).append(run)
    groups = []
    for group in found.groups:
        groups.append(CauseGroup(group.cause, tuple(by_cause[group.cause])))
    return Failures(found.graded, tuple(failed), tuple(groups), found.confusion)


def failure_numbers(
    runs: Iterable[tuple[RunResult, Case | None]],
    each: Callable[[int, RunResult, tuple[Symptom, ...]], object] = lambda *_: None,
) -> FailureNumbers:
    """Return the causes of failed runs as numbers. Unlike `failures_of`, this does not store the runs.

    `each` is called with the index, the result and the symptoms of each failed run."""
    graded = failed = 0
    folds: dict[Cause, CauseFold] = {}
    confusion = ConfusionFold()
    for index, (result, case) in enumerate(runs):
        if case is None or not result.status.graded:
            continue
        graded += 1
        if result.status == Status.FAILED:
            failed += 1
            symptoms = _symptoms(result, case)
            each(index, result, symptoms)
            for cause in causes_of(symptoms):
                folds.setdefault(cause, CauseFold(cause)).add(index, result, symptoms)
        if case.expects_calls_or_none:
            called = [*result.called]
            confusion.add(_with_wildcards_replaced(_tools_asked_for(result, case), called), called)
    groups = tuple(folds[cause].numbers() for cause in CAUSES if cause in folds)
    return FailureNumbers(graded, failed, groups, confusion.found())


_CAUSE_OF: Mapping[IssueKind, Cause] = {
    "endpoint fault": "endpoint",
    "cut off": "cut off",
    "refused": "refused",
    "unknown tool": "unknown tool",
    "schema violation": "schema violation",
    "wrong tool": "wrong tool",
    "missing call": "missing call",
    "extra call": "extra call",
    "forbidden call": "forbidden call",
    "wrong order": "wrong order",
    "not parallel": "wrong order",
    "wrong result": "wrong result",
    "too many calls": "extra call",
    "duplicate call": "extra call",
    "over budget": "over budget",
    "wrong argument": "wrong argument",
    "missing argument": "missing argument",
    "invalid argument": "invalid argument",
    "forbidden argument": "forbidden argument",
    "unexpected argument": "unexpected argument",
    "broken arguments": "broken JSON",
    "response": "content",
    "missing change": "final state",
    "wrong change": "final state",
    "unexpected change": "final state",
    "final state": "final state",
    "not said": "final state",
    "final goal": "final state",
    "turns exhausted": "over budget",
    "over calling": "over calling",
    "latency exceeded": "latency",
    "partial credit": "low score",
    "sent too much": "sent too much",
}
"""The causes of issues, by the kind of the issue. The other kinds of issues have no cause of their own.

Issues of the kind `quantity` only count other issues. Used-up rounds follow from the run's finish. A failed step has
its own issues, which have causes."""


def _tools_asked_for(result: RunResult, case: Case) -> list[str]:
    """Return the tools of the expected calls, without steps that a stopped chain never reached."""
    if case.needs_resolving and result.grade is not None:
        return list(_resolved_tools(result.grade.expected_pairings, result, case))
    if not case.steps or not _stopped_at_a_step(result):
        return list(tools_of(case.expected_calls()))
    tools = []
    for step, grade in zip(case.steps, result.steps, strict=True):
        if step.tool is not None and grade.status is not None:
            tools.append(step.tool)
    return tools


def _resolved_tools(pairings: Iterable[CallPairing], result: RunResult, case: Case) -> Iterator[str]:
    expected, calls = case.expected_calls(), result.trajectory.calls
    never_reached = {step.expected_call for step in result.steps if step.status is None}
    for line in pairings:
        assert line.expected_call is not None
        if line.expected_call not in never_reached and line.expected_call < len(expected):
            yield _meant(expected[line.expected_call], calls[line.call].tool if line.call is not None else None)


def _meant(expected: ExpectedCall, called_tool: str | None) -> str:
    for alternative in expected.alternatives:
        if called_tool is not None and same_tool(alternative.tool, called_tool):
            return alternative.tool
    return expected.alternatives[0].tool


def _with_wildcards_replaced(expected: Sequence[str], called_tools: Sequence[str]) -> Sequence[str]:
    """Return the expected tools, with each `*` (any tool) replaced by a called tool that no expected call names."""
    if ANY_TOOL not in expected:
        return expected
    named = [tool for tool in expected if tool != ANY_TOOL]
    left = list((Counter(called_tools) - Counter(named)).elements())
    wildcards = len(expected) - len(named)
    return [*named, *left[:wildcards], *[tool_text(ANY_TOOL)] * (wildcards - len(left))]


def _stopped_at_a_step(result: RunResult) -> bool:
    finish = result.trajectory.finish
    return bool(result.steps) and finish is not None and finish.reason == "step failed"


_UNMET: frozenset[IssueKind] = frozenset(
    {"wrong argument", "missing argument", "invalid argument", "unexpected argument", "partial credit"}
)
"""The issues of an argument that fails its check."""


class _Evidence(NamedTuple):
    """The facts of a failed run from which its causes are found.

    `why` is the reason of the deciding grade. `rounds` is the number of answers, and `has_text` is true if some answer
    has text. `cut_off_calls` are the indices of the calls in answers that were cut off."""

    grader: str | None
    issues: Sequence[Issue]
    why: str
    steps: Sequence[StepGrade]
    calls: Sequence[MadeCall | CallRecord]
    cut_off_calls: frozenset[int]
    finish: str | None
    answer: str
    rounds: int
    has_text: bool

    @property
    def stopped_at_a_step(self) -> bool:
        return bool(self.steps) and self.finish == "step failed"


def _evidence_of(result: RunResult) -> _Evidence:
    """Return the evidence of a failed run, from its stored facts if they suffice."""
    facts = result.facts if isinstance(result, LazyResult) else None
    if facts is not None and facts.report is not None and facts.report.is_plain:
        of_grade = (facts.grader, facts.issues, facts.report.why, (), facts.calls, frozenset[int]())
        return _Evidence(*of_grade, facts.finish, facts.answer, facts.report.rounds, facts.report.has_text)
    trajectory, why = result.trajectory, "not graded"
    if result.grade is not None:
        why = reason_of(result.grade)
    calls, cut_off = trajectory.calls, trajectory.cut_off_rounds
    cut_off_calls = frozenset(at for at, call in enumerate(calls) if call.round in cut_off)
    return _Evidence(
        *(result.grader, result.issues, why, result.steps, calls, cut_off_calls),
        *(trajectory.finish_reason, trajectory.final_answer, len(trajectory.rounds)),
        has_text=any(round_.text for round_ in trajectory.rounds),
    )


def _symptoms(result: RunResult, case: Case) -> tuple[Symptom, ...]:
    """Return the symptoms of a failed run, in the order of causes. There is at least one.

    Graders may report one fact in several issues. The fact becomes a single symptom, from the issue that explains the
    others."""
    expected, evidence = tuple(case.expected_calls()), _evidence_of(result)
    calls = evidence.calls
    root_issues = _without_consequences(tuple(_counting_issues(evidence)), evidence.cut_off_calls)
    found = []
    for issue in dict.fromkeys(root_issues):
        if issue.kind in _CAUSE_OF:
            found.append(_symptom(issue, expected, calls))
    # After a fault of the endpoint or an answer that was cut off, the other issues say little about the model.
    for alone in ("endpoint", "sent too much"):
        only = _with_cause(found, alone)
        if only:
            return tuple(only)
    found = _without_given_up(evidence, expected, _with_wrong_tools(found))
    causes = set(causes_of(found))
    # A low score follows from any other cause, so it is a cause only if there is no other.
    if causes - SECONDARY_CAUSES - {"low score"}:
        found = _without_cause(found, "low score")
    elif causes <= SECONDARY_CAUSES:
        # The limit of rounds ends a conversation regardless of its score.
        cut = evidence.finish == "rounds exhausted"
        found.append(Symptom("over budget" if cut else "low score", evidence.why))
    if model_of(result.model) == BASELINE_MODEL:
        found = [replace(symptom, advice=BASELINE_ADVICE) for symptom in found]
    return tuple(sorted(found, key=lambda symptom: CAUSES.index(symptom.cause)))


def _counting_issues(evidence: _Evidence) -> Iterator[Issue]:
    issues = evidence.issues
    if evidence.stopped_at_a_step:
        # The grade of the whole chain also lists unreached steps as missing.
        issues = list(chain.from_iterable(step.issues for step in evidence.steps))
    elif evidence.steps:
        issues = _issues_of_chain(issues, evidence.steps)
    are_others_free = evidence.grader is not None and TRAITS[evidence.grader].frees_other_arguments
    for issue in issues:
        # An unexpected argument that costs nothing does not explain a failure.
        if are_others_free and issue.kind == "unexpected argument":
            continue
        # A schema violation that does not fail the run explains no failure. It is only noted, or a later call corrected
        # it.
        if issue.kind == "schema violation" and not issue.decides:
            continue
        yield issue


def _with_cause(symptoms: Iterable[Symptom], cause: Cause) -> list[Symptom]:
    return [symptom for symptom in symptoms if symptom.cause == cause]


def _without_cause(symptoms: Iterable[Symptom], cause: Cause) -> list[Symptom]:
    return [symptom for symptom in symptoms if symptom.cause != cause]


def _without_consequences(issues: Sequence[Issue], cut_off_calls: frozenset[int]) -> Iterator[Issue]:
    """Yield the issues that do not follow from broken arguments or an early end of the run."""
    broken = set()
    violated = set()
    ended = False
    for issue in issues:
        match issue.kind:
            case "broken arguments":
                broken.add(issue.call)
            case "schema violation":
                violated.add((issue.call, _argument_name(issue.argument)))
            case "cut off" | "refused":
                ended = True
            case _:
                pass
    for issue in issues:
        if issue.kind in _UNMET and issue.call is not None and issue.call in broken:
            continue
        if issue.kind in _UNMET and (issue.call, issue.argument) in violated:
            continue
        if ended and issue.kind in ("missing call", "response"):
            continue
        if issue.kind == "broken arguments" and issue.call in cut_off_calls:
            continue
        yield issue


def _argument_name(place: str | None) -> str | None:
    """Return the argument that contains a place within a call's arguments: `to` for `to[0].name`.

    Returns `None` without a place."""
    if place is not None:
        return place.partition(".")[0].partition("[")[0]
    return None


def _issues_of_chain(whole: Sequence[Issue], steps: Sequence[StepGrade]) -> tuple[Issue, ...]:
    """Return the issues of the failed steps, then the issues of the whole chain about other calls."""
    own: list[Issue] = []
    calls: set[int | None] = set()
    expected: set[int | None] = set()
    for step in steps:
        if step.status == Status.FAILED and step.issues:
            own += step.issues
            calls |= step.calls
            expected.add(step.expected_call)
    # An issue without a call concerns the whole chain.
    calls.discard(None)
    expected.discard(None)
    for issue in whole:
        if issue.call not in calls and issue.expected_call not in expected:
            own.append(issue)
    return tuple(own)


def _symptom(issue: Issue, expected: Sequence[ExpectedCall], calls: Sequence[MadeCall | CallRecord]) -> Symptom:
    return Symptom(
        _CAUSE_OF[issue.kind], issue.reason, _subject(issue, expected), issue.expected, issue.got, _advice(issue, calls)
    )


def _subject(issue: Issue, expected: Sequence[ExpectedCall]) -> Subject | None:
    meant: str | None = None
    # A case edited before its run was regraded may have had fewer calls.
    if issue.expected_call is not None and issue.expected_call < len(expected):
        meant = _meant(expected[issue.expected_call], issue.tool)
    if issue.kind == "wrong tool" and meant is not None:
        return Subject(meant, instead=issue.tool)
    if issue.tool is None:
        return None
    # Providers change the spelling of names. The suite's spelling makes each tool one subject.
    if meant is not None and same_tool(meant, issue.tool):
        return Subject(meant, issue.argument)
    return Subject(issue.tool, issue.argument)


def _advice(issue: Issue, calls: Sequence[MadeCall | CallRecord]) -> str | None:
    if issue.kind == "endpoint fault":
        return advice_about_fault(issue)
    if issue.kind == "cut off":
        return f"cut off {issue.why}"
    if issue.kind == "duplicate call":
        return REPEATED_ADVICE
    if issue.kind == "extra call" and issue.call is not None:
        call = calls[issue.call]
        for earlier in calls[: issue.call]:
            if (earlier.tool, earlier.arguments) == (call.tool, call.arguments):
                return REPEATED_ADVICE
    return None


def _with_wrong_tools(symptoms: Sequence[Symptom]) -> list[Symptom]:
    """Merge a missing call and an extra call of another tool into the cause "wrong tool", as some graders do.

    An unknown tool stays a separate symptom and replaces a wrong tool of the same name."""
    missing, extra = _with_cause(symptoms, "missing call"), _with_cause(symptoms, "extra call")
    unknown = _with_cause(symptoms, "unknown tool")
    # A grader may report a call of an unknown tool as an extra call or as a wrong tool, too.
    reported = _tools(extra) | {symptom.instead for symptom in symptoms}
    extra += [symptom for symptom in unknown if symptom.tool not in reported]
    merged = _without_cause(_without_cause(symptoms, "missing call"), "extra call")
    for lacking in list(missing):
        other = _of_another_tool(extra, lacking)
        if other is None or lacking.subject is None:
            continue
        missing.remove(lacking)
        extra.remove(other)
        instead = Subject(lacking.subject.tool, instead=other.tool)
        why = f"{lacking.subject.tool} was expected"
        merged.append(Symptom("wrong tool", why, instead, lacking.expected, other.got))
    unknown_names = _tools(unknown)
    merged += missing
    merged += [symptom for symptom in extra if symptom.tool not in unknown_names]
    unknown_names.discard(None)
    return [symptom for symptom in merged if symptom.instead not in unknown_names]


def _tools(symptoms: Iterable[Symptom]) -> set[str | None]:
    return {symptom.tool for symptom in symptoms}


def _of_another_tool(calls: Iterable[Symptom], symptom: Symptom) -> Symptom | None:
    for call in calls:
        if call.tool != symptom.tool:
            return call
    return None


def _without_given_up(
    evidence: _Evidence, expected: Sequence[ExpectedCall], symptoms: Sequence[Symptom]
) -> list[Symptom]:
    """Replace the symptoms that an early end of the run explains by the symptom "gave up"."""
    how = _early_end(evidence, calls_expected=bool(expected))
    causes = causes_of(symptoms)
    if how is None or not set(causes).isdisjoint(("cut off", "refused")):
        return list(symptoms)
    answer = evidence.answer
    advice: str | None = None
    if how == _USED_UP:
        advice = USED_UP_ADVICE
    elif answer.rstrip().endswith(("?", "？")):
        advice = ASKED_BACK_ADVICE
    lacking, rest = _with_cause(symptoms, "missing call"), _without_cause(symptoms, "missing call")
    # If there is no answer, the expected content is missing for the same reason as the calls.
    if not answer:
        rest = _without_cause(rest, "content")
    if lacking:
        value = describe_value(answer) if answer else None
        given = []
        for each in lacking:
            given.append(Symptom("gave up", how, each.subject, each.expected, value, advice))
        return [*given, *rest]
    if answer or "content" not in causes:
        return list(symptoms)
    return [Symptom("gave up", how, None, "a final answer", advice=advice), *rest]


_USED_UP = "the rounds were used up"


def _early_end(evidence: _Evidence, *, calls_expected: bool) -> str | None:
    """Describe why a run may have ended too early.

    Return `None` if the run did not end too early. `calls_expected` means that a run without calls ended too early."""
    # With a single round, no further rounds could be used up. The missing call was simply not made.
    if evidence.finish == "rounds exhausted" and evidence.rounds > 1:
        return _USED_UP
    if calls_expected and not evidence.calls:
        if evidence.has_text:
            return "answered without calling anything"
        return "neither called nor answered"
    if evidence.finish == "answered" and not evidence.answer:
        return "ended without an answer"
    return None
