"""A real model on a real server, both from the registries, and the explanations of its failed runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import COMMAND, Program
from tests.real_model.served_model import MODEL, served, why_not
from tests.real_model.suite import SUITE

pytestmark = [pytest.mark.slow, pytest.mark.skipif(why_not() is not None, reason=why_not() or "")]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.fixture(scope="module", params=[True, False], ids=["tools arrive", "tools are dropped"])
def endpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, bool]]:
    with_tools: bool = request.param
    with served(tmp_path_factory.mktemp("served"), with_tools=with_tools) as url:
        yield url, with_tools


def said_by(program: Program, *words: str) -> tuple[str, str]:
    """Return the output of the program. With a real model, this takes longer than anything else here."""
    command = [*COMMAND, *words]
    environment, folder = program.environment, program.folder
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    return done.stdout, done.stderr


def run(program: Program, url: str, *words: str) -> tuple[str, str, dict[str, Any]]:
    program.write("small.toml", SUITE)
    model = ["--model", f"openai:{MODEL}@{url}", "--param", "temperature=0", "--param", "max_tokens=64"]
    text, errors = said_by(program, "run", "small.toml", *model, "--report", "r.json", *words)
    return text, errors, json.loads((program.folder / "r.json").read_text(encoding="utf-8"))


def test_failing_runs_are_explained_and_waiting_is_no_latency(program: Program, endpoint: tuple[str, bool]) -> None:
    url, with_tools = endpoint
    text, errors, report = run(program, url)
    assert f"{url} has 1 slot, so no more requests are sent to it at a time" in errors
    runs = report["runs"]
    assert len(runs) == 4
    assert all(run["status"] in ("passed", "failed") for run in runs), text
    prompts = [round_["usage"]["input_tokens"] for run in runs for round_ in run["rounds"]]
    causes = {each["cause"]: each for each in report["failures"]["causes"]}
    if with_tools:
        assert "endpoint" not in causes
        assert min(prompts) > 200
        assert "endpoint fault" not in text
    else:
        assert max(prompts) < 77
        assert set(causes) == {"endpoint"}
        assert "4 of 4 failures are the endpoint's" in text
        assert text.count("the prompt is smaller than the tools that were sent") == 4
        assert causes["endpoint"]["advice"].startswith("use a chat template that writes the tools into the prompt")
    # There is one slot, so with four concurrent requests each latency would include the waits for the others.
    spent_ms = sum(round_["latency_ms"] for run in runs for round_ in run["rounds"])
    assert spent_ms <= report["timing"]["took_ms"]


def test_the_check_says_how_it_handles_tools(program: Program, endpoint: tuple[str, bool]) -> None:
    url, with_tools = endpoint
    words = ["--model", MODEL, "--base-url", url, "--param", "temperature=0", "--param", "max_tokens=48"]
    text, _ = said_by(program, "models", "--check", "--tools", *words, "--format", "json")
    (model,) = json.loads(text)["models"]
    found = {each["probe"]: each for each in model["tools"]}
    assert found["usage while streaming"]["state"] == "works"
    if not with_tools:
        assert found["one call"]["state"] == "wrong"
        assert found["one call"]["finding"].startswith("the prompt is smaller than the tools that were sent")
