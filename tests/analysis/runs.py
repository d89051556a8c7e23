"""Runs of one case, graded as the engine grades them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.trajectories import CallSpec, trajectory_of
from workbench.grading.grade import RunResult
from workbench.grading.run import grade_run_and_steps
from workbench.suite.model import Case, Suite
from workbench.trajectory.trajectory import Trajectory

GradedRun = tuple[RunResult, Case]


def graded(case: Case, trajectory: Trajectory, number: int = 0, **grading: Any) -> GradedRun:
    """Return a run of the case, graded by a suite with these settings."""
    suite = Suite.model_validate({"format": 1, "name": "suite", "cases": [case], "grading": grading})
    grades, status, steps = grade_run_and_steps(suite, case, trajectory)
    run = RunResult(f"run-{number}", "suite.toml", case.id, case.name, "model", number, status, trajectory, grades)
    return replace(run, steps=steps), case


def called(case: Case, *calls: CallSpec, answer: str = "Done.", **grading: Any) -> GradedRun:
    """Return a run with these calls and then an answer."""
    return graded(case, trajectory_of(*calls, answer=answer), **grading)
