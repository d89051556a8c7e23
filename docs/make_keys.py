"""Writes `docs/keys.md` from the actions. A test compares the two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from workbench.tui.kit.actions import DEFAULT_KEYS, PANE_TITLES, Action, Scope
from workbench.tui.shell.actions import ALL_ACTIONS, SCREENS, screen_class

PAGE = Path(__file__).parent / "keys.md"

_SECTIONS: tuple[tuple[str, Scope], ...] = (
    *((f"In {title}", pane) for pane, title in PANE_TITLES.items()),
    ("In the line for new cases", "line"),
    ("In the form of a case", "form"),
    ("In the TOML of a case", "toml"),
    *((f"In {screen_class(name).TITLE_IN_TEXT}", name) for name in SCREENS),
    ("Moving", "move"),
)

_SHARED = ("filter", "find", "find_next", "other", "copy", "back", "help", "quit")
"""Actions that most screens share, by the part of their ids after the dot. They have one row each."""

_COPY = "Copy what is shown, or what the cursor is on"
_OTHER_COPIES = ("call.copy", "live.copy")
"""Actions that copy something else and have their own row."""

_HEAD = """# Keys

Each key with its action, and the action's id for [keys of your own](#keys-of-your-own). In the app, `?` shows the keys
of the current pane, and why a key does nothing. `Ctrl+P` finds actions by words of their names, by initials (`rws` is
*Run the whole suite*), or by words of other programs (`exit`, `diff`).

In dialogs, the keys below [Moving](#moving) move, `Enter` chooses, `Space` marks, a digit answers, and `Esc` cancels.
`SCREEN` stands for the screen's name, as in `tools.help`; the log of a server is `log`.
"""

_FILE = """
## Keys of your own

Write the ids of actions and their keys below `[keys]` in `keys.toml` in the folder of settings
(`~/.config/toolcall-workbench` on Linux). An empty list removes the keys. The app reads the file at its start.

```toml
[keys]
"run.case" = ["f6", "r"]
"zoom" = ["ctrl+z"]
"reload" = []
```

A key is a character (`r`, `R`, `/`), two letters in sequence (`gg`), a name (`enter`, `esc`, `space`, `tab`, `del`,
`pgup`, `home`, `up`, `f1` …), or one of these after `ctrl+`, `alt+` or `shift+`. Keys that terminals cannot tell apart
are refused: `ctrl+m` is Enter, `ctrl+i` Tab, `ctrl+h` Backspace, and letters have no `shift+`.

Your keys replace default ones in the same place. Unknown ids and keys, and keys with two meanings in one place, are
ignored and logged. Keys of dialogs and text fields are fixed.
"""


def made_page() -> str:
    actions = ALL_ACTIONS.values()
    parts = [
        _HEAD,
        _section("Everywhere", [action for action in actions if action.scope in ("everywhere", "anywhere")]),
        "\n## On most other screens\n\n",
        *map(_shared_row, _SHARED),
    ]
    for title, scope in _SECTIONS:
        here = [action for action in actions if action.scope == scope]
        parts.append(_section(title, [action for action in here if scope not in SCREENS or not _is_shared(action)]))
    return "".join([*parts, _FILE])


def _does(action: Action) -> str:
    """Return the part of an action's id that is the same on every screen."""
    return action.id.partition(".")[2]


def _is_shared(action: Action) -> bool:
    """Return whether an action of a screen is among the shared actions."""
    return _does(action) in _SHARED and action.id not in _OTHER_COPIES


def _shared_row(name: str) -> str:
    """Return one row for an action of several screens, with its most common title."""
    same = [action for action in ALL_ACTIONS.values() if action.scope in SCREENS and _does(action) == name]
    (title, _), *_ = Counter(action.title for action in same).most_common(1)
    if name == "copy":
        title = _COPY
    keys = dict.fromkeys(key for action in same for key in DEFAULT_KEYS.names(action).split())
    return f"- {_shown(keys)}: {title} (`SCREEN.{name}`)\n"


def _section(title: str, actions: Sequence[Action]) -> str:
    return f"\n## {title}\n\n{''.join(_rows(actions))}" if actions else ""


def _rows(actions: Iterable[Action]) -> Iterator[str]:
    """Yield the rows of actions.

    Two neighbours whose titles differ in one word share a row, and so do all actions without a key."""
    waiting: Action | None = None
    keyless: list[str] = []
    for action in actions:
        if not DEFAULT_KEYS.names(action):
            keyless.append(f"{action.title} (`{action.id}`)")
            continue
        if waiting is not None and (title := _common_title(waiting.title, action.title)) is not None:
            yield f"- {_keys(waiting)}, {_keys(action)}: {title} (`{waiting.id}`, `{action.id}`)\n"
            waiting = None
            continue
        if waiting is not None:
            yield f"- {_keys(waiting)}: {waiting.title} (`{waiting.id}`)\n"
        waiting = action
    if waiting is not None:
        yield f"- {_keys(waiting)}: {waiting.title} (`{waiting.id}`)\n"
    if keyless:
        yield f"- without a key: {', '.join(keyless)}\n"


def _common_title(first: str, second: str) -> str | None:
    """Return `Next or previous match` for `Next match` and `Previous match`, or `None` for less similar titles."""
    words, others = first.split(), second.split()
    differing = [at for at, (one, other) in enumerate(zip(words, others, strict=False)) if one != other]
    if len(words) != len(others) or len(differing) != 1 or not words[differing[0]].isalpha():
        return None
    other = others[differing[0]]
    words[differing[0]] += f" or {other.lower()}"
    return " ".join(words)


def _keys(action: Action) -> str:
    return _shown(DEFAULT_KEYS.names(action).split())


def _shown(keys: Iterable[str]) -> str:
    return " ".join(f"`{key}`" for key in keys)


if __name__ == "__main__":
    PAGE.write_text(made_page(), encoding="utf-8")
