"""Finds many values in a text at once, also where the text comes in pieces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from workbench.config.known_forms import BEFORE_WORD, LOOKS_BACK, FormPlace, forms_in, open_form_from

_LONG_TEXT = 2_048
"""In a longer text a few strings are searched first, which is the fastest way to find nothing."""

_AS_WORD_BELOW = 8
"""A shorter value of letters and digits is found only as a word of its own."""

_AFTER_WORD = r"(?![A-Za-z0-9])"
_NOTHING = "(?!)"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

Place = tuple[int, int, str]
"""Where a value begins and ends in a text, and what replaces it."""


class Finder:
    """Replaces values in texts, and secrets of known forms. `replacements` maps each value to its replacement. Forms of
    which `own` says that they are the user's (`FormPlace.what`) stay."""

    def __init__(self, replacements: Mapping[str, str], own: frozenset[str] = frozenset()) -> None:
        self.replacements = replacements
        self.own = own
        self.values = tuple(sorted(replacements, key=lambda value: (-len(value), value)))
        self.longest = max(map(len, self.values), default=0)
        self._pattern = _pattern_of(self.values)
        self._words = frozenset(filter(_is_word, self.values))
        self._by_first: dict[str, list[str]] = {}
        for value in self.values:
            self._by_first.setdefault(value[0], []).append(value)
        begins = "|".join(_beginning(first, values) for first, values in self._by_first.items())
        self._begins = re.compile(begins or _NOTHING)

    def may_be_in(self, text: str) -> bool:
        """Returns whether any value is in a text, as a word or within one, or a secret of a known form."""
        if len(text) > _LONG_TEXT:
            return any(map(text.__contains__, self._needles)) or self._has_form(text)
        return (bool(self.values) and self._pattern.search(text) is not None) or self._has_form(text)

    def may_be_in_json(self, text: str) -> bool:
        """Returns whether any value may be in a text or a number of a JSON text that leaves all but ASCII unescaped, or
        a secret of a known form. Takes next to no time where there is none."""
        may_be = any(map(text.__contains__, self._json_needles)) and self._json_pattern.search(text) is not None
        return may_be or self._has_form(text)

    def replaced(self, text: str) -> str:
        """Returns the text with each value replaced: the same object if there is none."""
        if len(text) > _LONG_TEXT:
            if not self.may_be_in(text):
                return text
            here = [value for value in self.values if value in text]
            if len(here) < len(self.values):
                return Finder({value: self.replacements[value] for value in here}, self.own).replaced(text)
        shown: list[str] = []
        at = 0
        for first, end, replacement in self._places(text, 0):
            shown += (text[at:first], replacement)
            at = end
        return "".join((*shown, text[at:])) if at else text

    def open_from(self, text: str) -> int:
        """Returns where a value may begin that is not complete at the end of the text; the text's length where none
        does."""
        form = open_form_from(text)
        for begin in self._begins.finditer(text, len(text) - min(self.longest, len(text)), form):
            tail = text[begin.start() :]
            for value in self._by_first[tail[0]]:
                if value.startswith(tail) and (len(value) > len(tail) or value in self._words):
                    return begin.start()
        return form

    def decided(self, text: str, begin: int, *, over: bool = False) -> tuple[int, list[Place]]:
        """Returns how far a text that may continue, unless it is `over`, is decided, and the places of values up to
        there. Text before `begin` was decided earlier."""
        until = len(text) if over else max(self.open_from(text), begin)
        places = self._places(text, begin)
        for first, end, _ in places:
            if first < until < end:
                until = first  # it may be the beginning of a longer one
        return until, [place for place in places if place[1] <= until]

    def _places(self, text: str, begin: int) -> list[Place]:
        """Returns where values and forms stand, one after the other. Where several overlap, all are covered by the one
        that begins first; of those, by the longest; of equal ones, by the value, whose name says more."""
        found = self._pattern.finditer(text, begin) if self.values else ()
        values = [(match.start(), match.end(), self.replacements[match[0]]) for match in found]
        forms = [form[:3] for form in self._forms(text, begin)]
        if not forms:
            return values
        places: list[Place] = []
        for place in sorted([*values, *forms], key=lambda place: (place[0], -place[1])):
            if places and place[0] < places[-1][1]:
                first, end, replacement = places.pop()
                place = (first, max(end, place[1]), replacement)
            places.append(place)
        return places

    def _forms(self, text: str, begin: int = 0) -> Iterator[FormPlace]:
        return (form for form in forms_in(text, begin) if form.what not in self.own)

    def _has_form(self, text: str) -> bool:
        return next(self._forms(text), None) is not None

    @cached_property
    def _needles(self) -> tuple[str, ...]:
        return _needles_of(self.values)

    @cached_property
    def _json_needles(self) -> tuple[str, ...]:
        return _needles_of(self._values_in_json)

    @cached_property
    def _json_pattern(self) -> re.Pattern[str]:
        return _pattern_of(sorted(self._values_in_json, key=lambda value: (-len(value), value)))

    @cached_property
    def _values_in_json(self) -> frozenset[str]:
        return frozenset(form for value in self.values for form in _in_json(value))


class Pieces:
    """A text that comes in pieces. What may be the beginning of a value is held back until the next piece decides."""

    def __init__(self) -> None:
        self._held = ""
        self._before = ""

    def add(self, piece: str, finder: Finder) -> str:
        """Add one more piece. Returns what is decided now, with values replaced."""
        return self._decided(piece, finder, over=False)

    def rest(self, finder: Finder) -> str:
        """Returns what was held back, since nothing more comes."""
        return self._decided("", finder, over=True)

    def _decided(self, piece: str, finder: Finder, *, over: bool) -> str:
        text, begin = self._before + self._held + piece, len(self._before)
        until, places = finder.decided(text, begin, over=over)
        shown: list[str] = []
        at = begin
        for first, last, replacement in places:
            shown += (text[at:first], replacement)
            at = last
        self._held, self._before = text[until:], text[max(until - LOOKS_BACK, 0) : until]
        return "".join((*shown, text[at:until]))


def _in_json(value: str) -> tuple[str, ...]:
    """Returns a value as it is within a string of a JSON text, with lone surrogates as they are and escaped."""
    text = json.dumps(value, ensure_ascii=False)[1:-1]
    return (text,) if text.isascii() else (text, _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def _needles_of(values: Iterable[str]) -> tuple[str, ...]:
    """Returns as few strings as possible of which at least one is in every text that holds one of the values: most
    forms of a secret are part of its other forms."""
    needles: list[str] = []
    for value in sorted(values, key=len):
        if not any(needle in value for needle in needles):
            needles.append(value)
    return tuple(needles)


def _pattern_of(values: Iterable[str]) -> re.Pattern[str]:
    """Returns a pattern for the longest of some values, which come longest first."""
    values = tuple(values)
    words = [value for value in values if _is_word(value)]
    others = [value for value in values if not _is_word(value)]
    found = [_alternatives(others)] if others else []
    found += [f"{BEFORE_WORD}{_alternatives(words)}{_AFTER_WORD}"] if words else []
    return re.compile("|".join(found) or _NOTHING)


def _beginning(first: str, values: Iterable[str]) -> str:
    """Returns a pattern for the first two characters of some values, or the first one at the end of a text."""
    return f"{re.escape(first)}(?=[{''.join({re.escape(value[1]) for value in values})}]|\\Z)"


def _is_word(value: str) -> bool:
    return len(value) < _AS_WORD_BELOW and value.isascii() and value.isalnum()


def _alternatives(values: Iterable[str]) -> str:
    """Returns a pattern for the longest of some values. Those with the same first two characters are grouped, so that a
    place where none begins is passed quickly."""
    rests: dict[str, list[str]] = {}
    for value in values:
        rests.setdefault(value[:2], []).append(re.escape(value[2:]))
    groups = (f"{re.escape(begin)}(?:{'|'.join(each)})" for begin, each in rests.items())
    return f"(?:{'|'.join(groups)})"
