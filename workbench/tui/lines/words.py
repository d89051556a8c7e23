"""Numbers and facts in words: durations, scores, counts, as every pane writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from workbench.config.read_only import is_read_only
from workbench.grading.grade import RunResult, StepGrade
from workbench.numbers import counted, decimals
from workbench.reports.visible import one_line
from workbench.suite.problems import Problem
from workbench.trajectory.events import JsonValue
from workbench.tui.lines.glyphs import GLYPHS


def model_label(model: str) -> str:
    """Return a model's name. The offline model is always shown with what it is."""
    return "offline (baseline)" if model == "offline" else one_line(model)


def duration(milliseconds: float) -> str:
    """Format a duration: `12 ms`, `1.4 s`, `2:05 min`."""
    if milliseconds < 1:
        return "<1 ms" if milliseconds > 0 else "0 ms"
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02} min"


def clock(seconds: float) -> str:
    """Format seconds as a clock: `0:04`, `12:30`, `1:02:03`."""
    whole = int(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def score(value: float | None) -> str:
    """Format a score with two digits that never rounds up to 1."""
    return "" if value is None else decimals(value)


def short_count(count: int) -> str:
    """Format a count: `950`, `1.2k`, `35k`, `1.4M`."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if count >= size:
            return f"{count / size:.1f}{unit}" if count < 10 * size else f"{count // size:,}{unit}"
    return str(count)


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
    failed = [str(step.step) for step in steps if step.status == "failed"]
    if len(failed) == 1:
        return f"step {failed[0]} failed, and with it the chain"
    which = f"steps {', '.join(failed[:-1])} and {failed[-1]}"
    return f"{which if len(failed) <= MAX_NAMED else counted(len(failed), 'step')} failed, and with them the chain"


def why_not_graded(result: RunResult) -> str:
    """Return why a finished run has no grades, as the end of a sentence."""
    why = one_line(result.error or "")
    if result.status == "skipped":
        return f"this case is skipped, so there is nothing to grade{f': {why}' if why else ''}"
    if result.status == "stopped":
        return "you stopped this run, so it is not graded"
    if result.status == "not graded":
        return f"this case {why}, so there is nothing to grade"
    finish = result.trajectory.finish
    if finish is None or finish.reason in ("error", "timed out"):
        return f"this run did not finish, so it is not graded: {why}"
    return f"this run finished, but could not be graded: {why}"
