"""English text read by rules: stems, synonyms and stop words, a ranking of tools, and recognisable values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import islice, pairwise
from typing import Literal

from rapidfuzz import fuzz, process

from workbench.dataclasses import dataclass
from workbench.startup import late_pattern
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.json_schema import properties_of

_WORD = late_pattern(r"[^\W_]+(?:['’][^\W_]+)?")
_HUMP = late_pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MAX_STEMMED_CHARS = 40
_VOWELS = frozenset("aeiouy")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a text: as written, its place, and its stem."""

    text: str
    start: int
    end: int
    stem: str


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text, separated by blanks, as a set."""
    return frozenset(words.split())


STOPWORDS: frozenset[str] = word_set(
    """a about all am an and any are as at be been but by can could d did do does for from had has have he her here hers
    him his how i if in into is it its just kindly let like ll m may me might mine much must my need no not now of
    off ok okay on onto or our out over please re right s shall she should so some something somebody someone t than
    thanks that the their them then there these they this those to today tomorrow tonight too up us ve very via want
    was we were what when where which while who whom whose why will with would yes yesterday you your"""
)

QUESTION_WORDS: frozenset[str] = word_set(
    """what when where which who whose why how is are am was were does do did can could has have will would"""
)

REQUEST_VERBS: frozenset[str] = word_set(
    """add adjust answer append apply approve archive arrange ask assign attach book buy calculate call cancel change
    check clean clear close combine comment compare compose compute configure convert copy count create deactivate
    decrease delete deploy describe determine dim disable display divide download draft edit email enable end ensure
    enter erase estimate evaluate execute explain export extract fetch figure file filter find finish fix forward
    generate get give go import include increase inform insert install invite join launch leave let list load lock
    log look lookup lower mail make mark measure merge message move multiply mute name notify open order organize
    pause pay phone pick plan play post prepare print process provide publish pull push put query raise read remind
    remove rename repeat replace reply report request reserve reset resolve restart retrieve return review revoke
    run save schedule search select send set share show shut sort split star start stop store subscribe submit
    subtract summarize switch take tell terminate test text track transfer transform translate turn unlock
    unsubscribe update upload use validate verify view visit wait wake watch write"""
)
"""Verbs with which a request often begins."""

# Each line lists words that tools and requests use for one thing. The relation is not transitive: a word may stand in
# several lines, whose other words stay unrelated.
_SAME_MEANING = """
search find look lookup seek query locate
get fetch show display read view retrieve give see check obtain tell
list show enumerate
create make add new open write insert generate compose
delete remove erase drop cancel clear
update change edit modify set adjust alter turn switch make
send post tell message dm notify inform say mail forward deliver text
mail email
message dm text note
event meeting appointment calendar
calculate calculator compute arithmetic math mathematics evaluate
add plus sum addition total
subtract minus subtraction difference
multiply times product multiplication
divide quotient division
temperature degree celsius fahrenheit thermostat
weather forecast
document doc file page manual handbook article wiki knowledge
task todo ticket chore
remind reminder remember
person people user member account profile
picture image photo
begin start launch run execute
stop end halt finish
buy purchase order
book reserve booking reservation
price cost
time clock
location place city town where
repository repo
directory dir folder
message msg
information info
configuration config settings
database db
light lamp
lock secure
close shut
translate translation
convert conversion transform
copy duplicate clone
employee staff colleague
"""

GENERAL_VERBS: frozenset[str] = word_set(
    """get fetch show display read view retrieve give list create make add new open write insert delete remove update
    change edit modify set run start do use send check tell turn switch put take execute see call"""
)
"""Verbs with little meaning of their own: their object decides which tool is meant."""

CHANGING_VERBS: frozenset[str] = word_set(
    """add approve assign cancel change close create delete disable dismiss edit enable fork insert lock make mark merge
    move open post push put remove rename reset send set submit unlock update upload write"""
)
"""Verbs of tools that change something, which a question rarely asks for."""

ARITHMETIC: dict[str, frozenset[str]] = {
    "add": word_set("add addition plus sum total +"),
    "subtract": word_set("subtract subtraction minus difference less - −"),
    "multiply": word_set("multiply multiplication times product multiplied * × x ·"),
    "divide": word_set("divide division divided quotient over / ÷ :"),
    "power": word_set("power exponent exponentiation pow ** ^"),
    "modulo": word_set("modulo modulus remainder mod %"),
}
"""Operations by their words and signs."""

_NUMBER_WORDS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty"""
NUMBER_WORDS: dict[str, int] = {word: value for value, word in enumerate(_NUMBER_WORDS.split())} | {
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
    "hundred": 100,
    "thousand": 1000,
}
del NUMBER_WORDS["one"]  # more often a pronoun than a number


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return a word in lower case without its commonest endings: `policies` → `policy`, `tagged` → `tag`."""
    # A light stemmer: it only has to map the forms of a word to one text, which need not be a word.
    word = word.lower()
    if len(word) > _MAX_STEMMED_CHARS:
        return word
    if len(word) > 4 and word.endswith(("ies", "ied")):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word.removesuffix("s")
        if word.endswith(("sse", "xe", "che", "she")):
            word = word.removesuffix("e")
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        # A root needs a vowel: "string" is not a form of "str".
        if root != word and len(root) >= 3 and not _VOWELS.isdisjoint(root):
            doubled = root[-1] == root[-2] and root[-1] not in "lsz"
            return root[:-1] if doubled else root.removesuffix("e")
    return word.removesuffix("e") if len(word) > 3 else word


def words_of(text: str) -> Iterator[Word]:
    """Yield the words of a text with their places and stems."""
    for match in _WORD.finditer(text):
        yield Word(match[0], match.start(), match.end(), _stem_of_written(match[0]))


def stems_of(text: str) -> dict[str, None]:
    """Return the distinct stems of a text, in order, without numbers and words without meaning of their own."""
    # A dict, because it keeps the order and holds each stem once.
    stems: dict[str, None] = {}
    for word in _WORD.findall(text):
        found = _stem_of_written(word)
        if _tells(found):
            stems[found] = None
    return stems


@lru_cache(maxsize=16_384)
def _stem_of_written(word: str) -> str:
    # Of "don't" the negation counts, of "it's" and "lunch's" the beginning.
    if word.lower().endswith(("n't", "n’t")):
        return "not"
    return stem(re.split("['’]", word, maxsplit=1)[0])


@lru_cache(maxsize=16_384)
def _tells(stemmed: str) -> bool:
    return len(stemmed) > 1 and stemmed not in STOP_STEMS and not stemmed.isdigit()


def split_name(name: str) -> list[str]:
    """Return the words inside an identifier: `Weather_GetCurrent` → weather, get, current."""
    return list(map(str.lower, re.findall(r"[^\W_]+", _HUMP.sub(" ", name))))


def _meanings() -> dict[str, frozenset[str]]:
    related: dict[str, frozenset[str]] = {}
    for line in _SAME_MEANING.strip().splitlines():
        stems = _stem_set(line.split())
        for one in stems:
            related[one] = related.get(one, frozenset()) | (stems - {one})
    return related


def _stem_set(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(stem, words))


RELATED: dict[str, frozenset[str]] = _meanings()
"""Maps a stem to its synonyms."""

STOP_STEMS: frozenset[str] = _stem_set(STOPWORDS) | STOPWORDS
VERB_STEMS: frozenset[str] = _stem_set(REQUEST_VERBS)
GENERAL_VERB_STEMS: frozenset[str] = _stem_set(GENERAL_VERBS)
CHANGING_VERB_STEMS: frozenset[str] = _stem_set(CHANGING_VERBS)


def operation_of(word: str) -> str | None:
    """Return the arithmetic operation of a word or a sign, such as `divide` for "/"; None without one."""
    lowered = word.lower()
    root = stem(lowered)
    for operation, forms in ARITHMETIC.items():
        if lowered in forms or (root and root in map(stem, forms)):
            return operation
    return None


# Tools are ranked as documents are in a search by TF-IDF: each word that a text shares with a tool counts by its place
# in the tool and its rarity among all offered tools. https://en.wikipedia.org/wiki/Tf-idf

CALL_THRESHOLD = 0.5
"""The least score with which a tool is called."""

_IN_NAME, _IN_SUMMARY, _IN_ENUM, _IN_PARAMETER, _IN_DETAILS = 1.0, 0.6, 0.6, 0.45, 0.25
"""The weight of a word by its place in the tool; the summary is the description's first sentence."""

_RELATED_WORTH = 0.8
_FUZZY_CUTOFF = 84.0
_FUZZY_WORTH = 0.8
_MIN_FUZZY_CHARS = 5
_GENERAL_VERB_WORTH = 0.4
_UNASKED_CHANGE = 0.6
"""The factor for tools that change something if the text is a question."""
_HALF_WAY = 0.35
"""The weight at which a score is one half."""

_NAMED = 0.9
"""The weight of a parameter's name when the text gives a value with it."""

_MAX_DESCRIPTION_CHARS = 1_500
_MAX_PARAMETERS = 100
_MAX_WORDS = 60
"""The most words of a text that are compared with the tools."""

_FIRST_SENTENCE = late_pattern(r"(?:[^.\n]|\.(?=\S))*")


@dataclass(frozen=True, slots=True)
class RankedTool:
    """A tool and its score, from 0 to 1."""

    tool: ToolDefinition
    score: float


class ToolIndex:
    """The words of a list of tools, read once for many rankings."""

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
        """Return all tools by their fit to a text, best first, equal ones in the order offered.

        `hints` are words that the text implies. `named` are stems that name a value beside them, as in "subject
        'Lunch'": they point to a parameter rather than to a tool."""
        named = frozenset(named)
        stems = list(dict.fromkeys([*stems_of(text), *map(stem, hints)]))[:_MAX_WORDS]
        totals = [0.0] * len(self.tools)
        matched: list[dict[str, float]] = [{} for _ in self.tools]
        for asked in stems:
            best: dict[int, float] = {}
            if asked in named:
                having = []
                for n, names in enumerate(self._parameters):
                    if asked in names:
                        having.append(n)
                for number in having:
                    totals[number] += _NAMED * self._rarity_of(len(having))
                if having:
                    continue
            # Several words of a tool may be like one word of the text: only the best of them counts.
            for word, likeness in self._alike(asked).items():
                weight = likeness * _importance(word)
                for number, place_worth in self._worth[word].items():
                    best[number] = max(best.get(number, 0.0), weight * place_worth * self._rarity[word])
                    if word in self._names[number]:
                        matched[number][word] = max(matched[number].get(word, 0.0), likeness)
            for number, gain in best.items():
                totals[number] += gain
        ranked = []
        for number, tool in enumerate(self.tools):
            ranked.append(RankedTool(tool, self._score(number, totals[number], matched[number], question)))
        return sorted(ranked, key=lambda one: -one.score)

    def _rarity_of(self, having: int) -> float:
        """Return the inverse document frequency of a word that `having` tools contain, scaled to 1 at most.

        It is 1 for a word of a single tool, and near 0 for one that all of many tools contain."""
        return math.log(1 + len(self.tools) / having) / math.log(1 + len(self.tools))

    def _alike(self, asked: str) -> dict[str, float]:
        """Return the tools' words that equal a word, are its synonyms or are spelt alike, each with a likeness."""
        alike = {}
        for word in RELATED.get(asked, ()):
            if word in self._worth:
                alike[word] = _RELATED_WORTH
        if asked in self._worth:
            alike[asked] = 1.0
        elif len(asked) >= _MIN_FUZZY_CHARS:
            near = process.extract(asked, self._fuzzy, scorer=fuzz.ratio, score_cutoff=_FUZZY_CUTOFF, limit=5)
            for word, ratio, _ in near:
                alike.setdefault(word, _FUZZY_WORTH * ratio / 100)
        return alike

    def _score(self, number: int, total: float, matched: Mapping[str, float], question: bool) -> float:
        name = self._names[number]
        # A tool whose whole name occurs in the request counts twice as much as one whose name does not.
        whole = sum(self._rarity[word] * _importance(word) for word in name)
        known = sum(self._rarity[word] * _importance(word) * likeness for word, likeness in matched.items())
        coverage = known / whole if whole else 0.0
        weight = total * (0.5 + 0.5 * coverage)
        if question and changes_something(self.tools[number]):
            weight *= _UNASKED_CHANGE
        # Saturates: a long text must not reach a high score by many weak words.
        return weight / (weight + _HALF_WAY)


def changes_something(tool: ToolDefinition) -> bool:
    """Return whether a tool changes something, by its annotation, otherwise by the first word of its name."""
    hint = tool.annotations.get("readOnlyHint")
    if isinstance(hint, bool):
        return not hint
    first = next(iter(split_name(tool.name)), "")
    return stem(first) in CHANGING_VERB_STEMS


def tool_words(tool: ToolDefinition) -> frozenset[str]:
    """Return the stems in a tool's name and in the first sentence of its description."""
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
    words = " ".join(" ".join(split_name(name)) for name in names)
    return frozenset(stems_of(words))


def _choices(schema: Mapping[str, JsonValue]) -> str:
    values: list[JsonValue] = []
    for key in ("enum", "examples"):
        listed = schema.get(key)
        if isinstance(listed, list):
            values += listed
    words = []
    for value in values[:_MAX_PARAMETERS]:
        if isinstance(value, str):
            words += split_name(value)
    return " ".join(words)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _importance(stemmed: str) -> float:
    return _GENERAL_VERB_WORTH if stemmed in GENERAL_VERB_STEMS else 1.0


# Evidence is a value that can be recognised in a text by its form alone: quoted words, numbers, dates, addresses,
# names. The clock is not read, so that runs repeat: a date without a year is not evidence, nor is "tomorrow".

Kind = Literal["quoted", "url", "email", "date", "datetime", "time", "handle", "pair", "path", "id", "number", "name"]

MAX_CHARS = 20_000
"""The most characters of a text that are searched."""

_MONTHS = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_CLOCK = r"(?:[0-2]?\d:[0-5]\d(?::[0-5]\d)?(?:\s?[ap]\.?m\b\.?)?|[01]?\d\s?[ap]\.?m\b\.?)"
_AT_CLOCK = rf"(?:,?\s+(?:at\s+)?{_CLOCK})?"
_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("quoted", late_pattern(r"(?<!\w)'(?=\S)(?P<single>[^\n]{1,1000}?)(?<=\S)'(?!\w)")),
    ("quoted", late_pattern(r'"(?P<double>[^"\n]{1,1000})"|“(?P<curly>[^”\n]{1,1000})”|`(?P<code>[^`\n]{1,1000})`')),
    ("url", late_pattern(r"\bhttps?://[^\s<>\"']{1,2000}(?<![.,;:!?)])", re.I)),
    ("email", late_pattern(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")),
    (
        "datetime",
        late_pattern(
            r"(?<![\w-])\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2})?)?(?![\w-])"
            + _AT_CLOCK,
            re.ASCII,
        ),
    ),
    (
        "datetime",
        late_pattern(
            rf"(?<!\w)(?:{_CLOCK}\s+on\s+)?\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTHS},?\s+\d{{4}}(?!\w)"
            + _AT_CLOCK,
            re.I | re.ASCII,
        ),
    ),
    (
        "datetime",
        late_pattern(
            rf"(?<!\w)(?:{_CLOCK}\s+on\s+)?{_MONTHS}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}(?!\w)" + _AT_CLOCK,
            re.I | re.ASCII,
        ),
    ),
    (
        "datetime",
        late_pattern(r"(?<![\w/])\d{1,2}/\d{1,2}/\d{4}(?![\w/])" + _AT_CLOCK, re.I | re.ASCII),
    ),
    ("time", late_pattern(rf"(?<![\w:.]){_CLOCK}(?![\w:])", re.I | re.ASCII)),
    ("handle", late_pattern(r"(?<!\w)@[\w][\w.-]{0,63}(?<![.-])")),
    (
        "path",
        late_pattern(
            r"(?<![\w/.~\\<\x00-])(?:(?:~|\.{1,2})?/(?=[\d.-]{0,64}[^\W\d])|[A-Za-z]:[\\/]|\\\\(?=\w)|\.[\w-]{1,64}/)"
            r"[\w.@+%~/\\-]{1,500}(?<!\.)"
        ),
    ),
    (
        "path",
        late_pattern(
            r"(?<![\w/.\x00-])\w[\w.-]{0,63}"
            r"(?:(?:/[\w.-]{1,64}){4,32}/?|(?:/[\w.-]{1,64}){1,3}/)(?<!\.)(?![\w/])"
        ),
    ),
    ("path", late_pattern(r"(?<![\w/.])(?:\.{0,2}/)?(?:[\w-]{1,64}/){0,8}[\w-]{2,64}\.[A-Za-z]\w{0,4}(?![\w/])")),
    ("pair", late_pattern(r"(?<![\w/.-])[A-Za-z][\w.-]{0,63}(?:/[\w.-]{1,64}){1,3}(?<![.-])(?![\w/])")),
    ("id", late_pattern(r"(?<![\w-])[A-Za-z][\w-]{0,63}(?<=[\w])(?![\w-])")),
    ("number", late_pattern(r"(?<![\w.])(?:(?<![\d)]\s)[-−+])?\d{1,3}(?:,\d{3})+(?:\.\d{1,15})?(?![\w,])", re.ASCII)),
    ("number", late_pattern(r"(?<![\w.])(?:(?<![\d)]\s)[-−])?\d{1,18}(?:\.\d{1,15})?(?!\d)", re.ASCII)),
    ("number", late_pattern(rf"\b(?:{'|'.join(NUMBER_WORDS)})\b", re.I)),
)
"""The patterns in the order in which they are applied, each to the text that the earlier ones have left. Repetitions
are bounded, so that no text takes more than linear time."""

_CAPITAL_RUN_LINK = word_set("of de da do del la le du van von der den")
_UNPUNCTUATED = late_pattern(r"[^\n\x00,;:.!?()\"“”]+")
_NOT_BLANK = late_pattern(r"\S+")
_SENTENCE_START = late_pattern(r"(?:^|[.!?:;]\s|\n)[\s\"'“(]*$")
_CALENDAR = word_set(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july
        august september october november december today tomorrow yesterday"""
)
_ARITHMETIC = late_pattern(
    r"\s*(?P<sign>\*\*|[-+*×·÷/^%−]|\b(?:x|plus|minus|times|over|mod(?:ulo)?|multiplied\s+by|divided\s+by)\b)\s*", re.I
)
_JOINED = late_pattern(
    r"\s*(?:[,;]|\b(?:and|or|vs\.?|versus)\b|&)\s*(?:(?:and|or|in|to|for|at|of|from|the)\s+){0,3}", re.I
)
_NO_CLOCK = datetime(2000, 1, 1)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A value in a text, with its kind and its place; dates and times are ISO text.

    `weak` marks a capitalised word at the beginning of a sentence, which may not be a name."""

    kind: Kind
    value: str | int | float
    start: int
    end: int
    weak: bool = False

    @property
    def span(self) -> tuple[int, int]:
        """The start and the end of its place."""
        return self.start, self.end


def of_kind(evidence: Iterable[Evidence], kind: Kind) -> list[Evidence]:
    """Return the evidence of one kind."""
    return [one for one in evidence if one.kind == kind]


def numbers_in(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Return the numbers among some evidence."""
    return of_kind(evidence, "number")


@dataclass(frozen=True, slots=True)
class Expression:
    """Two numbers with an operation between them, such as `15 * 23`."""

    operation: str
    text: str
    start: int
    end: int


def find_evidence(text: str) -> tuple[Evidence, ...]:
    """Return all evidence in a text, in order, without overlaps."""
    left = text[:MAX_CHARS]
    found: list[Evidence] = []
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(left):
            one = _read(kind, match)
            if one is not None:
                found.append(one)
        left = _blanked(left, found)
    found.extend(_names(left))
    return tuple(sorted(found, key=lambda one: one.start))


def find_expressions(text: str, evidence: Iterable[Evidence]) -> tuple[Expression, ...]:
    """Return the operations between neighbouring numbers of a text."""
    found = []
    for left, right in pairwise(numbers_in(evidence)):
        between = _ARITHMETIC.fullmatch(text, left.end, right.start)
        if between is None:
            continue
        operation = operation_of(between["sign"].split()[0])
        if operation:
            found.append(Expression(operation, text[left.start : right.end], left.start, right.end))
    return tuple(found)


def joined_groups(text: str, evidence: Iterable[Evidence]) -> list[list[Evidence]]:
    """Return evidence grouped into enumerations: values of one kind, joined by commas and conjunctions.

    `Seattle, Portland and Boise` is one group."""
    groups: list[list[Evidence]] = []
    last: Evidence | None = None
    for one in evidence:
        if last is not None and last.kind == one.kind and _JOINED.fullmatch(text, last.end, one.start):
            groups[-1].append(one)
        else:
            groups.append([one])
        last = one
    return groups


def _read(kind: Kind, match: re.Match[str]) -> Evidence | None:
    start, end = match.span()
    text = match[0]
    if kind == "quoted":
        # Each kind of quotation marks has a group of its own.
        return Evidence("quoted", match[match.lastgroup or 0], start, end)
    if kind in ("datetime", "time"):
        return _moment(kind, text, start, end)
    if kind == "handle":
        return Evidence("handle", text[1:], start, end)
    if kind == "id" and not any(map(str.isdigit, text)):
        return None
    if kind == "number":
        return Evidence("number", _number(text), start, end)
    return Evidence(kind, text, start, end)


def _moment(kind: Kind, text: str, start: int, end: int) -> Evidence | None:
    from dateutil import parser as date_parser  # on use: few texts name a moment

    try:
        moment = date_parser.parse(text, default=_NO_CLOCK)
    except (ValueError, OverflowError):
        return None
    if kind == "time":
        return Evidence("time", moment.strftime("%H:%M:%S" if moment.second else "%H:%M"), start, end)
    # The parser gives a date without a time of day midnight, so the text has to tell whether there is one.
    if ":" in text or re.search(r"\d\s?[ap]\.?m\b", text, re.I):
        return Evidence("datetime", moment.isoformat(), start, end)
    return Evidence("date", moment.date().isoformat(), start, end)


def _number(text: str) -> int | float:
    plain = text.lower().replace(",", "").replace("−", "-")
    if plain in NUMBER_WORDS:
        return NUMBER_WORDS[plain]
    return float(plain) if "." in plain else int(plain)


def _blanked(text: str, found: Iterable[Evidence]) -> str:
    letters = list(text)
    for one in found:
        letters[one.start : one.end] = "\x00" * (one.end - one.start)
    return "".join(letters)


def _names(text: str) -> Iterable[Evidence]:
    for match in _UNPUNCTUATED.finditer(text):
        yield from _capital_runs(text, match.start(), match.end())


def _capital_runs(text: str, start: int, end: int) -> Iterable[Evidence]:
    """Yield names: runs of capitalised words between two punctuation marks, such as "Bank of England"."""
    run: list[re.Match[str]] = []
    waiting: list[re.Match[str]] = []
    for word in _NOT_BLANK.finditer(text, start, end):
        if _capitalised(word[0]):
            run += [*waiting, word] if run else [word]
            waiting = []
        elif run and word[0] in _CAPITAL_RUN_LINK and not waiting:
            waiting = [word]
        else:
            yield from _name(text, run)
            run, waiting = [], []
    yield from _name(text, run)


def _name(text: str, run: list[re.Match[str]]) -> Iterable[Evidence]:
    # The first word of a sentence is capitalised in any case: a stop word or a verb is dropped, another one is weak.
    weak = False
    if run and _SENTENCE_START.search(text, max(0, run[0].start() - 8), run[0].start()):
        first = re.split("['’]", run[0][0], maxsplit=1)[0].lower()
        if first in STOPWORDS or first in REQUEST_VERBS:
            run = run[1:]
        else:
            weak = len(run) == 1
    if run:
        value = text[run[0].start() : run[-1].start()] + without_possessive(run[-1][0])
        yield Evidence("name", value, run[0].start(), run[0].start() + len(value), weak)


def _capitalised(word: str) -> bool:
    bare = without_possessive(word)
    meaning = re.split("['’]", bare, maxsplit=1)[0]
    shouted = meaning.isupper() and len(meaning) > 1
    lowered = meaning.lower()
    return bare[:1].isupper() and lowered not in _CALENDAR and (lowered not in STOPWORDS or shouted)


def without_possessive(word: str) -> str:
    """Return a word without a possessive ending: `Ann's` → `Ann`."""
    return re.split("['’](?=s?$)", word, maxsplit=1)[0]
