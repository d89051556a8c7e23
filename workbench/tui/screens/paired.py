"""One column of the comparison against another: is the difference real, and which cases make it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from workbench.analysis.paired import Pair
from workbench.reports.visible import one_line
from workbench.tui.actions import ScreenName, Situation, bindings_for
from workbench.tui.painting import Bar
from workbench.tui.screens.beside import BesideScreen
from workbench.tui.state.compared_pair import PairedState, nothing_message
from workbench.tui.state.spans import Span, cut_line
from workbench.tui.widgets.bars import KeyBar
from workbench.tui.widgets.history_views import KeptDetail, KeptRows

if TYPE_CHECKING:
    from workbench.tui.workbench import Workbench


class PairedScreen(BesideScreen[None]):
    """What the tests said when it was opened. `open_pair` shows both runs of a case."""

    DEFAULT_CSS = "PairedScreen #paired-said { height: auto; max-height: 50%; }"
    NAME: ClassVar[ScreenName] = "paired"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(NAME)
    AUTO_FOCUS = "#paired-list"

    def __init__(self, app: Workbench, state: PairedState, open_pair: Callable[[Pair], object]) -> None:
        super().__init__(app)
        self.state = state
        self._open_pair = open_pair

    def compose(self) -> ComposeResult:
        yield Bar("paired-title")
        yield KeptDetail(self.state.said, "paired-said")
        yield KeptRows(self.state, self.state.row_line, nothing_message, "paired-list")
        yield KeyBar("paired-keys")

    def on_mount(self) -> None:
        title = f" {one_line(self.state.second)} against {one_line(self.state.first)}"
        self.query_one("#paired-title", Bar).say(
            lambda width: cut_line((Span(" Is it better? ", "badge"), Span(title)), width)
        )
        self._show_bars()

    @property
    def situation(self) -> Situation:
        nothing = {} if self.state.rows else {"paired.open": "no case was graded with both"}
        return Situation(screen=self.NAME, has_text=True, kept_refuses=nothing)

    def on_kept_rows_opened(self) -> None:
        self.action_do("paired.open")

    def open(self) -> None:
        """Show both runs of the case under the cursor."""
        if self.state.selected is not None:
            self._open_pair(self.state.selected)
