"""What the program adds to a real small model: `python -m benchmarks.real_model`, with `SMALL_MODEL_PYTHON` naming the
Python of an environment that has the model (docs/models.md says how). Without one, it says so and measures nothing.

The same requests are sent by the program and bare by urllib, in turn, and the fastest round of each counts. There is
one slot. The answers are as long as each other (`ignore_eos`), and the server's cache of prompts is off.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.sizes import sized
from tests.engine.making import make
from tests.real_model.served_model import MODEL, served, why_not
from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.http.endpoints import Endpoints

REQUESTS = sized(8, 1)
TOKENS = sized(64, 4)
ROUNDS = sized(3, 1)
_PARAMS = {"temperature": 0, "max_tokens": TOKENS, "ignore_eos": True, "cache_prompt": False}


def main() -> None:
    missing = why_not()
    if missing is not None:
        print(f"nothing is measured: {missing}")
        return
    with TemporaryDirectory() as folder, served(Path(folder), with_tools=True) as url:
        bodies = asyncio.run(_by_program(url, 1))[1]  # warms up too
        bare_s = made_s = float("inf")
        for _ in range(ROUNDS):
            bare_s = min(bare_s, _bare(url, bodies * REQUESTS))
            made_s = min(made_s, asyncio.run(_by_program(url, REQUESTS))[0])
    print(f"bare     {bare_s / REQUESTS:6.2f} s a request, {REQUESTS * TOKENS / bare_s:5.1f} tokens/s")
    print(f"program  {made_s / REQUESTS:6.2f} s a request, {REQUESTS * TOKENS / made_s:5.1f} tokens/s")
    print(f"added    {(made_s - bare_s) / bare_s:+.1%}")


async def _by_program(url: str, runs: int) -> tuple[float, list[bytes]]:
    """Make concurrent runs, which wait for the only slot. Return the seconds, and the body of one request."""
    endpoints = Endpoints(Secrets())
    try:
        model = endpoints.open(ModelSpec("small", "openai", MODEL, url, params=_PARAMS), {})
        await model.start()
        began = time.perf_counter()
        made = await asyncio.gather(*(make(model) for _ in range(runs)))
        took_s = time.perf_counter() - began
        assert all(each.trajectory.finish is not None and not each.trajectory.finish.error for each in made)
        return took_s, [_body_of(made[0].trajectory.start)]
    finally:
        await endpoints.close()


def _body_of(start: object) -> bytes:
    messages = [{"role": message.role, "content": message.content} for message in getattr(start, "messages", ())]
    tools = [
        {
            "type": "function",
            "function": {"name": t.name, "description": t.description, "parameters": dict(t.parameters)},
        }
        for t in getattr(start, "tools", ())
    ]
    body = {"model": MODEL, "messages": messages, "tools": tools, "stream": True, **_PARAMS}
    return json.dumps(body).encode()


def _bare(url: str, bodies: Sequence[bytes]) -> float:
    began = time.perf_counter()
    for body in bodies:
        request = urllib.request.Request(f"{url}/chat/completions", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request) as response:
            response.read()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
