"""The form for a model: looks for keys, asks the endpoint, writes the model into the settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.suggester import SuggestFromList
from textual.widgets import Input

from workbench.config.models import PROVIDERS, THOUGHTS, ConfigError, ModelSpec, Preset, checked_key_variable
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.evaluation.model_list import (
    AddingError,
    Field,
    KnownEndpoint,
    NameTakenError,
    Owner,
    TypedModel,
    add_model,
    change_model,
    check_name_is_free,
    check_typed_now,
    owner_of,
    settings_file,
    usual_name,
    usual_owner,
)
from workbench.numerals import duration_text
from workbench.providers.http.endpoints import CheckResult
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Role, Span, behind
from workbench.show.visible import one_line
from workbench.tui.kit.dialogs import Dialog, ReadLines, keys_line
from workbench.tui.kit.fields import SafeInput
from workbench.tui.kit.stage import in_background
from workbench.tui.kit.strips import Bar
from workbench.tui.terminal.theme import Ground


@dataclass(frozen=True)
class Added:
    """A model that was added or changed, and how quickly its endpoint answered, if it did."""

    name: str
    answered: str = ""


class ModelAdder:
    """Adds models for the suites in a folder; into the user's own `workbench.toml` only, if these are `bundled`.

    Or changes the one that is `known`."""

    def __init__(self, program: Program, folder: Path, *, bundled: bool, known: ModelSpec | None = None) -> None:
        self.known = known
        self._program = program
        self._folder = folder
        self.owners: tuple[Owner, ...] = ("user",) if bundled else ("user", "project")
        self.owner: Owner = "user" if bundled else usual_owner(program, folder)
        if known is not None:
            self.owners, self.owner = (owner_of(known),), owner_of(known)

    def file(self, owner: Owner) -> Path:
        """Return the `workbench.toml` of an owner, or that of the known model."""
        if self.known is not None and self.known.file is not None:
            return self.known.file
        return settings_file(self._program, self._folder, owner)

    def key_is_found(self, variable: str) -> bool:
        """Return whether a variable has a value, in the environment or in a `.env`.

        Raises ConfigError."""
        return bool(self._program.environment.of(self._folder).get(variable, "").strip())

    def check_name(self, name: str) -> None:
        """Raise ConfigError when the name is taken by another model."""
        if self.known is None:
            check_name_is_free(name, self._folder, self._program)

    async def check(self, spec: ModelSpec) -> CheckResult:
        """Ask the endpoint of a model whether it answers, accepts the key and has the model."""
        try:
            return await in_background(lambda: check_typed_now(spec, self._folder, self._program))
        except ConfigError as error:
            return CheckResult(False, str(error))

    def add(self, spec: ModelSpec, owner: Owner) -> Path:
        """Write a model down.

        Raises ConfigError."""
        if self.known is not None:
            return change_model(self.known, spec)
        return add_model(spec, self._folder, self._program, owner)

    def shown(self, text: str) -> str:
        """Return a text without secrets."""
        return self._program.secrets.redact(text)


_LABELS: dict[str, str] = {
    "preset": "endpoint",
    "provider": "API",
    "base_url": "base URL",
    "api_key_env": "key variable",
    "model": "model",
    "name": "name here",
    "price": "price",
    "thoughts": "thoughts are",
    "owner": "written into",
}
_PLACEHOLDERS: dict[str, str] = {
    "base_url": "such as http://localhost:1234/v1",
    "api_key_env": "no key; else the variable that holds it",
    "model": "its name at the endpoint",
    "name": "the name to run it by",
    "price": "US dollars per million tokens, in and out: 0.15, 0.6",
}
_THOUGHTS = ("reasoning, also within the text", "answer where they stand in the text")
_OTHER = "another endpoint"
_OWNERS: dict[Owner, str] = {"user": "your own workbench.toml", "project": "the one next to the suites"}
_ROWS_AROUND = 5 + len(_LABELS)
"""The rows of border, title, keys, an empty line and fields."""

_LABEL_CELLS = 15
"""The width of the labels, as in the style."""

MAX_LISTED = 5
"""The models of an endpoint that are named at most."""

_MIN_KEY_CHARS = 20
"""Shorter texts may become the name of a variable while they are typed."""


class ChoiceField(Bar, can_focus=True):
    """One of several values, changed with ← and →."""

    DEFAULT_CSS = "ChoiceField { background: $background; }"
    GROUND: ClassVar[Ground] = "background"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "turn(-1)", show=False),
        Binding("right,space", "turn(1)", show=False),
    ]

    def __init__(self, values: Sequence[str], at: int, on_change: Callable[[], object], widget_id: str) -> None:
        super().__init__(widget_id)
        self.values = tuple(values)
        self.at = at
        self._on_change = on_change

    @property
    def value(self) -> str:
        """The chosen value."""
        return self.values[self.at]

    def choose(self, at: int) -> None:
        """Choose a value without telling the owner."""
        self.at = at
        self.show()

    def show(self) -> None:
        """Draw the value, with arrows while it can be changed."""
        arrow: Role = "accent" if self.has_focus else "muted"
        self.say(
            lambda _: (Span("‹ ", arrow), Span(self.value, "strong" if self.has_focus else "text"), Span(" ›", arrow))
        )

    def on_mount(self) -> None:
        self.show()

    def on_focus(self) -> None:
        self.show()

    def on_blur(self) -> None:
        self.show()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.action_turn(1)

    def action_turn(self, by: int) -> None:
        """Choose the next value, or the one before."""
        self.choose((self.at + by) % len(self.values))
        self._on_change()


class AddModelScreen(Dialog[Added]):
    """Asks for a model and adds it, or changes a known one, once its endpoint has confirmed it.

    Closes with its name and the endpoint's answer."""

    HAS_SUBJECT: ClassVar[bool] = False
    TITLE_LINE = "Add a model"
    DEFAULT_CSS = """
    AddModelScreen > Vertical { width: 100; overflow-y: auto; scrollbar-size: 0 0; }
    AddModelScreen #keys { dock: bottom; }
    AddModelScreen.low #told { display: none; }
    AddModelScreen Horizontal { height: 1; }
    AddModelScreen .problem { display: none; }
    AddModelScreen .label { width: 15; }
    AddModelScreen Input { border: none; height: 1; padding: 0; background: $background; width: 1fr; }
    AddModelScreen ChoiceField { width: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "go(-1)", show=False),
        Binding("down", "go(1)", show=False),
        Binding("enter", "submit", show=False),
    ]

    def __init__(
        self, endpoints: Sequence[KnownEndpoint], preset: Preset | None, model: str, adder: ModelAdder
    ) -> None:
        super().__init__(_KEYS if adder.known is None else _CHANGING_KEYS)
        self._presets = tuple(endpoint.preset for endpoint in endpoints)
        self._models = {endpoint.preset: endpoint.models or () for endpoint in endpoints}
        self._start = TypedModel.of_preset(preset, model) if preset is not None else TypedModel(model=model)
        if adder.known is not None:
            self._start = TypedModel.of_spec(adder.known)
        self._preset = preset
        self._adder = adder
        self._proposed = self._start.name
        self._problems: dict[Field, str] = {}
        self._outcome: tuple[Role, str] | None = None
        self._refused: tuple[TypedModel, Owner] | None = None
        """The form that the endpoint did not confirm: it is added when Enter is pressed again."""

    @property
    def heading(self) -> str:
        known = self._adder.known
        if known is None:
            return self.TITLE_LINE
        return f"Change {one_line(known.name)}"

    def body(self) -> ComposeResult:
        start, adder = self._start, self._adder
        at = self._presets.index(self._preset) if self._preset is not None else len(self._presets)
        titles = [*(preset.title for preset in self._presets), _OTHER]
        provider = next((at for at, known in enumerate(PROVIDERS) if known == start.provider), 0)
        yield Bar("space")
        yield from self._row("preset", ChoiceField(titles, at, self._take_preset, "preset"))
        yield from self._row("base_url", self._input("base_url", start.base_url))
        yield from self._row("provider", ChoiceField(PROVIDERS, provider, self._changed, "provider"))
        yield from self._row("api_key_env", self._input("api_key_env", start.api_key_env))
        yield from self._row("model", self._input("model", start.model))
        if adder.known is None:
            yield from self._row("name", self._input("name", start.name))
        yield from self._row("price", self._input("price", start.price))
        thoughts = next((at for at, known in enumerate(THOUGHTS) if known == start.thoughts), 0)
        yield from self._row("thoughts", ChoiceField(_THOUGHTS, thoughts, self._changed, "thoughts"))
        if adder.known is None:
            owners = [_OWNERS[owner] for owner in adder.owners]
            at = adder.owners.index(adder.owner)
            yield from self._row("owner", ChoiceField(owners, at, self._changed, "owner"))
        told = ReadLines(self._told, "told")
        told.can_focus = False
        yield told

    def on_mount(self) -> None:
        self._suggest()
        self._take_focus("model" if self._preset is not None or self._adder.known is not None else "preset")

    def _row(self, name: str, field: ChoiceField | SafeInput) -> ComposeResult:
        """Yield a field behind its label, and below it the place for its problem."""
        label = Bar()
        label.add_class("label")
        label.say(lambda _: (Span(f" {_LABELS[name]}", "muted"),))
        yield Horizontal(label, field)
        problem = ReadLines(lambda width: self._problem_lines(name, width), f"wrong-{name}")
        problem.add_class("problem")
        problem.can_focus = False
        yield problem

    @staticmethod
    def _input(name: str, value: str) -> SafeInput:
        return SafeInput(value, _PLACEHOLDERS[name], widget_id=name, select_on_focus=False)

    def _take_focus(self, name: str) -> None:
        self.set_focus(self.query_one(f"#{name}"))

    def _make_room(self, height: int) -> None:
        self.query_one("#space").display = height > _ROWS_AROUND + 4
        self.set_class(height < _ROWS_AROUND + 2, "low")
        self.query_one("#told").styles.max_height = max(height - _ROWS_AROUND, 1)

    # What is typed

    @property
    def _listed(self) -> tuple[str, ...]:
        """The models that the chosen endpoint is known to list."""
        if self._preset is not None:
            return self._models[self._preset]
        return ()

    def _suggest(self) -> None:
        """Complete the model's name by those that the endpoint lists."""
        self.query_one("#model", SafeInput).suggester = (
            SuggestFromList(self._listed, case_sensitive=False) if self._listed else None
        )

    def _text(self, name: str) -> str:
        return self.query_one(f"#{name}", SafeInput).value

    @property
    def _typed(self) -> TypedModel:
        provider = self.query_one("#provider", ChoiceField).value
        known = self._adder.known
        thoughts = THOUGHTS[self.query_one("#thoughts", ChoiceField).at]
        names = ("base_url", "model", "api_key_env", "price")
        name = self._text("name") if known is None else known.name
        return TypedModel(provider, name=name, thoughts=thoughts, **{name: self._text(name) for name in names})

    @property
    def _owner(self) -> Owner:
        return self._adder.owner if self._adder.known else self._adder.owners[self.query_one("#owner", ChoiceField).at]

    def _take_preset(self) -> None:
        """Fill in an endpoint's known settings.

        The key's variable never stays with another address."""
        at = self.query_one("#preset", ChoiceField).at
        preset = self._presets[at] if at < len(self._presets) else None
        typed = TypedModel.of_preset(preset) if preset is not None else TypedModel()
        self._preset = preset
        self.query_one("#base_url", SafeInput).value = typed.base_url
        self.query_one("#api_key_env", SafeInput).value = typed.api_key_env
        self.query_one("#provider", ChoiceField).choose(
            PROVIDERS.index(preset.provider if preset is not None else "openai")
        )
        self._changed()

    @on(Input.Changed)
    def _typing(self, event: Input.Changed) -> None:
        if event.input.id == "api_key_env" and event.value and _may_be_a_key(event.value):
            event.input.value = ""
            self._changed()
            self._tell("error", "That may be a key, so it was removed: write the name of the variable that holds it.")
            return
        if event.input.id == "model" and self._adder.known is None:
            name = self.query_one("#name", SafeInput)
            if name.value == self._proposed:
                self._proposed = name.value = usual_name(self._preset, event.value.strip())
        if event.value:
            self._changed()

    def _changed(self) -> None:
        self._problems = {}
        self._tell(None)

    # What is told

    def _tell(self, role: Role | None, text: str = "", keys: Line | None = None) -> None:
        self._outcome = (role, text) if role is not None else None
        told = self.query_one("#told", ReadLines)
        told.show_anew(from_top=True)
        told.refresh(layout=True)
        for name in _LABELS:
            for problem in self.query(f"#wrong-{name}").results(ReadLines):
                problem.display = name in self._problems
                problem.show_anew(from_top=True)
                problem.refresh(layout=True)
        if self.has_class("low") and self._outcome:
            keys = next(iter(self._told(self.size.width)[1:]), None)  # the last row is all there is to tell it
        self.say_keys(keys or self._keys)

    def _problem_lines(self, name: str, width: int) -> list[Line]:
        problem = next((text for field, text in self._problems.items() if field == name), "")
        lead = " " * (_LABEL_CELLS + 1)
        text = one_line(self._adder.shown(f"{GLYPHS.error} {problem}"))
        if problem:
            return list(behind((Span(lead),), text, "error", max(width - len(lead), 10)))
        return []

    def _told(self, width: int) -> list[Line]:
        room = max(width - 2, 10)
        lines: list[Line] = [EMPTY]

        def add(role: Role, text: str) -> None:
            lines.extend(behind((Span(" "),), one_line(self._adder.shown(text)), role, room))

        if self._outcome is not None:
            add(*self._outcome)
        elif not self._problems and self.is_mounted:
            add(*self._of_key())
            if listed := self._listed:
                add(
                    "muted",
                    f"The endpoint lists {', '.join(listed[:MAX_LISTED])}{', …' * (len(listed) > MAX_LISTED)}.",
                )
            add("muted", f"It is written to {self._adder.file(self._owner)}.")
        return lines

    def _of_key(self) -> tuple[Role, str]:
        variable = self._text("api_key_env").strip()
        if not variable:
            return "muted", "No key is sent."
        try:
            if self._adder.key_is_found(variable):
                return "passed", f"{GLYPHS.passed} The key is found in {variable}."
        except ConfigError as error:
            return "error", f"{GLYPHS.error} {error}"
        return (
            "warned",
            f"{GLYPHS.warned} {variable} is not set: put it into the environment, or into .env next to the suites.",
        )

    # Keys

    def action_go(self, by: int) -> None:
        """Go to the next field, or the one before."""
        if by > 0:
            self.focus_next()
        else:
            self.focus_previous()

    @on(Input.Submitted)
    def action_submit(self) -> None:
        """Ask the endpoint, and add the model; at once, if it was asked before and did not confirm the same model."""
        typed, owner = self._typed, self._owner
        try:
            spec = typed.spec(owner)
            self._adder.check_name(spec.name)
        except AddingError as error:
            self._problems = error.problems
            self._tell(None)
            self._take_focus(next(iter(error.problems)))
            return
        except NameTakenError as error:
            self._problems = {"name": f"is taken: {error}"}
            self._tell(None)
            self._take_focus("name")
            return
        except ConfigError as error:
            self._problems = {}
            self._tell("error", f"{GLYPHS.error} {'; '.join(error.problems)}")
            return
        self._problems = {}
        if self._refused == (typed, owner):
            self._add(typed, owner)
            return

        async def check() -> None:
            checked = await self._adder.check(spec)
            if (self._typed, self._owner) != (typed, owner):
                return  # changed meanwhile: what came is about something else
            if checked.ok:
                self._add(typed, owner, checked)
            else:
                self._refuse(typed, owner, checked)

        self._tell("muted", f"Asking {spec.base_url} {GLYPHS.running}", keys_line(("Esc", "leave")))
        self.run_worker(check(), group="models", exclusive=True)

    def _refuse(self, typed: TypedModel, owner: Owner, checked: CheckResult) -> None:
        self._refused = (typed, owner)
        doing = "add it" if self._adder.known is None else "change it"
        keys = keys_line(("Enter", f"{doing} all the same"), ("↑↓", "correct it"), ("Esc", "leave"))
        self._tell("warned" if checked.answers else "error", f"{checked.mark} {checked.sentence}", keys)

    def _add(self, typed: TypedModel, owner: Owner, checked: CheckResult | None = None) -> None:
        spec = typed.spec(owner)
        try:
            self._adder.add(spec, owner)
        except ConfigError as error:
            self._tell("error", f"{GLYPHS.error} {'; '.join(error.problems)}")
        else:
            took_ms = checked.took_ms if checked is not None else None
            self.dismiss(Added(spec.name, f"answered in {duration_text(took_ms)}" if took_ms is not None else ""))


_KEYS, _CHANGING_KEYS = (
    keys_line(("Enter", f"check and {doing}"), ("↑↓", "field"), ("←→", "choose"), ("Esc", "leave"))
    for doing in ("add", "change")
)


def _may_be_a_key(text: str) -> bool:
    """Return whether a text for the name of a variable is rather a key, or the beginning of one."""
    try:
        checked_key_variable(text)
    except ValueError:
        return len(text) >= _MIN_KEY_CHARS or not text.isidentifier()
    return False
