"""Running cells that ran before: what that will take, and the question before money is spent again."""

from __future__ import annotations

from typing import Literal

from workbench.analysis.estimate import Estimate
from workbench.numerals import counted
from workbench.show.spans import EMPTY, Line
from workbench.show.views.values import estimate_text
from workbench.tui.kit.asking import AskScreen
from workbench.tui.kit.dialogs import Option
from workbench.tui.lines.prose import with_margin


class AgainScreen(AskScreen[Literal["run", "no"]]):
    """Asks before cells that cost money run again. `cells` is how many of them ran before."""

    TITLE_LINE = "Run again, for money?"

    def __init__(self, cells: int, estimate: Estimate) -> None:
        def lines(width: int) -> list[Line]:
            before = "It ran before." if cells == 1 == estimate.runs else f"{counted(cells, 'cell')} ran before."
            return [
                EMPTY,
                *with_margin(f"{counted(estimate.runs, 'run')}: {estimate_text(estimate)}.", width),
                *with_margin(f"{before} The estimate is the mean of earlier runs.", width, "muted"),
            ]

        super().__init__(
            lines,
            [
                ("run", Option("run", "and pay for it")),
                ("no", Option("no", "nothing runs")),
            ],
            leaving="run nothing",
        )
