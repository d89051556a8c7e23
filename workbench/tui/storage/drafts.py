"""Drafts of unsaved changes. A journal records each change, and the next start offers the drafts again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.document import Document
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import OpenSuites, SuitesChanged
from workbench.config.read_only import is_read_only
from workbench.show.glyphs import GLYPHS
from workbench.suite.drafts import DraftError, Drafts, RecoveredDraft
from workbench.suite.suite_file import parse_suite
from workbench.tui.kit.actions import key_for
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


class DraftKeeper:
    """The drafts of this session and of earlier sessions."""

    def __init__(self, app: Workbench, open_suites: OpenSuites, selection: Selection, folder: Path) -> None:
        self._app = app
        self._open_suites = open_suites
        self._selection = selection
        self._drafts = Drafts(folder)
        self._problem: str | None = None
        """Why drafts cannot be written now, `None` if they can."""

    def follow(self, change: SuitesChanged) -> None:
        """Store the drafts of suites that were changed in the app."""
        if change.how == "read":
            # Newly read suites have the text on disk and need no draft.
            return
        for suite in change.suites:
            self.keep(suite)

    def keep(self, suite: OpenSuite) -> None:
        """Store the current text of a suite as its draft. Remove the draft of a saved suite."""
        # A failure is announced once. The user can go on and save the suite instead.
        try:
            if suite.dirty:
                self._drafts.keep(suite.path, suite.disk.text, suite.on_disk, suite.document.text)
            else:
                self._drafts.forget(suite.path)
        except DraftError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                self._app.announce(f"Drafts: {error}", "error", GLYPHS.error)
        else:
            self._problem = None

    @property
    def drafts_text(self) -> str:
        """The end of a sentence that says whether unsaved changes are kept, such as "your text is kept as a draft"."""
        if self._problem is None:
            return "your text is kept as a draft"
        return "and it cannot be kept as a draft either"

    def forget(self, suite: OpenSuite) -> None:
        self._drafts.forget(suite.path)

    def close(self) -> None:
        """Close all journals. The next start offers their content."""
        self._drafts.close()

    async def recover(self) -> None:
        """Offer the drafts of earlier sessions, including drafts of deleted files."""
        if is_read_only():
            return
        workspace = self._open_suites.workspace
        here = (Path(),) if workspace.samples else ()
        try:
            left = self._drafts.recoverable((*workspace.roots, *here))
        except DraftError as error:
            self._app.announce(f"Drafts: {error}", "error", GLYPHS.error)
            return
        for draft in left.drafts:
            await self._offer(draft)
        if left.damaged:
            text = f"Unsaved changes from an earlier session cannot be read; they are kept in {left.damaged[0]}"
            self._app.announce(text, "error", GLYPHS.error)

    async def _offer(self, draft: RecoveredDraft) -> None:
        from workbench.show.difference import difference
        from workbench.tui.storage.dialogs import EarlierDraftScreen

        suite = self._open_suite_of(draft)
        when = datetime.fromtimestamp(draft.changed_at).strftime("on %Y-%m-%d at %H:%M")
        found = difference(draft.base_text, draft.text)
        answer = await self._app.ask(EarlierDraftScreen(draft.path, when, found, notice=_notice(draft, suite)))
        if answer == "away":
            self._drafts.discard(draft)
            self._app.announce(f"The unsaved changes of {draft.path.name} were thrown away", "text", GLYPHS.stopped)
        elif answer == "take":
            self._drafts.adopt(draft)
            self._restore_draft(draft, suite)
            self._app.announce(
                f"{draft.path.name} has its unsaved changes again; {key_for('save')} saves", "passed", GLYPHS.passed
            )

    def _open_suite_of(self, draft: RecoveredDraft) -> OpenSuite | None:
        for suite in self._open_suites.suites:
            if self._drafts.draft_path(suite.path) == draft.path:
                return suite
        return None

    def _restore_draft(self, draft: RecoveredDraft, suite: OpenSuite | None) -> None:
        # The suite's text on disk is set to the base text of the draft. If the file differs, the next check of the disk
        # finds a change and merges both.
        if suite is None and draft.base_state is None:
            suite = OpenSuite.new(self.path_here(draft.path), draft.text)
            self._open_suites.add(suite)
        else:
            if suite is None:
                suite = OpenSuite(parse_suite(draft.base_text, self.path_here(draft.path)), draft.base_state)
                self._open_suites.add(suite)
            elif (suite.on_disk and suite.on_disk.hash) != (draft.base_state and draft.base_state.hash):
                suite.reloaded(parse_suite(draft.base_text, suite.path), draft.base_state)
            self._open_suites.change(suite, Document.of(draft.text), "Restored unsaved changes")
        self._selection.select(suite.path)

    def path_here(self, path: Path) -> Path:
        """Convert the path in a draft to the path under which the app opens the suite."""
        known = self._drafts.draft_path(path)
        for root in self._open_suites.workspace.roots:
            for place in self._drafts.places(root):
                if known.is_relative_to(place):
                    return root / known.relative_to(place)
        return path

    async def ask_before_leaving(self, save: Callable[[Sequence[OpenSuite]], Awaitable[bool]]) -> bool:
        """Ask about unsaved changes. Return whether the program may end. `save` saves suites."""
        dirty = self._open_suites.dirty
        if not dirty:
            return True
        for suite in dirty:
            # Writing the draft may have failed earlier, for example on a full disk, so it is tried again.
            self.keep(suite)
        from workbench.tui.storage.dialogs import UnsavedScreen

        answer = await self._app.ask(UnsavedScreen([suite.path for suite in dirty], self._problem))
        if answer == "save":
            return await save(dirty)
        if answer == "discard":
            for suite in dirty:
                self.forget(suite)
        return answer in ("drafts", "discard")


def _notice(draft: RecoveredDraft, suite: OpenSuite | None) -> str:
    if suite is not None:
        same = (suite.on_disk and suite.on_disk.hash) == (draft.base_state and draft.base_state.hash)
        if same:
            return ""
        return "The file on disk has changed since: both are merged, and you are asked about conflicts."
    if draft.base_state is not None:
        return "The file no longer exists."
    return "The file does not exist yet."
