"""One connection to an MCP server: opens the connection, lists and calls the tools, and closes the connection."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.checks.schemas import BrokenSchemaError, result_problem
from workbench.config.secrets import Secrets
from workbench.limits import MAX_CALL_QUESTIONS, MAX_CALL_SECONDS, MAX_MESSAGE_BYTES, MAX_PROGRESS_CHARS
from workbench.numerals import seconds_text, setting_text
from workbench.suite.server_model import Server
from workbench.tools.answer import OnProgress, ServerError, ToolAnswer, answer_of, clean_object, clean_text, error_of
from workbench.tools.client_requests import CallTimer, ClientRequests, answer_nothing
from workbench.tools.connection import (
    REFUSAL,
    Connection,
    ListingIssue,
    MissingVariableError,
    Refusal,
    TimeLimits,
    first_line,
    innermost_error,
)
from workbench.tools.handshake import Handshake, SilentServerError
from workbench.tools.python_code import in_thread
from workbench.tools.questions import AskRun
from workbench.tools.tool_pages import ToolPages, issues_notice
from workbench.trajectory.events import JsonValue, ServerOutput, ToolDefinition

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult, Tool

# An `mcp.Client` must be entered and left by the same task, which must not be cancelled twice. Therefore one task owns
# the client from start to end, while any task may make calls. Importing `mcp` takes most of a second, so the first
# start of a server does that in a thread.

_KILL_TIMEOUT_S = 0.5

_POLL_INTERVAL_S = 0.05

_MIN_LISTENING_SECONDS = 1.0
"""The shortest life of a stream of changes. If a server ends the stream sooner, no other stream is requested."""

# Some servers announce a change after each listing. Without a pause, the tools would be listed again and again.
MIN_LISTING_INTERVAL_S = 1.0
"""The pause after each new listing, in seconds."""

_logger = logging.getLogger(__name__)


class ExpiredError(ServerError):
    """Raised if a call was not executed because the server has forgotten the session."""


class Session:
    """One connection to an MCP server of a suite, from its start to its end.

    With `handshake`, the server is first asked for the newest protocol. Otherwise, `initialize` is the first message.
    `launcher` is the program that may have to download the server first. `relisted` is called after the server has
    listed different tools than before. `roots` are the folders that the server may use. Every ServerError names the
    server with its command, address or module, redacted."""

    def __init__(
        self,
        server: Server,
        connection: Connection,
        handshake: Handshake | None,
        launcher: str | None,
        secrets: Secrets,
        limits: TimeLimits,
        relisted: Callable[[], Awaitable[object]],
        roots: Sequence[Path] = (),
    ) -> None:
        self._server = server
        self._connection = connection
        self._requests = ClientRequests(server, roots, secrets)
        self._handshake = handshake
        self._launcher = launcher
        self._secrets = secrets
        self._limits = limits
        self._owner: asyncio.Task[None] | None = None
        self._cancelled = False
        self._stop: asyncio.Future[None] | None = None
        self._connecting = True
        self._client: Client | None = None
        self._own_names: dict[str, str] = {}
        self._output_schemas: dict[str, dict[str, Any] | None] = {}
        self._listed: tuple[ToolDefinition, ...] = ()
        self._task_tools: tuple[str, ...] = ()
        self._issues: tuple[ListingIssue, ...] = ()
        self.instructions = ""
        """The server's text on how to use its tools. Empty if the server has no such text."""
        self._tell_relisted = relisted
        self._relisting: asyncio.Future[None] | None = None
        self._error: BaseException | None = None
        self._down: str | None = None
        self._output: ServerOutput | None = None
        self._under_way = 0
        self._idle = asyncio.Event()
        self.answered_count = 0
        """The number of calls that were answered."""
        self.failed_call = False
        """Whether a call has failed because the connection ended, so that its run reports the failure."""

    @property
    def listed(self) -> tuple[ToolDefinition, ...]:
        """The tools of the last listing, with prefixed names."""
        return self._listed

    @property
    def task_tools(self) -> tuple[str, ...]:
        """The prefixed names of tools that are not offered, because they can be called only as MCP tasks."""
        return self._task_tools

    @property
    def issues(self) -> tuple[ListingIssue, ...]:
        """The violations of the protocol in the last listing, redacted."""
        return self._issues

    @property
    def down_reason(self) -> str | None:
        """Why the server can no longer be called, `None` while it can."""
        return self._down

    @property
    def output(self) -> ServerOutput | None:
        """The last lines that the server wrote to standard error before it stopped or lost the connection.

        `None` if they are unknown."""
        return self._output

    @property
    def expired(self) -> bool:
        return self._connection.expired

    @property
    def is_stateless(self) -> bool:
        """Whether the server's protocol has no sessions, so that it cannot distinguish its clients."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        return self._client is not None and self._client.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def was_silent(self) -> bool:
        """Whether the server did not answer the request for the newest protocol."""
        return self._handshake is not None and self._handshake.unanswered

    @property
    def wants_initialize(self) -> bool:
        """Whether the start failed, perhaps because of the request for the newest protocol.

        The server may then start with `initialize` as the first message."""
        handshake, error = self._handshake, self._error
        if handshake is None or not handshake.asked or handshake.agreed or error is None:
            return False
        return isinstance(error, SilentServerError) or self._connection.ended_by_server(error)

    @property
    def pid(self) -> int | None:
        return self._connection.pid

    async def start(self, launched: Callable[[], object]) -> None:
        """Connect to the server and list its tools. Call this method once.

        `launched` is called when a launcher such as npx has downloaded the server. Raises ServerError if the server
        cannot be reached, does not answer in time, or lists tools without end."""
        try:
            await self._start(launched)
        except ServerError as error:
            advised = self._with_advice(error)
            self._down, self._output = str(advised), advised.output
            if advised is error:
                raise
            raise advised from error
        except asyncio.CancelledError:
            self._cancel_owner()
            raise

    def _with_advice(self, error: ServerError) -> ServerError:
        if not (advice := self._connection.advice()):
            return error
        return ServerError(self._secrets.redact(f"{error}: {advice}"), error.output)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, JsonValue],
        on_progress: OnProgress | None = None,
        ask: AskRun = answer_nothing,
    ) -> ToolAnswer:
        """Call a tool by its listed name, and return its answer, which may be a tool error.

        `ask` replies to requests of the server during the call. Raises ExpiredError if the server has forgotten the
        session, and ServerError if it is down, dies, or exceeds the time limit. The limit starts again with each report
        of progress and each reply."""
        if self.expired:
            raise self._forgotten()
        client = self._client
        if client is None:
            # If the server is just going down, wait for the reason.
            if not self._connecting:
                await self._end()
            self.failed_call = True
            raise self._down_error()
        if not _is_text(arguments):
            return ToolAnswer("The arguments hold text that is not valid Unicode.", is_error=True)
        refusal = Refusal()
        token = REFUSAL.set(refusal)
        self._under_way += 1
        try:
            answer = await self._call(client, refusal, tool, arguments, on_progress, ask)
        finally:
            REFUSAL.reset(token)
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()
        self.answered_count += 1
        return answer

    async def _call(
        self,
        client: Client,
        refusal: Refusal,
        tool: str,
        arguments: Mapping[str, JsonValue],
        on_progress: OnProgress | None,
        ask: AskRun,
    ) -> ToolAnswer:
        from mcp import MCPError

        connection = self._connection
        # If the server was started again, it may no longer list the tool.
        name = self._own_names.get(tool) or tool.removeprefix(self._server.prefix)
        call_s = self._limits.call_s
        time = CallTimer(call_s, max(call_s, MAX_CALL_SECONDS))

        async def report_progress(progress: float, total: float | None, message: str | None) -> None:
            time.reported = True
            time.extend()
            if on_progress is not None:
                self._pass_progress(on_progress, progress, total, message)

        try:
            async with self._requests.of_call(ask, time) as asking:
                asked: set[str] = set()
                async with time:
                    while True:
                        try:
                            result = await client.call_tool(name, dict(arguments), progress_callback=report_progress)
                            break
                        except MCPError as error:
                            # The server has not executed the call. It is repeated after the user has opened the
                            # required addresses.
                            required = self._requests.required_by(error)
                            known, asked = asked, asked | {each.elicitation_id or each.url for each in required}
                            if asked == known or not await self._requests.user_consents(asking, required):
                                raise
                if asking.too_many:
                    raise self._failure(MAX_CALL_QUESTIONS.reached(what=f"a call of {tool}"))
            return self._fit(answer_of(result), tool)
        except TimeoutError:
            reported = time.reported
            if reported and time.spent_s >= MAX_CALL_SECONDS:
                raise self._failure(f"did not finish a call of {tool}, which {MAX_CALL_SECONDS.reached()}") from None
            late = f"did not answer a call of {tool}"
            if reported:
                late = f"reported no more progress of a call of {tool}"
            late += f" within {seconds_text(call_s)}{connection.hint()}; {_more_time('call_timeout_s', call_s)}"
            raise self._failure(late) from None
        except (MCPError, RuntimeError, ValueError) as error:
            if refusal.expired:
                raise self._forgotten() from None
            # An MCPError may be an error that the server reported, or the end of the connection, both perhaps with the
            # same code. RuntimeError and ValueError mean that the answer violates the tool's output schema or the
            # protocol.
            problem = connection.unanswered_reason(error)
            if self._client is client and not connection.closed:
                if problem is not None:
                    raise self._failure(f"failed a call of {tool}: {problem}") from None
                return self._fit(error_of(error), tool)
        self.failed_call = True
        await self._end()
        raise self._down_error()

    async def wait_for_change(self, known_tools: tuple[ToolDefinition, ...]) -> None:
        """Wait until a started server goes down, or has listed different tools than `known_tools`."""
        owner = self._owner
        while owner is not None and not owner.done() and self._listed is known_tools and self._relisting is not None:
            await asyncio.wait({owner, self._relisting}, return_when=asyncio.FIRST_COMPLETED)

    async def wait_until_down(self) -> None:
        """If the server has lost its connection, wait until `down_reason` is set.

        Returns at once while the server can be called."""
        if self._client is None and not self._connecting and self._down is None:
            await self._end()

    async def close_when_idle(self) -> None:
        """Wait until the calls in progress have ended, then close the connection."""
        if self._under_way:
            self._idle.clear()
            await self._idle.wait()
        await self.close()

    async def close(self) -> None:
        """End the server and everything that it started, within the time limits. May be called repeatedly."""
        if self._down is None:
            self._down = self._message("was closed")
        await self._end()

    async def _start(self, launched: Callable[[], object]) -> None:
        await asyncio.to_thread(importlib.import_module, "mcp")
        silence_sdk_logging()
        if self._down is not None:
            raise self._down_error()
        loop = asyncio.get_running_loop()
        self._stop, self._relisting = loop.create_future(), loop.create_future()
        listed: asyncio.Future[None] = loop.create_future()
        owner = asyncio.create_task(self._own(listed, self._stop), name=f"server {self._server.name}")
        self._owner = owner
        late = await self._lateness({listed, owner}, launched)
        if listed.done():
            return
        if owner.done():
            raise self._start_error()
        # The message is built first, because some servers write more to standard error while they end.
        error = self._failure(late)
        await self._end()
        raise error

    async def _lateness(self, end_futures: set[asyncio.Future[Any]], launched: Callable[[], object]) -> str:
        """Wait until one of `end_futures` is done or a time limit is exceeded. Return why the start is late.

        If one of `end_futures` is done, the start is not late, and the caller must ignore the text."""
        limits = self._limits
        if self._launcher is not None:
            if not await self._is_launched(end_futures):
                more = _more_time("start_timeout_s", limits.download_s)
                return f"was not started by {self._launcher} within {seconds_text(limits.download_s)}; {more}"
            launched()
        await asyncio.wait(end_futures, timeout=limits.start_s, return_when=asyncio.FIRST_COMPLETED)
        late = f"did not answer within {seconds_text(limits.start_s)}{self._connection.hint()}"
        return f"{late}; {_more_time('start_timeout_s', limits.start_s)}"

    async def _is_launched(self, end_futures: set[asyncio.Future[Any]]) -> bool:
        """Wait until a launcher has downloaded the server. Return `False` if that took too long.

        The download is over when the server reads messages or when one of `end_futures` is done."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._limits.download_s
        while clock() < deadline:
            done, _ = await asyncio.wait(end_futures, timeout=_POLL_INTERVAL_S, return_when=asyncio.FIRST_COMPLETED)
            if done or self._connection.has_read:
                return True
        return False

    async def _own(self, on_listed: asyncio.Future[None], on_stop: asyncio.Future[None]) -> None:
        """Open, use and close the connection. The SDK requires that a single task does all of this."""
        from mcp import Client
        from mcp_types import ToolListChangedNotification

        changed = asyncio.Event()

        async def on_message(message: object) -> None:
            if isinstance(message, ToolListChangedNotification):
                changed.set()

        try:
            entered = Client(self._connection, message_handler=on_message, mode="legacy")
            if self._handshake is not None:
                entered = replace(entered, mode="auto")
            self._requests.serve(entered)
            if self._handshake is not None:
                self._handshake.attach_to(entered)
            async with entered as client:
                if self._handshake is not None:
                    self._handshake.agreed = True
                client.session.validate_tool_result = self._check_result  # type: ignore[method-assign]
                self.instructions = clean_text(client.instructions or "").strip()
                pages = ToolPages(client, self._server.prefix, self._secrets.redact)
                self._listed = await self._list_tools(pages)
                self._client, self._connecting = client, False
                on_listed.set_result(None)
                followers = set()
                for each in (self._follow(pages, changed), _listen(client, changed)):
                    followers.add(asyncio.create_task(each))
                try:
                    await asyncio.wait({on_stop, self._connection.disconnected}, return_when=asyncio.FIRST_COMPLETED)
                    self._client = None
                finally:
                    for follower in followers:
                        follower.cancel()
                    await asyncio.wait(followers)
        # The error is stored. `_start_error` and `loss_reason` report it to the callers that wait.
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001
            self._error = innermost_error(error)
        finally:
            self._client = None
            if on_listed.done() and self._down is None:
                self._down = self._message(self._connection.loss_reason(self._error))
                self._output = self._connection.output

    async def _follow(self, pages: ToolPages, changed: asyncio.Event) -> None:
        """List the tools again whenever `changed` is set, because the server has announced a change."""
        from mcp import MCPError

        while True:
            await changed.wait()
            changed.clear()
            try:
                async with asyncio.timeout(self._limits.call_s):
                    tools = await self._list_tools(pages)
            except (TimeoutError, MCPError, RuntimeError, ValueError, ServerError) as error:
                _logger.warning("%s", self._message(f"does not list its changed tools: {first_line(error)}"))
                tools = self._listed
            if tools != self._listed:
                relisting, self._relisting = self._relisting, asyncio.get_running_loop().create_future()
                self._listed = tools
                assert relisting is not None
                relisting.set_result(None)
                await self._tell_relisted()
            await asyncio.sleep(MIN_LISTING_INTERVAL_S)

    async def _list_tools(self, pages: ToolPages) -> tuple[ToolDefinition, ...]:
        listed = await pages.read()
        issues = self._secrets.redacted(listed.issues)
        if issues != self._issues:
            _logger.warning("%s", issues_notice(self._server.name, issues))
        self._issues = issues
        return self._offered(listed.tools)

    def _offered(self, tools: Sequence[Tool]) -> tuple[ToolDefinition, ...]:
        definitions, task_tools = [], []
        for tool in tools:
            if tool.execution is not None and tool.execution.task_support == "required":
                task_tools.append(clean_text(self._server.prefix + tool.name))
            else:
                definitions.append(self._definition(tool))
        self._task_tools = tuple(task_tools)
        return tuple(definitions)

    def _definition(self, tool: Tool) -> ToolDefinition:
        hints: dict[str, Any] = {}
        if tool.annotations:
            hints = tool.annotations.model_dump(by_alias=True, exclude_none=True)
        name = clean_text(self._server.prefix + tool.name)
        self._own_names[name] = tool.name
        self._output_schemas[tool.name] = tool.output_schema
        return ToolDefinition(
            name=name,
            description=clean_text(tool.description or ""),
            parameters=clean_object(tool.input_schema),
            annotations=clean_object(hints),
            server=self._server.name,
        )

    async def _check_result(self, name: str, result: CallToolResult) -> None:
        """Check the structured content of a result against the tool's output schema.

        Raises RuntimeError if the content does not fit."""
        # The SDK's own validation is not used, because it applies the server's patterns without a time limit.
        schema = self._output_schemas.get(name)
        if schema is None:
            return
        if result.structured_content is None and "structured_content" not in result.model_fields_set:
            raise RuntimeError(f"Tool {name} has an output schema but did not return structured content")
        try:
            problem = await in_thread(lambda: result_problem(result.structured_content, schema), name="schema")
        except BrokenSchemaError as error:
            raise RuntimeError(f"the output schema of tool {name} is invalid: {error}") from error
        if problem is not None:
            raise RuntimeError(f"Invalid structured content returned by tool {name}: {problem}")

    async def _end(self) -> None:
        """End the task that owns the connection.

        If the connection is open, the future `stop` ends the task. If it is not open yet, the task is cancelled."""
        owner, stop = self._owner, self._stop
        if owner is None or stop is None:
            return
        if not stop.done():
            stop.set_result(None)
            if self._connecting:
                self._cancel_owner()
        await asyncio.wait({owner}, timeout=self._limits.close_s + self._connection.rollback_s)
        if not owner.done():
            self._connection.kill()
            self._cancel_owner()
            await asyncio.wait({owner}, timeout=_KILL_TIMEOUT_S)

    def _cancel_owner(self) -> None:
        if self._owner is not None and not self._cancelled:
            self._cancelled = True
            self._owner.cancel()

    def _fit(self, answer: ToolAnswer, tool: str) -> ToolAnswer:
        """Return an answer whose text can be written to files and sent in requests.

        Raises ServerError if the text exceeds the limit."""
        if len(answer.content) > MAX_MESSAGE_BYTES:
            raise self._failure(MAX_MESSAGE_BYTES.reached(what=f"an answer to a call of {tool}"))
        return replace(answer, content=clean_text(answer.content))

    def _pass_progress(
        self, on_progress: OnProgress, progress: float, total: float | None, message: str | None
    ) -> None:
        shown = None
        if message:
            shown = self._cut(clean_text(message))
        on_progress(progress, total, shown)

    def _message(self, text: str) -> str:
        # Redaction comes first, because later steps cut the message, and half of a secret would not be recognised.
        return self._secrets.redact(clean_text(f"server {self._server.name!r} {text} ({self._connection.where})"))

    def _failure(self, text: str) -> ServerError:
        return ServerError(self._message(text), self._connection.output)

    def _forgotten(self) -> ExpiredError:
        return ExpiredError(self._message("has forgotten the session: it was probably restarted"))

    def _down_error(self) -> ServerError:
        return ServerError(self._down or self._message("is not running"), self._output)

    def _cut(self, text: str) -> str:
        # Redaction comes before cutting, because half of a secret would not be recognised.
        if len(text) <= MAX_PROGRESS_CHARS:
            return text
        return self._secrets.redact(text)[:MAX_PROGRESS_CHARS]

    def _start_error(self) -> ServerError:
        error = self._error
        if isinstance(error, ServerError):
            return error
        if self._down is not None:
            return self._down_error()
        if isinstance(error, MissingVariableError):
            return self._failure(f"needs the environment variable {error.name}, which is not set")
        return self._failure(self._connection.start_failure(error))


def _more_time(key: str, seconds: float) -> str:
    return f"{key} = {setting_text(2 * seconds)} in its [[servers]] gives it more time"


async def _listen(client: Client, changed: asyncio.Event) -> None:
    """Set `changed` whenever the server announces that its tools have changed. For servers of the newest protocol."""
    # A server of an older protocol sends a notification to the client's message handler instead.
    from mcp import MCPError
    from mcp.client.subscriptions import SubscriptionLost
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    tools, clock = client.server_capabilities.tools, asyncio.get_running_loop().time
    if tools is None or not tools.list_changed or client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return
    while True:
        began = clock()
        try:
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    changed.set()
            return
        except SubscriptionLost:
            if clock() - began < _MIN_LISTENING_SECONDS:
                return
            changed.set()  # a change between two streams is not announced
        except (MCPError, RuntimeError, TimeoutError):
            return


def _is_text(arguments: Mapping[str, JsonValue]) -> bool:
    # A model may send one half of a surrogate pair, on which the SDK would fail.
    try:
        json.dumps(dict(arguments), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def silence_sdk_logging() -> None:
    """Keep the SDK and its HTTP client from writing log lines to the terminal."""
    # Everything of interest is in the server's own log and in the errors of this module.
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        logger = logging.getLogger(name)
        logger.propagate = False
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
