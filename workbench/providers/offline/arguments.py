"""Arguments for a call of a tool, found in a clause of the request and in the results of earlier calls."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, filterfalse
from zoneinfo import available_timezones

from workbench.dataclasses import dataclass
from workbench.providers.offline.clauses import Clause
from workbench.providers.offline.language import (
    REQUEST_VERBS,
    STOP_STEMS,
    STOPWORDS,
    VERB_STEMS,
    Evidence,
    Kind,
    Word,
    joined_groups,
    numbers_in,
    of_kind,
    operation_of,
    split_name,
    stem,
    tool_words,
    without_possessive,
    word_set,
)
from workbench.providers.offline.schemas import Parameter, Role, parameter_of, parameters_of
from workbench.providers.offline.tool_result import ToolResult
from workbench.startup import late_pattern
from workbench.trajectory.events import JsonValue, ToolDefinition

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
"""The kinds of evidence that fill a parameter of a role, the likeliest first. Other roles take none."""

_DIGIT_MEANING = late_pattern(r"(-?\d{1,9}(?:\.\d{1,9})?)\s*(?:\(|=|is|:|means)\s*([a-z]+)", re.ASCII)
_MAX_CHOICES = 200
_REGIONS = frozenset(
    {"Africa", "America", "Antarctica", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"}
)


def value_for(parameter: Parameter, one: Evidence) -> JsonValue:
    """Return the value of a piece of evidence as the parameter's schema requires it; None if it does not fit."""
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
    # Cities of the areas of the IANA database; its other areas, such as `Etc`, hold offsets and old names.
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
    if wanted in ("time", "any"):
        return text
    return None


def _wanted_moment(parameter: Parameter) -> str:
    """Return `date`, `time` or `date-time` by the schema's format or description; `any` without either."""
    stated = parameter.schema.get("format")
    if stated in ("date", "time", "date-time"):
        return str(stated)
    described = parameter.description
    has_date, has_time = "yyyy" in described, "hh" in described
    if "date-time" in described or "datetime" in described or (has_date and has_time):
        return "date-time"
    if has_date:
        return "date"
    if has_time:
        return "time"
    return "any"


def mentioned(parameter: Parameter, clause: Clause, known: frozenset[str]) -> list[tuple[Evidence, JsonValue]]:
    """Return the parameter's listed values, or its examples, that a clause contains, the longest first.

    `known` are stems of the tool itself."""
    examples = parameter.schema.get("examples")
    values = parameter.choices
    if not values and isinstance(examples, list):
        values = tuple(examples)
    words = list(_unused(clause, _spans_besides(("name", "number"), clause)))
    stems = [word.stem for word in words]
    hits: list[tuple[int, Evidence, JsonValue]] = []
    proving_nothing = STOPWORDS | known
    for value in values[:_MAX_CHOICES]:
        if isinstance(value, bool):
            continue
        if not isinstance(value, str):
            for one in numbers_in(clause.evidence):
                if one.value == value:
                    hits.append((1, one, value))
                    break
            continue
        if operation_of(value) in clause.operations and parameter.choices:
            hits.append((1, Evidence("name", value, 0, 0), value))
            continue
        own = list(map(stem, split_name(value)))
        if not own:
            continue
        for place in range(len(stems) - len(own) + 1):
            # For an optional parameter, small words, words of the tool and the verb at the beginning prove nothing.
            plain = place == 0 or proving_nothing.issuperset(own)
            if stems[place : place + len(own)] == own and (parameter.required or not plain):
                span = words[place].start, words[place + len(own) - 1].end
                hits.append((len(own), Evidence("name", value, *span), value))
                break
    found_values: list[tuple[Evidence, JsonValue]] = []
    taken: list[Span] = []
    for _, one, value in sorted(hits, key=lambda hit: (-hit[0], hit[1].start)):
        if not overlaps(one, taken):
            found_values.append((one, value))
            taken.append(one.span)
    return found_values


def number_meant(parameter: Parameter, clause: Clause) -> int | float | None:
    """Return the number that the parameter's description assigns to a word of the clause.

    "0 (off) to 100 (full)" assigns 0 to "off"."""
    meanings = {word: float(number) for number, word in _DIGIT_MEANING.findall(parameter.description)}
    for word in clause.words:
        number = meanings.get(word.text.lower())
        if number is None:
            continue
        return int(number) if number.is_integer() else number
    return None


def overlaps(one: Evidence, spans: Iterable[tuple[int, int]]) -> bool:
    """Return whether a piece of evidence overlaps any of the spans."""
    return any(start < one.end and one.start < end for start, end in spans)


# Search words, prose and phrases have no recognizable form: they are what remains of a clause after all other evidence
# has been assigned to parameters.

Span = tuple[int, int]
"""The start and the end of a place in a text."""

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
    """Return the words of a search in a clause, without small words and the verb of the request.

    Words of the tool itself (`known`, as stems) are left out as well, unless nothing else is left."""
    words = [word for word in _unused(clause, used) if word.stem not in STOP_STEMS]
    if words and words[0].stem in VERB_STEMS:
        words = words[1:]
    telling = [word for word in words if word.stem not in known] or words
    return " ".join(without_possessive(word.text) for word in telling)


def prose(clause: Clause, used: Collection[Span], known: Collection[str]) -> str:
    """Return the content of a message or a title in a clause, as written.

    It is the text after "that", "saying", "called" or a colon; otherwise the action ("remind me to …") or the topic
    ("about …"); otherwise the clause without its verb and the words of the tool."""
    text = clause.text
    for start, end in used:
        text = text[:start] + "\x00" * (end - start) + text[end:]
    for match in (_INTRODUCED.search(text), _to_do(text), _ABOUT.search(text)):
        if match and (content := _tidied(match["content"])):
            return content
    return _tidied(_without_beginning(clause, text, known))


def _tidied(content: str) -> str:
    """Return the text without the gaps of used words, and without the small words before each gap."""
    *before_gaps, last = content.split("\x00")
    pieces = [*map(_without_lead, before_gaps), last.strip(_TRIMMED)]
    return " ".join(filterfalse(_says_nothing, pieces))


def _without_lead(piece: str) -> str:
    words = piece.strip(_TRIMMED).split(" ")
    while words and words[-1].lower().strip(_TRIMMED) in _LEADING_UP:
        words.pop()
    return " ".join(words).strip(_TRIMMED)


def phrases(clause: Clause, used: Collection[Span], known: Collection[str]) -> list[list[Evidence]]:
    """Return the words after prepositions, which may be names in lower case, as groups.

    "in tokyo and paris" gives one group of two."""
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


def _spans_besides(kinds: Collection[str], clause: Clause) -> list[Span]:
    """Return the spans of a clause's evidence, except those of some kinds."""
    spans = []
    for one in clause.evidence:
        if one.kind not in kinds:
            spans.append(one.span)
    return spans


def _unused(clause: Clause, used: Collection[Span]) -> Iterator[Word]:
    for word in clause.words:
        if not _within(word, used):
            yield word


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
    """Return the text from a place on, with the article right before it."""
    before = text[:start].rsplit(maxsplit=1)
    if before and before[-1].lower() in _ARTICLES:
        return f"{before[-1]} {text[start:]}"
    return text[start:]


def _says_nothing(text: str) -> bool:
    return STOPWORDS.issuperset(map(str.lower, re.findall(r"[^\W_]+", text)))


_DEEPEST_OBJECT = 3
_GAP = late_pattern(
    r"[\s:=#(]*(?:(?:of|is|are|to|as|at|on|by|for|the|a|an|in|with|name|id|number|be|about|around|from)\s+){0,3}#?"
)
_GENERIC_WORDS = frozenset(map(stem, ("name", "id", "number", "value")))
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

    `missing` are required parameters without evidence. `instead` are further values of one parameter, enumerated with
    the chosen one ("Seattle and Portland"). `loose_ends` counts evidence against the tool: values in the text that no
    parameter took, and parameters with a guessed value."""

    arguments: dict[str, JsonValue]
    missing: tuple[str, ...] = ()
    instead: tuple[str, tuple[JsonValue, ...]] | None = None
    loose_ends: int = 0

    def calls(self) -> list[dict[str, JsonValue]]:
        """Return the arguments of each call: one, and one more for each further value."""
        calls = [self.arguments]
        if self.instead is not None:
            name, values = self.instead
            calls += [{**self.arguments, name: value} for value in values]
        return calls


def fill(
    tool: ToolDefinition, clause: Clause, recalled: Sequence[Evidence] = (), result: ToolResult | None = None
) -> Filled:
    """Return arguments for a call of `tool`.

    `recalled` is the evidence of earlier messages, if the clause refers back to them; `result` is the result of an
    earlier call, if the clause continues from it."""
    parameters = parameters_of(dict(tool.parameters))
    filling = _Filling(parameters, _with_result(clause, parameters, result), tool_words(tool), dict(tool.parameters))
    filling.run(recalled, result)
    return filling.filled()


def _with_result(clause: Clause, parameters: Iterable[Parameter], result: ToolResult | None) -> Clause:
    """Return the clause with the number of the result as further evidence.

    Its place is the mention of the result, or the beginning if the clause lacks a required number."""
    if result is None or result.number is None:
        return clause
    mention = clause.result_mention
    wanted = sum(one.role == "number" and one.required for one in parameters)
    if mention is None and len(numbers_in(clause.evidence)) >= wanted:
        return clause
    start, end = mention.span() if mention else (0, 0)
    evidence = (*clause.evidence, Evidence("number", result.number, start, end))
    return replace(clause, evidence=tuple(sorted(evidence, key=lambda one: one.start)))


class _Filling:
    """The state while the parameters of a tool are filled: their values, and the evidence and places that are used.

    `beside` holds the evidence enumerated with the value of a parameter, `known` the stems of the tool's own words."""

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
        """Fill as many arguments as possible."""
        # The most certain evidence comes first, because each step uses only the values and places that earlier steps
        # left.
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
        # Arguments are in the order of the schema, not in the order in which they were found.
        ordered: dict[str, JsonValue] = {}
        for parameter in self.parameters:
            if parameter.name in self.values:
                ordered[parameter.name] = self.values[parameter.name]
        missing = tuple(one.name for one in self._open(required=True) if "default" not in one.schema)
        beside: list[Evidence] = []
        for others in self.beside.values():
            beside += _evidence_of(others)
        untaken = sum(not one.weak and one not in beside for one in self.free)
        return Filled(ordered, missing, self._instead(), untaken + self.guesses)

    def _instead(self) -> tuple[str, tuple[JsonValue, ...]] | None:
        """Return the values enumerated with that of one parameter, if no other parameter took any of them."""
        # A value that another parameter has taken is not a further value of this one.
        for name, others in self.beside.items():
            if others and not any(overlaps(one, self.used) for one in _evidence_of(others)):
                return name, tuple(_values_of(others[:_MAX_INSTEAD]))
        return None

    def _open(self, *roles: Role, required: bool | None = None) -> list[Parameter]:
        """Return the parameters without a value; `roles` and `required` restrict them."""
        unfilled = []
        for one in self.parameters:
            is_meant = (not roles or one.role in roles) and required in (None, one.required)
            if is_meant and one.name not in self.values:
                unfilled.append(one)
        return unfilled

    def _is_tool_word(self, one: Evidence) -> bool:
        """Return whether a capitalised word is one of the tool's own words, such as "DM", and so not a name."""
        return one.kind == "name" and self.known.issuperset(map(stem, split_name(str(one.value))))

    def _claim(self, start: int, end: int) -> None:
        self.used.append((start, end))
        self.free = [one for one in self.free if one.end <= start or one.start >= end]

    def _give(self, parameter: Parameter, one: Evidence, start: int | None = None) -> bool:
        """Fill a parameter from evidence, whose introducing words begin at `start`.

        Evidence enumerated with it goes into the same list, or is kept as further values. Returns False if it does not
        fit."""
        reader = self._reader(parameter)
        value = value_for(reader, one)
        if value is None:
            return False
        others: list[tuple[Evidence, JsonValue]] = []
        for other in _group_with(one, self.groups):
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
            for other in _evidence_of(others):
                self._claim(other.start, other.end)
            self.values[parameter.name] = _with_others(value, others)
        else:
            self.values[parameter.name] = value
            self.beside[parameter.name] = others
        return True

    def _give_first(self, parameter: Parameter, candidates: Iterable[Evidence]) -> bool:
        """Fill a parameter from the first free evidence that fits; returns False if none does."""
        return any(one in self.free and self._give(parameter, one) for one in candidates)

    def _reader(self, parameter: Parameter) -> Parameter:
        """Return the parameter that a single value has to fit: for a list, one with the schema of its items."""
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
            found = sorted(_evidence_of(hits), key=lambda one: one.start)
            group = _group_with(first, joined_groups(self.clause.text, found))
            others = [hit for hit in hits[1:] if hit[0] in group and hit[1] != value]
            self._claim(first.start, first.end)
            if parameter.role == "list":
                self.values[parameter.name] = _with_others(value, others)
            else:
                self.values[parameter.name] = value
                self.beside[parameter.name] = others

    def _flags(self) -> None:
        stems = [word.stem for word in self.clause.words]
        for parameter in self._open("flag"):
            asked = [word for word in parameter.words if word not in _FLAG_FILLERS]
            # Words that are the tool's own prove nothing about the flag.
            if asked and set(asked) <= set(stems) and not set(asked) <= self.known:
                place = stems.index(asked[0])
                self.values[parameter.name] = _NEGATION.isdisjoint(stems[max(0, place - 2) : place])

    def _introduced(self) -> None:
        """Take values right after a word of the parameter's name, and numbers right before one.

        Examples are "subject 'X'" and "5 days"."""
        pairs: list[tuple[int, int, Parameter, Evidence, Word]] = []
        for number, parameter in enumerate(self._open()):
            for word in self._introducers(parameter):
                for one in self.free:
                    distance = self._distance(word, one, parameter)
                    if distance is not None and value_for(self._reader(parameter), one) is not None:
                        pairs.append((distance, number, parameter, one, word))
        # The closest pair first: a value belongs to the nearest word that introduces it.
        for _, _, parameter, one, word in sorted(pairs, key=lambda pair: pair[:2]):
            if parameter.name not in self.values and one in self.free:
                self._give(parameter, one, word.start)
        for parameter in self._open("other", "opaque", "id", "person", "zone"):
            self._plain_word(parameter)

    def _introducers(self, parameter: Parameter) -> list[Word]:
        """Return the words of the clause that introduce the parameter's value, such as "from" for an origin."""
        name_words = set(split_name(parameter.name))
        also: set[str] = set()
        for names, words in _ALSO_CALLED:
            if name_words & names:
                also |= words
        own = set(parameter.words) - STOPWORDS
        own = own - _GENERIC_WORDS or own
        inside = _spans_besides(("name",), self.clause)
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
        """Take a word in lower case right after the parameter's name, as in "tagged gothic"."""
        for word in self._introducers(parameter):
            match = _PLAIN_VALUE.match(self.clause.text, word.end)
            if match is None or word.text.lower() in STOPWORDS:
                continue
            one = Evidence("name", match[1], match.start(1), match.end(1))
            taken = self.used + _spans_besides((), self.clause)
            stemmed = stem(match[1])
            telling = match[1].lower() not in STOPWORDS and stemmed not in VERB_STEMS and stemmed not in self.known
            if telling and not overlaps(one, taken) and self._give(parameter, one, word.start):
                return

    def _owners(self, found: Sequence[Evidence]) -> Evidence | None:
        """Fill two parameters from a pair `owner/name`, and return the pair; None without one."""
        required_first = sorted(self._open(), key=lambda one: not one.required)
        owners = _named_with(_OWNERS, required_first)
        owned = _named_with(_OWNED, required_first)
        pairs = [one for one in of_kind(found, "pair") if str(one.value).count("/") == 1]
        if not (owners and owned and pairs) or owners[0] is owned[0]:
            return None
        values = str(pairs[0].value).split("/")
        if not (owners[0].fits(values[0]) and owned[0].fits(values[1])):
            return None
        self.values[owners[0].name], self.values[owned[0].name] = values
        return pairs[0]

    def _numbers(self) -> None:
        wanted = self._open("number", required=True)
        numbers = numbers_in(self.free)
        # "subtract 3 from 10" names the second operand first.
        if len(wanted) == len(numbers) == 2 and _TAKEN_FROM.search(self.clause.text):
            numbers.reverse()
        for parameter in wanted:
            if not self._give_first(parameter, numbers):
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
            kinds = tuple(dict.fromkeys(first + kinds))
        # A pair such as `owner/name` may be a path, but is too weak to fill an optional parameter.
        if reader.role == "path" and not parameter.required:
            kinds = tuple(kind for kind in kinds if kind != "pair")
        for kind in kinds:
            # Capitalised words at the beginning of a sentence come last.
            if self._give_first(parameter, sorted(of_kind(self.free, kind), key=lambda one: one.weak)):
                return True
        return False

    def _from_result(self, result: ToolResult) -> None:
        mention = self.clause.result_mention
        if mention:
            self._claim(*mention.span())
        # A result often has the values that the next call needs under the same names, such as the id of a new record.
        for parameter in self._open(required=True):
            value = result.named(parameter.name)
            if value is not None and parameter.fits(value):
                self.values[parameter.name] = value

    def _recalled(self, recalled: Sequence[Evidence]) -> None:
        """Fill required parameters from the evidence of earlier messages, each piece once."""
        taken = self._owners(recalled)
        left = [one for one in recalled if one is not taken]
        for parameter in self._open(*_TYPED, required=True):
            # The likeliest kind first; of one kind, the evidence that was recalled first.
            kinds = ACCEPTED[parameter.role]
            for one in chain.from_iterable(of_kind(left, kind) for kind in kinds):
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
                fitting: list[JsonValue] = []
                for one in numbers_in(self.free):
                    value = value_for(self._reader(parameter), one)
                    if value is not None:
                        fitting.append(value)
                    self._claim(one.start, one.end)
                if fitting:
                    self.values[parameter.name] = fitting
            else:
                self._first_of_kind(parameter)

    def _texts(self, result: ToolResult | None) -> None:
        wanted = self._open("query", "prose", "opaque", "expression", required=True)
        # A search without required parameters and without any value would find everything.
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
        """Fill a required choice with its first listed value, and a required flag with false."""
        # Schemas usually list the commonest value first. Each of these values counts as a guess.
        for parameter in self._open(required=True):
            if "default" in parameter.schema:
                continue
            if parameter.choices:
                self.values[parameter.name] = next((one for one in parameter.choices if one is not None), None)
                self.guesses += len(parameter.choices) > 1
            elif parameter.role == "flag":
                self.values[parameter.name] = False
                self.guesses += 1


def _named_with(words: frozenset[str], parameters: Iterable[Parameter]) -> list[Parameter]:
    return [one for one in parameters if not words.isdisjoint(split_name(one.name))]


def _with_others(value: JsonValue, others: Iterable[tuple[Evidence, JsonValue]]) -> list[JsonValue]:
    return [value, *_values_of(others)]


def _values_of(found: Iterable[tuple[Evidence, JsonValue]]) -> list[JsonValue]:
    return [value for _, value in found]


def _evidence_of(found: Iterable[tuple[Evidence, JsonValue]]) -> list[Evidence]:
    return [one for one, _ in found]


def _group_with(one: Evidence, groups: Iterable[list[Evidence]]) -> list[Evidence]:
    """Return the evidence that is enumerated with a piece; empty for a piece that stands alone."""
    for group in groups:
        if one in group:
            return group
    return []


def _within(word: Word, spans: Iterable[Span]) -> bool:
    return any(start <= word.start < end for start, end in spans)
