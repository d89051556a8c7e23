"""The recipes of docs/beyond-one-terminal.md, with the commands of schedulers run here and merged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.suites import WEATHER, WRONG
from tests.sampled_rows import first_rows
from tests.test_ci_recipes import ROOT, Machine
from workbench.grading.status import Status
from workbench.history.history import History

PAGE = (ROOT / "docs" / "beyond-one-terminal.md").read_text(encoding="utf-8")


def example(heading: str, language: str) -> str:
    section = PAGE.partition(f"### {heading}\n")[2].partition("\n###")[0]
    found = re.search(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def steps(job: dict[str, Any]) -> list[str]:
    """The commands of a job that are about Workbench."""
    found = [each if isinstance(each, str) else each.get("run", "") for each in job.get("steps") or job["script"]]
    return [each for each in found if each.startswith("workbench")]


def github(text: str) -> tuple[list[tuple[str, dict[str, str]]], str]:
    jobs = yaml.safe_load(text)["jobs"]
    (run,), (merge,) = steps(jobs["shard"]), steps(jobs["merge"])
    run = run.replace("${{ strategy.job-total }}", "2")
    return [(run.replace("${{ matrix.shard }}", str(each)), {"GITHUB_RUN_ID": "7"}) for each in (1, 2)], merge


def gitlab(text: str) -> tuple[list[tuple[str, dict[str, str]]], str]:
    jobs = yaml.safe_load(text)
    (run,), (merge,) = steps(jobs["shards"]), steps(jobs["merge"])
    return [(run, {"CI_NODE_INDEX": str(each), "CI_NODE_TOTAL": "2", "CI_PIPELINE_ID": "7"}) for each in (1, 2)], merge


def slurm(text: str) -> tuple[list[tuple[str, dict[str, str]]], str]:
    array = {"SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_JOB_ID": "7"}
    assert "`workbench history merge shards`" in PAGE
    return [(text, {**array, "SLURM_ARRAY_TASK_ID": str(each)}) for each in (1, 2)], "workbench history merge shards"


def kubernetes(text: str) -> tuple[list[tuple[str, dict[str, str]]], str]:
    (container,) = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"]
    (command,) = container["args"]
    command = command.replace("/suites", "suites").replace("/shards", "shards")
    count, plan = container["env"]
    assert (count["name"], plan["name"]) == ("WORKBENCH_SHARDS", "WORKBENCH_PLAN")
    variables = {"WORKBENCH_SHARDS": "2", "WORKBENCH_PLAN": "7"}
    return [(command, {**variables, "JOB_COMPLETION_INDEX": str(each)}) for each in (0, 1)], (
        "workbench history merge shards"
    )


@pytest.mark.parametrize(
    ("heading", "language", "read"),
    first_rows(
        [
            ("GitHub Actions", "yaml", github),
            ("GitLab", "yaml", gitlab),
            ("Slurm", "sh", slurm),
            ("Kubernetes", "yaml", kubernetes),
        ],
        2,
    ),
)
def test_a_recipe_makes_one_batch(heading: str, language: str, read: Any, tmp_path: Path) -> None:
    machine = Machine(tmp_path, WEATHER + WRONG)
    runs, merge = read(example(heading, language))
    for script, variables in runs:
        done = machine.run(script, **variables)
        assert (done.returncode, done.stderr.count("no id")) == (0, 0), done.stderr
    merged = machine.run(f"{merge} --history merged.sqlite3")
    assert merged.returncode == 1, "one case fails"
    assert "merged from 2 of 2 shards, plan " in merged.stderr
    with History(machine.folder / "merged.sqlite3") as history:
        (batch,) = history.batches()
    assert (batch.planned, batch.missing, batch.count(Status.PASSED)) == (2, 0, 1)
