"""What became of a run as JSON, in the words of the JSON report, and back."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from workbench.grading.grade import ArgumentVerdict, CallPairing, Grade, Issue, RunResult, Status, StepGrade
from workbench.grading.judgements import Judgement
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.typed_json import reader_of


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run, without its trajectory; `error`, `grades`, `judgements` and `steps` as in `RunResult`.
    Older results have neither judgements nor steps."""

    status: Status
    error: str | None
    score: float | None
    grades: tuple[Grade, ...]
    judgements: tuple[Judgement, ...] = ()
    steps: tuple[StepGrade, ...] = ()


def outcome_of(result: RunResult) -> Outcome:
    """What became of a run."""
    return Outcome(result.status, result.error, result.score, result.grades, result.judgements, result.steps)


def outcome_to_json(outcome: Outcome) -> dict[str, JsonValue]:
    """All of it; infinite scores become the largest number."""
    return {field.name: _plain(getattr(outcome, field.name)) for field in fields(outcome)}


def outcome_from_json(data: Mapping[str, JsonValue]) -> Outcome:
    """Read what `outcome_to_json` wrote; raises ValueError when it is something else."""
    outcome: Outcome = reader_of(Outcome)(data)
    return outcome


_NAMED = (Grade, CallPairing, ArgumentVerdict, Issue, StepGrade)


def _plain(value: Any) -> JsonValue:
    if isinstance(value, float):
        return max(min(value, sys.float_info.max), -sys.float_info.max)
    if isinstance(value, _NAMED):
        return {name: _plain(item) for name, item in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return value  # type: ignore[no-any-return]
