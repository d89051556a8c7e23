from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.wire.reading import CLOCK, WEATHER, a_request
from tests.strategies import is_json, json_objects
from tests.tables import each_row
from workbench.providers.wire.tool_calls import CallAssembly, ToolNames, read_arguments
from workbench.trajectory.events import CallArgumentsDelta, CallFinished, CallStarted, Message, ToolCall


def an_assembly(*earlier: str, calls_before: int = 0) -> CallAssembly:
    history = Message("assistant", "", tuple(ToolCall(call_id, "get_time") for call_id in earlier))
    names = ToolNames([WEATHER.name, CLOCK.name])
    return CallAssembly(a_request(history, calls_before=calls_before), names)


def test_the_api_s_own_ids_are_kept() -> None:
    assembly = an_assembly("a")
    assert [assembly.begin("b").id, assembly.begin("c").id] == ["b", "c"]


@pytest.mark.parametrize("missing", [None, "", 7])
def test_a_missing_id_becomes_one_of_ours(missing: object) -> None:
    assembly = an_assembly(calls_before=3)
    assert [assembly.begin(missing).id, assembly.begin(missing).id] == ["call-4", "call-5"]


def test_ids_of_earlier_rounds_and_of_the_same_answer_are_not_used_again() -> None:
    assembly = an_assembly("a", "call-2", calls_before=1)
    assert [assembly.begin("a").id, assembly.begin("b").id, assembly.begin("b").id] == ["call-2-2", "b", "call-4"]


def test_a_call_starts_with_the_name_of_an_offered_tool() -> None:
    assembly = an_assembly()
    assembly.name(assembly.begin("a"), "get_time")
    assert assembly.events == [CallStarted(1, "a", "get_time")]


def test_a_name_may_come_in_pieces_after_the_first_arguments() -> None:
    assembly = an_assembly()
    call = assembly.begin("a")
    assembly.name(call, "")
    assembly.add(call, "{")
    assembly.name(call, "get_")
    assembly.name(call, "time")
    assert assembly.events == [CallStarted(1, "a", "get_time"), CallArgumentsDelta("a", "{")]


def test_an_invented_name_starts_the_call_with_its_arguments() -> None:
    assembly = an_assembly()
    call = assembly.begin("a")
    assembly.name(call, "nonsense")
    assert assembly.events == []
    assembly.add(call, "{}")
    assert assembly.events[0] == CallStarted(1, "a", "nonsense")


def test_a_call_that_never_got_a_name_is_still_a_call() -> None:
    assembly = an_assembly()
    assembly.begin("a")
    assembly.finish_all()
    assert assembly.events == [CallStarted(1, "a", ""), CallFinished("a", {})]


def test_a_call_is_finished_once() -> None:
    assembly = an_assembly()
    call = assembly.begin("a")
    assembly.finish(call)
    assert len(assembly.events) == 2
    assembly.finish(call)
    assembly.finish_all()
    assembly.add(call, "{}")
    assert len(assembly.events) == 2


@each_row("nothing", [None, "", "  ", "null", {}, "{}"])
def test_nothing_means_no_arguments(nothing: object) -> None:
    assert read_arguments(nothing) == ({}, None)


def test_arguments_may_come_as_an_object() -> None:
    assembly = an_assembly()
    call = assembly.begin("a")
    call.name = "get_weather"
    assembly.add(call, {"city": "Oslo"})
    assembly.finish(call)
    assert assembly.events[1:] == [CallArgumentsDelta("a", '{"city": "Oslo"}'), CallFinished("a", {"city": "Oslo"})]


@each_row(
    ("text", "problem"),
    [
        ('{"city": "Os', "JSON that ends too early"),
        ('{"city": ', "JSON that ends too early"),
        ('{"city"', "JSON that ends too early"),
        ('{"city": "Oslo"} thanks', "text after the end of the JSON value, at character 18"),
        ("{'city': 'Oslo'}", "not JSON: Expecting property name enclosed in double quotes at character 2"),
        ('{"city": "a\tb"}', "not JSON: Invalid control character at character 12"),
        ('["Oslo"]', "a list instead of a JSON object"),
        ('"Oslo"', "a text instead of a JSON object"),
        ("5", "a number instead of a JSON object"),
        ("true", "true or false instead of a JSON object"),
        ('{"x": NaN}', "arguments that cannot be read: NaN is not a JSON number"),
        ('{"x": 1e400}', "arguments that cannot be read: 1e400 is too large a number"),
    ],
)
def test_broken_arguments_are_kept_with_what_is_wrong_with_them(text: str, problem: str) -> None:
    assembly = an_assembly()
    call = assembly.begin("a")
    assembly.name(call, "get_weather")
    assembly.add(call, text)
    assembly.finish(call)
    assert assembly.events[-1] == CallFinished("a", {}, text, problem)


def test_arguments_beyond_what_python_reads_are_broken_too() -> None:
    for text in ('{"a": ' + "9" * 5000 + "}", "[" * 100_000):
        arguments, problem = read_arguments(text)
        assert arguments == {}
        assert problem is not None
        assert problem.startswith("arguments that cannot be read")


def test_whole_arguments_at_the_end_replace_the_fragments() -> None:
    assembly = an_assembly()
    call = assembly.begin("a")
    assembly.name(call, "get_weather")
    assembly.add(call, '{"ci')
    assembly.finish(call, '{"city": "Oslo"}')
    assert assembly.events[-1] == CallFinished("a", {"city": "Oslo"})


def test_halves_of_a_character_in_different_fragments_come_together() -> None:
    assembly = an_assembly()
    call = assembly.begin("a")
    assembly.add(call, '{"city": "\ud83c')
    assembly.add(call, '\udf89"}')
    assembly.finish(call)
    assert assembly.events[-1] == CallFinished("a", {"city": "🎉"})


@given(json_objects.filter(is_json), st.lists(st.integers(0, 80), max_size=6), st.booleans())
def test_any_fragments_of_any_arguments_give_the_same_call(
    arguments: dict[str, object], cuts: list[int], ascii_only: bool
) -> None:
    text = json.dumps(arguments, ensure_ascii=ascii_only)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    assembly = an_assembly()
    call = assembly.begin("a")
    assembly.name(call, "get_weather")
    for start, end in itertools.pairwise(edges):
        assembly.add(call, text[start:end])
    assembly.finish_all()
    events = assembly.events
    shown = "".join(event.fragment for event in events if isinstance(event, CallArgumentsDelta))
    assert shown == text
    assert isinstance(events[-1], CallFinished)
    assert json.dumps(events[-1].arguments) == json.dumps(arguments)
