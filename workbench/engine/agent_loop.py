"""The agent loop of one run: sends requests to the model and answers its tool calls until the run ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from workbench.dataclasses import dataclass
from workbench.engine.checkpoint import Checkpoint, RunControl
from workbench.engine.conversation import Conversation
from workbench.engine.executor import READ_ONLY, Executor, Permission
from workbench.engine.fork import Fork, fork_refusal, replayed_events, system_prompt
from workbench.engine.media_store import MediaStore
from workbench.engine.own_calls import OwnCalls, unseen_change_notices
from workbench.engine.recorder import Recorder, TimeLimit
from workbench.engine.turns import (
    Turn,
    answer_message,
    assign_to_steps,
    conversation_after,
    messages_before,
    opening_messages,
    result_messages,
    steps_at,
    turns_of,
)
from workbench.numerals import seconds_text
from workbench.providers.model import (
    DEFAULT_RETRIES,
    FIRST_TOKEN_EVENTS,
    AnswerFinished,
    AnswerSize,
    AnswerTooLargeError,
    HttpRequest,
    Model,
    ModelError,
    ModelRequest,
    RetryPolicy,
    accepts_media,
    accepts_tool,
    http_request_of,
)
from workbench.suite.model import Case
from workbench.suite.settings import CaseSettings
from workbench.tools.answer import ServerError, ToolsError
from workbench.tools.audit import Audit
from workbench.tools.mocks import AskJudge
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import (
    CallFinished,
    JsonValue,
    Message,
    RequestFailed,
    RequestStarted,
    RetryScheduled,
    RunFinished,
    RunStarted,
    ServerInstructions,
    ServerOutput,
    StepStarted,
    ToolDefinition,
    checked_call,
)
from workbench.trajectory.external_run import ExternalRun
from workbench.trajectory.fold import TrajectoryError
from workbench.trajectory.media import Media
from workbench.trajectory.system_prompt import prompt_of
from workbench.trajectory.trajectory import Round, Trajectory


# A model's latency covers only the successful attempt. Waiting for the rate limits and waiting before a retry count
# neither as latency nor towards the run's time limit.
async def ask(
    model: Model, request: ModelRequest, recorder: Recorder, retries: RetryPolicy, limit: TimeLimit
) -> Round | ExternalRun:
    """Send a request, retry it as the policy allows, and return the complete answer.

    An agent with its own loop returns a whole run (`ExternalRun`); the caller emits the events of that run.

    Raises ModelError if every permitted attempt fails, and AnswerTooLargeError if an answer exceeds a limit."""
    attempt = 1
    while True:
        try:
            async with limit.before(model.turn()):
                return await _ask_once(model, request, recorder)
        except AnswerTooLargeError:
            raise  # not retried like other ModelErrors, because another answer would be as long
        except ModelError as error:
            wait_s: float | None = None
            if error.retryable:
                wait_s = retries.wait_s(attempt, error.retry_after_s)
            if wait_s is None:
                if attempt == 1:
                    raise
                raise ModelError(f"{error}; tried {attempt} times") from error
            attempt += 1
            recorder.emit(RetryScheduled(request.round, attempt, round(wait_s * 1000, 3), str(error)))
            async with limit.suspended():
                await retries.sleep(wait_s)


async def _ask_once(model: Model, request: ModelRequest, recorder: Recorder) -> Round | ExternalRun:
    recorder.emit(RequestStarted(request.round))
    began = recorder.clock()
    first_token_ms: float | None = None
    end: AnswerFinished | None = None
    size = AnswerSize()
    try:
        async with aclosing(model.stream(request)) as events:
            async for event in events:
                if isinstance(event, AnswerFinished):
                    end = event
                    break
                size.add(event)
                if first_token_ms is None and isinstance(event, FIRST_TOKEN_EVENTS):
                    first_token_ms = recorder.ms_since(began)
                if isinstance(event, CallFinished):
                    event = checked_call(event)
                recorder.emit(event)
        # A stream may end without an error when the connection is closed halfway.
        if end is None:
            raise ModelError(f"the answer of {model.name} broke off before its end")
    except ModelError as error:
        recorder.emit(RequestFailed(request.round, str(error)))
        raise
    if end.run is not None:
        return end.run.with_latency(recorder.ms_since(began))
    recorder.emit(end.response(request.round, first_token_ms, recorder.ms_since(began)))
    return recorder.last_round


StepFailed = Callable[[Trajectory, int], Awaitable[bool]]
"""A function that returns whether a step of a chain, counted from 1, has failed so far. Raises StepNotJudgedError."""


class StepNotJudgedError(Exception):
    """A step of a chain cannot be graded as passed or failed.

    The message names the step and the reason."""


class AgentLoop:
    """The conversation of one run: sends requests to the model and answers its calls until the run ends.

    With `fork`, the loop replays the start of another run and continues from there."""

    def __init__(
        self,
        case: Case,
        settings: CaseSettings,
        *,
        model: Model,
        executor: Executor,
        recorder: Recorder,
        retries: RetryPolicy,
        limit: TimeLimit,
        checkpoint: Checkpoint,
        step_failed: StepFailed,
        started: RunStarted,
        fork: Fork | None = None,
        user: Conversation | None = None,
        of_agent: bool = False,
    ) -> None:
        self._user = user
        self._started = started
        self._case = case
        self._settings = settings
        self._model = model
        self._executor = executor
        self._recorder = recorder
        self._retries = retries
        self._limit = limit
        self._checkpoint = checkpoint
        self._step_failed = step_failed
        self._fork = fork
        self._turns = turns_of(case, settings.limits.max_rounds, of_agent=of_agent)
        self._messages = started.messages
        self._rounds = 0
        self._beside_steps = 0
        """The rounds of an agent's own loop that belong to no step of the chain."""
        self._last: Round | None = None
        self._calls = 0

    async def run(self) -> RunFinished:
        """Run the conversation until it ends, and return the run's final event.

        Raises ModelError, ToolsError, TrajectoryError and StepNotJudgedError."""
        finish: RunFinished | None = None
        if self._fork is not None:
            finish = await self._resume(self._fork)
        while finish is None:
            turn = self._turns.next(self._rounds - self._beside_steps, self._last)
            if not isinstance(turn, Turn):
                return RunFinished(turn)
            if turn.asks_user:
                assert self._user is not None
                # The run's time limit excludes the simulated user and the judges of conditions. They have their own
                # time limits.
                async with self._limit.suspended():
                    review = partial(self._checkpoint.before_message, self._rounds + 1)
                    said = await self._user.next_message(review)
                if isinstance(said, RunFinished):
                    return said
                turn = replace(turn, user=said.text)
            finish = await self._make_turn(turn)
        return finish

    async def _resume(self, fork: Fork) -> RunFinished | None:
        """Replay the start of the original run, up to the fork point.

        Returns the run's final event if no request follows the replayed part; `None` otherwise."""
        if (refusal := fork_refusal(fork, self._turns)) is not None:
            return RunFinished("error", f"the run cannot be forked there: {refusal}")
        recorder = self._recorder
        own, origin = recorder.trajectory.start, fork.origin.start
        assert own is not None
        assert origin is not None
        self._messages = origin.messages
        self._executor.media.remember_run(fork.origin)
        for payload in replayed_events(fork, own.model):
            recorder.emit(payload)
        rounds = recorder.trajectory.rounds
        # If the fork point is between the calls of a round, this round is unfinished. `_finish_turn` below answers its
        # remaining calls.
        under_way = rounds[-1] if fork.at.answered is not None else None
        for done in rounds:
            self._replay_round(done, done is not under_way)
        if under_way is None:
            self._checkpoint.added += fork.added
            return await self._stopped_by(self._last)
        if fork.held_again_at is not None:
            self._checkpoint.added += fork.added
        turn = self._turns.next(self._rounds, self._last)
        assert isinstance(turn, Turn)
        self._messages += messages_before(under_way.user_message, under_way.added)
        return await self._finish_turn(turn, under_way, fork.at.answered or 0, to_result=fork.held_again_at == "result")

    async def _make_turn(self, turn: Turn) -> RunFinished | None:
        if turn.step is not None:
            self._recorder.emit(StepStarted(turn.step, self._system(turn), turn.user))
        await self._checkpoint.reach("request", self._rounds + 1, request=lambda: self._pending_request(turn))
        self._messages += messages_before(turn.user, self._checkpoint.pop_added())
        return await self._finish_turn(turn, await self._ask(turn))

    async def _finish_turn(
        self, turn: Turn, answer: Round | ExternalRun, answered_count: int = 0, *, to_result: bool = False
    ) -> RunFinished | None:
        """Answer the tool calls in a model's answer. Returns the run's final event if the run ends with this answer.

        The first `answered_count` calls already have results. With `to_result`, the run is held after the last of these
        results. If a person discards the answer there, the model is asked again."""
        while True:
            if isinstance(answer, ExternalRun):
                return await self._add_run(turn, answer)
            if answer.stop_reason == "refused":
                return RunFinished("refused")
            if answer.stop_reason == "truncated":
                return RunFinished("truncated")
            if not turn.executes_calls or await self._answer_calls(turn, answer, answered_count, to_result):
                break
            self._messages += messages_before(None, self._checkpoint.pop_added())
            answer, answered_count, to_result = await self._ask(turn), 0, False
        done = self._recorder.last_round
        self._append_round(done)
        return await self._stopped_by(done)

    async def _add_run(self, turn: Turn, run: ExternalRun) -> RunFinished | None:
        """Add the rounds of an agent that has its own loop.

        Returns the run's final event if the run ends with these rounds; `None` otherwise. In a chain, the rounds are
        assigned to the current step and the following steps, up to the next user message."""
        from workbench.engine.external_run import external_payloads  # imported here: only agents need it

        rounds, steps = run.rounds, range(0)
        if turn.step is not None:
            steps = steps_at(self._case, turn.step)
            rounds = assign_to_steps(rounds, len(steps))
        first, size = self._rounds + 1, AnswerSize()
        taken = {call.id for message in self._messages for call in message.tool_calls}
        for payload in external_payloads(rounds, first, taken, self._calls):
            if isinstance(payload, RequestStarted):
                place, size = payload.round - first, AnswerSize()
                if place == 0:
                    continue  # `_ask_once` has emitted it already
                if place < len(steps):
                    self._recorder.emit(StepStarted(steps[place], self._system(Turn(steps[place])), None))
            size.add(payload)
            self._recorder.emit(payload)
        done = self._recorder.trajectory.rounds[self._rounds :]
        for each in done:
            self._append_round(each)
        if turn.step is not None:
            self._beside_steps += max(len(done) - len(steps), 0)
        if run.error is not None:
            return RunFinished("error", run.error)
        for each in done:
            if (stopped := await self._stopped_by(each)) is not None:
                return stopped
        last = done[-1].stop_reason
        if last == "refused" or last == "truncated":
            return RunFinished(last)
        if self._user is not None or self._rounds - self._beside_steps < len(self._case.steps):
            return None
        return RunFinished("steps done" if self._case.steps else "answered")

    async def _stopped_by(self, round_: Round | None) -> RunFinished | None:
        """Return the run's final event if the case ends the run after a round; `None` if the run continues.

        A conversation ends when its `stop` condition is met. A chain with `stop_on_failure` ends when its latest step
        failed."""
        if self._user is not None:
            async with self._limit.suspended():
                return await self._user.stop_result()
        if not self._case.stop_on_failure or round_ is None or round_.step is None:
            return None
        # Grading may ask a judge. The judge's time does not count as time of the run.
        async with self._limit.suspended():
            failed = await self._step_failed(self._recorder.trajectory, round_.step.step)
        return RunFinished("step failed") if failed else None

    async def _ask(self, turn: Turn) -> Round | ExternalRun:
        request = self._request(turn, self._messages)
        return await ask(self._model, request, self._recorder, self._retries, self._limit)

    async def _pending_request(self, turn: Turn) -> HttpRequest | None:
        """Return the HTTP request that the run would send if a person continued it now.

        Returns `None` for a model without HTTP. Raises ModelError."""
        messages = self._messages + messages_before(turn.user, self._checkpoint.added)
        return await http_request_of(self._model, self._request(turn, messages))

    def _request(self, turn: Turn, messages: tuple[Message, ...]) -> ModelRequest:
        system = prompt_of(self._started, self._system(turn))
        shown = self._executor.media.with_content(messages, self._model)
        return ModelRequest(self._rounds + 1, system, shown, self._executor.definitions, self._calls)

    async def _answer_calls(self, turn: Turn, answer: Round, answered_count: int, to_result: bool) -> bool:
        """Answer the tool calls in a model's answer, except the first `answered_count` calls, which have results.

        Returns False if a person discards the answer, so that the model must be asked again."""
        checkpoint, executor = self._checkpoint, self._executor
        if to_result:
            done = answer.calls[answered_count - 1]
            after, _ = await checkpoint.reach("result", answer.number, done, executor.definition(done.tool))
            if after == "regenerate":
                return False
        first = answer.calls_to_answer[:1]
        for call in answer.calls[answered_count:]:
            if call.by_provider:
                continue
            tool = executor.definition(call.tool)
            after, held = await checkpoint.reach("call", answer.number, call, tool)
            assert held is not None
            if after == "continue":
                # The mock of a step answers only the first call of the step.
                step_mock = self._step_mock(turn.step) if call in first and not turn.continues else None
                result = await executor.answer(
                    held.sent, step_mock, partial(checkpoint.review, answer.number, held, tool)
                )
                held = replace(held, result=result)
            if after == "regenerate":
                return False
            after, _ = await checkpoint.reach("result", answer.number, held, tool)
            if after == "regenerate":
                return False
        return True

    def _replay_round(self, round_: Round, is_whole: bool) -> None:
        """Bring the loop's messages and counters to the state after a replayed round.

        `is_whole` is false if some calls of the round have no result yet."""
        step_mock = self._step_mock(round_.step_number)
        # The calls of discarded answers count too, because some mocks answer by the number of earlier calls.
        for answer in (*round_.superseded, round_):
            for number, call in enumerate(answer.calls_to_answer):
                self._executor.count_replayed(call, step_mock if number == 0 else None)
        if is_whole:
            self._messages = conversation_after(self._messages, (round_,))
            self._count(round_)

    def _append_round(self, round_: Round) -> None:
        self._messages += (answer_message(round_), *result_messages(round_))
        self._count(round_)

    def _count(self, round_: Round) -> None:
        self._rounds += 1
        self._calls += len(round_.calls) + len(round_.not_offered)
        self._last = round_

    def _system(self, turn: Turn) -> str | None:
        return system_prompt(self._case, self._settings, turn.step, self._fork)

    def _step_mock(self, step: int | None) -> JsonValue:
        if step is not None:
            return self._case.steps[step - 1].mock_result
        return None


_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One run to make: a case with its settings and a model.

    With `fork`, the run starts from a point of another run. `images` are the images of the case, with their content.
    `clock` is the time that the model sees. `time_limit` is the key of the suite that sets the time limit; error
    messages quote it. `agent_output` returns the end of the agent's standard error; it is `None` if no agent runs the
    case."""

    case: Case
    settings: CaseSettings
    model: str
    suite_hash: str
    fork: Fork | None = None
    images: tuple[Media, ...] = ()
    clock: str | None = None
    time_limit: str = "limits.timeout_s"
    agent_output: Callable[[], ServerOutput | None] | None = None

    @property
    def of_agent(self) -> bool:
        """Whether an agent runs the case in place of a model."""
        return self.agent_output is not None


async def run_case(
    request: RunRequest,
    model: Model,
    tools: Toolbox,
    recorder: Recorder,
    *,
    permission: Permission = READ_ONLY,
    audit: Audit | None = None,
    retries: RetryPolicy = DEFAULT_RETRIES,
    judge: AskJudge | None = None,
    control: RunControl | None = None,
    step_failed: StepFailed | None = None,
    own_calls: OwnCalls | None = None,
    user: Conversation | None = None,
) -> Trajectory:
    """Execute one run and return its trajectory.

    Without `audit`, no tool is executed on a server. `judge` evaluates the mock conditions that need a judge. `control`
    can hold the run and change it. `step_failed` grades the steps of a chain that stops on failure. `own_calls` are the
    calls that the suite itself makes before and after the run. `user` sends the user's messages in a conversation.

    Cancelling the task stops the run, which then ends with the reason `stopped`. Infrastructure errors end the run with
    `error` or `timed out`; they are not raised."""
    limits = request.settings.limits
    definitions = tuple([tool for tool in tools.definitions if _is_offered(tool, model, tools)])
    notices = (*model.notices, *tools.notices, *_not_offered(model, tools))
    if any(not accepts_media(model, image) for image in request.images):
        notices += (f"{model.name} reads placeholders of the case's images: set images = true if the model takes them",)
    notices += unseen_change_notices(request.fork, tools)
    started = emit_start(request, tools, recorder, model.seed, notices, definitions)
    try:
        async with TimeLimit(limits.timeout_s) as limit:
            media = MediaStore(request.images)
            executor = Executor(tools, recorder, permission, limit, audit, judge, definitions, media)
            loop = AgentLoop(
                request.case,
                request.settings,
                model=model,
                executor=executor,
                recorder=recorder,
                retries=retries,
                limit=limit,
                checkpoint=Checkpoint(control, recorder, limit, of_agent=request.of_agent),
                step_failed=step_failed or _no_step_fails,
                fork=request.fork,
                started=started,
                user=user,
                of_agent=request.of_agent,
            )
            if own_calls is not None:
                async with limit.suspended():
                    await own_calls.run_setup()
            finish = await loop.run()
            if own_calls is not None and finish.reason not in ("error", "user error"):
                async with limit.suspended():
                    await own_calls.run_final()
    except TimeoutError:
        finish = RunFinished(
            "timed out",
            f"not finished within {seconds_text(limits.timeout_s)}: raise {request.time_limit} to wait longer",
            request.agent_output() if request.agent_output is not None else None,
        )
    except asyncio.CancelledError:
        finish = RunFinished("stopped")
    # The order matters: AnswerTooLargeError is a ModelError, and ServerError a ToolsError.
    except AnswerTooLargeError as error:
        finish = RunFinished("sent too much", str(error))
    except ServerError as error:
        finish = RunFinished("error", str(error), error.output)
    except (ModelError, ToolsError, StepNotJudgedError) as error:
        finish = RunFinished("error", str(error))
    except TrajectoryError as error:
        finish = RunFinished("error", f"the answer of {request.model} is invalid: {error}")
    except Exception as error:
        # A bug in the program ends one run, not the batch.
        _logger.exception("run of case %s on %s", request.case.id, request.model)
        finish = RunFinished("error", f"unexpected {type(error).__name__}: {error}; the log holds the details")
    recorder.emit(finish)
    return recorder.trajectory


def _is_offered(tool: ToolDefinition, model: Model, tools: Toolbox) -> bool:
    return accepts_tool(model, tool, trusted=tool.name not in tools.withheld)


def _not_offered(model: Model, tools: Toolbox) -> Iterator[str]:
    for tool in tools.definitions:
        if _is_offered(tool, model, tools):
            continue
        if accepts_tool(model, tool):
            yield f"{tool.name} is not offered: the suite is not trusted, so no provider may run it"
        else:
            apis = ", ".join(tool.provider or ()) or "models behind endpoints"
            yield f"{tool.name} is not offered to {model.name}: `provider_tools` defines it only for {apis}"


def emit_start(
    request: RunRequest,
    tools: Toolbox | None,
    recorder: Recorder,
    seed: int | None = None,
    notices: tuple[str, ...] = (),
    definitions: tuple[ToolDefinition, ...] = (),
) -> RunStarted:
    """Emit and return `RunStarted`, the first event of a run.

    `tools` is `None` if the run ends before its tools are open. `definitions` are the tools offered to the model."""
    system, messages = _opening(request)
    server_outputs: tuple[ServerOutput, ...] = ()
    instructions: tuple[ServerInstructions, ...] = ()
    clock = request.clock
    if tools is not None:
        server_outputs, instructions = tools.server_outputs, tools.instructions
    # A fork keeps the instructions and the clock of the original run.
    if request.fork is not None and request.fork.origin.start is not None:
        instructions, clock = request.fork.origin.start.instructions, request.fork.origin.start.clock
    started = RunStarted(
        suite_hash=request.suite_hash,
        case_id=request.case.id,
        case_name=request.case.name,
        model=request.model,
        system=system or None,
        messages=messages,
        tools=definitions,
        seed=seed,
        notices=notices,
        server_outputs=server_outputs,
        instructions=instructions,
        clock=clock,
    )
    recorder.emit(started)
    return started


def _opening(request: RunRequest) -> tuple[str | None, tuple[Message, ...]]:
    """Return the system prompt and the opening messages. A fork takes both from the original run."""
    fork = request.fork
    if fork is None or fork.origin.start is None:
        return request.settings.system, opening_messages(request.case, request.images)
    origin = fork.origin.start
    if fork.system is not None:
        return fork.system, origin.messages
    return origin.system, origin.messages


def record_failed_start(request: RunRequest, finish: RunFinished, recorder: Recorder) -> Trajectory:
    """Record a run that ended before its first request, and return its trajectory."""
    emit_start(request, None, recorder)
    recorder.emit(finish)
    return recorder.trajectory


async def _no_step_fails(trajectory: Trajectory, step: int) -> bool:
    return False
