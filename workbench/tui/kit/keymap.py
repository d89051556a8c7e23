"""The user's `keys.toml`, read as a keymap."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from workbench.show.visible import one_line
from workbench.suite.positions import scan
from workbench.tui.kit.actions import Action, Keymap, is_sequence, key_name, key_of

FILE_NAME = "keys.toml"

_RENAMED = {"capture": "accept.several", "history.go_on": "history.resume"}
"""Renamed ids of actions. The old ids stay valid in users' files."""

Places = Callable[[Iterable[str]], Sequence[Sequence[Action]]]
"""Returns the places that bind any of the given actions. Each place is the list of all its actions."""


def load_keymap(file: Path, actions: Mapping[str, Action], places: Places) -> tuple[Keymap, tuple[str, ...]]:
    """Read the user's `keys.toml`. Return the keymap and the problems, each with its line.

    Invalid entries are skipped. If there is no file, the keymap has the default keys.

    `places` returns groups of actions whose keys work at the same time. Within such a group, a key may have only one
    meaning."""
    # Looking up an action in `actions` may load all screens. A missing file is therefore handled before that.
    try:
        text = file.read_bytes().decode("utf-8-sig")
        data = tomllib.loads(text)
    except FileNotFoundError:
        return Keymap(actions=actions), ()
    except OSError as error:
        return Keymap(actions=actions), (f"{file}: cannot be read: {error.strerror}",)
    except UnicodeDecodeError:
        return Keymap(actions=actions), (f"{file}: is not UTF-8: save it as UTF-8 text",)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return Keymap(actions=actions), (f"{file}: is not valid TOML: {error}",)
    return _KeymapReader(file, text, actions, places).read(data)


class _KeymapReader:
    """Reads one `keys.toml` and collects its problems."""

    def __init__(self, file: Path, text: str, actions: Mapping[str, Action], places: Places) -> None:
        self._file = file
        self._places = places
        self._positions = scan(text)
        self._actions = actions
        self._problems: list[tuple[int, str]] = []
        self._lines: dict[str, int] = {}

    def read(self, data: Mapping[str, object]) -> tuple[Keymap, tuple[str, ...]]:
        for name in data.keys() - {"keys"}:
            self._problem((name,), f"{one_line(name)} is not a table of this file: write keys below [keys]")
        table = data.get("keys", {})
        wanted: dict[str, tuple[str, ...]] = {}
        if not isinstance(table, dict):
            self._problem(("keys",), "keys must be a table: write [keys], and below it \"run.case\" = ['f6']")
            table = {}
        for place, written_id, value in _entries(("keys",), table):
            action_id = _RENAMED.get(written_id, written_id)
            keys = self._keys(place, action_id, value)
            if keys is not None:
                wanted[action_id] = keys
                self._lines[action_id] = self._positions.line(place)
        self._drop_clashes(wanted)
        self._drop_overridden_defaults(wanted)
        problems = tuple(f"{self._file}, line {line}: {text}" for line, text in sorted(self._problems))
        changed = {action_id: keys for action_id, keys in wanted.items() if keys != self._actions[action_id].keys}
        return Keymap(MappingProxyType(changed), self._actions), problems

    def _keys(self, place: tuple[str, ...], action_id: str, value: object) -> tuple[str, ...] | None:
        if action_id not in self._actions:
            ids = "docs/keys.md lists all ids"
            for near in difflib.get_close_matches(action_id, self._actions, n=1):
                ids = f"did you mean {near!r}?"
            self._problem(place, f"{one_line(action_id)} is not an action: {ids}")
            return None
        values = value
        if isinstance(value, str):
            values = [value]
        if not isinstance(values, list) or not all(isinstance(key, str) for key in values):
            self._problem(place, f"{action_id} must be a list of keys such as ['f6', 'ctrl+r'], or [] for no key")
            return None
        keys: dict[str, None] = {}
        for written in values:
            try:
                keys[key_of(written)] = None
            except ValueError as error:
                self._problem(place, f"{action_id}: {one_line(written)} {error}")
        if values and not keys:
            # All keys were invalid. The entry is skipped, because an empty list would remove the action's keys.
            return None
        return tuple(keys)

    def _drop_clashes(self, keys_by_action: dict[str, tuple[str, ...]]) -> None:
        while clash := self._clash(keys_by_action, of_own=True):
            key, *both = clash
            winner, loser = sorted(both, key=lambda action_id: self._lines[action_id])
            key = next(each for each in keys_by_action[loser] if _keys_overlap(each, key))
            del keys_by_action[loser]
            text = f"{loser}: {key_name(key)} is the key of {winner!r} as well: give one of them another key, or []"
            self._problems.append((self._lines.pop(loser), text))

    def _drop_overridden_defaults(self, keys_by_action: dict[str, tuple[str, ...]]) -> None:
        """Take default keys away from actions if the file assigns these keys to other actions."""
        while clash := self._clash(keys_by_action, of_own=False):
            key, *both = clash
            own = next(action_id for action_id in both if action_id in self._lines)
            other = next(action_id for action_id in both if action_id != own)
            left = Keymap(keys_by_action).keys(self._actions[other])
            lost = next(each for each in left if _keys_overlap(each, key))
            keys_by_action[other] = tuple(each for each in left if each != lost)
            remaining = "has no key now"
            if keys_by_action[other]:
                remaining = f"keeps {' '.join(map(key_name, keys_by_action[other]))}"
            text = (
                f"{own}: {key_name(key)} is yours, and no longer the key of {other!r}, which "
                f"{remaining}: name its keys here, too, or []"
            )
            self._problems.append((self._lines[own], text))

    def _clash(self, keys_by_action: Mapping[str, tuple[str, ...]], *, of_own: bool) -> tuple[str, str, str] | None:
        """Return a key that two actions share in a place, and the ids of both actions. `None` if there is no such key.

        With `of_own`, both actions have their keys from the file. Otherwise, exactly one of the actions has its keys
        from the file."""
        # Keys are grouped by the first character, because `g` clashes with `g` and with `gg`.
        keymap = Keymap(keys_by_action)
        for place in self._places(keys_by_action):
            owners: dict[str, list[tuple[str, str]]] = {}
            for action in place:
                for key in keymap.keys(action):
                    known = owners.setdefault(key[0] if is_sequence(key) else key, [])
                    for other, owner in known:
                        named = (owner in self._lines) + (action.id in self._lines)
                        by_default = key in action.keys and other in self._actions[owner].keys
                        if owner != action.id and named == 1 + of_own and _keys_overlap(key, other) and not by_default:
                            return key if action.id in self._lines else other, owner, action.id
                    known.append((key, action.id))
        return None

    def _problem(self, place: tuple[str, ...], message: str) -> None:
        self._problems.append((self._positions.line(place), message))


def _keys_overlap(key: str, other: str) -> bool:
    """Return whether two keys are equal, or one is the first character of the other, such as `g` and `gg`."""
    return key == other or (is_sequence(key) and key[0] == other) or (is_sequence(other) and other[0] == key)


def _entries(place: tuple[str, ...], table: Mapping[str, object]) -> Iterator[tuple[tuple[str, ...], str, object]]:
    # In TOML, an unquoted `run.case = […]` is a table `run` with the key `case`.
    for name, value in table.items():
        here = (*place, name)
        if isinstance(value, dict):
            yield from _entries(here, value)
        else:
            yield here, ".".join(here[1:]), value
