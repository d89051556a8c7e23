"""The case pane: the selected case or its suite's settings, as a form or as TOML."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Literal

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget

from workbench.authoring.document import HEAD, Document
from workbench.authoring.form.field_text import first_change
from workbench.authoring.form.row import FormSource
from workbench.authoring.known_tools import KnownTools, with_own_tools
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import undo
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Message
from workbench.show.visible import one_line
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.suite.suite_text import SpliceError
from workbench.trajectory.events import ToolDefinition
from workbench.tui.case.excerpt_view import case_picture, step_line
from workbench.tui.case.form.page import case_of_problem, form_source, row_source, why_no_form, with_table
from workbench.tui.case.form.view import FormView
from workbench.tui.case.toml.pane import TomlPane, TomlPart, part_of
from workbench.tui.kit.actions import View, key_for
from workbench.tui.kit.bars import PaneTitle
from workbench.tui.kit.text_editor import TomlEditor
from workbench.tui.tree.selection import Selection
from workbench.tui.tree.state import Row

if TYPE_CHECKING:
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


class CasePane(Vertical):
    """The pane of the selected case or its suite's settings. `view` is "form" or "toml"."""

    DEFAULT_CSS = "CasePane > .hidden { display: none; }"

    def __init__(
        self,
        app: Workbench,
        selection: Selection,
        known_tools: KnownTools,
        panes: MainScreen,
        widget_id: str | None = None,
        *,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=widget_id, classes=classes)
        self._app = app
        self._selection = selection
        self._open_suites = selection.open_suites
        self._known_tools = known_tools
        self._panes = panes
        self.on_rest: Callable[[], object] = lambda: None
        """Called when the form's cursor moved, or typing in the form ended."""
        self.view: View = "form"
        self._last_shown: tuple[OpenSuite, int, str | None, int] | None = None
        """The last displayed suite, with the index and key of its case and the number of cases."""
        self._step: int | None = None
        """The last displayed step of the case."""
        self._forms = 0
        """The number of different forms. It identifies the current form."""

    def compose(self) -> ComposeResult:
        yield PaneTitle("case-title")
        yield FormView("form")
        toml = TomlPane(self._change_text, "toml")
        # Otherwise, the first layout would divide the pane between both, and `show` would cause a second one.
        toml.add_class("hidden")
        yield toml

    @property
    def form(self) -> FormView:
        return self.query_one(FormView)

    @property
    def target(self) -> Widget:
        """The widget that gets the focus of the pane."""
        if self.view == "form":
            if self.form.typing:
                return self.form.field
            return self.form
        return self.toml.target

    @property
    def toml(self) -> TomlPane:
        return self.query_one(TomlPane)

    def show(self) -> int | None:
        """Show the selected row.

        If the cursor moved to the selected step, return its number (from 1), otherwise `None`."""
        tree = self._selection.tree
        form, toml = self.form, self.toml
        form.set_class(self.view != "form", "hidden")
        toml.set_class(self.view != "toml", "hidden")
        row = tree.selected
        is_same = self._is_same(row)
        if self.view == "toml":
            form.show(None)
            toml.tools = partial(self._tools_of_row, row)
            toml.show(part_of(row), lambda: case_picture(tree), is_same=is_same)
        elif row is None or row.open is None:
            form.show(None, case_picture(tree).message, row and row.key)
        else:
            # A new form begins at its first missing value. An edited form keeps the cursor.
            self._forms += not is_same
            self._show_form(form, row, row.open)
        return self._go_to_step(row, is_same)

    def _go_to_step(self, row: Row | None, is_same: bool) -> int | None:
        before, self._step = self._step, row and row.step
        if row is None or row.open is None or row.case is None or row.step is None:
            return None
        # After an edit, the same row is shown again. The cursor must not move then.
        if is_same and row.step == before:
            return None
        if self.view == "form":
            self.form.go_to(("steps", row.step - 1))
        elif not self.toml.typing:
            line = step_line(row.open, row.case.index, row.step)
            if line is not None:
                self.toml.view.go_to(line)
        return row.step

    def _is_same(self, row: Row | None) -> bool:
        # A case is identified by its key. If the user types a new id or name, the key changes. The index then
        # identifies the case, provided that the number of cases is unchanged.
        before, self._last_shown = self._last_shown, None
        if row is None or row.open is None:
            return False
        index, key = _case_of(row)
        self._last_shown = (row.open, index, key, len(row.open.cases))
        if before is None or before[0] is not row.open:
            return False
        if key is None or before[2] is None:
            return index == before[1]
        return key == before[2] or (index, self._last_shown[3]) == (before[1], before[3])

    def _show_form(self, form: FormView, row: Row, suite: OpenSuite) -> None:
        index, case = _case_of(row)
        known, models = self._known_tools_of(suite), self._selection.models
        if row.case is not None and row.case.is_row:
            source = row_source(suite, row.case, known)
        else:
            source = form_source(suite, index, known, models)
        form.on_change = partial(self._change, suite, index, case)
        form.on_give_up = partial(self._give_up, suite)
        form.invalid_texts, form.case = suite.invalid_texts, case
        message: Message = ()
        if source is None:
            message = why_no_form(suite, index)
        form.show(source, message, self._forms, row.why_not_editable)
        if row.problem is not None:
            form.go_to_problem(row.problem.where)

    @property
    def shown(self) -> tuple[int, FormSource | None]:
        """A number that identifies the displayed form, and the form's content."""
        return self._forms, self.form.page.source

    def go_to_change(self, before: tuple[int, FormSource | None]) -> None:
        """Move the form's cursor to the first value that differs from `before`, an earlier value of `shown`.

        Do nothing if another form is displayed now."""
        (forms, source), form = before, self.form
        now = form.page.source
        if self.view == "form" and forms == self._forms and source is not None and now is not None:
            form.go_to(first_change(source.table, now.table))

    def _known_tools_of(self, suite: OpenSuite) -> tuple[ToolDefinition, ...]:
        if suite.document.parts is None:
            return ()
        return self._known_tools.of(suite.document.table(HEAD), suite.path)

    def _tools_of_row(self, row: Row | None) -> tuple[ToolDefinition, ...]:
        if row is None or row.open is None:
            return ()
        document, known = row.open.document, self._known_tools_of(row.open)
        if document.parts is None or row.case is None or row.case.index in document.unparsed:
            return known
        return with_own_tools(known, document.table(row.case.index))

    def _change(
        self,
        suite: OpenSuite,
        index: int,
        case: str | None,
        table: Table,
        summary: str,
        group: Hashable,
        by_keys: bool,
    ) -> str | None:
        try:
            document = with_table(suite.document, index, table)
        except SpliceError as error:
            return str(error)
        self._open_suites.change(suite, document, summary, group=group, case=case, index=index, by_keys=by_keys)
        return None

    def _give_up(self, suite: OpenSuite, group: Hashable) -> bool:
        """Undo the text typed in a field, and return whether that was possible.

        It is impossible after the text was saved or the suite was changed elsewhere."""
        if suite.last is None or suite.last.group != group:
            return False
        undo(suite, self._open_suites)
        self._app.announce(f"Left as it was; {key_for('edit.redo')} brings back what you typed")
        return True

    @on(FormView.Refused)
    def _refused(self, event: FormView.Refused) -> None:
        self._app.announce(event.why[:1].upper() + event.why[1:], "warned", GLYPHS.warned)

    @on(FormView.ExpectsNothing)
    def _expects_nothing(self) -> None:
        self._app.announce(
            f"{key_for('form.add')} adds a call that you expect; or {key_for('run.case')} runs the case, "
            f"and {key_for('accept')} then accepts its calls"
        )

    @on(FormView.Moved)
    def _form_moved(self) -> None:
        self._panes.refresh_bars()
        self.on_rest()

    def _change_text(self, part: TomlPart, document: Document, summary: str, group: Hashable) -> None:
        index = HEAD
        if part.index is not None:
            index = part.index
        self._open_suites.change(part.suite, document, summary, group=group, case=part.key, index=index)

    @on(TomlPane.Turned)
    def _turned(self) -> None:
        if self.toml.typing:
            self._panes.refresh_bars()
        else:
            self._selection.notify_all()

    @on(TomlEditor.Copied)
    def _copied(self, event: TomlEditor.Copied) -> None:
        self._app.copy(event.text, event.what, self._app.announce)

    def edit(self) -> None:
        """Begin to edit at the cursor.

        If another pane has the focus, begin at the first missing value, or else at the message."""
        form, row = self.form, self._selection.row
        # Text that is not valid TOML has no form.
        if self.view == "form" and form.page.source is None:
            self.show_as("toml")
        is_seen = self._panes.pane == "case" or row is None or row.problem is not None or row.step is not None
        self._leave_problem()
        if self.view == "toml":
            self._type()
        self._panes.go_to("case")
        if self.view == "form" and is_seen:
            form.edit()
        elif self.view == "form":
            form.edit_from_start()

    def edit_at(self, place: Place) -> None:
        """Go to an expectation of the case, and open the field of its value or tool.

        If the key is hidden because it has no value, it is shown. A list or a yes-or-no cell has no field, so it is
        only selected, and a notice explains how to change it."""
        if self.view != "form":
            self.show_as("form")
        self._panes.go_to("case")
        if self.form.fill_in(place):
            return
        self.form.go_to(place)
        if not self.form.type_value() and (row := self.form.page.current) is not None:
            label = one_line(row.label or str(place[-1]))
            self._app.announce(f"The cursor is on what failed: {label}. Enter changes it, Del removes it")

    def _leave_problem(self) -> None:
        # The row of a problem disappears once the problem is corrected, so its case is selected instead.
        row = self._selection.row
        if row is None or row.open is None or row.problem is None:
            return
        index = case_of_problem(row.problem)
        case: str | None = None
        if 0 <= index < len(row.open.cases):
            case = row.open.cases[index].key
        self._selection.select(row.open.path, case)

    def _type(self) -> None:
        part = self.toml.part
        if part is None:
            self._app.announce("There is nothing to edit here", "warned", GLYPHS.warned)
            return
        if part.too_large is not None:
            self._app.announce(part.too_large[:1].upper() + part.too_large[1:], "warned", GLYPHS.warned)
            return
        self.toml.begin()
        # A suite that cannot be divided into cases is edited as a whole, nearly always to correct a problem.
        if part.index is None and self.toml.line == 0:
            self.toml.go_to_problem()

    def show_as(self, view: View) -> None:
        # Text is applied while it is typed, so leaving the editor loses nothing.
        self.toml.end()
        self.view = view
        self._selection.notify_all()

    def line_of(self, part: TomlPart) -> int:
        """Return the line of a part (from 1) under the cursor.

        If the part is not displayed as TOML, return the line of its first problem, or 1."""
        if self.view == "toml" and self.toml.part == part and self.toml.line:
            return self.toml.line + 1
        return next((problem.line - part.first + 1 for problem in part.problems if problem.line), 1)

    @property
    def typing(self) -> Literal["a line", "a text", "toml"] | None:
        """The kind of text being typed, if any."""
        form = self.form
        if self.toml.typing:
            return "toml"
        if self.view != "form" or not form.typing:
            return None
        if form.is_multiline:
            return "a text"
        return "a line"

    @property
    def refused(self) -> bool:
        """Whether the text of the open field is invalid."""
        opened = self.form.page.opened
        return opened is not None and bool(opened.refused)

    def give_up_refused(self) -> str | None:
        """Close a field with invalid text. Return why the text was invalid."""
        return self.form.give_up_refused()

    def form_refusals(self) -> dict[str, str]:
        """Return the actions that are unavailable in the form: the reason of each, by action id."""
        if self.view != "form":
            return {}
        return self.form.refusals()

    def text_to_copy(self) -> tuple[str, str]:
        """Return the text to copy, and a name of the text for the notice."""
        if self.view == "form":
            return self.form.text, "the content of the cell"
        return self.toml.text, "the TOML"


def _case_of(row: Row) -> tuple[int, str | None]:
    """Return the index and the key of a row's case. For a problem's row, the key is `None`."""
    if row.case is not None:
        return row.case.index, row.case.key
    return case_of_problem(row.problem), None
