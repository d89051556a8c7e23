"""The conversation that a case begins with, and how it grows during a run."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.suite.model import Case, PriorMessage
from workbench.trajectory.messages import Message, ToolCall
from workbench.trajectory.trajectory import Round


def opening_messages(case: Case) -> tuple[Message, ...]:
    """Returns the case's earlier messages, followed by its request or the request of a chain's first step."""
    history = tuple(_message(message) for message in case.messages)
    user = case.steps[0].user if case.steps else case.user
    return (*history, Message("user", user)) if user is not None else history


def conversation_after(messages: tuple[Message, ...], rounds: Iterable[Round]) -> tuple[Message, ...]:
    """Returns a conversation extended by these rounds."""
    conversation = list(messages)
    for done in rounds:
        conversation += messages_before(done.step.user if done.step is not None else None, done.added)
        conversation += (answer_message(done), *result_messages(done))
    return tuple(conversation)


def messages_before(follow_up: str | None, added: Iterable[str]) -> tuple[Message, ...]:
    """Returns the messages right before a request: the step's own message, then those that a person added."""
    texts = (follow_up, *added) if follow_up is not None else tuple(added)
    return tuple(Message("user", text) for text in texts)


def _message(message: PriorMessage) -> Message:
    calls = tuple(ToolCall(call.id, call.tool, call.args) for call in message.tool_calls)
    return Message(message.role, message.content, calls, message.call, message.is_error)


def answer_message(answer: Round) -> Message:
    """Returns a finished answer as the assistant's message that goes back to the model, with arguments as edited by a
    person."""
    return Message(
        "assistant", answer.text, tuple(record.sent for record in answer.calls), provider_state=answer.provider_state
    )


def result_messages(answer: Round) -> tuple[Message, ...]:
    """Returns the tool messages that answer the calls of a round."""
    return tuple(
        Message("tool", record.result.content, call_id=record.call.id, is_error=record.result.is_error)
        for record in answer.calls
        if record.result is not None
    )
