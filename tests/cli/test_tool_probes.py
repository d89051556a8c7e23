"""`workbench models --check --tools`: what works at an endpoint, what was repaired, and what is wrong."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.cli.program import Program
from tests.providers.server import APIS, Answer, Api, Request, Server, base_url_of, document, error_document, said
from tests.providers.tool_model import Fault, endpoint
from tests.sampled_rows import first_rows

PROBES = [
    "one call",
    "parallel calls",
    "no arguments",
    "round trip",
    "no tool needed",
    "reasoning apart",
    "long argument",
    "usage while streaming",
]
KEY = "planted-key-4711"
AS_TEXT = "the endpoint returned the call as text"
DROPPED = "the prompt is smaller than the tools that were sent"
CALLING = ["one call", "parallel calls", "no arguments", "round trip", "long argument"]


def probed(program: Program, server: Server, api: Api, *words: str) -> tuple[int, str]:
    model = f"{api}:test-model@{base_url_of(server, api)}"
    done = program.run("models", "--check", "--tools", "--model", model, *words)
    assert done.stderr == ""
    return done.returncode, done.stdout


def states(program: Program, api: Api, fault: Fault) -> tuple[int, dict[str, tuple[str, str, str | None]]]:
    with Server(endpoint(api, fault)) as server:
        code, text = probed(program, server, api, "--format", "json")
    (model,) = json.loads(text)["models"]
    found = {each["probe"]: (each["state"], each["finding"], each["advice"]) for each in model["tools"]}
    assert list(found)[: len(PROBES)] == PROBES
    return code, found


@pytest.mark.parametrize("api", APIS)
def test_a_good_endpoint_works_with_one_request_of_each_kind(program: Program, api: Api) -> None:
    with Server(endpoint(api)) as server:
        code, text = probed(program, server, api)
    assert code == 0, text
    for probe in PROBES:
        assert f"  ✓ {probe:<21}  " in text
    assert 'called get_weather(city="Oslo"), answered “It has 417 degrees.”' in text
    assert "→" not in text
    assert len(server.requests) == 8  # the round trip has two


@pytest.mark.parametrize(
    ("api", "fault", "kind"),
    first_rows(
        [
            ("openai", "cumulative", "the endpoint repeats the arguments so far in each chunk"),
            ("openai", "repeated", "the endpoint sends the arguments once more after their end"),
            ("openai-responses", "repeated", "the endpoint sends the arguments once more after their end"),
            ("anthropic", "repeated", "the endpoint sends the arguments once more after their end"),
        ],
        2,
    ),
)
def test_what_was_repaired_is_listed(program: Program, api: Api, fault: Fault, kind: str) -> None:
    code, found = states(program, api, fault)
    assert code == 0
    for probe in ("one call", "parallel calls", "round trip", "long argument"):
        assert found[probe][:2] == ("repaired", f"repaired: {kind}")
    assert found["no tool needed"][0] == "works"


@pytest.mark.parametrize("api", APIS)
def test_thoughts_in_the_answer_are_listed_as_repaired(program: Program, api: Api) -> None:
    code, found = states(program, api, "think tags")
    assert code == 0
    assert found["reasoning apart"][0] == "repaired"
    assert "the endpoint does not separate them as reasoning" in found["reasoning apart"][1]


@pytest.mark.parametrize("api", APIS)
def test_calls_that_come_as_text_are_wrong_with_the_switch_that_helps(program: Program, api: Api) -> None:
    code, found = states(program, api, "as text")
    assert code == 3
    for probe in CALLING:
        state, finding, advice = found[probe]
        assert (state, finding.partition(":")[0]) == ("wrong", AS_TEXT)
        assert advice is not None and "--tool-call-parser" in advice
    assert found["no tool needed"][0] == "works"


@pytest.mark.parametrize("api", APIS)
def test_tools_that_never_arrive_are_wrong(program: Program, api: Api) -> None:
    code, found = states(program, api, "tools dropped")
    assert code == 3
    state, finding, advice = found["one call"]
    assert (state, finding.partition(" (")[0]) == ("wrong", DROPPED)
    assert advice is not None and "chat template" in advice


@pytest.mark.parametrize("api", APIS)
def test_arguments_that_are_cut_are_wrong_and_no_schema_is_blamed(program: Program, api: Api) -> None:
    code, found = states(program, api, "cut")
    assert code == 3
    state, finding, advice = found["one call"]
    assert (state, "JSON that ends too early" in finding) == ("wrong", True)
    assert advice is not None and advice.startswith("check the server's log")


@pytest.mark.parametrize("api", APIS)
def test_missing_usage_is_wrong(program: Program, api: Api) -> None:
    code, found = states(program, api, "no usage")
    assert (code, found["usage while streaming"][0], found["one call"][0]) == (3, "wrong", "works")


def test_an_endpoint_where_nothing_is_ever_called_is_wrong_though_no_single_answer_shows_it(program: Program) -> None:
    with Server(lambda _request: said("openai", "I cannot do that.")) as server:
        code, text = probed(program, server, "openai")
    assert code == 3
    assert "? one call               the model answered “I cannot do that.”" in text
    assert "✗ tools                  no tool was called in any answer" in text
    assert text.count("  → ") == 1


def test_errors_are_told_without_secrets_and_an_endpoint_that_is_silent_is_sent_nothing(program: Program) -> None:
    def refuse(_request: Request) -> Answer:
        return document(error_document("openai", f"no tools here, {KEY}"), 400)

    program = replace(program, variables={"LOCAL_KEY": KEY})
    with Server(refuse) as server:
        settings = (
            f'provider = "openai"\nbase_url = "{server.url}/v1"\nmodel = "test-model"\napi_key_env = "LOCAL_KEY"\n'
        )
        program.write("config/toolcall-workbench/workbench.toml", f"[models.local]\n{settings}")
        done = program.run("models", "check", "--tools")
    assert done.returncode == 3
    assert "✗ one call" in done.stdout
    assert "no tools here, $LOCAL_KEY" in done.stdout
    silent = program.run("models", "--check", "--tools")
    assert silent.returncode == 3
    assert "one call" not in silent.stdout
    assert KEY not in done.stdout + done.stderr + silent.stdout + silent.stderr


def test_a_projects_model_is_probed_only_after_trust(program: Program) -> None:
    with Server(endpoint("openai")) as server:
        program.write("workbench.toml", f'[models.m]\nprovider = "openai"\nbase_url = "{server.url}/v1"\n')
        refused = program.run("models", "--tools")
        assert (refused.returncode, server.requests) == (2, [])
