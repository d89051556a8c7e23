"""Calls, values and awaited answers as short texts for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from workbench.dataclasses import dataclass
from workbench.numerals import (
    cost_text,
    count_text,
    counted,
    duration_text,
    estimate_time_text,
    figure,
    of_text,
    tokens_text,
)
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import compact_json, one_line
from workbench.startup import late_pattern

if TYPE_CHECKING:
    from workbench.analysis.estimate import Estimate
    from workbench.analysis.totals import Latency
    from workbench.trajectory.events import ExecutionProgress, JsonValue, PromptProgress, Usage


# Without the lookbehind, a match could begin inside a run of blanks, and a search would take quadratic time.
_LAYOUT = late_pattern(r"(?<!\s)\s*\n\s*")


def call_text(tool: str, arguments: Mapping[str, JsonValue], limit: int | None = None) -> str:
    """Return a call as `tool(name=value, …)`, safe to show. Each value is cut after `limit` characters."""
    inside = []
    for name, value in arguments.items():
        inside.append(f"{one_line(name)}={compact_json(value, limit)}")
    return f"{one_line(tool)}({', '.join(inside)})"


def content_text(content: str) -> str:
    """Return a tool's result on one line, safe to show.

    In text that looks like JSON, line breaks and indents become single blanks. Nothing else changes."""
    if content[:1] in ("{", "["):
        # In a JSON text, a line break inside a string is escaped, so all other line breaks are only layout.
        content = _LAYOUT.sub(" ", content)
    return one_line(content)


def waited_text(waited_ms: float) -> str:
    """Return in words how long a request waited for a free slot at its endpoint."""
    return f"waited {duration_text(waited_ms)} for a free slot"


def usage_text(usage: Usage, unit: str = " tokens") -> str:
    """Return the input and output tokens as text, with cached and reasoning tokens if there are any."""
    cached, reasoning = usage.cached_input_tokens, usage.reasoning_tokens
    return tokens_text(usage.input_tokens, usage.output_tokens, cached, reasoning, unit=unit)


def percentiles_text(times: Latency) -> str:
    """Return percentiles of times as text, such as `p50 1.2 s, p95 3.4 s, max 5.0 s`."""
    return ", ".join(f"{name} {duration_text(ms)}" for name, ms in times.percentiles.items())


def estimate_text(estimate: Estimate) -> str:
    """Return an estimate as text, such as `about 1,200 tokens and $0.0034, cost unknown for 2 runs`.

    A cost of zero is omitted if other runs have an unknown cost."""
    runs, unpriced = estimate.runs, estimate.without_cost
    known: list[str] = []
    if estimate.without_tokens != runs:
        known.append(f"about {count_text(estimate.tokens)} tokens")
    if estimate.cost_usd:
        known.append(f"about {cost_text(estimate.cost_usd)}")
    elif not unpriced:
        known.append(cost_text(estimate.cost_usd))
    parts = [" and ".join(known)]
    if unpriced == runs:
        parts.append("cost unknown")
    elif unpriced:
        parts.append(f"cost unknown for {counted(unpriced, 'run')}")
    return ", ".join(filter(None, parts))


def progress_text(progress: ExecutionProgress) -> str:
    """Return the progress of a tool's execution, such as `3 of 10  reading`, safe to show."""
    done = figure(progress.progress)
    if progress.total is not None:
        done += f" of {figure(progress.total)}"
    return f"{done}  {one_line(progress.message or '')}".rstrip()


_HINTS: Mapping[str, tuple[str, str]] = {
    "readOnlyHint": ("read-only", "not read-only"),
    "destructiveHint": ("destructive", "non-destructive"),
    "idempotentHint": ("idempotent", "not idempotent"),
    "openWorldHint": ("open-world", "closed-world"),
}
"""The words for a true and for a false hint."""


def hints_in_words(annotations: Mapping[str, JsonValue]) -> str:
    """Return every annotation of a tool in words, with known annotations first."""
    known = [name for name in _HINTS if name in annotations]
    parts = []
    for name in dict.fromkeys((*known, *annotations)):
        value = annotations[name]
        if name in _HINTS and isinstance(value, bool):
            if_true, if_false = _HINTS[name]
            parts.append(if_true if value else if_false)
        else:
            parts.append(f"{name} {json.dumps(value, ensure_ascii=False)}")
    return f" {GLYPHS.dot} ".join(parts)


CHARACTERS_PER_TOKEN = 4
"""Average for English text in common tokenizers. Only the endpoint knows the exact number, after the answer."""

SHOWN_AFTER_S = 1.0
"""Shortest time of waiting or answering, in seconds, that is shown."""


@dataclass(slots=True)
class AnswerProgress:
    """The progress of a request in flight.

    `sent_s` is the time when the request was sent. `first_s` is the time when its answer began. Both are in seconds on
    one clock. `characters` is the length of the answer so far. `reading` is how far the endpoint has read the
    prompt."""

    sent_s: float
    first_s: float | None = None
    characters: int = 0
    reading: PromptProgress | None = None

    def add(self, piece: str, now_s: float) -> None:
        """Add the characters of a piece of the answer to the count."""
        if self.first_s is None:
            self.first_s = now_s
        self.characters += len(piece)

    @property
    def doing(self) -> str:
        """The present activity of the endpoint: waiting, reading the prompt or answering."""
        if self.first_s is not None:
            return "answering"
        if self._read is None:
            return "waiting for the model"
        return "reading the prompt"

    def facts(self, now_s: float | None) -> list[str]:
        """Return texts on time, progress and speed as far as they are known, most important first."""
        facts: list[str] = []
        if now_s is not None and now_s - self.sent_s >= SHOWN_AFTER_S:
            facts.append(estimate_time_text(now_s - self.sent_s))
        if self._read is not None:
            facts.append(self._read)
        if now_s is not None and self.first_s is not None and now_s - self.first_s >= SHOWN_AFTER_S:
            facts.append(f"about {int(self.characters / CHARACTERS_PER_TOKEN / (now_s - self.first_s))} tokens/s")
        return facts

    @property
    def _read(self) -> str | None:
        reading = self.reading
        if self.first_s is not None or reading is None or reading.processed >= reading.total:
            return None
        return f"{of_text(reading.processed, reading.total)} tokens"
