"""An answer of a model while it is waited for, in words."""

from __future__ import annotations

from workbench.dataclasses import dataclass
from workbench.numerals import estimate_time_text
from workbench.trajectory.events import PromptProgress

CHARACTERS_PER_TOKEN = 4
"""What English has with the tokenizers in use: only the endpoint knows better, once the answer is over."""

SHOWN_AFTER_S = 1.0
"""Shorter times are not worth a word."""


@dataclass(slots=True)
class Awaited:
    """A request under way: when it was sent and when its answer began, in seconds of any one clock, and how many
    characters came since. `reading` is the endpoint's progress with the prompt."""

    sent_s: float
    first_s: float | None = None
    characters: int = 0
    reading: PromptProgress | None = None

    def add(self, piece: str, now_s: float) -> None:
        """Count a piece of the answer."""
        if self.first_s is None:
            self.first_s = now_s
        self.characters += len(piece)

    @property
    def doing(self) -> str:
        """What is going on."""
        if self.first_s is not None:
            return "answering"
        return "waiting for the model" if self._read is None else "reading the prompt"

    def facts(self, now_s: float | None) -> list[str]:
        """Return the time, the progress and the speed, as far as they are known, the most important first."""
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
        return f"{reading.processed:,} of {reading.total:,} tokens"
