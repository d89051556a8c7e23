"""The runs of a case as tabs: by model and repeat, each followed by its forks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.message import Message

from workbench.numerals import score_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Line, Role, Span, cells, cut_line, cut_middle
from workbench.show.visible import model_label, one_line
from workbench.tui.kit.actions import key_for, unless_read_only
from workbench.tui.kit.painting import Bar, keymap_of
from workbench.tui.run_book.forks import branch_number, branch_text
from workbench.tui.run_book.record import RunRecord
from workbench.tui.terminal.theming import Ground

_MORE_CELLS = 5
"""The width of the number of hidden runs on one side."""


class RunChoice(Bar):
    """The tabs of a case's runs, hidden if there is only one. Posts `Chosen` on a click."""

    GROUND: ClassVar[Ground] = "background"

    class Chosen(Message):
        """Posted when a run is clicked."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self._tabs: list[Line] = []
        self._lead: Line = ()
        self._chosen = 0

    def show(self, runs: Sequence[RunRecord], chosen: int) -> None:
        """Show tabs for these runs."""
        self.display = len(runs) > 1
        if not self.display:
            return
        self._tabs = [_run_label(run, runs, index == chosen) for index, run in enumerate(runs)]
        self._lead = (Span(f" {model_label(runs[0].model)} " if _of_one_model(runs) else " ", "muted"),)
        self._chosen = chosen
        self.say(lambda width: tabs_line(self._lead, self._tabs, self._chosen, width)[0])

    def on_click(self, event: events.Click) -> None:
        ends = tabs_line(self._lead, self._tabs, self._chosen, self.size.width)[1]
        index = next((index for end, index in ends if event.x < end), None)
        if index is not None:
            self.post_message(self.Chosen(index))


def tabs_line(lead: Line, tabs: Sequence[Line], chosen: int, width: int) -> tuple[Line, list[tuple[int, int]]]:
    """Return as many tabs as fit, around the selected one, with the number of hidden ones on either side, and the end
    of each with its index. The number on a side leads to the next tab there. `lead` comes first."""
    widths = [cells(tab) for tab in tabs]
    if cells(lead) + sum(widths) > width:
        lead = (Span(" "),)
    first, last = 0, len(tabs) - 1
    if sum(widths) > width - cells(lead):
        room = width - cells(lead) - 2 * _MORE_CELLS
        tabs = [_cut_tab(tab, room) for tab in tabs]
        widths = [cells(tab) for tab in tabs]
        first = last = chosen
        while True:
            used = sum(widths[first : last + 1])
            if last + 1 < len(tabs) and used + widths[last + 1] <= room:
                last += 1
            elif first and used + widths[first - 1] <= room:
                first -= 1
            else:
                break
    parts: list[tuple[Line, int]] = [(tabs[index], index) for index in range(first, last + 1)]
    if first:
        parts.insert(0, ((Span(f"< {first}".ljust(_MORE_CELLS), "muted"),), first - 1))
    if last + 1 < len(tabs):
        parts.append(((Span(f"{len(tabs) - last - 1} >".rjust(_MORE_CELLS), "muted"),), last + 1))
    line, ends = lead, list[tuple[int, int]]()
    for part, index in parts:
        line = (*line, *part)
        ends.append((cells(line), index))
    return cut_line(line, width), ends


def _cut_tab(tab: Line, room: int) -> Line:
    """Cut the name of a run that does not fit even alone in its middle."""
    name, *verdict = tab
    left = room - cells(tuple(verdict)) - 2
    return (
        tab if cells(tab) <= room else (Span(f" {cut_middle(name.text.strip(), max(left, 1))} ", name.role), *verdict)
    )


class BranchLine(Bar):
    """The description of a fork below the tabs, and of a run on a model that is no longer in use; hidden for other
    runs."""

    GROUND: ClassVar[Ground] = "background"

    def show(self, run: RunRecord | None, in_use: Sequence[str] = ()) -> None:
        """Describe a run if it is a fork, or on none of the models that the user chose, if any."""
        is_other = run is not None and bool(in_use) and not run.recorded and run.model not in in_use
        self.display = run is not None and (run.is_fork or is_other)
        if run is not None and is_other and not run.is_fork:
            models = ", ".join(model_label(model) for model in in_use)
            again = unless_read_only(f"; {key_for('run.case')} runs it on {models}")
            told = f"ran on {model_label(run.model)}{again}"
            other = one_line(keymap_of(self).in_words(told))
            self.say(lambda width: cut_line((Span(f" {GLYPHS.warned} {other}", "warned"),), width))
        elif run is not None and run.is_fork:
            text = one_line(branch_text(run))
            self.say(lambda width: cut_line((Span(f" {GLYPHS.fork} {text}", "muted"),), width))


def _of_one_model(runs: Sequence[RunRecord]) -> bool:
    return len({run.model for run in runs if not run.is_fork}) == 1


def _run_label(run: RunRecord, runs: Sequence[RunRecord], chosen: bool) -> Line:
    name = f"{GLYPHS.fork} {run_name(run, runs)}" if run.is_fork else run_name(run, runs)
    sign, role = run.result.status.mark if run.result is not None else _going(run)
    value = score_text(run.result.score, "") if run.result is not None else ""
    shown: Role = "badge" if chosen else "muted"
    return Span(f" {name} ", shown), Span(f" {sign} {value}".rstrip() + "  ", role)


def run_name(run: RunRecord, runs: Sequence[RunRecord]) -> str:
    """Return what a run is called among those of its case: `fork 1`, `#2`, a model."""
    return f"fork {branch_number(run, runs)}" if run.is_fork else _name(run, runs)


def _name(run: RunRecord, runs: Sequence[RunRecord]) -> str:
    repeat = f"#{run.repeat + 1}" if any(other.repeat for other in runs) else ""
    one_model = _of_one_model(runs)
    mixed = len({other.recorded for other in runs if not other.is_fork}) > 1
    made = ("recorded" if run.recorded else "new" if one_model else "") if mixed else ""
    alike = [other for other in runs if other.kind == run.kind]  # the first was stopped, so this one still counts
    before = "before" if run is not alike[0] else ""
    name = " ".join(part for part in ("" if one_model else model_label(run.model), repeat, made, before) if part)
    return name or "run"


def _going(run: RunRecord) -> tuple[str, Role]:
    """Return the sign of an unfinished run."""
    if run.asks:
        return GLYPHS.asks, "warned"
    return (GLYPHS.held, "warned") if run.held else (GLYPHS.running, "running")
