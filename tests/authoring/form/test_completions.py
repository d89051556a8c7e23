"""The completions while a user types into the form."""

from __future__ import annotations

from tests.authoring.form.test_argument_schemas import LIGHTS
from workbench.authoring.form.cells import form_names
from workbench.authoring.form.completions import complete, suggestions
from workbench.authoring.form.row import Cell, FormSource
from workbench.checks.check import CHECK_CLASSES
from workbench.trajectory.events import ToolDefinition
from workbench.trajectory.json_schema import Schema

TV = ToolDefinition("set_tv", "Turns the TV on or off.\nAnd more.")
SWITCH: Schema = {"type": "string", "enum": ["on", "off"], "default": "off"}


def texts(*args: object, **kwargs: object) -> list[str]:
    return [completion.text for completion in complete(*args, **kwargs)]  # type: ignore[arg-type]


def test_every_tool_is_offered_with_the_first_line_of_its_description() -> None:
    offered = complete("tool", "", tools=[LIGHTS, TV])
    assert [(one.text, one.detail) for one in offered] == [
        ("home_set_lights", "Sets the lights of a room."),
        ("set_tv", "Turns the TV on or off."),
    ]


def test_what_begins_as_typed_comes_before_what_holds_it() -> None:
    assert texts("tool", "set", tools=[LIGHTS, TV]) == ["set_tv", "home_set_lights"]


def test_a_slip_of_the_finger_and_a_word_of_the_description_still_find_a_tool() -> None:
    assert texts("tool", "set_lihgts", tools=[TV, LIGHTS])[0] == "home_set_lights"
    assert texts("tool", "room", tools=[LIGHTS, TV]) == ["home_set_lights"]


def test_arguments_that_are_not_used_are_offered_with_type_and_need() -> None:
    offered = complete("argument", "", tool=LIGHTS, used=["color"])
    assert [(one.text, one.detail) for one in offered] == [
        ("room", "string, required"),
        ("brightness", "integer · In percent."),
        ("until", "string or null"),
    ]


def test_values_that_a_schema_lists_are_offered() -> None:
    assert [(one.text, one.detail) for one in complete("value", "", schema=SWITCH)] == [("on", ""), ("off", "default")]
    assert texts("value", "", schema={"type": "boolean"}) == ["true", "false"]
    assert texts("value", "", schema={"type": "integer", "default": 5}) == ["5"]
    assert texts("value", "", schema={"type": "integer", "minimum": 1, "maximum": 9}, kind="range") == ["1..9"]
    assert texts("value", "", schema={"type": "string"}) == []
    assert texts("value", "now", schema={"type": "string"}, kind="datetime") == ["now+2h"]


def test_a_value_is_offered_as_it_would_be_typed() -> None:
    assert texts("value", "", schema={"enum": ["5", 5]}) == ['"5"', "5"]


def test_in_a_list_the_last_item_is_completed_and_none_is_offered_twice() -> None:
    assert texts("value", "on, o", schema=SWITCH, kind="one_of") == ["on, off"]
    assert texts("value", "b", schema={"type": "array", "items": {"enum": ["red", "blue"]}}) == ["blue"]
    assert texts("words", "slow,", words=["demo", "slow", "demo"]) == ["slow, demo"]
    assert texts("value", "nu", kind="type") == ["number", "null"]
    assert texts("tools", "home_set_lights, ", tools=[LIGHTS, TV]) == ["home_set_lights, set_tv"]


def test_checks_are_offered_as_far_as_they_fit_the_type() -> None:
    of_numbers = texts("check", "", schema={"type": "integer"})
    assert of_numbers == [
        "is",
        "present",
        "one_of",
        "range",
        "near",
        "type",
        "all_of",
        "any_of",
        "none_of",
        "judged",
        "python",
    ]
    of_text = texts("check", "", schema={"type": "string"})
    assert "range" not in of_text
    assert "contains" in of_text
    assert texts("check", "") == list(form_names())


def test_every_check_and_every_option_has_a_meaning() -> None:
    for kind in form_names():
        offered = complete("option", "", kind=kind)
        assert all(one.detail for one in offered)
        assert [one.text for one in offered] == [*CHECK_CLASSES["equals" if kind == "is" else kind].options]
    assert all(one.detail for one in complete("check", ""))


def test_options_are_offered_with_their_default_and_their_values() -> None:
    assert [one.detail for one in complete("option", "thr", kind="similar")] == [
        "how similar it must be, 0 to 1, default 0.8"
    ]
    assert texts("option value", "r", kind="similar", option="metric")[0] == "ratio"
    assert texts("option value", "", kind="is", option="cast") == ["true", "false"]
    assert texts("option value", "", kind="judged", option="model", words=["offline"]) == ["offline"]


def test_time_zones_are_offered_for_a_clock_also_behind_a_time() -> None:
    source = FormSource({})
    cell = Cell("text", ("clock",))
    for typed in ("", "2026-06-09T10:00 "):
        offered = suggestions(source, cell, f"{typed}berl")
        assert [one.text for one in offered][:1] == [f"{typed}Europe/Berlin"]


def test_words_come_by_how_often_they_are_used() -> None:
    assert texts("word", "", words=["slow", "demo", "demo"]) == ["demo", "slow"]


def test_what_cannot_be_shown_is_made_visible_in_the_label_only() -> None:
    (offered,) = complete("tool", "", tools=[ToolDefinition("a\u202eb", "c\x1bd")])
    assert offered.label == "a<U+202E>b"
    assert offered.detail == "c␛d"
    assert offered.text == '"a\\u202eb"'
