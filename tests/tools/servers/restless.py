"""A server that announces changed tools after every listing. `count` returns the number of listings."""

import json
import sys
from typing import Any

listings = 0


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    number = message.get("id")
    match message["method"]:
        case "initialize":
            about = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "restless", "version": "1"}}
            send(id=number, result={**about, "capabilities": {"tools": {"listChanged": True}}})
        case "tools/list":
            listings += 1
            send(method="notifications/tools/list_changed")
            send(id=number, result={"tools": [{"name": "count", "inputSchema": {"type": "object"}}]})
        case "tools/call":
            send(id=number, result={"content": [{"type": "text", "text": str(listings)}]})
        case _ if number is not None:
            send(id=number, error={"code": -32601, "message": "there is no such method"})
