"""Reads the parameters of the offered tools from their JSON Schemas, and ranks the tools by their fit to a text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Literal, NamedTuple

from rapidfuzz import fuzz, process

from workbench.dataclasses import dataclass
from workbench.providers.offline.evidence import Kind
from workbench.providers.offline.words import (
    CHANGING_VERB_STEMS,
    GENERAL_VERB_STEMS,
    RELATED,
    split_name,
    stem,
    stem_set,
    stems_of,
    word_set,
)
from workbench.startup import late_pattern
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.json_schema import (
    ALTERNATIVES,
    Schema,
    alternatives_of,
    is_number,
    listed_values,
    properties_of,
    required_names,
    resolved,
    type_names,
    type_of,
)

# fmt: off
Role = Literal[
    "choice", "number", "flag", "list", "object", "moment", "email", "url", "zone", "person", "id", "path",
    "expression", "query", "prose", "opaque", "other",
]
# fmt: on
"""The kind of a parameter's value, by its type, name, format and description."""

ACCEPTED_EVIDENCE: dict[Role, tuple[Kind, ...]] = {
    "number": ("number",),
    "moment": ("datetime", "date", "time"),
    "email": ("email", "handle", "name"),
    "url": ("url",),
    "zone": ("pair", "name"),
    "person": ("handle", "email", "name", "id"),
    "id": ("id", "number", "quoted", "pair"),
    "path": ("path", "quoted", "url", "pair"),
    "expression": ("quoted",),
    "query": ("quoted",),
    "prose": ("quoted",),
    "opaque": ("quoted", "name", "id", "number", "url", "path", "pair"),
    "other": ("quoted", "name", "id", "pair", "path", "handle", "number"),
}
"""The kinds of evidence that fill a parameter of a role, the likeliest first. Other roles take no evidence."""

_NAMED_ROLES: dict[Role, str] = {
    "email": "email mail recipient cc bcc",
    "url": "url uri link href website",
    "moment": "date datetime time deadline due when timestamp day since until",
    "person": "user username handle login assignee member author reviewer person channel",
    "id": "id identifier key sku sha hash uuid ref",
    "path": "path file filename folder directory",
    "expression": "expression formula equation",
    "query": "query q search keyword term",
    "prose": """message text body content comment note description title subject summary question prompt caption
        headline instruction reason detail topic""",
    "opaque": "input value data string argument payload",
    "zone": "timezone tz zone",
}
_ROLE_BY_STEM: dict[str, Role] = {}
for _named_role, _words in _NAMED_ROLES.items():
    _ROLE_BY_STEM |= dict.fromkeys(stem_set(_words), _named_role)
_ROLE_BY_FORMAT: dict[str, Role] = {"date": "moment", "date-time": "moment", "time": "moment", "email": "email"}
_ROLE_BY_FORMAT |= {"uri": "url", "url": "url", "uuid": "id"}
_ROLE_BY_TYPE: dict[str, Role] = {"integer": "number", "number": "number", "boolean": "flag"}
_ROLE_BY_TYPE |= {"array": "list", "object": "object"}
_OF_PATHS = word_set("path file filename folder directory filepath dir repo repository")

_MAX_PARAMETERS = 100
_MAX_UNIONS = 10
_MAX_DESCRIPTION_CHARS = 1_500
_FIRST_SENTENCE = late_pattern(r"(?:[^.\n]|\.(?=\S))*")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a tool.

    `schema` is the parameter's schema with references resolved, and with a union replaced by its first branch that is
    not null. `root` is the whole schema, which contains the definitions."""

    name: str
    schema: Schema
    required: bool
    root: Schema

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(map(stem, split_name(self.name)))

    @cached_property
    def types(self) -> frozenset[str]:
        """The JSON types of the schema without null."""
        types = frozenset(type_names(self.schema) or ()) - {"null"}
        if types:
            return types
        if isinstance(self.schema.get("properties"), dict):
            return frozenset({"object"})
        return frozenset({"array"}) if "items" in self.schema else types

    @cached_property
    def choices(self) -> tuple[JsonValue, ...]:
        """The values that the schema lists, such as those of `enum`; empty if any value is allowed."""
        return tuple(listed_values(self.schema) or ())

    @cached_property
    def description(self) -> str:
        """The schema's description, in lower case."""
        text = self.schema.get("description")
        return text[:1000].lower() if isinstance(text, str) else ""

    @property
    def of_path(self) -> bool:
        """Whether the name or the description mentions a path, a file, a folder or a repository."""
        return not _OF_PATHS.isdisjoint(split_name(self.name) + split_name(self.description))

    @cached_property
    def item(self) -> Parameter:
        """This parameter or, for a list, a parameter with the schema of a single item."""
        if self.role != "list":
            return self
        return parameter_of(self.name, self.schema.get("items"), self.required, self.root)

    @cached_property
    def role(self) -> Role:
        """The kind of value that the parameter expects."""
        if self.choices:
            return "choice"
        if self.types and "string" not in self.types:
            return next((role for kind, role in _ROLE_BY_TYPE.items() if kind in self.types), "other")
        stated, described = self.schema.get("format"), split_name(self.description)
        if isinstance(stated, str) and stated in _ROLE_BY_FORMAT:
            return _ROLE_BY_FORMAT[stated]
        if self.words == ("to",) and not {"address", "mail", "email", "recipient"}.isdisjoint(described):
            return "email"
        # The last word of a name is the most important: `file_owner` is a person, `owner_file` is a path.
        roles = [_ROLE_BY_STEM[word] for word in reversed(self.words) if word in _ROLE_BY_STEM]
        if roles:
            return "zone" if "zone" in roles else roles[0]
        if not {"iso", "yyyy", "rfc3339"}.isdisjoint(described):
            return "moment"
        return "prose" if described[:2] == ("free", "text") else "other"

    def fits(self, value: JsonValue) -> bool:
        """Return whether a value has the right type, is among the listed values, and is within the bounds."""
        kind = type_of(value)
        # Compare the types too, because True equals 1 in Python, but not in JSON.
        if self.choices and not any(value == one and kind == type_of(one) for one in self.choices):
            return False
        # In JSON Schema, every integer is also a number.
        if self.types and kind not in self.types and not (kind == "integer" and "number" in self.types):
            return False
        if isinstance(value, str):
            return self._within(len(value), "minLength", "maxLength")
        return not is_number(value) or self._within(value, "minimum", "maximum")

    def _within(self, size: float, minimum_key: str, maximum_key: str) -> bool:
        lower, upper = self.schema.get(minimum_key), self.schema.get(maximum_key)
        return not (is_number(lower) and size < lower) and not (is_number(upper) and size > upper)


def parameters_of(schema: JsonValue, root: Schema | None = None) -> list[Parameter]:
    """Return the parameters in the schema of an object, in order; empty if it has no readable properties."""
    if not isinstance(schema, dict):
        return []
    root = schema if root is None else root
    branch = _branch_of(schema, root)
    required = required_names(branch)
    properties = islice(properties_of(branch).items(), _MAX_PARAMETERS)
    return [parameter_of(name, one, name in required, root) for name, one in properties]


def parameter_of(name: str, schema: JsonValue, required: bool, root: Schema) -> Parameter:
    return Parameter(name, _branch_of(schema, root), required, root)


def _branch_of(schema: JsonValue, root: Schema) -> Schema:
    branch = resolved(schema, root)
    for _ in range(_MAX_UNIONS):
        branches = next(alternatives_of(branch, *ALTERNATIVES), None)
        if branches is None:
            break
        usable = (one for one in branches if isinstance(one, dict) and one.get("type") != "null")
        # Keywords beside the union, such as the description, apply to every branch.
        outer = {key: value for key, value in branch.items() if key not in ALTERNATIVES}
        branch = resolved({**next(usable, {}), **outer}, root)
    return branch


class Tool:
    """An offered tool, with the words of its definition for matching."""

    def __init__(self, definition: ToolDefinition) -> None:
        self.definition = definition
        self.name = definition.name
        self._name_words = " ".join(split_name(self.name))
        self.name_stems = stems_of(self._name_words)
        match = _FIRST_SENTENCE.match(definition.description[:_MAX_DESCRIPTION_CHARS])
        self._summary = match[0] if match else ""
        self.own_words = frozenset((*self.name_stems, *stems_of(self._summary)))
        """The stems in the name and in the first sentence of the description."""

    @cached_property
    def parameters(self) -> list[Parameter]:
        return parameters_of(dict(self.definition.parameters))

    @property
    def changes_something(self) -> bool:
        """Whether the tool changes something.

        Its annotation decides, or else the first word of its name."""
        hint = self.definition.annotations.get("readOnlyHint")
        if isinstance(hint, bool):
            return not hint
        return stem(next(iter(split_name(self.name)), "")) in CHANGING_VERB_STEMS

    @property
    def properties(self) -> Iterator[tuple[str, JsonValue]]:
        return islice(properties_of(self.definition.parameters).items(), _MAX_PARAMETERS)

    def weighted_words(self) -> dict[str, float]:
        """Return the stems of the words in the tool's definition, each with a weight.

        A word in the name weighs more than a word in the description. A word that occurs in several places gets the
        greatest of their weights."""
        places = [(0.25, self.definition.description[len(self._summary) : _MAX_DESCRIPTION_CHARS])]
        for name, schema in self.properties:
            places.append((0.45, " ".join(split_name(name))))
            if isinstance(schema, dict):
                described = schema.get("description")
                places.append((0.25, described[:_MAX_DESCRIPTION_CHARS] if isinstance(described, str) else ""))
                places.append((0.6, _texts(schema.get("enum")) + _texts(schema.get("examples"))))
        places += [(0.6, self._summary), (1.0, self._name_words)]
        weights: dict[str, float] = {}
        for weight, text in sorted(places):
            weights.update(dict.fromkeys(stems_of(text), weight))
        return weights


def _texts(values: JsonValue) -> str:
    words: list[str] = []
    for value in values[:_MAX_PARAMETERS] if isinstance(values, list) else ():
        if isinstance(value, str):
            words += split_name(value)
    return " ".join([*words, ""])


# Tools are ranked like documents in a search by TF-IDF. The weight of a word that a text shares with a tool depends on
# where it occurs in the tool's definition, and on its rarity among all offered tools.
# https://en.wikipedia.org/wiki/Tf-idf

CALL_THRESHOLD = 0.5
"""The least score with which a tool is called."""

_SYNONYM_FACTOR = 0.8
"""The likeness of a synonym, and the factor for the likeness of a word that is spelt alike."""
_FUZZY_CUTOFF = 84.0
_MIN_FUZZY_CHARS = 5
_QUESTION_CHANGE_FACTOR = 0.6
"""The factor for tools that change something if the text is a question."""
_HALF_SCORE_WEIGHT = 0.35
"""The weight that gives a score of one half."""
_NAMED = 0.9
"""The weight of a parameter's name when the text gives a value with it."""
_MAX_WORDS = 60
"""The most words of a text that are compared with the tools."""


class RankedTool(NamedTuple):
    """A tool and its score, from 0 to 1."""

    tool: Tool
    score: float


class ToolIndex:
    """An index of the words of several tools, with which the tools are ranked for a text."""

    def __init__(self, definitions: Iterable[ToolDefinition]) -> None:
        self.definitions = tuple(definitions)
        self.tools = tuple(map(Tool, self.definitions))
        self._worth: dict[str, dict[int, float]] = {}
        self._with_parameter: dict[str, set[int]] = {}
        for number, tool in enumerate(self.tools):
            for word, weight in tool.weighted_words().items():
                self._worth.setdefault(word, {})[number] = weight
            for word in stems_of(" ".join(" ".join(split_name(name)) for name, _ in tool.properties)):
                self._with_parameter.setdefault(word, set()).add(number)
        self._counts = {word: self._rarity(len(of)) * _importance(word) for word, of in self._worth.items()}
        self._fuzzy = [word for word in self._worth if len(word) >= _MIN_FUZZY_CHARS]

    def rank(
        self, text: str, hints: Iterable[str] = (), value_stems: Iterable[str] = (), *, question: bool = False
    ) -> list[RankedTool]:
        """Rank all tools by their fit to a text, the best first. Tools with equal scores keep their order.

        `hints` are words that the text implies. `value_stems` are stems of words that name a value, such as "subject"
        in "subject 'Lunch'", so they match parameters rather than tools. `question` means that the text is a question,
        which lowers the scores of tools that change something."""
        value_stems = frozenset(value_stems).intersection(self._with_parameter)
        totals = [0.0] * len(self.tools)
        in_name: list[dict[str, float]] = [{} for _ in self.tools]
        for asked in list(dict.fromkeys((*stems_of(text), *map(stem, hints))))[:_MAX_WORDS]:
            best: dict[int, float] = {}
            if asked in value_stems:
                having = self._with_parameter[asked]
                best = dict.fromkeys(having, _NAMED * self._rarity(len(having)))
            else:
                # If several words of a tool match one word of the text, only the best match counts.
                for word, likeness in self._alike(asked).items():
                    for number, weight in self._worth[word].items():
                        best[number] = max(best.get(number, 0.0), likeness * weight * self._counts[word])
                        if word in self.tools[number].name_stems:
                            in_name[number][word] = max(in_name[number].get(word, 0.0), likeness)
            for number, gain in best.items():
                totals[number] += gain
        ranked = []
        for tool, total, matched in zip(self.tools, totals, in_name, strict=True):
            ranked.append(RankedTool(tool, self._score(tool, total, matched, question)))
        return sorted(ranked, key=lambda one: -one.score)

    def _rarity(self, having: int) -> float:
        """Return the inverse document frequency of a word that `having` tools contain, scaled to at most 1.

        It is 1 if a single tool contains the word, and near 0 if there are many tools and all contain the word."""
        return math.log(1 + len(self.tools) / having) / math.log(1 + len(self.tools))

    def _alike(self, text: str) -> dict[str, float]:
        """Return the words of the tools that match a word of the text, each with a likeness from 0 to 1.

        A match is an equal word, a synonym or a word with a similar spelling."""
        alike = dict.fromkeys(RELATED.get(text, set()).intersection(self._worth), _SYNONYM_FACTOR)
        if text in self._worth:
            alike[text] = 1.0
        elif len(text) >= _MIN_FUZZY_CHARS:
            near = process.extract(text, self._fuzzy, scorer=fuzz.ratio, score_cutoff=_FUZZY_CUTOFF, limit=5)
            alike = {word: _SYNONYM_FACTOR * ratio / 100 for word, ratio, _ in near} | alike
        return alike

    def _score(self, tool: Tool, total: float, matched: dict[str, float], question: bool) -> float:
        # A tool whose whole name occurs in the request gets twice the weight of a tool whose name does not occur.
        whole = sum(self._counts[word] for word in tool.name_stems)
        known = sum(self._counts[word] * likeness for word, likeness in matched.items())
        weight = total * (0.5 + 0.5 * (known / whole if whole else 0.0))
        if question and tool.changes_something:
            weight *= _QUESTION_CHANGE_FACTOR
        # The score approaches 1 ever more slowly, so that a long text does not get a high score through many weak
        # words.
        return weight / (weight + _HALF_SCORE_WEIGHT)


def _importance(stemmed: str) -> float:
    return 0.4 if stemmed in GENERAL_VERB_STEMS else 1.0


def parameter_named(words: frozenset[str], parameters: Sequence[Parameter]) -> Parameter | None:
    """Return the first parameter whose name contains one of the words; `None` if there is none."""
    return next((one for one in parameters if not words.isdisjoint(split_name(one.name))), None)
