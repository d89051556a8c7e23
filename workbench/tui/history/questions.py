"""Dialogs about a stored batch: its name, the file format of an export, resuming, and removing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from textual.widgets import Input

from workbench.exchange.exporters.forms import EXPORTS_FOLDER, FORMS
from workbench.history.records import BatchRow
from workbench.numerals import counted
from workbench.show.spans import EMPTY, Line, Span, with_margin, wrap
from workbench.show.views.batch_list import batch_name
from workbench.show.visible import one_line
from workbench.tui.kit.dialogs import BuildLines, Option
from workbench.tui.kit.questions import NameScreen, QuestionScreen


class BatchNameScreen(NameScreen):
    """Asks for the name of a batch. An empty answer removes the name."""

    def __init__(self, batch: BatchRow) -> None:
        text = f"The name of #{batch.number}, for example as a baseline. Empty: no name."
        super().__init__("Name the batch", batch.name or "", text, _refusal)

    def submit(self) -> None:
        if not self.query_one("#name", Input).value.strip():
            self.answer("")
        else:
            super().submit()


def _refusal(name: str) -> str | None:
    # `#7` and `7` already mean the batch with this number.
    if name.removeprefix("#").isdecimal():
        return "every batch already has a number"
    return None


class ResumeScreen(QuestionScreen[Literal["resume", "no"]]):
    """Asks whether to resume a batch although something changed.

    `today` is whether models or judges changed. The text then says that the runs use the present models and judges."""

    TITLE_LINE = "Something has changed: resume all the same?"

    def __init__(self, batch: BatchRow, texts: Sequence[str], *, today: bool) -> None:
        models = ", with today's models and judges" if today else ""
        asked = f"{counted(batch.missing, 'run')} of {batch_name(batch)} would run now:"
        super().__init__(
            _listed(asked, texts),
            [
                ("resume", Option("resume", f"run what is missing{models}")),
                ("no", Option("no", "leave the batch as it is")),
            ],
            leaving="leave it",
        )


class RemoveScreen(QuestionScreen[Literal["remove", "no"]]):
    """Asks before removing a batch from the history."""

    TITLE_LINE = "Remove the batch"

    def __init__(self, batch: BatchRow) -> None:
        runs, lost = counted(batch.planned, "run"), "nothing brings it back; w saves its runs as recordings first"
        if batch.damage is not None:
            runs, lost = "runs", "nothing brings it back"
        parts = [lost]
        if batch.name:
            parts.insert(0, f"it is named {batch.name!r}: comparisons with that name would find nothing")
        asked = f"{batch_name(batch)} and its {runs} would be removed from the history:"
        super().__init__(
            _listed(asked, parts),
            [
                ("remove", Option("remove", "remove it from the history")),
                ("no", Option("no", "leave it")),
            ],
            leaving="leave it",
        )


class FormScreen(QuestionScreen[str]):
    """Asks for the file format of an export. Returns "" if the user declines."""

    TITLE_LINE = "Export the runs"
    ANSWER_DELAY_S = 0.0

    def __init__(self, batch: BatchRow) -> None:
        def asked(width: int) -> list[Line]:
            return [
                EMPTY,
                *with_margin(f"{batch_name(batch)} is written to the folder {EXPORTS_FOLDER}.", width),
                EMPTY,
            ]

        label_cells = max(map(len, FORMS))
        forms = [(name, Option(name.ljust(label_cells), form.what)) for name, form in FORMS.items()]
        answers = [*forms, ("", Option("no", "write nothing"))]
        super().__init__(asked, answers, leaving="write nothing", harmless=frozenset(FORMS), default=next(iter(FORMS)))


def _listed(question: str, texts: Sequence[str]) -> BuildLines:
    def lines(width: int) -> list[Line]:
        room = max(width - 4, 10)
        found: list[Line] = [EMPTY, *with_margin(question, width), EMPTY]
        for text in texts:
            for at, row in enumerate(wrap(one_line(text), room - 2)):
                found.append((Span("  - " if at == 0 else "    ", "warned"), Span(row, "warned")))
        return [*found, EMPTY]

    return lines
