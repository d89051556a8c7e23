"""All actions of the app: those of the main screen by group, and those of every other screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from workbench.tui.breakpoints.actions import BreakpointActions
from workbench.tui.case.actions import EditActions
from workbench.tui.case.form.actions import FormActions
from workbench.tui.case.toml.actions import TomlActions
from workbench.tui.kit.actions import MOVING, PANE_TITLES, PANES, Action, MainActions, MainSituation, Where, actions_of
from workbench.tui.runs.actions import RunActions
from workbench.tui.saving.actions import FileActions
from workbench.tui.shell.program import ProgramActions, ViewActions
from workbench.tui.shell.screens import ScreenActions, SetupActions
from workbench.tui.stepping.actions import StepActions
from workbench.tui.trajectory.actions import ShownRunActions
from workbench.tui.tree.actions import TreeActions

if TYPE_CHECKING:
    from workbench.tui.kit.side_screen import SideScreen

GROUPS: tuple[type[MainActions], ...] = (
    RunActions,
    SetupActions,
    StepActions,
    BreakpointActions,
    TreeActions,
    EditActions,
    FormActions,
    TomlActions,
    FileActions,
    ShownRunActions,
    ViewActions,
    ScreenActions,
    ProgramActions,
)
"""The actions of the main screen, in the order of the help."""

SCREENS: Mapping[str, str] = {
    "tools": "tools.screen:ToolsScreen",
    "call": "tools.call_screen:CallScreen",
    "log": "tools.log_screen:LogScreen",
    "grades": "grades.screen:GradesScreen",
    "failures": "failures.screen:FailuresScreen",
    "faults": "faults.screen:FaultsScreen",
    "audit": "audit.screen:AuditScreen",
    "compare": "comparison.screen:CompareScreen",
    "paired": "comparison.paired:PairedScreen",
    "history": "history.batches_screen:HistoryScreen",
    "diff": "history.changes_screen:BatchDiffScreen",
    "timeline": "history.timeline_screen:TimelineScreen",
    "trajectory": "trajectory.screen:TrajectoryScreen",
    "pair": "run_pair.screen:PairScreen",
    "breakpoints": "breakpoints.screen:BreakpointsScreen",
    "live": "observing.screen:LiveScreen",
}
"""The class of each screen above the main one, by its name. A screen is imported when its actions are wanted."""

_OF_MAIN: Mapping[str, tuple[type[MainActions], Action]] = {
    action.id: (group, action) for group in GROUPS for action in actions_of(group)
}

MAIN_ACTIONS: tuple[Action, ...] = tuple(action for _, action in _OF_MAIN.values())

_MOVES: Mapping[str, Action] = {action.id: action for action in MOVING}

_PANES: tuple[tuple[Where, ...], ...] = (("suites",), ("case", "form"), ("case", "toml"), ("run",))


@cache
def screen_class(name: str) -> type[SideScreen[Any]]:
    """Return the class of a screen by its name."""
    found: type[SideScreen[Any]] = resolve_name(f"workbench.tui.{SCREENS[name]}")
    return found


def main_action(action_id: str) -> tuple[type[MainActions], Action]:
    """Return an action of the main screen, and its group."""
    return _OF_MAIN[action_id]


class AllActions(Mapping[str, Action]):
    """Every action by its id."""

    def __getitem__(self, action_id: str) -> Action:
        if action_id in _OF_MAIN:
            return _OF_MAIN[action_id][1]
        if action_id in _MOVES:
            return _MOVES[action_id]
        screen = action_id.partition(".")[0]
        for action in screen_class(screen).ACTIONS if screen in SCREENS else ():
            if action.id == action_id:
                return action
        raise KeyError(action_id)

    def __iter__(self) -> Iterator[str]:
        yield from _OF_MAIN
        for name in SCREENS:
            yield from (action.id for action in screen_class(name).ACTIONS)
        yield from _MOVES

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def places(self, changed: Iterable[str] | None = None) -> list[tuple[Action, ...]]:
        """Return the actions that are bound at the same time, by place: all places, or those that have one of the
        `changed` actions. Within each, a key can have only one meaning."""
        wanted = [self[action_id] for action_id in changed] if changed is not None else list(self.values())
        anywhere = [action for action in (*MAIN_ACTIONS, *MOVING) if action.where in ("move", "anywhere")]
        everywhere = [*anywhere, *(action for action in MAIN_ACTIONS if action.where == "everywhere")]
        of_panes = [(*(action for action in MAIN_ACTIONS if action.where in pane), *everywhere) for pane in _PANES]
        found = [place for place in of_panes if any(action in place for action in wanted)]
        all_of_them = any(action in anywhere for action in wanted)
        names = [name for name in SCREENS if all_of_them or any(action.where == name for action in wanted)]
        return [*found, *((*screen_class(name).ACTIONS, *anywhere) for name in names)]


ALL_ACTIONS = AllActions()


def offered_actions(screen: SideScreen[Any] | None) -> list[tuple[str, Sequence[Action]]]:
    """Return what the palette offers on a screen, by group. `None` is the main one."""
    if screen is not None:
        of_program = [action for action in actions_of(ProgramActions) if action.listed]
        rest = [action for action in of_program if action.id not in ("help", "quit")]
        title = screen.TITLE_IN_TEXT
        return [(title[:1].upper() + title[1:], screen.ACTIONS), (ProgramActions.GROUP, rest)]
    groups: dict[str, list[Action]] = {}
    for group in GROUPS:
        groups.setdefault(group.GROUP, []).extend(action for action in actions_of(group) if action.listed)
    return [(title, actions) for title, actions in groups.items() if actions]


def places_of(now: MainSituation) -> tuple[Where, ...]:
    """Return where the keys of the current pane of the main screen are bound."""
    return (now.pane, now.view) if now.pane == "case" else (now.pane,)


def help_sections(now: MainSituation) -> list[tuple[str, Sequence[Action]]]:
    """Return the sections of the main screen's help: the current pane, the whole screen, moving."""
    here = places_of(now)
    return [
        (f"Here, in {PANE_TITLES[now.pane]}", [action for action in MAIN_ACTIONS if action.where in here]),
        ("Everywhere", [action for action in MAIN_ACTIONS if action.where in ("everywhere", "anywhere")]),
        ("Moving", MOVING),
    ]


def keys_elsewhere(*here: Where) -> list[tuple[str, Sequence[Action]]]:
    """Return the keys of all places but these, by place, for the end of the help."""
    titles: dict[Where, str] = {"form": "the form of a case", "toml": "the TOML of a case"}
    titles.update((pane, PANE_TITLES[pane]) for pane in PANES)
    shown = {*here, "everywhere"} if {*PANES} & {*here} else {*here}
    found: list[tuple[str, Sequence[Action]]] = []
    for where, title in {"everywhere": "", **titles}.items():
        if where not in shown:
            actions = [action for action in MAIN_ACTIONS if action.where == where]
            found.append((f"In {title}" if title else "On the main screen, everywhere", actions))
    screens = [screen_class(name) for name in SCREENS if name not in shown]
    found += [(f"In {screen.TITLE_IN_TEXT}", screen.ACTIONS) for screen in screens]
    return [(title, actions) for title, actions in found if actions]
