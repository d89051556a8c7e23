"""Receives the requests that a server sends to its client, and passes them to the run whose call is in progress."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.config.secrets import Secrets
from workbench.limits import MAX_CALL_QUESTIONS
from workbench.suite.server_model import Server
from workbench.tools.answer import clean_object, clean_text
from workbench.tools.questions import UNANSWERED, AskRun, ServerQuestion, ServerReply
from workbench.trajectory.events import AskedKind

if TYPE_CHECKING:
    from mcp import Client, MCPError
    from mcp.client.session import ClientRequestContext, ClientSession
    from mcp_types import (
        ClientCapabilities,
        CreateMessageRequestParams,
        CreateMessageResult,
        ElicitRequestParams,
        ElicitRequestURLParams,
        ElicitResult,
        ErrorData,
        ListRootsResult,
    )

_logger = logging.getLogger(__name__)

_USER_REJECTED = -1
"""The error code of the specification for a sampling request that the user rejects."""


async def answer_nothing(question: ServerQuestion) -> ServerReply:
    """Decline every request. Used for calls that no run makes."""
    return UNANSWERED


class CallTimer:
    """The time limit of one call, as a context manager around the call. Raises TimeoutError when the limit is exceeded.

    `call_s` is the limit in seconds. It starts again at each report of progress and after each reply, but the call ends
    at the latest `most_s` seconds after its beginning. Neither limit counts the time in which the server waits for a
    reply."""

    def __init__(self, call_s: float, most_s: float) -> None:
        self._call_s = call_s
        self._most_s = most_s
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()
        self._limit = asyncio.timeout(call_s)
        self._waits = 0
        self._waits_since = 0.0
        self._free_s = 0.0
        self.reported = False
        """Whether the server has reported progress."""

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        await self._limit.__aexit__(*error)

    @property
    def spent_s(self) -> float:
        """The seconds since the call began, except for the time in which the server waited for replies."""
        return self._clock() - self._began - self._free_s

    def extend(self) -> None:
        """Restart the time limit. The end is at most `most_s` seconds after the beginning of the call."""
        if self._waits:
            return
        latest = self._began + self._free_s + self._most_s
        with suppress(RuntimeError):  # the report may arrive after the answer
            self._limit.reschedule(min(self._clock() + self._call_s, latest))

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspend the time limit while the server waits for a reply."""
        if not self._waits:
            self._waits_since = self._clock()
        self._waits += 1
        with suppress(RuntimeError):
            self._limit.reschedule(None)
        try:
            yield
        finally:
            self._waits -= 1
            if not self._waits:
                self._free_s += self._clock() - self._waits_since
                self.extend()


class _CallInProgress:
    """A call in progress. The run that made the call replies to the server's requests."""

    def __init__(self, ask: AskRun, time: CallTimer) -> None:
        self._ask = ask
        self._time = time
        self._replies: set[asyncio.Task[ServerReply]] = set()
        self._count = 0

    @property
    def too_many(self) -> bool:
        return self._count > MAX_CALL_QUESTIONS

    async def reply(self, question: ServerQuestion) -> ServerReply | None:
        """Return the run's reply to a request, `None` if the run can no longer reply."""
        self._count += 1
        if self.too_many:
            return None
        replying = asyncio.ensure_future(self._ask(question))
        self._replies.add(replying)
        try:
            with self._time.suspended():
                # If the call ends, the reply is cancelled. `wait` ensures that the SDK's callback is not cancelled as
                # well.
                await asyncio.wait({replying})
        finally:
            replying.cancel()
            self._replies.discard(replying)
        if replying.cancelled():
            return None
        if (error := replying.exception()) is not None:
            _logger.error("a request of a server", exc_info=error)
            return None
        return replying.result()

    async def end(self) -> None:
        """Cancel the pending replies, and wait until they have ended.

        The wait is needed because a reply may still record its end in the run."""
        replies = tuple(self._replies)
        for replying in replies:
            replying.cancel()
        if replies:
            await asyncio.wait(replies)


class ClientRequests:
    """Answers the requests that a server sends over one connection.

    Over standard input and output, a request does not name the call that it belongs to. It is passed to the call in
    progress, and refused if there are several. Therefore a server that sends requests gets one call at a time
    (`Server.serializes_calls`). `roots` are the folders that the server may use."""

    def __init__(self, server: Server, roots: Sequence[Path], secrets: Secrets) -> None:
        self._server = server
        self._roots = tuple(roots)
        self._secrets = secrets
        self._calls: list[_CallInProgress] = []

    def serve(self, client: Client) -> None:
        """Handle the requests that come over a client's connection.

        Call this method before the client is entered."""
        from mcp_types import SamplingCapability, SamplingToolsCapability

        client.elicitation_callback = self._elicit
        client.sampling_callback = self._sample
        client.sampling_capabilities = SamplingCapability(tools=SamplingToolsCapability())
        client.list_roots_callback = self._list_roots
        build = client._build_session

        async def built(exit_stack: AsyncExitStack[bool | None]) -> ClientSession:
            session = await build(exit_stack)
            # The SDK declares a capability for each callback. Some callbacks exist only to report requests that were
            # not declared.
            of_callbacks = session._build_capabilities

            def declared(version: str) -> ClientCapabilities:
                return self._declared(of_callbacks(version))

            session._build_capabilities = declared  # type: ignore[method-assign]
            return session

        client._build_session = built  # type: ignore[method-assign]

    @asynccontextmanager
    async def of_call(self, ask: AskRun, time: CallTimer) -> AsyncIterator[_CallInProgress]:
        """While a call is in progress, pass the server's requests to the run that makes the call."""
        asking = _CallInProgress(ask, time)
        self._calls.append(asking)
        try:
            yield asking
        finally:
            self._calls.remove(asking)
            await asking.end()

    async def user_consents(self, call: _CallInProgress, required: Sequence[ElicitRequestURLParams]) -> bool:
        """Ask the user to open the addresses that a refused call requires. Return whether the user agreed to all."""
        for each in required:
            reply = await call.reply(self._elicitation(each))
            if reply is None or reply.action != "accept":
                return False
        return True

    def required_by(self, error: MCPError) -> list[ElicitRequestURLParams]:
        """If a server refuses a call until the user has opened some addresses, return these addresses.

        For any other error, return an empty list."""
        from mcp_types import URL_ELICITATION_REQUIRED, ElicitationRequiredErrorData
        from pydantic import ValidationError

        if error.code != URL_ELICITATION_REQUIRED:
            return []
        try:
            return ElicitationRequiredErrorData.model_validate(error.error.data).elicitations
        except ValidationError:
            return []

    def _declared(self, capabilities: ClientCapabilities) -> ClientCapabilities:
        from mcp_types import RootsCapability

        declared: dict[str, object] = {}
        for name in ("elicitation", "sampling", "roots"):
            if name not in self._server.answers:
                declared[name] = None
        # `listChanged` is not declared, because the folders of a connection never change.
        if "roots" in self._server.answers:
            declared["roots"] = RootsCapability()
        return capabilities.model_copy(update=declared)

    async def _elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        from mcp_types import ElicitResult

        reply = await self._reply(question := self._elicitation(params))
        if not isinstance(reply, ServerReply):
            return reply
        content: Any = None
        if reply.action == "accept" and question.schema is not None:
            content = dict(reply.content or {})
        return ElicitResult(action=reply.action, content=content)

    async def _sample(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        from mcp_types import CreateMessageResult, ErrorData, TextContent

        reply = await self._reply(self._sampling(params))
        if not isinstance(reply, ServerReply):
            return reply
        if reply.action != "accept":
            return ErrorData(code=_USER_REJECTED, message="User rejected sampling request")
        text = TextContent(type="text", text=reply.text or "")
        return CreateMessageResult(role="assistant", content=text, model="workbench", stop_reason="endTurn")

    async def _list_roots(self, context: ClientRequestContext) -> ListRootsResult | ErrorData:
        from mcp_types import ErrorData, ListRootsResult, Root

        if "roots" not in self._server.answers:
            return ErrorData(code=-32600, message="List roots not supported")
        roots = []
        for folder in self._roots:
            roots.append(Root.model_validate({"uri": folder.as_uri(), "name": folder.name}))
        return ListRootsResult(roots=roots)

    async def _reply(self, question: ServerQuestion) -> ServerReply | ErrorData:
        """Return the run's reply to a request, or an error to send to the server.

        Does not raise, because the SDK's callbacks must not."""
        from mcp_types import INVALID_REQUEST, ErrorData

        if len(self._calls) != 1:
            under_way = f"{len(self._calls)} calls are" if self._calls else "no call is"
            what = self._secrets.redact(f"server {self._server.name!r} asked, and {under_way} under way")
            _logger.warning("%s: %s", what, self._secrets.redact(question.message))
            return ErrorData(code=INVALID_REQUEST, message=f"{under_way} under way that this request could belong to")
        reply = await self._calls[0].reply(question)
        if reply is None:
            return ErrorData(code=INVALID_REQUEST, message="the call ends")
        if question.undeclared:
            return ErrorData(code=INVALID_REQUEST, message=f"{question.kind.capitalize()} not supported")
        return reply

    def _elicitation(self, params: ElicitRequestParams) -> ServerQuestion:
        request = params.model_dump(
            by_alias=True, exclude_none=True, mode="json", exclude={"message", "mode", "meta", "task"}
        )
        return self._question("elicitation", params.message, request)

    def _sampling(self, params: CreateMessageRequestParams) -> ServerQuestion:
        texts = []
        for message in params.messages:
            for block in message.content_as_list:
                texts.append(block.text if block.type == "text" else f"[{block.type}]")
        request = params.model_dump(by_alias=True, exclude_none=True, mode="json", exclude={"meta", "task"})
        return self._question("sampling", "\n".join(texts), request)

    def _question(self, kind: AskedKind, message: str, request: dict[str, Any]) -> ServerQuestion:
        name, undeclared = self._server.name, kind not in self._server.answers
        return ServerQuestion(kind, name, clean_text(message), clean_object(request), undeclared)
