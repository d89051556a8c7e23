"""What an importer makes of a file: cases, the runs that were made of them, and what it could not take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, replace
from functools import partial
from typing import Literal, NamedTuple

from workbench.dataclasses import dataclass
from workbench.engine.told import ToldRound
from workbench.importing.bounds import RefusedError
from workbench.importing.reading import Node, Source
from workbench.suite.render import Table
from workbench.suite.tables import RepeatRule
from workbench.trajectory.events import SourceScore

NO_TOOLS = "no definitions of tools: write [[tools]] or [[servers]] into the suite"
"""What is said of a case that calls tools which its file does not define."""


NoteKind = Literal["other", "not imported", "check calls", "expects nothing yet", "no tools", "no mock"]
"""What code decides by a note: `not imported` counts as left out, `check calls` goes when a file names its own
expectations, and so do `expects nothing yet` and `no tools` when it has some."""


@dataclass(frozen=True)
class Note:
    """What of the file is not in the suite, or is there in another way: its place, and why."""

    place: str
    why: str
    kind: NoteKind = "other"

    def __str__(self) -> str:
        return f"{self.place}: {self.why}" if self.place else self.why


def not_imported(place: str, why: str) -> Note:
    """Return the note on something that became no case."""
    return Note(place, f"not imported: {why}", "not imported")


class Mapped(NamedTuple):
    """What of the file became what in the case. `into` is the key of the case, empty where `what` names it."""

    what: str
    into: str = ""

    def __str__(self) -> str:
        return f"{self.what} → {self.into}" if self.into else self.what


@dataclass(frozen=True)
class ImportedRun:
    """A run of a case, made elsewhere. `started_at` is ISO 8601 text, empty where the file does not say it."""

    model: str
    rounds: tuple[ToldRound, ...]
    started_at: str = ""
    scores: tuple[SourceScore, ...] = ()
    """What the system that made it says of it."""

    @property
    def is_wrong(self) -> bool:
        """Whether that system called it wrong, so that no case expects what was done in it."""
        return any(not score.passed for score in self.scores)


@dataclass(frozen=True)
class ImportedCase:
    """A case as the suite has it, with its tools; `mapped` says what of the file became what in it."""

    place: str
    table: Table
    mapped: tuple[Mapped, ...] = ()
    notes: tuple[Note, ...] = ()
    runs: tuple[ImportedRun, ...] = ()

    def noted(self, *notes: Note) -> ImportedCase:
        return replace(self, notes=(*self.notes, *notes))


@dataclass(frozen=True)
class Imported:
    """All of a file. `suite` is what stands at the top of the suite beside its name; `notes` are about no one case."""

    cases: tuple[ImportedCase, ...]
    suite: Table = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Format:
    """A form of files. `recognizes` says whether a file is plainly of this form, and never raises; `read` raises
    RefusedError where nothing of the file can be taken."""

    recognizes: Callable[[Source], bool]
    read: Callable[[Source], Imported]
    grading: Table = field(default_factory=dict)
    """What the suite says of grading, because the system that the file is of grades so."""


def graded_as(repeat_rule: RepeatRule | None = None) -> Table:
    """Returns the grading of another system, which knows nothing of a tool's schema; `repeat_rule` is what repeats of a
    case come to there, where it has repeats."""
    rule: Table = {"repeat_rule": repeat_rule} if repeat_rule is not None else {}
    return {"invalid_arguments": "note", **rule}


def gathered(
    source_cases: Iterable[Callable[[], ImportedCase]],
) -> tuple[tuple[ImportedCase, ...], tuple[Note, ...]]:
    """Returns the cases that can be made, and notes of those that cannot."""
    cases: list[ImportedCase] = []
    notes: list[Note] = []
    for make in source_cases:
        try:
            cases.append(make())
        except RefusedError as error:
            notes.append(not_imported(error.place, error.why))
    return tuple(cases), tuple(notes)


def imported_of(nodes: Iterable[Node], make: Callable[[Node], ImportedCase], what: str) -> Imported:
    """Returns a case of each node that can be made one. Raises RefusedError where there is none: for the first reason,
    or because the file holds no `what`."""
    cases, notes = gathered(partial(make, node) for node in nodes)
    if not cases:
        raise RefusedError(notes[0].why if notes else f"holds no {what}", notes[0].place if notes else "")
    return Imported(cases, notes=notes)
