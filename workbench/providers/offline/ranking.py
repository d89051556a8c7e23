"""Ranks the offered tools by how well they fit a text: words of the text against words of the tools, rare words
counting more."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from rapidfuzz import fuzz, process

from workbench.dataclasses import dataclass
from workbench.providers.offline.words import (
    CHANGING_VERB_STEMS,
    GENERAL_VERB_STEMS,
    RELATED,
    split_name,
    stem,
    stems_of,
)
from workbench.trajectory.json_schema import properties_of
from workbench.trajectory.messages import JsonValue, ToolDefinition

CALL_THRESHOLD = 0.5
"""A tool with a lower score is not called."""

_IN_NAME, _IN_SUMMARY, _IN_ENUM, _IN_PARAMETER, _IN_DETAILS = 1.0, 0.6, 0.6, 0.45, 0.25
"""The weight of a word by its place in the tool; the summary is the description's first sentence."""

_RELATED_WORTH = 0.8
_FUZZY_CUTOFF = 84.0
_FUZZY_WORTH = 0.8
_MIN_FUZZY_CHARS = 5
_GENERAL_VERB_WORTH = 0.4
_UNASKED_CHANGE = 0.6
"""The penalty for tools that change something when the text is a question."""
_HALF_WAY = 0.35
"""The raw weight at which a score is one half."""

_NAMED = 0.9
"""The weight of a parameter's name when the text gives a value with it."""

_MAX_DESCRIPTION_CHARS = 1_500
_MAX_PARAMETERS = 100
_MAX_WORDS = 60
"""How much of a description, of a schema and of a text is read."""

_FIRST_SENTENCE = re.compile(r"(?:[^.\n]|\.(?=\S))*")


@dataclass(frozen=True, slots=True)
class RankedTool:
    """A tool and its score, 0..1."""

    tool: ToolDefinition
    score: float


class ToolIndex:
    """The words of a list of tools, computed once for many rankings."""

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        self.tools = tuple(tools)
        self._worth: dict[str, dict[int, float]] = {}
        self._names = [stems_of(" ".join(split_name(tool.name))) for tool in self.tools]
        for number, tool in enumerate(self.tools):
            for place_worth, text in _places(tool):
                for found in stems_of(text):
                    of_tools = self._worth.setdefault(found, {})
                    of_tools[number] = max(of_tools.get(number, 0.0), place_worth)
        self._parameters = [_parameter_stems(tool) for tool in self.tools]
        self._fuzzy = [word for word in self._worth if len(word) >= _MIN_FUZZY_CHARS]
        self._rarity = {word: self._rarity_of(len(having)) for word, having in self._worth.items()}

    def rank(
        self, text: str, hints: Iterable[str] = (), named: Iterable[str] = (), *, question: bool = False
    ) -> list[RankedTool]:
        """Returns all tools, best first, equal ones in the order offered. `hints` are words that the text implies;
        `named` are stems that name a value given with them, as in "subject 'Lunch'", and so indicate a parameter rather
        than a tool."""
        named = frozenset(named)
        stems = list(dict.fromkeys([*stems_of(text), *(stem(hint) for hint in hints)]))[:_MAX_WORDS]
        totals = [0.0] * len(self.tools)
        matched: list[dict[str, float]] = [{} for _ in self.tools]
        for asked in stems:
            best: dict[int, float] = {}
            having = [n for n, names in enumerate(self._parameters) if asked in names] if asked in named else []
            if having:
                for number in having:
                    totals[number] += _NAMED * self._rarity_of(len(having))
                continue
            for word, likeness in self._alike(asked).items():
                weight = likeness * _importance(word)
                for number, place_worth in self._worth[word].items():
                    best[number] = max(best.get(number, 0.0), weight * place_worth * self._rarity[word])
                    if word in self._names[number]:
                        matched[number][word] = max(matched[number].get(word, 0.0), likeness)
            for number, gain in best.items():
                totals[number] += gain
        ranked = [
            RankedTool(tool, self._score(number, totals[number], matched[number], question))
            for number, tool in enumerate(self.tools)
        ]
        return sorted(ranked, key=lambda one: -one.score)

    def _rarity_of(self, having: int) -> float:
        """Returns near 0 for a word that every one of many tools has, 1 for a word of one tool alone (inverse document
        frequency, scaled)."""
        return math.log(1 + len(self.tools) / having) / math.log(1 + len(self.tools))

    def _alike(self, asked: str) -> dict[str, float]:
        """Returns the words of the tools that are the given one, a synonym or a similar spelling, with their
        likeness."""
        alike = {word: _RELATED_WORTH for word in RELATED.get(asked, ()) if word in self._worth}
        if asked in self._worth:
            alike[asked] = 1.0
        elif len(asked) >= _MIN_FUZZY_CHARS:
            near = process.extract(asked, self._fuzzy, scorer=fuzz.ratio, score_cutoff=_FUZZY_CUTOFF, limit=5)
            for word, ratio, _ in near:
                alike.setdefault(word, _FUZZY_WORTH * ratio / 100)
        return alike

    def _score(self, number: int, total: float, matched: Mapping[str, float], question: bool) -> float:
        name = self._names[number]
        whole = sum(self._rarity[word] * _importance(word) for word in name)
        known = sum(self._rarity[word] * _importance(word) * likeness for word, likeness in matched.items())
        raw = total * (0.5 + 0.5 * (known / whole if whole else 0.0))
        if question and changes_something(self.tools[number]):
            raw *= _UNASKED_CHANGE
        return raw / (raw + _HALF_WAY)


def changes_something(tool: ToolDefinition) -> bool:
    """Returns whether a tool changes something, by its annotations, or else by the first word of its name."""
    hint = tool.annotations.get("readOnlyHint")
    if isinstance(hint, bool):
        return not hint
    first = next(iter(split_name(tool.name)), "")
    return stem(first) in CHANGING_VERB_STEMS


def tool_words(tool: ToolDefinition) -> frozenset[str]:
    """Returns the stems in a tool's name and in the first sentence of its description."""
    return frozenset(stems_of(f"{' '.join(split_name(tool.name))} {_summary(tool)}"))


def _summary(tool: ToolDefinition) -> str:
    match = _FIRST_SENTENCE.match(tool.description[:_MAX_DESCRIPTION_CHARS])
    return match[0] if match else ""


def _places(tool: ToolDefinition) -> Iterable[tuple[float, str]]:
    yield _IN_NAME, " ".join(split_name(tool.name))
    summary = _summary(tool)
    yield _IN_SUMMARY, summary
    yield _IN_DETAILS, tool.description[len(summary) : _MAX_DESCRIPTION_CHARS]
    for name, schema in islice(properties_of(tool.parameters).items(), _MAX_PARAMETERS):
        yield _IN_PARAMETER, " ".join(split_name(name))
        if isinstance(schema, dict):
            yield _IN_DETAILS, _text(schema.get("description"))[:_MAX_DESCRIPTION_CHARS]
            yield _IN_ENUM, _choices(schema)


def _parameter_stems(tool: ToolDefinition) -> frozenset[str]:
    names = islice(properties_of(tool.parameters), _MAX_PARAMETERS)
    return frozenset(found for name in names for found in stems_of(" ".join(split_name(name))))


def _choices(schema: Mapping[str, JsonValue]) -> str:
    values = [value for key in ("enum", "examples") if isinstance(listed := schema.get(key), list) for value in listed]
    return " ".join(" ".join(split_name(value)) for value in values[:_MAX_PARAMETERS] if isinstance(value, str))


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _importance(stemmed: str) -> float:
    return _GENERAL_VERB_WORTH if stemmed in GENERAL_VERB_STEMS else 1.0
