"""An HTTP server that forgets its sessions."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from tests.providers.server.script import Answer, Request, document, page


class Forgetful:
    """An HTTP server whose sessions end when the test ends them, or after a number of calls."""

    def __init__(self, refusal: Answer, lasts: Sequence[int] = ()) -> None:
        self.refusal = refusal
        self.opened = 0
        self.called: list[tuple[str, int]] = []
        """The executed calls: the session and the argument of each."""
        self._lasts = list(lasts)
        self._left: dict[str, int] = {}
        self._lock = threading.Lock()

    def forget(self) -> None:
        with self._lock:
            self._left.clear()

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            return self._answer(request)

    def _answer(self, request: Request) -> Answer:
        if request.method != "POST":
            return page("no stream here", 405)
        message: Mapping[str, Any] = request.json
        session, more = request.headers.get("mcp-session-id", ""), {}
        match message["method"]:
            case "initialize":
                self.opened += 1
                session = f"s{self.opened}"
                self._left[session] = self._lasts.pop(0) if self._lasts else 1_000_000
                more = {"mcp-session-id": session}
                about = {"serverInfo": {"name": "raw", "version": "1"}, "capabilities": {"tools": {}}}
                result: dict[str, Any] = {"protocolVersion": "2025-06-18", **about}
            case "server/discover":
                return page("no session", 400)
            case "tools/list":
                result = {"tools": [{"name": "talk", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                if self._left.get(session, 0) < 1:
                    self._left.pop(session, None)
                    return self.refusal
                self._left[session] -= 1
                self.called.append((session, message["params"]["arguments"]["number"]))
                result = {"content": [{"type": "text", "text": session}]}
            case _:
                return document({}, 202)
        return document({"jsonrpc": "2.0", "id": message["id"], "result": result}, headers=more)


def json_error(code: int, message: str, number: int | None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


GONE = document(json_error(-32001, "Session not found", 1), 404)
