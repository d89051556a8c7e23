"""The rows around the panes of the main screen: titles, status, keys and notices."""

from __future__ import annotations

from textual.timer import Timer

from workbench.config.read_only import is_read_only
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Role, Span
from workbench.show.visible import model_label, one_line
from workbench.suite.settings import models_of
from workbench.tui.kit.actions import PANES
from workbench.tui.kit.bars import KeyBar, PaneTitle
from workbench.tui.kit.painting import Bar
from workbench.tui.runs.status_line import models_label, status_line, variants_label
from workbench.tui.shell.panes import PanesScreen
from workbench.tui.shell.registry import shown_keys
from workbench.tui.shell.situation import situation_of
from workbench.tui.trajectory.headline import verdict

NOTICE_S = 6.0
"""How long a notice stays, unless a command comes first."""


class MainBars:
    """The content of a main screen's bars."""

    def __init__(self, screen: PanesScreen) -> None:
        self._screen = screen
        self._notice: Timer | None = None
        self._role: Role = "text"
        self._text = ""

    def refresh(self) -> None:
        """Update titles, status and keys."""
        self.show_titles()
        self.show_status()
        # Below a dialog, the keys of the main screen do nothing.
        shown = self._screen.app.screen is self._screen
        now = situation_of(self._screen)
        # In a field of the form, no other key does what its hints say.
        self._keys.offer(shown_keys(now) if shown else (), stay=now.typing in ("a line", "a text"))

    def offer_no_keys(self) -> None:
        """Show no keys, because something else has the focus."""
        self._keys.offer(())

    def show_titles(self) -> None:
        """Update the titles of the panes."""
        screen, run, shown = self._screen, self._screen.selection.run, self._screen.panes_in_sight
        about = {
            "suites": f"/{screen.selection.tree.filter}" if screen.selection.tree.filter else "",
            "case": screen.selection.title,
            "run": model_label(run.model) if run is not None and len(screen.selection.runs) == 1 else "",
        }
        for pane in shown:
            sharing = [other for other in PANES if other == pane or other not in shown]
            panes = PANES if len(shown) == 1 else (pane,) if pane == "suites" else tuple(sharing)
            title = screen.query_one(f"#{pane}-title", PaneTitle)
            right = {"suites": EMPTY, "case": self._views(), "run": self._news()}[pane]
            title.show(panes, pane, pane == screen.pane, about[pane], right)

    def show_status(self) -> None:
        """Update counts, models and progress."""
        screen = self._screen
        if screen.is_covered:
            return
        models = screen.selection.models or self._suite_models()
        variants = variants_label(screen.selection.variants)
        counts, spend, progress = screen.book.counts(), screen.book.spend(), screen.book.progress()
        place, cases = screen.selection.open_suites.workspace.place, screen.selection.tree.case_count
        place += " (read-only)" if is_read_only() else ""
        status = screen.query_one("#status", Bar)
        status.say(
            lambda width: status_line(
                place, models_label(models, max(width // 3, 40)) + variants, cases, counts, spend, progress, width
            )
        )

    def announce(self, text: str, role: Role = "text", sign: str = "", *, gently: bool = False) -> None:
        """Show a notice at the bottom for a while. With `gently`, it does not replace a warning."""
        if gently and self._notice is not None and self._role in ("warned", "error"):
            return
        self._role, self._text = role, text
        if self._notice is not None:
            self._notice.stop()
        message = f" {sign} {one_line(text)}" if sign else f" {one_line(text)}"
        self._keys.announce((Span(message, role),))
        self._notice = self._screen.set_timer(NOTICE_S, self.end_notice)

    def end_notice(self, only: str | None = None) -> None:
        """Remove the notice, any or `only` this one."""
        if self._notice is not None and only in (None, self._text):
            self._notice.stop()
            self._notice = None
            self._keys.clear_notice()

    @property
    def _keys(self) -> KeyBar:
        return self._screen.query_one("#keys", KeyBar)

    def _views(self) -> Line:
        """Return the two views of a case, the current one marked."""
        if self._screen.selection.suite is None:
            return EMPTY
        shown = self._screen.case_pane.view
        form, toml = (Span(view, "strong" if view == shown else "muted") for view in ("form", "toml"))
        return (form, Span(" "), toml)

    def _news(self) -> Line:
        screen = self._screen
        unseen = screen.run_pane.run_list.unseen
        if unseen:
            return (Span(f"{unseen} new {GLYPHS.down} End", "running"),)
        run, row = screen.selection.run, screen.selection.row
        if run is not None and row is not None and row.open is not None and not run.is_of(row.open, row.case):
            return (Span("changed since", "warned"),)
        came_to = verdict(run) if run is not None and run.figures is not None else EMPTY
        if run is not None and run.recorded:
            return (Span("recorded", "muted"), *((Span("  "), *came_to) if came_to else ()))
        return came_to

    def _suite_models(self) -> tuple[str, ...]:
        """Return the models that the suites name, or that they were recorded on."""
        open_suites = self._screen.selection.open_suites
        recorded = {run.planned.file.path: run.planned.model for run in open_suites.workspace.recorded if run.known}
        named: dict[str, None] = {}
        for suite in open_suites.suites:
            if (read := suite.file.suite) is not None:
                models = (recorded[suite.path],) if suite.path in recorded else models_of(read)
                named.update(dict.fromkeys(models))
        return tuple(named)
