"""The files that a configuration of promptfoo names: prompts, tests, tools, variables. Only data is read, and only
below the configuration's folder: code is never run, and what is read gets into a suite."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from workbench.importing.bounds import RefusedError
from workbench.importing.imported import Note
from workbench.importing.reading import Node, read_source
from workbench.limits import MAX_INCLUDED_FILES
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.typed_json import json_text

_SCHEME = "file://"
_DATA = {".yaml", ".yml", ".json", ".jsonl", ".ndjson", ".csv", ".tsv"}
_TEXTS = {".txt", ".md", ".j2", ".njk", ".html", ".xml", ""}
_CODE = re.compile(r".*\.(?:[cm]?[jt]s|py|rb|go|sh|exe)(?::\w+)?")
_ASSERTION = re.compile(r"(not-)?([a-z][a-z0-9:-]*?)(?:\(([0-9.]+)\))?(?::\s*(.*))?", 16)  # 16: a dot is any character
_LISTED = {"contains-any", "contains-all", "icontains-any", "icontains-all", "tool-call-f1"}
_KINDS = _LISTED | {
    "contains",
    "cost",
    "equals",
    "icontains",
    "is-json",
    "is-valid-openai-function-call",
    "is-valid-openai-tools-call",
    "javascript",
    "latency",
    "llm-rubric",
    "python",
    "regex",
    "similar",
    "starts-with",
    "trajectory:tool-used",
}


class Files:
    """Reads the files of a configuration. What could not be read is among the notes, and stays as it is written."""

    def __init__(self, folder: Path) -> None:
        self.notes: list[Note] = []
        self._folder = folder

    def filled(self, node: Node, level: int = 0) -> Node:
        """Returns a value in which the content of files stands for their names."""
        match node.value:
            case dict() as table:
                inner: JsonValue = {
                    key: self.filled(Node(each, f"{node.place}.{key}".lstrip(".")), level).value
                    for key, each in table.items()
                }
            case list():
                inner = [self.filled(each, level).value for each in node.items()]
            case str() as text if text.startswith(_SCHEME) and level < MAX_INCLUDED_FILES:
                found = [self.filled(Node(each, node.place), level + 1).value for each in self._contents(text, node)]
                inner = found[0] if len(found) == 1 else found or text
            case _:
                inner = node.value
        return Node(inner, node.place)

    def tests(self, node: Node) -> list[Node]:
        """Returns the tests of a configuration: those in it and those of its files."""
        found: list[Node] = []
        for each in node.listed():
            named = each.get("path") if each.has("path") and not each.has("vars") else each
            if named is None or not isinstance(named.value, str):
                found.append(self.filled(each))
                continue
            for content in self._contents(named.value, named, tests=True):
                rows = content if isinstance(content, list) else [content]
                found += [self.filled(Node(row, f"{each.place}[{at}]")) for at, row in enumerate(rows)]
        return found

    def prompts(self, node: Node) -> Iterator[Node]:
        """Returns the texts of prompts, those in files too: a text file may hold several, with `---` between them."""
        for each in node.listed():
            prompt = each.first("raw", "content") or each.get("id") or each
            if not isinstance(prompt.value, str) or not self._is_file(prompt.value):
                yield prompt
                continue
            for content in self._contents(prompt.value, prompt):
                if isinstance(content, str):
                    parts = content.split("\n---\n")
                    yield from (Node(part.strip(), prompt.place) for part in parts if part.strip())
                    continue
                rows = content if isinstance(content, list) else []
                if prompt.value.endswith((".csv", ".tsv", ".jsonl", ".ndjson")):
                    texts = [row.get("prompt", row) if isinstance(row, dict) else row for row in rows]
                else:
                    texts = [content]
                for text in texts:
                    yield Node(text if isinstance(text, str) else json_text(text), prompt.place)

    def _is_file(self, text: str) -> bool:
        if text.startswith(_SCHEME):
            return True
        if "\n" in text or len(text) > 200 or Path(text).suffix not in _DATA | {".txt", ".md"}:
            return False
        return (self._folder / text).is_file()

    def _contents(self, text: str, node: Node, *, tests: bool = False) -> list[JsonValue]:
        """Returns what files hold, empty where that cannot be read."""
        found: list[JsonValue] = []
        try:
            for path in self._paths(text.removeprefix(_SCHEME)):
                content = _content(path)
                if tests and path.suffix.lower() in (".csv", ".tsv") and isinstance(content, list):
                    content = _tests_of_rows(content)
                found.append(content)
        except (RefusedError, OSError, ValueError, NotImplementedError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self.notes.append(Note(node.place, f"{text}: {why}"))
            return []
        return found

    def _paths(self, name: str) -> list[Path]:
        if _CODE.fullmatch(name):
            raise RefusedError("is code, and importing runs nothing")
        paths = sorted(self._folder.glob(name)) if set("*?[") & set(name) else [self._folder / name]
        if not paths:
            raise RefusedError("there is no such file")
        top = self._folder.resolve()
        if any(not path.resolve().is_relative_to(top) for path in paths):
            raise RefusedError("is outside of the configuration's folder: copy it there")
        return paths


def _content(path: Path) -> JsonValue:
    kind = path.suffix.lower()
    if kind in _DATA:
        return read_source(path).root.value
    if kind in _TEXTS:
        return path.read_bytes().decode("utf-8-sig").rstrip("\n")
    raise RefusedError(f"is a file of the kind {kind}")


def _tests_of_rows(rows: list[JsonValue]) -> list[JsonValue]:
    """Returns the rows of a CSV file as tests: columns that begin with `__` say what is expected, others are
    variables. A cell that is empty in one row is an empty variable."""
    tables = [row for row in rows if isinstance(row, dict)]
    names = list(dict.fromkeys(name for row in tables for name in row if not name.startswith("__")))
    found: list[JsonValue] = []
    for row in tables:
        asserts = [
            _assertion(value)
            for name, value in row.items()
            if name.startswith("__expected") and isinstance(value, str) and value.strip()
        ]
        test: dict[str, JsonValue] = {"vars": {name: row.get(name, "") for name in names}, "assert": asserts}
        if "__description" in row:
            test["description"] = row["__description"]
        left = {name: row[name] for name in row if name.startswith("__") and not name.startswith("__expected")}
        found.append({**{name: value for name, value in left.items() if name != "__description"}, **test})
    return found


def _assertion(text: str) -> JsonValue:
    """Returns an assertion that is written in one cell: `type: value`, `type(threshold): value`, or the answer."""
    text = text.strip()
    for beginning in ("javascript:", "fn:", "eval:"):
        if text.startswith(beginning):
            return {"type": "javascript", "value": text.removeprefix(beginning).strip()}
    if text.startswith("grade:"):
        return {"type": "llm-rubric", "value": text.removeprefix("grade:").strip()}
    match = _ASSERTION.fullmatch(text)
    if match is None or match[2] not in _KINDS:
        return {"type": "equals", "value": text}
    made: dict[str, JsonValue] = {"type": (match[1] or "") + match[2]}
    if match[4]:
        made["value"] = [part.strip() for part in match[4].split(",")] if match[2] in _LISTED else match[4]
    if match[3]:
        try:
            made["threshold"] = float(match[3])
        except ValueError:
            return {"type": "equals", "value": text}
    return made
