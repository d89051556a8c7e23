"""Problems of a suite file: their places, their messages, and the words in which messages are put."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from workbench.dataclasses import dataclass
from workbench.startup import late_pattern

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Problem:
    """One problem of a suite file: what, where, and what to do about it.

    The place is a file, a line from 1, and a path such as `cases[3].ordered[0].args.city`. A suite with an error cannot
    run; a warning only informs."""

    file: Path
    line: int | None
    where: str
    message: str
    hint: str = ""
    severity: Severity = "error"

    def __str__(self) -> str:
        text = str(self.file)
        if self.line:
            text += f":{self.line}"
        text += f": {self.severity}:"
        if self.where:
            text += f" {self.where}:"
        text += f" {self.message}"
        if self.hint:
            text += f" ({self.hint})"
        return text


Place = tuple[str | int, ...]
"""Keys and indices (from 0) from the top of the file, such as `("cases", 3, "ordered", 0, "args", "city")`."""

_BARE_KEY = late_pattern(r"[A-Za-z0-9_-]+")


def written(place: Iterable[str | int]) -> str:
    """Return a place for a person: `cases[3].ordered[0].args.city`, unusual keys in quotes."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = part if _BARE_KEY.fullmatch(part) else json.dumps(part, ensure_ascii=False)
            text += f".{key}" if text else key
    return text


def keys_of(place: Place) -> tuple[str, ...]:
    """Return a place without its indices, which tells the kind of element there."""
    return tuple(part for part in place if isinstance(part, str))


_MAX_QUOTE_CHARS = 40


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem before its line is known."""

    place: Place
    message: str
    hint: str = ""
    severity: Severity = "error"


def warning(place: Place, message: str, hint: str = "") -> Finding:
    """Return a finding that does not prevent the suite from running."""
    return Finding(place, message, hint, "warning")


def described(value: object) -> str:
    """Return a TOML value in plain words: `the text "Paris"`, `the number 5`, `a list`."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f"the text {quoted(value)}" if value else "an empty text"
        case int() | float():
            return f"the number {value}" if abs(value) < 1e15 else "a number"
        case datetime() | date() | time():
            return "a date or time"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "nothing"


def quoted(text: str) -> str:
    """Return a text in quotes on one line, shortened when it is long."""
    line = " ".join(text.split())
    if len(line) <= _MAX_QUOTE_CHARS:
        return f'"{line}"'
    return f'"{line[: _MAX_QUOTE_CHARS - 1]}…"'


def code(names: Iterable[str], joined: str = ", ") -> str:
    """Return names in backticks."""
    return joined.join(f"`{name}`" for name in names)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question about the nearest known name; empty when none is near."""
    nearest = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean `{nearest[0]}`?" if nearest else ""


def tables(value: object) -> Iterator[tuple[int, dict[str, object]]]:
    """Return the tables of an array, each with its index; nothing when the value is not an array."""
    if isinstance(value, list):
        for index, element in enumerate(value):
            if isinstance(element, dict):
                yield index, element


def table(value: object) -> dict[str, object]:
    """Return a table unchanged; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def at_line(problem: Problem, word: str) -> str:
    """Describe a problem with its line: `line 1: the file is empty`, `line 13 is not TOML`.

    `word` is the word for line."""
    if not problem.line:
        return problem.message
    if problem.message.startswith("is "):
        return f"{word} {problem.line} {problem.message}"
    return f"{word} {problem.line}: {problem.message}"
