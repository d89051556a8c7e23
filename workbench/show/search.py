"""Search for a text in lines, and fuzzy search in titles. The text search ignores case and line wraps."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from workbench.dataclasses import dataclass
from workbench.show.lazy_lines import texts_of
from workbench.show.spans import Line, Role, Span, without_empty
from workbench.show.visible import visible

_BROKEN_ROW = r"(?:\n *)?"
"""Matches where a pane may have wrapped a long value inside a word."""


@dataclass(frozen=True)
class Found:
    """The place of a match, which may continue over several lines.

    `pieces` has the index of each of these lines, and the start and the end of the match in that line."""

    pieces: tuple[tuple[int, int, int], ...]

    @property
    def line(self) -> int:
        """The line in which the match begins."""
        return self.pieces[0][0]


def pattern_for(text: str) -> re.Pattern[str] | None:
    """Return a pattern that finds a text in wrapped lines, or `None` for a blank text."""
    words = []
    for word in visible(text).split():
        words.append(_BROKEN_ROW.join(map(re.escape, word)))
    if words:
        return re.compile(r"\s+".join(words), re.IGNORECASE)
    return None


def found_in(lines: Sequence[Line], pattern: re.Pattern[str]) -> list[Found]:
    """Return the matches in lines, in their order."""
    # A match may span lines, so the search joins all lines into one text.
    texts = list(texts_of(lines))
    starts = list(accumulate((len(text) + 1 for text in texts), initial=0))
    return [_placed(match, starts) for match in pattern.finditer("\n".join(texts))]


def _placed(match: re.Match[str], starts: Sequence[int]) -> Found:
    line = bisect_right(starts, match.start()) - 1
    column = match.start() - starts[line]
    pieces: list[tuple[int, int, int]] = []
    for text in match[0].split("\n"):
        # The indent of a match's later lines is not part of the match.
        blank = 0
        if pieces:
            blank = len(text) - len(text.lstrip(" "))
        pieces.append((line, column + blank, column + len(text)))
        line, column = line + 1, 0
    return Found(tuple(pieces))


def marked(line: Line, pieces: Sequence[tuple[int, int, Role]]) -> Line:
    """Return a line in which some parts have another role.

    `pieces` has the start, end and role of each part, in order."""
    spans: list[Span] = []
    position = 0
    for text, role in line:
        at = 0
        for start, end, found in pieces:
            first, last = max(start - position, at), min(end - position, len(text))
            if first < last:
                spans += [Span(text[at:first], role), Span(text[first:last], found)]
                at = last
        spans.append(Span(text[at:], role))
        position += len(text)
    return without_empty(spans)


_WORD_START, _INSIDE, _SCATTERED = 300, 200, 100
"""Scores of a query's word: found at the start of a word in the title, inside a word, or in pieces."""

_GAP = 20
"""Penalty for each piece of a word after the first."""


@dataclass(frozen=True)
class FuzzyMatch:
    """How well a query matches a title, and the positions of the matched letters in the title."""

    score: int
    positions: frozenset[int]


NO_QUERY = FuzzyMatch(0, frozenset())


def fuzzy_match(query: str, title: str) -> FuzzyMatch | None:
    """Return the match of a query's words in a title, in any order, or `None` if a word does not match.

    A word of the query may match in pieces: `rs` and `runsu` find "Run the whole suite". A piece must begin at the
    start of a word of the title, or later in the word that the previous piece matched."""
    text = title.lower()
    score, positions = 0, set[int]()
    for word in query.lower().split():
        found = _word_match(word, text)
        if found is None:
            return None
        score += found.score
        positions |= found.positions
    return FuzzyMatch(score, frozenset(positions))


def _word_match(word: str, text: str) -> FuzzyMatch | None:
    places = list(_places(word, text))
    if places:
        # A match nearer to the beginning of the title is better, so its position is subtracted from the score.
        for at in places:
            if _starts_word(text, at):
                return FuzzyMatch(_WORD_START - at, frozenset(range(at, at + len(word))))
        at = places[0]
        return FuzzyMatch(_INSIDE - at, frozenset(range(at, at + len(word))))
    if len(word) > len(text):
        return None
    placed = _pieces(word, text, 0, None, {})
    if placed is None:
        return None
    pieces = sum(position - 1 not in placed for position in placed)
    return FuzzyMatch(_SCATTERED - _GAP * pieces - min(placed), frozenset(placed))


_Known = dict[tuple[int, int | None], tuple[int, ...] | None]


def _pieces(word: str, text: str, done: int, last: int | None, known: _Known) -> tuple[int, ...] | None:
    """Match the letters of `word` from index `done` on with `text` after position `last`.

    Return the leftmost positions of these letters in `text`, or `None` if they do not match."""
    if done == len(word):
        return ()
    # Different choices for earlier letters lead to the same `done` and `last`. Without the results in `known`, the
    # search would take exponential time.
    if (done, last) not in known:
        known[done, last] = None
        start = 0
        if last is not None:
            start = last + 1
        for at in _places(word[done], text, start):
            if last is not None and at == last + 1:
                allowed = True
            else:
                goes_on = last is not None and " " not in text[last:at]
                allowed = _starts_word(text, at) or goes_on
            if allowed and (rest := _pieces(word, text, done + 1, at, known)) is not None:
                known[done, last] = (at, *rest)
                break
    return known[done, last]


def _places(part: str, text: str, start: int = 0) -> Iterator[int]:
    while (at := text.find(part, start)) >= 0:
        yield at
        start = at + 1


def _starts_word(text: str, at: int) -> bool:
    return at == 0 or not text[at - 1].isalnum()


def marked_spans(text: str, positions: frozenset[int], role: Role, marked: Role) -> list[Span]:
    """Return a title as spans. Matched letters have the role `marked`."""
    if not positions:
        return [Span(text, role)] if text else []
    spans: list[Span] = []
    for at, letter in enumerate(text):
        its_role = role
        if at in positions:
            its_role = marked
        if spans and spans[-1].role == its_role:
            spans[-1] = Span(spans[-1].text + letter, its_role)
        else:
            spans.append(Span(letter, its_role))
    return spans
