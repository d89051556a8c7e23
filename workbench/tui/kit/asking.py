"""Dialogs that guard against accidental consent: an answer counts only after all of the text has been visible."""

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
"""Shown in place of the keys while none is accepted."""


class AskScreen(Dialog[_Answer]):
    """A text and its answers. The last one is no: it is preselected, and Esc means it, too. The others, except
    `harmless` ones, are accepted only after the end of the text has been visible."""

    REST_S: ClassVar[float] = 0.0
    """How long to ignore keys in a dialog that appears on its own, because they were meant for something else. Every
    ignored key starts the time again."""

    MORE_KEYS: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Further keys to show, with their meaning."""

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
        """Handle the key of an answer."""
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
    """The answers. They have the focus, and page through the text above."""

    def action_move(self, motion: Motion) -> None:
        if motion in ("page_up", "page_down"):
            self.screen.query_one("#reading", ReadLines).action_move(motion)
        else:
            super().action_move(motion)
