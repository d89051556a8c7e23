"""One suite that is open: how it was read, how it is edited now, and every document between the two."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.authoring.document import HEAD, CaseOutline, Document, outline_of
from workbench.authoring.loose_text import with_loose
from workbench.suite.loading import SuiteFile, parse_suite
from workbench.suite.problems import Problem, written
from workbench.suite.rereading import reread
from workbench.suite.saving import FileState
from workbench.suite.splice import SuiteText

_CASE = re.compile(r"cases\[(\d+)\]")
_GONE = ("the file is gone from the disk", "Ctrl+Z brings back what it said, Ctrl+S then writes it again")


@dataclass(frozen=True)
class Change:
    """What one change led to: the document, what was done in words, and the case it was about. `readings`: how often
    the file was read again, without a question, until then."""

    document: Document
    said: str
    group: Hashable | None = None
    case: str | None = None
    readings: int = 0
    part_of: object = None
    """What it has in common with a change of another suite."""


@dataclass(frozen=True)
class Untaken:
    """A text that was typed into a cell of a form which cannot hold it: what the cell is called, and why not."""

    text: str
    cell: str
    why: str


CellKey = tuple[str | None, Hashable]
"""The key of a case (`None`: the suite's settings), and which cell of its form."""


class OpenSuite:
    """A suite with its history: documents, and a cursor among them. A suite that was never edited has none, and costs
    nothing but how it was read.

    `disk` is the file as it was last read or saved; its text is empty and `on_disk` is `None` for one that is not there
    yet.
    """

    def __init__(self, disk: SuiteFile, on_disk: FileState | None = None, *, is_recording: bool = False) -> None:
        self.disk = disk
        self.is_recording = is_recording
        self.on_disk = on_disk if on_disk is not None else FileState(disk.hash) if disk.hash else None
        self.path = disk.path
        self.checked: Callable[[SuiteFile], SuiteFile] = lambda file: file
        """Adds the problems that only the tools of the suite's servers show."""
        self.untaken: dict[CellKey, Untaken] = {}
        """What was typed in a form and stands in no document."""
        self._history: list[Change] = []
        self._at = 0
        self._made_here = False
        self._readings = 0
        """Changes with fewer readings do not know what somebody else wrote since."""
        self._read: tuple[Document, SuiteFile] | None = None
        self._outlined: tuple[CaseOutline, ...] | None = None
        self._known: list[tuple[SuiteText, SuiteFile]] = []
        """What was read last and, when that cannot run, what could last."""
        self._broken: tuple[SuiteFile, frozenset[int]] | None = None
        self._cut: tuple[Document, frozenset[int], SuiteFile | None] | None = None
        """What was last left of which document to run cases from."""
        self._compared: tuple[Document, SuiteFile, bool] | None = None
        self._said_on_disk: tuple[SuiteFile, frozenset[str], frozenset[int]] | None = None
        """Of the file on the disk: the texts of its cases, and which objects their tables are."""

    @classmethod
    def new(cls, path: Path, text: str) -> OpenSuite:
        """A suite that is not on the disk yet."""
        suite = cls(SuiteFile(path, "", "", None, ()))
        suite._history = [Change(Document.of(text), "")]
        suite._made_here = True
        return suite

    @property
    def why_not_editable(self) -> str | None:
        """Why this suite cannot be changed here, if it cannot."""
        if self.is_recording:
            return "this is a recording: open its suite to change it"
        if any("is not UTF-8" in problem.message for problem in self.disk.problems):
            return "this file is not UTF-8: save it as UTF-8 in a text editor first"
        if self.on_disk is None and not self._made_here and len(self._history) <= 1:
            return "this file could not be read"
        return None

    @property
    def document(self) -> Document:
        """The suite as it is edited now."""
        if not self._history:
            self._begin()
        return self._history[self._at].document

    @property
    def file(self) -> SuiteFile:
        """The suite as it is edited now, as a suite file: with its problems, and its hash. While text of it is not
        TOML, the rest is as it last was, and the suite cannot run."""
        if not self._history or self.is_gone:
            return self.disk
        document = self.document
        if self._read is None or self._read[0] is not document:
            self._read = (document, self._parsed(document))
        return self._read[1]

    @property
    def cases(self) -> tuple[CaseOutline, ...]:
        """The cases in the order of the file."""
        if self._history or self.disk.suite is None:
            return self.document.cases if self.disk.hash or self._history else ()
        if self._outlined is None:
            cases = self.disk.suite.cases
            self._outlined = tuple(outline_of(index, case) for index, case in enumerate(cases))
        return self._outlined

    @property
    def broken_cases(self) -> frozenset[int]:
        """The indices of the cases with errors."""
        file = self.file
        if file.suite is not None:
            return frozenset()
        if self._broken is None or self._broken[0] is not file:
            found = (_CASE.match(problem.where) for problem in file.errors)
            self._broken = (file, frozenset(int(match[1]) for match in found if match))
        return self._broken[1]

    @property
    def dirty(self) -> bool:
        """Whether the text is another than the disk's. A new suite has none there, not even an empty one."""
        if not self._history or self._made_here:
            return self._made_here
        document = self.document
        if self._compared is None or self._compared[0] is not document or self._compared[1] is not self.disk:
            self._compared = (document, self.disk, document.text != self.disk.text)
        return self._compared[2]

    @property
    def untaken_said(self) -> str | None:
        """The invalid text in fields of the form and what to do about it, as the end of a message."""
        first = next(iter(self.untaken.values()), None)
        if first is None:
            return None
        others = len(self.untaken) - 1
        more = f" and {others} other field{'s' if others > 1 else ''}" if others else ""
        return f"the invalid text in `{first.cell}`{more}. {first.why[:1].upper()}{first.why[1:]}"

    def rename_untaken(self, case: str | None, key: str | None) -> None:
        """A case is known by another key now."""
        if case != key:
            for of, cell in [about for about in self.untaken if about[0] == case]:
                self.untaken[key, cell] = self.untaken.pop((of, cell))

    @property
    def is_gone(self) -> bool:
        """Whether the file is gone from the disk, and with it the text; what it said can be brought back by undo."""
        return bool(self._history) and self.disk.is_missing and not self.dirty

    @property
    def is_new(self) -> bool:
        """Whether there is no such file yet."""
        return self.on_disk is None

    @property
    def is_behind(self) -> bool:
        """Whether an undo went back behind what somebody else wrote, of which nobody was asked."""
        return bool(self._history) and self._history[self._at].readings < self._readings

    def is_changed(self, index: int) -> bool:
        """Whether a case says something that no case on the disk says."""
        if not self.dirty or self.document.parts is None:
            return False
        if index in self.document.loose:
            return True
        if self._said_on_disk is None or self._said_on_disk[0] is not self.disk:
            self._remember_disk(self.disk.parts)
        assert self._said_on_disk is not None
        parts = self.document.parts
        if parts.in_blocks:
            return parts.blocks[index] not in self._said_on_disk[1]
        return id(parts.cases[index]) not in self._said_on_disk[2]

    def is_saved(self, case_id: str) -> bool:
        """Whether a case with this id is on the disk."""
        if self.disk.suite is not None:
            return any(case.id == case_id for case in self.disk.suite.cases)
        outlines = Document.of_parts(self.disk.parts, self.disk.text).cases
        return any(outline.id == case_id for outline in outlines)

    def problems_of(self, index: int) -> tuple[Problem, ...]:
        """The problems of a case; with `HEAD`, those of everything else."""
        prefix = written(("cases", index))
        problems = self.checked(self.file).problems
        if index == HEAD:
            return tuple(problem for problem in problems if not problem.where.startswith("cases["))
        return tuple(p for p in problems if p.where == prefix or p.where.startswith((f"{prefix}.", f"{prefix}[")))

    def runnable(self, case_ids: tuple[str, ...]) -> SuiteFile | None:
        """The suite to run these cases from: with errors only in other cases, those are left out."""
        file = self.file
        document = self.document
        if file.suite is not None or document.parts is None or HEAD in document.loose or not document.in_blocks:
            return file if file.suite is not None else None
        wanted = frozenset(
            case.index for case in self.cases if case.key in case_ids and case.index not in document.loose
        )
        if self._cut is None or self._cut[0] is not document or self._cut[1] != wanted:
            self._cut = (document, wanted, parse_suite(document.only(wanted), self.path) if wanted else None)
        cut = self._cut[2]
        return cut if cut is not None and cut.suite is not None else None

    def change(self, document: Document, said: str, group: Hashable | None = None, case: str | None = None) -> bool:
        """Take another document; whether it is another one at all. A change of the same group as the one before it is
        one step with it; one that takes all of that step back leaves none."""
        now = self.document
        if document is now or document.text == now.text:
            return False
        top = self._history[self._at]
        now.forget()
        del self._history[self._at + 1 :]
        if group is not None and group == top.group:
            if self._at and document.text == self._history[self._at - 1].document.text:
                del self._history[self._at]
                self._at -= 1
            else:
                self._history[self._at] = Change(document, said, group, case, top.readings)
        else:
            self._history.append(Change(document, said, group, case, top.readings))
            self._at += 1
        return True

    def end_group(self) -> None:
        """Let the next change be a step of its own."""
        if self._history:
            self._history[self._at] = replace(self._history[self._at], group=None)

    @property
    def undoable(self) -> str | None:
        """What undo would take back, in words."""
        return self.last.said if self.last is not None else None

    @property
    def redoable(self) -> str | None:
        """What redo would do again, in words."""
        return self.next.said if self.next is not None else None

    @property
    def last(self) -> Change | None:
        """The change that undo would take back."""
        return self._history[self._at] if self._at else None

    @property
    def next(self) -> Change | None:
        """The change that redo would do again."""
        return self._history[self._at + 1] if self._at + 1 < len(self._history) else None

    def make_part(self, whole: object) -> None:
        """The change just made is part of something that another suite has a part in, too."""
        self._history[self._at] = replace(self._history[self._at], part_of=whole)

    def stands(self, whole: object) -> bool:
        """Whether the part of this that was done here is not taken back."""
        return any(change.part_of is whole for change in self._history[1 : self._at + 1])

    def undo(self) -> Change | None:
        """Go back one step; the change that was taken back."""
        if not self._at:
            return None
        undone = self._history[self._at]
        self._at -= 1
        self.end_group()
        return undone

    def redo(self) -> Change | None:
        """Go forward one step; the change that was done again."""
        if self.redoable is None:
            return None
        self._at += 1
        self.end_group()
        return self._history[self._at]

    def saved(self, state: FileState) -> None:
        """The text as it is now has gone to the disk."""
        self.disk, self.on_disk = self.file, state
        self._made_here = False
        self._remember_disk(self.document.parts)
        self._readings = min(self._readings, self._history[self._at].readings)  # about more than that was asked
        self.end_group()

    def reloaded(self, disk: SuiteFile, on_disk: FileState | None) -> None:
        """The file on the disk is another one. What was edited here stays; a suite that was not follows the disk, as a
        step that can be undone where there is a history."""
        follows = not self.dirty
        if disk.is_missing and (self._history or self.disk.hash):
            if not self._history:
                self._begin()
            disk = replace(disk, problems=(Problem(self.path, None, "", *_GONE),))
        self.disk, self._outlined = disk, None
        self.on_disk = on_disk or (FileState(disk.hash) if disk.hash else None)
        self._made_here = self._made_here and self.on_disk is None
        if follows and self._history:
            self._readings = max(self._readings, self._history[self._at].readings) + 1
            self.take_disk("Read again from the disk")

    def take_disk(self, said: str) -> bool:
        """Be as the disk is, as a step that can be undone; whether that is anything else. Nothing is read once more."""
        document = Document.of_parts(self.disk.parts, self.disk.text)
        changed = self.change(document, said)
        if changed:
            self._is_read(document, self.disk)
        top = self._history[self._at]
        self._history[self._at] = replace(top, readings=max(self._readings, top.readings))
        return changed

    def _remember_disk(self, parts: SuiteText | None) -> None:
        blocks, tables = (parts.blocks, parts.cases) if parts is not None else ((), ())
        self._said_on_disk = (self.disk, frozenset(blocks), frozenset(map(id, tables)))

    def _begin(self) -> None:
        outlines = self.cases if self.disk.suite is not None else ()
        document = Document.of_parts(self.disk.parts, self.disk.text, outlines)
        self._history = [Change(document, "")]
        self._at = 0
        self._is_read(document, self.disk)

    def _is_read(self, document: Document, file: SuiteFile) -> None:
        """Spare a document that says what a file does to be read once more."""
        self._read = (document, file)
        if document.parts is not None:
            self._keep(document.parts, file)

    def _parsed(self, document: Document) -> SuiteFile:
        if document.parts is None:
            return parse_suite(document.whole, self.path)
        sound = self._parts_read(document.parts)
        return with_loose(document, sound) if document.loose else sound

    def _parts_read(self, parts: SuiteText) -> SuiteFile:
        """How the rest is read; from what was read before, the last time that it could run or the last time."""
        for known, file in self._known:
            if known is parts:
                return file
        again = (reread(file, known, parts) for known, file in self._known)
        found = next((file for file in again if file is not None), None) or parse_suite(parts.text, self.path)
        self._keep(parts, found)
        return found

    def _keep(self, parts: SuiteText, file: SuiteFile) -> None:
        runnable = [] if file.suite is not None else [known for known in self._known if known[1].suite is not None]
        self._known = [*runnable[:1], (parts, file)]
