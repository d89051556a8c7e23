"""Chains in whole runs: every step graded on its own, and the end of those that stop at their first failed step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.engine.scripted import Say
from tests.engine.test_batch import Watched, scripted, suite
from tests.engine.test_judging_in_batches import HEAD, Place, judging
from tests.providers.server import Server
from workbench.checks.check import EMPTY_CONTEXT
from workbench.config.secrets import Secrets
from workbench.engine.plan import PlannedRun, plan_runs, with_grader
from workbench.engine.planned_run import grade_planned_run
from workbench.engine.redaction import shown_result
from workbench.evaluation.regrade import regrade_result
from workbench.grading.grade import RunResult
from workbench.grading.result_json import outcome_from_json, outcome_of, outcome_to_json
from workbench.suite.suite_file import SuiteFile

OSLO, ROME = Say(calls=[("get_weather", {"city": "Oslo"})]), Say(calls=[("get_weather", {"city": "Rome"})])


def step(city: str, more: str = "") -> str:
    return f'[[cases.steps]]\nuser = "Weather?"\ntool = "get_weather"\nargs = {{ city = {city} }}\n{more}'


def chain(*steps: str, more: str = "", path: str = "weather.toml") -> SuiteFile:
    return suite("\n".join([f'[[cases]]\nname = "Chain"\n{more}\n', *steps]), path=path)


def statuses(result: RunResult) -> list[str | None]:
    return [each.status for each in result.steps]


def ended(result: RunResult) -> str:
    assert result.trajectory.finish is not None
    return result.trajectory.finish.reason


async def test_every_step_is_graded_on_its_own_and_the_chain_as_a_whole() -> None:
    watched = Watched({"m": scripted(OSLO, OSLO)})
    (result,) = await watched.run(chain(step('"Oslo"'), step('"Rome"')))
    assert (result.status, result.score, statuses(result)) == ("failed", 0.75, ["passed", "failed"])
    assert [(issue.kind, issue.call) for issue in result.steps[1].issues] == [("wrong argument", 1)]


@pytest.mark.parametrize("by", ["critics", "decision", "accuracy", "trajectory"])
async def test_a_chain_that_stops_at_its_first_failed_step_makes_no_request_after_it(by: Any) -> None:
    models = {"m": scripted(OSLO, OSLO, OSLO)}
    file = chain(step('"Oslo"'), step('"Rome"'), step('"Oslo"'), more="stop_on_failure = true\nrepeats = 2")
    for result in await Watched({**models}).run(file, by=by):
        assert (ended(result), statuses(result)) == ("step failed", ["passed", "failed", None])
        assert len(result.trajectory.rounds) == 2
        assert result.status == "failed"


async def test_the_grader_that_decides_says_which_step_failed() -> None:
    free = chain(step('"Rome"'), step('"Oslo"'), more="stop_on_failure = true\ngrading.fail_threshold = 0.6")
    (by_critics,) = await Watched({"m": scripted(OSLO, OSLO)}).run(free)
    assert (ended(by_critics), statuses(by_critics)) == ("step failed", ["failed", None])
    (by_dimensions,) = await Watched({"m": scripted(OSLO, OSLO)}).run(free, by="dimensions")
    assert (ended(by_dimensions), statuses(by_dimensions)) == ("steps done", ["passed", "passed"])


async def test_a_python_check_is_called_once_for_the_steps_and_the_whole_run(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "seen = []\ndef oslo(value):\n    seen.append(value)\n    return len(seen) == 1\n"
    )
    checked = step('{ python = "mine:oslo" }')
    file = chain(checked, more="stop_on_failure = true", path=str(tmp_path / "s.toml"))
    (result,) = await Watched({"m": scripted(OSLO)}, trusted=True).run(file)
    assert (result.status, statuses(result), ended(result)) == ("passed", ["passed"], "steps done")


async def test_a_step_that_cannot_be_judged_ends_the_run_as_an_error_that_says_why(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def broken(value):\n    raise KeyError('gone')\n")
    checked = step('{ python = "mine:broken" }')
    path = str(tmp_path / "s.toml")
    for more in ("stop_on_failure = true", ""):
        watched = Watched({"m": scripted(OSLO, OSLO)}, trusted=True)
        (result,) = await watched.run(chain(checked, step('"Oslo"'), more=more, path=path))
        assert (result.status, result.steps, result.grades) == ("error", (), ())
        assert result.error is not None
        assert result.error.startswith("step 1 cannot be judged: get_weather.city: ")
        assert "gone" in result.error
        assert len(result.trajectory.rounds) == (1 if more else 2)


def test_a_judge_decides_whether_a_chain_goes_on_and_is_asked_once(tmp_path: Path) -> None:
    asking = ["Oslo", "Rome", "Oslo"]
    steps = "".join(
        f'[[cases.steps]]\nuser = "What is the weather in {city}?"\ntool = "get_weather"\n'
        'args = { city = { judged = "is in Norway" } }\n'
        for city in asking
    )
    with Server(judging) as server:
        place = Place(tmp_path, server, HEAD + '[[cases]]\nname = "Chain"\nstop_on_failure = true\n' + steps)
        result = place.one()
        assert (ended(result), statuses(result)) == ("step failed", ["passed", "failed", None])
        assert place.asked == result.judging.asked == 2


def test_without_a_judge_the_run_ends_as_an_error(tmp_path: Path) -> None:
    text = '[[cases]]\nname = "Chain"\nstop_on_failure = true\n' + step('{ judged = "is in Norway" }')
    with Server(judging) as server:
        result = Place(tmp_path, server, HEAD + text.replace("Weather?", "Weather in Oslo?"), settings="").one()
    assert (result.status, result.grades) == ("error", ())
    assert result.error is not None
    assert result.error.startswith("step 1 cannot be judged: ")


async def made(file: SuiteFile, *answers: Say) -> tuple[PlannedRun, RunResult]:
    (result,) = await Watched({"m": scripted(*answers)}).run(file)
    return plan_runs([file], models=["m"])[0], result


async def test_a_chain_is_graded_again_by_another_grader_and_by_other_steps() -> None:
    planned, result = await made(chain(step('"Rome"'), step('"Oslo"')), OSLO, OSLO)
    assert regrade_result(result, planned, EMPTY_CONTEXT) == result
    anew = PlannedRun("again", planned.file, with_grader(planned.case, "dimensions"), "m", 0)
    assert statuses(regrade_result(result, anew, EMPTY_CONTEXT)) == ["passed", "passed"]
    later = plan_runs([chain(step('"Oslo"'), step('"Oslo"'), step('"Oslo"'))], models=["m"])[0]
    assert statuses(regrade_result(result, later, EMPTY_CONTEXT)) == ["passed", "passed", None]
    again = await grade_planned_run(later, result.trajectory, lambda _reference, _value: True)
    assert statuses(again) == ["passed", "passed", None]


async def test_what_cannot_be_graded_any_more_has_no_steps_left() -> None:
    _, result = await made(chain(step('"Oslo"')), OSLO)
    later = plan_runs([chain(step('{ judged = "is in Norway" }'))], models=["m"])[0]
    broken = regrade_result(result, later, EMPTY_CONTEXT)
    assert (broken.status, broken.steps) == ("error", ())


async def test_the_steps_are_part_of_the_outcome_and_hold_no_secret() -> None:
    _, result = await made(chain(step('"Oslo"'), step('"hunter2hunter2"')), OSLO, OSLO)
    secrets = Secrets()
    secrets.add("DOOR_TOKEN", "hunter2hunter2")
    clean = shown_result(result, secrets)
    assert "hunter2" not in repr(clean.steps)
    assert "$DOOR_TOKEN" in repr(clean.steps)
    outcome = outcome_of(result)
    assert outcome.steps == result.steps
    assert outcome_from_json(outcome_to_json(outcome)) == outcome
    old = {name: value for name, value in outcome_to_json(outcome).items() if name != "steps"}
    assert outcome_from_json(old).steps == ()
