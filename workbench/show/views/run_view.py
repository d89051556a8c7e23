"""Conversion of a run's events and grade into the items to show, with a record of the items that changed.

The events are those that `TrajectoryFold` takes. Unexpected events are ignored."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.show.lazy_lines import GrowingText
from workbench.show.views.agents import agent_text, note_text
from workbench.show.views.run_grade import PlacedCall, put_grade
from workbench.show.views.run_items import (
    CallItem,
    ForkItem,
    HoldItem,
    Item,
    MessageItem,
    NoticeItem,
    OutcomeItem,
    ResultItem,
    RoundItem,
    RunItems,
    ServerRequestItem,
    StepItem,
    SuiteCallItem,
    SupersededItem,
    TextItem,
    ToolsItem,
)
from workbench.show.views.trajectory import pause_text
from workbench.show.views.user_turns import ended_text, refused_text, source_of
from workbench.show.views.values import AnswerProgress
from workbench.trajectory.events import (
    AgentNoted,
    AgentStarted,
    AnswerPaused,
    CallArgumentsDelta,
    CallEdited,
    CallFinished,
    CallStarted,
    Event,
    ExecutionProgress,
    ExecutionStarted,
    Forked,
    Message,
    MessageAdded,
    OwnCallAnswered,
    Paused,
    PromptProgress,
    ReasoningDelta,
    Regenerated,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultEdited,
    ResultReceived,
    Resumed,
    RetryScheduled,
    RunFinished,
    RunStarted,
    ServerAsked,
    StepStarted,
    TextDelta,
    TextWasReasoning,
    UserEnded,
    UserRefused,
    UserRequestStarted,
    UserSaid,
)
from workbench.trajectory.system_prompt import time_text

if TYPE_CHECKING:
    from workbench.providers.model import HttpRequest
    from workbench.suite.model import FinalTable


class RunView:
    """The items of one run in display order. Add the run's events to it, then its grade."""

    def __init__(self) -> None:
        self.graded = False
        self.began: datetime | None = None
        """The time when the run began, if known. With it, waits are shown with the time at which they end."""
        self.steps = 0
        """The number of steps of the run's case, if known."""
        self.origin = ""
        """The name of the run from which this run was forked, if known."""
        self._run = RunItems()
        self._numbered = 0
        self._suites: str | None = None
        """The system prompt of requests outside of steps."""
        self._system: str | None = None
        """The current system prompt."""
        self._refused: tuple[UserRefused, ...] = ()
        """The messages of the user in this turn that were not sent."""
        self._step = 0
        self._continues = False
        """Whether the request that begins now is a further request of the same step."""
        self._prompted = self._instructed = False
        """Whether any request had a system prompt."""

    @property
    def items(self) -> Sequence[Item]:
        """The items to show, for reading only."""
        return self._run.items

    @property
    def held_index(self) -> int | None:
        """The index of the item where the run is paused or asks for permission, or `None` if it is not paused."""
        return self._run.held_index

    def place(self, index: int) -> RunPlace | None:
        """Return the place of the item at an index, or `None` for the end of the run."""
        return place_at(self._run, index)

    def tool_of(self, call_id: str | None) -> str | None:
        """Return the tool of a call, or `None` if there is no such call."""
        at = self._run.index_of(call_id)
        if at is None:
            return None
        call = self.items[at]
        if not isinstance(call, CallItem):
            return None
        return call.tool

    def is_answered(self, call_id: str) -> bool:
        at = self._run.index_of(call_id)
        if at is None:
            return False
        answer = self.items[at + 1]
        return isinstance(answer, ResultItem) and answer.result is not None

    def delay_until(self, until: datetime) -> None:
        """Show, until the next event, that the next request waits because the endpoint asked another run to wait."""
        self._end_wait()
        # Unlike a countdown, a time of day stays correct if the line is not drawn again.
        at = f"{until.astimezone():%H:%M:%S}"
        self._run.append(
            NoticeItem(f"waits until {at} at least: the endpoint asked another run to wait", is_waiting=True)
        )

    def set_request(self, request: HttpRequest | str) -> None:
        """Show the request before which the run is paused, or why that request cannot be sent.

        The request is shown until the run continues."""
        set_request(self._run, request)

    def _end_wait(self) -> None:
        last = self._run.last
        if isinstance(last, NoticeItem) and last.is_waiting:
            self._run.cut(len(self._run.items) - 1)

    def add(self, event: Event) -> None:
        # Any event means that the run no longer waits, so the notice of `delay_until` is removed.
        self._end_wait()
        run = self._run
        match event.payload:
            case RunStarted() as start:
                self._begin(start)
            case StepStarted() as step:
                self._begin_step(step)
            case RequestStarted(round=number):
                # A request with the number of a round that has no answer yet is a retry.
                if self._is_under_way(number):
                    self._restart_attempt(event.time_ms)
                else:
                    self._begin_answer()
                    run.append_round(
                        RoundItem(self._next_number(), number, awaited=AnswerProgress(event.time_ms / 1000))
                    )
            case RequestFailed(error=error):
                if (asked := run.request()) is not None:
                    asked.errors.append(error)
            case RetryScheduled() as retry:
                if (asked := run.request()) is not None:
                    asked.retry = retry
                    end_ms = event.time_ms + retry.wait_ms
                    # The time of the retry is known only if the start of the run is known.
                    asked.retry_at = None
                    if self.began is not None:
                        asked.retry_at = self.began + timedelta(milliseconds=end_ms)
            case PromptProgress() as reading:
                if (asked := run.request()) is not None:
                    asked.awaited.reading = reading
            case TextDelta(text=text):
                self._count(text, event.time_ms)
                self._say(text, reasoning=False)
            case ReasoningDelta(text=text):
                self._count(text, event.time_ms)
                self._say(text, reasoning=True)
            case TextWasReasoning():
                self._mark_reasoning()
            case AnswerPaused() as pause:
                run.finish_text()
                run.append(NoticeItem(pause_text(pause), quiet=True))
            case AgentStarted() as agent:
                run.append(NoticeItem(agent_text(agent), quiet=True))
            case AgentNoted() as note:
                run.finish_text()
                run.append(NoticeItem(note_text(note), quiet=note.kind == "plan"))
            case CallStarted(call_id=call_id, tool=tool, by_provider=by_provider):
                self._count(tool, event.time_ms)
                self._answers()
                self._run.finish_text()
                run.append_call(call_id, tool, by_provider)
            case CallArgumentsDelta(call_id=call_id, fragment=fragment):
                self._count(fragment, event.time_ms)
                if (call := run.call(call_id)) is not None:
                    call.fragments.append(fragment)
            case CallFinished(call_id=call_id) as finished:
                if (call := run.call(call_id)) is not None:
                    call.arguments, call.raw, call.problem = finished.arguments, finished.raw, finished.problem
            case ResponseFinished() as response:
                self._run.finish_text()
                if (asked := run.request()) is not None:
                    asked.response, asked.has_ended = response, True
            case ExecutionStarted(call_id=call_id, server=server):
                if (call := run.call(call_id)) is not None and (answer := run.result(call_id)) is not None:
                    call.server, answer.executing = server, True
            case ExecutionProgress(call_id=call_id) as progress:
                if (answer := run.result(call_id)) is not None:
                    answer.progress = progress
            case ResultReceived(call_id=call_id) as result:
                if (answer := run.result(call_id)) is not None:
                    answer.result = result
            case ServerAsked() as asking:
                self._apply_server_request(asking)
            case OwnCallAnswered() as answered:
                run.finish_text()
                run.append(SuiteCallItem(answered))
            case Forked() as fork:
                self._end_replay(fork)
            case UserRequestStarted() | UserRefused() | UserSaid() | UserEnded() as spoken:
                self._apply_player_action(spoken)
            case RunFinished() as finish:
                self._end(finish)
            case by_hand:
                self._apply_user_action(by_hand)

    def _apply_server_request(self, request: ServerAsked) -> None:
        run = self._run
        run.finish_text()
        # If the run was paused before the reply, the request is already shown.
        for index, item in enumerate(run.items):
            if isinstance(item, ServerRequestItem) and item.is_waiting:
                item.request, item.is_waiting = request, False
                run.changed(index)
                return
        run.append(ServerRequestItem(request))

    def _apply_player_action(self, spoken: UserRequestStarted | UserRefused | UserSaid | UserEnded) -> None:
        run = self._run
        run.finish_text()
        match spoken:
            case UserRequestStarted(model=model):
                run.append(NoticeItem(f"the user answers, played by {model}", is_waiting=True))
            case UserRefused():
                self._refused += (spoken,)
            case UserSaid(text=text):
                source, refused, self._refused = source_of(spoken, len(self._refused)), self._refused, ()
                run.append(MessageItem("user", GrowingText(text), self._next_number(), source=source, refused=refused))
            case UserEnded():
                played = "played" if spoken.usage is not None else ""
                refused, self._refused = self._refused, ()
                run.append(MessageItem("user", GrowingText(ended_text(spoken)), source=played, refused=refused))

    def _apply_user_action(
        self, action: Paused | Resumed | CallEdited | ResultEdited | MessageAdded | Regenerated
    ) -> None:
        """Show an action of the user, or that the run is paused until the user acts."""
        run = self._run
        match action:
            case Paused():
                if action.at == "request":
                    self._begin_answer()
                hold(run, action)
            case Resumed(held_ms=held_ms):
                show_continued(run, held_ms)
            case CallEdited(call_id=call_id, arguments=arguments):
                if (call := run.call(call_id)) is not None:
                    call.edited = arguments
            case ResultEdited():
                edit_result(run, action)
            case MessageAdded(text=text):
                add_message(run, MessageItem("user", GrowingText(text), self._next_number(), by_hand=True))
            case Regenerated():
                show_regenerated(run, action)

    def grade(
        self,
        result: RunResult,
        expected: Sequence[PlacedCall] = (),
        former: RunResult | None = None,
        final: FinalTable | None = None,
    ) -> None:
        """Attach a grade in place of the earlier grade.

        `expected` are the case's expected calls with their places. `former` is the original result of a regraded run.
        `final` has the case's requirements on the final state."""
        put_grade(self._run, result, expected, former, first=not self.graded, final=final)
        self.graded = True

    def take_changes(self) -> tuple[bool, list[int]]:
        """Return whether items moved since the last call, and the indices of items that changed."""
        return self._run.take_changes()

    def take_cut(self) -> int | None:
        """Return the lowest index from which all items were cut since the last call, or `None` if no items were cut.

        New items may have been appended since."""
        return self._run.take_cut()

    # Before a request

    def _begin(self, start: RunStarted) -> None:
        for notice in start.notices:
            self._run.append(NoticeItem(notice))
        if start.system:
            self._run.append(MessageItem("system", GrowingText(start.system)))
        for each in start.instructions:
            text = f"instructions of the server {each.server}\n{each.text}"
            self._run.append(MessageItem("system", GrowingText(text)))
        if start.clock is not None:
            self._run.append(MessageItem("system", GrowingText(time_text(start.clock))))
        self._instructed = bool(start.instructions)
        self._suites = self._system = start.system or None
        self._prompted = bool(start.system)
        if start.tools:
            self._run.append(ToolsItem(start.tools))
        for message in start.messages:
            self._run.append(_message_item(message, self._next_number()))

    def _begin_step(self, step: StepStarted) -> None:
        run, last = self._run, self._run.last
        opening: list[Item] = []
        if step.step == 1 and run.round is None and isinstance(last, MessageItem) and last.role == "user":
            # The first message of the conversation is the first step's message, so it moves below the step's heading.
            opening = run.cut(len(run.items) - 1)
        self._continues = step.user is None and step.step == self._step
        self._step = step.step
        if self._continues:
            return  # a further request of an agent in the same step
        self._head(step.step, step.system or None)
        for message in opening:
            run.append(message)
        if step.user is not None:
            run.append(MessageItem("user", GrowingText(step.user), self._next_number()))

    def _begin_answer(self) -> None:
        """Show a heading before the request of the final answer, unless the request continues the last step."""
        run, continues = self._run, self._continues
        self._continues = False
        if not continues and run.steps and run.rounds and run.rounds[-1] > run.steps[-1]:
            self._head(None, self._suites)

    def _head(self, step: int | None, system: str | None) -> None:
        of = None
        if step is not None and self.steps:
            of = self.steps
        self._run.append_step(StepItem(step, of, system is None and self._prompted and not self._instructed))
        if system is not None and system != self._system:
            self._run.append(MessageItem("system", GrowingText(system)))
        self._system, self._prompted = system, self._prompted or system is not None

    def _end_replay(self, fork: Forked) -> None:
        for index, item in enumerate(self._run.items):
            if isinstance(item, RoundItem | TextItem):
                item.replayed = True
                self._run.changed(index)
        calls: list[int] = []
        if self._run.round is not None:
            calls = [index for index in self._run.order if index > self._run.round]
        # `calls` has the calls of the last replayed round.
        if fork.answered is not None and fork.answered < len(calls):
            # The fork repeats this call and all later calls of the round, so they stand below the `ForkItem`.
            self._run.insert(calls[fork.answered], ForkItem(fork, self.origin))
            self._run.rebuild()
        else:
            self._run.append(ForkItem(fork, self.origin))

    def differs(self, sentence: str) -> None:
        """Show a sentence about the first difference between a fork and its original run."""
        for index, item in enumerate(self._run.items):
            if isinstance(item, ForkItem) and item.difference != sentence:
                item.difference = sentence
                self._run.changed(index)

    def _restart_attempt(self, at_ms: float) -> None:
        """Show a retry. The output of the failed attempt is removed, but its error stays."""
        asked = self._run.request()
        if asked is None or self._run.round is None or self._run.outcome is not None:
            return
        asked.retry, asked.begun, asked.awaited, asked.now_s = None, False, AnswerProgress(at_ms / 1000), None
        self._run.cut(self._run.round + 1)

    # An answer, and the end

    def pass_time(self, now: datetime) -> None:
        """Update the waiting time that is shown while the model's answer has not begun."""
        run, item = self._run, self._run.asked
        if run.round is None or item is None or self.began is None or self.held_index is not None:
            return
        if item.response is None and not item.has_ended and item.retry is None:
            item.now_s = (now - self.began) / timedelta(seconds=1)
            run.changed(run.round)

    def _count(self, piece: str, at_ms: float) -> None:
        """Count the characters of a piece of the answer. `pass_time` shows the count later."""
        if (asked := self._run.asked) is not None:
            asked.awaited.add(piece, at_ms / 1000)

    def _answers(self) -> None:
        asked = self._run.asked
        if asked is not None and not asked.begun:
            self._run.request()
            asked.begun = True

    def _say(self, text: str, *, reasoning: bool) -> None:
        self._answers()
        last = self._run.last
        # Deltas of one kind extend one item. A delta of the other kind, or a delta after a call, begins a new item.
        if isinstance(last, TextItem) and last.reasoning == reasoning and not last.done:
            last.text.append(text)
            self._run.changed(len(self._run.items) - 1)
        else:
            self._run.finish_text()
            self._run.append(TextItem(GrowingText(text), reasoning))

    def _mark_reasoning(self) -> None:
        """Mark the text of the answer received so far as reasoning."""
        for index in reversed(range(len(self._run.items))):
            item = self._run.items[index]
            # The items of the answer follow its request.
            if isinstance(item, RoundItem):
                break
            if isinstance(item, TextItem):
                item.reasoning = item.done = True
                self._run.changed(index)

    def _end(self, finish: RunFinished) -> None:
        self._run.finish_text()
        # Refused messages are usually shown with the message that is sent after them. No message was sent after these.
        for refused in self._refused:
            self._run.append(NoticeItem(f"user, {refused_text(refused)}"))
        self._refused = ()
        if (asked := self._run.request()) is not None:
            asked.has_ended, asked.retry = True, None
            # The outcome shows this error, so the request omits it.
            if asked.errors and asked.errors[-1] == finish.error:
                asked.errors.pop()
        show_continued(self._run)
        # If the run ended during an execution, the execution must not seem to continue.
        for index, item in enumerate(self._run.items):
            if isinstance(item, ResultItem) and item.executing and item.result is None:
                item.executing = False
                self._run.changed(index)
        if self._run.outcome is None:
            self._run.end().finish = finish

    def _is_under_way(self, number: int) -> bool:
        asked = self._run.request()
        return asked is not None and asked.round == number and asked.response is None

    def _next_number(self) -> int:
        self._numbered += 1
        return self._numbered


def _message_item(message: Message, number: int) -> MessageItem:
    return MessageItem(message.role, GrowingText(message.content), number, message.tool_calls)


def hold(run: RunItems, paused: Paused) -> None:
    """Show that the run is paused at a call, a result or a server's request, otherwise before the next request."""
    show_continued(run)
    if paused.asked is not None:
        run.held_index = run.append(ServerRequestItem(paused.asked, paused.why, is_waiting=True))
        return
    index = run.index_of(paused.call_id)
    if index is None:
        number = paused.round
        if number is None:
            number = 1
            if run.asked is not None:
                number = run.asked.round + 1
        run.held_index = run.append(HoldItem(number, paused.why, user_message=paused.said))
        return
    call, answer = run.call(paused.call_id), run.result(paused.call_id)
    assert call is not None
    assert answer is not None
    if paused.at == "call":
        call.hold_reason, run.held_index = paused.why, index
    elif paused.at == "result":
        answer.hold_reason, run.held_index = paused.why, index + 1
    else:
        answer.asks, run.held_index = paused.why, index + 1


def show_continued(run: RunItems, held_ms: float = 0.0) -> None:
    """Show that the run continues. `held_ms` is the time that the user took to permit a call."""
    match run.take_held():
        case ResultItem(asks=asks) as answer:
            if asks is not None:
                answer.held_ms += held_ms
            answer.asks = answer.hold_reason = None
        case CallItem() as call:
            call.hold_reason = None
        case ServerRequestItem() as asked:
            asked.hold_reason = None
        case HoldItem() as held:
            held.why = held.request = held.user_message = None
        case None:
            pass


def set_request(run: RunItems, request: HttpRequest | str) -> None:
    """Show the request before which the run is paused, or why that request cannot be sent."""
    if run.held_index is not None and isinstance(held := run.items[run.held_index], HoldItem):
        held.request = request
        run.changed(run.held_index)


def add_message(run: RunItems, message: MessageItem) -> None:
    """Show a message that the user added before the next request. A pause is then shown after the message."""
    held = None
    if run.held_index is not None:
        held = run.items[run.held_index]
    run.append(message)
    if isinstance(held, HoldItem):
        again = HoldItem(held.round, held.why, user_message=held.user_message)
        show_continued(run)
        run.held_index = run.append(again)


def edit_result(run: RunItems, edit: ResultEdited) -> None:
    """Show the edited result and keep the original."""
    if (answer := run.result(edit.call_id)) is not None and answer.result is not None:
        # A result that is edited twice keeps the server's result as the original.
        answer.unedited = answer.unedited or answer.result
        answer.result = replace(answer.result, content=edit.content, is_error=edit.is_error)


def show_regenerated(run: RunItems, event: Regenerated) -> None:
    """Show that the last request will be repeated.

    The request and its answer become one `SupersededItem`. Messages that were added after the answer follow this
    item."""
    request = run.request()
    if request is None or run.round is None or request.round != event.round or run.outcome is not None:
        return
    run.finish_text()
    show_continued(run)
    old = run.cut(run.round)
    run.round = None
    answer = tuple(item for item in old if not isinstance(item, MessageItem))
    run.append(SupersededItem(event.round, request.number, answer))
    for item in old:
        if isinstance(item, MessageItem):
            run.append(item)


@dataclass(frozen=True, slots=True)
class RunPlace:
    """A place in a run. Items before a request belong to the round of that request. `round` counts from 1.

    `call_id` and `call_index` (the index in `Trajectory.calls`) are set at a call and at its result. `answered` is the
    number of the round's calls with results up to this place. It is set at a call, at its result and where a fork
    begins. `after_result` is true at a result that has arrived. Its call counts in `answered`. `step` is the step of a
    chain, from 1."""

    round: int
    call_id: str | None = None
    call_index: int | None = None
    answered: int | None = None
    after_result: bool = False
    step: int | None = None


def place_at(run: RunItems, index: int) -> RunPlace | None:
    """Return the place of the item at an index, or `None` for the end of a run.

    It is fast in long runs, because it searches the requests by bisection."""
    item = run.items[index]
    if isinstance(item, OutcomeItem):
        return None
    begun = bisect_right(run.rounds, index)
    asked, number = None, 0
    if begun:
        asked = run.rounds[begun - 1]
        above = run.items[asked]
        if isinstance(above, RoundItem):
            number = above.round
    if isinstance(item, ForkItem):
        return RunPlace(item.fork.round, answered=item.fork.answered)
    if isinstance(item, HoldItem | SupersededItem):
        return RunPlace(item.round, step=_step(run, index))
    if asked is None or isinstance(item, MessageItem | StepItem):
        return RunPlace(number + 1, step=_step(run, index))
    step = _step(run, asked)
    on_result = isinstance(item, ResultItem)
    at = index - on_result
    call = run.items[at]
    if not isinstance(call, CallItem) or call.index is None:
        return RunPlace(number, step=step)
    # `order` is sorted, so bisection counts the calls after the request without reading them.
    earlier = bisect_left(run.order, at) - bisect_left(run.order, asked)
    came = isinstance(item, ResultItem) and item.result is not None
    return RunPlace(number, call.call_id, call.index, earlier + came, came, step)


def _step(run: RunItems, index: int) -> int | None:
    """Return the step with the last heading at or before an index.

    Return `None` if there is no heading, or if a request follows the heading before the index."""
    headings = bisect_right(run.steps, index)
    if not headings:
        return None
    heading = run.steps[headings - 1]
    item = run.items[heading]
    if not isinstance(item, StepItem):
        return None
    asked_between = bisect_left(run.rounds, index) - bisect_left(run.rounds, heading)
    if asked_between:
        return None
    return item.step
