"""Computes the settings of a case. Each setting comes from the case, else from its suite, else from the defaults."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal

from pydantic import BaseModel

from workbench.checks.check import with_parts
from workbench.checks.combined_kinds import Judged
from workbench.dataclasses import cached_by_identity, dataclass
from workbench.suite.frozen import values_of
from workbench.suite.grading_model import ComparedBy, ExtraCalls, GraderName, InvalidArguments, RepeatRule, WholeNumbers
from workbench.suite.model import Case, Suite

CONVERSATION_TIMEOUT_S = 600.0
"""Default time limit of a whole conversation. The other limits of a conversation apply to each turn."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run. In a conversation, all limits but `timeout_s` apply to each turn.

    Times are in milliseconds (`_ms`) and seconds (`_s`)."""

    max_rounds: int = 6
    max_tool_calls: int = 5
    max_latency_ms: float = 10_000
    timeout_s: float = 120


@dataclass(frozen=True, slots=True)
class CriticsOptions:
    """Options of the `critics` grader, with defaults filled in. `docs/graders.md` explains them."""

    tool_selection_weight: float = 1.0
    fail_on_tool_selection: bool = True
    fail_on_tool_call_quantity: bool = True
    arcade_compatible: bool = False
    weights: tuple[tuple[str, float | str], ...] = ()
    """Names of arguments with weights, for checks without their own weight."""


@dataclass(frozen=True, slots=True)
class AccuracyOptions:
    """Options of the `accuracy` grader, with defaults filled in. `docs/graders.md` explains them."""

    mode: str = "exact"
    name_only: float = 0.5
    extra_penalty: float = 0.25
    wrong_penalty: float = 0.25
    answer_checks: Literal["apart", "averaged"] = "apart"


@dataclass(frozen=True, slots=True)
class DimensionsOptions:
    """Options of the `dimensions` grader, with defaults filled in. `docs/graders.md` explains them."""

    latency: Literal["wall", "model"] = "wall"
    repeated_calls: Literal["as expected", "as published"] = "as expected"


# `weakref_slot` is for `cached_by_identity`.
@dataclass(frozen=True, slots=True, weakref_slot=True)
class Grading:
    """Grading options with defaults filled in: the deciding grader, thresholds (0..1), and options of all graders."""

    by: GraderName = "critics"
    fail_threshold: float = 0.8
    warn_threshold: float = 0.9
    repeat_rule: RepeatRule = "every"
    invalid_arguments: InvalidArguments = "fail"
    whole_numbers: WholeNumbers = "as JSON"
    """Whether 5.0 counts as the integer 5, as in JSON, or as a fraction, as in the checker of the BFCL leaderboard."""
    extra_calls: ExtraCalls | None = None
    """The allowed extra calls. `None` leaves them to the grader's own rule."""
    quarantined: bool = False
    """Whether the run is excluded from every gate, every aggregate and the exit code."""
    compare_by: ComparedBy = "status"
    """The subject of comparisons: statuses or scores."""
    published_report: bool = False
    """Whether reports show the output of the published system that the grader reproduces."""
    cluster: str | None = None
    """A name shared by related cases, for statistics over groups of cases."""
    critics: CriticsOptions = CriticsOptions()
    accuracy: AccuracyOptions = AccuracyOptions()
    dimensions: DimensionsOptions = DimensionsOptions()

    @property
    def shows_published(self) -> bool:
        """Whether text reports show, by default, the output of the published system that the grader reproduces."""
        return self.published_report or self.is_compatible

    @property
    def is_compatible(self) -> bool:
        """Whether the grader reproduces a published system exactly, including the defaults of that system."""
        return self.critics.arcade_compatible or self.dimensions.repeated_calls == "as published"


def limited_ms(grading: Grading, model_ms: float, loop_ms: float) -> float:
    """Return the time in milliseconds that `max_latency_ms` limits: the model's time or the whole loop's time."""
    if grading.by == "dimensions" and grading.dimensions.latency == "wall":
        return loop_ms
    return model_ms


@dataclass(frozen=True, slots=True)
class CaseSettings:
    """The settings of a run of a case, merged from the case and its suite."""

    system: str | None
    models: tuple[str, ...]
    execute: bool
    limits: Limits
    grading: Grading
    clock: str | None = None
    """The clock as written. `None` if models are not told the time."""


def settings_of(suite: Suite, case: Case) -> CaseSettings:
    """Return the settings of a case, merged with those of its suite.

    The result is cached as long as both arguments exist, so the same arguments return the same object."""
    return _settings_under(suite)(case)


def _merged_settings(suite_ref: weakref.ref[Suite], case: Case) -> CaseSettings:
    suite = suite_ref()
    assert suite is not None
    # Most cases write no such table. They share the suite's objects, which are created once.
    grading, limits = _grading(suite), _limits(suite)
    if case.grading.model_fields_set:
        grading = _grading_of(suite.grading, case.grading)
    if case.limits.model_fields_set:
        limits = _limits_of(suite.limits, case.limits)
    if case.conversation is not None and suite.limits.timeout_s is None and case.limits.timeout_s is None:
        limits = replace(limits, timeout_s=CONVERSATION_TIMEOUT_S)
    extra_calls = _extra_calls_in(suite, case)
    if grading.extra_calls != extra_calls:
        grading = replace(grading, extra_calls=extra_calls)
    if case.cluster is not None:
        grading = replace(grading, cluster=case.cluster)
    system, execute = case.system, case.execute
    if system is None:
        system = suite.system
    if execute is None:
        execute = suite.execute
    grading = _in_quarantine(suite, case, grading)
    return CaseSettings(system, models_of(suite, case), execute, limits, grading, case.clock or suite.clock)


def _extra_calls_in(suite: Suite, case: Case) -> ExtraCalls | None:
    if case.steps or case.expect_no_calls:
        return None
    own = case.extra_calls
    if own is None:
        own = case.grading.extra_calls
    # A suite's rule concerns calls beside expected calls. A case that expects no call needs its own rule.
    if own is None and (case.ordered or case.unordered or case.expects_in_turns):
        return suite.grading.extra_calls
    return own


def extra_calls_of(case: Case, grading: Grading) -> ExtraCalls | None:
    """Return the rule for extra calls of a case, or `None` if it has no rule.

    The result is also `None` for a chain, and for a case in which every call is wrong."""
    if case.steps or case.expect_no_calls:
        return None
    if case.extra_calls is None:
        return grading.extra_calls
    return case.extra_calls


_FREE: Final = "a further call is free"
_SURPLUS_RULES: dict[str, str] = {
    "critics": "a further call scores 0 for the run",
    "decision": "a further call adds an item of 0",
    "accuracy": "a further call costs a penalty",
    "trajectory": _FREE,
    "dimensions": "a further call of another tool costs precision",
}


def surplus_rule(grading: Grading, grader: str | None = None) -> str:
    """Return a grader's own rule for extra calls in words. `grader` defaults to the deciding grader."""
    by = grader or grading.by
    if by == "critics" and not grading.critics.fail_on_tool_call_quantity:
        return _FREE
    return _SURPLUS_RULES[by]


def surplus_calls_cost(grading: Grading) -> bool:
    """Return whether extra calls lower the score, although the suite may not intend it.

    This is so if the suite has no rule for extra calls and the grader's own rule gives them a cost. A suite that
    reproduces a published system intends the cost."""
    return grading.extra_calls is None and not grading.is_compatible and surplus_rule(grading) != _FREE


def models_of(suite: Suite, case: Case | None = None) -> tuple[str, ...]:
    """Return what a suite or one of its cases evaluates by default: the subject, or else the models."""
    if suite.subject is not None:
        return (suite.subject.name,)
    if case is not None and case.models is not None:
        return case.models
    return suite.models


def _in_quarantine(suite: Suite, case: Case, grading: Grading) -> Grading:
    named = suite.gate.quarantine
    if not named or not set(named).intersection((*suite.tags, *case.tags)):
        return grading
    return replace(grading, quarantined=True)


_limits: Callable[[Suite], Limits] = cached_by_identity(lambda suite: _limits_of(suite.limits))
_grading: Callable[[Suite], Grading] = cached_by_identity(lambda suite: _grading_of(suite.grading))
"""These two functions return the limits and the grading settings of cases without their own tables. Most cases write no
table."""


# The cache holds suites weakly. The function in an entry must not hold the suite strongly either, or the entry would
# stay for ever.
_settings_under: Callable[[Suite], Callable[[Case], CaseSettings]] = cached_by_identity(
    lambda suite: cached_by_identity(partial(_merged_settings, weakref.ref(suite)))
)


def _merged(*layers: BaseModel) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for layer in layers:
        _overlay(values, values_of(layer))
    return values


def _limits_of(*layers: BaseModel) -> Limits:
    values = _merged(*layers)
    values.pop("batch_cost_usd", None)  # a limit of the batch, not of a run
    return Limits(**values)


_OPTIONS_OF = {"critics": CriticsOptions, "accuracy": AccuracyOptions, "dimensions": DimensionsOptions}


def _grading_of(*layers: BaseModel) -> Grading:
    merged = _merged(*layers)
    for key, options in _OPTIONS_OF.items():
        if key in merged:
            values = merged[key]
            if "weights" in values:
                values["weights"] = tuple(values["weights"].items())
            merged[key] = options(**values)
    grading = Grading(**merged)
    if not grading.is_compatible:
        return grading
    # In a published system, invalid arguments are only noted, and the last of repeated runs decides.
    unlike = {key: value for key, value in _COMPATIBLE.items() if key not in merged}
    return replace(grading, **unlike)


_COMPATIBLE: dict[str, Any] = {"invalid_arguments": "note", "repeat_rule": "last"}
"""The defaults when a published system is reproduced."""


def _overlay(values: dict[str, Any], upper: dict[str, Any]) -> None:
    for key, value in upper.items():
        if isinstance(value, dict):
            _overlay(values.setdefault(key, {}), value)
        else:
            values[key] = value


def all_model_names(suite: Suite) -> tuple[str, ...]:
    """Return the distinct models that a suite, its cases and its variants name, in order.

    The subject is not included."""
    names: list[str] = []
    if suite.subject is None:
        names += suite.models
    for case in suite.cases:
        names += case.models or ()
    for variant in suite.variants:
        if variant.model is not None:
            names.append(variant.model)
    return tuple(dict.fromkeys(names))


USER_REVIEW: Final = Judged.model_construct(
    judged=(
        "The value holds the instructions of a simulated user, and a conversation of this user with an assistant. The "
        "criteria are met unless the user seriously broke its instructions: invented something that matters, asked for "
        "something else, withheld what it was asked for and may tell, or left before its goal was reached or refused."
    )
)
"""The check by which a judge reviews the user of a failed conversation."""


def _in_conditions(owner: Suite | Case) -> Iterator[Judged]:
    conditions = [mock.when or {} for mock in owner.mocks]
    conditions += [answer.when for answer in owner.answers]
    for when in conditions:
        for condition in when.values():
            for check in with_parts(condition):
                if isinstance(check, Judged):
                    yield check


_judged_in_conditions: Callable[[Suite | Case], tuple[Judged, ...]] = cached_by_identity(
    lambda where: tuple(_in_conditions(where))
)
"""Returns the judged checks in the conditions of mocks and answers."""


def judged_checks(suite: Suite, case: Case, *, mocks: bool = True) -> tuple[Judged, ...]:
    """Return the checks that a judge model may have to decide in a run of a case.

    These are the checks of the case, the review of its user, and, unless `mocks` is false, the checks in the conditions
    of mocks and answers."""
    found = case.judged_checks
    if case.conversation is not None and case.conversation.review == "failed":
        found += (USER_REVIEW,)
    if mocks and (case.mocks or case.answers):
        found += _judged_in_conditions(case)
    if mocks and (suite.mocks or suite.answers):
        found += _judged_in_conditions(suite)
    return found
