"""The dialog for selecting the models to run on."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from workbench.tui.kit.dialogs import ChooseLines, Dialog, Option, ReadLines, keys_line
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.spans import EMPTY, Line, Span, padded, wrap
from workbench.tui.lines.words import model_label
from workbench.tui.runs.model_choices import ModelChoices

_EXPLAINED = "Checked models override each suite's own. Check none to use the suites' models."

LONGEST_LABEL = 28
"""Longer names are not aligned."""


class ModelsScreen(Dialog[tuple[str, ...]]):
    """Asks for models. Closes with the checked ones, in the order of the list."""

    TITLE_LINE = "Models"
    DEFAULT_CSS = "ModelsScreen > Vertical { width: 130; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "check", show=False),
        Binding("enter", "use", show=False),
    ]

    def __init__(self, models: ModelChoices, checked: Sequence[str]) -> None:
        super().__init__(keys_line(("Space", "check"), ("Enter", "use"), ("Esc", "leave as it was")))
        self._models = tuple(choice.name for choice in models.choices)
        self._problems = models.problems
        labels = [model_label(model) for model in self._models]
        width = min(max(map(cell_len, labels)), LONGEST_LABEL)
        self._options = [
            Option(padded(label, width), choice.detail, choice.short, checked=choice.name in checked)
            for label, choice in zip(labels, models.choices, strict=True)
        ]

    def body(self) -> ComposeResult:
        yield ReadLines(self._explained, "reading")
        yield _ModelList(self._options, widget_id="choices")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#choices"))

    def _explained(self, width: int) -> list[Line]:
        room = max(width - 4, 10)
        lines: list[Line] = [EMPTY]
        lines += [(Span("  "), Span(row, "muted")) for row in wrap(_EXPLAINED, room)]
        for problem in self._problems:
            lines += [(Span("  "), Span(row, "error")) for row in wrap(f"{GLYPHS.error} {problem}", room)]
        return [*lines, EMPTY]

    @on(ChooseLines.Chosen)
    def _clicked(self) -> None:
        self.action_check()

    def action_check(self) -> None:
        """Check or uncheck the selected model."""
        choices = self.query_one("#choices", ChooseLines)
        option = choices.options[choices.cursor]
        choices.options[choices.cursor] = dataclasses.replace(option, checked=not option.checked)
        choices.repaint()

    def action_use(self) -> None:
        """Close with the checked models."""
        options = self.query_one("#choices", ChooseLines).options
        self.dismiss(tuple(model for model, option in zip(self._models, options, strict=True) if option.checked))


class _ModelList(ChooseLines, inherit_bindings=False):
    """A list in which Enter is left to the dialog and space checks."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move('up')", show=False),
        Binding("down", "move('down')", show=False),
        Binding("home", "move('home')", show=False),
        Binding("end", "move('end')", show=False),
    ]
