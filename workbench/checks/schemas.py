"""Validate values against JSON Schemas: plain ones without jsonschema, others with it and with a time limit."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import JsonValue

from workbench.checks.patterns import SearchError, found

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError


def validator_of(schema: Mapping[str, Any], *, of_its_dialect: bool = False) -> Draft202012Validator:
    """Return a validator of a schema.

    It raises SearchError when a search takes too long, otherwise the errors of jsonschema's validators. Schemas are
    read as of draft 2020-12, or with `of_its_dialect` as their `$schema` says.

    Raises jsonschema's SchemaError for an invalid schema, and RecursionError for one that is nested too deeply."""
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
    """Return jsonschema's validator class with the searching keywords replaced."""
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


# Recognise JSON Schemas that are certainly valid, and values that they certainly accept, without jsonschema, whose
# import takes longer than a whole run, and which takes longer for each value too.

_MAX_LEVELS = 20
"""Deeper schemas are left to jsonschema."""


def is_plainly_valid(schema: object) -> bool:
    """Return whether a schema is valid by draft 2020-12, as far as its commonest keywords tell.

    Where it returns false the schema may still be valid: only jsonschema can tell."""
    return _is_schema(schema, _MAX_LEVELS)


def _is_schema(schema: object, levels: int) -> bool:
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, Mapping) or levels == 0:
        return False
    for key, value in schema.items():
        if key in _VALUES:
            is_valid = _VALUES[key](value)
        elif key in _SCHEMAS:
            is_valid = _is_schema(value, levels - 1)
        elif key in _LISTS_OF_SCHEMAS:
            is_valid = isinstance(value, list) and value != [] and _are_schemas(value, levels - 1)
        elif key in _TABLES_OF_SCHEMAS:
            is_valid = isinstance(value, Mapping) and _are_schemas(value.values(), levels - 1)
        else:
            is_valid = False
        if not is_valid:
            return False
    return True


def _are_schemas(values: Iterable[object], levels: int) -> bool:
    return all(_is_schema(value, levels) for value in values)


def _is_type(value: object) -> bool:
    if isinstance(value, str):
        return value in _IS_OF_TYPE
    return _are_different_texts(value) and value != [] and all(each in _IS_OF_TYPE for each in _listed(value))


def _are_different_texts(value: object) -> bool:
    texts = _listed(value)
    return isinstance(value, list) and all(isinstance(each, str) for each in texts) and len(set(texts)) == len(texts)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_anything(value: object) -> bool:
    return True


_VALUES: Mapping[str, Callable[[object], bool]] = {
    "type": _is_type,
    "required": _are_different_texts,
    **dict.fromkeys(("title", "description", "format"), _is_text),
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly", "uniqueItems"), _is_flag),
    **dict.fromkeys(("enum", "examples"), _is_list),
    **dict.fromkeys(("const", "default"), _is_anything),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains"), _is_count
    ),
}
"""Keywords by the types of their values."""

_SCHEMAS = frozenset({"items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else"})
_LISTS_OF_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_TABLES_OF_SCHEMAS = frozenset({"properties", "$defs"})
"""Keywords that hold schemas, by how."""


def plainly_accepts(schema: Mapping[str, Any], value: object) -> bool:
    """Return whether a schema is valid and accepts a value, as far as its commonest keywords tell.

    Where it returns false the schema may still do so: only jsonschema can tell."""
    return is_plainly_valid(schema) and accepts(schema, value)


def accepts(schema: object, value: object) -> bool:
    """Return as `plainly_accepts` does for a schema that is plainly valid."""
    if not isinstance(schema, Mapping):
        return schema is True
    if "additionalProperties" in schema and not _accepts_others(schema, value):
        return False
    return all(key in _SAY_NOTHING or (key in _KEYWORDS and _KEYWORDS[key](of, value)) for key, of in schema.items())


_IS_OF_TYPE: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _is_of_type(types: Any, value: object) -> bool:
    return any(_IS_OF_TYPE[each](value) for each in ([types] if isinstance(types, str) else types))


def _accepts_properties(properties: Any, value: object) -> bool:
    return not isinstance(value, dict) or all(
        name not in value or accepts(schema, value[name]) for name, schema in properties.items()
    )


def _accepts_others(schema: Mapping[str, Any], value: object) -> bool:
    known = schema.get("properties", {})
    return not isinstance(value, dict) or all(
        name in known or accepts(schema["additionalProperties"], each) for name, each in value.items()
    )


_KEYWORDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "type": _is_of_type,
    # Texts alone: numbers that JSON holds equal, and tables, are left to jsonschema.
    "enum": lambda listed, value: isinstance(value, str) and value in listed,
    "const": lambda only, value: isinstance(value, str) and value == only,
    "properties": _accepts_properties,
    "required": lambda names, value: not isinstance(value, dict) or all(name in value for name in names),
    "items": lambda schema, value: not isinstance(value, list) or all(accepts(schema, each) for each in value),
    "anyOf": lambda schemas, value: any(accepts(schema, value) for schema in schemas),
    "allOf": lambda schemas, value: all(accepts(schema, value) for schema in schemas),
    "minimum": lambda bound, value: not _is_number(value) or value >= bound,
    "maximum": lambda bound, value: not _is_number(value) or value <= bound,
    "exclusiveMinimum": lambda bound, value: not _is_number(value) or value > bound,
    "exclusiveMaximum": lambda bound, value: not _is_number(value) or value < bound,
    "minLength": lambda least, value: not isinstance(value, str) or len(value) >= least,
    "maxLength": lambda most, value: not isinstance(value, str) or len(value) <= most,
    "minItems": lambda least, value: not isinstance(value, list) or len(value) >= least,
    "maxItems": lambda most, value: not isinstance(value, list) or len(value) <= most,
}
"""A keyword's demand on a value; `additionalProperties` needs more of the schema than itself."""

_SAY_NOTHING = frozenset(
    {
        *("title", "description", "default", "examples", "format", "deprecated", "readOnly", "writeOnly"),
        *("$defs", "additionalProperties"),
    }
)
"""Keywords that refuse no value: formats are not checked."""


# Validates arguments and results against a tool's own schemas.

MAX_MESSAGE_CHARS = 300

_ALIKE = (
    *("http://json-schema.org/draft-06/schema", "http://json-schema.org/draft-07/schema"),
    *("https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema"),
)
"""The dialects in which the commonest keywords mean the same; most servers declare one of these."""


class BrokenSchemaError(Exception):
    """A tool's schema cannot be used.

    The message says why."""


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
        plain = {}
        for name, value in schema.items():
            if name != "$schema":
                plain[name] = value
        alike = str(schema.get("$schema", _ALIKE[-1])).rstrip("#") in _ALIKE
        self._plain = plain if alike and is_plainly_valid(plain) else None
        """The schema, where jsonschema is not needed to see that it accepts something."""
        self._validator: Draft202012Validator | None = None

    def violations(self, arguments: Mapping[str, JsonValue]) -> tuple[Violation, ...]:
        """Return everything that the schema refuses, in the order of places.

        Raises BrokenSchemaError."""
        if self._plain is not None and accepts(self._plain, arguments):
            return ()
        with _broken_schema():
            if self._validator is None:
                self._validator = validator_of(self._schema, of_its_dialect=True)
            errors = list(self._validator.iter_errors(dict(arguments)))
        found = [violation for error in errors for violation in _violations_of(error)]
        return tuple(sorted(found, key=lambda violation: [str(part) for part in violation.path]))


def argument_problems(arguments: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Return the violations as text, each with its place: `args.to[0]: 5 is not of type 'string'`.

    Raises BrokenSchemaError."""
    return tuple(
        f"{_place('args', found.path)}: {found.message}" for found in ArgumentSchema(schema).violations(arguments)
    )


def result_problem(content: JsonValue, schema: Mapping[str, JsonValue]) -> str | None:
    """Return the first thing in structured content that its schema refuses.

    Raises BrokenSchemaError."""
    if "$schema" not in schema and plainly_accepts(schema, content):
        return None
    with _broken_schema():
        problem = next(validator_of(schema, of_its_dialect=True).iter_errors(content), None)
    if problem is not None:
        return _short(problem.message)
    return None


def _violations_of(error: ValidationError) -> Iterator[Violation]:
    """Yield a violation for each property that is missing or not allowed, else one for the error."""
    path, rule, value = tuple(error.absolute_path), str(error.validator), error.instance
    if rule == "required" and isinstance(value, Mapping) and isinstance(error.validator_value, list):
        # jsonschema yields one error for each missing name, which only its message holds.
        missing = []
        for name in error.validator_value:
            if name not in value and error.message.startswith(repr(name)):
                missing.append(name)
        if len(missing) == 1:
            yield Violation((*path, missing[0]), rule, _short(error.message))
            return
    schema = error.schema
    if rule == "additionalProperties" and isinstance(value, Mapping) and isinstance(schema, Mapping):
        known = schema.get("properties", {}) if error.validator_value is False else value
        extra = []
        for name in value:
            if name not in known and repr(name) in error.message:
                extra.append(name)
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
    if len(message) <= MAX_MESSAGE_CHARS:
        return message
    return message[:MAX_MESSAGE_CHARS] + " …"
