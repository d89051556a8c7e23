"""Models as the command line meets them: `workbench models`, the options of `run`, and trust in endpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.providers.server import Server, said, serve
from workbench.suite.suite_file import load_suite
from workbench.tools.listings import StoredListings
from workbench.trajectory.events import JsonValue, ToolDefinition

KEY = "planted-key-4711"
BARE = """
format = 1
name = "Bare"
models = MODELS
[[cases]]
name = "Talk"
user = "Say rain."
response_contains = ["rain"]
"""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(lambda _request: said("openai", text="It will rain.")) as serving:
        yield serving


def settings(server: Server, *lines: str) -> str:
    return "\n".join(['[models.local]\nprovider = "openai"', f'base_url = "{server.url}/v1"', *lines, ""])


def bare(*models: str) -> str:
    return BARE.replace("MODELS", json.dumps(models))


# workbench models


def test_the_models_of_the_project_the_user_and_the_suites_are_listed(program: Program, server: Server) -> None:
    program.write("workbench.toml", settings(server, 'model = "test-model"', 'api_key_env = "LOCAL_KEY"'))
    program.write(
        "config/toolcall-workbench/workbench.toml",
        '[models.mine]\nprovider = "anthropic"\nmodel = "claude"\nprice = { input = 3, output = 15 }\n',
    )
    program.write("suite.toml", bare("local", "openai:gpt"))
    program.write(".env", f"LOCAL_KEY={KEY}\n")
    done = program.run("models")
    assert done.returncode == 0, done.stderr
    assert "offline  baseline" in done.stdout
    assert f"local  openai: test-model at {server.url}/v1 with the key in LOCAL_KEY, which is set" in done.stdout
    assert "named by suite.toml" in done.stdout
    assert "mine  anthropic: claude at https://api.anthropic.com" in done.stdout
    assert "which is not set" in done.stdout
    assert "$3 in, $15 out per million tokens" in done.stdout
    assert "openai:gpt  openai: gpt at https://api.openai.com/v1" in done.stdout
    assert KEY not in done.stdout + done.stderr
    assert server.requests == server.listings == []


def test_the_list_as_json(program: Program, server: Server) -> None:
    program.write("workbench.toml", settings(server, "params = { temperature = 0 }"))
    listed = json.loads(program.run("models", ".", "--format", "json").stdout)
    (model,) = listed["models"]
    assert model["base_url"] == f"{server.url}/v1"
    assert (model["params"], model["key_is_set"], model["origin"]) == ({"temperature": 0}, None, "project")


def test_variables_that_are_ignored_are_named(program: Program) -> None:
    program = replace(program, variables={"OPENAI_BASE_URL": "http://elsewhere.test"})
    done = program.run("models")
    assert "OPENAI_BASE_URL is set but not used: write base_url in workbench.toml" in done.stdout


def test_broken_settings_are_said_whole_and_answer_two(program: Program) -> None:
    program.write("workbench.toml", '[models.a]\nprovider = "x"\n[models.b]\n')
    done = program.run("models")
    assert done.returncode == 2
    assert "workbench.toml:2: models.a.provider" in done.stderr
    assert "workbench.toml:3: models.b.provider is missing" in done.stderr


def test_a_path_that_is_not_there_answers_two(program: Program) -> None:
    done = program.run("models", "nowhere")
    assert (done.returncode, done.stderr) == (2, "there is no nowhere: to list a model give --model NAME\n")


def test_a_check_asks_every_endpoint_and_answers_three_when_one_does_not(program: Program) -> None:
    with serve() as server:
        user = settings(server, 'model = "test-model"') + settings(server).replace("local]", "other]")
        program.write("config/toolcall-workbench/workbench.toml", user)
        done = program.run("models", "--check")
    assert done.returncode == 3, done.stderr
    assert f"✓ {server.url}/v1 answers and has test-model" in done.stdout
    assert f"? {server.url}/v1 has no model 'other'" in done.stdout


def test_chosen_models_alone_are_listed_and_checked(program: Program) -> None:
    with serve() as server:
        program.write("config/toolcall-workbench/workbench.toml", settings(server, 'model = "test-model"'))
        program.write("suite.toml", bare("openai:gpt"))
        words = ["models", "--check", "--model", "local", "--model"]
        done = program.run(*words, f"openai:test-model@{server.url}/v1")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(f"✓ {server.url}/v1 answers and has test-model") == 2
        assert "gpt" not in done.stdout
        moved = program.run("models", "--check", "--model", "test-model", "--base-url", f"{server.url}/v1")
        assert moved.returncode == 0, moved.stderr
        assert "test-model  openai: test-model at" in moved.stdout
    assert program.run("models", "--model", "lokal").returncode == 2


def test_a_check_of_a_projects_model_needs_trust(program: Program, server: Server) -> None:
    program.write("workbench.toml", settings(server, 'model = "test-model"'))
    refused = program.run("models", "--check")
    assert refused.returncode == 2
    assert f"ask the model test-model at {server.url}/v1" in refused.stderr
    assert "allows this" in refused.stderr
    assert server.listings == []
    assert program.run("models", "--check", "--trust").returncode == 0
    assert len(server.listings) == 1


# The options of run


def test_an_address_on_the_command_line_is_enough(program: Program, server: Server) -> None:
    program = replace(program, variables={"LOCAL_KEY": KEY, "OPENAI_API_KEY": "not-to-be-sent-4711"})
    program.write("suite.toml", bare("offline"))
    words = ["run", "suite.toml", "--model", "llama:8b", "--base-url", f"{server.url}/v1"]
    done = program.run(*words, "--param", "temperature=0.5", "--param", "user=me", "--param", 'stop=["x"]')
    assert done.returncode == 0, done.stdout + done.stderr
    (request,) = server.requests
    sent = request.json
    assert (sent["model"], sent["temperature"], sent["user"], sent["stop"]) == ("llama:8b", 0.5, "me", ["x"])
    assert "authorization" not in request.headers
    assert program.run(*words, "--api-key-env", "LOCAL_KEY").returncode == 0
    assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"


def test_a_name_can_say_it_all(program: Program, server: Server) -> None:
    program.write("suite.toml", bare("offline"))
    done = program.run("run", "suite.toml", "--model", f"openai:llama:8b@{server.url}/v1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert server.requests[0].json["model"] == "llama:8b"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--base-url", "http://localhost:1"], "no model is given for --base-url"),
        (["--param", "a=1", "--api-key-env", "K"], "no model is given for --api-key-env, --param"),
        (["--model", "m", "--base-url", "localhost:1"], "--base-url must be an http or https address"),
        (["--model", "m", "--api-key-env", "sk-hidden"], "--api-key-env must be the name of an environment variable"),
        (["--model", "m", "--param", "stream=true"], "--param must not contain 'stream'"),
        (["--model", "m", "--param", "temperature"], "write NAME=VALUE"),
        (["--model", "offlin"], "there is no model 'offlin': did you mean 'offline'?"),
        (["--model", "m@http://localhost"], "as in openai:m@http://localhost or anthropic:m@http://localhost\n"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_anything_runs(
    program: Program, words: list[str], said: str
) -> None:
    program.write("suite.toml", WEATHER)
    done = program.run("run", "suite.toml", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "hidden" not in done.stderr
    assert done.stdout == ""


def test_a_suite_that_names_no_such_model_ends_in_an_error(program: Program) -> None:
    program.write("suite.toml", bare("local"))
    done = program.run("run", "suite.toml")
    assert done.returncode == 3
    assert "there is no model 'local'" in done.stdout


def test_a_dotenv_that_cannot_be_read_is_an_error_of_the_runs_that_need_it(program: Program, server: Server) -> None:
    program.write("suite.toml", WEATHER)
    (program.folder / ".env").write_bytes(b"\0")
    done = program.run("run", "suite.toml", "--model", f"openai:m@{server.url}/v1")
    assert done.returncode == 3
    assert ".env is not text with NAME=value lines" in done.stdout
    offline = program.run("run", "suite.toml", "--model", "offline")
    assert offline.returncode == 0, offline.stdout + offline.stderr
    assert "▲" in offline.stdout
    assert ".env is not text with NAME=value lines" in offline.stdout


# Trust


def test_a_projects_model_is_not_asked_without_trust(program: Program, server: Server) -> None:
    program.write("workbench.toml", settings(server))
    program.write("suite.toml", bare("local"))
    done = program.run("run", "suite.toml")
    assert done.returncode == 2
    assert "trusting suite.toml allows it, on this machine, to:" in done.stderr
    assert f"ask the model local at {server.url}/v1" in done.stderr
    assert server.requests == []
    assert program.run("run", "suite.toml", "--trust").returncode == 0
    assert len(server.requests) == 1


def test_a_suite_that_only_names_models_runs_untrusted_on_others(program: Program, server: Server) -> None:
    program.write("workbench.toml", settings(server))
    program.write("suite.toml", WEATHER)
    assert program.run("run", "suite.toml", "--model", "offline").returncode == 0
    done = program.run("run", "suite.toml", "--model", f"openai:mine@{server.url}/v1")
    assert "mine" in done.stdout
    assert done.returncode == 1
    assert len(server.requests) == 1


def test_a_yes_on_a_terminal_is_remembered_until_the_address_changes(program: Program, server: Server) -> None:
    program.write("workbench.toml", settings(server))
    program.write("suite.toml", bare("local"))
    for answer, asked in (("yes", True), ("", False)):
        dialogue = program.ask("run", "suite.toml")
        if asked:
            dialogue.wait_for("Trust suite.toml and remember it")
            dialogue.answer(answer)
        assert "1 passed" in dialogue.end()
        assert dialogue.wait() == 0
    program.write("workbench.toml", settings(server, 'api_key_env = "OPENAI_API_KEY"'))
    assert program.run("run", "suite.toml").returncode == 2


REMEMBERED = """
format = 1
name = "Remembered"
[[servers]]
name = "home"
command = ["no-such-program-anywhere"]
[[mocks]]
tool = "get_weather"
result = "Rain in {city}"
[[cases]]
name = "Right"
user = "What is the weather in Oslo?"
[[cases.ordered]]
tool = "get_weather"
args = { city = "Oslo" }
"""


def test_mocks_are_an_answer_where_the_tools_are_remembered(program: Program) -> None:
    path = program.write("suite.toml", REMEMBERED)
    suite = load_suite(path).suite
    assert suite is not None
    listings = StoredListings(program.folder / "state" / "toolcall-workbench" / "listings")
    city: dict[str, JsonValue] = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}
    listings.remember(path, suite.servers[0], (ToolDefinition("get_weather", "Weather of a city.", city, {}, "home"),))
    dialogue = program.ask("run", "suite.toml", "--execute")
    dialogue.wait_for("yes/no/mocks")
    dialogue.answer("mocks")
    assert "1 passed" in dialogue.end()
    assert dialogue.wait() == 0
    assert program.run("run", "suite.toml").returncode == 2
