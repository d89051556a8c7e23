"""Stepping through runs: going on, changing what a run is held at, and making mocks and expectations of calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.reports.visible import one_line
from workbench.suite.splice import SpliceError
from workbench.tui.lines.glyphs import GLYPHS

if TYPE_CHECKING:
    from workbench.authoring.from_calls import Taken
    from workbench.engine.checkpoint import Command
    from workbench.engine.stepping import Until
    from workbench.tui.kit.actions import HeldKind
    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


class SteppingCommands:
    """The methods of `actions.stepping`."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._over: RunRecord | None = None
        """The run of which it was said that it is over."""
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "step": self._step,
            "step.continue": lambda screen: self._go_on(screen, "end"),
            "step.round": lambda screen: self._go_on(screen, "round"),
            "step.held": self._go_to_held,
            "step.answer": lambda screen: type_in(screen, "answer"),
            "step.say": lambda screen: type_in(screen, "message"),
            "step.skip": self._skip,
            "step.again": self._ask_again,
            "step.error": self._switch_error,
            "step.mock": lambda screen: self._take(screen, mock=True),
            "step.expect": lambda screen: self._take(screen, mock=False),
        }

    # Going on

    def _step(self, screen: MainScreen) -> None:
        run, row = screen.run_shown, screen.suites.selected
        if run is not None and run.result is None:
            self._go_on(screen, "stop")
        elif run is not None and run.was_held and not run.recorded and run is not self._over:
            self._over = run  # with all that was done to it, and its forks
            screen.announce("This run is over: s again steps the case anew", "warned", GLYPHS.warned)
        elif row is not None:
            self._app.run_cases(screen.selection.runnable_below(row), until="stop")

    def _go_on(self, screen: MainScreen, until: Until) -> None:
        if (run := screen.run_shown) is not None:
            show_held(screen)
            self._app.run_worker(self._let_go(screen, run, until, run.hold), group="step")

    async def _let_go(self, screen: MainScreen, run: RunRecord, until: Until, hold: int | None) -> None:
        unsent = screen.run_pane.has_unsent(run)
        why_not = await self._app.runner.go_on(run.run_id, until, hold)
        if why_not is not None:
            screen.announce(f"Nothing was done: {why_not}", "warned", GLYPHS.warned)
        elif hold is None and not run.held and run.result is None:
            screen.announce(f"{run.case_name} is held at its next stop")
        elif unsent:
            said = "The run goes on without what was typed; the same key shows it later"
            screen.announce(said, "warned", GLYPHS.warned)

    def _go_to_held(self, screen: MainScreen) -> None:
        from workbench.tui.tree.selection import go_to_run

        held, shown = screen.book.held_runs, screen.run_shown
        at = next((at for at, run in enumerate(held) if run is shown), -1)
        go_to_run(screen.selection, screen, self._app, held[(at + 1) % len(held)])
        show_held(screen)

    # Changing

    def _skip(self, screen: MainScreen) -> None:
        from workbench.engine.checkpoint import SkipCall

        run = screen.run_shown
        tool = run.view.tool_of(run.paused.call_id) if run is not None and run.paused is not None else None
        self._do(screen, SkipCall(), f"{one_line(tool or 'The call')} is skipped, and the model is told so")

    def _ask_again(self, screen: MainScreen) -> None:
        from workbench.engine.checkpoint import Regenerate

        self._do(screen, Regenerate(), "The answer is set aside, and the same request made again")

    def _do(self, screen: MainScreen, command: Command, said: str) -> None:
        async def do(run: RunRecord, hold: int) -> None:
            why_not = await self._app.runner.do(run.run_id, command, hold)
            if why_not is None:
                screen.announce(said)
            else:
                screen.announce(f"Nothing was done: {why_not}", "warned", GLYPHS.warned)

        if (run := screen.run_shown) is not None and (hold := run.hold) is not None:
            show_held(screen)
            self._app.run_worker(do(run, hold), group="step")

    def _switch_error(self, screen: MainScreen) -> None:
        if screen.run_pane.editor is not None:
            screen.run_pane.editor.switch_error()

    # Mocks and expectations

    def _take(self, screen: MainScreen, *, mock: bool) -> None:
        try:
            taken, name = self._taken(screen, mock=mock)
        except (ValueError, SpliceError, IndexError) as error:
            screen.announce(f"Nothing was changed: {error}", "warned", GLYPHS.warned)
            return
        if taken is None:
            screen.announce(f"{name} says all of that already")
        else:
            said = f"{taken.said}, in {name}; Ctrl+Z takes it back, Ctrl+S saves{screen.and_moved}"
            screen.announce(said, "passed", GLYPHS.passed)

    def _taken(self, screen: MainScreen, *, mock: bool) -> tuple[Taken | None, str]:
        """Change the case; what was made of the call, and what the case is called. Raises ValueError and the like."""
        from workbench.authoring.accepting.redaction import table_without_secrets
        from workbench.authoring.case_now import read_now
        from workbench.authoring.from_calls import expectation_of_call, index_of_call, mock_of_call
        from workbench.suite.sameness import same
        from workbench.suite.settings import settings_of

        suite, run, row = screen.selected_suite, screen.run_shown, screen.suites.selected
        call_id = screen.run_pane.call_meant
        if suite is None or run is None or row is None or row.case is None or call_id is None:
            raise ValueError("put the cursor on a call or its result")
        outline, trajectory = row.case, run.trajectory
        table, index = suite.document.table(outline.index), index_of_call(run.shown_trajectory, call_id)
        taken: Taken | None
        if mock:
            taken = mock_of_call(table, trajectory, index)
            taken = None if same(taken.table, table) else taken
        else:
            now = read_now(suite, outline)
            if now is None:
                raise ValueError("this case has errors: correct them first")
            taken = expectation_of_call(now.case, settings_of(now.suite, now.case), table, trajectory, index)
        if taken is not None:
            taken = replace(taken, table=table_without_secrets(taken.table, table, self._app.program.secrets))
            document = suite.document.with_case(outline.index, taken.table)
            screen.open_suites.change(suite, document, taken.said, case=outline.key)
        return taken, one_line(outline.name)


def show_held(screen: MainScreen) -> None:
    """Show where the run is held, and follow it from there: whoever steps wants to see where to."""
    if "run" not in screen.panes_in_sight:
        screen.bring("run")
    screen.run_pane.run_list.follow()


def type_in(screen: MainScreen, kind: HeldKind) -> None:
    """Let something be typed for the run shown, where it is held."""
    from workbench.tui.stepping.held_text import text_for

    run = screen.run_shown
    if run is None:
        return
    held = text_for(run, kind)
    if (why := held.too_large) is not None:
        screen.announce(f"{held.title}: {why}", "warned", GLYPHS.warned)
        return
    screen.go_to("run")
    screen.run_pane.type_in(held)


def edit_held(screen: MainScreen) -> None:
    """Let the arguments of the call be changed before which the run shown is held, or the result after which."""
    run = screen.run_shown
    if run is not None and run.paused is not None:
        type_in(screen, "arguments" if run.paused.at == "call" else "result")


async def keep_typed(app: Workbench, screen: MainScreen) -> None:
    """Do to the run what is typed. Where that is impossible it is said why, and what is typed stays."""
    from workbench.tui.stepping.held_text import in_words

    editor = screen.run_pane.editor
    if editor is None or editor.is_sending:
        return
    held, text, is_error = editor.held, editor.text, editor.is_error
    wrong = [problem for problem in held.problems(text) if problem.severity == "error"]
    why_not = held.why_gone
    if why_not is None and wrong:
        why_not = in_words(wrong[0]).message
        editor.go_to_problem()
    elif why_not is None and held.says_the_same(text, is_error):
        screen.run_pane.end_typing(dropped=True)
        screen.announce("Nothing was changed")
        return
    elif why_not is None:
        hold = held.meant_for
        assert hold is not None, "it is gone otherwise"
        editor.is_sending = True
        try:
            why_not = await app.runner.do(held.run.run_id, held.command(text, is_error), hold)
        finally:
            editor.is_sending = False
    if why_not is not None:
        editor.refused = f"Not sent, and kept as it is: {why_not}"
        screen.announce(editor.refused, "warned", GLYPHS.warned)
    else:
        screen.run_pane.sent(editor)
        show_held(screen)
        screen.announce(held.said_once_sent, "passed", GLYPHS.passed)
