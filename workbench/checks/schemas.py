"""Validates values against JSON Schemas.

A schema with only common keywords is checked here, because importing jsonschema is slow. Any other schema is checked
with jsonschema, with a time limit on pattern searches."""

from __future__ import annotations

import json
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic import JsonValue

from workbench.checks.patterns import SearchError, is_usable_pattern, search_pattern

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.exceptions import ValidationError


def dialect_of(schema: Mapping[str, Any]) -> type[Draft202012Validator]:
    """Return jsonschema's class for the dialect in a schema's `$schema`.

    Without a dialect, or with a dialect unknown to jsonschema, this is the class of draft 2020-12."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    named = schema.get("$schema")
    if not isinstance(named, str):
        return Draft202012Validator
    # URIs of older dialects begin with http, URIs of newer dialects with https. Many schemas confuse the two.
    address = named.partition("://")[2].rstrip("#/")
    for scheme in ("http", "https"):
        found: Any = validator_for({"$schema": f"{scheme}://{address}"}, default=Draft202012Validator)
        if found is not Draft202012Validator:
            return cast("type[Draft202012Validator]", found)
    return Draft202012Validator


def validator_of(schema: Mapping[str, Any]) -> Draft202012Validator:
    """Return a jsonschema validator of a schema, with a time limit on pattern searches.

    The schema is read in its own dialect, see `dialect_of`. The validator raises SearchError if a search takes too
    long. Raises jsonschema's SchemaError for an invalid schema, and RecursionError for a schema that is nested too
    deeply."""
    from referencing import Registry

    dialect = dialect_of(schema)
    # If a schema has `patternProperties`, `unevaluatedProperties` also searches for the patterns, without a time limit.
    # Therefore, `unevaluatedProperties` is not evaluated then.
    cls = _guarded(dialect, without_unevaluated='"patternProperties"' in json.dumps(schema, default=str))
    with warnings.catch_warnings():
        # Python warns about patterns whose meaning may change.
        warnings.simplefilter("ignore", FutureWarning)
        cls.check_schema(schema, format_checker=formats_of_schemas(dialect))
    # With an empty registry, no reference is fetched from the network.
    return cls(schema, registry=Registry())


@cache
def formats_of_schemas(dialect: type[Draft202012Validator]) -> FormatChecker:
    """Return the checker of formats within schemas of a dialect.

    A schema's patterns are JavaScript's, so Python's `re` refuses some of them. They are valid if `search_pattern` can
    use them."""
    from jsonschema import FormatChecker

    checker = FormatChecker(())
    checker.checkers = {**dialect.FORMAT_CHECKER.checkers, "regex": (_is_pattern, ())}
    return checker


def _is_pattern(value: object) -> bool:
    return not isinstance(value, str) or is_usable_pattern(value)


@cache
def _guarded(dialect: type[Draft202012Validator], without_unevaluated: bool) -> type[Draft202012Validator]:
    from jsonschema.validators import extend

    keywords: dict[str, Any] = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "multipleOf": _multiple_of,
    }
    if without_unevaluated:
        keywords["unevaluatedProperties"] = _nothing
    guarded: Any = extend(dialect, keywords)  # type: ignore[no-untyped-call]
    of_part = guarded.evolve

    def evolve(validator: Any, **changes: Any) -> Any:
        # For a subschema with its own dialect, jsonschema would use its original class without a time limit.
        evolved = of_part(validator, **changes)
        if isinstance(evolved, guarded):
            return evolved
        cls: Any = _guarded(dialect_of(evolved.schema), without_unevaluated)
        return cls(evolved.schema, registry=evolved._registry, _resolver=evolved._resolver)

    guarded.evolve = evolve
    return cast("type[Draft202012Validator]", guarded)


def _pattern(validator: Any, pattern: str, instance: object, schema: object) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not search_pattern(pattern, instance, is_of_schema=True):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: object, schema: object
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, inner in patterns.items():
            for name, value in instance.items():
                if search_pattern(pattern, name, is_of_schema=True):
                    yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: object, instance: object, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    from jsonschema import Draft202012Validator

    patterns = schema.get("patternProperties", ())
    if isinstance(instance, dict):
        others = {}
        for name, value in instance.items():
            if not any(search_pattern(pattern, name, is_of_schema=True) for pattern in patterns):
                others[name] = value
        instance = others
    # jsonschema's own keyword would search again, so it receives a schema without the patterns.
    known = {"properties": schema.get("properties", {})}
    yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, allowed, instance, known)


def _multiple_of(validator: Any, step: float, instance: object, schema: object) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    # jsonschema divides floats, for which 19.99 is no multiple of 0.01.
    if _is_number(instance) and not _is_multiple(instance, step):
        yield ValidationError(f"{instance!r} is not a multiple of {step!r}")


def _is_multiple(number: object, step: float) -> bool:
    try:
        return (_exact(number) / _exact(step)).denominator == 1
    except ValueError:  # a TOML file may have `inf` and `nan`
        return False


def _exact(number: Any) -> Fraction:
    """Return a number as it is written in decimal digits."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _nothing(validator: Any, value: object, instance: object, schema: object) -> Iterator[ValidationError]:
    yield from ()


# A schema with only common keywords is checked here without jsonschema, because importing jsonschema takes longer than
# a whole run, and so does each validation with it.

_MAX_LEVELS = 20
"""The most levels of a schema that are checked here. Deeper schemas are left to jsonschema."""


def is_plainly_valid(schema: object) -> bool:
    """Return whether a schema is valid by draft 2020-12 and has only the common keywords that this module supports.

    A schema for which this returns False may still be valid. jsonschema must decide."""
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
"""The keywords without schemas as values, each with a test of its value."""

# The keywords whose values are a schema, a list of schemas, or a table of schemas.
_SCHEMAS = frozenset({"items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else"})
_LISTS_OF_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_TABLES_OF_SCHEMAS = frozenset({"properties", "$defs"})


def plainly_accepts(schema: Mapping[str, Any], value: object) -> bool:
    """Return whether a schema has only supported keywords, is valid, and accepts a value.

    If this returns False, the schema may still accept the value. jsonschema must decide."""
    plain = plain_schema(schema)
    return plain is not None and accepts(plain, value)


def plain_schema(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a schema for `accepts`, or `None` if only jsonschema can decide whether the schema accepts a value."""
    plain = _without_dialect(schema)
    return plain if is_plainly_valid(plain) else None


def accepts(schema: object, value: object) -> bool:
    """Return whether a schema accepts a value. `is_plainly_valid` must hold for the schema."""
    if not isinstance(schema, Mapping):
        return schema is True
    if "additionalProperties" in schema and not _accepts_others(schema, value):
        return False
    for keyword, demand in schema.items():
        if keyword in _REFUSING_NOTHING:
            continue
        if keyword not in _KEYWORDS or not _KEYWORDS[keyword](demand, value):
            return False
    return True


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
    if isinstance(types, str):
        return _IS_OF_TYPE[types](value)
    return any(_IS_OF_TYPE[each](value) for each in types)


def _accepts_properties(properties: Any, value: object) -> bool:
    if not isinstance(value, dict):
        return True
    return all(name not in value or accepts(schema, value[name]) for name, schema in properties.items())


def _accepts_others(schema: Mapping[str, Any], value: object) -> bool:
    if not isinstance(value, dict):
        return True
    known, others = schema.get("properties", {}), schema["additionalProperties"]
    return all(name in known or accepts(others, each) for name, each in value.items())


def _has_properties(names: Any, value: object) -> bool:
    return not isinstance(value, dict) or all(name in value for name in names)


def _accepts_items(schema: Any, value: object) -> bool:
    return not isinstance(value, list) or all(accepts(schema, each) for each in value)


def _is_accepted_by_any(schemas: Any, value: object) -> bool:
    return any(accepts(schema, value) for schema in schemas)


def _is_accepted_by_all(schemas: Any, value: object) -> bool:
    return all(accepts(schema, value) for schema in schemas)


_KEYWORDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "type": _is_of_type,
    # Only texts are compared here. Numbers, which JSON compares by value, and tables are left to jsonschema.
    "enum": lambda listed, value: isinstance(value, str) and value in listed,
    "const": lambda only, value: isinstance(value, str) and value == only,
    "properties": _accepts_properties,
    "required": _has_properties,
    "items": _accepts_items,
    "anyOf": _is_accepted_by_any,
    "allOf": _is_accepted_by_all,
    "minimum": lambda bound, value: not _is_number(value) or value >= bound,
    "maximum": lambda bound, value: not _is_number(value) or value <= bound,
    "exclusiveMinimum": lambda bound, value: not _is_number(value) or value > bound,
    "exclusiveMaximum": lambda bound, value: not _is_number(value) or value < bound,
    "minLength": lambda least, value: not isinstance(value, str) or len(value) >= least,
    "maxLength": lambda most, value: not isinstance(value, str) or len(value) <= most,
    "minItems": lambda least, value: not isinstance(value, list) or len(value) >= least,
    "maxItems": lambda most, value: not isinstance(value, list) or len(value) <= most,
}
"""The tests of keywords. Each test takes the keyword's value and the value to validate.

`additionalProperties` has no test because it depends on other keywords."""

_REFUSING_NOTHING = frozenset(
    {
        *("title", "description", "default", "examples", "format", "deprecated", "readOnly", "writeOnly"),
        *("$defs", "additionalProperties"),
    }
)
"""The keywords that refuse no value. `format` is an annotation by default."""


# Arguments and results of calls, validated against the schemas of their tools.

MAX_MESSAGE_CHARS = 300

_EQUIVALENT_DIALECTS = (
    *("http://json-schema.org/draft-06/schema", "http://json-schema.org/draft-07/schema"),
    *("https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema"),
)
"""The dialects in which the commonest keywords have the same meaning. Most servers declare one of these dialects."""


def _without_dialect(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Remove `$schema` from a schema if its dialect gives the supported keywords the same meaning as draft 2020-12."""
    dialect = schema.get("$schema")
    if isinstance(dialect, str) and dialect.rstrip("#") in _EQUIVALENT_DIALECTS:
        return {name: value for name, value in schema.items() if name != "$schema"}
    return schema


class BrokenSchemaError(Exception):
    """A tool's schema cannot be used. The message is the reason."""


class Violation(NamedTuple):
    """A violation of a schema.

    `path` leads to the refused value (`("to", 0)`), and `rule` is the keyword that refuses it (`required`, `enum`). If
    a property is missing or not allowed, the path ends with the property's name."""

    path: tuple[str | int, ...]
    rule: str
    message: str

    @property
    def argument(self) -> str | None:
        """The argument with the refused value, or `None` if the arguments as a whole are refused."""
        return str(self.path[0]) if self.path else None

    @property
    def place(self) -> str:
        """The path as text: `to[0].name`, or an empty text for the arguments as a whole."""
        return _place("", self.path).removeprefix(".")


class ArgumentSchema:
    """The schema of a tool's arguments, prepared to validate many calls.

    The schema is read in its declared dialect, otherwise as draft 2020-12. No reference is fetched from the network."""

    def __init__(self, schema: Mapping[str, JsonValue]) -> None:
        self._schema = schema
        self._plain: Mapping[str, JsonValue] | None = None
        """The schema without its `$schema`, if it is plainly valid."""
        plain = _without_dialect(schema)
        if is_plainly_valid(plain):
            self._plain = plain
        self._validator: Draft202012Validator | None = None

    def violations(self, arguments: Mapping[str, JsonValue]) -> tuple[Violation, ...]:
        """Return the violations of the schema in a call's arguments, in the order of their paths.

        Raises BrokenSchemaError."""
        if self._plain is not None and accepts(self._plain, arguments):
            return ()
        with _broken_schema(self._schema):
            if self._validator is None:
                self._validator = validator_of(self._schema)
            errors = list(self._validator.iter_errors(dict(arguments)))
        found: list[Violation] = []
        for error in errors:
            found += _violations_of(error)
        return tuple(sorted(found, key=lambda violation: list(map(str, violation.path))))


def argument_problems(arguments: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Return the violations of a schema as text, each with its place: `args.to[0]: 5 is not of type 'string'`.

    Raises BrokenSchemaError."""
    found = ArgumentSchema(schema).violations(arguments)
    return tuple(f"{_place('args', violation.path)}: {violation.message}" for violation in found)


def result_problem(content: JsonValue, schema: Mapping[str, JsonValue]) -> str | None:
    """Return the message of the first violation in structured content, or `None` if the schema accepts the content.

    Raises BrokenSchemaError."""
    if plainly_accepts(schema, content):
        return None
    with _broken_schema(schema):
        problem = next(validator_of(schema).iter_errors(content), None)
    if problem is not None:
        return _short(problem.message)
    return None


class DanglingReference(NamedTuple):
    """A reference without a target, and the path of the schema that contains it."""

    path: tuple[str | int, ...]
    reference: str

    def __str__(self) -> str:
        return f"{_place('schema', self.path)} refers to {self.reference!r}, which the schema does not contain"


def dangling_references(schema: Mapping[str, JsonValue]) -> tuple[DanglingReference, ...]:
    """Return the references without a target at any depth of a schema.

    Each reference is returned once, with its first place. Nothing is fetched from the network. Therefore, a reference
    to another document counts as dangling, unless it points to the schema of a dialect. Raises BrokenSchemaError for an
    invalid schema."""
    if is_plainly_valid(_without_dialect(schema)):
        return ()
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    with _broken_schema():
        validator_of(schema)
    dialect = dialect_of(schema)
    specification = specification_with(str(dialect.META_SCHEMA.get("$id") or dialect.META_SCHEMA["id"]))
    found: dict[str, DanglingReference] = {}
    root = specification.create_resource(schema)
    # The subschemas of a schema are visited before the targets of its references. A target may be outside of all
    # subschemas, below a keyword that JSON Schema does not know.
    waiting: deque[tuple[tuple[str | int, ...], Any, Any]] = deque()
    waiting.append(((), schema, REGISTRY.resolver_with_root(root)))
    looked_at = {id(schema)}
    while waiting:
        path, part, resolver = waiting.popleft()
        targets = []
        for reference in [part.get(keyword) for keyword in ("$ref", "$dynamicRef")]:
            if not isinstance(reference, str):
                continue
            try:
                target = resolver.lookup(reference)
            # A pointer into a list or a plain value raises ValueError or TypeError.
            except (Unresolvable, ValueError, TypeError):
                found.setdefault(reference, DanglingReference(path, reference))
                continue
            if not isinstance(target.contents, Mapping | bool):
                found.setdefault(reference, DanglingReference(path, reference))
            elif reference.startswith("#/"):
                pointed_at = tuple(reference.split("/")[1:])
                targets.append((pointed_at, target.contents, target.resolver))
        inner = []
        for steps, below in _parts(part):
            own = resolver.in_subresource(specification.create_resource(below))
            inner.append(((*path, *steps), below, own))
        for each in (*inner, *targets):
            if isinstance(each[1], Mapping) and id(each[1]) not in looked_at:
                looked_at.add(id(each[1]))
                waiting.append(each)
    return tuple(found.values())


# The keywords include those of older dialects because schemas in newer dialects use them too.
_TABLES = (*_TABLES_OF_SCHEMAS, "definitions", "patternProperties", "dependentSchemas", "dependencies")
_SINGLE_OR_LISTS = (
    *(*_SCHEMAS, *_LISTS_OF_SCHEMAS),
    *("additionalItems", "unevaluatedItems", "unevaluatedProperties", "contentSchema"),
)


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    for keyword in _SINGLE_OR_LISTS:
        value = schema.get(keyword)
        if isinstance(value, Mapping):
            yield (keyword,), value
        elif isinstance(value, list):
            for place, each in enumerate(value):
                if isinstance(each, Mapping):
                    yield (keyword, place), each
    for keyword in _TABLES:
        table = schema.get(keyword)
        if isinstance(table, Mapping):
            for name, each in table.items():
                if isinstance(each, Mapping):
                    yield (keyword, name), each


def _violations_of(error: ValidationError) -> Iterator[Violation]:
    path, rule, value = tuple(error.absolute_path), str(error.validator), error.instance
    if rule == "required" and isinstance(value, Mapping) and isinstance(error.validator_value, list):
        # jsonschema yields an error for each missing property, but only the message names the property.
        absent = [name for name in error.validator_value if name not in value]
        missing = [name for name in absent if error.message.startswith(repr(name))]
        if len(missing) == 1:
            yield Violation((*path, missing[0]), rule, _short(error.message))
            return
    schema = error.schema
    if rule == "additionalProperties" and isinstance(value, Mapping) and isinstance(schema, Mapping):
        # If `additionalProperties` is a schema and not `false`, the path of an error already leads to the refused
        # value. No name is then taken from the message.
        known = schema.get("properties", {}) if error.validator_value is False else value
        others = [name for name in value if name not in known]
        extra = [name for name in others if repr(name) in error.message]
        for name in extra:
            yield Violation((*path, name), rule, _short(f"{name!r} is not a property of the schema"))
        if extra:
            return
    yield Violation(path, rule, _short(error.message))


@contextmanager
def _broken_schema(schema: Mapping[str, JsonValue] | None = None) -> Iterator[None]:
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    try:
        yield
    except SchemaError as error:
        raise BrokenSchemaError(f"{_place('schema', error.absolute_path)}: {_short(error.message)}") from error
    except Unresolvable as error:
        raise BrokenSchemaError(f"a reference leads nowhere: {_short(str(error))}") from error
    except SearchError as error:
        raise BrokenSchemaError(str(error)) from error
    except RecursionError as error:
        raise BrokenSchemaError("the schema is nested too deeply") from error
    except (AttributeError, TypeError, ValueError) as error:
        # jsonschema raises these errors if a reference points to something other than a schema.
        dangling = dangling_references(schema or {})
        if not dangling:
            raise
        raise BrokenSchemaError(str(dangling[0])) from error


def _place(root: str, path: Sequence[str | int]) -> str:
    for part in path:
        root += f"[{part}]" if isinstance(part, int) else f".{part}"
    return root


def _short(message: str) -> str:
    if len(message) <= MAX_MESSAGE_CHARS:
        return message
    return message[:MAX_MESSAGE_CHARS] + " …"
