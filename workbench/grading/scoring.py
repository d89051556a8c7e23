"""Scores and verdicts: means, argument weights, thresholds, the counted score of a run, and checks of a call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Literal, Protocol, TypeVar

from workbench.checks.check import Check, CheckBase, CheckContext, Checks, EqualsRule, describe, evaluate, has_kind
from workbench.checks.combined_kinds import Judged
from workbench.checks.fields import NAMED_WEIGHTS, Weight
from workbench.checks.patterns import CheckError
from workbench.checks.value_kinds import Equals
from workbench.grading.grade import ArgumentVerdict
from workbench.grading.status import Status
from workbench.suite.settings import Grading
from workbench.trajectory.events import JsonValue

_Value = TypeVar("_Value")


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean, even if the sum overflows a float.

    Raises ZeroDivisionError for no values."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.fsum(value / len(values) for value in values)


def known_values(values: Iterable[_Value | None]) -> list[_Value]:
    """Return the values other than `None`, in order."""
    return [value for value in values if value is not None]


def is_required(check: CheckBase, *, without_weight: bool = False) -> bool:
    """Return whether the run fails if the check does not hold.

    The check's `required` decides. If it is not set, a check without a weight gives `without_weight`, and any other
    check gives False."""
    if check.required is not None:
        return check.required
    return without_weight and check.weight is None


def resolve_weights(weights: Sequence[Weight | None]) -> list[float]:
    """Return the weights of a call's arguments as numbers, in the same order.

    Numbers stay as they are and need not sum to 1. Arguments without a weight (`None`) share 1 equally. A weight may
    also be a name from `minimal` (1) to `critical` (7), as in Arcade's fuzzy weights. If any weight is a name, all
    weights are divided by their sum.

    >>> resolve_weights([None, None, 0.5])
    [0.5, 0.5, 0.5]"""
    unweighted = weights.count(None)
    raw: list[float] = []
    for weight in weights:
        if weight is None:
            raw.append(1 / unweighted)
        elif isinstance(weight, str):
            raw.append(float(NAMED_WEIGHTS[weight]))
        else:
            raw.append(float(weight))
    if not any(isinstance(weight, str) for weight in weights):
        return raw
    total = sum(raw)
    return [weight / total for weight in raw]


NO_OBJECT = "the arguments are not a JSON object"
"""The outcome of a call with broken arguments, which meets no expectation."""

ROUNDING_SLACK = 1e-9
"""The tolerance for reaching a threshold. Sums of shares such as 0.2 are inexact."""


def earned_share_text(score: float, weight: float) -> str:
    """Return the earned share of an argument's weight, such as `70%`. Return "" if all or nothing was earned.

    Partial credit is shown as 1% to 99%, so that it never reads as full or as no credit."""
    if not 0 < score < weight - ROUNDING_SLACK:
        return ""
    return f"{min(max(round(100 * score / weight), 1), 99)}%"


def verdict_of(
    score: float, grading: Grading, slack: float = ROUNDING_SLACK
) -> Literal[Status.PASSED, Status.WARNED, Status.FAILED]:
    """Return the verdict of a score.

    The score passes from the upper threshold on, is warned from the lower threshold on, and otherwise fails. A score
    may miss a threshold by `slack`."""
    # The thresholds may be written in either order. As documented for Arcade evals, a score between them is warned.
    # With the defaults of 0.8 and 0.9, Arcade's own code has no such range and never warns.
    lower, upper = grading.fail_threshold, grading.warn_threshold
    if lower > upper:
        lower, upper = upper, lower
    if score >= upper - slack:
        return Status.PASSED
    if score >= lower - slack:
        return Status.WARNED
    return Status.FAILED


class Scored(Protocol):
    """A run or a single grade, with the fields that determine its counted score."""

    @property
    def status(self) -> Status | None: ...
    @property
    def score(self) -> float | None: ...
    @property
    def is_broken(self) -> bool: ...


def counts_zero(run: Scored) -> bool:
    """Return whether a graded run counts as 0: it failed without a score, or for a reason other than its score."""
    return run.is_broken or (run.status == Status.FAILED and run.score is None)


def counted_score(run: Scored) -> float | None:
    """Return the score with which a graded run counts in gates, aggregates and baselines.

    Returns `None` for a run that has no score and did not fail."""
    return 0.0 if counts_zero(run) else run.score


# The checks of one expected call on the arguments of one actual call.


def judge_arguments(
    tool: str,
    checks: Checks,
    arguments: Mapping[str, JsonValue],
    *,
    equal: EqualsRule,
    context: CheckContext,
    shared: float = 0.0,
    same_tool: bool = True,
    all_or_nothing: bool = False,
) -> tuple[ArgumentVerdict, ...]:
    """Return one verdict for each check, in order. An omitted optional argument has no verdict.

    `shared` is divided equally among the checks. A check that holds earns its part, and there is no partial credit. A
    judge is asked only if `same_tool` is true. With `all_or_nothing`, a judge is asked only if all other checks hold,
    or if its check is required.

    Raises CheckError with tool and argument if a check cannot be evaluated."""
    # This function is not for `critics`, which gives partial credit and evaluates its own checks.
    listed = checks
    if not checks.keys() <= arguments.keys():
        listed = {}
        for name, check in checks.items():
            if name in arguments or not check.optional:
                listed[name] = check
    weight = shared / len(listed) if listed else 0.0
    verdicts: dict[str, ArgumentVerdict] = {}
    judged = set()
    for name, check in listed.items():
        if type(check) is not Equals and has_kind(check, Judged):
            judged.add(name)
    # Judges cost money and time. They are asked last, and only if the other checks have not decided yet.
    wrong = bool(judged) and not arguments.keys() <= checks.keys()
    in_turn: Iterable[tuple[str, Check]] = listed.items()
    if judged and all_or_nothing:
        in_turn = sorted(in_turn, key=lambda each: each[0] in judged)
    for name, check in in_turn:
        value, given = arguments.get(name), name in arguments
        holds: bool | None
        if name in judged and not same_tool:
            holds, why = False, "not judged, because another tool was called"
        elif name in judged and given and all_or_nothing and wrong and not check.required:
            holds, why = None, "not judged, because the call is already wrong"
        else:
            try:
                verdict = evaluate(check, value, given, equal=equal, context=context)
            except CheckError as error:
                raise CheckError(f"{tool}.{name}: {error}") from error
            holds, why = verdict.holds, verdict.note
            wrong = wrong or not holds
        score = weight if holds else 0.0
        required = is_required(check)
        verdicts[name] = ArgumentVerdict(
            name, holds, score, weight, describe(check), value, given, why, required=required
        )
    if judged:
        return tuple([verdicts[name] for name in listed])
    return tuple(verdicts.values())


def unlisted_arguments(
    listed: Set[str], arguments: Mapping[str, JsonValue], cost: float = 0.0
) -> tuple[ArgumentVerdict, ...]:
    """Return a verdict with the score `-cost` for each given argument that is not listed."""
    if arguments.keys() <= listed:
        return ()
    verdicts = []
    for name, value in arguments.items():
        if name not in listed:
            verdicts.append(
                ArgumentVerdict(name, False, -cost, 0.0, "not expected", value, True, "not expected", listed=False)
            )
    return tuple(verdicts)
