"""A finding before its line is known, and the words in which findings are put."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from difflib import get_close_matches

from workbench.suite.places import Place
from workbench.suite.problems import Severity

_LONGEST_QUOTE = 40


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong at one place of a suite, and what to do about it."""

    place: Place
    message: str
    hint: str = ""
    severity: Severity = "error"


def warning(place: Place, message: str, hint: str = "") -> Finding:
    """A finding that does not keep the suite from running."""
    return Finding(place, message, hint, "warning")


def described(value: object) -> str:
    """A TOML value in plain words: `the text "Paris"`, `the number 5`, `a list`."""
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
    """A text in quotes on one line, shortened when it is long."""
    line = " ".join(text.split())
    return f'"{line}"' if len(line) <= _LONGEST_QUOTE else f'"{line[: _LONGEST_QUOTE - 1]}…"'


def code(names: Iterable[str], joined: str = ", ") -> str:
    """Names in backticks."""
    return joined.join(f"`{name}`" for name in names)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question about the nearest known name; empty when none is near."""
    nearest = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean `{nearest[0]}`?" if nearest else ""


def tables(value: object) -> Iterator[tuple[int, dict[str, object]]]:
    """The tables of an array, each with its index; nothing when the value is not an array."""
    if isinstance(value, list):
        for index, element in enumerate(value):
            if isinstance(element, dict):
                yield index, element


def table(value: object) -> dict[str, object]:
    """A table as it is; an empty one for anything else."""
    return value if isinstance(value, dict) else {}
