"""Completions while a case is edited as TOML: tools, arguments, listed values, checks, and keys of the format.

Regular expressions search the lines around the cursor, because unfinished text is rarely valid TOML."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from textual.geometry import Region

from workbench.authoring.form.argument_schemas import argument_of, tool_named
from workbench.authoring.form.completions import Completion, complete
from workbench.authoring.form.field_text import read_text
from workbench.checks.check import CHECK_CLASSES
from workbench.checks.clock import zone_names
from workbench.dataclasses import dataclass
from workbench.startup import late_pattern
from workbench.suite.render import key_text, value_text
from workbench.suite.shape import TABLES
from workbench.trajectory.events import ToolDefinition
from workbench.trajectory.json_schema import Schema, allowed_values, field_of, items_of, properties_of
from workbench.tui.kit.edited_text import Place
from workbench.tui.kit.suggestions import CompletionList
from workbench.tui.kit.text_editor import TomlEditor

_HEADER = late_pattern(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]")
_KEY = late_pattern(r"\s*([\w-]+|\"[^\"]*\")\s*=")
_TOOL = late_pattern(r"\btool\s*=\s*\"([^\"]*)\"")
TYPED_TOOL = late_pattern(r"\btool\s*=\s*\"([^\"\\]*)$")
"""Matches a line up to the cursor if the cursor is in the name of a tool."""
_TYPED_CLOCK = late_pattern(r"\bclock\s*=\s*\"(?:[^\"]* )?([^\" ]*)$")
_TYPED_TEXT = late_pattern(r"\"([^\"\\]*)$")
_STRINGS = r'"""[\s\S]*?(?:"""|$)|"(?:[^"\\\n]|\\.)*"?|\'[^\'\n]*\'?|#[^\n]*'
_BRACKET = late_pattern(_STRINGS + r"|[{}\[\]]")
_SEPARATOR = late_pattern(_STRINGS + r"|[{}\[\],]")
_BEFORE_VALUE = late_pattern(r"([\w-]+|\"[^\"]*\")\s*=\s*\Z")
# Only the text before the cursor is searched, so these patterns end with `$`.
_TYPED_KEY = late_pattern(r"\s*([\w-]*)$")
_TYPED_VALUE = late_pattern(r"\s*([\w-]+)\s*=\s*(\"?[^\",{}\[\]]*)$")
_ARGUMENTS = ("args", "when")
_VALUES = (*_ARGUMENTS, "result", "response")
"""The keys of tables and values that contain checks."""
_TOOL_LISTS = ("extra_calls", "offer", "readers")
_ELEMENT_CHECKS = ("same_elements", "has_elements", "each_element")


@dataclass(frozen=True)
class Offer:
    """Completions in TOML syntax. The chosen completion replaces the text from column `start` to the cursor."""

    start: int
    found: tuple[Completion, ...]


def offer_at(lines: Sequence[str], cursor: Place, tools: Sequence[ToolDefinition]) -> Offer | None:
    """Return the completions at the cursor, `None` if there are none."""
    line, column = cursor
    before, after = lines[line][:column], lines[line][column:]
    end = "" if after.startswith('"') else '"'
    if (typed := TYPED_TOOL.search(before)) is not None:
        return _text_completions(typed, complete("tool", typed[1], tools=tools), end)
    if (typed := _TYPED_CLOCK.search(before)) is not None:
        return _text_completions(typed, complete("word", typed[1], words=zone_names()), end)
    top, keys = _table(lines, line)
    # An array may begin on an earlier line, so the text from the header on is read.
    text = "\n".join([*lines[top + 1 : line], before])
    opened = _open_at(text)
    inner = text[opened[-1].start :] if opened else before
    if opened and opened[-1].bracket == "[":
        typed = _TYPED_TEXT.search(before)
        if typed is None or opened[-1].key not in _TOOL_LISTS:
            return None
        return _text_completions(typed, complete("tool", typed[1], tools=tools), end)
    piece, written = inner, _keys_of(lines, line)
    if opened:
        *others, piece = _pieces(inner)
        written = [key[1].strip('"') for other in others if (key := _KEY.match(other)) is not None]
        piece = piece.rpartition("\n")[2]
    start = column - len(piece)
    path = (*keys, *(each.key for each in opened if each.key))
    root = max((at for at, key in enumerate(path) if key in _VALUES), default=None)
    if root is None:
        known = TABLES.get(path)
        if known is None or (typed := _TYPED_KEY.fullmatch(piece)) is None:
            return None
        names = [name for name in known[1].model_fields if name not in written]
        return _key_completions(start + typed.start(1), complete("word", typed[1], words=names))
    tool = tool_named(tools, _tool_above(lines, line, before))
    inside = path[root + 1 :]
    if path[root] in _ARGUMENTS and not inside:
        return _argument_completions(piece, start, tool, written)
    schema = None
    if path[root] in _ARGUMENTS:
        argument = argument_of(tool, inside[0])
        schema = None if argument is None else _schema_inside(argument.schema, inside[1:])
    if path[-1] == "has_fields":
        return _field_completions(piece, start, schema, written)
    return _check_completions(piece, start, schema, written)


def _text_completions(typed: re.Match[str], found: Sequence[Completion], end: str) -> Offer | None:
    return _offer(typed.start(1), [(one, _quoted(read_text(one.text))[1:-1] + end) for one in found])


def _schema_inside(schema: Schema | None, path: Sequence[str]) -> Schema | None:
    """Return the schema of a field or element inside a value.

    `path` has the keys and checks on the way from the value to the field or element."""
    below = False
    for key in path:
        if below or key not in CHECK_CLASSES:
            schema = field_of(schema, key)
            below = False
        elif key == "has_fields":
            below = True
        elif key in _ELEMENT_CHECKS:
            schema = items_of(schema)
    return schema


def _field_completions(piece: str, start: int, schema: Schema | None, used: Sequence[str]) -> Offer | None:
    """Return completions of `piece`, the unfinished entry of a table of fields. `used` are the fields already set."""
    if (typed := _TYPED_KEY.fullmatch(piece)) is not None:
        names = [name for name in properties_of(schema or {}) if name not in used]
        return _key_completions(start + typed.start(1), complete("word", typed[1], words=names))
    if (typed := _TYPED_VALUE.fullmatch(piece)) is not None:
        return _value_completions(typed, start, field_of(schema, typed[1]))
    return None


def _check_completions(piece: str, start: int, schema: Schema | None, written: Sequence[str]) -> Offer | None:
    """Return completions of `piece`, the unfinished entry of a check.

    If no check is `written`, complete the name of a check. Otherwise, complete the options of the written check."""
    if (typed := _TYPED_KEY.fullmatch(piece)) is None:
        return None
    if written:
        check = next((CHECK_CLASSES[key] for key in written if key in CHECK_CLASSES), None)
        if check is None:
            return None
        return _key_completions(
            start + typed.start(1), complete("option", typed[1], kind=check.form_name, used=written)
        )
    # A value without a check means `is`, so `is` is not completed.
    names = [one for one in complete("check", typed[1], schema=schema) if one.text != "is"]
    return _key_completions(start + typed.start(1), names)


def _key_completions(start: int, found: Sequence[Completion]) -> Offer | None:
    return _offer(start, [(one, f"{key_text(read_text(one.text))} = ") for one in found])


def _argument_completions(piece: str, start: int, tool: ToolDefinition | None, used: Sequence[str]) -> Offer | None:
    """Return completions of the unfinished entry `piece` in a table of arguments. `piece` begins at column `start`."""
    if (typed := _TYPED_KEY.fullmatch(piece)) is not None:
        return _key_completions(start + typed.start(1), complete("argument", typed[1], tool=tool, used=used))
    if (typed := _TYPED_VALUE.fullmatch(piece)) is not None:
        argument = argument_of(tool, typed[1])
        return None if argument is None else _value_completions(typed, start, argument.schema)
    return None


def _value_completions(typed: re.Match[str], start: int, schema: Schema | None) -> Offer | None:
    fitting: list[tuple[Completion, str]] = []
    for value in allowed_values(schema) or ():
        text = value_text((), value)
        if typed[2].casefold() in text.casefold():
            fitting.append((Completion(text, text), text))
    return _offer(start + typed.start(2), fitting)


def _offer(start: int, found: Sequence[tuple[Completion, str]]) -> Offer | None:
    if not found:
        return None
    return Offer(start, tuple(replace(one, text=text) for one, text in found))


def _table(lines: Sequence[str], line: int) -> tuple[int, tuple[str, ...]]:
    """Return the line of the nearest table header above a line, and the keys in the header.

    If there is no header, return -1 and no keys."""
    for at in range(line - 1, -1, -1):
        if (header := _HEADER.match(lines[at])) is not None:
            return at, tuple(part.strip().strip('"') for part in header[2].split("."))
    return -1, ()


def _keys_of(lines: Sequence[str], line: int) -> list[str]:
    top, _ = _table(lines, line)
    keys: list[str] = []
    for at in range(top + 1, len(lines)):
        if at > line and _HEADER.match(lines[at]):
            break
        if at != line and (key := _KEY.match(lines[at])) is not None:
            keys.append(key[1].strip('"'))
    return keys


def _tool_above(lines: Sequence[str], line: int, before: str) -> str:
    """Return the tool of the expected call that contains a line. Return "" if the call names no tool."""
    # The tool is named before the cursor or on a line above, up to the header of the list element.
    named: list[str] = _TOOL.findall(before)
    at = line
    while not named and at > 0 and not lines[at].lstrip().startswith("[["):
        at -= 1
        named = _TOOL.findall(lines[at])
    if not named:
        return ""
    return named[-1]


@dataclass(frozen=True)
class _Open:
    """A table (`{`) or list (`[`) that is not closed before the cursor: its key, and where its content starts."""

    bracket: str
    key: str
    start: int


def _open_at(text: str) -> list[_Open]:
    """Return the inline tables and lists that are not closed at the end of a text, the outermost first."""
    found: list[_Open] = []
    for token in _BRACKET.finditer(text):
        if token[0] in "{[":
            key = _BEFORE_VALUE.search(text, max(token.start() - _MAX_KEY_CHARS, 0), token.start())
            found.append(_Open(token[0], "" if key is None else key[1].strip('"'), token.end()))
        elif token[0] in "}]" and found:
            found.pop()
    return found


_MAX_KEY_CHARS = 100
"""The maximum number of characters of a key."""


def _pieces(inner: str) -> list[str]:
    """Split an inline table into entries. `inner` ends with the unfinished entry."""
    # Commas in strings and in nested tables or lists do not end an entry.
    pieces, depth, start = [], 0, 0
    for token in _SEPARATOR.finditer(inner):
        depth += (token[0] in "{[") - (token[0] in "}]")
        if token[0] == "," and depth == 0:
            pieces.append(inner[start : token.start()])
            start = token.end()
    return [*pieces, inner[start:]]


def _quoted(text: str) -> str:
    return value_text((), text)


_ASK_KEYS = frozenset({"ctrl+space", "ctrl+@"})
"""Textual's two names of Ctrl+Space."""


class TomlCompleting:
    """Shows completions in a TOML editor. `tools` returns the known tools.

    Completions appear when the user presses Ctrl+Space, and automatically in the name of a tool."""

    def __init__(
        self, editor: TomlEditor, completions: CompletionList, tools: Callable[[], Sequence[ToolDefinition]]
    ) -> None:
        self._editor, self._list, self._tools = editor, completions, tools
        self._offer: Offer | None = None

    def take_key(self, key: str) -> bool:
        """Handle a key while completions are displayed. Return whether the key was handled."""
        if key in _ASK_KEYS:
            self._show(is_requested=True)
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
        """Update the completions after the text changed."""
        line, column = self._editor.typed.cursor
        if TYPED_TOOL.search(self._editor.typed.lines[line][:column]) is not None:
            self._show(is_requested=False)
        else:
            self.close()

    def choose(self, completion: Completion) -> None:
        """Insert a completion in place of the typed part."""
        offer = self._offer
        self.close()
        if offer is not None:
            self._editor.replace_before_cursor(offer.start, completion.text)
            # The change of the text may have opened the completions again.
            self.close()

    def close(self) -> None:
        self._offer = None
        if self._list.is_open:
            self._list.close()

    def _show(self, *, is_requested: bool) -> None:
        typed = self._editor.typed
        offer = offer_at(typed.lines, typed.cursor, self._tools())
        if offer is None or (not is_requested and self._is_fully_typed(offer)):
            self.close()
            return
        self._offer = offer
        # Unrequested completions have no marked entry, so Enter still breaks the line.
        if is_requested:
            self._list.offer(offer.found, 0)
        else:
            self._list.offer(offer.found, None)
        size = self._editor.size
        self._list.place(self._editor.cell_of((typed.cursor[0], offer.start)), Region(0, 0, size.width, size.height))

    def _is_fully_typed(self, offer: Offer) -> bool:
        if len(offer.found) != 1:
            return False
        line, column = self._editor.typed.cursor
        return self._editor.typed.lines[line][offer.start : column] == offer.found[0].text.rstrip('"')
