"""The run pane: tabs of a case's runs, and the lines of the selected run, with a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.message import Message as TextualMessage
from textual.widget import Widget

from workbench.numerals import score_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Line, Message, Span, cells, cut_line, cut_middle
from workbench.show.visible import model_label, one_line
from workbench.tui.holds.actions import TYPED_TEXT_ACTIONS
from workbench.tui.kit.actions import key_for, unless_read_only
from workbench.tui.kit.bars import PaneTitle
from workbench.tui.kit.strips import Bar, keymap_of
from workbench.tui.kit.text_editor import TextEditor
from workbench.tui.run_book.forks import branch_number, branch_text
from workbench.tui.run_book.record import RunRecord, waiting_message
from workbench.tui.terminal.theme import Ground
from workbench.tui.trajectory.headline import unfinished
from workbench.tui.trajectory.view import RunList, SearchedRun

if TYPE_CHECKING:
    from workbench.tui.holds.held_editor import HeldEditor, HeldText
    from workbench.tui.kit.actions import HeldKind
    from workbench.tui.shell.workbench import Workbench


class RunPane(SearchedRun):
    """The pane of one run of a case. Contains an editor while the user edits a text of a held run."""

    class Turned(TextualMessage):
        """Posted when the editor of a held run opens or closes, or the focus moves."""

    class Kept(TextualMessage):
        """Posted when the user sends the edited text to the held run."""

    def __init__(self, app: Workbench, widget_id: str | None = None, *, classes: str | None = None) -> None:
        super().__init__(widget_id, classes=classes)
        self._app = app
        self._run: RunRecord | None = None
        self.editor: HeldEditor | None = None
        """The editor of a text for a held run, `None` while the user types no such text."""
        self._drafts: dict[tuple[str, HeldKind], tuple[HeldText, str, bool]] = {}
        """Unsent texts: the target, the text, and whether the text is a tool error."""

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
        held_runs: Sequence[RunRecord],
        starting: Sequence[str] = (),
        in_use: Sequence[str] = (),
    ) -> None:
        """Show the run at the index `chosen`, or a message if there are no runs.

        `held_runs` are the held runs of all cases, `starting` the servers and models that are starting, and `in_use`
        the models that the user selected."""
        # Showing another run closes the editor, which belongs to the held run, and keeps its unsent text.
        if self.editor is not None:
            if runs and runs[chosen] is self.editor.held_text.run:
                self.editor.follow()
            else:
                self.end_typing()
        run: RunRecord | None = None
        if runs:
            run = runs[chosen]
        self._run = run
        self.query_one("#choice", RunChoice).show(runs, chosen)
        self.query_one("#branch", BranchLine).show(run, in_use)
        if run is None:
            self.run_list.show(None, message)
        else:
            self.run_list.show(run.view, waiting_message(run, held_runs, starting))
        self.show_found()

    @property
    def call_meant(self) -> str | None:
        """The id of the call at the cursor, or else of the call at which the run is held."""
        run, place = self._run, self.run_list.place
        if place is not None and place.call_id is not None:
            return place.call_id
        if run is None or run.paused is None:
            return None
        return run.paused.call_id

    @property
    def target(self) -> Widget:
        """The widget that gets the focus of the pane."""
        if self.editor is not None and self.editor.is_mounted:
            return self.editor.editor
        return self.run_list

    # Typing for a held run

    @property
    def typing(self) -> HeldKind | None:
        """The kind of the text in the editor while it has the focus, otherwise `None`."""
        if self.editor is None or not self.editor.is_mounted:
            return None
        return self.editor.typing

    def is_for_typed_text(self, action_id: str) -> bool:
        """Return whether an action applies to the editor of a held run, not to the suite."""
        return self.typing is not None and action_id in TYPED_TEXT_ACTIONS

    def type_in(self, held_text: HeldText) -> None:
        """Open the editor for a text of a held run. The user's earlier unsent version is restored.

        If the run has continued since then, that version is shown but cannot be sent."""
        from workbench.tui.holds.held_editor import HeldEditor

        self.end_typing()
        kept, text, is_error = self._drafts.get(held_text.key, (held_text, held_text.original, held_text.is_error))
        if kept.why_not_sendable is not None:
            held_text = kept
        self.editor = HeldEditor(self._app, held_text, text, is_error)
        self.mount(self.editor)

    def has_unsent(self, run: RunRecord) -> bool:
        """Return whether there is an unsent text for the current hold of a run."""
        drafts = [held for held, _, _ in self._drafts.values()]
        if self.editor is not None and self.editor.is_changed:
            drafts.append(self.editor.held_text)
        return any(held.run is run and held.why_not_sendable is None for held in drafts)

    def end_typing(self, *, dropped: bool = False) -> None:
        """Close the editor. Its text is kept for the next time, unless it is `dropped`."""
        editor, self.editor = self.editor, None
        if editor is None:
            return
        self._drafts.pop(editor.held_text.key, None)
        if editor.is_changed and not dropped:
            self._drafts[editor.held_text.key] = (editor.held_text, editor.text, editor.is_error)
        if editor.is_mounted and editor.editor.has_focus:
            self.run_list.focus()
        editor.remove()
        self.post_message(self.Turned())

    def sent(self, editor: HeldEditor) -> None:
        """Close an editor whose text was applied."""
        if self.editor is editor:
            self.end_typing(dropped=True)
        else:
            # The pane shows another run by now. Closing the editor has stored the text as unsent, although it was sent.
            self._drafts.pop(editor.held_text.key, None)

    def follow_run(self) -> None:
        self.run_list.follow()

    def on_resize(self) -> None:
        if self.editor is not None and self.editor.is_mounted:
            self.editor.fit()

    def on_descendant_focus(self) -> None:
        self._turned()

    def on_descendant_blur(self) -> None:
        self._turned()

    def _turned(self) -> None:
        # The active keys depend on whether the editor has the focus.
        if self.editor is not None:
            self.post_message(self.Turned())

    def on_held_editor_kept(self) -> None:
        self.post_message(self.Kept())

    def on_held_editor_ended(self) -> None:
        editor = self.editor
        # While the text is being sent, the editor must stay open until the run has received it.
        if editor is None or editor.is_sending:
            return
        gone, is_changed = editor.held_text.why_not_sendable, editor.is_changed
        self.end_typing(dropped=gone is not None)
        if is_changed and gone:
            self._app.announce(f"{gone[:1].upper()}{gone[1:]}, so it was not sent")
        elif is_changed:
            self._app.announce("Not sent, but kept: the same key shows it again")

    @on(TextEditor.Copied)
    def _copied(self, event: TextEditor.Copied) -> None:
        self._app.copy(event.text, event.what, self._app.announce)


_MIN_TAB_CELLS = 19
"""The minimum width of a name in a tab. With less, the names of models would look the same."""

_MORE_CELLS = 10
"""The width of the number of hidden tabs at one side."""


class RunChoice(Bar):
    """The tabs of a case's runs. Hidden for a single run."""

    GROUND: ClassVar[Ground] = "background"

    class Chosen(TextualMessage):
        """Posted when a tab is clicked. `index` is the index of the tab's run."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self._tabs: list[Line] = []
        self._prefix: Line = ()
        self._chosen = 0

    def show(self, runs: Sequence[RunRecord], chosen: int) -> None:
        self.display = len(runs) > 1
        if not self.display:
            return
        self._tabs = [_run_label(run, runs, index == chosen) for index, run in enumerate(runs)]
        lead = " "
        if _of_one_model(runs):
            lead = f" {model_label(runs[0].model)} "
        self._prefix = (Span(lead, "muted"),)
        self._chosen = chosen
        self.set_line(lambda width: tabs_line(self._prefix, self._tabs, self._chosen, width)[0])

    def on_click(self, event: events.Click) -> None:
        ends = tabs_line(self._prefix, self._tabs, self._chosen, self.size.width)[1]
        for end, index in ends:
            if event.x < end:
                self.post_message(self.Chosen(index))
                return


def tabs_line(prefix: Line, tabs: Sequence[Line], chosen: int, width: int) -> tuple[Line, list[tuple[int, int]]]:
    """Return the line of tabs after `prefix`, and the end column and run index of each visible tab.

    If there is little room, names are cut. If there is less, only the tabs around the selected tab are visible. The
    number of hidden tabs on a side is then shown like a tab, with the run index of the nearest hidden tab."""
    widths = list(map(cells, tabs))
    if cells(prefix) + sum(widths) > width:
        prefix = (Span(" "),)
    first, last = 0, len(tabs) - 1
    share = (width - cells(prefix)) // len(tabs)
    if sum(widths) > width - cells(prefix) and share >= _MIN_TAB_CELLS:
        # Names are cut before tabs are hidden, because a cut name says more than a hidden tab.
        tabs = [_cut_tab(tab, share) for tab in tabs]
        widths = list(map(cells, tabs))
    if sum(widths) > width - cells(prefix):
        room = width - cells(prefix) - 2 * _MORE_CELLS
        tabs = [_cut_tab(tab, room) for tab in tabs]
        widths = list(map(cells, tabs))
        # Tabs are added around the selected one, first to the right and then to the left, while there is room.
        first = last = chosen
        while True:
            used = sum(widths[first : last + 1])
            if last + 1 < len(tabs) and used + widths[last + 1] <= room:
                last += 1
            elif first and used + widths[first - 1] <= room:
                first -= 1
            else:
                break
    parts = [(tabs[index], index) for index in range(first, last + 1)]
    if first:
        parts.insert(0, ((Span(f"< {first} more".ljust(_MORE_CELLS), "muted"),), first - 1))
    if last + 1 < len(tabs):
        parts.append(((Span(f"{len(tabs) - last - 1} more >".rjust(_MORE_CELLS), "muted"),), last + 1))
    line, ends = prefix, list[tuple[int, int]]()
    for part, index in parts:
        line = (*line, *part)
        ends.append((cells(line), index))
    return cut_line(line, width), ends


def _cut_tab(tab: Line, max_width: int) -> Line:
    if cells(tab) <= max_width:
        return tab
    name, *verdict = tab
    left = max_width - cells(tuple(verdict)) - 2
    return (Span(f" {cut_middle(name.text.strip(), max(left, 1))} ", name.role), *verdict)


class BranchLine(Bar):
    """The line below the tabs, which describes a fork or a run on an unselected model. Hidden for other runs."""

    GROUND: ClassVar[Ground] = "background"

    def show(self, run: RunRecord | None, in_use: Sequence[str] = ()) -> None:
        """Describe a fork, or a run on a model that the user did not select.

        `in_use` are the selected models. If it is empty, the model of a run is not described."""
        self.display = False
        if run is None:
            return
        if run.is_fork:
            description = Span(f" {GLYPHS.fork} {one_line(branch_text(run))}", "muted")
        elif in_use and run.model not in in_use and not run.recorded:
            models = ", ".join(map(model_label, in_use))
            rerun_hint = unless_read_only(f"; {key_for('run.case')} runs it on {models}")
            text = keymap_of(self).in_words(f"ran on {model_label(run.model)}{rerun_hint}")
            description = Span(f" {GLYPHS.warned} {one_line(text)}", "warned")
        else:
            return
        self.display = True
        self.set_line(lambda width: cut_line((description,), width))


def _of_one_model(runs: Sequence[RunRecord]) -> bool:
    return len({run.model for run in runs if not run.is_fork}) == 1


def _run_label(run: RunRecord, runs: Sequence[RunRecord], chosen: bool) -> Line:
    name = run_name(run, runs)
    if run.is_fork:
        name = f"{GLYPHS.fork} {name}"
    tab = Span(f" {name} ", "muted")
    if chosen:
        tab = Span(f" {name} ", "badge")
    if run.result is None:
        sign, _, role = unfinished(run)
        return tab, Span(f" {sign}  ", role)
    sign, role = run.result.status.mark
    return tab, Span(f" {sign} {score_text(run.result.score, '')}".rstrip() + "  ", role)


def run_name(run: RunRecord, runs: Sequence[RunRecord]) -> str:
    """Return a name that distinguishes a run from the other runs of its case: `fork 1`, `#2` or a model."""
    if run.is_fork:
        return f"fork {branch_number(run, runs)}"
    parts: list[str] = []
    one_model = _of_one_model(runs)
    if not one_model:
        parts.append(model_label(run.model))
    if any(other.repeat for other in runs):
        parts.append(f"#{run.repeat + 1}")
    if len({other.recorded for other in runs if not other.is_fork}) > 1:
        if run.recorded:
            parts.append("recorded")
        elif one_model:
            parts.append("new")
    # If a newer run was stopped, the earlier run of the same model and repeat is listed too.
    if run is not next(other for other in runs if other.identity == run.identity):
        parts.append("before")
    return " ".join(parts) or "run"
