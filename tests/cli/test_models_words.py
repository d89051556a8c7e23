"""`workbench models add`, `list` and `check`."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.cli.program import Program
from tests.providers.server import Answer, Request, Server, document, said, serve

KEY = "planted-key-4711"
SUITE = """
format = 1
name = "Bare"
[[cases]]
name = "Talk"
user = "Say rain."
response_contains = ["rain"]
"""


def _rain(request: Request) -> Answer:
    return said("openai", text="It will rain.") if request.method == "POST" else document({}, 404)


def test_a_model_is_added_checked_and_run(program: Program) -> None:
    program.write("suite.toml", SUITE)
    program.write("workbench.toml", "# mine\n")
    program.write(".env", f"LOCAL_KEY={KEY}\n")
    with Server(_rain) as server:
        words = ["models", "add", "local", "--base-url", f"{server.url}/v1", "--api-key-env", "LOCAL_KEY"]
        absent = program.run(*words)
        assert absent.returncode == 3
        assert "has no model 'local': it lists test-model" in absent.stdout
        assert "local was not written into" in absent.stderr
        assert (program.folder / "workbench.toml").read_text() == "# mine\n"
        done = program.run(*words, "--model", "test-model", "--price", "1,2")
        assert done.returncode == 0, done.stderr
        assert "run on it with --model local" in done.stdout
        assert (program.folder / "workbench.toml").read_text().startswith("# mine\n\n[models.local]\n")
        checked = program.run("models", "check", "--trust")
        assert checked.returncode == 0, checked.stderr
        assert f"✓ {server.url}/v1 answers and has test-model" in checked.stdout
        ran = program.run("run", "suite.toml", "--model", "local", "--trust")
        assert ran.returncode == 0, ran.stderr
        assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in done.stdout + done.stderr + (program.folder / "workbench.toml").read_text()
    taken = program.run(*words, "--no-check", "--to", "user")
    assert taken.returncode == 2
    assert "already names a model 'local'" in taken.stderr
    dearer = program.run("models", "add", "local", "--replace", "--price", "3,4", "--no-check")
    assert dearer.returncode == 0, dearer.stderr
    assert "local is changed in" in dearer.stdout
    settings = (program.folder / "workbench.toml").read_text()
    assert "3.0" in settings and 'model = "test-model"' in settings and settings.startswith("# mine\n")
    for words in (["absent", "--replace"], ["local", "--replace", "--to", "user"]):
        assert program.run("models", "add", *words, "--no-check").returncode == 2


def test_what_is_wrong_is_told_by_option(program: Program) -> None:
    done = program.run(
        "models", "add", "a:b", "--base-url", "localhost:1", "--api-key-env", "sk-hidden", "--price", "1"
    )
    assert done.returncode == 2
    told = [line.split()[0] for line in done.stderr.splitlines()]
    assert told == ["--base-url", "--api-key-env", "NAME", "--price"]
    assert "sk-hidden" not in done.stderr
    assert program.run("models", "add", "x", "nowhere").returncode == 2
    preset = program.run("models", "add", "x", "--preset", "nowhere")
    assert "invalid choice: 'nowhere'" in preset.stderr


def test_a_preset_gives_address_and_key_but_its_key_goes_nowhere_else(program: Program) -> None:
    for name, words in {"router": [], "mine": ["--base-url", "http://localhost:9/v1"]}.items():
        preset = ["--preset", "openrouter", "--model", "m"]
        done = program.run("models", "add", name, *preset, *words, "--no-check", "--to", "project")
        assert done.returncode == 0, done.stderr
    listed = {each["name"]: each for each in json.loads(program.run("models", "--format", "json").stdout)["models"]}
    assert listed["router"]["base_url"] == "https://openrouter.ai/api/v1"
    assert (listed["router"]["api_key_env"], listed["mine"]["api_key_env"]) == ("OPENROUTER_API_KEY", None)


def test_what_can_be_reached_is_listed(program: Program) -> None:
    program = replace(program, variables={"NEAR_KEY": KEY})
    with serve() as server:
        presets = f"""
import workbench.config.models as presets
P = presets.Preset
presets.PRESETS = (P("near", "Near", "{server.url}/v1"), P("far", "Far", "https://far.test/v1", "FAR_KEY"),
    P("keyed", "Keyed", "{server.url}/v1", "NEAR_KEY"))
"""
        listed = program.run("models", "list", first=presets)
        document = json.loads(program.run("models", "list", "--format", "json", first=presets).stdout)
    assert listed.returncode == 0, listed.stderr
    place = f"127.0.0.1:{server.port}"
    assert f"Near  answers at {place}, lists 1 model\n  openai:test-model@{server.url}/v1\n" in listed.stdout
    assert "Far  no key: FAR_KEY is not set" in listed.stdout
    assert "to run one: workbench models add NAME --preset keyed --model MODEL" in listed.stdout
    near, far, keyed = document["endpoints"]
    assert near["models"] == [{"model": "test-model", "name": f"openai:test-model@{server.url}/v1"}]
    assert (far["key_is_found"], far["reachable"], keyed["key_is_found"]) == (False, False, True)
    assert KEY not in listed.stdout + json.dumps(document)
    assert program.run("models", "list", "nowhere").returncode == 2
