"""Reachable endpoints are found without a request. Their models are requested only with a key or on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.providers.server import document, error_document, models_document, page, serve
from workbench.config.folders import Folders
from workbench.config.models import PRESETS, Preset
from workbench.config.program import Program, create_program
from workbench.evaluation.model_list import known_endpoints, runnable_model_names, with_all_models

KEY = "planted-key-4711"


def program_with(tmp_path: Path, **variables: str) -> Program:
    state = tmp_path / "state"
    return create_program(Folders(state, state / "log", state / "config", state / "data"), variables)


async def test_local_servers_and_endpoints_with_a_key_are_asked_and_no_others(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"LOCAL_KEY={KEY}\n")
    with serve(models=document(models_document("llama3.1:8b", "qwen"))) as server:
        presets = (
            Preset("a", "Open", f"{server.url}/v1"),
            Preset("b", "Keyed", f"{server.url}/v1", "LOCAL_KEY"),
            Preset("c", "Keyless", f"{server.url}/v1", "NOT_SET"),
        )
        known, problems = known_endpoints(program_with(tmp_path), [tmp_path], presets)
        assert server.listings == []
        assert [endpoint.key_is_found for endpoint in known] == [True, True, False]
        found, keyed, keyless = await with_all_models(known, program_with(tmp_path))
        assert sorted(request.headers.get("authorization", "") for request in server.listings) == ["", f"Bearer {KEY}"]
    assert problems == []
    assert found.state == f"answers at 127.0.0.1:{server.port}, lists 2 models"
    assert list(runnable_model_names(found)) == [
        ("llama3.1:8b", f"openai:llama3.1:8b@{server.url}/v1"),
        ("qwen", f"openai:qwen@{server.url}/v1"),
    ]
    assert list(runnable_model_names(keyed)) == [("llama3.1:8b", None), ("qwen", None)]
    assert keyless.models is None
    assert (await with_all_models([found], program_with(tmp_path)))[0].state == f"nothing answers at {presets[0].place}"


@pytest.mark.parametrize(
    ("listing", "said"),
    [
        (page("<title>Dev server</title>"), "answers, but not as a model API does"),
        (document({"data": 3}), "answers, but not as a model API does"),
        (document(error_document("openai", f"no such key {KEY}"), 401), "does not accept the key in LOCAL_KEY"),
        (document({}, 404), "404"),
    ],
)
async def test_what_is_no_model_api_is_told_and_not_listed(tmp_path: Path, listing: object, said: str) -> None:
    with serve(models=listing) as server:  # type: ignore[arg-type]
        program = program_with(tmp_path, LOCAL_KEY=KEY)
        known, _ = known_endpoints(program, [tmp_path], [Preset("a", "Some", f"{server.url}/v1", "LOCAL_KEY")])
        (endpoint,) = await with_all_models(known, program)
    assert endpoint.models is None
    assert not endpoint.is_reachable
    assert said in endpoint.problem
    assert KEY not in endpoint.problem


def test_a_file_of_variables_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"\0")
    known, problems = known_endpoints(program_with(tmp_path, OPENAI_API_KEY=KEY), [tmp_path], PRESETS)
    assert ".env is not text with NAME=value lines" in problems[0]
    assert [endpoint.preset.name for endpoint in known if endpoint.is_reachable] == ["openai"]


def test_the_vendors_models_run_by_their_names_and_others_need_one() -> None:
    names = {preset.name: preset.model_name("m") for preset in PRESETS}
    assert (names["openai"], names["anthropic"], names["openrouter"]) == ("openai:m", "anthropic:m", None)
    assert names["ollama"] == "openai:m@http://localhost:11434/v1"
    assert {preset.name for preset in PRESETS if preset.is_local} == {"ollama", "lm-studio", "vllm"}
