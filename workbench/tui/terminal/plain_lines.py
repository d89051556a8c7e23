"""Widgets that draw lines directly. Textual applies no styles to these lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from textual._styles_cache import StylesCache
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget


class _PlainLines(StylesCache):
    """A cache of a widget's lines. It skips Textual's styling if the widget has no border and no padding."""

    def render_widget(self, widget: Widget, crop: Region) -> list[Strip]:
        assert isinstance(widget, PlainLinesWidget)
        if widget.styles.gutter:
            return super().render_widget(widget, crop)
        with widget.constant_size() as (width, _):
            strips = self._strips(widget, crop, width)
        background = widget.background_colors[1]
        for line_filter in widget.get_line_filters():
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
        return [strip.crop(*crop.column_span) for strip in strips]

    def _strips(self, widget: Widget, crop: Region, width: int) -> list[Strip]:
        if width != self._width:
            self.clear()
            self._width = width
        strips = []
        for y in crop.line_range:
            if y in self._dirty_lines or y not in self._cache:
                self._cache[y] = widget.render_line(y)
            strips.append(self._cache[y])
        self._dirty_lines.difference_update(crop.line_range)
        return strips


class PlainLinesWidget(Widget):
    """A widget whose `render_line` returns finished lines in the width and the colours of the screen."""

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(id=widget_id)
        self._styles_cache = _PlainLines()
        self._one_size: Size | None = None

    @property
    def size(self) -> Size:
        """The size of the content, in cells."""
        return self._one_size or super().size

    @contextmanager
    def constant_size(self) -> Iterator[Size]:
        """Keep `size` constant within the context, and return it."""
        # Textual computes the size from the layout at each access, and drawing a line accesses it several times.
        outer = self._one_size
        self._one_size = size = self.size
        try:
            yield size
        finally:
            self._one_size = outer
