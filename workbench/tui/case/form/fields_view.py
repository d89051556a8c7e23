"""The form with an input field over the edited cell. Every change of the text is applied at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import ComposeResult
from textual.geometry import Region
from textual.message import Message as TextualMessage
from textual.widgets import Input

from workbench.authoring.form.additions import AdditionSearch
from workbench.authoring.form.completions import FIXED_CHOICE_CELLS, suggestions
from workbench.authoring.form.descriptions import placeholder
from workbench.authoring.form.edits import Edit, edited, with_id
from workbench.authoring.form.field_text import CellError, CellKey, InvalidText, place_in
from workbench.authoring.form.row import Cell, FormRow, FormSource, cell_id
from workbench.authoring.form.row_changes import PendingAddition
from workbench.authoring.form.rows import nearest
from workbench.limits import MAX_FIELD_CHARS
from workbench.numerals import counted
from workbench.show.spans import EMPTY, Line, Message, message_lines, wrap
from workbench.suite.problems import Place, place_text
from workbench.suite.render import Table
from workbench.suite.toml_equality import toml_equal
from workbench.tui.case.form.page import FormPage, OpenField, main_cell
from workbench.tui.kit.fields import FieldExit, LineField
from workbench.tui.kit.line_view import LineView, Motion, motion_distances
from workbench.tui.kit.suggestions import MAX_ROWS, CompletionList

if TYPE_CHECKING:
    from workbench.tui.kit.text_field import TextField


class FormRows(LineView):
    """The rows of a form. If there is no form, a message is shown."""

    class Moved(TextualMessage):
        """Posted when the cursor moves, or a field is opened or closed."""

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.page = FormPage()
        self._message: Message = ()
        self._every_key = False

    def line_count(self) -> int:
        if self.page.rows:
            return self.page.line_count
        return len(message_lines(self._message, self.text_width))

    def line_at(self, index: int) -> Line:
        if self.page.rows:
            return self.page.line(index, marked=self.has_focus)
        rows = message_lines(self._message, self.text_width)
        if index < len(rows):
            return rows[index]
        return EMPTY

    @property
    def has_cursor(self) -> bool:
        return bool(self.page.rows)

    @property
    def typing(self) -> bool:
        return self.page.opened is not None

    @property
    def text(self) -> str:
        """The content of the selected cell, for copying."""
        cell = self.page.current_cell
        if cell is None:
            return ""
        return cell.text

    def go_to(self, place: Place) -> None:
        """Select the row of a place in the form, or the nearest enclosing row."""
        if self.page.source is not None and not self.typing:
            self.page.go_to(place)
            self._moved()

    def go_to_problem(self, where: str) -> None:
        """Select the row of a problem.

        `where` is the path to the problem in the suite, such as `cases[3].ordered[0].args.city`."""
        source = self.page.source
        if source is not None:
            # Several rows may have the same place. In reverse order, the first row is stored last and wins.
            places = {}
            for row in reversed(self.page.rows):
                places[place_text((*source.at, *row.place))] = row.place
            self.go_to(places.get(nearest(where, places), ()))

    def action_move(self, motion: Motion) -> None:
        page = self.page
        if not page.rows:
            super().action_move(motion)
            return
        rows = {"up": page.row - 1, "down": page.row + 1, "home": 0, "end": len(page.rows) - 1}
        if motion in rows:
            page.go(rows[motion])
        else:
            line = self.cursor + motion_distances(self.size.height)[motion]
            page.go(page.row_of(min(max(line, 0), page.line_count - 1)))
        self._moved()

    def next_cell(self, step: int) -> None:
        """Select the next (1) or previous (-1) cell of the row."""
        row = self.page.current
        if row is not None and 0 <= self.page.cell + step < len(row.cells):
            self.page.cell += step
            self._moved()

    def on_resize(self, event: events.Resize) -> None:
        self.page.resize(self.text_width)
        self._follow()

    def _moved(self) -> None:
        self._follow()
        self.post_message(self.Moved())

    def _follow(self) -> None:
        if self.page.rows:
            start, end = self.page.lines_of(self.page.row)
            self.top = min(max(self.top, end - self.size.height), start)
            self.move_cursor(start)
        else:
            self.repaint()

    def show_every_key(self) -> None:
        """Show or hide the keys that are rarely used."""
        self._every_key = not self._every_key
        if self.page.source is not None:
            self.page.show(self._visible_source(self.page.source))
            self._moved()

    def _visible_source(self, source: FormSource) -> FormSource:
        return replace(source, every_key=self._every_key)


OnChange = Callable[[Table, str, Hashable, bool], str | None]
"""Applies a table, with a description, an undo group, and whether the change was typed key by key.

Returns why the change is refused, `None` if it is applied."""

OnGiveUp = Callable[[Hashable], bool]
"""Undoes an undo group if it holds the most recent changes. Returns whether it did."""

MIN_TEXT_LINES = 3

MAX_SEARCH_ROWS = 12
"""The maximum number of visible search rows. The form around them stays visible."""

ROOM_BESIDE = 14
"""The usual width of a label. Text that does not fit beside a label gets a field of several lines."""

_SEVERAL_LINES = frozenset({"lines", "json"})
_FROM_THE_BEGINNING = FIXED_CHOICE_CELLS | {"tool", "expected", "weight", "option", "key"}
"""The kinds of cells whose field opens with all completions, even if it has text."""


class FormFields(FormRows):
    """A form with an input field over the edited cell.

    Each change calls `on_change`, which must call `show` with the changed form."""

    DEFAULT_CSS = "FormFields { overflow: hidden; }"

    class Refused(TextualMessage):
        """Posted with the reason (`why`) when a change or a key is refused."""

        def __init__(self, why: str) -> None:
            super().__init__()
            self.why = why

    class ExpectsNothing(TextualMessage):
        """Posted after the user typed the message of a case without expectations."""

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.on_change: OnChange = lambda table, said, group, by_keys: None
        self.on_give_up: OnGiveUp = lambda group: False
        self.invalid_texts: dict[CellKey, InvalidText] = {}
        """Invalid texts by cell. A text appears again when its cell is opened."""
        self.case: str | None = None
        """The key of the case in this form."""
        self._revealed: Place | None = None
        """The place of an unset key with a visible row to fill in."""
        self._added_tool: Place | None = None
        """The tool that was added last. Set while the user types its description."""
        self._revealed_from = 0
        """The row that was selected before the unset key was shown."""
        self._key: Hashable = None
        self._fixed: str | None = None
        """The reason why the form cannot be changed, `None` if it can."""
        self._place: Place | None = None
        """The place for the cursor after the current change."""
        self._edited: tuple[FormSource, FormRow, Cell] | None = None
        """The form, row and cell at the opening of the field. Typed text is applied to these."""
        self._expected_table: Table = {}
        """The last table made from the text of the field."""
        self._text = ""
        self._text_before = ""
        """The text of the cell at the opening of the field."""
        self.is_multiline = False
        """Whether the field has several lines."""
        self._text_field: TextField | None = None
        """The field of several lines, created on first use."""
        self._changes = 0
        """The number of undo groups. All typing in one field is one undo step."""

    def compose(self) -> ComposeResult:
        yield LineField(self._leave_by_key, self._handle_line_break)
        yield CompletionList()

    # Content

    def _visible_source(self, source: FormSource) -> FormSource:
        texts = {cell: text for (case, cell), text in self.invalid_texts.items() if case == self.case}
        return replace(super()._visible_source(source), revealed=self._revealed, invalid_texts=texts)

    def show(
        self, source: FormSource | None, message: Message = (), key: Hashable = None, fixed: str | None = None
    ) -> None:
        """Show a form, or a message if there is none.

        `key` identifies the form. `fixed` is the reason why the form is read-only. If the same form is shown again
        after a change made elsewhere, an open field stays open as long as its cell exists."""
        other, self._key, self._message, self._fixed = key != self._key, key, message, fixed
        changed = source is None or not toml_equal(source.table, self._expected_table)
        if self.typing and (other or source is None or (changed and self.page.adding is not None)):
            self._report_invalid_text()
            self._close()
        # While a row asks for the name of a new element, the form is not replaced, because it would not contain that
        # row.
        if self.page.adding is not None:
            return
        if source is not None:
            source = self._visible_source(source)
        if source is not None and self.typing and changed:
            self._show_under_field(source)
        else:
            self.page.show(source, self._place)
            # The changed form may have no cell where the field was open.
            if self.page.opened is not None and self.page.current_cell is None:
                self._close()
        if other:
            self.top = 0
            self.page.go(self.page.first_gap)
        self._place = None
        self._follow()

    def _show_under_field(self, source: FormSource) -> None:
        """Show a form that was changed elsewhere, for example by undo. The field stays open over its cell."""
        opened, over = self.page.opened, self._edited
        assert opened is not None and over is not None
        _, old_row, old_cell = over
        self.page.opened = None
        row_place, cell_place = self._place_now(source, old_row.place), self._place_now(source, old_cell.place)
        self.page.show(source, row_place)
        row = self.page.current
        kind, _, option = cell_id(old_cell)
        if row is not None and row.place == row_place:
            for at, cell in enumerate(row.cells):
                if cell_id(cell) == (kind, cell_place, option):
                    self.page.cell = at
                    # Invalid text exists only in the field, so the cell's text must not replace it.
                    text = cell.text
                    if opened.refused:
                        text = self._text
                    self._put_field(source, row, cell, text, opened.refused)
                    self.query_one(CompletionList).close()
                    return
        self.page.opened = opened
        self._report_invalid_text(is_gone=row_place is None)
        self._close()

    def _place_now(self, source: FormSource, place: Place) -> Place | None:
        """Return where a place of the old form is in the changed form.

        Returns `None` if the list element that contained the place was removed."""
        # In a place, an edit can change only the indices of list elements. So the part up to the last index is looked
        # up, and the keys after it stay the same. The last key may have no value yet.
        end = len(place)
        while end and not isinstance(place[end - 1], int):
            end -= 1
        element = place_in(source.table, self._expected_table, place[:end])
        if element is None:
            return None
        return (*element, *place[end:])

    def scroll_lines(self, delta: int) -> None:
        super().scroll_lines(delta)
        self._place_field()

    def _follow(self) -> None:
        super()._follow()
        self._place_field()

    def _apply(self, edit: Edit, *, by_keys: bool) -> str | None:
        source = self.page.source
        assert source is not None
        if edit.table is source.table:
            return None
        self._changes += 1
        self._place = edit.place
        why = self.on_change(with_id(source, edit.table), edit.summary, ("form", self._changes), by_keys)
        self._post_refusal(why)
        self.post_message(self.Moved())
        return why

    def _post_refusal(self, why: str | None) -> None:
        if why is not None:
            self.post_message(self.Refused(why))

    @property
    def field(self) -> LineField | TextField:
        """The open field, or the last field that was open."""
        if not self.is_multiline:
            return self.query_one(LineField)
        if self._text_field is None:
            from workbench.tui.kit.text_field import TextField

            self._text_field = TextField(self._leave_by_key)
            self.mount(self._text_field, before=self.query_one(CompletionList))
        return self._text_field

    def _open(self) -> None:
        row, cell, source = self.page.current, self.page.current_cell, self.page.source
        if row is None or cell is None or source is None:
            return
        if len(cell.text) > MAX_FIELD_CHARS:
            self._post_refusal(MAX_FIELD_CHARS.reached(length=counted(len(cell.text), "character")))
            return
        self._changes += 1
        text, refused = cell.text, ""
        invalid = self.invalid_texts.get((self.case, cell_id(cell)))
        if invalid is not None and self.page.adding is None:
            text, refused = invalid.text, invalid.why
        self._text_before = cell.text
        self._put_field(source, row, cell, text, refused)
        # The text is selected, so that typing replaces it. An arrow key ends the selection and keeps the text.
        if not refused and not self.is_multiline:
            self.query_one(LineField).select_all()
        if cell.kind in _FROM_THE_BEGINNING:
            self._suggest("")
        else:
            self._suggest(text)
        self._follow()
        self.post_message(self.Moved())

    def _put_field(self, source: FormSource, row: FormRow, cell: Cell, text: str, refusal: str) -> None:
        self._edited, self._expected_table, self._text = (source, row, cell), source.table, text
        # A pane has no width yet when it has just been shown.
        room = self.screen.size.width - ROOM_BESIDE
        if self.size.width:
            room = self.text_width - ROOM_BESIDE
        is_long = "\n" in text or len(text) > room or cell.kind == "json"
        self.field.remove_class("open")
        self.is_multiline = cell.kind in _SEVERAL_LINES and is_long
        self._fill_field(cell, text, refusal)

    def _fill_field(self, cell: Cell, text: str, refusal: str = "") -> None:
        field = self.field
        height = 1
        if self.is_multiline:
            height = self._text_height(text)
        self.page.opened = OpenField(self.page.cell, height, refusal)
        self.page.lay_out()
        field.placeholder = ""
        if self._edited is not None:
            field.placeholder = self._placeholder(*self._edited)
        if isinstance(field, LineField):
            # Invalid text may have been pasted, so only the cell's valid text counts as typed by the user.
            field.fill(text, known=cell.text)
        else:
            field.load_text(text)
            field.move_cursor(field.document.end)
        field.add_class("open")
        self.screen.set_focus(field)

    def _placeholder(self, source: FormSource, row: FormRow, cell: Cell) -> str:
        asked = self.page.adding
        if isinstance(asked, AdditionSearch):
            return "type a word of it, or choose"
        if asked is not None:
            return ""
        return placeholder(source, cell)

    def _handle_line_break(self, pasted: str) -> None:
        """Handle a line break in a single-line field. `pasted` is the pasted text, "" for a typed line break.

        If the cell may hold several lines, a field of several lines replaces the field. Otherwise, pasted lines are
        joined with blanks."""
        line = self.query_one(LineField)
        if self._edited is None or self._edited[2].kind not in _SEVERAL_LINES:
            line.insert_joined(pasted)
            return
        start = end = line.cursor_position
        if pasted:
            start, end = sorted(line.selection)
        text = line.value[:start] + (pasted or "\n") + line.value[end:]
        line.remove_class("open")
        self.is_multiline = True
        self._fill_field(self._edited[2], text)
        self._typed(text)

    def _text_height(self, text: str) -> int:
        rows = sum(len(wrap(line, max(self.text_width - ROOM_BESIDE, 10))) for line in text.split("\n"))
        return min(max(rows + 1, MIN_TEXT_LINES), max(self.size.height // 2, MIN_TEXT_LINES))

    @on(Input.Changed)
    def _line_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._read_field()

    def on_text_area_changed(self, event: TextualMessage) -> None:
        event.stop()
        self._read_field()

    def _read_field(self) -> None:
        # The text is read from the field itself, because messages about its changes arrive later and may be outdated.
        field = self.field
        if isinstance(field, LineField):
            self._typed(field.value)
        else:
            self._typed(field.text)

    def _typed(self, text: str) -> None:
        if self._edited is None or self.page.opened is None or text == self._text:
            return
        self._text = text
        refused = ""
        if self.page.adding is None:
            source, row, cell = self._edited
            try:
                edit = edited(source, row, cell, text)
            except CellError as error:
                refused = str(error)
            else:
                refused = self._make(source, edit, by_keys=self._is_by_keys)
            self._remember_invalid_text(row, cell, text, refused)
        # The change may have closed the field.
        if self._edited is None:
            return
        if self.page.opened is not None and self.page.opened.refused != refused:
            self.page.opened = replace(self.page.opened, refused=refused)
            self.page.lay_out()
        self._suggest(text)
        self._follow()

    @property
    def _is_by_keys(self) -> bool:
        return isinstance(self.field, LineField) and self.field.is_by_keys

    def _make(self, source: FormSource, edit: Edit, *, by_keys: bool) -> str:
        """Report an edit to `on_change` if it changes the form. Return why the edit was refused, or ""."""
        table = source.table
        if edit.table is not table:
            table = with_id(source, edit.table)
        if toml_equal(table, self._expected_table):
            return ""
        # `on_change` calls `show`, which compares the new form with `_expected_table`. Therefore `_expected_table` is
        # set first.
        before, self._expected_table, self._place = self._expected_table, table, edit.place
        refused = self.on_change(table, edit.summary, ("form", self._changes), by_keys) or ""
        if refused:
            self._expected_table = before
        return refused

    def _remember_invalid_text(self, row: FormRow, cell: Cell, text: str, refusal: str) -> None:
        if refusal:
            self.invalid_texts[self.case, cell_id(cell)] = InvalidText(text, row.label or "a cell", refusal)
        else:
            self.invalid_texts.pop((self.case, cell_id(cell)), None)

    def _report_invalid_text(self, *, is_gone: bool = False) -> None:
        opened = self.page.opened
        if opened is not None and opened.refused and self.page.adding is None:
            end = "Enter in its cell shows it again"
            if is_gone:
                end = "its cell no longer exists"
            self._post_refusal(f"the text is invalid and was not applied: {opened.refused}; {end}")

    def _suggest(self, typed: str) -> None:
        """Show completions of the typed text, and mark the one that Enter accepts.

        If the text itself is a completion, it is marked. Otherwise, a field with fixed values marks the first
        completion. A field for a name marks the first completion only if it begins with the text."""
        assert self._edited is not None
        source, _, cell = self._edited
        adding = self.page.adding
        if adding is not None:
            found, chooses, names = adding.suggest(typed), cell.kind in FIXED_CHOICE_CELLS or adding.must_choose, True
        else:
            found, chooses, names = (
                suggestions(source, cell, typed),
                cell.kind in FIXED_CHOICE_CELLS,
                cell.kind == "tool",
            )
        mark: int | None = None
        if found and (chooses or (names and found[0].label.startswith(typed))):
            mark = 0
        texts = [one.text for one in found]
        # In a search for additions, the first entry stays marked even if a later entry matches exactly. The first entry
        # may be a key of the selected element, and the later entry a key of the case with the same name.
        if self._text in texts and not isinstance(adding, AdditionSearch):
            mark = texts.index(self._text)
        if len(found) == 1 and found[0].text == self._text:
            found = ()
        rows = MAX_ROWS
        if isinstance(adding, AdditionSearch):
            rows = MAX_SEARCH_ROWS
        self.query_one(CompletionList).offer(found, mark, rows)

    @on(CompletionList.Chosen)
    def _completion_clicked(self, event: CompletionList.Chosen) -> None:
        event.stop()
        self._use_completion(event.completion.text)
        self._leave_by_key("done")

    def _use_completion(self, text: str) -> None:
        self.query_one(CompletionList).close()
        field = self.field
        if isinstance(field, LineField):
            assert self._edited is not None
            # A choice of the program counts as typed. Other completions contain text from files or servers, and count
            # as pasted.
            known = text if text in self._edited[2].choices else field.value
            field.fill(text, known=known)
        self._typed(text)
        self.query_one(CompletionList).close()

    def _leave_by_key(self, exit_key: FieldExit) -> None:
        self._read_field()
        completions = self.query_one(CompletionList)
        if exit_key == "down" and completions.is_open:
            completions.step(1)
            return
        if exit_key == "up" and completions.is_open:
            completions.step(-1)
            return
        chosen = completions.current
        would_take = chosen is not None and chosen.text != self._text
        if exit_key == "back" and would_take and self._text != self._text_before:
            # Esc closes the completions first. Otherwise, Enter would always accept the marked completion instead of
            # the text.
            completions.close()
        elif exit_key == "back":
            self._discard_text()
        else:
            if chosen is not None and would_take:
                self._use_completion(chosen.text)
            if self._leave_field():
                self._leave_and_move(exit_key)

    def _discard_text(self) -> None:
        over, adds = self._edited, self.page.adding is not None
        assert over is not None
        source, row, cell = over
        self.invalid_texts.pop((self.case, cell_id(cell)), None)
        self._close()
        if adds or self._text == self._text_before:
            return
        self._place = row.place
        if not self.on_give_up(("form", self._changes)):
            # If the suite was saved or changed elsewhere since, restoring the text is a new change.
            self._make(source, edited(source, row, cell, self._text_before), by_keys=False)
        self._place = None

    def _leave_and_move(self, exit_key: FieldExit) -> None:
        page, row = self.page, self.page.current
        if exit_key in ("done", "next") and page.go_to_expected():
            if page.source is not None and page.source.table.get("expect_nothing_yet") is True:
                self.post_message(self.ExpectsNothing())
        elif exit_key in ("next", "previous"):
            if page.go_cell(1 if exit_key == "next" else -1):
                self._open()
        elif exit_key == "done" and page.go_to_value():
            self._open()
        elif exit_key == "done" and row is not None and row.place == (*(self._added_tool or ()), "description"):
            place, self._added_tool = (*row.place[:-1], "parameters"), None
            self._open_unset_key(place)
        elif exit_key == "done":
            page.go_below()
            if page.current_cell is not None and page.current_cell.is_gap:
                self._open()
        elif exit_key == "down":
            page.go(page.row + 1)
        elif exit_key == "up":
            page.go(page.row - 1)
        self._moved()

    def _leave_field(self) -> bool:
        opened, asked = self.page.opened, self.page.adding
        if opened is None:
            return True
        if opened.refused:
            self._post_refusal(opened.refused)
            return False
        if asked is None and self._is_nameless:
            why = "must not be empty: write a name, or leave it as it was with Esc"
            self.page.opened = replace(opened, refused=why)
            self.page.lay_out()
            self._follow()
            return False
        if asked is not None:
            try:
                made = asked.choose(self._text) if isinstance(asked, AdditionSearch) else asked.make(self._text)
            except CellError as error:
                self.page.opened = replace(opened, refused=str(error))
                self.page.lay_out()
                self._follow()
                return False
            by_keys = self._is_by_keys
            self._close()
            self._continue_adding(made, by_keys=by_keys)
            return False
        was_skipped = self._edited is not None and "skip" in self._edited[0].table
        self._close()
        if was_skipped and self.page.source is not None and "skip" not in self.page.source.table:
            self.page.show_above(self.page.row, "Written, so the case is no longer skipped.")
        return True

    @property
    def _is_nameless(self) -> bool:
        return self._edited is not None and self._edited[2].place == ("name",) and not self._text.strip()

    def _continue_adding(self, addition: Edit | PendingAddition | Place, *, by_keys: bool) -> None:
        if isinstance(addition, Edit):
            self._added(addition, by_keys=by_keys)
        elif isinstance(addition, PendingAddition):
            self.page.ask(addition)
            self._open()
        else:
            self._open_unset_key(addition)

    def _open_unset_key(self, place: Place) -> None:
        source = self.page.source
        assert source is not None
        self._revealed, self._revealed_from = place, self.page.row
        self.page.show(self._visible_source(source), place)
        row = self.page.current
        assert row is not None
        self.page.cell = 0 if row.cells[0].kind == "check" else main_cell(row)
        self._open()

    def give_up_refused(self) -> str | None:
        """Close a field with invalid text, and restore the cell's value.

        Returns why the text was invalid, `None` if no field has invalid text."""
        if self.typing:
            self._read_field()
        opened = self.page.opened
        if opened is None or not opened.refused:
            return None
        self._discard_text()
        return opened.refused

    def _added(self, edit: Edit, *, by_keys: bool) -> None:
        if self._apply(edit, by_keys=by_keys) is not None or (row := self.page.current) is None:
            return
        self._added_tool = None
        if edit.place[-2] == "tools":
            # For a new tool, the user first types the description, because the model needs it, and then the parameters.
            self._added_tool = edit.place
            self._open_unset_key((*edit.place, "description"))
            return
        # The first value of a message or server is on the row below.
        if edit.place[-2:-1] in (("messages",), ("servers",)) and edit.place[0] != "user":
            self.page.go(self.page.row + 1)
            self._open()
        elif row.kind == "pair" or edit.place[-2] == "results":
            self.page.cell = main_cell(row)
            self._open()
        self._moved()

    def _close(self) -> None:
        field = self.field
        self.query_one(CompletionList).close()
        field.remove_class("open")
        self.page.opened = None
        self.page.stop_asking()
        self.page.catch_up()
        self._edited = None
        self._hide_unset_key()
        self.page.lay_out()
        if field.has_focus:
            self.screen.set_focus(self)
        self.post_message(self.Moved())

    def _hide_unset_key(self) -> None:
        self._revealed = None
        source = self.page.source
        if source is not None:
            now = self._visible_source(source)
            if (now.revealed, now.invalid_texts) != (source.revealed, source.invalid_texts):
                self.page.show(now)
                if source.revealed is not None and self.page.row_at_place(source.revealed) is None:
                    self.page.go(self._revealed_from)

    def _place_field(self) -> None:
        opened = self.page.opened
        if opened is None:
            return
        spot = self.page.spot(self.page.row, opened.cell)
        field = self.field
        # The frame's left edge is in the gap before the cell, so the text does not move.
        field.styles.offset = (spot.start - 1, spot.line - self.top)
        field.styles.width, field.styles.height = spot.width + 1, opened.height
        place = Region(spot.start, spot.line - self.top, spot.width, opened.height)
        self.query_one(CompletionList).place(place, Region(0, 0, self.size.width, self.size.height))
