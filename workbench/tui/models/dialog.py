"""The dialog for choosing models: named ones, those that endpoints list, and a key that adds one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from workbench.dataclasses import dataclass
from workbench.evaluation.model_list import KnownEndpoint
from workbench.providers.built_in import is_built_in
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Role, Span, cells, cut_line, cut_middle, padded, with_margin
from workbench.show.visible import one_line
from workbench.tui.kit.dialogs import Dialog, ReadLines, keys_line
from workbench.tui.kit.fields import FilterField
from workbench.tui.kit.line_view import LineView
from workbench.tui.kit.painting import Bar
from workbench.tui.models.adder import Added
from workbench.tui.models.choices import ModelChoices
from workbench.tui.models.state import ModelsState, Row
from workbench.tui.terminal.theming import Ground

MAX_LABEL_CELLS = 28
"""Longer names are not aligned."""

_MIN_ROWS = 5
"""The rows that the list keeps, whatever there is to read."""

_ROWS_AROUND = 4
"""The rows of border, title and keys."""


@dataclass(frozen=True)
class ModelWays:
    """What the dialog may do: `ask` an endpoint for its models, `add` a model with a form that begins with a model of
    an endpoint (it calls back with the name), `change` one with the same form (or return why not), `probe` how one
    handles tools, and read the `choices` anew."""

    ask: Callable[[KnownEndpoint], Awaitable[KnownEndpoint]]
    add: Callable[[Sequence[KnownEndpoint], KnownEndpoint | None, str, Callable[[Added | None], None]], None]
    change: Callable[[Sequence[KnownEndpoint], str, Callable[[Added | None], None]], str]
    probe: Callable[[str], None]
    choices: Callable[[], ModelChoices]


class ModelsScreen(Dialog[tuple[str, ...]]):
    """Asks for models. Closes with the checked ones, in the order of the list."""

    HAS_SUBJECT: ClassVar[bool] = False
    TITLE_LINE = "Models"
    DEFAULT_CSS = """
    ModelsScreen > Vertical { width: 130; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "check", show=False),
        Binding("enter", "use", show=False),
        Binding("a", "add", "Add a model", show=False),
        Binding("e", "change", "Edit the model", show=False),
        Binding("t", "probe", "Test how it handles tools", show=False),
        Binding("slash", "filter", "Filter", show=False),
    ]

    def __init__(self, state: ModelsState, ways: ModelWays) -> None:
        super().__init__(EMPTY)
        self.state = state
        self._ways = ways

    def body(self) -> ComposeResult:
        yield ReadLines(self._explained, "reading")
        yield _ModelList(self.state, self._show_keys, self.action_check)
        yield FilterField(placeholder="words of the model's name")
        yield ReadLines(self._absent, "absent")

    def on_mount(self) -> None:
        self.set_focus(self._list)
        self._show_keys()
        for endpoint in self.state.local:
            self._ask(endpoint)

    @property
    def _list(self) -> _ModelList:
        return self.query_one(_ModelList)

    def _explained(self, width: int) -> list[Line]:
        lines: list[Line] = [EMPTY]
        for role, sentence in self.state.in_effect:
            lines += with_margin(one_line(sentence), width, role)
        for problem in self.state.choices.problems:
            lines += with_margin(f"{GLYPHS.error} {problem}", width, "error")
        return [*lines, EMPTY]

    def _absent(self, width: int) -> list[Line]:
        lines: list[Line] = [EMPTY]
        for role, sentence in self.state.absent:
            lines += with_margin(one_line(sentence), width, role)
        return [*lines, EMPTY]

    def _show_keys(self) -> None:
        row = self._list.row
        space = "check"
        if row.endpoint is not None and not row.model:
            space = "list its models" if row.endpoint.models is None else "show or hide its models"
        elif row.model and row.name is None:
            space = "add it"
        if self._filter.display:
            self.say_keys(keys_line(("Enter", "keep the filter"), ("Esc", "show all")))
            return
        leave = "show all" if self.state.filter else "leave"
        keys = (("Space", space), ("Enter", "use"), ("a", "add"), ("e", "change"), ("t", "test tools"), ("/", "filter"))
        self.say_keys(keys_line(*keys, ("Esc", leave)))

    def _show(self, at: int | None = None) -> None:
        self._list.move_cursor(self._list.cursor if at is None else at)
        self._list.refresh(layout=True)
        for reading in self.query(ReadLines):
            reading.show_anew(from_top=False)
            reading.refresh(layout=True)
        self._make_room(self.app.size.height)
        self._show_keys()

    def _make_room(self, height: int) -> None:
        """Limit the heights so that title, some rows and keys are always visible."""
        width = max(min(130, self.app.size.width * 96 // 100) - 5, 1)
        room = height - _ROWS_AROUND - self._filter.display
        for name, build in (("#reading", self._explained), ("#absent", self._absent)):
            reading = self.query_one(name)
            rows = len(build(width))
            taken = rows if room - rows >= _MIN_ROWS else max(room - _MIN_ROWS, 0) if name == "#absent" else 0
            reading.styles.max_height = taken
            reading.display = bool(taken)
            room -= taken
        self._list.styles.max_height = max(room, 1)

    def _ask(self, endpoint: KnownEndpoint) -> None:
        async def ask() -> None:
            answered = await self._ways.ask(endpoint)
            at = self._list.row
            self.state.answered(answered)
            self._show(self.state.rows.index(at) if at in self.state.rows else None)

        self.state.asks(endpoint)
        self._show()
        self.run_worker(ask(), group="models", exit_on_error=True)

    def action_check(self) -> None:
        """Check the model of the row, or show the models of its endpoint."""
        row = self._list.row
        if row.endpoint is None or row.name is not None:
            self.state.check(row)
            self._show()
        elif row.model:
            self.action_add()
        elif row.endpoint.models is None:
            self._ask(row.endpoint)
        else:
            self.state.fold(row.endpoint)
            self._show()

    def action_use(self) -> None:
        """Close with the checked models."""
        self.dismiss(self.state.chosen)

    @property
    def _filter(self) -> FilterField:
        return self.query_one(FilterField)

    def action_filter(self) -> None:
        """Type words that the names of models must have."""
        self._filter.value, self._filter.display = self.state.filter, True
        self.set_focus(self._filter)
        self._show()

    @on(Input.Changed)
    def _filter_changed(self, event: Input.Changed) -> None:
        if self._filter.display:
            self.state.set_filter(event.value)
            self._show(0)

    @on(Input.Submitted)
    def _end_filter(self) -> None:
        self._filter.display = False
        self.set_focus(self._list)
        self._show()

    def action_leave(self) -> None:
        """Leave the filter, then the dialog."""
        if self._filter.display or self.state.filter:
            self._filter.display = False
            self.state.set_filter("")
            self.set_focus(self._list)
            self._show(0)
        else:
            super().action_leave()

    def action_add(self) -> None:
        """Add a model to a `workbench.toml`, beginning with the one of the row."""
        row = self._list.row

        def added(model: Added | None) -> None:
            if model is not None:
                self._show(self.state.added(self._ways.choices(), model.name))
                self._tell_answer(model)

        self._ways.add(self.state.endpoints, row.endpoint, row.model, added)

    def _tell_answer(self, model: Added) -> None:
        """Say how quickly the endpoint answered, in place of the keys until the cursor moves."""
        if model.answered:
            text = f" {GLYPHS.passed} {one_line(model.name)} {model.answered} "
            self.say_keys((Span(text, "passed"), *keys_line(("Enter", "use"), ("Esc", "leave"))))

    def action_change(self) -> None:
        """Change the model of the row in its `workbench.toml`."""

        def changed(model: Added | None) -> None:
            if model is not None:
                self.state.changed(self._ways.choices())
                self._show()
                self._tell_answer(model)

        name = self._list.row.name
        why = (
            self._ways.change(self.state.endpoints, name, changed) if name is not None else "put the cursor on a model"
        )
        self._refuse(why)

    def action_probe(self) -> None:
        """Find out how the model of the row handles tools."""
        name = self._list.row.name
        if name is None:
            self._refuse("put the cursor on a model that has a name here")
        elif is_built_in(name):
            self._refuse(f"{name} has no endpoint that could be tested")
        else:
            self._ways.probe(name)

    def _refuse(self, why: str) -> None:
        """Say why nothing is done, in place of the keys until the cursor moves."""
        if why:
            notice = (Span(f" {GLYPHS.warned} {one_line(why[:1].upper() + why[1:])}", "warned"),)
            self.query_one("#keys", Bar).say(lambda width: cut_line(notice, width))


class _ModelList(LineView):
    """The rows. Enter and space are left to the dialog."""

    GROUND: ClassVar[Ground] = "panel"

    def __init__(self, state: ModelsState, on_move: Callable[[], None], choose: Callable[[], None]) -> None:
        super().__init__("choices")
        self._state = state
        self._on_move = on_move
        self._choose = choose

    @property
    def row(self) -> Row:
        """The row of the cursor."""
        return self._state.rows[min(self.cursor, len(self._state.rows) - 1)]

    def line_count(self) -> int:
        return len(self._state.rows)

    def line_at(self, index: int) -> Line:
        row = self._state.rows[index]
        if row.endpoint is not None and not row.model:
            role: Role = "error" if row.endpoint.problem else "muted"
            return cut_line((Span(f" {row.label}", "strong"), Span(f"  {row.detail}", role)), self.text_width)
        checked = self._state.is_checked(row)
        can_check = row.name is not None or row.variant
        mark = f"[{GLYPHS.passed if checked else ' '}] " if can_check else "    " if row.model else ""
        head: Line = (
            Span("   " if row.endpoint is not None else " "),
            Span(mark, "passed" if checked else "muted"),
        )
        label = row.label if row.endpoint is not None else self._label(row.label)
        head = (*head, Span(cut_middle(label, self.text_width - cells(head))))
        gap = "  "
        if self._state.is_in_effect(row):
            head, gap = (*head, Span("  in use", "running")), f" {GLYPHS.dot} "
        line = (*head, Span(f"{gap}{row.detail}", "muted"))
        if row.short and cells(line) > self.text_width:
            line = (*head, Span(f"{gap}{row.short}", "muted"))
        return cut_line(line, self.text_width)

    def _label(self, label: str) -> str:
        labels = (cell_len(row.label) for row in self._state.rows if row.endpoint is None)
        width = max((length for length in labels if length <= MAX_LABEL_CELLS), default=0)
        return padded(label, max(width, cell_len(label)))

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return len(self._state.rows)

    def moved(self) -> None:
        self._on_move()

    def chosen(self, index: int) -> None:
        self._choose()
