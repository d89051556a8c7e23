"""Completions in the TOML of a case: tools, their arguments and listed values, checks, and keys of the format.

They are found from the lines around the cursor by regular expressions, because a text that is being typed is rarely
valid TOML.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from textual.geometry import Region

from workbench.authoring.form.argument_schemas import argument_of, tool_named
from workbench.authoring.form.completions import Completion, complete
from workbench.authoring.form.typed import read_text
from workbench.dataclasses import dataclass
from workbench.suite.render import key_text, value_text
from workbench.suite.shape import TABLES
from workbench.trajectory.events import ToolDefinition
from workbench.trajectory.json_schema import allowed_values
from workbench.tui.kit.suggestions import CompletionList
from workbench.tui.kit.text_editor import TomlEditor
from workbench.tui.kit.typed_text import Place

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"\s*([\w-]+|\"[^\"]*\")\s*=")
_TOOL = re.compile(r"\btool\s*=\s*\"([^\"]*)\"")
TYPED_TOOL = re.compile(r"\btool\s*=\s*\"([^\"\\]*)$")
"""Matches a line up to the cursor inside the name of a tool."""
_INLINE = re.compile(r"\b(args|when)\s*=\s*\{(.*)$")
# A line is searched up to the cursor, so the patterns of typed parts match its end.
_TYPED_KEY = re.compile(r"\s*([\w-]*)$")
_TYPED_CHECK = re.compile(r"\s*([\w-]+)\s*=\s*\{\s*(\w*)$")
_TYPED_VALUE = re.compile(r"\s*([\w-]+)\s*=\s*(\"?[^\",{}\[\]]*)$")
_ARGUMENTS = ("args", "when")


@dataclass(frozen=True)
class Offer:
    """Completions in TOML syntax for the text between `start`, a position in the line, and the cursor."""

    start: int
    found: tuple[Completion, ...]


def offer_at(lines: Sequence[str], cursor: Place, tools: Sequence[ToolDefinition]) -> Offer | None:
    """Return the completions at the cursor, `None` if nothing is known."""
    line, column = cursor
    before, after = lines[line][:column], lines[line][column:]
    if (typed := TYPED_TOOL.search(before)) is not None:
        found = complete("tool", typed[1], tools=tools)
        end = '"'
        if after.startswith('"'):
            end = ""
        return _offer(typed.start(1), [(one, _quoted(read_text(one.text))[1:-1] + end) for one in found])
    top, keys = _table(lines, line)
    tool = tool_named(tools, _tool_above(lines, line, before, top))
    inline = _INLINE.search(before)
    if inline is not None:
        piece = _last_piece(inline[2])
        return _of_arguments(piece, len(before) - len(piece), tool, _KEY.findall(inline[2]))
    if keys[-1:] and keys[-1] in _ARGUMENTS:
        return _of_arguments(before, 0, tool, _keys_of(lines, line))
    known = TABLES.get(keys)
    if known is None or (typed := _TYPED_KEY.fullmatch(before)) is None:
        return None
    written = _keys_of(lines, line)
    names = [name for name in known[1].model_fields if name not in written]
    return _of_keys(typed.start(1), complete("word", typed[1], words=names))


def _of_keys(start: int, found: Sequence[Completion]) -> Offer | None:
    return _offer(start, [(one, f"{key_text(read_text(one.text))} = ") for one in found])


def _of_arguments(piece: str, start: int, tool: ToolDefinition | None, used: Sequence[str]) -> Offer | None:
    """Return completions for the last entry of a table of arguments: its typed part is `piece`, which is at `start`."""
    if (typed := _TYPED_KEY.fullmatch(piece)) is not None:
        return _of_keys(start + typed.start(1), complete("argument", typed[1], tool=tool, used=used))
    if (typed := _TYPED_CHECK.fullmatch(piece)) is not None:
        argument = argument_of(tool, typed[1])
        schema = None
        if argument is not None:
            schema = argument.schema
        # A value without a check means `is`, so nobody writes it.
        names = [one for one in complete("check", typed[2], schema=schema) if one.text != "is"]
        return _offer(start + typed.start(2), [(one, f"{one.text} = ") for one in names])
    if (typed := _TYPED_VALUE.fullmatch(piece)) is not None:
        argument = argument_of(tool, typed[1])
        if argument is None:
            return None
        fitting: list[tuple[Completion, str]] = []
        for value in allowed_values(argument.schema) or ():
            text = value_text((), value)
            if typed[2].casefold() in text.casefold():
                fitting.append((Completion(text, text), text))
        return _offer(start + typed.start(2), fitting)
    return None


def _offer(start: int, found: Sequence[tuple[Completion, str]]) -> Offer | None:
    if not found:
        return None
    return Offer(start, tuple(replace(one, text=text) for one, text in found))


def _table(lines: Sequence[str], line: int) -> tuple[int, tuple[str, ...]]:
    """Return the line of the table header above a line, and the keys in it; -1 and no keys without a header."""
    for at in range(line - 1, -1, -1):
        if (header := _HEADER.match(lines[at])) is not None:
            return at, tuple(part.strip().strip('"') for part in header[2].split("."))
    return -1, ()


def _keys_of(lines: Sequence[str], line: int) -> list[str]:
    """Return the keys that the table of a line has on its other lines."""
    top, _ = _table(lines, line)
    keys: list[str] = []
    for at in range(top + 1, len(lines)):
        if at > line and _HEADER.match(lines[at]):
            break
        if at != line and (key := _KEY.match(lines[at])) is not None:
            keys.append(key[1].strip('"'))
    return keys


def _tool_above(lines: Sequence[str], line: int, before: str, top: int) -> str:
    """Return the tool of the expected call to which a line belongs; empty if none is named."""
    # The tool is named before the cursor or on a line above, up to the header of the list element.
    named: list[str] = _TOOL.findall(before)
    at = line
    while not named and at > 0 and not lines[at].lstrip().startswith("[["):
        at -= 1
        named = _TOOL.findall(lines[at])
    if not named:
        return ""
    return named[-1]


def _last_piece(inner: str) -> str:
    """Return the typed part of the last entry of an inline table, of which `inner` follows the opening brace."""
    # Commas in strings and in nested tables or lists do not end an entry.
    depth, start, quoted = 0, 0, False
    for at, char in enumerate(inner):
        if char == '"':
            quoted = not quoted
        elif not quoted:
            depth += (char in "{[") - (char in "}]")
            if char == "," and depth == 0:
                start = at + 1
    # Behind the end of the table there is no entry; a brace matches none of the patterns.
    if depth < 0:
        return "}"
    return inner[start:]


def _quoted(text: str) -> str:
    return value_text((), text)


_ASK_KEYS = frozenset({"ctrl+space", "ctrl+@"})
"""Ctrl+Space, under the two names that Textual may give it."""


class TomlCompleting:
    """Shows completions in an editor: on Ctrl+Space, and by itself in the name of a tool; `tools` returns the tools."""

    def __init__(
        self, editor: TomlEditor, completions: CompletionList, tools: Callable[[], Sequence[ToolDefinition]]
    ) -> None:
        self._editor, self._list, self._tools = editor, completions, tools
        self._offer: Offer | None = None

    def take_key(self, key: str) -> bool:
        """Handle a key if it belongs to the completions, and return whether it does."""
        if key in _ASK_KEYS:
            self._show(asked=True)
            return True
        if not self._list.is_open:
            return False
        if key == "down":
            self._list.step(1)
        elif key == "up":
            self._list.step(-1)
        elif key == "tab" or (key == "enter" and self._list.current is not None):
            self.choose(self._list.current or self._list.found[0])
        else:
            self.close()
            return key == "escape"
        return True

    def text_changed(self) -> None:
        """Update the completions after a change of the text."""
        line, column = self._editor.typed.cursor
        if TYPED_TOOL.search(self._editor.typed.lines[line][:column]) is not None:
            self._show(asked=False)
        else:
            self.close()

    def choose(self, completion: Completion) -> None:
        """Insert a completion in place of the typed part."""
        offer = self._offer
        self.close()
        if offer is not None:
            self._editor.put_in_place(offer.start, completion.text)
            # The change of the text may have opened them again.
            self.close()

    def close(self) -> None:
        """Close the completions."""
        self._offer = None
        if self._list.is_open:
            self._list.close()

    def _show(self, *, asked: bool) -> None:
        typed = self._editor.typed
        offer = offer_at(typed.lines, typed.cursor, self._tools())
        if offer is None or (not asked and self._is_all_there(offer)):
            self.close()
            return
        self._offer = offer
        # Uninvited completions mark none, so that Enter still breaks the line.
        if asked:
            self._list.offer(offer.found, 0)
        else:
            self._list.offer(offer.found, None)
        size = self._editor.size
        self._list.place(self._editor.cell_of((typed.cursor[0], offer.start)), Region(0, 0, size.width, size.height))

    def _is_all_there(self, offer: Offer) -> bool:
        """Return whether the only completion equals the typed text."""
        if len(offer.found) != 1:
            return False
        line, column = self._editor.typed.cursor
        return self._editor.typed.lines[line][offer.start : column] == offer.found[0].text.rstrip('"')
