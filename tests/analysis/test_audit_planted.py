"""The audit sees weaknesses that were planted in cases, each alone in a suite that is sound without it, and raises no
alarm in sound suites."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tables import each_row
from workbench.analysis.audit.audit import audit_suite
from workbench.analysis.audit.contradictions import ToolTable, contradiction_findings
from workbench.suite.model import Suite

Table = dict[str, Any]


def tool(name: str, required: list[str], /, **properties: Any) -> Table:
    return {"name": name, "parameters": {"type": "object", "required": required, "properties": properties}}


TEXT: Table = {"type": "string"}
NUMBER: Table = {"type": "number", "minimum": 0}
TOOLS = [
    tool(
        "transfer",
        ["to", "amount"],
        to=TEXT,
        amount=NUMBER,
        currency={"enum": ["EUR", "USD"]},
        dry_run={"type": "boolean"},
    ),
    tool("find_account", ["name"], name=TEXT, limit={"type": "integer", "minimum": 1, "maximum": 10}),
    tool("set_lights", ["room"], room={"enum": ["hall", "bath", "attic"]}, on={"type": "boolean"}, note=TEXT),
    tool("meet", ["at"], at=TEXT, title=TEXT, tags={"type": "array", "items": TEXT}),
    tool("list_rooms", []),
]
SOUND_CALL: Table = {"tool": "transfer", "args": {"to": "acc-1", "amount": 12}, "only_args": True}


def suite(*cases: Table, **more: Any) -> Suite:
    tables = [{"name": f"case {number}", "user": "Please do it", **case} for number, case in enumerate(cases)]
    return Suite.model_validate({"format": 1, "name": "s", "tools": TOOLS, "cases": tables, **more})


def call(name: str, args: Table | None = None, /, **more: Any) -> Table:
    table: Table = {"tool": name, **more}
    return table if args is None else {**table, "args": args}


def one(name: str, args: Table | None = None, /, **more: Any) -> Suite:
    """A suite with one case that expects one call, and no other."""
    return suite({"ordered": [call(name, args, only_args=args is not None)], "extra_calls": "forbid", **more})


def pay(**args: Any) -> Suite:
    return one("transfer", {"to": "acc-1", "amount": 12, **args})


def lit(**args: Any) -> Suite:
    return one("set_lights", {"room": "hall", **args})


def sound_case(**more: Any) -> Table:
    return {"ordered": [SOUND_CALL], "extra_calls": "forbid", **more}


def warnings_of(tested: Suite) -> list[str]:
    """The findings that fail `validate --audit --fail-on warning`."""
    told = [found.message for found in contradiction_findings(tested, ToolTable.of(tested, {}))]
    findings = audit_suite(tested, {}).findings
    return told + [f"{each.kind}: {each.message}" for each in findings if each.weight == "warning"]


BY_TRAJECTORY: Table = {"grading": {"by": "trajectory"}}

PLANTED: dict[str, Suite] = {
    "pattern that matches everything": pay(to={"pattern": ".*"}),
    "pattern of any character": pay(to={"pattern": "^.*$"}),
    "one_of the whole enum": lit(room={"one_of": ["hall", "bath", "attic"]}),
    "both booleans": lit(on={"one_of": [True, False]}),
    "a tolerance of a million": pay(amount={"near": 12, "tolerance": 1_000_000}),
    "a tolerance as large as the number": pay(amount={"near": 500, "tolerance": 600}),
    "a range of everything": pay(amount={"range": [0, float("inf")]}),
    "a range to a million": pay(amount={"range": [0, 1_000_000]}),
    "a range as wide as the schema's": one("find_account", {"name": "Ada", "limit": {"range": [1, 10]}}),
    "an unanchored code": pay(to={"pattern": "acc-1"}),
    "a pattern without an end": pay(to={"pattern": "^acc-[0-9]"}),
    "a pattern without a beginning": pay(to={"pattern": r"[0-9]+\Z"}),
    "the type alone, of a text": pay(to={"type": "string"}),
    "the type alone, of a number": pay(amount={"type": "number"}),
    "any tool": suite({"ordered": [call("*")], **BY_TRAJECTORY}),
    "no arguments checked": one("transfer"),
    "every argument only present": one("transfer", {"to": {"present": True}, "amount": {"present": True}}),
    "every argument optional": one("transfer", {"to": {"equals": "a", "optional": True}, "amount": {"present": True}}),
    "contains nothing": pay(to={"contains": ""}),
    "contains one letter": pay(to={"contains": "a"}),
    "an empty prefix": pay(to={"prefix": ""}),
    "any_of with a type": pay(to={"any_of": ["acc-1", {"type": "string"}]}),
    "all_of of loose checks": pay(to={"all_of": [{"type": "string"}, {"pattern": ""}]}),
    "a similar account": pay(to={"similar": "account 1"}),
    "a text as amount": one("meet", {"at": "2026-05-01", "title": {"equals_text": "-5"}}),
    "a fraction as text": one("meet", {"at": "2026-05-01", "title": {"equals_text": "1.5"}}),
    "a time without its offset": one("meet", {"at": {"datetime": "2026-05-01T19:00+02:00"}}),
    "an argument of no weight": suite(
        {"ordered": [call("transfer", {"to": {"equals": "a", "weight": 0}, "amount": {"equals": 1, "weight": 1}})]}
    ),
    "wrong values under dimensions": suite(sound_case(), grading={"by": "dimensions"}),
    "the same payment twice": suite({"ordered": [SOUND_CALL], **BY_TRAJECTORY}),
}

NEW_SET: dict[str, Suite] = {
    "a gate of nothing": suite(sound_case(), gate={"min_score": 0.0}),
    "a pass rate of nothing": suite(sound_case(), gate={"min_pass_rate": 0.0}),
    "an aggregate at least 0": suite(
        sound_case(), aggregates=[{"name": "a", "of": "score", "at_least": {"mean": 0.0}}]
    ),
    "a score of at most 1": suite(sound_case(), aggregates=[{"name": "a", "of": "score", "at_most": {"mean": 1.0}}]),
    "all in quarantine": suite(sound_case(tags=["flaky"]), gate={"min_score": 0.9, "quarantine": ["flaky"]}),
    "a payment that may be a dry run": suite(
        {"ordered": [call("transfer", {"to": "acc-1", "amount": 12})], "extra_calls": "forbid", **BY_TRAJECTORY}
    ),
    "a transfer added to a look-up": suite(
        {"ordered": [call("find_account", {"name": "Ada"}, only_args=True)], **BY_TRAJECTORY}
    ),
    "a prohibition of a tool that is not offered": suite(
        sound_case(offer=["transfer"], disallowed=[call("set_lights")])
    ),
    "a prohibition alone": suite({"disallowed": [call("transfer")]}),
    "an answer of any text": suite(sound_case(response={"pattern": ".*"})),
    "an answer that contains nothing": suite(sound_case(response={"contains": ""})),
    "an answer of its type": suite(sound_case(response={"type": "string"})),
    "a keyword of the request": suite({"response_contains": ["please"]}),
    "a list of any kind": one("meet", {"at": "2026-05-01", "tags": {"type": "array"}}),
    "a table that names no check": one("meet", {"at": "2026-05-01", "title": {"contain": "lunch"}}),
    "nothing expected": suite({}),
    "an order that nothing checks": suite(
        {
            "ordered": [call("find_account", {"name": "Ada"}), SOUND_CALL],
            "extra_calls": "forbid",
            "grading": {"by": "dimensions"},
        }
    ),
    "a date in a zone of its name": one("meet", {"at": {"datetime": "2026-05-01 19:00 EST"}}),
}


def missed(planted: dict[str, Suite]) -> list[str]:
    return [name for name, tested in planted.items() if not warnings_of(tested)]


def test_weaknesses_of_checks_are_seen() -> None:
    assert len(PLANTED) == 30
    assert missed(PLANTED) == []


@pytest.mark.parametrize("pattern", [".", ".+", "^.*$", r"^.*\Z"])
def test_a_pattern_of_any_text_is_not_to_be_anchored(pattern: str) -> None:
    (warning,) = warnings_of(pay(to={"pattern": pattern}))
    assert "accepts every usual text" in warning


def test_weaknesses_of_rules_and_answers_are_seen() -> None:
    assert len(NEW_SET) == 18
    assert missed(NEW_SET) == []


SOUND: dict[str, Suite] = {
    "plain values": pay(),
    "a search for a word": one("find_account", {"name": {"pattern": "(?i)lovelace"}}),
    "an anchored pattern": pay(to={"pattern": r"^acc-[0-9]+\Z"}),
    "a narrow range": pay(amount={"range": [10, 15]}),
    "a small tolerance": pay(amount={"near": 12, "tolerance": 0.5}),
    "some of an enum": lit(room={"one_of": ["hall", "bath"]}, on=True),
    "a text in other words": one("meet", {"at": "2026-05-01", "title": {"similar": "lunch with the whole team"}}),
    "a time with its offset": one("meet", {"at": {"datetime": "2026-05-01T19:00+02:00", "offset": "required"}}),
    "an answer": suite({"expect_no_calls": True, "response": {"contains": "cannot"}}),
    "a chain": suite(
        {
            "user": None,
            "steps": [
                {"user": "Who?", "tool": "find_account", "args": {"name": "Ada"}, "only_args": True},
                {"user": "Pay her", **SOUND_CALL},
            ],
        },
        gate={"min_score": 0.9, "min_pass_rate": 1.0},
    ),
    # Two runs with the scores 0 and 1 have the spread 0.71.
    "a large spread": suite(
        sound_case(), aggregates=[{"name": "a", "of": "score", "at_most": {"mean": 0.9, "spread": 0.6}}]
    ),
}


@each_row("name", SOUND)
def test_a_sound_suite_raises_no_alarm(name: str) -> None:
    assert warnings_of(SOUND[name]) == []
