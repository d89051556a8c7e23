"""The actions of screens, and their keys. The decorator `@action` makes a method an action."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field
from secrets import token_hex
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args

from textual.binding import Binding, BindingType

from workbench.config.read_only import READ_ONLY_REASON, is_read_only
from workbench.dataclasses import dataclass
from workbench.startup import late_pattern

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


_KEY_NAMES = {
    "enter": "Enter",
    "escape": "Esc",
    "tab": "Tab",
    "space": "Space",
    "backspace": "Backspace",
    "delete": "Del",
    "insert": "Ins",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    **{f"f{number}": f"F{number}" for number in range(1, 13)},
}
_KEY_ALIASES = {
    "esc": "escape",
    "return": "enter",
    "del": "delete",
    "ins": "insert",
    "pgup": "pageup",
    "pgdn": "pagedown",
}
_KEY_ALIASES |= {"↑": "up", "↓": "down", "←": "left", "→": "right"}
_MODIFIERS = {"ctrl": "Ctrl", "alt": "Alt", "shift": "Shift"}
# For punctuation, Textual uses the Unicode names, except for these six.
_SHORTER = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}

# A terminal sends the same byte for each of these keys and for the key named beside it.
_SAME = {"ctrl+m": "Enter", "ctrl+i": "Tab", "ctrl+h": "Backspace", "ctrl+left_square_bracket": "Esc"}
_UNICODE = {char: unicodedata.name(char).lower().replace("-", "_").replace(" ", "_") for char in string.punctuation}
_CHARACTERS = {char: _SHORTER.get(name, name) for char, name in _UNICODE.items()}
_SIGNS = {name: char for char, name in _CHARACTERS.items()}


def is_sequence(key: str) -> bool:
    """Return whether a key is a sequence of two characters, such as `gg`."""
    return len(key) == 2 and key.isalpha() and key not in _KEY_NAMES


def key_name(key: str) -> str:
    """Return the displayed name of a key: `Ctrl+R`, `F5`, `/`, `R`."""
    *modifiers, last = key.split("+")
    shown = _KEY_NAMES.get(last) or _SIGNS.get(last)
    if shown is None:
        # With Ctrl or Alt, terminals do not distinguish upper and lower case, so the usual spelling is shown.
        shown = last.upper() if "ctrl" in modifiers or "alt" in modifiers else last
    return "+".join([*(_MODIFIERS.get(modifier, modifier) for modifier in modifiers), shown])


def key_of(written: str) -> str:
    """Return Textual's name of a key written by a person: `f6`, `Ctrl+R`, `/`, `PgUp`.

    A sequence of two characters, such as `gg`, is returned unchanged.

    Raises:
        ValueError: The text names no key that a terminal sends. The message completes a sentence that begins with the
            text, such as `is not a key`."""
    # The look-around does not split at a plus that is itself the key, as in `ctrl++`.
    *modifiers, last = re.split(r"(?<=.)\+(?=.)", written.strip(), flags=re.DOTALL)
    modifiers = sorted(modifier.lower() for modifier in modifiers)
    if not modifiers and is_sequence(last) and last.lower() not in (*_KEY_NAMES, *_KEY_ALIASES):
        return last
    if len(last) > 1 or last in _KEY_ALIASES:
        last = _KEY_ALIASES.get(last.lower(), last.lower())
        if last not in _KEY_NAMES and last not in _SIGNS:
            raise ValueError("is not a key: write r, R, /, f6, enter, pageup, ctrl+r or alt+x")
    elif last in _CHARACTERS:
        last = _CHARACTERS[last]
    elif not last.isalnum():
        raise ValueError("is not a key: write r, R, /, f6, enter, pageup, ctrl+r or alt+x")
    if not set(modifiers) <= _MODIFIERS.keys() or len(set(modifiers)) < len(modifiers):
        raise ValueError("is not a key: the modifiers are ctrl, alt and shift")
    if "shift" in modifiers and last not in _KEY_NAMES:
        raise ValueError("is not sent by terminals: write the letter itself, R for shift+r")
    if "ctrl" in modifiers and len(last) == 1:
        # Textual's names of control keys are lower case.
        last = last.lower()
    key = "+".join([*modifiers, last])
    if key in _SAME:
        raise ValueError(f"cannot be told apart from {_SAME[key]} in a terminal: choose another key")
    return key


def is_character(key: str) -> bool:
    """Return whether a key is one printable character or a sequence of two."""
    return is_sequence(key) or len(key) == 1 or key in _SIGNS


Pane = Literal["suites", "case", "run"]

HeldKind = Literal["arguments", "result", "answer", "reply", "message", "said", "speech"]
"""Kinds of text to edit at a held run.

An `answer` replaces the call's result, and a `reply` answers a server's request. `said` is the next message of a
conversation's user, and `speech` is a message in its place."""

HELD_KINDS: frozenset[HeldKind] = frozenset(get_args(HeldKind))

ERROR_KINDS: frozenset[HeldKind] = frozenset({"result", "answer"})
"""Kinds of held text that can be marked as a tool error."""

PANES: tuple[Pane, ...] = ("suites", "case", "run")
PANE_TITLES: dict[Pane, str] = {"suites": "Suites", "case": "Case", "run": "Run"}

Scope = str
"""Where a key is bound.

`suites`, `case` and `run` are panes. `form` and `toml` are views of the case. `everywhere` is the whole main screen,
`line` the line for new cases, `move` any list of lines, `anywhere` all screens. The name of a screen above the main
screen means that screen."""

View = Literal["form", "toml"]
"""The two views of a case."""

RunPaneContent = Literal["nothing", "a run", "a finished run", "a recording"]
"""The content of the run pane. `a run` is one that is still active."""


Typing = Literal["a line", "a text", "toml", "a filter", "a breakpoint", "a request"] | HeldKind


NO_EDITOR = "no editor was found: set VISUAL or EDITOR to the editor of your choice"

NO_EDITOR_IN_BROWSER = (
    "an editor needs a terminal, and this is a browser: type here, or open the file on the server's machine"
)


@dataclass(frozen=True)
class Situation:
    """The facts that decide which actions of a screen are available. Screens with more facts use a subclass."""

    typing: Typing | None = None
    """The kind of text that the user types, if any. Letters belong to the text, so actions with letter keys are
    disabled."""
    has_text: bool = False
    """Whether the cursor is on text that can be copied."""
    refusals: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Why actions are unavailable at the cursor, by action id."""


@dataclass(frozen=True)
class MainSituation(Situation):
    """The facts that decide which actions of the main screen are available."""

    pane: Pane = "suites"
    row: Literal["folder", "suite", "case", "problem", "hint"] | None = None
    runnable: int = 0
    """The number of runnable cases at or below the selected row. Any number above 0 may stand for more."""
    variants: bool = False
    """Whether a suite at or below the selected row has variants."""
    broken: bool = False
    """Whether the selected suite has errors."""
    case_running: bool = False
    running: int = 0
    """The number of active runs, of any case."""
    runs: int = 0
    """The number of runs shown for the selected case."""
    failures: bool = False
    """Whether any case failed, broke off or was stopped. The list of failures then has an entry."""
    failed: bool = False
    """Whether any run has the verdict failed."""
    cases: int = 0
    """The number of cases in the tree."""
    shown: RunPaneContent = "nothing"
    shown_failed: bool = False
    """Whether the displayed run has the verdict failed."""
    has_stored_runs: bool = False
    """Whether the selected case has runs in the history, but none in this session."""
    graded: bool = False
    """Whether the displayed run has grades."""
    why_not_graded: str = ""
    """Why a finished run has no grades."""
    held: Literal["user", "request", "call", "question", "result"] | None = None
    """Where the displayed run is held, `None` if it is not held."""
    other_held_run: str | None = None
    """The name and the stop of a held, undisplayed run of the selected case."""
    first_hold: bool = False
    """Whether this is the first stop of the displayed run."""
    by_agent: bool = False
    """Whether an agent makes the displayed run. Such a run cannot be forked, and its rounds cannot be asked again."""
    user_is_scripted: bool = False
    """Whether the displayed run is a conversation with a scripted user, whose messages are always the same."""
    other_call: str | None = None
    """A message if the cursor is on a call other than the held one."""
    held_runs: int = 0
    """The number of held runs, of any case."""
    why_not_mockable: str | None = "put the cursor on a call or its result"
    why_not_expectable: str | None = "put the cursor on a call or its result"
    """Why the selected item cannot become a mock or an expected call of the case."""
    broke_off: bool = False
    """Whether the displayed run broke off or never began."""
    has_file: bool = False
    editor: str | None = None
    why_no_editor: str = NO_EDITOR
    why_row_not_editable: str | None = "put the cursor on a suite or a case"
    """Why the selected row cannot be edited, `None` if it can."""
    why_case_not_editable: str | None = None
    """Why the case of the selected row cannot be edited, `None` if it can."""
    undoable: str | None = None
    redoable: str | None = None
    """Descriptions of the changes that undo and redo would make."""
    on_step: bool = False
    """Whether the tree's cursor is on a step."""
    move_directions: tuple[int, ...] = ()
    """The directions in which the selected case can be moved: up (-1), down (1)."""
    has_other_suite: bool = False
    """Whether a second suite can be edited. The case can then be moved there."""
    is_unsaved: bool = False
    """Whether the selected suite has unsaved changes."""
    is_deleted: bool = False
    """Whether the file of the selected suite was deleted."""
    dirty_suites: int = 0
    has_borders: bool = False
    """Whether several panes are side by side."""
    moved_borders: bool = False
    """Whether the user moved the borders between the panes."""
    view: View = "form"
    """The view in the case pane."""
    refused: bool = False
    """Whether the text of the open field is invalid."""
    form_refusals: Mapping[str, str] = field(default_factory=dict)
    """Why actions on the form's row are unavailable, by action id."""
    line: Literal["ask", "run", "check", "failed", "change"] | None = None
    """The current use of the line for new cases, while the line has the focus."""


# Messages contain names from suites and servers. A random mark ensures that no name looks like a placeholder.
_MARK = token_hex(4)

KEY_IN_TEXT = late_pattern(rf"\{{{_MARK}:([a-z_.]+)\}}")


def key_for(action_id: str) -> str:
    """Return a placeholder for the key of an action in a message. `Keymap.in_words` replaces the placeholder."""
    return f"{{{_MARK}:{action_id}}}"


Condition = Callable[[Any], str | None]
"""A condition of an action. Returns why the action is unavailable in a situation, `None` if it is available."""


def always(_: Situation) -> str | None:
    """Return `None`: the action is always available."""
    return None


def why_no_run(situation: MainSituation) -> str:
    """Return why no run is displayed."""
    if situation.row != "case":
        return "put the cursor on a case that was run"
    session = " in this session" if situation.has_stored_runs else ""
    runs = unless_read_only(f"; {key_for('run.case')} runs it")
    return f"this case has not been run{session}{runs}"


HOLD_PLACES: Mapping[str, str] = {
    "user": "before a message of the user",
    "request": "before a request",
    "call": "before a call",
    "question": "while a server asks",
    "result": "after a result",
}


def while_held(places: Collection[str], available_at: str, *, to_call: bool = False) -> Condition:
    """Return a condition for actions that are available only while a run is held at one of `places`.

    `available_at` says where the action is available. It is part of the reason shown when the run is held elsewhere.
    With `to_call`, the cursor must be on the held call."""
    not_held = f"the run is not held; {key_for('step')} steps through the case"

    def why_not(situation: MainSituation) -> str | None:
        if situation.held is None:
            if situation.shown == "a run":
                return f"the run is not held; {key_for('step')} holds it at its next stop"
            return not_held
        if situation.held not in places:
            return f"the run is held {HOLD_PLACES[situation.held]}: {available_at}"
        if to_call:
            return situation.other_call
        return None

    return why_not


# While a run is held, the key that edits a case edits the held call instead.
why_not_edit_held = while_held(
    ("call", "result", "user"), "arguments can be changed before a call, a result right after it has come", to_call=True
)
"""The condition for editing the arguments or the result of the held call."""


@dataclass(frozen=True)
class Action:
    """A command of the user, with its keys and texts.

    `title` is shown in the help and the palette, `label` in the key bar. An action without a `label` is not in the key
    bar. `why_not` returns why the action is unavailable, or `None`."""

    id: str
    title: str
    keys: tuple[str, ...]
    scope: Scope = "everywhere"
    label: str = ""
    why_not: Condition = always
    priority: bool = False
    """Whether keys except letters also work while a field has the focus."""
    listed: bool = True
    """Whether the palette of the main screen offers the action."""
    changes: bool = False
    """Whether the action writes, runs or connects. A read-only app refuses it."""
    words: str = ""
    """Other programs' names of the action. The palette searches them too."""
    method: str = ""
    """The name of the method that performs the action."""


NO_KEY = "no_key"
"""The key of an action without keys in Textual's bindings. No terminal sends it."""


@dataclass(frozen=True)
class Keymap:
    """The keys of all actions. `changed` has the user's keys, by action id. Other actions have their default keys."""

    changed: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    actions: Mapping[str, Action] = field(default_factory=lambda: MappingProxyType({}), compare=False, repr=False)
    """All actions by id, for messages that name keys."""

    def keys(self, action: Action) -> tuple[str, ...]:
        """Return the keys of an action in Textual's names."""
        return self.changed.get(action.id, action.keys)

    def names(self, action: Action) -> str:
        return " ".join(key_name(key) for key in self.keys(action))

    def in_words(self, text: str) -> str:
        """Return a message with the placeholders of `key_for` replaced by the names of keys."""
        return KEY_IN_TEXT.sub(lambda named: self._key_in_words(named[1]) or f"{{{named[1]}}}", text)

    def _key_in_words(self, action_id: str) -> str:
        action = self.actions.get(action_id)
        if action is None:
            return ""
        keys = self.keys(action)
        if keys:
            return key_name(keys[0])
        return f"“{action.title}”, which has no key,"

    def sequences(self, actions: Iterable[Action]) -> frozenset[str]:
        """Return those keys of the actions that are sequences of two characters, such as `gg`."""
        return frozenset(key for action in actions for key in self.keys(action) if is_sequence(key))

    def for_textual(self) -> dict[str, str]:
        """Return the changed keys by action id, as required by Textual's `App.set_keymap`."""
        return {action_id: ",".join(keys) or NO_KEY for action_id, keys in self.changed.items()}


DEFAULT_KEYS = Keymap()


def keys_of(written: str) -> tuple[str, ...]:
    """Return Textual's names of keys written by a person, separated by blanks."""
    return tuple(map(key_of, written.split()))


Method = TypeVar("Method", bound=Callable[..., object])


def action(
    keys: str,
    title: str,
    *,
    name: str = "",
    scope: Scope = "everywhere",
    label: str = "",
    needs: Condition = always,
    changes: bool = False,
    listed: bool = True,
    priority: bool = False,
    words: str = "",
) -> Callable[[Method], Method]:
    """Declare a method as an action.

    `keys` are separated by blanks and written as in `keys.toml`. `needs` is the condition under which the action is
    available.

    In a `SideScreen`, the id of an action follows from the names of screen and method: `do_sort` performs `NAME.sort`.

    >>> class Lamps(SideScreen[None]):
    ...     @action("x", "Switch the lamp off", label="off", changes=True)
    ...     def do_off(self) -> None: ..."""

    def declare(method: Method) -> Method:
        method.__dict__["action"] = Action(
            name, title, keys_of(keys), scope, label, needs, priority, listed, changes, words, method.__name__
        )
        return method

    return declare


def actions_of(owner: type) -> tuple[Action, ...]:
    """Return the actions of a class, followed by the actions of its bases.

    An overriding method without `@action` inherits the declaration of the overridden method."""
    found: dict[str, Action] = {}
    for base in owner.__mro__:
        for name, method in vars(base).items():
            # Other class attributes, such as slots, may have no `__dict__`.
            if not isinstance(method, FunctionType) or name in found:
                continue
            declared = method.__dict__.get("action")
            if declared is not None:
                found[name] = declared
    return tuple(found.values())


def actions_at(scope: Scope, *groups: type[MainActions]) -> Iterator[Action]:
    """Yield the actions of the groups that have the given scope."""
    return (action for group in groups for action in actions_of(group) if action.scope == scope)


def why_unavailable(action: Action, situation: Situation) -> str | None:
    """Return why an action is unavailable in a situation, `None` if it is available."""
    if action.changes and is_read_only():
        return READ_ONLY_REASON
    return action.why_not(situation) or situation.refusals.get(action.id)


def is_offered(action: Action) -> bool:
    """Return whether the key bar may show an action. In a read-only app, actions that change something are hidden."""
    return not (action.changes and is_read_only())


class MainActions:
    """A group of actions of the main screen: the methods declared with `@action`.

    All groups are loaded when the app starts. To keep the start fast, each method imports its own screen or dialog."""

    GROUP: ClassVar[str]
    """The title of the group in the palette. Several groups may share a title."""

    def __init__(self, app: Workbench) -> None:
        self.app = app


def bindings_for(actions: Iterable[Action]) -> list[BindingType]:
    """Return Textual's bindings for the keys of some actions."""
    bindings: list[BindingType] = []
    for action in actions:
        for key in action.keys:
            # A key that types a character never has priority, because the focused field must get it.
            first = action.priority and len(key) > 1
            bindings.append(Binding(key, _target(action), action.title, show=False, priority=first, id=action.id))
    return bindings


def _target(action: Action) -> str:
    # The focused list moves its own cursor. The screen performs all other actions.
    if action.scope == "move":
        return f"move('{action.id.removeprefix('move.')}')"
    return f"screen.do('{action.id}')"


MOVE_ACTIONS: tuple[Action, ...] = (
    Action("move.up", "Up", ("up", "k"), "move", listed=False),
    Action("move.down", "Down", ("down", "j"), "move", listed=False),
    Action("move.page_up", "A page up", ("pageup",), "move", listed=False),
    Action("move.page_down", "A page down", ("pagedown",), "move", listed=False),
    Action("move.half_up", "Half a page up", ("ctrl+u",), "move", listed=False),
    Action("move.half_down", "Half a page down", ("ctrl+d",), "move", listed=False),
    Action("move.home", "To the beginning", ("home", "gg"), "move", listed=False),
    Action("move.end", "To the end; then follow the run as it grows", ("end", "G"), "move", listed=False),
)

FILTERING: tuple[Action, ...] = (
    Action("filter.keep", "Keep the filter, and go to the list", ("enter",), label="keep"),
    Action("filter.end", "Show all again", ("escape",), label="show all"),
)
"""Entries of the key bar while the user types a filter. The field handles these keys."""


def unless_read_only(hint: str) -> str:
    """Return `hint`, which suggests a key. In a read-only app, return "", because the key would be refused."""
    if is_read_only():
        return ""
    return hint
