"""The conversation of one run: request by request, call by call, from its beginning or from where it was forked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from workbench.engine.asking import ask
from workbench.engine.conversation import (
    answer_message,
    conversation_after,
    messages_before,
    opening_messages,
    result_messages,
)
from workbench.engine.executing import Executor
from workbench.engine.fork import Fork, fork_refusal, replayed, system_prompt
from workbench.engine.holding import Holding
from workbench.engine.recorder import Recorder
from workbench.engine.retries import RetryPolicy
from workbench.engine.time_limit import TimeLimit
from workbench.engine.turns import Turn, turns_of
from workbench.providers.model import Model, ModelRequest
from workbench.suite.model import Case
from workbench.suite.settings import CaseSettings
from workbench.trajectory.events import RunFinished, StepStarted
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.trajectory import Round, Trajectory

StepFailed = Callable[[Trajectory, int], Awaitable[bool]]
"""Whether a step of a chain, counted from 1, failed in the run so far. Raises StepNotJudgedError."""


class StepNotJudgedError(Exception):
    """Whether a step failed cannot be found out; the message says which step, and why."""


@dataclass(frozen=True)
class Parts:
    """What a conversation is made with."""

    model: Model
    executor: Executor
    recorder: Recorder
    retries: RetryPolicy
    limit: TimeLimit
    holding: Holding
    step_failed: StepFailed


class Conversing:
    """One run between its start and its end."""

    def __init__(self, case: Case, settings: CaseSettings, parts: Parts, fork: Fork | None = None) -> None:
        self._case = case
        self._settings = settings
        self._parts = parts
        self._fork = fork
        self._turns = turns_of(case, settings.limits.max_rounds)
        self._messages = opening_messages(case)
        self._rounds = 0
        self._last: Round | None = None
        self._calls = 0

    async def to_the_end(self) -> RunFinished:
        """Converse until there is nothing more to ask. Raises ModelError, ToolsError and TrajectoryError."""
        finish = await self._resume(self._fork) if self._fork is not None else None
        while finish is None:
            turn = self._turns.next(self._rounds, self._last)
            finish = await self._take(turn) if isinstance(turn, Turn) else RunFinished(turn)
        return finish

    async def _resume(self, fork: Fork) -> RunFinished | None:
        """Tell the beginning of the run from which this one is forked, and go on where that leaves off."""
        if (refusal := fork_refusal(fork, self._turns)) is not None:
            return RunFinished("error", f"the run cannot be forked there: {refusal}")
        parts, own, origin = self._parts, self._parts.recorder.trajectory.start, fork.origin.start
        assert own is not None
        assert origin is not None
        self._messages = origin.messages
        for happening in replayed(fork, own.model):
            parts.recorder.emit(happening)
        rounds = parts.recorder.trajectory.rounds
        under_way = rounds[-1] if fork.at.answered is not None else None
        for done in rounds:
            self._take_in(done, done is not under_way)
        if under_way is None:
            parts.holding.added += fork.said
            return await self._stopped_by(self._last)
        turn = self._turns.next(self._rounds, self._last)
        assert isinstance(turn, Turn)
        self._messages += messages_before(under_way.step.user if under_way.step is not None else None, under_way.added)
        return await self._go_on_from(turn, under_way, fork.at.answered or 0)

    async def _take(self, turn: Turn) -> RunFinished | None:
        """Make one request and answer its calls; why the run ends with it, if it does."""
        parts = self._parts
        if turn.step is not None:
            parts.recorder.emit(StepStarted(turn.step, self._system(turn), turn.user))
        await parts.holding.pass_by("request", self._rounds + 1)
        self._messages += messages_before(turn.user, parts.holding.take_added())
        return await self._go_on_from(turn, await self._ask(turn))

    async def _go_on_from(self, turn: Turn, answer: Round, answered: int = 0) -> RunFinished | None:
        """Answer the calls of a round from the `answered`-th on; ask again as often as a person wants that."""
        while True:
            if answer.stop_reason == "refused":
                return RunFinished("refused")
            if answer.stop_reason == "truncated":
                return RunFinished("truncated")
            if not turn.makes_calls or not await self._asked_again(turn, answer, answered):
                break
            self._messages += messages_before(None, self._parts.holding.take_added())
            answer, answered = await self._ask(turn), 0
        done = self._parts.recorder.trajectory.rounds[-1]
        self._grow(done)
        return await self._stopped_by(done)

    async def _stopped_by(self, done: Round | None) -> RunFinished | None:
        """The end of a chain that stops at the step which was made last, if that failed."""
        if not self._case.stop_on_failure or done is None or done.step is None:
            return None
        async with self._parts.limit.suspended():
            failed = await self._parts.step_failed(self._parts.recorder.trajectory, done.step.step)
        return RunFinished("step failed") if failed else None

    async def _ask(self, turn: Turn) -> Round:
        parts = self._parts
        request = ModelRequest(
            self._rounds + 1, self._system(turn), self._messages, parts.executor.definitions, self._calls
        )
        return await ask(parts.model, request, parts.recorder, parts.retries, parts.limit)

    async def _asked_again(self, turn: Turn, answer: Round, answered: int) -> bool:
        """Answer the calls of a round; whether a person wants it asked again meanwhile."""
        holding, executor = self._parts.holding, self._parts.executor
        for number, call in enumerate(answer.calls[answered:], start=answered):
            tool = executor.definition(call.tool)
            after, held = await holding.pass_by("call", answer.number, call, tool)
            assert held is not None
            if after == "go on":
                result = await executor.answer(held.sent, self._step_mock(turn.step) if number == 0 else None)
                held = replace(held, result=result)
            if after == "ask again":
                return True
            after, _ = await holding.pass_by("result", answer.number, held, tool)
            if after == "ask again":
                return True
        return False

    def _take_in(self, done: Round, is_whole: bool) -> None:
        """A round that another run has made, or has begun."""
        step_mock = self._step_mock(done.step.step if done.step is not None else None)
        for answer in (*done.set_aside, done):
            for number, call in enumerate(answer.calls):
                self._parts.executor.take_in(call, step_mock if number == 0 else None)
        if is_whole:
            self._messages = conversation_after(self._messages, (done,))
            self._count(done)

    def _grow(self, done: Round) -> None:
        """A round is over whose request the conversation ends with."""
        self._messages += (answer_message(done), *result_messages(done))
        self._count(done)

    def _count(self, done: Round) -> None:
        self._rounds += 1
        self._calls += len(done.calls)
        self._last = done

    def _system(self, turn: Turn) -> str | None:
        return system_prompt(self._case, self._settings, turn.step, self._fork)

    def _step_mock(self, step: int | None) -> JsonValue:
        return self._case.steps[step - 1].mock_result if step is not None else None
