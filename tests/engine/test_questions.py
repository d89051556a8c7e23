"""The requests to judges for runs: combined, shared by equal values, and none for values that cannot be expressed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.grading.cases import call, case_of
from tests.providers.server import MARK, Call, Server, Signal, Tell, said
from tests.trajectories import trajectory_of
from workbench.checks.check import CheckContext, evaluate
from workbench.checks.combined_kinds import Judged
from workbench.checks.patterns import CheckError
from workbench.config.models import ModelSpec
from workbench.config.secrets import NO_SECRETS
from workbench.engine.judges import JudgeAccess, JudgementCache, RunJudge
from workbench.engine.plan import PlannedRun
from workbench.engine.planned_run import grade_planned_run
from workbench.grading.grade import Judgement, JudgementNeededError, judged_value
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.model import Model, ModelError
from workbench.suite.model import Suite
from workbench.suite.suite_file import SuiteFile
from workbench.trajectory.events import JsonValue

SPEC = ModelSpec("mine", "openai", "m", "http://localhost:1/v1")


async def test_all_that_a_run_wants_judged_is_asked_at_once_and_python_is_asked_once(tmp_path: Path) -> None:
    checks = {"city": {"judged": "is in Norway"}, "day": {"python": "days:good"}}
    case = case_of(ordered=[call("weather", checks), call("forecast", checks)], response={"judged": "is short"})
    run = trajectory_of(
        ("weather", {"city": "Oslo", "day": "today"}), ("forecast", {"city": "Bergen", "day": "now"}), answer="Rain."
    )
    file = SuiteFile(tmp_path / "s.toml", "", "", Suite(format=1, name="s", cases=(case,)), ())
    asked: list[list[JsonValue]] = []
    called: list[JsonValue] = []

    class Judging(RunJudge):
        async def ask(self, needed: Iterable[JudgementNeededError]) -> None:
            needed = list(needed)
            asked.append([each.value for each in needed])
            for each in needed:
                text = judged_value(each.value)
                self._record_finding(
                    (None, each.check.judged, text, None, None), Judgement("j", each.check.judged, text, True, "Yes.")
                )

    def python(_reference: str, value: JsonValue) -> bool:
        called.append(value)
        return True

    judge = Judging(lambda _check: SPEC, JudgementCache(tmp_path / "j.jsonl", NO_SECRETS), JudgeAccess(unopened))
    result = await grade_planned_run(PlannedRun("run-1", file, case, "offline", 0), run, python, judge)
    assert result.status == "passed"
    assert [sorted(set(map(str, values))) for values in asked] == [["Bergen", "Oslo", "Rain."]]
    assert called == ["today", "now"]


def unopened(_spec: ModelSpec) -> Model:
    raise ModelError("no model is opened here")


async def test_those_who_wait_for_a_judge_that_fails_fail_with_it_and_it_is_asked_anew_later(tmp_path: Path) -> None:
    with Server(lambda _request: said("openai", "Hm.")) as server:
        spec = replace(SPEC, base_url=f"{server.url}/v1")
        endpoints = Endpoints(NO_SECRETS)
        asking = JudgeAccess(lambda spec: endpoints.open(spec, {}))
        cache = JudgementCache(tmp_path / "j.jsonl", NO_SECRETS)
        runs = [RunJudge(lambda _check: spec, cache, asking) for _ in range(20)]
        needed = JudgementNeededError(Judged(judged="polite"), "hi")
        await asyncio.gather(*(run.ask([needed]) for run in runs))
        assert len(server.requests) == 1
        assert sum(run.use.asked for run in runs) == 1
        for run in runs:
            with pytest.raises(CheckError, match="the model's answer is not a verdict"):
                run.known_judgement(needed.check, needed.value)
        await runs[0].ask([needed])
        assert len(server.requests) == 2
        await endpoints.close()
    assert not asking.in_flight


async def test_a_judge_goes_on_for_those_who_wait_when_the_run_that_asked_is_stopped(tmp_path: Path) -> None:
    asked, go = Signal(), Signal()
    verdict = said("openai", calls=[Call("verdict", {"mark": MARK, "rationale": "Yes.", "holds": True})])
    with Server([replace(verdict, before=(Tell(asked), go))]) as server:
        spec = replace(SPEC, base_url=f"{server.url}/v1")
        endpoints = Endpoints(NO_SECRETS)
        asking = JudgeAccess(lambda spec: endpoints.open(spec, {}))
        cache = JudgementCache(tmp_path / "j.jsonl", NO_SECRETS)
        first, second = (RunJudge(lambda _check: spec, cache, asking) for _ in range(2))
        needed = JudgementNeededError(Judged(judged="polite"), "Oslo")
        stopped, waiting = asyncio.create_task(first.ask([needed])), asyncio.create_task(second.ask([needed]))
        await asyncio.to_thread(asked.wait)
        stopped.cancel()
        await asyncio.wait([stopped])
        go.set()
        await waiting
        assert second.known_judgement(needed.check, needed.value).holds
        assert (first.use.asked, second.use.asked, len(server.requests)) == (0, 1, 1)
        await endpoints.close()


@pytest.mark.slow
def test_what_was_judged_can_be_read_while_a_thread_that_took_too_long_goes_on(tmp_path: Path) -> None:
    recorded = [Judgement("m", "c", str(number), True, "r") for number in range(20_000)]
    judge = RunJudge(lambda _check: SPEC, JudgementCache(tmp_path / "j.jsonl", NO_SECRETS), recorded=recorded)
    check = Judged(judged="c")
    thread = threading.Thread(target=lambda: [judge.known_judgement(check, number) for number in range(20_000)])
    thread.start()
    while thread.is_alive():
        assert len(judge.judgements) <= 20_000
    assert len(judge.judgements) == 20_000


def test_a_value_that_json_cannot_say_is_an_error_of_the_check(tmp_path: Path) -> None:
    judge = RunJudge(lambda _check: SPEC, JudgementCache(tmp_path / "j.jsonl", NO_SECRETS))
    with pytest.raises(CheckError, match="cannot be judged: the value cannot be written as JSON"):
        evaluate(Judged(judged="c"), float("inf"), context=CheckContext(judge=judge.known_judgement))
