"""A server written by hand whose lists of tools are given as JSON: one page for each request, the last one for ever.

A page `"refused"` is an error. The second word on the command line, if there is one, is the server's instructions, or
`@` and the name of a file with them.
"""

import json
import sys
from pathlib import Path
from typing import Any

PAGES = json.loads(sys.argv[1])


def answer(method: str) -> dict[str, Any]:
    """Return the result of a request."""
    if method == "initialize":
        about = {"name": "pages", "version": "1"}
        begun = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}
        if sys.argv[2:]:
            text = sys.argv[2]
            if text.startswith("@"):
                text = Path(text[1:]).read_text(encoding="utf-8")
            begun["instructions"] = text
        return {"result": begun}
    if method == "tools/call":
        return {"result": {"content": [{"type": "text", "text": "done"}]}}
    if method != "tools/list":
        return {"error": {"code": -32601, "message": "Method not found"}}
    page = PAGES.pop(0) if len(PAGES) > 1 else PAGES[0]
    if page == "refused":
        return {"error": {"code": -32602, "message": "Invalid cursor"}}
    return {"result": page}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        message = {"jsonrpc": "2.0", "id": request["id"], **answer(request["method"])}
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
