"""From a model back to handwritten TOML: without defaults, with short checks, and equal when loaded again."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.strategies import checks, is_finite, json_objects
from tests.suite.examples import CASE, HEAD, WHOLE, suite_of
from tests.tables import each_row
from workbench.checks.check import Check
from workbench.checks.value_kinds import Equals, Near
from workbench.suite.expected_calls import ExpectedCall
from workbench.suite.model import Case, Suite
from workbench.suite.render import suite_text, to_toml_data
from workbench.suite.toml_equality import toml_equal

SAMPLES = sorted((Path(__file__).parents[2] / "sample_suites").glob("*.toml"))

WEIGHTS = st.none() | st.sampled_from(["low", "critical"]) | st.floats(0, 9)


def holds_null(value: object) -> bool:
    if isinstance(value, dict | list | tuple):
        return any(map(holds_null, value.values() if isinstance(value, dict) else value))
    return value is None


def can_be_written(check: Check) -> bool:
    """Return whether a file can hold the check: it has no null, and no NaN, which equals nothing."""
    written = check.model_dump(include={check.kind}, exclude_none=check.kind not in ("equals", "equals_text"))
    inside = all(map(can_be_written, check.parts))
    return inside and (bool(check.parts) or not holds_null(written)) and "nan" not in repr(written)


@each_row("text", [WHOLE, *(path.read_text(encoding="utf-8") for path in SAMPLES)])
def test_a_suite_is_written_as_it_was_but_for_the_ids(text: str) -> None:
    suite = suite_of(text)
    data = to_toml_data(suite)
    assert suite_of(suite_text(data)) == suite
    written = tomllib.loads(text)
    for case, model in zip(written["cases"], suite.cases, strict=True):
        case["id"] = model.id
    for tool, model_of_tool in zip(written.get("tools", []), suite.tools, strict=True):
        if isinstance(tool.get("parameters"), str):
            tool["parameters"] = to_toml_data(model_of_tool)["parameters"]
    assert data == written


@settings(max_examples=examples(100))
@given(st.dictionaries(st.text(max_size=5), checks(weights=WEIGHTS).filter(can_be_written), max_size=3))
def test_checks_of_any_kind_come_back_equal_from_the_file(args: dict[str, Check]) -> None:
    case = Case(id="a", name="A", user="x", ordered=(ExpectedCall(tool="t", args=args),))
    text = suite_text({"format": 1, "name": "S", "cases": [to_toml_data(case)]})
    again = Suite.model_validate(tomllib.loads(text))
    assert again.cases[0] == case
    assert toml_equal(to_toml_data(again)["cases"], [to_toml_data(case)])


@settings(max_examples=examples(100))
@given(json_objects.filter(is_finite))
def test_values_that_hold_null_are_refused_and_all_others_are_kept(result: dict[str, Any]) -> None:
    case = Case.model_validate({"name": "A", "user": "x", "mocks": [{"tool": "t", "result": result}]})
    if holds_null(result):
        with pytest.raises(ValueError, match="TOML has no null"):
            to_toml_data(case)
        return
    assert toml_equal(
        to_toml_data(case), {"id": "a", "name": "A", "user": "x", "mocks": [{"tool": "t", "result": result}]}
    )


def test_a_schema_with_null_in_it_is_json_text() -> None:
    schema = '{"type": "object", "properties": {"a": {"enum": [null, "é"]}}}'
    suite = suite_of(f"{HEAD}[[tools]]\nname = 't'\nparameters = '{schema}'\n{CASE}")
    assert to_toml_data(suite)["tools"] == [{"name": "t", "parameters": schema}]


def test_a_check_opens_with_its_name_and_a_plain_value_stays_plain() -> None:
    near = list(to_toml_data(Near(weight=2.0, near=5.0, tolerance=0.5)).items())
    assert near == [("near", 5), ("weight", 2), ("tolerance", 0.5)]
    call = ExpectedCall(tool="t", args={"a": Equals(equals=5.0, plain=True), "b": Equals(equals={}, cast=False)})
    assert toml_equal(to_toml_data(call), {"tool": "t", "args": {"a": 5.0, "b": {"equals": {}, "cast": False}}})
