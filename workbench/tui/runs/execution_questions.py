"""What runs ask while they are held: put to the user one at a time, and taken back when nobody waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from workbench.reports.visible import one_line
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.run_book.record import Question

if TYPE_CHECKING:
    from workbench.tui.runs.execution_dialog import ExecutionAnswer
    from workbench.tui.shell.workbench import Workbench


class Questions:
    """Shows the oldest open question once nothing else has the keyboard: a key meant for another dialog, or for the
    filter, must not answer it."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._put_off = 0

    @contextmanager
    def put_off(self) -> Iterator[None]:
        """Show none meanwhile: what the app itself is about to ask must not come up over one."""
        self._put_off += 1
        try:
            yield
        finally:
            self._put_off -= 1
        self.look()

    def look(self) -> None:
        """Show the next question, or take back the one that is shown."""
        if not self._app.main.book.questions and self._app.screen is self._app.main:
            return
        from workbench.tui.runs.execution_dialog import ExecutionScreen

        asked, screen = self._app.main.book.questions, self._app.screen
        if isinstance(screen, ExecutionScreen):
            if screen.question not in asked:
                screen.dismiss(None)
        elif self._may_ask and not self._put_off and asked:
            question = asked[0]
            self._app.push_screen(
                ExecutionScreen(question, self._app.program.secrets), lambda answer: self._answered(question, answer)
            )

    @property
    def _may_ask(self) -> bool:
        main, screen = self._app.main, self._app.screen
        return not main.filter_box.typing if screen is main else getattr(screen, "takes_questions", False)

    def withdraw(self) -> None:
        """Ask nothing of what is open: every run is being stopped."""
        from workbench.tui.runs.execution_dialog import ExecutionScreen

        book = self._app.main.book
        for question in book.questions:
            book.answered(question)
        if isinstance(screen := self._app.screen, ExecutionScreen):
            screen.dismiss("stop")

    def _answered(self, question: Question, answer: ExecutionAnswer | None) -> None:
        main, run = self._app.main, question.run
        if answer == "stop" and question not in main.book.questions:
            return  # all were withdrawn, and whoever did that said so
        if answer is None or question not in main.book.questions:
            self._app.announce(f"{run.case_name} asks no more", "text", GLYPHS.stopped)
            return
        main.book.answered(question)
        if answer == "stop":
            self._app.runner.stop([run.run_id])
            self._app.announce(f"Stopping {run.case_name}; what is done stays", "text", GLYPHS.stopped)
            return
        self._app.runner.allow(run.run_id, question.asked.call.id, answer == "yes")
        said = "is executed" if answer == "yes" else "is not executed"
        self._app.announce(f"{one_line(question.asked.tool.name)} {said} in {run.case_name}")
