"""Decides which request a run sends next, and with which messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from workbench.dataclasses import dataclass
from workbench.suite.model import Case, PriorMessage, Step
from workbench.trajectory.events import FinishReason, Message, ToolCall
from workbench.trajectory.external_run import ExternalRound
from workbench.trajectory.media import Media, with_placeholders
from workbench.trajectory.trajectory import Round

CONTINUE = "Continue the task to accomplish the original goal."
"""The user message for a step without a user message, after an answer without calls. No API accepts two answers in a
row."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One request of a run.

    `step` is the request's step in a chain, from 1, and `user` is the user message before the request. `executes_calls`
    is True if the tool calls in the answer are executed. With `asks_user`, the user of a conversation is first asked
    for a message. `continues` is True if the previous request belongs to the same step."""

    step: int | None = None
    user: str | None = None
    executes_calls: bool = True
    asks_user: bool = False
    continues: bool = False


class Turns(Protocol):
    """The requests of one run, planned one at a time."""

    def next(self, rounds: int, last: Round | None) -> Turn | FinishReason:
        """Return the next request after `rounds` rounds, or the reason why the run ends.

        `last` is the latest round, `None` before the first."""
        ...


@dataclass(frozen=True, slots=True)
class RoundTurns:
    """The requests of a case without steps and conversation.

    The run ends when the model answers without calls, or after `max_rounds` rounds."""

    max_rounds: int
    checks_answer: bool
    checks_state: bool = False

    def next(self, rounds: int, last: Round | None) -> Turn | FinishReason:
        if last is not None and not last.calls_to_answer:
            return "answered"
        if rounds >= self.max_rounds:
            # With one round and no check of the answer, the case tests only the model's first decision.
            if self.max_rounds == 1 and not self.checks_answer:
                return "decided"
            return "rounds exhausted"
        # The results of the last round's calls go into no further request. The calls are executed only if the case
        # checks the final state, which they may change.
        return Turn(executes_calls=rounds + 1 < self.max_rounds or self.checks_state)


@dataclass(frozen=True, slots=True)
class StepTurns:
    """The requests of a chain, one for each step.

    If the case checks the answer and the last step ended with calls, one more request follows."""

    case: Case

    def next(self, rounds: int, last: Round | None) -> Turn | FinishReason:
        steps = self.case.steps
        if rounds < len(steps):
            return Turn(rounds + 1, self._message(steps[rounds], last))
        # If the last step ended with calls and the case checks the answer, one more request gives the model the
        # results.
        if rounds == len(steps) and self.case.checks_answer and last is not None and last.calls_to_answer:
            return Turn(executes_calls=False)
        return "steps done"

    def _message(self, step: Step, last: Round | None) -> str | None:
        if last is None:
            return None  # the message of the first step is among the opening messages
        if step.user is None and not last.calls_to_answer:
            return CONTINUE
        return step.user


@dataclass(frozen=True, slots=True)
class AgentStepTurns:
    """The requests of a chain that an agent runs.

    A request follows each call of the agent. An answer without calls ends a step. A call also ends its step if the next
    step has no user message. Otherwise the next request belongs to the same step."""

    case: Case

    def next(self, rounds: int, last: Round | None) -> Turn | FinishReason:
        steps = self.case.steps
        if last is None or last.step_number is None:
            return Turn(1)
        done = last.step_number
        if last.calls_to_answer:
            if done < len(steps) and steps[done].user is None:
                return Turn(done + 1)
            return Turn(done, continues=True)
        if done == len(steps):
            return "steps done"
        return Turn(done + 1, steps[done].user or CONTINUE)


@dataclass(frozen=True, slots=True)
class ConversationTurns:
    """The requests of a conversation.

    The user sends a message after each answer without calls. `max_rounds` limits the rounds between two messages of the
    user."""

    max_rounds: int

    def next(self, rounds: int, last: Round | None) -> Turn | FinishReason:
        if last is None or not last.calls_to_answer:
            return Turn(asks_user=True)
        if last.round_in_turn >= self.max_rounds:
            return "rounds exhausted"
        return Turn()


def turns_of(case: Case, max_rounds: int, *, of_agent: bool = False) -> Turns:
    """Return an object that plans the requests of a case one at a time.

    `of_agent` means that an agent runs the case in place of a model."""
    if case.conversation is not None:
        return ConversationTurns(max_rounds)
    if case.steps:
        return AgentStepTurns(case) if of_agent else StepTurns(case)
    return RoundTurns(max_rounds, case.checks_answer, case.final is not None)


def steps_at(case: Case, step: int) -> range:
    """Return the numbers of `step` and of the following steps without a user message.

    Steps are counted from 1."""
    end = step + 1
    while end <= len(case.steps) and case.steps[end - 1].user is None:
        end += 1
    return range(step, end)


def assign_to_steps(rounds: Sequence[ExternalRound], steps: int) -> tuple[ExternalRound, ...]:
    """Assign the rounds of an agent with its own loop to the first `steps` steps, one round to each.

    Later rounds with calls are added to the last of these steps. A later answer without calls belongs to no step."""
    done = [*rounds[:steps]]
    for later in rounds[steps:]:
        if later.calls:
            done[steps - 1] = done[steps - 1].join(later)
        else:
            done.append(later)
    return tuple(done)


def opening_messages(case: Case, images: tuple[Media, ...] = ()) -> tuple[Message, ...]:
    """Return the messages before the first answer: the earlier messages that the case defines, then its request.

    In a chain, the request is the user message of the first step. The images come first in the request, without their
    content."""
    history = tuple(_message(message) for message in case.messages)
    user = case.steps[0].user if case.steps else case.request
    if user is None:
        return history
    if not images:
        return (*history, Message("user", user))
    shown = tuple([image.without_data for image in images])
    return (*history, Message("user", with_placeholders(shown, user), media=shown))


def conversation_after(messages: tuple[Message, ...], rounds: Iterable[Round]) -> tuple[Message, ...]:
    conversation = list(messages)
    for done in rounds:
        conversation += messages_before(done.user_message, done.added)
        conversation += (answer_message(done), *result_messages(done))
    return tuple(conversation)


def messages_before(follow_up: str | None, added: Iterable[str]) -> tuple[Message, ...]:
    """Return the user messages right before a request: `follow_up`, then `added`, the messages that a person added."""
    texts = list(added)
    if follow_up is not None:
        texts.insert(0, follow_up)
    return tuple(Message("user", text) for text in texts)


def _message(message: PriorMessage) -> Message:
    calls = tuple(ToolCall(call.id, call.tool, call.args) for call in message.tool_calls)
    return Message(message.role, message.content, calls, message.call, message.is_error)


def answer_message(answer: Round) -> Message:
    """Return a finished answer as a message to send back to the model.

    If a person edited the arguments of a call, the message has the edited arguments."""
    calls = tuple(record.sent for record in answer.calls_to_answer)
    return Message("assistant", answer.text, calls, provider_state=answer.provider_state)


def result_messages(answer: Round) -> tuple[Message, ...]:
    """Return the tool messages that answer the calls of a round."""
    messages = []
    for record in answer.calls_to_answer:
        result = record.result
        if result is not None:
            messages.append(
                Message("tool", result.content, (), record.call.id, is_error=result.is_error, media=result.media)
            )
    return tuple(messages)
