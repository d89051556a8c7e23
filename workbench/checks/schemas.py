"""Makes validators of JSON Schemas that fetch nothing and search patterns with a time limit."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from workbench.checks.patterns import found

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError


def validator_of(schema: Mapping[str, Any], *, of_its_dialect: bool = False) -> Draft202012Validator:
    """Returns a validator of a schema. It raises SearchError when a search takes too long, otherwise what jsonschema's
    validators raise. Schemas are read as of draft 2020-12, or with `of_its_dialect` as their `$schema` says.

    Raises jsonschema's SchemaError for an invalid schema, and RecursionError for one that is nested too deeply.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    dialect = validator_for(schema, default=Draft202012Validator) if of_its_dialect else Draft202012Validator
    # The only other keyword that searches inside jsonschema; it is not evaluated next to patterns for names.
    cls = _guarded(dialect, without_unevaluated='"patternProperties"' in json.dumps(schema, default=str))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # Python's warnings about patterns
        cls.check_schema(schema)
    return cls(schema, registry=Registry())


@cache
def _guarded(dialect: type[Draft202012Validator], without_unevaluated: bool) -> type[Draft202012Validator]:
    """Returns jsonschema's validator class with the searching keywords replaced."""
    from jsonschema.validators import extend

    keywords: dict[str, Any] = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    }
    if without_unevaluated:
        keywords["unevaluatedProperties"] = _nothing
    guarded: type[Draft202012Validator] = extend(dialect, keywords)  # type: ignore[no-untyped-call]
    return guarded


def _pattern(validator: Any, pattern: str, instance: object, schema: object) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not found(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: object, schema: object
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, inner in patterns.items():
            for name, value in instance.items():
                if found(pattern, name):
                    yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: object, instance: object, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    from jsonschema import Draft202012Validator

    patterns = schema.get("patternProperties", ())
    if isinstance(instance, dict):
        instance = {name: value for name, value in instance.items() if not any(found(each, name) for each in patterns)}
    known = {"properties": schema.get("properties", {})}
    yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, allowed, instance, known)


def _nothing(validator: Any, value: object, instance: object, schema: object) -> Iterator[ValidationError]:
    yield from ()
