"""The conversation a case begins with, and how it grows as a run goes on."""

from __future__ import annotations

from workbench.suite.model import Case, HistoryMessage
from workbench.trajectory.messages import Message, ToolCall
from workbench.trajectory.trajectory import Round


def opening_messages(case: Case) -> tuple[Message, ...]:
    """The case's earlier messages, then its request."""
    history = tuple(_message(message) for message in case.messages)
    return (*history, Message("user", case.user)) if case.user is not None else history


def _message(message: HistoryMessage) -> Message:
    calls = tuple(ToolCall(call.id, call.tool, call.args) for call in message.tool_calls)
    return Message(message.role, message.content, calls, message.call, message.is_error)


def answer_message(answer: Round) -> Message:
    """A finished answer as the assistant's message that goes back to the model."""
    return Message("assistant", answer.text, tuple(record.call for record in answer.calls), carry=answer.carry)


def result_messages(answer: Round) -> tuple[Message, ...]:
    """The tool messages that answer the calls of a round."""
    return tuple(
        Message("tool", record.result.content, call_id=record.call.id, is_error=record.result.is_error)
        for record in answer.calls
        if record.result is not None
    )
