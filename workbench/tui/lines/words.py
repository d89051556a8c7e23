"""Numbers and facts in words: durations, scores, counts, as every pane writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from workbench.config.read_only import is_read_only
from workbench.grading.grade import RunResult, StepGrade
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.suite.problems import Problem
from workbench.trajectory.events import JsonValue


def unless_read_only(hint: str) -> str:
    """Return a hint at a key that runs or changes something; in a read-only view, where it is refused, nothing."""
    return "" if is_read_only() else hint


def at_line(problem: Problem, word: str) -> str:
    """Describe a problem with its line: `line 1: the file is empty`, `line 13 is not TOML`. `word` is the word for
    line."""
    if not problem.line:
        return problem.message
    return f"{word} {problem.line}{'' if problem.message.startswith('is ') else ':'} {problem.message}"


_HINTS: Mapping[str, tuple[str, str]] = {
    "readOnlyHint": ("read-only", "not read-only"),
    "destructiveHint": ("destructive", "non-destructive"),
    "idempotentHint": ("idempotent", "not idempotent"),
    "openWorldHint": ("open-world", "closed-world"),
}
"""The words for a hint that is true and for one that is false."""


def hints_in_words(annotations: Mapping[str, JsonValue]) -> str:
    """Return every annotation in words, known ones first."""
    known = [name for name in _HINTS if name in annotations]
    parts = []
    for name in (*known, *(name for name in annotations if name not in _HINTS)):
        value = annotations[name]
        if name in _HINTS and isinstance(value, bool):
            parts.append(_HINTS[name][0 if value else 1])
        else:
            parts.append(f"{name} {json.dumps(value, ensure_ascii=False)}")
    return f" {GLYPHS.dot} ".join(parts)


MAX_NAMED = 8
"""The number of failed steps that are named. More are only counted."""


def failed_steps(steps: Sequence[StepGrade]) -> str:
    """Return which steps of a chain failed."""
    failed = [str(step.step) for step in steps if step.status == Status.FAILED]
    if len(failed) == 1:
        return f"step {failed[0]} failed, and with it the chain"
    which = f"steps {', '.join(failed[:-1])} and {failed[-1]}"
    return f"{which if len(failed) <= MAX_NAMED else counted(len(failed), 'step')} failed, and with them the chain"


def why_not_graded(result: RunResult) -> str:
    """Return why a finished run has no grades, as the end of a sentence."""
    why = one_line(result.error or "")
    if result.status == Status.SKIPPED:
        return f"this case is skipped, so there is nothing to grade{f': {why}' if why else ''}"
    if result.status == Status.STOPPED:
        return "you stopped this run, so it is not graded"
    if result.status == Status.NOT_GRADED:
        return f"this case {why}, so there is nothing to grade"
    finish = result.trajectory.finish
    if finish is None or finish.reason in ("error", "timed out"):
        return f"this run did not finish, so it is not graded: {why}"
    return f"this run finished, but could not be graded: {why}"
