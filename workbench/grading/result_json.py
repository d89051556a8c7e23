"""The outcome of a run as JSON, with the keys of the JSON report: functions to write and read it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from types import NoneType
from typing import Any, get_type_hints

from workbench.dataclasses import compact_json, dataclass, reader_of
from workbench.grading.grade import (
    ArgumentVerdict,
    CallPairing,
    Grade,
    Issue,
    Judgement,
    JudgeUsage,
    Metric,
    PublishedGrade,
    RedactedPlace,
    RunResult,
    StepGrade,
)
from workbench.grading.status import Status
from workbench.json_writer import JsonField, JsonWriter, Write
from workbench.suite.grading_model import GRADERS
from workbench.trajectory.events import JsonValue


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run without its trajectory.

    The fields are those of `RunResult`. `judging` is `None` if no judge was asked. The times are `None` in results of
    versions that did not write them."""

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
    judging: JudgeUsage | None = None


def outcome_of(result: RunResult) -> Outcome:
    return Outcome(
        status=result.status,
        error=result.error,
        score=result.score,
        grades=result.grades,
        judgements=result.judgements,
        steps=result.steps,
        latency_ms=result.trajectory.model_latency_ms,
        loop_ms=result.trajectory.loop_ms,
        redacted=result.redacted,
        metrics=result.metrics,
        valid_arguments=result.valid_arguments,
        judging=result.judging if result.judging.asked else None,
    )


def outcome_to_json(outcome: Outcome) -> dict[str, JsonValue]:
    """Return an outcome as JSON.

    `redacted`, `metrics`, `valid_arguments` and `judging` are left out if they are empty. `scale` and `number` of a
    judgement are left out if it is not a rating. An infinite score becomes the largest number because JSON has no
    infinity."""
    return {name: _plain(getattr(outcome, name)) for name in _written(outcome)}


def _written(outcome: Outcome) -> list[str]:
    return [field.name for field in fields(outcome) if field.name not in _OPTIONAL or getattr(outcome, field.name)]


def outcome_pieces(outcome: Outcome, events_size: int = 0) -> Iterator[str]:
    """Yield the JSON text of an outcome, in one piece for a short run, otherwise one grade at a time.

    Lone surrogates may be unescaped.

    A run is short if it has few calls and its events have few characters. `events_size` is the number of these
    characters, or 0 if it is unknown.

    Raises TypeError, ValueError or RecursionError for a value that JSON cannot express."""
    if events_size <= _SHORT_EVENTS and sum(len(grade.pairings) for grade in outcome.grades) <= _SHORT:
        yield _short_text(outcome)
        return
    # Each grade repeats the arguments of all calls, so the five grades of a long run would take much memory as a single
    # text.
    separator = "{"
    for name in _written(outcome):
        value = getattr(outcome, name)
        yield f'{separator}"{name}":'
        separator = ","
        if isinstance(value, tuple):
            yield "["
            for index, item in enumerate(value):
                yield "," * bool(index)
                yield compact_json(_plain(item))
            yield "]"
        else:
            yield compact_json(_plain(value))
    yield "}"


def _short_text(outcome: Outcome) -> str:
    try:
        return _writer()(outcome)
    except (TypeError, ValueError, AttributeError):
        # A caller's own grades may have values of other types, which JSON can still express.
        return compact_json(outcome_to_json(outcome))


@cache
def _writer() -> Write:
    return JsonWriter(_json_fields, _is_record, _number).of(Outcome)


def _is_record(hint: Any) -> bool:
    return hint in _NAMED or is_dataclass(hint)


def _number(number: float) -> str:
    return compact_json(_plain(number))


def _json_fields(cls: Any, _kind: type) -> list[JsonField]:
    found = []
    for name, hint in get_type_hints(cls, include_extras=True).items():
        absent = "value is None" if name in _RARE else ""
        if cls is Outcome and name in _OPTIONAL:
            absent = "not value"
        elif cls is Judgement and name in ("scale", "number"):
            absent = "source.scale is None"
        found.append(JsonField(name, hint, f"source.{name}", absent))
    return found


def outcome_from_json(data: Mapping[str, JsonValue]) -> Outcome:
    """Return the outcome that `outcome_to_json` wrote. Infinite scores are restored.

    Raises ValueError for any other JSON."""
    outcome: Outcome = reader_of(Outcome)(data)
    for grade in outcome.grades:
        if grade.grader not in GRADERS:
            raise ValueError(f"a grade is by {grade.grader!r}, which is not one of {', '.join(GRADERS)}")
        _check_quantities(grade, grade.grader)
        if grade.published is not None:
            _check_quantities(grade.published, grade.grader)
    rated: list[Judgement | Metric] = [*outcome.judgements, *outcome.metrics]
    for each in rated:
        scale = each.scale
        if scale is not None and not scale[0] < scale[1]:
            raise ValueError(f"a scale must be [low, high] with low < high, not [{scale[0]}, {scale[1]}]")
    scored: list[Outcome | Grade | StepGrade] = [outcome, *outcome.grades, *outcome.steps]
    if not any(_is_infinite(each.score) for each in scored):
        return outcome
    grades = [grade._replace(score=_infinite(grade.score)) for grade in outcome.grades]
    steps = [step._replace(score=_infinite(step.score)) for step in outcome.steps]
    return replace(outcome, score=_infinite(outcome.score), grades=tuple(grades), steps=tuple(steps))


def _check_quantities(grade: Grade | PublishedGrade, grader: str) -> None:
    for quantities in (grade.numbers, *[pairing.parts for pairing in grade.pairings]):
        for name, value in quantities.items():
            if type(value) is float and -_MAX_NUMBER <= value <= _MAX_NUMBER:
                continue
            try:
                _NUMBER(value)
            except ValueError as error:
                raise ValueError(f"the quantity {name!r} of the grade by {grader} {error}") from None


def _is_infinite(score: float | None) -> bool:
    return score is not None and abs(score) >= _MAX_NUMBER


def _infinite(score: float | None) -> float | None:
    if score is not None and _is_infinite(score):
        return math.copysign(math.inf, score)
    return score


_NAMED = frozenset({Grade, PublishedGrade, CallPairing, ArgumentVerdict, Issue, Metric, StepGrade, RedactedPlace})
_OPTIONAL = ("redacted", "metrics", "valid_arguments", "judging")
"""The fields of an outcome that are left out if they are empty."""

_RARE = ("published", "because")
"""The fields of named tuples that are left out if they are `None`."""

_SHORT = 500
"""The most pairings of a run whose outcome is written as a whole."""

_SHORT_EVENTS = 1 << 18
"""The most characters of the events of a run whose outcome is written as a whole."""

_NUMBER = reader_of(float)
_AS_IT_IS = frozenset({str, int, bool, NoneType})
_MAX_NUMBER = sys.float_info.max


def _plain(value: Any) -> JsonValue:
    if isinstance(value, float):
        if -_MAX_NUMBER <= value <= _MAX_NUMBER:
            return value
        return max(min(value, _MAX_NUMBER), -_MAX_NUMBER)
    if type(value) in _NAMED:
        named = {}
        for name, item in zip(value._fields, value, strict=True):
            # The check is inline: most of the hundreds of values in a run need no conversion, and function calls would
            # take most of the time.
            if type(item) in _AS_IT_IS:
                named[name] = item
            else:
                named[name] = _plain(item)
        for rare in _RARE:
            if named.get(rare, "") is None:
                del named[rare]
        return named
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if is_dataclass(value):
        plain = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        if isinstance(value, Judgement) and value.scale is None:
            del plain["scale"], plain["number"]
        return plain
    return value.value if isinstance(value, Status) else value
