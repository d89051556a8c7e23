"""Saves suites, and merges suites with changes on disk."""

# Only text that was parsed again as a whole is written. A file that changed on disk is overwritten only after a
# question. The user may type during writing, and such changes stay unsaved.

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.case_list import free_path
from workbench.authoring.document import Document
from workbench.authoring.merge import Conflict, Key, MergeResult, Side, changes_summary, merge
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import OpenSuites
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.suite.files import ChangedOnDiskError, FileState, SavingError, absolute, save, write_problem
from workbench.suite.problems import message_with_line, quoted
from workbench.suite.suite_file import SuiteFile, load_suite, parse_suite
from workbench.suite.suite_text import SpliceError, SuiteText
from workbench.tui.kit.actions import key_for
from workbench.tui.storage.drafts import DraftKeeper
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench
    from workbench.tui.storage.dialogs import ChangedAnswer


class Saver:
    """Saves and merges suites one at a time. Asks the necessary questions."""

    def __init__(
        self,
        app: Workbench,
        open_suites: OpenSuites,
        selection: Selection,
        drafting: DraftKeeper,
        is_bundled: Callable[[Path], bool],
    ) -> None:
        self._app = app
        self._open_suites = open_suites
        self._selection = selection
        self._drafting = drafting
        self._is_bundled = is_bundled
        self._busy = asyncio.Lock()
        self._rewritten: set[Path] = set()
        """The paths of suites with a loss of formatting that the user accepted."""
        self._requested: frozenset[Path] = frozenset()
        """The paths of suites about to be saved. Saving asks about them, so nothing else may ask."""
        self.postponed: dict[Path, str] = {}
        """The changes on disk that the user already knows from a question or a notice: hashes of files, by path.

        An empty text means that the file was deleted."""

    def save_soon(self, suites: Sequence[OpenSuite]) -> None:
        """Save suites in the background, and announce the result."""
        self._requested = frozenset(suite.path for suite in suites)
        self._app.work(self.save(suites), group="ask")

    def save_as_soon(self, suite: OpenSuite) -> None:
        """Ask for a name and save a suite under that name, in the background."""
        self._app.work(self._save_as_asked(suite), group="ask")

    async def save(self, suites: Sequence[OpenSuite]) -> bool:
        """Save suites. Return whether all of them are now on disk."""
        async with self._busy:
            saved = [suite for suite in suites if await self._save(suite)]
            self._requested = frozenset()
        if len(saved) == len(suites) > 1:
            self._app.announce(f"Saved {counted(len(saved), 'suite')}", "passed", GLYPHS.passed)
        for suite in saved:
            if suite.invalid_text_message is not None:
                self._app.announce(f"Saved without {suite.invalid_text_message}", "warned", GLYPHS.warned)
        return len(saved) == len(suites)

    async def wait_until_saved(self) -> None:
        """Wait until no suite is being saved."""
        async with self._busy:
            pass

    async def merge_changed(self, suites: Sequence[OpenSuite]) -> None:
        """Merge suites that were changed both here and on disk.

        If a merge is impossible, ask the user, unless the user has already answered "later"."""
        async with self._busy:
            for suite in suites:
                if suite.dirty:
                    await self._ask(suite, must_ask=False)

    async def _save_as_asked(self, suite: OpenSuite) -> None:
        async with self._busy:
            await self._save_as(suite)

    async def _save(self, suite: OpenSuite) -> bool:
        if self._is_bundled(suite.path):
            return await self._save_as(suite)
        document = suite.document
        text = await self._checked(suite, document)
        if text is None:
            return False
        if suite.is_behind:
            return await self._ask(suite, must_ask=True)
        if text.kept_formatting or suite.is_new:
            self._rewritten.discard(suite.path)
        elif suite.path not in self._rewritten:
            from workbench.show.difference import difference
            from workbench.tui.storage.dialogs import RewrittenScreen

            found = await asyncio.to_thread(difference, suite.disk.text, text.text)
            if await self._app.ask(RewrittenScreen(suite.path, found)) != "save":
                self._app.announce(
                    f"{suite.path.name} was not saved; {self._drafting.drafts_text}", "warned", GLYPHS.warned
                )
                return False
            self._rewritten.add(suite.path)
        return await self._write(suite, document, text, suite.on_disk)

    async def _checked(self, suite: OpenSuite, document: Document) -> SuiteText | None:
        if not document.is_sound or document.parts is None:
            place, why = "its text", "is not TOML"
            # Only invalid TOML prevents saving. Other errors only prevent running.
            errors = sorted(suite.file.errors, key=lambda error: error.kind != "not TOML")
            if errors:
                why = errors[0].message
                if errors[0].line:
                    place = f"line {errors[0].line}"
            self._refuse(suite, f"{place} {why}: correct it, or undo it with {key_for('edit.undo')}")
            return None
        try:
            return await asyncio.to_thread(document.parts.checked)
        except SpliceError as error:
            self._refuse(suite, str(error))
            return None

    def _refuse(self, suite: OpenSuite, why: str) -> None:
        self._app.announce(
            f"{suite.path.name} was not saved: {why}; {self._drafting.drafts_text}", "error", GLYPHS.error
        )

    async def _write(self, suite: OpenSuite, document: Document, text: SuiteText, expected: FileState | None) -> bool:
        try:
            if suite.is_new:
                roots = self._open_suites.workspace.roots
                await asyncio.to_thread(_make_folder, suite.path, (*roots, Path()))
            state = await asyncio.to_thread(save, suite.path, text.text, expected)
        except ChangedOnDiskError:
            return await self._ask(suite, must_ask=True)
        except SavingError as error:
            self._app.announce(f"{error}; {self._drafting.drafts_text}", "error", GLYPHS.error)
            if not await asyncio.to_thread(suite.path.exists):
                # The error says that the file is gone, so `_ask` must not ask about it as well.
                self.postponed[suite.path] = ""
            return False
        if suite.document is document:
            if text.text != document.text:
                suite.change(Document.of(text.text), "Rewritten for saving")
            suite.saved(state)
        else:
            # The user typed more while the file was written. The written text becomes the base of the unsaved changes.
            written = await asyncio.to_thread(lambda: _parsed_for_editing(parse_suite(text.text, suite.path)))
            suite.reloaded(written, state)
        self._follow(suite)
        if errors := suite.file.errors:
            first = errors[0]
            of_case = f" ({quoted(first.case)})" if first.case else ""
            message = (
                f"Saved in {suite.path}; {counted(len(errors), 'error')} to correct before all of it can run{of_case}: "
                f"{message_with_line(first, 'line')}"
            )
            self._app.announce(message, "warned", GLYPHS.warned)
        else:
            self._app.announce(f"Saved in {suite.path}", "passed", GLYPHS.passed)
        return True

    async def _ask(self, suite: OpenSuite, *, must_ask: bool) -> bool:
        """Merge a suite with the file on disk, or ask about it. Return whether nothing is left to save.

        With `must_ask`, ask even if the user has already answered "later"."""
        from workbench.show.difference import difference
        from workbench.tui.storage.dialogs import ChangedScreen

        path = suite.path
        theirs = await asyncio.to_thread(lambda: _parsed_for_editing(load_suite(path)))
        gone = not theirs.hash and not await asyncio.to_thread(path.exists)
        if not theirs.hash and not gone:
            self._refuse(suite, f"{path} can no longer be read")
            return False
        # The suite may have been deleted during the read.
        if self._open_suites.at(path) is not suite:
            return True
        known_hash = suite.on_disk.hash if suite.on_disk else None
        if not must_ask and theirs.hash in (self.postponed.get(path), known_hash):
            # The user answered "later" to this text on disk, or the suite has been saved since the change was noticed.
            return False
        if theirs.hash and theirs.text == suite.document.text:
            suite.reloaded(theirs, FileState(theirs.hash))
            self._follow(suite)
            return True
        if not must_ask and path in self._requested:
            return False
        if not must_ask and not _can_be_merged(theirs):
            self._announce_change(suite, theirs)
            return False
        merged = await self._merged(suite, theirs, {})
        if merged is not None:
            return await self._apply_merge(suite, theirs, merged, must_ask=must_ask)
        found = await asyncio.to_thread(difference, theirs.text, suite.document.text)
        # From now on, a check of the disk must not ask about the same text again, whatever the user answers.
        self.postponed[path] = theirs.hash
        answer = await self._app.ask(ChangedScreen(path, found, gone=gone))
        if answer == "mine":
            document = suite.document
            text = await self._checked(suite, document)
            known = FileState(theirs.hash) if theirs.hash else None
            return text is not None and await self._write(suite, document, text, known)
        if answer == "theirs":
            suite.reloaded(theirs, FileState(theirs.hash))
            suite.take_disk("Loaded from disk")
            self._follow(suite)
            self._app.announce(
                f"{path.name} is now the same as on disk; {key_for('edit.undo')} restores your version",
                "text",
                GLYPHS.passed,
            )
            return True
        return await self._not_saved(suite, answer)

    async def _not_saved(self, suite: OpenSuite, answer: ChangedAnswer | None) -> bool:
        if answer == "name":
            return await self._save_as(suite)
        text = f"{suite.path.name} is not saved; {self._drafting.drafts_text}"
        self._app.announce(text, "warned", GLYPHS.warned)
        return False

    def _announce_change(self, suite: OpenSuite, theirs: SuiteFile) -> None:
        self.postponed[suite.path] = theirs.hash
        kept = "your changes are kept"
        if not theirs.hash:
            what = f"was deleted on disk: {kept}, {key_for('save')} writes it again"
        elif theirs.text.strip():
            what = f"changed on disk: {kept}; line {theirs.errors[0].line or 1} there {theirs.errors[0].message}"
        else:
            what = f"is empty on disk: {kept}"
        self._app.announce(f"{suite.path.name} {what}", "warned", GLYPHS.warned)

    async def _merged(self, suite: OpenSuite, theirs: SuiteFile, chosen: Mapping[Key, Side]) -> MergeResult | None:
        """Merge a suite with the text on disk. `chosen` has the user's answers to conflicts.

        Return `None` if the texts cannot be merged, so that the user must choose between them."""
        # A merge needs the common base of both texts. For an outdated suite, the last text read from disk is not that
        # base.
        if suite.is_behind or not _can_be_merged(theirs):
            return None
        # If the user typed while the texts were merged, the merge is repeated.
        while True:
            document, base = suite.document, suite.disk.parts
            if not document.is_sound or document.parts is None or base is None or theirs.parts is None:
                return None
            merged = await asyncio.to_thread(merge, base, document.parts, theirs.parts, chosen)
            if suite.document is document:
                return merged

    async def _apply_merge(self, suite: OpenSuite, theirs: SuiteFile, merged: MergeResult, *, must_ask: bool) -> bool:
        """Ask about each conflict, then apply the merge. Return whether nothing is left to save."""
        from workbench.show.difference import difference
        from workbench.tui.storage.dialogs import ChangedScreen

        path, base, chosen = suite.path, suite.disk.parts, dict[Key, Side]()
        for number, conflict in enumerate(merged.conflicts, 1):
            self.postponed[path] = theirs.hash
            found = await asyncio.to_thread(difference, conflict.theirs or "", conflict.mine or "")
            part = _conflict_text(conflict)
            if len(merged.conflicts) > 1:
                part += f" ({number} of {len(merged.conflicts)})"
            answer = await self._app.ask(ChangedScreen(path, found, part=part))
            if answer != "mine" and answer != "theirs":
                return await self._not_saved(suite, answer)
            chosen[conflict.key] = answer
        decided = await self._merged(suite, theirs, chosen) if chosen else merged
        if decided is None or base is None or theirs.parts is None:
            return await self._not_saved(suite, None)
        what = await asyncio.to_thread(changes_summary, base, theirs.parts)
        row, case = self._selection.row, None
        if row is not None and row.open is suite and row.case is not None:
            case = row.case.key
        suite.merged(theirs, decided.text, "Merged with the file on disk", is_confirmed=bool(chosen), case=case)
        self._follow(suite)
        text = f"{path.name} changed on disk: {what}; merged with your changes, {key_for('edit.undo')} undoes it"
        self._app.announce(text, "text", GLYPHS.passed)
        if must_ask and suite.dirty:
            return await self._save(suite)
        return not suite.dirty

    async def _save_as(self, suite: OpenSuite) -> bool:
        from workbench.tui.storage.dialogs import SaveAsScreen

        is_bundled = self._is_bundled(suite.path)
        if is_bundled:
            place = Path(suite.path.name)
            message = f"{suite.path.name} came with the program, so it is saved as a copy of your own."
        else:
            place = suite.path
            message = "The file to save it in, in the current folder unless you name another."
        if suite.file.suite is not None and suite.file.suite.servers:
            message += " Its servers are started in that folder: what they need there has to be copied too."
        proposed = free_path(place, (other.path for other in self._open_suites.suites if other is not suite))
        refusal = partial(self._why_not_savable, suite)
        path = await self._app.ask(SaveAsScreen(proposed, message, refusal))
        if path is None:
            notice = f"{suite.path.name} was not saved; {self._drafting.drafts_text}"
            self._app.announce(notice, "warned", GLYPHS.warned)
            return False
        document = suite.document
        text = await self._checked(suite, document)
        if text is None:
            return False
        path = self._drafting.path_here(path)
        try:
            await asyncio.to_thread(save, path, text.text, None)
        except SavingError as error:
            self._app.announce(f"{error}; {self._drafting.drafts_text}", "error", GLYPHS.error)
            return False
        left, file = await asyncio.to_thread(lambda: (_parsed_for_editing(load_suite(suite.path)), load_suite(path)))
        newer = suite.document if suite.document is not document else None
        self._reset_to_disk(suite, left, path)
        self._open_suites.read_one(file)
        self._selection.select(path)
        opened = self._open_suites.at(path)
        if newer is not None and opened is not None:
            self._open_suites.change(opened, newer, "Typed while it was saved")
        self._app.announce(f"Saved in {path}", "passed", GLYPHS.passed)
        return True

    def _reset_to_disk(self, suite: OpenSuite, disk: SuiteFile, path: Path) -> None:
        """Undo the changes of a suite that was saved at another `path`. If the suite has no file, close it."""
        if disk.hash and suite.path != path:
            suite.reloaded(disk, FileState(disk.hash))
            suite.take_disk(f"Saved as {path.name}")
            self._follow(suite)
        else:
            self._drafting.forget(suite)
            self._open_suites.close(suite)

    def _why_not_savable(self, suite: OpenSuite, path: Path) -> str | None:
        other = self._open_suites.at(self._drafting.path_here(path))
        if path.exists():
            return f"{path.name} already exists"
        if other is not None and other is not suite:
            return f"{path.name} is already open and was never saved"
        if absolute(path).parent.is_dir():
            return None
        return f"there is no folder {path.parent}"

    def _follow(self, suite: OpenSuite) -> None:
        self.postponed.pop(suite.path, None)
        # The suite may have been deleted during writing.
        if self._open_suites.at(suite.path) is suite:
            self._open_suites.disk_changed(suite)


def _conflict_text(conflict: Conflict) -> str:
    if conflict.mine is None:
        return f"{conflict.what} was deleted here and changed on disk"
    there = "changed" if conflict.theirs is not None else "deleted"
    return f"{conflict.what} was changed here and {there} on disk"


def _can_be_merged(theirs: SuiteFile) -> bool:
    # A file may be gone, empty or not TOML while another program writes it.
    return bool(theirs.text.strip()) and theirs.parts is not None


def _parsed_for_editing(file: SuiteFile) -> SuiteFile:
    """Parse a suite file's text for editing. Parsing may take long, so call it in a thread."""
    # The property parses the text on first use and keeps the result.
    _ = file.parts
    return file


def _make_folder(path: Path, roots: Sequence[Path]) -> None:
    """Create the missing folders of a new suite's path if the path is below one of `roots`.

    Raises:
        SavingError: A folder cannot be created."""
    folder = absolute(path).parent
    if any(root.is_dir() and folder.is_relative_to(absolute(root)) for root in roots):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = write_problem(error, folder, "save somewhere else")
            raise SavingError(f"{path} was not saved: {why}") from error
