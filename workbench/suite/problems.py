"""Problems of a suite file with places and messages, and helpers to write messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, Protocol

from workbench.dataclasses import dataclass
from workbench.startup import late_pattern

Severity = Literal["error", "warning"]

ProblemKind = Literal[
    "not TOML",
    "not UTF-8",
    "no cases",
    "several cases",
    "unknown tool",
    "tool of the subject",
    "order ignored",
    "",
]
"""The kind of a problem that other code recognises. It is "" for all other problems.

`several cases`: the message names another case by its index. `unknown tool`: no tool has the name. `tool of the
subject`: the suite does not define the tool, and only the first case that names it has the problem."""


@dataclass(frozen=True)
class Problem:
    """A problem of a suite file, with its place and a hint on how to solve it.

    `line` counts from 1. `where` is a path such as `cases[3].ordered[0].args.city`, and `case` is the name of the case
    at this place. An error prevents runs of the suite, and a warning allows them."""

    file: Path
    line: int | None
    where: str
    message: str
    hint: str = ""
    severity: Severity = "error"
    case: str = ""
    kind: ProblemKind = ""

    @property
    def place(self) -> str:
        """`where`, with the name of the case: `cases[3].user of "Two rooms"`."""
        if not self.case:
            return self.where
        return f"{self.where} of {quoted(self.case)}"

    def __str__(self) -> str:
        text = str(self.file)
        if self.line:
            text += f":{self.line}"
        text += f": {self.severity}:"
        if self.where:
            text += f" {self.place}:"
        text += f" {self.message}"
        if self.hint:
            text += f" ({self.hint})"
        return text


class _WithSeverity(Protocol):
    @property
    def severity(self) -> Severity: ...


def has_error(problems: Iterable[_WithSeverity]) -> bool:
    """Return whether any of the problems or findings is an error and not a warning."""
    return any(problem.severity == "error" for problem in problems)


Place = tuple[str | int, ...]
"""Keys and indices (from 0) from the top of the file, such as `("cases", 3, "ordered", 0, "args", "city")`."""

_BARE_KEY = late_pattern(r"[A-Za-z0-9_-]+")


def is_within(inner: str, outer: str) -> bool:
    """Return whether a place, as text, equals another place or lies inside it."""
    return inner == outer or inner.startswith((f"{outer}.", f"{outer}["))


def place_text(place: Iterable[str | int]) -> str:
    """Return a place as text: `cases[3].ordered[0].args.city`, with quotes around unusual keys."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        if text:
            text += "."
        if _BARE_KEY.fullmatch(part):
            text += part
        else:
            text += json.dumps(part, ensure_ascii=False)
    return text


def keys_of(place: Place) -> tuple[str, ...]:
    """Return a place without indices. The result is the same for all elements of an array."""
    return tuple(part for part in place if isinstance(part, str))


_MAX_QUOTE_CHARS = 40


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem whose line is not known yet."""

    place: Place
    message: str
    hint: str = ""
    severity: Severity = "error"
    kind: ProblemKind = ""


def warning(place: Place, message: str, hint: str = "", kind: ProblemKind = "") -> Finding:
    """Return a finding that does not prevent the suite from running."""
    return Finding(place, message, hint, "warning", kind)


def kind_of_value(value: object) -> str:
    """Return a TOML value in plain words: `the text "Paris"`, `the number 5`, `a list`."""
    match value:
        case bool():
            return str(value).lower()
        case "":
            return "an empty text"
        case str():
            return f"the text {quoted(value)}"
        case int() | float() if abs(value) < 1e15:
            return f"the number {value}"
        case int() | float():
            return "a number"
        case datetime() | date() | time():
            return "a date or time"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "nothing"


def quoted(text: str) -> str:
    """Return a text in quotes on one line, cut after 40 characters."""
    line = " ".join(text.split())
    if len(line) <= _MAX_QUOTE_CHARS:
        return f'"{line}"'
    return f'"{line[: _MAX_QUOTE_CHARS - 1]}…"'


def in_backticks(names: Iterable[str], joined: str = ", ") -> str:
    """Return names in backticks, with `joined` between them."""
    return joined.join(f"`{name}`" for name in names)


MIN_BEGINNING_CHARS = 3
"""Shortest beginning of a name that counts as similar. A shorter one would fit too many names."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the most similar known name, or "". Names that begin with `name` take precedence."""
    names = list(known)
    begun = [each for each in names if len(name) >= MIN_BEGINNING_CHARS and each.startswith(name)]
    nearest = begun or get_close_matches(name, names, n=1, cutoff=0.6)
    if nearest:
        return f"did you mean `{nearest[0]}`?"
    return ""


def message_with_line(problem: Problem, word: str) -> str:
    """Return a problem's message with its line: `line 1: the file is empty`, `line 13 is not TOML`.

    `word` stands before the number, such as `line`."""
    if not problem.line:
        return problem.message
    if problem.kind in ("not TOML", "not UTF-8"):
        return f"{word} {problem.line} {problem.message}"
    return f"{word} {problem.line}: {problem.message}"


# Rules read TOML whose types are not checked yet. These two functions skip values of wrong types, because other code
# reports them.


def tables(value: object) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield each table of an array with its index. A value that is not an array yields nothing."""
    if isinstance(value, list):
        for index, element in enumerate(value):
            if isinstance(element, dict):
                yield index, element


def table(value: object) -> dict[str, object]:
    """Return a table unchanged, and an empty table for any other value."""
    if isinstance(value, dict):
        return value
    return {}


def duplicate_findings(elements: object, key: str, place: Place, plural: str) -> Iterator[Finding]:
    """Find duplicate values of a key that must be unique within an array of tables."""
    first: dict[str, int] = {}
    for index, element in tables(elements):
        name = element.get(key)
        if not isinstance(name, str):
            continue
        if name in first:
            message = f"two {plural} with the {key} {quoted(name)}: also {place[-1]}[{first[name]}]"
            yield Finding((*place, index, key), message, f"give one of them another {key}")
        # Every later element is reported as a repetition of the first.
        first.setdefault(name, index)


def exactly_one(element: dict[str, object], names: tuple[str, ...], place: Place, owner: str) -> Iterator[Finding]:
    """Check that a table has exactly one of some keys. `owner` names the table in messages."""
    # Keys have the order of the file. The first key counts, and the others are reported.
    given = [name for name in element if name in names]
    if not given:
        yield Finding(place, f"{owner} needs one of {in_backticks(names)}")
    for name in given[1:]:
        message = f"{owner} takes only one of {in_backticks(names)}: `{given[0]}` is given too"
        yield Finding((*place, name), message, "remove one of them")


def requires_key(element: dict[str, object], options: dict[str, str], place: Place) -> Iterator[Finding]:
    """Check keys that need another key. `options` maps each key to the key it needs."""
    for option, needed in options.items():
        if option in element and needed not in element:
            yield Finding((*place, option), f"`{option}` needs `{needed}`", "remove it")
