"""The models of MCP servers, and of the answers to their requests."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from workbench.checks.check import Check, Checks
from workbench.suite.frozen import Frozen, Items, NonEmpty

Transport = Literal["http", "sse"]

ServerProtocol = Literal["auto", "legacy"]

ServerInstructionsUse = Literal["system", "off"]

ServerAuth = Literal["oauth", "client_credentials"]
"""The OAuth flow of a server: the login of a person, or the credentials of a machine."""

ServerRequest = Literal["elicitation", "sampling", "roots"]
"""A request from a server to its client: for a form or a consent, for a model's text, or for the client's folders."""

StateOwner = Literal["run", "batch"]
"""The owner of the state of a server or of a mock's module: each run, or the batch."""


class Server(Frozen):
    """An MCP server: exactly one of `command` (stdio), `url` and `module` (in memory).

    `cwd` is the folder in which a command runs, relative to the suite's folder, which is the default. With the protocol
    `legacy`, `initialize` is the first message, and the protocol version is 2025-11-25 or earlier. `client_id` and
    `client_secret` belong to a client that was registered by hand at the authorization server `issuer`. Like headers,
    they may hold variables. With `state = "run"`, each run starts its own process or session. Otherwise, all runs of a
    batch share one process or session. `instructions` decides whether the server's instructions become part of the
    system prompt.

    `answers` names the kinds of requests from the server that Workbench answers. It requires the protocol `legacy`. The
    answer to `roots` is the list of folders in `roots`. Each of the other requests is answered by an `Answer`."""

    name: NonEmpty
    command: Annotated[Items[str], Field(min_length=1)] | None = None
    cwd: NonEmpty | None = None
    env: dict[str, str] = Field(default_factory=dict)
    url: NonEmpty | None = None
    transport: Transport | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    auth: ServerAuth | None = None
    client_id: NonEmpty | None = None
    client_secret: NonEmpty | None = None
    issuer: NonEmpty | None = None
    scope: NonEmpty | None = None
    module: NonEmpty | None = None
    object: NonEmpty | None = None
    prefix: str = ""
    protocol: ServerProtocol = "auto"
    start_timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    call_timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    state: StateOwner = "batch"
    instructions: ServerInstructionsUse = "system"
    answers: Items[ServerRequest] = ()
    roots: Items[NonEmpty] = ()

    @property
    def serializes_calls(self) -> bool:
        """Whether calls run one at a time. Then it is clear during which call the server sends a request."""
        return "elicitation" in self.answers or "sampling" in self.answers


def secret_texts(server: Server) -> tuple[str, ...]:
    texts = [*server.env.values(), *server.headers.values()]
    if server.client_secret is not None:
        texts.append(server.client_secret)
    return tuple(texts)


def texts_with_variables(server: Server) -> tuple[str, ...]:
    if server.client_id is None:
        return secret_texts(server)
    return (*secret_texts(server), server.client_id)


AnsweredRequest = Literal["elicitation", "sampling"]
AnswerAction = Literal["accept", "decline", "cancel"]


class Answer(Frozen):
    """A reply to requests that servers send during a call.

    An answer applies if `tool` is the tool of the call and the checks of `message` hold for the text of the request.
    The first such answer is sent. `content` fills the form of an elicitation. `text` answers a sampling request."""

    to: AnsweredRequest
    tool: NonEmpty | None = None
    message: Check | None = None
    action: AnswerAction = "accept"
    content: dict[str, JsonValue] | None = None
    text: str | None = None

    @property
    def when(self) -> Checks:
        """The check of the request's text, under the key `message`, or an empty dictionary if there is no check."""
        if self.message is None:
            return {}
        return {"message": self.message}
