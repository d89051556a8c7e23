"""Runs held at breakpoints: the places, the words, and the requests to judges."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.engine.scripted import Say, ScriptedModel
from tests.programs import approval_of, program_of
from tests.providers.server import MARK
from workbench.config.models import ModelSpec
from workbench.config.secrets import NO_SECRETS
from workbench.engine.breakpoints import Breakpoint, breakpoint_of
from workbench.engine.checkpoint import HoldPlace, HoldPoint
from workbench.engine.events import BatchEvent, RunDone, RunEvent
from workbench.engine.judges import JudgeAccess, JudgementCache, RunJudge
from workbench.engine.plan import plan_runs
from workbench.engine.planned_run import RunContext, RunGrading, run_planned
from workbench.engine.stepper import Steppers
from workbench.grading.grade import RunResult
from workbench.suite.suite_file import parse_suite
from workbench.tools.server_pool import ServerPool
from workbench.trajectory.events import JsonValue, Paused, ToolCall
from workbench.trajectory.trajectory import CallRecord, Trajectory

HOME = """
format = 1
name = "Home"
tools = [
  { name = "set_lights" },
  { name = "get_lights", annotations = { readOnlyHint = true } },
  { name = "send_email" },
]
mocks = [{ tool = "send_email", error = "the mailbox is full" }]
"""
EVENING = """
[[cases]]
name = "Evening"
user = "Dim the lights."
disallowed = [{ tool = "send_email" }]
ordered = [{ tool = "set_lights", args = { room = "hall", brightness = { range = [5, 40] } } }]
"""
CHAIN = """
[[cases]]
name = "Chain"
[[cases.steps]]
user = "Look."
tool = "get_lights"
[[cases.steps]]
user = "Now dim them."
tool = "set_lights"
args = { room = "hall" }
"""

Calls = Sequence[tuple[str, dict[str, JsonValue]]]
DARK: Calls = [("set_lights", {"room": "hall", "brightness": 20})]
BRIGHT: Calls = [("set_lights", {"room": "hall", "brightness": 60})]


@dataclass
class Held:
    """A finished run: the reasons of its holds, the calls, results or requests at them, and its result."""

    why: list[str] = field(default_factory=list)
    at: list[str] = field(default_factory=list)
    results: list[RunResult] = field(default_factory=list)
    judge: RunJudge | None = None


async def held(
    folder: Path,
    *breakpoints: str | Breakpoint,
    calls: Sequence[Calls] = (BRIGHT,),
    case: str = EVENING,
    trusted: bool = True,
    judge_says: Sequence[str] | None = None,
) -> Held:
    """Run a model that makes calls round by round, and continue the run at every hold."""
    (planned,) = plan_runs([parse_suite(HOME + case, folder / "home.toml")], models=["scripted"])
    steppers = Steppers(lambda _event: None)
    steppers.breakpoints = tuple(breakpoint_of(each) if isinstance(each, str) else each for each in breakpoints)
    found = Held()
    spec = ModelSpec("judge", "openai", "judge", "http://nowhere.invalid")
    judging = ScriptedModel([Say(text) for text in judge_says or ()])
    cache = JudgementCache(folder / "judgements.jsonl", NO_SECRETS)
    found.judge = RunJudge(lambda _check: spec, cache, JudgeAccess(lambda _spec: judging))

    def listen(event: BatchEvent) -> None:
        if isinstance(event, RunDone):
            found.results.append(event.result)
        if isinstance(event, RunEvent) and isinstance(event.event.payload, Paused):
            found.why.append(event.event.payload.why)
            found.at.append(f"{event.event.payload.at} {event.event.payload.round}")
            asyncio.get_running_loop().call_soon(steppers.continue_until, planned.run_id, "end", event.event.sequence)

    steppers.prepare([planned], "end")
    program = program_of(folder)
    context = RunContext(
        listener=listen,
        servers=ServerPool(program),
        open_model=lambda _planned: ScriptedModel([*(Say(calls=each) for each in calls), Say("Done.")]),
        grant_of=approval_of([planned], program, trusted=trusted).grant,
        judge_of=lambda _planned: found.judge if judge_says is not None else None,
        control_of=steppers.begin,
    )
    await run_planned(planned, context)
    return found


@pytest.mark.parametrize(
    ("line", "at", "why"),
    [
        ("tool set_lights", "call 1", "tool set_lights"),
        (
            "tool set_lights when { brightness = { range = [50, 100] } }",
            "call 1",
            "tool set_lights, brightness 60",
        ),
        ("round 2", "request 2", "round 2"),
        ("not-read-only", "call 1", "set_lights is not marked read-only"),
        ("failed-check", "call 1", "brightness 60 fails range 5..40"),
        ("failed-check set_lights", "call 1", "brightness 60 fails range 5..40"),
    ],
)
async def test_a_run_is_held_where_the_breakpoint_says(tmp_path: Path, line: str, at: str, why: str) -> None:
    found = await held(tmp_path, line)
    assert (found.at, found.why) == ([at], [f"breakpoint: {why}"])


@pytest.mark.parametrize(
    "line",
    [
        "tool send_email",
        "tool set_lights when { brightness = 61 }",
        "tool set_lights when { colour = { present = true } }",
        "round 3",
        "error",
        "failed-check send_email",
    ],
)
async def test_a_run_passes_where_the_breakpoint_does_not_say(tmp_path: Path, line: str) -> None:
    assert (await held(tmp_path, line)).why == []


async def test_a_breakpoint_that_is_off_holds_nothing(tmp_path: Path) -> None:
    assert (await held(tmp_path, Breakpoint("tool", "set_lights", enabled=False))).why == []


async def test_results_that_are_errors_hold_a_run_after_them(tmp_path: Path) -> None:
    mail: Calls = [("send_email", {}), ("set_lights", {})]
    found = await held(tmp_path, "error", calls=[mail])
    assert (found.at, found.why) == (["result 1"], ["breakpoint: error of send_email"])
    assert (await held(tmp_path, "error set_lights", calls=[mail])).why == []


async def test_a_tool_that_is_marked_read_only_is_passed_by(tmp_path: Path) -> None:
    calls: Calls = [("get_lights", {}), ("no_such_tool", {})]
    assert (await held(tmp_path, "not-read-only", calls=[calls])).why == [
        "breakpoint: no_such_tool is not marked read-only"
    ]


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        ([("set_lights", {"room": "hall"})], "brightness is not given"),
        ([("set_lights", {"room": "attic", "brightness": 20})], 'room "attic" is not "hall"'),
        ([("send_email", {})], "send_email: this call must not be made"),
    ],
)
async def test_a_failed_check_is_named(tmp_path: Path, calls: Calls, why: str) -> None:
    assert (await held(tmp_path, "failed-check", calls=[calls])).why == [f"breakpoint: {why}"]


async def test_calls_that_fail_nothing_are_passed_by_and_so_are_those_before_one_that_does(tmp_path: Path) -> None:
    found = await held(tmp_path, "failed-check", calls=[[*DARK, ("get_lights", {})], [("send_email", {})]])
    assert found.at == ["call 2"]


@pytest.mark.parametrize("by", ["critics", "decision", "accuracy", "trajectory", "dimensions"])
async def test_a_failed_check_is_found_whatever_grader_decides(tmp_path: Path, by: str) -> None:
    found = await held(tmp_path, "failed-check", case=f'{EVENING}\ngrading = {{ by = "{by}" }}\n')
    assert found.why == ["breakpoint: brightness 60 fails range 5..40"]


async def test_a_chain_is_held_at_the_call_by_which_a_step_fails(tmp_path: Path) -> None:
    calls: list[Calls] = [[("get_lights", {})], [("send_email", {})]]
    found = await held(tmp_path, "failed-check", calls=calls, case=CHAIN)
    assert found.at == ["call 2"]
    assert "send_email" in found.why[0] or found.why[0].startswith("breakpoint: step 2 fails")


async def test_of_several_breakpoints_the_first_that_holds_says_why(tmp_path: Path) -> None:
    assert (await held(tmp_path, "failed-check", "not-read-only", "tool set_lights")).why == [
        "breakpoint: set_lights is not marked read-only"
    ]


JUDGED = EVENING.replace("{ range = [5, 40] }", '{ judged = "is dim" }')
NO = f'{{"mark": "{MARK}", "holds": false, "rationale": "it is bright"}}'


async def test_a_judge_is_asked_once_for_a_breakpoint_and_the_grade(tmp_path: Path) -> None:
    found = await held(tmp_path, "failed-check", case=JUDGED, judge_says=[NO])
    assert found.why == ["breakpoint: brightness 60 fails judged: is dim"]
    assert found.judge is not None
    assert (found.results[0].status, found.judge.use.asked) == ("failed", 1)


async def test_a_judged_condition_is_asked_of_the_run_s_judge(tmp_path: Path) -> None:
    line = 'tool set_lights when { brightness = { judged = "is bright" } }'
    assert (await held(tmp_path, line, judge_says=[NO])).why == []
    assert (await held(tmp_path, line, judge_says=[])).why == [], "it is remembered"


PYTHON = 'tool set_lights when { room = { python = "checks:is_odd" } }'
NAMED = EVENING.replace('room = "hall"', 'room = { python = "checks:is_odd" }')


async def test_a_condition_that_cannot_be_judged_holds_the_run_and_says_so(tmp_path: Path) -> None:
    line = 'tool set_lights when { room = { judged = "is cosy" } }'
    (why,) = (await held(tmp_path, line)).why
    assert why.startswith(f"breakpoint {line} cannot be evaluated: ")
    (why,) = (await held(tmp_path, line, judge_says=["I like it."])).why
    assert why.startswith(f"breakpoint {line} cannot be evaluated: ")


@pytest.mark.parametrize(
    ("case", "trusted", "said"),
    [
        (NAMED, False, "it is Python code of an untrusted suite"),
        (EVENING, True, "checks:is_odd was not called, because you trust only the functions that home.toml names"),
    ],
)
async def test_python_is_not_called_before_somebody_trusts_it(
    tmp_path: Path, case: str, trusted: bool, said: str
) -> None:
    (tmp_path / "checks.py").write_text("raise SystemExit('imported')")
    (why,) = (await held(tmp_path, PYTHON, case=case, trusted=trusted)).why
    assert why.startswith(f"breakpoint {PYTHON} cannot be evaluated: ")
    assert said in why


@pytest.mark.parametrize(("answer", "why"), [("True", ['breakpoint: tool set_lights, room "hall"']), ("False", [])])
async def test_python_that_the_suite_names_is_called_once_it_is_trusted(
    tmp_path: Path, answer: str, why: list[str]
) -> None:
    (tmp_path / "checks.py").write_text(f"def is_odd(value):\n    return {answer}\n")
    assert (await held(tmp_path, PYTHON, case=NAMED)).why == why


async def test_python_that_raises_holds_the_run_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text("def is_odd(value):\n    return 1 / 0\n")
    found = await held(tmp_path, PYTHON, "failed-check", case=NAMED)
    assert len(found.results) == 1
    assert "ZeroDivisionError" in found.why[0]


async def test_without_an_enabled_breakpoint_the_run_so_far_is_not_looked_at(tmp_path: Path) -> None:
    class Untouchable(RunGrading):
        async def attempted(self, *_: Any) -> Any:
            raise AssertionError("graded")

    steppers = Steppers(lambda _event: None)
    steppers.breakpoints = (Breakpoint("failed-check", enabled=False), Breakpoint("failed-check", "send_email"))
    (planned,) = plan_runs([parse_suite(HOME + EVENING, tmp_path / "home.toml")])
    steppers.prepare([planned], "end")
    stepper = steppers.begin(planned, Untouchable(planned, lambda *_: None, None))

    def so_far() -> Trajectory:
        raise AssertionError("looked at")

    call = CallRecord(ToolCall("c", "set_lights"), 1)
    places: tuple[HoldPlace, ...] = ("request", "call", "result")
    for at in places:
        assert await stepper.hold_reason(HoldPoint(at, 1, so_far, None if at == "request" else call)) is None


async def test_a_call_of_another_tool_before_the_expected_one_fails_no_check(tmp_path: Path) -> None:
    assert (await held(tmp_path, "failed-check", calls=[[("get_lights", {})], DARK])).why == []
