"""Validates arguments and results against a tool's own schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from workbench.checks.patterns import SearchError
from workbench.checks.plain_schemas import accepts, is_plainly_valid, plainly_accepts
from workbench.checks.schemas import validator_of

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

MAX_MESSAGE_CHARS = 300

_ALIKE = (
    *("http://json-schema.org/draft-06/schema", "http://json-schema.org/draft-07/schema"),
    *("https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema"),
)
"""The dialects in which the commonest keywords mean the same; what a server declares is mostly one of these."""


class BrokenSchemaError(Exception):
    """A tool's schema cannot be used. The message says why."""


class Violation(NamedTuple):
    """One thing that a schema refuses.

    `path` leads to the value (`("to", 0)`), `rule` is the keyword of JSON Schema that refuses it (`required`, `enum`).
    A property that is missing or not allowed is the end of the path.
    """

    path: tuple[str | int, ...]
    rule: str
    message: str

    @property
    def argument(self) -> str | None:
        """The top-level argument, `None` where the arguments as a whole are refused."""
        return str(self.path[0]) if self.path else None

    @property
    def place(self) -> str:
        """The path as text: `to[0].name`; empty for the arguments as a whole."""
        return _place("", self.path).removeprefix(".")


class ArgumentSchema:
    """The schema of a tool's arguments, prepared to validate many calls.

    It is read in the dialect that it declares, else in draft 2020-12; nothing is fetched for it.
    """

    def __init__(self, schema: Mapping[str, JsonValue]) -> None:
        self._schema = schema
        plain = {name: value for name, value in schema.items() if name != "$schema"}
        alike = str(schema.get("$schema", _ALIKE[-1])).rstrip("#") in _ALIKE
        self._plain = plain if alike and is_plainly_valid(plain) else None
        """The schema, where jsonschema is not needed to see that it accepts something."""
        self._validator: Draft202012Validator | None = None

    def violations(self, arguments: Mapping[str, JsonValue]) -> tuple[Violation, ...]:
        """Return everything that the schema refuses, in the order of places. Raises BrokenSchemaError."""
        if self._plain is not None and accepts(self._plain, arguments):
            return ()
        with _broken_schema():
            if self._validator is None:
                self._validator = validator_of(self._schema, of_its_dialect=True)
            errors = list(self._validator.iter_errors(dict(arguments)))
        found = [violation for error in errors for violation in _violations_of(error)]
        return tuple(sorted(found, key=lambda violation: [str(part) for part in violation.path]))


def argument_problems(arguments: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Return the violations as text, each with its place: `args.to[0]: 5 is not of type 'string'`. Raises
    BrokenSchemaError."""
    return tuple(
        f"{_place('args', found.path)}: {found.message}" for found in ArgumentSchema(schema).violations(arguments)
    )


def result_problem(content: JsonValue, schema: Mapping[str, JsonValue]) -> str | None:
    """Return the first thing in structured content that its schema refuses. Raises BrokenSchemaError."""
    if "$schema" not in schema and plainly_accepts(schema, content):
        return None
    with _broken_schema():
        problem = next(validator_of(schema, of_its_dialect=True).iter_errors(content), None)
    return _short(problem.message) if problem is not None else None


def _violations_of(error: ValidationError) -> Iterator[Violation]:
    """Yield a violation for each property that is missing or not allowed, else one for the error."""
    path, rule, value = tuple(error.absolute_path), str(error.validator), error.instance
    if rule == "required" and isinstance(value, Mapping) and isinstance(error.validator_value, list):
        # jsonschema yields one error for each missing name, which only its message holds.
        missing = [name for name in error.validator_value if name not in value and error.message.startswith(repr(name))]
        if len(missing) == 1:
            yield Violation((*path, missing[0]), rule, _short(error.message))
            return
    schema = error.schema
    if rule == "additionalProperties" and isinstance(value, Mapping) and isinstance(schema, Mapping):
        known = schema.get("properties", {}) if error.validator_value is False else value
        extra = [name for name in value if name not in known and repr(name) in error.message]
        for name in extra:
            yield Violation((*path, name), rule, _short(f"{name!r} is not a property of the schema"))
        if extra:
            return
    yield Violation(path, rule, _short(error.message))


@contextmanager
def _broken_schema() -> Iterator[None]:
    """Convert errors of a schema to BrokenSchemaError."""
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
    return message if len(message) <= MAX_MESSAGE_CHARS else message[:MAX_MESSAGE_CHARS] + " …"
