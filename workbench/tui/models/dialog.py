"""The dialog that chooses models: models of settings and suites, then models listed by reachable endpoints."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from workbench.config.agents import agent_named
from workbench.dataclasses import dataclass
from workbench.evaluation.model_list import KnownEndpoint, runnable_model_names
from workbench.limits import MAX_FILTER_CHARS
from workbench.numerals import counted
from workbench.providers.built_in import is_built_in
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Role, Span, cells, cut_line, cut_middle, padded, with_margin
from workbench.show.visible import model_label, one_line
from workbench.suite.variants import NO_VARIANTS, SEPARATOR, Variants
from workbench.tui.kit.dialogs import Dialog, TextView, keys_line
from workbench.tui.kit.fields import SafeInput
from workbench.tui.kit.line_view import LineView, Motion
from workbench.tui.models.choices import ModelChoice, ModelChoices
from workbench.tui.models.form import Added
from workbench.tui.terminal.key_queue import mark_handled
from workbench.tui.terminal.theme import Ground

MAX_UNFOLDED = 12
"""The longest list of a local server's models that is shown unfolded."""


@dataclass(frozen=True)
class Row:
    """A row of the dialog: a model, an endpoint, or a variant.

    A model that can run has a `name`. A model that an endpoint lists has `endpoint` and `model`. An endpoint has
    `endpoint` alone. A variant has `variant`. Rows with a `name` or a `variant` can be checked."""

    label: str
    detail: str = ""
    short: str = ""
    name: str | None = None
    endpoint: KnownEndpoint | None = None
    model: str = ""
    variant: str = ""


class ModelsState:
    """The state of the dialog: rows, checked models and variants, and the models listed by endpoints."""

    def __init__(
        self,
        choices: ModelChoices,
        checked: Sequence[str],
        endpoints: Sequence[KnownEndpoint],
        suite_models: Sequence[str] = (),
        variants: Mapping[str, str] = MappingProxyType({}),
        run_as: Variants = NO_VARIANTS,
    ) -> None:
        """Begin with the models (`checked`) and the variants (`run_as`) that runs currently use.

        `variants` are the descriptions of all variants by name. `suite_models` are the models that the suites name."""
        self._variants = variants
        self._run_as = run_as
        self._checked_variants = set(run_as.names)
        if run_as.all_of_them:
            self._checked_variants = set(variants)
        self._variants_before = frozenset(self._checked_variants)
        self.choices = choices
        self._before = frozenset(checked)
        self._suite_models = tuple(suite_models)
        """The models named by the suites."""
        self._checked = set(checked)
        self.endpoints = list(endpoints)
        self._unfolded: set[str] = set()
        self._asked_endpoints: set[str] = set()
        self.filter = ""
        self.rows: list[Row] = []
        self._build()

    @property
    def chosen(self) -> tuple[str, ...]:
        """The checked models in the order of the list, including models of folded endpoints."""
        names = dict.fromkeys(choice.name for choice in self.choices.choices)
        for endpoint in self.endpoints:
            for _, name in runnable_model_names(endpoint):
                if name is not None:
                    names.setdefault(name)
        return tuple(name for name in names if name in self._checked)

    @property
    def chosen_variants(self) -> Variants:
        """The checked variants. They run in addition to the unchanged suites."""
        # "All variants" includes variants that are added later, so an unchanged choice is returned as it was.
        if self._checked_variants == self._variants_before:
            return self._run_as
        return Variants(frozenset(self._checked_variants))

    @property
    def local(self) -> list[KnownEndpoint]:
        """The endpoints on this machine."""
        return [endpoint for endpoint in self.endpoints if endpoint.preset.is_local]

    @property
    def absent(self) -> Iterator[tuple[Role, str]]:
        """Sentences on endpoints that list no models, and on agents that are not installed: one sentence per reason."""
        for each in self.endpoints:
            if each.problem:
                yield "error", f"{each.preset.title}: {each.problem}"
        # Endpoints without a key come first, because the user can set the key.
        keyless = [each.preset.title for each in self.endpoints if not each.key_is_found]
        if keyless:
            yield "muted", f"No key is found for {', '.join(keyless)}."
        asking = [each.preset.title for each in self.local if each.preset.name in self._asked_endpoints]
        if asking:
            yield "muted", f"Asking {', '.join(asking)} {GLYPHS.running}"
        silent = []
        for each in self.local:
            if not (each.is_reachable or each.problem or each.preset.name in self._asked_endpoints):
                silent.append(f"{each.preset.title} ({each.preset.place})")
        if silent:
            yield "muted", f"Nothing answers for {', '.join(silent)}."
        if missing := len(self.choices.choices) - len(self._listed_choices):
            yield "muted", f"{counted(missing, 'agent')} not installed: type agent to list them."

    @property
    def _listed_choices(self) -> list[ModelChoice]:
        # The long list of known agents would push reachable endpoints out of sight.
        listed = []
        for choice in self.choices.choices:
            if choice.is_installed or self.filter.strip() or choice.name in (self._checked | set(self._suite_models)):
                listed.append(choice)
        return listed

    def is_checked(self, row: Row) -> bool:
        """Return whether the model or variant of a row is checked."""
        if row.variant:
            return row.variant in self._checked_variants
        return row.name in self._checked

    def is_in_effect(self, row: Row) -> bool:
        """Return whether runs used the model or variant of a row when the dialog opened."""
        if row.variant:
            return row.variant in self._variants_before
        return row.name in (self._before or self._suite_models)

    @property
    def in_effect(self) -> Iterator[tuple[Role, str]]:
        """Sentences on the models that runs use now, and on those that they will use if the dialog is confirmed."""
        if self._before:
            named = [choice.name for choice in self.choices.choices if choice.name in self._before]
            yield "text", f"In use: {_listed(named)}, checked here in place of each suite's own."
        elif self._suite_models:
            yield "text", f"In use: the suite's own, {_listed(self._suite_models)}."
        else:
            yield "text", "In use: each suite's own."
        if self._checked == self._before:
            yield "muted", "Models that you check replace each suite's own; check none to use those."
        elif self._checked:
            yield "running", f"Enter: runs use {_listed(self.chosen)} from now on."
        else:
            yield "running", "Enter: runs use each suite's own models again."
        for choice in self.choices.choices:
            if choice.hint and choice.name in self._checked:
                yield "warned", f"{GLYPHS.warned} {choice.hint}"
        if self._checked_variants:
            yield "text", f"Beside each suite as written, {_named(sorted(self._checked_variants))} will run."

    def check(self, row: Row) -> None:
        if row.variant:
            self._checked_variants ^= {row.variant}
        if row.name is not None:
            self._checked ^= {row.name}

    def mark_asked(self, endpoint: KnownEndpoint) -> None:
        self._asked_endpoints.add(endpoint.preset.name)
        self._build()

    def show_models(self, endpoint: KnownEndpoint) -> None:
        """Show the models that an endpoint has listed."""
        # A local server was asked without the user's request, so a long list of its models stays folded.
        name = endpoint.preset.name
        self._asked_endpoints.discard(name)
        at = [each.preset for each in self.endpoints].index(endpoint.preset)
        self.endpoints[at] = endpoint
        if endpoint.models is not None and not (endpoint.preset.is_local and len(endpoint.models) > MAX_UNFOLDED):
            self._unfolded.add(name)
        self._build()

    def fold(self, endpoint: KnownEndpoint) -> None:
        """Show or hide the models of an endpoint."""
        self._unfolded ^= {endpoint.preset.name}
        self._build()

    def set_filter(self, text: str) -> None:
        """Show only models that contain every word of a text. Hidden models and agents are searched too."""
        self.filter = text
        self._build()

    def added(self, choices: ModelChoices, name: str) -> int:
        """Show a model that was added, and check it. Return the index of its row."""
        self.choices = choices
        self._checked.add(name)
        self._build()
        for at, row in enumerate(self.rows):
            if row.name == name:
                return at
        return 0

    def changed(self, choices: ModelChoices) -> None:
        """Replace the listed models after a model was changed."""
        self.choices = choices
        self._build()

    def _build(self) -> None:
        words = self.filter.casefold().split()

        def fits(row: Row) -> bool:
            text = f"{row.label} {row.detail}".casefold()
            return all(word in text for word in words)

        models = []
        for choice in self._listed_choices:
            models.append(Row(model_label(choice.name), choice.detail, choice.short, choice.name))
        named = {row.name for row in models}
        sign = SEPARATOR.strip()
        variants = [Row(f"{sign} {one_line(name)}", about, variant=name) for name, about in self._variants.items()]
        self.rows = list(filter(fits, (*models, *variants)))
        for endpoint in self.endpoints:
            preset = endpoint.preset
            listed = []
            for model, name in runnable_model_names(endpoint):
                if name not in named or name is None:
                    listed.append(Row(one_line(model), name=name, endpoint=endpoint, model=model))
            fitting = []
            if words or preset.name in self._unfolded:
                fitting = list(filter(fits, listed))
            if endpoint.is_reachable and (fitting or not words):
                head = Row(
                    preset.title, self._endpoint_text(endpoint, preset.name in self._asked_endpoints), endpoint=endpoint
                )
                self.rows += [head, *fitting]
        # The cursor needs a row, so the list is never empty.
        if not self.rows:
            self.rows.append(Row(f"no model has {one_line(self.filter)!r} in its name"))

    def _endpoint_text(self, endpoint: KnownEndpoint, is_requested: bool) -> str:
        if is_requested:
            return f"asking for its models {GLYPHS.running}"
        if endpoint.problem:
            return "does not list its models"
        if endpoint.models is not None:
            return endpoint.state
        return f"{endpoint.state}: Space lists its models"


def _named(variants: Sequence[str]) -> str:
    noun = "variant" if len(variants) == 1 else "variants"
    return f"the {noun} {', '.join(map(one_line, variants))}"


def _listed(models: Sequence[str]) -> str:
    return ", ".join(map(model_label, models))


MAX_LABEL_CELLS = 28
"""The maximum width of the column of names."""

_MIN_ROWS = 5
"""The minimum number of rows of the list. Texts around the list are cut first."""

_ROWS_AROUND = 6
"""The rows of border, title, field, blank line and keys."""


@dataclass(frozen=True)
class ModelFunctions:
    """The functions of the app that the dialog calls.

    `ask` asks an endpoint for its models. `add` opens the form of a new model, filled with a model of an endpoint.
    `change` opens the form of a known model, and returns why the model cannot be changed, or "". Both forms pass their
    result to the last argument. `probe` tests how a model calls tools. `choices` reads the list of models again."""

    ask: Callable[[KnownEndpoint], Awaitable[KnownEndpoint]]
    add: Callable[[Sequence[KnownEndpoint], KnownEndpoint | None, str, Callable[[Added | None], None]], None]
    change: Callable[[Sequence[KnownEndpoint], str, Callable[[Added | None], None]], str]
    probe: Callable[[str], None]
    choices: Callable[[], ModelChoices]


class ModelsScreen(Dialog[tuple[str, ...]]):
    """Asks which models to use for runs. Returns the checked models in the order of the list."""

    HAS_SUBJECT: ClassVar[bool] = False
    TITLE_LINE = "Models"
    DEFAULT_CSS = """
    ModelsScreen > Vertical { width: 130; }
    ModelsScreen #filter { background: $background; padding: 0 1; margin: 0 1 1 1; }
    """
    # The input field has the focus, so letters are text. Keys of the list that the field also knows have priority.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move('up')", show=False),
        Binding("down", "move('down')", show=False),
        Binding("pageup", "move('page_up')", show=False),
        Binding("pagedown", "move('page_down')", show=False),
        Binding("home", "move('home')", show=False, priority=True),
        Binding("end", "move('end')", show=False, priority=True),
        Binding("ctrl+n", "add", "Add a model", show=False, priority=True),
        Binding("ctrl+e", "change", "Edit the model", show=False, priority=True),
        Binding("ctrl+t", "probe", "Test how it handles tools", show=False, priority=True),
    ]

    def __init__(self, state: ModelsState, functions: ModelFunctions) -> None:
        super().__init__(EMPTY)
        self.state = state
        self._functions = functions

    def body(self) -> ComposeResult:
        yield TextView(self._explained, "reading")
        yield _SearchField(self.action_check)
        yield _ModelList(self.state, self._show_keys, self.action_check)
        yield TextView(self._absent, "absent")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#filter"))
        self._show_keys()
        # Only servers on this machine are asked unrequested, because they need no key and no network.
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
        leave = "show all" if self.state.filter else "leave"
        keys = (("Space", space), ("Enter", "use"), ("Ctrl+N", "add"), ("Ctrl+E", "edit"), ("Ctrl+T", "test tools"))
        self.set_keys(keys_line(*keys, ("Esc", leave)))

    def _show(self, at: int | None = None) -> None:
        self._list.move_cursor(self._list.cursor if at is None else at)
        self._list.refresh(layout=True)
        for reading in self.query(TextView):
            reading.rebuild_lines(from_top=False)
            reading.refresh(layout=True)
        self._make_room(self.app.size.height)
        self._show_keys()

    def _make_room(self, height: int) -> None:
        # The width of the text, as the dialog's style makes it: at most 130 cells, minus border, padding and scroll
        # bar.
        width = max(min(130, self.app.size.width * 96 // 100) - 5, 1)
        room = height - _ROWS_AROUND
        for name, build in (("#reading", self._explained), ("#absent", self._absent)):
            reading = self.query_one(name)
            taken = len(build(width))
            if room - taken < _MIN_ROWS:
                # The text above the list is shown whole or not at all. The text below the list may be cut.
                taken = 0
                if name == "#absent":
                    taken = max(room - _MIN_ROWS, 0)
            reading.styles.max_height = taken
            reading.display = bool(taken)
            room -= taken
        self._list.styles.max_height = max(room, 1)

    def _ask(self, endpoint: KnownEndpoint) -> None:
        async def ask() -> None:
            answered = await self._functions.ask(endpoint)
            # The answer may add rows above the cursor. The cursor stays on its row.
            row = self._list.row
            self.state.show_models(answered)
            self._show(self.state.rows.index(row) if row in self.state.rows else None)

        self.state.mark_asked(endpoint)
        self._show()
        self.run_worker(ask(), group="models", exit_on_error=True)

    def action_check(self) -> None:
        """Check or uncheck the model or variant of the selected row.

        On an endpoint, request its list of models. If the list was already received, show or hide the models."""
        # If a Space is typed right after a letter, the field's message about the letter has not arrived yet.
        self._filter_by(self.query_one("#filter", Input).value)
        row = self._list.row
        if row.endpoint is None or row.name is not None:
            self.state.check(row)
            self._show()
        elif row.model:
            # A listed model without a name cannot run before it is added.
            self.action_add()
        elif row.endpoint.models is None:
            self._ask(row.endpoint)
        else:
            self.state.fold(row.endpoint)
            self._show()

    @on(Input.Submitted)
    def _use(self) -> None:
        self.dismiss(self.state.chosen)

    def action_move(self, motion: Motion) -> None:
        self._list.action_move(motion)

    @on(Input.Changed)
    def _filter_changed(self, event: Input.Changed) -> None:
        self._filter_by(event.value)

    def _filter_by(self, text: str) -> None:
        if text != self.state.filter:
            self.state.set_filter(text)
            self._show(0)

    def _show_all(self) -> None:
        self.state.set_filter("")
        self.query_one("#filter", Input).value = ""
        self._show(0)

    def action_leave(self) -> None:
        """If a filter is set, remove it. Otherwise leave the dialog."""
        if self.state.filter:
            self._show_all()
        else:
            super().action_leave()

    def action_add(self) -> None:
        """Open the form that adds a model to a `workbench.toml`, filled with the selected model."""
        row = self._list.row

        def added(model: Added | None) -> None:
            if model is not None:
                self._show_all()
                self._show(self.state.added(self._functions.choices(), model.name))
                self._tell_answer(model)

        self._functions.add(self.state.endpoints, row.endpoint, row.model, added)

    def _tell_answer(self, model: Added) -> None:
        if model.answered:
            text = f" {GLYPHS.passed} {one_line(model.name)} {model.answered} "
            self.set_keys((Span(text, "passed"), *keys_line(("Enter", "use"), ("Esc", "leave"))))

    def action_change(self) -> None:
        """Open the form that changes the selected model in its `workbench.toml`."""

        def changed(model: Added | None) -> None:
            if model is not None:
                self.state.changed(self._functions.choices())
                self._show()
                self._tell_answer(model)

        name = self._list.row.name
        if name is not None:
            why = self._functions.change(self.state.endpoints, name, changed)
        else:
            why = "put the cursor on a model"
        self._refuse(why)

    def action_probe(self) -> None:
        name = self._list.row.name
        if name is None:
            self._refuse("put the cursor on a model that has a name here")
        elif agent_named(name) is not None:
            self._refuse(f"{name} is an agent: run a case on it to see how it calls tools")
        elif is_built_in(name):
            self._refuse(f"{name} has no endpoint that could be tested")
        else:
            self._functions.probe(name)

    def _refuse(self, why: str) -> None:
        if why:
            self.show_notice(why[:1].upper() + why[1:])


class _SearchField(SafeInput):
    """The input field for a part of a name. Names have no blanks, so Space checks the selected row."""

    def __init__(self, check: Callable[[], None]) -> None:
        super().__init__("", "type a part of a name to search", widget_id="filter", max_length=MAX_FILTER_CHARS)
        self._check = check

    def on_key(self, event: events.Key) -> None:
        if event.key == "space":
            mark_handled(event)
            self._check()


class _ModelList(LineView, can_focus=False):
    """The rows of the dialog. The input field keeps the focus and passes keys to the list."""

    GROUND: ClassVar[Ground] = "panel"
    RESTING_GROUND: ClassVar[Ground] = "cursor"

    def __init__(self, state: ModelsState, on_move: Callable[[], None], choose: Callable[[], None]) -> None:
        super().__init__("choices")
        self._state = state
        self._on_move = on_move
        self._choose = choose

    @property
    def row(self) -> Row:
        return self._state.rows[min(self.cursor, len(self._state.rows) - 1)]

    def line_count(self) -> int:
        return len(self._state.rows)

    def line_at(self, index: int) -> Line:
        row = self._state.rows[index]
        if row.endpoint is not None and not row.model:
            role: Role = "error" if row.endpoint.problem else "muted"
            return cut_line((Span(f" {row.label}", "strong"), Span(f"  {row.detail}", role)), self.text_width)
        mark = Span("    " if row.model else "", "muted")
        if self._state.is_checked(row):
            mark = Span(f"[{GLYPHS.passed}] ", "passed")
        elif row.name is not None or row.variant:
            mark = Span("[ ] ", "muted")
        head: Line = (Span(" "), mark)
        label = self._label(row.label)
        if row.endpoint is not None:
            head, label = (Span("   "), mark), row.label
        head = (*head, Span(cut_middle(label, self.text_width - cells(head))))
        gap = "  "
        if self._state.is_in_effect(row):
            head, gap = (*head, Span("  in use", "running")), f" {GLYPHS.dot} "
        line = (*head, Span(f"{gap}{row.detail}", "muted"))
        if row.short and cells(line) > self.text_width:
            line = (*head, Span(f"{gap}{row.short}", "muted"))
        return cut_line(line, self.text_width)

    def _label(self, label: str) -> str:
        width = cell_len(label)
        for row in self._state.rows:
            if row.endpoint is None and cell_len(row.label) <= MAX_LABEL_CELLS:
                width = max(width, cell_len(row.label))
        return padded(label, width)

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return len(self._state.rows)

    def moved(self) -> None:
        self._on_move()

    def chosen(self, index: int) -> None:
        self._choose()
