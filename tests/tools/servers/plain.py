"""A small MCP server over standard input and output, of the newest protocol.

It needs the standard library alone and starts in a moment: importing the SDK takes most of a second.
"""

import json
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
Tell = Callable[[float, float, str], None]
"""Reports progress: the amount done, the total and a message."""

TYPES = {int: "integer", float: "number", str: "string", bool: "boolean", dict: "object"}


class ToolError(Exception):
    """An error that the model receives in place of a result."""


class PlainServer:
    """Offers functions as tools. A parameter `tell` receives a `Tell`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tools: dict[str, tuple[dict[str, Any], Callable[..., Any]]] = {}
        self._writing = threading.Lock()

    def tool(self, **annotations: bool) -> Callable[[Function], Function]:
        """Offer a function as a tool. `annotations` are hints by the protocol's names."""

        def offer(function: Function) -> Function:
            types = {name: of for name, of in function.__annotations__.items() if name not in ("tell", "return")}
            listed: dict[str, Any] = {
                "name": function.__name__,
                "description": (function.__doc__ or "").strip(),
                "inputSchema": {
                    "type": "object",
                    "properties": {name: {"type": TYPES[of]} for name, of in types.items()},
                    "required": list(types)[: len(types) - len(function.__defaults__ or ())],
                },
            }
            if annotations:
                listed["annotations"] = annotations
            returned = function.__annotations__["return"]
            if returned in TYPES:
                properties = {"result": {"type": TYPES[returned]}}
                listed["outputSchema"] = {"type": "object", "properties": properties, "required": ["result"]}
            self._tools[function.__name__] = (listed, function)
            return function

        return offer

    def run(self) -> None:
        """Answer requests until standard input ends, each call on its own thread."""
        for line in sys.stdin:
            message = json.loads(line)
            match message["method"], message.get("id"):
                case _, None:
                    pass  # a notification
                case "server/discover", number:
                    about = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
                    info = {"serverInfo": {"name": self._name, "version": "1"}}
                    self._answer(number, {**about, **info, "ttlMs": 0, "cacheScope": "private"})
                case "tools/list", number:
                    tools = [listed for listed, _ in self._tools.values()]
                    self._answer(number, {"tools": tools, "ttlMs": 0, "cacheScope": "private"})
                case "tools/call", number:
                    threading.Thread(target=self._call, args=(number, message["params"]), daemon=True).start()
                case method, number:
                    error = {"code": -32601, "message": f"there is no method {method}"}
                    self._send({"id": number, "error": error})

    def _call(self, number: Any, params: dict[str, Any]) -> None:
        listed, function = self._tools[params["name"]]
        arguments = params.get("arguments") or {}
        if "tell" in function.__annotations__:
            arguments["tell"] = self._telling(params.get("_meta", {}).get("progressToken"))
        try:
            for name, schema in listed["inputSchema"]["properties"].items():
                if name in arguments and TYPES[type(arguments[name])] != schema["type"]:
                    raise ToolError(f"{name} is not a valid {schema['type']}")
            said = function(**arguments)
        except ToolError as error:
            self._answer(number, {"content": [{"type": "text", "text": str(error)}], "isError": True})
            return
        if isinstance(said, dict):
            self._answer(number, said)
        else:
            text = said if isinstance(said, str) else json.dumps(said)
            content = [{"type": "text", "text": text}]
            self._answer(number, {"content": content, "structuredContent": {"result": said}})

    def _telling(self, token: Any) -> Tell:
        def tell(progress: float, total: float, message: str) -> None:
            if token is not None:
                told = {"progressToken": token, "progress": progress, "total": total, "message": message}
                self._send({"method": "notifications/progress", "params": told})

        return tell

    def _answer(self, number: Any, result: dict[str, Any]) -> None:
        self._send({"id": number, "result": {"resultType": "complete", **result}})

    def _send(self, message: dict[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        with self._writing:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
