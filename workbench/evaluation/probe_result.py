"""The result of one probe of an endpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from workbench.dataclasses import dataclass
from workbench.show.signs import STATUS_SIGNS

State = Literal["works", "repaired", "wrong", "unclear"]
"""`wrong` is what the endpoint did. `unclear` is what the model did, which another model might do better."""

_SIGNS: Mapping[State, str] = {
    "works": STATUS_SIGNS["passed"],
    "repaired": STATUS_SIGNS["error"],
    "wrong": STATUS_SIGNS["failed"],
    "unclear": "?",
}


@dataclass(frozen=True)
class ProbeResult:
    """What one probe found: a short text, and what to do about it where something helps."""

    probe: str
    state: State
    finding: str
    advice: str | None = None

    @property
    def sign(self) -> str:
        return _SIGNS[self.state]

    def document(self) -> dict[str, object]:
        """Return the result as JSON has it."""
        return {"probe": self.probe, "state": self.state, "finding": self.finding, "advice": self.advice}


def advice_of(results: Iterable[ProbeResult]) -> list[str]:
    """Return what to do about results, each advice once."""
    return list(dict.fromkeys(result.advice for result in results if result.advice is not None))
