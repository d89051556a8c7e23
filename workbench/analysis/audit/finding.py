"""The findings of an audit in a suite that loads without an error."""

from __future__ import annotations

from typing import Literal

from workbench.dataclasses import dataclass
from workbench.suite.problems import Place

AuditKind = Literal[
    "weak case",
    "cannot fail",
    "unnoticed",
    "out of reach",
    "never holds",
    "unknown tool",
    "unknown argument",
    "refused value",
    "idle mock",
    "not looked at",
]

Weight = Literal["warning", "note"]
"""A warning is nearly always a mistake of the suite; a note is worth a look, but may be intended."""


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One thing that is wrong with the expectations of a suite that can be run. `place` starts at the top of the file;
    `case` is the case's id, `None` for the whole suite."""

    kind: AuditKind
    weight: Weight
    place: Place
    message: str
    hint: str = ""
    case: str | None = None
