"""The results of graders: score, status, pairings and issues.

A grade and its parts are named tuples because creating one takes a quarter of the time of a frozen data class. The
grades of a small run consist of about a hundred of them."""

from __future__ import annotations

import copyreg
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from workbench.checks.check import describe, with_because
from workbench.checks.combined_kinds import Judged
from workbench.checks.patterns import CheckError
from workbench.checks.values import canonical, cut_text, describe_value
from workbench.dataclasses import dataclass, escape_lone_surrogates
from workbench.grading.status import NOT_APPLICABLE, Status, Verdict, graders_disagree
from workbench.numerals import range_text, setting_text
from workbench.suite.settings import Grading, limited_ms
from workbench.trajectory.events import JsonValue, Usage
from workbench.trajectory.trajectory import Trajectory, tools_of

if TYPE_CHECKING:
    from workbench.checks.check import CheckVerdict

# Judgements of values, and the cost of asking judges for them.


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judge's finding on one value.

    `model` is the judge's name, as the suite or the user gave it. `value` is the value as `judged_value` writes it.
    `rationale` is one line. A rating has a `scale` (low, high) and a `number` on this scale. `holds` says whether the
    value meets the criteria or the number is high enough."""

    model: str
    criteria: str
    value: str
    holds: bool
    rationale: str
    scale: tuple[float, float] | None = None
    number: float | None = None

    @property
    def verdict(self) -> CheckVerdict:
        """The judgement as a verdict. A rating scores from 0 (low end of the scale) to 1 (high end)."""
        # Lazy import: the module also loads the comparison of texts and dates. Readers of results do not need it.
        from workbench.checks.check import CheckVerdict

        reason = self.rationale.removesuffix(".")
        if self.scale is None or self.number is None:
            return CheckVerdict(float(self.holds), self.holds, reason)
        low, high = self.scale
        rated = f"{setting_text(self.number)} on {range_text(low, high)}: {reason}"
        return CheckVerdict((self.number - low) / (high - low), self.holds, rated, number=self.number)

    def by(self, check: Judged) -> Judgement:
        """Return the judgement under the conditions of a check.

        If the check rates a value, its `at_least` decides `holds`."""
        # Checks with the same scale share one rating, but each check has its own minimum.
        if self.number is None or check.at_least is None:
            return self
        return replace(self, holds=self.number >= check.at_least)


@dataclass(frozen=True, slots=True)
class JudgeUsage:
    """The use of judges: questions, tokens and US dollars. The usage of the run itself does not include it.

    `usage` and `cost_usd` are `None` if they are unknown."""

    asked: int = 0
    usage: Usage | None = None
    cost_usd: float | None = 0.0

    def __add__(self, other: JudgeUsage) -> JudgeUsage:
        usage = self.usage
        if usage is None:
            usage = other.usage
        elif other.usage is not None:
            usage += other.usage
        # A sum with an unknown cost is unknown: a lower bound would look like the cost.
        cost = None
        if self.cost_usd is not None and other.cost_usd is not None:
            cost = self.cost_usd + other.cost_usd
        return JudgeUsage(self.asked + other.asked, usage, cost)


NO_JUDGE_USAGE = JudgeUsage()


def judged_value(value: JsonValue) -> str:
    """Return a value as text for judges: JSON on one line, keys sorted, in NFC. Equal values have equal texts.

    Raises ValueError for NaN and infinity, and RecursionError for deeply nested values."""
    text = json.dumps(canonical(value), ensure_ascii=False, sort_keys=True, allow_nan=False)
    return escape_lone_surrogates(text)


class KnownJudgements:
    """A collection of judgements, found by criteria, scale and value."""

    def __init__(self, judgements: Iterable[Judgement]) -> None:
        self._by_value: dict[tuple[str, tuple[float, float] | None, str], dict[str, Judgement]] = {}
        for judgement in judgements:
            asked = judgement.criteria, judgement.scale, judgement.value
            self._by_value.setdefault(asked, {}).setdefault(judgement.model, judgement)

    def of(self, check: Judged, value: str, chosen: str | None = None) -> Judgement | None:
        """Return the judgement of a value, or `None` if there is none. `value` is the text from `judged_value`.

        The judgement must come from the model that the check names, or else from the model `chosen`. If both are
        `None`, any model's judgement is returned."""
        found = self._by_value.get((check.judged, check.scale, value), {})
        model = check.model or chosen
        judgement = found.get(model) if model is not None else next(iter(found.values()), None)
        if judgement is None:
            return None
        return judgement.by(check)


def unjudged_error(check: Judged, reason: str) -> CheckError:
    return CheckError(f"the check {describe(check)!r} cannot be judged: {reason}")


class JudgementNeededError(Exception):
    """A judge must be asked about a value before the run can be graded.

    A `CheckContext.judge` that only collects the questions of a run raises this error, so that they can be asked later.
    """

    # This is no CheckError: handlers catch a CheckError to add context, and must not catch this error.

    def __init__(self, check: Judged, value: JsonValue) -> None:
        super().__init__(f"a judge has not been asked yet: {check.judged}")
        self.check = check
        self.value = value


NOT_GRADED_REASON = "expects nothing yet"
"""The reason of a run with the status `not graded`."""

IssueKind = Literal[
    "endpoint fault",
    "cut off",
    "refused",
    "unknown tool",
    "wrong tool",
    "missing call",
    "extra call",
    "quantity",  # only in older recordings: now reported as missing or extra calls
    "wrong argument",
    "missing argument",
    "partial credit",
    "invalid argument",
    "forbidden argument",
    "unexpected argument",
    "forbidden call",
    "wrong order",
    "wrong result",
    "too many calls",
    "duplicate call",
    "not parallel",
    "broken arguments",
    "schema violation",
    "tool error",
    "response",
    "latency exceeded",
    "over budget",
    "over calling",
    "rounds exhausted",
    "missing change",
    "wrong change",
    "unexpected change",
    "not said",
    "final goal",
    "final state",
    "failed step",
    "failed turn",
    "turns exhausted",
    "user gave up",
    "never asked",
    "sent too much",
]


EXPLAINING_KINDS: frozenset[IssueKind] = frozenset({"endpoint fault", "cut off", "refused"})
"""The kinds of issues that explain the other issues of a run. They are shown first."""

ENDPOINT_FAULT = "endpoint fault: "
"""The prefix of a failed run's reason if the endpoint was at fault."""

_NO_NUMBERS: Mapping[str, float] = MappingProxyType({})


def _read_only(content: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(content)


# Python can neither pickle nor copy such a mapping by itself, and users pickle and copy results.
copyreg.pickle(MappingProxyType, lambda mapping: (_read_only, (dict(mapping),)))


class Issue(NamedTuple):
    """A fault in a run, with the call, expected call and argument concerned.

    `call` is the index (from 0) of the actual call in `Trajectory.calls`. `expected_call` is the index of the expected
    call in `Case.expected_calls()`. Either is `None` if there is no such call. `decides` marks an issue that alone
    makes the status failed. `expected` and `got` are short texts for screens. `why` is one line. `because` is the
    suite's own reason for the expectation, if any."""

    kind: IssueKind
    why: str
    tool: str | None = None
    call: int | None = None
    expected_call: int | None = None
    argument: str | None = None
    expected: str | None = None
    got: str | None = None
    decides: bool = False
    because: str | None = None

    @property
    def reason(self) -> str:
        """The fault in words, with the suite's own reason if any: `not equal; because: amounts are in cents`."""
        return with_because(self.why, self.because)


class ArgumentVerdict(NamedTuple):
    """The result of one check for one argument of a paired call.

    `expected` is the check in words, `got` is the value, and `why` is the reason for the result. `holds` is `None` if
    the argument was recorded and not judged. `score` is in 0..`weight`, or unclamped with `arcade_compatible`.
    `counted` is false if the weight does not count in the score's denominator. `listed` is false for an argument that
    was given although the expected call does not list it. The weight of such an argument is 0, and its score is 0 or
    below. The run fails if a `required` argument does not hold, regardless of the score."""

    argument: str
    holds: bool | None
    score: float
    weight: float
    expected: str
    got: JsonValue
    given: bool
    why: str
    counted: bool = True
    listed: bool = True
    required: bool = False


class CallPairing(NamedTuple):
    """An expected call and an actual call that a grader compares, by index. Either may be missing.

    If the pairing is about a prohibition, `prohibition` is an index in `Case.disallowed` and `expected_call` is `None`.
    If no call broke the prohibition, `call` is `None` too. Under `critics`, the tool earns `tool_score` of at most
    `tool_weight`. `outcome` describes the pairing under the grader's rule in a few words ("exact", "right name only",
    "missing", "extra, counts twice"). `credit` is the contribution to the sum behind the score, negative for a penalty.
    `parts` are the amounts in the credit, by their names in the grader's formula."""

    expected_call: int | None
    call: int | None
    same_tool: bool
    tool_score: float
    tool_weight: float
    arguments: tuple[ArgumentVerdict, ...] = ()
    credit: float = 0.0
    outcome: str = ""
    prohibition: int | None = None
    parts: Mapping[str, float] = _NO_NUMBERS


class PublishedGrade(NamedTuple):
    """The grade of a run by the published system's rules alone, without the suite's rule for extra calls.

    A `Grade` keeps it if the two grades differ. The fields are the first fields of `Grade`."""

    grader: str
    score: float | None
    verdict: Verdict
    reason: str
    pairings: tuple[CallPairing, ...] = ()
    issues: tuple[Issue, ...] = ()
    numbers: Mapping[str, float] = _NO_NUMBERS


class Grade(NamedTuple):
    """The result of one grader for one trajectory.

    `score` is `None` if the grader does not apply. `verdict` follows from the score by the grader's own rule. `status`
    is the status of the run if this grader decides. It also depends on the requirements besides the score, and on the
    steps of a chain. `numbers` are the quantities in the grader's formula, by name. `published` is the grade by the
    published system's rules, if the suite's rule for extra calls makes a difference."""

    grader: str
    score: float | None
    verdict: Verdict
    reason: str
    pairings: tuple[CallPairing, ...] = ()
    issues: tuple[Issue, ...] = ()
    numbers: Mapping[str, float] = _NO_NUMBERS
    status: Status | None = None
    published: PublishedGrade | None = None

    @property
    def is_broken(self) -> bool:
        """Whether the run fails for a reason other than its score. No mean of scores can offset such a failure."""
        # `dimensions` fails a run without an expected tool, regardless of the score.
        if self.grader == "dimensions" and self._lacks_a_tool:
            return True
        scored = _SCORED.get(self.grader, frozenset())
        return any(issue.decides and issue.kind not in scored for issue in self.issues)

    @property
    def expected_pairings(self) -> list[CallPairing]:
        """The pairings that have an expected call, with or without an actual call."""
        return [line for line in self.pairings if line.expected_call is not None]

    @property
    def deciding_issues(self) -> list[Issue]:
        """The issues that fail the run regardless of its score."""
        return [issue for issue in self.issues if issue.decides]

    @property
    def _lacks_a_tool(self) -> bool:
        lines = self.expected_pairings
        if lines:
            return any(line.call is None for line in lines)
        return self.numbers.get("recall", 1.0) < 1


_SCORED: Mapping[str, frozenset[IssueKind]] = {"trajectory": frozenset({"forbidden call", "extra call"})}
"""The kinds of deciding issues that already lower a grader's score."""


class StepGrade(NamedTuple):
    """The grade of one step of a chain by the deciding grader. `step` counts from 1.

    `status` is `None` for a step that was never reached. The graded call is the first call of the step's answer. `call`
    is its index in `Trajectory.calls`. The indices in `issues` refer to the whole run too. `expected_call` is the index
    of the step's expected call in `Case.expected_calls()`. `why` is one line."""

    step: int
    status: Status | None
    score: float | None
    why: str
    call: int | None = None
    issues: tuple[Issue, ...] = ()
    expected_call: int | None = None

    @property
    def calls(self) -> set[int | None]:
        """The indices of the step's own call and of the calls in its issues."""
        return {self.call, *calls_of(self.issues)}


def calls_of(issues: Iterable[Issue]) -> set[int | None]:
    """Return the indices of the calls in some issues. An issue without a call adds `None`."""
    return {issue.call for issue in issues}


class Metric(NamedTuple):
    """The value of one named check of the final answer, 0..1, and whether the check holds.

    `number` is the judge's rating on the check's `scale` (low, high), if the check has one. `expected` and `why` are
    short texts for screens. A run that was imported from another system can also have scores of that system as metrics.
    `about` is the subject of such a score."""

    name: str
    value: float
    holds: bool
    number: float | None = None
    scale: tuple[float, float] | None = None
    expected: str = ""
    why: str = ""
    about: str | None = None


_DEFAULTS = Grading()


class RedactedPlace(NamedTuple):
    """A place in a stored run where `$NAME` replaces a secret that a check may read.

    `call` is the index of the call in `Trajectory.calls`. `argument` is the name of a top-level argument. `what` is the
    kind of the redacted text:

    - "tool": the name of the called tool
    - "argument": the value of an argument
    - "names": the names of a call's arguments
    - "answer": the final answer
    - "schema": the schema of an offered tool, including defaults of arguments
    - "case": the expectations in the stored suite
    - "result": the result of a call
    - "state": the state that a tool reported for `final`"""

    what: Literal["tool", "argument", "names", "answer", "schema", "case", "result", "state"]
    call: int | None = None
    argument: str | None = None


class GradingError(Exception):
    """A case cannot be graded as its suite requires. The message names the key of the suite to change, and how."""


class UserFaultError(GradingError):
    """The simulated user of a conversation made the run unusable. The message begins with `SIMULATED_USER`."""


UserOutcome = Literal["gave up", "error"]
"""An unplanned end of a conversation: the user gave up, or invalidated the run."""

SIMULATED_USER = "the simulated user"
"""The beginning of the error of a run that the simulated user invalidated."""


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """An agent's name and version, the treatment of its own tools (`builtin`), and the counts of ungraded activity.

    `not_forwarded` counts calls of offered tools that the agent did not forward. `refused` counts refused permissions.
    `own_calls` counts calls of the agent's own tools."""

    name: str
    version: str
    builtin: str
    not_forwarded: int
    refused: int
    own_calls: int

    @property
    def title(self) -> str:
        """The name and version of the agent."""
        return f"{self.name} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run and its grades.

    `repeat` counts from 0. `grades` is empty for a run that was not graded. The first grade decides the status. `error`
    names the fault of the infrastructure, the reason why the case was skipped, or the reason why the run is not graded.
    `cost_usd` is the cost of the model's answers in US dollars. It is 0 for a model that needs no network, and `None`
    if it is unknown. `grading` holds the options for grading the run and for combining the repeats of the case.
    `judgements` were used in grading and in the conditions of mocks. `judging` is the cost of these judgements. The
    tokens, cost and latency of the run do not include it."""

    run_id: str
    suite: str
    case_id: str
    case_name: str
    model: str
    repeat: int
    status: Status
    trajectory: Trajectory
    grades: tuple[Grade, ...] = ()
    error: str | None = None
    cost_usd: float | None = None
    grading: Grading = _DEFAULTS
    judgements: tuple[Judgement, ...] = ()
    judging: JudgeUsage = NO_JUDGE_USAGE
    steps: tuple[StepGrade, ...] = ()
    """The grades of the steps of a chain, each step graded separately."""
    redacted: tuple[RedactedPlace, ...] = ()
    """For a stored run: the redacted places that a check may read."""
    not_regraded: str | None = None
    """The reason why a stored run keeps its original verdict although it should have been regraded."""
    metrics: tuple[Metric, ...] = ()
    """The values of the case's named checks of the final answer, in the order of the case.

    There are none for a run that was not graded."""
    valid_arguments: tuple[bool | None, ...] = ()
    """Whether the arguments of each call are valid by the tool's schema, or `None` without a usable schema.

    Empty for a run that was not graded."""

    def __repr__(self) -> str:
        return f"RunResult({self.case_id!r}, model={self.model!r}, status={self.status.value!r}, score={self.score})"

    @property
    def is_user_error(self) -> bool:
        """Whether the simulated user of a conversation caused the error, not the model or the infrastructure."""
        if self.status != Status.ERROR:
            return False
        return (self.error or "").startswith(SIMULATED_USER) or self.trajectory.finish_reason == "user error"

    @property
    def user_outcome(self) -> UserOutcome | None:
        """The way in which the user of a conversation ended the run early, or `None` if the user did not end it."""
        if self.is_user_error:
            return "error"
        return "gave up" if self.trajectory.finish_reason == "user gave up" else None

    @property
    def grade(self) -> Grade | None:
        """The grade of the deciding grader, or `None` for a run that was not graded."""
        if self.grades:
            return self.grades[0]
        return None

    @property
    def has_redacted_calls(self) -> bool:
        """Whether the calls or results of a stored run contain `$NAME` in place of secrets."""
        return any(place.call is not None for place in self.redacted)

    @property
    def passed(self) -> bool:
        """Whether the run passed, with or without a warning."""
        return self.status.good

    @property
    def score(self) -> float | None:
        """The score by the deciding grader, or `None` if the run was not graded or the grader does not apply."""
        if self.grades:
            return self.grades[0].score
        return None

    @property
    def reason(self) -> str | None:
        """The reason why the run did not pass, in one line, or `None` if it passed.

        The reason is the first issue that explains other issues or that fails the run regardless of its score. Without
        such an issue, it is the deciding grader's reason. For an ungraded run, it is the error."""
        if self.grade is None:
            return self.error
        if self.status == Status.PASSED:
            return None
        issues = sorted(self.grade.issues, key=lambda issue: issue.kind not in EXPLAINING_KINDS)
        for issue in issues:
            if issue.decides or issue.kind in EXPLAINING_KINDS:
                return _reason(issue)
        return self.grade.reason

    @property
    def issues(self) -> tuple[Issue, ...]:
        """The issues of the deciding grade. A run that was not graded has none."""
        if self.grades:
            return self.grades[0].issues
        return ()

    @property
    def is_broken(self) -> bool:
        """Whether the run failed for a reason other than its score. No mean of scores can offset such a failure."""
        return self.grade is not None and self.grade.is_broken

    # The properties from here to `first_token_ms` are read for every run of a batch. `grading.packed` stores their
    # values uncompressed.

    @property
    def user_cost_usd(self) -> float | None:
        """The cost of the model that played the user, in US dollars, or `None` if it is unknown.

        It is 0 if no model played a user."""
        return self.trajectory.user_cost_usd

    @property
    def user_usage(self) -> Usage | None:
        """The tokens of the model that played the user, or `None` if no model did or the tokens are unknown."""
        return self.trajectory.user_usage

    @property
    def grader(self) -> str | None:
        """The name of the deciding grader, or `None` if the run was not graded."""
        if self.grades:
            return self.grades[0].grader
        return None

    @property
    def verdict(self) -> Verdict | None:
        """The verdict of the deciding grader, or `None` if the run was not graded."""
        if self.grades:
            return self.grades[0].verdict
        return None

    @property
    def graders_disagree(self) -> bool:
        """Whether one grader fails the run and another grader passes or warns it."""
        return graders_disagree(self.grades)

    @property
    def has_free_calls(self) -> bool:
        """Whether extra calls of the run are free although the grader's published rule counts them."""
        return bool(self.grades) and self.grades[0].published is not None

    @property
    def called(self) -> tuple[str, ...]:
        """The name of the called tool of each call, in order."""
        return tools_of(self.trajectory.calls)

    @property
    def executions(self) -> int:
        """The number of calls that a server executed. The other calls were mocked."""
        return sum(call.server is not None for call in self.trajectory.calls)

    @property
    def retries(self) -> int:
        """The number of retried requests."""
        return self.trajectory.retries

    @property
    def is_fork(self) -> bool:
        """Whether the run was forked from another run."""
        return self.trajectory.fork is not None

    @property
    def has_notices(self) -> bool:
        """Whether the run has notices, such as a difference from its suite, or the output of a failed server."""
        start = self.trajectory.start
        return bool(self.trajectory.notices or (start is not None and start.server_outputs))

    @property
    def repaired(self) -> tuple[str, ...]:
        """The kinds of deviations in the endpoint's answers that Workbench repaired."""
        return tuple(dict.fromkeys([each.kind for each in self.trajectory.deviations]))

    @property
    def agent(self) -> AgentFacts | None:
        """The agent that ran the case and its ungraded activity, or `None` for a model."""
        started = self.trajectory.agent
        if started is None:
            return None
        kinds = Counter[str]()
        own = 0
        for round_ in self.trajectory.rounds:
            kinds.update([note.kind for note in round_.notes])
            own += len(round_.not_offered)
        return AgentFacts(
            started.name, started.version, started.builtin, kinds["not forwarded"], kinds["permission"], own
        )

    @property
    def was_asked(self) -> bool:
        """Whether the model received at least one request."""
        return bool(self.trajectory.rounds)

    @property
    def usage(self) -> Usage | None:
        """The tokens of all answers of the model, or `None` if the provider reported none."""
        return self.trajectory.usage

    @property
    def latency_ms(self) -> float:
        """The sum of the latencies of the model's answers, in milliseconds."""
        return self.trajectory.model_latency_ms

    @property
    def loop_ms(self) -> float:
        """The duration of the whole agent loop by the wall clock, in milliseconds."""
        return self.trajectory.loop_ms

    @property
    def limited_ms(self) -> float:
        """The time that `max_latency_ms` limits under the deciding grader, in milliseconds.

        Tables show it as latency."""
        return limited_ms(self.grading, self.latency_ms, self.loop_ms)

    @property
    def first_token_ms(self) -> float | None:
        """The time to the first token of the first answer, in milliseconds, or `None` if it is unknown."""
        return next((asked.first_token_ms for asked in self.trajectory.requested_rounds), None)

    @property
    def small(self) -> RunResult:
        """The run in a form that takes little memory, without its rounds or with compressed fields."""
        return replace(self, trajectory=replace(self.trajectory, rounds=()))

    def with_status(self, status: Status) -> RunResult:
        return replace(self, status=status)


def by_run_id(results: Iterable[RunResult]) -> dict[str, RunResult]:
    """Return results by the ids of their runs."""
    return {result.run_id: result for result in results}


def call_text(tool: str, arguments: Mapping[str, JsonValue]) -> str:
    """Return a call in one line: `set_lights(room="bedroom", brightness=20)`."""
    given = ", ".join(f"{name}={describe_value(value)}" for name, value in arguments.items())
    return cut_text(f"{tool}({given})")


def _reason(issue: Issue) -> str:
    if issue.kind == "cut off":
        return f"{issue.kind} {issue.why}"
    where = f"{issue.tool}.{issue.argument}: " if issue.argument is not None else ""
    return f"{issue.kind}: {where}{issue.reason}"


def reason_of(grade: Grade) -> str:
    """Return the reason for the status that a grade gives a run, in one line.

    This is the grader's reason, or an issue that fails the run regardless of its score."""
    deciding = grade.deciding_issues
    leading = next((issue for issue in grade.issues if issue.kind in EXPLAINING_KINDS), None)
    if leading is not None and grade.status == Status.FAILED:
        return _reason(leading)
    if grade.verdict not in (Status.PASSED, Status.WARNED, NOT_APPLICABLE) or not deciding:
        return grade.reason
    first = deciding[0]
    about = ".".join(filter(None, (first.tool, first.argument))) or f"expected {first.expected}"
    if first.kind in ("failed step", "failed turn", "turns exhausted"):
        about = first.why
    reason = f"{first.kind}: {about}"
    if len(deciding) > 1:
        reason += f" and {len(deciding) - 1} more"
    if grade.verdict == NOT_APPLICABLE:
        reason += f"; {grade.reason}"
    return reason
