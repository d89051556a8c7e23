"""The results of graders: a score, a status, the pairing behind them and the issues to show.

A grade and its parts are named tuples, which are made in a quarter of a frozen data class's time: the grades of a small
run consist of about a hundred of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from workbench.checks.check import describe
from workbench.checks.combined_kinds import Judged
from workbench.checks.patterns import CheckError
from workbench.checks.values import canonical
from workbench.dataclasses import dataclass, escape_lone_surrogates
from workbench.grading.status import NOT_APPLICABLE, Status, Verdict, disagree
from workbench.numerals import range_text, setting_text
from workbench.suite.settings import Grading, limited_ms
from workbench.trajectory.events import JsonValue, Usage
from workbench.trajectory.trajectory import Trajectory

if TYPE_CHECKING:
    from workbench.checks.check import CheckVerdict

# Judgements of values by judges, and the cost of asking for them.


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judge's finding on one value.

    `model` is the judge's name in the suite or as chosen by the person, `value` is the value as `judged_value` writes
    it, `rationale` is one line. Where the judge rated the value, `number` is what it gave on the `scale` (low, high),
    and `holds` says whether that is enough."""

    model: str
    criteria: str
    value: str
    holds: bool
    rationale: str
    scale: tuple[float, float] | None = None
    number: float | None = None

    @property
    def verdict(self) -> CheckVerdict:
        """The judgement as the verdict of a check.

        A rating scores 0 at the low end of its scale and 1 at the high one."""
        # Imported here: `evaluate` imports what compares texts and dates, which code that only reads results does not
        # need.
        from workbench.checks.check import CheckVerdict

        reason = self.rationale.removesuffix(".")
        if self.scale is None or self.number is None:
            return CheckVerdict(1.0 if self.holds else 0.0, self.holds, reason)
        low, high = self.scale
        rated = f"{setting_text(self.number)} on {range_text(low, high)}: {reason}"
        return CheckVerdict((self.number - low) / (high - low), self.holds, rated, number=self.number)

    def by(self, check: Judged) -> Judgement:
        """Return the judgement with whether the number is enough for a check."""
        if self.number is None or check.at_least is None:
            return self
        return replace(self, holds=self.number >= check.at_least)


@dataclass(frozen=True, slots=True)
class JudgeUse:
    """The cost of asking judges, apart from that of the run: questions, tokens, and US dollars.

    Tokens and dollars are `None` if they are unknown."""

    asked: int = 0
    usage: Usage | None = None
    cost_usd: float | None = 0.0

    def __add__(self, other: JudgeUse) -> JudgeUse:
        usages = []
        for use in (self, other):
            if use.usage is not None:
                usages.append(use.usage)
        known = self.cost_usd is not None and other.cost_usd is not None
        cost = (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None
        return JudgeUse(self.asked + other.asked, sum(usages, Usage()) if usages else None, cost)


NOBODY_ASKED = JudgeUse()


def judged_value(value: JsonValue) -> str:
    """Return a value as judges see it: JSON on one line, keys sorted, texts in NFC.

    Equal values have one text.

    Raises ValueError or RecursionError for what JSON cannot express.
    """
    text = json.dumps(canonical(value), ensure_ascii=False, sort_keys=True, allow_nan=False)
    return escape_lone_surrogates(text)


class KnownJudgements:
    """Judgements by criteria, scale and value."""

    def __init__(self, judgements: Iterable[Judgement]) -> None:
        self._by_value: dict[tuple[str, tuple[float, float] | None, str], dict[str, Judgement]] = {}
        for judgement in judgements:
            asked = judgement.criteria, judgement.scale, judgement.value
            self._by_value.setdefault(asked, {}).setdefault(judgement.model, judgement)

    def of(self, check: Judged, value: str, chosen: str | None = None) -> Judgement | None:
        """Return the judgement of a value as `judged_value` writes it.

        The model that the check names comes first, then the one called `chosen`, then any model."""
        found = self._by_value.get((check.judged, check.scale, value), {})
        model = check.model or chosen
        judgement = found.get(model) if model is not None else next(iter(found.values()), None)
        if judgement is not None:
            return judgement.by(check)
        return None


def unjudged(check: Judged, why: str) -> CheckError:
    """Return the error of a check that has no judgement."""
    return CheckError(f"the check {describe(check)!r} cannot be judged: {why}")


class JudgementNeededError(Exception):
    """A judge must be asked about a value before the run can be graded.

    Raised by a `CheckContext.judge` that can be asked later.

    It is no CheckError, so that handlers that add context to one do not catch it.
    """

    def __init__(self, check: Judged, value: JsonValue) -> None:
        super().__init__(f"a judge has not been asked yet: {check.judged}")
        self.check = check
        self.value = value


WHY_NOT_GRADED = "expects nothing yet"
"""The reason why an `not graded` run is not graded."""

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
    "broken arguments",
    "schema violation",
    "tool error",
    "response",
    "latency exceeded",
    "over calling",
    "rounds exhausted",
    "failed step",
    "sent too much",
]


FIRST_KINDS: frozenset[IssueKind] = frozenset({"endpoint fault", "cut off", "refused"})
"""The issues that explain the others of their run, and so come first."""

ENDPOINT_FAULT = "endpoint fault: "
"""How the reason of a run begins that the endpoint failed."""

_NO_NUMBERS: Mapping[str, float] = MappingProxyType({})


class Issue(NamedTuple):
    """One thing that is wrong, shown where it belongs.

    `call` is the index (from 0) of the actual call in `Trajectory.calls`, `expected_call` of the expected call in
    `Case.expected_calls()`; either is `None` where there is none. `decides` marks an issue that alone makes the status
    failed. `expected` and `got` are short texts for a person; `why` is one line.
    """

    kind: IssueKind
    why: str
    tool: str | None = None
    call: int | None = None
    expected_call: int | None = None
    argument: str | None = None
    expected: str | None = None
    got: str | None = None
    decides: bool = False


class ArgumentVerdict(NamedTuple):
    """The result of one check for one argument of a paired call.

    `holds` is `None` when the argument was recorded but not judged. `score` is in 0..`weight` (unclamped with
    `arcade_compatible`); `counted` is false when the weight is left out of the denominator. An argument that the
    expected call does not list and that costs something is not `listed`: it has no weight, and a score of 0 or below.
    The run fails when a `required` argument does not hold, whatever the score is.
    """

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
    """An expected call and the actual call it was paired with, by index; either may have no partner.

    `prohibition` is the index in `Case.disallowed` where the line is about one; `expected_call` is then `None`.
    `outcome` is the result of the line under the grader's rule, in a few words ("exact", "right name only", "missing",
    "extra, counts twice"). `credit` is its contribution to the sum that the score is computed from, negative for a
    penalty. `parts` are the amounts that make up the credit, by their names in the grader's formula.
    """

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
    """A grade by the published rule alone, where the suite's `extra_calls` frees calls that count there.

    The fields are the first ones of `Grade`."""

    grader: str
    score: float | None
    verdict: Verdict
    reason: str
    pairings: tuple[CallPairing, ...] = ()
    issues: tuple[Issue, ...] = ()
    numbers: Mapping[str, float] = _NO_NUMBERS


class Grade(NamedTuple):
    """The result of one grader for one trajectory.

    `score` is `None` when the grader does not apply. `verdict` is the grader's own, by its rule and the score. `status`
    is that of the run when this grader decides, including requirements besides the score and failed steps of a chain.
    `numbers` are the quantities in the grader's formula, by name. `published` is the grade that the published system
    would give, where it differs because surplus calls are free.
    """

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
        """Whether an issue besides the score fails the run, so that no mean of scores can offset it."""
        if self.grader == "dimensions" and self._lacks_a_tool:
            return True
        scored = _SCORED.get(self.grader, frozenset())
        return any(issue.decides and issue.kind not in scored for issue in self.issues)

    @property
    def _lacks_a_tool(self) -> bool:
        lines = []
        for line in self.pairings:
            if line.expected_call is not None:
                lines.append(line)
        if lines:
            return any(line.call is None for line in lines)
        return self.numbers.get("recall", 1.0) < 1


_SCORED: Mapping[str, frozenset[IssueKind]] = {"trajectory": frozenset({"forbidden call", "extra call"})}
"""The deciding issues that lower the score of a grader, and so are not besides it."""


class StepGrade(NamedTuple):
    """One step of a chain, graded on its own by the deciding grader.

    Steps count from 1.

    `status` is `None` for a step that was never reached. `call` is the index in `Trajectory.calls` of the first call of
    its answer, the one that is graded; its issues use indices of the run too. `expected_call` is the index in
    `Case.expected_calls()` of the call it expects. `why` is one line.
    """

    step: int
    status: Status | None
    score: float | None
    why: str
    call: int | None = None
    issues: tuple[Issue, ...] = ()
    expected_call: int | None = None


class Metric(NamedTuple):
    """The value of one named check of the final answer, 0..1, and whether it holds.

    `number` is what the judge gave on its `scale` (low, high), if the check has one. `expected` and `why` are short
    texts for a person.

    Also the own score of the system that made an imported run: `about` then names what it scored.
    """

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
    """A place where a stored run holds `$NAME` instead of a secret, as far as a check may look there.

    `call` is the index of the call in `Trajectory.calls`, `argument` the name of a top-level argument. "names" are the
    names of a call's arguments. "schema" is that of an offered tool, which holds the defaults of arguments. "case" is
    what the run's case expects in the stored suite. "result" is that of a call, noted where a check sees it.
    """

    what: Literal["tool", "argument", "names", "answer", "schema", "case", "result"]
    call: int | None = None
    argument: str | None = None


class GradingError(Exception):
    """A case cannot be graded as its suite asks.

    The message names the key and what to write instead."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run and its grades.

    `repeat` counts from 0.

    `grades` is empty for a run that was not graded; the first one decides the status. `error` names the fault of the
    infrastructure, why the case was skipped, or why the run is not graded. `cost_usd` is the cost of the model's
    answers in US dollars, 0 where none was asked over a network, `None` where it is not known. `grading` holds the
    options of grading and of joining the case's repeats. `judgements` are those that were used, in grading and in the
    conditions of mocks; `judging` is the cost of asking for them, apart from the run's own tokens, cost and latency.
    """

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
    judging: JudgeUse = NOBODY_ASKED
    steps: tuple[StepGrade, ...] = ()
    """The steps of a graded chain, each on its own."""
    redacted: tuple[RedactedPlace, ...] = ()
    """For a stored run: the places a check may look at where secrets were removed."""
    not_regraded: str | None = None
    """Why a stored run keeps its original verdict although it should have been regraded."""
    metrics: tuple[Metric, ...] = ()
    """The values of the case's named checks of the final answer, in their order; empty for a run that was not
    graded."""
    valid_arguments: tuple[bool | None, ...] = ()
    """For each call whether its arguments are valid by its tool's own schema, `None` where no schema can tell; empty
    for a run that was not graded."""

    @property
    def grade(self) -> Grade | None:
        """The grade that decides."""
        return self.grades[0] if self.grades else None

    @property
    def passed(self) -> bool:
        """Whether it passed, with or without a warning."""
        return self.status.good

    @property
    def score(self) -> float | None:
        return self.grades[0].score if self.grades else None

    @property
    def reason(self) -> str | None:
        """Why the run did not pass, in one line.

        It is the issue that explains the others or fails the run whatever its score, else the deciding grader's reason.
        For a run that was not graded, it is its error."""
        if self.grade is None:
            return self.error
        if self.status == Status.PASSED:
            return None
        issues = sorted(self.grade.issues, key=lambda issue: issue.kind not in FIRST_KINDS)
        first = next((issue for issue in issues if issue.decides or issue.kind in FIRST_KINDS), None)
        if first is None:
            return self.grade.reason
        return _reason(first)

    @property
    def issues(self) -> tuple[Issue, ...]:
        """The issues of the grade that decides; empty for a run that was not graded."""
        return self.grades[0].issues if self.grades else ()

    @property
    def is_broken(self) -> bool:
        """Whether an issue besides the score failed it, so that no mean of scores can offset it."""
        return self.grade is not None and self.grade.is_broken

    # What follows from grades and trajectory and is asked of every run of a batch. A packed result knows it at once;
    # all else has to be unpacked.

    @property
    def grader(self) -> str | None:
        """The grader that decides."""
        return self.grades[0].grader if self.grades else None

    @property
    def verdict(self) -> Verdict | None:
        """The verdict of the grader that decides."""
        return self.grades[0].verdict if self.grades else None

    @property
    def graders_disagree(self) -> bool:
        """Whether one grader would let the run pass, or warn, and another would fail it."""
        return disagree(self.grades)

    @property
    def has_free_calls(self) -> bool:
        """Whether surplus calls are free that count under the published rule of the deciding grader."""
        return bool(self.grades) and self.grades[0].published is not None

    @property
    def called(self) -> tuple[str, ...]:
        """The tools that were called, in order."""
        return tuple([call.tool for call in self.trajectory.calls])

    @property
    def executions(self) -> int:
        """How many calls were really executed on a server."""
        return sum(call.server is not None for call in self.trajectory.calls)

    @property
    def retries(self) -> int:
        """The number of retried requests."""
        return self.trajectory.retries

    @property
    def is_fork(self) -> bool:
        """Whether the run was forked from another one."""
        return self.trajectory.fork is not None

    @property
    def has_notices(self) -> bool:
        """Whether something differed from the suite, or servers failed at the start."""
        start = self.trajectory.start
        return bool(self.trajectory.notices or (start is not None and start.server_outputs))

    @property
    def repaired(self) -> tuple[str, ...]:
        """The kinds of the endpoint's deviations that were repaired."""
        return tuple(dict.fromkeys([each.kind for each in self.trajectory.deviations]))

    @property
    def was_asked(self) -> bool:
        """Whether the run came as far as a request to the model."""
        return bool(self.trajectory.rounds)

    @property
    def usage(self) -> Usage | None:
        """The tokens of all answers of the model; `None` when no provider counted any."""
        return self.trajectory.usage

    @property
    def latency_ms(self) -> float:
        """The sum of the latencies of the model's answers."""
        return self.trajectory.model_latency_ms

    @property
    def loop_ms(self) -> float:
        """The whole agent loop by the wall clock."""
        return self.trajectory.loop_ms

    @property
    def limited_ms(self) -> float:
        """The time that `max_latency_ms` limits under the deciding grader, shown in tables as the run's latency."""
        return limited_ms(self.grading, self.latency_ms, self.loop_ms)

    @property
    def first_token_ms(self) -> float | None:
        """The time to the first token of the first answer."""
        return next((asked.first_token_ms for asked in self.trajectory.asked), None)

    @property
    def small(self) -> RunResult:
        """The run without its rounds, or packed: thousands may be kept."""
        return replace(self, trajectory=replace(self.trajectory, rounds=()))

    def with_status(self, status: Status) -> RunResult:
        """Return the run with another status."""
        return replace(self, status=status)


def _reason(issue: Issue) -> str:
    if issue.kind == "cut off":
        return f"{issue.kind} {issue.why}"
    where = f"{issue.tool}.{issue.argument}: " if issue.argument is not None else ""
    return f"{issue.kind}: {where}{issue.why}"


def reason_of(grade: Grade) -> str:
    """Return in one line why the run ends with its status under a grade.

    It is the grader's reason, or the issue that fails the run whatever its score."""
    deciding = [issue for issue in grade.issues if issue.decides]
    leading = next((issue for issue in grade.issues if issue.kind in FIRST_KINDS), None)
    if leading is not None and grade.status == Status.FAILED:
        return _reason(leading)
    if grade.verdict not in (Status.PASSED, Status.WARNED, NOT_APPLICABLE) or not deciding:
        return grade.reason
    first = deciding[0]
    about = ".".join(filter(None, (first.tool, first.argument))) or f"expected {first.expected}"
    if first.kind == "failed step":
        about = first.why
    others = f" and {len(deciding) - 1} more" if len(deciding) > 1 else ""
    what = f"{first.kind}: {about}{others}"
    if grade.verdict == NOT_APPLICABLE:
        return f"{what}; {grade.reason}"
    return what
