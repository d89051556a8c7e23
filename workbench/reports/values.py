"""Calls and values as short text for a person."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from workbench.numbers import counted, decimals
from workbench.reports.visible import one_line
from workbench.trajectory.events import ExecutionProgress, JsonValue, Usage

if TYPE_CHECKING:
    from workbench.analysis.estimate import Estimate

_LAYOUT = re.compile(r"(?<!\s)\s*\n\s*")  # never inside a run of blanks, because that would take quadratic time


def shown_json(value: JsonValue) -> str:
    """Returns a value as JSON on one line, safe to show."""
    return one_line(json.dumps(value, ensure_ascii=False))


def call_text(tool: str, arguments: Mapping[str, JsonValue]) -> str:
    """Returns a call as `tool(name=value, …)`, safe to show."""
    inside = ", ".join(f"{one_line(name)}={shown_json(value)}" for name, value in arguments.items())
    return f"{one_line(tool)}({inside})"


def result_text(content: str) -> str:
    """Returns a tool's result on one line, safe to show. The layout of text that looks like JSON is folded; nothing
    else changes."""
    if content[:1] in ("{", "["):
        # A line break inside a JSON text is never part of a string.
        content = _LAYOUT.sub(" ", content)
    return one_line(content)


def score_text(score: float | None) -> str:
    """Returns a score with two decimals, `1.00` only when it is 1; `n/a` where a grader does not apply."""
    return "n/a" if score is None else decimals(score)


def reached_text(reached: float, demanded: float) -> str:
    """Returns a value that was compared with a threshold, with three decimals, or with as many as distinguish the
    two."""
    for digits in range(3, 10):
        text = decimals(reached, digits)
        if (float(text) < demanded, float(text) > demanded) == (reached < demanded, reached > demanded):
            return text
    return decimals(reached, 3)


def milliseconds(value: float) -> str:
    """Returns a time in a unit that a person reads at a glance."""
    if value < 10:
        return f"{value:.1f} ms"
    return f"{value:.0f} ms" if value < 999.5 else f"{value / 1000:.1f} s"


def seconds(value_ms: float) -> str:
    """Returns a wait in milliseconds as seconds."""
    return f"{value_ms / 1000:.1f} s"


def waited_text(waited_ms: float) -> str:
    """Returns how long a request waited at its endpoint for others to end."""
    return f"waited {seconds(waited_ms)} for a free slot"


def pace_text(cases_a_minute: float) -> str:
    """Returns cases per minute, with a decimal where there are few."""
    return f"{cases_a_minute:,.0f}" if cases_a_minute >= 100 else f"{cases_a_minute:.1f}"


def tokens_text(usage: Usage) -> str:
    """Returns tokens in and out, with those from a cache and those spent on reasoning where there are any."""
    cached = f" ({usage.cached_input_tokens:,} cached)" if usage.cached_input_tokens else ""
    reasoning = f" ({usage.reasoning_tokens:,} reasoning)" if usage.reasoning_tokens else ""
    return f"{usage.input_tokens:,} in{cached}, {usage.output_tokens:,} out{reasoning}"


def cost_text(dollars: float) -> str:
    """Returns US dollars, with as many decimals as a small amount needs."""
    if not dollars:
        return "$0"
    if 0 < dollars < 0.000001:
        return "<$0.000001"
    return f"${dollars:,.{2 if dollars >= 1 else 4 if dollars >= 0.01 else 6}f}"


def estimate_text(estimate: Estimate) -> str:
    """Returns what runs will probably take: `about 1,200 tokens and $0.0034, cost unknown for 2 runs`. Runs that cost
    nothing are no price for those of unknown cost."""
    runs, unpriced = estimate.runs, estimate.without_cost
    tokens = "" if estimate.without_tokens == runs else f"about {estimate.tokens:,} tokens"
    cost = "" if unpriced and not estimate.cost_usd else cost_text(estimate.cost_usd)
    cost = f"about {cost}" if estimate.cost_usd else cost
    unknown = "cost unknown" if unpriced == runs else f"cost unknown for {counted(unpriced, 'run')}" if unpriced else ""
    return ", ".join(filter(None, (" and ".join(filter(None, (tokens, cost))), unknown)))


def progress_text(progress: ExecutionProgress) -> str:
    """Returns the progress of an execution, safe to show: `3 of 10  reading`."""
    total = f" of {progress.total:g}" if progress.total is not None else ""
    return f"{progress.progress:g}{total}  {one_line(progress.message or '')}".rstrip()
