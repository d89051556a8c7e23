"""The rows around the panes of the main screen: titles, status, keys and notices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from textual.timer import Timer

from workbench.config.read_only import is_read_only
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Role, Span
from workbench.show.visible import model_label, one_line
from workbench.suite.settings import models_of
from workbench.suite.variants import SEPARATOR, Variants
from workbench.tui.case.actions import EDIT_FAILED_EXPECTATION
from workbench.tui.case.form.view import TYPING
from workbench.tui.case.toml.pane import TYPING_TOML
from workbench.tui.holds.actions import TYPING as TYPING_HELD
from workbench.tui.holds.actions import StepActions
from workbench.tui.kit.actions import (
    ERROR_KINDS,
    FILTERING,
    HELD_KINDS,
    PANES,
    Action,
    MainActions,
    MainSituation,
    Pane,
    Typing,
    actions_of,
    is_offered,
    why_unavailable,
)
from workbench.tui.kit.bars import KeyBar, PaneTitle
from workbench.tui.kit.strips import Bar
from workbench.tui.runs.status_line import models_label, status_line
from workbench.tui.shell.actions import MAIN_ACTIONS, ProgramActions, ViewActions, main_action, places_of
from workbench.tui.shell.panes import PanesScreen
from workbench.tui.shell.situation import situation_of
from workbench.tui.trajectory.actions import OPEN_STORED_RUN, ShownRunActions
from workbench.tui.trajectory.headline import verdict

if TYPE_CHECKING:
    from workbench.tui.run_book.record import RunRecord

NOTICE_S = 6.0
"""The time in seconds after which a notice disappears."""


class MainBars:
    """The content of the main screen's bars: titles, status, keys and notices."""

    def __init__(self, screen: PanesScreen) -> None:
        self._screen = screen
        self._notice: Timer | None = None
        self._role: Role = "text"
        self._text = ""

    def refresh(self) -> None:
        """Update titles, status and keys."""
        self.show_titles()
        self.show_status()
        if self._screen.app.screen is not self._screen:
            # Below a dialog, the keys of the main screen are inactive.
            self.offer_no_keys()
            return
        now = situation_of(self._screen)
        if now.line is not None and self._screen.adder is not None:
            lead, keys = self._screen.adder.keys()
            self._keys.offer(keys, keep_visible=True, prefix=lead)
            return
        # In a field of the form, only these keys work, so they stay visible while a notice is shown.
        self._keys.offer(shown_keys(now), keep_visible=now.typing in ("a line", "a text"))

    def offer_no_keys(self) -> None:
        """Show no keys, because the main screen is covered."""
        self._keys.offer(())

    def show_titles(self) -> None:
        screen, runs, shown = self._screen, self._runs(), self._screen.visible_panes
        about = {"suites": "", "case": screen.selection.title, "run": ""}
        if screen.selection.tree.filter:
            about["suites"] = f"/{screen.selection.tree.filter}"
        if len(runs) == 1:
            about["run"] = model_label(runs[0].model)
        right = {"suites": EMPTY, "case": self._views(), "run": self._news()}
        for pane in shown:
            # The title bar of a pane also names the panes that are hidden behind it. Behind the tree, there are hidden
            # panes only if the tree is the only visible pane.
            panes: tuple[Pane, ...] = (pane,)
            if pane != "suites" or len(shown) == 1:
                panes = tuple(other for other in PANES if other == pane or other not in shown)
            title = screen.query_one(f"#{pane}-title", PaneTitle)
            title.show(panes, pane, pane == screen.pane, about[pane], right[pane])

    def show_status(self) -> None:
        """Update counts, models and progress."""
        screen = self._screen
        if screen.is_covered:
            return
        models = screen.selection.models or self._suite_models()
        variants = _variants_label(screen.selection.variants)
        counts, spend, progress = screen.book.counts(), screen.book.spend(), screen.book.progress()
        place, cases = screen.selection.open_suites.workspace.place, screen.selection.tree.case_count
        if is_read_only():
            place += " (read-only)"
        status = screen.query_one("#status", Bar)
        status.set_line(
            lambda width: status_line(
                place, models_label(models, max(width // 3, 40)) + variants, cases, counts, spend, progress, width
            )
        )

    def announce(self, text: str, role: Role = "text", sign: str = "", *, keep_warning: bool = False) -> None:
        """Show a notice at the bottom for `NOTICE_S` seconds. With `keep_warning`, do not replace a warning."""
        if keep_warning and self._notice is not None and self._role in ("warned", "error"):
            return
        self._role, self._text = role, text
        if self._notice is not None:
            self._notice.stop()
        message = one_line(text)
        if sign:
            message = f"{sign} {message}"
        self._keys.announce((Span(f" {message}", role),))
        self._notice = self._screen.set_timer(NOTICE_S, self.end_notice)

    def end_notice(self, only: str | None = None) -> None:
        """Remove the notice. With `only`, remove the notice only if it has this text."""
        if self._notice is not None and only in (None, self._text):
            self._notice.stop()
            self._notice = None
            self._keys.clear_notice()

    @property
    def _keys(self) -> KeyBar:
        return self._screen.query_one("#keys", KeyBar)

    def _request_runs(self) -> Sequence[RunRecord] | None:
        """Return the runs of quick add in the run pane, `None` if the pane shows the selected case."""
        if self._screen.adder is None or (shown := self._screen.adder.runs_shown) is None:
            return None
        return shown[0]

    def _runs(self) -> Sequence[RunRecord]:
        of_line = self._request_runs()
        return self._screen.selection.runs if of_line is None else of_line

    def _views(self) -> Line:
        if self._screen.selection.suite is None:
            return EMPTY
        if self._screen.case_pane.view == "form":
            return (Span("form", "strong"), Span(" "), Span("toml", "muted"))
        return (Span("form", "muted"), Span(" "), Span("toml", "strong"))

    def _news(self) -> Line:
        screen = self._screen
        unseen = screen.run_pane.run_list.unseen
        if unseen:
            return (Span(f"{unseen} new {GLYPHS.down} End", "running"),)
        run, row = screen.selection.run, screen.selection.row
        if (of_line := self._request_runs()) is not None:
            # A request of quick add has no row in the tree yet.
            run, row = next(iter(of_line), None), None
        if run is not None and row is not None and row.open is not None and not run.matches_case(row.open, row.case):
            return (Span("changed since", "warned"),)
        if run is None:
            return EMPTY
        if run.figures is None:
            if run.recorded:
                return (Span("recorded", "muted"),)
            return EMPTY
        if run.recorded:
            return (Span("recorded", "muted"), Span("  "), *verdict(run))
        return verdict(run)

    def _suite_models(self) -> tuple[str, ...]:
        open_suites = self._screen.selection.open_suites
        # A recorded case runs on its recorded model, even if its suite names other models.
        recorded = {}
        for run in open_suites.workspace.recorded:
            if run.known:
                recorded[run.planned.file.path] = run.planned.model
        named: dict[str, None] = {}
        for suite in open_suites.suites:
            if suite.path in recorded and suite.file.suite is not None:
                named[recorded[suite.path]] = None
            elif suite.file.suite is not None:
                named.update(dict.fromkeys(models_of(suite.file.suite)))
        return tuple(named)


def shown_keys(situation: MainSituation) -> list[tuple[Action, bool]]:
    """Return the actions for the main screen's key bar, most important first, with whether each is available."""
    # Actions of the situation come first, then actions of the pane, then all others. Unavailable actions come last.
    if situation.typing is not None:
        return [(action, True) for action in _typing_keys(situation.typing)]
    places = places_of(situation)
    own: list[Action] = []
    taken: set[str] = set()
    for action in _LABELLED:
        if action.scope in places:
            taken.update((*action.keys, action.label))
            if _is_relevant(action, situation):
                own.append(action)
    rest: list[Action] = []
    for action in _LABELLED:
        if action.scope != "everywhere" or (action.id in _STOPS and not situation.running):
            continue
        # An action of the pane hides an action of the whole screen with the same key or label.
        if taken.isdisjoint((*action.keys, action.label)) and _is_relevant(action, situation):
            rest.append(action)
    offered = {action.id: action for action in (*own, *rest)}
    if situation.has_stored_runs and "run.expand" in offered:
        offered["run.expand"] = OPEN_STORED_RUN
    if situation.shown_failed and situation.pane != "case":
        offered["edit"] = EDIT_FAILED_EXPECTATION
    others = sorted(rest, key=lambda action: _rank(action, situation))
    ids = dict.fromkeys((*_wanted_actions(situation), *(action.id for action in (*own, *others))))
    able: list[Action] = []
    unable: list[Action] = []
    for action in (offered[name] for name in ids if name in offered):
        if not is_offered(action):
            continue
        # The declared action has the condition. A copy with another label for the bar has none.
        if why_unavailable(main_action(action.id)[1], situation) is None:
            able.append(action)
        else:
            unable.append(action)
    # The sort is stable, so it only moves the program's own keys to the end.
    shown = [(action, action in able) for action in (*able, *unable)]
    return sorted(shown, key=lambda each: each[0].id in _PROGRAM_ACTIONS)


def _wanted_actions(situation: MainSituation) -> tuple[str, ...]:
    if situation.held is not None:
        return _HELD
    first: tuple[str, ...] = ()
    if situation.case_running:
        first = ("step.held", "run.stop", "run.stop_all")
    elif situation.running:
        first = ("step.held", "run.stop_all")
    if situation.is_unsaved:
        first = (*first, "save")
    if situation.pane == "case":
        return (*first, "form.edit", "toml.edit", "form.add", "form.remove", "run.case", "edit.view")
    if situation.shown_failed:
        return (*first, "accept", "edit", "failed.next", "failures", "compare", "grades")
    if situation.row != "case":
        return (*first, "run.suite", "failed.next", "failures", "tree.new", "compare", "tools")
    if situation.pane == "run" and (situation.graded or situation.has_stored_runs):
        return (*first, "run.expand", "grades", "failed.next", "run.case", "compare")
    if situation.shown == "a finished run":
        return (*first, "run.case", "failed.next", "tree.new", "edit", "compare")
    return (*first, "run.case", "run.suite", "edit", "tree.new", "failed.next", "tree.filter", "models")


def _typing_keys(typing: Typing) -> list[Action]:
    if typing == "a filter":
        return list(FILTERING)
    if typing == "toml":
        return list(TYPING_TOML)
    if typing in HELD_KINDS:
        return [action for action in TYPING_HELD if action.id != "step.error" or typing in ERROR_KINDS]
    return [action for action in TYPING if action.id != "typing.done" or typing == "a line"]


_LABELLED = [action for action in MAIN_ACTIONS if action.label]
_STOPS = ("run.stop", "run.stop_all")

_HELD: tuple[str, ...] = (
    *("step", "step.continue", "edit", "step.answer", "step.skip", "step.again", "step.say", "step.back"),
    *("step.mock", "step.expect", "step.round", "run.fork", "step.held", "run.stop"),
)
"""The ids of the first actions in the bar while the displayed run is held."""


def _ids_of(*groups: type[MainActions]) -> frozenset[str]:
    declared = chain.from_iterable(map(actions_of, groups))
    return frozenset(action.id for action in declared)


_HELD_RUN_ACTIONS = _ids_of(StepActions)
_PROGRAM_ACTIONS = _ids_of(ProgramActions)
_RUN_ACTIONS = _ids_of(ShownRunActions, ViewActions)


def _is_relevant(action: Action, situation: MainSituation) -> bool:
    # Actions on held runs are shown while the displayed run is held. The key to go to held runs is shown while another
    # run is held.
    if action.id == "step.held":
        return situation.held_runs > (situation.held is not None)
    if action.id == "break.here":
        return situation.pane != "suites"
    if action.id == "edit":
        return situation.held is None or situation.pane != "run" or why_unavailable(action, situation) is None
    if action.id == "step" or action.id not in _HELD_RUN_ACTIONS:
        return True
    return situation.held is not None and why_unavailable(action, situation) is None


def _rank(action: Action, situation: MainSituation) -> int:
    # Less important actions have a higher rank: actions on a run without the focus, then actions of the program.
    if action.id in _PROGRAM_ACTIONS:
        return 2
    # If there are unsaved changes, `_wanted_actions` puts saving before all other actions.
    if action.id in ("break.here", "save", "reload", "edit.view"):
        return 1
    return int(situation.pane != "run" and action.id in _RUN_ACTIONS)


def _variants_label(variants: Variants) -> str:
    """Return the selected variants for the status line, such as ` · 2 variants`. Return "" if there are none."""
    text = one_line("".join(variants.names))
    if variants.all_of_them:
        text = "all variants"
    elif len(variants.names) > 1:
        text = counted(len(variants.names), "variant")
    if not text:
        return ""
    if variants.plain:
        return f"{SEPARATOR}{text}"
    return f"{SEPARATOR}{text} alone"
