"""A server of the protocol's first days, 2024-11-05, written by hand; a word on its command line is a bad habit.

Its one tool answers with exactly the result that it is given, as JSON or, `raw`, as a text.
"""

import json
import os
import sys
import threading
from typing import Any

HABIT = "".join(sys.argv[1:])


def write(data: bytes) -> None:
    os.write(1, data)


def send(message: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def call(number: Any, result: Any) -> None:
    """Answer a call in this server's style."""
    match HABIT:
        case "twice":
            send({"id": number, "result": result})
            send({"id": number, "result": {"content": [{"type": "text", "text": "and again"}]}})
        case "stranger":
            send({"id": 4711, "result": result})
            send({"id": number, "result": result})
        case "binary":
            write(bytes(range(256)) * 40 + b"\n")
            send({"id": number, "result": result})
        case "latin":
            answer = {"jsonrpc": "2.0", "id": number, "result": result}
            write(json.dumps(answer, ensure_ascii=False).encode("latin-1") + b"\n")
        case "raw":
            write(b'{"jsonrpc": "2.0", "id": %d, "result": %s}\n' % (number, str(result).encode()))
        case "mute":
            send({"id": number, "nothing": "to say"})
        case _:
            send({"id": number, "result": result})


for line in sys.stdin:
    request = json.loads(line)
    number = request.get("id")
    match request["method"]:
        case "server/discover" if HABIT == "strict":
            sys.exit("initialize comes first")
        case "server/discover" if HABIT == "closing":
            os.close(1)
            threading.Event().wait()
        case "server/discover" if HABIT == "ignorant":
            pass
        case "server/discover" if HABIT == "stuck":
            threading.Event().wait()
        case "initialize":
            about = {"name": "antique", "version": "1"}
            capabilities: dict[str, Any] = {"tools": {}}
            send({"id": number, "result": {"protocolVersion": "2024-11-05", "capabilities": capabilities,
                                           "serverInfo": about}})  # fmt: skip
        case "tools/list" if HABIT == "windy":
            send({"id": number, "error": {"code": -32603, "message": "no " * 100_000}})
        case "tools/list":
            schema = (
                {"type": "object", "default": [float("nan"), float("inf")]} if HABIT == "nan" else {"type": "object"}
            )
            tool = {"name": "say", "description": os.environ.get("TOKEN"), "inputSchema": schema}
            if HABIT == "deaf":
                os.close(0)
            send({"id": number, "result": {"tools": [tool]}})
            if HABIT == "deaf":
                threading.Event().wait()
        case "tools/call":
            call(number, request["params"]["arguments"]["result"])
        case _ if number is not None:
            send({"id": number, "error": {"code": -32601, "message": "Method not found"}})
