"""Validators of schemas refuse what jsonschema's refuse, and end."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from workbench.checks.patterns import SearchError
from workbench.checks.schemas import validator_of

ENDLESS = "^(a|aa)+$"
LONG = "a" * 60 + "!"


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "^x"}}},
        {"patternProperties": {"^a": {"type": "integer"}}},
        {"patternProperties": {"^a": {"type": "string"}}, "additionalProperties": False},
        {"properties": {"b": True}, "patternProperties": {"^z": True}, "additionalProperties": {"type": "string"}},
        {"properties": {"a": True}, "additionalProperties": False},
        {"properties": {"a": True}, "unevaluatedProperties": False},
    ],
)
def test_what_is_refused_is_what_jsonschema_refuses(schema: dict[str, Any]) -> None:
    for value in ({}, {"a": "y"}, {"a": "x", "b": 1}, {"b": "x", "c": 2}, "a", None):
        ours, theirs = (
            {(*error.absolute_path, error.validator) for error in validator.iter_errors(value)}
            for validator in (validator_of(schema), Draft202012Validator(schema))
        )
        assert ours == theirs


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": ENDLESS}}},
        {"patternProperties": {ENDLESS: True}},
        {"patternProperties": {ENDLESS: True}, "additionalProperties": False},
        {"unevaluatedProperties": False, "allOf": [{"patternProperties": {ENDLESS: True}}]},
    ],
)
def test_a_search_that_takes_too_long_is_ended(schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.checks.patterns.SEARCH_LIMIT_S", 0.03)
    with pytest.raises(SearchError):
        list(validator_of(schema).iter_errors({"a": LONG, LONG: 1}))
