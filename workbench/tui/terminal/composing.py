"""Composes what is to be drawn from what widgets show, and asks each widget only for lines that changed and are seen.

Textual's own compositor asks every widget in the rectangle around all changes for all of its lines, also those that lie
completely below others, and cuts them at the borders of every widget.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from rich.console import Console, RenderableType
from textual._compositor import Compositor, CompositorUpdate
from textual._context import visible_screen_stack
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip


class Piece(NamedTuple):
    """New content of a row, from a column on."""

    y: int
    x: int
    strip: Strip


class Update(CompositorUpdate):
    """New content of some rows."""

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces

    def render_segments(self, console: Console) -> str:
        """Return everything as text, for drivers without an output stage."""
        return "".join(f"\x1b[{y + 1};{x + 1}H{strip.render(console)}" for y, x, strip in self.pieces)


def compose(compositor: Compositor, regions: Iterable[Region]) -> list[Piece]:
    """Return what the screen shows in some regions."""
    screen = compositor.size.region
    unseen: dict[int, list[tuple[int, int]]] = {}
    """By row, what of the regions is not composed yet."""
    for y, start, end in compositor._regions_to_spans(region.intersection(screen) for region in regions):
        unseen.setdefault(y, []).append((start, end))
    pieces: list[Piece] = []
    for widget, (region, clip) in compositor.visible_widgets.items():  # from front to back
        if not unseen:
            break
        x, top, width, height = region.intersection(clip)
        right = x + width
        rows = [
            y
            for y in range(top, top + height)
            if y in unseen and any(start < right and x < end for start, end in unseen[y])
        ]
        for first, count in _together(rows):
            lines = widget.render_lines(Region(x - region.x, first - region.y, width, count))
            for y, strip in enumerate(lines, first):
                left = []
                for start, end in unseen.pop(y):
                    if start >= right or end <= x:
                        left.append((start, end))
                        continue
                    pieces.append(Piece(y, max(start, x), strip.crop(max(start - x, 0), min(end, right) - x)))
                    left += [span for span in ((start, x), (right, end)) if span[0] < span[1]]
                if left:
                    unseen[y] = left
    return pieces


def _together(rows: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first row of each unbroken series, and its length."""
    for _, series in groupby(enumerate(rows), lambda numbered: numbered[1] - numbered[0]):
        members = [y for _, y in series]
        yield members[0], len(members)


_render_update = Compositor.render_update


def _update(
    self: Compositor, full: bool = False, screen_stack: list[Screen[Any]] | None = None, simplify: bool = False
) -> RenderableType | Update | None:
    """Return what is to be drawn, `None` if nothing is. Simplified updates, for screenshots, are Textual's own."""
    if simplify:
        return _render_update(self, full, screen_stack, simplify)
    visible_screen_stack.set(screen_stack or [])
    regions = {self.size.region} if full else self._dirty_regions.copy()
    self._dirty_regions.clear()
    return Update(compose(self, regions)) if regions else None


Compositor.render_update = _update  # type: ignore[assignment]
