"""Writes TOML in varied styles, and records the line of each value independently of the scanner."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from hypothesis import strategies as st

from workbench.suite.problems import Place

Value = str | int | bool | list["Value"] | dict[str, "Value"]

KEYS = st.sampled_from(["a", "b-1", "3", "", "x y", "a.b", "#", "[k]", "ü", "'", 'q"', "\\", "tab\t", "cases"])
TEXTS = st.text(st.sampled_from("ab \n\"'#[]{}=,\\\té\u2028"), max_size=12)
SCALARS = TEXTS | st.integers(-9, 9) | st.booleans()
VALUES: st.SearchStrategy[Value] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=5)


@dataclass
class Writer:
    """Draws a style for each value that it writes. `lines` has the line of every key and list element."""

    draw: st.DrawFn
    text: str = ""
    lines: dict[Place, int] = field(default_factory=dict)

    def note(self, place: Place) -> None:
        self.lines.setdefault(place, self.text.count("\n") + 1)

    def choose(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def document(self, table: dict[str, Value], place: Place = ()) -> None:
        """Write plain values before the parts that need headers, as TOML requires."""
        later: list[tuple[str, Value]] = []
        for key, value in table.items():
            if (isinstance(value, dict) and self.draw(st.booleans())) or (
                is_array_of_tables(value) and self.draw(st.booleans())
            ):
                later.append((key, value))
            else:
                self.text += self.choose("", "\n", "# a = 1\n", "  ", "\t# [x]\n\n")
                self.pair(key, value, place)
                self.text += self.choose("\n", " # [[b]] = 'x\n", "\n\n", "\r\n")
        for key, value in later:
            inner = (*place, key)
            elements: list[tuple[Place, Value, str]] = [(inner, value, "[{}]")]
            if isinstance(value, list):
                elements = [((*inner, index), element, "[[{}]]") for index, element in enumerate(value)]
            for at, element, brackets in elements:
                self.text += self.choose("", "\n", "# above\n", "\n  # above\n\t")
                for length in range(1, len(at) + 1):
                    if length < len(at) or isinstance(at[-1], int):
                        self.note(at[:length])
                self.lines[at] = self.text.count("\n") + 1
                names = [self.key(part) for part in at if isinstance(part, str)]
                self.text += brackets.format(self.choose(".", " . ", "\t.").join(names)) + self.choose("\n", " # ]\n")
                assert isinstance(element, dict)
                self.document(element, at)

    def key(self, key: str) -> str:
        styles = [json.dumps(key, ensure_ascii=self.draw(st.booleans()))]
        if key and all(character.isascii() and (character.isalnum() or character in "-_") for character in key):
            styles.append(key)
        if "'" not in key and "\t" not in key:
            styles.append(f"'{key}'")
        return self.choose(*styles)

    def pair(self, key: str, value: Value, place: Place) -> None:
        at = (*place, key)
        self.note(at)
        self.text += self.key(key)
        while isinstance(value, dict) and len(value) == 1 and self.draw(st.booleans()):
            [(key, value)] = value.items()
            at = (*at, key)
            self.note(at)
            self.text += self.choose(".", " . ") + self.key(key)
        self.text += self.choose("=", " = ", "\t=  ")
        self.value(value, at)

    def value(self, value: Value, place: Place) -> None:
        match value:
            case bool():
                self.text += "true" if value else "false"
            case str():
                self.text += self.written_text(value)
            case int():
                self.text += str(value)
            case list():
                self.text += "["
                for index, element in enumerate(value):
                    self.text += self.choose("", " ", "\n", " # ] ,\n  ", "\n# '''\n")
                    self.note((*place, index))
                    self.value(element, (*place, index))
                    is_last = index == len(value) - 1
                    self.text += self.choose("", " ", "\n") + (self.choose("", ",") if is_last else ",")
                self.text += self.choose("", "\n", " # [\n") + "]"
            case dict():
                self.text += "{"
                for number, (key, inner) in enumerate(value.items()):
                    self.text += self.choose("", " ") + (", " if number else "")
                    self.pair(key, inner, place)
                self.text += self.choose("", " ") + "}"

    def written_text(self, text: str) -> str:
        escaped = json.dumps(text, ensure_ascii=self.draw(st.booleans()))
        styles = [
            escaped,
            f'"""{escaped[1:-1]}"""',
            f'"""\n{escaped[1:-1]}"""',
            f'"""\\\n  \n {self.no_blanks(escaped)}"""',
        ]
        quotes = escaped[1:-1].replace('\\"', '"').replace("\\n", "\n")
        if "\\" not in text and '"""' not in quotes and not quotes.endswith('"""'):
            styles.append(f'"""\n{quotes}"""')
        if "'" not in text and "\n" not in text:
            styles.append(f"'{text}'")
        if "'''" not in text:
            styles.append(f"'''\n{text}'''")
        return self.choose(*styles)

    def no_blanks(self, escaped: str) -> str:
        """Escape blanks after a line-ending backslash, which would be trimmed."""
        inner = escaped[1:-1]
        return inner if not inner.startswith((" ", "\t", "\n")) else "\\u0020" + inner[1:]


def is_array_of_tables(value: Value) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(element, dict) for element in value)


@st.composite
def written_documents(draw: st.DrawFn) -> tuple[dict[str, Value], str, dict[Place, int]]:
    """Draw a document, its text in some style, and the line of every place."""
    document = draw(DOCUMENTS)
    writer = Writer(draw)
    writer.document(document)
    return document, writer.text, writer.lines
