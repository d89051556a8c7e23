"""The user's keys: reading, conflicts, and messages with a line and a remedy. No mistake prevents the start."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from textual.keys import _character_to_key

from tests.tables import each_row
from workbench.tui.kit.actions import DEFAULT_KEYS, NO_KEY, Keymap, key_for, key_name, key_of
from workbench.tui.kit.keymap import load_keymap
from workbench.tui.shell.actions import ALL_ACTIONS, SCREENS, screen_class


def read(folder: Path, text: str) -> tuple[Keymap, tuple[str, ...]]:
    file = folder / "keys.toml"
    file.write_text(text, encoding="utf-8")
    keymap, problems = load_keymap(file, ALL_ACTIONS, ALL_ACTIONS.places)
    return keymap, tuple(problem.removeprefix(f"{file}, ") for problem in problems)


def test_without_a_file_the_keys_are_those_of_the_registry(tmp_path: Path) -> None:
    assert load_keymap(tmp_path / "keys.toml", ALL_ACTIONS, ALL_ACTIONS.places) == (DEFAULT_KEYS, ())
    assert DEFAULT_KEYS.for_textual() == {}
    assert DEFAULT_KEYS.keys(ALL_ACTIONS["run.case"]) == ALL_ACTIONS["run.case"].keys


def test_keys_are_changed_by_id_and_taken_away_by_an_empty_list(tmp_path: Path) -> None:
    keymap, problems = read(tmp_path, '[keys]\n"run.case" = ["F6", "Ctrl+R"]\nreload = []\nzoom = "Z"\n')
    assert not problems
    assert keymap.names(ALL_ACTIONS["run.case"]) == "F6 Ctrl+R"
    assert keymap.names(ALL_ACTIONS["reload"]) == ""
    assert keymap.for_textual() == {"run.case": "f6,ctrl+r", "reload": NO_KEY, "zoom": "Z"}


def test_an_id_may_be_written_without_quotes(tmp_path: Path) -> None:
    keymap, problems = read(tmp_path, '[keys]\nrun.case = ["f6"]\n[keys.pane]\nnext = "f7"\n')
    assert not problems
    assert set(keymap.changed) == {"run.case", "pane.next"}


def test_an_id_of_before_names_the_action_of_today(tmp_path: Path) -> None:
    keymap, problems = read(tmp_path, '[keys]\nhistory.go_on = "f6"\ncapture = "f7"\n')
    assert not problems
    assert keymap.changed == {"history.resume": ("f6",), "accept.several": ("f7",)}


def test_two_actions_may_swap_their_keys(tmp_path: Path) -> None:
    keymap, problems = read(tmp_path, '[keys]\nzoom = "y"\ncopy = "z"\n')
    assert not problems
    assert keymap.changed == {"zoom": ("y",), "copy": ("z",)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[keys]\n\nrun.cose = "f6"', "line 3: run.cose is not an action: did you mean 'run.case'?"),
        ('[keys]\nzzzzzz = "f6"', "line 2: zzzzzz is not an action: docs/keys.md lists all ids"),
        ("[keys]\nzoom = 6", "line 2: zoom must be a list of keys such as ['f6', 'ctrl+r'], or [] for no key"),
        ('[keys]\nzoom = "hyper+x"', "line 2: zoom: hyper+x is not a key: the modifiers are ctrl, alt and shift"),
        (
            '[keys]\nzoom = "bigkey"',
            "line 2: zoom: bigkey is not a key: write r, R, /, f6, enter, pageup, ctrl+r or alt+x",
        ),
        ('[keys]\nzoom = "ctrl+m"', "line 2: zoom: ctrl+m cannot be told apart from Enter in a terminal"),
        ('[keys]\nzoom = "ctrl+shift+r"', "line 2: zoom: ctrl+shift+r is not sent by terminals"),
        ('[keys]\nzoom = "f9"\ncopy = "f9"', "line 3: copy: F9 is the key of 'zoom' as well"),
        ('[keys]\nzoom = "Z"\ncopy = "ZZ"', "line 3: copy: ZZ is the key of 'zoom' as well"),
        ('[kays]\nzoom = "f9"', "line 1: kays is not a table of this file: write keys below [keys]"),
        ("keys = 1", "line 1: keys must be a table"),
    ],
)
def test_what_cannot_be_used_is_said_with_its_line_and_left_out(tmp_path: Path, text: str, said: str) -> None:
    keymap, (problem,) = read(tmp_path, text)
    assert problem.startswith(said)
    assert set(keymap.changed) <= {"zoom"}
    assert "zoom" not in keymap.changed or "copy" in problem


@pytest.mark.parametrize("content", [b"\xff", b"[keys", b"a = " + b"[" * 5_000])
def test_a_file_that_is_no_toml_changes_nothing(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "keys.toml"
    file.write_bytes(content)
    keymap, (problem,) = load_keymap(file, ALL_ACTIONS, ALL_ACTIONS.places)
    assert keymap == DEFAULT_KEYS
    assert str(file) in problem


@given(st.dictionaries(st.sampled_from([*sorted(ALL_ACTIONS)]), st.lists(st.sampled_from("rRxXmyz123q?/"), max_size=3)))
@example({"tree.filter": ["r", "/"]})  # `/` stays with the TOML, too, because it is the key of both by default
def test_whatever_is_written_gives_no_key_a_second_meaning(
    tmp_path_factory: pytest.TempPathFactory, keys: dict[str, list[str]]
) -> None:
    text = "[keys]\n" + "".join(f'"{action_id}" = {chosen}\n' for action_id, chosen in keys.items())
    keymap, _ = read(tmp_path_factory.mktemp("keys"), text)
    for place in ALL_ACTIONS.places():
        owners: dict[str, str] = {}
        for action in place:
            for key in keymap.keys(action):
                owner = owners.setdefault(key, action.id)
                of_both = key in ALL_ACTIONS[owner].keys and key in action.keys
                assert owner == action.id or of_both or not {owner, action.id} & keymap.changed.keys()


def test_every_action_applies_in_some_place() -> None:
    assert {action for place in ALL_ACTIONS.places() for action in place} == {*ALL_ACTIONS.values()}


@pytest.mark.parametrize("screen", SCREENS)
def test_on_no_screen_can_one_key_be_given_to_two_actions(screen: str, tmp_path: Path) -> None:
    own = screen_class(screen).ACTIONS
    one, other = own[0].id, own[1].id
    keymap, (problem,) = read(tmp_path, f'[keys]\n"{one}" = "f9"\n"{other}" = "f9"\n')
    assert problem.startswith(f"line 3: {other}: F9 is the key of {one!r} as well: give one of them another key")
    assert set(keymap.changed) == {one}
    for taken in ("move.up", "palette"):  # lists move, and the palette opens, on every screen
        key = ALL_ACTIONS[taken].keys[0]
        keymap, (problem,) = read(tmp_path, f'[keys]\n"{one}" = "{key}"\n')
        assert f"no longer the key of {taken!r}" in problem
        assert key in keymap.keys(ALL_ACTIONS[one]) and key not in keymap.keys(ALL_ACTIONS[taken])


@pytest.mark.parametrize(
    ("text", "taken", "left", "said"),
    [
        ('zoom = "m"', "models", (), "zoom: m is yours, and no longer the key of 'models', which has no key now"),
        ('"run.fork" = "k"', "move.up", ("up",), "no longer the key of 'move.up', which keeps ↑: name its keys here"),
        ('grades = "g"', "move.home", ("home",), "grades: g is yours, and no longer the key of 'move.home'"),
    ],
)
def test_own_keys_win_over_defaults_until_the_file_names_both(
    tmp_path: Path, text: str, taken: str, left: tuple[str, ...], said: str
) -> None:
    keymap, (problem,) = read(tmp_path, f"[keys]\n{text}\n")
    assert said in problem and problem.startswith("line 2")
    assert keymap.keys(ALL_ACTIONS[taken]) == left
    again, problems = read(tmp_path, f'[keys]\n{text}\n"{taken}" = {list(left)}\n')
    assert (again, problems) == (keymap, ())


@each_row("char", list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~aZ7é"))
def test_characters_are_called_what_textual_calls_them(char: str) -> None:
    assert key_of(char) == _character_to_key(char)
    assert key_name(key_of(char)) == char


def test_keys_are_read_as_they_are_shown() -> None:
    used = {key for action in ALL_ACTIONS.values() for key in action.keys}
    assert {key_of(key_name(key)) for key in used} == used
    assert [key_of(key) for key in ("Esc", "pgup", "Ctrl+R", "Shift+Tab", "ctrl+/")] == [
        "escape",
        "pageup",
        "ctrl+r",
        "shift+tab",
        "ctrl+slash",
    ]


def test_messages_have_keys_only_where_the_app_put_them(tmp_path: Path) -> None:
    keymap, _ = read(tmp_path, '[keys]\nsave = ["f8"]\nzoom = []\n')
    name = "{save} {run.case} {no_such}"
    text = f"New case {name}: {key_for('run.case')} runs it, {key_for('save')} saves it, {key_for('zoom')} it is wide"
    zoom = f"“{ALL_ACTIONS['zoom'].title}”, which has no key,"
    assert keymap.in_words(text) == f"New case {name}: r runs it, F8 saves it, {zoom} it is wide"


def actions_named(source: str) -> tuple[set[str], set[str]]:
    """The actions whose keys a module names with `key_for`, and those that it names in braces, f-strings included."""
    named: set[str] = set()
    braces: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str(text)):
                braces |= set(re.findall(r"\{([a-z_.]+)\}", text))
            case ast.Call(func=ast.Name(id="key_for"), args=[ast.Constant(value=str(action_id))]):
                named.add(action_id)
    return named, braces & set(ALL_ACTIONS)


@pytest.mark.slow
def test_messages_name_actions_that_there_are_and_none_in_braces() -> None:
    raw = 'say(f"{what}; merged, {{edit.undo}} undoes it" + key_for("save"))'
    assert actions_named(raw) == ({"save"}, {"edit.undo"})
    named: set[str] = set()
    rooms = [Path(__file__).parents[3] / "workbench" / room for room in ("tui", "authoring")]
    # A filter by text, because parsing all modules takes seconds.
    may_name = re.compile(rf"key_for\(|{{({'|'.join(map(re.escape, ALL_ACTIONS))})}}")
    for file in (file for room in rooms for file in room.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        here, braces = actions_named(text) if may_name.search(text) else (set[str](), set[str]())
        assert not braces, f"{file} names {', '.join(braces)} in braces: name the key with key_for"
        named |= here
    assert len(named) > 20
    assert named <= set(ALL_ACTIONS)
