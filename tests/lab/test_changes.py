"""What the lab changes of tools and of their results."""

from __future__ import annotations

import pytest

from workbench.lab.faults import apply_fault
from workbench.lab.mutation import mutants_of
from workbench.trajectory.events import ToolDefinition


@pytest.mark.parametrize("content", ["", "x", '{"a": 1}', "多" * 10])
def test_a_cut_result_is_shorter_and_never_empty(content: str) -> None:
    assert 0 < len(apply_fault("cut", content).content) < max(len(content), 60)


def test_what_a_definition_lacks_is_not_dropped_and_properties_may_be_called_like_keywords() -> None:
    plain = ToolDefinition("t", "", {"type": "object", "properties": {}})
    assert {each.kind for each in mutants_of([plain])} == {"decoys"}
    named = ToolDefinition(
        "t", "", {"type": "object", "properties": {"enum": {"type": "string"}, "description": {"type": "string"}}}
    )
    assert [each.kind for each in mutants_of([named])] == ["parameter renamed"] * 2 + ["decoys"] * 4
