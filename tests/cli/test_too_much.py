"""A model that sends far too much fails with a reason, and the program continues."""

from __future__ import annotations

import json

import pytest

from tests.cli.program import Program
from tests.cli.suites import CHAIN, WEATHER
from tests.providers.server import APIS, HANG, Answer, Api, Call, base_url_of, said, serve

MODEL = '[models.big]\nprovider = "{api}"\nmodel = "m"\nbase_url = "{url}"\n'
WORDS = ("run", "weather.toml", "--trust", "--model", "big")


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
def test_an_endless_answer_ends_as_a_failure_that_is_kept_and_graded_again(program: Program, api: Api) -> None:
    program.write("weather.toml", WEATHER + CHAIN)
    beginning = said(api, f"{'x' * 2_000} " * 50, end=False)
    endless = Answer((b"".join(piece for piece in beginning.pieces if isinstance(piece, bytes)),) * 22 + (HANG,))
    with serve(endless, endless) as server:
        program.write("workbench.toml", MODEL.format(api=api, url=base_url_of(server, api)))
        done = program.run(*WORDS, "--record", "recorded")
    why = "the model sent too much: more than 2,097,152 characters in one answer"
    assert done.returncode == 1, done.stderr
    assert done.stdout.count(why) >= 2, "as it happens and in the report"
    again = json.loads(program.run("grade", "recorded", "--format", "json").stdout)
    kept = json.loads(program.run("history", "show", "1", "--format", "json").stdout)
    for runs in (again["runs"], kept["runs"]):
        assert [run["status"] for run in runs] == ["failed"] * 2
    for run in again["runs"]:
        assert ("sent too much", why) in [(issue["kind"], issue["why"]) for issue in run["grades"][0]["issues"]]


@pytest.mark.slow
def test_a_thousand_calls_are_answered_and_one_more_is_too_much(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    calls = [Call("get_weather", {"city": "Oslo"}, f"call_{number}") for number in range(1_001)]
    with serve(said("openai", calls=calls[:-1]), said("openai", "Rain."), said("openai", calls=calls)) as server:
        program.write("workbench.toml", MODEL.format(api="openai", url=base_url_of(server, "openai")))
        most, more = (json.loads(program.run(*WORDS, "--format", "json").stdout)["runs"][0] for _ in range(2))
    assert len(most["rounds"][0]["calls"]) == 1_000 and most["finish"] == "answered"
    assert more["finish"] == "sent too much"
    issues = {issue["kind"]: issue["why"] for issue in more["grades"][0]["issues"]}
    assert issues["sent too much"] == "the model sent too much: more than 1,000 calls in one answer"
