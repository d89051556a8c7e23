"""Schemas accepted without jsonschema are also valid for jsonschema."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator as Validator

from workbench.checks.schemas import is_plainly_valid
from workbench.config.folders import bundled
from workbench.suite.project import find_suites
from workbench.suite.suite_file import load_suite

_KEYWORDS = [
    *("type", "required", "title", "format", "deprecated", "uniqueItems", "enum", "examples", "const", "minimum"),
    *("exclusiveMaximum", "minLength", "maxItems", "multipleOf", "pattern", "$ref", "x-own", "dependentRequired"),
]
_WORDS = st.sampled_from(["string", "object", "null", "thing", ""])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-1, 1) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=2),
    max_leaves=4,
)


def _with_schemas(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    nested = inner | _VALUES
    return st.dictionaries(st.sampled_from(_KEYWORDS), _VALUES, max_size=3) | st.fixed_dictionaries(
        {},
        optional={
            "type": st.just("object") | st.lists(_WORDS, max_size=3),
            "required": st.lists(_WORDS, max_size=3),
            "properties": st.dictionaries(_WORDS, nested, max_size=2),
            "items": nested,
            "additionalProperties": nested,
            "anyOf": st.lists(nested, max_size=2),
            "$defs": st.dictionaries(_WORDS, nested, max_size=2),
        },
    )


@given(st.recursive(st.booleans() | st.just({}), _with_schemas, max_leaves=6))
def test_what_is_plainly_valid_is_valid(schema: object) -> None:
    if is_plainly_valid(schema):
        assert Validator(Validator.META_SCHEMA, format_checker=Validator.FORMAT_CHECKER).is_valid(schema)


def test_the_schemas_of_the_samples_are_plainly_valid() -> None:
    suites = [load_suite(file).suite for file in find_suites([bundled("sample_suites")])]
    schemas = [tool.parameters for suite in suites if suite is not None for tool in suite.tools]
    assert len(schemas) > 20
    assert all(map(is_plainly_valid, schemas))


def test_deep_schemas_are_left_to_jsonschema() -> None:
    schema: dict[str, object] = {"type": "string"}
    for _ in range(30):
        schema = {"type": "array", "items": schema}
    assert not is_plainly_valid(schema)
