"""The Textual app: themes, signals, the session of runs, and the way out."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import events, on
from textual._context import active_message_pump
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.driver import Driver
from textual.screen import Screen
from textual.worker import Worker

from workbench.authoring.case_now import CaseKey
from workbench.authoring.known_tools import KnownTools
from workbench.authoring.open_suites import OpenSuites
from workbench.authoring.workspace import Workspace, open_workspace
from workbench.batches.recordings import Recordings, recording_lines
from workbench.config.logs import LOG_NAME
from workbench.config.program import Program
from workbench.config.resources import bundled
from workbench.evaluation.approval import Trust
from workbench.reports.visible import one_line
from workbench.suite.numerals import counted
from workbench.suite.trust import TrustStore
from workbench.tools.listings import Listings
from workbench.tui.breakpoints.project import Breaking
from workbench.tui.breakpoints.state import Breakpoints
from workbench.tui.kit.closing import Answer
from workbench.tui.kit.keymap import FILE_NAME as KEYS_FILE
from workbench.tui.kit.keymap import load_keymap
from workbench.tui.kit.memory import NOTHING, Memory
from workbench.tui.kit.painting import PaintedApp
from workbench.tui.kit.stage import Announce, Take, Work
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.spans import Role
from workbench.tui.run_book.book import RunBook
from workbench.tui.runs.execution_questions import Questions
from workbench.tui.runs.recording import RunSaver
from workbench.tui.runs.regrader import Rescorer
from workbench.tui.runs.runner import OpenSession, Runner
from workbench.tui.runs.starting import Cases, RunOf, Starter
from workbench.tui.runs.ticking import SecondHand
from workbench.tui.saving.drafting import Drafting
from workbench.tui.saving.reading import Reader
from workbench.tui.saving.saver import Saver
from workbench.tui.saving.watching import Watch
from workbench.tui.shell.commands import Commands
from workbench.tui.shell.containment import Containment, drawn_by
from workbench.tui.shell.leaving import Leaving
from workbench.tui.shell.main_screen import MainScreen
from workbench.tui.shell.palette import ActionCommands, Palette
from workbench.tui.shell.registry import ACTIONS, BY_ID, PLACES
from workbench.tui.shell.returning import come_back, left_at, models_again
from workbench.tui.shell.situation import situation_of
from workbench.tui.stepping.held_notices import HeldRuns
from workbench.tui.terminal.driver import TolerantDriver
from workbench.tui.terminal.keys_in_turn import KeyHandled
from workbench.tui.terminal.output_filters import AsciiFilter, Guard
from workbench.tui.terminal.pasting import PasteCleaned, PasteRefused
from workbench.tui.terminal.secrets_filter import SecretsFilter
from workbench.tui.terminal.surroundings import Surroundings
from workbench.tui.themes.appearance import Appearance
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.batches.resuming import Resumption
    from workbench.engine.stepping import Until
    from workbench.evaluation.options import Begin
    from workbench.tui.comparing.at_start import Compared
    from workbench.tui.history.batch_work import HistoryDeeds
    from workbench.tui.kit.side_screen import SideScreen
    from workbench.tui.runs.fork_draft import ForkDraft


_log = logging.getLogger(__name__)

FIRST_PAINT_S = 0.25
"""Suites that are read in less than this are on the very first picture."""


class Workbench(PaintedApp):
    """The app on some paths."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+p", "command_palette", "All commands", show=False, priority=True, id="palette")
    ]
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {ActionCommands}
    ENABLE_COMMAND_PALETTE = True
    CSS = "CommandPalette { background: $background 60%; } CommandPalette SearchIcon { display: none; }"

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        open_session: OpenSession,
        program: Program,
        surroundings: Surroundings,
        models: Sequence[str] = (),
        theme: str | None = None,
        trust: bool = False,
        clock: Callable[[], float] = time.monotonic,
        record: Path | None = None,
        history: Path | None = None,
        begin: Begin | None = None,
    ) -> None:
        self.surroundings = surroundings
        self.program = program
        self.memory = Memory(program.folders.state / "app.json")
        self.looks = Appearance(program.folders, surroundings, self.memory, theme)
        self.palette = self.looks.palette(self.looks.first)
        super().__init__(driver_class=_driver_class(), ansi_color=True if surroundings.no_colour else None)
        self.looks.dress(self)
        self.theme = self.looks.first
        self._filters += [SecretsFilter(program.secrets), Guard()]
        if surroundings.ascii:
            self._filters.append(AsciiFilter(all_of_it=not surroundings.utf8))
        self.keymap, self._problems_at_start = load_keymap(program.folders.config / KEYS_FILE, ACTIONS, PLACES)
        self.set_keymap(self.keymap.for_textual())
        self._paths = tuple(paths)
        self._starting = ExitStack()
        self.is_starting = True
        """Whether nothing has been painted yet."""
        book = RunBook(clock, secrets=program.secrets)
        known_tools = KnownTools(Listings(program.folders.listings))
        self.open_suites = OpenSuites(known_tools.checked)
        self.selection = Selection(
            self.open_suites, book, models=tuple(models), models_for_now=bool(models) or begin is not None
        )
        self.main = MainScreen(
            self, self.selection, Commands(self), editor=surroundings.editor, known_tools=known_tools
        )
        self.runner = Runner(
            self,
            book,
            open_session,
            self._delivered,
            surroundings.paint_interval_s,
            (lambda: Recordings(record, recording_lines(program.secrets))) if record is not None else None,
        )
        self.history = history
        """The file in which batches are kept, if they are."""
        self.begun_deeds: HistoryDeeds | None = None
        """What is done to the history, once something was."""
        self._begin = begin
        self.compared: Compared | None = None
        """What was compared from the beginning, if that was asked for."""
        self.breaking = Breaking(
            self, self.open_suites, known_tools, program, begin.breakpoints if begin is not None else None
        )
        self.breaking.follow(self._breakpoints_changed)
        self._held_runs = HeldRuns(
            self,
            self.selection,
            self.main,
            self.key_name,
            goes_to_first=begin is not None and begin.opens == "run",
        )
        self._questions = Questions(self, book, self.runner, program.secrets, self._may_ask)
        self._second_hand = SecondHand(book, self.main.set_interval, self._second_passed)
        self.drafting = Drafting(self, self.open_suites, self.selection, program.folders.drafts)
        store = TrustStore(program.folders.trust_file, bundled_folder=bundled("sample_suites"))
        self.is_bundled = store.is_bundled
        self.saver = Saver(self, self.open_suites, self.selection, self.drafting, store.is_bundled)
        self.run_saver = RunSaver(self, store.is_bundled, program.secrets)
        self.reader = Reader(self, self.open_suites, self.saver, program.models, self._is_typing)
        self.starter = Starter(
            self,
            self.selection,
            self.main,
            self.runner,
            program,
            Trust(store, all_of_them=trust),
            catch_up=self.reader.catch_up,
            compares=begin is not None and begin.opens == "compare",
        )
        self._watch = Watch(self, self.open_suites, self.selection, self.reader, self.saver)
        self.leaving = Leaving(self)
        self.containment = Containment(self)
        self.rescorer = Rescorer(self, self.selection, program, self.starter.code_to_grade, _ShowGrades(self), clock)
        # The journal, the runs of recordings, the tree, the grades, the screen: see OpenSuites.follow.
        self.open_suites.follow(
            self.drafting.follow, book.follow, self.selection.tree.follow, self.rescorer.follow, self.main.follow
        )

    def get_default_screen(self) -> Screen[None]:
        return self.main

    # The beginning

    def on_load(self) -> None:
        self._starting.enter_context(self.batch_update())

    def on_mount(self) -> None:
        asyncio.get_running_loop().set_exception_handler(self.containment.happened_in_loop)
        self.leaving.follow_signals()
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        self.theme_changed_signal.subscribe(self, lambda _: self.looks.recolour(self))
        self.run_worker(self._open(), group="open")
        self.set_timer(FIRST_PAINT_S, self.show_first)

    async def _open(self) -> None:
        workspace, models, breakpoints, problem = await asyncio.to_thread(self._found)
        self._problems_at_start += (problem,) if problem is not None else ()
        # By way of the screen's own messages, so that it is mounted by then, however quickly the suites were read.
        self.main.call_later(self._opened, workspace, models, breakpoints)

    def _found(self) -> tuple[Workspace, tuple[str, ...], Breakpoints, str | None]:
        models = self.program.models
        workspace = open_workspace(self._paths, models)
        chosen = self.selection.models
        if not self.selection.models_for_now:
            chosen = models_again(self.memory, workspace, models)
        return (workspace, chosen, *self.breaking.find(workspace.roots[0]))

    def _opened(self, workspace: Workspace, models: tuple[str, ...], breakpoints: Breakpoints) -> None:
        self.selection.models = models
        self.breaking.take(breakpoints)
        self.open_suites.read(workspace)
        if (remembered := self.memory.read()) != NOTHING:
            come_back(remembered, self.main)
        self.call_after_refresh(self.show_first)
        problems = [*self._problems_at_start, *self.looks.problems_at_start]
        if problems:
            self.say_problems(problems)
        elif workspace.samples:
            self.main.announce("No suites here: these are the samples. r runs the case, N makes a suite")
        self.run_worker(self._begin_runs(), group="ask")

    async def _begin_runs(self) -> None:
        await self.drafting.recover()
        if self._begin is None:
            return
        if self._begin.opens == "compare":
            from workbench.tui.comparing.at_start import Compared

            comparing = self.main.commands.areas.comparing
            self.compared = Compared(self, self.selection, self.runner, comparing, self._begin)
            self.compared.open()
        with self._questions.put_off():
            await self.starter.begin(self._begin)

    def say_problems(self, problems: Sequence[str]) -> None:
        """Say what is wrong with the user's own files: the first thing on the screen, all of them in the log."""
        for problem in problems:
            _log.warning(problem)
        log = one_line(str(self.program.folders.log / LOG_NAME))
        more = f" (the first of {len(problems)}; all are in {log})" if len(problems) > 1 else ""
        self.main.announce(problems[0] + more, "warned", GLYPHS.warned)

    def show_first(self) -> None:
        """Begin to draw."""
        self._starting.close()
        self.is_starting = False
        self.main.check_idle()

    # Running

    def run_cases(self, cases: Cases, repeats: int | None = None, until: Until = "end") -> None:
        """Run cases, `repeats` times if that is given, after asking for trust where that is needed; or with `until` one
        case step by step."""
        self.run_worker(self._start(cases, repeats, until), group="start")

    async def _start(self, cases: Cases, repeats: int | None, until: Until) -> None:
        with self._questions.put_off():
            await self.starter.run(cases, repeats, until)

    def run_on(self, wanted: Sequence[RunOf], repeats: int | None, announce: Announce) -> None:
        """Run cases on single models, after asking for trust where that is needed; why some are not is announced."""
        self.run_worker(self._start_on(wanted, repeats, announce), group="start")

    async def _start_on(self, wanted: Sequence[RunOf], repeats: int | None, announce: Announce) -> None:
        with self._questions.put_off():
            why = await self.starter.run_on(wanted, repeats)
        if why is not None:
            announce(f"Not everything was run: {why}", "warned", GLYPHS.warned)

    async def fork(self, draft: ForkDraft) -> str | None:
        """Start a fork of a run, after asking for trust where that is needed; says why not, if it is not started."""
        with self._questions.put_off():
            return await self.starter.fork(draft)

    async def resume(self, resumption: Resumption) -> str | None:
        """Make the missing runs of a batch of the history, after asking for trust where that is needed; says why not,
        if they are not made."""
        with self._questions.put_off():
            return await self.starter.resume(resumption)

    def _delivered(self, cases: set[CaseKey], batches: bool) -> None:
        self.rescorer.finish(cases)
        if batches:
            self.main.known_tools.forget()  # servers may have listed their tools
        self.main.delivered(cases, batches)
        self.tell_beside(cases, batches)
        self._second_hand.follow()
        self._questions.look()
        self._held_runs.look()
        for problem in self.runner.problems():
            self.announce(problem[:1].upper() + problem[1:], "error", GLYPHS.error)

    @property
    def deeds(self) -> HistoryDeeds:
        """What is done to the history."""
        from workbench.tui.history.batch_work import HistoryDeeds

        if self.begun_deeds is None:
            self.begun_deeds = HistoryDeeds(
                self,
                self.history,
                self.program,
                self.selection,
                self.runner,
                may_grade=self.starter.approval_to_grade,
                resume=self.resume,
                screens=self._beside,
            )
        return self.begun_deeds

    def tell_beside(self, cases: set[CaseKey], batches: bool = False) -> None:
        """Tell the screens over the main one that something happened in runs of these cases, or that they were graded
        anew."""
        for screen in self._beside():
            screen.delivered(cases, batches)

    def follow_grades(self) -> None:
        """All that was to be graded anew is: what depends on the grades of many runs follows."""
        self.main.follow_grades()
        for screen in self._beside():
            screen.follow_grades()

    def _breakpoints_changed(self, points: Breakpoints) -> None:
        self.runner.hold_at(points.points)
        views = (self.main.run_pane.run_list, self.main.case_pane.form)
        for view in views:
            view.breakpoints = points.tools
            view.repaint()

    def key_name(self, action_id: str) -> str:
        """Returns what the keys of an action are called, empty where it has none."""
        return self.keymap.names(BY_ID[action_id])

    def theme_changed(self) -> None:
        """Draw everything anew: the theme in force says something else."""
        self.mutate_reactive(type(self).theme)

    def _may_ask(self) -> bool:
        """Returns whether a question of a run may come up: no other dialog, field or filter has the keyboard."""
        if self.shows_main:
            return not self.main.filter_box.typing
        return getattr(self.screen, "takes_questions", False)

    def _is_typing(self) -> bool:
        return self.focused is not None and self.focused.check_consume_key("a", "a")

    def _second_passed(self) -> None:
        shown = self._beside()
        if shown and shown[-1] is self.screen:
            shown[-1].second_passed()
        else:
            self.main.show_status()

    # What services and screens may ask: kit.stage.Stage

    def announce(self, text: str, role: Role = "text", sign: str = "", *, gently: bool = False) -> None:
        """Show a notice at the bottom of the screen that is shown, or of the main one where that has no place for it.
        With `gently` it is shown on the main screen, and not in the place of a warning."""
        shown = self._beside()
        if shown and shown[-1] is self.screen and not gently:
            shown[-1].announce(text, role, sign)
        else:
            self.main.announce(text, role, sign, gently=gently)

    def end_notice(self, only: str) -> None:
        """Take back a notice of the main screen before its time is over, if it is `only` this one."""
        self.main.end_notice(only)

    async def ask(self, question: Screen[Answer]) -> Answer | None:
        """Show a screen over all others and wait for its answer."""
        return await self.push_screen_wait(question)

    def show(
        self, screen: Screen[Answer], take: Take[Answer] | None = None, *, over: Screen[Any] | None = None
    ) -> None:
        """Show a screen over all others, if `over` is shown or not given."""
        if over is None or self.screen is over:
            self.push_screen(screen, take)

    def work(self, work: Work, group: str, *, exclusive: bool = False) -> Worker[object]:
        """Begin work beside the messages of the app."""
        # A function is taken for one that runs in a thread by the types of Textual.
        return self.run_worker(cast(Coroutine[Any, Any, object], work), group=group, exclusive=exclusive)

    @property
    def shown(self) -> Screen[Any]:
        """The screen over all others, a dialog too."""
        return self.screen

    def shows(self, screen: Screen[Any]) -> bool:
        """Returns whether this very screen is shown, with nothing over it."""
        return self.screen is screen

    @property
    def shows_main(self) -> bool:
        """Whether the main screen is shown, with nothing over it."""
        return self.screen is self.main

    def copy(self, text: str, what: str, announce: Announce) -> None:
        """Copy a text, without its secrets, and announce where it went."""
        from workbench.tui.shell.copying import copy_text

        copy_text(self, text, what, announce)

    def quit(self) -> None:
        """Close the screens over the main one and quit, which may ask something."""
        while self.screen is not self.main:
            self.pop_screen()
        self.main.call_after_refresh(self.ask_to_quit)

    def acted(self) -> None:
        """Something was done: whoever quits after that is asked again."""
        self.leaving.something_else()

    # Screens over the main one

    def action_do(self, action_id: str) -> None:
        """Take an action of the program itself, whichever screen is shown."""
        self.main.commands.perform(action_id)

    def _beside(self) -> list[SideScreen[Any]]:
        """The screens over the main one, but for dialogs."""
        if len(self.screen_stack) == 1:
            return []
        from workbench.tui.kit.side_screen import SideScreen

        return [screen for screen in self.screen_stack if isinstance(screen, SideScreen) and screen.is_mounted]

    @on(MainScreen.Free)
    def _main_is_free(self) -> None:
        self._questions.look()
        self._held_runs.look()

    def action_stop_all(self) -> None:
        """Stop every run, and ask nothing more about any."""
        self.runner.stop_all()
        self._questions.withdraw()
        self.announce("Stopping everything; what is done stays", "text", GLYPHS.stopped)

    def on_paste_cleaned(self, event: PasteCleaned) -> None:
        """Say what a paste has lost, and the way by which it is not lost. A key that was read before the paste may not
        have been taken yet, and would end what is said here; so this waits in line behind it."""
        if not event.behind:
            (self.focused or self.screen).post_message(PasteCleaned(event.left_out, was_cut=event.was_cut, behind=True))
            return
        way = "; F4, your editor, takes them in" if self.main.run_pane.typing is not None else ""
        lost = counted(event.left_out, "control character") if event.left_out else ""
        end = "its end, since it is too long" if event.was_cut else ""
        said = f"Left out of what was pasted: {' and '.join(filter(None, (lost, end)))}{way}"
        self.announce(said, "warned", GLYPHS.warned)

    def on_paste_refused(self, event: PasteRefused) -> None:
        self.announce(f"{counted(event.length, 'character')} are too many to paste in here", "warned", GLYPHS.warned)

    def on_app_focus(self) -> None:
        """The terminal has the focus again."""
        self.looks.look_again(self)
        self._watch.at_return()

    async def on_event(self, event: events.Event) -> None:
        await super().on_event(event)
        if isinstance(event, events.Key):
            self._watch.at_key()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """None of Textual's own: the registry names all there is."""
        return ()

    # The end

    def ask_to_quit(self) -> None:
        """Quit; with runs under way, or with something typed that a form cannot hold, only when asked twice."""
        self.leaving.ask()

    async def action_quit(self) -> None:
        self.ask_to_quit()

    def action_command_palette(self) -> None:
        """All commands of the screen. None is about a dialog; the help offers them and gives way."""
        from workbench.tui.kit.help import HelpScreen

        if isinstance(self.screen, HelpScreen):
            self.screen.dismiss(None)
        if not self.screen.is_modal:
            self.push_screen(Palette())

    def action_help_quit(self) -> None:
        """At Ctrl+C: which keys stop what runs and lead away, where they do. A dialog names its own all the time."""
        shown = self._beside()
        if shown and shown[-1] is self.screen:
            typing = shown[-1].situation.typing
            said = [(f"{shown[-1].NAME}.{name}", what) for name, what in shown[-1].ways_out]
        elif self.screen is self.main:
            typing = situation_of(self.main).typing
            said = [("quit", "quits"), ("run.stop", "stops the case"), ("help", "shows all keys")]
        else:
            return
        named = [(self.keymap.names(BY_ID[action_id]), what) for action_id, what in said]
        hints = [f"{keys.split()[0]} {what}" for keys, what in named if keys]
        if typing is not None:
            hints = ["Esc ends typing"]  # other keys are letters
        self.announce(", ".join(hints) or "Quit is among all commands")

    def action_terminal_gone(self) -> None:
        """The terminal closed without a signal."""
        self.leaving.terminal_gone()

    def remember(self) -> None:
        """Keep where one is, for the next time."""
        if self.main.workspace.roots:
            self.memory.change(lambda known: left_at(known, self.main))

    def on_unmount(self) -> None:
        self.drafting.close()

    @property
    def is_ending(self) -> bool:
        """Whether nothing more can be shown."""
        return self._exit or self.leaving.has_broken

    @on(KeyHandled)
    def _key_handled(self, event: KeyHandled) -> None:
        if event.rounds == 1:
            self.containment.key_done()

    def _handle_exception(self, error: Exception) -> None:
        """Textual caught an error of a timer, a worker, a callback, or of laying something out."""
        undrawn = drawn_by(active_message_pump.get(None))
        self.containment.happened(error, undrawn=undrawn, ends=undrawn is self.main and not self.main.is_mounted)


class _ShowGrades:
    """Shows that runs have other grades; see `runs.regrader.ShowGrades`."""

    def __init__(self, app: Workbench) -> None:
        self._app = app

    def over_main(self, cases: set[CaseKey]) -> None:
        self._app.tell_beside(cases)

    def everywhere(self, cases: set[CaseKey]) -> None:
        self._app.main.delivered(cases, False)
        self._app.tell_beside(cases)

    def all_graded(self) -> None:
        self._app.follow_grades()


def _driver_class() -> type[Driver] | None:
    return TolerantDriver if os.name == "posix" else None
