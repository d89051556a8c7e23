"""One run as every grader reads it: the graders, and beside them how the one under the cursor came to its score."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen

from workbench.grading.grade import disagree
from workbench.reports.visible import one_line
from workbench.tui.actions import BY_ID, ScreenName, Situation, bindings_for, shown_keys
from workbench.tui.glyphs import GLYPHS
from workbench.tui.painting import Bar
from workbench.tui.screens.help import HelpScreen
from workbench.tui.state.grade_lines import copied_grade, grade_page
from workbench.tui.state.grades import GradesState
from workbench.tui.state.spans import EMPTY, Line, Role, Span
from workbench.tui.state.tool_lines import title_line
from workbench.tui.widgets.bars import KeyBar
from workbench.tui.widgets.grade_views import GradeDetail, GradeList

if TYPE_CHECKING:
    from workbench.tui.workbench import Workbench

TWO_COLUMNS_CELLS = 80
"""From this width on graders and calls stand side by side."""

Column = Literal["list", "calls"]


class GradesScreen(Screen[None]):
    """The grades of a run that is over, as they are when it is opened."""

    DEFAULT_CSS = """
    GradesScreen { layout: vertical; background: $background; }
    GradesScreen #columns { height: 1fr; }
    GradesScreen #graders-column { width: 30%; min-width: 28; max-width: 72; height: 100%; }
    GradesScreen #calls-column { width: 1fr; height: 100%; border-left: solid $border; }
    GradesScreen.one #graders-column { width: 1fr; max-width: 100%; }
    GradesScreen.one #calls-column { border-left: none; }
    """
    NAME: ClassVar[ScreenName] = "grades"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(NAME)
    AUTO_FOCUS = "#grades-list"

    def __init__(self, app: Workbench, state: GradesState) -> None:
        super().__init__()
        self._workbench = app
        self.state = state
        self.column: Column = "list"
        self._bad = -1
        """The line with something bad that was gone to last."""

    def compose(self) -> ComposeResult:
        yield Bar("grades-title")
        with Horizontal(id="columns"):
            with Vertical(id="graders-column"):
                yield GradeList(self.state, "grades-list")
            with Vertical(id="calls-column"):
                yield GradeDetail(lambda width: grade_page(self.state, width).lines, "grades-detail")
        yield KeyBar("grades-keys")

    def on_mount(self) -> None:
        self._place_columns()
        self._show_title()
        self._show_keys()

    def _show_title(self) -> None:
        left: Line = (Span(" Grades ", "badge"), Span(f" {self.state.title}"))
        at_odds = disagree(self.state.grades)
        ends: tuple[Line, ...] = (
            ((Span(f"{GLYPHS.disagree} the graders disagree ", "warned"),), (Span(f"{GLYPHS.disagree} ", "warned"),))
            if at_odds
            else (EMPTY,)
        )
        self.query_one("#grades-title", Bar).say(lambda width: title_line(left, ends, width))

    @property
    def _list(self) -> GradeList:
        return self.query_one("#grades-list", GradeList)

    @property
    def _detail(self) -> GradeDetail:
        return self.query_one("#grades-detail", GradeDetail)

    def _show_keys(self) -> None:
        shown = shown_keys(self.situation) if self.app.screen is self else ()
        self.query_one("#grades-keys", KeyBar).offer(shown)

    def announce(self, text: str, role: Role = "text", sign: str = "") -> None:
        """Say something at the bottom, until the next key."""
        said = f" {sign} {one_line(text)}" if sign else f" {one_line(text)}"
        self.query_one("#grades-keys", KeyBar).announce((Span(said, role),))

    @on(GradeList.Moved)
    def _moved(self) -> None:
        self._bad = -1
        self._detail.show_anew(from_top=True)

    @on(GradeList.Opened)
    def _opened(self) -> None:
        self.action_do("grades.show")

    # Columns

    def on_resize(self, event: events.Resize) -> None:
        self._place_columns()

    @property
    def _one_column(self) -> bool:
        return self.app.size.width < TWO_COLUMNS_CELLS

    def _place_columns(self) -> None:
        one = self._one_column
        self.set_class(one, "one")
        self.query_one("#graders-column").display = not one or self.column == "list"
        self.query_one("#calls-column").display = not one or self.column == "calls"

    def _go_to(self, column: Column) -> None:
        self.column = column
        self._place_columns()
        self.set_focus(self._list if column == "list" else self._detail)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if event.widget.id in ("grades-list", "grades-detail"):
            self.column = "list" if event.widget.id == "grades-list" else "calls"

    def on_screen_suspend(self) -> None:
        self.query_one("#grades-keys", KeyBar).offer(())

    def on_screen_resume(self) -> None:
        self._show_keys()

    # What can be done

    @property
    def situation(self) -> Situation:
        """What decides which actions can be taken."""
        return Situation(screen=self.NAME, has_text=True, graded=True, runs=self.state.runs)

    def action_do(self, action_id: str) -> None:
        """Take an action of the registry, or say why it cannot be taken."""
        self.query_one("#grades-keys", KeyBar).clear_notice()
        why = BY_ID[action_id].why_not(self.situation)
        if why is not None:
            self.announce(why[:1].upper() + why[1:], "warned", GLYPHS.warned)
        else:
            self._workbench.main.commands.perform(action_id, self._workbench.main)

    def step(self, by: int) -> None:
        """Look at the next grader, or at the one before."""
        self.state.step(by)
        self._list.move_cursor(self._list.line_of(self.state.cursor))
        self._moved()

    def explain(self) -> None:
        """Say everything in more words, or in fewer again; where only the graders are seen, show the calls."""
        if self._one_column and self.column == "list":
            self._go_to("calls")
            return
        self.state.more = not self.state.more
        self._detail.show_anew(from_top=False)
        if self.state.more and self.state.explanation.more:
            self.announce(f"Values in full; at the end, how {self.state.explanation.system} scores")

    def to_next_bad(self) -> None:
        """Go to the next line of the calls that is not right, after the last one to the first."""
        bad = grade_page(self.state, self._detail.text_width).bad
        if not bad:
            self.announce("Nothing is wrong with any call here")
            return
        if self._one_column:
            self._go_to("calls")
        self._bad = next((line for line in bad if line > self._bad), bad[0])
        self._detail.scroll_lines(self._bad - self._detail.top)
        self.announce(f"{bad.index(self._bad) + 1} of {len(bad)} that are not right")

    def show_run(self, state: GradesState) -> None:
        """Show the grades of another run, by the grader that is looked at now."""
        state.look_as(self.state)
        self.state = self._list.state = state
        self._show_title()
        self._list.move_cursor(self._list.line_of(state.cursor))
        self._moved()

    def show(self) -> None:
        """Go to the calls."""
        self._go_to("calls")

    def other_column(self) -> None:
        """Go to the other column."""
        self._go_to("calls" if self.column == "list" else "list")

    def back(self) -> None:
        """Leave the calls, then the screen."""
        if self.column == "calls":
            self._go_to("list")
        else:
            self.dismiss()

    def help(self) -> None:
        """Show the keys."""
        self.app.push_screen(HelpScreen(self.situation))

    def text_to_copy(self) -> tuple[str, str]:
        """The grade under the cursor with everything behind it, and what to call it."""
        return copied_grade(self.state)
