"""Keys that arrive together act one after another, whatever opens and closes between them."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from workbench.tui.terminal.key_queue import KeyQueueApp


class Asking(ModalScreen[str]):
    """Asks for a word."""

    def compose(self) -> ComposeResult:
        yield Input()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value)


class Silent(ModalScreen[None]):
    """Has nothing that could have the keyboard."""

    def on_key(self) -> None:
        self.dismiss()

    def compose(self) -> ComposeResult:
        yield Label("Wait.")


class Hasty(Asking):
    """The next keys come at the very moment when it closes."""

    def on_input_submitted(self, event: Input.Submitted) -> None:
        strike(self.app, *"Text", "enter")


class Ground(Label, can_focus=True):
    """Has the keyboard while no dialog has it."""


class Words(KeyQueueApp):
    """Collects words that dialogs ask for, and the keys that none of them took."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.keys: list[str] = []

    def compose(self) -> ComposeResult:
        yield Ground("Words")

    def on_key(self, event: events.Key) -> None:
        if event.key == "n":
            self.push_screen(Asking(), lambda word: self.words.append(word or ""))
        elif event.key == "s":
            self.push_screen(Silent())
        elif event.key == "f":
            self.push_screen(Hasty(), self.open_field)
        else:
            self.keys.append(event.key)

    def open_field(self, _: str | None) -> None:
        """Open a field below the dialog that has just closed, as a form does for the missing parts of a new case."""
        field = Input()
        self.screen.mount(field)
        field.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.words.append(event.value)


def strike(app: App[int], *keys: str) -> None:
    """Let keys arrive together."""
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))


async def until(pilot: Pilot[int], holds: Callable[[], bool]) -> None:
    for _ in range(200):
        if holds():
            return
        await pilot.pause(0.01)
    raise AssertionError("it never came to that")


async def test_what_is_typed_behind_a_key_that_opens_a_dialog_is_for_the_dialog() -> None:
    app = Words()
    async with app.run_test() as pilot:
        strike(app, "a", "n", *"one", "enter", "b", "n", *"none", "backspace", "enter", "c")
        await until(pilot, lambda: "c" in app.keys)
        assert app.words == ["one", "non"]
        assert [key for key in app.keys if len(key) == 1] == ["a", "b", "c"]


async def test_pasted_text_is_for_the_dialog_too() -> None:
    app = Words()
    async with app.run_test() as pilot:
        strike(app, "n")
        app.post_message(events.Paste("two words"))
        strike(app, "enter")
        await until(pilot, lambda: app.words == ["two words"])


async def test_what_is_typed_behind_an_answer_is_for_the_field_that_the_answer_opens() -> None:
    app = Words()
    async with app.run_test() as pilot:
        strike(app, "f", *"name", "enter")
        await until(pilot, lambda: app.words == ["Text"])
        assert not [key for key in app.keys if len(key) == 1]


async def test_where_nothing_takes_the_keyboard_keys_go_to_the_screen() -> None:
    app = Words()
    async with app.run_test() as pilot:
        strike(app, "s", "x", "d", "e")
        await until(pilot, lambda: app.keys[-1:] == ["e"])
        assert app.keys == ["x", "d", "e"]
