"""A small app with a single form of a suite's document, driven by keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from textual import events, on
from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen

from tests.tui.apps import screen_text
from workbench.authoring.document import HEAD, Document
from workbench.authoring.known_tools import tools_of_suite
from workbench.authoring.open_suite import OpenSuite
from workbench.config.folders import bundled
from workbench.show.spans import Role
from workbench.suite.render import Table
from workbench.suite.suite_file import SuiteFile
from workbench.suite.suite_text import SpliceError
from workbench.tools.listings import StoredListings
from workbench.tui.case.actions import EditActions
from workbench.tui.case.form.page import form_source, with_table
from workbench.tui.case.form.view import FormActions, FormView
from workbench.tui.kit.actions import Keymap, actions_of
from workbench.tui.terminal.staged_app import StagedApp
from workbench.tui.terminal.theme import Palette, load_themes, textual_theme

KEYS = {
    " ": "space",
    ".": "full_stop",
    "\n": "enter",
    "_": "underscore",
    "?": "question_mark",
    "-": "minus",
    "+": "plus",
    "&": "ampersand",
}

CHARACTERS = {key: character for character, key in KEYS.items() if key != "enter"}


class FormScreen(Screen[None]):
    """Performs the actions of the form, as the main screen does."""

    def compose(self) -> ComposeResult:
        yield FormView("form")

    def action_do(self, action_id: str) -> None:
        main = SimpleNamespace(case_pane=SimpleNamespace(form=self.query_one(FormView)))
        app: Any = SimpleNamespace(main=main, announce=self.announce, perform=lambda _: None)
        method = next(action.method for action in actions_of(FormActions) if action.id == action_id)
        getattr(FormActions(app), method)()

    def announce(self, text: str, role: Role = "text", sign: str = "") -> None:
        cast("FormApp", self.app).refused.append(text)


class FormApp(StagedApp):
    """Shows the form of a case, or of the suite's settings (`HEAD`)."""

    def __init__(self, text: str, index: int) -> None:
        super().__init__()
        theme = load_themes(bundled("themes"), Path("nowhere")).by_name["graphite"]
        self.palette = Palette(theme)
        self.keymap = Keymap(actions={action.id: action for action in actions_of(EditActions)})
        self.register_theme(textual_theme(theme))
        self.theme = theme.name
        self.suite = OpenSuite.new(Path("home.toml"), text)
        self.index = index
        self.said: list[str] = []
        self.refused: list[str] = []

    def on_mount(self) -> None:
        self.push_screen(FormScreen(), callback=None)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.form.on_change = self.change
        self.form.on_give_up = self.give_up
        self.form.focus()
        self.show()

    @property
    def form(self) -> FormView:
        return self.screen.query_one(FormView)

    def go_to(self, place: tuple[str | int, ...]) -> None:
        """Move the cursor to a row. If the row has no value, show it first."""
        if all(row.place != place for row in self.form.page.rows):
            self.form.show_every_key()
        self.form.go_to(place)

    @property
    def file(self) -> SuiteFile:
        return self.suite.file

    @property
    def table(self) -> dict[str, Any]:
        return self.suite.document.table(self.index)

    def show(self) -> None:
        tools = tools_of_suite(self.suite.document.table(HEAD), self.suite.path, StoredListings(Path("nowhere")))
        self.form.show(form_source(self.suite, self.index, tools), key=self.index)

    def change(self, table: Table, said: str, group: Hashable, by_keys: bool) -> str | None:
        try:
            document: Document = with_table(self.suite.document, self.index, table)
        except SpliceError as error:
            return str(error)
        self.suite.change(document, said, group, by_keys=by_keys)
        self.said.append(said)
        self.show()
        return None

    def give_up(self, group: Hashable) -> bool:
        if self.suite.last is None or self.suite.last.group != group:
            return False
        self.suite.undo()
        self.show()
        return True

    @on(FormView.Refused)
    def take_refusal(self, event: FormView.Refused) -> None:
        self.refused.append(event.why)


class Typist:
    """A user at the keyboard of a `FormApp`."""

    def __init__(self, app: FormApp, pilot: Pilot[int]) -> None:
        self.app, self.pilot = app, pilot

    async def press(self, *keys: str) -> None:
        """Press keys in one burst, and wait until the app settles."""
        for key in keys:
            self.app.post_message(events.Key(key, CHARACTERS.get(key, key if len(key) == 1 else None)))
        for _ in range(2):  # what a key opens takes the keys behind it a round later
            await self.pilot._wait_for_screen()
            await self.pilot.pause()

    async def type(self, text: str) -> None:
        await self.press(*(KEYS.get(character, character) for character in text))

    def says(self, key: str) -> Any:
        """Return the current value of a key of the case or the suite, or `None` if it has none."""
        return self.app.table.get(key)

    @property
    def screen(self) -> str:
        """The text of the screen."""
        return screen_text(self.app).rstrip()


@asynccontextmanager
async def form_of(text: str, index: int = 0, size: tuple[int, int] = (60, 24)) -> AsyncIterator[Typist]:
    """Open the form of a case, with the focus in it."""
    app = FormApp(text, index)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield Typist(app, pilot)
