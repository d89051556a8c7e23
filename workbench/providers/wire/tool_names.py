"""Converts names to those that model APIs accept: ASCII letters, digits, `_` and `-`, at most 64 characters for a
tool."""

from __future__ import annotations

import re
from collections.abc import Iterable

from workbench.limits import MAX_TOOL_NAME_CHARS

_ACCEPTED = re.compile(r"[A-Za-z0-9_-]+")
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")


def accepted_names(names: Iterable[str], longest: int | None = None) -> dict[str, str]:
    """Returns each name with an accepted one, unique among them; the same names in the same order give the same result.
    Accepted names stay as they are."""
    wanted = list(dict.fromkeys(names))
    given = {name: name for name in wanted if accepted_name(name, longest) == name}
    taken = set(given)
    for name in wanted:
        if name in given:
            continue
        base = candidate = accepted_name(name, longest)
        number = 1
        while candidate in taken:
            number += 1
            ending = f"_{number}"
            candidate = (base if longest is None else base[: longest - len(ending)]) + ending
        taken.add(candidate)
        given[name] = candidate
    return given


def accepted_name(name: str, longest: int | None = None) -> str:
    """Returns the name with `_` in place of every character that is not accepted, cut to `longest`."""
    if _ACCEPTED.fullmatch(name) and (longest is None or len(name) <= longest):
        return name
    return _REFUSED.sub("_", name)[:longest] or "unnamed"


class ToolNames:
    """The names of the offered tools as an API accepts them, and back."""

    def __init__(self, names: Iterable[str]) -> None:
        self._accepted = accepted_names(names, MAX_TOOL_NAME_CHARS)
        self._ours = {accepted: name for name, accepted in self._accepted.items()}

    def accepted(self, name: str) -> str:
        """Returns the API's name of a tool; a tool that is not offered (an invented one, an earlier one) gets an
        accepted name too."""
        return self._accepted.get(name) or accepted_name(name, MAX_TOOL_NAME_CHARS)

    def ours(self, accepted: str) -> str:
        """Returns the suite's name for an accepted name; a name that the model invented is unchanged."""
        return self._ours.get(accepted, accepted)

    def offers(self, accepted: str) -> bool:
        """Returns whether a tool of that accepted name is offered."""
        return accepted in self._ours
