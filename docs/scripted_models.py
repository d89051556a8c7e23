"""Three models behind a local server, for the pictures: one careful and slow, one quick, one small.

Their answers to the requests of `smart_home.toml` are constants."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Calls = tuple[tuple[str, Mapping[str, Any]], ...]

_RIGHT: Mapping[str, Calls] = {
    "Turn off the living room lights.": (("set_lights", {"room": "living room", "brightness": 0}),),
    "Set the bedroom lights to full brightness.": (("set_lights", {"room": "bedroom", "brightness": 100}),),
    "I'm feeling a bit cold.": (("set_thermostat", {"preset": "warm"}),),
    "Dim the living room lights a little.": (("set_lights", {"room": "living room", "brightness": 60}),),
    "Start movie night.": (
        ("set_lights", {"room": "living room", "brightness": 20}),
        ("set_tv", {"power": "on"}),
    ),
    "I'm heading out, lock up for me.": (
        ("set_lights", {"room": "all", "brightness": 0}),
        ("lock_door", {"door": "front"}),
        ("set_thermostat", {"preset": "cool"}),
    ),
    "Run my bedtime routine.": (
        ("lock_door", {"door": "front"}),
        ("set_lights", {"room": "bedroom", "brightness": 10}),
        ("close_blinds", {"room": "bedroom"}),
        ("set_thermostat", {"preset": "cool"}),
    ),
    "I'm home, let me in.": (
        ("unlock_door", {"door": "front"}),
        ("set_lights", {"room": "living room", "brightness": 100}),
        ("set_thermostat", {"preset": "warm"}),
    ),
    "What's the current temperature?": (("get_thermostat", {}),),
    "Brighten the bedroom a little.": (("set_lights", {"room": "bedroom", "brightness": 60}),),
}
_QUICK: Mapping[str, Calls] = {
    "Start movie night.": (("set_lights", {"room": "living room", "brightness": 60}),),
    "Dim the living room lights a little.": (("set_lights", {"room": "living room", "brightness": 10}),),
}
_SMALL: Mapping[str, Calls] = {
    **_QUICK,
    "I'm feeling a bit cold.": (("get_thermostat", {}),),
    "I'm heading out, lock up for me.": (("lock_door", {"door": "front"}),),
    "Run my bedtime routine.": (),
}
MODELS: Mapping[str, tuple[float, Mapping[str, Calls]]] = {
    "careful": (0.24, {}),
    "quick": (0.05, _QUICK),
    "small": (0.02, _SMALL),
}
"""The seconds for an answer, and the wrong answers, of each model."""


@contextmanager
def scripted_models() -> Iterator[str]:
    """Serve the models, and yield the text of a `workbench.toml` that names them."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/v1"
        named = (f'[models.{name}]\nbase_url = "{address}"\nprovider = "openai"\nmodel = "{name}"\n' for name in MODELS)
        yield "".join(named) + "price = { input = 0.15, output = 0.6 }\n"
        server.shutdown()


class _Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        takes_s, wrong = MODELS[asked["model"]]
        request = next(each["content"] for each in reversed(asked["messages"]) if each["role"] == "user")
        time.sleep(takes_s * (1 + len(request) % 7 / 10))
        over = asked["messages"][-1]["role"] == "tool"
        calls = () if over else wrong.get(request, _RIGHT.get(request, ()))
        delta: dict[str, Any] = {"role": "assistant", "content": None if calls else "Done."}
        if calls:
            delta["tool_calls"] = [
                {
                    "index": at,
                    "id": f"call-{at}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(values)},
                }
                for at, (name, values) in enumerate(calls)
            ]
        usage = {"prompt_tokens": 310 + len(request), "completion_tokens": 24, "total_tokens": 334 + len(request)}
        chunks: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]},
            {"choices": [], "usage": usage},
        ]
        head = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": asked["model"]}
        body = "".join(f"data: {json.dumps(head | chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""
