"""Splits a request into clauses, each of which may ask for a tool of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice

from workbench.dataclasses import dataclass
from workbench.providers.offline.evidence import MAX_CHARS, Evidence, Expression, find_evidence, find_expressions
from workbench.providers.offline.ranking import CALL_THRESHOLD, RankedTool, ToolIndex
from workbench.providers.offline.words import QUESTION_WORDS, VERB_STEMS, Word, operation_of, words_of

_MAX_CLAUSES = 12
_MAX_PARTS = 40

_BOUNDARY = re.compile(
    r"(?P<then>[\s,;]{0,4}\b(?:and\s{1,4})?(?:then|after\s+that|afterwards|finally)\b,?\s{1,4})"
    r"|(?P<sentence>[.!?]{1,4}(?=\s|$)|\n|;)"
    r"|(?P<join>,?\s{1,4}(?:and|but)\s{1,4}|,\s)",
    re.I,
)
_FILLER = re.compile(
    r"\s*(?:please|kindly|hey|hi|hello|ok(?:ay)?|thanks|also|and|but|now|first|just|let\s+me\s+know|tell\s+me"
    r"|(?:can|could|would|will)\s+you|i(?:\s+want|\s+need|\s+would\s+like|['’]d\s+like)(?:\s+you)?\s+to|let['’]?s)"
    r"\b[\s,:!]*|\s+",
    re.I,
)
_THEN = re.compile(r"\s*(?:and\s+)?(?:then|next|finally|afterwards|after\s+that)\b[\s,]*", re.I)
_REFUSAL = re.compile(r"(?:don['’]t|do\s+not|never|without|no\s+need\s+to)\b(?!\s+(?:forget|hesitate))", re.I)
_CONTENT = re.compile(r"\b(?:that|saying|says?|reading|called|named|titled|entitled)\b|:\s", re.I)
_BACK = re.compile(
    r"\b(?:there|it|its|that|this|them|they|their|those|these|him|her|his|he|she|same|again|what\s+about|how\s+about)\b",
    re.I,
)
_RESULT = re.compile(
    r"\b(?:the|that|this|its)\s+(?:result|answer|outcome|output)\b|\b(?:that|this)\s+(?:number|sum|product|total|value)\b"
    r"|\bresult\b",
    re.I,
)
_UNRANKED = frozenset({"quoted", "url", "email", "handle", "pair", "path", "date", "datetime"})
"""Kinds of evidence whose words say nothing about which tool is meant."""


@dataclass(frozen=True)
class Clause:
    """A part of a request with its evidence; places are counted from the start of its text. `after` means that it is to
    follow the part before it ("then"), `joined` that it belongs with it ("and")."""

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
        """The requested arithmetic, in signs or words between numbers."""
        numbers = sum(one.kind == "number" for one in self.evidence) + bool(self.result_mention)
        enough = numbers >= 2 or (numbers == 1 and (self.after or self.refers_back))
        in_words = [operation_of(word.text) for word in self.words] if enough else []
        found = [*(expression.operation for expression in self.expressions), *in_words]
        return tuple(dict.fromkeys(operation for operation in found if operation))

    @property
    def question(self) -> bool:
        return bool(self.words) and re.split("['’]", self.words[0].text.lower())[0] in QUESTION_WORDS

    @property
    def refers_back(self) -> bool:
        """Whether a word such as "there" or "it" refers to an earlier part."""
        return _BACK.search(blanked(self.text, self.evidence, frozenset({"quoted"}))) is not None

    @property
    def result_mention(self) -> re.Match[str] | None:
        """Where the result of an earlier call is mentioned."""
        return _RESULT.search(blanked(self.text, self.evidence, frozenset({"quoted"})))

    def rank(self, index: ToolIndex) -> list[RankedTool]:
        """Rank the offered tools by how well they fit this clause."""
        text = blanked(self.text, self.evidence, _UNRANKED)
        content = _CONTENT.search(text)
        if content and len(list(words_of(text[: content.start()]))) > 1:
            text = text[: content.end()]
        hints = [hint for one in self.evidence for hint in _HINTS.get(one.kind, ())]
        if self.operations:
            hints += [*self.operations, "calculate"]
        return index.rank(text, hints, self._naming_words(), question=self.question)

    def _naming_words(self) -> Iterator[str]:
        """Stems of the words right before something quoted: "subject 'Lunch'" names the subject."""
        for one in self.evidence:
            if one.kind == "quoted":
                before = [word for word in self.words if word.end <= one.start]
                if before and self.text[before[-1].end : one.start].strip(" \t:=-") == "":
                    yield before[-1].stem


_HINTS: dict[str, tuple[str, ...]] = {"email": ("email",), "handle": ("user",), "url": ("url",)}
"""Words that a kind of evidence implies."""


def blanked(text: str, evidence: Iterable[Evidence], kinds: frozenset[str], blank: str = " ") -> str:
    """Returns the text with blanks in place of the evidence of some kinds; all other places stay."""
    for one in evidence:
        if one.kind in kinds:
            text = text[: one.start] + blank * (one.end - one.start) + text[one.end :]
    return text


def clauses_of(text: str, index: ToolIndex) -> list[Clause]:
    """Returns the clauses of a request, in order. A part becomes a clause of its own only if some tool fits it;
    otherwise it belongs to its neighbour. Parts that forbid something ("but don't …") are left out."""
    text = text[:MAX_CHARS]
    whole = Clause(text, find_evidence(text))
    found: list[Clause] = []
    beginning = 0
    for start, end, joint in _parts(whole):
        part = _cut(whole, start, end, after=joint == "then", joined=joint == "join")
        if _REFUSAL.match(part.text):
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
    """Yields start, end and joint of every part between two boundaries; evidence is never cut."""
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
    """Returns a part as a clause, without polite words at its beginning, and noting a leading "then"."""
    while match := _FILLER.match(whole.text, start, end) or _THEN.match(whole.text, start, end):
        after = after or match.re is _THEN
        start = match.end()
    inside = tuple(
        replace(one, start=one.start - start, end=one.end - start)
        for one in whole.evidence
        if start <= one.start and one.end <= end
    )
    return Clause(whole.text[start:end].rstrip(), inside, after, joined)


def _stands_alone(part: Clause, joint: str, before: Clause, index: ToolIndex) -> bool:
    if not _fits(part, index):
        return False
    if joint != "join" or (part.words and part.words[0].stem in VERB_STEMS) or part.question:
        return True
    if _CONTENT.search(before.text):
        return False
    return before.rank(index)[0].tool.name != part.rank(index)[0].tool.name


def _fits(clause: Clause, index: ToolIndex) -> bool:
    ranked = clause.rank(index)
    return bool(ranked) and ranked[0].score >= CALL_THRESHOLD
