"""Models behind gateways: their headers, their query, and keys that a program prints."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.providers.server import Answer, Api, Request, Server, document, error_document, said, serve
from tests.sampled_rows import first_of, first_rows

GATEWAY = "gateway-secret-4711-x"
KEY = "first-key-0815-abc"
VARIABLES = {"GATEWAY": GATEWAY, "UPSTREAM": "upstream-secret-99-y"}

MODEL = """
[models.gw]
provider = "{provider}"
model = "test-model"
base_url = "{url}?team=a%20b"
api_key_env = "UPSTREAM"
headers = {{ "X-Gateway-Key" = "id ${{GATEWAY}}", "x-team" = "cost$$1", "user-agent" = "mine" }}
query = {{ "api-version" = "2024-10-21", "sig" = "$GATEWAY" }}
"""


def rain(api: Api) -> Answer:
    return said(api, "It rains.")


def query_of(request: Request) -> dict[str, list[str]]:
    return parse_qs(urlsplit(request.path).query)


@pytest.mark.parametrize("provider", first_of(["openai", "openai-responses", "anthropic"], 1))
def test_headers_and_query_are_sent_and_their_values_are_secret(program: Program, provider: Api) -> None:
    program = Program(program.folder, VARIABLES)
    program.write("weather.toml", WEATHER)
    base = "" if provider == "anthropic" else "/v1"
    with serve(rain(provider), rain(provider)) as server:
        program.write("workbench.toml", MODEL.format(provider=provider, url=f"{server.url}{base}"))
        words = ("run", "weather.toml", "--model", "gw", "--trust", "--record", "recorded")
        done = program.run(*words, "--format", "json", "--output", "report.json")
        checked = program.run("models", "--check", "--trust")
    assert done.returncode == 1, done.stderr
    assert checked.returncode == 0, checked.stdout
    assert "✓" in checked.stdout and "headers X-Gateway-Key='id ${GATEWAY}'" in checked.stdout
    for request in (*server.requests, *server.listings):
        assert request.headers["x-gateway-key"] == f"id {GATEWAY}"
        assert (request.headers["x-team"], request.headers["user-agent"]) == ("cost$1", "mine")
        assert request.headers["authorization"] == f"Bearer {VARIABLES['UPSTREAM']}"
        query = query_of(request)
        assert (query["team"], query["api-version"], query["sig"]) == (["a b"], ["2024-10-21"], [GATEWAY])
    (listing,) = server.listings
    assert query_of(listing).get("limit") == (["1000"] if provider == "anthropic" else None)
    texts = [done.stdout, done.stderr, checked.stdout]
    texts += [file.read_bytes().decode("utf-8", "replace") for file in written_by(program)]
    assert not [text for text in texts if GATEWAY in text or VARIABLES["UPSTREAM"] in text]


def written_by(program: Program) -> list[Path]:
    return [file for file in program.folder.rglob("*") if file.is_file()]


def test_an_own_authorization_takes_the_place_of_the_key(program: Program) -> None:
    program = Program(program.folder, {**VARIABLES, "OPENAI_API_KEY": "sk-not-to-be-sent"})
    program.write("weather.toml", WEATHER)
    with serve(rain("openai")) as server:
        program.write(
            "workbench.toml",
            f'[models.gw]\nprovider = "openai"\nbase_url = "{server.url}/v1"\n'
            'headers = { Authorization = "Basic $GATEWAY" }\n',
        )
        program.run("run", "weather.toml", "--model", "gw", "--trust")
    (request,) = server.requests
    assert request.headers["authorization"] == f"Basic {GATEWAY}"


def test_another_address_gets_neither_headers_nor_query_nor_key(program: Program) -> None:
    program = Program(program.folder, VARIABLES)
    program.write("weather.toml", WEATHER)
    with serve(rain("openai")) as server:
        program.write("workbench.toml", MODEL.format(provider="openai", url="http://127.0.0.1:9/v1"))
        program.run("run", "weather.toml", "--model", "gw", "--base-url", f"{server.url}/v1?x=1")
    (request,) = server.requests
    assert request.path == "/v1/chat/completions?x=1"
    assert request.headers.keys().isdisjoint({"x-gateway-key", "x-team", "authorization"})


def test_a_variable_that_is_not_set_ends_the_run_before_anything_is_sent(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    with serve() as server:
        program.write("workbench.toml", MODEL.format(provider="openai", url=f"{server.url}/v1"))
        done = Program(program.folder, {"UPSTREAM": "x" * 20}).run("run", "weather.toml", "--model", "gw", "--trust")
    assert done.returncode == 3
    assert "gw needs the variable GATEWAY, which is not set" in done.stdout
    assert server.requests == []


COMMANDED = """
[models.token]
provider = "openai"
model = "test-model"
base_url = "{url}/v1"
key_command = [{python}, "key.py"]
"""

PRINTS = """
import os, sys
from pathlib import Path
ran = Path("ran")
times = len(ran.read_text()) if ran.exists() else 0
ran.write_text("x" * (times + 1))
print(f"key-number-{times}-of-gateway")
"""


class Gateway:
    """Accepts only the keys of some runs of the command."""

    def __init__(self, *accepted: int) -> None:
        self.accepted = {f"Bearer key-number-{number}-of-gateway" for number in accepted}

    def answer(self, request: Request) -> Answer:
        if request.headers.get("authorization") in self.accepted:
            return rain("openai")
        return document(error_document("openai", "this token has expired"), status=401)


def commanded(program: Program, server: Server, script: str) -> None:
    program.write("weather.toml", WEATHER)
    program.write("key.py", script)
    program.write("workbench.toml", COMMANDED.format(url=server.url, python=json.dumps(sys.executable)))


def times_run(program: Program) -> int:
    file = program.folder / "ran"
    return len(file.read_text()) if file.exists() else 0


def test_a_command_prints_the_key_after_trust_and_once_more_when_the_key_is_refused(program: Program) -> None:
    gateway = Gateway(1)
    with Server(gateway.answer) as server:
        commanded(program, server, PRINTS)
        for words in (["validate", "."], ["models"], ["run", "weather.toml", "--model", "offline"]):
            program.run(*words)
        untrusted = program.run("run", "weather.toml", "--model", "token")
        assert times_run(program) == 0
        assert "key.py" in untrusted.stderr and "(beside its workbench.toml), which prints a key" in untrusted.stderr
        done = program.run("run", "weather.toml", "--model", "token", "--trust", "--repeats", "3", "--format", "json")
    assert times_run(program) == 2
    report = json.loads(done.stdout)
    assert [run["status"] for run in report["runs"]] == ["failed"] * 3, "each has the model's answer"
    keys = [request.headers["authorization"] for request in server.requests]
    assert keys[-1] == "Bearer key-number-1-of-gateway" and len(keys) <= 6
    assert "key-number" not in done.stdout + done.stderr
    assert not [file for file in written_by(program) if b"key-number-1" in file.read_bytes()]


@pytest.mark.parametrize("owner", ["user", "project"])
def test_a_file_beside_a_suite_changes_nothing_about_a_command_that_runs_without_trust(
    program: Program, owner: str
) -> None:
    with serve(rain("openai")) as server:
        commanded(program, server, "import os; print('key-of-' + os.environ.get('PLANTED', 'nobody'))")
        program.write(".env", "PLANTED=env-file\n")
        if owner == "user":
            for name in ("workbench.toml", "key.py"):
                (program.folder / "config" / "toolcall-workbench").mkdir(parents=True, exist_ok=True)
                (program.folder / name).rename(program.folder / "config" / "toolcall-workbench" / name)
        trust = ["--trust"] * (owner == "project")
        program.run("run", "weather.toml", "--model", "token", *trust)
    (request,) = server.requests
    assert request.headers["authorization"] == f"Bearer key-of-{'nobody' if owner == 'user' else 'env-file'}"


def test_a_key_that_stays_refused_does_not_run_the_command_for_each_run(program: Program) -> None:
    with Server(Gateway().answer) as server:
        commanded(program, server, PRINTS)
        done = program.run("run", "weather.toml", "--model", "token", "--trust", "--repeats", "5")
    assert done.returncode == 3
    assert times_run(program) == 2
    assert "does not accept the key that" in done.stdout and "run that command in a shell" in done.stdout


def test_a_check_uses_the_printed_key(program: Program) -> None:
    with Server(Gateway().answer, models=document({"error": {"message": "no"}}, status=401)) as server:
        commanded(program, server, PRINTS)
        refused = program.run("models", "--check", "--trust")
    assert refused.returncode == 3 and times_run(program) == 2
    assert [request.headers["authorization"][7:19] for request in server.listings] == ["key-number-0", "key-number-1"]


@pytest.mark.parametrize(
    ("script", "said"),
    first_rows(
        [
            (
                "import sys; sys.exit('no login: ghp_" + "a1B2" * 9 + "')",
                "ended with exit code 1 (no login: $GITHUB_TOKEN)",
            ),
            ("print('key-of-mine-1234')\nraise SystemExit('key-of-mine-1234 is old')", "KEY is old)"),
            ("", "printed nothing: it must print the key on standard output"),
            ("print('one'); print('two')", "printed more than a key: it must print the key alone, on one line"),
            ("print('k' * 20_000, flush=True)\nimport time; time.sleep(60)", "printed more than 16,384 bytes"),
            ("import os; os.kill(os.getpid(), 9)", "was ended by signal 9"),
        ],
        2,
    ),
)
def test_a_command_that_prints_no_key_is_an_error_with_its_reason(program: Program, script: str, said: str) -> None:
    with serve() as server:
        commanded(program, server, script)
        done = program.run("run", "weather.toml", "--model", "token", "--trust")
    assert done.returncode == 3
    assert said in done.stdout and "the key_command" in done.stdout, done.stdout
    assert "key-of-mine" not in done.stdout and server.requests == []


def test_a_program_that_is_not_there_is_named(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    program.write(
        "workbench.toml",
        '[models.token]\nprovider = "openai"\nbase_url = "http://127.0.0.1:9/v1"\nkey_command = ["no-such-program"]\n',
    )
    done = program.run("run", "weather.toml", "--model", "token", "--trust")
    assert "the key_command no-such-program cannot be started: No such file or directory" in done.stdout


def test_models_with_other_headers_have_lanes_of_their_own(program: Program) -> None:
    """The two models differ only in a header, and neither waits for the other's limit."""
    program.write("weather.toml", WEATHER)
    model = '[models.{name}]\nprovider = "openai"\nmodel = "m"\nbase_url = "{url}/v1"\nrequests_per_minute = 1\n'
    with serve(rain("openai"), rain("openai")) as server:
        text = "".join(
            model.format(name=name, url=server.url) + f'headers = {{ x-route = "{name}" }}\n' for name in ("a", "b")
        )
        program.write("workbench.toml", text)
        done = program.run("run", "weather.toml", "--model", "a,b", "--trust")
    assert sorted(request.headers["x-route"] for request in server.requests) == ["a", "b"]
    assert done.returncode == 1


def test_a_gateway_is_added_and_its_settings_leave_with_its_address(program: Program) -> None:
    program = Program(program.folder, VARIABLES)
    program.write("weather.toml", WEATHER)
    add = ("models", "add", "gw", "--model", "test-model", "--to", "project")
    with serve() as server:
        url = f"{server.url}/v1"
        words = ["--header", "x-key=id $GATEWAY", "--header", "x-team=s", "--query", "v=1"]
        done = program.run(*add, "--base-url", f"{url}?w=2", *words, "--key-command", "printf the-key-1234")
        assert done.returncode == 0, done.stderr
        (listing,) = server.listings
        assert listing.path == "/v1/models?v=1&w=2"
        assert (listing.headers["x-key"], listing.headers["authorization"]) == (f"id {GATEWAY}", "Bearer the-key-1234")
        refused = program.run("models", "add", "gw", "--replace", "--price", "1,2")
        assert refused.returncode == 2 and "that you do not trust yet" in refused.stderr
        assert len(server.listings) == 1
        moved = program.run("models", "add", "gw", "--replace", "--base-url", f"{server.url}/v1/x", "--no-check")
    assert moved.returncode == 0, moved.stderr
    written = (program.folder / "workbench.toml").read_text()
    assert tomllib.loads(written)["models"]["gw"] == {
        "provider": "openai",
        "model": "test-model",
        "base_url": f"{server.url}/v1/x",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--header", "x y"], "--header must be words NAME=VALUE"),
        (["--header", "x-api-key=hidden"], "--header holds what looks like a secret in 'x-api-key'"),
        (["--query", "v=1", "--query", "v=2"], "--query has a name twice"),
        (["--key-command", "'a"], "--key-command has an open quote"),
        (["--key-command", "a", "--api-key-env", "A"], "--key-command gives the key that A holds too"),
        (["--header", "Authorization=$A", "--api-key-env", "A"], "--header have an 'authorization'"),
    ],
)
def test_what_cannot_be_added_is_said_by_its_option(program: Program, words: list[str], said: str) -> None:
    done = program.run("models", "add", "gw", "--base-url", "http://127.0.0.1:9", *words)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert not (program.folder / "workbench.toml").exists()


def test_the_question_says_what_is_sent_where(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    program.write("workbench.toml", MODEL.format(provider="openai", url="http://127.0.0.1:9/v1"))
    asked = program.run("run", "weather.toml", "--model", "gw")
    assert asked.returncode == 2
    line = next(line for line in asked.stderr.splitlines() if "ask the model" in line)
    assert line.strip() == (
        "ask the model test-model at http://127.0.0.1:9/v1 with the key in UPSTREAM and the header "
        "user-agent=mine x-gateway-key='id ${GATEWAY}' x-team='cost$$1' and the query api-version=2024-10-21 "
        "sig='$GATEWAY' team='a b'"
    )
