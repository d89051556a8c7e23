"""Fills a tool's arguments from the content of a clause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from workbench.dataclasses import dataclass
from workbench.providers.offline.clauses import Clause
from workbench.providers.offline.evidence import Evidence, Kind, joined_groups
from workbench.providers.offline.ranking import tool_words
from workbench.providers.offline.remainder import Span, phrases, prose, search_words
from workbench.providers.offline.results import ToolResult
from workbench.providers.offline.schemas import Parameter, Role, parameter_of, parameters_of
from workbench.providers.offline.values import ACCEPTED, mentioned, number_meant, overlaps, value_for
from workbench.providers.offline.words import STOPWORDS, VERB_STEMS, Word, split_name, stem, word_set
from workbench.trajectory.messages import JsonValue, ToolDefinition

_DEEPEST_OBJECT = 3
_GAP = re.compile(
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
_TAKEN_FROM = re.compile(r"\b(?:subtract|take|deduct|minus)\w*\b.*\bfrom\b", re.I | re.S)
_PLAIN_VALUE = re.compile(r"\s*[:=]?\s*([^\W_][\w./-]{0,63})(?<![./-])")
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
    """Arguments for a tool, the required parameters without evidence, and alternative values of one parameter, listed
    together with the chosen one ("Seattle and Portland"). `loose_ends` counts the evidence against the tool: things in
    the text that no parameter took, and parameters whose value was guessed."""

    arguments: dict[str, JsonValue]
    missing: tuple[str, ...] = ()
    instead: tuple[str, tuple[JsonValue, ...]] | None = None
    loose_ends: int = 0

    def calls(self) -> list[dict[str, JsonValue]]:
        """Returns one set of arguments for each value."""
        if self.instead is None:
            return [self.arguments]
        name, values = self.instead
        return [self.arguments, *({**self.arguments, name: value} for value in values)]


def fill(
    tool: ToolDefinition, clause: Clause, recalled: Sequence[Evidence] = (), result: ToolResult | None = None
) -> Filled:
    """Returns arguments for a call of `tool`. `recalled` is the evidence of earlier messages, for a clause that refers
    back to them; `result` is the result of an earlier call, for a clause that continues from it."""
    parameters = parameters_of(dict(tool.parameters))
    filling = _Filling(parameters, _with_result(clause, parameters, result), tool_words(tool), dict(tool.parameters))
    filling.run(recalled, result)
    return filling.filled()


def _with_result(clause: Clause, parameters: Iterable[Parameter], result: ToolResult | None) -> Clause:
    """Returns the clause with the result's number where the result is mentioned, or first when a number is missing."""
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
        """Fill what can be filled, the most certain first."""
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
        ordered = {one.name: self.values[one.name] for one in self.parameters if one.name in self.values}
        missing = tuple(one.name for one in self._open(required=True) if "default" not in one.schema)
        beside = [one for others in self.beside.values() for one, _ in others]
        untaken = [one for one in self.free if not one.weak and one not in beside]
        return Filled(ordered, missing, self._instead(), len(untaken) + self.guesses)

    def _instead(self) -> tuple[str, tuple[JsonValue, ...]] | None:
        """Returns values listed together with one parameter's, if no other parameter took any of them."""
        for name, others in self.beside.items():
            if others and not any(overlaps(one, self.used) for one, _ in others):
                return name, tuple(value for _, value in others[:_MAX_INSTEAD])
        return None

    def _open(self, *roles: Role, required: bool | None = None) -> list[Parameter]:
        """Returns parameters without a value, by role and by whether they are required."""
        return [
            one
            for one in self.parameters
            if one.name not in self.values
            and (not roles or one.role in roles)
            and (required is None or one.required == required)
        ]

    def _is_tool_word(self, one: Evidence) -> bool:
        """Returns whether a capitalised word only names what the tool does, such as "DM", and so is not a name."""
        return one.kind == "name" and all(stem(word) in self.known for word in split_name(str(one.value)))

    def _claim(self, start: int, end: int) -> None:
        self.used.append((start, end))
        self.free = [one for one in self.free if one.end <= start or one.start >= end]

    def _give(self, parameter: Parameter, one: Evidence, start: int | None = None) -> bool:
        """Fill a parameter from evidence, with the introducing words from `start` on. Returns False if it does not fit.
        Evidence listed together with it goes into the list, or is kept as alternatives."""
        reader = self._reader(parameter)
        value = value_for(reader, one)
        if value is None:
            return False
        group = next((group for group in self.groups if one in group), [])
        others: list[tuple[Evidence, JsonValue]] = [
            (other, found)
            for other in group
            if other != one and (other in self.free or parameter.role != "list")
            if (found := value_for(reader, other)) is not None
        ]
        self._claim(one.start if start is None else min(start, one.start), one.end)
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
        """Returns the schema that a single value has to fit: the parameter's own, or that of a list's items."""
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
            others = [hit for hit in hits[1:] if hit[0] in group and hit[1] != value]
            self._claim(first.start, first.end)
            if parameter.role == "list":
                self.values[parameter.name] = [value, *(other for _, other in others)]
            else:
                self.values[parameter.name] = value
                self.beside[parameter.name] = others

    def _flags(self) -> None:
        stems = [word.stem for word in self.clause.words]
        for parameter in self._open("flag"):
            asked = [word for word in parameter.words if word not in _FLAG_FILLERS]
            if asked and all(word in stems for word in asked) and not set(asked) <= self.known:
                place = stems.index(asked[0])
                self.values[parameter.name] = not any(word in _NEGATION for word in stems[max(0, place - 2) : place])

    def _introduced(self) -> None:
        """Take values right behind a word of the parameter's name ("subject 'X'"), and numbers right before one ("5
        days")."""
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
        inside = [(one.start, one.end) for one in self.clause.evidence if one.kind != "name"]
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
        """Read `owner/name` as two parameters. Returns the evidence that was used, if any."""
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
            for kind in ACCEPTED[parameter.role]:
                one = next((one for one in left if one.kind == kind and value_for(parameter, one) is not None), None)
                if one is not None:
                    self.values[parameter.name] = value_for(parameter, one)
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
                values = [(one, value_for(self._reader(parameter), one)) for one in numbers]
                fitting: list[JsonValue] = [value for _, value in values if value is not None]
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
        """A required choice gets its first listed value, as the usual one; a required flag gets false."""
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
