"""Slots of an endpoint on the command line: reported once, and the wait for a slot separate from the latency."""

from __future__ import annotations

import json
import re

import pytest

from tests.cli.program import Program
from tests.providers.server import Answer, Pause, Server, said
from tests.providers.server.formats import sse

SUITE = """format = 1
name = "Rain"
[[cases]]
name = "Rain"
user = "Say rain."
repeats = REPEATS
response_contains = ["rain"]
limits = { max_latency_ms = 250 }
"""


@pytest.mark.slow
def test_it_is_said_once_that_fewer_requests_are_sent(program: Program) -> None:
    program.write("rain.toml", SUITE.replace("REPEATS", "12"))
    with Server(lambda _: said("openai", "It will rain."), slots=1) as server:
        model = f"openai:test-model@{server.url}/v1"
        done = program.run("run", "rain.toml", "--model", model)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("has 1 slot, so no more requests are sent to it at a time") == 1


def test_the_wait_for_a_slot_is_named_and_exceeds_no_latency(program: Program) -> None:
    program.write("rain.toml", SUITE.replace("REPEATS", "1"))
    reading = {"total": 40, "cache": 0, "processed": 0, "time_ms": 0}
    progress = sse({"choices": [{"index": 0, "delta": {"content": None}}], "prompt_progress": reading})
    late = Answer((Pause(0.4), progress, *said("openai", "It will rain.").pieces))
    with Server([late], slots=1) as server:
        done = program.run("run", "rain.toml", "--model", f"openai:m@{server.url}/v1", "--report", "r.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"· waited \d{3} ms for a free slot\n", done.stdout)
    assert "latency exceeded" not in done.stdout
    (run,) = json.loads((program.folder / "r.json").read_text())["runs"]
    assert run["rounds"][0]["waited_ms"] >= 390
    assert run["rounds"][0]["latency_ms"] < 250
    shown = program.run("history", "show", "1", "--run", "1").stdout
    assert re.search(r"· waited \d{3} ms for a free slot\b", shown)
