"""The screen of one run's grades: the list of graders, and the explanation of the selected grade."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message

from workbench.dataclasses import dataclass
from workbench.grading.status import graders_disagree
from workbench.numerals import counted_of
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Span, title_line
from workbench.tui.grades.lines import ROWS, copied_grade, grade_page, list_line
from workbench.tui.grades.state import GradesState
from workbench.tui.kit.actions import Situation, action
from workbench.tui.kit.bars import KeyBar
from workbench.tui.kit.line_search import SearchedScreen
from workbench.tui.kit.line_view import LineView, Motion
from workbench.tui.kit.rows import Detail
from workbench.tui.kit.side_screen import ActionOverride, ColumnsScreen
from workbench.tui.kit.strips import Bar

if TYPE_CHECKING:
    from workbench.grading.grade import RunResult
    from workbench.suite.model import Case
    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.shell.workbench import Workbench


@dataclass(frozen=True)
class GradesSituation(Situation):
    """The facts that decide which actions of the screen are available.

    `runs` is the number of graded runs of the case."""

    runs: int = 0


def _other_run(situation: GradesSituation) -> str | None:
    if situation.runs > 1:
        return None
    return "this case has no other run with grades"


class GradeList(LineView):
    """The list of graders. Each grader takes several lines, and the cursor moves from grader to grader."""

    class Moved(Message):
        """Posted when the cursor moves to a different grader."""

    class Opened(Message):
        """Posted when the selected grader is clicked."""

    def __init__(self, state: GradesState, widget_id: str) -> None:
        super().__init__(widget_id)
        self.state = state
        self.cursor = self.line_of(state.cursor)

    def line_count(self) -> int:
        return len(self.state.grades) * ROWS

    def group_start(self, index: int) -> int:
        return index // ROWS * ROWS

    def line_of(self, grader: int) -> int:
        """Return the index of a grader's first line."""
        return grader * ROWS

    def line_at(self, index: int) -> Line:
        return list_line(self.state, index, self.text_width)

    def move_cursor(self, index: int) -> None:
        first = self.group_start(min(max(index, 0), self.line_count() - 1))
        # Scrolling to the last row first makes all rows of the grader visible.
        super().move_cursor(first + ROWS - 1)
        super().move_cursor(first)

    def action_move(self, motion: Motion) -> None:
        if motion in ("up", "down"):
            step = ROWS
            if motion == "up":
                step = -ROWS
            self.move_cursor(self.cursor + step)
            self.moved()
        else:
            super().action_move(motion)

    def moved(self) -> None:
        self.state.move_to(self.cursor // ROWS)
        self.post_message(self.Moved())

    def chosen(self, index: int) -> None:
        self.post_message(self.Opened())


OtherRun = Callable[[GradesState, int], GradesState | None]
"""Selects the next (1) or previous (-1) graded run of the case, and returns its grades."""


def _no_other_run(state: GradesState, step: int) -> None:
    """Return `None`. Used when the screen shows a run without other runs of its case."""


class GradesScreen(ColumnsScreen[None], SearchedScreen[None]):
    """The grades of a finished run, as they were when the screen opened."""

    DEFAULT_CSS = "GradesScreen #list-column { width: 30%; min-width: 28; max-width: 72; }"
    TWO_COLUMNS_CELLS = 80
    NAME = "grades"
    TITLE_IN_TEXT = "the grades"
    ACTION_OVERRIDES = (ActionOverride("back", keys="escape left"),)
    AUTO_FOCUS = "#grades-list"

    def __init__(self, app: Workbench, state: GradesState, other_run: OtherRun = _no_other_run) -> None:
        super().__init__(app)
        self.state = state
        self._other_run = other_run
        self._failed_index = -1
        """The line of the last visited wrong call, -1 for none."""

    def compose(self) -> ComposeResult:
        yield Bar("grades-title")
        with Horizontal(id="columns"):
            with Vertical(id="list-column"):
                yield GradeList(self.state, "grades-list")
            with Vertical(id="detail-column"):
                yield Detail(lambda width: grade_page(self.state, width).lines, "grades-detail")
        yield KeyBar("grades-keys")

    def on_mount(self) -> None:
        self._show_bars()

    def _show_bars(self) -> None:
        left: Line = (Span(" Grades ", "badge"), Span(f" {self.state.title}"))
        ends: tuple[Line, ...] = (EMPTY,)
        if graders_disagree(self.state.grades):
            sign = Span(f"{GLYPHS.disagree} ", "warned")
            ends = ((Span(f"{GLYPHS.disagree} the graders disagree ", "warned"),), (sign,))
        self.query_one("#grades-title", Bar).set_line(lambda width: title_line(left, ends, width))
        super()._show_bars()

    @property
    def _list(self) -> GradeList:
        return self.query_one("#grades-list", GradeList)

    @property
    def _detail(self) -> Detail:
        return self.query_one("#grades-detail", Detail)

    @on(GradeList.Moved)
    def _moved(self) -> None:
        self._failed_index = -1
        self._detail.rebuild_lines(from_top=True)

    @on(GradeList.Opened)
    def _opened(self) -> None:
        self.action_do("grades.show")

    # Actions

    @property
    def situation(self) -> GradesSituation:
        return GradesSituation(has_text=True, runs=self.state.runs)

    @action("}", "Next grader", label="next")
    def do_next(self) -> None:
        self._step(1)

    @action("{", "Previous grader", label="previous")
    def do_previous(self) -> None:
        self._step(-1)

    def _step(self, offset: int) -> None:
        self.state.step(offset)
        self._list.move_cursor(self._list.line_of(self.state.cursor))
        self._moved()

    @action("enter", "Details: how the grader scores, values in full", label="more")
    def do_explain(self) -> None:
        """Switch between full and short explanations. If there is only room for the list of graders, show the calls."""
        if self._is_one_column and self.column == "list":
            self._go_to("detail")
            return
        self.state.more = not self.state.more
        self._detail.rebuild_lines(from_top=False)
        if self.state.more and self.state.explanation.more:
            self.announce(f"Values in full; at the end, how {self.state.explanation.system} scores")

    @action("f8", "Next wrong call", label="next bad")
    def do_bad(self) -> None:
        """Go to the next wrong call or missed expectation. After the last, go to the first."""
        bad = grade_page(self.state, self._detail.text_width).bad
        if not bad:
            self.announce("All calls here are right")
            return
        if self._is_one_column:
            self._go_to("detail")
        after = [line for line in bad if line > self._failed_index]
        self._failed_index = after[0] if after else bad[0]
        self._detail.scroll_lines(self._failed_index - self._detail.top)
        self.announce(counted_of(bad.index(self._failed_index) + 1, len(bad), "wrong call"))

    @action("]", "Next model or repeat of the case", needs=_other_run)
    def do_next_run(self) -> None:
        self._step_run(1)

    @action("[", "Previous model or repeat", needs=_other_run)
    def do_previous_run(self) -> None:
        self._step_run(-1)

    def _step_run(self, offset: int) -> None:
        """Show the grades of the case's next (1) or previous (-1) run. The selected grader stays selected."""
        state = self._other_run(self.state, offset)
        if state is None:
            return
        # The selected grader is kept, so that the user can compare its grades of several runs.
        state.copy_view(self.state)
        self.state = self._list.state = state
        self._show_bars()
        self._list.move_cursor(self._list.line_of(state.cursor))
        self._moved()

    @action("right", "Go to the calls")
    def do_show(self) -> None:
        self._go_to("detail")

    @action("y", "Copy the grade with its explanation", label="copy")
    def do_copy(self) -> None:
        self.workbench.copy(*copied_grade(self.state), self.announce)


def open_grades(app: Workbench) -> None:
    """Show the grades of the selected run, or else of the case's last run in the history."""
    selection = app.selection

    def state_of(case: Case, result: RunResult) -> GradesState:
        # The title shows the number of the repeat only if the case was repeated.
        numbered = any(run.repeat for run in selection.runs)
        return GradesState(case, result, runs=len(_graded_runs(selection.runs)), numbered=numbered)

    def other_run(state: GradesState, step: int) -> GradesState | None:
        """Select the next (1) or previous (-1) graded run of the case, and return its grades.

        Return `None` if no run of the case is graded."""
        graded = _graded_runs(selection.runs)
        if not graded:
            return None
        # If the displayed run was regraded, no result matches. The first run then counts as the displayed run.
        now = 0
        for at, (_, _, shown) in enumerate(graded):
            if shown is state.result:
                now = at
                break
        index, case, result = graded[(now + step) % len(graded)]
        selection.choose_run(index)
        return state_of(case, result)

    run = selection.run
    if run is None:
        app.screens.open_last_grades()
    elif (result := run.shown_result) is not None and result.grades:
        app.show(GradesScreen(app, state_of(run.shown_case, result), other_run))


def _graded_runs(runs: Sequence[RunRecord]) -> list[tuple[int, Case, RunResult]]:
    found = []
    for index, run in enumerate(runs):
        result = run.shown_result
        if result is not None and result.grades:
            found.append((index, run.shown_case, result))
    return found
