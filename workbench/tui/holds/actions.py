"""The actions on held runs: step, edit a call or a result, and make mocks and expectations from calls."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from workbench.engine.plan import AGENT_NOT_FORKED
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.suite.suite_text import SpliceError
from workbench.tui.kit.actions import (
    ERROR_KINDS,
    HOLD_PLACES,
    Action,
    MainActions,
    MainSituation,
    action,
    key_for,
    unless_read_only,
    while_held,
    why_no_run,
)
from workbench.tui.runs.actions import why_not_run
from workbench.tui.tree.selection import go_to_run

if TYPE_CHECKING:
    from workbench.authoring.from_calls import Addition
    from workbench.engine.checkpoint import Command
    from workbench.engine.stepper import StepTarget
    from workbench.tui.holds.held_editor import HeldEditor
    from workbench.tui.kit.actions import HeldKind
    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.shell.workbench import Workbench


_RUN_HAS_ENDED = "this run has ended; ← and → show the runs that are still under way"


def _step(situation: MainSituation) -> str | None:
    if situation.shown == "a run":
        return None
    if situation.case_running:
        return situation.other_held_run or _RUN_HAS_ENDED
    return why_not_run(situation)


def _continue(situation: MainSituation) -> str | None:
    if situation.held:
        return None
    if situation.shown == "a run":
        return situation.other_held_run or f"the run is not held: {key_for('step')} holds it at its next stop"
    if situation.other_held_run or situation.case_running:
        return situation.other_held_run or _RUN_HAS_ENDED
    return f"this case is not running; {key_for('run.case')} runs it to the first breakpoint"


def _go(situation: MainSituation) -> str | None:
    steps = unless_read_only(f"; {key_for('step')} steps through a case")
    if situation.held_runs:
        return None
    return f"no run is held{steps}"


def _mock(situation: MainSituation) -> str | None:
    if situation.shown == "nothing":
        return why_no_run(situation)
    return situation.why_not_mockable


def _expect(situation: MainSituation) -> str | None:
    if situation.shown == "nothing":
        return why_no_run(situation)
    return situation.why_not_expectable


_needs_hold = while_held(HOLD_PLACES, "")
_answer = while_held(
    ("call", "question", "user"), "a call can be answered before it is made, and a server while it asks", to_call=True
)
_skip = while_held(
    ("call", "question"), "a call can be skipped before it is made, and a server refused while it asks", to_call=True
)
_needs_round = while_held(
    ("call", "result", "user"), "a round can be asked again before one of its calls, or after a result"
)


def _again(situation: MainSituation) -> str | None:
    # An agent cannot be asked again for an answer. Only the user's message can be asked for again.
    if situation.by_agent and situation.held in ("call", "result"):
        from workbench.engine.checkpoint import AGENT_NOT_REPEATABLE

        return AGENT_NOT_REPEATABLE
    if situation.user_is_scripted and situation.held == "user":
        from workbench.engine.checkpoint import SCRIPT_NOT_REPEATABLE

        return SCRIPT_NOT_REPEATABLE
    return _needs_round(situation)


def _back(situation: MainSituation) -> str | None:
    if situation.by_agent and situation.held is not None:
        return AGENT_NOT_FORKED
    if situation.first_hold:
        return "this is the first place where the run was held"
    return _needs_hold(situation)


def _error(situation: MainSituation) -> str | None:
    if situation.typing in ERROR_KINDS:
        return None
    return "this is for results that are typed while a run is held"


class StepActions(MainActions):
    """Steps through the displayed run, and edits the run while it is held."""

    GROUP = "Step by step"

    def __init__(self, app: Workbench) -> None:
        super().__init__(app)
        self._noticed_run: RunRecord | None = None
        """The finished run with a notice that the next step starts a new run."""

    def handle(self, action_id: str) -> bool:
        """Perform an action that has a different meaning while a run is held. Return `False` for any other action.

        While the user types a text for the run, saving, undo and redo concern that text. While a run is held, the key
        that edits the case edits the held call."""
        run, typed = self.app.selection.run, None
        if self.app.main.run_pane.typing is not None:
            typed = self.app.main.run_pane.editor
        if action_id == "edit" and self.app.main.pane == "run" and run is not None and run.is_held:
            self._edit_held(run)
        elif typed is None:
            return False
        elif action_id == "save":
            self.app.work(self._keep_typed(typed), "step")
        elif action_id in ("edit.undo", "edit.redo"):
            typed.undo(is_redo=action_id == "edit.redo")
        elif action_id == "toml.outside":
            self._edit_outside(typed)
        else:
            return False
        return True

    @action(
        "s",
        "Run step by step; while it runs or is held, go to the next stop",
        name="step",
        label="step",
        needs=_step,
        changes=True,
        words="debug debugger pause",
    )
    def step(self) -> None:
        """Let the displayed run go to its next stop. If no run is active, run the case step by step."""
        run, row = self.app.selection.run, self.app.selection.row
        if run is not None and run.result is None:
            self._go_on("stop")
        elif run is not None and run.was_held and not run.recorded and run is not self._noticed_run:
            # Stepping starts a new run, which replaces the displayed run and the user's edits. Therefore the key must
            # be pressed twice.
            self._noticed_run = run
            self.app.announce(
                f"This run is finished: press {key_for('step')} again to step through the case from its start",
                "warned",
                GLYPHS.warned,
            )
        elif row is not None:
            self.app.services.starter.run_soon(self.app.selection.runnable_below(row), until="stop")

    @action(
        "c",
        "Continue to the next breakpoint, or to the end",
        name="step.continue",
        label="continue",
        needs=_continue,
        changes=True,
    )
    def go_on(self) -> None:
        self._go_on("end")

    @action(
        "}",
        "Continue to the next round",
        name="step.round",
        scope="run",
        label="round",
        needs=_needs_hold,
        changes=True,
    )
    def next_round(self) -> None:
        self._go_on("round")

    def _go_on(self, until: StepTarget) -> None:
        if (run := self.app.selection.run) is not None:
            self._show_held()
            self.app.work(self._continue_run(run, until, run.hold), group="step")

    async def _continue_run(self, run: RunRecord, until: StepTarget, hold: int | None) -> None:
        # The engine gets the number of the displayed stop. If the run is at another stop by now, the engine refuses to
        # continue, because the user has not seen that stop.
        unsent = self.app.main.run_pane.has_unsent(run)
        why_not = await self.app.services.runner.continue_run(run.run_id, until, hold)
        if why_not is not None:
            self.app.announce(f"Nothing was done: {why_not}", "warned", GLYPHS.warned)
        elif hold is None and not run.is_held and run.result is None:
            self.app.announce(f"{run.case_name} is held at its next stop")
        elif unsent:
            text = "The run continues without your text; the same key shows it again"
            self.app.announce(text, "warned", GLYPHS.warned)

    @action(
        "{",
        "Go back to the previous stop",
        name="step.back",
        scope="run",
        label="back",
        needs=_back,
        changes=True,
    )
    def back(self) -> None:
        if (run := self.app.selection.run) is not None and run.holds_before:
            self._show_held()
            self.app.work(self._go_back(run), group="start")

    async def _go_back(self, run: RunRecord) -> None:
        from workbench.show.views.trajectory import hold_text
        from workbench.tui.runs.fork_draft import StepBack

        unsent = self.app.main.run_pane.has_unsent(run)
        # The state at the earlier stop is computed from the whole trajectory, which may take long, so a thread does it.
        back = await asyncio.to_thread(StepBack.of, run)
        why_not = await self.app.services.starter.step_back(back)
        if why_not is not None:
            self.app.announce(f"No step back: {why_not}", "warned", GLYPHS.warned)
            return
        tool = run.view.tool_of(back.target_hold.call_id)
        hold = hold_text(back.target_hold, one_line(tool) if tool is not None else None)
        if unsent:
            self.app.announce(f"Back {hold}, without your text", "warned", GLYPHS.fork)
        else:
            self.app.announce(f"Back {hold}, in a fork, which counts for no case", "text", GLYPHS.fork)

    @action("H", "Go to the next held run", name="step.held", label="held run", needs=_go)
    def go_to_held(self) -> None:
        held, shown = self.app.selection.book.held_runs, self.app.selection.run
        wanted = held[0]
        for run, following in pairwise(held):
            if run is shown:
                wanted = following
        go_to_run(self.app.selection, self.app.main, self.app, wanted)
        self._show_held()

    @action(
        "D",
        "Skip the call, or decline its server",
        name="step.skip",
        scope="run",
        label="skip",
        needs=_skip,
        changes=True,
    )
    def skip(self) -> None:
        """Skip the held call, and tell the model so. If a server asks the user, decline its request instead."""
        from workbench.engine.checkpoint import AnswerQuestion, SkipCall

        run, tool = self.app.selection.run, None
        if run is not None and run.paused is not None:
            if (asked := run.paused.asked) is not None:
                self._do(AnswerQuestion("decline"), f"The request of {one_line(asked.server)} is declined")
                return
            tool = run.view.tool_of(run.paused.call_id)
        self._do(SkipCall(), f"{one_line(tool or 'The call')} is skipped, and the model is informed")

    @action(
        "L",
        "Ask again with the same request",
        name="step.again",
        scope="run",
        label="retry",
        needs=_again,
        changes=True,
    )
    def ask_again(self) -> None:
        from workbench.engine.checkpoint import Regenerate

        done = "The answer is superseded, and the same request is sent again"
        run = self.app.selection.run
        if run is not None and run.paused is not None and run.paused.at == "user":
            done = "The model that plays the user is asked for another message"
        self._do(Regenerate(), done)

    def _do(self, command: Command, success_text: str) -> None:
        async def do(run: RunRecord, hold: int) -> None:
            why_not = await self.app.services.runner.apply_command(run.run_id, command, hold)
            if why_not is None:
                self.app.announce(success_text)
            else:
                self.app.announce(f"Nothing was done: {why_not}", "warned", GLYPHS.warned)

        if (run := self.app.selection.run) is not None and (hold := run.hold) is not None:
            self._show_held()
            self.app.work(do(run, hold), group="step")

    @action(
        "f3",
        "Mark the typed result as a tool error, or not",
        name="step.error",
        needs=_error,
        changes=True,
        listed=False,
    )
    def switch_error(self) -> None:
        if self.app.main.run_pane.editor is not None:
            self.app.main.run_pane.editor.switch_error()

    @action(
        "M",
        "Make the call a mock of the case",
        name="step.mock",
        scope="run",
        label="mock",
        needs=_mock,
        changes=True,
        words="fake stub",
    )
    def mock(self) -> None:
        self._add_selected(mock=True)

    @action(
        "C",
        "Make the call an expected call of the case",
        name="step.expect",
        scope="run",
        label="expect",
        needs=_expect,
        changes=True,
        words="assert",
    )
    def expect(self) -> None:
        self._add_selected(mock=False)

    def _add_selected(self, *, mock: bool) -> None:
        try:
            taken, name = self._add_to_case(mock=mock)
        except (ValueError, SpliceError, IndexError) as error:
            self.app.announce(f"Nothing was changed: {error}", "warned", GLYPHS.warned)
            return
        if taken is None:
            self.app.announce(f"{name} already says all of that")
        else:
            moved = self.app.open_suites.moved_grades_text
            text = f"{taken.summary}, in {name}; {key_for('edit.undo')} undoes it, {key_for('save')} saves{moved}"
            self.app.announce(text, "passed", GLYPHS.passed)

    def _add_to_case(self, *, mock: bool) -> tuple[Addition | None, str]:
        """Add a mock or an expectation of the selected call to its case.

        Returns the addition (`None` if the case already has it) and the name of the case.

        Raises:
            ValueError, SpliceError, IndexError: The call cannot be added. The message says why."""
        from workbench.authoring.case_list import current_case
        from workbench.authoring.from_calls import expectation_of_call, index_of_call, mock_of_call
        from workbench.authoring.proposal import table_without_secrets
        from workbench.suite.settings import settings_of
        from workbench.suite.toml_equality import toml_equal

        suite, run, row = self.app.selection.suite, self.app.selection.run, self.app.selection.row
        call_id = self.app.main.run_pane.call_meant
        if suite is None or run is None or row is None or row.case is None or call_id is None:
            raise ValueError("put the cursor on a call or its result")
        outline, trajectory = row.case, run.trajectory
        table, index = suite.document.table(outline.index), index_of_call(run.shown_trajectory, call_id)
        taken: Addition | None
        if mock:
            taken = mock_of_call(table, trajectory, index)
            if toml_equal(taken.table, table):
                taken = None
        else:
            now = current_case(suite, outline)
            if now is None:
                raise ValueError("this case has errors: correct them first")
            taken = expectation_of_call(now.case, settings_of(now.suite, now.case), table, trajectory, index)
        # Calls may contain secrets, and the suite may be shared.
        if taken is not None:
            taken = replace(taken, table=table_without_secrets(taken.table, table, self.app.program.secrets))
            document = suite.document.with_case(outline.index, taken.table)
            self.app.open_suites.change(suite, document, taken.summary, case=outline.key)
        return taken, one_line(outline.name)

    def _show_held(self) -> None:
        if "run" not in self.app.main.visible_panes:
            self.app.main.show_run_pane()
        self.app.main.run_pane.follow_run()

    @action(
        "i",
        "Answer the call, its server, or the model in place of the user, by hand",
        name="step.answer",
        scope="run",
        label="answer",
        needs=_answer,
        changes=True,
    )
    def answer(self) -> None:
        """Let the user type a tool's answer, a message in place of the user's, or a reply to a tool's server.

        If the server asks the user to open an address, nothing is typed. The server is told that the user opens the
        address."""
        from workbench.engine.checkpoint import AnswerQuestion

        run = self.app.selection.run
        asked = run.paused.asked if run is not None and run.paused is not None else None
        if run is not None and run.paused is not None and run.paused.at == "user":
            self._type_in("speech")
        elif asked is None:
            self._type_in("answer")
        elif "url" in asked.request:
            self._do(AnswerQuestion("accept"), f"{one_line(asked.server)} is told that you open the address")
        else:
            self._type_in("reply")

    @action(
        "I",
        "Insert a message to the model",
        name="step.say",
        scope="run",
        label="say",
        needs=_needs_hold,
        changes=True,
        words="inject",
    )
    def say(self) -> None:
        self._type_in("message")

    def _type_in(self, kind: HeldKind) -> None:
        from workbench.tui.holds.held_editor import text_for

        run = self.app.selection.run
        if run is None:
            return
        held = text_for(run, kind)
        if (why := held.too_large) is not None:
            self.app.announce(f"{held.title}: {why}", "warned", GLYPHS.warned)
            return
        self.app.main.go_to("run")
        self.app.main.run_pane.type_in(held)

    def _edit_held(self, run: RunRecord) -> None:
        kinds: dict[str, HeldKind] = {"call": "arguments", "user": "said"}
        if run.paused is not None:
            self._type_in(kinds.get(run.paused.at, "result"))

    def _edit_outside(self, typed: HeldEditor) -> None:
        line = typed.editor.typed.cursor[0] + 1
        if (text := self.app.editor.changed(typed.text, typed.held_text.file_name, line)) is not None:
            # Editors such as vim add a line end to the text, which is removed here.
            typed.set_text(text if typed.text.endswith("\n") else text.removesuffix("\n"))

    async def _keep_typed(self, editor: HeldEditor) -> None:
        from workbench.tui.holds.held_editor import in_words

        # The key may be pressed again while the text is being sent.
        if editor.is_sending:
            return
        held, text, is_error = editor.held_text, editor.text, editor.is_error
        wrong = [problem for problem in held.problems(text) if problem.severity == "error"]
        # Give the most important reason why the text is not sent: the run has gone on, the text has an error, or
        # nothing was changed.
        why_not = held.why_not_sendable
        if why_not is None and wrong:
            why_not = in_words(wrong[0]).message
            editor.go_to_problem()
        elif why_not is None and held.is_unchanged(text, is_error):
            self.app.main.run_pane.end_typing(dropped=True)
            self.app.announce("Nothing was changed")
            return
        elif why_not is None:
            hold = held.target_hold
            assert hold is not None, "`why_not_sendable` is given for a text without a hold"
            editor.is_sending = True
            try:
                why_not = await self.app.services.runner.apply_command(
                    held.run.run_id, held.command(text, is_error), hold
                )
            finally:
                editor.is_sending = False
        if why_not is not None:
            editor.refused = f"Not sent, but kept: {why_not}"
            self.app.announce(editor.refused, "warned", GLYPHS.warned)
        else:
            self.app.main.run_pane.sent(editor)
            self._show_held()
            self.app.announce(held.sent_notice, "passed", GLYPHS.passed)


TYPED_TEXT_ACTIONS = frozenset({"save", "edit.undo", "edit.redo", "toml.outside"})
"""The ids of actions that apply to the text typed for a held run, not to the suite."""

TYPING: tuple[Action, ...] = (
    Action("save", "Keep what is typed", ("ctrl+s",), "run", "keep"),
    Action("step.select_all", "Select all", ("f7",), "run", "select all"),
    Action("step.end", "Close, and keep what is typed for later", ("escape",), "run", "close"),
    Action("step.error", "Mark it as a tool error, or not", ("f3",), "run", "tool error"),
    Action("toml.outside", "Your editor", ("f4",), "run", "your editor"),
)
"""Entries of the key bar while the user types a text for a held run."""
