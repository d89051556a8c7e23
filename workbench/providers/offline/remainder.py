"""Finds values in the rest of a clause, after all other evidence has found its parameter: search words, prose, and
loose phrases."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from workbench.providers.offline.clauses import Clause
from workbench.providers.offline.evidence import Evidence
from workbench.providers.offline.words import REQUEST_VERBS, STOP_STEMS, STOPWORDS, VERB_STEMS, Word, word_set

Span = tuple[int, int]

_INTRODUCED = re.compile(
    r"(?:\b(?:saying|says?|that\s+says|reading|called|named|titled|entitled|that)\b(?:\s+that\b)?\s*[:,]?|:)\s+(?P<content>\S.*)",
    re.I | re.S,
)
_TO_DO = re.compile(r"\bto\s+(?P<content>[^\W\d_]+\s+\S.*)", re.S)
_ABOUT = re.compile(r"\b(?:about|regarding)\s+(?P<content>\S.*)", re.I | re.S)
_TRIMMED = " \t\n,;:-"
_LEADING_UP = word_set("on at by for to in with from of the a an and or is due until before after") | {""}
_ARTICLES = word_set("a an the my our your his her their this that these those some")
_PREPOSITIONS = word_set("in at for near from to about on of into with by")
_MAX_PHRASE_WORDS = 4


def search_words(clause: Clause, used: Collection[Span], known: Collection[str]) -> str:
    """Returns the words of a search: without the request's verb, without small words, and without words (`known`, as
    stems) of the tool itself, unless nothing else is left."""
    words = [word for word in _unused(clause, used) if word.stem not in STOP_STEMS]
    if words and words[0].stem in VERB_STEMS:
        words = words[1:]
    telling = [word for word in words if word.stem not in known] or words
    return " ".join(re.split("['’](?=s?$)", word.text)[0] for word in telling)


def prose(clause: Clause, used: Collection[Span], known: Collection[str]) -> str:
    """Returns the content of a message or a title, as written: the text behind "that", "saying", "called" or a colon;
    else the action ("remind me to …") or the topic ("about …"); else the clause without its verb and its tool's
    words."""
    text = clause.text
    for start, end in used:
        text = text[:start] + "\x00" * (end - start) + text[end:]
    for match in (_INTRODUCED.search(text), _to_do(text), _ABOUT.search(text)):
        if match and (content := _tidied(match["content"])):
            return content
    return _tidied(_without_beginning(clause, text, known))


def _tidied(content: str) -> str:
    """Returns the text without the gaps of used words, and without the small words before them."""
    *before_holes, last = content.split("\x00")
    pieces = [*(_without_lead(piece) for piece in before_holes), last.strip(_TRIMMED)]
    return " ".join(piece for piece in pieces if not _says_nothing(piece))


def _without_lead(piece: str) -> str:
    words = piece.strip(_TRIMMED).split(" ")
    while words and words[-1].lower().strip(_TRIMMED) in _LEADING_UP:
        words.pop()
    return " ".join(words).strip(_TRIMMED)


def phrases(clause: Clause, used: Collection[Span], known: Collection[str]) -> list[list[Evidence]]:
    """Returns groups of words behind a preposition, as names written in lower case would be ("in tokyo and paris" is
    one group)."""
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
    return (word for word in clause.words if not any(start <= word.start < end for start, end in used))


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
    """Returns the rest from a place on, with the article right before it."""
    before = text[:start].rsplit(maxsplit=1)
    return f"{before[-1]} {text[start:]}" if before and before[-1].lower() in _ARTICLES else text[start:]


def _says_nothing(text: str) -> bool:
    return all(word.lower() in STOPWORDS for word in re.findall(r"[^\W_]+", text))
