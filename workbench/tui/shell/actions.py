"""The table of all actions, and the main screen's actions for the program, its panes and other screens."""

# This module is loaded before the first frame, so each method imports its screen or dialog itself.

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.config.logs import LOG_NAME
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.tui.breakpoints.actions import BreakpointActions
from workbench.tui.case.actions import EditActions
from workbench.tui.case.form.view import FormActions
from workbench.tui.case.toml.pane import TomlActions
from workbench.tui.holds.actions import StepActions
from workbench.tui.kit.actions import (
    MOVE_ACTIONS,
    PANE_TITLES,
    PANES,
    Action,
    MainActions,
    MainSituation,
    Scope,
    action,
    actions_of,
    key_for,
    unless_read_only,
    why_no_run,
)
from workbench.tui.quick_add.actions import QuickAddActions
from workbench.tui.runs.actions import RunActions
from workbench.tui.storage.actions import FileActions
from workbench.tui.trajectory.actions import ShownRunActions, why_no_other_run
from workbench.tui.tree.actions import TreeActions

if TYPE_CHECKING:
    from workbench.history.records import BatchRow, Regrade, RunRow
    from workbench.tui.kit.side_screen import SideScreen
    from workbench.tui.shell.workbench import Workbench


def _copy(situation: MainSituation) -> str | None:
    if situation.has_text:
        return None
    return "there is nothing to copy here"


def _border(situation: MainSituation) -> str | None:
    if situation.has_borders:
        return None
    return "only one pane is shown"


def _moved_border(situation: MainSituation) -> str | None:
    if situation.moved_borders:
        return None
    return "the panes shown have their default widths"


class ViewActions(MainActions):
    """Go between the panes, size panes, and copy text."""

    GROUP = "Panes"

    @action("y", "Copy what the cursor is on", name="copy", label="copy", needs=_copy, words="yank clipboard")
    def copy(self) -> None:
        text, what = self._text_to_copy()
        self.app.copy(text, what, self.app.main.announce)

    def _text_to_copy(self) -> tuple[str, str]:
        main = self.app.main
        if main.pane == "run":
            from workbench.show.views.copied_text import copied_text

            item = main.run_pane.run_list.item
            if item is None:
                return "", ""
            return copied_text(item)
        if main.pane == "case":
            return main.case_pane.text_to_copy()
        row = main.selection.row
        if row is None:
            return "", ""
        if row.problem is not None:
            return str(row.problem), "the problem"
        if row.case is not None:
            return row.case.id, "the case's id"
        return str(row.key.path), "the path"

    @action("1", "Go to the suites", name="pane.suites")
    def go_to_suites(self) -> None:
        self.app.main.go_to("suites")

    @action("2", "Go to the case", name="pane.case")
    def go_to_case(self) -> None:
        self.app.main.go_to("case")

    @action("3", "Go to the run", name="pane.run")
    def go_to_run(self) -> None:
        self.app.main.go_to("run")

    @action("tab", "Next pane", name="pane.next", words="switch focus")
    def next_pane(self) -> None:
        self._go(1)

    @action("shift+tab", "Previous pane", name="pane.previous", words="switch focus")
    def previous_pane(self) -> None:
        self._go(-1)

    def _go(self, step: int) -> None:
        main = self.app.main
        if main.filter_box.typing:
            # Like Enter, Tab accepts the filter that the user types.
            main.filter_box.end(keep=True)
        at = PANES.index(main.pane) + step
        if main.adder is not None and main.request_line.is_open and not 0 <= at < len(PANES):
            # Quick add comes after the last pane.
            main.adder.focus()
        else:
            main.go_to(PANES[at % len(PANES)])

    @action("z", "Zoom the pane, or end the zoom", name="zoom", label="zoom", words="maximize fullscreen")
    def zoom(self) -> None:
        main = self.app.main
        main.zoomed = not main.zoomed
        main.place_panes()
        main.refresh_bars()

    @action("<", "Make the pane narrower", name="pane.narrower", needs=_border, words="resize smaller")
    def narrower(self) -> None:
        self._widen(-1)

    @action(">", "Make the pane wider", name="pane.wider", needs=_border, words="resize bigger")
    def wider(self) -> None:
        self._widen(1)

    def _widen(self, sign: int) -> None:
        if not self.app.main.widen(sign):
            pane, way = PANE_TITLES[self.app.main.pane], "wider" if sign > 0 else "narrower"
            self.app.announce(f"{pane} cannot be {way}: each pane keeps a least width")

    @action(
        "",
        "Reset the widths of the panes",
        name="pane.widths",
        needs=_moved_border,
        words="resize reset layout",
    )
    def reset_widths(self) -> None:
        self.app.main.reset_borders()

    @action("esc", "Stop a search, or leave the filter, zoom or pane", name="back", listed=False)
    def back(self) -> None:
        main = self.app.main
        # Each Esc ends one mode, the innermost first.
        if self.app.services.searches.stop():
            return
        if main.filter_box.typing or (main.selection.tree.filter and main.pane == "suites"):
            main.filter_box.end(keep=False)
        elif main.pane == "run" and main.run_pane.searching:
            main.run_pane.end_search()
        elif main.zoomed:
            self.zoom()
        else:
            main.go_to("suites")


class ProgramActions(MainActions):
    """The actions of the program itself."""

    GROUP = "Program"

    def __init__(self, app: Workbench) -> None:
        super().__init__(app)
        self._warned_of_clocks = False

    @action("", "Change the theme", name="theme", words="colour color dark light settings config appearance")
    def choose_theme(self) -> None:
        self.app.appearance.choose(self.app)

    @action("", "Save a picture of the screen", name="picture", changes=True, words="screenshot svg export")
    def picture(self) -> None:
        # The picture is taken after the next refresh, because the palette still covers the screen.
        self.app.call_after_refresh(self._save_picture)

    def _save_picture(self) -> None:
        from workbench.tui.terminal.screenshot import save_picture, svg_of, text_of

        app, secrets = self.app, self.app.program.secrets
        folders = (Path(), app.program.folders.state / "pictures")
        try:
            drawing, lines = save_picture(folders, secrets.redact(svg_of(app)), secrets.redact(text_of(app)))
        except OSError as error:
            app.announce(f"No picture was saved: {error}", "error", GLYPHS.error)
        else:
            app.announce(f"Saved in {drawing.resolve()}, and as text in {lines.name}", "passed", GLYPHS.passed)

    @action("ctrl+l", "Redraw the screen", name="redraw", scope="anywhere", listed=False)
    def redraw(self) -> None:
        self.app.action_draw_anew()

    @action("", "Show where the log is", name="log", words="debug trace")
    def show_log(self) -> None:
        log = self.app.program.folders.log / LOG_NAME
        if log.exists():
            self.app.announce(f"The log is {log}")
        else:
            self.app.announce(f"Nothing was logged yet; it will be in {log}")

    @action("", "Suspend; fg in the shell resumes", name="suspend", changes=True, words="shell background")
    def suspend(self) -> None:
        app = self.app
        if app.is_web:
            app.announce("A browser has no shell to resume from: q quits", "warned", GLYPHS.warned)
            return
        # The leader of a session was not started from a shell that could resume it.
        if os.name != "posix" or app.is_headless or os.getsid(0) == os.getpid():
            app.announce("There is no shell here to resume from", "warned", GLYPHS.warned)
            return
        running = len(app.main.book.active_runs())
        if running and not self._warned_of_clocks:
            self._warned_of_clocks = True
            text = f"{counted(running, 'run')} under way, whose time limits keep counting: choose Suspend again"
            app.announce(text, "warned", GLYPHS.warned)
            return
        self._warned_of_clocks = False
        # Like Ctrl+Z, the signal goes to the whole process group. Otherwise a parent such as `uv run` would not stop.
        os.kill(0, signal.SIGTSTP)

    @action("?", "Keys and help", name="help", label="keys", words="keyboard shortcuts bindings manual docs ?")
    def help(self) -> None:
        self.app.show_help()

    @action("ctrl+p :", "All commands", name="palette", scope="anywhere", listed=False)
    def palette(self) -> None:
        self.app.action_command_palette()

    @action("q", "Quit", name="quit", label="quit", words="exit close leave bye :q")
    def quit(self) -> None:
        """Quit the program. Ask first if there are unsaved changes or active runs."""
        self.app.quit()


def _make(situation: MainSituation) -> str | None:
    if situation.why_row_not_editable is not None:
        return situation.why_row_not_editable
    if situation.broken:
        return "this suite has errors: correct them first"
    return None


def _run(situation: MainSituation) -> str | None:
    if not situation.variants:
        return f"no suite here has variants; {key_for('variant')} makes one"
    return _runnable(situation)


def _runnable(situation: MainSituation) -> str | None:
    if situation.runnable:
        return None
    return "there is no case here that could run"


class SetupActions(MainActions):
    """The actions that choose models, and create and run variants."""

    GROUP = "Runs"

    @action(
        "m",
        "Choose models, or add one",
        name="models",
        label="models",
        changes=True,
        words="model provider api key env environment token credentials "
        "login endpoint url settings config openai anthropic ollama llm price",
    )
    def choose_models(self) -> None:
        from workbench.tui.models.chooser import ModelChooser

        ModelChooser(self.app).choose(self.app.selection.notify_all)

    @action("V", "Make a variant: try another system prompt", name="variant", needs=_make, changes=True)
    def make_variant(self) -> None:
        from workbench.tui.variants.maker import VariantMaker

        self.app.part(VariantMaker).make_prompt_variant()

    @action("", "Run as written and as all variants", name="variant.run", needs=_run, changes=True)
    def run_variants(self) -> None:
        from workbench.tui.variants.maker import VariantMaker

        self.app.part(VariantMaker).run_all()

    @action(
        "",
        "Run in hosts: other prompts, other tools",
        name="variant.hosts",
        needs=_runnable,
        changes=True,
        words="matrix host decoy distractor system prompt claude cursor agent",
    )
    def run_in_hosts(self) -> None:
        from workbench.tui.variants.maker import VariantMaker

        self.app.part(VariantMaker).run_in_hosts()


def _suite_or_folder(situation: MainSituation) -> str | None:
    if situation.has_file or situation.row == "folder":
        return None
    return "there is no suite here"


def _suite(situation: MainSituation) -> str | None:
    if situation.has_file:
        return None
    return "there is no suite here"


def _grades(situation: MainSituation) -> str | None:
    if situation.graded or situation.has_stored_runs:
        return None
    if situation.shown == "nothing":
        return why_no_run(situation)
    if situation.shown == "a run":
        return "this run is not finished yet"
    return situation.why_not_graded


def _failures(situation: MainSituation) -> str | None:
    if situation.failed:
        return None
    return "nothing has failed" + unless_read_only(f"; {key_for('run.suite')} runs the suite or folder")


def _cases(situation: MainSituation) -> str | None:
    if situation.cases:
        return None
    return "there is no case to compare models on"


def _case(situation: MainSituation) -> str | None:
    if situation.row == "case":
        return None
    return "put the cursor on a case"


class ScreenActions(MainActions):
    """Open the screens above the main screen."""

    GROUP = "Screens"

    @action(
        "t",
        "Tools and servers of the suite or folder",
        name="tools",
        label="tools",
        needs=_suite_or_folder,
        words="server mcp connect functions schema import",
    )
    def open_tools(self) -> None:
        from workbench.tui.tools.screen import open_tools

        open_tools(self.app)

    @action(
        "l",
        "Server log of the run or suite",
        name="server.log",
        needs=_suite,
        words="stderr output mcp error",
    )
    def open_log(self) -> None:
        from workbench.tui.tools.server_logs import open_log

        open_log(self.app)

    @action(
        "=",
        "Grades: the run as each grader scores it",
        name="grades",
        label="grades",
        needs=_grades,
        words="score why explain metrics",
    )
    def open_grades(self) -> None:
        from workbench.tui.grades.screen import open_grades

        open_grades(self.app)

    @action(
        "f",
        "Failures of the suite or folder, by cause",
        name="failures",
        label="failures",
        needs=_failures,
        words="errors causes report confusion",
    )
    def open_failures(self) -> None:
        from workbench.tui.failures.finder import FailureFinder

        self.app.part(FailureFinder).open()

    @action(
        "",
        "Inject faults into the tools",
        name="faults",
        needs=_runnable,
        changes=True,
        words="chaos break robustness error timeout injection",
    )
    def try_faults(self) -> None:
        """Inject faults into the tools of the selected cases, after a question."""
        from workbench.tui.faults.trials import FaultTrials

        self.app.part(FaultTrials).begin()

    @action(
        "!",
        "Audit: find cases that check too little",
        name="audit",
        label="audit",
        needs=_suite_or_folder,
        words="lint check quality",
    )
    def open_audit(self) -> None:
        from workbench.tui.audit.screen import open_audit

        open_audit(self.app)

    @action(
        "v",
        "Compare models on the suite or folder",
        name="compare",
        label="compare",
        needs=_cases,
        words="diff benchmark versus table cost price",
    )
    def open_comparison(self) -> None:
        """Open the comparison of models.

        It shows the runs of this session, or the last batch in the history if no case has run yet."""
        from workbench.tui.comparison.screen import Comparison
        from workbench.tui.history.stored_screens import observe_batch

        comparison = self.app.part(Comparison)
        number = comparison.last_batch
        if number is not None:
            observe_batch(self.app, number)
        else:
            comparison.open()

    @action(
        "h",
        "History: all stored batches",
        name="history",
        label="history",
        words="past results previous open batches baseline diff regression export",
    )
    def open_history(self) -> None:
        from workbench.tui.history.batches_screen import StoredBatches

        self.app.part(StoredBatches).open()

    @action("", "History of the case", name="timeline", needs=_case, words="past results trend flaky")
    def open_timeline(self) -> None:
        suite, case = self.app.selection.suite, self.app.selection.outline
        if suite is not None and case is not None:
            self.show_timeline(None, suite.path, case.id, case.name)

    @action(
        "",
        "Show this run beside the next one of the case",
        name="run.pair",
        needs=why_no_other_run,
        words="diff compare",
    )
    def open_pair(self) -> None:
        from workbench.tui.run_pair.screen import open_pair

        open_pair(self.app)

    @action("O", "Observe a program and its model", name="observe", changes=True)
    def observe(self) -> None:
        from workbench.tui.observed.observer import Observer

        self.app.part(Observer).ask()

    # The methods below have no key. Screens above the main screen call them.

    def show_batch(self, screen: SideScreen[Any], batch: BatchRow, grading: Regrade | None, place: str) -> None:
        """Show a batch above the screen `screen`.

        `grading` is the displayed regrade (`None`: the original grades)."""
        from workbench.tui.history.stored_screens import batch_screen, show_stored

        show_stored(self.app, screen, lambda: batch_screen(self.app, batch, grading, place))

    def show_changes(self, screen: SideScreen[Any], sides: Sequence[tuple[int, int | None]]) -> None:
        """Show the changes between two batches above the screen `screen`.

        Each batch is given by its number and the id of a regrade (`None`: the original grades)."""
        from workbench.tui.history.changes import changes_screen
        from workbench.tui.history.stored_screens import show_stored

        show_stored(self.app, screen, lambda: changes_screen(self.app, sides))

    def show_runs(self, screen: SideScreen[Any], runs: Sequence[tuple[str, RunRow, Regrade | None]]) -> None:
        """Show one run, or two runs side by side, above the screen `screen`.

        `runs` has a title, the row in the history and the displayed regrade (`None`: the original grades) of each
        run."""
        from workbench.tui.history.stored_screens import runs_screen, show_stored

        show_stored(self.app, screen, lambda: runs_screen(self.app, runs))

    def show_timeline(self, screen: SideScreen[Any] | None, suite: Path | str, case_id: str, case_name: str) -> None:
        """Show the stored runs of a case over time, above a screen (`None`: the main screen)."""
        from workbench.tui.history.stored_screens import show_timeline

        show_timeline(self.app, screen, suite, case_id, case_name)

    def open_last_run(self) -> None:
        """Show the stored run that has the last result of the selected case."""
        from workbench.tui.history.stored_screens import open_last_run

        open_last_run(self.app)

    def edit_last_failure(self) -> None:
        """Edit the failed expectation of the selected case's last stored result."""
        from workbench.tui.history.stored_screens import edit_last_failure

        edit_last_failure(self.app)

    def open_last_grades(self) -> None:
        """Show the grades of the stored run that has the last result of the selected case."""
        from workbench.tui.history.stored_screens import open_last_grades

        open_last_grades(self.app)


GROUPS: tuple[type[MainActions], ...] = (
    RunActions,
    SetupActions,
    StepActions,
    BreakpointActions,
    TreeActions,
    QuickAddActions,
    EditActions,
    FormActions,
    TomlActions,
    FileActions,
    ShownRunActions,
    ViewActions,
    ScreenActions,
    ProgramActions,
)
"""The groups of the main screen's actions, in the order of help and palette."""

# The classes are given as text, because importing them would load every screen before the first frame.
SCREENS: Mapping[str, str] = {
    "tools": "tools.screen:ToolsScreen",
    "call": "tools.call:CallScreen",
    "log": "tools.log_screen:LogScreen",
    "grades": "grades.screen:GradesScreen",
    "failures": "failures.screen:FailuresScreen",
    "faults": "faults.screen:FaultsScreen",
    "audit": "audit.screen:AuditScreen",
    "compare": "comparison.screen:CompareScreen",
    "paired": "comparison.paired:PairedScreen",
    "history": "history.batches_screen:HistoryScreen",
    "diff": "history.changes:BatchDiffScreen",
    "timeline": "history.timeline:TimelineScreen",
    "trajectory": "trajectory.screen:TrajectoryScreen",
    "pair": "run_pair.screen:PairScreen",
    "breakpoints": "breakpoints.screen:BreakpointsScreen",
    "live": "observed.screen:LiveScreen",
}
"""The class of each screen above the main screen, by the screen's name."""


def _of_main() -> Iterator[tuple[str, tuple[type[MainActions], Action]]]:
    for group in GROUPS:
        for declared in actions_of(group):
            yield declared.id, (group, declared)


_OF_MAIN: Mapping[str, tuple[type[MainActions], Action]] = dict(_of_main())

MAIN_ACTIONS: tuple[Action, ...] = tuple(action for _, action in _OF_MAIN.values())

_MOVES: Mapping[str, Action] = {action.id: action for action in MOVE_ACTIONS}

_PANES: tuple[tuple[Scope, ...], ...] = (("suites",), ("case", "form"), ("case", "toml"), ("run",))


@cache
def screen_class(name: str) -> type[SideScreen[Any]]:
    """Import and return the class of the screen with a name."""
    from pkgutil import resolve_name  # lazy import: it would take a hundredth of the start of the app

    found: type[SideScreen[Any]] = resolve_name(f"workbench.tui.{SCREENS[name]}")
    return found


def all_screens_are_imported() -> bool:
    """Return whether `screen_class` has imported every screen. Looking up their actions then takes no time."""
    return screen_class.cache_info().currsize == len(SCREENS)


def main_action(action_id: str) -> tuple[type[MainActions], Action]:
    """Return the group and the declaration of an action of the main screen."""
    return _OF_MAIN[action_id]


class AllActions(Mapping[str, Action]):
    """The table of all actions by id. Looking up an action imports its screen."""

    def __getitem__(self, action_id: str) -> Action:
        if action_id in _OF_MAIN:
            return _OF_MAIN[action_id][1]
        if action_id in _MOVES:
            return _MOVES[action_id]
        screen = action_id.partition(".")[0]
        if screen in SCREENS:
            for each in screen_class(screen).ACTIONS:
                if each.id == action_id:
                    return each
        raise KeyError(action_id)

    def __iter__(self) -> Iterator[str]:
        yield from _OF_MAIN
        for name in SCREENS:
            for owned in screen_class(name).ACTIONS:
                yield owned.id
        yield from _MOVES

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def places(self, changed: Iterable[str] | None = None) -> list[tuple[Action, ...]]:
        """Return the places of the app. A place is a group of actions that are bound at the same time.

        Within a place, a key has one meaning. With `changed`, only places with these actions are returned, and only
        their screens are imported."""
        wanted = list(self.values()) if changed is None else list(map(self.__getitem__, changed))
        anywhere = []
        for each in (*MAIN_ACTIONS, *MOVE_ACTIONS):
            if each.scope in ("move", "anywhere"):
                anywhere.append(each)
        # Keys with the scope "everywhere" are bound in each pane of the main screen, but not on other screens.
        everywhere = [*anywhere, *_actions_at("everywhere")]
        # The keys of `MOVING` are left out: in quick add, the arrow keys move the cursor of the line or of a result.
        places: list[tuple[Action, ...]] = [tuple(_actions_at("line", "anywhere"))]
        for pane in _PANES:
            place = (*_actions_at(*pane), *everywhere)
            if any(action in place for action in wanted):
                places.append(place)
        # A key with the scope "anywhere" may clash with a key of any screen.
        all_screens = any(action in anywhere for action in wanted)
        for name in SCREENS:
            if all_screens or any(action.scope == name for action in wanted):
                places.append((*screen_class(name).ACTIONS, *anywhere))
        return places


ALL_ACTIONS = AllActions()


def offered_actions(screen: SideScreen[Any] | None) -> list[tuple[str, Sequence[Action]]]:
    """Return the titles and actions of the palette's groups on a screen (`None`: the main screen)."""
    if screen is not None:
        # A side screen has its own actions for help and for going back.
        of_program = []
        for action in _listed(ProgramActions):
            if action.id not in ("help", "quit"):
                of_program.append(action)
        title = screen.TITLE_IN_TEXT
        return [(title[:1].upper() + title[1:], screen.ACTIONS), (ProgramActions.GROUP, of_program)]
    groups: dict[str, list[Action]] = {}
    for group in GROUPS:
        groups.setdefault(group.GROUP, []).extend(_listed(group))
    return [(title, actions) for title, actions in groups.items() if actions]


def _listed(group: type[MainActions]) -> list[Action]:
    return [action for action in actions_of(group) if action.listed]


def _actions_at(*places: Scope) -> list[Action]:
    return [action for action in MAIN_ACTIONS if action.scope in places]


def places_of(situation: MainSituation) -> tuple[Scope, ...]:
    """Return the scopes whose keys work in the current pane of the main screen."""
    if situation.pane == "case":
        return (situation.pane, situation.view)
    return (situation.pane,)


def help_sections(situation: MainSituation) -> list[tuple[str, Sequence[Action]]]:
    """Return the sections of the main screen's help: the current pane, the whole screen, movement."""
    return [
        (f"Here, in {PANE_TITLES[situation.pane]}", _actions_at(*places_of(situation))),
        ("Everywhere", _actions_at("everywhere", "anywhere")),
        ("Moving", MOVE_ACTIONS),
    ]


def keys_elsewhere(*here: Scope) -> list[tuple[str, Sequence[Action]]]:
    """Return the titles and actions of all scopes except `here`, for the end of the help.

    Imports every screen."""
    titles: dict[Scope, str] = {
        "everywhere": "On the main screen, everywhere",
        "form": "In the form of a case",
        "toml": "In the TOML of a case",
        "line": "In the line for new cases",
    }
    titles.update((pane, f"In {PANE_TITLES[pane]}") for pane in PANES)
    shown: set[Scope] = {*here}
    # The help of each pane also lists the keys of the whole main screen.
    if not shown.isdisjoint(PANES):
        shown.add("everywhere")
    found: list[tuple[str, Sequence[Action]]] = []
    for scope, title in titles.items():
        if scope not in shown:
            found.append((title, _actions_at(scope)))
    for name in SCREENS:
        if name not in shown:
            screen = screen_class(name)
            found.append((f"In {screen.TITLE_IN_TEXT}", screen.ACTIONS))
    return [(title, actions) for title, actions in found if actions]
