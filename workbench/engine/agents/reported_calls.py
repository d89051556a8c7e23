"""The tool calls that an agent reports: merged from its messages and matched to the suite's tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from workbench.dataclasses import dataclass
from workbench.engine.agents.tool_server import OfferedServer

_ENDED = ("completed", "failed")

_FORMS = (
    "mcp__{server}__{tool}",
    "mcp_{server}_{tool}",
    "{server}__{tool}",
    "{server}_{tool}",
    "{server}/{tool}",
    "{server}.{tool}",
    "mcp.{server}.{tool}",
    "mcp__{server}/{tool}",
    "{tool} ({server} MCP Server)",
)
"""The forms in which agents name a server's tool. A text names a tool only if the whole text has such a form, because a
shell command may contain a tool's name."""

_PREFIX = re.compile(r"(?:Tool|MCP|mcp): ")


@dataclass
class ReportedCall:
    """A tool call, with the values that the agent has reported so far.

    Later messages of the agent add or replace values."""

    id: str
    fields: dict[str, Any] = field(default_factory=dict)
    is_refused: bool = False
    """Whether the agent was refused the permission for this call."""

    def merge(self, update: Mapping[str, Any]) -> None:
        """Merge another message of the agent about this call."""
        for key, value in update.items():
            # Many agents report empty arguments first, and later leave out what they have already reported.
            if value not in (None, {}, []):
                self.fields[key] = value

    @property
    def title(self) -> str:
        """The agent's description of the call."""
        return str(self.fields.get("title") or self.fields.get("kind") or "tool")

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as the agent reports them. They are often empty."""
        given = self.fields.get("rawInput")
        if not isinstance(given, dict):
            return {}
        # Codex wraps the arguments: {"server": …, "tool": …, "arguments": {…}}.
        if isinstance(wrapped := given.get("arguments"), dict) and isinstance(given.get("tool"), str):
            return wrapped
        return given

    @property
    def has_ended(self) -> bool:
        return self.fields.get("status") in _ENDED

    @property
    def failed(self) -> bool:
        return self.fields.get("status") == "failed"

    @property
    def output(self) -> str:
        texts = []
        for block in _dicts(self.fields.get("content")):
            inner = block.get("content")
            if isinstance(inner, dict) and isinstance(text := inner.get("text"), str):
                texts.append(text)
            elif block.get("type") == "diff":
                texts.append(f"changed {block.get('path')}")
        if not texts and isinstance(raw := self.fields.get("rawOutput"), str):
            texts.append(raw)
        return "\n".join(texts)

    def names(self) -> Iterator[str]:
        """Yield the texts in which the agent may have written the tool's name."""
        meta = self.fields.get("_meta")
        for place in (meta, *_values(meta)):
            if isinstance(place, dict):
                for key in ("toolName", "tool_name"):
                    if isinstance(name := place.get(key), str):
                        yield name
        given = self.fields.get("rawInput")
        if isinstance(given, dict) and isinstance(given.get("server"), str) and isinstance(given.get("tool"), str):
            yield f"{given['server']}/{given['tool']}"
        if isinstance(title := self.fields.get("title"), str):
            yield title


@dataclass(frozen=True, slots=True)
class OfferedTool:
    server: str
    tool: str


class ReportedCalls:
    """The calls that an agent reports in one session, in the order in which it first reported them."""

    def __init__(self, servers: Sequence[OfferedServer]) -> None:
        self._offered: dict[str, OfferedTool] = {}
        for server in servers:
            for tool in server.tools:
                for form in _FORMS:
                    name = form.format(server=server.name, tool=tool.name)
                    self._offered.setdefault(name, OfferedTool(server.name, tool.name))
        self._bare = {tool.name: OfferedTool(server.name, tool.name) for server in servers for tool in server.tools}
        self._calls: dict[str, ReportedCall] = {}
        self._shown: set[str] = set()
        self._compared: set[str] = set()

    def merge(self, update: Mapping[str, Any]) -> ReportedCall | None:
        """Merge a message about a call, and return the call; `None` if the message names no call."""
        call_id = update.get("toolCallId")
        if not isinstance(call_id, str):
            return None
        call = self._calls.setdefault(call_id, ReportedCall(call_id))
        call.merge(update)
        return call

    def offered_tool(self, call: ReportedCall) -> OfferedTool | None:
        """Return the offered tool that a call names; `None` for a tool that is built into the agent."""
        for name in call.names():
            name = _PREFIX.sub("", name, count=1)
            if (found := self._offered.get(name)) is not None:
                return found
            # A tool's name without its server is enough if the agent reports the call as a call to an MCP server.
            if (found := self._bare.get(name)) is not None and _is_of_server(call, found):
                return found
        return None

    def own_calls(self, *, at_end: bool) -> Iterator[ReportedCall]:
        """Yield the ended calls of the agent's built-in tools that were not yielded before.

        With `at_end`, which is set at the end of a prompt, calls that have not ended are yielded too. Calls that were
        refused permission are left out, because the run has a note for each of them."""
        for call in self._calls.values():
            if call.is_refused or call.id in self._shown:
                continue
            if (at_end or call.has_ended) and self.offered_tool(call) is None:
                self._shown.add(call.id)
                yield call

    def not_forwarded(self, forwarded: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[tuple[str, ReportedCall]]:
        """Yield the calls that the agent reports but never sent to Workbench, each with the tool's name.

        `forwarded` has the tool and the arguments of each call that arrived. Calls are matched by tool and arguments
        first, then by tool alone, because agents may report fewer arguments than they send."""
        left = [(tool, dict(arguments)) for tool, arguments in forwarded]
        reported = []
        for call in self._calls.values():
            if (offered := self.offered_tool(call)) is not None and call.id not in self._compared:
                self._compared.add(call.id)
                reported.append((offered.tool, call))
        unmatched = []
        for tool, call in reported:
            if (tool, call.arguments) in left:
                left.remove((tool, call.arguments))
            else:
                unmatched.append((tool, call))
        for tool, call in unmatched:
            same = next((one for one in left if one[0] == tool), None)
            if same is None:
                yield tool, call
            else:
                left.remove(same)


def _is_of_server(call: ReportedCall, tool: OfferedTool) -> bool:
    for place in (call.fields.get("_meta"), call.fields.get("rawInput")):
        for inner in (place, *_values(place)):
            if isinstance(inner, dict) and tool.server in (inner.get("server"), inner.get("serverName")):
                return True
    return False


def _values(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()


def _dicts(value: object) -> Iterator[dict[str, Any]]:
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item
