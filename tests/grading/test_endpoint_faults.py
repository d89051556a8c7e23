"""Faults of an endpoint fail a run under every grader and are named as the endpoint's. Answers that were cut off or
refused are named too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.tables import each_row
from tests.trajectories import trajectory_of
from workbench.analysis.failures import failures_of
from workbench.analysis.totals import totals_of
from workbench.grading.endpoint_faults import (
    BROKEN_CALL_AS_TEXT,
    CALL_AS_TEXT,
    CALLS_NEVER_ARRIVED,
    NAME_LOST,
    NAME_RESIDUE,
    SENT_SEVERAL_TIMES,
    TOOLS_NEVER_ARRIVED,
    broken_call_in_text,
)
from workbench.grading.grade import GradingError, RunResult
from workbench.grading.run import graded_run
from workbench.grading.run_summary import is_endpoint_fault, summary_of
from workbench.limits import CUT_OFF_REMEDY
from workbench.suite.grading_model import GRADERS
from workbench.suite.model import Case, Suite
from workbench.suite.settings import settings_of
from workbench.trajectory.events import (
    FinishReason,
    JsonValue,
    RunFinished,
    RunStarted,
    StopReason,
    ToolCall,
    ToolDefinition,
    Usage,
)
from workbench.trajectory.trajectory import Round, Trajectory

SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "required": ["city"],
    "properties": {"city": {"type": "string"}, "temperature_unit": {"type": "string"}, "days": {"type": "integer"}},
}
LONG = "Tells the weather of a city for the next days, with temperature, wind and rain, from the national service."
TOOLS = (ToolDefinition("get_weather", LONG, SCHEMA), ToolDefinition("list_all", "Lists all known cities.", {}))
TEXT_CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
CALLED: dict[str, Any] = {"ordered": [{"tool": "get_weather", "args": {"city": "Oslo"}}]}
SILENT: dict[str, Any] = {"expect_no_calls": True}
GOOD = ("get_weather", {"city": "Oslo"})


def case_of(**keys: Any) -> Case:
    return Case.model_validate({"name": "case", "user": "go", **keys})


def answered(text: str, stop: StopReason = "answered", usage: Usage | None = None) -> Trajectory:
    """A run of one answer."""
    reason: FinishReason = "answered" if stop == "tool calls" else stop
    made = trajectory_of(tools=TOOLS)
    round_ = Round(1, text=text, stop_reason=stop, usage=usage)
    return replace(made, rounds=(round_,), finish=RunFinished(reason))


def broken(raw: str, stop: StopReason = "tool calls") -> Trajectory:
    made = trajectory_of(ToolCall("c", "get_weather", {}, raw, "no JSON object"), answer="Done.", tools=TOOLS)
    first = replace(made.rounds[0], stop_reason=stop, usage=Usage(50, 7))
    cut_off = stop == "truncated"
    rounds = (first,) if cut_off else (first, *made.rounds[1:])
    return replace(made, rounds=rounds, finish=RunFinished("truncated" if cut_off else "answered"))


def result_of(case: Case, trajectory: Trajectory, by: str = "critics", **gate: Any) -> RunResult:
    suite = Suite.model_validate({"format": 1, "name": "suite", "cases": [case], "grading": {"by": by}, "gate": gate})
    graded = graded_run(suite, case, trajectory)
    grading = settings_of(suite, case).grading
    whole = (graded.status, trajectory, graded.grades)
    return RunResult("run", "suite.toml", case.id, case.name, "model", 0, *whole, steps=graded.steps, grading=grading)


def prompt_of(tokens: int, text: str = "I cannot know that.") -> Trajectory:
    return answered(text, usage=Usage(tokens, 5))


FAULTS = {
    "in the answer": (answered(TEXT_CALL), CALL_AS_TEXT),
    "cut off after it": (answered(TEXT_CALL, "truncated"), CALL_AS_TEXT),
    "before an answer": (
        replace(
            trajectory_of(GOOD, answer="It is sunny.", tools=TOOLS),
            rounds=(
                Round(1, text=TEXT_CALL.replace("Oslo", "Rome"), stop_reason="answered"),
                Round(2, text="It is sunny.", stop_reason="answered"),
            ),
        ),
        CALL_AS_TEXT,
    ),
    "beside another call": (
        replace(
            trajectory_of(GOOD, tools=TOOLS),
            rounds=tuple(
                replace(each, text='<tool_call>{"name": "list_all", "arguments": {}}' if each.calls else "Done.")
                for each in trajectory_of(GOOD, tools=TOOLS).rounds
            ),
        ),
        CALL_AS_TEXT,
    ),
    "at the end of thoughts without an answer": (
        replace(
            answered(""), rounds=(Round(1, text="", reasoning=f"I need it.\n{TEXT_CALL}", stop_reason="answered"),)
        ),
        CALL_AS_TEXT,
    ),
    "small prompt": (prompt_of(20), TOOLS_NEVER_ARRIVED),
    "residue": (trajectory_of(("get_weather<|channel|>commentary", {"city": "Oslo"}), tools=TOOLS), NAME_RESIDUE),
    "no name": (trajectory_of(("", {"city": "Oslo"}), tools=TOOLS), NAME_LOST),
    "two objects": (broken('{"city": "Oslo"}{"city": "Rome"}'), SENT_SEVERAL_TIMES),
    "a call in the answer that is not JSON": (answered(TEXT_CALL.replace('"}}', "}}")), BROKEN_CALL_AS_TEXT),
    "an unfinished call in the answer": (answered(f"Let me look.\n{TEXT_CALL[:-20]}"), BROKEN_CALL_AS_TEXT),
    "announced calls without any": (answered("", "tool calls"), CALLS_NEVER_ARRIVED),
    "announced calls after words": (answered("Let me look.", "tool calls"), CALLS_NEVER_ARRIVED),
    "announced calls in the text": (answered(TEXT_CALL, "tool calls"), CALL_AS_TEXT),
    "an object after its beginnings": (broken('{"city{"city": "Os{"city": "Oslo"}'), SENT_SEVERAL_TIMES),
}


@pytest.mark.parametrize("by", GRADERS)
@pytest.mark.parametrize("expected", [CALLED, SILENT], ids=["a call", "no call"])
@pytest.mark.parametrize(("trajectory", "why"), FAULTS.values(), ids=FAULTS)
def test_a_fault_fails_the_run_and_is_its_only_cause(
    trajectory: Trajectory, why: str, expected: dict[str, Any], by: str
) -> None:
    case = case_of(**expected)
    run = result_of(case, trajectory, by)
    assert run.status == "failed"
    assert (run.reason or "").startswith(f"endpoint fault: {why}")
    assert is_endpoint_fault(run) and is_endpoint_fault(summary_of(run)) and run.is_broken
    assert run.grades[0].issues[0].kind == "endpoint fault"
    assert [failed.causes for failed in failures_of([(run, case)]).runs] == [("endpoint",)]
    assert totals_of([run]).endpoint_faults == 1


@each_row(
    "trajectory",
    [
        prompt_of(400),
        prompt_of(1),
        replace(prompt_of(20), start=trajectory_of(tools=TOOLS[1:]).start),
        replace(prompt_of(20), start=RunStarted("hash", "case", "Case", "model", "long " * 100, (), TOOLS)),
        replace(prompt_of(20), rounds=(replace(prompt_of(20).rounds[0], replayed=True),)),
        replace(answered(""), rounds=(Round(1, text=TEXT_CALL, stop_reason="tool calls", replayed=True),)),
        answered(f"<think>{TEXT_CALL}</think>It is sunny."),
        answered(f"Hermes writes this:\n```xml\n{TEXT_CALL}\n```\nOthers differ."),
        answered("It is sunny."),
        answered('Write <tool_call>{"name": "get_weather", "arguments": …}</tool_call> to call it.'),
        answered(TEXT_CALL[:-20], "truncated"),
        answered(TEXT_CALL.replace("get_weather", "get_rain").replace('"}}', "}}")),
        replace(answered(TEXT_CALL), start=trajectory_of().start),
        trajectory_of(("list", {}), tools=TOOLS),
        replace(answered(""), rounds=(Round(1, stop_reason="tool calls", not_offered=trajectory_of(GOOD).calls),)),
        broken('{"city": "Os'),
        broken('["Oslo"]'),
        broken('{"city": "Oslo"}{"city": "R', "truncated"),
    ],
)
def test_what_is_no_fault_of_an_endpoint_is_not_called_one(trajectory: Trajectory) -> None:
    assert not is_endpoint_fault(result_of(case_of(**CALLED), trajectory))


def test_a_call_that_is_repeated_in_the_text_is_no_fault() -> None:
    made = trajectory_of(GOOD, answer="Done.", tools=TOOLS)
    rounds = (replace(made.rounds[0], text=TEXT_CALL), *made.rounds[1:])
    assert result_of(case_of(**CALLED), replace(made, rounds=rounds)).status == "passed"


def test_a_gate_takes_faults_out_and_regrading_without_it_brings_them_back() -> None:
    case = case_of(**CALLED)
    with pytest.raises(GradingError, match=r"^endpoint fault: the endpoint returned the call as text") as raised:
        result_of(case, answered(TEXT_CALL), endpoint_faults="error")
    assert '(got get_weather(city="Oslo")): turn on the tool parser' in str(raised.value)
    assert result_of(case, answered("No."), endpoint_faults="error").status == "failed"
    assert result_of(case, answered(TEXT_CALL), endpoint_faults="fail").status == "failed"


def test_a_call_as_text_fails_its_step_of_a_chain() -> None:
    steps = [{"user": "go", "tool": "list_all"}, {"user": "and", "tool": "get_weather", "args": {"city": "Oslo"}}]
    case = Case.model_validate({"name": "chain", "steps": steps})
    listed = trajectory_of(("list_all", {}), tools=TOOLS).rounds[0]
    made = replace(
        answered(""),
        rounds=(listed, Round(2, text=TEXT_CALL, stop_reason="answered")),
        finish=RunFinished("steps done"),
    )
    run = result_of(case, made)
    assert [step.status for step in run.steps] == ["passed", "failed"]
    assert run.steps[1].why == f"endpoint fault: {CALL_AS_TEXT}"
    assert [failed.causes for failed in failures_of([(run, case)]).runs] == [("endpoint",)]


@pytest.mark.parametrize("by", GRADERS)
@pytest.mark.parametrize(
    ("trajectory", "cause", "reason"),
    [
        (answered("It is", "truncated", Usage(90, 16)), "cut off", f"cut off after 16 tokens: {CUT_OFF_REMEDY}"),
        (answered("", "truncated", Usage(90, 1)), "cut off", f"cut off after 1 token: {CUT_OFF_REMEDY}"),
        (answered("It is", "truncated"), "cut off", f"cut off at the token limit: {CUT_OFF_REMEDY}"),
        (broken('{"city": "Os', "truncated"), "cut off", f"cut off after 7 tokens: {CUT_OFF_REMEDY}"),
        (answered("I cannot help.", "refused"), "refused", "refused: the model, or a content filter"),
        (answered("", "refused"), "refused", "refused: the model, or a content filter"),
    ],
)
def test_an_unfinished_answer_is_the_reason_and_the_only_cause(
    trajectory: Trajectory, cause: str, reason: str, by: str
) -> None:
    case = case_of(**CALLED, response_contains=["sun"])
    run = result_of(case, trajectory, by)
    assert (run.reason or "").startswith(reason)
    assert [failed.causes for failed in failures_of([(run, case)]).runs] == [(cause,)]
    got = next(issue.got for issue in run.grades[0].issues if issue.kind == "response")
    assert got is not None and "no final answer" not in got


def test_a_run_that_passed_although_it_was_cut_off_says_so() -> None:
    run = result_of(case_of(**SILENT), answered("It is", "truncated"))
    assert (run.status, run.reason, run.has_notices) == ("passed", None, True)
    assert run.trajectory.notices == (f"an answer was cut off at the token limit: {CUT_OFF_REMEDY}",)
    assert [issue.kind for issue in run.grades[0].issues] == ["cut off"]


@pytest.mark.parametrize("end", ["", "</tool_call>", "</tool_calls> so", "."])
def test_many_blanks_in_an_unfinished_call_take_no_time(end: str) -> None:
    began = '<tool_call>{"name": "get_weather", "arguments":'
    found = broken_call_in_text(f"{began}{' ' * 40_000}{end}", TOOLS)
    assert (found is None) == ("so" in end)


def test_a_broken_call_may_follow_a_whole_call() -> None:
    whole = '<tool_call>{"name": "get_weather", "arguments": {}}</tool_call>'
    broken = '{"name": "get_weather", "arguments": {"city": "Oslo"'
    assert broken_call_in_text(f"{whole}\n<tool_call>\n{broken}\n</tool_call>\n", TOOLS) == broken
