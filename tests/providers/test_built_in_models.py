from __future__ import annotations

from pathlib import Path

from workbench.providers.built_in import OFFLINE, BuiltInModels, built_in_models, is_built_in


def test_the_offline_model_is_labelled_a_baseline() -> None:
    offline = built_in_models()[0]
    assert offline.name == OFFLINE == BuiltInModels().open(OFFLINE, Path(), "case").name
    assert "baseline, not a language model" in offline.description


def test_only_the_offline_model_and_recordings_are_built_in() -> None:
    assert is_built_in("offline")
    assert is_built_in("replay:run.jsonl")
    assert not is_built_in("openai:gpt-4o")
    assert not is_built_in("offline-2")
