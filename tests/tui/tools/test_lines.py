"""The text of the tools screen: servers with their state, tools with their facts, forms for calls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.analysis.tool_lint import lint_tools
from workbench.authoring.from_calls import case_with_expected_call, case_with_mock
from workbench.config.secrets import NO_SECRETS
from workbench.engine.server_calls import ToolExecution
from workbench.show.spans import cells, plain
from workbench.suite.suite_file import SuiteFile, parse_suite
from workbench.suite.suite_text import SuiteText
from workbench.tools.answer import ToolAnswer
from workbench.tools.connection import ListingIssue, ServerStatus
from workbench.tools.listings import Listing
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.tui.tools.call import CallForm, CallOutcome, call_picture
from workbench.tui.tools.state import ToolList, detail_lines, expecting_cases, parameter_lines, row_line

PATH = Path("shop.toml")
SHOP = """
format = 1
name = "Shop"

[[tools]]
name = "written"
description = "Written out, for the sake of it."

[[servers]]
name = "shop"
command = ["python", "shop.py"]

[[cases]]
name = "Add"
user = "1 + 2?"
[[cases.ordered]]
tool = "add"
[[cases.disallowed]]
tool = "divide"
"""
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ADD = ToolDefinition(
    "add",
    "Adds two whole numbers.",
    {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "minimum": 1}, "b": {}}},
    {"readOnlyHint": True},
    "shop",
)


def shop() -> SuiteFile:
    file = parse_suite(SHOP, PATH)
    assert file.suite is not None, file.problems
    return file


def sources(*, remembered: bool = False) -> ToolList:
    listing = {"shop": Listing((ADD,), NOW - timedelta(days=3))}
    return ToolList([shop()], {PATH: listing if remembered else {}})


def listed(state: ToolList, width: int = 40) -> list[str]:
    return [" ".join(plain(row_line(state, row, width, NOW)).split()) for row in state.rows]


def detail(state: ToolList, tool: str | None, width: int = 70) -> str:
    row = next(row for row in state.rows if (row.tool.name if row.tool else None) == tool and row.source.server)
    lines = detail_lines(state, row, width, NOW)
    assert all(cells(line) <= width for line in lines)
    return "\n".join(map(plain, lines))


def test_a_server_that_never_ran_says_so_and_is_not_started() -> None:
    assert listed(sources())[2:] == ["· shop not started", "unknown until it runs"]


def test_remembered_tools_are_shown_with_their_age() -> None:
    state = sources(remembered=True)
    assert listed(state)[2:] == ["· shop not started 1 tool · 40 tok", "add 40"]
    assert "as listed on 2026-11-17 12:00, 3 days ago" in detail(state, None)
    assert "as listed on 2026-11-17 12:00, 3 days ago" in detail(state, "add")


def test_a_server_that_runs_dies_and_keeps_what_it_listed() -> None:
    state = sources()
    key = (PATH, "shop", None)
    assert not state.update_server(key, ServerStatus("starting", starting_s=3.5, downloads=True), NOW)
    assert listed(state)[2:] == ["… shop downloading 3 s", "unknown until it runs"]
    assert not state.update_server(key, ServerStatus("starting", starting_s=7.5), NOW)
    assert listed(state)[2:] == ["… shop starting 7 s", "unknown until it runs"]
    assert "… starting 7 s" in detail(state, None)
    assert "r starts it" not in detail(state, None)
    assert state.update_server(key, ServerStatus("running", (ADD,), task_tools=("pack",)), NOW)
    assert "✓ shop running 1 tool" in listed(state)[2]
    assert "not offered to models, callable only as MCP tasks: pack" in detail(state, None).replace("\n ", "")
    assert not state.update_server(key, ServerStatus("down", reason="server 'shop' ended"), NOW)
    assert "▲ shop down 1 tool" in listed(state)[2]
    assert "server 'shop' ended" in detail(state, None)
    assert ", now" in detail(state, None)


def test_faults_in_the_list_of_a_server_are_named_and_counted() -> None:
    state = sources()
    issue = ListingIssue("bare", "inputSchema", "is missing, and the protocol requires it", "left out")
    assert state.update_server((PATH, "shop", None), ServerStatus("running", (ADD,), issues=(issue,)), NOW)
    assert listed(state)[2] == "✓ shop running ! 1 1 tool · 40 tok"
    assert "left out: bare: inputSchema is missing, and the protocol requires it" in detail(state, None)
    assert state.update_server((PATH, "shop", None), ServerStatus("running", (ADD,)), NOW)
    assert "left out" not in detail(state, None)


def test_the_instructions_of_a_server_are_shown() -> None:
    state = sources()
    key = (PATH, "shop", None)
    assert state.update_server(
        key, ServerStatus("running", (ADD,), instructions="Call add first.\n\x1b[31mThen rest."), NOW
    )
    shown = detail(state, None)
    assert "Instructions\n" in shown and "instructions, sent in the system prompt:" in shown
    assert "Call add first." in shown and "\x1b" not in shown and "Then rest." in shown
    assert state.update_server(key, ServerStatus("running", (ADD,), instructions="x " * 1_500), NOW)
    assert "has 2,999 bytes of instructions, of which the first 2,048 are sent" in " ".join(detail(state, None).split())
    # They are known from the last listing as well.
    listing = Listing((ADD,), NOW, "Call add first.")
    assert "Call add first." in detail(ToolList([shop()], {PATH: {"shop": listing}}), None)


def test_everything_about_a_tool_is_said() -> None:
    state = sources(remembered=True)
    state.set_findings(PATH, lint_tools(state.tools_of(PATH)))
    said = detail(state, "add")
    assert "read-only · about 40 tokens" in said
    assert "! a: it has no description" in said
    assert "a  integer · required · minimum 1" in said
    assert "b  of no type" in said
    assert "\n   Add\n" in said
    assert '"minimum": 1' in said
    assert [name for name, _ in expecting_cases(shop(), "add")] == ["Add"]
    assert expecting_cases(shop(), "divide") == (("Add", True),)


def test_the_filter_finds_words_of_names_and_descriptions_and_keeps_the_cursor_on_a_tool() -> None:
    state = sources(remembered=True)
    state.set_filter("WHOLE add")
    assert [row.tool.name for row in state.rows if row.tool] == ["add"]
    assert state.selected is not None
    assert state.selected.tool == ADD
    state.set_filter("nothing like it")
    assert state.rows == []
    state.set_filter("")
    assert len(state.rows) == 4


@given(st.text(max_size=40), st.text(max_size=60), st.text(max_size=20), st.integers(20, 90))
def test_whatever_a_server_says_stays_in_its_rows(name: str, description: str, parameter: str, width: int) -> None:
    properties: dict[str, JsonValue] = {parameter: {"type": "string", "description": description, "default": name}}
    tool = ToolDefinition(name, description, {"properties": properties}, {description: name}, "shop")
    state = ToolList([shop()], {PATH: {"shop": Listing((tool,), NOW)}})
    form = CallForm(tool)
    form.set(parameter, description)
    outcome = CallOutcome(executed=ToolExecution(ToolAnswer(description), 3))
    for row in state.rows:
        lines = [row_line(state, row, width, NOW), *detail_lines(state, row, width, NOW)]
        lines += call_picture(form, outcome, width, NO_SECRETS).lines
        for line in lines:
            assert cells(line) <= width
            assert not {"\x1b", "\n", "\r", "\u202e"} & set(plain(line))


def test_a_nested_schema_is_a_tree() -> None:
    item: JsonValue = {"type": "object", "required": ["n"], "properties": {"n": {"enum": ["x", 1], "default": 1}}}
    schema: dict[str, JsonValue] = {"properties": {"to": {"type": "array", "items": item, "description": "Whom"}}}
    assert [plain(line) for line in parameter_lines(schema, 60)] == [
        "   to  object[]",
        "     Whom",
        '     n  "x"|1 · required · default 1',
    ]


# Calling by hand

ORDER = ToolDefinition(
    "order",
    "Orders something.",
    {
        "type": "object",
        "required": ["what", "count"],
        "properties": {
            "what": {"type": "string"},
            "count": {"type": "integer", "default": 1},
            "size": {"enum": ["small", "large"]},
            "gift": {"type": "boolean"},
            "to": {"type": "array", "items": {"type": "string"}},
            "note": {"type": ["string", "null"]},
        },
    },
)


def test_a_form_begins_with_the_defaults_of_what_must_be_given() -> None:
    form = CallForm(ORDER)
    assert form.arguments == {"count": 1}
    assert form.problems == {"what": "must be given"}


def test_what_is_typed_becomes_values_of_the_schemas_types() -> None:
    form = CallForm(ORDER)
    for name, text in (("what", "42"), ("count", "3"), ("to", "Ann, Bob"), ("note", "null"), ("gift", "true")):
        form.set(name, text)
    assert form.arguments == {"what": "42", "count": 3, "to": ["Ann", "Bob"], "note": None, "gift": True}
    assert form.problems == {}
    form.set("to", '["a, b"]')
    assert form.arguments["to"] == ["a, b"]
    form.set("what", '""')
    assert form.arguments["what"] == ""
    form.set("to", " ")
    assert "to" not in form.arguments


def test_a_value_that_the_schema_refuses_is_marked_at_its_parameter() -> None:
    form = CallForm(ORDER)
    form.set("what", "tea")
    form.set("count", "three")
    assert form.problems == {"count": "'three' is not of type 'integer'"}


def test_listed_values_are_chosen_in_turn_and_none_comes_after_the_last() -> None:
    form = CallForm(ORDER)
    seen = []
    for _ in range(3):
        form.choose_next("size", 1)
        seen.append(form.text("size"))
    assert seen == ["small", "large", ""]
    assert form.choices("gift") == ("true", "false")
    assert form.choices("what") == ()


def test_a_broken_schema_is_said_and_keeps_nobody_from_calling() -> None:
    form = CallForm(ToolDefinition("odd", "", {"properties": {"a": {"type": "integr"}}}))
    assert form.problems == {}
    assert form.unchecked is not None
    assert "broken" in form.unchecked


def test_an_error_of_a_tool_is_marked_and_json_is_laid_out() -> None:
    form = CallForm(ORDER)

    def shown(answer: ToolAnswer) -> str:
        outcome = CallOutcome(executed=ToolExecution(answer, 12.3))
        return "\n".join(map(plain, call_picture(form, outcome, 60, NO_SECRETS).lines))

    assert "✗ Tool error  12 ms\n  sold out" in shown(ToolAnswer("sold out", is_error=True))
    assert '✓ Answer  12 ms\n  {\n    "ok": true\n  }' in shown(ToolAnswer('{"ok": true}'))


# Into a case


def case_after(case: dict[str, object]) -> dict[str, object]:
    """Return the case, written into a suite and read back."""
    text = SuiteText.of(SHOP).with_case(0, case).text
    file = parse_suite(text, PATH)
    assert file.suite is not None, file.problems
    return SuiteText.of(text).cases[0]


def test_an_answer_becomes_a_mock_before_those_that_would_answer_in_its_place() -> None:
    case = dict(SuiteText.of(SHOP).cases[0])
    arguments: dict[str, JsonValue] = {"a": 1, "b": None, "c": {"range": 3}, "d": [None]}
    case = case_with_mock(case, "add", {}, ToolAnswer("any"))
    case = case_with_mock(case, "add", arguments, ToolAnswer('{"sum":3}'))
    case = case_with_mock(case, "add", arguments, ToolAnswer('{"sum":4}'))
    case = case_with_mock(case, "divide", {}, ToolAnswer("by zero", is_error=True))
    null_alone = {"same_elements": [{"equals_null": True}], "in_order": True}
    when = {"a": 1, "b": {"equals_null": True}, "c": {"equals": {"range": 3}}, "d": null_alone}
    assert case_after(case)["mocks"] == [
        {"tool": "add", "when": when, "result": {"sum": 4}},
        {"tool": "add", "result": "any"},
        {"tool": "divide", "error": "by zero"},
    ]


@pytest.mark.parametrize("content", ['{"a": null}', '{"a": 1}', "[1, 2", "plain"])
def test_an_answer_that_would_not_come_back_the_same_stays_text(content: str) -> None:
    case = case_with_mock({}, "add", {}, ToolAnswer(content))
    assert case == {"mocks": [{"tool": "add", "result": content}]}


def test_a_call_becomes_an_expected_one_unless_the_case_expects_otherwise() -> None:
    case = case_with_expected_call(dict(SuiteText.of(SHOP).cases[0]), "add", {"a": 1})
    assert case_after(case)["ordered"] == [{"tool": "add"}, {"tool": "add", "args": {"a": 1}}]
    others: tuple[dict[str, object], ...] = ({"steps": []}, {"expect_no_calls": True})
    for other in others:
        with pytest.raises(ValueError, match="the case"):
            case_with_expected_call(other, "add", {})


def test_types_stand_near_the_values_however_wide_the_screen_is() -> None:
    def first(width: int) -> str:
        return plain(call_picture(CallForm(ADD), CallOutcome(), width, NO_SECRETS).lines[0])

    assert first(150) == first(80)
    assert first(150).endswith("  integer")
    assert cells(call_picture(CallForm(ADD), CallOutcome(), 20, NO_SECRETS).lines[0]) <= 20
