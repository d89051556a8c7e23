from __future__ import annotations

from workbench.grading.critics import ToolRegistry
from workbench.suite.expected_calls import same_tool
from workbench.trajectory.events import JsonValue, ToolDefinition


def tool(name: str, **defaults: JsonValue) -> ToolDefinition:
    properties: dict[str, JsonValue] = {key: {"default": value} for key, value in defaults.items()}
    return ToolDefinition(name, parameters={"type": "object", "properties": {"city": {"type": "string"}, **properties}})


def test_separators_and_case_do_not_make_another_tool() -> None:
    assert same_tool("Google.List-Emails", "google_list_emails")
    assert not same_tool("GetWeather", "get_weather")
    assert not same_tool("a__b", "a_b")


def test_a_name_is_resolved_as_it_is_before_its_dots_are_bent() -> None:
    dotted, plain = tool("Weather.Get", units="celsius"), tool("Weather_Get", units="kelvin")
    assert ToolRegistry([dotted]).resolve("Weather_Get") is dotted
    assert ToolRegistry([dotted, plain]).resolve("Weather_Get") is plain
    assert ToolRegistry([plain]).resolve("Weather.Get") is None
    assert ToolRegistry([tool("a.b_c"), tool("a_b.c")]).resolve("a_b_c") == tool("a.b_c")


def test_missing_and_null_arguments_get_the_default() -> None:
    registry = ToolRegistry([tool("get", units="celsius", days=1)])
    assert registry.filled("get", {"city": "Oslo", "units": None}) == {"city": "Oslo", "units": "celsius", "days": 1}
    assert registry.filled("get", {"units": "kelvin", "days": 0}) == {"units": "kelvin", "days": 0}


def test_an_unknown_tool_and_a_schema_without_properties_fill_nothing() -> None:
    registry = ToolRegistry([ToolDefinition("bare", parameters={"properties": ["odd"]})])
    assert registry.filled("bare", {"a": None}) == {"a": None}
    assert registry.filled("unknown", {}) == {}
