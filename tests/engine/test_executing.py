"""Real executions: allowed, asked about, refused, stopped while they are held, and every one of them written down."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.engine.making import Clock
from tests.engine.scripted import Say, ScriptedModel
from workbench.checks.check import CallPython
from workbench.config.secrets import Secrets
from workbench.engine.agent_loop import RunRequest, run_case
from workbench.engine.executor import Permission, PermissionAnswer, PermissionQuestion
from workbench.engine.recorder import Recorder
from workbench.suite.model import Case, Suite
from workbench.suite.settings import settings_of
from workbench.tools.answer import OnProgress, ServerError, ToolAnswer
from workbench.tools.audit import Audit, AuditLog, Caller
from workbench.tools.mocks import AskJudge, MakeAnswer, PlannedAnswer
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import (
    Event,
    ExecutionProgress,
    ExecutionStarted,
    JsonValue,
    Paused,
    ResultReceived,
    Resumed,
    RunFinished,
    ToolCall,
    ToolDefinition,
)
from workbench.trajectory.trajectory import Trajectory

READS = ToolDefinition("look", annotations={"readOnlyHint": True}, server="office")
SENDS = ToolDefinition("send", annotations={"destructiveHint": True}, server="office")
POSTS = ToolDefinition("post", server="office")
DONE = Say("Done.")


class Office(Toolbox):
    """Tools that are all executed on one server, whose answers the test defines."""

    def __init__(self, answer: MakeAnswer) -> None:
        def no_python(reference: str, value: JsonValue) -> object:
            raise AssertionError(reference)

        python: CallPython = no_python
        super().__init__([READS, SENDS, POSTS], mocks=None, servers={}, call_python=python)  # type: ignore[arg-type]
        self._answers = answer

    async def plan(
        self, call: ToolCall, step_mock: JsonValue = None, *, judge: AskJudge | None = None
    ) -> PlannedAnswer:
        return PlannedAnswer("server", self._answers, "office")


async def _fine(on_progress: OnProgress | None = None, ask: object = None) -> ToolAnswer:
    return ToolAnswer("sent")


@dataclass
class Making:
    """Runs with the office's tools, their events and their questions."""

    folder: Path
    answer: MakeAnswer = _fine
    says: PermissionAnswer | None = None
    """The user's answer; `None` if the user never answers."""
    events: list[Event] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    clock: Clock = field(default_factory=Clock)
    wait_s: float = 0.0

    @property
    def log(self) -> Path:
        return self.folder / "state" / "executions.jsonl"

    @property
    def audited(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    async def ask(self, question: PermissionQuestion) -> PermissionAnswer:
        self.asked.append(question.tool.name)
        self.waiting.set()
        while (says := self.says) is None:
            await asyncio.Event().wait()
        self.clock.now += 50.0
        await asyncio.sleep(self.wait_s)
        return says

    async def run(self, *answers: Say, audit: bool = True, timeout_s: float = 20.0, **allowed: Any) -> Trajectory:
        case = Case.model_validate({"name": "Mail", "user": "Send it.", "limits": {"timeout_s": timeout_s}})
        suite = Suite.model_validate({"format": 1, "name": "s", "tools": [{"name": "x"}], "cases": [case]})
        log = AuditLog(self.log, Secrets())
        return await run_case(
            RunRequest(case, settings_of(suite, case), "scripted", "hash"),
            ScriptedModel([*answers, DONE]),
            Office(self.answer),
            Recorder("run-1", self.clock, self.events.append),
            permission=Permission(**allowed),
            audit=Audit(log, Caller("/suites/mail.toml", "mail", "scripted", "run-1")) if audit else None,
        )


def call(*tools: str) -> Say:
    return Say(calls=[(tool, {"to": "Ann"}) for tool in tools])


def ending(trajectory: Trajectory) -> RunFinished:
    assert trajectory.finish is not None
    return trajectory.finish


def kinds(making: Making) -> list[type]:
    wanted = (Paused, Resumed, ExecutionStarted, ResultReceived)
    return [type(event.payload) for event in making.events if isinstance(event.payload, wanted)]


@pytest.mark.parametrize(
    ("tool", "permission", "how"),
    [
        ("look", {}, "read-only"),
        ("look", {"all_tools": True}, "read-only"),
        ("send", {"all_tools": True}, "all"),
        ("post", {"exempt": True}, "exempt"),
    ],
)
async def test_what_is_covered_is_executed_unasked_and_written_down(
    tmp_path: Path, tool: str, permission: dict[str, bool], how: str
) -> None:
    making = Making(tmp_path)
    trajectory = await making.run(call(tool), **permission)
    assert ending(trajectory).reason == "answered"
    assert kinds(making) == [ExecutionStarted, ResultReceived]
    started, ended = making.audited
    assert (started["event"], ended["event"]) == ("started", "ended")
    assert started["execution"] == ended["execution"]
    assert (ended["tool"], ended["allowed"], ended["outcome"], ended["arguments"]) == (tool, how, "ok", {"to": "Ann"})


@pytest.mark.parametrize("tool", ["send", "post"])
async def test_what_nothing_covers_ends_the_run_naming_the_tool_and_the_way_out(tmp_path: Path, tool: str) -> None:
    making = Making(tmp_path)
    finish = ending(await making.run(call(tool)))
    assert finish.reason == "error"
    assert finish.error is not None
    assert finish.error.startswith(f"{tool} of server 'office' is not marked read-only")
    assert "--execute-all" in finish.error
    assert making.audited == []
    assert kinds(making) == []


async def test_a_tool_is_asked_about_once_in_a_run(tmp_path: Path) -> None:
    making = Making(tmp_path, says="run")
    trajectory = await making.run(call("send", "send"), call("look", "post", "send"), ask=making.ask)
    assert ending(trajectory).reason == "answered"
    assert making.asked == ["send", "post"]
    assert [line["allowed"] for line in making.audited if line["event"] == "ended"] == [
        "asked",
        "asked",
        "read-only",
        "asked",
        "asked",
    ]
    await making.run(call("send"), ask=making.ask)
    assert making.asked == ["send", "post", "send"]


async def test_a_yes_to_one_call_is_none_to_the_next(tmp_path: Path) -> None:
    making = Making(tmp_path, says="call")
    trajectory = await making.run(call("send", "send"), call("send"), ask=making.ask)
    assert ending(trajectory).reason == "answered"
    assert making.asked == ["send"] * 3
    assert kinds(making) == [Paused, Resumed, ExecutionStarted, ResultReceived] * 3
    assert {line["allowed"] for line in making.audited} == {"asked"}


async def test_a_no_ends_the_run_and_executes_nothing(tmp_path: Path) -> None:
    making = Making(tmp_path, says="no")
    finish = ending(await making.run(call("send"), ask=making.ask))
    assert (finish.reason, finish.error) == ("error", "send of server 'office' was not allowed to execute")
    assert kinds(making) == [Paused, Resumed]
    assert making.audited == []


async def test_held_time_is_in_no_latency_and_not_in_the_time_limit(tmp_path: Path) -> None:
    making = Making(tmp_path, says="run", wait_s=0.4)
    trajectory = await making.run(call("send"), ask=making.ask, timeout_s=0.3)
    assert ending(trajectory).reason == "answered"
    (record,) = trajectory.calls
    assert record.result is not None
    assert record.result.latency_ms < 1_000
    assert trajectory.model_latency_ms < 1_000
    (held,) = [event.payload.held_ms for event in making.events if isinstance(event.payload, Resumed)]
    assert held >= 50_000


async def test_a_run_can_be_stopped_while_it_is_held(tmp_path: Path) -> None:
    making = Making(tmp_path)
    running = asyncio.create_task(making.run(call("send"), ask=making.ask))
    await making.waiting.wait()
    running.cancel()
    assert ending(await running).reason == "stopped"
    assert making.audited == []


async def test_several_runs_are_held_at_once_and_answered_one_by_one(tmp_path: Path) -> None:
    makings = [Making(tmp_path / str(number), says="run" if number == 1 else "no") for number in range(3)]
    makings[2].says = None
    runs = [asyncio.create_task(making.run(call("send"), ask=making.ask)) for making in makings]
    await asyncio.gather(*(making.waiting.wait() for making in makings))
    assert ending(await runs[0]).reason == "error"
    assert ending(await runs[1]).reason == "answered"
    assert not runs[2].done()
    runs[2].cancel()
    assert ending(await runs[2]).reason == "stopped"


async def test_the_log_says_how_an_execution_ended(tmp_path: Path) -> None:
    async def refuse(on_progress: OnProgress | None = None, ask: object = None) -> ToolAnswer:
        return ToolAnswer("no such person", is_error=True)

    async def die(on_progress: OnProgress | None = None, ask: object = None) -> ToolAnswer:
        raise ServerError("server 'office' died")

    async def hang(on_progress: OnProgress | None = None, ask: object = None) -> ToolAnswer:
        await asyncio.Event().wait()
        raise AssertionError

    refusing, dying, hanging = (
        Making(tmp_path / name, answer) for name, answer in (("refusing", refuse), ("dying", die), ("hanging", hang))
    )
    assert ending(await refusing.run(call("look"))).reason == "answered"
    assert ending(await dying.run(call("look"))).error == "server 'office' died"
    assert ending(await hanging.run(call("look"), timeout_s=0.1)).reason == "timed out"
    outcomes = [making.audited[-1]["outcome"] for making in (refusing, dying, hanging)]
    assert outcomes == ["tool error", "server error", "stopped"]


async def test_the_beginning_is_written_before_the_tool_is_called(tmp_path: Path) -> None:
    seen: list[str] = []

    async def look(on_progress: OnProgress | None = None, ask: object = None) -> ToolAnswer:
        seen.extend(line["event"] for line in making.audited)
        return ToolAnswer("fine")

    making = Making(tmp_path, look)
    await making.run(call("look"))
    assert seen == ["started"]


async def test_without_a_log_that_can_be_written_nothing_is_executed(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    making = Making(tmp_path)
    finish = ending(await making.run(call("look")))
    assert finish.error is not None
    assert finish.error.startswith(f"look was not executed: the audit log {making.log} cannot be written")
    assert kinds(making) == []
    finish = ending(await Making(tmp_path).run(call("look"), audit=False))
    assert finish.error == "look was not executed: this run has no audit log"


async def test_progress_is_told_now_and_then_and_never_after_the_end(tmp_path: Path) -> None:
    late: list[OnProgress] = []

    async def count(on_progress: OnProgress | None = None, ask: object = None) -> ToolAnswer:
        assert on_progress is not None
        late.append(on_progress)
        for number in range(1_000):
            on_progress(float(number), 1_000.0, "counting")
        on_progress(math.nan, None, None)
        return ToolAnswer("counted")

    making = Making(tmp_path, count)
    await making.run(call("look"))
    late[0](1_000.0, None, None)
    told = [event.payload for event in making.events if isinstance(event.payload, ExecutionProgress)]
    assert told[0] == ExecutionProgress(told[0].call_id, 0.0, 1_000.0, "counting")
    assert [progress.progress for progress in told] == [0.0, 999.0]
