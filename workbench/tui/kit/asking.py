"""A question that nobody answers with yes by accident: all of its text has been on the screen before that counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.timer import Timer

from workbench.tui.kit.dialogs import BuildLines, ChooseLines, Dialog, Option, ReadLines, keys_line
from workbench.tui.kit.line_view import Motion
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.spans import Line, Span

_Answer = TypeVar("_Answer")

_WAIT: Line = (Span(f" {GLYPHS.running}", "muted"),)
"""Stands where the keys do while none is taken."""


class AskScreen(Dialog[_Answer]):
    """A text and answers to it, of which the last one is no; the cursor begins there, and Esc means it too. Every other
    one that is not `harmless` is taken only after the end of the text has been on the screen."""

    REST_S: ClassVar[float] = 0.0
    """For a question that comes by itself: a key that was meant for something else is no answer, so no key is taken for
    this long, counted anew from each one that comes too early, whatever it is: somebody is typing."""

    MORE_KEYS: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Further keys to name, with what they do."""

    def __init__(
        self,
        build: BuildLines,
        answers: Sequence[tuple[_Answer, Option]],
        *,
        leaving: str,
        harmless: frozenset[_Answer] = frozenset(),
    ) -> None:
        super().__init__(_WAIT if self.REST_S else self._reading_keys(leaving))
        self._build = build
        self._answers = tuple(answers)
        self._leaving = leaving
        self._harmless = harmless | {self._no}
        self._rest: Timer | None = None
        for answer, option in self._answers:
            self._bindings.bind(option.key, f"answer({answer!r})")

    @property
    def _offered(self) -> tuple[_Answer, ...]:
        return (*(answer for answer, _ in self._answers), *self._harmless)

    @property
    def _no(self) -> _Answer:
        return self._answers[-1][0]

    def body(self) -> ComposeResult:
        yield ReadLines(self._build, "reading")
        options = [option for _, option in self._answers]
        yield _Answers(options, cursor=len(options) - 1, widget_id="choices")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#choices"))
        if self.REST_S:
            self._rest = self.set_timer(self.REST_S, self._rested)

    def on_key(self, event: events.Key) -> None:
        if self._rest is not None:
            self._rest.reset()

    def _rested(self) -> None:
        self._rest = None
        self._say()

    @on(ReadLines.Ended)
    def _say(self) -> None:
        reading = self.query_one("#reading", ReadLines)
        if self._rest is not None:
            return
        if reading.was_at_end:
            scroll = (("PgUp PgDn", "scroll"),) if reading.last_top else ()
            self.say_keys(keys_line(("↑↓ Enter", "choose"), ("Esc", self._leaving), *self.MORE_KEYS, *scroll))
        else:
            self.say_keys(self._reading_keys(self._leaving))

    @on(ChooseLines.Chosen)
    def _chosen(self, event: ChooseLines.Chosen) -> None:
        self.action_answer(self._answers[event.index][0])

    def action_answer(self, answer: _Answer) -> None:
        """One of the keys."""
        if answer not in self._offered or self._rest is not None:
            return
        if answer in self._harmless or self.query_one("#reading", ReadLines).was_at_end:
            self.dismiss(answer)
        else:
            self.say_keys((Span(f" {GLYPHS.warned} Read to the end first: ", "warned"), Span("PgDn", "accent")))

    def action_leave(self) -> None:
        self.action_answer(self._no)

    def _reading_keys(self, leaving: str) -> Line:
        return keys_line(("PgDn", "read on"), ("Esc", leaving), *self.MORE_KEYS, ("↑↓ Enter", "choose"))


class _Answers(ChooseLines):
    """The answers have the focus, and page through the text above them."""

    def action_move(self, motion: Motion) -> None:
        if motion in ("page_up", "page_down"):
            self.screen.query_one("#reading", ReadLines).action_move(motion)
        else:
            super().action_move(motion)
