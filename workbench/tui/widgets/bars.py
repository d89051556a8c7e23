"""The rows around the panes: titles, status, the runs of a case to choose from, and the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.message import Message
from textual.strip import Strip

from workbench.reports.visible import one_line
from workbench.tui.actions import PANE_TITLES, PANES, Action, key_name
from workbench.tui.glyphs import GLYPHS
from workbench.tui.painting import Bar, palette_of, strip_of
from workbench.tui.state.outcome import STATUS_SIGNS
from workbench.tui.state.runs import RunRecord
from workbench.tui.state.selection import Pane
from workbench.tui.state.spans import ELLIPSIS, EMPTY, Line, Role, Span, cells, plain, spread, wrap_line
from workbench.tui.state.status import model_label
from workbench.tui.state.words import score
from workbench.tui.theming import Ground

NOTICE_ROWS = 3
"""A notice gets this many rows, on a low screen no more than a third of it."""


class PaneTitle(Bar):
    """The title of a pane; where panes share a place, the titles of all of them, side by side."""

    class Chosen(Message):
        """A title was clicked."""

        def __init__(self, pane: Pane) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self._ends: list[tuple[int, Pane]] = []

    def show(self, panes: Sequence[Pane], current: Pane, focused: bool, about: str, right: Line = EMPTY) -> None:
        """Name the panes, mark the current one, and say what it shows."""
        names: list[Span] = []
        self._ends = []
        for pane in panes:
            role: Role = "badge" if pane == current and focused else "strong" if pane == current else "muted"
            names.append(Span(f" {PANES.index(pane) + 1} {PANE_TITLES[pane]} ", role))
            self._ends.append((cells(tuple(names)), pane))
        title = Span(f" {one_line(about)}", "text" if focused else "muted")
        end = (*right, Span(" ")) if right else EMPTY
        self.say(lambda width: spread((*names, title), end, width))

    def on_click(self, event: events.Click) -> None:
        pane = next((pane for end, pane in self._ends if event.x < end), None)
        if pane is not None:
            self.post_message(self.Chosen(pane))


class RunChoice(Bar):
    """The runs of a case, one chosen; says nothing while there is only one."""

    GROUND: ClassVar[Ground] = "background"

    def show(self, runs: Sequence[RunRecord], chosen: int) -> None:
        """Offer runs by model, and by repeat where there are several."""
        self.display = len(runs) > 1
        if not self.display:
            return
        spans: list[Span] = [Span(" ")]
        for index, run in enumerate(runs):
            spans += [*_run_label(run, runs, index == chosen), Span(" ")]
        if len({run.model for run in runs}) == 1:
            spans[0] = Span(f" {model_label(runs[0].model)} ", "muted")
        place = Span(f" {chosen + 1} of {len(runs)} {GLYPHS.dot} ", "muted")
        short = (place, *_run_label(runs[chosen], runs, True))
        self.say(lambda width: tuple(spans) if cells(tuple(spans)) <= width else short)


def _run_label(run: RunRecord, runs: Sequence[RunRecord], chosen: bool) -> list[Span]:
    repeat = f"#{run.repeat + 1}" if any(other.repeat for other in runs) else ""
    one_model = len({other.model for other in runs}) == 1
    mixed = len({other.recorded for other in runs}) > 1
    made = ("recorded" if run.recorded else "new" if one_model else "") if mixed else ""
    name = " ".join(part for part in ("" if one_model else model_label(run.model), repeat, made) if part)
    sign, role = STATUS_SIGNS[run.result.status] if run.result is not None else (GLYPHS.running, "running")
    value = score(run.result.score) if run.result is not None else ""
    return [Span(f" {name} ", "badge" if chosen else "muted"), Span(f" {sign} {value}".rstrip() + " ", role)]


class KeyBar(Bar):
    """The keys that fit; a notice takes their place until the next key, and as many rows as it needs, within reason."""

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self._keys: Sequence[tuple[Action, bool]] = ()
        self._notice: Line = EMPTY
        self._rows: list[Line] = [EMPTY]

    def offer(self, keys: Sequence[tuple[Action, bool]]) -> None:
        """Name keys, most wanted first."""
        self._keys = keys
        self._say()

    def announce(self, notice: Line) -> None:
        """Say something once."""
        self._notice = notice
        self._say()

    def clear_notice(self) -> None:
        """Go back to the keys."""
        if self._notice:
            self._notice = EMPTY
            self._say()

    def on_resize(self, event: events.Resize) -> None:
        self._say()

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return super().render_line(y)
        width, rows = self.size.width, self._rows
        return strip_of(rows[y] if y < len(rows) else EMPTY, width, self.GROUND, palette_of(self))

    def _say(self) -> None:
        most = min(max(self.app.size.height // 3, 1), NOTICE_ROWS)
        before = len(self._rows)
        self._rows = notice_rows(self._notice, self.size.width, most) if self._notice else [EMPTY]
        notice, keys = self._rows[0], self._keys
        self.say(lambda width: notice or key_line(keys, width))
        if len(self._rows) != before:
            self.styles.height = len(self._rows)
        if max(before, len(self._rows)) > 1:
            self.refresh()


def notice_rows(notice: Line, width: int, most: int) -> list[Line]:
    """A notice in at most `most` rows of `width` cells; one that is longer loses its middle, where paths are, since its
    end tells what happened."""
    rows = wrap_line(notice, width, hang=1)
    text, role = plain(notice), notice[0].role
    kept = min(len(text), width * most) // 2
    while len(rows) > most and kept > 0:
        rows = wrap_line((Span(f"{text[:kept]}{ELLIPSIS}{text[-kept:]}", role),), width, hang=1)
        kept -= 1
    return rows[:most]


def key_line(keys: Sequence[tuple[Action, bool]], width: int) -> Line:
    """As many keys as fit into `width` cells; the one for help is always among them."""
    wanted = [(key_name(action.keys[0]), action.label, able) for action, able in keys]
    widths = {label: cell_len(key) + cell_len(label) + 4 for key, label, _ in wanted}
    room = width - 1 - widths.get("keys", 0)
    kept: set[str] = {"keys"}
    for _, label, _ in wanted:
        if label in kept or widths[label] > room:
            continue
        kept.add(label)
        room -= widths[label]
    spans: list[Span] = [Span(" ")]
    for key, label, able in wanted:
        if label in kept:
            role: Role = "accent" if able else "muted"
            spans += [Span(key, role), Span(f" {label}   ", "text" if able else "muted")]
    return tuple(spans)
