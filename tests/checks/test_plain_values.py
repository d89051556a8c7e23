"""Values accepted without jsonschema are also accepted by jsonschema, and common arguments need no jsonschema."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.checks.schemas import plainly_accepts, validator_of

_NAMES = st.sampled_from(["a", "b", "red"])
_SCALARS = st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from([0.0, 1.0, 1.5, float("inf")]) | _NAMES
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3), max_leaves=5
)
_TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
_COUNTS, _BOUNDS = st.integers(0, 3), st.sampled_from([-1, 0, 1, 1.5])


def _schemas(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    schemas = st.lists(inner, min_size=1, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": _TYPES | st.lists(_TYPES, min_size=1, max_size=2, unique=True),
            "enum": st.lists(_VALUES, max_size=3),
            "const": _VALUES,
            "properties": st.dictionaries(_NAMES, inner, max_size=3),
            "required": st.lists(_NAMES, max_size=2, unique=True),
            "additionalProperties": inner,
            "items": inner,
            "anyOf": schemas,
            "allOf": schemas,
            "oneOf": schemas,
            "not": inner,
            "minimum": _BOUNDS,
            "exclusiveMaximum": _BOUNDS,
            "minLength": _COUNTS,
            "maxItems": _COUNTS,
            "uniqueItems": st.booleans(),
            "pattern": st.just("^r"),
        },
    )


@given(st.recursive(st.booleans() | st.just({}), _schemas, max_leaves=6).filter(lambda s: isinstance(s, dict)), _VALUES)
def test_what_is_plainly_accepted_is_accepted(schema: dict[str, object], value: object) -> None:
    if plainly_accepts(schema, value):
        assert validator_of(schema).is_valid(value)


SCHEMA: dict[str, object] = {
    "type": "object",
    "required": ["to"],
    "additionalProperties": False,
    "properties": {
        "to": {"type": "array", "items": {"type": "string", "format": "email"}, "minItems": 1},
        "kind": {"type": "string", "enum": ["mail", "note"], "default": "mail"},
        "days": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "title": "Days"},
    },
}


@each_row(
    ("value", "accepted"),
    [
        ({"to": ["Ann"]}, True),
        ({"to": ["Ann"], "kind": "note", "days": None}, True),
        ({"to": ["Ann"], "days": 2.0}, True),
        ({"to": []}, False),
        ({"to": ["Ann"], "kind": "letter"}, False),
        ({"to": ["Ann"], "days": True}, False),
        ({"to": ["Ann"], "more": 1}, False),
        ({}, False),
    ],
)
def test_usual_arguments_need_no_jsonschema(value: object, accepted: bool) -> None:
    assert plainly_accepts(SCHEMA, value) == accepted
    assert not plainly_accepts({**SCHEMA, "type": "thing"}, value)
