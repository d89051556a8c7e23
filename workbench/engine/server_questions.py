"""Replies to the requests that a server sends to its client during a call, and records them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from workbench.engine.checkpoint import question_event
from workbench.engine.recorder import Recorder
from workbench.tools.answer import ToolsError
from workbench.tools.case_answers import Answers
from workbench.tools.mocks import AskJudge
from workbench.tools.questions import ServerQuestion, ServerReply
from workbench.trajectory.events import ToolCall

Review = Callable[[ServerQuestion, ServerReply], Awaitable[ServerReply]]
"""A function that gets the reply of the suite's answers and returns the reply to send. A person may change the
reply."""


async def keep_reply(question: ServerQuestion, reply: ServerReply) -> ServerReply:
    """Return the reply unchanged, for runs that no person controls."""
    return reply


class CallQuestions:
    """Replies to a server's requests during one call, and records the requests and replies.

    An instance is a function that returns the reply to a request, as `AskRun` requires."""

    def __init__(
        self,
        call: ToolCall,
        answers: Answers,
        recorder: Recorder,
        judge: AskJudge | None,
        review: Review = keep_reply,
    ) -> None:
        self._call = call
        self._answers = answers
        self._recorder = recorder
        self._judge = judge
        self._review = review
        self._problem: str | None = None
        # A server may send several requests at a time, but a person answers them one after another.
        self._one = asyncio.Lock()

    async def __call__(self, question: ServerQuestion) -> ServerReply:
        async with self._one:
            return await self._replied(question)

    async def _replied(self, question: ServerQuestion) -> ServerReply:
        reply = await self._answers.reply(question, self._call.tool, self._judge)
        if not question.undeclared:
            reply = await self._review(question, reply)
        if reply.problem is not None and self._problem is None:
            self._problem = (
                f"server {question.server!r} asked in a call of {self._call.tool}, and the answer does not fit, so it "
                f"was not sent: {reply.problem}"
            )
        self._recorder.emit(question_event(self._call, question, reply))
        return reply

    def check(self) -> None:
        """Raise ToolsError if an answer that the suite defines did not fit a request of the server."""
        # Without the error, the run would continue as if its user had declined the request, although the suite answers
        # it.
        if self._problem is not None:
            raise ToolsError(self._problem)
