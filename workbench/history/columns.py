"""Validates values from a history. SQLite accepts any type in any column, and a stranger may have made the file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args

from workbench.dataclasses import parsed_json
from workbench.grading.argument_counts import ToolArguments
from workbench.grading.grade import UserOutcome
from workbench.grading.run_summary import UserFigures
from workbench.grading.status import Status
from workbench.history.records import Kind

Reader = Callable[[Any], Any]
"""A validator. It returns the value of a column, and raises ValueError for an invalid value."""

# A larger number counts as damage. Sums of smaller numbers stay small enough to be shown.
_MAX_NUMBER = 1e15

# This time is in the year 9892. Python's dates end with the year 9999.
_LAST_MS = 250_000_000_000_000


def text(value: Any) -> str:
    """Return a stored text. A text with lone surrogates is stored as bytes, which are decoded."""
    if type(value) is bytes:
        with suppress(UnicodeDecodeError):
            return value.decode("utf-8", "surrogatepass")
    if type(value) is not str:
        raise ValueError("must be a text")
    return value


def stored(text: str | None) -> str | bytes | None:
    """Return a text in the form that SQLite can store. A text with lone surrogates becomes bytes.

    SQLite's UTF-8 has no lone surrogates, but models can write them, and file names can contain them."""
    if text is None or text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def path(value: Any) -> str:
    """Return a text that can be a path; raise ValueError if it has null characters."""
    name = text(value)
    if "\0" in name:
        raise ValueError("must be a valid path")
    return name


def integer(value: Any) -> int:
    """Return the value if it is a whole number; otherwise raise ValueError."""
    if type(value) is not int:
        raise ValueError("must be a whole number")
    return value


def count(value: Any) -> int:
    """Return the value if it is a whole number of 0 or more; otherwise raise ValueError."""
    if integer(value) < 0:
        raise ValueError("must not be negative")
    return int(value)


def number(value: Any) -> float:
    """Return the value if it is a finite number of at most 1e15 in magnitude; otherwise raise ValueError."""
    if type(value) not in (int, float) or not math.isfinite(value) or abs(value) > _MAX_NUMBER:
        raise ValueError("must be a number")
    return value  # type: ignore[no-any-return]


def metrics(value: Any) -> tuple[tuple[str, float], ...]:
    """Return metrics as pairs of a name and a value from 0 to 1. The stored form is JSON."""
    found = parsed_json(text(value))
    if not isinstance(found, dict):
        raise ValueError("must be an object with metrics from 0 to 1")
    for metric in found.values():
        if type(metric) not in (int, float) or not 0 <= metric <= 1:
            raise ValueError("must be an object with metrics from 0 to 1")
    return tuple(found.items())


def kinds(value: Any) -> tuple[str, ...]:
    """Return the kinds of deviations of an endpoint from its API, read from a JSON list."""
    found = parsed_json(text(value))
    if not isinstance(found, list):
        raise ValueError("must be a list of kinds of deviations")
    return tuple(map(text, found))


def user_figures(value: Any) -> UserFigures:
    """Return the token count and the cost of the model that played a conversation's user, read from JSON."""
    found = parsed_json(text(value))
    if not isinstance(found, dict) or found.keys() != set(UserFigures._fields):
        raise ValueError("must be the figures of a user")
    return UserFigures(optional(count)(found["tokens"]), optional(number)(found["cost_usd"]))


def tool_arguments(value: Any) -> tuple[ToolArguments, ...]:
    """Return for each tool how many calls had valid, checked and unknown arguments, read from JSON."""
    found = parsed_json(text(value))
    if not isinstance(found, dict):
        raise ValueError("must be counts of calls by tool")
    tools = []
    for tool, counts in found.items():
        if not isinstance(counts, list) or len(counts) != 3:
            raise ValueError("must be counts of calls by tool")
        tools.append(ToolArguments(tool, *map(count, counts)))
    return tuple(tools)


def score(value: Any) -> float:
    """Return a score, which may be any number except NaN and positive infinity.

    Scores are from 0 to 1, but a suite with `arcade_compatible` can have scores outside this range."""
    if type(value) not in (int, float) or not value < math.inf:
        raise ValueError("must be a score")
    return value  # type: ignore[no-any-return]


def moment_ms(value: Any) -> float:
    """Return the value if it can be a time in milliseconds since 1970; otherwise raise ValueError."""
    if not 0 <= number(value) <= _LAST_MS:
        raise ValueError("must be a time")
    return value  # type: ignore[no-any-return]


def json_object(value: Any) -> dict[str, Any]:
    found = parsed_json(text(value))
    if type(found) is not dict:
        raise ValueError("must be an object")
    return found


def one_of(*words: str) -> Reader:
    """Return a validator that accepts the given texts."""

    def read(value: Any) -> str:
        if (found := text(value)) not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return found

    return read


def optional(inner: Reader) -> Reader:
    """Return a reader that returns `None` for NULL and passes other values to `inner`."""
    return lambda value: None if value is None else inner(value)


def read(columns: Mapping[str, Reader], row: Sequence[Any]) -> list[Any]:
    """Return the validated values of a row.

    Raises ValueError with the name of the first invalid column."""
    try:
        return [column(value) for column, value in zip(columns.values(), row, strict=True)]
    except ValueError:
        # The name is looked up only after a failure, because this function runs for every row of every batch.
        for (name, column), value in zip(columns.items(), row, strict=True):
            try:
                column(value)
            except ValueError as error:
                raise ValueError(f"{name} {error}") from None
        raise


def readable(columns: Mapping[str, Reader], row: Sequence[Any]) -> dict[str, Any]:
    """Return the valid values of a row, keyed by column name. Invalid values are left out."""
    found: dict[str, Any] = {}
    for (name, column), value in zip(columns.items(), row, strict=True):
        with suppress(ValueError):
            found[name] = column(value)
    return found


SUITE: Mapping[str, Reader] = {
    "id": integer,
    "project": path,
    "path": path,
    "hash": text,
    "name": text,
    "cases": count,
}
BATCH: Mapping[str, Reader] = {
    "id": integer,
    "name": optional(text),
    "kind": one_of(*get_args(Kind)),
    "started_at": text,
    "ended_at": optional(text),
    "program": text,
    "settings": json_object,
    "planned": count,
}
PART: Mapping[str, Reader] = {
    "batch": integer,
    "suite": integer,
    "model": text,
    "planned": count,
    "cases": count,
    **dict.fromkeys((status.column for status in Status), count),
    "valid_calls": count,
    "checked_calls": count,
    "user_errors": count,
    "gave_up": count,
}


def finished_status(value: Any) -> Status:
    try:
        return Status(text(value))
    except ValueError:
        raise ValueError(f"must be one of {', '.join(Status)}") from None


RUN: Mapping[str, Reader] = {
    "id": integer,
    "batch": integer,
    "place": count,
    "suite": integer,
    "case_id": text,
    "case_name": text,
    "model": text,
    "model_of_suite": integer,
    "repeat": count,
    "decided_by": optional(text),
    "is_fork": integer,
    "status": optional(finished_status),
    "score": optional(score),
    "reason": optional(text),
    "broken": optional(integer),
    "options": optional(text),
    "began_ms": optional(moment_ms),
    "ended_ms": optional(moment_ms),
    "latency_ms": optional(number),
    "first_token_ms": optional(number),
    "input_tokens": optional(integer),
    "output_tokens": optional(integer),
    "cost_usd": optional(number),
    "asked": optional(integer),
    "loop_ms": optional(number),
    "metrics": optional(metrics),
    "arguments": optional(tool_arguments),
    "repaired": optional(kinds),
    "agent": optional(text),
    "player": optional(user_figures),
    "user_outcome": optional(one_of(*get_args(UserOutcome))),
}
_OF_OUTLINES = ("place", "suite", "case_id", "case_name", "model", "status")
OUTLINE: Mapping[str, Reader] = {name: RUN[name] for name in _OF_OUTLINES}
GRADING: Mapping[str, Reader] = {"id": integer, "graded_at": text, "program": text}
