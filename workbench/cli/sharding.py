"""Which shard `workbench run` makes, by its options, or by what a scheduler says in the environment."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.evaluation.options import Shard

COUNT = "WORKBENCH_SHARDS"
"""The variable that says how many shards there are where a scheduler does not."""

_SCHEDULERS = (
    ("CI_NODE_INDEX", "CI_NODE_TOTAL", 1),
    ("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0),
    ("BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0),
    ("JOB_COMPLETION_INDEX", COUNT, 0),
    ("PARALLEL_SEQ", COUNT, 1),
)
"""Variables with the number of a job and with how many there are, and from where its number counts: GitLab, CircleCI,
Buildkite, indexed jobs of Kubernetes, GNU parallel. Slurm counts from where its user says."""

_PLAN_IDS = (
    "WORKBENCH_PLAN",
    "GITHUB_RUN_ID",
    "CI_PIPELINE_ID",
    "SLURM_ARRAY_JOB_ID",
    "CIRCLE_WORKFLOW_ID",
    "BUILDKITE_BUILD_ID",
)
"""Variables that are the same in all jobs of one run, and in one that is made again: no attempt is counted."""


def shard_of(arguments: argparse.Namespace, paths: Sequence[str | Path]) -> Shard:
    """The shard that parsed arguments mean. Raises OptionsError."""
    from workbench.cli.parser import history_to_read
    from workbench.evaluation.options import Shard

    index, of = arguments.shard if arguments.shard != "auto" else shard_in(os.environ)
    costs: Path | None = None
    if arguments.shard_by is not None and arguments.shard_by != "turn":
        named = arguments.shard_by.partition(":")[2]
        costs = Path(named) if named else history_to_read(argparse.Namespace(history=None), paths)
    plan_id = arguments.plan or next(filter(None, map(os.environ.get, _PLAN_IDS)), None)
    return Shard(index=index, of=of, plan_id=plan_id, costs=costs)


def shard_in(environment: Mapping[str, str]) -> tuple[int, int]:
    """Return which shard this is, from 1, and of how many, as a scheduler says. Raises OptionsError."""
    from workbench.evaluation.options import OptionsError

    if "SLURM_ARRAY_TASK_ID" in environment:
        task, count = _number(environment, "SLURM_ARRAY_TASK_ID"), _number(environment, "SLURM_ARRAY_TASK_COUNT")
        first, step = _number(environment, "SLURM_ARRAY_TASK_MIN"), _number(environment, "SLURM_ARRAY_TASK_STEP", 1)
        number, odd = divmod(task - first, max(step, 1))
        if odd or not 0 <= number < count:
            raise OptionsError(
                f"the tasks of this array are not numbered evenly, as SLURM_ARRAY_TASK_ID={task}, _MIN={first}, "
                f"_STEP={step} and _COUNT={count} say: give --shard I/N and --plan ID"
            )
        return number + 1, count
    for name, total, first in _SCHEDULERS:
        if name in environment:
            number, count = _number(environment, name), _number(environment, total)
            if not first <= number < first + count:
                raise OptionsError(
                    f"--shard auto: there is no job {number} of {count}, counted from {first}, as {name}={number} and "
                    f"{total}={count} say: correct them, or give --shard I/N"
                )
            return number - first + 1, count
    raise OptionsError(
        "--shard auto finds no number of a job: it knows arrays of Slurm, parallel jobs of GitLab, CircleCI and "
        "Buildkite, indexed jobs of Kubernetes and GNU parallel; give --shard I/N"
    )


def _number(environment: Mapping[str, str], name: str, otherwise: int | None = None) -> int:
    from workbench.evaluation.options import OptionsError

    text = environment.get(name, "")
    if not text and otherwise is not None:
        return otherwise
    if not text.isdecimal() or (name == COUNT and int(text) < 1):
        hint = f"set {name} to the number of shards" if name == COUNT else "give --shard I/N"
        raise OptionsError(f"--shard auto needs a number in {name}, and it is {text!r}: {hint}")
    return int(text)
