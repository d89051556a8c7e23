"""Hand-made run results, for tests of figures computed from them."""

from __future__ import annotations

from tests.trajectory.scripts import events_of
from workbench.grading.grade import Grade, RunResult
from workbench.grading.status import Status
from workbench.trajectory.fold import fold
from workbench.trajectory.trajectory import Trajectory

_VERDICTS = {"passed", "warned", "failed"}


def result(
    status: Status,
    score: float | None = None,
    *,
    suite: str = "suite.toml",
    case: str = "case",
    model: str = "offline",
    repeat: int = 0,
    rounds: int = 1,
    error: str | None = None,
    grade: Grade | None = None,
    trajectory: Trajectory | None = None,
    cost_usd: float | None = None,
) -> RunResult:
    """Return a run with `rounds` answers of 2 ms, 3 input tokens and 5 output tokens each.

    A run whose status is a verdict has a grade. Any other run sent no request and costs nothing, unless `trajectory` is
    given."""
    run_id = f"{suite}-{case}-{model}-{repeat}"
    graded = status in _VERDICTS
    script = [("", 1)] * (rounds - 1) + [("Done.", 0)]
    if grade is None and graded:
        grade = Grade("critics", score, status, "by hand")  # type: ignore[arg-type]
    return RunResult(
        run_id=run_id,
        suite=suite,
        case_id=case,
        case_name=case.title(),
        model=model,
        repeat=repeat,
        status=status,
        trajectory=trajectory or (fold(events_of(script, run_id=run_id)) if graded else Trajectory(run_id)),
        grades=(grade,) if grade else (),
        error=error,
        cost_usd=cost_usd if graded or trajectory else 0.0,
    )
