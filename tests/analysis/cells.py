"""Hand-made runs and cells for tests of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workbench.analysis.comparison import Cell, cell_of
from workbench.grading.run_summary import RunSummary
from workbench.grading.status import Status
from workbench.suite.grading_model import RepeatRule
from workbench.suite.settings import Grading

FIGURES = RunSummary(
    suite="weather.toml",
    case_id="oslo",
    case_name="Oslo",
    model="a",
    repeat=0,
    status=Status.PASSED,
    score=1.0,
    reason=None,
    latency_ms=100.0,
    first_token_ms=20.0,
    input_tokens=10,
    output_tokens=5,
    cost_usd=0.25,
    asked=True,
)


def ran(
    status: Status = Status.PASSED,
    score: float | None = None,
    *,
    case: str = "oslo",
    model: str = "a",
    repeat: int = 0,
    rule: RepeatRule = "last",
) -> RunSummary:
    """Return a run. The default score is 1 for a passed run, 0.85 for a warned one and 0 for a failed one."""
    if score is None:
        score = {"passed": 1.0, "warned": 0.85, "failed": 0.0}.get(status)
    grading = Grading(repeat_rule=rule)
    return replace(
        FIGURES, status=status, score=score, case_id=case, case_name=case, model=model, repeat=repeat, grading=grading
    )


def column(model: str, *statuses: Status, scores: Sequence[float | None] | None = None) -> list[Cell]:
    """Return a model's cells for the cases 0, 1, 2, …, with one run each."""
    of_cases = scores or [None] * len(statuses)
    return [
        cell_of([ran(status, score, case=str(number), model=model)])
        for number, (status, score) in enumerate(zip(statuses, of_cases, strict=True))
    ]


def columns(*, better: int = 0, worse: int = 0, both_good: int = 0, both_bad: int = 0) -> tuple[list[Cell], list[Cell]]:
    """Return the columns of two models. `better` is the number of cases on which the second model is better, and so
    on."""
    good: list[Status] = [Status.PASSED]
    bad: list[Status] = [Status.FAILED]
    first = bad * better + good * (worse + both_good) + bad * both_bad
    second = good * better + bad * worse + good * both_good + bad * both_bad
    return column("a", *first), column("b", *second)
