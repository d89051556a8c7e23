"""`workbench run` on real endpoints: what it says of an error, and what the runs cost."""

from __future__ import annotations

import json

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.providers.server import document, said, serve

MODEL = """
[models.priced]
provider = "openai"
model = "m"
base_url = "{url}/v1"
price = {{ input = 1000, output = 10000 }}
"""
WORDS = ("run", "weather.toml", "--trust", "--model", "priced")


def test_a_run_costs_what_its_tokens_cost(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    with serve(said("openai", "It rains."), said("openai", "It rains.")) as server:
        program.write("workbench.toml", MODEL.format(url=server.url))
        text = program.run(*WORDS, "--model", "offline").stdout
        report = json.loads(program.run(*WORDS, "--format", "json").stdout)
    # 11 tokens in, 7 out
    assert "  cost: $0.0810, without 1 run of unknown cost" in text
    assert (report["runs"][0]["cost_usd"], report["totals"]["cost_usd"]) == (0.081, 0.081)


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
