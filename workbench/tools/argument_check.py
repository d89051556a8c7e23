"""Validates arguments and results against a tool's own schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from workbench.checks.patterns import SearchError
from workbench.checks.plain_values import plainly_accepts
from workbench.checks.schemas import validator_of
from workbench.trajectory.messages import JsonValue

LONGEST_MESSAGE = 300


class BrokenSchemaError(Exception):
    """A tool's schema cannot be used. The message says why."""


def argument_problems(arguments: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Returns what the schema refuses, each with its place: `args.to[0]: 5 is not of type 'string'`. Nothing is fetched
    for a schema. Raises BrokenSchemaError."""
    if plainly_accepts(schema, arguments):
        return ()
    with _broken_schema():
        found = list(validator_of(schema).iter_errors(dict(arguments)))
    found.sort(key=lambda problem: [str(part) for part in problem.absolute_path])
    return tuple(f"{_place('args', problem.absolute_path)}: {_short(problem.message)}" for problem in found)


def result_problem(content: JsonValue, schema: Mapping[str, JsonValue]) -> str | None:
    """Returns the first thing in structured content that its schema refuses. Raises BrokenSchemaError."""
    if "$schema" not in schema and plainly_accepts(schema, content):
        return None
    with _broken_schema():
        problem = next(validator_of(schema, of_its_dialect=True).iter_errors(content), None)
    return _short(problem.message) if problem is not None else None


@contextmanager
def _broken_schema() -> Iterator[None]:
    """Converts errors of a schema to BrokenSchemaError."""
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    try:
        yield
    except SchemaError as error:
        raise BrokenSchemaError(f"{_place('schema', error.absolute_path)}: {_short(error.message)}") from error
    except Unresolvable as error:
        raise BrokenSchemaError(f"it refers to what it does not hold: {_short(str(error))}") from error
    except SearchError as error:
        raise BrokenSchemaError(str(error)) from error
    except RecursionError as error:
        raise BrokenSchemaError("it is nested too deeply") from error


def _place(root: str, path: Sequence[str | int]) -> str:
    return root + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def _short(message: str) -> str:
    return message if len(message) <= LONGEST_MESSAGE else message[:LONGEST_MESSAGE] + " …"
