"""The offline model's knowledge of English: stems, words without meaning of their own, synonyms. The lists are general
vocabulary of requests. None of them names a tool, a product or a place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from workbench.dataclasses import dataclass

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MAX_STEMMED_CHARS = 40


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a text: as written, its place, and its stem."""

    text: str
    start: int
    end: int
    stem: str


def word_set(words: str) -> frozenset[str]:
    """Returns a set of words written with blanks between them."""
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
    """Returns a word in lower case without its commonest endings: `policies` → `policy`, `tagged` → `tag`."""
    word = word.lower()
    if len(word) > _MAX_STEMMED_CHARS:
        return word
    if len(word) > 4 and word.endswith(("ies", "ied")):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-2] if word.endswith(("sses", "xes", "ches", "shes")) else word[:-1]
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) >= 3 and any(letter in "aeiouy" for letter in root):
            doubled = root[-1] == root[-2] and root[-1] not in "lsz"
            return root[:-1] if doubled else root.removesuffix("e")
    return word.removesuffix("e") if len(word) > 3 else word


def words_of(text: str) -> Iterator[Word]:
    """Returns the words of a text with their places; a possessive `'s` and other short forms are cut off."""
    for match in _WORD.finditer(text):
        yield Word(match[0], match.start(), match.end(), _stem_of_written(match[0]))


def stems_of(text: str) -> dict[str, None]:
    """Returns the distinct stems of a text, in order, without numbers and words without meaning of their own."""
    return {found: None for word in _WORD.findall(text) if _tells(found := _stem_of_written(word))}


@lru_cache(maxsize=16_384)
def _stem_of_written(word: str) -> str:
    if word.lower().endswith(("n't", "n’t")):
        return "not"
    return stem(re.split("['’]", word, maxsplit=1)[0])


@lru_cache(maxsize=16_384)
def _tells(stemmed: str) -> bool:
    return len(stemmed) > 1 and stemmed not in STOP_STEMS and not stemmed.isdigit()


def split_name(name: str) -> list[str]:
    """Returns the words inside an identifier: `Weather_GetCurrent` → weather, get, current."""
    return [word.lower() for word in re.findall(r"[^\W_]+", _HUMP.sub(" ", name))]


def _meanings() -> dict[str, frozenset[str]]:
    related: dict[str, set[str]] = {}
    for line in _SAME_MEANING.strip().splitlines():
        stems = {stem(word) for word in line.split()}
        for one in stems:
            related.setdefault(one, set()).update(stems - {one})
    return {one: frozenset(others) for one, others in related.items()}


RELATED: dict[str, frozenset[str]] = _meanings()
"""Maps a stem to its synonyms."""

STOP_STEMS: frozenset[str] = frozenset(stem(word) for word in STOPWORDS) | STOPWORDS
VERB_STEMS: frozenset[str] = frozenset(stem(word) for word in REQUEST_VERBS)
GENERAL_VERB_STEMS: frozenset[str] = frozenset(stem(word) for word in GENERAL_VERBS)
CHANGING_VERB_STEMS: frozenset[str] = frozenset(stem(word) for word in CHANGING_VERBS)


def operation_of(word: str) -> str | None:
    """Returns the arithmetic operation of a word or a sign."""
    lowered = word.lower()
    root = stem(lowered)
    for operation, forms in ARITHMETIC.items():
        if lowered in forms or (root and any(root == stem(form) for form in forms)):
            return operation
    return None
