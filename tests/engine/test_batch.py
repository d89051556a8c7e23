"""Batches of runs: their order, their concurrency and stopping. Each run ends with exactly one result."""

from __future__ import annotations

import asyncio
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.engine.scripted import NO_ROUTE, Hang, Say, ScriptedModel
from tests.programs import approval_of, program_of
from workbench.engine.batch import Batch, QueueKey
from workbench.engine.events import BatchDone, BatchEvent, BatchStarted, RunDone, RunEvent
from workbench.engine.plan import PlannedRun, plan_runs
from workbench.engine.planned_run import RunContext
from workbench.grading.deferred_result import DeferredResult
from workbench.grading.grade import RunResult
from workbench.history.packing import RunPacker
from workbench.history.records import RunWithEvents
from workbench.providers.model import Model, ModelError
from workbench.suite.grading_model import GRADERS
from workbench.suite.suite_file import SuiteFile, parse_suite
from workbench.tools.server_pool import ServerPool
from workbench.trajectory.events import RunFinished, RunStarted
from workbench.trajectory.fold import fold

SUITE = """
format = 1
name = "Weather"

[[tools]]
name = "get_weather"

{cases}
"""
CASE = """
[[cases]]
name = "{name}"
user = "Weather in Oslo?"
{more}
[[cases.unordered]]
tool = "get_weather"
args = {{ city = "Oslo" }}
"""
RIGHT = Say(calls=[("get_weather", {"city": "Oslo"})])
WRONG = Say(calls=[("get_weather", {"city": "Rome"})])
DONE = Say("Rain.")


def suite(*cases: str, path: str = "weather.toml") -> SuiteFile:
    file = parse_suite(SUITE.format(cases="\n".join(cases)), Path(path))
    assert not file.errors, file.errors
    return file


def case(name: str, more: str = "") -> str:
    return CASE.format(name=name, more=more)


@dataclass
class Watched:
    """A batch with its events, and its models by name."""

    models: dict[str, Callable[[], Model]]
    said: list[BatchEvent] = field(default_factory=list)
    trusted: bool = False
    batch: Batch | None = None

    async def run(self, *files: SuiteFile, concurrency: int = 4, **plan: Any) -> list[RunResult]:
        runs = plan_runs(files, models=tuple(self.models), **plan)
        pool = ServerPool(program_of(Path("unused")))
        approval = approval_of(runs, program_of(Path("unused")), trusted=self.trusted)
        around = RunContext(listener=self.said.append, servers=pool, open_model=self._open, grant_of=approval.grant)
        self.batch = Batch("batch", runs, lambda run: QueueKey(run.model, concurrency), around)
        await self.batch.run()
        assert isinstance(self.said[0], BatchStarted)
        assert isinstance(self.said[-1], BatchDone)
        results = [event.result for event in self.said if isinstance(event, RunDone)]
        assert Counter(result.run_id for result in results) == Counter(run.run_id for run in runs)
        for result in results:
            events = [event.event for event in self.said if isinstance(event, RunEvent)]
            mine = [event for event in events if event.run_id == result.run_id]
            assert not mine or fold(mine) == result.trajectory
        return results

    def _open(self, planned: PlannedRun) -> Model:
        return self.models[planned.model]()


def scripted(*answers: Say | Hang) -> Callable[[], Model]:
    return lambda: ScriptedModel(answers)


async def test_runs_are_graded_and_issues_name_what_is_wrong() -> None:
    watched = Watched({"good": scripted(RIGHT, DONE), "bad": scripted(WRONG, DONE)})
    good, bad = sorted(await watched.run(suite(case("Oslo"))), key=lambda result: result.model, reverse=True)
    assert (good.status, good.score) == ("passed", 1.0)
    assert (bad.status, bad.score) == ("failed", 0.5)
    assert bad.grade is not None
    assert [(issue.kind, issue.call, issue.argument) for issue in bad.grade.issues] == [("wrong argument", 0, "city")]


@pytest.mark.parametrize(
    ("city", "asked_at_once"),
    [('"Oslo"', False), ('{ pattern = "^O" }', True), ('{ judged = "a city" }', True)],
)
async def test_only_quick_checks_are_left_to_the_graders_that_come_later(city: str, asked_at_once: bool) -> None:
    graded = suite(case("Oslo").replace('city = "Oslo"', f"city = {city}"))
    watched = Watched({"good": scripted(RIGHT, DONE)})
    (result,) = await watched.run(graded)
    assert isinstance(result, DeferredResult) is not asked_at_once
    if result.status != "error":  # nobody judges here
        assert {grade.grader for grade in result.grades} == {*GRADERS}


async def test_infrastructure_trouble_is_an_error_and_leaves_the_others_alone() -> None:
    def no_key() -> Model:
        raise ModelError("no key: set EXAMPLE_KEY")

    watched = Watched({"good": scripted(RIGHT, DONE), "down": lambda: ScriptedModel([NO_ROUTE]), "closed": no_key})
    results = {result.model: result for result in await watched.run(suite(case("Oslo")))}
    assert {name: result.status for name, result in results.items()} == {
        "good": "passed",
        "down": "error",
        "closed": "error",
    }
    assert results["down"].error == "cannot reach the endpoint: connection refused"
    assert results["closed"].error == "no key: set EXAMPLE_KEY"
    assert results["closed"].grades == ()


async def test_skipped_cases_are_listed_with_their_reason_and_never_run() -> None:
    watched = Watched({"good": scripted(RIGHT, DONE)})
    (result,) = await watched.run(suite(case("Oslo", 'skip = "needs rain"')))
    assert (result.status, result.error) == ("skipped", "needs rain")
    assert not [event for event in watched.said if isinstance(event, RunEvent)]


async def test_a_suite_that_is_not_trusted_starts_nothing() -> None:
    file = parse_suite(
        'format = 1\nname = "S"\n[[servers]]\nname = "s"\ncommand = ["true"]\n' + case("Oslo"), Path("s.toml")
    )
    watched = Watched({"good": scripted(RIGHT, DONE)})
    (result,) = await watched.run(file)
    assert result.status == "error"
    assert result.error is not None
    assert "not trusted" in result.error


async def test_a_check_that_cannot_be_evaluated_is_an_error_and_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def broken(value):\n    raise KeyError('gone')\n")
    file = suite(case("Oslo").replace('"Oslo" }', '{ python = "mine:broken" } }'), path=str(tmp_path / "s.toml"))
    watched = Watched({"good": scripted(RIGHT, DONE)}, trusted=True)
    (result,) = await watched.run(file)
    assert result.status == "error"
    assert result.error is not None
    assert "mine:broken" in result.error


@pytest.mark.slow
@pytest.mark.parametrize("place", ["check", "mock"])
async def test_a_pattern_that_takes_too_long_is_an_error_and_no_verdict(place: str) -> None:
    pattern = '{ pattern = "^(a|aa)+$" }'
    if place == "check":
        file = suite(case("Oslo").replace('"Oslo" }', pattern + " }"))
    else:
        file = suite(case("Oslo", f'mocks = [{{ tool = "get_weather", when = {{ city = {pattern} }}, result = 1 }}]'))
    call = Say(calls=[("get_weather", {"city": "a" * 60 + "!"})])
    (result,) = await Watched({"good": scripted(call, DONE)}).run(file)
    assert (result.status, result.grades) == ("error", ())
    assert result.error is not None
    assert "pattern '^(a|aa)+$' in a text of 61 characters did not end within 0.5 s" in result.error


async def test_grading_that_does_not_end_is_an_error_that_says_where_to_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.engine.planned_run.GRADING_TIMEOUT_S", 0.05)
    (tmp_path / "mine.py").write_text("import threading\ndef hangs(value):\n    threading.Event().wait(30)\n")
    file = suite(case("Oslo").replace('"Oslo" }', '{ python = "mine:hangs" } }'), path=str(tmp_path / "s.toml"))
    (result,) = await Watched({"good": scripted(RIGHT, DONE)}, trusted=True).run(file)
    assert result.status == "error"
    assert result.error is not None
    assert "grading did not end within 0.05 s" in result.error
    assert result.trajectory.finish == RunFinished("answered")


async def test_suite_code_that_raises_what_ends_programs_ends_only_its_run(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def rude(value):\n    raise KeyboardInterrupt\n")
    file = suite(
        case("Check").replace('"Oslo" }', '{ python = "mine:rude" } }'),
        case("Mock", 'mocks = [{ tool = "get_weather", python = "mine:rude" }]'),
        path=str(tmp_path / "s.toml"),
    )
    results = await Watched({"good": scripted(RIGHT, DONE)}, trusted=True).run(file)
    assert [result.status for result in results] == ["error", "error"]
    assert all(result.trajectory.finish is not None for result in results)


async def test_no_more_run_at_the_same_time_than_allowed() -> None:
    waiting = 0
    most = 0

    class Counting(ScriptedModel):
        async def stream(self, request: Any) -> Any:
            nonlocal waiting, most
            waiting += 1
            most = max(most, waiting)
            await asyncio.sleep(0)  # lets every other worker come as far as it may
            try:
                async for event in super().stream(request):
                    yield event
            finally:
                waiting -= 1

    watched = Watched({"m": lambda: Counting([RIGHT, DONE])})
    results = await watched.run(suite(*(case(f"Case {number}") for number in range(12))), concurrency=3)
    assert len(results) == 12
    assert most == 3


async def test_stopping_a_batch_keeps_what_is_done_and_grades_nothing_else() -> None:
    hanging = ScriptedModel([Hang("Half a sen")])
    models = iter([ScriptedModel([RIGHT, DONE]), hanging])
    watched = Watched({"m": lambda: next(models)})
    running = asyncio.create_task(watched.run(suite(case("A"), case("B"), case("C")), concurrency=1))
    await hanging.hanging.wait()
    assert watched.batch is not None
    watched.batch.stop()
    results = sorted(await running, key=lambda result: result.case_name)
    assert [result.status for result in results] == ["passed", "stopped", "stopped"]
    assert results[2].cost_usd == 0, "it asked nobody"
    assert results[1].trajectory.finish == RunFinished("stopped")
    assert results[1].trajectory.rounds[0].text == "Half a sen"
    assert results[1].grades == results[2].grades == ()
    assert results[2].trajectory.start is None


async def test_one_run_can_be_stopped_while_the_others_go_on() -> None:
    hanging = ScriptedModel([Hang()])
    models = iter([hanging, ScriptedModel([RIGHT, DONE])])
    watched = Watched({"m": lambda: next(models)})
    running = asyncio.create_task(watched.run(suite(case("A"), case("B")), concurrency=2))
    await hanging.hanging.wait()
    started = [event.event for event in watched.said if isinstance(event, RunEvent)]
    first = next(event.run_id for event in started if isinstance(event.payload, RunStarted))
    assert watched.batch is not None
    watched.batch.stop(first)
    assert sorted(result.status for result in await running) == ["passed", "stopped"]


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        ({}, ["A", "B"]),
        ({"case_ids": ["b"]}, ["B"]),
        ({"tags": ["slow"]}, ["A"]),
        ({"tags": ["slow"], "case_ids": ["b"]}, []),
    ],
)
def test_the_plan_takes_the_selected_cases(selection: dict[str, Any], names: list[str]) -> None:
    file = suite(case("A", 'tags = ["slow"]'), case("B"))
    assert [run.case.name for run in plan_runs([file], **selection)] == names


def test_the_plan_holds_every_model_and_repeat_in_order() -> None:
    file = suite(case("A", 'repeats = 2\nmodels = ["x", "y"]'), case("B"))
    plan = [(run.case.name, run.model, run.repeat) for run in plan_runs([file])]
    assert plan == [("A", "x", 0), ("A", "x", 1), ("A", "y", 0), ("A", "y", 1), ("B", "offline", 0)]
    assert [run.model for run in plan_runs([file], models=["z"])] == ["z", "z", "z"]
    runs = plan_runs([file])
    assert len({run.run_id for run in runs}) == len(runs)


async def test_no_run_takes_the_place_of_others_while_too_many_wait_to_be_stored() -> None:
    waiting: asyncio.Queue[None] = asyncio.Queue()
    may_go_on = asyncio.Event()

    async def stored() -> None:
        waiting.put_nowait(None)
        await may_go_on.wait()

    said: list[BatchEvent] = []
    around = RunContext(
        listener=said.append,
        servers=ServerPool(program_of(Path("unused"))),
        open_model=lambda _: scripted(RIGHT, DONE)(),
        grant_of=lambda _: None,
        wait_until_stored=stored,
    )
    runs = plan_runs([suite(case("Oslo"))], models=["good"], repeats=6)
    making = asyncio.create_task(Batch("batch", runs, lambda run: QueueKey(run.model, 2), around).run())
    for _ in range(2):
        await waiting.get()
    for _ in range(100):
        await asyncio.sleep(0)
    assert len({event.result.run_id for event in said if isinstance(event, RunDone)}) == 2
    may_go_on.set()
    await making
    assert len([event for event in said if isinstance(event, RunDone)]) == 6


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "times"), [("values", 3), ("text", 8)])
async def test_memory_of_a_run_follows_what_the_model_sent(kind: str, times: int) -> None:
    async def took(number: int) -> tuple[int, int]:
        """Return the size of the answer, and the peak memory while the run was made, graded and packed."""
        city: Any = [f"s{n}" for n in range(number)] if kind == "values" else "x" * (20 * number)
        sent = sum(map(sys.getsizeof, city)) + sys.getsizeof(city) if kind == "values" else sys.getsizeof(city)
        watched = Watched({"big": scripted(Say(calls=[("get_weather", {"city": city})]), DONE)})
        tracemalloc.start()
        try:
            (result,) = await watched.run(suite(case("Oslo")))
            events = tuple(event.event for event in watched.said if isinstance(event, RunEvent))
            RunPacker().packed(RunWithEvents(result.run_id, result, events, 0.0, 1.0))
            return sent, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    await took(100)  # what is imported and remembered
    (few_sent, few), (many_sent, many) = await took(20_000), await took(80_000)
    assert many - few <= times * (many_sent - few_sent)
