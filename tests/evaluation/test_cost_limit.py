"""The runs of a batch that may begin under a cost limit. Runs begin and end as the test says, without a clock."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from tests.results import result
from workbench.engine.events import BatchDone, RunDone
from workbench.engine.plan import PlannedRun
from workbench.evaluation.cost_limit import CostGuard, CostLimit, ExpectedCost, SpentCost
from workbench.grading.status import Status
from workbench.suite.suite_file import parse_suite

FILE = parse_suite(
    'format = 1\nname = "s"\n[[cases]]\nname = "a"\nuser = "?"\nexpect_no_calls = true\n', Path("s.toml")
)
assert FILE.suite is not None
CASE = FILE.suite.cases[0]
CELL = ("s.toml", "a", "m")
REASON = "not run: cost limit of $1.00"


def planned(number: int, model: str = "m") -> PlannedRun:
    return PlannedRun(f"run-{number}", FILE, CASE, model, number)


def over(number: int, usd: float | None) -> RunDone:
    return RunDone(replace(result(Status.PASSED, 1.0), run_id=f"run-{number}", cost_usd=usd))


def limit(expected: ExpectedCost, spent: float = 0.0) -> CostLimit:
    return CostLimit(1.0, {CELL: expected, ("s.toml", "a", "free"): ExpectedCost(0.0)}, SpentCost(spent))


async def begun(spending: CostGuard, *runs: PlannedRun) -> list[asyncio.Task[str | None]]:
    tasks = [asyncio.ensure_future(spending.skip_reason(run)) for run in runs]
    await asyncio.sleep(0)
    return tasks


async def settled(tasks: list[asyncio.Task[str | None]]) -> list[object]:
    """Return the result of each task, or "waits" if there is none yet."""
    for _ in range(5):
        await asyncio.sleep(0)
    return [task.result() if task.done() else "waits" for task in tasks]


async def test_runs_under_way_count_with_what_they_are_expected_to_cost() -> None:
    spending = CostGuard(limit(ExpectedCost(0.4)))
    tasks = await begun(spending, *map(planned, range(4)))
    assert await settled(tasks) == [None, None, "waits", "waits"]
    spending.on_event(over(0, 0.1))
    assert await settled(tasks) == [None, None, None, "waits"]
    spending.on_event(over(1, 0.4))
    spending.on_event(over(2, 0.4))
    assert await settled(tasks) == [None, None, None, REASON]


async def test_a_guess_lets_one_run_begin_whose_cost_then_counts() -> None:
    spending = CostGuard(limit(ExpectedCost(50.0, request_usd=0.01)))
    tasks = await begun(spending, *map(planned, range(4)))
    assert await settled(tasks) == [None, "waits", "waits", "waits"]
    spending.on_event(over(0, 0.3))
    assert await settled(tasks) == [None, None, None, "waits"]
    spending = CostGuard(limit(ExpectedCost(50.0, request_usd=1.01)))
    assert await settled(await begun(spending, planned(0))) == [REASON]


async def test_a_model_whose_first_run_cost_nothing_is_held_to_the_limit_all_the_same() -> None:
    spending = CostGuard(limit(ExpectedCost(50.0, request_usd=0.01)))
    tasks = await begun(spending, planned(0))
    spending.on_event(over(0, 0.0))
    tasks += await begun(spending, planned(1))
    spending.on_event(over(1, 1.5))
    tasks += await begun(spending, planned(2))
    assert await settled(tasks) == [None, None, REASON]


async def test_an_unknown_cost_counts_as_expected() -> None:
    shared = limit(ExpectedCost(0.4))
    spending = CostGuard(shared)
    tasks = await begun(spending, planned(0))
    spending.on_event(over(0, None))
    assert await settled(tasks) == [None] and shared.spent.usd == 0.4


async def test_what_costs_nothing_begins_beyond_the_limit() -> None:
    spending = CostGuard(limit(ExpectedCost(0.4), spent=5.0))
    assert await settled(await begun(spending, planned(0), planned(1, "free"))) == [REASON, None]


async def test_plans_that_are_made_of_one_plan_share_what_was_spent() -> None:
    shared = limit(ExpectedCost(0.6))
    first = CostGuard(shared)
    await settled(await begun(first, planned(0)))
    first.on_event(over(0, 0.6))
    assert await settled(await begun(CostGuard(shared), planned(1))) == [REASON]


async def test_one_question_serves_all_who_wait_and_a_raised_limit_lets_them_begin() -> None:
    asked: list[tuple[float, float]] = []
    answers: list[asyncio.Future[float | None]] = []

    async def ask(usd: float, spent: float) -> float | None:
        asked.append((usd, spent))
        answers.append(asyncio.get_running_loop().create_future())
        return await answers[-1]

    spending = CostGuard(limit(ExpectedCost(0.4), spent=0.9), ask)
    tasks = await begun(spending, *map(planned, range(3)))
    assert await settled(tasks) == ["waits"] * 3 and asked == [(1.0, 0.9)]
    answers[0].set_result(1.4)
    assert (await settled(tasks)).count(None) == 1 and len(asked) == 1
    spending.on_event(over(0, 0.4))
    assert (await settled(tasks)).count(None) == 1 and asked[1:] == [(1.4, 1.3)]
    answers[1].set_result(None)
    assert sorted(map(str, await settled(tasks))) == ["None", *["not run: cost limit of $1.40"] * 2]
    spending.on_event(BatchDone("batch"))
