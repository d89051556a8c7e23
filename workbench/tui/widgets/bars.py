"""The rows around the panes: titles, status, the runs of a case to choose from, and the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.message import Message

from workbench.reports.visible import one_line
from workbench.tui.actions import PANE_TITLES, PANES, Action, key_name
from workbench.tui.glyphs import GLYPHS
from workbench.tui.painting import Bar
from workbench.tui.state.outcome import STATUS_SIGNS
from workbench.tui.state.runs import RunRecord
from workbench.tui.state.selection import Pane
from workbench.tui.state.spans import EMPTY, Line, Role, Span, cells, spread
from workbench.tui.state.status import model_label
from workbench.tui.state.words import score
from workbench.tui.theming import Ground


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
        place = Span(f" {chosen + 1} of {len(runs)} {GLYPHS.dot} ", "muted")
        short = (place, *_run_label(runs[chosen], runs, True))
        self.say(lambda width: tuple(spans) if cells(tuple(spans)) <= width else short)


def _run_label(run: RunRecord, runs: Sequence[RunRecord], chosen: bool) -> list[Span]:
    repeated = any(other.repeat for other in runs)
    name = model_label(run.model) + (f" #{run.repeat + 1}" if repeated else "")
    sign, role = STATUS_SIGNS[run.result.status] if run.result is not None else (GLYPHS.running, "running")
    value = score(run.result.score) if run.result is not None else ""
    return [Span(f" {name} ", "badge" if chosen else "muted"), Span(f" {sign} {value}".rstrip() + " ", role)]


class KeyBar(Bar):
    """The keys that fit; a notice takes their place until the next key."""

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self._keys: Sequence[tuple[Action, bool]] = ()
        self._notice: Line = EMPTY

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

    def _say(self) -> None:
        notice, keys = self._notice, self._keys
        self.say(lambda width: notice or key_line(keys, width))


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
