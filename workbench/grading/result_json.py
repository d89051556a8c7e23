"""Converts the outcome of a run to JSON, with the keys of the JSON report, and back."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from types import NoneType
from typing import Any

from workbench.dataclasses import compact_json, dataclass, reader_of
from workbench.grading.grade import (
    ArgumentVerdict,
    CallPairing,
    Grade,
    Issue,
    Judgement,
    JudgeUse,
    Metric,
    PublishedGrade,
    RedactedPlace,
    RunResult,
    StepGrade,
)
from workbench.grading.status import Status
from workbench.suite.model import GRADERS
from workbench.trajectory.events import JsonValue


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run without its trajectory.

    `error`, `grades`, `judgements`, `steps` and `redacted` are as in `RunResult`. `latency_ms` is the sum of the
    model's answers, `loop_ms` the whole agent loop by the wall clock; both follow from the events. Older results lack
    judgements, steps, times, `redacted`, `metrics`, `valid_arguments` and `judging`."""

    status: Status
    error: str | None
    score: float | None
    grades: tuple[Grade, ...]
    judgements: tuple[Judgement, ...] = ()
    steps: tuple[StepGrade, ...] = ()
    latency_ms: float | None = None
    loop_ms: float | None = None
    redacted: tuple[RedactedPlace, ...] = ()
    metrics: tuple[Metric, ...] = ()
    valid_arguments: tuple[bool | None, ...] = ()
    judging: JudgeUse | None = None


def outcome_of(result: RunResult) -> Outcome:
    """Return the outcome of a run."""
    return Outcome(
        *(result.status, result.error, result.score, result.grades, result.judgements, result.steps),
        *(result.trajectory.model_latency_ms, result.trajectory.loop_ms, result.redacted, result.metrics),
        result.valid_arguments,
        result.judging if result.judging.asked else None,
    )


def outcome_to_json(outcome: Outcome) -> dict[str, JsonValue]:
    """Return an outcome as JSON, without the fields that are empty.

    These are `redacted`, `metrics`, `valid_arguments`, `judging`, and the number of a judgement. Infinite scores become
    the largest number."""
    return {name: _plain(getattr(outcome, name)) for name in _written(outcome)}


def _written(outcome: Outcome) -> list[str]:
    optional = ("redacted", "metrics", "valid_arguments", "judging")
    return [field.name for field in fields(outcome) if field.name not in optional or getattr(outcome, field.name)]


def outcome_pieces(outcome: Outcome) -> Iterator[str]:
    """Return the text of `outcome_to_json` in pieces, one grade at a time: each repeats the arguments of the calls."""
    for number, name in enumerate(_written(outcome)):
        value = getattr(outcome, name)
        yield f'{"," if number else "{"}"{name}":'
        if isinstance(value, tuple):
            yield "["
            for index, item in enumerate(value):
                yield "," * bool(index)
                yield _text_of(item)
            yield "]"
        else:
            yield compact_json(_plain(value))
    yield "}"


def _text_of(item: Any) -> str:
    """Return a part of an outcome as JSON text."""
    if type(item) in _NAMED:
        try:
            return compact_json(_by_names(item))
        except ValueError:  # a score is infinite
            pass
    return compact_json(_plain(item))


def _by_names(item: Any) -> dict[str, Any]:
    """Return a named tuple as a dictionary, and those in its fields too."""
    found: dict[str, Any] = item._asdict()
    for name in _HOLDERS[type(item)]:
        found[name] = list(map(_by_names, found[name]))
    if type(item) is Grade:
        published = found.pop("published")
        found |= {} if published is None else {"published": _by_names(published)}
    return found


def outcome_from_json(data: Mapping[str, JsonValue]) -> Outcome:
    """Read the output of `outcome_to_json`, infinite scores included.

    Raises ValueError for anything else."""
    outcome: Outcome = reader_of(Outcome)(data)
    for grade in outcome.grades:
        if grade.grader not in GRADERS:
            raise ValueError(f"a grade is by {grade.grader!r}, which is not one of {', '.join(GRADERS)}")
        both: list[Grade | PublishedGrade] = [grade] if grade.published is None else [grade, grade.published]
        parts = (pairing.parts for each in both for pairing in each.pairings)
        for quantities in (*(each.numbers for each in both), *parts):
            for name, value in quantities.items():
                try:
                    _NUMBER(value)
                except ValueError as error:
                    raise ValueError(f"the quantity {name!r} of the grade by {grade.grader} {error}") from None
    scales = [*(each.scale for each in outcome.judgements), *(each.scale for each in outcome.metrics)]
    for scale in scales:
        if scale is not None and not scale[0] < scale[1]:
            raise ValueError(f"a scale must rise, and {scale[0]} to {scale[1]} does not")
    scores = [grade.score for grade in outcome.grades] + [step.score for step in outcome.steps]
    if any(map(_is_infinite, (outcome.score, *scores))):
        return replace(
            outcome,
            score=_infinite(outcome.score),
            grades=tuple(grade._replace(score=_infinite(grade.score)) for grade in outcome.grades),
            steps=tuple(step._replace(score=_infinite(step.score)) for step in outcome.steps),
        )
    return outcome


def _is_infinite(score: float | None) -> bool:
    """Return whether a score was infinite before it was written."""
    return score is not None and abs(score) >= _MAX_NUMBER


def _infinite(score: float | None) -> float | None:
    if score is not None and _is_infinite(score):
        return math.copysign(math.inf, score)
    return score


_NAMED = frozenset({Grade, PublishedGrade, CallPairing, ArgumentVerdict, Issue, Metric, StepGrade, RedactedPlace})
_HOLDERS = {
    Grade: ("pairings", "issues"),
    PublishedGrade: ("pairings", "issues"),
    CallPairing: ("arguments",),
    StepGrade: ("issues",),
} | dict.fromkeys((ArgumentVerdict, Issue, Metric, RedactedPlace), ())
"""The fields of named tuples that hold others."""

_NUMBER = reader_of(float)
_AS_IT_IS = frozenset({str, int, bool, NoneType})
_MAX_NUMBER = sys.float_info.max


def _plain(value: Any) -> JsonValue:
    # Most values need no conversion, and every run has hundreds: those are not examined.
    if isinstance(value, float):
        if -_MAX_NUMBER <= value <= _MAX_NUMBER:
            return value
        return max(min(value, _MAX_NUMBER), -_MAX_NUMBER)
    if type(value) in _NAMED:
        return {
            name: item if type(item) in _AS_IT_IS else _plain(item)
            for name, item in zip(value._fields, value, strict=True)
            if name != "published" or item is not None
        }
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if is_dataclass(value):
        names = [field.name for field in fields(value)]
        if isinstance(value, Judgement) and value.scale is None:
            names = [name for name in names if name not in ("scale", "number")]
        return {name: _plain(getattr(value, name)) for name in names}
    return value.value if isinstance(value, Status) else value
