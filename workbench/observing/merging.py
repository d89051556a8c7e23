"""Merges what servers were asked, as their tees wrote it down, with conversations: by time, tool and arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.importing.conversations import case_of, tool_of
from workbench.importing.imported import ImportedCase, Mapped, Note
from workbench.importing.reading import read_source
from workbench.observing.conversations import ObservedConversation
from workbench.suite.numerals import counted
from workbench.suite.render import Table
from workbench.tools.answer import ToolAnswer
from workbench.trajectory.messages import JsonValue, Message, ToolCall

_SLACK_S = 1.0
"""Clocks of two programs on one machine agree better than that."""


@dataclass(frozen=True, eq=False)
class ServerCall:
    """A call as a server got it, in seconds since 1970, and what it answered."""

    tool: str
    arguments: Mapping[str, JsonValue]
    began_s: float
    answer: ToolAnswer


@dataclass(frozen=True)
class ServerLog:
    """What a tee wrote down: the tools that the server listed, by name, and the calls that it answered."""

    path: Path
    tools: Mapping[str, Table]
    calls: tuple[ServerCall, ...]


def read_server_log(path: Path) -> ServerLog:
    """Returns the log that `workbench record --server --to` wrote. Raises RefusedError."""
    from mcp_types import CallToolResult
    from pydantic import ValidationError

    from workbench.tools.content import answer_of  # both on use: only logs hold results of MCP

    tools: dict[str, Table] = {}
    calls: list[ServerCall] = []
    for line in read_source(path).records:
        match line.text_of("seen"):
            case "tools":
                for tool in line.need("tools").items():
                    tools[tool.need("name").text()] = tool_of(tool)
            case "call":
                arguments = line.get("arguments")
                if (result := line.get("result")) is not None:
                    try:
                        answer = answer_of(CallToolResult.model_validate(result.value))
                    except ValidationError:
                        continue  # the client got no result of it either
                else:
                    answer = ToolAnswer(line.text_of("error"), is_error=True)
                calls.append(
                    ServerCall(
                        line.need("tool").text(),
                        arguments.table() if arguments is not None else {},
                        datetime.fromisoformat(line.need("at").text()).timestamp(),
                        answer,
                    )
                )
            case "start":
                pass
            case _:
                raise line.refused(f"is no line of a server's log: {path} must be what --server --to has written")
    return ServerLog(path, tools, tuple(calls))


class Merger:
    """Makes cases of conversations with what logs know. Each call of a log is used once."""

    def __init__(self, logs: tuple[ServerLog, ...], secrets: Secrets) -> None:
        self._logs = logs
        self._secrets = secrets
        self._used: set[ServerCall] = set()

    @property
    def lines(self) -> list[str]:
        """How much of each log was found in conversations."""
        return [
            f"{log.path}: {len(self._used.intersection(log.calls))} of {counted(len(log.calls), 'call')} matched"
            for log in self._logs
        ]

    def case(self, observed: ObservedConversation) -> ImportedCase:
        """Returns the case of a conversation: its mocks answer what servers answered, its run what the model read.
        Raises RefusedError."""
        as_read = observed.case()
        if not self._logs:
            return as_read
        conversation = observed.conversation()
        answers = self._answers(observed, conversation.messages)
        messages = tuple(
            replace(message, content=answers[message.call_id].content, is_error=answers[message.call_id].is_error)
            if message.call_id in answers
            else message
            for message in conversation.messages
        )
        tools, notes = self._tools(conversation.tools, observed.place)
        case = case_of(replace(conversation, messages=messages, tools=tools, notes=(*conversation.notes, *notes)))
        calls = sum(len(message.tool_calls) for message in conversation.messages)
        found = f"{len(answers)} of {counted(calls, 'call')} found in the servers' logs"
        mapped = [Mapped(found, "their raw results")] if calls else []
        return replace(case, runs=as_read.runs, mapped=(*case.mapped, *mapped))

    def _answers(self, observed: ObservedConversation, messages: tuple[Message, ...]) -> dict[str, ToolAnswer]:
        """Returns what servers answered, by the ids of calls."""
        ended = {len(step.conversation.messages): step.ended_s for step in observed.steps if step.answer is not None}
        began = [(len(step.conversation.messages), step.began_s) for step in observed.steps]
        found: dict[str, ToolAnswer] = {}
        for index, message in enumerate(messages):
            if message.role != "assistant" or index not in ended:
                continue
            until_s = min((at_s for at, at_s in began if at > index), default=float("inf"))
            for call in message.tool_calls:
                match = self._match(call, ended[index] - _SLACK_S, until_s + _SLACK_S)
                if match is not None:
                    self._used.add(match)
                    found[call.id] = match.answer
        return found

    def _match(self, call: ToolCall, from_s: float, to_s: float) -> ServerCall | None:
        arguments = self._secrets.redacted(dict(call.arguments))
        fitting = (
            each
            for log in self._logs
            for each in log.calls
            if each not in self._used
            and from_s <= each.began_s <= to_s
            and _is_tool(call.tool, each.tool)
            and each.arguments in (arguments, call.arguments)
        )
        return min(fitting, key=lambda each: each.began_s, default=None)

    def _tools(self, offered: tuple[Table, ...], place: str) -> tuple[tuple[Table, ...], list[Note]]:
        """Returns tools with the descriptions and schemas that the model was offered, those of the server where it was
        offered none."""
        listed = {name: tool for log in self._logs for name, tool in log.tools.items()}
        tools: list[Table] = []
        notes: list[Note] = []
        for tool in offered:
            theirs = next((each for name, each in listed.items() if _is_tool(str(tool["name"]), name)), None)
            if theirs is None:
                tools.append(tool)
                continue
            tools.append({**theirs, **tool})
            if "parameters" not in tool and "parameters" in theirs:
                notes.append(Note(place, f"the schema of {tool['name']} is the server's"))
            elif tool.get("parameters") != theirs.get("parameters"):
                notes.append(Note(place, f"the schema of {tool['name']} is the model's, not the server's"))
        return tuple(tools), notes


def _is_tool(offered: str, listed: str) -> bool:
    """Returns whether a model's tool is that of a server: programs put the server's name before it."""
    return offered == listed or re.search(rf"[_./:-]{re.escape(listed)}$", offered) is not None
