"""The requests that servers send during a call, and the replies to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from workbench.checks.schemas import BrokenSchemaError, argument_problems
from workbench.dataclasses import dataclass
from workbench.trajectory.events import AskedKind, JsonValue, ReplyAction, ReplySource, ServerAsked


@dataclass(frozen=True, slots=True)
class ServerQuestion:
    """A request that a server sends during a call: an elicitation or a sampling.

    `message` is the text of an elicitation for the user, or the messages of a sampling. `request` has the other
    parameters under their names in the protocol. `undeclared` is whether the server should not have sent the request,
    because Workbench had declared that it does not answer such requests."""

    kind: AskedKind
    server: str
    message: str
    request: Mapping[str, JsonValue]
    undeclared: bool = False

    @property
    def schema(self) -> Mapping[str, JsonValue] | None:
        """The schema of the form in an elicitation. `None` for an elicitation with an address, and for a sampling."""
        schema = self.request.get("requestedSchema")
        return schema if isinstance(schema, dict) else None


def question_of(event: ServerAsked) -> ServerQuestion:
    """Convert the recorded event of a server's request back to a `ServerQuestion`."""
    return ServerQuestion(event.kind, event.server, event.message, event.request, event.undeclared)


@dataclass(frozen=True, slots=True)
class ServerReply:
    """The reply to a request of a server.

    If a defined reply applies but cannot be sent, `problem` says why."""

    action: ReplyAction
    source: ReplySource
    content: Mapping[str, JsonValue] | None = None
    text: str | None = None
    problem: str | None = None


UNANSWERED = ServerReply("decline", "nobody")
"""The reply to a request if no answer applies."""


class AskRun(Protocol):
    """A function that returns a run's reply to a request, sent by a server during a call of the run. Never raises."""

    async def __call__(self, question: ServerQuestion) -> ServerReply: ...


def problem_of_reply(
    question: ServerQuestion, action: ReplyAction, content: Mapping[str, JsonValue] | None, text: str | None
) -> str | None:
    """Return why a reply does not fit a request, `None` if it fits."""
    if action != "accept":
        return None
    if question.kind == "sampling":
        choice = question.request.get("toolChoice")
        if isinstance(choice, dict) and choice.get("mode") == "required":
            return "the server requires a tool call, but an answer can only be text"
        return None if text is not None else "the text of the answer is missing"
    schema = question.schema
    if schema is None:
        if content is not None:
            return 'the server asks to open an address, not to fill a form: write action = "accept" without `content`'
        return None
    filled = dict(content or {})
    properties = schema.get("properties")
    names = list(properties) if isinstance(properties, dict) else []
    for name in filled:
        if name not in names:
            return f"the form has no field {name!r}, only {', '.join(names) or 'none'}"
    try:
        problems = argument_problems(filled, schema)
    except BrokenSchemaError as error:
        return f"the form of the server is invalid: {error}"
    if problems:
        return "; ".join(problem.replace("args", "content", 1) for problem in problems[:3])
    return None
