"""The screen of changes from one batch of the history to a later one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.analysis.batch_diff import CaseChange
from workbench.config.folders import history_option
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Message, Span
from workbench.tui.history.changes import DiffList, detail_lines, head_lines, list_message, row_line
from workbench.tui.history.stored_screens import file_of, runs_screen, show_stored
from workbench.tui.history.timeline_screen import show_timeline
from workbench.tui.kit.actions import action
from workbench.tui.kit.list_screen import ListScreen
from workbench.tui.kit.stage import in_background
from workbench.tui.run_book.stored import read_two

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


class BatchDiffScreen(ListScreen[None, DiffList]):
    """The changes by kind, foldable, and both sides of the selected one."""

    NAME = "diff"
    TITLE_IN_TEXT = "what changed"
    AUTO_FOCUS = "#diff-list"
    FILTERED_BY = "words of kind, suite, case, model or reason"

    def _row_line(self, index: int, width: int) -> Line:
        return row_line(self.state, self.state.rows[index], width)

    def _message(self) -> Message:
        return list_message(self.state)

    def _head_lines(self, width: int) -> Sequence[Line]:
        return head_lines(self.state, width)

    def _detail_lines(self, width: int) -> Sequence[Line]:
        cut = len(self._head_lines(self.app.size.width - 1)) > self._head_rows
        return detail_lines(self.state, self.state.selected, width, head_is_cut=cut)

    def _title(self) -> tuple[Line, Sequence[Line]]:
        state = self.state
        before, after = state.names
        left: Line = (
            Span(" Changes ", "badge"),
            Span(f" {before}"),
            Span(f" {GLYPHS.call} ", "muted"),
            Span(f"{after}{self._filter_text}"),
        )
        on_models = f" on {len(state.diff.models):,} models" if state.several_models else ""
        compared = f"{counted(state.diff.cases, 'case')}{on_models} compared "
        return left, [(Span(compared, "muted"),), EMPTY]

    @property
    def change(self) -> CaseChange | None:
        """The selected change."""
        row = self.state.selected
        return row.change if row is not None else None

    def _refusals(self) -> dict[str, str]:
        refused = {}
        if self.state.selected is None:
            refused["diff.open"] = refused["diff.copy"] = "there is no change here"
        if self.change is None:
            refused["diff.timeline"] = "put the cursor on a case"
        return refused

    @action("enter", "Show both runs side by side, or the only one; fold a kind", label="side by side")
    def do_open(self) -> None:
        """Show both runs side by side, or the one that exists; fold a kind of change."""
        if self.change is None:
            self._fold(None)
        else:
            sides = [
                (f"batch {name}", side.run, side.grading)
                for name, side in zip(self.state.names, self.state.sides(self.change), strict=True)
                if side is not None
            ]
            show_stored(self.stage, self, lambda: runs_screen(self.stage, sides))

    @action("h", "History of the case: its runs over time", label="over time")
    def do_timeline(self) -> None:
        """Show the case over time."""
        if (change := self.change) is not None:
            show_timeline(self.stage, self, change.suite, change.case_id, change.case_name)

    @action("y", "Copy it as Markdown", label="copy")
    def do_copy(self) -> None:
        """Copy the changes as Markdown."""

        async def copy() -> None:
            self.stage.copy(await in_background(self.state.as_text), "the changes", self.announce)

        self.stage.work(copy(), "diff_copy", exclusive=True)

    @action("left", "Fold the kind of change")
    def do_left(self) -> None:
        """Fold the kind of change; from the details, go back to the list."""
        if self.column == "detail":
            self._go_to("list")
        else:
            self._fold(True)

    @action("right", "Unfold it")
    def do_right(self) -> None:
        """Unfold the kind of change; otherwise go to the details."""
        if self.column == "list" and not self._fold(False):
            self._go_to("detail")

    def _fold(self, folded: bool | None) -> bool:
        """Fold or unfold the selected kind of change; `None` toggles. Returns whether that changed anything."""
        row = self.state.selected
        if row is None or not self.state.fold(not self.state.is_folded(row.kind) if folded is None else folded):
            return False
        self._show_state()
        return True


async def changes_screen(app: Workbench, wanted: Sequence[tuple[int, int | None]]) -> BatchDiffScreen:
    """Return the screen of what changed between two batches, each with the grading by which it is seen."""
    file = file_of(app)
    state = await in_background(lambda: DiffList(*read_two(file, *wanted), history_option(file)))
    return BatchDiffScreen(app, state)
