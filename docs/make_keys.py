"""Writes `docs/keys.md` from the actions. A test keeps the two the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from workbench.tui.kit.actions import DEFAULT_KEYS, PANE_TITLES, Action, Where, is_character, key_name
from workbench.tui.shell.actions import ALL_ACTIONS, SCREENS, screen_class

PAGE = Path(__file__).parent / "keys.md"

_SECTIONS: tuple[tuple[str, Where], ...] = (
    ("Everywhere", "everywhere"),
    *((f"In {title}", pane) for pane, title in PANE_TITLES.items()),
    ("In the form of a case", "form"),
    ("In the TOML of a case", "toml"),
    *((f"In {screen_class(name).TITLE_IN_TEXT}", name) for name in SCREENS),
    ("Moving", "move"),
)

_HEAD = """# Keys

Made from the actions by `python docs/make_keys.py`. In the app, `?` shows the keys of the pane you are in
and says why a key does nothing right now, then those of all other places; `/` searches them. `Ctrl+P` offers everything
by name, what you chose last first: type words of it, their beginnings (`rws` is *Run the whole suite*), or leave
letters out. Words that other programs use (`exit`, `diff`, `api key`) find what they mean. What cannot be done now
stands at the end, with why. A key that does nothing here says so. The mouse works too: click a row or a title, click a
row again to open it, turn the wheel.
"""

_LETTERS = """
## What each letter means

A letter, digit or sign means the same on all screens, or nothing. Where text is typed it is text.

| key | means |
|---|---|
"""

_DIALOGS = """
## In dialogs

A dialog names its keys in its last row. In all of them the keys below *Moving* move, `Enter` chooses what the cursor is
on, and `Esc` leaves without doing anything; where several things can be chosen, `Space` marks them. A question gives
each answer a number, and `Esc` is its no. These keys, and those of text fields, stay what they are whatever `keys.toml`
says.
"""

_FILE = """
## Keys of your own

Write them into `keys.toml` in the folder of settings (`~/.config/toolcall-workbench` on Linux): below `[keys]`, the id
of an action from the tables above and a list of keys. An empty list takes an action's keys away; it then stays in the
palette. What the file does not name stays as it is.

```toml
[keys]
"run.case" = ["f6", "r"]
"zoom" = ["ctrl+z"]
"models" = ["f7"]
"reload" = []
```

A key is a character (`r`, `R`, `/`), two letters that are typed one after the other (`gg`), a name (`enter`, `esc`,
`space`, `tab`, `del`, `pgup`, `home`, `up`, `f1` …), or a character or name with `ctrl+`, `alt+` or `shift+` before it.
Terminals cannot tell `ctrl+m` from Enter, `ctrl+i` from Tab or `ctrl+h` from Backspace, and send no `shift+` with
letters: such keys are refused.

Your keys win: a key that another action has by default in the same place is taken from it, and the app says so until
the file names that action, too. An id that does not exist, a key that does not, and a key that the file itself gives
two meanings in one place are left out, and the rest of the file counts. The file is read when the app starts. The
first problem is said then, with the line; all of them are in the log, whose place is named with it.
"""


def keys_page() -> str:
    """The page."""
    parts = [_HEAD, _LETTERS, *_letters()]
    for title, where in _SECTIONS:
        places = (where, "anywhere") if where == "everywhere" else (where,)
        actions = [action for action in ALL_ACTIONS.values() if action.where in places]
        if actions:
            parts.append(f"\n## {title}\n\n| key | action | id |\n|---|---|---|\n" + "".join(map(_row, actions)))
    return "".join([*parts, _DIALOGS, _FILE])


def _letters() -> Iterator[str]:
    """A row for each character that is a key, with the first words of the actions that have it."""
    titles: dict[str, dict[str, None]] = {}
    for action in ALL_ACTIONS.values():
        for key in map(key_name, filter(is_character, action.keys)):
            titles.setdefault(key, {})[re.split("[:;,] ", action.title)[0]] = None
    for key in sorted(titles, key=lambda key: (not key.isalpha(), key.casefold(), key.isupper())):
        first, more = [*titles[key]][:3], " …" if len(titles[key]) > 3 else ""
        yield f"| `{key}` | {'; '.join(first)}{more} |\n"


def _row(action: Action) -> str:
    keys = " ".join(f"`{key}`" for key in DEFAULT_KEYS.names(action).split()) or "palette"
    return f"| {keys} | {action.title} | `{action.id}` |\n"


if __name__ == "__main__":
    PAGE.write_text(keys_page(), encoding="utf-8")
