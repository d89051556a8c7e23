"""Write `docs/keys.md` from the actions. A test keeps the two the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from workbench.tui.kit.actions import DEFAULT_KEYS, PANE_TITLES, Action, Where
from workbench.tui.shell.actions import ALL_ACTIONS, SCREENS, screen_class

PAGE = Path(__file__).parent / "keys.md"

_SECTIONS: tuple[tuple[str, Where], ...] = (
    *((f"In {title}", pane) for pane, title in PANE_TITLES.items()),
    ("In the form of a case", "form"),
    ("In the TOML of a case", "toml"),
    *((f"In {screen_class(name).TITLE_IN_TEXT}", name) for name in SCREENS),
    ("Moving", "move"),
)

_SHARED = ("filter", "find", "find_next", "other", "back", "help", "quit")
"""What most screens do alike, by the part of its ids behind the dot: written once."""

_HEAD = """# Keys

Look up what a key does, and the id by which `keys.toml` gives its action [other keys](#keys-of-your-own). In the app,
`?` shows the keys of the pane you are in and why one does nothing right now; `Ctrl+P` finds every action by words of
its name, their beginnings (`rws` is *Run the whole suite*), or words of other programs (`exit`, `diff`). The mouse
works too.

A letter, digit or sign means the same on all screens, or nothing; where text is typed it is text. In dialogs, the keys
below [Moving](#moving) move, `Enter` chooses, `Space` marks, a digit answers, and `Esc` leaves without doing anything.
`SCREEN` in an id stands for the word before the dot in the other ids of a screen, as in `tools.help`.
"""

_FILE = """
## Keys of your own

Write `keys.toml` in the folder of settings (`~/.config/toolcall-workbench` on Linux): below `[keys]`, the id of an
action and its keys. An empty list leaves an action to the palette. The app reads the file when it starts.

```toml
[keys]
"run.case" = ["f6", "r"]
"zoom" = ["ctrl+z"]
"reload" = []
```

A key is a character (`r`, `R`, `/`), two letters typed one after the other (`gg`), a name (`enter`, `esc`, `space`,
`tab`, `del`, `pgup`, `home`, `up`, `f1` …), or one of these behind `ctrl+`, `alt+` or `shift+`. What terminals cannot
tell apart is refused: `ctrl+m` is Enter, `ctrl+i` Tab, `ctrl+h` Backspace, and letters have no `shift+`.

Your keys win over those that another action has by default in the same place; the app names that action. Unknown ids,
unknown keys, and keys with two meanings in one place are left out and named in the log. Keys of dialogs and text fields
cannot be changed.
"""


def made_page() -> str:
    """Return the page."""
    actions = ALL_ACTIONS.values()
    parts = [
        _HEAD,
        _section("Everywhere", [action for action in actions if action.where in ("everywhere", "anywhere")]),
        "\n## On most other screens\n\n",
        *map(_shared_row, _SHARED),
    ]
    for title, where in _SECTIONS:
        here = [action for action in actions if action.where == where]
        parts.append(
            _section(title, [action for action in here if where not in SCREENS or _does(action) not in _SHARED])
        )
    return "".join([*parts, _FILE])


def _does(action: Action) -> str:
    """Return the part of an action's id that is the same on every screen."""
    return action.id.partition(".")[2]


def _shared_row(name: str) -> str:
    """Return one row for what several screens do, as most of them word it."""
    same = [action for action in ALL_ACTIONS.values() if action.where in SCREENS and _does(action) == name]
    (title, _), *_ = Counter(action.title for action in same).most_common(1)
    keys = dict.fromkeys(key for action in same for key in DEFAULT_KEYS.names(action).split())
    return _row([*keys], title, f"SCREEN.{name}")


def _section(title: str, actions: Iterable[Action]) -> str:
    rows = [_row(DEFAULT_KEYS.names(each).split(), each.title, each.id) for each in actions]
    return f"\n## {title}\n\n{''.join(rows)}" if rows else ""


def _row(keys: Iterable[str], title: str, name: str) -> str:
    shown = " ".join(f"`{key}`" for key in keys) or "palette"
    return f"- {shown}: {title} (`{name}`)\n"


if __name__ == "__main__":
    PAGE.write_text(made_page(), encoding="utf-8")
