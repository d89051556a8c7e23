"""Permission questions of runs. They are shown one at a time and withdrawn when no longer needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from workbench.config.secrets import Secrets
from workbench.engine.events import CostLimitReached
from workbench.numerals import cost_text, counted
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.tui.run_book.book import RunBook
from workbench.tui.run_book.record import Question
from workbench.tui.runs.runner import Runner

if TYPE_CHECKING:
    from workbench.engine.executor import PermissionAnswer
    from workbench.tui.runs.dialogs import CostLimitAnswer, ExecutionAnswer
    from workbench.tui.shell.workbench import Workbench


_ToolKey: TypeAlias = tuple[str, Path, str | None, str]
"""The batch, the suite, the server and the name of a tool."""


def _tool(question: Question) -> _ToolKey:
    run, tool = question.run, question.permission.tool
    return run.batch, run.path, tool.server, tool.name


class Questions:
    """The open permission questions. The oldest question is shown once no dialog or filter has the focus.

    Otherwise, a key meant for the dialog or the filter could answer the question."""

    def __init__(
        self, app: Workbench, book: RunBook, runner: Runner, secrets: Secrets, may_ask: Callable[[], bool]
    ) -> None:
        self._app = app
        self._book = book
        self._runner = runner
        self._secrets = secrets
        self._may_ask = may_ask
        """Returns whether a question may appear now. A key for a dialog or an input must not answer the question."""
        self._suspensions = 0
        self._allowed: set[_ToolKey] = set()
        """Tools allowed by the user for all runs of a batch."""

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Suspend questions while another dialog is open, so no question appears below the dialog."""
        self._suspensions += 1
        try:
            yield
        finally:
            self._suspensions -= 1
        self.show_pending()

    def show_pending(self) -> None:
        """Show the next question, or withdraw the displayed question."""
        if not self._book.questions and not self._book.limits_reached and self._app.shows_main:
            return
        for question in self._book.questions:
            if _tool(question) in self._allowed:
                self._book.remove_question(question)
                self._runner.allow(question.run.run_id, question.permission.call.id, "run")
        # Lazy import: most runs ask nothing.
        from workbench.tui.runs.dialogs import CostLimitScreen, ExecutionScreen

        asked, screen, limits = self._book.questions, self._app.top_screen, self._book.limits_reached
        if isinstance(screen, CostLimitScreen):
            if screen.reached not in limits:
                screen.dismiss(None)
        elif isinstance(screen, ExecutionScreen):
            if screen.question not in asked:
                screen.dismiss(None)
        elif self._may_ask() and not self._suspensions and asked:
            question = asked[0]
            self._app.show(ExecutionScreen(question, self._secrets), lambda answer: self._answered(question, answer))
        elif self._may_ask() and not self._suspensions and limits:
            reached = limits[0]
            limit_screen = CostLimitScreen(reached, self._book.waiting_in(reached.batch))
            self._app.show(limit_screen, lambda answer: self._limit_answered(reached, answer))

    def withdraw(self) -> None:
        """Withdraw all questions, because all runs are being stopped."""
        from workbench.tui.runs.dialogs import CostLimitScreen, ExecutionScreen

        # The questions are removed from the book first, because a closing dialog looks for the next question.
        for reached in self._book.limits_reached:
            self._book.limit_answered(reached.batch)
        if isinstance(self._app.top_screen, CostLimitScreen):
            self._app.top_screen.dismiss(None)
        for question in self._book.questions:
            self._book.remove_question(question)
        if isinstance(screen := self._app.top_screen, ExecutionScreen):
            screen.dismiss("stop")

    def _limit_answered(self, reached: CostLimitReached, answer: CostLimitAnswer | None) -> None:
        if reached not in self._book.limits_reached:
            # The question was withdrawn meanwhile.
            return
        self._book.limit_answered(reached.batch)
        raised = {"more": reached.limit_usd * 2, "all": math.inf}.get(answer or "stop")
        self._runner.raise_cost_limit(reached.batch, raised)
        if raised is None:
            left = counted(self._book.waiting_in(reached.batch), "run")
            text = f"{left} not made: cost limit of {cost_text(reached.limit_usd)}"
            self._app.announce(text, "warned", GLYPHS.stopped)
        elif raised == math.inf:
            self._app.announce("Continuing with no limit on cost")
        else:
            self._app.announce(f"Continuing with a cost limit of {cost_text(raised)}")

    def _answered(self, question: Question, answer: ExecutionAnswer | None) -> None:
        run = question.run
        if answer == "stop" and question not in self._book.questions:
            # All questions were withdrawn, which was already announced.
            return
        if answer is None or question not in self._book.questions:
            self._app.announce(f"{run.case_name} no longer asks", "text", GLYPHS.stopped)
            return
        self._book.remove_question(question)
        if answer == "stop":
            self._runner.stop([run.run_id])
            self._app.announce(f"Stopping {run.case_name}; what is finished is kept", "text", GLYPHS.stopped)
            return
        # The engine cannot permit a tool for a whole batch. `show_pending` gives the same answer to the questions of
        # the batch's other runs.
        leave: PermissionAnswer = "run"
        if answer != "batch":
            leave = answer
        self._runner.allow(run.run_id, question.permission.call.id, leave)
        tool = one_line(question.permission.tool.name)
        if answer == "batch":
            self._allowed.add(_tool(question))
            self._app.announce(f"{tool} is executed in all runs of this batch of {one_line(run.path.name)}")
            self.show_pending()
        else:
            text = {"call": "is executed this once", "run": "is executed", "no": "is not executed"}[leave]
            self._app.announce(f"{tool} {text} in {run.case_name}")
