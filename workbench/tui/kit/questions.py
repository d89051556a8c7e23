"""Dialogs that ask for a choice or for a name. They prevent accidental consent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.timer import Timer
from textual.widgets import Input

from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Span, wrap
from workbench.show.visible import one_line
from workbench.tui.kit.dialogs import BuildLines, ChoiceList, Dialog, Option, TextView, keys_line
from workbench.tui.kit.fields import SafeInput
from workbench.tui.kit.line_view import Motion
from workbench.tui.terminal.key_queue import bind_on_widget

_Answer = TypeVar("_Answer")

ANSWER_DELAY_S = 0.3
"""The time in seconds before a question accepts an answer. An earlier key was meant for the previous screen."""

_WAIT: Line = (Span(f" {GLYPHS.running}", "muted"),)
"""The text instead of the keys while no key is accepted."""


class QuestionScreen(Dialog[_Answer]):
    """A question with numbered answers, of which the last means no.

    Esc means no. Enter means `default`. If an answer would start, send or lose something, there is no `default`, and
    Enter means no. Unless an answer is `harmless`, it is accepted only after the user has scrolled to the end of the
    text."""

    # A dialog may open while the user is typing. Therefore it ignores keys until none has come for `ANSWER_DELAY_S`.
    ANSWER_DELAY_S: ClassVar[float] = ANSWER_DELAY_S
    """The time in seconds without a key before the dialog accepts an answer. 0 if no answer changes anything."""

    MORE_KEYS: ClassVar[tuple[tuple[str, str], ...]] = ()
    """More keys to show, with their meaning."""

    def __init__(
        self,
        build: BuildLines,
        answers: Sequence[tuple[_Answer, Option]],
        *,
        leaving: str,
        harmless: frozenset[_Answer] = frozenset(),
        default: _Answer | None = None,
    ) -> None:
        self._default = answers[-1][0] if default is None else default
        """The preselected answer."""
        self._is_on_last = default is None
        """Whether the cursor is on the last answer. Esc also means the last answer."""
        super().__init__(_WAIT if self.ANSWER_DELAY_S else self._reading_keys(leaving))
        self._build = build
        self._answers = tuple(answers)
        self._leave_label = leaving
        self._harmless = harmless | {self._no}
        self._delay_timer: Timer | None = None
        self._was_mounted = False
        """Whether the dialog is mounted. Keys may arrive earlier."""
        for number, (answer, _) in enumerate(self._answers[:-1], 1):
            bind_on_widget(self, str(number), f"answer({answer!r})")

    @property
    def _offered(self) -> tuple[_Answer, ...]:
        return (*(answer for answer, _ in self._answers), *self._harmless)

    @property
    def _no(self) -> _Answer:
        return self._answers[-1][0]

    def body(self) -> ComposeResult:
        yield TextView(self._build, "reading")
        last = len(self._answers)
        options = []
        for number, (_, option) in enumerate(self._answers, 1):
            key = "Esc" if number == last else f"{number:<3}"
            options.append(replace(option, key=key))
        cursor = [answer for answer, _ in self._answers].index(self._default)
        yield _Answers(options, cursor=cursor, widget_id="choices")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#choices"))
        self._was_mounted = True
        if self.ANSWER_DELAY_S:
            self._delay_timer = self.set_timer(self.ANSWER_DELAY_S, self._accept_keys)

    def on_key(self, event: events.Key) -> None:
        if self._delay_timer is not None:
            self._delay_timer.reset()

    def _accept_keys(self) -> None:
        self._delay_timer = None
        self._say()

    @on(TextView.Ended)
    def _say(self) -> None:
        reading = self.query_one("#reading", TextView)
        if self._delay_timer is not None:
            return
        if reading.was_at_end:
            scroll = (("PgUp PgDn", "scroll"),) if reading.last_top else ()
            self.set_keys(keys_line(*self._choosing_keys(self._leave_label), *self.MORE_KEYS, *scroll))
        else:
            self.set_keys(self._reading_keys(self._leave_label))

    def show_choice_keys(self) -> None:
        self._is_on_last = self.query_one("#choices", ChoiceList).cursor == len(self._answers) - 1
        self._say()

    @on(ChoiceList.Chosen)
    def _chosen(self, event: ChoiceList.Chosen) -> None:
        self.action_answer(self._answers[event.index][0])

    def action_answer(self, answer: _Answer) -> None:
        """Close with an answer. If the text must be read first, say so instead."""
        # Keys that arrive before the dialog is mounted and ready were meant for the screen below.
        if answer not in self._offered or self._delay_timer is not None or not self._was_mounted:
            return
        if answer in self._harmless or self.query_one("#reading", TextView).was_at_end:
            self.dismiss(answer)
        else:
            self.set_keys((Span(f" {GLYPHS.warned} Read to the end first: ", "warned"), Span("PgDn", "accent")))

    def action_leave(self) -> None:
        self.action_answer(self._no)

    def _reading_keys(self, leaving: str) -> Line:
        choose, leave = self._choosing_keys(leaving)
        return keys_line(("PgDn", "read on"), leave, *self.MORE_KEYS, choose)

    def _choosing_keys(self, leaving: str) -> tuple[tuple[str, str], tuple[str, str]]:
        if self._is_on_last:
            return ("↑↓", "choose"), ("Enter Esc", leaving)
        return ("↑↓ Enter", "choose"), ("Esc", leaving)


class _Answers(ChoiceList):
    """The list of answers, which has the focus. Page keys scroll the text above the list."""

    def action_move(self, motion: Motion) -> None:
        if motion in ("page_up", "page_down", "half_up", "half_down"):
            self.screen.query_one("#reading", TextView).action_move(motion)
        else:
            super().action_move(motion)
            assert isinstance(self.screen, QuestionScreen)
            self.screen.show_choice_keys()


_Choice = TypeVar("_Choice")

Refusal = Callable[[str], str | None]
"""Returns why a text cannot be used, `None` if it can."""

LOW_ROWS = 14
"""The minimum screen height for the explanation in a dialog."""

_ROWS_AROUND = 8
"""The rows of a dialog with a field and choices, without the choices."""


class TextPromptScreen(Dialog[_Choice]):
    """A dialog with one line to type in."""

    DEFAULT_CSS = """
    TextPromptScreen Input { height: 1; border: none; padding: 0 1; margin: 0 1 1 1; background: $background; }
    TextPromptScreen.low Input { margin: 0 1; }
    TextPromptScreen.low TextView { display: none; }
    """

    def __init__(self, title: str, proposed: str, explanation: str, refusal: Refusal, keys: Line) -> None:
        super().__init__(keys)
        self.TITLE_LINE = title  # type: ignore[misc]
        self._proposed = proposed
        self._explanation = explanation
        self._refusal = refusal

    def body(self) -> ComposeResult:
        yield TextView(self._lines, "reading")
        yield SafeInput(self._proposed, widget_id="name")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#name", Input))

    def answer(self, text: str) -> None:
        """Close the dialog with a text that was accepted."""
        raise NotImplementedError

    def submit(self) -> None:
        """Close the dialog with the typed text. If the text cannot be used, show why."""
        text = self.query_one("#name", Input).value.strip()
        why = self._refusal(text) if text else "a name is needed"
        if why is None:
            self.answer(text)
        else:
            self.show_notice(why)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.submit()

    @on(Input.Changed)
    def _changed(self) -> None:
        self.set_keys(self._keys)

    def _lines(self, width: int) -> list[Line]:
        parts = wrap(one_line(self._explanation), max(width - 4, 10))
        return [EMPTY, *((Span("  "), Span(row)) for row in parts)]

    def _make_room(self, height: int) -> None:
        super()._make_room(height)
        self.set_class(height < LOW_ROWS, "low")


class NameScreen(TextPromptScreen[str]):
    """Asks for a name. Closes with the name."""

    def __init__(self, title: str, proposed: str, explanation: str, refusal: Refusal) -> None:
        super().__init__(title, proposed, explanation, refusal, keys_line(("Enter", "confirm"), ("Esc", "leave")))

    def answer(self, text: str) -> None:
        self.dismiss(text)
