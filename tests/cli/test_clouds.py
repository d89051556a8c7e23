"""Cloud models on the command line: listing, approval and runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.providers.clouds.asking import AWS_KEYS
from tests.providers.clouds.frames import frames_of, streamed
from tests.providers.clouds.signatures import is_signed
from tests.providers.server import Answer, Call, Request, Server, document, said

OFF = {"AWS_EC2_METADATA_DISABLED": "true", "NO_GCE_CHECK": "true", "AWS_CONFIG_FILE": "none"}
SECRETS = (AWS_KEYS["AWS_SECRET_ACCESS_KEY"], AWS_KEYS["AWS_SESSION_TOKEN"])


def weather(request: Request) -> Answer:
    """Call the tool, and answer once its result is there."""
    if request.method == "GET":
        return document({"message": "Missing Authentication Token"}, 403)
    if b"tool_result" in request.body:
        return streamed(*frames_of("Rain in Oslo."))
    return streamed(*frames_of("", [Call("get_weather", {"city": "Oslo"})]))


@pytest.mark.slow
def test_a_run_on_signed_requests_and_binary_streams_keeps_every_secret(program: Program) -> None:
    program = Program(program.folder, {**OFF, **AWS_KEYS, "TEAM": "planted-team-0123456789"})
    program.write("weather.toml", WEATHER)
    with Server(weather) as server:
        program.write(
            "workbench.toml",
            '[models.claude]\nprovider = "bedrock"\nmodel = "us.claude"\nregion = "us-east-1"\n'
            f'base_url = "{server.url}"\n'
            'credentials = "default"\nheaders = { "x-team" = "$TEAM" }\nquery = { "a b" = "c+d/e" }\n',
        )
        words = ("run", "weather.toml", "--model", "claude", "--trust", "--record", "recorded", "--report", "r.html")
        done = program.run(*words, "--format", "json", "--output", "report.json")
        checked = program.run("models", "--check", "--trust")
    assert checked.returncode == 0, checked.stdout
    assert f"✓ {server.url} answers, and credentials were found: the first run shows whether us." in checked.stdout
    assert "bedrock: us.claude" in checked.stdout
    asked = [request for request in server.requests if request.method == "POST"]
    assert len(asked) >= 2, done.stderr
    for request in asked:
        assert is_signed(request, AWS_KEYS["AWS_SECRET_ACCESS_KEY"], "us-east-1", "bedrock")
        assert request.headers["x-team"] == "planted-team-0123456789"
        assert parse_qs(urlsplit(request.path).query) == {"a b": ["c+d/e"]}
    (run,) = json.loads((program.folder / "report.json").read_text())["runs"]
    assert run["status"] == "passed", run
    texts = [done.stdout, done.stderr, checked.stdout]
    texts += [file.read_bytes().decode("utf-8", "replace") for file in program.folder.rglob("*") if file.is_file()]
    assert not [text for text in texts if any(secret in text for secret in SECRETS)]


@pytest.mark.slow
def test_a_printed_key_is_a_token_for_a_cloud_and_renewed_when_it_is_refused(program: Program) -> None:
    printer = program.folder / "token.py"
    printer.write_text(
        "import pathlib\nruns = pathlib.Path('runs')\ncount = len(runs.read_text()) if runs.exists() else 0\n"
        "runs.write_text('.' * (count + 1))\nprint(f'planted-printed-token-{count}')\n"
    )
    program.write("weather.toml", WEATHER)

    def answer(request: Request) -> Answer:
        if request.headers["authorization"] == "Bearer planted-printed-token-0":
            return document([{"error": {"message": "Request had invalid authentication credentials."}}], 401)
        return said("anthropic", "Rain in Oslo.")

    with Server(answer) as server:
        command = json.dumps([sys.executable, str(printer)])
        program.write(
            "workbench.toml",
            f'[models.v]\nprovider = "vertex"\nmodel = "claude"\nproject = "p-1"\nbase_url = "{server.url}"\n'
            f"key_command = {command}\n",
        )
        program.run("run", "weather.toml", "--model", "v", "--trust", "--output", "report.json", "--format", "json")
    assert [request.headers["authorization"][-1] for request in server.requests[:2]] == ["0", "1"]
    assert json.loads((program.folder / "report.json").read_text())["runs"][0]["status"] == "failed"


@pytest.mark.parametrize(
    ("model", "variables", "said"),
    [
        (
            "bedrock:us.claude",
            {"AWS_REGION": "us-east-1", "AWS_PROFILE": "work"},
            "ask the model us.claude at https://bedrock-runtime.us-east-1.amazonaws.com with AWS profile work, whose"
            " credential_process may be started",
        ),
        (
            "vertex:google/gemini",
            {},
            "ask the model google/gemini at https://aiplatform.googleapis.com/v1 with the Google default credentials,"
            " for which gcloud may be started",
        ),
        (
            "azure:my-gpt",
            {"AZURE_OPENAI_ENDPOINT": "https://contoso.openai.azure.com/"},
            "ask the model my-gpt at https://contoso.openai.azure.com/openai/v1 with Entra ID, for which the program az"
            " may be started",
        ),
        (
            "azure:my-gpt",
            {"AZURE_OPENAI_ENDPOINT": "https://contoso.openai.azure.com/", "AZURE_OPENAI_API_KEY": "planted-key-0123"},
            "ask the model my-gpt at https://contoso.openai.azure.com/openai/v1 with the key in AZURE_OPENAI_API_KEY",
        ),
    ],
)
def test_approval_names_address_credentials_and_programs(
    program: Program, model: str, variables: dict[str, str], said: str
) -> None:
    program = Program(program.folder, {**OFF, **variables})
    program.write("weather.toml", WEATHER.replace("format = 1", f'format = 1\nmodels = ["{model}"]', 1))
    done = program.run("run", "weather.toml")
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert "planted" not in done.stderr
    listed = json.loads(program.run("models", "--format", "json").stdout)["models"][0]
    assert listed["cloud"]["problem"] is None
    assert (listed["cloud"]["source"] or "the key") in said


def test_a_name_without_region_says_what_to_set_and_the_list_shows_it(program: Program) -> None:
    program = Program(program.folder, OFF)
    program.write("weather.toml", WEATHER)
    done = program.run("run", "weather.toml", "--model", "bedrock:us.claude")
    assert done.returncode == 2
    assert 'the model bedrock:us.claude has no region: write region = "us-east-1" into workbench.toml' in done.stderr
    program.write("workbench.toml", '[models.b]\nprovider = "bedrock"\n\n[models.other]\nprovider = "openai"\n')
    listed = program.run("models")
    assert "b  bedrock: b, which has no region: write region" in listed.stdout
    assert "other  openai: other at https://api.openai.com/v1" in listed.stdout


def test_a_model_is_added_with_the_settings_of_its_cloud(program: Program, tmp_path: Path) -> None:
    program = Program(program.folder, OFF)
    program.write("weather.toml", WEATHER)
    words = ("models", "add", "c", "--provider", "bedrock", "--no-check", "--to", "project")
    refused = program.run(*words, "--region", "evil.example/#", "--resource", "x")
    assert refused.returncode == 2
    assert "--region must be a region of AWS" in refused.stderr
    assert "--resource is for provider 'azure' only" in refused.stderr
    done = program.run(*words, "--model", "us.claude", "--region", "us-east-1", "--profile", "work")
    assert done.returncode == 0, done.stderr
    written = (program.folder / "workbench.toml").read_text()
    assert written == '[models.c]\nprovider = "bedrock"\nregion = "us-east-1"\nprofile = "work"\nmodel = "us.claude"\n'
