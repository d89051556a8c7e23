"""The limits of files that are imported, and the refusal of what is beyond them."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

from workbench.limits import MAX_FILE_VALUES
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.typed_json import parsed_json

_TOKENS_OF_A_VALUE = 3
"""A key, the text that is its value, and the comma behind it."""
_TOKEN = re.compile(r'[\[{,]|"[^"]*+(?:"|\Z)')


class RefusedError(Exception):
    """What cannot be imported; `place` is where in the file, empty for all of it. A message about a whole file begins
    with `file`, where it is given; `reason` is the message without it."""

    def __init__(self, why: str, place: str = "", file: Path | None = None) -> None:
        said = why if file is None else f"{file} {why}"
        super().__init__(f"{place}: {said}" if place else said)
        self.why = said
        self.reason = why
        self.place = place


class FewValues:
    """Parses texts of JSON that together hold no more values than one file may. One with more is not parsed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left = _TOKENS_OF_A_VALUE * MAX_FILE_VALUES

    def parsed(self, text: str) -> JsonValue:
        """Returns the value of a text. Raises RefusedError for too many, ValueError for no JSON."""
        without_escapes = text.replace("\\\\", "").replace('\\"', "")
        self._left -= sum(1 for _ in islice(_TOKEN.finditer(without_escapes), self._left + 1))
        if self._left < 0:
            raise RefusedError(MAX_FILE_VALUES.reached(), file=self._path)
        value: JsonValue = parsed_json(text)
        return value
