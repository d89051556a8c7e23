"""Finds the checks that a language model judges."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.suite.checks import Judged, with_parts
from workbench.suite.model import Case, Suite


def judged_checks(suite: Suite, case: Case, *, mocks: bool = True) -> Iterator[Judged]:
    """Returns the judged checks that a run of the case may need: its own and, unless `mocks` is false, those in the
    conditions of its mocks and the suite's."""
    for check in case.written_checks():
        if isinstance(check, Judged):
            yield check
    for mock in (*case.mocks, *suite.mocks) if mocks else ():
        for condition in (mock.when or {}).values():
            yield from (check for check in with_parts(condition) if isinstance(check, Judged))
