"""The form of a model. It asks the model's endpoint, and writes the model into a `workbench.toml`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.suggester import SuggestFromList
from textual.widgets import Input

from workbench.config.clouds import APIS, BEDROCK_ENDPOINTS, CLOUDS, SETTINGS_OF, Cloud
from workbench.config.models import PROVIDERS, THOUGHTS, ConfigError, ModelSpec, Preset, checked_key_variable
from workbench.config.program import Program
from workbench.config.request_checks import holds_key
from workbench.config.variables import environment_names
from workbench.dataclasses import dataclass
from workbench.evaluation.model_list import KnownEndpoint
from workbench.evaluation.typed_model import (
    CLOUD_FIELDS,
    CloudField,
    Field,
    InvalidModelError,
    NameTakenError,
    Owner,
    TypedModel,
    add_model,
    change_model,
    check_name_is_free,
    check_typed_blocking,
    owner_of,
    settings_file,
    usual_name,
    usual_owner,
)
from workbench.numerals import duration_text
from workbench.providers.http.checks import CheckResult
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Role, Span, hanging_paragraph
from workbench.show.visible import one_line
from workbench.tui.kit.dialogs import Dialog, TextView, keys_line
from workbench.tui.kit.fields import SafeInput
from workbench.tui.kit.stage import in_background
from workbench.tui.kit.strips import Bar
from workbench.tui.terminal.theme import Ground


@dataclass(frozen=True)
class Added:
    """An added or changed model. `answered` is a notice on the answer of the endpoint, "" if no request was made."""

    name: str
    answered: str = ""


class ModelAdder:
    """Adds a model for the suites in a folder. If `known` is given, changes that model instead.

    For `bundled` suites, only the user's own `workbench.toml` is offered. `check_refusal` returns why the endpoint of a
    changed model must not be asked, `None` if it may be."""

    def __init__(
        self,
        program: Program,
        folder: Path,
        *,
        bundled: bool,
        known: ModelSpec | None = None,
        check_refusal: Callable[[ModelSpec], str | None] = lambda _: None,
    ) -> None:
        self.known = known
        self._why_not_checked = check_refusal
        self._program = program
        self._folder = folder
        self.owners: tuple[Owner, ...] = ("user", "project")
        self.owner: Owner = "user"
        if known is not None:
            self.owners, self.owner = (owner_of(known),), owner_of(known)
        elif bundled:
            # Bundled suites are part of the program, and no file may be written beside them.
            self.owners = ("user",)
        else:
            self.owner = usual_owner(program, folder)

    def file(self, owner: Owner) -> Path:
        """Return the path of the `workbench.toml` into which the model is written for an owner.

        A known model stays in the file that it comes from."""
        if self.known is not None and self.known.file is not None:
            return self.known.file
        return settings_file(self._program, self._folder, owner)

    def key_is_found(self, variable: str) -> bool:
        """Return whether a variable has a value in the environment or in a `.env`.

        Raises:
            ConfigError: A `.env` cannot be read."""
        return bool(self._program.environment.of(self._folder).get(variable, "").strip())

    def check_name(self, name: str) -> None:
        """Check that a new model's name is free.

        Raises ConfigError if another model has the name."""
        if self.known is None:
            check_name_is_free(name, self._folder, self._program)

    async def check(self, spec: ModelSpec) -> CheckResult:
        """Ask the endpoint of a model whether it accepts the key and has the model."""
        if (why := self._why_not_checked(spec)) is not None:
            return CheckResult(False, why)
        try:
            return await in_background(lambda: check_typed_blocking(spec, self._folder, self._program))
        except ConfigError as error:
            return CheckResult(False, str(error))

    def with_place(self, spec: ModelSpec) -> ModelSpec:
        """Return a cloud's model with its `place`, such as the region. Return any other model unchanged."""
        return self._program.models.with_place(spec, self._folder)

    def add(self, spec: ModelSpec, owner: Owner) -> Path:
        """Write a model into the `workbench.toml` of an owner. Return the path of the file.

        Raises:
            ConfigError: The file cannot be changed."""
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
    "key_command": "key command",
    "headers": "headers",
    "query": "query",
    "model": "model",
    "name": "name here",
    "price": "price",
    "thoughts": "thoughts are",
    "owner": "written into",
}
_PLACEHOLDERS: dict[str, str] = {
    "base_url": "such as http://localhost:1234/v1",
    "api_key_env": "no key; else the variable that holds it",
    "key_command": "in place of the variable: a program that prints the key",
    "headers": "such as x-team=search x-gateway-key='$GATEWAY_KEY'",
    "query": "such as api-version=2024-10-21",
    "model": "its name at the endpoint",
    "name": "the name to run it by",
    "price": "US dollars per million tokens, in and out: 0.15, 0.6",
}
_CLOUD_LABELS: dict[CloudField, str] = {
    "api": "API there",
    "resource": "resource",
    "api_version": "API version",
    "region": "region",
    "project": "project",
    "profile": "AWS profile",
    "endpoint": "AWS endpoint",
    "credentials": "credentials",
}
_LABELS |= {str(name): label for name, label in _CLOUD_LABELS.items()}
_CLOUD_PLACEHOLDERS: dict[CloudField, str] = {
    "resource": "such as contoso, for contoso.openai.azure.com",
    "api_version": "v1, or a date such as 2025-04-01-preview",
    "region": "as the environment says; else such as us-east-1",
    "project": "as the environment says; else the project's id",
    "profile": "as the environment says; else its name",
}
_PLACEHOLDERS |= {str(name): text for name, text in _CLOUD_PLACEHOLDERS.items()}
_API_CHOICES = tuple((api, api) for api in APIS)
_CLOUD_CHOICES: dict[CloudField, tuple[tuple[str, str], ...]] = {
    "api": (("", "as the model has it"), *_API_CHOICES),
    "endpoint": tuple((name, name) for name in BEDROCK_ENDPOINTS),
    "credentials": (("", "keys in variables, else the cloud's default"), ("default", "the cloud's default")),
}
"""The values of choice fields, each with its displayed text."""
_CLOUD_URL = "the cloud's own, by the settings below"
_THOUGHTS = ("reasoning, also within the text", "answer where they stand in the text")
_REQUEST_FIELDS = ("key_command", "headers", "query")
_OTHER = "another endpoint"
_OWNERS: dict[Owner, str] = {"user": "your own workbench.toml", "project": "the one next to the suites"}
_ROWS_BESIDE_FIELDS = 5
"""The rows of border, title, keys and an empty line."""

_LABEL_CELLS = 15
"""The width of the labels. Must match the style."""

MAX_LISTED = 5
"""The maximum number of an endpoint's models to name."""

_MIN_KEY_CHARS = 20
"""A text of this length that cannot be the name of a variable counts as a key. A shorter text may still become a
name."""


class ChoiceField(Bar, can_focus=True):
    """A field that holds one of several values. ← and → change it."""

    DEFAULT_CSS = "ChoiceField { background: $background; }"
    GROUND: ClassVar[Ground] = "background"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "turn(-1)", show=False),
        Binding("right,space", "turn(1)", show=False),
    ]

    def __init__(self, values: Sequence[str], index: int, on_change: Callable[[], object], widget_id: str) -> None:
        super().__init__(widget_id)
        self.values = tuple(values)
        self.at = index
        self._on_change = on_change

    @property
    def value(self) -> str:
        return self.values[self.at]

    def choose(self, index: int) -> None:
        """Select the value at an index. `on_change` is not called."""
        self.at = index
        self.show()

    def show(self) -> None:
        """Draw the value between two arrows, which are coloured while the field has the focus."""
        roles: tuple[Role, Role] = ("accent", "strong") if self.has_focus else ("muted", "text")
        line: Line = (Span("‹ ", roles[0]), Span(self.value, roles[1]), Span(" ›", roles[0]))
        self.set_line(lambda _: line)

    def on_mount(self) -> None:
        self.show()

    def on_focus(self) -> None:
        self.show()

    def on_blur(self) -> None:
        self.show()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.action_turn(1)

    def action_turn(self, offset: int) -> None:
        self.choose((self.at + offset) % len(self.values))
        self._on_change()


class AddModelScreen(Dialog[Added]):
    """The form of a new or known model. The model is saved once the endpoint has confirmed it."""

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
        self._start = TypedModel(model=model)
        if adder.known is not None:
            self._start = TypedModel.of_spec(adder.known)
        elif preset is not None:
            self._start = TypedModel.of_preset(preset, model)
        self._preset = preset
        self._adder = adder
        self._proposed = self._start.name
        self._problems: dict[Field, str] = {}
        self._outcome: tuple[Role, str] | None = None
        self._refused: tuple[TypedModel, Owner] | None = None
        """The content of the form that the endpoint did not confirm. A second Enter adds the model anyway."""

    @property
    def heading(self) -> str:
        known = self._adder.known
        if known is None:
            return self.TITLE_LINE
        return f"Change {one_line(known.name)}"

    def body(self) -> ComposeResult:
        start, adder = self._start, self._adder
        titles = [preset.title for preset in self._presets]
        titles.append(_OTHER)
        at = self._presets.index(self._preset) if self._preset is not None else len(self._presets)
        provider = PROVIDERS.index(start.provider) if start.provider in PROVIDERS else 0
        yield Bar("space")
        yield from self._row("preset", ChoiceField(titles, at, self._fill_preset, "preset"))
        yield from self._row("base_url", self._input("base_url", start.base_url))
        yield from self._row("provider", ChoiceField(PROVIDERS, provider, self._show_provider_fields, "provider"))
        for setting in CLOUD_FIELDS:
            yield from self._row(setting, self._cloud_field(setting, getattr(start, setting)))
        yield from self._row("api_key_env", self._input("api_key_env", start.api_key_env))
        for name in _REQUEST_FIELDS:
            yield from self._row(name, self._input(name, getattr(start, name)))
        yield from self._row("model", self._input("model", start.model))
        if adder.known is None:
            yield from self._row("name", self._input("name", start.name))
        yield from self._row("price", self._input("price", start.price))
        thoughts = THOUGHTS.index(start.thoughts) if start.thoughts in THOUGHTS else 0
        yield from self._row("thoughts", ChoiceField(_THOUGHTS, thoughts, self._changed, "thoughts"))
        if adder.known is None:
            owners = [_OWNERS[owner] for owner in adder.owners]
            at = adder.owners.index(adder.owner)
            yield from self._row("owner", ChoiceField(owners, at, self._changed, "owner"))
        outcome = TextView(self._notice_lines, "told")
        # Tab and the arrow keys skip the texts between the fields.
        outcome.can_focus = False
        yield outcome

    def on_mount(self) -> None:
        self._suggest()
        self._show_cloud()
        is_filled = self._preset is not None or self._adder.known is not None
        # If the endpoint is known, the first field to fill in is the model.
        self._take_focus("model" if is_filled else "preset")

    def _row(self, name: str, field: ChoiceField | SafeInput) -> ComposeResult:
        label = Bar()
        label.add_class("label")
        label.set_line(lambda _: (Span(f" {_LABELS[name]}", "muted"),))
        yield Horizontal(label, field, id=f"row-{name}")
        problem = TextView(lambda width: self._problem_lines(name, width), f"wrong-{name}")
        problem.add_class("problem")
        problem.can_focus = False
        yield problem

    @staticmethod
    def _input(name: str, value: str) -> SafeInput:
        return SafeInput(value, _PLACEHOLDERS[name], widget_id=name, select_on_focus=False)

    def _take_focus(self, name: str) -> None:
        self.set_focus(self.query_one(f"#{name}"))

    def _make_room(self, height: int) -> None:
        rows = _ROWS_BESIDE_FIELDS + len(_LABELS) - len(CLOUD_FIELDS) + len(self._cloud_fields)
        self.query_one("#space").display = height > rows + 4
        self.set_class(height < rows + 2, "low")
        self.query_one("#told").styles.max_height = max(height - rows, 1)

    @property
    def _cloud(self) -> Cloud | None:
        provider = self.query_one("#provider", ChoiceField).value
        return next((cloud for cloud in CLOUDS if cloud == provider), None)

    @property
    def _cloud_fields(self) -> tuple[str, ...]:
        if self._cloud is None:
            return ()
        return SETTINGS_OF[self._cloud]

    def _cloud_field(self, name: CloudField, value: str) -> ChoiceField | SafeInput:
        if name not in _CLOUD_CHOICES:
            return self._input(name, value)
        values = [known for known, _ in _CLOUD_CHOICES[name]]
        at = values.index(value) if value in values else 0
        return ChoiceField([words for _, words in _CLOUD_CHOICES[name]], at, self._changed, name)

    def _cloud_texts(self) -> dict[str, str]:
        texts: dict[str, str] = {}
        for name in CLOUD_FIELDS:
            if name not in self._cloud_fields:
                continue
            if name in _CLOUD_CHOICES:
                texts[name] = _CLOUD_CHOICES[name][self.query_one(f"#{name}", ChoiceField).at][0]
            else:
                texts[name] = self._text(name)
        return texts

    def _show_provider_fields(self) -> None:
        self._show_cloud()
        self._make_room(self.size.height)
        self._changed()

    def _show_cloud(self) -> None:
        shown = self._cloud_fields
        for name in CLOUD_FIELDS:
            self.query_one(f"#row-{name}").display = name in shown
        self.query_one("#base_url", SafeInput).placeholder = _CLOUD_URL if shown else _PLACEHOLDERS["base_url"]

    @property
    def _listed(self) -> tuple[str, ...]:
        if self._preset is not None:
            return self._models[self._preset]
        return ()

    def _suggest(self) -> None:
        field = self.query_one("#model", SafeInput)
        field.suggester = None
        if self._listed:
            field.suggester = SuggestFromList(self._listed, case_sensitive=False)

    def _text(self, name: str) -> str:
        return self.query_one(f"#{name}", SafeInput).value

    @property
    def _typed(self) -> TypedModel:
        provider = self.query_one("#provider", ChoiceField).value
        known = self._adder.known
        thoughts = THOUGHTS[self.query_one("#thoughts", ChoiceField).at]
        names = ("base_url", "model", "api_key_env", "price", *_REQUEST_FIELDS)
        texts = {name: self._text(name) for name in names} | self._cloud_texts()
        name = self._text("name") if known is None else known.name
        return TypedModel(provider, name=name, thoughts=thoughts, **texts)

    @property
    def _owner(self) -> Owner:
        if self._adder.known is not None:
            return self._adder.owner
        return self._adder.owners[self.query_one("#owner", ChoiceField).at]

    def _fill_preset(self) -> None:
        at = self.query_one("#preset", ChoiceField).at
        self._preset, typed, provider = None, TypedModel(), "openai"
        if at < len(self._presets):
            self._preset = self._presets[at]
            typed, provider = TypedModel.of_preset(self._preset), self._preset.provider
        # The key and the headers of one endpoint must not be sent to another, so they are replaced in any case.
        self.query_one("#base_url", SafeInput).value = typed.base_url
        self.query_one("#api_key_env", SafeInput).value = typed.api_key_env
        for name in _REQUEST_FIELDS:
            self.query_one(f"#{name}", SafeInput).value = ""
        for field in CLOUD_FIELDS:
            if field in _CLOUD_CHOICES:
                self.query_one(f"#{field}", ChoiceField).choose(0)
            else:
                self.query_one(f"#{field}", SafeInput).value = ""
        self.query_one("#provider", ChoiceField).choose(PROVIDERS.index(provider))
        self._show_provider_fields()

    @on(Input.Changed)
    def _typing(self, event: Input.Changed) -> None:
        # A key would be visible on the screen and be written into a file, so text that looks like a key is removed at
        # once.
        if event.input.id == "api_key_env" and event.value and _looks_like_key(event.value):
            event.input.value = ""
            self._changed()
            self._show_outcome(
                "error", "That may be a key, so it was removed: write the name of the variable that holds it."
            )
            return
        if event.input.id in _REQUEST_FIELDS and holds_key(event.value):
            event.input.value = ""
            self._changed()
            self._show_outcome(
                "error", "That may hold a key, so it was removed: write $NAME, and give the variable the key."
            )
            return
        # The name follows the model until the user types a name.
        if event.input.id == "model" and self._adder.known is None:
            name = self.query_one("#name", SafeInput)
            if name.value == self._proposed:
                self._proposed = name.value = usual_name(self._preset, event.value.strip())
        if event.value:
            self._changed()

    def _changed(self) -> None:
        self._problems = {}
        self._show_outcome(None)

    def _show_outcome(self, role: Role | None, text: str = "", keys: Line | None = None) -> None:
        self._outcome = None
        if role is not None:
            self._outcome = (role, text)
        view = self.query_one("#told", TextView)
        view.rebuild_lines(from_top=True)
        view.refresh(layout=True)
        for name in _LABELS:
            # The form of a known model has no fields for name and file.
            for problem in self.query(f"#wrong-{name}").results(TextView):
                problem.display = name in self._problems
                problem.rebuild_lines(from_top=True)
                problem.refresh(layout=True)
        if self.has_class("low") and self._outcome:
            # A low screen hides the text below the fields, so the row of keys shows the first line of the text.
            keys = self._notice_lines(self.size.width)[1]
        self.set_keys(keys or self._keys)

    def _problem_lines(self, name: str, width: int) -> list[Line]:
        problem = {str(field): text for field, text in self._problems.items()}.get(name)
        if not problem:
            return []
        lead = " " * (_LABEL_CELLS + 1)
        text = one_line(self._adder.shown(f"{GLYPHS.error} {problem}"))
        return list(hanging_paragraph((Span(lead),), text, "error", max(width - len(lead), 10)))

    def _notice_lines(self, width: int) -> list[Line]:
        room = max(width - 2, 10)
        lines: list[Line] = [EMPTY]

        def add(role: Role, text: str) -> None:
            lines.extend(hanging_paragraph((Span(" "),), one_line(self._adder.shown(text)), role, room))

        if self._outcome is not None:
            add(*self._outcome)
        elif not self._problems and self.is_mounted:
            add(*self._key_text())
            if listed := self._listed:
                names = ", ".join(listed[:MAX_LISTED])
                if len(listed) > MAX_LISTED:
                    names += ", …"
                add("muted", f"The endpoint lists {names}.")
            add("muted", f"It is written to {self._adder.file(self._owner)}.")
        return lines

    def _key_text(self) -> tuple[Role, str]:
        variable = self._text("api_key_env").strip()
        others = environment_names(f"{self._text('headers')} {self._text('query')}")
        try:
            for name in filter(None, (variable, *others)):
                if not self._adder.key_is_found(name):
                    way_out = "put it into the environment, or into .env next to the suites"
                    return "warned", f"{GLYPHS.warned} {name} is not set: {way_out}."
        except ConfigError as error:
            return "error", f"{GLYPHS.error} {error}"
        if variable:
            return "passed", f"{GLYPHS.passed} The key is found in {variable}."
        if self._text("key_command").strip():
            return "muted", "The command runs in the folder of the file, whenever the endpoint is asked."
        if self._cloud is not None:
            return self._cloud_text()
        if others:
            return "passed", f"{GLYPHS.passed} {', '.join(dict.fromkeys(others))} is found."
        return "muted", "No key is sent."

    def _cloud_text(self) -> tuple[Role, str]:
        try:
            spec = self._adder.with_place(replace(self._typed, model=self._text("model") or "MODEL", name="m").spec())
        except InvalidModelError:
            return "muted", "Its address follows from the settings above."
        if spec.place is not None and spec.place.problem:
            return "warned", f"{GLYPHS.warned} It {spec.place.problem}."
        credentials = spec.credentials or f"the key in {spec.api_key_env}"
        return "muted", f"It is asked at {spec.base_url} with {credentials}."

    def action_go(self, offset: int) -> None:
        """Focus the next (1) or previous (-1) field."""
        if offset > 0:
            self.focus_next()
        else:
            self.focus_previous()

    @on(Input.Submitted)
    def action_submit(self) -> None:
        """Ask the endpoint, and save the model if the endpoint confirms it.

        If the endpoint does not confirm the model, pressing Enter again saves the unchanged model nevertheless."""
        typed, owner = self._typed, self._owner
        try:
            spec = typed.spec(owner)
            self._adder.check_name(spec.name)
        except InvalidModelError as error:
            self._problems = error.problems
            self._show_outcome(None)
            self._take_focus(next(iter(error.problems)))
            return
        except NameTakenError as error:
            self._problems = {"name": f"is taken: {error}"}
            self._show_outcome(None)
            self._take_focus("name")
            return
        except ConfigError as error:
            self._problems = {}
            self._show_outcome("error", f"{GLYPHS.error} {'; '.join(error.problems)}")
            return
        self._problems = {}
        # A second Enter adds the model only if nothing changed since the endpoint was asked.
        if self._refused == (typed, owner):
            self._add(typed, owner)
            return

        async def check() -> None:
            checked = await self._adder.check(spec)
            if (self._typed, self._owner) != (typed, owner):
                # The form changed meanwhile, so the answer is about another model.
                return
            if checked.ok:
                self._add(typed, owner, checked)
            else:
                self._refuse(typed, owner, checked)

        place = self._adder.with_place(spec).base_url
        self._show_outcome("muted", f"Asking {place} {GLYPHS.running}", keys_line(("Esc", "leave")))
        self.run_worker(check(), group="models", exclusive=True)

    def _refuse(self, typed: TypedModel, owner: Owner, checked: CheckResult) -> None:
        self._refused = (typed, owner)
        doing = "add it"
        if self._adder.known is not None:
            doing = "change it"
        keys = keys_line(("Enter", f"{doing} all the same"), ("↑↓", "correct it"), ("Esc", "leave"))
        self._show_outcome("warned" if checked.answers else "error", f"{checked.mark} {checked.sentence}", keys)

    def _add(self, typed: TypedModel, owner: Owner, checked: CheckResult | None = None) -> None:
        spec = typed.spec(owner)
        try:
            self._adder.add(spec, owner)
        except ConfigError as error:
            self._show_outcome("error", f"{GLYPHS.error} {'; '.join(error.problems)}")
            return
        answered = ""
        if checked is not None and checked.took_ms is not None:
            answered = f"answered in {duration_text(checked.took_ms)}"
        self.dismiss(Added(spec.name, answered))


_KEYS = keys_line(("Enter", "check and add"), ("↑↓", "field"), ("←→", "choose"), ("Esc", "leave"))
_CHANGING_KEYS = keys_line(("Enter", "check and change"), ("↑↓", "field"), ("←→", "choose"), ("Esc", "leave"))


def _looks_like_key(text: str) -> bool:
    try:
        checked_key_variable(text)
    except ValueError:
        return len(text) >= _MIN_KEY_CHARS or not text.isidentifier()
    return False
