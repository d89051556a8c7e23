"""Parts of suite format 1 that this version cannot run yet.

`validate` warns of them, and a case that needs one ends as an error that names the key. What gets built is taken off
the lists here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from workbench.suite.checks import Checks, Judged
from workbench.suite.model import Case, Mock, Suite
from workbench.suite.places import Place, written

BUILT_GRADERS = frozenset({"critics"})
BUILT_REPEAT_RULES = frozenset({"last"})


@dataclass(frozen=True, slots=True)
class UnbuiltPart:
    """A key that asks for such a part. `place` starts at the case, or at the suite when `of_suite` is true."""

    place: Place
    value: str = ""
    of_suite: bool = False

    def __str__(self) -> str:
        return f'{written(self.place)} = "{self.value}"' if self.value else written(self.place)


def unbuilt_parts(suite: Suite, case: Case) -> tuple[str, ...]:
    """The keys that keep this version from running a case, such as `steps` or `grading.by = "decision"`."""
    return tuple(dict.fromkeys(str(part) for part in (*unbuilt_in_case(suite, case), *unbuilt_in_suite(suite))))


def unbuilt_in_suite(suite: Suite) -> Iterator[UnbuiltPart]:
    """What every case of a suite needs: its mocks."""
    yield from _judged_mocks(suite.mocks, of_suite=True)


def unbuilt_in_case(suite: Suite, case: Case) -> Iterator[UnbuiltPart]:
    """What one case needs, by itself or through the suite's grading."""
    by = case.grading.by or suite.grading.by
    if by is not None and by not in BUILT_GRADERS:
        yield UnbuiltPart(("grading", "by"), by, of_suite=case.grading.by is None)
    rule = case.grading.repeat_rule or suite.grading.repeat_rule
    if case.repeats > 1 and rule is not None and rule not in BUILT_REPEAT_RULES:
        yield UnbuiltPart(("grading", "repeat_rule"), rule, of_suite=case.grading.repeat_rule is None)
    if case.steps:
        yield UnbuiltPart(("steps",))
    for place, call in case.written_calls():
        yield from _judged(call.args, (*place, "args"))
    if isinstance(case.response, Judged):
        yield UnbuiltPart(("response", "judged"))
    yield from _judged_mocks(case.mocks)


def _judged_mocks(mocks: Iterable[Mock], of_suite: bool = False) -> Iterator[UnbuiltPart]:
    for index, mock in enumerate(mocks):
        yield from _judged(mock.when, ("mocks", index, "when"), of_suite)


def _judged(checks: Checks | None, place: Place, of_suite: bool = False) -> Iterator[UnbuiltPart]:
    for name, check in (checks or {}).items():
        if isinstance(check, Judged):
            yield UnbuiltPart((*place, name, "judged"), of_suite=of_suite)
