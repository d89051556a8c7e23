"""A server of the older protocol with a handshake. Its tools change when `grow` is called, and it announces the change
without being asked."""

import json
import sys
from typing import Any

TOOLS = ["wither", "grow"]


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    number = message.get("id")
    match message["method"]:
        case "initialize":
            about = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "growing", "version": "1"}}
            send(id=number, result={**about, "capabilities": {"tools": {"listChanged": True}}})
        case "tools/list":
            send(id=number, result={"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]})
        case "tools/call":
            name = message["params"]["name"]
            if name == "grow":
                TOOLS[:] = ["grow", "peek"]
                send(method="notifications/tools/list_changed")
            send(id=number, result={"content": [{"type": "text", "text": f"{name} done"}]})
        case _ if number is not None:
            send(id=number, error={"code": -32601, "message": "there is no such method"})
