"""Whether a case, as it is now, asks what it asked when it was run."""

from __future__ import annotations

from workbench.batches.plan import PlannedRun
from workbench.suite.model import Case, Suite
from workbench.suite.settings import settings_of

_BY_SUITE = ("servers", "tools", "mocks")
_BY_CASE = ("user", "messages", "tools", "offer", "mocks", "stop_on_failure")


def same_question(run: PlannedRun, suite: Suite, case: Case) -> bool:
    """Whether the model and the tools would see what they saw in this run, were the case run now."""
    if run.case is case and run.suite is suite:
        return True
    before, now = run.settings, settings_of(suite, case)
    return (
        all(same_value(getattr(run.case, name), getattr(case, name)) for name in _BY_CASE)
        and all(same_value(getattr(run.suite, name), getattr(suite, name)) for name in _BY_SUITE)
        and (run.case.skip is None) == (case.skip is None)
        and (before.system, before.execute) == (now.system, now.execute)
        and before.limits.max_rounds == now.limits.max_rounds
        and before.limits.timeout_s == now.limits.timeout_s
        and (not run.model_of_suite or run.model in now.models)
        and same_value(_steps_asked(run.case), _steps_asked(case))
    )


def same_value(left: object, right: object) -> bool:
    """Whether two values are one in a suite, in which 1, 1.0 and true are three."""
    return left is right or (left == right and repr(left) == repr(right))


def _steps_asked(case: Case) -> list[object]:
    return [(step.user, step.system, step.mock_result) for step in case.steps]
