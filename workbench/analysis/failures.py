"""Find out why runs failed, from their grades: the causes of each, and how often tools were confused."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from workbench.analysis.causes import (
    ASKED_BACK,
    BASELINE,
    CAUSES,
    FOR_BASELINE,
    NEVER_ALONE,
    REPEATED,
    USED_UP,
    Cause,
    CauseFold,
    CauseGroup,
    Confusion,
    FailedRun,
    FailureNumbers,
    Failures,
    Pair,
    Subject,
    Symptom,
)
from workbench.checks.values import describe_value
from workbench.grading.endpoint_faults import advice_about_fault
from workbench.grading.grade import Issue, IssueKind, RunResult, StepGrade, reason_of
from workbench.grading.status import Status
from workbench.grading.traits import TRAITS
from workbench.suite.model import ANY_TOOL, Case, ExpectedCall, comparable_name, same_tool, tool_text
from workbench.suite.variants import model_of
from workbench.trajectory.trajectory import CallRecord, Trajectory

# Counts which tool was called where which one was expected.


def confusion_of(runs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> Confusion:
    """Count runs, each given as the tools that it was expected to call and those that it called, in order.

    The deciding grader does not matter: within a run equal tools are paired in any order, and the rest is paired in
    order, so that a tool called in place of another is paired with it."""
    fold = ConfusionFold()
    for expected, called in runs:
        fold.add(expected, called)
    return fold.found()


class ConfusionFold:
    """Counts as `confusion_of`, run by run."""

    def __init__(self) -> None:
        self._counts: Counter[Pair] = Counter()
        self._names: dict[str, str] = {}
        self._known: dict[str, str] = {}

    def add(self, expected: Sequence[str], called: Sequence[str]) -> None:
        """Add a run."""
        self._counts.update(_pairs([*map(self._canonical, expected)], [*map(self._canonical, called)]))

    def found(self) -> Confusion:
        """Return the counts so far."""
        return Confusion(self._counts)

    def _canonical(self, name: str) -> str:
        if name not in self._known:
            self._known[name] = self._names.setdefault(comparable_name(name), name)
        return self._known[name]


def _pairs(expected: Sequence[str], called: Sequence[str]) -> Iterator[Pair]:
    open_calls = Counter(called)
    left: list[str] = []
    for tool in expected:
        if open_calls[tool]:
            open_calls[tool] -= 1
            yield tool, tool
        else:
            left.append(tool)
    # Of equal calls the first ones are taken, so those that are left are the last.
    over: deque[str] = deque()
    for tool in reversed(called):
        if open_calls[tool]:
            open_calls[tool] -= 1
            over.appendleft(tool)
    for tool in left:
        yield tool, over.popleft() if over else None
    for tool in over:
        yield None, tool


# Finds the causes of failed runs.


def failures_of(runs: Iterable[tuple[RunResult, Case | None]]) -> Failures:
    """Find out why runs failed; each comes with the case that it was graded by, or with `None` if it does not count.

    The cost grows with runs and issues. Runs are consumed one by one."""
    failed: list[FailedRun] = []
    found = failure_numbers(runs, lambda *run: failed.append(FailedRun(run[0], run[1].small, run[2])))
    by_cause: dict[Cause, list[FailedRun]] = {}
    for run in failed:
        for cause in run.causes:
            by_cause.setdefault(cause, []).append(run)
    groups = tuple(CauseGroup(group.cause, tuple(by_cause[group.cause])) for group in found.groups)
    return Failures(found.graded, tuple(failed), groups, found.confusion)


def failure_numbers(
    runs: Iterable[tuple[RunResult, Case | None]],
    each: Callable[[int, RunResult, tuple[Symptom, ...]], object] = lambda *_: None,
) -> FailureNumbers:
    """Find out why runs failed, as `failures_of`, without keeping any; `each` is called with the failed ones."""
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
            for cause in dict.fromkeys(symptom.cause for symptom in symptoms):
                folds.setdefault(cause, CauseFold(cause)).add(index, result, symptoms)
        if case.expects_calls_or_none:
            called = [*result.called]
            confusion.add(_named(_tools_asked_for(result, case), called), called)
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
    "wrong argument": "wrong argument",
    "missing argument": "missing argument",
    "invalid argument": "invalid argument",
    "forbidden argument": "forbidden argument",
    "unexpected argument": "unexpected argument",
    "broken arguments": "broken JSON",
    "response": "content",
    "over calling": "over calling",
    "latency exceeded": "latency",
    "partial credit": "low score",
    "sent too much": "sent too much",
}
"""What issues are about. A quantity, which older grades have, counts what other issues name; used up rounds show in how
the run ended, and failed steps have issues of their own."""


def _tools_asked_for(result: RunResult, case: Case) -> list[str]:
    """Return the tools of the expected calls, except those of steps that a stopped chain never reached."""
    tools = [call.tool for call in case.expected_calls()]
    if not case.steps or not _stopped_at_a_step(result):
        return tools
    pairs = zip(case.steps, result.steps, strict=True)
    return [step.tool for step, grade in pairs if step.tool is not None and grade.status is not None]


def _named(expected: Sequence[str], called: Sequence[str]) -> list[str]:
    """Return the expected tools, with each `*` replaced by a called tool that no other expected call names."""
    named = [tool for tool in expected if tool != ANY_TOOL]
    left = list((Counter(called) - Counter(named)).elements())
    wildcards = len(expected) - len(named)
    return [*named, *left[:wildcards], *[tool_text(ANY_TOOL)] * (wildcards - len(left))]


def _stopped_at_a_step(result: RunResult) -> bool:
    """Return whether the run is of a chain that stopped at a failed step."""
    finish = result.trajectory.finish
    return bool(result.steps) and finish is not None and finish.reason == "step failed"


_UNMET: frozenset[IssueKind] = frozenset(
    {"wrong argument", "missing argument", "invalid argument", "unexpected argument", "partial credit"}
)


def _symptoms(result: RunResult, case: Case) -> tuple[Symptom, ...]:
    """Return the symptoms of a failed run, in the order of causes; never empty.

    One fact has one cause."""
    issues = result.grade.issues if result.grade is not None else ()
    if _stopped_at_a_step(result):
        # The whole chain also lacks what it never reached.
        issues = tuple(issue for step in result.steps for issue in step.issues)
    elif result.steps:
        issues = _issues_of_chain(issues, result.steps)
    if result.grade is not None and TRAITS[result.grade.grader].frees_other_arguments:
        # Where it costs nothing, it is no reason why the run failed.
        issues = tuple(issue for issue in issues if issue.kind != "unexpected argument")
    # A violation that fails nothing was corrected, or is only noted.
    issues = tuple(issue for issue in issues if issue.kind != "schema violation" or issue.decides)
    expected, calls = tuple(case.expected_calls()), result.trajectory.calls
    issues = tuple(dict.fromkeys(_without_consequences(issues, result.trajectory, calls)))
    found = []
    for issue in issues:
        if issue.kind in _CAUSE_OF:
            found.append(_symptom(issue, expected, calls))
    for alone in ("endpoint", "sent too much"):
        if only := [symptom for symptom in found if symptom.cause == alone]:
            return tuple(only)
    found = _without_given_up(result.trajectory, expected, _with_wrong_tools(found))
    if any(symptom.cause not in NEVER_ALONE | {"low score"} for symptom in found):
        found = [symptom for symptom in found if symptom.cause != "low score"]
    elif all(symptom.cause in NEVER_ALONE for symptom in found):
        found.append(Symptom("low score", reason_of(result.grade) if result.grade is not None else "not graded"))
    if model_of(result.model) == BASELINE:
        found = [replace(symptom, advice=FOR_BASELINE) for symptom in found]
    return tuple(sorted(found, key=lambda symptom: CAUSES.index(symptom.cause)))


def _without_consequences(
    issues: Sequence[Issue], trajectory: Trajectory, calls: Sequence[CallRecord]
) -> Iterator[Issue]:
    """Yield the issues without those that say the same of a call as another one, or of an end that came too early."""
    broken = set()
    for issue in issues:
        if issue.kind == "broken arguments":
            broken.add(issue.call)
    violated = set()
    for issue in issues:
        if issue.kind == "schema violation":
            violated.add((issue.call, _top(issue.argument)))
    ended = any(issue.kind in ("cut off", "refused") for issue in issues)
    cut_off = set()
    for round_ in trajectory.rounds:
        if round_.stop_reason == "truncated":
            cut_off.add(round_.number)
    for issue in issues:
        if issue.kind in _UNMET and issue.call is not None and issue.call in broken:
            continue
        if issue.kind in _UNMET and (issue.call, issue.argument) in violated:
            continue
        if ended and issue.kind in ("missing call", "response"):
            continue
        if issue.kind == "broken arguments" and issue.call is not None and calls[issue.call].round in cut_off:
            continue
        yield issue


def _top(place: str | None) -> str | None:
    """Return the top-level argument of a place: `to` for `to[0].name`."""
    if place is not None:
        return place.partition(".")[0].partition("[")[0]
    return None


def _issues_of_chain(whole: Sequence[Issue], steps: Sequence[StepGrade]) -> tuple[Issue, ...]:
    """Return the issues of the steps that failed, and those of the whole chain that concern none of their calls."""
    failed = []
    for step in steps:
        if step.status == Status.FAILED and step.issues:
            failed.append(step)
    own = tuple(issue for step in failed for issue in step.issues)
    calls = {issue.call for issue in own} | {step.call for step in failed}
    expected = {step.expected_call for step in failed}
    rest = (
        issue
        for issue in whole
        if (issue.call is None or issue.call not in calls)
        and (issue.expected_call is None or issue.expected_call not in expected)
    )
    return (*own, *rest)


def _symptom(issue: Issue, expected: Sequence[ExpectedCall], calls: Sequence[CallRecord]) -> Symptom:
    tool, meant = issue.tool, expected[issue.expected_call].tool if issue.expected_call is not None else None
    subject: Subject | None = None
    if issue.kind == "wrong tool" and meant is not None:
        subject = Subject(meant, instead=tool)
    elif tool is not None:
        # One tool is one subject, in the suite's spelling, however a provider changes its name.
        name = meant if meant is not None and same_tool(meant, tool) else tool
        subject = Subject(name, issue.argument)
    return Symptom(_CAUSE_OF[issue.kind], issue.why, subject, issue.expected, issue.got, _advice(issue, calls))


def _advice(issue: Issue, calls: Sequence[CallRecord]) -> str | None:
    """Return the advice on an issue that depends on more than its cause."""
    if issue.kind == "endpoint fault":
        return advice_about_fault(issue)
    if issue.kind == "cut off":
        return f"cut off {issue.why}"
    if issue.kind == "extra call" and issue.call is not None:
        call = calls[issue.call]
        again = any((each.tool, each.arguments) == (call.tool, call.arguments) for each in calls[: issue.call])
        return REPEATED if again else None
    return None


def _with_wrong_tools(found: Sequence[Symptom]) -> list[Symptom]:
    """Merge a missing call and an extra one of another tool into one wrong tool, as not every grader does.

    Where the called name is that of no tool, that alone is left."""
    unknown = set()
    for symptom in found:
        if symptom.cause == "unknown tool":
            unknown.add(_tool(symptom))
    reported = set()
    for symptom in found:
        if symptom.cause == "extra call":
            reported.add(_tool(symptom))
    reported |= {symptom.subject.instead for symptom in found if symptom.subject is not None}
    missing = [symptom for symptom in found if symptom.cause == "missing call"]
    extra = [symptom for symptom in found if symptom.cause == "extra call"]
    extra += [symptom for symptom in found if symptom.cause == "unknown tool" and _tool(symptom) not in reported]
    rest = []
    for symptom in found:
        if symptom.cause not in ("missing call", "extra call"):
            rest.append(symptom)
    for lacking in list(missing):
        other = next((call for call in extra if _tool(call) != _tool(lacking)), None)
        if other is None or lacking.subject is None:
            continue
        missing.remove(lacking)
        extra.remove(other)
        instead = Subject(lacking.subject.tool, instead=_tool(other))
        why = f"{lacking.subject.tool} was expected"
        rest.append(Symptom("wrong tool", why, instead, lacking.expected, other.got))
    named = (*rest, *missing, *(symptom for symptom in extra if _tool(symptom) not in unknown))
    return [each for each in named if each.subject is None or each.subject.instead not in unknown - {None}]


def _tool(symptom: Symptom) -> str | None:
    if symptom.subject is not None:
        return symptom.subject.tool
    return None


def _without_given_up(
    trajectory: Trajectory, expected: Sequence[ExpectedCall], found: Sequence[Symptom]
) -> list[Symptom]:
    """Return the symptoms of a run that ended too early, with that in place of what is missing for it."""
    how = _end(trajectory, calls_expected=bool(expected))
    if how is None or any(symptom.cause in ("cut off", "refused") for symptom in found):
        return list(found)
    answer = trajectory.final_answer
    lacking = [symptom for symptom in found if symptom.cause == "missing call"]
    rest = [symptom for symptom in found if symptom.cause != "missing call"]
    asked_back = ASKED_BACK if answer.rstrip().endswith(("?", "？")) else None
    advice = USED_UP if how == _USED_UP else asked_back
    if lacking:
        value = describe_value(answer) if answer else None
        given = (Symptom("gave up", how, each.subject, each.expected, value, advice) for each in lacking)
        return [*given, *(each for each in rest if answer or each.cause != "content")]
    if answer or not any(symptom.cause == "content" for symptom in found):
        return list(found)
    return [
        Symptom("gave up", how, None, "a final answer", advice=advice),
        *(each for each in found if each.cause != "content"),
    ]


_USED_UP = "the rounds were used up"


def _end(trajectory: Trajectory, *, calls_expected: bool) -> str | None:
    """Return how a run ended that may have ended too early; `None` for one that ended by itself."""
    reason = trajectory.finish.reason if trajectory.finish is not None else None
    # With a single round there are no others to be used up: a missing call was just not made.
    if reason == "rounds exhausted" and len(trajectory.rounds) > 1:
        return _USED_UP
    if calls_expected and not trajectory.calls:
        answered = any(round_.text for round_ in trajectory.rounds)
        if answered:
            return "answered without calling anything"
        return "neither called nor answered"
    if reason == "answered" and not trajectory.final_answer:
        return "ended without an answer"
    return None
