"""Removes secrets from everything that is drawn, including fields, titles and notices."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from workbench.config.finding import Finder
from workbench.config.secrets import Secrets


class SecretsFilter(LineFilter):
    """Draws `$NAME` over each secret in a line, at the same width. Text that is wrapped or cut must be cleaned before:
    half a secret is not found here."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__()
        self._secrets = secrets

    def __hash__(self) -> int:
        """Textual caches filtered lines by their filter. A new secret must change the hash."""
        return hash(self._secrets.finder)

    def __eq__(self, other: object) -> bool:
        return self is other

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        finder = self._secrets.finder
        if finder is None:
            return segments
        text = "".join(segment.text for segment in segments if not segment.control)
        return segments if not finder.may_be_in(text) else _covered(segments, text, finder)


def _covered(segments: list[Segment], text: str, finder: Finder) -> list[Segment]:
    signs = list(text)
    _, places = finder.decided(text, 0, over=True)
    for first, last, name in places:
        for at, sign in enumerate(name[: last - first].ljust(last - first, "*"), first):
            # A sign of two cells is covered by two characters, one of width 0 by none.
            signs[at] = sign * cell_len(text[at]) if cell_len(text[at]) < 2 else "**"
    shown: list[Segment] = []
    at = 0
    for segment in segments:
        if segment.control:
            shown.append(segment)
            continue
        end = at + len(segment.text)
        shown.append(Segment("".join(signs[at:end]), segment.style))
        at = end
    return shown
