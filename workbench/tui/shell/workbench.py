"""The Textual app: connects the main screen and the services, and starts and ends the program."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from textual import events, on
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.filter import LineFilter
from textual.screen import Screen
from textual.worker import Worker

from workbench.authoring.known_tools import KnownTools
from workbench.authoring.workspace import OpenSuites
from workbench.config.logs import LOG_NAME
from workbench.config.program import Program
from workbench.limits import MAX_FIELD_CHARS
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Role
from workbench.show.visible import one_line
from workbench.tools.listings import StoredListings
from workbench.tui.holds.actions import StepActions
from workbench.tui.kit.actions import (
    MOVE_ACTIONS,
    NO_EDITOR,
    NO_EDITOR_IN_BROWSER,
    Scope,
    key_for,
    key_name,
    why_unavailable,
)
from workbench.tui.kit.external_editor import ExternalEditor
from workbench.tui.kit.fields import PasteChanged
from workbench.tui.kit.keymap import FILE_NAME as KEYS_FILE
from workbench.tui.kit.keymap import load_keymap
from workbench.tui.kit.memory import Memory
from workbench.tui.kit.stage import Announce, Answer, AnswerCallback, BackgroundWork, in_background
from workbench.tui.run_book.book import RunBook
from workbench.tui.runs.runner import OpenRuntime
from workbench.tui.shell.actions import (
    ALL_ACTIONS,
    MAIN_ACTIONS,
    ScreenActions,
    all_screens_are_imported,
    help_sections,
    keys_elsewhere,
    main_action,
    places_of,
)
from workbench.tui.shell.main_screen import MainScreen
from workbench.tui.shell.services import Services
from workbench.tui.shell.shutdown import Shutdown
from workbench.tui.shell.situation import situation_of
from workbench.tui.shell.start import StartUp, current_position
from workbench.tui.terminal.containment import Containment
from workbench.tui.terminal.driver import TolerantDriver
from workbench.tui.terminal.environment import TerminalEnvironment
from workbench.tui.terminal.key_queue import KeyHandled, PasteCleaned, PasteRefused
from workbench.tui.terminal.output_filters import AsciiFilter, ControlsFilter, OutputFilter, SecretsFilter
from workbench.tui.terminal.staged_app import StagedApp
from workbench.tui.themes.appearance import Appearance
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.evaluation.options import AppStart
    from workbench.tui.kit.actions import Situation
    from workbench.tui.kit.help import Sections
    from workbench.tui.kit.side_screen import SideScreen
    from workbench.tui.tree.last_runs import LastRuns


Part = TypeVar("Part")

_log = logging.getLogger(__name__)


class Workbench(StagedApp):
    """The Textual app. It opens the suites at the given paths."""

    containment: Containment

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+p", "command_palette", "All commands", show=False, priority=True, id="palette"),
        Binding("colon", "command_palette", "All commands", show=False, id="palette"),
        Binding("ctrl+l", "draw_anew", "Redraw the screen", show=False, priority=True, id="redraw"),
    ]
    # This disables Textual's palette. `action_command_palette` opens the app's palette.
    ENABLE_COMMAND_PALETTE = False
    # Textual's selection by mouse fails if its widget was just removed.
    ALLOW_SELECT = False

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        open_runtime: OpenRuntime,
        program: Program,
        terminal: TerminalEnvironment,
        models: Sequence[str] = (),
        theme: str | None = None,
        trust: bool = False,
        clock: Callable[[], float] = time.monotonic,
        record: Path | None = None,
        history: Path | None = None,
        start: AppStart | None = None,
        shown_batch: int | None = None,
    ) -> None:
        self._parts: dict[Callable[[Workbench], Any], Any] = {}
        self.terminal = terminal
        self.program = program
        self.memory = Memory(program.folders.state / "app.json")
        self.appearance = Appearance(program.folders, terminal, self.memory, theme)
        self.palette = self.appearance.palette(self.appearance.first)
        super().__init__(driver_class=_driver_class(terminal), ansi_color=True if terminal.no_colour else None)
        self.appearance.register(self)
        self.begin_with_theme(self.appearance.first)
        # Secrets come first, because the other filters change characters, and a changed secret is no longer found.
        filters: list[LineFilter] = [SecretsFilter(program.secrets), ControlsFilter()]
        if terminal.ascii:
            filters.append(AsciiFilter(all_of_it=not terminal.utf8))
        self.filter_output(OutputFilter(*filters))
        self.keymap, problems = load_keymap(program.folders.config / KEYS_FILE, ALL_ACTIONS, ALL_ACTIONS.places)
        self.set_keymap(self.keymap.for_textual())
        self.sequences = self.keymap.sequences((*MAIN_ACTIONS, *MOVE_ACTIONS))
        book = RunBook(clock, secrets=program.secrets)
        known_tools = KnownTools(StoredListings(program.folders.listings))
        self.open_suites = OpenSuites(known_tools.checked)
        self.selection = Selection(
            self.open_suites, book, models=tuple(models), models_for_now=bool(models) or start is not None
        )
        self.main = MainScreen(self, self.selection, self.perform, editor=terminal.editor, known_tools=known_tools)
        self.services = Services(
            self,
            self.main,
            program,
            terminal,
            open_runtime=open_runtime,
            clock=clock,
            trust=trust,
            record=record,
            history=history,
            start=start,
        )
        self.editor = ExternalEditor(
            self,
            terminal.editor,
            named=terminal.editor_is_named,
            missing=NO_EDITOR_IN_BROWSER if terminal.served else NO_EDITOR,
        )
        self.starting = StartUp(self, paths, start=start, shown_batch=shown_batch, problems=problems)
        self.leaving = Shutdown(
            self,
            self.services,
            announce=self.announce,
            remember=self.remember,
            handled=lambda: self.containment.handled,
        )
        self.containment = Containment(self)
        self.open_suites.on_error = self.containment.handle_error

    def get_default_screen(self) -> Screen[None]:
        return self.main

    def on_load(self) -> None:
        self.starting.pause_drawing()

    def on_mount(self) -> None:
        asyncio.get_running_loop().set_exception_handler(self.containment.handle_loop_error)
        self.leaving.follow_signals()
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        self.theme_changed_signal.subscribe(self, lambda _: self.appearance.recolour(self))
        self.starting.begin()

    def announce_problems(self, problems: Sequence[str]) -> None:
        """Announce the first problem with the user's own files, and log all of them."""
        for problem in problems:
            _log.warning(problem)
        text = problems[0]
        if len(problems) > 1:
            log = one_line(str(self.program.folders.log / LOG_NAME))
            text += f" (the first of {len(problems)}; all are in {log})"
        self.main.announce(text, "warned", GLYPHS.warned)

    def key_name(self, action_id: str) -> str:
        """Return the names of an action's keys, "" if it has no key."""
        return self.keymap.names(ALL_ACTIONS[action_id])

    def theme_changed(self) -> None:
        """Apply the current theme again after its colours changed."""
        self.mutate_reactive(type(self).theme)

    @property
    def is_typing(self) -> bool:
        """Whether a text field has the focus. Letters are then text."""
        return self.focused is not None and self.focused.check_consume_key("a", "a")

    def announce(self, text: str, role: Role = "text", sign: str = "", *, keep_warning: bool = False) -> None:
        """Show a notice at the bottom of the top screen, or of the main screen while a dialog is open.

        With `keep_warning`, the notice is always on the main screen and does not replace a warning."""
        shown = self.side_screens()
        if shown and shown[-1] is self.screen and not keep_warning:
            shown[-1].announce(text, role, sign)
        else:
            self.main.announce(text, role, sign, keep_warning=keep_warning)

    def end_notice(self, only: str) -> None:
        """Remove the notice of the main screen if it has the text `only`."""
        self.main.end_notice(only)

    async def ask(self, question: Screen[Answer]) -> Answer | None:
        """Show a screen above all others. Return the screen's answer."""
        return await self.push_screen_wait(question)

    def show(
        self,
        screen: Screen[Answer],
        on_answer: AnswerCallback[Answer] | None = None,
        *,
        below: Screen[Any] | None = None,
    ) -> None:
        """Show a screen above all others. If `below` is given and no longer the top screen, do nothing.

        `on_answer` is called with the answer of the screen."""
        if below is None or self.screen is below:
            self.push_screen(screen, on_answer)

    def work(self, work: BackgroundWork, group: str, *, exclusive: bool = False) -> Worker[object]:
        """Start background work in the event loop."""
        # At runtime, `run_worker` also accepts a function that returns a coroutine, but its type hints do not.
        return self.run_worker(
            cast("Coroutine[Any, Any, object]", work), group=group, exclusive=exclusive, description=group
        )

    @property
    def top_screen(self) -> Screen[Any]:
        """The top screen. May be a dialog."""
        return self.screen

    def shows(self, screen: Screen[Any]) -> bool:
        """Return whether this is the top screen."""
        return self.screen is screen

    @property
    def shows_main(self) -> bool:
        return self.screen is self.main

    def copy(self, text: str, noun: str, announce: Announce) -> None:
        """Copy a text without its secrets, and announce the destination."""
        from workbench.tui.kit.clipboard import copy_text

        copying = copy_text(
            text,
            noun,
            announce,
            secrets=self.program.secrets,
            terminal=self.terminal,
            folder=self.program.folders.state,
            copy_to_clipboard=self.copy_to_clipboard,
        )
        self.work(copying, "copy")

    def quit(self) -> None:
        """Close all screens above the main screen, and quit. Ask first if there are unsaved changes or active runs."""
        while self.screen is not self.main:
            self.pop_screen()
        self.main.call_after_refresh(self.ask_to_quit)

    def record_action(self) -> None:
        """Record an action of the user, so that the next request to quit asks again."""
        self.leaving.withdraw_request()

    def part(self, kind: Callable[[Workbench], Part]) -> Part:
        """Return the app's only instance of a class, such as a group of actions. It is created on first use."""
        if kind not in self._parts:
            self._parts[kind] = kind(self)
        part: Part = self._parts[kind]
        return part

    @property
    def screens(self) -> ScreenActions:
        """The actions that open the screens above the main screen."""
        return self.part(ScreenActions)

    def perform(self, action_id: str) -> None:
        """Perform an available action of the main screen."""
        # While the user edits a text of a held run, `StepActions.handle` gives some keys another meaning.
        if not action_id.endswith("quit"):
            self.leaving.withdraw_request()
        if not self.part(StepActions).handle(action_id):
            group, action = main_action(action_id)
            do: Callable[[], object] = getattr(self.part(group), action.method)
            do()

    def action_do(self, action_id: str) -> None:
        """Perform an action of the program on any screen, or announce why it is unavailable."""
        why = why_unavailable(ALL_ACTIONS[action_id], situation_of(self.main))
        if why is not None:
            self.announce(why[:1].upper() + why[1:], "warned", GLYPHS.warned)
        else:
            self.perform(action_id)

    def side_screens(self) -> list[SideScreen[Any]]:
        """Return the screens above the main screen except dialogs, lowest first."""
        if len(self.screen_stack) == 1:
            return []
        from workbench.tui.kit.side_screen import SideScreen

        return [screen for screen in self.screen_stack if isinstance(screen, SideScreen) and screen.is_mounted]

    @on(MainScreen.FocusReturned)
    def _main_is_free(self) -> None:
        self.services.show_pending()

    @on(MainScreen.SuiteSelected)
    def _suite_shown(self) -> None:
        row = self.selection.row
        if row is not None and row.case is None:
            from workbench.tui.tree.suite_summary import last_runs

            found = last_runs(self.selection.tree, row, self.selection.book)
            self.services.history_reader.explain_soon(found.failed)
            if found.needs_thread:
                self.work(self._add_up(found), "totals", exclusive=True)

    async def _add_up(self, found: LastRuns) -> None:
        """Compute the totals of many runs in a thread, and show them."""
        await in_background(found.add_up)
        self.main.follow_history()

    def action_stop_all(self) -> None:
        """Stop every run and withdraw the questions of runs."""
        self.services.stop_all()

    def on_paste_cleaned(self, event: PasteCleaned) -> None:
        """Announce the omitted parts of a paste."""
        if not event.is_queued:
            # Keys read before the paste would remove the notice, so the message is posted again behind these keys.
            (self.focused or self.screen).post_message(
                PasteCleaned(event.removed_controls, is_truncated=event.is_truncated, is_queued=True)
            )
            return
        lost = []
        if event.removed_controls:
            lost.append(counted(event.removed_controls, "control character"))
        if event.is_truncated:
            lost.append("its end, since it is too long")
        text = f"Not pasted: {' and '.join(lost)}"
        if self.main.run_pane.typing is not None:
            text += "; paste them in your editor with F4"
        self.announce(text, "warned", GLYPHS.warned)

    def on_paste_changed(self, event: PasteChanged) -> None:
        self.announce(event.notice, "warned", GLYPHS.warned)

    def on_paste_refused(self, event: PasteRefused) -> None:
        self.announce(MAX_FIELD_CHARS.reached(length=counted(event.length, "character")), "warned", GLYPHS.warned)

    def on_app_focus(self) -> None:
        """Check the user's files for changes, because the terminal has regained the focus."""
        self.appearance.reload_if_changed(self)
        self.services.watch.check_now()

    def after_key(self) -> None:
        """Check the selected file for changes after each key."""
        self.services.watch.check_selected()

    async def on_key(self, event: events.Key) -> None:
        """Perform the binding of a key that no widget used, or announce that the key has no command here.

        Dialogs show all their keys, so a dialog ignores a key without a binding."""
        # Textual's handler would only perform the binding.
        event.prevent_default()
        if not await self.perform_binding(event.key) and not self.is_typing and not self.screen.is_modal:
            key = one_line(key_name(event.key))
            others = f"{GLYPHS.dot} {key_for('help')} keys {GLYPHS.dot} {key_for('palette')} commands"
            text = f"No command on {key} here {others}"
            shown = self.side_screens()
            if shown and shown[-1] is self.screen:
                shown[-1].announce(text, "muted")
            else:
                self.main.announce(text, "muted", keep_warning=True)

    def ask_to_quit(self) -> None:
        """Quit, or announce that a second request will quit."""
        self.leaving.ask()

    async def action_quit(self) -> None:
        self.ask_to_quit()

    def action_command_palette(self) -> None:
        """Open the palette for the top screen. The help is closed first. While any other dialog is open, do nothing."""
        from workbench.tui.kit.help import HelpScreen

        if isinstance(self.screen, HelpScreen):
            self.screen.dismiss(None)
        if not self.screen.is_modal:
            from workbench.tui.shell.palette import open_palette

            open_palette(self, self.main, self.memory)

    def show_help(self) -> None:
        now = situation_of(self.main)
        self.show_keys(help_sections(now), now, *places_of(now))

    def show_keys(self, sections: Sections, situation: Situation, *here: Scope) -> None:
        """Show the help: the `sections` of the scopes `here`, then the keys of all other scopes."""
        from workbench.tui.kit.help import HelpScreen

        self.show(
            HelpScreen(sections, situation, partial(keys_elsewhere, *here), reads_at_once=all_screens_are_imported())
        )

    def action_help_quit(self) -> None:
        """Announce the keys that stop runs, go back and quit. Bound to Ctrl+C. Does nothing above a dialog."""
        shown = self.side_screens()
        if shown and shown[-1] is self.screen:
            typing = shown[-1].situation.typing
            parts = [(f"{shown[-1].NAME}.{name}", effect) for name, effect in shown[-1].exit_actions]
        elif self.screen is self.main:
            typing = situation_of(self.main).typing
            parts = [("quit", "quits"), ("run.stop", "stops the case"), ("help", "shows all keys")]
        else:
            return
        hints = []
        for action_id, effect in parts:
            keys = self.keymap.names(ALL_ACTIONS[action_id]).split()
            if keys:
                hints.append(f"{keys[0]} {effect}")
        if typing is not None:
            # All other keys that quit are letters, which are text here.
            hints = ["Esc ends typing"]
        self.announce(", ".join(hints) or "Quit is among all commands")

    def action_terminal_gone(self) -> None:
        """Leave after the terminal was closed without a signal."""
        self.leaving.terminal_gone()

    def remember(self) -> None:
        """Store the current position for the next session."""
        if self.open_suites.workspace.roots:
            self.memory.change(lambda known: current_position(known, self.main))

    def on_unmount(self) -> None:
        self.services.drafting.close()

    @property
    def is_ending(self) -> bool:
        """Whether the app is ending. Nothing more can be shown then."""
        return self.is_exiting or self.leaving.has_broken

    @on(KeyHandled)
    def _key_handled(self, event: KeyHandled) -> None:
        if event.rounds == 1 and not event.of_screen:
            self.containment.retry_undrawn()


def _driver_class(terminal: TerminalEnvironment) -> type[Driver] | None:
    if terminal.served:
        from workbench.tui.terminal.served_driver import ServedDriver

        return ServedDriver
    if os.name == "posix":
        return TolerantDriver
    # For any other terminal, Textual chooses the driver.
    return None
