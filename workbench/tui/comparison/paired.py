"""The screen of the paired tests of two columns: the results, then the cases. Unequal verdicts come first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from workbench.analysis.comparison import repeat_rules_of
from workbench.analysis.measures import DECIDING_MEASURES
from workbench.analysis.paired import CellPair, PairedComparison
from workbench.analysis.statistics import SIGNIFICANCE_LEVEL
from workbench.numerals import count_text, counted, p_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Message, Role, Span, cut_line, plain, wrap
from workbench.show.views.comparison import both_verdicts, rules_text
from workbench.show.visible import one_line
from workbench.tui.kit.actions import Situation, action
from workbench.tui.kit.bars import KeyBar
from workbench.tui.kit.line_search import SearchedScreen
from workbench.tui.kit.rows import Detail, ListState, RowsView
from workbench.tui.kit.strips import Bar

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


class PairedState(ListState[CellPair]):
    """The comparison of the column `second` with the base column `first`.

    The rows are the cases graded in both columns. Cases with different verdicts (discordant) come first."""

    def __init__(self, comparison: PairedComparison, first: str, second: str) -> None:
        super().__init__()
        self.found = comparison
        self.first = first
        self.second = second
        self.rows = list(comparison.pairs)

    def result_lines(self, width: int) -> list[Line]:
        """Return the results of the tests in sentences, and the underlying numbers."""
        found = self.found
        room = max(width - 2, 10)
        lines: list[Line] = []
        role: Role = "strong"
        for sentence in found.sentences(self.first, self.second):
            lines += _wrapped(sentence, role, room)
            # The first sentence is the answer. The other sentences support the answer.
            role = "text"
        return [*lines, *_wrapped(self._numbers(), "muted", room), EMPTY]

    @cached_property
    def _rules(self) -> str:
        return rules_text(repeat_rules_of(cell for pair in self.rows for cell in pair))

    def _numbers(self) -> str:
        found = self.found
        alike = len(found.pairs) - len(found.discordant)
        text = f"The models disagree on {counted(len(found.discordant), 'case')} and agree on {count_text(alike)}"
        if found.other_scores:
            text += f" ({count_text(found.other_scores)} of these with different scores)"
        parts = [text]
        if self._rules:
            parts.append(f"by the {self._rules} of the repeats")
        for measure in DECIDING_MEASURES.values():
            test = found.by(measure)
            if test.p is not None:
                parts.append(f"{test.method} {p_text(test.p, SIGNIFICANCE_LEVEL)}")
        return f" {GLYPHS.dot} ".join(parts)

    def row_line(self, index: int, width: int) -> Line:
        """Return a case with its verdicts in both columns. Cases with equal verdicts are dimmed."""
        before, after = self.rows[index]
        role: Role = "text"
        if index >= len(self.found.discordant):
            role = "muted"
        name = Span(f"  {one_line(before.case_name)}", role)
        return cut_line((Span(" "), *both_verdicts(before, after), name), width)

    def text(self) -> str:
        """Return everything as text, for copying."""
        # At these widths, no sentence is wrapped and no name is cut.
        lines = [plain(line).strip() for line in self.result_lines(10_000)]
        for at in range(len(self.rows)):
            lines.append(plain(self.row_line(at, 1_000)))
        return "\n".join(lines) + "\n"


def _wrapped(text: str, role: Role, max_width: int) -> Iterator[Line]:
    for row in wrap(one_line(text), max_width):
        yield (Span(" "), Span(row, role))


def nothing_message() -> Message:
    """Return the message if no case was graded with both models."""
    return (("No case was graded with both models.", "muted"),)


class PairedScreen(SearchedScreen[None]):
    """The results of the paired tests, as they were when the screen opened. `open_pair` shows both runs of a case."""

    DEFAULT_CSS = "PairedScreen #paired-said { height: auto; max-height: 50%; }"
    NAME = "paired"
    TITLE_IN_TEXT = "the paired tests"
    AUTO_FOCUS = "#paired-list"

    def __init__(self, app: Workbench, state: PairedState, open_pair: Callable[[CellPair], object]) -> None:
        super().__init__(app)
        self.state = state
        self._open_pair = open_pair

    def compose(self) -> ComposeResult:
        yield Bar("paired-title")
        yield Detail(self.state.result_lines, "paired-said")
        yield RowsView(self.state, self.state.row_line, nothing_message, "paired-list")
        yield KeyBar("paired-keys")

    def on_mount(self) -> None:
        title = f" {one_line(self.state.second)} against {one_line(self.state.first)}"
        self.query_one("#paired-title", Bar).set_line(
            lambda width: cut_line((Span(" Is it better? ", "badge"), Span(title)), width)
        )
        self._show_bars()

    @property
    def situation(self) -> Situation:
        if self.state.rows:
            return Situation(has_text=True)
        return Situation(has_text=True, refusals={"paired.open": "no case was graded with both"})

    def on_rows_view_opened(self) -> None:
        self.action_do("paired.open")

    @action("enter", "Show both runs side by side", label="side by side")
    def do_open(self) -> None:
        if self.state.selected is not None:
            self._open_pair(self.state.selected)

    @action("y", "Copy the results of the tests", label="copy")
    def do_copy(self) -> None:
        self.workbench.copy(self.state.text(), "the tests", self.announce)
