"""The facts of a run that a row of a table shows besides its summary, in a form that is read without the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from workbench.dataclasses import compact_json, parsed_json, reader_of
from workbench.grading.grade import Issue, RunResult
from workbench.trajectory.events import JsonValue

_MAX_CHARACTERS = 8_000
"""The maximum length of stored facts. The facts of a longer run are read from the run."""


class MadeCall(NamedTuple):
    """The tool and the arguments of a call of the model."""

    tool: str
    arguments: Mapping[str, JsonValue]


class RunFacts(NamedTuple):
    """Facts of a finished run, for a row of a table. `grader` decided, and `issues` are its issues.

    `duration_ms` excludes the time in which the run was held.
    """

    grader: str | None
    finish: str | None
    duration_ms: float
    touched: bool
    issues: tuple[Issue, ...]
    calls: tuple[MadeCall, ...]
    answer: str


def facts_text(result: RunResult) -> str:
    """Return the facts of a run as JSON, or an empty text if they are too long or a model played the user.

    Raises TypeError, ValueError or RecursionError for a value that JSON cannot express.
    """
    trajectory = result.trajectory
    if trajectory.user_turns:
        return ""
    issues = []
    for issue in result.issues:
        issues.append({name: value for name, value in issue._asdict().items() if value is not None})
    facts = RunFacts(
        grader=result.grader,
        finish=trajectory.finish_reason,
        duration_ms=trajectory.duration_ms,
        touched=trajectory.touched,
        issues=(),
        calls=(),
        answer=trajectory.final_answer,
    )
    calls = [MadeCall(call.tool, call.arguments)._asdict() for call in trajectory.calls]
    text = compact_json({**facts._asdict(), "issues": issues, "calls": calls})
    if len(text) > _MAX_CHARACTERS:
        return ""
    return text


def facts_from_text(text: str) -> RunFacts | None:
    """Return the facts that `facts_text` wrote. Raise ValueError for any other text."""
    if not text:
        return None
    facts: RunFacts = _READER(parsed_json(text))
    return facts


_READER = reader_of(RunFacts)
