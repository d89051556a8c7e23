"""Everything a key, the palette or the help can do: one registry, with where each action applies and why it cannot."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from workbench.tui.audit import actions as audit
from workbench.tui.breakpoints import actions as breaking
from workbench.tui.case import actions as editing
from workbench.tui.case import actions as form
from workbench.tui.case import actions as toml
from workbench.tui.comparing import actions as comparing
from workbench.tui.failures import actions as failures
from workbench.tui.grades import actions as grades
from workbench.tui.history import actions as history
from workbench.tui.kit import actions as moving
from workbench.tui.kit.actions import (
    ANSWERS,
    HELD_KINDS,
    PANE_TITLES,
    PANES,
    SCREEN_TITLES,
    Action,
    ScreenName,
    Shown,
    Situation,
    ToolsNow,
    Typing,
    View,
    Where,
    always,
)
from workbench.tui.runs import actions as running
from workbench.tui.saving import actions as saving
from workbench.tui.shell import actions as program
from workbench.tui.shell import actions as viewing
from workbench.tui.stepping import actions as stepping
from workbench.tui.tools import actions as tools
from workbench.tui.trajectory import actions as run_pane
from workbench.tui.trajectory import actions as trajectory
from workbench.tui.tree import actions as tree
from workbench.tui.two_runs import actions as pair

__all__ = [
    "ACTIONS",
    "BY_ID",
    "PANES",
    "PANE_TITLES",
    "SCREEN_TITLES",
    "Action",
    "ScreenName",
    "Shown",
    "Situation",
    "ToolsNow",
    "Typing",
    "View",
    "Where",
    "always",
    "offered_actions",
]

ACTIONS: tuple[Action, ...] = (
    *running.ACTIONS,
    *stepping.GOING,
    *breaking.ACTIONS,
    *tree.ACTIONS,
    *editing.EDITING_ACTIONS,
    *form.ACTIONS,
    *toml.TOML_ACTIONS,
    *saving.ACTIONS,
    *run_pane.ACTIONS,
    *stepping.WHILE_HELD,
    *viewing.VIEWING_ACTIONS,
    *tools.ACTIONS,
    *grades.ACTIONS,
    *failures.ACTIONS,
    *audit.ACTIONS,
    *comparing.ACTIONS,
    *history.ACTIONS,
    *trajectory.TRAJECTORY_ACTIONS,
    *pair.ACTIONS,
    *program.ACTIONS,
    *moving.MOVING_ACTIONS,
)
"""Every action, in the order in which help lists them."""

BY_ID: dict[str, Action] = {action.id: action for action in ACTIONS}


def bindings_for(where: Where) -> list[BindingType]:
    """The bindings of one place. Movement is handled by the widget itself, everything else by the screen."""
    return [
        Binding(key, _target(action), action.title, show=False, priority=action.priority, id=action.id)
        for action in ACTIONS
        if action.where == where and action.id != "palette"
        for key in action.keys
    ]


def offered_actions(screen: ScreenName | None) -> list[Action]:
    """What the palette offers on a screen; `None` is the main one."""
    if screen is None:
        return [action for action in ACTIONS if action.listed]
    own = [action for action in ACTIONS if action.where == screen]
    return [*own, *(action for action in program.ACTIONS if action.listed and action.id not in ("help", "quit"))]


def _target(action: Action) -> str:
    if action.where == "move":
        return f"move('{action.id.removeprefix('move.')}')"
    return f"screen.do('{action.id}')"


def shown_keys(now: Situation) -> list[tuple[Action, bool]]:
    """The actions that the bar of keys names, the most wanted first, each with whether it can be taken now."""
    if now.typing == "a filter":
        return [(action, True) for action in viewing.FILTERING]
    if now.typing == "a breakpoint":
        return [(action, True) for action in breaking.TYPING]
    if now.screen is not None:
        own = [action for action in ACTIONS if action.label and action.where == now.screen]
        return [(action, action.why_not(now) is None) for action in own]
    if now.typing in HELD_KINDS:
        own = [action for action in stepping.TYPING if action.id != "step.error" or now.typing in ANSWERS]
        return [(action, True) for action in own]
    if now.typing == "toml":
        return [(action, True) for action in toml.TYPING_TOML]
    if now.typing is not None:
        return [(action, True) for action in form.TYPING if now.typing == "a line" or action.id != "typing.done"]
    places = (now.pane, now.view) if now.pane == "case" else (now.pane,)
    own = [action for action in ACTIONS if action.label and action.where in places]
    taken = {name for action in own for name in (*action.keys, action.label)}
    common = [
        action
        for action in ACTIONS
        if action.label and action.where == "everywhere" and taken.isdisjoint((*action.keys, action.label))
    ]
    stopping = ("run.stop", "run.stop_all")
    rest = [action for action in common if action.id not in stopping or now.running]
    own, rest = ([action for action in actions if _is_of_now(action, now)] for actions in (own, rest))
    wanted = {
        "save": now.dirty,
        "accept": now.pane == "run" and now.shown == "a finished run",
        "grades": now.pane == "run" and now.graded,
    }
    next_up = [action for action in rest if wanted.get(action.id)]
    names = _FIRST if now.held is None else _HELD
    first = [action for name in names for action in (*own, *rest) if action.id == name]
    others = sorted(rest, key=lambda action: _rank(action, now))
    ordered = dict.fromkeys((*first, *next_up, *own, *others))
    return [(action, action.why_not(now) is None) for action in ordered]


_FIRST = ("run.case", "run.suite", "step", "step.held")
_HELD = (
    *("step", "step.continue", "edit", "step.again", "step.answer", "step.skip", "step.round", "step.say", "run.fork"),
    *("step.held", "run.stop", "step.mock", "step.expect"),
)
"""What is named first, and what in its place while the run shown is held."""


def _is_of_now(action: Action, now: Situation) -> bool:
    """What is done to a run that is held is named only while one is; the way to it, while it is not shown."""
    if action.id == "step.held":
        return now.held_runs > (now.held is not None)
    if action.id == "break.here":
        return now.pane != "suites"
    if action.id == "edit":
        return now.held is None or now.pane != "run" or action.why_not(now) is None
    if action.id == "step" or action not in stepping.ACTIONS:
        return True
    return now.held is not None and action.why_not(now) is None


def _rank(action: Action, now: Situation) -> int:
    """What concerns a run that is not looked at is named behind the ways to other screens, the program itself last."""
    if action in program.ACTIONS:
        return 2
    if action.id == "break.here" or action.id == "save":  # saving is named first when there is something to save
        return 1
    return int(now.pane != "run" and (action in run_pane.ACTIONS or action in viewing.VIEWING_ACTIONS))
