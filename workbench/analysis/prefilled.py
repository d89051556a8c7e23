"""What the arguments of a new expected call are at first, from the schema of its tool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workbench.checks.check import OPTION_NAMES, SWALLOWED, check_names_in
from workbench.checks.patterns import SearchError
from workbench.checks.schemas import plainly_accepts, validator_of
from workbench.suite.render import Table, one_line
from workbench.trajectory.json_schema import (
    Schema,
    is_number,
    keyword,
    properties_of,
    required_names,
    suggested_values,
    types_of,
    with_definitions,
)


def first_value(name: str, schema: Schema | None) -> object:
    """Return what a new argument is expected to be at first: the first suggestion that the schema accepts, otherwise a
    number or true. What has none of these only has to be `present`, or null where nothing else is allowed."""
    types = types_of(schema)
    if types == {"null"}:
        return {"equals_null": True}
    suggested = suggested_values(schema)
    plain = () if suggested or types & {"string", "array", "object"} else _plain_values(schema or {}, types)
    for value in (*suggested, *plain):
        if _is_written(value) and (schema is None or refused_parts({"value": value}, _one_property(schema)) == ()):
            return as_check(name, value)
    return {"present": True}


def required_args(parameters: Schema) -> Table:
    """Return the arguments that a tool requires, in the order of its schema, each as `first_value`."""
    names = required_names(parameters)
    known = properties_of(parameters)
    ordered = sorted(dict.fromkeys(names), key=lambda name: list(known).index(name) if name in known else len(known))
    args: Table = {}
    for name in ordered:
        schema = known.get(name)
        args[name] = first_value(name, with_definitions(schema, parameters) if isinstance(schema, Mapping) else None)
    # A part that refers to the whole (`#`) can only be checked in it.
    refused = refused_parts(values_of(args), parameters)
    return {name: {"present": True} if refused is None or name in refused else args[name] for name in args}


def is_open(value: object) -> bool:
    """Return whether an argument of `required_args` still has to be filled in."""
    return value == {"present": True}


def refused_parts(arguments: Mapping[str, object], schema: Schema) -> tuple[str, ...] | None:
    """Return the arguments that a schema refuses, an empty name for all of them together; `None` if it cannot be
    used."""
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    if plainly_accepts(schema, arguments):
        return ()
    try:
        errors = validator_of(schema, of_its_dialect=True).iter_errors(dict(arguments))
        return tuple(str(error.absolute_path[0]) if error.absolute_path else "" for error in errors)
    except (SchemaError, Unresolvable, SearchError, RecursionError, OverflowError):
        return None


def as_check(name: str, value: object) -> object:
    """Return a value as it is expected of an argument: `{ equals = … }` where it would be read as something else."""
    like_check = isinstance(value, dict) and (
        bool(check_names_in(value)) or (bool(value) and all(key in OPTION_NAMES for key in value))
    )
    return {"equals": value} if like_check or name in SWALLOWED else value


def values_of(args: Mapping[str, object]) -> dict[str, object]:
    """Return the values that arguments of `required_args` are expected to have, without those to be filled in."""
    return {name: _value_of(value) for name, value in args.items() if not is_open(value)}


def _value_of(check: object) -> object:
    if isinstance(check, dict) and check.keys() == {"equals_null"}:
        return None
    return check["equals"] if isinstance(check, dict) and check.keys() == {"equals"} else check


def _one_property(schema: Schema) -> Schema:
    definitions = {name: schema[name] for name in ("$defs", "definitions") if name in schema}
    return {"type": "object", "properties": {"value": dict(schema)}, **definitions}


def _plain_values(schema: Schema, types: frozenset[str]) -> Iterator[object]:
    if types & {"integer", "number"}:
        bounds = [keyword(schema, name) for name in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")]
        low, above, high, below = (bound if is_number(bound) else None for bound in bounds)
        step = keyword(schema, "multipleOf")
        yield from (low,) if low is not None else ()
        yield 0
        yield from (above + 1,) if above is not None else ()
        yield from (high,) if high is not None else ()
        yield from (below - 1,) if below is not None else ()
        yield from (step,) if is_number(step) else ()
        if above is not None and below is not None:
            yield (above + below) / 2
    if "boolean" in types:
        yield True


def _is_written(value: object) -> bool:
    try:
        one_line(value)
    except (ValueError, RecursionError):
        return False
    return True
