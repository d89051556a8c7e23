"""Drafts in the app: each change is journalled at once, what earlier sessions left is offered, and the end asks."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.document import Document
from workbench.authoring.open_suite import OpenSuite
from workbench.suite.drafts import DraftError, Drafts, LeftDraft
from workbench.suite.loading import parse_suite
from workbench.tui.lines.glyphs import GLYPHS

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


class Drafting:
    """The journals of this session, and those of sessions before it."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._drafts = Drafts(app.program.folders.drafts)
        self._trouble: str | None = None
        """Why changes cannot be kept at the moment, if they cannot."""

    def changed(self, suite: OpenSuite) -> None:
        """Write down what a suite says now; that it cannot be is said once, and nothing is held up."""
        try:
            if suite.dirty:
                self._drafts.keep(suite.path, suite.disk.text, suite.on_disk, suite.document.text)
            else:
                self._drafts.forget(suite.path)
        except DraftError as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                self._app.main.announce(f"Drafts: {error}", "error", GLYPHS.error)
        else:
            self._trouble = None

    @property
    def kept(self) -> str:
        """What becomes of changes that are not saved, in words."""
        return "what was typed stays as a draft" if self._trouble is None else "nor can it be kept as a draft"

    def forget(self, suite: OpenSuite) -> None:
        """Nothing of a suite is to be kept."""
        self._drafts.forget(suite.path)

    def close(self) -> None:
        """Let go of all journals: what they hold is offered at the next start."""
        self._drafts.close()

    # The beginning

    async def recover(self) -> None:
        """Offer what earlier sessions left of the suites that are open, and of those that are no longer there."""
        main = self._app.main
        here = (Path(),) if main.workspace.samples else ()
        try:
            left = self._drafts.left_behind((*main.workspace.roots, *here))
        except DraftError as error:
            main.announce(f"Drafts: {error}", "error", GLYPHS.error)
            return
        for draft in left.drafts:
            await self._offer(draft)
        if left.damaged:
            said = f"Unsaved changes of before cannot be read; they are kept in {left.damaged[0]}"
            main.announce(said, "error", GLYPHS.error)

    async def _offer(self, draft: LeftDraft) -> None:
        from workbench.tui.lines.difference import difference
        from workbench.tui.saving.dialogs import LeftScreen

        main = self._app.main
        suite = next((open_ for open_ in main.desk.suites if self._drafts.known_as(open_.path) == draft.path), None)
        when = datetime.fromtimestamp(draft.changed_at).strftime("on %Y-%m-%d at %H:%M")
        found = difference(draft.base_text, draft.text)
        answer = await self._app.push_screen_wait(LeftScreen(draft.path, when, found, notice=_notice(draft, suite)))
        if answer == "away":
            self._drafts.throw_away(draft)
            main.announce(f"The unsaved changes of {draft.path.name} are thrown away", "text", GLYPHS.stopped)
        elif answer == "take":
            self._drafts.take_over(draft)
            self._take_over(draft, suite)
            main.announce(f"{draft.path.name} has its unsaved changes again; Ctrl+S saves", "passed", GLYPHS.passed)

    def _take_over(self, draft: LeftDraft, suite: OpenSuite | None) -> None:
        """Be where the earlier session was: on its base, which is noticed as changed when the disk's is another."""
        main = self._app.main
        if suite is None and draft.base_state is None:
            suite = OpenSuite.new(self.path_here(draft.path), draft.text)
            main.add(suite)
        else:
            if suite is None:
                suite = OpenSuite(parse_suite(draft.base_text, self.path_here(draft.path)), draft.base_state)
                main.add(suite)
            elif (suite.on_disk and suite.on_disk.hash) != (draft.base_state and draft.base_state.hash):
                suite.reloaded(parse_suite(draft.base_text, suite.path), draft.base_state)
            main.change(suite, Document.of(draft.text), "Took over unsaved changes")
        main.select(suite.path)

    def path_here(self, path: Path) -> Path:
        """A path as the suites that are open have theirs."""
        known = self._drafts.known_as(path)
        for root in self._app.main.workspace.roots:
            for place in self._drafts.places(root):
                if known.is_relative_to(place):
                    return root / known.relative_to(place)
        return path

    # The end

    async def may_leave(self) -> bool:
        """Whether the program may end, asked when something is not saved."""
        dirty = self._app.main.desk.dirty
        if not dirty:
            return True
        for suite in dirty:
            self.changed(suite)  # the disk may have room again by now
        from workbench.tui.saving.dialogs import UnsavedScreen

        answer = await self._app.push_screen_wait(UnsavedScreen([suite.path for suite in dirty], self._trouble))
        if answer == "save":
            return await self._app.saver.save(dirty)
        if answer == "discard":
            for suite in dirty:
                self.forget(suite)
        return answer in ("drafts", "discard")


def _notice(draft: LeftDraft, suite: OpenSuite | None) -> str:
    if suite is not None:
        same = (suite.on_disk and suite.on_disk.hash) == (draft.base_state and draft.base_state.hash)
        return "" if same else "The file on the disk is another one by now: you are asked before it is overwritten."
    return "The file is no longer there." if draft.base_state is not None else "It was never saved."
