"""The score of the system that made an imported run: kept as a metric next to our grade. Calls of a wrong run are never
expected."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from tests.exchange.importers.samples import INSPECT, PROMPTFOO_RESULTS, TAU, TAU2, as_json
from tests.tables import each_row
from workbench.analysis.totals import agreements
from workbench.config.secrets import Secrets
from workbench.exchange.importers.forms import FORMS, format_of
from workbench.exchange.importers.import_files import ImportedSuite, make_suite, run_of
from workbench.exchange.importers.source_files import source_of
from workbench.grading.grade import RunResult
from workbench.suite.model import Suite


def made_of(form: str, value: object) -> tuple[Suite, ImportedSuite]:
    source = source_of(Path("file.json"), as_json(value))
    imported = format_of(form).read(source)
    imported = replace(imported, suite={**imported.suite, "grading": format_of(form).grading})
    made = make_suite(imported, source.name, Path("made.toml"), Secrets())
    assert made.file.suite is not None
    return made.file.suite, made


def runs_of(suite: Suite, made: ImportedSuite) -> list[RunResult]:
    pairs = zip(suite.cases, made.cases, strict=True)
    return [run_of(made.file, case, run, at)[2] for case, each in pairs for at, run in enumerate(each.runs)]


def tau(reward: float, *actions: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(json.dumps(TAU).replace("get_weather", "order_weather"))
    value["reward"] = reward
    value["info"]["task"]["actions"] = [{"name": name, "kwargs": kwargs} for name, kwargs in actions]
    return value


RIGHT = ("order_weather", {"city": "Oslo"})
NEVER_MADE = ("book_flight", {"to": "Oslo"})


@pytest.mark.parametrize(
    ("actions", "status"),
    [
        ([RIGHT], "passed"),
        ([RIGHT, ("get_user", {})], "passed"),  # looking something up changes nothing
        ([RIGHT, NEVER_MADE], "failed"),
        ([("order_weather", {"city": "Bergen"})], "failed"),
        ([], "failed"),
    ],
)
def test_the_changes_that_a_task_names_are_expected_and_no_others(
    actions: list[tuple[str, dict[str, Any]]], status: str
) -> None:
    suite, made = made_of("tau", [tau(0.0, *actions)])
    [run] = runs_of(suite, made)
    assert run.status == status
    assert [tuple(metric[:3]) for metric in run.metrics] == [("reward of tau-bench", 0.0, False)]


def test_a_change_that_was_refused_is_none() -> None:
    value = tau(1.0)
    value["traj"][-3]["content"] = "Error: no such city"
    suite, made = made_of("tau", [value])
    assert [run.status for run in runs_of(suite, made)] == ["passed"]


@each_row(
    ("action", "statuses"),
    [
        ({"arguments": {"city": "Oslo", "days": 2}}, ["passed"]),  # an argument that was not given is not missed
        ({"arguments": {"city": "Bergen"}}, ["failed"]),
        ({"arguments": {}}, ["failed"]),
        ({"arguments": {"city": "Bergen"}, "compare_args": []}, ["passed"]),
        ({"arguments": {"city": "Oslo", "days": 2}, "compare_args": ["city"]}, ["passed"]),
        ({"arguments": {"city": "Oslo", "days": 2}, "compare_args": ["days"]}, ["failed"]),
    ],
)
def test_arguments_of_an_action_are_compared_as_tau2_does(action: dict[str, Any], statuses: list[str]) -> None:
    value: dict[str, Any] = deepcopy(TAU2)
    value["tasks"][0]["evaluation_criteria"] = {
        "actions": [{"name": "get_weather", **action}],
        "reward_basis": ["ACTION", "NL_ASSERTION"],
    }
    suite, made = made_of("tau", value)
    assert [run.status for run in runs_of(suite, made)] == statuses
    assert "also judged by NL_ASSERTION, which is not imported" in made.file.text


def test_lists_that_the_system_sorts_are_compared_in_any_order() -> None:
    order = ("return_delivered_order_items", {"item_ids": ["1", "2"], "order_id": "7"})
    _, made = made_of("tau", [tau(0.0, order)])
    assert 'item_ids = { same_elements = ["1", "2"] }' in " ".join(made.file.text.split())


def test_what_a_source_without_actions_called_wrong_is_not_expected() -> None:
    for reward, status in ((0.0, "not graded"), (1.0, "passed")):
        value = deepcopy(TAU2)
        value["simulations"][0]["reward_info"]["reward"] = reward  # type: ignore[index]
        value["tasks"][0]["evaluation_criteria"] = {"communicate_info": ["rain"]}  # type: ignore[index]
        suite, made = made_of("tau", value)
        assert [run.status for run in runs_of(suite, made)] == [status]


def test_the_first_epoch_that_inspect_called_right_says_what_is_expected() -> None:
    suite, made = made_of("inspect", INSPECT)
    assert [run.status for run in runs_of(suite, made)] == ["passed", "failed"]
    turned: dict[str, Any] = deepcopy(INSPECT)
    for sample, value in zip(turned["samples"], "IC", strict=True):
        sample["scores"] = {"includes": {"value": value}}
    suite, made = made_of("inspect", turned)
    assert [run.status for run in runs_of(suite, made)] == ["failed", "passed"]
    for sample in turned["samples"]:
        sample["scores"] = {"includes": {"value": "I"}}
    suite, made = made_of("inspect", turned)
    assert [run.status for run in runs_of(suite, made)] == ["not graded", "not graded"]


def test_promptfoo_s_own_verdicts_are_metrics_of_its_runs() -> None:
    suite, made = made_of("promptfoo", PROMPTFOO_RESULTS)
    runs = runs_of(suite, made)
    assert [run.metrics[0].holds for run in runs] == [True, False]
    [found] = agreements(runs)
    assert (found.name, found.of) == ("score of promptfoo", 2)


def test_a_task_of_several_turns_is_one_verdict() -> None:
    value = tau(1.0, RIGHT, ("look", {}))
    more = deepcopy(TAU["traj"][3:-1])  # type: ignore[index]
    more[1]["tool_calls"][0] = {"id": "c9", "function": {"name": "look", "arguments": "{}"}}
    more[2]["tool_call_id"] = "c9"
    value["traj"] = [*value["traj"][:-1], *more, value["traj"][-1]]
    again = value | {"trial": 2, "reward": 0.0}
    suite, made = made_of("tau", [value, again, tau(0.0, RIGHT) | {"task_id": 8}])
    assert [(case.id, len(each.runs)) for case, each in zip(suite.cases, made.cases, strict=True)] == [
        ("task-7", 2),
        ("task-8", 1),
    ]
    [found] = agreements(runs_of(suite, made))
    assert (found.agree, found.of, found.ungraded) == (1, 3, 0)
    assert [(each.about, each.value, each.passed_here) for each in found.differ] == [
        ("Task 7, trial 3", 0.0, True),
        ("Task 8, trial 2", 0.0, True),
    ]


def test_a_task_without_words_of_its_user_is_a_case_for_each_turn_and_one_verdict() -> None:
    value = tau(1.0, RIGHT, ("look", {}))
    more = deepcopy(TAU["traj"][3:-1])  # type: ignore[index]
    more[1]["tool_calls"][0] = {"id": "c9", "function": {"name": "look", "arguments": "{}"}}
    more[2]["tool_call_id"] = "c9"
    value["traj"] = [*value["traj"][:-1], *more]
    del value["info"]["task"]["instruction"]
    suite, made = made_of("tau", [value])
    assert [case.name for case in suite.cases] == ["Task 7, trial 2, turn 2", "Task 7, trial 2, turn 3"]
    [found] = agreements(runs_of(suite, made))
    assert (found.agree, found.of, found.ungraded) == (1, 1, 0)


@pytest.mark.parametrize(
    ("changes", "reason", "status"),
    [
        ({}, "user done", "passed"),
        ({"last": "###TRANSFER###"}, "user gave up", "passed"),
        ({"last": ""}, "rounds exhausted", "failed"),
        ({"outputs": ["YES"]}, "user done", "passed"),
        ({"outputs": ["1500"]}, "user done", "failed"),
    ],
)
def test_the_end_and_the_outputs_of_a_conversation_decide_as_in_tau_bench(
    changes: dict[str, Any], reason: str, status: str
) -> None:
    value = tau(0.0, RIGHT)
    value["info"]["task"]["outputs"] = changes.get("outputs", [])
    value["traj"][-1]["content"] = changes.get("last", "###STOP###")
    suite, made = made_of("tau", [value])
    [run] = runs_of(suite, made)
    assert (run.trajectory.finish_reason, run.status) == (reason, status)


def test_the_agreement_is_in_the_report_of_the_import_and_of_grading(tmp_path: Path) -> None:
    program = Program(tmp_path, {})
    program.write("air.json", json.dumps([tau(0.0, RIGHT), tau(0.0, NEVER_MADE) | {"task_id": 8}]))
    lines = (
        "reward of tau-bench: 1 of 2 verdicts agree",
        "  Task 7, trial 2: reward of tau-bench 0, failed there, passed here",
    )
    dry = program.run("import", "air.json", "--dry-run").stdout
    done = program.run("import", "air.json", "--recordings", "runs").stdout
    graded = program.run("grade", "runs").stdout
    for line in lines:
        assert f"{line}\n" in dry and f"{line}\n" in done and f"  {line}\n" in graded
    report = json.loads(program.run("grade", "runs", "--format", "json").stdout)
    [agreement] = report["totals"]["agreement"]
    assert (agreement["agree"], agreement["of"]) == (1, 2)
    metrics = [metric for run in report["runs"] for metric in run["metrics"]]
    assert [(metric["name"], metric["value"], metric["holds"]) for metric in metrics] == [
        ("reward of tau-bench", 0.0, False)
    ] * 2
    assert {metric["about"] for metric in metrics} == {"Task 7, trial 2", "Task 8, trial 2"}


def test_the_trials_of_a_task_give_pass_k_and_each_unknown_tool_is_named_once(tmp_path: Path) -> None:
    other = tau(0.0, RIGHT)
    other["traj"][-3]["content"] = "Error: no such city"
    trials = [tau(1.0, RIGHT), tau(1.0, RIGHT) | {"trial": 2}, other | {"trial": 3}]
    trials[1]["traj"].insert(-1, {"role": "user", "content": "And now?"})
    call = {"id": "c8", "type": "function", "function": {"name": "get_user", "arguments": "{}"}}
    trials[1]["traj"].insert(-1, {"role": "assistant", "content": None, "tool_calls": [call]})
    trials[1]["traj"].insert(-1, {"role": "tool", "tool_call_id": "c8", "content": "u"})
    trials[1]["traj"].insert(-1, {"role": "assistant", "content": "Still."})
    program = Program(tmp_path, {})
    program.write("air.json", json.dumps(trials))
    program.run("import", "air.json", "--recordings", "runs")
    lines = program.run("grade", "runs").stdout.splitlines()
    assert "  pass^1 66.7% · pass^2 33.3% · pass^3 0.0%" in lines
    unchecked = [line.split()[4] for line in lines if "were not checked" in line]
    assert sorted(unchecked) == ["get_user", "order_weather"]


OWN_FORMS = {"openai", "anthropic", "table", "otel", "claude-code", "atif"}
"""Forms that are of no test system."""


@each_row("form", [form for form in FORMS if form not in OWN_FORMS])
def test_suites_of_other_systems_note_invalid_arguments(form: str) -> None:
    assert format_of(form).grading["invalid_arguments"] == "note"
