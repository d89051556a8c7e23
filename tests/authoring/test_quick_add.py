"""Requests that become cases: their names, the expectation that fits, and the line in which they are typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from tests.tui.apps import SMART_HOME
from workbench.authoring.form.field_text import CellError
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.quick_add import (
    Question,
    QuickAdd,
    Request,
    RequestKind,
    case_with_request,
    name_of,
    new_request,
    question_for,
    suite_to_run,
)
from workbench.config.secrets import NO_SECRETS
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import (
    CallFinished,
    CallStarted,
    Event,
    EventPayload,
    JsonValue,
    Message,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    RunFinished,
    RunStarted,
    ToolDefinition,
)
from workbench.trajectory.fold import fold
from workbench.trajectory.trajectory import Trajectory

PATH = Path("home.toml")
TOOLS = (
    ToolDefinition("set_lights", "", {"properties": {"room": {"type": "string"}, "brightness": {"type": "integer"}}}),
    ToolDefinition("set_tv", ""),
)
LIGHTS: tuple[str, dict[str, JsonValue]] = ("set_lights", {"room": "hall", "brightness": 20})
TV: tuple[str, dict[str, JsonValue]] = ("set_tv", {"power": "on"})


def opened_suite(text: str = SMART_HOME) -> OpenSuite:
    return OpenSuite(parse_suite(text, PATH))


def run_of(*answers: tuple[tuple[str, dict[str, JsonValue]], ...]) -> Trajectory:
    """A run with some calls in each answer, and a last answer without any."""
    asked = (Message("user", "Dim it"),)
    happened: list[EventPayload] = [RunStarted("hash", "dim-it", "Dim it", "m", None, asked, TOOLS)]
    for number, calls in enumerate((*answers, ()), 1):
        happened.append(RequestStarted(number))
        for at, (tool, arguments) in enumerate(calls):
            happened += [CallStarted(number, f"{number}-{at}", tool), CallFinished(f"{number}-{at}", arguments)]
        happened.append(ResponseFinished(number, "tool calls" if calls else "answered", None, None, 1.0))
        happened += [ResultReceived(f"{number}-{at}", "ok", False, "default", 1.0) for at in range(len(calls))]
    happened.append(RunFinished("answered"))
    return fold([Event("run", number, float(number), what) for number, what in enumerate(happened)])


def question_of(kind: RequestKind, *runs: Trajectory, text: str = SMART_HOME) -> Question:
    suite = opened_suite(text)
    request = new_request("Dim it", kind, suite, ())
    file = suite_to_run(suite, request.table)
    assert not isinstance(file, str) and file.suite is not None
    return question_for(request, file.suite, file.suite.cases[0], [("m", run) for run in runs], NO_SECRETS)


@pytest.mark.parametrize(
    ("request_text", "name"),
    [
        ("  Dim it.\nPlease", "Dim it"),
        ("...", "Request"),
        ("a" * 70, "a" * 60),
        ("word " * 20, " ".join(["word"] * 12)),
        ("Movie night", "Movie night 2"),
    ],
)
def test_a_case_is_named_after_its_request(request_text: str, name: str) -> None:
    assert name_of(request_text, {"Movie night"}) == name


def test_pending_requests_and_cases_share_no_id() -> None:
    suite = opened_suite()
    first = new_request("Lights off!", "calls expected", suite, ())
    second = new_request("Lights off!", "calls expected", suite, [first])
    assert len({"lights-off", first.case_id, second.case_id}) == 3
    assert case_with_request("Good night.", suite) == "Nothing to do"


EXPECTED_LIGHTS = {"tool": "set_lights", "args": {"room": "hall", "brightness": 20}}
EXPECTED_TV = {"tool": "set_tv", "args": {"power": "on"}}


@each_row(
    ("kind", "runs", "keys"),
    [
        ("calls expected", [run_of((LIGHTS,))], {"ordered": [EXPECTED_LIGHTS]}),
        ("calls expected", [run_of((LIGHTS, TV))], {"ordered": [{"any_order": [EXPECTED_LIGHTS, EXPECTED_TV]}]}),
        ("calls expected", [run_of((LIGHTS,), (TV,)), run_of((TV,), (LIGHTS,))], {"unordered"}),
        ("calls expected", [run_of((LIGHTS,)), run_of((TV,))], {"ordered": [EXPECTED_LIGHTS]}),
        ("calls expected", [run_of()], {"expect_no_calls": True}),
        ("no call", [run_of((LIGHTS,))], {"expect_no_calls": True}),
        ("chain", [run_of((LIGHTS, TV), (TV,))], {"steps": [{"user": "Dim it", **EXPECTED_LIGHTS}, EXPECTED_TV, {}]}),
    ],
)
def test_the_expectation_fits_the_runs(kind: RequestKind, runs: list[Trajectory], keys: object) -> None:
    case = question_of(kind, *runs).case
    assert "expect_nothing_yet" not in case
    if isinstance(keys, dict):
        assert {key: value for key, value in case.items() if key not in ("name", "user", "id")} == keys
    else:
        assert keys == case.keys() & {"ordered", "unordered"}


def test_a_call_that_is_left_out_is_allowed_where_it_would_fail_the_run() -> None:
    strict = SMART_HOME.replace("[[tools]]", '[grading]\nextra_calls = "forbid"\n\n[[tools]]', 1)
    question = question_of("calls expected", run_of((LIGHTS,), (TV,)), text=strict).moved(9).with_call_left_out()
    assert question.case["ordered"] == [EXPECTED_LIGHTS] and question.case["extra_calls"] == ["set_tv"]
    assert question.why_not is None
    assert question.with_call_left_out().case["ordered"] == [EXPECTED_LIGHTS, EXPECTED_TV]
    assert question.moved(-9).with_call_left_out().expects_no_call


def test_another_check_a_typed_value_and_a_typed_call_replace_the_proposed_ones() -> None:
    question = question_of("calls expected", run_of((LIGHTS,)))
    assert question.name_to_change == "room"
    similar = question.with_other_check(1)
    assert similar.case["ordered"] == [{"tool": "set_lights", "args": {"room": {"similar": "hall"}, "brightness": 20}}]
    typed = question.moved(1).changed("30", TOOLS)
    assert typed.case["ordered"] == [{"tool": "set_lights", "args": {"room": "hall", "brightness": 30}}]
    assert typed.why_not is not None
    call = question.moved(-9).changed("set_lights room='living room'", TOOLS)
    assert call.case["ordered"] == [{"tool": "set_lights", "args": {"room": "living room"}}]
    for text, why in {
        "": "write the name of the tool",
        "set_light": "did you mean",
        "set_lights x=1": "no argument x",
    }.items():
        with pytest.raises(CellError, match=why):
            question.moved(-9).changed(text, TOOLS)
    none = question_of("calls expected", run_of()).changed("set_lights", TOOLS)
    assert none.case["ordered"] == [{"tool": "set_lights"}]


@given(st.lists(st.sampled_from(["abc", "d", "", "up", "down", "enter", "kind", "end"]), max_size=30))
def test_no_typed_text_is_lost(steps: list[str]) -> None:
    state, suite, typed = QuickAdd(), opened_suite(), [""]
    for step in steps:
        match step:
            case "up" | "down":
                state.recall(1 if step == "up" else -1)
            case "enter":
                if state.text.strip():
                    state.add(Request(state.text, state.kind, suite.path, {"name": state.text}))
            case "kind":
                state.next_kind()
            case "end":
                if state.requests:
                    state.requests[0].state = "failed"
                    state.show_result()
                    assert not (state.is_open and state.text)
                    state.drop()
            case text:
                state.type(state.text + text)
                typed.append(state.text)
    last = typed[-1].strip()
    assert not last or any(last in text for text in (state.text, state._typed, *state.recent))
