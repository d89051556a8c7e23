"""What an aggregate of a suite can be of."""

from __future__ import annotations

from typing import get_args

from workbench.suite.model import GraderName, Statistic

STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
"""Every statistic that an aggregate can have."""

NUMBERS: dict[GraderName, tuple[str, ...]] = {
    "critics": ("earned", "possible"),
    "decision": ("items", "total", "should_call", "tool_name", "arguments"),
    "accuracy": ("expected", "made", "exact", "name_only", "wrong", "extra", "missing"),
    "trajectory": ("matched", "total", "unexpected", "all_pass"),
    "dimensions": ("precision", "recall", "parameters", "content", "latency_ms", "latency_ok"),
}
"""The quantities in each grader's formula, as its grades name them."""

MEASURES: tuple[str, ...] = (
    "score",
    "latency_ms",
    *get_args(GraderName),
    *(f"{grader}.{number}" for grader, numbers in NUMBERS.items() for number in numbers),
)
"""Everything that `of` can name: the deciding grader's score, the model's latency, one grader's score, one of its
numbers."""
