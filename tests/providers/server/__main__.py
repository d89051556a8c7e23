"""The server as a process of its own, for measurements: `python -m tests.providers.server --latency-ms 50`.

Prints its base URL and serves Chat Completions until its input ends: `--rounds` answers that call `get_weather`, then
one in words, counted by the tool results in the request.
"""

from __future__ import annotations

import argparse
import sys

from tests.providers.server import Answer, Call, Pause, Request, Server, base_url_of, blocks_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency-ms", type=float, default=50.0)
    parser.add_argument("--rounds", type=int, default=0)
    options = parser.parse_args()
    before = (Pause(options.latency_ms / 1000),)
    calls = [
        Answer(tuple(blocks_of("openai", calls=[Call("get_weather", {"city": "Oslo"}, f"call_{done}")])), before=before)
        for done in range(options.rounds)
    ]
    words = Answer(tuple(blocks_of("openai", "It rains in Oslo today.")), before=before)

    def answer_to(request: Request) -> Answer:
        done = request.body.count(b'"tool_call_id"')
        return calls[done] if done < len(calls) else words

    with Server(answer_to) as server:
        sys.stdout.write(base_url_of(server, "openai") + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
