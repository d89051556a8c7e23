"""The app's last door: whatever is drawn passes it, fields, titles and notices too."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from workbench.config.finding import Finder
from workbench.config.secrets import Secrets


class SecretsFilter(LineFilter):
    """Draws `$NAME` over each secret that stands in a line, as wide as the secret. What wraps or cuts texts has to be
    given texts without secrets: half of one is not found here."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__()
        self._secrets = secrets

    def __hash__(self) -> int:
        """Textual keeps filtered lines by their filter: with another secret it is another one."""
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
            # A sign of two cells is covered by two, and one that takes none by nothing.
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
