"""The validators of schemas refuse what jsonschema's refuse, and always end."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from tests.tables import each_row
from workbench.checks.patterns import SearchError
from workbench.checks.schemas import BrokenSchemaError, argument_problems, dangling_references, dialect_of, validator_of

ENDLESS = "^(a|aa)+$"
LONG = "a" * 60 + "!"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


@each_row(
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


@each_row(
    ("number", "step", "fits"),
    [
        (19.99, 0.01, True),
        (0.3, 0.1, True),
        (19.995, 0.01, False),
        (1e300, 0.01, True),
        (10**400, 0.5, True),
        (5e-324, 0.1, False),
        (float("inf"), 0.1, False),
        (float("nan"), 2, False),
        (7, 3.5, True),
        (7.0, 2, False),
        (True, 2, True),
        ("0.015", 0.01, True),
    ],
)
def test_a_multiple_is_computed_in_decimal_digits(number: object, step: float, fits: bool) -> None:
    assert validator_of({"multipleOf": step}).is_valid(number) == fits


@each_row(
    ("pattern", "fits", "refused"),
    [
        (r"^\p{L}+$", "Zoë", "Zoë1"),
        (r"^[\p{L}\p{N}_]{2}$", "é1", "é-"),
        (r"^\P{Lu}$", "a", "A"),
        (r"^(?<year>[0-9]{4})$", "2026", "26"),
        (r"^\\p{2}$", r"\pp", "é"),
        ("^a$", "a", "a\n"),
        ("^a(?:$|b)", "ab", "a\n"),
        (r"^a[$\]]\$$", "a$$", "a$$\n"),
        ("(?m)^a$", "a\nb", "ab"),
        (r"^\d$", "3", "٣"),
        (r"^[\d-]$", "3", "٣"),
        (r"^[^\D]$", "3", "٣"),
        (r"^\D$", "٣", "3"),
        (r"^\\d$", r"\d", r"\3"),
    ],
)
def test_patterns_of_schemas_may_be_in_the_syntax_of_javascript(pattern: str, fits: str, refused: str) -> None:
    validator = validator_of({"pattern": pattern})
    assert validator.is_valid(fits)
    assert not validator.is_valid(refused)


@pytest.mark.parametrize("pattern", ["((a{1000}){1000}){1000}", r"(\p{L}{60000}){60000}"])
def test_a_pattern_that_would_take_all_memory_is_not_compiled(pattern: str) -> None:
    with pytest.raises(SearchError, match="more than 100,000 times"):
        validator_of({"pattern": pattern}).is_valid("a")


@pytest.mark.parametrize("pattern", ["[", "[" * 50_000, "(", r"\p{Nothing}", "a{2}{3}{4}("])
def test_a_pattern_that_is_none_breaks_its_schema(pattern: str) -> None:
    with pytest.raises(SchemaError):
        validator_of({"pattern": pattern})


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": ENDLESS}}},
        {"patternProperties": {ENDLESS: True}},
        {"patternProperties": {ENDLESS: True}, "additionalProperties": False},
        {"unevaluatedProperties": False, "allOf": [{"patternProperties": {ENDLESS: True}}]},
        # For a part that names a dialect, jsonschema creates a validator of its own class.
        {"properties": {"a": {"$schema": DRAFT_7, "pattern": ENDLESS}}},
        {"$schema": DRAFT_7, "pattern": ENDLESS, "additionalProperties": {"$ref": "#"}},
    ],
)
def test_a_search_that_takes_too_long_is_ended(schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.checks.patterns.SEARCH_LIMIT_S", 0.03)
    with pytest.raises(SearchError):
        list(validator_of(schema).iter_errors({"a": LONG, LONG: 1}))


@each_row(
    ("named", "draft"),
    [
        ("http://json-schema.org/draft-04/schema#", "draft-04"),
        ("http://json-schema.org/draft-06/schema", "draft-06"),
        ("https://json-schema.org/draft-07/schema#", "draft-07"),
        ("http://json-schema.org/draft/2019-09/schema", "2019-09"),
        ("https://json-schema.org/draft/2020-12/schema", "2020-12"),
        ("https://example.test/own", "2020-12"),
        ("", "2020-12"),
        (7, "2020-12"),
        (None, "2020-12"),
    ],
)
def test_a_dialect_is_known_by_its_name_in_either_scheme(named: object, draft: str) -> None:
    meta = dialect_of({} if named is None else {"$schema": named}).META_SCHEMA
    assert draft in str(meta.get("$id") or meta["id"])


@pytest.mark.parametrize(
    ("schema", "fits", "refused"),
    [
        ({"$schema": "http://json-schema.org/draft-04/schema#",
          "properties": {"n": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}}}, {"n": 1}, {"n": 0}),
        ({"$schema": "http://json-schema.org/draft-06/schema#", "definitions": {"P": {"const": "low"}},
          "properties": {"p": {"$ref": "#/definitions/P"}}}, {"p": "low"}, {"p": "high"}),
        ({"$schema": DRAFT_7, "properties": {"t": {"items": [{"type": "string"}, {"type": "integer"}]}}},
         {"t": ["a", 1]}, {"t": ["a", "b"]}),
        ({"$schema": "https://json-schema.org/draft/2019-09/schema",
          "properties": {"t": {"items": [{"type": "string"}], "additionalItems": False}}}, {"t": ["a"]}, {"t": [1]}),
    ],
)  # fmt: skip
def test_arguments_are_checked_in_the_declared_dialect(
    schema: dict[str, Any], fits: dict[str, Any], refused: dict[str, Any]
) -> None:
    assert argument_problems(fits, schema) == ()
    assert len(argument_problems(refused, schema)) == 1
    assert dangling_references(schema) == ()


GONE = {"$ref": "#/$defs/Gone"}


@each_row(
    ("schema", "found"),
    [
        pytest.param({"properties": {"s": GONE}}, ["schema.properties.s"], id="a property"),
        pytest.param({"$defs": {"A": {"items": GONE}}}, ["schema.$defs.A.items"], id="a definition that nothing uses"),
        pytest.param({"properties": {"a": GONE, "b": GONE}}, ["schema.properties.a"], id="each reference once"),
        pytest.param({"allOf": [{"not": {"anyOf": [{}, GONE]}}]}, ["schema.allOf[0].not.anyOf[1]"], id="nested"),
        pytest.param({"$ref": "https://elsewhere.test/schema"}, ["schema"], id="another document"),
        pytest.param({"$ref": "#anchor"}, ["schema"], id="an anchor"),
        pytest.param({"$ref": "#/type/0", "type": ["object"]}, ["schema"], id="not a schema"),
        pytest.param({"$ref": "#/properties/x/type/y", "properties": {"x": {"type": "string"}}}, ["schema"], id="text"),
        pytest.param(
            {"properties": {"a": {"$ref": "#/components/A"}}, "components": {"A": {"items": GONE}}},
            ["schema.components.A.items"],
            id="below a keyword of another format",
        ),
        pytest.param({"properties": {"a": {"const": GONE}, "$ref": {"type": "string"}}}, [], id="not a reference"),
        pytest.param({"properties": {"a": {"$ref": "#"}}}, [], id="the root"),
        pytest.param({"properties": {"a": {"$ref": "#/$defs/a~1b%20c"}}, "$defs": {"a/b c": {}}}, [], id="escapes"),
        pytest.param({"$ref": "#here", "$defs": {"a": {"$anchor": "here"}}}, [], id="a known anchor"),
        pytest.param({"$ref": "item", "$id": "https://a.test/", "$defs": {"a": {"$id": "item"}}}, [], id="a known id"),
        pytest.param({"properties": {"schema": {"$ref": DRAFT_7}}}, [], id="the schema of a dialect"),
    ],
)
def test_references_that_lead_nowhere_are_found_at_any_depth(schema: dict[str, Any], found: list[str]) -> None:
    assert [str(each).partition(" refers to ")[0] for each in dangling_references(schema)] == found


def test_arguments_at_a_reference_to_something_else_than_a_schema_are_a_broken_schema() -> None:
    schema: Any = {"properties": {"a": {"$ref": "#/properties/b/type"}, "b": {"type": "string"}}}
    with pytest.raises(BrokenSchemaError, match=r"schema.properties.a refers to '#/properties/b/type', which"):
        argument_problems({"a": 1}, schema)
