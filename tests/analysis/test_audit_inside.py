"""The audit looks inside values: exact agents meet nested checks, mutants change one part, and weak parts are named."""

from __future__ import annotations

from typing import Any

from tests.tables import each_row
from workbench.analysis.audit.audit import audit_suite
from workbench.analysis.audit.contradictions import AuditFinding
from workbench.suite.model import Suite

LINE = {
    "type": "object",
    "required": ["sku", "qty"],
    "properties": {"sku": {"type": "string", "pattern": "^[A-Z][0-9]$"}, "qty": {"type": "integer", "minimum": 1}},
}
ORDER = {
    "name": "order",
    "parameters": {
        "type": "object",
        "properties": {
            "lines": {"type": "array", "items": LINE, "minItems": 1},
            "notes": {"type": "array", "items": {"type": "string"}},
            "to": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}, "zip": {}}},
            "dry_run": {"type": "boolean"},
        },
    },
}


def findings(args: dict[str, Any], **grading: Any) -> list[AuditFinding]:
    case = {"name": "c", "user": "x", "ordered": [{"tool": "order", "args": args, "only_args": True}], **grading}
    suite = Suite.model_validate({"format": 1, "name": "s", "tools": [ORDER], "cases": [case]})
    return list(audit_suite(suite, {}).findings)


@each_row(
    "args",
    [
        {"lines": {"same_elements": [{"has_fields": {"sku": {"prefix": "A"}, "qty": {"range": [2, 3]}}}]}},
        {"lines": {"has_elements": [{"has_fields": {"sku": "A1"}}, {"has_fields": {"qty": 5}}]}},
        {"lines": {"all_of": [{"each_element": {"has_fields": {"qty": 2}}}, {"has_length": [1, 3]}]}},
        {"notes": {"has_length": 3}, "to": {"has_fields": {"city": "Oslo", "zip": {"present": False}}}},
        {"notes": {"same_elements": [{"none_of": ["x"]}, {"equals": "Y", "ignore_case": True}]}},
        {"to": {"has_fields": {"city": {"has_length": [2, 5]}}}, "dry_run": {"present": False}},
    ],
)
def test_an_exact_agent_meets_nested_checks(args: dict[str, Any]) -> None:
    kinds = {each.kind for each in findings(args)} - {"cannot fail", "weak case", "unnoticed"}
    assert kinds == set()


@each_row(
    ("args", "message"),
    [
        ({"notes": {"each_element": {"contains": ""}}}, 'each element containing "": no value that the schema allows'),
        ({"to": {"has_fields": {"city": "Oslo", "zip": {"contains": ""}}}}, None),
        ({"to": {"has_fields": {"city": {"contains": ""}, "zip": 5}}}, 'city: containing "": no value that the schema'),
        (
            {"lines": {"each_element": {"has_fields": {"sku": "A1", "qty": {"range": [1, 1e7]}}}}},
            "[].qty: 1..10000000: no value that the schema allows fails it",
        ),
        ({"notes": {"each_element": "a"}}, "an empty list passes"),
        ({"notes": {"none_of": [5]}}, "no value that the schema allows fails it"),
        ({"notes": {"has_length": [0, float("inf")]}}, "no value that the schema allows fails it"),
    ],
)
def test_a_check_that_every_allowed_value_meets_is_named(args: dict[str, Any], message: str | None) -> None:
    told = [each.message for each in findings(args) if each.kind == "cannot fail"]
    assert any(message in each for each in told) if message else not told


def test_a_part_that_a_weight_forgives_is_unnoticed_by_its_path() -> None:
    """One wrong field of ten costs a tenth of a weighted argument, which the threshold forgives."""
    fields = {"city": "Oslo", **{f"f{number}": {"equals": number} for number in range(9)}}
    args = {"to": {"has_fields": fields, "weight": 1}}
    unnoticed = [each.message for each in findings(args) if each.kind == "unnoticed"]
    assert any('"to.city"' in message for message in unnoticed), unnoticed
    assert not any('"to.city"' in each.message for each in findings({"to": {"has_fields": fields}}))
