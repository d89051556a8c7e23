"""Runs an agent in place of a model, over the Agent Client Protocol (ACP).

Each tool call of the agent ends one model answer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.config.agents import KNOWN_AGENTS
from workbench.config.secrets import Secrets
from workbench.dataclasses import json_text
from workbench.engine.agents.connection import (
    AgentConnection,
    AgentError,
    AgentLost,
    IncomingMessage,
    IncomingRequest,
    JsonRpcError,
    MalformedLine,
    Notification,
    command_with_full_path,
)
from workbench.engine.agents.reported_calls import ReportedCall, ReportedCalls
from workbench.engine.agents.setup import (
    RunFolders,
    Setup,
    SetupRequest,
    create_folders,
    missing_agent_message,
    server_name,
    set_up,
    unsupported_system_reason,
)
from workbench.engine.agents.tool_server import ForwardedCall, OfferedServer, ToolServer
from workbench.engine.agents.usage import PromptUsage
from workbench.limits import MAX_AGENT_ITEMS, MAX_AGENT_LINES
from workbench.providers.function import call_events, tool_call
from workbench.providers.model import AnswerFinished, AnswerTooLargeError, ModelError, ModelRequest
from workbench.suite.model import Subject
from workbench.threads import in_thread
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import (
    AgentNoted,
    AgentNoteKind,
    AgentStarted,
    CallFinished,
    CallStarted,
    Message,
    ModelEvent,
    ReasoningDelta,
    ResultReceived,
    ServerOutput,
    StopReason,
    TextDelta,
    ToolDefinition,
)
from workbench.trajectory.media import Media

START_TIMEOUT_S = 120.0
"""The time limit, in seconds, for an agent to start and open its session. Some agents first start servers and
models."""

_MAX_QUEUED_MESSAGES = 1_000
"""The maximum number of unread messages of an agent. When it is reached, the agent waits."""

_SUITE_SERVER = "workbench"
"""The name of the server for tools that the suite defines itself."""

_LOGIN_NEEDED = -32000
_SETTLING_TURNS = 3
"""The number of event loop turns that suffice to read everything the agent wrote before a call."""

_IGNORED = (
    *("user_message_chunk", "available_commands_update", "current_mode_update", "config_option_update"),
    "session_info_update",
    "usage_update",
)
"""Updates that contain nothing about a run."""

_STOP_REASONS: Mapping[str, StopReason] = {
    "end_turn": "answered",
    "max_tokens": "truncated",
    "max_turn_requests": "truncated",
    "refusal": "refused",
}

_NUMBERED_ANSWERS = ("codex",)
"""Agents that number their model's messages. Their own warnings arrive as messages without a number."""

_LISTS_TOOLS_LATE = ("claude-code", "codex", "qwen")
"""Agents that open their session before the servers have started, and may then ask their model without the tools."""

_DROPS_UNDESCRIBED = ("qwen",)
"""Agents of which some versions do not offer a tool without a description to their model."""

LISTING_TIMEOUT_S = 30.0
"""The time limit, in seconds, for an agent to list the tools before its first prompt is sent."""


class AgentModel:
    """An agent that takes the place of a model in one run.

    A request with a user message becomes a prompt. A request with results answers the calls for which the agent waits.
    `folder` is the suite's folder. `environment` is the user's environment; the agent receives only the variables that
    its preset and `passed` name."""

    seed = None
    notices: tuple[str, ...] = ()

    def __init__(
        self,
        subject: Subject,
        *,
        folder: Path,
        system: str | None,
        environment: Mapping[str, str],
        passed: Sequence[str],
        secrets: Secrets,
    ) -> None:
        self.name = subject.name
        self._subject = subject
        self._folder = folder
        self._system = system
        self._environment = environment
        self._passed = passed
        self._secrets = secrets
        self._queue: asyncio.Queue[IncomingMessage | ForwardedCall] = asyncio.Queue(_MAX_QUEUED_MESSAGES)
        self._connection = AgentConnection(subject.called, self._queue.put, secrets)
        self._folders: RunFolders | None = None
        self._tools: ToolServer | None = None
        self._servers: tuple[OfferedServer, ...] = ()
        self._reported = ReportedCalls(())
        self._session = ""
        self._started: AgentStarted | None = None
        self._accepts_images = False
        self._closed = False

        self._read = 0
        """The number of messages of the conversation that were already sent to the agent."""
        self._prompts: list[Message] = []
        self._prompt: asyncio.Future[Any] | None = None
        self._prompted = 0
        self._unlisted: tuple[str, ...] = ()
        """The servers whose tools the agent had not listed when its last prompt was sent."""
        self._arrived: deque[ForwardedCall] = deque()
        self._waiting: dict[str, ForwardedCall] = {}
        self._forwarded: list[tuple[str, Mapping[str, Any]]] = []
        self._calls = self._own_calls = 0
        self._messages = self._notes = 0
        self._waiting_notes: list[tuple[AgentNoteKind, str]] = []
        self._unknown: set[str] = set()
        self._usage = PromptUsage(subject.agent)

    async def start(self) -> None:
        """Do nothing. `begin` starts the agent together with its tools."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return a context without effect, because requests to an agent need not wait for other runs."""
        return nullcontext()

    def accepts_media(self, media: Media) -> bool:
        """Return whether the agent accepts an image in messages.

        This does not limit tool results, which may always contain images."""
        return media.is_image and self._accepts_images

    def output(self) -> ServerOutput | None:
        return self._connection.output

    async def begin(self, tools: Toolbox) -> None:
        """Start the agent and open its session with the tools of a run.

        Raises AgentError."""
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._begin(tools)
        except TimeoutError:
            error = self._connection.slow_error(START_TIMEOUT_S)
            await self.close()
            raise error from None
        except JsonRpcError as error:
            refused = self._connection.error(f"{self._who} opened no session: {error}")
            await self.close()
            raise refused from error
        except (OSError, ValueError) as error:
            await self.close()
            raise AgentError(f"{self._who} cannot be started: {error}") from error
        except BaseException:
            await self.close()
            raise

    @property
    def _who(self) -> str:
        return f"the agent {self._subject.called}"

    async def _begin(self, tools: Toolbox) -> None:
        if (why := unsupported_system_reason()) is not None:
            raise AgentError(why)
        subject = self._subject
        copied = None if subject.folder is None else self._folder / subject.folder
        if copied is not None and not copied.is_dir():
            raise AgentError(f"the folder {subject.folder} of {self._who} does not exist in {self._folder}")
        self._folders = folders = await in_thread(lambda: create_folders(copied), name="folders of an agent")
        self._servers = _offered_servers(tools, described=subject.agent in _DROPS_UNDESCRIBED)
        self._reported = ReportedCalls(self._servers)
        wanted = SetupRequest(subject, self._system, tuple(server.name for server in self._servers), self._folder)
        setup = set_up(wanted, folders.home, self._environment, self._passed, self._secrets)
        command = command_with_full_path(setup.command, setup.environment.get("PATH"))
        if command is None:
            raise AgentError(missing_agent_message(subject))
        self._tools = ToolServer(self._servers, folders.root, self._queue.put)
        await self._tools.start()
        await self._connection.start(command, folders.working_folder, setup.environment)
        await self._open_session(setup, self._tools, folders.working_folder)

    async def _open_session(self, setup: Setup, tools: ToolServer, working_folder: Path) -> None:
        capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        client = {"name": "workbench", "title": "Workbench", "version": "1"}
        asked = {"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": client}
        told = _object(await self._connection.request("initialize", asked))
        if told.get("protocolVersion") != 1:
            raise AgentError(
                f"{self._who} speaks version {told.get('protocolVersion')} of ACP, and Workbench version 1"
            )
        prompt = _object(_object(told.get("agentCapabilities")).get("promptCapabilities"))
        self._accepts_images = prompt.get("image") is True
        opened: dict[str, Any] = {"cwd": str(working_folder), "mcpServers": tools.as_mcp_servers}
        if setup.meta:
            opened["_meta"] = setup.meta
        try:
            session = _object(await self._connection.request("session/new", opened))
        except JsonRpcError as error:
            if error.code == _LOGIN_NEEDED:
                raise self._login_needed(error) from error
            raise
        if not isinstance(number := session.get("sessionId"), str):
            raise AgentError(f"{self._who} opened a session without an id")
        self._session = number
        self._connection.has_session = True
        mode = await self._set_mode(_object(session.get("modes")))
        info = _object(told.get("agentInfo"))
        self._started = AgentStarted(
            1,
            self._subject.agent or "",
            setup.command,
            str(info.get("title") or info.get("name") or self.name),
            str(info.get("version") or ""),
            mode,
            self._subject.builtin,
        )
        for note in setup.notes:
            self._waiting_notes.append(("message", note))

    async def _set_mode(self, modes: Mapping[str, Any]) -> str:
        known = KNOWN_AGENTS.get(self._subject.agent or "")
        wanted = self._subject.mode or ("" if known is None else known.mode)
        there = [str(mode["id"]) for mode in _objects(modes.get("availableModes")) if "id" in mode]
        if not wanted:
            return str(modes.get("currentModeId") or "")
        if there and wanted not in there:
            raise AgentError(f"{self._who} has no mode {wanted!r}: it has {', '.join(there)}")
        try:
            await self._connection.request("session/set_mode", {"sessionId": self._session, "modeId": wanted})
        except JsonRpcError as error:
            raise AgentError(f"{self._who} refused the mode {wanted!r}: {error}") from error
        return wanted

    def _login_needed(self, error: JsonRpcError) -> AgentError:
        advice = "give it a key in `env`"
        if self._subject.agent is not None:
            advice = f"set one of {', '.join(KNOWN_AGENTS[self._subject.agent].login_variables)}"
        return self._connection.error(
            f"{self._who} needs a login, because it runs in a new home folder without your login: {advice} ({error})"
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        """Send the new part of the conversation, and yield the agent's events up to its next call or its answer."""
        number = request.round
        self._pass_on(request.messages)
        if self._started is not None:
            yield self._started
            self._started = None
        while True:
            for note in self._pop_notes(number):
                yield note
            if self._arrived:
                async for event in self._make_call(number, self._arrived.popleft()):
                    yield event
                return
            if self._prompt is None:
                if not self._prompted and self._subject.agent in _LISTS_TOOLS_LATE:
                    await self._wait_for_listing()
                self._begin_prompt()
            incoming = await self._next()
            if isinstance(incoming, ForwardedCall):
                self._arrived.append(incoming)
                # Calls arrive through a socket, but messages through a pipe. Let the event loop read the messages that
                # the agent sent before the call.
                for _ in range(_SETTLING_TURNS):
                    await asyncio.sleep(0)
                for event in self._events_so_far(number):
                    yield event
            elif incoming is not None:
                for event in self._events(number, incoming):
                    yield event
            else:
                assert self._prompt is not None
                reason = self._ended(self._prompt)
                self._prompt = None
                for event in self._last_events(number):
                    yield event
                if not self._prompts:
                    usage, cost = self._usage.pop()
                    yield AnswerFinished(reason, usage, cost_usd=cost)
                    return

    def _pass_on(self, messages: Sequence[Message]) -> None:
        new, self._read = messages[self._read :], len(messages)
        for message in new:
            if message.role == "user":
                self._prompts.append(message)
            elif message.role == "tool" and (call := self._waiting.pop(message.call_id or "", None)) is not None:
                call.answer(message)
            elif not self._prompted:
                raise ModelError(
                    f"{self._who} cannot be given an earlier conversation: remove `messages` from the case"
                )
        if self._waiting:
            raise ModelError(f"{self._who} cannot be asked again before its call is answered")

    async def _wait_for_listing(self) -> None:
        """Wait until the agent has listed the tools, has ended, or has reached the time limit."""
        assert self._tools is not None
        if not self._tools.unlisted_servers:
            return
        waiting = {asyncio.ensure_future(event.wait()) for event in (self._tools.all_listed, self._connection.lost)}
        try:
            await asyncio.wait(waiting, timeout=LISTING_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()

    def _begin_prompt(self) -> None:
        blocks: list[dict[str, Any]] = []
        prompts, self._prompts = self._prompts, []
        for message in prompts:
            for medium in message.media:
                if medium.data and medium.is_image and self._accepts_images:
                    blocks.append({"type": "image", "data": medium.data, "mimeType": medium.media_type})
            blocks.append({"type": "text", "text": message.content})
        self._prompted += 1
        assert self._tools is not None
        self._unlisted = self._tools.unlisted_servers
        self._prompt = self._connection.sent_request("session/prompt", {"sessionId": self._session, "prompt": blocks})

    async def _next(self) -> IncomingMessage | ForwardedCall | None:
        """Return the agent's next message or call.

        Returns `None` after the prompt has ended and all earlier messages were returned."""
        if not self._queue.empty():
            return self._queue.get_nowait()
        assert self._prompt is not None
        getting = asyncio.ensure_future(self._queue.get())
        try:
            await asyncio.wait({getting, self._prompt}, return_when=asyncio.FIRST_COMPLETED)
            if getting.done():
                return getting.result()
            # Messages in the queue were sent before the answer to the prompt, even if both were read at the same time.
            if not self._queue.empty():
                return self._queue.get_nowait()
            return None
        finally:
            getting.cancel()

    def _events_so_far(self, number: int) -> Iterator[ModelEvent]:
        """Yield the events of all messages received so far, and queue the received calls in their order."""
        while not self._queue.empty():
            incoming = self._queue.get_nowait()
            if isinstance(incoming, ForwardedCall):
                self._arrived.append(incoming)
            else:
                yield from self._events(number, incoming)

    async def _make_call(self, number: int, call: ForwardedCall) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        self._calls += 1
        call_id = f"call-{self._calls}"
        arguments = call.arguments if isinstance(call.arguments, dict) else json_text(call.arguments)
        made = tool_call(call_id, call.tool, arguments)
        self._waiting[call_id] = call
        self._forwarded.append((call.tool, made.arguments))
        for event in call_events(call_id, made, number):
            yield event
        yield AnswerFinished("tool calls")

    def _events(self, number: int, incoming: IncomingMessage) -> Iterator[ModelEvent]:
        self._messages += 1
        if self._messages > MAX_AGENT_ITEMS:
            raise AnswerTooLargeError(MAX_AGENT_ITEMS.reached())
        match incoming:
            case AgentLost():
                raise self._connection.lost_error()
            case MalformedLine(text=text):
                yield from self._note(number, "message", f"the agent wrote a line that is not an ACP message: {text!r}")
            case IncomingRequest(method="session/request_permission"):
                yield from self._answer_permission_request(number, incoming)
            case IncomingRequest(method=method):
                self._connection.refuse(incoming)
                if _is_of_protocol(method):
                    yield from self._once(number, f"the agent asked for {method}, which is not offered")
            case Notification(method="session/update", params=params):
                yield from self._update(number, _object(params.get("update")))
            case Notification(method=method) if _is_of_protocol(method):
                yield from self._once(number, f"an unknown notification: {method}")

    def _update(self, number: int, update: Mapping[str, Any]) -> Iterator[ModelEvent]:
        self._usage.update(update)
        match kind := update.get("sessionUpdate"):
            case "agent_message_chunk":
                text = _text(update.get("content"))
                if text and self._subject.agent in _NUMBERED_ANSWERS and "messageId" not in update:
                    yield from self._note(number, "message", text.strip())
                elif text:
                    yield TextDelta(number, text)
            case "agent_thought_chunk":
                if text := _text(update.get("content")):
                    yield ReasoningDelta(number, text)
            case "tool_call" | "tool_call_update":
                if self._reported.merge(update) is not None:
                    yield from self._own_tool_calls(number, at_end=False)
            case "plan":
                entries = _objects(update.get("entries"))
                steps = [f"{entry.get('content')} ({entry.get('status')})" for entry in entries]
                yield from self._note(number, "plan", "; ".join(steps))
            case _ if kind not in _IGNORED:
                yield from self._once(number, f"an unknown update: {kind}")

    def _own_tool_calls(self, number: int, *, at_end: bool) -> Iterator[ModelEvent]:
        """Yield the agent's calls of its built-in tools.

        The calls are graded only if the suite allows built-in tools."""
        for call in self._reported.own_calls(at_end=at_end):
            self._own_calls += 1
            call_id = f"own-{self._own_calls}"
            by_provider = "offered" if self._subject.builtin == "allow" else "other"
            yield CallStarted(number, call_id, call.title, by_provider)  # type: ignore[arg-type]
            yield CallFinished(call_id, call.arguments)
            if call.has_ended:
                yield ResultReceived(call_id, call.output, call.failed, "provider", 0.0)

    def _answer_permission_request(self, number: int, request: IncomingRequest) -> Iterator[ModelEvent]:
        """Answer the agent's request for permission to call a tool, and yield a note if the answer is no.

        Tools of the suite are allowed. The suite decides about the agent's built-in tools."""
        call = self._reported.merge(_object(request.params.get("toolCall")))
        offered = None if call is None else self._reported.offered_tool(call)
        allowed = offered is not None or self._subject.builtin == "allow"
        kinds = ("allow_once", "allow_always") if allowed else ("reject_once", "reject_always")
        option = _option_of_kind(request.params.get("options"), kinds)
        if option is None:
            self._connection.answer(request, {"outcome": {"outcome": "cancelled"}})
        else:
            self._connection.answer(request, {"outcome": {"outcome": "selected", "optionId": option}})
        what = "a tool without a name" if call is None else _words(call)
        if offered is not None and option is None:
            raise AgentError(
                f"{self._who} asked for permission to call {offered.tool}, but offered no option that grants it"
            )
        if not allowed:
            if call is not None:
                call.is_refused = True
            yield from self._note(number, "permission", what)

    def _last_events(self, number: int) -> Iterator[ModelEvent]:
        yield from self._own_tool_calls(number, at_end=True)
        for tool, call in self._reported.not_forwarded(self._forwarded):
            status = call.fields.get("status", "without a status")
            said = f": {call.output}" if call.output else ""
            text = f"{tool} {json_text(call.arguments)} was reported as {status}, and never reached Workbench{said}"
            yield from self._note(number, "not forwarded", text)
        self._forwarded.clear()
        yield from self._pop_notes(number)

    def _ended(self, prompt: asyncio.Future[Any]) -> StopReason:
        """Return why a prompt ended.

        Raises AgentError if the agent did not answer the prompt, or answered it without having listed the suite's
        tools."""
        try:
            result = _object(prompt.result())
        except JsonRpcError as error:
            if error.code == _LOGIN_NEEDED:
                raise self._login_needed(error) from error
            raise self._connection.error(f"{self._who} did not answer: {error}") from error
        assert self._tools is not None
        if self._tools.unlisted_servers:
            names = ", ".join(self._tools.unlisted_servers)
            raise self._connection.error(
                f"{self._who} answered without having listed the tools of {names}, so its model had none of them; "
                "this may be a slow start, a setting of the agent, or a server that it does not start"
            )
        if self._unlisted and not self._forwarded:
            # Some agents list the tools before they ask their model, others at the same time. ACP does not tell which.
            names = ", ".join(self._unlisted)
            text = (
                f"the agent listed the tools of {names} after it got its prompt, so its model may have had none of them"
            )
            self._waiting_notes.append(("message", text))
        self._usage.prompt_ended(result)
        reason = result.get("stopReason")
        if reason == "cancelled":
            raise self._connection.error(f"{self._who} cancelled the prompt by itself")
        if reason not in _STOP_REASONS or reason == "max_turn_requests":
            self._waiting_notes.append(("message", f"the agent stopped for the reason {reason}"))
        return _STOP_REASONS.get(str(reason), "answered")

    def _pop_notes(self, number: int) -> Iterator[ModelEvent]:
        notes, self._waiting_notes = self._waiting_notes, []
        for kind, text in notes:
            yield from self._note(number, kind, text)

    def _once(self, number: int, text: str) -> Iterator[ModelEvent]:
        if text not in self._unknown:
            self._unknown.add(text)
            yield from self._note(number, "message", text)

    def _note(self, number: int, kind: AgentNoteKind, text: str) -> Iterator[ModelEvent]:
        self._notes += 1
        if self._notes < MAX_AGENT_LINES:
            yield AgentNoted(number, kind, text)
        elif self._notes == MAX_AGENT_LINES:
            yield AgentNoted(number, "message", f"{MAX_AGENT_LINES} notes; further ones are left out")

    async def close(self) -> None:
        """Cancel the prompt, end all processes of the agent, and remove its folders.

        Closing an agent twice is harmless."""
        if self._closed:
            return
        self._closed = True
        cancelled: asyncio.Future[Any] | None = None
        if self._prompt is not None and not self._prompt.done():
            cancelled = self._prompt
            self._connection.notify("session/cancel", {"sessionId": self._session})
        self._connection.ignore_messages()
        try:
            # The agent cannot end while it waits until its messages are read or its permission requests are answered.
            # So discard the messages and cancel the requests.
            while not self._queue.empty():
                incoming = self._queue.get_nowait()
                if isinstance(incoming, IncomingRequest):
                    self._connection.answer(incoming, {"outcome": {"outcome": "cancelled"}})
                await asyncio.sleep(0)
            await self._connection.end(cancelled)
        finally:
            await self._kill()

    async def _kill(self) -> None:
        try:
            await self._connection.kill()
        finally:
            if self._tools is not None:
                self._tools.close()
            if self._folders is not None:
                await in_thread(self._folders.remove, name="folders of an agent")


def _offered_servers(tools: Toolbox, *, described: bool) -> tuple[OfferedServer, ...]:
    """Return the MCP servers that the agent sees: the suite's servers, and one more for the tools without a server.

    With `described`, the name of a tool without a description becomes its description."""
    by_server: dict[str, list[ToolDefinition]] = {}
    for tool in tools.definitions:
        # Agents do not receive the tools that model providers run.
        if tool.provider is None:
            if described and not tool.description:
                tool = replace(tool, description=tool.name)
            name = _SUITE_SERVER if tool.server is None else server_name(tool.server)
            by_server.setdefault(name, []).append(tool)
    instructions = {server_name(each.server): each.text for each in tools.instructions}
    return tuple(OfferedServer(name, tuple(of), instructions.get(name, "")) for name, of in by_server.items())


def _is_of_protocol(method: str) -> bool:
    """Return whether a method belongs to ACP. Agents also send methods of their own, which clients may ignore."""
    return method.startswith(("session/", "fs/", "terminal/", "elicitation/"))


def _option_of_kind(options: object, kinds: Sequence[str]) -> str | None:
    """Return the id of an option of one of these kinds, or `None`. Earlier kinds take precedence."""
    for kind in kinds:
        for option in _objects(options):
            if option.get("kind") == kind and isinstance(option.get("optionId"), str):
                return str(option["optionId"])
    return None


def _words(call: ReportedCall) -> str:
    arguments = call.arguments
    return f"{call.title} {json_text(arguments)}" if arguments else call.title


def _text(content: object) -> str:
    text = _object(content).get("text")
    return text if isinstance(text, str) else ""


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
