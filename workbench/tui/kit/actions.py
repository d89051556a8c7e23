"""What an action is, and what decides whether it can be taken."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

from textual.binding import Binding, BindingType

Pane = Literal["suites", "case", "run"]

HeldKind = Literal["arguments", "result", "answer", "message"]
"""A call's arguments, its result, an answer in place of the tool, or what is said to the model."""

HELD_KINDS: frozenset[HeldKind] = frozenset(get_args(HeldKind))

ANSWERS: frozenset[HeldKind] = frozenset({"result", "answer"})
"""What can be a tool error."""

PANES: tuple[Pane, ...] = ("suites", "case", "run")
PANE_TITLES: dict[Pane, str] = {"suites": "Suites", "case": "Case", "run": "Run"}

Where = str
"""Where a key is bound: in a pane (`suites`, `case`, `run`), in a view of the case (`form`, `toml`), on the whole main
screen (`everywhere`), on another screen (its name), on all screens (`anywhere`), or in whatever has lines (`move`)."""

View = Literal["form", "toml"]
"""The two views of a case."""

Shown = Literal["nothing", "a run", "a finished run", "a recording"]
"""What the run pane shows; a run is one that is not over."""


Typing = Literal["a line", "a text", "toml", "a filter", "a breakpoint"] | HeldKind


@dataclass(frozen=True)
class Situation:
    """What decides on every screen whether an action can be taken; each screen adds its own facts to it."""

    typing: Typing | None = None
    """What is being typed, if anything is: keys are letters then."""
    has_text: bool = False
    """Whether there is something to copy where the cursor is."""


@dataclass(frozen=True)
class ListNow(Situation):
    """A screen that knows by itself why actions cannot be taken at its row or cell: `refuses` says it by their ids."""

    refuses: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class MainSituation(Situation):
    """What decides on the main screen whether an action can be taken now."""

    pane: Pane = "suites"
    row: Literal["folder", "suite", "case", "problem", "hint"] | None = None
    runnable: int = 0
    """Not 0 when a case at or below the tree's cursor can run."""
    broken: bool = False
    """Whether the suite under the cursor has errors."""
    case_running: bool = False
    running: int = 0
    """Runs that wait or run, of any case."""
    runs: int = 0
    """Runs shown for the selected case."""
    failures: bool = False
    """Whether any case, of those that were run, failed, broke off or was stopped."""
    failed: bool = False
    """Whether any run came to the verdict that it failed."""
    cases: int = 0
    """Cases that the tree has at all."""
    shown: Shown = "nothing"
    graded: bool = False
    """Whether the run shown has grades."""
    why_not_graded: str = ""
    """Why it has none, of a run that is over."""
    held: Literal["request", "call", "result"] | None = None
    """Where the run shown is held, if it is: before a request, before a call, or after a result."""
    other_call: str | None = None
    """While the cursor is on another call than the one at which the run shown is held: that it is, in words."""
    held_runs: int = 0
    """How many runs are held, of any case."""
    not_mockable: str | None = "put the cursor on a call or its result"
    not_expectable: str | None = "put the cursor on a call or its result"
    """Why what the cursor is on cannot be made a mock, or an expected call, of the case."""
    broke_off: bool = False
    """Whether the run shown ended before its end, or was not run at all."""
    has_file: bool = False
    editor: str | None = None
    not_editable: str | None = "put the cursor on a suite or a case"
    """Why nothing can be changed here, if nothing can."""
    undoable: str | None = None
    redoable: str | None = None
    """What undo and redo would do, in words."""
    on_step: bool = False
    """Whether the tree's cursor is on a step of the case."""
    movable: tuple[int, ...] = ()
    """The steps by which the case under the cursor can be moved: up (-1), down (1)."""
    elsewhere: bool = False
    """Whether there is another suite that can be changed."""
    dirty: bool = False
    """Whether the suite under the cursor has changes that are not saved."""
    gone: bool = False
    """Whether the file of that suite is gone from the disk."""
    dirty_suites: int = 0
    view: View = "form"
    """How the case pane shows the case."""
    refused: bool = False
    """Whether it cannot be taken over as it stands."""
    form_refuses: Mapping[str, str] = field(default_factory=dict)
    """Why actions at the form's row cannot be taken, by their ids."""


Why = Callable[[Any], str | None]
"""Says why an action cannot be taken, given the situation of the screen on which the action applies."""


def always(_: Situation) -> str | None:
    """Says of an action that nothing ever speaks against it."""
    return None


HELD_AT: Mapping[str, str] = {"request": "before a request", "call": "before a call", "result": "after a result"}


def while_held(places: Collection[str], otherwise: str, *, to_call: bool = False) -> Why:
    """Returns what asks why something cannot be done that is done while a run is held at one of these places.

    With `to_call`, it is done to the call that the run is held at.
    """
    not_held = "the run is not held; s steps through the case"

    def why_not(now: MainSituation) -> str | None:
        if now.held is None:
            running = now.shown == "a run"
            return "the run is not held; s holds it at its next stop" if running else not_held
        if now.held not in places:
            return f"the run is held {HELD_AT[now.held]}: {otherwise}"
        return now.other_call if to_call else None

    return why_not


why_not_edit_held = while_held(
    ("call", "result"), "arguments can be changed before a call, a result right after it has come", to_call=True
)
"""Says why what a run is held at cannot be changed. The key that edits a case does that while a run is held."""


def unless_refused(action_id: str) -> Why:
    """Returns what asks a `ListNow` why an action cannot be taken."""

    def why_not(now: ListNow) -> str | None:
        return now.refuses.get(action_id)

    return why_not


@dataclass(frozen=True)
class Action:
    """One thing that can be done. `title` is for help and palette, `label` (if any) for the bar of keys; `why_not`
    gives the reason when it cannot be done now."""

    id: str
    title: str
    keys: tuple[str, ...]
    where: Where = "everywhere"
    label: str = ""
    why_not: Why = always
    priority: bool = False
    """Whether the key works while something is typed, too."""
    listed: bool = True
    """Whether the palette offers it."""


@dataclass(frozen=True)
class Feature:
    """One area of the app: its actions, and its screens by name, each with its title as it stands in a sentence."""

    name: str
    actions: tuple[Action, ...]
    screens: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def at(self, where: Where) -> tuple[Action, ...]:
        """Returns the actions that apply in one place."""
        return tuple(action for action in self.actions if action.where == where)


def bindings_for(actions: Iterable[Action]) -> list[BindingType]:
    """Returns the bindings of some actions. Widgets move by themselves; the screen does everything else."""
    return [
        Binding(key, _target(action), action.title, show=False, priority=action.priority, id=action.id)
        for action in actions
        for key in action.keys
    ]


def _target(action: Action) -> str:
    if action.where == "move":
        return f"move('{action.id.removeprefix('move.')}')"
    return f"screen.do('{action.id}')"


MOVING = Feature(
    "move",
    (
        Action("move.up", "Up", ("up",), "move", listed=False),
        Action("move.down", "Down", ("down",), "move", listed=False),
        Action("move.page_up", "A page up", ("pageup",), "move", listed=False),
        Action("move.page_down", "A page down", ("pagedown",), "move", listed=False),
        Action("move.home", "To the beginning", ("home",), "move", listed=False),
        Action("move.end", "To the end; then follow the run as it grows", ("end",), "move", listed=False),
    ),
)

FILTERING: tuple[Action, ...] = (
    Action("filter.keep", "Keep the filter, and go to the list", ("enter",), label="keep"),
    Action("filter.end", "Show all again", ("escape",), label="show all"),
)
"""What the bar of keys names while a filter is typed; the field handles these keys itself."""
