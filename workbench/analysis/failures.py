"""The causes for which runs fail, and what to do about each: in the tool's description, its schema or the prompt."""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Literal, get_args

from workbench.checks.values import describe_value
from workbench.dataclasses import dataclass
from workbench.grading.endpoint_faults import advice_about_fault
from workbench.grading.grade import Issue, IssueKind, RunResult, StepGrade, reason_of
from workbench.grading.status import Status
from workbench.grading.traits import TRAITS
from workbench.suite.model import ANY_TOOL, Case, ExpectedCall, comparable_name, same_tool, tool_text
from workbench.suite.variants import model_of
from workbench.trajectory.trajectory import CallRecord, Trajectory

Cause = Literal[
    "endpoint",
    "sent too much",
    "cut off",
    "refused",
    "unknown tool",
    "broken JSON",
    "gave up",
    "forbidden call",
    "wrong tool",
    "missing call",
    "extra call",
    "wrong order",
    "schema violation",
    "missing argument",
    "wrong argument",
    "invalid argument",
    "forbidden argument",
    "unexpected argument",
    "content",
    "low score",
    "over calling",
    "latency",
]

CAUSES: tuple[Cause, ...] = get_args(Cause)
"""All causes in the order in which they are shown. A run's main cause is its first one: earlier causes tend to entail
later ones, as a call with broken arguments has no right ones either."""

NEVER_ALONE: frozenset[Cause] = frozenset({"over calling", "latency"})
"""Recorded for failed runs, but never a reason to fail: the main cause of such a run is another one."""

ABOUT_TOOLS: frozenset[Cause] = frozenset(
    {"unknown tool", "gave up", "forbidden call", "wrong tool", "missing call", "extra call"}
)
"""The causes for which the confusion table is useful."""


@dataclass(frozen=True)
class Advice:
    """What a cause means, and what to do about it in one sentence; `{where}` is what it concerns most. Where what was
    seen of a run asks for something else, its symptoms say so (`Symptom.advice`)."""

    meaning: str
    first: str


ADVICE: Mapping[Cause, Advice] = {
    "endpoint": Advice(
        "The endpoint failed, not the model: it lost or spoiled what was sent, or what the model answered.",
        "mend the endpoint that serves the model, or use another one",
    ),
    "sent too much": Advice(
        "An answer was longer than any suite needs, so the rest of it was not read.",
        "limit the model's output tokens in its parameters",
    ),
    "cut off": Advice(
        "An answer reached the limit on output tokens, so the rest of it is missing.",
        "raise `max_tokens` in the model's parameters",
    ),
    "refused": Advice(
        "The model, or a content filter of its endpoint, refused to answer.",
        "say in the system prompt why such requests are legitimate, or use an endpoint whose filter allows them",
    ),
    "unknown tool": Advice(
        "A call had a name that no offered tool has.",
        "say in the system prompt that only the offered tools exist, or offer one named {where}",
    ),
    "broken JSON": Advice(
        "The arguments of a call were not a JSON object, so the tool received none.",
        "make the schema of {where} flatter, with fewer and shorter free texts",
    ),
    "gave up": Advice(
        "The run ended before everything was there: it answered in words without calling anything, said nothing, or"
        " went on calling until the rounds were used up.",
        "say in the system prompt that requests like these should be handled with tools such as {where}",
    ),
    "forbidden call": Advice(
        "A call was made that the case disallows.",
        "say in the description of {where} when it must not be called, and what to do instead",
    ),
    "wrong tool": Advice(
        "Another tool was called than the one that was expected.",
        "tell {where} apart: say in both descriptions when to use which",
    ),
    "missing call": Advice(
        "A call that was expected was never made.",
        "say in the description of {where} for which requests it is meant, in the words that users use",
    ),
    "extra call": Advice(
        "More was called than was expected.", "say in the description of {where} when it is not needed"
    ),
    "wrong order": Advice(
        "The calls were made, but not in the sequence in which they were expected.",
        "say in the description of {where} what has to be called before it",
    ),
    "schema violation": Advice(
        "The tool's own schema refuses the arguments of a call.",
        "describe {where} as its schema demands it, with an example of a valid value",
    ),
    "missing argument": Advice(
        "An argument that was expected was left out.",
        "make {where} required in the schema, or describe when it is to be given",
    ),
    "wrong argument": Advice(
        "An argument has another value than expected.",
        "describe the values of {where} with an example, or list them as enum in the schema",
    ),
    "invalid argument": Advice(
        "An optional argument was given with a value that it must not have.",
        "say in the schema of {where} which values are allowed, and that it may be left out",
    ),
    "forbidden argument": Advice(
        "An argument was given that must not be.",
        "say in the description of {where} when it must not be given",
    ),
    "unexpected argument": Advice(
        "A call has arguments, and none were expected.",
        "say in the description of {where} that it is to be left out unless the user asks for it",
    ),
    "content": Advice(
        "The final answer does not say what it should.",
        "say in the system prompt what an answer must contain",
    ),
    "low score": Advice(
        "Nothing is plainly wrong, but too little was earned: values that are only near what was expected, or a rule"
        " of the grader.",
        "look at the grades: what {where} earned, and how the score came about",
    ),
    "over calling": Advice(
        "More calls were made than the limit allows. This is noted, and fails no run by itself.",
        "say in the system prompt when to stop, or raise max_tool_calls",
    ),
    "latency": Advice(
        "The run took longer than its budget. This is noted, and fails no run by itself.",
        "offer fewer tools and shorter descriptions, choose a faster model, or raise max_latency_ms",
    ),
}

BASELINE = "offline"
"""The offline model, which is no language model."""

FOR_BASELINE = "this baseline matches words: choose a model with m"
"""What to do about failures of the offline model, which no description can teach."""

ASKED_BACK = "put what the answer asks for into the request, or name a tool that finds it out"
USED_UP = "let the answers of the tools say that a call worked, or raise max_rounds"
REPEATED = "let the answer of {where} say that it worked: the same call was made again"
"""What to do where more is known than the cause."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a failure concerns, as far as known: a tool, one of its parameters, the tool that was called `instead`."""

    tool: str
    argument: str | None = None
    instead: str | None = None

    def __str__(self) -> str:
        if self.instead is not None:
            return f"{self.tool}, but {self.instead} was called"
        return self.tool if self.argument is None else f"{self.tool}.{self.argument}"


def advice_about(advice: str, cause: Cause, subject: Subject | None) -> str:
    """Return an advice in one line, about what is concerned most."""
    if subject is None:
        where = _NOWHERE.get(cause, "the tool")
    else:
        where = str(subject) if subject.instead is None else f"{subject.tool} and {subject.instead}"
    # Not by `format`: a model may have invented a name with braces.
    return advice.replace("{where}", where)


_NOWHERE: Mapping[Cause, str] = {
    "gave up": "those of the case",
    "wrong tool": "the tools",
    "low score": "each argument",
    "unknown tool": "as the call",
}


# Counts which tool was called where which one was expected, over many runs.

Pair = tuple[str | None, str | None]
"""The expected tool (`None`: no call was expected) and the called one (`None`: no call was made)."""


@dataclass(frozen=True)
class Confusion:
    """How often each pair occurred."""

    counts: Mapping[Pair, int]

    @cached_property
    def mixed_up(self) -> list[tuple[Pair, int]]:
        """The pairs that differ where a call was expected, the most frequent first."""
        off = [(pair, count) for pair, count in self.counts.items() if pair[0] is not None and pair[0] != pair[1]]
        return sorted(off, key=lambda entry: (-entry[1], entry[0][0] or "", entry[0][1] or ""))

    @cached_property
    def _tools(self) -> list[str]:
        """All tools, the most confused ones first."""
        off: Counter[str] = Counter()
        for (expected, called), count in self.counts.items():
            for tool in (expected, called):
                if tool is not None:
                    off[tool] += count if expected != called else 0
        return sorted(off, key=lambda tool: (-off[tool], tool))

    @cached_property
    def rows(self) -> list[str | None]:
        """The expected tools; `None`, where there is such a row, means calls that were not expected."""
        there = {expected for expected, _ in self.counts}
        return [tool for tool in (*self._tools, None) if tool in there]

    @cached_property
    def columns(self) -> list[str | None]:
        """The called tools; `None`, where there is such a column, means no call, and comes first."""
        there = {called for _, called in self.counts}
        return [tool for tool in (None, *self._tools) if tool in there]

    @property
    def without_sure_ones(self) -> Confusion:
        """Returns the table without the tools that were called exactly where they were expected."""
        unsure = {tool for pair in self.counts if pair[0] != pair[1] for tool in pair}
        return Confusion({pair: count for pair, count in self.counts.items() if unsure.intersection(pair)})


def confusion_of(runs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> Confusion:
    """Count runs, each given as the tools that it was expected to call and those that it called, in order. The deciding
    grader does not matter: within a run equal tools are paired in any order, and the rest is paired in order, so that a
    tool called in place of another is paired with it."""
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
        """Returns the counts so far."""
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


@dataclass(frozen=True, slots=True)
class Symptom:
    """One thing that went wrong in a run. `expected` and `got` are short texts, `why` is one line; `advice` replaces
    that of the cause, where what was seen asks for another."""

    cause: Cause
    why: str
    subject: Subject | None = None
    expected: str | None = None
    got: str | None = None
    advice: str | None = None

    @property
    def to_do(self) -> str:
        """What to do about it, with `{where}` for what it concerns."""
        return self.advice or ADVICE[self.cause].first

    @property
    def remark(self) -> str:
        """What `why` says beyond the subject: nothing, where that names both the tool expected and the one called."""
        return "" if self.subject is not None and self.subject.instead is not None else self.why


@dataclass(frozen=True)
class FailedRun:
    """A failed run, its number among all runs (from 0), and what went wrong, in the order of causes. The `result` is
    without its rounds, or packed, because thousands may have failed."""

    index: int
    result: RunResult
    symptoms: tuple[Symptom, ...]

    @property
    def main(self) -> Cause:
        """The cause that the others probably follow from."""
        return self.symptoms[0].cause

    @property
    def advice(self) -> str:
        """What to do about the main cause, in one line."""
        first = self.symptoms[0]
        return advice_about(first.to_do, first.cause, first.subject)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """All causes, each once; the first is the main one."""
        return tuple(dict.fromkeys(symptom.cause for symptom in self.symptoms))

    def symptoms_of(self, cause: Cause) -> list[Symptom]:
        """Returns what went wrong for this cause."""
        return [symptom for symptom in self.symptoms if symptom.cause == cause]


@dataclass(frozen=True)
class CauseGroup:
    """The failed runs that have a cause, as their main one or not."""

    cause: Cause
    runs: tuple[FailedRun, ...]

    @cached_property
    def numbers(self) -> CauseNumbers:
        """The same in numbers."""
        fold = _CauseFold(self.cause)
        for run in self.runs:
            fold.add(run.index, run.result, run.symptoms)
        return fold.numbers()

    @property
    def main(self) -> int:
        """For how many of the runs this is the main cause."""
        return sum(run.main == self.cause for run in self.runs)

    @property
    def cases(self) -> int:
        """How many cases the runs belong to, whatever the model."""
        return len({(run.result.suite, run.result.case_id) for run in self.runs})

    @cached_property
    def subjects(self) -> tuple[tuple[Subject, int], ...]:
        """The tools and parameters concerned, each with its frequency, the most frequent first."""
        return self.numbers.subjects

    @property
    def advice(self) -> str:
        """What to do, in one line."""
        return self.numbers.advice


@dataclass(frozen=True)
class CauseNumbers:
    """The failed runs that have a cause: their numbers among all runs, of those of which it is the main one too, how
    many cases they belong to, whatever the model, and the tools and parameters concerned, the most frequent first."""

    cause: Cause
    indices: Sequence[int]
    main_indices: Sequence[int]
    cases: int
    subjects: tuple[tuple[Subject, int], ...]
    to_do: str
    """What to do about what was seen most often, with `{where}` for `about`."""
    about: Subject | None

    @property
    def advice(self) -> str:
        """What to do, in one line."""
        return advice_about(self.to_do, self.cause, self.about)


class _CauseFold:
    def __init__(self, cause: Cause) -> None:
        self._cause = cause
        self._indices, self._main = array("L"), array("L")
        self._cases: set[tuple[str, str]] = set()
        self._seen: Counter[tuple[str, Subject | None]] = Counter()

    def add(self, index: int, result: RunResult, symptoms: Sequence[Symptom]) -> None:
        self._indices.append(index)
        if symptoms[0].cause == self._cause:
            self._main.append(index)
        self._cases.add((result.suite, result.case_id))
        mine = (symptom for symptom in symptoms if symptom.cause == self._cause)
        self._seen.update((symptom.to_do, symptom.subject) for symptom in mine)

    def numbers(self) -> CauseNumbers:
        often: Counter[str] = Counter()
        for (to_do, _), count in self._seen.items():
            often[to_do] += count
        # What is said of the baseline does not help those with a model.
        to_do = min(often, key=lambda text: (text == FOR_BASELINE, -often[text], text))
        about = _most_frequent((subject, count) for (text, subject), count in self._seen.items() if text == to_do)
        subjects = _most_frequent((subject, count) for (_, subject), count in self._seen.items())
        first = about[0][0] if about else None
        return CauseNumbers(self._cause, self._indices, self._main, len(self._cases), subjects, to_do, first)


def _most_frequent(counts: Iterable[tuple[Subject | None, int]]) -> tuple[tuple[Subject, int], ...]:
    found: Counter[Subject] = Counter()
    for subject, count in counts:
        if subject is not None:
            found[subject] += count
    return tuple(sorted(found.items(), key=lambda entry: (-entry[1], str(entry[0]))))


@dataclass(frozen=True)
class FailureNumbers:
    """The failed runs by cause, in numbers: some bytes for each. Otherwise as `Failures`."""

    graded: int
    failed: int
    groups: tuple[CauseNumbers, ...]
    confusion: Confusion


@dataclass(frozen=True)
class Failures:
    """The failed runs by cause, with causes in their fixed order. The confusion table covers all graded runs of cases
    that expect calls, or none."""

    graded: int
    runs: tuple[FailedRun, ...]
    groups: tuple[CauseGroup, ...]
    confusion: Confusion

    @cached_property
    def numbers(self) -> FailureNumbers:
        """The same in numbers."""
        return FailureNumbers(
            self.graded, len(self.runs), tuple(group.numbers for group in self.groups), self.confusion
        )


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
    folds: dict[Cause, _CauseFold] = {}
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
                folds.setdefault(cause, _CauseFold(cause)).add(index, result, symptoms)
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
    """Returns the tools of the expected calls, except those of steps that a stopped chain never reached."""
    tools = [call.tool for call in case.expected_calls()]
    if not case.steps or not _stopped_at_a_step(result):
        return tools
    pairs = zip(case.steps, result.steps, strict=True)
    return [step.tool for step, grade in pairs if step.tool is not None and grade.status is not None]


def _named(expected: Sequence[str], called: Sequence[str]) -> list[str]:
    """Returns the expected tools, with each `*` replaced by a called tool that no other expected call names."""
    named = [tool for tool in expected if tool != ANY_TOOL]
    left = list((Counter(called) - Counter(named)).elements())
    wildcards = len(expected) - len(named)
    return [*named, *left[:wildcards], *[tool_text(ANY_TOOL)] * (wildcards - len(left))]


def _stopped_at_a_step(result: RunResult) -> bool:
    """Returns whether the run is of a chain that stopped at a failed step."""
    finish = result.trajectory.finish
    return bool(result.steps) and finish is not None and finish.reason == "step failed"


_UNMET: frozenset[IssueKind] = frozenset(
    {"wrong argument", "missing argument", "invalid argument", "unexpected argument", "partial credit"}
)


def _symptoms(result: RunResult, case: Case) -> tuple[Symptom, ...]:
    """Return what went wrong in a failed run, in the order of causes; never empty. One fact has one cause."""
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
    found = [_symptom(issue, expected, calls) for issue in issues if issue.kind in _CAUSE_OF]
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
    broken = {issue.call for issue in issues if issue.kind == "broken arguments"}
    violated = {(issue.call, _top(issue.argument)) for issue in issues if issue.kind == "schema violation"}
    ended = any(issue.kind in ("cut off", "refused") for issue in issues)
    cut_off = {round_.number for round_ in trajectory.rounds if round_.stop_reason == "truncated"}
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
    return place.partition(".")[0].partition("[")[0] if place is not None else None


def _issues_of_chain(whole: Sequence[Issue], steps: Sequence[StepGrade]) -> tuple[Issue, ...]:
    """Returns the issues of the steps that failed, and those of the whole chain that concern none of their calls."""
    failed = [step for step in steps if step.status == Status.FAILED and step.issues]
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
    """Return what to do about an issue of which more is known than its cause."""
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
    """Merge a missing call and an extra one of another tool into one wrong tool, as not every grader does. Where the
    called name is that of no tool, that alone is left."""
    unknown = {_tool(symptom) for symptom in found if symptom.cause == "unknown tool"}
    reported = {_tool(symptom) for symptom in found if symptom.cause == "extra call"}
    reported |= {symptom.subject.instead for symptom in found if symptom.subject is not None}
    missing = [symptom for symptom in found if symptom.cause == "missing call"]
    extra = [symptom for symptom in found if symptom.cause == "extra call"]
    extra += [symptom for symptom in found if symptom.cause == "unknown tool" and _tool(symptom) not in reported]
    rest = [symptom for symptom in found if symptom.cause not in ("missing call", "extra call")]
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
    return symptom.subject.tool if symptom.subject is not None else None


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
        return "answered without calling anything" if answered else "neither called nor answered"
    if reason == "answered" and not trajectory.final_answer:
        return "ended without an answer"
    return None
