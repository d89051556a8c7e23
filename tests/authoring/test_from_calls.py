"""Calls of a run that become a mock or an expectation of its case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.authoring.edited_suite import EditedCase
from workbench.authoring.form.field_text import items_at
from workbench.authoring.from_calls import Addition, expectation_of_call, index_of_call, mock_of_call
from workbench.grading.run import grade_run
from workbench.suite.settings import settings_of
from workbench.trajectory.events import (
    JsonValue,
    ResultReceived,
    ResultSource,
    RunFinished,
    RunStarted,
    StepStarted,
    ToolCall,
)
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

HEAD = 'format = 1\nname = "S"\n\n[[tools]]\nname = "dim"\n\n[[tools]]\nname = "lock"\n\n[[cases]]\nname = "One"\n'
PLAIN = 'user = "Go."\n'
CHAIN = '[[cases.steps]]\nuser = "Go."\ntool = "dim"\n\n[[cases.steps]]\ntool = "lock"\nmock_result = "locked"\n'
Arguments = Mapping[str, JsonValue]


class Edited(EditedCase):
    """The only case of a suite, with the changes that are applied to it."""

    def __init__(self, case: str) -> None:
        super().__init__(HEAD + case)

    def take(self, taken: Addition | None) -> str:
        assert taken is not None
        self.text = self.text.with_case(0, taken.table)
        return taken.summary

    def expect(self, trajectory: Trajectory, index: int = 0) -> Addition | None:
        suite = self.suite
        return expectation_of_call(self.case, settings_of(suite, self.case), self.table, trajectory, index)


def called(
    tool: str,
    arguments: Arguments,
    result: str | None = "done",
    *,
    edited: Arguments | None = None,
    source: ResultSource = "default",
    is_error: bool = False,
    number: int = 1,
) -> CallRecord:
    answer = ResultReceived(f"c{number}", result, is_error, source, 1.0) if result is not None else None
    return CallRecord(ToolCall(f"c{number}", tool, arguments), number, True, None, answer, edited)


def ran(*calls: CallRecord, chain: bool = False) -> Trajectory:
    """A run with one call in each round, which in a chain are steps."""
    rounds = [
        Round(at, calls=(call,), stop_reason="tool calls", step=StepStarted(at) if chain else None)
        for at, call in enumerate(calls, 1)
    ]
    return Trajectory("run", RunStarted("hash", "one", "One", "model", None, (), ()), tuple(rounds))


def test_a_mock_answers_the_arguments_that_the_model_wrote_with_the_result_it_read_in_the_end() -> None:
    edited = Edited(PLAIN)
    run = ran(called("dim", {"to": 60}, "dimmed to 5", edited={"to": 5}, source="case mock"))
    said = edited.take(mock_of_call(edited.table, run, 0))
    (mock,) = edited.case.mocks
    assert (mock.tool, mock.result) == ("dim", "dimmed to 5")
    assert edited.table["mocks"] == [{"tool": "dim", "when": {"to": 60}, "result": "dimmed to 5"}]
    assert said == "Mock of dim, for the arguments as the model wrote them"


def test_a_call_that_was_skipped_is_mocked_by_the_result_that_was_written_for_it() -> None:
    edited = Edited(PLAIN)
    call = called("dim", {}, "dimmed", source="skipped")
    edited.take(mock_of_call(edited.table, ran(replace(call, unedited=call.result)), 0))
    assert edited.table["mocks"] == [{"tool": "dim", "result": "dimmed"}]


def test_a_tool_error_becomes_a_mock_that_is_one() -> None:
    edited = Edited(PLAIN)
    edited.take(mock_of_call(edited.table, ran(called("dim", {}, "no power", is_error=True, source="edited")), 0))
    assert edited.table["mocks"] == [{"tool": "dim", "error": "no power"}]


def test_braces_that_a_mock_leaves_alone_come_back_as_they_are() -> None:
    edited = Edited(PLAIN)
    for text, is_error in (("dimmed to {level}", False), ("cannot dim to {to}", True)):
        edited.take(mock_of_call(edited.table, ran(called("dim", {"to": 1}, text, is_error=is_error)), 0))
        (mock,) = edited.case.mocks
        assert (mock.error if is_error else mock.result) == text


def test_the_same_mock_again_changes_nothing() -> None:
    edited = Edited(PLAIN)
    run = ran(called("dim", {"to": 60}))
    edited.take(mock_of_call(edited.table, run, 0))
    assert mock_of_call(edited.table, run, 0).table == edited.table


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (called("dim", {}, None), "dim has no answer yet: press s to step to it"),
        (called("dim", {}, source="skipped"), "dim was skipped, so there is no result for a mock"),
        (
            replace(called("dim", {}), call=ToolCall("c1", "dim", {}, "{", "not JSON")),
            "the model wrote invalid arguments for dim: choose another call",
        ),
        *(
            (
                called("dim", {"to": 1}, text),
                "the answer contains {to}, which a mock would replace by that argument: only a mock with .* unchanged",
            )
            for text in ("dimmed to {to}", '{"dimmed":["{to}"]}')
        ),
    ],
)
def test_what_cannot_become_a_mock_says_why(call: CallRecord, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        mock_of_call(Edited(PLAIN).table, ran(call), 0)


def test_a_call_of_a_chain_becomes_the_mock_of_its_step() -> None:
    edited = Edited(CHAIN)
    run = ran(called("dim", {"to": 1}), called("lock", {}, "jammed", number=2), chain=True)
    assert edited.take(mock_of_call(edited.table, run, 1)) == "Mock of lock in step 2"
    assert [step.mock_result for step in edited.case.steps] == [None, "jammed"]


def test_a_call_is_expected_as_it_was_sent_in_the_place_of_what_was_expected() -> None:
    edited = Edited(PLAIN + '[[cases.ordered]]\ntool = "dim"\nargs = { to = 30, fade = { range = [1, 3] } }\n')
    run = ran(called("dim", {"to": 60, "fade": 2}, edited={"to": 5, "fade": 2}))
    said = edited.take(edited.expect(run))
    assert edited.table["ordered"] == [{"tool": "dim", "args": {"to": 5, "fade": {"range": [1, 3]}}}]
    assert said == "dim is expected as it was sent, in place of the earlier expectation"


def test_a_call_that_no_expectation_asks_for_is_one_more() -> None:
    edited = Edited(PLAIN + '[[cases.ordered]]\ntool = "dim"\nargs = { to = 30 }\n')
    said = edited.take(edited.expect(ran(called("lock", {"door": "front"}))))
    assert [call.tool for call in edited.case.expected_calls()] == ["dim", "lock"]
    assert said == "lock is expected as it was sent, as one more call"


def test_what_the_case_expects_already_is_no_change() -> None:
    edited = Edited(PLAIN + '[[cases.ordered]]\ntool = "dim"\nargs = { to = { range = [1, 9] } }\n')
    assert edited.expect(ran(called("dim", {"to": 60}, edited={"to": 5}))) is None


def test_a_call_of_a_chain_goes_into_its_step() -> None:
    edited = Edited(CHAIN)
    run = ran(called("dim", {"to": 60}, edited={"to": 5}), called("lock", {}, number=2), chain=True)
    assert edited.take(edited.expect(run)) == "Step 1 expects dim as it was sent"
    assert items_at(edited.table, ("steps",))[0] == {"user": "Go.", "tool": "dim", "args": {"to": 5}}


def test_the_model_that_sends_it_so_next_time_passes() -> None:
    edited = Edited(PLAIN + '[[cases.ordered]]\ntool = "dim"\nargs = { to = 30 }\n')
    edited.take(edited.expect(ran(called("dim", {"to": 60}, edited={"to": 5}))))
    again = replace(ran(called("dim", {"to": 5})), finish=RunFinished("answered"))
    assert grade_run(edited.suite, edited.case, again)[1] == "passed"


def test_a_call_that_was_set_aside_is_not_among_those_of_the_run() -> None:
    run = ran(called("dim", {}))
    assert index_of_call(run, "c1") == 0
    with pytest.raises(ValueError, match="this call was superseded"):
        index_of_call(run, "c9")
