"""The first arguments of a new expected call, from the schema of its tool."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.checks.check import AMBIGUOUS_ARGUMENTS, OPTION_NAMES, check_names_in
from workbench.checks.patterns import SearchError
from workbench.checks.schemas import plainly_accepts, validator_of
from workbench.suite.render import Table, one_line
from workbench.trajectory.json_schema import (
    Schema,
    properties_of,
    required_names,
    suggested_values,
    types_of,
    with_definitions,
)


def first_value(name: str, schema: Schema | None) -> object:
    """Return the check that a form suggests for a new argument, from the schema of its parameter.

    The check expects the first value that the schema suggests and accepts: a default, an example, or an enum's member.
    Without such a value, the check is `present`, or null if the schema allows only null. A number's bound is not
    suggested, because it says what is allowed and not what a request requires."""
    if types_of(schema) == {"null"}:
        return {"equals_null": True}
    for value in suggested_values(schema):
        if _can_be_written(value) and (schema is None or refused_parts({"value": value}, _one_property(schema)) == ()):
            return equality_check(name, value)
    return {"present": True}


def required_args(parameters: Schema) -> Table:
    """Return the required arguments of a tool in the order of its schema, each with its `first_value`."""
    required = dict.fromkeys(required_names(parameters))
    known = properties_of(parameters)
    args: Table = {}
    # A schema may require names that it does not describe. These names come last.
    for name in dict.fromkeys((*filter(required.__contains__, known), *required)):
        schema = known.get(name)
        if isinstance(schema, Mapping):
            args[name] = first_value(name, with_definitions(schema, parameters))
        else:
            args[name] = first_value(name, None)
    # A part that refers to the whole schema (`#`) can only be validated as a part of the whole schema.
    refused = refused_parts(values_of(args), parameters)
    if refused is None:
        return {name: {"present": True} for name in args}
    for name in args.keys() & refused:
        args[name] = {"present": True}
    return args


def is_missing_value(value: object) -> bool:
    """Return whether an argument of `required_args` has no value yet, so that the user has to write it."""
    return value == {"present": True}


def refused_parts(arguments: Mapping[str, object], schema: Schema) -> tuple[str, ...] | None:
    """Return the names of the arguments that a schema refuses. An empty name means the arguments as a whole.

    Returns `None` if the schema itself is broken."""
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    if plainly_accepts(schema, arguments):
        return ()
    try:
        refused = []
        for error in validator_of(schema).iter_errors(dict(arguments)):
            refused.append(str(error.absolute_path[0]) if error.absolute_path else "")
        return tuple(refused)
    except (SchemaError, Unresolvable, SearchError, RecursionError, OverflowError):
        return None


def equality_check(name: str, value: object) -> object:
    """Return the check that an argument equals a value.

    This is the value alone, or `{ equals = … }` if the value looks like a check."""
    if name in AMBIGUOUS_ARGUMENTS:
        return {"equals": value}
    if isinstance(value, dict) and value and (check_names_in(value) or OPTION_NAMES.issuperset(value)):
        return {"equals": value}
    return value


def values_of(args: Mapping[str, object]) -> dict[str, object]:
    """Return the expected values of `required_args`, without the arguments that have no value yet."""
    return {name: _value_of(value) for name, value in args.items() if not is_missing_value(value)}


def _value_of(check: object) -> object:
    if not isinstance(check, dict):
        return check
    if check.keys() == {"equals_null"}:
        return None
    if check.keys() == {"equals"}:
        return check["equals"]
    return check


def _one_property(schema: Schema) -> Schema:
    # The part becomes a root schema and needs the definitions used by its references.
    definitions = {}
    for name in ("$defs", "definitions"):
        if name in schema:
            definitions[name] = schema[name]
    return {"type": "object", "properties": {"value": dict(schema)}, **definitions}


def _can_be_written(value: object) -> bool:
    try:
        one_line(value)
    except (ValueError, RecursionError):
        return False
    return True
