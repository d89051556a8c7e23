"""Lists of models on the command line. Bare names take the provider of the name before them, and the first line says
so."""

from __future__ import annotations

import json

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.providers.server import said, serve

SUBJECT = '[subject]\ncommand = ["python", "-c", "print(1)"]\nname = "agent"\n'
LOCAL = '[models.local]\nprovider = "anthropic"\nbase_url = "http://127.0.0.1:9"\n'


def test_a_bare_name_takes_provider_and_address(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    program.write("workbench.toml", LOCAL)
    with serve(*[said("openai", "It rains.")] * 2) as server:
        models = f"openai:one@{server.url}/v1,offline,two"
        done = program.run("run", "weather.toml", "--model", models, "--format", "json")
    named = [f"openai:one@{server.url}/v1", "offline", f"openai:two@{server.url}/v1"]
    assert done.stderr.splitlines()[0] == f"models: {', '.join(named)}"
    assert [run["model"] for run in json.loads(done.stdout)["runs"]] == named
    assert sorted(request.json["model"] for request in server.requests) == ["one", "two"]


@pytest.mark.parametrize(
    ("listed", "full"),
    [
        ("openai:a,agent,b", "openai:a, agent, openai:b"),
        ("openai:a,local,offline,b", "openai:a, local, offline, openai:b"),
        ("openai:a,anthropic:b,c", "openai:a, anthropic:b, anthropic:c"),
        ("openai:a,openai:b", None),
        ("offline,local", None),
    ],
)
@pytest.mark.parametrize("command", [("models", "--model"), ("compare", "--format", "json", "--model")])
def test_names_of_their_own_stay(program: Program, command: tuple[str, ...], listed: str, full: str | None) -> None:
    head, _, rest = WEATHER.partition("[[tools]]")
    program.write("weather.toml", f"{head}{SUBJECT}[[tools]]{rest}")
    program.write("workbench.toml", LOCAL)
    done = program.run(*command, listed, ".")
    assert (f"models: {full}\n" in done.stderr) == (full is not None), done.stderr
    assert ("models: " in done.stderr) == (full is not None)


def test_a_bare_name_alone_is_asked_for_as_before(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    for words in (["--model", "gpt,openai:a"], ["--model", "openai:a", "--model", "gpt"]):
        done = program.run("run", "weather.toml", *words)
        assert done.returncode == 2 and "there is no model 'gpt'" in done.stderr, done.stderr


def test_settings_that_cannot_be_read_are_reported_before_anything_is_guessed(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    program.write("workbench.toml", "[models.local]\nprovider = 3\n")
    done = program.run("run", "weather.toml", "--model", "openai:a,local")
    assert done.returncode == 2 and "models.local.provider is invalid" in done.stderr
    assert "models: " not in done.stderr
