"""The server as a separate process, for measurements: `python -m tests.providers.server --latency-ms 50`.

Prints its base URL and serves Chat Completions until its input ends. It answers `--rounds` times with a call of
`get_weather`, counted by the tool results in the request, then with text; it streams if the request asks for it. For
each line of input it prints the number of requests since the last line, and the seconds from the first to the last of
them."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace

from tests.providers.server import (
    Answer,
    Call,
    Pause,
    Request,
    Server,
    base_url_of,
    blocks_of,
    document,
    whole_document,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency-ms", type=float, default=50.0)
    parser.add_argument("--rounds", type=int, default=0)
    options = parser.parse_args()
    before = (Pause(options.latency_ms / 1000),)
    said = [([Call("get_weather", {"city": "Oslo"}, f"call_{done}")], "") for done in range(options.rounds)]
    said.append(([], "It rains in Oslo today."))
    streamed = [Answer(tuple(blocks_of("openai", text, calls=calls)), before=before) for calls, text in said]
    whole = [replace(document(whole_document("openai", text, calls=calls)), before=before) for calls, text in said]
    arrivals: list[float] = []

    def answer_to(request: Request) -> Answer:
        arrivals.append(time.perf_counter())
        done: int = min(request.body.count(b'"tool_call_id"'), options.rounds)
        answers = streamed if b'"stream":true' in request.body.replace(b" ", b"") else whole
        return answers[done]

    with Server(answer_to) as server:
        print(base_url_of(server, "openai"), flush=True)  # noqa: T201
        for _ in sys.stdin:
            count = len(arrivals)
            print(count, arrivals[-1] - arrivals[0] if count else 0.0, flush=True)  # noqa: T201
            arrivals.clear()


if __name__ == "__main__":
    main()
