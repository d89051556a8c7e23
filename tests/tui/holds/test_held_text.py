"""The text typed for a held run: its initial value, its problems, and its effect."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results import result
from workbench.engine.checkpoint import AddMessage, AnswerCall, AnswerQuestion, EditArguments, EditResult
from workbench.engine.plan import plan_runs
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import (
    CallEdited,
    CallFinished,
    CallStarted,
    Event,
    EventPayload,
    HoldPlace,
    JsonValue,
    Paused,
    RequestStarted,
    ResultReceived,
    Resumed,
    RunStarted,
    ServerAsked,
    ToolDefinition,
)
from workbench.tui.holds.held_editor import HeldText, text_for
from workbench.tui.run_book.record import RunRecord

SUITE = parse_suite('format = 1\nname = "S"\n\n[[cases]]\nname = "Dim"\nuser = "Dim."\n', Path("s.toml"))
TOOL = ToolDefinition(
    "set_lights", "", {"type": "object", "properties": {"brightness": {"type": "integer"}}, "required": ["brightness"]}
)
CALL = CallFinished("c1", {"brightness": 60, "room": "Küche"})


def held(*happenings: EventPayload, at: HoldPlace = "call", call: CallFinished = CALL) -> RunRecord:
    """A run that is held at a call of set_lights."""
    record = RunRecord(plan_runs([SUITE])[0])
    whats = [
        RunStarted("hash", "dim", "Dim", "offline", None, (), (TOOL,)),
        RequestStarted(1),
        CallStarted(1, "c1", "set_lights"),
        call,
        *happenings,
        Paused("step by step", "c1", at, 1),
    ]
    for number, what in enumerate(whats):
        record.add(Event(record.run_id, number, 0.0, what))
    return record


def go_on(record: RunRecord) -> None:
    record.add(Event(record.run_id, len(record.events), 0.0, Resumed(1.0)))


def said(text: HeldText, typed: str) -> list[tuple[str, int | None, str]]:
    return [(problem.severity, problem.line, problem.message) for problem in text.problems(typed)]


def test_the_arguments_stand_there_as_they_would_be_sent() -> None:
    assert text_for(held(), "arguments").original == '{\n  "brightness": 60,\n  "room": "Küche"\n}'
    edited = CallEdited("c1", {"brightness": 5}, CALL.arguments)
    assert text_for(held(edited), "arguments").original == '{\n  "brightness": 5\n}'


def test_what_the_model_wrote_stands_there_where_that_is_no_json() -> None:
    broken = CallFinished("c1", {}, '{"brightness": ', "not JSON")
    text = text_for(held(call=broken), "arguments")
    assert text.original == '{"brightness": '
    assert not text.is_unchanged('{"brightness": 1}', False)


def test_mistakes_are_shown_with_line_and_column() -> None:
    text = text_for(held(), "arguments")
    assert said(text, '{\n  "brightness": 5,,\n}') == [
        ("error", 2, "column 19: expecting property name enclosed in double quotes")
    ]
    assert said(text, "[1]") == [("error", None, "arguments must be a JSON object: write { and } around them")]
    assert text.mistake_at('{\n  "brightness": 5,,\n}') == (1, 18)


@pytest.mark.parametrize(
    ("typed", "line", "message"),
    [
        ('{"brightness": NaN}', 1, "column 16: there is no NaN in JSON"),
        ('{"a": [1,\n -1e400]}', 2, "column 2: too large a number"),
        ('{"a": ' + "9" * 5000 + "}", 1, "column 7: too large a number"),
        ('{"room": "a",\n "r\\u006fom": "b"}', 2, "column 2: this key is already in the object"),
        ('{"a": 1e400, "b": }', 1, "column 19: expecting value"),
    ],
)
def test_what_json_leaves_open_is_refused_with_its_place(typed: str, line: int, message: str) -> None:
    assert said(text_for(held(), "arguments"), typed) == [("error", line, message)]


def test_a_key_can_stand_in_several_objects_and_in_texts() -> None:
    large = "9" * 400
    typed = (
        '{"brightness": 1, "b": {"brightness": "brightness\\": {"}, "c": [{"b": 1}, {"b": -1.5e3}], "d": ' + large + "}"
    )
    assert not [each for each in said(text_for(held(), "arguments"), typed) if each[0] == "error"]


def test_what_the_schema_refuses_is_a_warning_and_can_be_sent() -> None:
    text = text_for(held(), "arguments")
    (warning,) = said(text, '{"brightness": "much"}')
    assert warning == ("warning", None, "args.brightness: 'much' is not of type 'integer'")
    assert text.command('{"brightness": "much"}', False) == EditArguments({"brightness": "much"})


def test_other_blanks_are_no_other_arguments_and_another_type_of_number_is() -> None:
    text = text_for(held(), "arguments")
    assert text.is_unchanged('{"brightness":60,"room":"Küche"}', False)
    assert not text.is_unchanged('{"brightness":60.0,"room":"Küche"}', False)


@given(st.text(), st.booleans())
def test_a_result_is_given_to_the_run_as_it_is_typed(typed: str, is_error: bool) -> None:
    record = held(ResultReceived("c1", "dimmed", False, "default", 1.0), at="result")
    text = text_for(record, "result")
    assert (text.original, text.is_error) == ("dimmed", False)
    assert text.problems(typed) == ()
    assert text.command(typed, is_error) == EditResult(typed, is_error)
    assert text.is_unchanged(typed, is_error) == ((typed, is_error) == ("dimmed", False))


def test_an_answer_begins_empty_and_may_be_empty() -> None:
    text = text_for(held(), "answer")
    assert (text.original, text.title) == ("", "Answer in place of set_lights")
    assert text.command("", True) == AnswerCall("", True)


def test_a_message_needs_a_text() -> None:
    text = text_for(held(), "message")
    assert said(text, " \n") == [("error", None, "there is nothing to say yet")]
    assert text.command("Wait.", False) == AddMessage("Wait.")


def test_nothing_is_sent_to_a_run_that_went_on_or_is_over() -> None:
    record = held()
    arguments, message = text_for(record, "arguments"), text_for(record, "message")
    go_on(record)
    assert arguments.why_not_sendable == message.why_not_sendable == "the run has continued"
    record.add(Event(record.run_id, len(record.events), 0.0, Paused("step by step", "c1", "result", 1)))
    assert arguments.why_not_sendable == "the run has moved on to another stop"
    assert message.why_not_sendable is None
    assert message.target_hold == record.hold == len(record.events) - 1
    record.finish(result("stopped"))
    assert message.why_not_sendable == "the run has finished"


@pytest.mark.parametrize(("call_id", "at"), [("c1", "call"), ("c2", "call"), ("c1", "result")])
def test_what_is_typed_for_one_stop_is_for_no_other_whatever_is_called_there(call_id: str, at: HoldPlace) -> None:
    record = held()
    arguments = text_for(record, "arguments")
    assert (arguments.why_not_sendable, arguments.target_hold) == (None, record.hold)
    go_on(record)
    record.add(Event(record.run_id, len(record.events), 0.0, Paused("step by step", call_id, at, 1)))
    assert arguments.why_not_sendable == "the run has moved on to another stop"
    assert arguments.target_hold != record.hold


@pytest.mark.parametrize(
    ("size", "why"), [("x" * 30_000, "a line of 30,000 characters"), ("\n" * 6_000, "6,001 lines")]
)
def test_a_result_too_large_to_type_in_says_so(size: str, why: str) -> None:
    record = held(ResultReceived("c1", size, False, "default", 1.0), at="result")
    assert why in (text_for(record, "result").too_large or "")


FORM: JsonValue = {"type": "object", "properties": {"size": {"type": "integer", "default": 9}}, "required": ["size"]}
SIZE: dict[str, JsonValue] = {"requestedSchema": FORM}


@pytest.mark.parametrize(
    ("asked", "original", "typed", "command", "mistakes"),
    [
        (
            ServerAsked("c1", "set_lights", "shop", "elicitation", "Size?", SIZE, "decline", "nobody"),
            '{\n  "size": 9\n}',
            '{"size": 7}',
            AnswerQuestion("accept", {"size": 7}),
            [('{"size": "big"}', "content.size: 'big' is not of type 'integer'"), ("{", "column 2")],
        ),
        (
            ServerAsked("c1", "set_lights", "shop", "sampling", "2+2?", {}, "accept", "case", text="four"),
            "four",
            "five",
            AnswerQuestion("accept", text="five"),
            [],
        ),
    ],
)
def test_a_reply_to_a_server_begins_with_that_of_the_case_and_must_fit(
    asked: ServerAsked, original: str, typed: str, command: AnswerQuestion, mistakes: list[tuple[str, str]]
) -> None:
    record = held()
    record.add(Event(record.run_id, len(record.events), 0.0, Resumed(1.0)))
    paused = Paused("step by step", "c1", "question", 1, asked)
    record.add(Event(record.run_id, len(record.events), 0.0, paused))
    text = text_for(record, "reply")
    assert (text.original, text.title) == (original, "Reply to shop")
    assert text.problems(typed) == ()
    assert text.command(typed, False) == command
    for wrong, why in mistakes:
        ((severity, _, message),) = said(text, wrong)
        assert severity == "error"
        assert why in message
