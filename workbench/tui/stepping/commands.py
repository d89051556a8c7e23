"""Stepping through runs: continuing, editing at a hold, and making mocks and expectations from calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from workbench.authoring.case_list import read_now
from workbench.config.secrets import Secrets
from workbench.engine.checkpoint import Regenerate, SkipCall
from workbench.reports.by_hand import hold_text
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.suite.sameness import same
from workbench.suite.settings import settings_of
from workbench.suite.splice import SpliceError
from workbench.tui.kit.actions import key_for
from workbench.tui.kit.outside_editing import OutsideEditing
from workbench.tui.kit.stage import Panes, Stage
from workbench.tui.runs.commands import RunCases
from workbench.tui.runs.runner import Runner
from workbench.tui.stepping.held_text import in_words, text_for
from workbench.tui.tree.selection import Selection, go_to_run

if TYPE_CHECKING:
    from workbench.authoring.from_calls import Addition
    from workbench.engine.checkpoint import Command
    from workbench.engine.stepper import Until
    from workbench.tui.kit.actions import HeldKind
    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.runs.fork_draft import StepBack
    from workbench.tui.stepping.held_editor import HeldEditor
    from workbench.tui.stepping.held_text import HeldText


class HeldPane(Protocol):
    """The part of the run pane that concerns held runs."""

    @property
    def editor(self) -> HeldEditor | None:
        """The editor of text for a held run."""
        ...

    @property
    def typing(self) -> HeldKind | None:
        """The kind of text being typed, while the editor has the focus."""
        ...

    @property
    def call_meant(self) -> str | None:
        """The id of the call under the cursor, otherwise of the one where the run is held."""
        ...

    def type_in(self, held: HeldText) -> None:
        """Open the editor with the unsent text, if any."""
        ...

    def end_typing(self, *, dropped: bool = False) -> None:
        """Close the editor. The text is stored for the next time unless `dropped`."""
        ...

    def has_unsent(self, run: RunRecord) -> bool:
        """Return whether there is unsent text for the place where a run is held."""
        ...

    def sent(self, editor: HeldEditor) -> None:
        """Close an editor whose text was applied."""
        ...

    def follow_run(self) -> None:
        """Show the end of the run as it grows."""
        ...


class SteppingCommands:
    """Steps through the displayed run, and edits it where it is held."""

    def __init__(
        self,
        stage: Stage,
        selection: Selection,
        panes: Panes,
        pane: HeldPane,
        runner: Runner,
        run_cases: RunCases,
        step_back: Callable[[StepBack], Awaitable[str | None]],
        editor: OutsideEditing,
        secrets: Secrets,
    ) -> None:
        self._stage = stage
        self._selection = selection
        self._panes = panes
        self._pane = pane
        self._runner = runner
        self._run_cases = run_cases
        self._step_back = step_back
        self._editor = editor
        self._secrets = secrets
        self._over: RunRecord | None = None
        """The run that was announced as finished."""
        self.methods: dict[str, Callable[[], object]] = {
            "step": self._step,
            "step.continue": partial(self._go_on, "end"),
            "step.round": partial(self._go_on, "round"),
            "step.back": self._back,
            "step.held": self._go_to_held,
            "step.answer": partial(self._type_in, "answer"),
            "step.say": partial(self._type_in, "message"),
            "step.skip": self._skip,
            "step.again": self._ask_again,
            "step.error": self._switch_error,
            "step.mock": partial(self._take, mock=True),
            "step.expect": partial(self._take, mock=False),
        }

    def take(self, action_id: str) -> bool:
        """Handle a key for the text being typed for a held run, or for the displayed held run. Returns whether the key
        applies there, instead of having its usual meaning."""
        run, typed = self._selection.run, self._pane.editor if self._pane.typing is not None else None
        if action_id == "edit" and self._panes.pane == "run" and run is not None and run.held:
            self._edit_held(run)
        elif typed is None:
            return False
        elif action_id == "save":
            self._stage.work(self._keep_typed(typed), "step")
        elif action_id in ("edit.undo", "edit.redo"):
            typed.undo(again=action_id == "edit.redo")
        elif action_id == "toml.outside":
            self._edit_outside(typed)
        else:
            return False
        return True

    # Continuing

    def _step(self) -> None:
        run, row = self._selection.run, self._selection.row
        if run is not None and run.result is None:
            self._go_on("stop")
        elif run is not None and run.was_held and not run.recorded and run is not self._over:
            self._over = run  # a new run would replace its edits and forks
            self._stage.announce(
                f"This run is finished: press {key_for('step')} again to step through the case anew",
                "warned",
                GLYPHS.warned,
            )
        elif row is not None:
            self._run_cases(self._selection.runnable_below(row), until="stop")

    def _go_on(self, until: Until) -> None:
        if (run := self._selection.run) is not None:
            self._show_held()
            self._stage.work(self._let_go(run, until, run.hold), group="step")

    async def _let_go(self, run: RunRecord, until: Until, hold: int | None) -> None:
        unsent = self._pane.has_unsent(run)
        why_not = await self._runner.go_on(run.run_id, until, hold)
        if why_not is not None:
            self._stage.announce(f"Nothing was done: {why_not}", "warned", GLYPHS.warned)
        elif hold is None and not run.held and run.result is None:
            self._stage.announce(f"{run.case_name} is held at its next stop")
        elif unsent:
            text = "The run continues without your text; the same key shows it again"
            self._stage.announce(text, "warned", GLYPHS.warned)

    def _back(self) -> None:
        if (run := self._selection.run) is not None and run.holds_before:
            self._show_held()
            self._stage.work(self._go_back(run), group="start")

    async def _go_back(self, run: RunRecord) -> None:
        from workbench.tui.runs.fork_draft import StepBack

        unsent = self._pane.has_unsent(run)
        back = await asyncio.to_thread(StepBack.of, run)
        why_not = await self._step_back(back)
        if why_not is not None:
            self._stage.announce(f"No step back: {why_not}", "warned", GLYPHS.warned)
            return
        tool = run.view.tool_of(back.to.call_id)
        where = hold_text(back.to, one_line(tool) if tool is not None else None)
        rest = "without your text" if unsent else "in a fork, which counts for no case"
        self._stage.announce(f"Back {where}, {rest}", "warned" if unsent else "text", GLYPHS.fork)

    def _go_to_held(self) -> None:
        held, shown = self._selection.book.held_runs, self._selection.run
        at = next((at for at, run in enumerate(held) if run is shown), -1)
        go_to_run(self._selection, self._panes, self._stage, held[(at + 1) % len(held)])
        self._show_held()

    # Editing

    def _skip(self) -> None:
        run = self._selection.run
        tool = run.view.tool_of(run.paused.call_id) if run is not None and run.paused is not None else None
        self._do(SkipCall(), f"{one_line(tool or 'The call')} is skipped, and the model is informed")

    def _ask_again(self) -> None:
        self._do(Regenerate(), "The answer is superseded, and the same request is sent again")

    def _do(self, command: Command, done: str) -> None:
        async def do(run: RunRecord, hold: int) -> None:
            why_not = await self._runner.do(run.run_id, command, hold)
            if why_not is None:
                self._stage.announce(done)
            else:
                self._stage.announce(f"Nothing was done: {why_not}", "warned", GLYPHS.warned)

        if (run := self._selection.run) is not None and (hold := run.hold) is not None:
            self._show_held()
            self._stage.work(do(run, hold), group="step")

    def _switch_error(self) -> None:
        if self._pane.editor is not None:
            self._pane.editor.switch_error()

    # Mocks and expectations

    def _take(self, *, mock: bool) -> None:
        try:
            taken, name = self._taken(mock=mock)
        except (ValueError, SpliceError, IndexError) as error:
            self._stage.announce(f"Nothing was changed: {error}", "warned", GLYPHS.warned)
            return
        if taken is None:
            self._stage.announce(f"{name} already says all of that")
        else:
            moved = self._selection.open_suites.and_moved
            text = f"{taken.summary}, in {name}; {key_for('edit.undo')} undoes it, {key_for('save')} saves{moved}"
            self._stage.announce(text, "passed", GLYPHS.passed)

    def _taken(self, *, mock: bool) -> tuple[Addition | None, str]:
        """Change the case. Returns what was added and the case's name. Raises ValueError, SpliceError or IndexError."""
        from workbench.authoring.from_calls import expectation_of_call, index_of_call, mock_of_call
        from workbench.authoring.proposal import table_without_secrets

        suite, run, row = self._selection.suite, self._selection.run, self._selection.row
        call_id = self._pane.call_meant
        if suite is None or run is None or row is None or row.case is None or call_id is None:
            raise ValueError("put the cursor on a call or its result")
        outline, trajectory = row.case, run.trajectory
        table, index = suite.document.table(outline.index), index_of_call(run.shown_trajectory, call_id)
        taken: Addition | None
        if mock:
            taken = mock_of_call(table, trajectory, index)
            taken = None if same(taken.table, table) else taken
        else:
            now = read_now(suite, outline)
            if now is None:
                raise ValueError("this case has errors: correct them first")
            taken = expectation_of_call(now.case, settings_of(now.suite, now.case), table, trajectory, index)
        if taken is not None:
            taken = replace(taken, table=table_without_secrets(taken.table, table, self._secrets))
            document = suite.document.with_case(outline.index, taken.table)
            self._selection.open_suites.change(suite, document, taken.summary, case=outline.key)
        return taken, one_line(outline.name)

    # Typing for a held run

    def _show_held(self) -> None:
        """Show where the run is held, and follow it from there."""
        if "run" not in self._panes.panes_in_sight:
            self._panes.bring("run")
        self._pane.follow_run()

    def _type_in(self, kind: HeldKind) -> None:
        """Open the editor for the displayed run, where it is held."""
        run = self._selection.run
        if run is None:
            return
        held = text_for(run, kind)
        if (why := held.too_large) is not None:
            self._stage.announce(f"{held.title}: {why}", "warned", GLYPHS.warned)
            return
        self._panes.go_to("run")
        self._pane.type_in(held)

    def _edit_held(self, run: RunRecord) -> None:
        """Edit the arguments of the call before which a run is held, or the result after which it is."""
        if run.paused is not None:
            self._type_in("arguments" if run.paused.at == "call" else "result")

    def _edit_outside(self, typed: HeldEditor) -> None:
        line = typed.editor.typed.cursor[0] + 1
        if (text := self._editor.changed(typed.text, typed.held.file_name, line)) is not None:
            # An editor adds a final line end that nobody typed.
            typed.take(text if typed.text.endswith("\n") else text.removesuffix("\n"))

    async def _keep_typed(self, editor: HeldEditor) -> None:
        """Apply the text to the run. If that fails, announce why; the text stays."""
        if editor.is_sending:
            return
        held, text, is_error = editor.held, editor.text, editor.is_error
        wrong = [problem for problem in held.problems(text) if problem.severity == "error"]
        why_not = held.why_gone
        if why_not is None and wrong:
            why_not = in_words(wrong[0]).message
            editor.go_to_problem()
        elif why_not is None and held.is_unchanged(text, is_error):
            self._pane.end_typing(dropped=True)
            self._stage.announce("Nothing was changed")
            return
        elif why_not is None:
            hold = held.meant_for
            assert hold is not None, "otherwise it is lost"
            editor.is_sending = True
            try:
                why_not = await self._runner.do(held.run.run_id, held.command(text, is_error), hold)
            finally:
                editor.is_sending = False
        if why_not is not None:
            editor.refused = f"Not sent, but kept: {why_not}"
            self._stage.announce(editor.refused, "warned", GLYPHS.warned)
        else:
            self._pane.sent(editor)
            self._show_held()
            self._stage.announce(held.sent_notice, "passed", GLYPHS.passed)
