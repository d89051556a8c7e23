"""Fill a tool's arguments from the content of a clause, and from the results of earlier calls."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from zoneinfo import available_timezones

from workbench.dataclasses import dataclass
from workbench.providers.offline.language import (
    REQUEST_VERBS,
    STOP_STEMS,
    STOPWORDS,
    VERB_STEMS,
    Clause,
    Evidence,
    Kind,
    Word,
    joined_groups,
    operation_of,
    split_name,
    stem,
    tool_words,
    word_set,
)
from workbench.providers.offline.schemas import Parameter, Role, parameter_of, parameters_of
from workbench.startup import late_pattern
from workbench.trajectory.events import JsonValue, ToolDefinition

_NUMBER = re.compile(r"(?<![\w.])-?\d{1,18}(?:\.\d{1,15})?(?![\w]|\.\d)", re.ASCII)
_TELLING_KEYS = ("result", "value", "answer", "total", "output", "sum")
_MAX_TOLD_CHARS = 400
_DEEPEST = 6
_MAX_PARSED = 200_000


@dataclass(frozen=True)
class ToolResult:
    """The content of a tool message."""

    content: str
    is_error: bool = False

    @cached_property
    def data(self) -> JsonValue:
        """The content as JSON, or as text."""
        if len(self.content) > _MAX_PARSED:
            return self.content
        try:
            return _finite(json.loads(self.content))
        except (ValueError, RecursionError):
            return self.content

    @cached_property
    def number(self) -> int | float | None:
        """The single number of the result, if there is one."""
        return _number_in(self.data, _DEEPEST)

    def named(self, name: str) -> JsonValue:
        """Return the first value in the result under a name, however that is spelt; None without one."""
        return _under(self.data, split_name(name), _DEEPEST)

    @property
    def line(self) -> str:
        """The result in one readable line of bounded length."""
        text = " ".join(_readable(self.data).split())
        if len(text) <= _MAX_TOLD_CHARS:
            return text
        return text[: _MAX_TOLD_CHARS - 1] + "…"


def _finite(data: JsonValue) -> JsonValue:
    """Parse JSON that can be written again: NaN and Infinity, which Python reads, are refused."""
    json.dumps(data, allow_nan=False)
    return data


def _number_in(data: JsonValue, depth: int) -> int | float | None:
    if isinstance(data, bool) or data is None or depth == 0:
        return None
    if isinstance(data, int | float):
        return data
    if isinstance(data, str):
        found = _NUMBER.findall(data[:_MAX_TOLD_CHARS])
        if not found:
            return None
        return float(found[-1]) if "." in found[-1] else int(found[-1])
    if isinstance(data, list):
        return _number_in(data[0], depth - 1) if len(data) == 1 else None
    for key in _TELLING_KEYS:
        if key in data and (number := _number_in(data[key], depth - 1)) is not None:
            return number
    numbers = []
    for value in data.values():
        if isinstance(value, int | float) and not isinstance(value, bool):
            numbers.append(value)
    return numbers[0] if len(numbers) == 1 else None


def _under(data: JsonValue, words: list[str], depth: int) -> JsonValue:
    if depth == 0:
        return None
    if isinstance(data, dict):
        for key, value in data.items():
            if split_name(key) == words and value is not None:
                return value
        inner = list(data.values())
    elif isinstance(data, list):
        inner = data
    else:
        return None
    return next((found for one in inner if (found := _under(one, words, depth - 1)) is not None), None)


def _readable(data: JsonValue) -> str:
    if isinstance(data, str):
        return data
    if isinstance(data, dict) and all(not isinstance(value, dict | list) for value in data.values()):
        return ", ".join(f"{key} {_plain(value)}" for key, value in data.items()) or "{}"
    return json.dumps(data, ensure_ascii=False)


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# Converts evidence to the value of a parameter.

ACCEPTED: dict[Role, tuple[Kind, ...]] = {
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
"""The kinds of evidence that a role takes, the likeliest first; other roles take none."""

_DIGIT_MEANING = late_pattern(r"(-?\d{1,9}(?:\.\d{1,9})?)\s*(?:\(|=|is|:|means)\s*([a-z]+)", re.ASCII)
_MAX_CHOICES = 200
_REGIONS = frozenset(
    {"Africa", "America", "Antarctica", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"}
)


def value_for(parameter: Parameter, one: Evidence) -> JsonValue:
    """Return the value of a piece of evidence in the parameter's type; None when it has none."""
    if one.kind not in ACCEPTED.get(parameter.role, ()):
        return None
    value: JsonValue = one.value
    if parameter.role == "number":
        if isinstance(value, float) and value.is_integer() and "number" not in parameter.types:
            value = int(value)
    elif parameter.role == "moment":
        value = _moment(parameter, one)
    elif parameter.role == "zone":
        value = zone_of(str(value))
    else:
        value = str(value)
    if value is None or not parameter.fits(value):
        return None
    return value


def zone_of(text: str) -> str | None:
    """Return the IANA time zone of a name or a city: `Tokyo` → `Asia/Tokyo`."""
    return _zones().get(text.strip().lower().replace(" ", "_"))


@cache
def _zones() -> dict[str, str]:
    zones: dict[str, str] = {}
    for key in sorted(available_timezones()):
        region, _, city = key.rpartition("/")
        zones[key.lower()] = key
        if region.split("/")[0] in _REGIONS:
            zones.setdefault(city.lower(), key)
    return zones


def _moment(parameter: Parameter, one: Evidence) -> str | None:
    text = str(one.value)
    wanted = _wanted_moment(parameter)
    if one.kind == "datetime":
        return {"date": text[:10], "time": text[11:16]}.get(wanted, text)
    if one.kind == "date":
        return {"date-time": f"{text}T00:00:00", "time": None}.get(wanted, text)
    return text if wanted in ("time", "any") else None


def _wanted_moment(parameter: Parameter) -> str:
    """Return `date`, `time`, `date-time`, or `any` when the schema does not say."""
    stated = parameter.schema.get("format")
    if stated in ("date", "time", "date-time"):
        return str(stated)
    described = parameter.description
    has_date, has_time = "yyyy" in described, "hh" in described
    if "date-time" in described or "datetime" in described or (has_date and has_time):
        return "date-time"
    if has_date:
        return "date"
    return "time" if has_time else "any"


def mentioned(parameter: Parameter, clause: Clause, known: frozenset[str]) -> list[tuple[Evidence, JsonValue]]:
    """Return the parameter's listed values (or examples) that a clause names, the longest first, with their places.

    `known` are stems of the tool itself: for an optional parameter they prove nothing, and neither do small words or
    the clause's first verb."""
    examples = parameter.schema.get("examples")
    values = parameter.choices
    if not values and isinstance(examples, list):
        values = tuple(examples)
    outside = []
    for one in clause.evidence:
        if one.kind not in ("name", "number"):
            outside.append((one.start, one.end))
    words = [word for word in clause.words if not _within(word, outside)]
    stems = [word.stem for word in words]
    hits: list[tuple[int, Evidence, JsonValue]] = []
    for value in values[:_MAX_CHOICES]:
        if not isinstance(value, str):
            numbers = []
            for one in clause.evidence:
                if one.kind == "number" and one.value == value:
                    numbers.append(one)
            hits += [(1, one, value) for one in numbers[:1] if not isinstance(value, bool)]
            continue
        if operation_of(value) in clause.operations and parameter.choices:
            hits.append((1, Evidence("name", value, 0, 0), value))
            continue
        own = [stem(word) for word in split_name(value)]
        if not own:
            continue
        for place in range(len(stems) - len(own) + 1):
            plain = place == 0 or all(word in STOPWORDS or word in known for word in own)
            if stems[place : place + len(own)] == own and (parameter.required or not plain):
                span = words[place].start, words[place + len(own) - 1].end
                hits.append((len(own), Evidence("name", value, *span), value))
                break
    ordered = sorted(hits, key=lambda hit: (-hit[0], hit[1].start))
    found_values: list[tuple[Evidence, JsonValue]] = []
    for _, one, value in ordered:
        if not overlaps(one, [(other.start, other.end) for other, _ in found_values]):
            found_values.append((one, value))
    return found_values


def number_meant(parameter: Parameter, clause: Clause) -> int | float | None:
    """Return the number that the parameter's description assigns to a word of the clause.

    "0 (off) to 100 (full)" assigns 0 to "off"."""
    meanings = {word: float(number) for number, word in _DIGIT_MEANING.findall(parameter.description)}
    for word in clause.words:
        number = meanings.get(word.text.lower())
        if number is not None:
            return int(number) if number.is_integer() else number
    return None


def overlaps(one: Evidence, spans: Iterable[tuple[int, int]]) -> bool:
    """Return whether a piece of evidence overlaps any of the spans."""
    return any(start < one.end and one.start < end for start, end in spans)


# Finds values in the rest of a clause, after all other evidence has found its parameter: search words, prose, and
# loose phrases.

Span = tuple[int, int]

_INTRODUCED = late_pattern(
    r"(?:\b(?:saying|says?|that\s+says|reading|called|named|titled|entitled|that)\b(?:\s+that\b)?\s*[:,]?|:)\s+(?P<content>\S.*)",
    re.I | re.S,
)
_TO_DO = late_pattern(r"\bto\s+(?P<content>[^\W\d_]+\s+\S.*)", re.S)
_ABOUT = late_pattern(r"\b(?:about|regarding)\s+(?P<content>\S.*)", re.I | re.S)
_TRIMMED = " \t\n,;:-"
_LEADING_UP = word_set("on at by for to in with from of the a an and or is due until before after") | {""}
_ARTICLES = word_set("a an the my our your his her their this that these those some")
_PREPOSITIONS = word_set("in at for near from to about on of into with by")
_MAX_PHRASE_WORDS = 4


def search_words(clause: Clause, used: Collection[Span], known: Collection[str]) -> str:
    """Return the words of a search: without the request's verb and small words.

    Words of the tool itself (`known`, as stems) are left out too, unless nothing else is left."""
    words = []
    for word in _unused(clause, used):
        if word.stem not in STOP_STEMS:
            words.append(word)
    if words and words[0].stem in VERB_STEMS:
        words = words[1:]
    telling = [word for word in words if word.stem not in known] or words
    return " ".join(re.split("['’](?=s?$)", word.text)[0] for word in telling)


def prose(clause: Clause, used: Collection[Span], known: Collection[str]) -> str:
    """Return the content of a message or a title, as written.

    It is the text behind "that", "saying", "called" or a colon; else the action ("remind me to …") or the topic
    ("about …"); else the clause without its verb and its tool's words."""
    text = clause.text
    for start, end in used:
        text = text[:start] + "\x00" * (end - start) + text[end:]
    for match in (_INTRODUCED.search(text), _to_do(text), _ABOUT.search(text)):
        if match and (content := _tidied(match["content"])):
            return content
    return _tidied(_without_beginning(clause, text, known))


def _tidied(content: str) -> str:
    """Return the text without the gaps of used words, and without the small words before them."""
    *before_holes, last = content.split("\x00")
    pieces = [*(_without_lead(piece) for piece in before_holes), last.strip(_TRIMMED)]
    return " ".join(piece for piece in pieces if not _says_nothing(piece))


def _without_lead(piece: str) -> str:
    words = piece.strip(_TRIMMED).split(" ")
    while words and words[-1].lower().strip(_TRIMMED) in _LEADING_UP:
        words.pop()
    return " ".join(words).strip(_TRIMMED)


def phrases(clause: Clause, used: Collection[Span], known: Collection[str]) -> list[list[Evidence]]:
    """Return groups of words behind a preposition, which may be names in lower case.

    "in tokyo and paris" is one group."""
    groups: list[list[Evidence]] = []
    words = list(_unused(clause, used))
    position = 0
    while position < len(words):
        if words[position].text.lower() not in _PREPOSITIONS:
            position += 1
            continue
        group, position = _group(clause, words, position + 1)
        group = [one for one in group if not _known(one, clause, known)]
        if group:
            groups.append(group)
    return groups


def _group(clause: Clause, words: list[Word], position: int) -> tuple[list[Evidence], int]:
    group: list[Evidence] = []
    while position < len(words):
        while position < len(words) and words[position].text.lower() in _ARTICLES:
            position += 1
        run: list[Word] = []
        while position < len(words) and len(run) < _MAX_PHRASE_WORDS and _continues(clause, run, words[position]):
            run.append(words[position])
            position += 1
        if not run:
            break
        group.append(Evidence("name", clause.text[run[0].start : run[-1].end], run[0].start, run[-1].end))
        if position < len(words) and words[position].text.lower() in ("and", "or"):
            position += 1
        elif position >= len(words) or clause.text[run[-1].end : words[position].start].strip() != ",":
            break
    return group, position


def _continues(clause: Clause, run: list[Word], word: Word) -> bool:
    if word.text.lower() in STOPWORDS:
        return False
    return not run or not clause.text[run[-1].end : word.start].strip(" -")


def _known(one: Evidence, clause: Clause, known: Collection[str]) -> bool:
    return all(word.stem in known for word in clause.words if one.start <= word.start < one.end)


def _unused(clause: Clause, used: Collection[Span]) -> Iterator[Word]:
    return (word for word in clause.words if not _within(word, used))


def _to_do(text: str) -> re.Match[str] | None:
    match = _TO_DO.search(text)
    if match is None or match["content"].split(maxsplit=1)[0].lower() in STOPWORDS:
        return None
    return match


def _without_beginning(clause: Clause, text: str, known: Collection[str]) -> str:
    for word in clause.words:
        lowered = word.text.lower()
        if not (lowered in STOPWORDS or lowered in REQUEST_VERBS or word.stem in known or text[word.start] == "\x00"):
            return _with_article(text, word.start)
    return ""


def _with_article(text: str, start: int) -> str:
    """Return the rest from a place on, with the article right before it."""
    before = text[:start].rsplit(maxsplit=1)
    if before and before[-1].lower() in _ARTICLES:
        return f"{before[-1]} {text[start:]}"
    return text[start:]


def _says_nothing(text: str) -> bool:
    return all(word.lower() in STOPWORDS for word in re.findall(r"[^\W_]+", text))


_DEEPEST_OBJECT = 3
_GAP = late_pattern(
    r"[\s:=#(]*(?:(?:of|is|are|to|as|at|on|by|for|the|a|an|in|with|name|id|number|be|about|around|from)\s+){0,3}#?"
)
_GENERIC_WORDS = frozenset(stem(word) for word in ("name", "id", "number", "value"))
_CALLED = word_set("called named titled entitled")
_ALSO_CALLED: tuple[tuple[frozenset[str], frozenset[str]], ...] = (
    (word_set("title name subject headline"), _CALLED),
    (word_set("message text body content comment note"), word_set("saying says reading")),
    (word_set("source origin departure start from"), word_set("from")),
    (word_set("target destination arrival end to"), word_set("to into")),
    (word_set("due deadline when date"), word_set("due by on")),
    (word_set("limit max maximum count top"), word_set("top first most limit maximum")),
)
"""Words of a parameter's name, and words by which a request introduces its value."""
_OWNERS = word_set("owner org organization namespace")
_OWNED = word_set("repo repository project")
_TAKEN_FROM = late_pattern(r"\b(?:subtract|take|deduct|minus)\w*\b.*\bfrom\b", re.I | re.S)
_PLAIN_VALUE = late_pattern(r"\s*[:=]?\s*([^\W_][\w./-]{0,63})(?<![./-])")
_TITLES = word_set("title subject headline caption")
_FLAG_FILLERS = word_set("is has includ include with should")
_MAX_INSTEAD = 9
_MAX_TITLE_CHARS = 120
_NEGATION = word_set("no not without never")
_WORTH_GUESSING: tuple[Role, ...] = ("moment", "url", "zone", "path")
"""Roles for which evidence of the right kind suffices, even if the parameter is optional and was not named."""
_TYPED: tuple[Role, ...] = ("email", "url", "zone", "moment", "path", "person", "id", "other", "opaque")
"""Roles that take evidence by its kind, the most specific first."""


@dataclass(frozen=True, slots=True)
class Filled:
    """Arguments for a tool, as far as a clause gives them.

    `missing` are required parameters without evidence; `instead` are alternative values of one parameter, listed
    together with the chosen one ("Seattle and Portland"). `loose_ends` counts the evidence against the tool: values in
    the text that no parameter took, and parameters whose value was guessed."""

    arguments: dict[str, JsonValue]
    missing: tuple[str, ...] = ()
    instead: tuple[str, tuple[JsonValue, ...]] | None = None
    loose_ends: int = 0

    def calls(self) -> list[dict[str, JsonValue]]:
        """Return one set of arguments for each value."""
        if self.instead is None:
            return [self.arguments]
        name, values = self.instead
        return [self.arguments, *({**self.arguments, name: value} for value in values)]


def fill(
    tool: ToolDefinition, clause: Clause, recalled: Sequence[Evidence] = (), result: ToolResult | None = None
) -> Filled:
    """Return arguments for a call of `tool`.

    `recalled` is the evidence of earlier messages, for a clause that refers back to them; `result` is the result of an
    earlier call, for a clause that continues from it."""
    parameters = parameters_of(dict(tool.parameters))
    filling = _Filling(parameters, _with_result(clause, parameters, result), tool_words(tool), dict(tool.parameters))
    filling.run(recalled, result)
    return filling.filled()


def _with_result(clause: Clause, parameters: Iterable[Parameter], result: ToolResult | None) -> Clause:
    """Return the clause with the result's number where the result is mentioned, or first when a number is missing."""
    if result is None or result.number is None:
        return clause
    mention = clause.result_mention
    numbers = [one for one in clause.evidence if one.kind == "number"]
    wanted = sum(one.role == "number" and one.required for one in parameters)
    if mention is None and len(numbers) >= wanted:
        return clause
    start, end = mention.span() if mention else (0, 0)
    evidence = (*clause.evidence, Evidence("number", result.number, start, end))
    return replace(clause, evidence=tuple(sorted(evidence, key=lambda one: one.start)))


class _Filling:
    """Parameters being filled: which evidence is still free, and which places of the text are used."""

    def __init__(
        self, parameters: Sequence[Parameter], clause: Clause, known: frozenset[str], root: Mapping[str, JsonValue]
    ) -> None:
        self.parameters = parameters
        self.clause = clause
        self.known = known
        self.root = root
        self.values: dict[str, JsonValue] = {}
        self.used: list[Span] = []
        self.beside: dict[str, list[tuple[Evidence, JsonValue]]] = {}
        self.free = [one for one in clause.evidence if not self._is_tool_word(one)]
        self.groups = joined_groups(clause.text, clause.evidence)
        self.guesses = 0

    def run(self, recalled: Sequence[Evidence], result: ToolResult | None, depth: int = 0) -> None:
        """Fill as many arguments as possible, the most certain first."""
        self._choices()
        self._flags()
        self._introduced()
        taken = self._owners(self.free)
        if taken is not None:
            self._claim(taken.start, taken.end)
        self._numbers()
        self._by_kind()
        if result is not None:
            self._from_result(result)
        self._recalled(recalled)
        self._phrases()
        self._lists()
        self._texts(result)
        self._objects(recalled, result, depth)
        self._without_evidence()

    def filled(self) -> Filled:
        ordered = {}
        for one in self.parameters:
            if one.name in self.values:
                ordered[one.name] = self.values[one.name]
        missing = tuple(one.name for one in self._open(required=True) if "default" not in one.schema)
        beside = [one for others in self.beside.values() for one, _ in others]
        untaken = [one for one in self.free if not one.weak and one not in beside]
        return Filled(ordered, missing, self._instead(), len(untaken) + self.guesses)

    def _instead(self) -> tuple[str, tuple[JsonValue, ...]] | None:
        """Return values listed together with one parameter's, if no other parameter took any of them."""
        for name, others in self.beside.items():
            if others and not any(overlaps(one, self.used) for one, _ in others):
                return name, tuple(value for _, value in others[:_MAX_INSTEAD])
        return None

    def _open(self, *roles: Role, required: bool | None = None) -> list[Parameter]:
        """Return parameters without a value, by role and by whether they are required."""
        unfilled = []
        for one in self.parameters:
            if one.name not in self.values:
                unfilled.append(one)
        if required is not None:
            unfilled = [one for one in unfilled if one.required == required]
        return [one for one in unfilled if not roles or one.role in roles]

    def _is_tool_word(self, one: Evidence) -> bool:
        """Return whether a capitalised word only names the tool's action, such as "DM", and so is not a name."""
        return one.kind == "name" and all(stem(word) in self.known for word in split_name(str(one.value)))

    def _claim(self, start: int, end: int) -> None:
        self.used.append((start, end))
        self.free = [one for one in self.free if one.end <= start or one.start >= end]

    def _give(self, parameter: Parameter, one: Evidence, start: int | None = None) -> bool:
        """Fill a parameter from evidence, with the introducing words from `start` on.

        Returns False if it does not fit. Evidence listed together with it goes into the list, or is kept as
        alternatives."""
        reader = self._reader(parameter)
        value = value_for(reader, one)
        if value is None:
            return False
        others: list[tuple[Evidence, JsonValue]] = []
        for other in next((group for group in self.groups if one in group), []):
            if other == one or (parameter.role == "list" and other not in self.free):
                continue
            found = value_for(reader, other)
            if found is not None:
                others.append((other, found))
        if start is None or start > one.start:
            start = one.start
        self._claim(start, one.end)
        self.free = [other for other in self.free if other != one]
        if parameter.role == "list":
            for other, _ in others:
                self._claim(other.start, other.end)
            self.values[parameter.name] = [value, *(found for _, found in others)]
        else:
            self.values[parameter.name] = value
            self.beside[parameter.name] = others
        return True

    def _reader(self, parameter: Parameter) -> Parameter:
        """Return the schema that a single value has to fit: the parameter's own, or that of a list's items."""
        if parameter.role != "list":
            return parameter
        return parameter_of(parameter.name, parameter.schema.get("items"), parameter.required, self.root)

    def _choices(self) -> None:
        for parameter in self._open():
            reader = self._reader(parameter)
            hits = mentioned(reader, self.clause, frozenset() if parameter.required else self.known)
            if not hits:
                continue
            first, value = hits[0]
            groups = joined_groups(self.clause.text, sorted((one for one, _ in hits), key=lambda one: one.start))
            group = next(group for group in groups if first in group)
            others = []
            for hit in hits[1:]:
                if hit[0] in group and hit[1] != value:
                    others.append(hit)
            self._claim(first.start, first.end)
            if parameter.role == "list":
                self.values[parameter.name] = [value, *(other for _, other in others)]
            else:
                self.values[parameter.name] = value
                self.beside[parameter.name] = others

    def _flags(self) -> None:
        stems = [word.stem for word in self.clause.words]
        for parameter in self._open("flag"):
            asked = []
            for word in parameter.words:
                if word not in _FLAG_FILLERS:
                    asked.append(word)
            if asked and all(word in stems for word in asked) and not set(asked) <= self.known:
                place = stems.index(asked[0])
                self.values[parameter.name] = not any(word in _NEGATION for word in stems[max(0, place - 2) : place])

    def _introduced(self) -> None:
        """Take values right behind a word of the parameter's name, and numbers right before one.

        Examples are "subject 'X'" and "5 days"."""
        pairs: list[tuple[int, int, Parameter, Evidence, Word]] = []
        for number, parameter in enumerate(self._open()):
            for word in self._introducers(parameter):
                for one in self.free:
                    distance = self._distance(word, one, parameter)
                    if distance is not None and value_for(self._reader(parameter), one) is not None:
                        pairs.append((distance, number, parameter, one, word))
        for _, _, parameter, one, word in sorted(pairs, key=lambda pair: pair[:2]):
            if parameter.name not in self.values and one in self.free:
                self._give(parameter, one, word.start)
        for parameter in self._open("other", "opaque", "id", "person", "zone"):
            self._plain_word(parameter)

    def _introducers(self, parameter: Parameter) -> list[Word]:
        raw = set(split_name(parameter.name))
        also = {word for names, words in _ALSO_CALLED if raw & names for word in words}
        own = {word for word in parameter.words if word not in STOPWORDS}
        own = own - _GENERIC_WORDS or own
        inside = []
        for one in self.clause.evidence:
            if one.kind != "name":
                inside.append((one.start, one.end))
        found: list[Word] = []
        previous = ""
        for word in self.clause.words:
            called = word.text.lower() in _CALLED and previous in own
            if (called or word.stem in own or word.text.lower() in also) and not _within(word, inside):
                found.append(word)
            previous = word.stem
        return found

    def _distance(self, word: Word, one: Evidence, parameter: Parameter) -> int | None:
        text = self.clause.text
        if word.end <= one.start and _GAP.fullmatch(text, word.end, one.start):
            return one.start - word.end
        if parameter.role == "number" and one.end <= word.start and text[one.end : word.start] in (" ", "-"):
            return 0
        return None

    def _plain_word(self, parameter: Parameter) -> None:
        """Take a word in lower case right behind the parameter's name ("tagged gothic")."""
        for word in self._introducers(parameter):
            match = _PLAIN_VALUE.match(self.clause.text, word.end)
            if match is None or word.text.lower() in STOPWORDS:
                continue
            one = Evidence("name", match[1], match.start(1), match.end(1))
            taken = [*self.used, *((other.start, other.end) for other in self.clause.evidence)]
            stemmed = stem(match[1])
            telling = match[1].lower() not in STOPWORDS and stemmed not in VERB_STEMS and stemmed not in self.known
            if telling and not overlaps(one, taken) and self._give(parameter, one, word.start):
                return

    def _owners(self, found: Sequence[Evidence]) -> Evidence | None:
        """Read `owner/name` as two parameters.

        Returns the evidence that was used, if any."""
        required_first = sorted(self._open(), key=lambda one: not one.required)
        owners = [one for one in required_first if not _OWNERS.isdisjoint(split_name(one.name))]
        owned = [one for one in required_first if not _OWNED.isdisjoint(split_name(one.name))]
        pairs = [one for one in found if one.kind == "pair" and str(one.value).count("/") == 1]
        if not (owners and owned and pairs) or owners[0] is owned[0]:
            return None
        values = str(pairs[0].value).split("/")
        if not (owners[0].fits(values[0]) and owned[0].fits(values[1])):
            return None
        self.values[owners[0].name], self.values[owned[0].name] = values
        return pairs[0]

    def _numbers(self) -> None:
        wanted = self._open("number", required=True)
        numbers = [one for one in self.free if one.kind == "number"]
        if len(wanted) == len(numbers) == 2 and _TAKEN_FROM.search(self.clause.text):
            numbers.reverse()
        for parameter in wanted:
            if not any(self._give(parameter, one) for one in numbers if one in self.free):
                value = number_meant(parameter, self.clause)
                if value is not None and parameter.fits(value):
                    self.values[parameter.name] = value

    def _by_kind(self) -> None:
        for role in _TYPED:
            for parameter in self._open(role, required=True):
                self._first_of_kind(parameter)
        for parameter in self._open("expression"):
            for expression in self.clause.expressions[:1]:
                self.values[parameter.name] = expression.text
                self._claim(expression.start, expression.end)
        for role in _WORTH_GUESSING:
            optional = self._open(role, required=False)
            if len(optional) == 1:
                self._first_of_kind(optional[0])

    def _first_of_kind(self, parameter: Parameter) -> bool:
        reader = self._reader(parameter)
        kinds = ACCEPTED.get(reader.role, ())
        if "path" in kinds and parameter.of_path:
            first: tuple[Kind, ...] = ("path",) if reader.role == "path" else ("path", "pair")
            kinds = (*first, *(kind for kind in kinds if kind not in first))
        if reader.role == "path" and not parameter.required:
            kinds = tuple(kind for kind in kinds if kind != "pair")
        for kind in kinds:
            candidates = sorted((one for one in self.free if one.kind == kind), key=lambda one: one.weak)
            if any(self._give(parameter, one) for one in candidates):
                return True
        return False

    def _from_result(self, result: ToolResult) -> None:
        mention = self.clause.result_mention
        if mention:
            self._claim(*mention.span())
        for parameter in self._open(required=True):
            value = result.named(parameter.name)
            if value is not None and parameter.fits(value):
                self.values[parameter.name] = value

    def _recalled(self, recalled: Sequence[Evidence]) -> None:
        """Take evidence of earlier messages, each once."""
        taken = self._owners(recalled)
        left = [one for one in recalled if one is not taken]
        for parameter in self._open(*_TYPED, required=True):
            # Stable: of one kind, the evidence that was recalled first stays first.
            kinds = ACCEPTED[parameter.role]
            candidates = [one for one in left if one.kind in kinds]
            for one in sorted(candidates, key=lambda one: kinds.index(one.kind)):
                value = value_for(parameter, one)
                if value is not None:
                    self.values[parameter.name] = value
                    left.remove(one)
                    break

    def _phrases(self) -> None:
        for parameter in self._open("other", "zone", "person", required=True):
            for group in phrases(self.clause, self.used, self.known):
                self.groups.append(group)
                if any(self._give(parameter, one) for one in group):
                    break

    def _lists(self) -> None:
        for parameter in self._open("list", required=True):
            if self._reader(parameter).role == "number":
                numbers = [one for one in self.free if one.kind == "number"]
                values = []
                for one in numbers:
                    values.append((one, value_for(self._reader(parameter), one)))
                fitting: list[JsonValue] = []
                for _, value in values:
                    if value is not None:
                        fitting.append(value)
                if fitting:
                    self.values[parameter.name] = fitting
                for one in numbers:
                    self._claim(one.start, one.end)
            else:
                self._first_of_kind(parameter)

    def _texts(self, result: ToolResult | None) -> None:
        wanted = self._open("query", "prose", "opaque", "expression", required=True)
        if not wanted and not self.values and not any(one.required for one in self.parameters):
            wanted = self._open("query")[:1]
        for parameter in wanted:
            self._first_of_kind(parameter)
        for parameter in wanted:
            if parameter.name in self.values:
                continue
            if parameter.role == "query":
                text = search_words(self.clause, self.used, self.known)
            else:
                text = prose(self.clause, self.used, self.known)
            if not text and result is not None:
                text = result.line
            if not _TITLES.isdisjoint(split_name(parameter.name)):
                text = text[:1].upper() + text[1:_MAX_TITLE_CHARS]
            if text and parameter.fits(text):
                self.values[parameter.name] = text

    def _objects(self, recalled: Sequence[Evidence], result: ToolResult | None, depth: int) -> None:
        for parameter in self._open("object", required=True):
            inner = _Filling(parameters_of(dict(parameter.schema), self.root), self.clause, self.known, self.root)
            inner.used, inner.free = self.used, self.free
            if depth < _DEEPEST_OBJECT:
                inner.run(recalled, result, depth + 1)
            filled = inner.filled()
            if not filled.missing:
                self.values[parameter.name] = filled.arguments
                self.free = inner.free

    def _without_evidence(self) -> None:
        """Give a required choice its first listed value, as the usual one, and a required flag false."""
        for parameter in self._open(required=True):
            if "default" in parameter.schema:
                continue
            if parameter.choices:
                self.values[parameter.name] = next((one for one in parameter.choices if one is not None), None)
                self.guesses += len(parameter.choices) > 1
            elif parameter.role == "flag":
                self.values[parameter.name] = False
                self.guesses += 1


def _within(word: Word, spans: Iterable[Span]) -> bool:
    return any(start <= word.start < end for start, end in spans)
