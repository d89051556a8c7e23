"""Findings of validate and run on expectations that can never hold, tables that name no check, and empty cases."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.analysis.audit.contradictions import ToolTable, contradiction_findings
from workbench.suite.model import Suite
from workbench.suite.problems import Finding, place_text
from workbench.trajectory.events import ToolDefinition

BOOK = {
    "name": "book",
    "parameters": {
        "type": "object",
        "required": ["city"],
        "properties": {
            "city": {"type": "string"},
            "nights": {"type": "integer", "minimum": 1},
            "price": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 100},
            "room": {"type": "object", "properties": {"kind": {"type": "string"}, "of": {"type": "object"}, "x": {}}},
            "anything": {},
            "object": {"type": "object"},
            "either": {"anyOf": [{"type": "null"}, {"type": "object"}]},
            "neither": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/day"}]},
        },
        "$defs": {"day": {"enum": ["Monday", "Tuesday"]}},
    },
}


def told(args: dict[str, Any], tool: str = "book", **more: Any) -> list[Finding]:
    case = {"name": "c", "user": "Book", "ordered": [{"tool": tool, "args": args}], **more}
    free = {"name": "free", "parameters": {"type": "object"}}
    suite = Suite.model_validate({"format": 1, "name": "s", "tools": [BOOK, free], "cases": [case]})
    return list(contradiction_findings(suite, ToolTable.of(suite, {})))


@pytest.mark.parametrize(
    ("args", "severity", "where", "words"),
    [
        ({"nights": {"numeric": 12, "tolerance": "5%"}}, "error", "nights", "did you mean `near = 12`?"),
        ({"city": {"only_fields": {"a": 1}}}, "error", "city", '`has_fields = {"a": 1}, only_fields = true`?'),
        ({"city": {"contain": "Os"}}, "error", "city", 'did you mean `contains = "Os"`?'),
        ({"city": {"regexp": "^O"}}, "error", "city", "`pattern ="),
        ({"city": {"oneOf": ["a"]}}, "error", "city", "`one_of ="),
        ({"city": {}}, "error", "city", "names no check"),
        ({"neither": {"day": 1}}, "error", "neither", "names no check"),
        ({"city": {"any_of": [{"startswith": "O"}, "x"]}}, "error", "city.any_of[0]", "`prefix ="),
        ({"town": "Oslo"}, "warning", "town", 'no parameter "town"'),
        ({"nights": 0}, "warning", "nights", "refuses it"),
        ({"nights": "two"}, "warning", "nights", "refuses it"),
        ({"nights": {"any_of": [2, 0]}}, "warning", "nights.any_of[1]", "refuses it"),
        ({"nights": {"any_of": [2, {"one_of": [3, 0]}]}}, "warning", "nights.any_of[1]", "refuses it"),
        ({"nights": {"all_of": [{"equals": 0}]}}, "warning", "nights.all_of[0]", "refuses it"),
        ({"nights": {"range": [-5, 0]}}, "warning", "nights", "never holds"),
        ({"price": {"range": [-5, 0]}}, "warning", "price", "never holds"),
        ({"price": {"near": 110, "tolerance": 10}}, "warning", "price", "only numbers below 100"),
        ({"room": {"kind": {"contains": "double"}}}, "warning", "room.kind", "is compared as a field here"),
        ({"room": {"x": {"one_of": [1]}}}, "warning", "room.x", "is compared as a field here"),
        ({"object": {"has_feild": {"a": 1}}}, "warning", "object", 'did you mean `has_fields = {"a": 1}`?'),
        ({"object": {"only_fields": {"a": 1}}}, "warning", "object", "only_fields = true`?"),
        ({"object": {"has_length": "3"}}, "warning", "object", "`has_length` needs a whole number, or [low, high]"),
        ({"either": {"contain": 1, "weight": 2}}, "warning", "either", "did you mean `contains = 1`?"),
        (
            {"object": {"a": {"has_field": {"b": 1}}}},
            "warning",
            "object.a",
            "`has_field` is compared as a field here, because nothing inside a plain value is a check: write `object = "
            "{ has_fields = { a = { has_fields = … } } }`",
        ),
        ({"anything": {"patern": "x"}}, "warning", "anything", '`pattern = "x"`'),
        ({"anything": {"value": 5, "tolerance": 1}}, "warning", "anything", "names no check"),
        (
            {"anything": [{"a": {"prefix": "x"}}]},
            "warning",
            "anything[0].a",
            "write `anything = { same_elements = [{ has_fields = { a = { prefix = … } } }, …], in_order = true }`",
        ),
        (
            {"anything": {"has_fields": {"a": [{"b": {"has_length": 3}}]}}},
            "warning",
            "anything.has_fields.a[0].b",
            "has_fields = { a = { same_elements = [{ b = { has_length = … } }, …], in_order = true } } }`",
        ),
        (
            {"anything": {"has_elements": [{"a": {"prefix": "x", "optinal": True}}]}},
            "warning",
            "anything.has_elements[0].a",
            "`anything = { has_elements = [{ has_fields = { a = { prefix = … } } }, …] }`",
        ),
        (
            {"anything": {"each_element": {"a.b": {"prefix": "x"}}}},
            "warning",
            'anything.each_element."a.b"',
            'write `anything = { each_element = { has_fields = { "a.b" = { prefix = … } } } }`',
        ),
        ({"anything": {"has_length": "3"}}, "warning", "anything", "`has_length` needs a whole number, or [low, high]"),
        ({"city": {"has_elements": []}}, "error", "city", "`has_elements` needs a list of at least one check"),
        ({"city": {"each_element": "x"}}, "warning", "city", "it needs a list, and the schema requires string"),
        ({"city": {"none_of": "x"}}, "error", "city", "`none_of` needs a list of at least one check"),
        ({"room": {"has_fields": {"kind": {"has_length": 5, "optional": True}, "of": 5}}}, "warning", "room", "of: "),
    ],
)
def test_what_can_never_hold_is_told(args: dict[str, Any], severity: str, where: str, words: str) -> None:
    given = args if "town" in args else {"city": "Oslo", **args}
    [finding] = told(given)
    assert finding.severity == severity
    assert place_text(finding.place) == f"cases[0].ordered[0].args.{where}"
    assert words in f"{finding.message} {finding.hint}"


@pytest.mark.parametrize(
    "args",
    [
        {"room": {"contain": "x", "kind": "double"}},
        {"room": {"patern": "x"}},
        {"room": {"of": {"contains": "x"}}},
        {"room": {"x": {"type": "object"}}},
        {"either": {"numeric": 12, "tolerance": "5%"}},
        {"anything": {"value": 5, "unit": "C"}},
        {"anything": {"orange": 5}},
        {"object": {"types": ["a"], "weight": 1}},
        {"object": {"a": {"dates": ["2027-01-01"]}}},
        {"object": {"has_field": 1, "b": 2}},
        {"anything": {"price": {"min": 1}}},
        {"anything": {"equals": {"a": {"contains": "x"}}}},
    ],
)
def test_a_table_that_may_well_be_a_value_is_left_alone(args: dict[str, Any]) -> None:
    assert told({"city": "Oslo", **args}) == []


def test_a_check_in_a_variant_of_a_case_is_told() -> None:
    calls = [{"tool": "book", "args": {"city": "Oslo", "room": {"kind": {"contains": "double"}}}}]
    for key in ("ordered", "disallowed"):
        [finding] = told({"city": "Oslo"}, variants=[{"name": "v", key: calls}])
        assert (finding.severity, place_text(finding.place)) == (
            "warning",
            f"cases[0].variants[0].{key}[0].args.room.kind",
        )
    result = [{"tool": "book", "result": {"id": {"range": [1, 2]}}}]
    [finding] = told({"city": "Oslo"}, variants=[{"name": "v", "unordered": result}])
    assert place_text(finding.place) == "cases[0].variants[0].unordered[0].result.id"


def test_a_check_in_the_suites_own_call_is_told() -> None:
    state = {"tool": "book", "args": {"nights": {"range": [1, 2]}}, "is_error": False}
    [finding] = told({"city": "Oslo"}, setup=[{"tool": "book", "args": {"city": {"contains": "O"}}}])
    assert place_text(finding.place) == "cases[0].setup[0].args.city"
    assert "refuses it" in finding.message
    [finding] = told({"city": "Oslo"}, final={"state": [state]})
    assert place_text(finding.place) == "cases[0].final.state[0].args.nights"
    assert told({"city": "Oslo"}, final={"state": [{**state, "is_error": True}]}) == []


def test_a_tool_without_listed_parameters_takes_any_value() -> None:
    assert told({"filter": {"city": "Oslo"}}, tool="free") == []
    [finding] = told({"filter": {"patern": "x"}}, tool="free")
    assert finding.severity == "warning"


def test_where_invalid_arguments_fail_nothing_a_table_can_be_met() -> None:
    [finding] = told({"city": {"contain": "Os"}}, grading={"invalid_arguments": "note"})
    assert finding.severity == "warning"


def test_a_condition_of_a_mock_is_looked_at_too() -> None:
    mock = {"tool": "book", "when": {"city": {"contain": "Os"}}, "result": 1}
    [finding] = told({"city": "Oslo"}, mocks=[mock])
    assert (place_text(finding.place), finding.severity) == ("cases[0].mocks[0].when.city", "warning")


@pytest.mark.parametrize(
    ("case", "count"),
    [
        ({}, 1),
        ({"extra_calls": "allow"}, 1),
        ({"expect_nothing_yet": True}, 0),
        ({"expect_no_calls": True}, 0),
        ({"extra_calls": "forbid"}, 0),
        ({"response_contains": ["x"]}, 0),
        ({"disallowed": [{"tool": "book"}]}, 0),
        ({"user": None, "steps": [{"user": "Hi"}]}, 0),
    ],
)
def test_a_case_that_expects_nothing_at_all(case: dict[str, Any], count: int) -> None:
    table = {"name": "c", "user": "Book", **case}
    suite = Suite.model_validate({"format": 1, "name": "s", "tools": [BOOK], "cases": [table]})
    assert len(list(contradiction_findings(suite, ToolTable.of(suite, {})))) == count


LISTED = (
    ToolDefinition("look", server="shop", annotations={"readOnlyHint": True}),
    ToolDefinition("buy", server="shop"),
)


@pytest.mark.parametrize(
    ("server", "case", "warned"),
    [
        ({}, {"ordered": [{"tool": "buy"}], "repeats": 2}, True),
        ({}, {"ordered": [{"tool": "buy"}]}, False),
        ({}, {"ordered": [{"tool": "look"}], "repeats": 2}, False),
        ({}, {"ordered": [{"tool": "buy"}], "repeats": 2, "execute": False}, False),
        ({}, {"ordered": [{"tool": "buy"}], "repeats": 2, "mocks": [{"tool": "buy", "result": 1}]}, False),
        ({"state": "run"}, {"ordered": [{"tool": "buy"}], "repeats": 2}, False),
        ({"state": "batch"}, {"ordered": [{"tool": "buy"}], "repeats": 2}, False),
    ],
)
def test_a_server_that_runs_share_is_named_where_a_case_changes_it(
    server: dict[str, Any], case: dict[str, Any], warned: bool
) -> None:
    table = {"servers": [{"name": "shop", "command": ["shop"], **server}], "execute": True}
    suite = Suite.model_validate({"format": 1, "name": "s", **table, "cases": [{"name": "c", "user": "u", **case}]})
    found = [finding.message for finding in contradiction_findings(suite, ToolTable(LISTED))]
    shared = ["its 2 runs share one process, and see what others changed by buy"]
    assert found == (shared if warned else [])


def test_a_check_that_is_no_check_is_found_in_a_final_state() -> None:
    state = [{"tool": "look", "result": {"status": {"contains": "paid"}}}]
    case = {"name": "c", "user": "u", "final": {"state": state}}
    suite = Suite.model_validate({"format": 1, "name": "s", "cases": [case]})
    (found,) = contradiction_findings(suite, ToolTable(LISTED))
    assert place_text(found.place) == "cases[0].final.state[0].result.status"
    assert "write `result = { has_fields = { status = { contains = … } } }`" in found.message
