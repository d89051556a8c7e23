"""The run pane: the choice of a case's runs, and the lines of one run, with a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.message import Message as TextualMessage
from textual.widget import Widget

from workbench.show.spans import Message
from workbench.tui.kit.bars import PaneTitle
from workbench.tui.kit.text_editor import TextEditor
from workbench.tui.run_book.record import RunRecord, waiting_message
from workbench.tui.stepping.actions import OF_TYPED_TEXT
from workbench.tui.trajectory.run_tabs import BranchLine, RunChoice
from workbench.tui.trajectory.view import RunList, SearchedRun

if TYPE_CHECKING:
    from workbench.tui.kit.actions import HeldKind
    from workbench.tui.shell.workbench import Workbench
    from workbench.tui.stepping.held_editor import HeldEditor
    from workbench.tui.stepping.held_text import HeldText


class RunPane(SearchedRun):
    """Shows one of the runs of a case. The editor exists only while something is typed for a held run."""

    class Turned(TextualMessage):
        """Posted when typing begins or ends, or the focus moves."""

    class Kept(TextualMessage):
        """Posted when the typed text should be sent to the run."""

    def __init__(self, stage: Workbench, widget_id: str | None = None, *, classes: str | None = None) -> None:
        super().__init__(widget_id, classes=classes)
        self._stage = stage
        self._run: RunRecord | None = None
        self.editor: HeldEditor | None = None
        """The editor of text for a held run."""
        self._drafts: dict[tuple[str, HeldKind], tuple[HeldText, str, bool]] = {}
        """Unsent text: its target, the text, and whether it is a tool error."""

    def compose(self) -> ComposeResult:
        yield PaneTitle("run-title")
        yield RunChoice("choice")
        yield BranchLine("branch")
        yield RunList("run")

    def on_mount(self) -> None:
        self.query_one("#choice").display = False
        self.query_one("#branch").display = False

    def show(
        self,
        runs: Sequence[RunRecord],
        chosen: int,
        message: Message,
        held: Sequence[RunRecord],
        starting: Sequence[str] = (),
        in_use: Sequence[str] = (),
    ) -> None:
        """Show one of the runs of a case, or a message if there is none. `held` are all held runs, of any case,
        `starting` is what starts, and `in_use` are the models that the user chose."""
        if self.editor is not None:
            if runs and runs[chosen] is self.editor.held.run:
                self.editor.follow()
            else:
                self.end_typing()
        run = self._run = runs[chosen] if runs else None
        self.query_one("#choice", RunChoice).show(runs, chosen)
        self.query_one("#branch", BranchLine).show(run, in_use)
        self.run_list.show(run.view if run else None, waiting_message(run, held, starting) if run else message)
        self.show_found()

    @property
    def call_meant(self) -> str | None:
        """The id of the call under the cursor, otherwise of the one where the run is held."""
        run, place = self._run, self.run_list.place
        if place is not None and place.call_id is not None:
            return place.call_id
        return run.paused.call_id if run is not None and run.paused is not None else None

    @property
    def target(self) -> Widget:
        """The widget that gets the focus of the pane."""
        return self.editor.editor if self.editor is not None and self.editor.is_mounted else self.run_list

    # Typing for a held run

    @property
    def typing(self) -> HeldKind | None:
        """The kind of text being typed, while the editor has the focus."""
        return self.editor.typing if self.editor is not None and self.editor.is_mounted else None

    def takes(self, action_id: str) -> bool:
        """Return whether an action applies to the text being typed here, instead of the suite."""
        return self.typing is not None and action_id in OF_TYPED_TEXT

    def type_in(self, held: HeldText) -> None:
        """Open the editor with the unsent text, if any. If the run has left the place where that was typed, it is only
        displayed."""
        from workbench.tui.stepping.held_editor import HeldEditor

        self.end_typing()
        kept, text, is_error = self._drafts.get(held.key, (held, held.original, held.is_error))
        self.editor = HeldEditor(self._stage, held if kept.why_gone is None else kept, text, is_error)
        self.mount(self.editor)

    def has_unsent(self, run: RunRecord) -> bool:
        """Return whether there is unsent text for the place where a run is held."""
        drafts = [held for held, _, _ in self._drafts.values()]
        if self.editor is not None and self.editor.is_changed:
            drafts.append(self.editor.held)
        return any(held.run is run and held.why_gone is None for held in drafts)

    def end_typing(self, *, dropped: bool = False) -> None:
        """Close the editor. The text is stored for the next time unless `dropped`."""
        editor, self.editor = self.editor, None
        if editor is None:
            return
        self._drafts.pop(editor.held.key, None)
        if editor.is_changed and not dropped:
            self._drafts[editor.held.key] = (editor.held, editor.text, editor.is_error)
        if editor.is_mounted and editor.editor.has_focus:
            self.run_list.focus()
        editor.remove()
        self.post_message(self.Turned())

    def sent(self, editor: HeldEditor) -> None:
        """Close an editor whose text was applied."""
        if self.editor is editor:
            self.end_typing(dropped=True)
        else:  # a different run is displayed by now
            self._drafts.pop(editor.held.key, None)

    def follow_run(self) -> None:
        """Show the end of the run as it grows."""
        self.run_list.follow()

    def on_resize(self) -> None:
        if self.editor is not None and self.editor.is_mounted:
            self.editor.fit()

    def on_descendant_focus(self) -> None:
        self._turned()

    def on_descendant_blur(self) -> None:
        self._turned()

    def _turned(self) -> None:
        if self.editor is not None:
            self.post_message(self.Turned())

    def on_held_editor_kept(self) -> None:
        self.post_message(self.Kept())

    def on_held_editor_ended(self) -> None:
        editor = self.editor
        if editor is None or editor.is_sending:
            return
        gone, is_changed = editor.held.why_gone, editor.is_changed
        self.end_typing(dropped=gone is not None)
        if is_changed:
            why = f"{gone}, so it was not sent" if gone else "Not sent, but kept: the same key shows it again"
            self._stage.announce(why[:1].upper() + why[1:])

    @on(TextEditor.Copied)
    def _copied(self, event: TextEditor.Copied) -> None:
        self._stage.copy(event.text, event.what, self._stage.announce)
