"""The registry: every action of a key, the palette or the help, from the features of the app."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.tui.audit.actions import FEATURE as AUDIT
from workbench.tui.breakpoints.actions import FEATURE as BREAKPOINTS
from workbench.tui.case import actions as case
from workbench.tui.comparing.actions import FEATURE as COMPARING
from workbench.tui.failures.actions import FEATURE as FAILURES
from workbench.tui.faults.actions import FEATURE as FAULTS
from workbench.tui.grades.actions import FEATURE as GRADES
from workbench.tui.history.actions import FEATURE as HISTORY
from workbench.tui.kit.actions import (
    ANSWERS,
    FILTERING,
    HELD_KINDS,
    MOVING,
    PANE_TITLES,
    PANES,
    Action,
    Feature,
    MainSituation,
    Where,
)
from workbench.tui.kit.looking import is_offered, why_unavailable
from workbench.tui.models.actions import FEATURE as MODELS
from workbench.tui.observing.actions import FEATURE as OBSERVING
from workbench.tui.runs.actions import FEATURE as RUNS
from workbench.tui.saving.actions import FEATURE as SAVING
from workbench.tui.shell.actions import PROGRAM, VIEWING
from workbench.tui.stepping import actions as stepping
from workbench.tui.tools.actions import FEATURE as TOOLS
from workbench.tui.trajectory.actions import FEATURE as TRAJECTORY
from workbench.tui.trajectory.actions import OF_STORED_RUN
from workbench.tui.tree.actions import FEATURE as TREE
from workbench.tui.two_runs.actions import FEATURE as TWO_RUNS
from workbench.tui.variants.actions import FEATURE as VARIANTS

FEATURES: tuple[Feature, ...] = (
    RUNS,
    MODELS,
    VARIANTS,
    stepping.FEATURE,
    BREAKPOINTS,
    TREE,
    case.FEATURE,
    SAVING,
    TRAJECTORY,
    VIEWING,
    TOOLS,
    GRADES,
    FAILURES,
    FAULTS,
    AUDIT,
    COMPARING,
    HISTORY,
    TWO_RUNS,
    OBSERVING,
    PROGRAM,
    MOVING,
)
"""Every area of the app, in the order of the help."""

ACTIONS: tuple[Action, ...] = tuple(action for feature in FEATURES for action in feature.actions)

BY_ID: Mapping[str, Action] = {action.id: action for action in ACTIONS}

SCREEN_TITLES: Mapping[str, str] = {name: title for feature in FEATURES for name, title in feature.screens.items()}
"""Every screen except the main one, with its title in a sentence."""

_ON_MAIN: tuple[tuple[Where, ...], ...] = (("suites",), ("case", "form"), ("case", "toml"), ("run",))

PLACES: tuple[frozenset[Where], ...] = (
    *(frozenset({*pane, "everywhere", "move", "anywhere"}) for pane in _ON_MAIN),
    *(frozenset({screen, "move", "anywhere"}) for screen in SCREEN_TITLES),
)
"""Places that are bound at the same time. Within each, a key can have only one meaning."""


def offered_actions(screen: str | None) -> list[tuple[str, list[Action]]]:
    """Return what the palette offers on a screen, by group. `None` is the main one."""
    if screen is None:
        groups: dict[str, list[Action]] = {}
        for feature in FEATURES:
            own = [action for action in feature.actions if action.listed and action.where not in SCREEN_TITLES]
            if own:
                groups.setdefault(feature.group, []).extend(own)
        return list(groups.items())
    title = SCREEN_TITLES[screen]
    own = [action for action in ACTIONS if action.where == screen]
    of_program = [action for action in PROGRAM.actions if action.listed and action.id not in ("help", "quit")]
    return [(title[:1].upper() + title[1:], own), (PROGRAM.group, of_program)]


def help_sections(now: MainSituation) -> list[tuple[str, list[Action]]]:
    """Return the sections of the main screen's help: the current pane, the whole screen, moving."""
    here = (now.pane, now.view) if now.pane == "case" else (now.pane,)
    return [
        (f"Here, in {PANE_TITLES[now.pane]}", [action for action in ACTIONS if action.where in here]),
        ("Everywhere", [action for action in ACTIONS if action.where in ("everywhere", "anywhere")]),
        ("Moving", list(MOVING.actions)),
    ]


def keys_elsewhere(*here: Where) -> list[tuple[str, list[Action]]]:
    """Return the keys of all places but these, by place, for the end of the help."""
    panes: dict[Where, str] = {"form": "the form of a case", "toml": "the TOML of a case"}
    panes.update((pane, PANE_TITLES[pane]) for pane in PANES)
    shown = {*here, "everywhere"} if {"suites", "case", "run"} & set(here) else set(here)
    titles = {"everywhere": "On the main screen, everywhere"}
    titles |= {where: f"In {title}" for where, title in {**panes, **SCREEN_TITLES}.items()}
    found = [(title, [a for a in ACTIONS if a.where == where]) for where, title in titles.items() if where not in shown]
    return [(title, actions) for title, actions in found if actions]


def shown_keys(now: MainSituation) -> list[tuple[Action, bool]]:
    """Return the keys for the main screen's key bar, the most important first, each with whether it is available."""
    if now.typing == "a filter":
        return [(action, True) for action in FILTERING]
    if now.typing in HELD_KINDS:
        own = [action for action in stepping.TYPING if action.id != "step.error" or now.typing in ANSWERS]
        return [(action, True) for action in own]
    if now.typing == "toml":
        return [(action, True) for action in case.TYPING_TOML]
    if now.typing is not None:
        return [(action, True) for action in case.TYPING if now.typing == "a line" or action.id != "typing.done"]
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
        "grades": now.pane == "run" and (now.graded or now.ran_before),
    }
    next_up = [action for action in rest if wanted.get(action.id)]
    names = _FIRST if now.held is None else _HELD
    first = [action for name in names for action in (*own, *rest) if action.id == name]
    others = sorted(rest, key=lambda action: _rank(action, now))
    ordered = {action.id: action for action in (*first, *next_up, *own, *others)}
    if now.ran_before and "run.expand" in ordered:
        ordered["run.expand"] = OF_STORED_RUN
    return [(action, why_unavailable(action, now) is None) for action in ordered.values() if is_offered(action)]


_FIRST = ("run.case", "run.suite", "step", "step.held")
_HELD = (
    *("step", "step.continue", "edit", "step.again", "step.answer", "step.skip", "step.mock", "step.say"),
    *("step.expect", "step.back", "step.round", "run.fork", "step.held", "run.stop"),
)
"""The first keys in the bar, normally and while the displayed run is held."""

_OF_HELD_RUNS, _OF_THE_PROGRAM, _OF_RUNS = (
    frozenset(action.id for feature in features for action in feature.actions)
    for features in ((stepping.FEATURE,), (PROGRAM,), (TRAJECTORY, VIEWING))
)


def _is_of_now(action: Action, now: MainSituation) -> bool:
    """Return whether an action fits the situation. Actions on held runs fit only while one is held, the way there only
    while it is not displayed."""
    if action.id == "step.held":
        return now.held_runs > (now.held is not None)
    if action.id == "break.here":
        return now.pane != "suites"
    if action.id == "edit":
        return now.held is None or now.pane != "run" or why_unavailable(action, now) is None
    if action.id == "step" or action.id not in _OF_HELD_RUNS:
        return True
    return now.held is not None and why_unavailable(action, now) is None


def _rank(action: Action, now: MainSituation) -> int:
    """Return the rank of an action. Actions on a run without the focus come after the ways to other screens, the
    program's last."""
    if action.id in _OF_THE_PROGRAM:
        return 2
    if action.id == "break.here" or action.id == "save":  # saving comes first if there is something to save
        return 1
    return int(now.pane != "run" and action.id in _OF_RUNS)
