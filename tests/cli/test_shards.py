"""`workbench run --shard`: one part of a plan, chosen by the user or by a scheduler's variables."""

from __future__ import annotations

import json

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER, WRONG
from tests.tables import each_row
from workbench.cli.run_options import shard_in
from workbench.evaluation.options import OptionsError


@each_row(
    ("variables", "shard"),
    [
        ("SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=20 SLURM_ARRAY_TASK_MIN=1", (3, 20)),
        ("SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_MIN=0", (1, 4)),
        ("SLURM_ARRAY_TASK_ID=9 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_STEP=4", (3, 3)),
        ("CI_NODE_INDEX=2 CI_NODE_TOTAL=5", (2, 5)),
        ("CIRCLE_NODE_INDEX=0 CIRCLE_NODE_TOTAL=5", (1, 5)),
        ("BUILDKITE_PARALLEL_JOB=4 BUILDKITE_PARALLEL_JOB_COUNT=5", (5, 5)),
        ("JOB_COMPLETION_INDEX=0 WORKBENCH_SHARDS=8", (1, 8)),
        ("PARALLEL_SEQ=8 WORKBENCH_SHARDS=8", (8, 8)),
    ],
)
def test_a_scheduler_says_which_shard_this_is(variables: str, shard: tuple[int, int]) -> None:
    assert shard_in(dict(each.split("=") for each in variables.split())) == shard


@each_row(
    ("variables", "why"),
    [
        ("", "finds no job number"),
        ("PARALLEL_SEQ=1 WORKBENCH_SHARDS=0", "the value is '0': set WORKBENCH_SHARDS to the number of shards"),
        ("JOB_COMPLETION_INDEX=0", "set WORKBENCH_SHARDS to the number of shards"),
        ("SLURM_ARRAY_TASK_ID=9 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=1", "not numbered evenly"),
        (
            "JOB_COMPLETION_INDEX=20 WORKBENCH_SHARDS=20",
            "no job 20 of 20, counted from 0, although JOB_COMPLETION_INDEX=20 and ",
        ),
        ("CI_NODE_INDEX=5 CI_NODE_TOTAL=4", "although CI_NODE_INDEX=5 and CI_NODE_TOTAL=4: correct them"),
        ("CI_NODE_INDEX=0 CI_NODE_TOTAL=4", "no job 0 of 4, counted from 1"),
    ],
)
def test_what_no_scheduler_says_is_asked_for(variables: str, why: str) -> None:
    with pytest.raises(OptionsError, match=why):
        shard_in(dict(each.split("=") for each in variables.split()))


def test_a_shard_makes_its_runs_and_decides_nothing(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    options = ("run", "weather.toml", "--repeats", "3", "--shard", "2/4", "--plan", "monday", "--format", "json")
    done = program.run(*options)
    report = json.loads(done.stdout)
    assert done.stderr == "shard 2/4: 2 of 6 runs\n"
    assert [(run["case_id"], run["repeat"], run["status"]) for run in report["runs"]] == [
        ("right", 1, "passed"),
        ("wrong", 2, "failed"),
    ]
    assert (done.returncode, report["exit_code"]) == (0, 0), "a case that failed is for the merge to judge"
    shown = program.run("history", "show", "1", "--run", "6")
    assert "Wrong" in shown.stdout, "runs are counted as in the whole plan"
    empty = program.run("run", "weather.toml", "--shard", "9/9", "--quiet")
    assert (empty.returncode, "no run is left for it" in empty.stdout) == (0, True)
    assert "Pass the same --plan ID to every shard" in empty.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--shard 2/4 --no-history", "shards are merged from their histories, so a shard needs one"),
        ("--shard 2/4 --until decided --gate 0.5", "leave out either --shard or --until"),
        ("--shard 2/4 --plan a --baseline 1", "shard 2/4 has only some of the runs"),
        ("--plan monday", "--plan applies to shards: give --shard too"),
        ("--resume --shard 2/4", "the resumed batch determines --shard"),
        ("--shard 5/4", "there is no shard 5 of 4: write one of 1/4 to 4/4"),
        ("--shard 5/0", "must be a shard such as 3/20"),
        ("--name x", "run has no --name: name the batch when it has ended, with 'workbench history name BATCH NAME'"),
        ("--shard 1/4 --shard-by cost:none.sqlite3", "there is no history none.sqlite3"),
    ],
)
def test_what_does_not_go_with_a_shard_is_said(program: Program, words: str, why: str) -> None:
    program.write("weather.toml", WEATHER)
    done = program.run("run", "weather.toml", *words.split())
    assert done.returncode == 2
    assert why in done.stderr
