"""Lists the tools of an MCP server page by page. Tools and pages that violate the protocol are repaired or reported.

If one tool is invalid, the MCP SDK refuses the whole page. Therefore pages are repaired before the SDK validates
them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.dataclasses import dataclass
from workbench.limits import MAX_LISTING_PAGES
from workbench.tools.answer import clean_text
from workbench.tools.connection import ListingIssue, ListingOutcome

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import Tool

MAX_SHOWN_CHARS = 80
"""The maximum number of characters that a message quotes of a wrong value or a cursor."""

_REMOVABLE = ("annotations", "outputSchema", "title", "icons", "execution", "_meta")
"""Fields that a model does not need for using a tool. The first two restrict the tool, and the others describe it."""

_LISTING = "tools/list"

_SUPPOSED_VERSION = "2025-11-25"
"""The protocol version for the SDK's validation before a version is negotiated."""

_MAX_NAMED = 3
"""The maximum number of issues in a notice. `workbench tools` shows all of them."""


def issues_notice(server: str, issues: Sequence[ListingIssue]) -> str:
    """Return a notice about violations of the protocol in a server's list of tools.

    The notice is shown with the runs that use these tools."""
    named = "; ".join(f"{issue} ({issue.outcome})" for issue in issues[:_MAX_NAMED])
    if len(issues) > _MAX_NAMED:
        named += f"; and {len(issues) - _MAX_NAMED} more"
    return f"server {server!r} breaks the protocol in its list of tools: {named}"


@dataclass(frozen=True)
class ListedTools:
    """The usable tools of a server, under the server's own names and in its order.

    `issues` are the violations in the server's list."""

    tools: tuple[Tool, ...]
    issues: tuple[ListingIssue, ...]


class ToolPages:
    """Reads all pages of a server's list of tools.

    Create one object for each client, right after the client has connected. `redact` removes secrets from values that
    are quoted in messages."""

    def __init__(self, client: Client, prefix: str, redact: Callable[[str], str]) -> None:
        self._client = client
        self._redact = redact
        self._prefix = prefix
        self._found: list[ListingIssue] = []
        self._again: list[str] = []
        """The names of tools that were listed again with the same definition."""
        dispatcher: Any = client.session._dispatcher
        send = dispatcher.send_raw_request

        async def send_and_repair(method: str, *about: Any, **options: Any) -> dict[str, Any]:
            raw: dict[str, Any] = await send(method, *about, **options)
            if method != _LISTING:
                return raw
            return self._repaired(raw)

        dispatcher.send_raw_request = send_and_repair

    async def read(self) -> ListedTools:
        """Return all tools.

        Raises the errors of `Client.list_tools`, and ValueError for an answer without a list."""
        from mcp import MCPError
        from mcp_types import INVALID_PARAMS

        self._found, self._again = [], []
        tools: dict[str, Tool] = {}
        cursor: str | None = None
        sent: set[str] = set()
        for _ in range(MAX_LISTING_PAGES):
            try:
                page = await self._client.list_tools(cursor=cursor, cache_mode="refresh")
            except MCPError as error:
                # After the last page, some servers send an empty cursor, and then refuse it.
                if cursor == "":
                    break
                # The protocol reports an invalid cursor with the code INVALID_PARAMS.
                if cursor is None or error.code != INVALID_PARAMS:
                    raise
                refusal = _excerpt(error.message, self._redact)
                self._cut(f"{_excerpt(cursor, self._redact)} is refused by the server that sent it: {refusal}")
                break
            news = self._add(page.tools, tools)
            cursor = page.next_cursor
            if cursor is None:
                break
            if cursor in sent:
                self._cut(f"{_excerpt(cursor, self._redact)} was sent before: it does not advance")
                break
            if sent and page.tools and not news:
                self._cut(f"{_excerpt(cursor, self._redact)} follows a page of tools that were all listed before")
                break
            sent.add(cursor)
        else:
            self._cut(MAX_LISTING_PAGES.exceeded())
        # A list may have been cut short because a cursor was repeated. Its tools are then repeated as well, which is no
        # further violation.
        if not any(issue.outcome == "cut short" for issue in self._found):
            for name in self._again:
                self._add_issue(name, "name", "is listed twice, with the same definition", "duplicate")
        # A page may have come twice. Its violations are reported once.
        return ListedTools(tuple(tools.values()), tuple(dict.fromkeys(self._found)))

    def _add(self, page: Sequence[Tool], tools: dict[str, Tool]) -> bool:
        news = False
        for tool in page:
            first = tools.setdefault(tool.name, tool)
            if first is tool:
                news = True
            elif first == tool:
                self._again.append(tool.name)
            else:
                self._add_issue(tool.name, "name", "belongs to two different tools", "duplicate")
        return news

    def _cut(self, message: str) -> None:
        self._found.append(ListingIssue("", "nextCursor", clean_text(message), "cut short"))

    def _add_issue(self, name: str, location: str, message: str, outcome: ListingOutcome) -> None:
        of = ""
        if name:
            of = clean_text(self._prefix + name)
        self._found.append(ListingIssue(of, clean_text(location), clean_text(message), outcome))

    def _repaired(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Repair a page so that the SDK accepts its tools, and record what was wrong.

        Raises ValueError for a page without a list of tools, or with a fault outside of its tools."""
        version = self._client.session.protocol_version or _SUPPOSED_VERSION
        tools = raw.get("tools")
        if not isinstance(tools, list):
            raise ValueError(f"its answer to {_LISTING} has {_excerpt(tools, self._redact)} as `tools`, not a list")
        page = {**raw, "tools": []}
        fault = _fault_of(page, version, self._redact)
        if fault is not None and fault.path[:1] == ("nextCursor",):
            self._cut(fault.message)
            del page["nextCursor"]
            fault = _fault_of(page, version, self._redact)
        if fault is not None:
            raise ValueError(f"its answer to {_LISTING} breaks the protocol: {_place('', fault.path)} {fault.message}")
        # First, the page is validated as a whole. Validating each tool takes several times as long.
        whole = _fault_of(raw, version, self._redact) is None
        usable = []
        for place, tool in enumerate(tools):
            repaired = tool if whole else self._valid(tool, place, page, version)
            if repaired is not None and self._can_be_sent(repaired, version):
                usable.append(repaired)
        return {**page, "tools": usable}

    def _valid(self, tool: object, place: int, page: Mapping[str, Any], version: str) -> object | None:
        name, root = "", f"tools[{place}]"
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            name, root = tool["name"], ""
        # The loop ends, because each repair removes a field or corrects the type.
        while True:
            fault = _fault_of({**page, "tools": [tool]}, version, self._redact)
            if fault is None:
                return tool
            repaired = _without_fault(tool, fault.path[2:])
            outcome: ListingOutcome = "left out" if repaired is None else "repaired"
            self._add_issue(name, _place(root, fault.path[2:]), fault.message, outcome)
            if repaired is None:
                return None
            tool = repaired

    def _can_be_sent(self, tool: object, version: str) -> bool:
        """Return whether a tool can be called with this version of the protocol.

        In newer versions, arguments may go into HTTP headers. The SDK drops a tool whose settings for that are invalid.
        An issue is added for such a tool."""
        from mcp.shared.inbound import find_invalid_x_mcp_header
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        if version not in MODERN_PROTOCOL_VERSIONS or not isinstance(tool, dict):
            return True
        reason = find_invalid_x_mcp_header(tool["inputSchema"])
        if reason is not None:
            self._add_issue(tool["name"], "inputSchema", f"cannot be sent over HTTP: {reason}", "left out")
        return reason is None


class _SchemaFault(NamedTuple):
    """The first fault that is found in a page.

    `path` is the place of the fault. `message` says what is wrong there."""

    path: tuple[str | int, ...]
    message: str


def _fault_of(page: Mapping[str, Any], version: str, redact: Callable[[str], str]) -> _SchemaFault | None:
    """Return the first fault of a page, `None` if there is none.

    The page is checked by the rules of the protocol's version, and then by the SDK's own model."""
    from mcp_types import ListToolsResult, methods
    from pydantic import ValidationError

    try:
        # If this version of the protocol does not have the request, only the model validates the answer, as in the SDK.
        with suppress(KeyError):
            methods.validate_server_result(_LISTING, version, page)
        ListToolsResult.model_validate(page, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == "missing":
            return _SchemaFault(first["loc"], "is missing, and the protocol requires it")
        expected = _EXPECTED.get(first["type"]) or first["msg"].removeprefix("Input should be ")
        # Pydantic's path may contain the name of a union member, which is not in the page.
        path: list[str | int] = []
        value: Any = page
        for part in first["loc"]:
            try:
                value = value[part]
            except (LookupError, TypeError):
                break
            path.append(part)
        return _SchemaFault(tuple(path), f"is {_excerpt(value, redact)}, where the protocol expects {expected}")
    return _fault_of_hints(page["tools"], redact)


_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def _fault_of_hints(tools: Sequence[Mapping[str, Any]], redact: Callable[[str], str]) -> _SchemaFault | None:
    """Return the first hint that is neither true nor false. The SDK accepts `"yes"`, which would permit executions."""
    for place, tool in enumerate(tools):
        for name in _HINTS:
            value = (tool.get("annotations") or {}).get(name)
            if value is not None and not isinstance(value, bool):
                why = f"is {_excerpt(value, redact)}, where the protocol expects true or false"
                return _SchemaFault(("tools", place, "annotations", name), why)
    return None


_EXPECTED = {
    **dict.fromkeys(("model_type", "dict_type", "model_attributes_type"), "an object"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "list_type": "a list",
    "string_type": "a string",
}
"""The words for what pydantic expects, by the kinds of its errors. For other kinds, pydantic's own words are used."""


def _without_fault(tool: object, field: tuple[str | int, ...]) -> dict[str, Any] | None:
    """Return a tool without a faulty field, or with the type of its arguments corrected. `None` if neither helps."""
    if not isinstance(tool, dict) or not field:
        return None
    if field[0] in _REMOVABLE:
        return {name: value for name, value in tool.items() if name != field[0]}
    schema = tool.get("inputSchema")
    if field[:2] == ("inputSchema", "type") and isinstance(schema, dict) and _allows_object(schema.get("type")):
        return {**tool, "inputSchema": {**schema, "type": "object"}}
    return None


def _allows_object(types: object) -> bool:
    return types is None or (isinstance(types, list) and "object" in types)


def _place(root: str, path: Sequence[str | int]) -> str:
    for part in path:
        if isinstance(part, int):
            root += f"[{part}]"
        else:
            root += f".{part}"
    return root.removeprefix(".")


def _excerpt(value: object, redact: Callable[[str], str]) -> str:
    # Redaction comes before cutting, because half of a secret would not be recognised.
    text = redact(json.dumps(value, ensure_ascii=False, default=str))
    if len(text) <= MAX_SHOWN_CHARS:
        return text
    return text[:MAX_SHOWN_CHARS] + " …"
