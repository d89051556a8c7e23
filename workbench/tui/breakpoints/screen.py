"""The screen of breakpoints: a list, and an input field for a new breakpoint.

The module also finds the breakpoint for a selected place in a run or in a form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input

from workbench.authoring.form.completions import Completion
from workbench.authoring.form.field_text import tool_of_call, value_at
from workbench.dataclasses import dataclass
from workbench.engine.breakpoints import KINDS, Breakpoint, BreakpointError, breakpoint_line, breakpoint_of
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Line, Span, cut_line, hanging_paragraph, title_line, wrap
from workbench.show.spans import Message as Text
from workbench.show.views.run_items import CallItem, HoldItem, Item, MissingItem, OutcomeItem, ResultItem, RoundItem
from workbench.show.views.run_view import RunPlace
from workbench.show.visible import one_line
from workbench.suite.problems import Place
from workbench.suite.render import Table, key_text
from workbench.suite.render import one_line as toml_line
from workbench.tui.breakpoints.project import Breakpoints
from workbench.tui.kit.actions import Action, Situation, action, key_for, unless_read_only
from workbench.tui.kit.bars import KeyBar
from workbench.tui.kit.dialogs import TextView
from workbench.tui.kit.fields import SafeInput
from workbench.tui.kit.line_search import SearchedScreen
from workbench.tui.kit.rows import RowsView
from workbench.tui.kit.side_screen import ActionOverride
from workbench.tui.kit.strips import Bar
from workbench.tui.kit.suggestions import CompletionList

if TYPE_CHECKING:
    from workbench.engine.breakpoints import Breakpoint
    from workbench.tui.breakpoints.project import ProjectBreakpoints
    from workbench.tui.shell.workbench import Workbench


NOTHING_IN_RUN = "put the cursor on a call, one of its arguments, its result, or a request"
NOTHING_IN_FORM = "put the cursor on an expected call, a step, a mock, or one of their arguments"


def breakpoint_in_run(item: Item | None, place: RunPlace | None, line: Line) -> Breakpoint | str:
    """Return the breakpoint to set at the selected item and line of a run, or why there can be none."""
    match item:
        case CallItem():
            # On the line of a checked argument, the breakpoint stops at failed checks of the tool.
            judged = {verdict.argument for verdict in item.verdicts if verdict.holds is not None}
            row = next((span.text.strip() for span in line if span.role == "key"), None)
            return Breakpoint("failed-check" if row in judged else "tool", item.tool)
        case MissingItem():
            return Breakpoint("tool", item.tool)
        case ResultItem() if item.tool:
            failed = item.result is not None and item.result.is_error
            return Breakpoint("error" if failed else "tool", item.tool)
        case RoundItem() | HoldItem():
            return Breakpoint("round", round=item.round)
        case OutcomeItem() if item.result is not None and item.result.status == Status.FAILED:
            return Breakpoint("failed-check")
        case None | OutcomeItem():
            return NOTHING_IN_RUN
    if place is not None:
        return Breakpoint("round", round=place.round)
    return NOTHING_IN_RUN


def breakpoint_in_form(table: Table, place: Place) -> Breakpoint | str:
    """Return the breakpoint to set at a row of a case's form, or why there can be none.

    The breakpoint stops calls of the row's tool. On the row of an argument, it stops only calls that pass the
    argument's check."""
    # The place may be inside a call. The shortest part of the place that names a tool is the call.
    length = next((length for length in range(1, len(place) + 1) if tool_of_call(table, place[:length])), 0)
    tool = tool_of_call(table, place[:length])
    if tool is None:
        return NOTHING_IN_FORM
    line = breakpoint_line(Breakpoint("tool", tool))
    inner = place[length:]
    if len(inner) > 1 and inner[0] in ("args", "when"):
        name, value = str(inner[1]), value_at(table, place[: length + 2])
        try:
            line += f" when {{ {key_text(name)} = {toml_line(value)} }}"
        except ValueError as error:
            return str(error)
    try:
        return breakpoint_of(line)
    except BreakpointError as error:
        return f"the check has a mistake: {error}"


_NAMED = ("tool", "error", "failed-check")


def point_line(point: Breakpoint, width: int) -> Line:
    """Return the row of a breakpoint in the list: its text, and whether it is enabled."""
    text = one_line(breakpoint_line(point))
    if point.enabled:
        return cut_line((Span(f" {GLYPHS.breakpoint} ", "failed"), Span(text)), width)
    return cut_line((Span(f"   off  {text}", "muted"),), width)


def storage_lines(breakpoints: Breakpoints, width: int) -> list[Line]:
    """Return lines that say where breakpoints are stored, or why storing failed."""
    if breakpoints.problem is not None:
        return warned_lines(breakpoints.problem, width)
    if breakpoints.file is None:
        text = "For this session only: given with --break on the command line."
    else:
        text = f"Stored in {one_line(str(breakpoints.file.path))}"
    return [(Span(f" {row}", "muted"),) for row in wrap(text, max(width - 2, 10))]


def typing_lines(text: str, mistake: str | None, width: int) -> list[Line]:
    """Return the lines below the input field: the mistake in `text`, or else the meaning of its first word."""
    if mistake is not None:
        return warned_lines(mistake, width)
    meanings: Mapping[str, str] = {str(name): message for name, message in KINDS.items()}
    meaning = meanings.get(text.split(" ", 1)[0]) or f"one of {', '.join(KINDS)}"
    return [(Span(f" {row}", "muted"),) for row in wrap(meaning, max(width - 2, 10))]


def warned_lines(text: str | None, width: int) -> list[Line]:
    """Return the lines of a warning. Return no lines if `text` is `None`."""
    if text is None:
        return []
    return hanging_paragraph((Span(f" {GLYPHS.warned} ", "warned"),), text, "warned", max(width - 4, 10))


def completions_of(text: str, tools: Sequence[str]) -> tuple[Completion, ...]:
    """Return completions of a partly typed breakpoint. Each completion is a whole line: a kind, or a kind with a tool.

    Tools that begin with the typed name come before tools that contain it."""
    kind, blank, name = text.lstrip().partition(" ")
    found = []
    if not blank:
        for each, meaning in KINDS.items():
            if each.startswith(kind):
                # `tool` and `round` are followed by a name or a number.
                line = f"{each} " if each in ("tool", "round") else each
                found.append(Completion(line, each, meaning.partition(":")[0]))
        return tuple(found)
    if kind not in _NAMED:
        return ()
    typed = name.strip().casefold()
    holding = [tool for tool in tools if typed in tool.casefold()]
    named = sorted(holding, key=lambda tool: not tool.casefold().startswith(typed))
    for on_kind in KINDS:
        if on_kind != kind:
            continue
        for tool in named:
            line = breakpoint_line(Breakpoint(on_kind, tool))
            if line != text.strip():
                found.append(Completion(line, one_line(line)))
    return tuple(found)


_NONE = "No breakpoint is set."
_HOW_TO_ADD = (
    "a adds one here; b sets one at a call, an argument, a result or a request of a run, or at an expected call."
)


TYPING: tuple[Action, ...] = (
    Action("breakpoints.take", "Set it", ("enter",), "breakpoints", "set"),
    Action("breakpoints.complete", "Complete", ("tab",), "breakpoints", "complete"),
    Action("breakpoints.leave.back", "Back to the list", ("escape",), "breakpoints", "back"),
)
"""Entries of the key bar while the user types a breakpoint."""


@dataclass(frozen=True)
class BreakpointsSituation(Situation):
    """The facts that decide which actions of the screen are available. `count` is the number of breakpoints."""

    count: int = 0


def _nothing() -> Text:
    ways = unless_read_only(_HOW_TO_ADD)
    if not ways:
        return ((_NONE, "text"),)
    return ((_NONE, "text"), ("", "text"), (ways, "muted"))


def _has_breakpoints(situation: BreakpointsSituation) -> str | None:
    if situation.count:
        return None
    return f"there is no breakpoint; {key_for('breakpoints.add')} adds one"


def _typed(situation: Situation) -> str | None:
    if situation.typing == "a breakpoint":
        return None
    return "it is available while a breakpoint is typed"


class _Points:
    def __init__(self, project: ProjectBreakpoints) -> None:
        self._project = project
        self.cursor = 0

    @property
    def rows(self) -> Sequence[Breakpoint]:
        return self._project.all.points

    def move_to(self, index: int) -> None:
        self.cursor = index


class _LineField(SafeInput):
    """The input field for a breakpoint. ↑ and ↓ move between the completions."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "choose(-1)", show=False),
        Binding("down", "choose(1)", show=False),
    ]

    def __init__(self, widget_id: str, choose: Callable[[int], object]) -> None:
        super().__init__(placeholder="a breakpoint", widget_id=widget_id, select_on_focus=False)
        self._choose = choose

    def action_choose(self, offset: int) -> None:
        """Mark the next (1) or previous (-1) completion."""
        self._choose(offset)


class BreakpointsScreen(SearchedScreen[None]):
    """The screen of all breakpoints. Changes apply at once, even to active runs."""

    DEFAULT_CSS = """
    BreakpointsScreen #breakpoints-body { height: 1fr; align: left bottom; }
    BreakpointsScreen CompletionList { position: relative; height: auto; max-height: 100%; }
    BreakpointsScreen #breakpoints-said { height: auto; max-height: 3; }
    BreakpointsScreen Input { height: 1; border: none; padding: 0 1; background: $panel; }
    """
    NAME = "breakpoints"
    FIRST_ACTIONS = ("switch", "add", "edit")
    TITLE_IN_TEXT = "the breakpoints"
    ACTION_OVERRIDES = (ActionOverride("back", keys="escape left"),)
    AUTO_FOCUS = "#breakpoints-list"

    def __init__(self, app: Workbench, project: ProjectBreakpoints) -> None:
        super().__init__(app)
        self._project = project
        # Several suites may offer the same tool.
        self._tools = tuple(dict.fromkeys(tool.name for tool in project.tools()))
        self._changing: int | None = None
        """The index of the breakpoint being changed, `None` for a new one."""
        self._mistake: str | None = None
        self._note: str | None = None
        """A note on the last change, if the list does not show its effect."""

    @property
    def breakpoints(self) -> Breakpoints:
        """The breakpoints in use."""
        return self._project.all

    def compose(self) -> ComposeResult:
        yield Bar("breakpoints-title")
        with Vertical(id="breakpoints-body"):
            yield RowsView(_Points(self._project), self._row_line, _nothing, "breakpoints-list")
            yield CompletionList()
        yield TextView(self._message_lines, "breakpoints-said")
        yield _LineField("breakpoints-line", self._step)
        yield KeyBar("breakpoints-keys")

    def on_mount(self) -> None:
        self._end_typing()

    @property
    def situation(self) -> BreakpointsSituation:
        count = len(self.breakpoints.points)
        return BreakpointsSituation(count=count, typing="a breakpoint" if self._typing else None)

    @property
    def _list(self) -> RowsView:
        return self.query_one("#breakpoints-list", RowsView)

    @property
    def _completions(self) -> CompletionList:
        return self.query_one(CompletionList)

    @property
    def _field(self) -> _LineField:
        return self.query_one("#breakpoints-line", _LineField)

    @property
    def _typing(self) -> bool:
        return self.focused is self._field

    def _key_bar_actions(self) -> list[tuple[Action, bool]]:
        if self._typing:
            return [(action, True) for action in TYPING]
        return super()._key_bar_actions()

    def _row_line(self, index: int, width: int) -> Line:
        return point_line(self.breakpoints.points[index], width)

    def _message_lines(self, width: int) -> list[Line]:
        if self._typing:
            return typing_lines(self._field.value, self._mistake, width)
        # A note on the last change is more urgent than a warning about the selected breakpoint, because only the
        # warning is shown again.
        points = self.breakpoints.points
        doubt = self._project.warning(points[self._list.cursor]) if points else None
        return [*warned_lines(self._note or doubt, width), *storage_lines(self.breakpoints, width)]

    def _show_bars(self) -> None:
        points = self.breakpoints.points
        off = sum(not point.enabled for point in points)
        left: Line = (Span(" Breakpoints ", "badge"), Span(" where runs are held"))
        count = counted(len(points), "breakpoint")
        if off:
            count += f", {off} off"
        right: Line = (Span(f"{count} ", "muted"),)
        self.query_one("#breakpoints-title", Bar).set_line(lambda width: title_line(left, (right,), width))
        super()._show_bars()

    def _show(self) -> None:
        self._list.move_cursor(self._list.cursor)
        text = self.query_one("#breakpoints-said", TextView)
        text.rebuild_lines(from_top=True)
        text.refresh(layout=True)
        self._show_bars()

    @action("space", "Enable or disable it", label="on/off", needs=_has_breakpoints, changes=True)
    def do_switch(self) -> None:
        self._note = None
        self.breakpoints.toggle(self._list.cursor)
        self._show()

    @action("del", "Delete it", label="delete", needs=_has_breakpoints, changes=True)
    def do_delete(self) -> None:
        # Breakpoints have no undo. The notice shows the deleted line, so the user can set the breakpoint again.
        self._note = f"Deleted: {breakpoint_line(self.breakpoints.points[self._list.cursor])}"
        self.breakpoints.remove(self._list.cursor)
        self._show()

    @action("-", "Disable all", label="all off", needs=_has_breakpoints, changes=True)
    def do_off(self) -> None:
        self._enable_all(False)

    @action("+", "Enable all", label="all on", needs=_has_breakpoints, changes=True)
    def do_on(self) -> None:
        self._enable_all(True)

    def _enable_all(self, enabled: bool) -> None:
        self._note = None
        self.breakpoints.enable_all(enabled)
        self._show()

    @action("a", "Add a breakpoint", label="add", changes=True)
    def do_add(self) -> None:
        self._type("", None)

    @action("enter e", "Edit it", label="edit", needs=_has_breakpoints, changes=True)
    def do_edit(self) -> None:
        at = self._list.cursor
        self._type(breakpoint_line(self.breakpoints.points[at]), at)

    def _type(self, text: str, changing: int | None) -> None:
        self._changing, self._mistake, self._note = changing, None, None
        field = self._field
        field.display, field.value = True, text
        field.cursor_position = len(text)
        self.set_focus(field)
        # The completions take the space of the list.
        self._list.display = False
        self._offer()

    def _end_typing(self) -> None:
        self._field.display = False
        self._completions.close()
        self._list.display = True
        self.set_focus(self._list)
        self._show()

    def do_back(self) -> None:
        if self._typing:
            self._end_typing()
        else:
            super().do_back()

    @action("tab", "Complete what is typed", needs=_typed, changes=True)
    def do_complete(self) -> None:
        """Insert the marked completion, or the first completion if none is marked."""
        completions = self._completions
        found = completions.current or next(iter(completions.found), None)
        if found is not None:
            self._insert_completion(found)

    def _insert_completion(self, completion: Completion) -> None:
        self._field.value = completion.text
        self._field.cursor_position = len(completion.text)
        self.set_focus(self._field)

    def _offer(self) -> None:
        self._completions.offer(completions_of(self._field.value, self._tools), None)
        self._show()

    def _step(self, offset: int) -> None:
        self._completions.step(offset)

    @on(Input.Changed)
    def _changed(self) -> None:
        if self._typing:
            self._mistake = None
            self._offer()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        # Enter on a marked completion only inserts the completion. A second Enter sets the breakpoint.
        if self._completions.current is not None:
            self.do_complete()
            return
        try:
            point = breakpoint_of(self._field.value)
        except BreakpointError as error:
            self._mistake = str(error)
            self._show()
        else:
            # The list does not show that the breakpoint already existed, hence the note.
            known = self.breakpoints.index_of(point)
            if known not in (None, self._changing):
                self._note = f"{breakpoint_line(point)} already exists"
            self._list.cursor = self.breakpoints.put(point, self._changing)
            self._end_typing()

    @on(CompletionList.Chosen)
    def _completion_chosen(self, event: CompletionList.Chosen) -> None:
        self._insert_completion(event.completion)

    @on(RowsView.Opened)
    def _clicked_again(self) -> None:
        self.do_switch()

    @on(RowsView.Moved)
    def _cursor_moved(self) -> None:
        self._note = None
        self._show()
