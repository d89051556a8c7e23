"""Splits a request into clauses, each of which may need its own tool."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import islice

from workbench.dataclasses import dataclass
from workbench.providers.offline.evidence import (
    MAX_CHARS,
    Evidence,
    Expression,
    Kind,
    blank_out,
    evidence_of_kind,
    find_evidence,
    find_expressions,
)
from workbench.providers.offline.tools import CALL_THRESHOLD, RankedTool, ToolIndex
from workbench.providers.offline.words import QUESTION_WORDS, VERB_STEMS, Word, operation_of, words_of
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
    r"|then|next|finally|afterwards|after\s+that"
    r"|(?:can|could|would|will)\s+you|i(?:\s+want|\s+need|\s+would\s+like|['’]d\s+like)(?:\s+you)?\s+to|let['’]?s)"
    r"\b[\s,:!]*|\s+",
    re.I,
)
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
_UNRANKED: Collection[Kind] = {"quoted", "url", "email", "handle", "pair", "path", "date", "datetime"}
"""Kinds of evidence whose words are values, not words for a tool."""
_HINTS: dict[Kind, str] = {"email": "email", "handle": "user", "url": "url"}
"""Words for a tool that a kind of evidence implies."""
_NO_INDEX = ToolIndex(())


@dataclass(frozen=True)
class Clause:
    """A part of a request, with the values found in it.

    The positions of the values count from the start of the part's text. `after` means that the previous part must be
    done first ("then"). `joined` means that the part extends the previous part ("and")."""

    text: str
    evidence: tuple[Evidence, ...] = ()
    index: ToolIndex = _NO_INDEX
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
        """The distinct arithmetic operations that the clause requests with signs or words, such as `add`."""
        numbers = len(evidence_of_kind(self.evidence, "number")) + bool(self.result_mention)
        found: list[str | None] = [expression.operation for expression in self.expressions]
        # "add the files" is not arithmetic. A word counts as an operation only if there are two numbers, or one number
        # and an earlier result.
        if numbers >= 2 or (numbers == 1 and (self.after or self.refers_back)):
            found += [operation_of(word.text) for word in self.words]
        return tuple(operation for operation in dict.fromkeys(found) if operation)

    @cached_property
    def question(self) -> bool:
        return bool(self.words) and re.split("['’]", self.words[0].text.lower())[0] in QUESTION_WORDS

    @cached_property
    def refers_back(self) -> bool:
        """Whether a word such as "there" or "it" refers to an earlier part of the request."""
        return _BACK.search(self._unquoted) is not None

    @cached_property
    def result_mention(self) -> re.Match[str] | None:
        """The words that refer to an earlier call's result, such as "the sum"; `None` if there are no such words."""
        return _RESULT.search(self._unquoted)

    @cached_property
    def _unquoted(self) -> str:
        return blank_out(self.text, evidence_of_kind(self.evidence, "quoted"))

    @cached_property
    def ranked_tools(self) -> list[RankedTool]:
        """The offered tools, sorted by how well they fit this clause, the best first."""
        text = blank_out(self.text, [one for one in self.evidence if one.kind in _UNRANKED])
        # Leave out the content of a message, which may mention any tool: "tell Ann that the calendar is full" does not
        # ask for a calendar tool.
        content = _CONTENT.search(text)
        if content and sum(word.end <= content.start() for word in words_of(text)) > 1:
            text = text[: content.end()]
        hints = [_HINTS[one.kind] for one in self.evidence if one.kind in _HINTS]
        if self.operations:
            hints += [*self.operations, "calculate"]
        return self.index.rank(text, hints, self._naming_words(), question=self.question)

    @property
    def fits_a_tool(self) -> bool:
        return bool(self.ranked_tools) and self.ranked_tools[0].score >= CALL_THRESHOLD

    def _naming_words(self) -> Iterator[str]:
        """Yield the stems of the words right before quotations, such as "subject" in "subject 'Lunch'"."""
        for one in evidence_of_kind(self.evidence, "quoted"):
            before = [word for word in self.words if word.end <= one.start]
            if before and not self.text[before[-1].end : one.start].strip(" \t:=-"):
                yield before[-1].stem


def clauses_of(text: str, index: ToolIndex) -> list[Clause]:
    """Split a request into clauses.

    A part of the request becomes a clause if a tool fits it. Otherwise it is added to the previous clause. Parts that
    forbid something ("but don't …") are left out."""
    text = text[:MAX_CHARS]
    whole = Clause(text, find_evidence(text), index)
    found: list[Clause] = []
    beginning = 0
    for start, end, joint in _parts(whole):
        part = _cut(whole, start, end, after=joint == "then", is_joined=joint == "join")
        if _REFUSAL.match(part.text):
            # Blank the forbidden part in the whole text too, because a clause may later be extended over it.
            outside = tuple(one for one in whole.evidence if not start <= one.start < end)
            whole = Clause(whole.text[:start] + " " * (end - start) + whole.text[end:], outside, index)
        elif not found or (len(found) < _MAX_CLAUSES and found[-1].fits_a_tool and _stands_alone(part, found[-1])):
            found.append(part)
            beginning = start
        else:
            found[-1] = _cut(whole, beginning, end, after=found[-1].after, is_joined=found[-1].joined)
    return found


def _parts(clause: Clause) -> Iterator[tuple[int, int, str]]:
    # Values are replaced by letters, so that no boundary is found inside a quotation or a number.
    text = blank_out(clause.text, clause.evidence, "x")
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


def _cut(clause: Clause, start: int, end: int, *, after: bool, is_joined: bool) -> Clause:
    """Return the part of a request from `start` to `end` as a clause.

    Polite words and "then" at its beginning are left out."""
    while match := _FILLER.match(clause.text, start, end):
        start = match.end()
    inside = []
    for one in clause.evidence:
        if start <= one.start and one.end <= end:
            inside.append(one._replace(start=one.start - start, end=one.end - start))
    return Clause(clause.text[start:end].rstrip(), tuple(inside), clause.index, after, is_joined)


def _stands_alone(part: Clause, before: Clause) -> bool:
    if not part.fits_a_tool:
        return False
    if not part.joined or (part.words and part.words[0].stem in VERB_STEMS) or part.question:
        return True
    # A part after only "and" or a comma may continue the content of a message, or list further values for the same
    # tool.
    return not _CONTENT.search(before.text) and before.ranked_tools[0].tool is not part.ranked_tools[0].tool
