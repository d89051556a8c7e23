"""Lints tool definitions: names, descriptions and schemas that providers refuse or models misunderstand."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, combinations, islice
from typing import Any, Literal, NamedTuple

from rapidfuzz import fuzz

from workbench.checks.schemas import BrokenSchemaError, argument_problems, dangling_references
from workbench.dataclasses import dataclass, json_text
from workbench.limits import MAX_INSTRUCTIONS_BYTES, MAX_OFFERED_TOOLS, MAX_SCHEMA_PARAMETERS
from workbench.numerals import count_text
from workbench.startup import late_pattern
from workbench.suite.model import Suite
from workbench.suite.problems import Severity
from workbench.tools.connection import ListingIssue
from workbench.tools.listings import definition_of
from workbench.trajectory.events import JsonValue, ToolDefinition, names_of_tools
from workbench.trajectory.json_schema import (
    ALTERNATIVES,
    Schema,
    alternatives_of,
    properties_of,
    reference_chain,
    references_of,
    required_names,
    resolved,
    type_names,
    type_text,
)
from workbench.trajectory.system_prompt import too_long

MAX_SCHEMA_DEPTH = 8
"""The most levels of nesting that are read. No model fills in more levels, and a schema may refer to itself
endlessly."""

_SAYS_TYPE = ("type", "enum", "const", "not", "if", *ALTERNATIVES)
"""The keywords that restrict the type of a value."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a tool, at any level of nesting.

    `path` is its place, such as `to[].name`. `written` is its schema as the tool has it. In `schema`, references are
    followed, and a description or a default beside a reference takes precedence. `depth` counts from 0. `item` is true
    for the element of a list."""

    path: str
    name: str
    schema: Schema
    required: bool = False
    depth: int = 0
    item: bool = False
    written: JsonValue = None

    @property
    def description(self) -> str:
        """The description of the parameter or of its first described alternative, or an empty text."""
        return _description(self.schema)

    @property
    def has_type(self) -> bool:
        return any(key in self.schema for key in _SAYS_TYPE)


def parameters_of(schema: Schema) -> tuple[Parameter, ...]:
    """Return the parameters of a tool, each followed by its inner parameters, up to `MAX_SCHEMA_PARAMETERS`."""
    found: dict[str, Parameter] = {}
    for parameter in islice(_inside(schema, _Position(schema, MAX_SCHEMA_DEPTH)), MAX_SCHEMA_PARAMETERS):
        # Several alternatives may have a parameter of the same name.
        found.setdefault(parameter.path, parameter)
    return tuple(found.values())


class _Position(NamedTuple):
    """The position of a schema inside a tool's schema (`root`). Up to `levels` levels below it are read.

    `sure` is false inside one of several alternatives, where parameters are not required. `entered` are the references
    on the way to this position. They are not followed again, so a recursive definition ends."""

    root: Schema
    levels: int
    path: str = ""
    depth: int = 0
    sure: bool = True
    entered: frozenset[str] = frozenset({"#"})

    def below(self, written: JsonValue, **changes: Any) -> _Position | None:
        """Return the position of a schema one level below, or `None` if that schema is not read."""
        references = references_of(written, self.root)
        if self.levels == 1 or references & self.entered:
            return None
        return self._replace(levels=self.levels - 1, entered=self.entered | references, **changes)


def _inside(schema: Schema, position: _Position) -> Iterator[Parameter]:
    required = required_names(schema) if position.sure else ()
    for name, written in properties_of(schema).items():
        place = f"{position.path}.{name}" if position.path else name
        parameter = Parameter(
            place, name, resolved(written, position.root), name in required, position.depth, item=False, written=written
        )
        yield parameter
        inner = position.below(written, path=place, depth=position.depth + 1, sure=True)
        if inner is not None:
            yield from _inside(parameter.schema, inner)
    for place, written in _items(schema, position.path):
        item = Parameter(place, "", resolved(written, position.root), False, position.depth, item=True, written=written)
        yield item
        inner = position.below(written, path=place, sure=True)
        if inner is not None:
            yield from _inside(item.schema, inner)
    for key in ALTERNATIVES:
        for option in chain.from_iterable(alternatives_of(schema, key)):
            inner = position.below(option, sure=position.sure and key == "allOf")
            if inner is not None:
                yield from _inside(resolved(option, position.root), inner)


def _items(schema: Schema, path: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield the places and schemas of a list's items. Dialects before 2020-12 may list a schema for each item."""
    items = schema.get("items")
    if isinstance(items, list):
        for number, item in enumerate(items):
            yield f"{path}[{number}]", item
    elif "items" in schema:
        yield f"{path}[]", items


def _description(schema: Schema) -> str:
    description = schema.get("description")
    if isinstance(description, str) and description.strip():
        return description
    for option in chain.from_iterable(alternatives_of(schema, *ALTERNATIVES)):
        if isinstance(option, dict) and (inner := _description(option)):
            return inner
    return ""


CHARACTERS_PER_TOKEN = 4
"""The usual rule of thumb for characters per token. Every tokenizer counts differently."""


def definition_size(tool: ToolDefinition) -> int:
    """Return the number of characters of a tool's definition as sent to a model, in compact JSON."""
    return len(json_text({"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}))


def tokens_in(characters: int) -> int:
    """Return the approximate number of tokens in a text with this many characters."""
    return math.ceil(characters / CHARACTERS_PER_TOKEN)


def tokens_of(tools: Iterable[ToolDefinition]) -> int:
    return tokens_in(sum(map(definition_size, tools)))


LARGE_TOOL_TOKENS = 1_000
"""The number of tokens from which a definition is large. Most definitions take 100 to 300 tokens, and every request
pays for them again."""

LARGE_OFFER_TOKENS = 8_000
"""The number of tokens from which all definitions together are large. Many small local models have a context of 8,192
tokens."""

MIN_DESCRIPTION_CHARS = 15
"""The number of characters below which a description is short: only a verb and an object, which the name already
says."""

QUOTED_CHARACTERS = 80
"""The number of characters of a description that a message quotes."""

SIMILAR_RATIO = 90.0
"""The similarity (rapidfuzz's `token_sort_ratio`, 0..100) of sentences that differ in at most one or two words."""

ACCEPTED_NAME = late_pattern(r"[a-zA-Z0-9_-]{1,64}")
"""The names of tools that OpenAI and Anthropic accept. In other names, `_` replaces the refused characters."""

ACCEPTED_PARAMETER = late_pattern(r"[a-zA-Z0-9_.-]{1,64}")
"""The names of parameters that Anthropic accepts."""

LintRule = Literal[
    "same name",
    "too many tools",
    "large offer",
    "refused name",
    "no description",
    "short description",
    "same description",
    "near-identical",
    "large tool",
    "broken schema",
    "refused schema",
    "refused parameter name",
    "parameter without description",
    "parameter without type",
    "list without items",
    "object without properties",
    "unknown required",
    "task required",
    "malformed tool",
    "cursor",
    "long instructions",
]


@dataclass(frozen=True)
class ToolName:
    """The name of a tool, and where the tool comes from.

    `server` is `None` for a tool that the suite defines. If `case` is set, the case with this id defines the tool. The
    name is empty for the list of a server as a whole, and for an unnamed tool in the list."""

    name: str
    server: str | None = None
    case: str | None = None


@dataclass(frozen=True)
class LintFinding:
    """A finding of the linter.

    `tools` are the tools concerned, or empty for all tools. `where` is the place of a parameter, such as `to[].name`,
    or empty for the tool itself. An error means that Workbench or a provider refuses requests with the tool."""

    rule: LintRule
    severity: Severity
    message: str
    hint: str
    tools: tuple[ToolName, ...] = ()
    where: str = ""


def lint_tools(tools: Sequence[ToolDefinition], at_once: int | None = None) -> tuple[LintFinding, ...]:
    """Return the findings on tools that are offered together: first on all of them, then on each tool in order.

    `at_once` is the largest number of tools that a single case offers, by default the number of all tools."""
    by_first: dict[ToolName, list[LintFinding]] = defaultdict(list)
    for finding in (*_same_names(tools), *_same_descriptions(tools), *_near_identical(tools)):
        by_first[finding.tools[0]].append(finding)
    found = list(_offer_findings(tools, len(tools) if at_once is None else at_once))
    for tool in tools:
        # A finding on several tools is reported with the first of them.
        found += by_first.pop(_name(tool), ())
        found += _tool_findings(tool)
    return tuple(found)


def lint_suite(suite: Suite, tools: Sequence[ToolDefinition]) -> tuple[LintFinding, ...]:
    """Return the findings on the tools that all cases have, then on the tools of single cases."""
    found = list(lint_tools(tools, offered_at_once(suite, tools)))
    for case in suite.cases:
        for finding in lint_tools([definition_of(tool) for tool in case.tools]):
            names = tuple(replace(name, case=case.id) for name in finding.tools)
            found.append(replace(finding, tools=names))
    return tuple(found)


def lint_listing(
    server: str, issues: Iterable[ListingIssue], task_tools: Iterable[str], instructions: str
) -> Iterator[LintFinding]:
    """Yield the findings on a server's tool list, its instructions, and tools that only MCP tasks may call."""
    if (excess := too_long(instructions)) is not None:
        hint = MAX_INSTRUCTIONS_BYTES.way_out
        yield LintFinding("long instructions", "warning", excess, hint, (ToolName("", server),), "instructions")
    for issue in issues:
        about = (ToolName(issue.tool, server),)
        if issue.outcome == "cut short":
            hint = "the list ends there: send a new cursor with each page, and none with the last one"
            yield LintFinding("cursor", "warning", issue.message, hint, about, issue.where)
        elif issue.outcome == "duplicate":
            hint = "list it once: models are offered the first definition"
            yield LintFinding("same name", "error", issue.message, hint, about, issue.where)
        elif issue.outcome == "repaired":
            hint = "correct it: Workbench repairs it, but other clients may refuse the tool or the whole server"
            yield LintFinding("malformed tool", "error", issue.message, hint, about, issue.where)
        else:
            hint = "correct it: models are not offered it, and other clients may refuse the whole server"
            yield LintFinding("malformed tool", "error", issue.message, hint, about, issue.where)
    for name in task_tools:
        message = 'it can only be called as a task of MCP (taskSupport = "required"): models are not offered it'
        hint = 'let it be called without one too: "optional"'
        yield LintFinding("task required", "error", message, hint, (ToolName(name, server),))


def offered_at_once(suite: Suite, tools: Sequence[ToolDefinition]) -> int:
    """Return the largest number of these tools that a case of the suite offers.

    Without cases, return the number of all tools."""
    if not suite.cases:
        return len(tools)
    most = 0
    for case in suite.cases:
        most = max(most, len(tools) if case.offer is None else len(case.offer))
    return most


def _name(tool: ToolDefinition) -> ToolName:
    return ToolName(tool.name, tool.server)


def _offer_findings(tools: Sequence[ToolDefinition], at_once: int) -> Iterator[LintFinding]:
    fewer = MAX_OFFERED_TOOLS.way_out
    if at_once > MAX_OFFERED_TOOLS:
        message = MAX_OFFERED_TOOLS.exceeded(offered=at_once)
        yield LintFinding("too many tools", "error", message, fewer)
    tokens = tokens_of(tools)
    if tokens > LARGE_OFFER_TOKENS and at_once == len(tools):
        message = f"all tools together take about {count_text(tokens)} tokens of every request"
        yield LintFinding("large offer", "warning", message, f"{fewer}; small local models have no room for them")


def _same_names(tools: Sequence[ToolDefinition]) -> Iterator[LintFinding]:
    for name, group in _groups(tools, lambda tool: tool.name):
        places = " and ".join(map(_origin, group))
        message = f"{len(group)} tools are named {name}: {places}; no run can start"
        yield LintFinding(
            "same name", "error", message, "give a server a prefix, or rename one", tuple(map(_name, group))
        )


def _origin(tool: ToolDefinition) -> str:
    return "in the suite" if tool.server is None else f"on server {tool.server}"


def _same_descriptions(tools: Sequence[ToolDefinition]) -> Iterator[LintFinding]:
    for _, group in _groups(tools, lambda tool: " ".join(_words(tool.description))):
        names = names_of_tools(group)
        if len(set(names)) > 1:
            message = f"{_listed(names)} have the same description"
            hint = "say what only this tool does, in each description"
            yield LintFinding("same description", "warning", message, hint, tuple(map(_name, group)))


def _groups(
    tools: Sequence[ToolDefinition], key: Callable[[ToolDefinition], str]
) -> Iterator[tuple[str, list[ToolDefinition]]]:
    groups: dict[str, list[ToolDefinition]] = defaultdict(list)
    for tool in tools:
        groups[key(tool)].append(tool)
    for text, group in groups.items():
        if text and len(group) > 1:
            yield text, group


def _near_identical(tools: Sequence[ToolDefinition]) -> Iterator[LintFinding]:
    # Only tools with the same arguments are compared. A model can tell other tools apart, and comparing all pairs would
    # be slow.
    by_parameters: dict[frozenset[tuple[str, str]], list[ToolDefinition]] = defaultdict(list)
    for tool in tools:
        if tool.description.strip():
            types = set()
            for name, schema in properties_of(tool.parameters).items():
                types.add((name, type_text(schema)))
            by_parameters[frozenset(types)].append(tool)
    for group in by_parameters.values():
        for one, other in combinations(group, 2):
            if one.name != other.name and _say_the_same(one, other):
                message = f"{one.name} and {other.name} take the same arguments and have nearly the same description"
                hint = "remove one, or say when to use which"
                yield LintFinding("near-identical", "warning", message, hint, (_name(one), _name(other)))


def _say_the_same(one: ToolDefinition, other: ToolDefinition) -> bool:
    ours, theirs = _meanings(one.description), _meanings(other.description)
    # Equal descriptions are already another finding.
    if _words(one.description) == _words(other.description):
        return False
    if fuzz.token_sort_ratio(" ".join(ours), " ".join(theirs)) < SIMILAR_RATIO:
        return False
    # If the only differing word also differs in the names (lock, unlock), this word tells the tools apart.
    own = (set(ours) - set(theirs)) & (set(_meanings(one.name)) - set(_meanings(other.name)))
    its = (set(theirs) - set(ours)) & (set(_meanings(other.name)) - set(_meanings(one.name)))
    return not (own and its)


_WORD = late_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W_]+")
_SAME_MEANING = (
    ("get", "fetch", "read", "retrieve", "show", "return"),
    ("find", "search", "query", "lookup"),
    ("create", "add", "make"),
    ("update", "edit", "modify", "change"),
    ("delete", "remove", "destroy"),
)
_MEANING = {word: group[0] for group in _SAME_MEANING for word in group}
_FILLERS = frozenset(("a", "an", "the", "of", "for", "to", "in", "on", "and", "this", "tool", "new"))


COMPARED_CHARACTERS = 2_000
"""The most characters of a description that are compared. The purpose of a tool is at the beginning."""


@lru_cache(maxsize=4_096)
def _words(text: str) -> tuple[str, ...]:
    return tuple(word.casefold() for word in _WORD.findall(text[:COMPARED_CHARACTERS]))


@lru_cache(maxsize=4_096)
def _meanings(text: str) -> tuple[str, ...]:
    """Return the words of a text without plural endings and fillers. Verbs with the same meaning become one word."""
    found = []
    for word in _words(text):
        stem = word.removesuffix("es" if word.endswith(("ches", "shes")) else "s")
        if stem not in _FILLERS:
            found.append(_MEANING.get(stem, stem))
    return tuple(found)


def _tool_findings(tool: ToolDefinition) -> Iterator[LintFinding]:
    about = (_name(tool),)
    if not ACCEPTED_NAME.fullmatch(tool.name):
        message = "OpenAI and Anthropic accept only A-Z, a-z, 0-9, _ and - in a name, 64 of them at most"
        hint = "rename it: until then Workbench sends it under a changed name"
        yield LintFinding("refused name", "warning", message, hint, about)
    description = tool.description.strip()
    if not description:
        yield LintFinding(
            "no description", "warning", "it has no description", "say what it does and when to use it", about
        )
    elif len(description) < MIN_DESCRIPTION_CHARS or set(_meanings(description)) <= set(_meanings(tool.name)):
        message = f"its description says no more than its name: {description[:QUOTED_CHARACTERS]}"
        yield LintFinding("short description", "warning", message, "say what it does and when to use it", about)
    tokens = tokens_in(definition_size(tool))
    if tokens > LARGE_TOOL_TOKENS:
        message = f"its definition takes about {count_text(tokens)} tokens of every request"
        yield LintFinding("large tool", "warning", message, "shorten it, or split the tool", about)
    for rule, severity, where, message, hint in _schema_findings(tool.parameters):
        yield LintFinding(rule, severity, message, hint, about, where)


_Found = tuple[LintRule, Severity, str, str, str]
"""The rule, severity, place, message and hint of a finding in a schema."""


def _schema_findings(schema: Schema) -> Iterator[_Found]:
    alternatives = [key for key in ALTERNATIVES if key in schema]
    if schema.get("type") not in (None, "object"):
        message = f"the arguments of a tool are an object, not {type_text(schema) or 'this'}"
        yield "refused schema", "error", "", message, 'write type = "object"'
    elif alternatives:
        message = f"Anthropic refuses {_listed(alternatives)} at the top of a schema"
        yield "refused schema", "error", "", message, "put the alternatives into a parameter"
    broken: list[str] = []
    try:
        broken += map(str, dangling_references(schema))
        if not broken:
            argument_problems({}, schema)
    except BrokenSchemaError as error:
        broken.append(str(error))
    for why in broken:
        yield "broken schema", "error", "", f"its schema is broken: {why}", "correct it: models and checks rely on it"
    if broken:
        return
    yield from _unknown_required(schema, "")
    reported: set[tuple[LintRule, int]] = set()
    for parameter in parameters_of(schema):
        for finding in _parameter_findings(parameter, schema):
            # A definition that several parameters use is reported where it is first used. Only the name and the
            # description belong to a single parameter.
            faulty: JsonValue | Schema = parameter.written
            if finding[0] in _OF_DEFINITIONS:
                *_, faulty = (faulty, *reference_chain(faulty, schema))
            key = (finding[0], id(faulty))
            if key not in reported or not isinstance(faulty, Mapping):
                reported.add(key)
                yield finding


_OF_DEFINITIONS: frozenset[LintRule] = frozenset(
    ("parameter without type", "list without items", "object without properties", "unknown required")
)
_DESCRIBES_ITEMS = frozenset(("items", "prefixItems"))
_DESCRIBES_PROPERTIES = frozenset(("properties", "additionalProperties", "patternProperties", *ALTERNATIVES))


def _parameter_findings(parameter: Parameter, root: Schema) -> Iterator[_Found]:
    where, schema = parameter.path, parameter.schema
    if not parameter.item:
        if not ACCEPTED_PARAMETER.fullmatch(parameter.name):
            message = "Anthropic accepts only A-Z, a-z, 0-9, _, . and - in a parameter's name, 64 of them at most"
            yield "refused parameter name", "error", where, message, "rename it"
        if not parameter.description:
            yield "parameter without description", "warning", where, "it has no description", "describe it"
    if not parameter.has_type:
        yield "parameter without type", "warning", where, "it has no type", "say which values it takes"
    kinds = type_names(schema) or ()
    if "array" in kinds and _DESCRIBES_ITEMS.isdisjoint(schema):
        yield "list without items", "warning", where, "the items of its list have no type", "say what they are: items"
    if "object" in kinds and _DESCRIBES_PROPERTIES.isdisjoint(schema):
        yield (
            "object without properties",
            "warning",
            where,
            "its object lists no properties",
            "name its properties",
        )
    yield from _unknown_required(resolved(schema, root), where)


def _unknown_required(schema: Schema, place: str) -> Iterator[_Found]:
    known = properties_of(schema)
    # The required properties may be listed in an alternative.
    if not set(ALTERNATIVES).isdisjoint(schema):
        return
    for name in dict.fromkeys(required_names(schema)):
        if name not in known:
            message = f"{name} is required, but not listed among the properties"
            yield "unknown required", "warning", place, message, "list it there, or do not require it"


def _listed(names: Iterable[str]) -> str:
    *others, last = names
    if not others:
        return last
    return f"{', '.join(others)} and {last}"
