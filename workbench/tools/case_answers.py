"""The replies that a suite and its cases define for the requests of servers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from workbench.checks.check import CheckContext
from workbench.checks.patterns import CheckError
from workbench.suite.server_model import Answer
from workbench.tools.mocks import AskJudge, condition_holds
from workbench.tools.python_code import in_thread
from workbench.tools.questions import UNANSWERED, ServerQuestion, ServerReply, problem_of_reply
from workbench.trajectory.events import ReplySource


class Answers:
    """The replies of one run to requests of servers. The case's replies precede the suite's replies."""

    def __init__(self, of_case: Sequence[Answer], of_suite: Sequence[Answer], context: CheckContext) -> None:
        self._context = context
        self._answers: list[tuple[Answer, ReplySource, str]] = []
        for number, answer in enumerate(of_case):
            self._answers.append((answer, "case", f"answers[{number}] of the case"))
        for number, answer in enumerate(of_suite):
            self._answers.append((answer, "suite", f"answers[{number}] of the suite"))

    async def reply(self, question: ServerQuestion, tool: str, judge: AskJudge | None = None) -> ServerReply:
        """Return the first defined reply that applies to a request during a call of `tool`.

        Returns `UNANSWERED` if none applies."""
        if question.undeclared:
            return UNANSWERED
        for answer, source, where in self._answers:
            if answer.to != question.kind or answer.tool not in (None, tool):
                continue
            try:
                if not await condition_holds(answer.when, {"message": question.message}, self._context, judge):
                    continue
            except CheckError as error:
                problem: str | None = f"its `message` cannot be checked: {error}"
            else:
                # Matching the patterns of the server's schema may take long, so a thread does it.
                reply = partial(problem_of_reply, question, answer.action, answer.content, answer.text)
                problem = await in_thread(reply, name="schema")
            if problem is not None:
                return ServerReply("decline", source, answer.content, answer.text, f"{where}: {problem}")
            return ServerReply(answer.action, source, answer.content, answer.text)
        return UNANSWERED
