"""An open suite: the file on disk, the text as edited, and the undo history."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.document import HEAD, CaseOutline, Document, is_in, outline_of, with_unparsed
from workbench.authoring.form.field_text import CellKey, InvalidText, place_in
from workbench.authoring.typed_servers import TypedTables, typed_servers, typed_tables_after
from workbench.config.read_only import READ_ONLY_REASON, is_read_only
from workbench.dataclasses import dataclass
from workbench.numerals import counted
from workbench.startup import late_pattern
from workbench.suite.files import FileState
from workbench.suite.model import Case
from workbench.suite.problems import Problem
from workbench.suite.render import Table
from workbench.suite.suite_file import SuiteFile, parse_suite, reparse
from workbench.suite.suite_text import SuiteText

if TYPE_CHECKING:
    from workbench.suite.trust import TypedServer

_CASE = late_pattern(r"cases\[(\d+)\]")
_GONE = ("the file no longer exists", "Ctrl+Z restores its text, and Ctrl+S then saves it again")


@dataclass(frozen=True)
class Change:
    """A step of the undo history: the new document, a summary, and the key of the changed case.

    `reread_count` is the number of times, up to this change, that the file had been reread without asking the user.
    `typed` has the servers that the user typed in this session."""

    document: Document
    summary: str
    group: Hashable | None = None
    case: str | None = None
    reread_count: int = 0
    linked_to: object = None
    """Identifies a change that also affects a different suite."""
    typed: TypedTables = ()


class OpenSuite:
    """A suite that can be edited, with its undo history: the documents, and the current position among them.

    A suite that was never edited has no history, and needs no more memory than its file. `disk` is the file as last
    read or saved. If the file does not exist yet, its text is empty and `on_disk` is `None`."""

    def __init__(self, disk: SuiteFile, on_disk: FileState | None = None, *, is_recording: bool = False) -> None:
        self.disk = disk
        self.is_recording = is_recording
        self.on_disk = on_disk or _state(disk)
        self.path = disk.path
        self.checked: Callable[[SuiteFile], SuiteFile] = lambda file: file
        """Adds problems that can only be found with the tools of the suite's servers."""
        self.invalid_texts: dict[CellKey, InvalidText] = {}
        """Invalid text in fields of the form, which is not part of any document."""
        self._places_of: Document | None = None
        """The document with the cells of the invalid texts, while the current document is not TOML."""
        # The history is empty until the first edit, because most suites are only read.
        self._history: list[Change] = []
        self._at = 0
        self._made_here = False
        self._reread_count = 0
        """How often the file was read again after a change by another program. A change in the history that has a lower
        count is older than the last such change."""
        self._read: tuple[Document, SuiteFile] | None = None
        self._outlined: tuple[CaseOutline, ...] | None = None
        self._known: list[tuple[SuiteText, SuiteFile]] = []
        """The last version that was read and, if this version cannot run, the last version that could run."""
        self._rows: tuple[SuiteFile, Mapping[int, tuple[CaseOutline, ...]]] | None = None
        self._broken: tuple[SuiteFile, frozenset[int]] | None = None
        self._partial_file: tuple[Document, frozenset[int], SuiteFile | None] | None = None
        """The last document from which runnable cases were extracted, with the result."""
        self._compared: tuple[Document, SuiteFile, bool] | None = None
        self._cases_on_disk: tuple[SuiteFile, frozenset[str], frozenset[int]] | None = None
        """The cases in the file on disk: their texts, and the identities of their tables."""

    @classmethod
    def new(cls, path: Path, text: str) -> OpenSuite:
        """Create a suite that is not on disk yet."""
        suite = cls(SuiteFile(path, "", "", None, ()))
        suite._history = [Change(Document.of(text), "")]
        suite._made_here = True
        return suite

    def copied(self, path: Path, document: Document) -> OpenSuite:
        """Create a suite with the content of this suite, perhaps with different settings.

        The new suite is not on disk yet. Its cases are read again only if they name files and the new suite is in
        another folder."""
        copy = OpenSuite.new(path, "")
        copy._history = [Change(document, "")]
        parts = self.document.parts
        if parts is None:
            return copy
        file = self._parts_read(parts)
        has_files = bool(file.row_files) or file.suite is None or any(case.images for case in file.suite.cases)
        if path.parent == self.path.parent or not has_files:
            problems = tuple(replace(problem, file=path) for problem in file.problems)
            copy._keep(parts, replace(file, path=path, problems=problems))
        return copy

    @property
    def why_not_editable(self) -> str | None:
        """Why this suite cannot be edited, or `None` if it can."""
        if is_read_only():
            return READ_ONLY_REASON
        if self.is_recording:
            return "this is a recording: open its suite to change it"
        if any(problem.kind == "not UTF-8" for problem in self.disk.problems):
            return "this file is not UTF-8: save it as UTF-8 in a text editor first"
        if self.on_disk is None and not self._made_here and len(self._history) <= 1:
            return "this file could not be read"
        return None

    @property
    def document(self) -> Document:
        if not self._history:
            self._begin()
        return self._history[self._at].document

    @property
    def text(self) -> str:
        """The current text. Reading it does not parse the suite."""
        if self._history:
            return self.document.text
        return self.disk.text

    @property
    def file(self) -> SuiteFile:
        """The current state as a suite file, with its problems and hash.

        While a part of the text is not TOML, its last valid version is used, and the suite cannot run."""
        if not self._history or self.is_gone:
            return self.disk
        document = self.document
        if self._read is None or self._read[0] is not document:
            self._read = (document, self._parsed(document))
        return self._read[1]

    @property
    def cases(self) -> tuple[CaseOutline, ...]:
        if self._history:
            return self.document.cases
        if self.disk.suite is None:
            return self.document.cases if self.disk.hash else ()
        if self._outlined is None:
            cases = self.disk.suite.cases
            if any(case.each is not None for case in cases):
                self._outlined = Document.of_parts(self.disk.parts, self.disk.text).cases
            else:
                self._outlined = tuple(outline_of(index, case) for index, case in enumerate(cases))
        return self._outlined

    @property
    def rows(self) -> Mapping[int, tuple[CaseOutline, ...]]:
        """The cases made from the rows of a table (`each`), by the index of the case that has the table.

        These cases come from the last version of the suite without errors."""
        file = self.file
        if file.suite is not None and (self._rows is None or self._rows[0] is not file):
            rows: dict[int, list[CaseOutline]] = {}
            for number, case in enumerate(file.suite.cases):
                if case.each is not None:
                    index = file.templates[number] if file.templates else number
                    rows.setdefault(index, []).append(outline_of(index, case))
            self._rows = (file, {index: tuple(of_case) for index, of_case in rows.items()})
        if self._rows is None:
            return {}
        return self._rows[1]

    @property
    def run_cases(self) -> tuple[CaseOutline, ...]:
        """The cases that run. A case with a table of rows (`each`) is replaced by one case for each row."""
        rows = self.rows
        if not rows:
            return self.cases
        return tuple(chain.from_iterable(rows.get(case.index, (case,)) for case in self.cases))

    @property
    def broken_cases(self) -> frozenset[int]:
        """The indices of the cases with errors."""
        file = self.file
        if file.suite is not None:
            return frozenset()
        if self._broken is None or self._broken[0] is not file:
            broken = set()
            for problem in file.errors:
                if match := _CASE.match(problem.where):
                    broken.add(int(match[1]))
            self._broken = (file, frozenset(broken))
        return self._broken[1]

    @property
    def dirty(self) -> bool:
        """Whether the text differs from the file on disk. A new suite is always dirty."""
        if not self._history or self._made_here:
            return self._made_here
        document = self.document
        if self._compared is None or self._compared[0] is not document or self._compared[1] is not self.disk:
            self._compared = (document, self.disk, document.text != self.disk.text)
        return self._compared[2]

    @property
    def invalid_text_message(self) -> str | None:
        """The invalid text in the form's fields, with advice, as the end of a message.

        It is `None` if no field has invalid text."""
        if not self.invalid_texts:
            return None
        first, *others = self.invalid_texts.values()
        text = f"the invalid text in `{first.cell}`"
        if others:
            text += f" and {counted(len(others), 'other field')}"
        return f"{text}. {first.why[:1].upper()}{first.why[1:]}"

    def _follow_cells(self, before: Document) -> None:
        """Move invalid texts along with their cells. If a cell is gone, drop its text.

        The dictionary stays the same object, because a form refers to it."""
        if not self.invalid_texts:
            return
        # A cell has no place in a text that is not TOML, so the last valid version is compared.
        before, after = self._places_of or before, self.document
        if before.parts is None or after.parts is None:
            self._places_of = before
            return
        self._places_of = None
        indices = {case.key: case.index for case in before.cases}
        cases_before, cases_after = list(before.parts.cases), list(after.parts.cases)
        texts = list(self.invalid_texts.items())
        self.invalid_texts.clear()
        for (key, (kind, place, option)), text in texts:
            if key is None:
                moved = place_in(after.table(HEAD), before.table(HEAD), place)
                if moved is not None:
                    self.invalid_texts[None, (kind, moved, option)] = text
            elif key in indices:
                moved = place_in(cases_after, cases_before, (indices[key], *place))
                if moved is not None:
                    index = int(moved[0])
                    self.invalid_texts[after.cases[index].key, (kind, moved[1:], option)] = text

    @property
    def is_gone(self) -> bool:
        """Whether the file was deleted and there are no unsaved changes. An undo brings the text back."""
        return bool(self._history) and self.disk.is_missing and not self.dirty

    @property
    def is_new(self) -> bool:
        return self.on_disk is None

    @property
    def is_behind(self) -> bool:
        """Whether undo has gone back to a text from before an external edit of the file.

        The edit was taken over without asking the user, so saving the older text would lose this edit."""
        return bool(self._history) and self._history[self._at].reread_count < self._reread_count

    def is_changed(self, index: int) -> bool:
        if not self.dirty or self.document.parts is None:
            return False
        if index in self.document.unparsed:
            return True
        if self._cases_on_disk is None or self._cases_on_disk[0] is not self.disk:
            self._remember_disk(self.disk.parts)
        assert self._cases_on_disk is not None
        parts = self.document.parts
        # Cases are compared by their text, including comments. If the cases are not in blocks, they are compared by
        # their tables.
        if parts.in_blocks:
            return parts.blocks[index] not in self._cases_on_disk[1]
        return id(parts.cases[index]) not in self._cases_on_disk[2]

    def is_saved(self, case_id: str) -> bool:
        cases: Iterable[Case | CaseOutline]
        if self.disk.suite is not None:
            cases = self.disk.suite.cases
        else:
            cases = Document.of_parts(self.disk.parts, self.disk.text).cases
        return any(case_id in (case.id, getattr(case, "template", None)) for case in cases)

    def problems_of(self, index: int) -> tuple[Problem, ...]:
        """Return the problems of a case. For `HEAD`, return the problems outside of cases."""
        problems = self.checked(self.file).problems
        return tuple(problem for problem in problems if is_in(problem, index))

    def runnable(self, case_ids: tuple[str, ...]) -> SuiteFile | None:
        """Return a suite in which these cases can run, or `None` if they cannot.

        Other cases with errors are left out."""
        file = self.file
        if file.suite is not None:
            return file
        document = self.document
        if document.parts is None or HEAD in document.unparsed or not document.in_blocks:
            return None
        asked = [case.index for case in self.run_cases if case.key in case_ids]
        wanted = frozenset(asked).difference(document.unparsed)
        if self._partial_file is None or self._partial_file[0] is not document or self._partial_file[1] != wanted:
            suite: SuiteFile | None = None
            if wanted:
                suite = parse_suite(document.only(wanted), self.path)
            self._partial_file = (document, wanted, suite)
        cut = self._partial_file[2]
        if cut is None or cut.suite is None:
            return None
        return cut

    @property
    def settings_file(self) -> SuiteFile | None:
        """A suite file with valid settings, or `None` if the settings have errors.

        If any case has errors, the file contains no cases."""
        file = self.file
        if file.suite is not None:
            return file
        document = self.document  # this parses the text, unless it was parsed before
        if document.parts is None or HEAD in document.unparsed or not document.in_blocks:
            return None
        without_cases = parse_suite(document.only(frozenset()), self.path)
        if without_cases.suite is not None:
            return without_cases
        return None

    def change(
        self,
        document: Document,
        summary: str,
        group: Hashable | None = None,
        case: str | None = None,
        *,
        by_keys: bool = False,
    ) -> bool:
        """Replace the document, and return whether it changed.

        Consecutive changes of one group form one undo step. If they restore the earlier text, the step is removed.
        `by_keys` is whether the user typed the change into the form key by key."""
        now = self.document
        if document is now or document.text == now.text:
            return False
        top = self._history[self._at]
        typed = typed_tables_after(top.typed, now, document, by_keys=by_keys)
        now.forget()  # otherwise the undo history would keep the whole text of every version
        del self._history[self._at + 1 :]
        if group is not None and group == top.group:  # such as the keystrokes in one cell
            if self._at and document.text == self._history[self._at - 1].document.text:
                del self._history[self._at]
                self._at -= 1
            else:
                self._history[self._at] = Change(document, summary, group, case, top.reread_count, typed=typed)
        else:
            self._history.append(Change(document, summary, group, case, top.reread_count, typed=typed))
            self._at += 1
        self._follow_cells(now)
        return True

    @property
    def typed_servers(self) -> tuple[TypedServer, ...]:
        """The servers that the user typed into the form in this session."""
        if not self._history:
            return ()
        return tuple(typed_servers(self._history[self._at].typed))

    def forget_typed(self, typed: Collection[TypedServer]) -> None:
        """Treat these servers as if the file had contained them, because the user has trusted them.

        Do nothing if the user has typed more since."""
        if self._history and self.typed_servers == typed:
            self._history[self._at] = replace(self._history[self._at], typed=())

    def end_group(self) -> None:
        """End the current group of changes. The next change begins a new undo step."""
        if self._history:
            self._history[self._at] = replace(self._history[self._at], group=None)

    @property
    def undoable(self) -> str | None:
        if self.last is not None:
            return self.last.summary
        return None

    @property
    def redoable(self) -> str | None:
        if self.next is not None:
            return self.next.summary
        return None

    @property
    def last(self) -> Change | None:
        """The change that undo takes back."""
        return self._history[self._at] if self._at else None

    @property
    def next(self) -> Change | None:
        """The change that redo repeats."""
        if self._at + 1 < len(self._history):
            return self._history[self._at + 1]
        return None

    def link_change(self, whole: object) -> None:
        """Mark the last change as a part of `whole`, a change that also affects another suite."""
        self._history[self._at] = replace(self._history[self._at], linked_to=whole)

    def has_linked_change(self, whole: object) -> bool:
        """Return whether this suite's part of `whole`, a change of several suites, has not been undone."""
        return any(change.linked_to is whole for change in self._history[1 : self._at + 1])

    def undo(self) -> Change | None:
        """Go back one step, and return the undone change, if any."""
        if not self._at:
            return None
        undone = self._history[self._at]
        self._at -= 1
        self.document.reuse(undone.document)
        self.end_group()
        self._follow_cells(undone.document)
        return undone

    def redo(self) -> Change | None:
        """Go forward one step, and return the redone change, if any."""
        if self.redoable is None:
            return None
        before = self.document
        self._at += 1
        self.document.reuse(before)
        self.end_group()
        self._follow_cells(before)
        return self._history[self._at]

    def saved(self, state: FileState) -> None:
        self.disk, self.on_disk = self.file, state
        self._made_here = False  # from now on, the suite is changed only if its text differs from the file
        self._remember_disk(self.document.parts)
        # The user agreed to overwrite the external edit, so the text no longer counts as older than the file.
        self._reread_count = min(self._reread_count, self._history[self._at].reread_count)
        self.end_group()

    def rows_changed(self, disk: SuiteFile) -> None:
        """Replace the suite by `disk`, which was read after files with rows of its cases changed on disk.

        If the suite has unsaved changes, do nothing."""
        if self.dirty:
            return
        self.disk = disk
        self._read = self._outlined = self._rows = self._partial_file = None
        self._known = []

    def reloaded(self, disk: SuiteFile, on_disk: FileState | None) -> None:
        """Record that the suite's file has changed on disk. `disk` is its new content.

        If there are unsaved changes, they stay. Otherwise, the file's text becomes the current text. This is an undo
        step if the suite has a history."""
        # `dirty` must be read before `disk` is replaced, because it compares the text with `disk`.
        follows = not self.dirty
        # The suite of a deleted file stays open with its last text. An undo can restore the text.
        if disk.is_missing and (self._history or self.disk.hash):
            if not self._history:
                self._begin()
            disk = replace(disk, problems=(Problem(self.path, None, "", *_GONE),))
        self.disk, self._outlined = disk, None
        self.on_disk = on_disk or _state(disk)
        self._made_here = self._made_here and self.on_disk is None
        if follows and self._history:
            self._reread_count = max(self._reread_count, self._history[self._at].reread_count) + 1
            self.take_disk("Reloaded from disk")

    def merged(self, disk: SuiteFile, text: str, summary: str, *, is_confirmed: bool, case: str | None = None) -> None:
        """Replace the text by a merge of the unsaved changes with the file on disk. This is an undo step.

        `is_confirmed` is whether the user agreed. If not, saving after an undo of this step asks the user first. `case`
        is the key of the case that gets the cursor after an undo."""
        self.reloaded(disk, None)
        if not is_confirmed:
            self._reread_count = max(self._reread_count, self._history[self._at].reread_count) + 1
        merged = None if text == disk.text else Document.of(text)
        self.take_disk(summary, merged, case)

    def take_disk(self, summary: str, merged: Document | None = None, case: str | None = None) -> bool:
        """Replace the text by the file on disk, or by a merge with it. This is an undo step.

        Returns whether the text changed."""
        document = merged or Document.of_parts(self.disk.parts, self.disk.text)
        changed = self.change(document, summary, case=case)
        if changed and merged is None:
            self._is_read(document, self.disk)
        top = self._history[self._at]
        self._history[self._at] = replace(top, reread_count=max(self._reread_count, top.reread_count))
        return changed

    def _remember_disk(self, suite_text: SuiteText | None) -> None:
        blocks: tuple[str, ...] = ()
        tables: tuple[Table, ...] = ()
        if suite_text is not None:
            blocks, tables = suite_text.blocks, suite_text.cases
        # Without blocks, cases are compared by the identity of their tables. An edit of one case keeps the tables of
        # the others.
        self._cases_on_disk = (self.disk, frozenset(blocks), frozenset(map(id, tables)))

    def _begin(self) -> None:
        outlines = self.cases if self.disk.suite is not None else ()
        document = Document.of_parts(self.disk.parts, self.disk.text, outlines)
        self._history = [Change(document, "")]
        self._at = 0
        self._is_read(document, self.disk)

    def _is_read(self, document: Document, file: SuiteFile) -> None:
        self._read = (document, file)
        if document.parts is not None:
            self._keep(document.parts, file)

    def _parsed(self, document: Document) -> SuiteFile:
        if document.parts is None:
            return parse_suite(document.whole, self.path)
        sound = self._parts_read(document.parts)
        if document.unparsed:
            return with_unparsed(document, sound)
        return sound

    def _parts_read(self, suite_text: SuiteText) -> SuiteFile:
        """Return the suite file of a parsed text.

        Unchanged cases are taken from the last version, or from the last version that could run."""
        # `suite_text` is compared by identity, because an undo returns to an object that was read before.
        for known, file in self._known:
            if known is suite_text:
                return file
        found = None
        for known, file in self._known:
            if found is None:
                found = reparse(file, known, suite_text)
        if found is None:
            found = parse_suite(suite_text.text, self.path)
        self._keep(suite_text, found)
        return found

    def _keep(self, suite_text: SuiteText, file: SuiteFile) -> None:
        # Cases cannot be reused from a version with errors, so the last version without errors is kept, too.
        runnable: list[tuple[SuiteText, SuiteFile]] = []
        if file.suite is None:
            runnable = [known for known in self._known if known[1].suite is not None]
        self._known = [*runnable[:1], (suite_text, file)]


def _state(disk: SuiteFile) -> FileState | None:
    return FileState(disk.hash) if disk.hash else None
