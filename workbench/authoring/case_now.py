"""Compares the case that was run with the case as it is now: runs are comparable when the same things are graded."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from workbench.authoring.document import CaseOutline
from workbench.authoring.open_suite import OpenSuite
from workbench.batches.plan import PlannedRun, same_value
from workbench.grading.grade import RunResult
from workbench.suite.loading import SuiteFile
from workbench.suite.model import Case, Suite
from workbench.suite.settings import settings_of

CaseKey = tuple[Path, str]
"""The file of a suite and the id of a case."""

_EXPECTED = (
    *("ordered", "unordered", "disallowed", "extra_calls", "expect_no_calls"),
    *("response_contains", "response"),
)


class CaseNow(NamedTuple):
    """The current state of a case, in a suite that can run."""

    file: SuiteFile
    suite: Suite
    case: Case


def read_now(suite: OpenSuite, outline: CaseOutline) -> CaseNow | None:
    """Return the current state of a case in a suite that can run, `None` if the case has errors. Cases with errors are
    left out of the suite."""
    file = suite.file
    if file.suite is None:
        cut = suite.runnable((outline.key,)) if outline.index not in suite.broken_cases else None
        return CaseNow(cut, cut.suite, cut.suite.cases[0]) if cut is not None and cut.suite is not None else None
    return CaseNow(file, file.suite, file.suite.cases[outline.index])


def graded_alike(run: PlannedRun, suite: Suite, case: Case) -> bool:
    """Return whether a run is graded by the same expectations and options as the case has now."""
    if run.case is not case and not (
        all(same_value(getattr(run.case, name), getattr(case, name)) for name in _EXPECTED)
        and same_value(_steps_expected(run.case), _steps_expected(case))
    ):
        return False
    own_same = run.case is case or (run.case.grading == case.grading and run.case.limits == case.limits)
    if own_same and run.suite.grading == suite.grading and run.suite.limits == suite.limits:
        return True
    before, now = run.settings, settings_of(suite, case)
    return before.grading == now.grading and before.limits == now.limits


def stops_alike(case: Case, result: RunResult) -> bool:
    """Return whether a chain that stops at its first failed step would have ended where this run of it ended."""
    if not case.stop_on_failure:
        return True
    failed = next((step.step for step in result.steps if step.status == "failed"), None)
    if failed is None:
        return result.trajectory.finish is None or result.trajectory.finish.reason != "step failed"
    return all(step.status is None for step in result.steps[failed:])


def _steps_expected(case: Case) -> list[object]:
    return [(step.tool, step.args, step.forbidden_args, step.only_args) for step in case.steps]
