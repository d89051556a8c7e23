"""The read-only screen of a single run: active, finished, or from the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from workbench.authoring.case_list import CaseKey
from workbench.authoring.workspace import is_recording
from workbench.dataclasses import dataclass
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Span, title_line
from workbench.show.views.copied_text import copied_text
from workbench.show.views.grades import why_not_graded
from workbench.show.visible import one_line
from workbench.tui.kit.actions import MOVE_ACTIONS, RunPaneContent, Situation, action, bindings_for, key_for
from workbench.tui.kit.bars import KeyBar
from workbench.tui.kit.side_screen import SideScreen
from workbench.tui.kit.strips import Bar
from workbench.tui.run_book.record import RunRecord, waiting_message
from workbench.tui.trajectory.headline import headline, run_name
from workbench.tui.trajectory.view import RunList, SearchedRun

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


@dataclass(frozen=True)
class TrajectorySituation(Situation):
    """The facts that decide which actions of the screen are available.

    `why_not_graded` is the reason if the run has no grades."""

    shown: RunPaneContent = "nothing"
    why_not_graded: str | None = None


def _grades(situation: TrajectorySituation) -> str | None:
    return situation.why_not_graded


def _copy(situation: Situation) -> str | None:
    if situation.has_text:
        return None
    return "nothing has happened in this run yet"


def _save(situation: TrajectorySituation) -> str | None:
    if situation.shown == "a recording":
        return "this run is a recording already"
    if situation.shown == "a finished run":
        return None
    return "this run is not finished yet"


class ReadRunList(RunList, inherit_bindings=False):
    """The lines of a read-only run."""

    # This screen only reads, so the keys that act on a run are not bound.
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(MOVE_ACTIONS)


class ReadRun(SearchedRun):
    """A read-only run with a search."""

    def compose(self) -> ComposeResult:
        yield ReadRunList("trajectory-run")


class TrajectoryScreen(SideScreen[None]):
    """The screen of one run, updated while the run is active. `title` says where the run comes from."""

    NAME = "trajectory"
    FIRST_ACTIONS = ("expand",)
    TITLE_IN_TEXT = "the run"
    AUTO_FOCUS = "#trajectory-run"

    def __init__(self, app: Workbench, record: RunRecord, title: str) -> None:
        super().__init__(app)
        self.record = record
        self._from = title
        self._is_outdated = False
        """Whether the run changed while another screen covered this screen."""

    def compose(self) -> ComposeResult:
        yield Bar("trajectory-title")
        yield Bar("trajectory-facts")
        yield ReadRun("trajectory-body")
        yield KeyBar("trajectory-keys")

    def on_mount(self) -> None:
        self._show()

    @property
    def run(self) -> ReadRun:
        return self.query_one(ReadRun)

    def update_times(self) -> None:
        self.run.run_list.update_answer_time(self.workbench.selection.book.now())

    def update_runs(self, cases: set[CaseKey], batches: bool) -> None:
        # A waiting run shows why it waits. The reason may be a run of another case, so it is always redrawn.
        if self.record.case_key in cases or self.record.stage == "waiting":
            if self.is_covered:
                self._is_outdated = True
            else:
                self._show()

    def on_screen_resume(self) -> None:
        if self._is_outdated:
            self._is_outdated = False
            self._show()

    def _show(self) -> None:
        self.run.run_list.show(
            self.record.view,
            waiting_message(
                self.record, self.workbench.selection.book.held_runs, self.workbench.selection.book.starting
            ),
        )
        self.run.show_found()
        self._show_bars()

    @on(RunList.Changed)
    def _show_bars(self) -> None:
        record, unseen = self.record, self.run.run_list.unseen
        left: Line = (Span(" Run ", "badge"), Span(f" {one_line(record.case_name)}"))
        news = EMPTY
        if unseen:
            news = (Span(f"{unseen} new {GLYPHS.down} End ", "running"),)
        ends = ((Span(f"{one_line(self._from)} ", "muted"), *news), news)
        self.query_one("#trajectory-title", Bar).set_line(lambda width: title_line(left, ends, width))
        name = run_name(record)
        self.query_one("#trajectory-facts", Bar).set_line(lambda width: (Span(" "), *headline(name, record, width - 1)))
        super()._show_bars()

    @on(RunList.ActionClicked)
    def _wanted(self) -> None:
        self.announce(f"Runs are read-only here: on the main screen, {key_for('step.held')} goes to the held run")

    # Actions

    @property
    def situation(self) -> TrajectorySituation:
        record, result = self.record, self.record.result
        shown: RunPaneContent = "a run"
        why: str | None = "this run is not finished yet"
        if result is not None:
            shown, why = "a finished run", None
            if not result.grades:
                why = why_not_graded(result)
        if record.recorded and is_recording(record.path):
            shown = "a recording"
        return TrajectorySituation(shown=shown, why_not_graded=why, has_text=self.run.run_list.item is not None)

    @action("=", "Grades: the run as each grader scores it", label="grades", needs=_grades)
    def do_grades(self) -> None:
        from workbench.tui.grades.screen import GradesScreen
        from workbench.tui.grades.state import GradesState

        result = self.record.shown_result
        if result is not None:
            self.workbench.show(GradesScreen(self.workbench, GradesState(self.record.shown_case, result)))

    @action("y", "Copy what the cursor is on", label="copy", needs=_copy)
    def do_copy(self) -> None:
        if (item := self.run.run_list.item) is not None:
            self.workbench.copy(*copied_text(item), self.announce)

    @action("enter", "Show all of a value, or fold it", label="expand")
    def do_expand(self) -> None:
        self.run.run_list.toggle()

    @action("/", "Search the run", label="search")
    def do_find(self) -> None:
        self.run.search()

    @action("ctrl+g", "Next match of the search")
    def do_find_next(self) -> None:
        self.run.find(1)

    @action("w", "Save the run as a recording", label="save", needs=_save, changes=True)
    def do_save(self) -> None:
        self.workbench.services.run_saver.save_soon(self.record, self.announce)

    @action("esc", "End the search, or leave the screen", label="back")
    def do_back(self) -> None:
        if self.run.searching:
            self.run.end_search()
        else:
            self.dismiss()
