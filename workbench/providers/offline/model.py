"""The offline model: a baseline that calls tools by matching words. It is deterministic and not a language model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext

from workbench.providers.model import AnswerFinished, ModelRequest
from workbench.providers.offline.decisions import Decision, decide
from workbench.providers.offline.ranking import ToolIndex
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
)

_WORD_WITH_BLANKS = re.compile(r"\s*\S+\s*|\s+")
_FRAGMENT_CHARACTERS = 12


class OfflineModel:
    """A model without a network, a key or randomness: the same request always gives the same answer.

    `pace_ms` is the pause between two pieces of an answer, so that it streams at a readable speed; 0 for none. It
    counts no tokens, because it has none.
    """

    name = "offline"
    seed = None
    notices = ()

    def __init__(self, *, pace_ms: float = 0) -> None:
        self._pace_s = max(0.0, pace_ms) / 1000
        self._index = ToolIndex(())

    async def start(self) -> None:
        """Do nothing: the model needs no preparation."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Let every request begin at once."""
        return nullcontext()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        """Answer a request piece by piece: how the tools ranked, then calls or text."""
        decision = self.decide(request)
        for piece in _pieces(decision, request):
            yield piece
            await asyncio.sleep(self._pace_s)
        yield AnswerFinished("tool calls" if decision.calls else "answered")

    def decide(self, request: ModelRequest) -> Decision:
        """Return what to do about a request."""
        if self._index.tools != request.tools:
            self._index = ToolIndex(request.tools)
        return decide(request.messages, self._index)


def _pieces(decision: Decision, request: ModelRequest) -> Iterator[ModelEvent]:
    yield ReasoningDelta(request.round, decision.reasoning)
    for word in _WORD_WITH_BLANKS.findall(decision.answer):
        yield TextDelta(request.round, word)
    for number, call in enumerate(decision.calls, start=request.calls_before + 1):
        call_id = f"offline-{number}"
        yield CallStarted(request.round, call_id, call.tool)
        for start in range(0, len(call.text), _FRAGMENT_CHARACTERS):
            yield CallArgumentsDelta(call_id, call.text[start : start + _FRAGMENT_CHARACTERS])
        yield CallFinished(call_id, call.arguments)
