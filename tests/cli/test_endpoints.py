"""`workbench run` on real endpoints: its error messages, and the cost of the runs."""

from __future__ import annotations

import json
import re
import signal

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER, WRONG
from tests.durations import DURATION
from tests.providers.server import Answer, Call, Request, Server, Signal, document, said, serve

MODEL = """
[models.priced]
provider = "openai"
model = "m"
base_url = "{url}/v1"
price = {{ input = 1000, output = 10000 }}

[models.bare]
provider = "openai"
model = "m"
base_url = "{url}/v1"
"""
WORDS = ("run", "weather.toml", "--trust", "--model", "priced")


def test_a_run_costs_what_its_tokens_cost(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    with serve(*[said("openai", "It rains.")] * 3) as server:
        program.write("workbench.toml", MODEL.format(url=server.url))
        text = program.run(*WORDS, "--model", "bare", "--model", "offline").stdout
        report = json.loads(program.run(*WORDS, "--format", "json").stdout)
    assert "starting model priced\n" in text
    took = rf"\ntook {DURATION}, {DURATION} of it start-up\nbatch 1 in the history\n$"
    assert re.search(took, text), text
    timing = report["timing"]
    assert 0 < timing["start_up_ms"] < timing["took_ms"] and timing["cases_a_minute"] > 0
    (run,) = report["runs"]
    assert run["latency_ms"] <= run["loop_ms"] <= run["duration_ms"] < timing["took_ms"] - timing["start_up_ms"]
    # 11 tokens in, 7 out
    assert "$0.0810 without 1 run of unknown cost" in text
    assert (report["runs"][0]["cost_usd"], report["totals"]["cost_usd"]) == (0.081, 0.081)


@pytest.mark.slow
def test_what_asks_no_model_over_a_network_costs_nothing_wherever_it_is_said(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    with serve(*[said("openai", "It rains.")] * 3) as server:
        program.write("workbench.toml", MODEL.format(url=server.url))
        program.run(*WORDS, "--record", "recorded")
        models = ("priced", "bare", "offline", "replay:recorded")
        words = [word for model in models for word in ("--model", model)]
        program.run("compare", "weather.toml", "--trust", *words, "--format", "json", "--output", "compared.json")
        again = json.loads(program.run("compare", "--resume", "2", "--format", "json").stdout)
    report = json.loads((program.folder / "compared.json").read_text(encoding="utf-8"))
    costs = [(0.081, 0), (None, 1), (0, 0), (0, 0)]
    assert [(each["cost_usd"], each["runs_of_unknown_cost"]) for each in report["totals"]] == costs
    assert [(each["cost_usd"], each["runs_of_unknown_cost"]) for each in again["totals"]] == costs
    kept = json.loads(program.run("history", "show", "2", "--format", "json").stdout)
    assert [run["cost_usd"] for run in kept["runs"]] == [cost for cost, _ in costs]
    graded = json.loads(program.run("grade", "recorded", "--format", "json").stdout)
    assert graded["totals"]["runs_of_unknown_cost"] == 1, "a recording does not know its price"


def test_an_error_that_ends_a_run_is_said_once_among_its_steps_and_in_full(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    why = "this key " + "is not good " * 12 + "at all"
    with serve(document({"error": {"message": why}}, status=401)) as server:
        program.write("workbench.toml", MODEL.format(url=server.url))
        done = program.run(*WORDS)
    assert done.returncode == 3
    steps = [line for line in done.stdout.splitlines() if line.startswith("Right ")]
    assert len(steps) == 1
    assert why in steps[0]


def test_a_run_says_that_it_waits_since_its_endpoint_told_another_one_to(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG.replace("Oslo", "Rome"))
    told = Signal()

    def answer(request: Request) -> Answer:
        """Delay the case about Oslo. Meanwhile the other case calls a tool and sends its next request."""
        if "Oslo" in str(request.json["messages"]):
            return document({"error": {"message": "slow down"}}, status=429, headers={"retry-after": "30"})
        return Answer((told, *said("openai", calls=[Call("get_weather", {"city": "Rome"})]).pieces))

    with Server(answer) as server:
        program.write("workbench.toml", MODEL.format(url=server.url))
        running = program.start(*WORDS)
        lines = iter(running.stdout.readline, "")
        assert any("↻ retry 2 in 30.0 s" in line for line in lines)
        told.set()
        waits = next(line for line in lines if "↻ waits" in line)
        running.send_signal(signal.SIGINT)
        running.communicate()
    assert re.fullmatch(r"Wrong  ↻ waits (30|[12]?\d)\.\d s: the endpoint asked another run to wait\n", waits), waits
