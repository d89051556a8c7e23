"""What runs ask while they are held: put to the user one at a time, and taken back when nobody waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.reports.visible import one_line
from workbench.tui.glyphs import GLYPHS
from workbench.tui.screens.execution import ExecutionAnswer, ExecutionScreen
from workbench.tui.state.runs import Question

if TYPE_CHECKING:
    from workbench.tui.workbench import Workbench


class Questions:
    """Shows the oldest open question once nothing else has the keyboard: a key meant for another dialog, or for the
    filter, must not answer it."""

    def __init__(self, app: Workbench) -> None:
        self._app = app

    def look(self) -> None:
        """Show the next question, or take back the one that is shown."""
        main, asked = self._app.main, self._app.main.book.questions
        screen = self._app.screen
        if isinstance(screen, ExecutionScreen):
            if screen.question not in asked:
                screen.dismiss(None)
        elif screen is main and not main.filtering and asked:
            question = asked[0]
            self._app.push_screen(ExecutionScreen(question), lambda answer: self._answered(question, answer))

    def _answered(self, question: Question, answer: ExecutionAnswer | None) -> None:
        main, run = self._app.main, question.run
        if answer is None or question not in main.book.questions:
            main.announce(f"{run.case_name} asks no more: it has ended", "text", GLYPHS.stopped)
            return
        main.book.answered(question)
        self._app.runner.allow(run.run_id, question.asked.call.id, answer == "yes")
        said = "is executed" if answer == "yes" else "is not executed"
        main.announce(f"{one_line(question.asked.tool.name)} {said} in {run.case_name}")
