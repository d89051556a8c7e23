"""Numbers in words: durations, scores, counts, as every pane writes them."""

from __future__ import annotations

from workbench.reports.visible import one_line
from workbench.suite.decimals import decimals
from workbench.suite.problems import Problem


def model_label(model: str) -> str:
    """A model's name; the offline one is never shown without saying what it is."""
    return "offline (baseline)" if model == "offline" else one_line(model)


def duration(milliseconds: float) -> str:
    """`12 ms`, `1.4 s`, `2:05 min`."""
    if milliseconds < 1:
        return "<1 ms" if milliseconds > 0 else "0 ms"
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02} min"


def clock(seconds: float) -> str:
    """`0:04`, `12:30`, `1:02:03`."""
    whole = int(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def score(value: float | None) -> str:
    """A score with two digits that never rounds up to 1."""
    return "" if value is None else decimals(value)


def many(count: int, noun: str) -> str:
    """`1 case`, `3 cases`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def short_count(count: int) -> str:
    """`950`, `1.2k`, `35k`, `1.4M`."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if count >= size:
            return f"{count / size:.1f}{unit}" if count < 10 * size else f"{count // size:,}{unit}"
    return str(count)


def at_line(problem: Problem, word: str) -> str:
    """What is wrong, and where: `line 1: the file is empty`, `line 13 is not TOML`; `word` is that for line."""
    if not problem.line:
        return problem.message
    return f"{word} {problem.line}{'' if problem.message.startswith('is ') else ':'} {problem.message}"
