from __future__ import annotations

import pytest

from workbench.providers.model import ModelError
from workbench.providers.registry import known_models, open_model


def test_every_known_model_opens_under_its_name() -> None:
    assert [open_model(info.name).name for info in known_models()] == [info.name for info in known_models()]


def test_the_offline_model_is_labelled_a_baseline() -> None:
    (offline,) = known_models()
    assert offline.name == "offline"
    assert "baseline, no language model" in offline.description


def test_an_unknown_model_is_refused_with_the_way_out() -> None:
    with pytest.raises(ModelError, match=r"no model 'openai:gpt-4o'.*'offline'.*choose it instead"):
        open_model("openai:gpt-4o")
