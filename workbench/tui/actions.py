"""Everything a key, the palette or the help can do: one registry, with where each action applies and why it cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding, BindingType

from workbench.tui.state.selection import Pane

PANES: tuple[Pane, ...] = ("suites", "case", "run")
PANE_TITLES: dict[Pane, str] = {"suites": "Suites", "case": "Case", "run": "Run"}

Where = Pane | Literal["everywhere", "move"]
"""Where a key is bound: in one pane, on the whole screen, or in anything that has lines."""


Shown = Literal["nothing", "a run", "a finished run", "a recording"]
"""What the run pane shows; a run is one that is not over."""


@dataclass(frozen=True)
class Situation:
    """What decides whether an action can be taken now."""

    pane: Pane = "suites"
    row: Literal["folder", "suite", "case", "problem", "hint"] | None = None
    runnable: int = 0
    """Cases at or below the tree's cursor that can run."""
    broken: bool = False
    """Whether the suite under the cursor has errors."""
    case_running: bool = False
    running: int = 0
    """Runs that wait or run, of any case."""
    runs: int = 0
    """Runs shown for the selected case."""
    shown: Shown = "nothing"
    has_file: bool = False
    has_text: bool = False
    """Whether the focused pane has something to copy."""
    editor: str | None = None


Why = Callable[[Situation], str | None]


def _always(_: Situation) -> str | None:
    return None


def _run_case(now: Situation) -> str | None:
    if now.broken:
        return "this suite has errors: correct them (e opens the editor), then F5 reloads"
    if now.row != "case":
        return "put the cursor on a case; R runs a whole suite or folder"
    return "this case is running; x stops it" if now.case_running else None


def _run_suite(now: Situation) -> str | None:
    if now.runnable:
        return None
    if now.running:
        return "every case here is running already; X stops them"
    return "this suite has errors: correct them first" if now.broken else "there is no case here that could run"


def _stop(now: Situation) -> str | None:
    return None if now.case_running else "this case is not running"


def _stop_all(now: Situation) -> str | None:
    return None if now.running else "nothing is running"


def _edit(now: Situation) -> str | None:
    if not now.has_file:
        return "put the cursor on a suite or a case"
    return None if now.editor else "set VISUAL or EDITOR to the editor of your choice"


def _copy(now: Situation) -> str | None:
    return None if now.has_text else "there is nothing to copy here"


def _other_run(now: Situation) -> str | None:
    return None if now.runs > 1 else "this case has only one run to show; m chooses more models"


def _item(now: Situation) -> str | None:
    return None if now.runs else "this case has not been run; r runs it"


def _save(now: Situation) -> str | None:
    if now.shown == "a finished run":
        return None
    if now.shown == "a recording":
        return "this run is a recording already"
    return "this run is not over yet" if now.shown == "a run" else "this case has no run to save; r runs it"


@dataclass(frozen=True)
class Action:
    """One thing that can be done. `title` is for help and palette, `label` (if any) for the bar of keys; `why_not`
    gives the reason when it cannot be done now."""

    id: str
    title: str
    keys: tuple[str, ...]
    where: Where = "everywhere"
    label: str = ""
    why_not: Why = _always
    listed: bool = True
    """Whether the palette offers it."""


ACTIONS: tuple[Action, ...] = (
    Action("run.case", "Run the case", ("r",), label="run", why_not=_run_case),
    Action("run.suite", "Run the whole suite, or folder", ("R",), label="run suite", why_not=_run_suite),
    Action("run.stop", "Stop the case", ("x",), label="stop", why_not=_stop),
    Action("run.stop_all", "Stop everything that runs", ("X",), label="stop all", why_not=_stop_all),
    Action("models", "Choose models", ("m",), label="models"),
    Action("tree.filter", "Filter the suites as you type", ("slash",), label="filter"),
    Action("tree.open", "Show the case, or fold the branch", ("enter",), "suites", listed=False),
    Action("tree.fold", "Fold the branch", ("left",), "suites", listed=False),
    Action("tree.unfold", "Unfold the branch", ("right",), "suites", listed=False),
    Action("run.expand", "Show all of a value, or fold it", ("enter",), "run", "expand", _item, listed=False),
    Action("run.previous", "Previous model or repeat", ("left",), "run", why_not=_other_run),
    Action("run.next", "Next model or repeat", ("right",), "run", why_not=_other_run),
    Action("copy", "Copy what the cursor is on", ("y",), label="copy", why_not=_copy),
    Action("edit", "Open the file in your editor, at the case", ("e", "f4"), label="edit", why_not=_edit),
    Action("run.save", "Save the run shown as a recording", ("w",), label="save", why_not=_save),
    Action("reload", "Read the suites again from disk", ("f5", "ctrl+r"), label="reload"),
    Action("pane.suites", "Go to the suites", ("1",)),
    Action("pane.case", "Go to the case", ("2",)),
    Action("pane.run", "Go to the run", ("3",)),
    Action("pane.next", "Next pane", ("tab",)),
    Action("pane.previous", "Previous pane", ("shift+tab",)),
    Action("zoom", "Give the pane the whole screen, or take it back", ("z",), label="zoom"),
    Action("back", "Leave the filter, the zoom or the pane", ("escape",), listed=False),
    Action("theme", "Change the theme", ()),
    Action("help", "Keys and help", ("question_mark",), label="keys"),
    Action("palette", "All commands", ("ctrl+p",), listed=False),
    Action("quit", "Quit", ("q",), label="quit"),
    Action("move.up", "Up", ("up",), "move", listed=False),
    Action("move.down", "Down", ("down",), "move", listed=False),
    Action("move.page_up", "A page up", ("pageup",), "move", listed=False),
    Action("move.page_down", "A page down", ("pagedown",), "move", listed=False),
    Action("move.home", "To the beginning", ("home",), "move", listed=False),
    Action("move.end", "To the end; a run is then followed as it grows", ("end",), "move", listed=False),
)
"""Every action, in the order in which help lists them."""

BY_ID: dict[str, Action] = {action.id: action for action in ACTIONS}

_KEY_NAMES = {
    "slash": "/",
    "question_mark": "?",
    "enter": "Enter",
    "escape": "Esc",
    "tab": "Tab",
    "shift+tab": "Shift+Tab",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
}


def key_name(key: str) -> str:
    """A key as a person reads it."""
    if key in _KEY_NAMES:
        return _KEY_NAMES[key]
    if key.startswith("ctrl+"):
        return f"Ctrl+{key[5:].upper()}"
    return key.upper() if len(key) > 1 and key[0] == "f" else key


def keys_of(action: Action) -> str:
    """All keys of an action."""
    return " ".join(key_name(key) for key in action.keys)


def bindings_for(where: Where) -> list[BindingType]:
    """The bindings of one place. Movement is handled by the widget itself, everything else by the screen."""
    return [
        Binding(key, _target(action), action.title, show=False)
        for action in ACTIONS
        if action.where == where and action.id != "palette"
        for key in action.keys
    ]


def _target(action: Action) -> str:
    if action.where == "move":
        return f"move('{action.id.removeprefix('move.')}')"
    return f"screen.do('{action.id}')"


def shown_keys(now: Situation) -> list[tuple[Action, bool]]:
    """The actions that the bar of keys names, the most wanted first, each with whether it can be taken now."""
    own = [action for action in ACTIONS if action.label and action.where == now.pane]
    common = [action for action in ACTIONS if action.label and action.where == "everywhere"]
    stopping = ("run.stop", "run.stop_all")
    rest = [action for action in common if action.id not in stopping or now.running]
    return [(action, action.why_not(now) is None) for action in (*rest[:2], *own, *rest[2:])]
