"""Finds the arguments of a tool call in a clause of the request and in the results of earlier calls."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from zoneinfo import available_timezones

from workbench.dataclasses import dataclass
from workbench.providers.offline.clauses import Clause
from workbench.providers.offline.evidence import Evidence, Kind, Span, ToolResult, evidence_of_kind, joined_groups
from workbench.providers.offline.tools import ACCEPTED_EVIDENCE, Parameter, Role, Tool, parameter_named, parameters_of
from workbench.providers.offline.words import (
    REQUEST_VERBS,
    STOP_STEMS,
    STOPWORDS,
    VERB_STEMS,
    Word,
    operation_of,
    split_name,
    stem,
    stem_set,
    without_possessive,
    word_set,
)
from workbench.startup import late_pattern
from workbench.trajectory.events import JsonValue

_Found = tuple[Evidence, JsonValue]
"""A piece of evidence, and its value for a parameter."""

_MAX_CHOICES = 200
_MAX_PHRASE_WORDS = 4
_MAX_OBJECT_DEPTH = 3
_MAX_FURTHER_VALUES = 9
_MAX_TITLE_CHARS = 120

_REGIONS = word_set("Africa America Antarctica Asia Atlantic Australia Europe Indian Pacific")
_NUMBER_MEANING = late_pattern(r"(-?\d{1,9}(?:\.\d{1,9})?)\s*(?:\(|=|is|:|means)\s*([a-z]+)", re.ASCII)
_INTRODUCED = late_pattern(
    r"(?:\b(?:saying|says?|that\s+says|reading|called|named|titled|entitled|that)\b(?:\s+that\b)?\s*[:,]?|:)\s+(?P<content>\S.*)",
    re.I | re.S,
)
_TO_DO = late_pattern(rf"\bto\s+(?!(?:{'|'.join(STOPWORDS)})\b)(?P<content>[^\W\d_]+\s+\S.*)", re.S)
_ABOUT = late_pattern(r"\b(?:about|regarding)\s+(?P<content>\S.*)", re.I | re.S)
_TRIMMED = " \t\n,;:-"
_LEADING_UP = word_set("on at by for to in with from of the a an and or is due until before after") | {""}
_ARTICLES = word_set("a an the my our your his her their this that these those some")
_PREPOSITIONS = word_set("in at for near from to about on of into with by")
_GAP = late_pattern(
    r"[\s:=#(]*(?:(?:of|is|are|to|as|at|on|by|for|the|a|an|in|with|name|id|number|be|about|around|from)\s+){0,3}#?"
)
_GENERIC_STEMS = stem_set("name id number value")
_CALLED = word_set("called named titled entitled")
_ALSO_CALLED = (
    (word_set("title name subject headline"), _CALLED),
    (word_set("message text body content comment note"), word_set("saying says reading")),
    (word_set("source origin departure start from"), word_set("from")),
    (word_set("target destination arrival end to"), word_set("to into")),
    (word_set("due deadline when date"), word_set("due by on")),
    (word_set("limit max maximum count top"), word_set("top first most limit maximum")),
)
"""Words in a parameter's name, with the words that introduce its value in a request."""
_OWNERS = word_set("owner org organization namespace")
_OWNED = word_set("repo repository project")
_TAKEN_FROM = late_pattern(r"\b(?:subtract|take|deduct|minus)\w*\b.*\bfrom\b", re.I | re.S)
_PLAIN_VALUE = late_pattern(r"\s*[:=]?\s*([^\W_][\w./-]{0,63})(?<![./-])")
_TITLES = word_set("title subject headline caption")
_FLAG_FILLERS = word_set("is has includ include with should")
_NEGATION = word_set("no not without never")
_WORTH_GUESSING: tuple[Role, ...] = ("moment", "url", "zone", "path")
"""Roles for which evidence of the right kind suffices, even if the parameter is optional and was not named."""
_TYPED: tuple[Role, ...] = ("email", "url", "zone", "moment", "path", "person", "id", "other", "opaque")
"""Roles whose evidence is recognised by its kind, the most specific first."""


def _value_for(parameter: Parameter, one: Evidence) -> JsonValue:
    """Convert a value found in the text to a value that the parameter's schema accepts.

    Returns `None` if the value does not fit the parameter."""
    if one.kind not in ACCEPTED_EVIDENCE.get(parameter.role, ()):
        return None
    value: JsonValue = str(one.value)
    if parameter.role == "number":
        value = one.value
        if isinstance(value, float) and value.is_integer() and "number" not in parameter.types:
            value = int(value)
    elif parameter.role == "moment":
        value = _moment(parameter, one.kind, str(value))
    elif parameter.role == "zone":
        # A time zone may be written as its city: `Tokyo` means `Asia/Tokyo`.
        value = _zones().get(str(value).strip().lower().replace(" ", "_"))
    return value if value is not None and parameter.fits(value) else None


@cache
def _zones() -> dict[str, str]:
    # Only the IANA areas in _REGIONS contain cities. Other areas, such as `Etc`, contain offsets and old names.
    zones: dict[str, str] = {}
    for key in sorted(available_timezones()):
        region, _, city = key.rpartition("/")
        zones[key.lower()] = key
        if region.split("/")[0] in _REGIONS:
            zones.setdefault(city.lower(), key)
    return zones


def _moment(parameter: Parameter, kind: Kind, text: str) -> str | None:
    described = parameter.description
    wanted = parameter.schema.get("format")
    if wanted not in ("date", "time", "date-time"):
        forms = ("date" * ("yyyy" in described), "time" * ("hh" in described))
        wanted = "-".join(filter(None, forms))
        if "date-time" in described or "datetime" in described:
            wanted = "date-time"
    if kind == "datetime":
        return {"date": text[:10], "time": text[11:16]}.get(str(wanted), text)
    if kind == "date":
        return {"date-time": f"{text}T00:00:00", "time": None}.get(str(wanted), text)
    return text if wanted in ("time", "") else None


def _mentioned(parameter: Parameter, clause: Clause, known: Collection[str]) -> list[_Found]:
    """Return those `enum` values or examples of the parameter that occur in a clause, the longest first.

    A value is ignored if all its words are stop words or in `known`, because such words may name the tool instead."""
    examples = parameter.schema.get("examples")
    values: Sequence[JsonValue] = parameter.choices
    if not values and isinstance(examples, list):
        values = examples
    if not values:
        return []
    words = list(_unused(clause, [one[2:4] for one in clause.evidence if one.kind not in ("name", "number")]))
    stems = [word.stem for word in words]
    hits: list[tuple[int, Evidence, JsonValue]] = []
    for value in values[:_MAX_CHOICES]:
        if not isinstance(value, str):
            same = [
                one for one in evidence_of_kind(clause.evidence, "number") if one.value == value and value is not True
            ]
            hits += [(1, one, value) for one in same[:1]]
            continue
        if parameter.choices and operation_of(value) in clause.operations:
            hits.append((1, Evidence("name", value, 0, 0), value))
            continue
        own = list(map(stem, split_name(value)))
        # Stop words, words that name the tool, and the verb at the beginning are too weak to fill an optional
        # parameter.
        plain = not parameter.required and all(word in STOPWORDS or word in known for word in own)
        for place in range(0 if parameter.required else 1, len(stems) - len(own) + 1):
            if own and not plain and stems[place : place + len(own)] == own:
                hits.append(
                    (len(own), Evidence("name", value, words[place].start, words[place + len(own) - 1].end), value)
                )
                break
    found: list[_Found] = []
    for _, one, value in sorted(hits, key=lambda hit: (-hit[0], hit[1].start)):
        if not _overlaps(one, (other[2:4] for other, _ in found)):
            found.append((one, value))
    return found


def _number_meant(parameter: Parameter, clause: Clause) -> int | float | None:
    """Return the number that the parameter's description gives as the meaning of a word in the clause.

    For example, "0 (off) to 100 (full)" assigns 0 to "off". Returns `None` if no word in the clause has such a
    meaning."""
    meanings = {word: float(number) for number, word in _NUMBER_MEANING.findall(parameter.description)}
    for word in clause.words:
        if (number := meanings.get(word.text.lower())) is not None:
            return int(number) if number.is_integer() else number
    return None


def _overlaps(one: Evidence, spans: Iterable[Span]) -> bool:
    return any(start < one.end and one.start < end for start, end in spans)


def _unused(clause: Clause, used: Collection[Span]) -> Iterator[Word]:
    for word in clause.words:
        if not any(start <= word.start < end for start, end in used):
            yield word


# Search words, prose and phrases cannot be recognised by their form. They are what remains of a clause after all other
# values have been assigned to parameters.


def _search_words(clause: Clause, used: Collection[Span], known: Collection[str]) -> str:
    """Return the words in a clause that may be the text of a search.

    The verb of the request and stop words are left out. Words with a stem in `known`, which name the tool, are left out
    too, unless nothing else remains. `used` are the positions of words that already belong to other parameters."""
    words = [word for word in _unused(clause, used) if word.stem not in STOP_STEMS]
    if words and words[0].stem in VERB_STEMS:
        words = words[1:]
    left = [word for word in words if word.stem not in known] or words
    return " ".join(without_possessive(word.text) for word in left)


def _prose(clause: Clause, used: Collection[Span], known: Collection[str]) -> str:
    """Return the part of a clause that may be the content of a message or a title, unchanged.

    This is the text after "that", "saying", "called" or a colon. If there is none, it is the action ("remind me to …")
    or the topic ("about …"). If there is neither, it is the clause from the first word that is no stop word, no verb of
    a request, and no name of the tool. The text is empty if there is no such word."""
    text = clause.text
    for start, end in used:
        text = text[:start] + "\x00" * (end - start) + text[end:]
    for pattern in (_INTRODUCED, _TO_DO, _ABOUT):
        if (match := pattern.search(text)) and (content := _tidied(match["content"])):
            return content
    for word in clause.words:
        lowered = word.text.lower()
        if not (lowered in STOPWORDS or lowered in REQUEST_VERBS or word.stem in known or text[word.start] == "\x00"):
            article = text[: word.start].rsplit(maxsplit=1)[-1:]
            kept = [one for one in article if one.lower() in _ARTICLES]
            return _tidied(" ".join([*kept, text[word.start :]]))
    return ""


def _tidied(content: str) -> str:
    *before_gaps, last = content.split("\x00")
    pieces = []
    for piece in before_gaps:
        words = piece.strip(_TRIMMED).split(" ")
        while words and words[-1].lower().strip(_TRIMMED) in _LEADING_UP:
            words.pop()
        pieces.append(" ".join(words))
    kept = []
    for piece in (*pieces, last):
        if not STOPWORDS.issuperset(re.findall(r"[^\W_]+", piece.lower())):
            kept.append(piece.strip(_TRIMMED))
    return " ".join(kept)


def _phrases(clause: Clause, used: Collection[Span], known: Collection[str]) -> Iterator[list[Evidence]]:
    """Yield groups of words after prepositions, because these may be names in lower case.

    For example, "in tokyo and paris" gives one group of two."""
    words = list(_unused(clause, used))
    for number, word in enumerate(words):
        group: list[Evidence] = []
        run: list[Word] = []
        if word.text.lower() in _PREPOSITIONS:
            for one in chain(words[number + 1 :], (None,)):
                lowered = one.text.lower() if one else ""
                between = clause.text[run[-1].end : one.start].strip(" -") if one and run else ""
                if one and lowered not in STOPWORDS and not between and len(run) < _MAX_PHRASE_WORDS:
                    run.append(one)
                elif run:
                    if not all(part.stem in known for part in run):
                        start, end = run[0].start, run[-1].end
                        group.append(Evidence("name", clause.text[start:end], start, end))
                    run = [one] if one and between == "," and lowered not in STOPWORDS else []
                    if not run and lowered not in ("and", "or"):
                        break
                elif lowered not in _ARTICLES:
                    break
        if group:
            yield group


@dataclass(frozen=True, slots=True)
class FilledArguments:
    """The arguments for a tool that were found in a clause of the request.

    `missing` are the required parameters for which no value was found. `alternatives` are the further values if the
    clause enumerates values of one parameter ("Seattle and Portland"). `weaknesses` counts the signs that another tool
    is meant: unused values in the clause, and parameters with a guessed value."""

    arguments: dict[str, JsonValue]
    missing: tuple[str, ...] = ()
    alternatives: tuple[str, tuple[JsonValue, ...]] | None = None
    weaknesses: int = 0

    def calls(self) -> list[dict[str, JsonValue]]:
        """Return the arguments of the first call, and of a further call for each alternative value."""
        calls = [self.arguments]
        if self.alternatives is not None:
            name, values = self.alternatives
            calls += [{**self.arguments, name: value} for value in values]
        return calls


def fill_arguments(
    tool: Tool, clause: Clause, recalled: Sequence[Evidence] = (), result: ToolResult | None = None
) -> FilledArguments:
    """Find arguments for a call of `tool` in a clause of the request.

    `recalled` are values in earlier messages, if the clause refers to them. `result` is the result of an earlier call,
    if the clause continues from it."""
    if result is not None and result.number is not None:
        # The result's number is used if the clause mentions the result. It is also used, as the first number, if the
        # clause has fewer numbers than the tool requires.
        wanted = sum(one.role == "number" and one.required for one in tool.parameters)
        mention = clause.result_mention
        if mention or len(evidence_of_kind(clause.evidence, "number")) < wanted:
            number = Evidence("number", result.number, *(mention.span() if mention else (0, 0)))
            evidence = sorted((*clause.evidence, number), key=lambda one: one.start)
            clause = replace(clause, evidence=tuple(evidence))
    filling = _ArgumentFiller(tool.parameters, clause, tool.own_words)
    filling.run(recalled, result)
    return filling.filled()


class _ArgumentFiller:
    """Fills the parameters of a tool with values found in a clause, each of which is used only once.

    `beside` has the further values that the clause enumerates with a parameter's value. `known` are the stems of the
    words that name the tool."""

    def __init__(self, parameters: Sequence[Parameter], clause: Clause, known: frozenset[str]) -> None:
        self.parameters = parameters
        self.clause = clause
        self.known = known
        self.values: dict[str, JsonValue] = {}
        self.used: list[Span] = []
        self.beside: dict[str, list[_Found]] = {}
        self.free: list[Evidence] = []
        for one in clause.evidence:
            # A capitalised word that names the tool, such as "DM", is not a name.
            if one.kind != "name" or not known.issuperset(map(stem, split_name(str(one.value)))):
                self.free.append(one)
        self.groups = joined_groups(clause.text, clause.evidence)
        self.guesses = 0

    def run(self, recalled: Sequence[Evidence], result: ToolResult | None, depth: int = 0) -> None:
        # The most certain values come first, because each step can use only the values and words that earlier steps
        # left.
        self._choices()
        self._flags()
        self._introduced()
        if (taken := self._owners(self.free)) is not None:
            self._mark_used(taken.start, taken.end)
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

    def filled(self) -> FilledArguments:
        # Put the arguments into the order of the schema, not the order in which they were found.
        ordered = {one.name: self.values[one.name] for one in self.parameters if one.name in self.values}
        missing = tuple(one.name for one in self._open(required=True) if "default" not in one.schema)
        beside = [one for one, _ in chain.from_iterable(self.beside.values())]
        untaken = sum(not one.is_uncertain and one not in beside for one in self.free)
        instead = None
        for name, others in self.beside.items():
            # Values that already belong to other parameters are not alternatives.
            if others and not any(_overlaps(one, self.used) for one, _ in others):
                instead = name, tuple(value for _, value in others[:_MAX_FURTHER_VALUES])
                break
        return FilledArguments(ordered, missing, instead, untaken + self.guesses)

    def _open(self, *roles: Role, required: bool | None = None) -> list[Parameter]:
        unfilled = []
        for one in self.parameters:
            if one.name not in self.values and required in (None, one.required) and (not roles or one.role in roles):
                unfilled.append(one)
        return unfilled

    def _mark_used(self, start: int, end: int) -> None:
        self.used.append((start, end))
        self.free = [one for one in self.free if one.end <= start or one.start >= end]

    def _store(self, parameter: Parameter, value: JsonValue, others: list[_Found]) -> None:
        """Store a value of a parameter, and the other values that the text lists together with the value.

        A list parameter gets all of these values. For any other parameter, the others are kept as alternatives."""
        if parameter.role == "list":
            for other, _ in others:
                self._mark_used(other.start, other.end)
            self.values[parameter.name] = [value, *(one for _, one in others)]
        else:
            self.values[parameter.name] = value
            self.beside[parameter.name] = others

    def _fill_from(self, parameter: Parameter, one: Evidence, start: int | None = None) -> bool:
        """Fill a parameter with a value found in the text, and return whether the value fits.

        `start` is the position of the first word that introduces the value."""
        value = _value_for(parameter.item, one)
        if value is None:
            return False
        others: list[_Found] = []
        for other in self._enumerated_with(one, self.groups):
            found = _value_for(parameter.item, other)
            if found is not None and other != one and (parameter.role != "list" or other in self.free):
                others.append((other, found))
        self._mark_used(one.start if start is None else min(start, one.start), one.end)
        self.free = [other for other in self.free if other != one]
        self._store(parameter, value, others)
        return True

    @staticmethod
    def _enumerated_with(one: Evidence, groups: Iterable[list[Evidence]]) -> list[Evidence]:
        return next((group for group in groups if one in group), [])

    def _fill_from_first(self, parameter: Parameter, candidates: Iterable[Evidence]) -> bool:
        return any(one in self.free and self._fill_from(parameter, one) for one in candidates)

    def _choices(self) -> None:
        for parameter in self._open():
            hits = _mentioned(parameter.item, self.clause, () if parameter.required else self.known)
            if hits:
                first, value = hits[0]
                found = sorted((one for one, _ in hits), key=lambda one: one.start)
                group = self._enumerated_with(first, joined_groups(self.clause.text, found))
                self._mark_used(first.start, first.end)
                self._store(parameter, value, [hit for hit in hits[1:] if hit[0] in group and hit[1] != value])

    def _flags(self) -> None:
        stems = [word.stem for word in self.clause.words]
        for parameter in self._open("flag"):
            asked = [word for word in parameter.words if word not in _FLAG_FILLERS]
            # Words that describe the tool itself say nothing about the flag.
            if asked and set(asked) <= set(stems) and not set(asked) <= self.known:
                place = stems.index(asked[0])
                self.values[parameter.name] = _NEGATION.isdisjoint(stems[max(0, place - 2) : place])

    def _introduced(self) -> None:
        """Fill parameters with values right after a word of their name, and with numbers right before such a word.

        Examples are "subject 'X'" and "5 days"."""
        pairs: list[tuple[int, int, Parameter, Evidence, Word]] = []
        for number, parameter in enumerate(self._open()):
            for word in self._introducers(parameter):
                for one in self.free:
                    distance = self._distance(word, one, parameter)
                    if distance is not None and _value_for(parameter.item, one) is not None:
                        pairs.append((distance, number, parameter, one, word))
        # The closest pairs come first, because a value belongs to the nearest word that introduces it.
        for _, _, parameter, one, word in sorted(pairs, key=lambda pair: pair[:2]):
            if parameter.name not in self.values and one in self.free:
                self._fill_from(parameter, one, word.start)
        for parameter in self._open("other", "opaque", "id", "person", "zone"):
            self._plain_word(parameter)

    def _introducers(self, parameter: Parameter) -> list[Word]:
        """Return the words of the clause that introduce the parameter's value, such as "from" for an origin."""
        name_words = frozenset(split_name(parameter.name))
        also = frozenset(chain.from_iterable(words for names, words in _ALSO_CALLED if name_words & names))
        own = frozenset(parameter.words) - STOPWORDS
        own = own - _GENERIC_STEMS or own
        found: list[Word] = []
        previous = ""
        for word in _unused(self.clause, [one[2:4] for one in self.clause.evidence if one.kind != "name"]):
            called = word.text.lower() in _CALLED and previous in own
            if called or word.stem in own or word.text.lower() in also:
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
        """Fill a parameter with a word in lower case right after its name, as in "tagged gothic"."""
        taken = [*self.used, *(one[2:4] for one in self.clause.evidence)]
        for word in self._introducers(parameter):
            match = _PLAIN_VALUE.match(self.clause.text, word.end)
            if match is None or word.text.lower() in STOPWORDS:
                continue
            one = Evidence("name", match[1], *match.span(1))
            is_value = match[1].lower() not in STOPWORDS and stem(match[1]) not in VERB_STEMS | self.known
            if is_value and not _overlaps(one, taken) and self._fill_from(parameter, one, word.start):
                return

    def _owners(self, evidence: Iterable[Evidence]) -> Evidence | None:
        """Fill two parameters, an owner and a name, from a pair such as `owner/name`.

        Returns the pair; `None` if there is no pair or there are no such parameters."""
        required_first = sorted(self._open(), key=lambda one: not one.required)
        owner, owned = parameter_named(_OWNERS, required_first), parameter_named(_OWNED, required_first)
        pairs = [one for one in evidence_of_kind(evidence, "pair") if str(one.value).count("/") == 1]
        if not (owner and owned and pairs) or owner is owned:
            return None
        values = str(pairs[0].value).split("/")
        if not (owner.fits(values[0]) and owned.fits(values[1])):
            return None
        self.values[owner.name], self.values[owned.name] = values
        return pairs[0]

    def _numbers(self) -> None:
        wanted = self._open("number", required=True)
        numbers = evidence_of_kind(self.free, "number")
        # In "subtract 3 from 10", the second operand comes first.
        if len(wanted) == len(numbers) == 2 and _TAKEN_FROM.search(self.clause.text):
            numbers.reverse()
        for parameter in wanted:
            if not self._fill_from_first(parameter, numbers):
                value = _number_meant(parameter, self.clause)
                if value is not None and parameter.fits(value):
                    self.values[parameter.name] = value

    def _by_kind(self) -> None:
        for role in _TYPED:
            for parameter in self._open(role, required=True):
                self._first_of_kind(parameter)
        for parameter in self._open("expression"):
            for expression in self.clause.expressions[:1]:
                self.values[parameter.name] = expression.text
                self._mark_used(expression.start, expression.end)
        for role in _WORTH_GUESSING:
            optional = self._open(role, required=False)
            if len(optional) == 1:
                self._first_of_kind(optional[0])

    def _first_of_kind(self, parameter: Parameter) -> None:
        role = parameter.item.role
        kinds = ACCEPTED_EVIDENCE.get(role, ())
        if "path" in kinds and parameter.of_path:
            first: tuple[Kind, ...] = ("path",) if role == "path" else ("path", "pair")
            kinds = tuple(dict.fromkeys(first + kinds))
        for kind in kinds:
            # A pair such as `owner/name` may be a path, but this is too uncertain to fill an optional parameter.
            if kind == "pair" and role == "path" and not parameter.required:
                continue
            # Capitalised words at the beginning of a sentence come last, because they may not be names.
            if self._fill_from_first(
                parameter, sorted(evidence_of_kind(self.free, kind), key=lambda one: one.is_uncertain)
            ):
                return

    def _from_result(self, result: ToolResult) -> None:
        if mention := self.clause.result_mention:
            self._mark_used(*mention.span())
        # A result often has the values for the next call under the same names, such as the id of a new record.
        for parameter in self._open(required=True):
            value = result.named(parameter.name)
            if value is not None and parameter.fits(value):
                self.values[parameter.name] = value

    def _recalled(self, recalled: Sequence[Evidence]) -> None:
        taken = self._owners(recalled)
        left = [one for one in recalled if one is not taken]
        for parameter in self._open(*_TYPED, required=True):
            # The likeliest kind comes first. Values of the same kind keep their order, the latest first.
            for one in chain.from_iterable(evidence_of_kind(left, kind) for kind in ACCEPTED_EVIDENCE[parameter.role]):
                value = _value_for(parameter, one)
                if value is not None:
                    self.values[parameter.name] = value
                    left.remove(one)
                    break

    def _phrases(self) -> None:
        for parameter in self._open("other", "zone", "person", required=True):
            for group in list(_phrases(self.clause, self.used, self.known)):
                self.groups.append(group)
                if any(self._fill_from(parameter, one) for one in group):
                    break

    def _lists(self) -> None:
        for parameter in self._open("list", required=True):
            if parameter.item.role != "number":
                self._first_of_kind(parameter)
                continue
            numbers = evidence_of_kind(self.free, "number")
            fitting: list[JsonValue] = []
            for one in numbers:
                if (value := _value_for(parameter.item, one)) is not None:
                    fitting.append(value)
                self._mark_used(one.start, one.end)
            if fitting:
                self.values[parameter.name] = fitting

    def _texts(self, result: ToolResult | None) -> None:
        wanted = self._open("query", "prose", "opaque", "expression", required=True)
        # If a search has no required parameters and no value was found, fill its query. Otherwise it would find
        # everything.
        if not wanted and not self.values and not any(one.required for one in self.parameters):
            wanted = self._open("query")[:1]
        for parameter in wanted:
            self._first_of_kind(parameter)
        for parameter in [one for one in wanted if one.name not in self.values]:
            find = _search_words if parameter.role == "query" else _prose
            text = find(self.clause, self.used, self.known)
            if not text and result is not None:
                text = result.line
            if not _TITLES.isdisjoint(split_name(parameter.name)):
                text = text[:1].upper() + text[1:_MAX_TITLE_CHARS]
            if text and parameter.fits(text):
                self.values[parameter.name] = text

    def _objects(self, recalled: Sequence[Evidence], result: ToolResult | None, depth: int) -> None:
        for parameter in self._open("object", required=True):
            inner = _ArgumentFiller(parameters_of(dict(parameter.schema), parameter.root), self.clause, self.known)
            inner.used, inner.free = self.used, self.free
            if depth < _MAX_OBJECT_DEPTH:
                inner.run(recalled, result, depth + 1)
            filled = inner.filled()
            if not filled.missing:
                self.values[parameter.name] = filled.arguments
                self.free = inner.free

    def _without_evidence(self) -> None:
        """Fill the required parameters for which the text has no value.

        A choice gets its first value, and a flag gets false. Parameters with a default and all other parameters stay
        empty."""
        # Schemas usually list the most common value first. Each value that is filled in here counts as a guess.
        for parameter in self._open(required=True):
            if "default" in parameter.schema:
                continue
            if parameter.choices:
                self.values[parameter.name] = next((one for one in parameter.choices if one is not None), None)
                self.guesses += len(parameter.choices) > 1
            elif parameter.role == "flag":
                self.values[parameter.name] = False
                self.guesses += 1
