"""A server written by hand that sends its client the requests that its caller names.

`ask` sends a request of the given method with the given parameters, and answers with the reply as JSON. `open` is
refused until the given addresses were asked for once. `who` answers with what the client declares.
"""

import json
import sys
from typing import Any

WAITING: list[dict[str, Any]] = []
"""Messages that arrived while the server waited for a reply."""
STATE: dict[str, Any] = {"ids": 0, "opened": False, "declared": {}, "overlaps": 0}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def reply_to(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Send a request to the client and return its reply."""
    STATE["ids"] += 1
    id_ = f"asked-{STATE['ids']}"
    send({"id": id_, "method": method, "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == id_ and "method" not in message:
            return {key: message[key] for key in ("result", "error") if key in message}
        STATE["overlaps"] += message.get("method") == "tools/call"
        WAITING.append(message)
    sys.exit()


def text(value: Any) -> dict[str, Any]:
    return {"result": {"content": [{"type": "text", "text": json.dumps(value)}]}}


def called(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a call of a tool."""
    if tool == "who":
        return text({**STATE["declared"], "overlaps": STATE["overlaps"]})
    if tool == "open" and not STATE["opened"]:
        STATE["opened"] = not arguments.get("always")
        address = {"mode": "url", "message": "Log in", "url": "https://example.test/", "elicitationId": "e1"}
        return {"error": {"code": -32042, "message": "Open it", "data": {"elicitations": [address]}}}
    if tool == "open":
        return text("opened")
    replies = [reply_to(arguments["method"], arguments["params"]) for _ in range(arguments.get("times", 1))]
    return text(replies[-1])


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request."""
    if method == "initialize":
        STATE["declared"] = params["capabilities"]
        about = {"name": "asker", "version": "1"}
        return {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}}
    if method == "tools/list":
        shape = {"inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
        tools = [{"name": name, **shape} for name in ("ask", "open", "who")]
        return {"result": {"tools": tools}}
    if method == "tools/call":
        return called(params["name"], params.get("arguments", {}))
    return {"error": {"code": -32601, "message": "Method not found"}}


while True:
    if WAITING:
        request = WAITING.pop(0)
    elif line := sys.stdin.readline():
        request = json.loads(line)
    else:
        break
    if "id" in request and "method" in request:
        send({"id": request["id"], **answer(request["method"], request.get("params", {}))})
