"""The dialog that asks which faults to try, and says what that takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from workbench.lab.faults import FAULTS, LASTS, FaultName, Lasts
from workbench.show.spans import EMPTY, Line
from workbench.tui.kit.dialogs import ChooseLines, Dialog, Option, ReadLines, keys_line
from workbench.tui.lines.prose import with_margin

Lasting = tuple[Lasts, ...]
_LASTINGS: tuple[tuple[str, Lasting], ...] = (
    ("once", ("once",)),
    ("for good: all further calls of the tool get it, too", ("for good",)),
    ("both: once, and for good", LASTS),
)

Choice = tuple[tuple[FaultName, ...], Lasting]
"""The faults, and how long they last. No fault stands for the matrix that was shown last."""

SHOW_LAST: Choice = ((), ())


class FaultsDialog(Dialog[Choice]):
    """Asks which faults to try. `says` returns what a choice takes."""

    TITLE_LINE: ClassVar[str] = "Break the tools"
    DEFAULT_CSS = "FaultsDialog > Vertical { width: 84; }"

    def __init__(self, says: Callable[[Choice], str], *, has_last: bool) -> None:
        super().__init__(keys_line(("Enter", "choose"), ("Esc", "leave")))
        self._says = says
        self._has_last = has_last
        self._faults = set(FAULTS)
        self._lasting = 0

    def body(self) -> ComposeResult:
        yield ReadLines(self._lines, "reading")
        yield ChooseLines(self._options(), widget_id="choices")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#choices"))

    @property
    def _choice(self) -> Choice:
        return tuple(fault for fault in FAULTS if fault in self._faults), _LASTINGS[self._lasting][1]

    def _lines(self, width: int) -> list[Line]:
        text = self._says(self._choice) if self._faults else "No fault is chosen."
        return [EMPTY, *with_margin(text, width), EMPTY]

    def _options(self) -> list[Option]:
        last = [Option("show the last matrix")] if self._has_last else []
        faults = [Option(fault, checked=fault in self._faults) for fault in FAULTS]
        return [Option("try them"), *last, Option(f"lasts  {_LASTINGS[self._lasting][0]}"), *faults]

    @on(ChooseLines.Chosen)
    def _chosen(self, event: ChooseLines.Chosen) -> None:
        at = event.index - self._has_last
        if event.index == 0:
            if self._faults:
                self.dismiss(self._choice)
        elif at == 0:
            self.dismiss(SHOW_LAST)
        elif at == 1:
            self._lasting = (self._lasting + 1) % len(_LASTINGS)
        else:
            self._faults ^= {FAULTS[at - 2]}
        choices = self.query_one("#choices", ChooseLines)
        choices.options = self._options()
        choices.repaint()
        self.query_one("#reading", ReadLines).show_anew(from_top=True)
