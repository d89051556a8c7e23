"""Arguments against a tool's own schema, before a call is made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.trajectory.messages import JsonValue

LONGEST_MESSAGE = 300


class BrokenSchemaError(Exception):
    """A tool's schema cannot be used to check anything; the message says why."""


def argument_problems(arguments: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """What the schema refuses, each with its place: `args.to[0]: 5 is not of type 'string'`. Nothing is fetched for a
    schema. Raises BrokenSchemaError when it is none."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        Draft202012Validator.check_schema(schema)
        found = list(Draft202012Validator(schema, registry=Registry()).iter_errors(dict(arguments)))
    except SchemaError as error:
        raise BrokenSchemaError(f"{_place('schema', error.absolute_path)}: {_short(error.message)}") from error
    except Unresolvable as error:
        raise BrokenSchemaError(f"it refers to what it does not hold: {_short(str(error))}") from error
    except RecursionError as error:
        raise BrokenSchemaError("it is nested too deeply") from error
    found.sort(key=lambda problem: [str(part) for part in problem.absolute_path])
    return tuple(f"{_place('args', problem.absolute_path)}: {_short(problem.message)}" for problem in found)


def _place(root: str, path: Sequence[str | int]) -> str:
    return root + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def _short(message: str) -> str:
    return message if len(message) <= LONGEST_MESSAGE else message[:LONGEST_MESSAGE] + " …"
