"""English words: stems, synonyms and stop words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from workbench.startup import late_pattern

_WORD = late_pattern(r"[^\W_]+(?:['’][^\W_]+)?")
_HUMP = late_pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MAX_STEMMED_CHARS = 40
_VOWELS = frozenset("aeiouy")


class Word(NamedTuple):
    """A word of a text, with its position and its stem."""

    text: str
    start: int
    end: int
    stem: str


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text, separated by blanks, as a set."""
    return frozenset(words.split())


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Reduce a word to its stem in lower case, without common endings: `policies` → `policy`, `tagged` → `tag`."""
    # This stemmer is simple: the forms of a word must get the same stem, but the stem need not be a word.
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
        # The rest must contain a vowel: "string" is not a form of "str".
        if root != word and len(root) >= 3 and not _VOWELS.isdisjoint(root):
            doubled = root[-1] == root[-2] and root[-1] not in "lsz"
            return root[:-1] if doubled else root.removesuffix("e")
    return word.removesuffix("e") if len(word) > 3 else word


def stem_set(words: str) -> frozenset[str]:
    return frozenset(map(stem, words.split()))


STOPWORDS = word_set(
    """a about all am an and any are as at be been but by can could d did do does for from had has have he her here hers
    him his how i if in into is it its just kindly let like ll m may me might mine much must my need no not now of
    off ok okay on onto or our out over please re right s shall she should so some something somebody someone t than
    thanks that the their them then there these they this those to today tomorrow tonight too up us ve very via want
    was we were what when where which while who whom whose why will with would yes yesterday you your"""
)
STOP_STEMS = frozenset(map(stem, STOPWORDS)) | STOPWORDS
QUESTION_WORDS = word_set(
    "what when where which who whose why how is are am was were does do did can could has have will would"
)
REQUEST_VERBS = word_set(
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
VERB_STEMS = frozenset(map(stem, REQUEST_VERBS))
GENERAL_VERB_STEMS = stem_set(
    """get fetch show display read view retrieve give list create make add new open write insert delete remove update
    change edit modify set run start do use send check tell turn switch put take execute see call"""
)
"""Verbs with little meaning of their own: their object decides which tool is meant."""
CHANGING_VERB_STEMS = stem_set(
    """add approve assign cancel change close create delete disable dismiss edit enable fork insert lock make mark merge
    move open post push put remove rename reset send set submit unlock update upload write"""
)
"""Verbs of tools that change something. Questions rarely ask for such a tool."""

# Each group lists words with the same meaning in tools and requests. A word may be in several groups. The other words
# of these groups are then not related to each other.
_SAME_MEANING = """
search find look lookup seek query locate / get fetch show display read view retrieve give see check obtain tell /
list show enumerate / create make add new open write insert generate compose / delete remove erase drop cancel clear /
update change edit modify set adjust alter turn switch make / begin start launch run execute / stop end halt finish /
send post tell message dm notify inform say mail forward deliver text / mail email / message dm text note /
event meeting appointment calendar / calculate calculator compute arithmetic math mathematics evaluate /
add plus sum addition total / subtract minus subtraction difference / multiply times product multiplication /
divide quotient division / temperature degree celsius fahrenheit thermostat / weather forecast /
document doc file page manual handbook article wiki knowledge / task todo ticket chore / remind reminder remember /
person people user member account profile / picture image photo / buy purchase order / price cost / time clock /
book reserve booking reservation / location place city town where / repository repo / directory dir folder /
message msg / information info / configuration config settings / database db / light lamp / lock secure / close shut /
translate translation / convert conversion transform / copy duplicate clone / employee staff colleague
"""
RELATED: dict[str, set[str]] = {}
"""The synonyms of a stem."""
for _group in map(stem_set, _SAME_MEANING.split("/")):
    for _one in _group:
        RELATED.setdefault(_one, set()).update(_group - {_one})

_ARITHMETIC = {
    "add": "add addition plus sum total +",
    "subtract": "subtract subtraction minus difference less - −",
    "multiply": "multiply multiplication times product multiplied * × x ·",
    "divide": "divide division divided quotient over / ÷ :",
    "power": "power exponent exponentiation pow ** ^",
    "modulo": "modulo modulus remainder mod %",
}
_OPERATIONS: dict[str, str] = {}
for _operation, _words in _ARITHMETIC.items():
    _OPERATIONS |= dict.fromkeys((*_words.split(), *stem_set(_words)), _operation)

_COUNTED = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty"""
NUMBER_WORDS = {word: value for value, word in enumerate(_COUNTED.split())}
NUMBER_WORDS |= {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
NUMBER_WORDS |= {"hundred": 100, "thousand": 1000}
del NUMBER_WORDS["one"]  # more often a pronoun than a number


def operation_of(word: str) -> str | None:
    """Return the arithmetic operation that a word or a sign means, such as `divide` for "/"; `None` for others."""
    return _OPERATIONS.get(word.lower()) or _OPERATIONS.get(stem(word))


def words_of(text: str) -> Iterator[Word]:
    """Yield the words of a text with their positions and stems."""
    for match in _WORD.finditer(text):
        yield Word(match[0], match.start(), match.end(), _stem_of_written(match[0]))


def stems_of(text: str) -> dict[str, None]:
    """Return the distinct stems in a text as the keys of a dict, in order, without numbers and stop words."""
    # A dict keeps the order and removes duplicates.
    return dict.fromkeys(filter(_has_meaning, map(_stem_of_written, _WORD.findall(text))))


@lru_cache(maxsize=16_384)
def _stem_of_written(word: str) -> str:
    # "don't" counts as "not". "it's" and "lunch's" count as the part before the apostrophe.
    if word.lower().endswith(("n't", "n’t")):
        return "not"
    return stem(re.split("['’]", word, maxsplit=1)[0])


@lru_cache(maxsize=16_384)
def _has_meaning(stemmed: str) -> bool:
    return len(stemmed) > 1 and stemmed not in STOP_STEMS and not stemmed.isdigit()


@lru_cache(maxsize=16_384)
def split_name(name: str) -> tuple[str, ...]:
    """Return the words inside an identifier: `Weather_GetCurrent` → weather, get, current."""
    return tuple(map(str.lower, re.findall(r"[^\W_]+", _HUMP.sub(" ", name))))


def without_possessive(word: str) -> str:
    """Return a word without a possessive ending: `Ann's` → `Ann`."""
    return re.split("['’](?=s?$)", word, maxsplit=1)[0]
