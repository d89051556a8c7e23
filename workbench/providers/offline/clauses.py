"""Clauses of a request, each of which may ask for a tool of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice

from workbench.dataclasses import dataclass
from workbench.providers.offline.language import (
    CALL_THRESHOLD,
    MAX_CHARS,
    QUESTION_WORDS,
    VERB_STEMS,
    Evidence,
    Expression,
    RankedTool,
    ToolIndex,
    Word,
    find_evidence,
    find_expressions,
    numbers_in,
    operation_of,
    words_of,
)
from workbench.startup import late_pattern

_MAX_CLAUSES = 12
_MAX_PARTS = 40

_BOUNDARY = late_pattern(
    r"(?P<then>[\s,;]{0,4}\b(?:and\s{1,4})?(?:then|after\s+that|afterwards|finally)\b,?\s{1,4})"
    r"|(?P<sentence>[.!?]{1,4}(?=\s|$)|\n|;)"
    r"|(?P<join>,?\s{1,4}(?:and|but)\s{1,4}|,\s)",
    re.I,
)
_FILLER = late_pattern(
    r"\s*(?:please|kindly|hey|hi|hello|ok(?:ay)?|thanks|also|and|but|now|first|just|let\s+me\s+know|tell\s+me"
    r"|(?:can|could|would|will)\s+you|i(?:\s+want|\s+need|\s+would\s+like|['’]d\s+like)(?:\s+you)?\s+to|let['’]?s)"
    r"\b[\s,:!]*|\s+",
    re.I,
)
_THEN = late_pattern(r"\s*(?:and\s+)?(?:then|next|finally|afterwards|after\s+that)\b[\s,]*", re.I)
_REFUSAL = late_pattern(r"(?:don['’]t|do\s+not|never|without|no\s+need\s+to)\b(?!\s+(?:forget|hesitate))", re.I)
_CONTENT = late_pattern(r"\b(?:that|saying|says?|reading|called|named|titled|entitled)\b|:\s", re.I)
_BACK = late_pattern(
    r"\b(?:there|it|its|that|this|them|they|their|those|these|him|her|his|he|she|same|again|what\s+about|how\s+about)\b",
    re.I,
)
_RESULT = late_pattern(
    r"\b(?:the|that|this|its)\s+(?:result|answer|outcome|output)\b|\b(?:that|this)\s+(?:number|sum|product|total|value)\b"
    r"|\bresult\b",
    re.I,
)
_UNRANKED = frozenset({"quoted", "url", "email", "handle", "pair", "path", "date", "datetime"})
"""Kinds of evidence whose words are values, not words for a tool."""
_QUOTED = frozenset({"quoted"})


@dataclass(frozen=True)
class Clause:
    """A part of a request with its evidence; places are counted from the start of its text.

    `after` is whether it follows the result of the part before it ("then"), `joined` whether it is added to that part
    ("and")."""

    text: str
    evidence: tuple[Evidence, ...] = ()
    after: bool = False
    joined: bool = False

    @cached_property
    def words(self) -> tuple[Word, ...]:
        return tuple(words_of(self.text))

    @cached_property
    def expressions(self) -> tuple[Expression, ...]:
        return find_expressions(self.text, self.evidence)

    @cached_property
    def operations(self) -> tuple[str, ...]:
        """The requested arithmetic operations, each once, from signs and words between numbers."""
        numbers = len(numbers_in(self.evidence)) + bool(self.result_mention)
        found: dict[str, None] = {}
        for expression in self.expressions:
            found[expression.operation] = None
        # "add the files" is not arithmetic: words count only beside two numbers, or one and an earlier result.
        if numbers >= 2 or (numbers == 1 and (self.after or self.refers_back)):
            for word in self.words:
                if operation := operation_of(word.text):
                    found[operation] = None
        return tuple(found)

    @property
    def question(self) -> bool:
        return bool(self.words) and re.split("['’]", self.words[0].text.lower())[0] in QUESTION_WORDS

    @property
    def refers_back(self) -> bool:
        """Whether a word such as "there" or "it" refers to an earlier part."""
        return _BACK.search(blanked(self.text, self.evidence, _QUOTED)) is not None

    @property
    def result_mention(self) -> re.Match[str] | None:
        """The words that mention the result of an earlier call, such as "the sum"; None without such words."""
        return _RESULT.search(blanked(self.text, self.evidence, _QUOTED))

    def rank(self, index: ToolIndex) -> list[RankedTool]:
        """Return the offered tools by their fit to this clause, best first."""
        text = blanked(self.text, self.evidence, _UNRANKED)
        # The content of a message may mention any tool: "tell Ann that the calendar is full" asks for no calendar.
        content = _CONTENT.search(text)
        if content and len(list(words_of(text[: content.start()]))) > 1:
            text = text[: content.end()]
        hints: list[str] = []
        for one in self.evidence:
            hints += _HINTS.get(one.kind, ())
        if self.operations:
            hints += [*self.operations, "calculate"]
        return index.rank(text, hints, self._naming_words(), question=self.question)

    def _naming_words(self) -> Iterator[str]:
        """Yield the stems of words right before a quotation: "subject 'Lunch'" names the subject."""
        for one in self.evidence:
            if one.kind == "quoted":
                before = [word for word in self.words if word.end <= one.start]
                if before and self.text[before[-1].end : one.start].strip(" \t:=-") == "":
                    yield before[-1].stem


_HINTS: dict[str, tuple[str, ...]] = {"email": ("email",), "handle": ("user",), "url": ("url",)}
"""Words for a tool that a kind of evidence implies."""


def blanked(text: str, evidence: Iterable[Evidence], kinds: frozenset[str], blank: str = " ") -> str:
    """Return a text of the same length, with blanks in place of the evidence of some kinds."""
    for one in evidence:
        if one.kind in kinds:
            text = text[: one.start] + blank * (one.end - one.start) + text[one.end :]
    return text


def clauses_of(text: str, index: ToolIndex) -> list[Clause]:
    """Return the clauses of a request, in order.

    A part becomes a clause of its own if a tool fits it, and otherwise belongs to its neighbour. Parts that forbid
    something ("but don't …") are left out."""
    text = text[:MAX_CHARS]
    whole = Clause(text, find_evidence(text))
    found: list[Clause] = []
    beginning = 0
    for start, end, joint in _parts(whole):
        part = _cut(whole, start, end, after=joint == "then", joined=joint == "join")
        if _REFUSAL.match(part.text):
            # It is blanked in the whole text as well, because a later part may be cut from there with those before it.
            outside = tuple(one for one in whole.evidence if not start <= one.start < end)
            whole = Clause(whole.text[:start] + " " * (end - start) + whole.text[end:], outside)
        elif not found or (
            _fits(found[-1], index) and _stands_alone(part, joint, found[-1], index) and len(found) < _MAX_CLAUSES
        ):
            found.append(part)
            beginning = start
        else:
            found[-1] = _cut(whole, beginning, end, after=found[-1].after, joined=found[-1].joined)
    return found


def _parts(whole: Clause) -> Iterator[tuple[int, int, str]]:
    """Yield the start, the end and the joint of every part between two boundaries."""
    # Evidence becomes letters, so that no boundary is found inside of a quotation or a number.
    text = blanked(whole.text, whole.evidence, frozenset(one.kind for one in whole.evidence), "x")
    start, joint = 0, "sentence"
    for match in islice(_BOUNDARY.finditer(text), _MAX_PARTS):
        if text[start : match.start()].strip():
            yield start, match.start(), joint
            joint = match.lastgroup or "join"
        elif match.lastgroup == "then":
            joint = "then"
        start = match.end()
    if text[start:].strip():
        yield start, len(text), joint


def _cut(whole: Clause, start: int, end: int, *, after: bool, joined: bool) -> Clause:
    """Return a part as a clause, without polite words and "then" at its beginning; the latter sets `after`."""
    while match := _FILLER.match(whole.text, start, end) or _THEN.match(whole.text, start, end):
        after = after or match.re is _THEN
        start = match.end()
    inside = []
    for one in whole.evidence:
        if start <= one.start and one.end <= end:
            inside.append(replace(one, start=one.start - start, end=one.end - start))
    return Clause(whole.text[start:end].rstrip(), tuple(inside), after, joined)


def _stands_alone(part: Clause, joint: str, before: Clause, index: ToolIndex) -> bool:
    if not _fits(part, index):
        return False
    if joint != "join" or (part.words and part.words[0].stem in VERB_STEMS) or part.question:
        return True
    # After a mere "and" or comma, the part may continue the content of a message, or the values of the same tool.
    if _CONTENT.search(before.text):
        return False
    return before.rank(index)[0].tool.name != part.rank(index)[0].tool.name


def _fits(clause: Clause, index: ToolIndex) -> bool:
    ranked = clause.rank(index)
    return bool(ranked) and ranked[0].score >= CALL_THRESHOLD
