"""The arguments that a tool's JSON Schema describes, and the reasons why the schema refuses a value or name.

References to other files are not fetched, and an invalid schema refuses nothing. Validators are cached, so that values
can be checked on every key press."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from workbench.checks.argument_schema import one_of_types
from workbench.checks.check import CheckBase, read_check
from workbench.checks.patterns import SearchError, search_pattern
from workbench.checks.schemas import plainly_accepts, validator_of
from workbench.dataclasses import dataclass
from workbench.show.visible import one_line, shortened
from workbench.suite import render
from workbench.suite.expected_calls import ANY_TOOL, comparable_name
from workbench.suite.problems import did_you_mean, kind_of_value, place_text, quoted
from workbench.trajectory.events import ToolDefinition
from workbench.trajectory.json_schema import (
    Schema,
    allowed_values,
    is_number,
    is_text,
    keyword_value,
    parts_of,
    properties_of,
    required_names,
    type_of,
    type_words,
    types_of,
    with_definitions,
)

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError


_T = TypeVar("_T")

_MAX_MARK_CHARS = 160
_MANY = 6
_BOUNDS: tuple[tuple[str, Callable[[float, float], bool], str], ...] = (
    ("minimum", lambda value, bound: value >= bound, "at least"),
    ("exclusiveMinimum", lambda value, bound: value > bound, "more than"),
    ("maximum", lambda value, bound: value <= bound, "at most"),
    ("exclusiveMaximum", lambda value, bound: value < bound, "less than"),
)


@dataclass(frozen=True, slots=True)
class ArgumentInfo:
    """An argument as its tool's schema describes it.

    `type_words` is the type in words (`text`, `whole number`, `on | off`). `enum` has the listed values. `default` is
    `None` if there is no default. Pass `schema` to the functions of `cells` and `completions`, and to `mark`."""

    name: str
    type_words: str
    required: bool
    enum: tuple[object, ...]
    description: str
    default: object
    schema: Schema


@dataclass(frozen=True)
class _IdentityCache(Generic[_T]):
    """A cache by object identity. It keeps each object alive, so that no other object gets the same identity."""

    make: Callable[[Any], _T]
    values: dict[int, tuple[object, _T]] = field(default_factory=dict)

    def of(self, source: object) -> _T:
        found = self.values.get(id(source))
        if found is None:
            if len(self.values) >= 4_000:  # each edit of a tool's schema is a new object
                self.values.clear()
            found = self.values[id(source)] = (source, self.make(source))
        return found[1]


def tool_named(tools: Iterable[ToolDefinition], name: str) -> ToolDefinition | None:
    """Return the tool with a name, or `None` if there is none.

    If no tool has exactly this name, return the first tool whose name differs only in letter case, `.`, `-` and `_`.
    Graders compare names in this way, too."""
    wanted = comparable_name(name)
    alike: ToolDefinition | None = None
    for tool in tools:
        if tool.name == name:
            return tool
        if alike is None and comparable_name(tool.name) == wanted:
            alike = tool
    return alike


def arguments_of(tool: ToolDefinition) -> tuple[ArgumentInfo, ...]:
    return tuple(_arguments.of(tool).values())


def argument_of(tool: ToolDefinition | None, name: str) -> ArgumentInfo | None:
    """Return an argument of a tool. Return `None` if the tool is unknown or its schema has no such argument."""
    if tool is None:
        return None
    return _arguments.of(tool).get(name)


def mark(value: object, schema: Schema | None) -> str | None:
    """Return the reason why a schema refuses an expected value or check, on one line.

    Returns `None` if the schema accepts the value or is unknown."""
    if not schema:
        return None
    try:
        check = read_check(value)
    except ValueError:
        return None  # already reported as a problem of the suite
    why = _first_reason(check, schema)
    return _line(why) if why else None


def _first_reason(check: CheckBase, schema: Schema) -> str | None:
    for item in check.listed or ():
        if why := _refused(item, schema):
            if check.is_exact:
                return why
            return f"{kind_of_value(item)}: {why}"
    for number in check.numbers:
        if why := _beyond(number, schema):
            return why
    return check.fits(schema, lambda value: _refused(value, schema))


def mark_name(tool: ToolDefinition | None, name: str) -> str | None:
    """Return a message if a tool has no argument with this name. Return `None` if the name is allowed."""
    if tool is None or name in _arguments.of(tool):
        return None
    parts = list(parts_of(tool.parameters, tool.parameters))
    patterns: list[str] = []
    for part in parts:
        patterns += _mapping(part.get("patternProperties"))
    # A schema without properties describes nothing, and JSON Schema then allows any name.
    if not any("properties" in part for part in parts):
        return None
    if any(_found(pattern, name) for pattern in patterns):
        return None
    if any(part.get("additionalProperties") not in (None, False) for part in parts):
        return None
    names = list(_arguments.of(tool))
    if not names:
        return _line(f"{tool.name} takes no arguments")
    hint = did_you_mean(name, names) or f"it has {_enumeration(names)}"
    return _line(f"{tool.name} has no argument of this name: {hint}")


def mark_tool(tools: Sequence[ToolDefinition], name: str) -> str | None:
    """Return a message if no tool has this name. Return `None` for a known name.

    Until a server has listed its tools, the result is always `None`, and the suite's problems report unknown names."""
    if name in ("", ANY_TOOL) or tool_named(tools, name) is not None or all(tool.server is None for tool in tools):
        return None
    hint = did_you_mean(name, [tool.name for tool in tools])
    return _line(_with_hint("no known tool has this name", hint))


def _read_arguments(tool: ToolDefinition) -> Mapping[str, ArgumentInfo]:
    parts = list(parts_of(tool.parameters, tool.parameters))
    required: set[str] = set()
    for part in parts:
        required.update(required_names(part))
    found: dict[str, ArgumentInfo] = {}
    for part in parts:
        for name, written_schema in properties_of(part).items():
            if name in found:
                continue
            own = written_schema if isinstance(written_schema, Mapping) else {}
            schema = with_definitions(own, tool.parameters)
            description = keyword_value(schema, "description")
            if not isinstance(description, str):
                description = ""
            enum, default = allowed_values(schema) or (), keyword_value(schema, "default")
            found[name] = ArgumentInfo(name, type_words(schema), name in required, enum, description, default, schema)
    # Required arguments come first. Within each group, the sort keeps the order of the schema.
    return dict(sorted(found.items(), key=lambda entry: not entry[1].required))


def _validator_of(schema: Schema) -> Draft202012Validator | None:
    from jsonschema.exceptions import SchemaError

    try:
        return validator_of(schema)
    except (SchemaError, RecursionError):
        return None


_arguments = _IdentityCache(_read_arguments)
_validators = _IdentityCache(_validator_of)


def _refused(value: object, schema: Schema) -> str | None:
    if plainly_accepts(schema, value):
        return None
    from referencing.exceptions import Unresolvable

    validator = _validators.of(schema)
    if validator is None:
        return None
    try:
        error = next(validator.iter_errors(value), None)
    except (Unresolvable, RecursionError, OverflowError, SearchError):
        return None
    if error is None:
        return None
    # A list of the allowed values, or the wrong type, is more helpful than the first error of the validator.
    listed = allowed_values(schema)
    types = types_of(schema)
    if listed and types - {"null"} != {"boolean"}:
        return _one_of(value, listed)
    if type_of(value) not in types:
        return f"must be {one_of_types(types) or 'nothing'}, not {_given(value)}{_correction(value, schema)}"
    why = _in_plain_words(error)
    if path := place_text(error.absolute_path):
        return f"{path}: {why}"
    return why


def _given(value: object) -> str:
    """Return an argument in the words of JSON Schema: `the string "Paris"`, `the number 5`, `an object`."""
    match value:
        case None:
            return "null"
        case "":
            return "an empty string"
        case str():
            return f"the string {quoted(value)}"
        case dict():
            return "an object"
        case _:
            return kind_of_value(value)


def _correction(value: object, schema: Schema) -> str:
    if value in ("null", "None") and "null" in types_of(schema):
        return "; for null, choose the check equals_null"
    if isinstance(value, bool | int | float) and is_text(schema):
        return f': write "{render.one_line(value)}"'
    return ""


def _in_plain_words(error: ValidationError) -> str:
    wanted: Any = error.validator_value
    instance: Any = error.instance
    bound = "least" if str(error.validator).startswith("min") else "most"
    match error.validator:
        case "type":
            return f"must be {one_of_types(types_of({'type': wanted})) or 'nothing'}, not {_given(instance)}"
        case "enum":
            return _one_of(instance, wanted)
        case "const":
            return f"must be {_shown(wanted)}"
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
            words = next(words for name, _, words in _BOUNDS if name == error.validator)
            return f"must be {words} {_shown(wanted)}"
        case "multipleOf":
            return f"must be a multiple of {_shown(wanted)}"
        case "minLength" | "maxLength":
            return f"must have at {bound} {_count(wanted, 'character')}"
        case "minItems" | "maxItems":
            return f"must have at {bound} {_count(wanted, 'item')}"
        case "uniqueItems":
            return "must not have the same item twice"
        case "pattern":
            return f"must match /{wanted}/"
        case "required":
            missing = [name for name in wanted if name not in instance]
            return f"must have {', '.join(map(render.key_text, missing))}"
        case "additionalProperties" if wanted is False:
            known = _mapping(_mapping(error.schema).get("properties"))
            unknown = [name for name in instance if name not in known]
            hint = did_you_mean(unknown[0], known) if unknown else ""
            return _with_hint(f"has no {', '.join(map(render.key_text, unknown))}", hint)
        case "anyOf" | "oneOf":
            return f"{kind_of_value(instance)} is not a value that the schema allows"
    return error.message


def _with_hint(sentence: str, hint: str) -> str:
    return f"{sentence}: {hint}" if hint else sentence


def _enumeration(words: Sequence[str]) -> str:
    return ", ".join([*words[:_MANY], *["…"] * (len(words) > _MANY)])


def _one_of(value: object, listed: Iterable[object]) -> str:
    values = list(listed)
    shown = _enumeration(list(map(_shown, values)))
    if len(values) > 1:
        shown = f"one of {shown}"
    hint = ""
    if isinstance(value, str):
        hint = did_you_mean(value, [item for item in values if isinstance(item, str)])
    return _with_hint(f"must be {shown}", hint)


def _beyond(number: float, schema: Schema) -> str | None:
    """Return a message if a number is outside the bounds of a schema.

    Infinity is accepted, because it stands for the open end of a range."""
    if not is_number(number):
        return None
    for name, holds, words in _BOUNDS:
        bound = keyword_value(schema, name)
        if is_number(bound) and not holds(number, bound):
            return f"{_shown(number)} is outside the range that the schema allows: {words} {_shown(bound)}"
    return None


def _shown(value: object) -> str:
    try:
        return render.one_line(value)
    except ValueError:
        if value is None:
            return "null"
        return str(value)


def _count(number: object, what: str) -> str:
    if number == 1:
        return f"1 {what}"
    return f"{_shown(number)} {what}s"


def _line(text: str) -> str:
    return shortened(one_line(text), _MAX_MARK_CHARS)


def _found(pattern: str, name: str) -> bool:
    # A pattern that cannot be evaluated may allow the name, so the name is not refused.
    try:
        return search_pattern(pattern, name, is_of_schema=True)
    except SearchError:
        return True


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
