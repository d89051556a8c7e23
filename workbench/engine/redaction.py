"""Keeps secrets out of a run's events, those too that a model's stream brings in pieces.

A piece that may be the beginning of a secret is held back until the next one tells, or until its part is over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from workbench.config.secrets import Secrets
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    Happening,
    ReasoningDelta,
    RunFinished,
    TextDelta,
)

_Delta = TextDelta | ReasoningDelta | CallArgumentsDelta


class Redaction:
    """Takes what happens in one run, and gives what may be told of it."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._known: tuple[tuple[str, str], ...] = ()
        self._patterns: _Patterns | None = None
        self._parts: dict[tuple[type[_Delta], str], _Part] = {}

    def of(self, what: Happening) -> Iterator[Happening]:
        """What may be told now: pieces that were held back and are free, then what happened, if it is not held back.

        Together the pieces of a part are what came in, with `$NAME` in place of each secret.
        """
        if self._known is not self._secrets.values:
            self._known = self._secrets.values
            self._patterns = _Patterns(self._known)
        patterns = self._patterns
        if patterns is None:
            yield what
            return
        match what:
            case TextDelta(text=text):
                yield from self._rest_of(patterns, ReasoningDelta)
                yield from self._piece(what, "", text, patterns)
            case ReasoningDelta(text=text):
                yield from self._rest_of(patterns, TextDelta)
                yield from self._piece(what, "", text, patterns)
            case CallArgumentsDelta(call_id=call_id, fragment=fragment):
                shown_id = self._secrets.redact(call_id)
                shown = what if shown_id == call_id else replace(what, call_id=shown_id)
                yield from self._piece(shown, call_id, fragment, patterns)
            case CallStarted():
                yield from self._rest_of(patterns, TextDelta)
                yield from self._rest_of(patterns, ReasoningDelta)
                yield self._secrets.redacted(what)
            case CallFinished(call_id=call_id):
                yield from self._rest_of(patterns, CallArgumentsDelta, call_id)
                yield self._secrets.redacted(what)
            case RunFinished(error=error):
                yield from self._rest_of_all(patterns)
                yield replace(what, error=self._secrets.redacted(error))
            case _:
                yield from self._rest_of_all(patterns)
                yield self._secrets.redacted(what)

    def _piece(self, delta: _Delta, of_call: str, text: str, patterns: _Patterns) -> Iterator[_Delta]:
        part = self._parts.get((type(delta), of_call))
        if part is None:
            part = self._parts[type(delta), of_call] = _Part(delta)
        free = part.add(text, patterns)
        if free or not text:
            yield _with(delta, free)

    def _rest_of_all(self, patterns: _Patterns) -> Iterator[_Delta]:
        for kind, of_call in self._parts:
            yield from self._rest_of(patterns, kind, of_call)
        self._parts.clear()

    def _rest_of(self, patterns: _Patterns, kind: type[_Delta], of_call: str = "") -> Iterator[_Delta]:
        part = self._parts.get((kind, of_call))
        if part is not None and part.told < len(part.text):
            yield _with(part.delta, part.rest(patterns))


def _with(delta: _Delta, text: str) -> _Delta:
    if isinstance(delta, CallArgumentsDelta):
        return delta if text == delta.fragment else replace(delta, fragment=text)
    return delta if text == delta.text else replace(delta, text=text)


class _Patterns:
    """The values to look for."""

    def __init__(self, values: tuple[tuple[str, str], ...]) -> None:
        self.names = {value: name for name, value in values}
        self.longest = len(values[0][1])
        self.begins = re.compile("[" + "".join(re.escape(value[0]) for value in self.names) + "]")

    def found_in(self, text: str) -> list[tuple[int, int, str]]:
        """Where secrets stand: begin, end and name, in order; those that overlap as one, with the first one's name."""
        hits = sorted(
            (at, at + len(value), name)
            for value, name in self.names.items()
            if value in text
            for at in _places(value, text)
        )
        merged: list[tuple[int, int, str]] = []
        for begin, end, name in hits:
            if merged and begin < merged[-1][1]:
                first, last, named = merged[-1]
                merged[-1] = (first, max(last, end), named)
            else:
                merged.append((begin, end, name))
        return merged

    def open_from(self, text: str) -> int:
        """Where a secret may begin that is not over at the end of the text; its length where none does."""
        for begin in self.begins.finditer(text, max(len(text) - self.longest + 1, 0)):
            tail = text[begin.start() :]
            if any(value.startswith(tail) and value != tail for value in self.names):
                return begin.start()
        return len(text)


def _places(value: str, text: str) -> Iterator[int]:
    at = text.find(value)
    while at >= 0:
        yield at
        at = text.find(value, at + 1)


@dataclass
class _Part:
    """One part of an answer as far as it matters still: `text`, of which the first `told` characters have been told."""

    delta: _Delta
    text: str = ""
    told: int = 0

    def add(self, piece: str, patterns: _Patterns) -> str:
        """Take one more piece; returns what may be told now."""
        text = self.text + piece
        found = patterns.found_in(text)
        until = patterns.open_from(text)
        if not found and until == len(text):
            free, self.text, self.told = text[self.told :], "", 0
            return free
        for begin, end, _ in found:
            if begin < until < end:
                until = begin  # it may be the beginning of a longer one
        free = _told(text, found, self.told, until)
        self.text, self.told = text[until:], max(self.told - until, 0)
        return free

    def rest(self, patterns: _Patterns) -> str:
        """What was held back, since nothing more is expected. Should more come, the secret is hidden from there on."""
        held = _told(self.text, patterns.found_in(self.text), self.told, len(self.text))
        self.told = len(self.text)
        return held


def _told(text: str, found: list[tuple[int, int, str]], begin: int, end: int) -> str:
    """The text from `begin` to `end` with names in place of the secrets that stand in it."""
    said, at = "", begin
    for first, last, name in found:
        if at < last <= end:
            said += text[at : max(first, at)] + f"${name}"
            at = last
    return said + text[at:end]
