"""One registry of actions: no key has two meanings, and a key without effect explains itself."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from textual.binding import Binding

import workbench.tui
from workbench.show.spans import cells, plain
from workbench.tui.kit.actions import (
    DEFAULT_KEYS,
    PANES,
    MainActions,
    MainSituation,
    is_character,
    key_for,
    key_name,
    key_of,
)
from workbench.tui.kit.bars import key_line
from workbench.tui.kit.dialogs import Dialog
from workbench.tui.kit.side_screen import SideScreen
from workbench.tui.shell.actions import ALL_ACTIONS, GROUPS, SCREENS, screen_class
from workbench.tui.shell.bars import shown_keys

MEANINGS: dict[str, tuple[str, ...]] = {
    "a": (
        "accept",
        "add",
    ),
    "A": ("accept the whole",),
    "b": ("breakpoint",),
    "B": ("breakpoints",),
    "c": ("continue", "resume"),
    "C": ("expected call",),
    "d": ("duplicate",),
    "D": ("skip",),
    "e": ("edit",),
    "E": ("filter shows",),
    "f": ("failures",),
    "F": ("rerun",),
    "gg": ("to the beginning",),
    "G": ("to the end",),
    "h": ("history",),
    "H": ("held",),
    "i": ("by hand",),
    "I": ("insert a message",),
    "j k": (
        "down",
        "up",
    ),
    "J K": ("move",),
    "l": ("log",),
    "L": ("again",),
    "m": ("models",),
    "M": ("mock",),
    "n": ("new",),
    "N": ("new suite",),
    "o": ("switch",),
    "O": ("observe",),
    "p": ("paired",),
    "P": ("put",),
    "q": ("quit",),
    "r": ("run",),
    "R": (
        "run the whole",
        "run all",
    ),
    "s": ("step",),
    "S": ("save all",),
    "t": ("tools",),
    "T": ("several times",),
    "u": ("undo",),
    "U": ("redo",),
    "v": ("compare",),
    "V": ("variant",),
    "w": ("recording",),
    "W": ("export",),
    "x": ("stop",),
    "X": ("stop all",),
    "y": ("copy",),
    "Y": ("fork",),
    "z": ("zoom",),
    "1 2 3": (
        "go to",
        "first",
        "second",
    ),
    "/": (
        "filter",
        "search",
    ),
    "?": ("help",),
    ":": ("commands",),
    "=": ("grade",),
    "!": ("audit",),
    ".": ("show",),
    "*": ("base",),
    "&": ("add anything",),
    "+": ("add", "enable all"),
    "-": ("leave out", "disable all"),
    "( )": ("group",),
    "< >": (
        "narrower",
        "wider",
    ),
    "] [": (
        "next",
        "previous",
    ),
    "} {": ("grader", "round", "stop"),
}
"""The meaning of every character on all screens. A title of its actions has one of the words."""

NEVER_BOUND = {"ctrl+m", "ctrl+h", "ctrl+b", "ctrl+a", "ctrl+c", "ctrl+i"}
DOCS = Path(__file__).parents[3] / "docs"


def test_no_key_means_two_things_in_one_place() -> None:
    for place in ALL_ACTIONS.places():
        # A view of the case may use a key of the whole screen for another action.
        views = {action.scope for action in place} & {"form", "toml"}
        keys = [key for action in place if not views or action.scope in views for key in action.keys]
        assert len(keys) == len(set(keys)), place


def test_a_character_means_the_same_on_all_screens_or_nothing() -> None:
    words = {key_of(key): words for keys, words in MEANINGS.items() for key in keys.split()}
    of_dialogs = [
        (key, binding.description)
        for dialog in _dialogs()
        for binding in dialog.BINDINGS
        if isinstance(binding, Binding)
        for key in binding.key.split(",")
    ]
    of_actions = [(key, action.title) for action in ALL_ACTIONS.values() for key in action.keys]
    for key, title in (*of_actions, *of_dialogs):
        if is_character(key):
            assert key in words, f"{key} ({title}) has no meaning yet: give it one above"
            assert any(word in title.casefold() for word in words[key]), f"{key} means {words[key]}, but here: {title}"


def _dialogs() -> set[type[Dialog[Any]]]:
    """Every dialog of the app."""
    for module in pkgutil.walk_packages(workbench.tui.__path__, "workbench.tui."):
        importlib.import_module(module.name)
    found: set[type[Dialog[Any]]] = set()
    waiting: list[type[Dialog[Any]]] = [Dialog]
    while waiting:
        found.update(below := waiting.pop().__subclasses__())
        waiting += below
    return found


def test_keys_that_terminals_swallow_are_not_used() -> None:
    assert not NEVER_BOUND & {key for action in ALL_ACTIONS.values() for key in action.keys}


def test_every_action_without_a_key_is_in_the_palette() -> None:
    assert all(action.listed for action in ALL_ACTIONS.values() if not action.keys)


def test_what_cannot_be_done_says_why() -> None:
    nothing = MainSituation()
    for action_id in ("run.case", "run.suite", "run.stop", "run.stop_all", "run.expand", "run.next", "copy", "edit"):
        why = ALL_ACTIONS[action_id].why_not(nothing)
        assert why, action_id
        assert why[0].islower()


def test_what_can_be_done_says_nothing() -> None:
    ready = MainSituation(row="case", runnable=3, runs=2, has_file=True, has_text=True, why_row_not_editable=None)
    for action_id in ("run.case", "run.suite", "run.expand", "run.next", "copy", "edit"):
        assert ALL_ACTIONS[action_id].why_not(ready) is None, action_id


def test_a_running_case_can_be_stopped_and_not_started_again() -> None:
    running = MainSituation(row="case", runnable=1, case_running=True, running=1)
    assert ALL_ACTIONS["run.case"].why_not(running) == f"this case is running; {key_for('run.stop')} stops it"
    assert ALL_ACTIONS["run.stop"].why_not(running) is None
    assert ALL_ACTIONS["run.stop_all"].why_not(running) is None


def test_the_bar_never_shows_more_keys_than_fit_and_always_the_one_for_help() -> None:
    for pane in PANES:
        keys = shown_keys(MainSituation(pane=pane, row="case", runnable=1, running=1))
        for width in range(20, 200):
            line = key_line(keys, width, DEFAULT_KEYS)
            assert cells(line) <= width
            assert "? keys" in plain(line)


def test_at_160_columns_the_tree_names_the_ways_to_the_other_screens() -> None:
    ran = MainSituation(
        pane="suites", row="case", runnable=1, cases=1, failed=True, has_file=True, why_row_not_editable=None
    )
    now = replace(ran, shown="a finished run", graded=True, shown_failed=True)
    line = plain(key_line(shown_keys(now), 160, DEFAULT_KEYS))
    assert all(key in line for key in ("t tools", "= grades", "f failures", "! audit"))


def test_keys_read_like_keys() -> None:
    assert [key_name(key) for key in ("ctrl+r", "f5", "slash", "R", "shift+tab")] == [
        "Ctrl+R",
        "F5",
        "/",
        "R",
        "Shift+Tab",
    ]
    assert DEFAULT_KEYS.names(ALL_ACTIONS["reload"]) == "F5 Ctrl+R"


def test_every_screen_is_known_by_its_name() -> None:
    _dialogs()
    found, waiting = set[type[SideScreen[Any]]](), list[type[SideScreen[Any]]](SideScreen.__subclasses__())
    while waiting:
        found.add(screen := waiting.pop())
        waiting += screen.__subclasses__()
    ours = [screen for screen in found if screen.__module__.startswith("workbench.") and hasattr(screen, "NAME")]
    assert {screen.NAME for screen in ours} == SCREENS.keys()
    assert all(name == screen_class(name).NAME for name in SCREENS)


def test_every_group_of_the_main_screen_is_listed_once() -> None:
    _dialogs()
    assert {*GROUPS} == {*MainActions.__subclasses__()} and len(GROUPS) == len({*GROUPS})
    ids = [action.id for action in ALL_ACTIONS.values()]
    assert len(ids) == len({*ids}) and all(ids)
