"""Secret values that this program has read, and text with the names in their place."""

from __future__ import annotations

SHORTEST_SECRET = 4
"""Shorter values are no secrets, and hiding them would garble everything."""


class Secrets:
    """The values to keep out of everything that leaves the program, by the names of the variables that hold them.

    One instance serves the whole program; it only ever grows. Safe to use from threads.
    """

    def __init__(self) -> None:
        self._values: tuple[tuple[str, str], ...] = ()
        """Name and value, longest value first, so that a secret that holds another is hidden whole."""

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """Name and value of each, longest value first."""
        return self._values

    def add(self, name: str, value: str) -> None:
        """Keep the value of a variable secret from now on; values under four characters are not."""
        if len(value) < SHORTEST_SECRET or any(known == value for _, known in self._values):
            return
        self._values = tuple(sorted((*self._values, (name, value)), key=lambda item: -len(item[1])))

    def redact(self, text: str) -> str:
        """The text with `$NAME` in place of every secret value."""
        for name, value in self._values:
            if value in text:
                text = text.replace(value, f"${name}")
        return text


NO_SECRETS = Secrets()
"""For where nothing is secret; never added to."""
