"""The place of the expectation that a run failed, so that the user can edit it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from workbench.authoring.proposal import alternative_place
from workbench.grading.grade import Issue, RunResult
from workbench.suite.model import Case
from workbench.suite.problems import Place

_KEYS: dict[str, tuple[str, ...]] = {
    "extra call": ("expect_no_calls", "extra_calls"),
    "over calling": ("expect_no_calls", "extra_calls"),
    "wrong order": ("ordered",),
    "forbidden call": ("disallowed",),
    "response": ("response_contains", "response"),
    "missing change": ("final",),
    "wrong change": ("final",),
    "unexpected change": ("final",),
    "final state": ("final",),
    "not said": ("final",),
    "final goal": ("final",),
    "failed step": ("steps",),
    "failed turn": ("user",),
    "turns exhausted": ("user",),
    "user gave up": ("user",),
}
"""The keys that can cause an issue which concerns no expected call, by the kind of the issue. The first key that the
case sets counts."""


def failed_place(
    case: Case, result: RunResult, *, call: int | None = None, expected_call: int | None = None
) -> Place | None:
    """Return the place of the expectation that a run failed, or `None` if it failed none.

    `call` and `expected_call` are the indices of the selected actual or expected call. The expectations of that call
    are searched first, then the expectations that decide the grade."""
    if result.grade is None:
        return None
    issues = sorted(
        result.grade.issues,
        key=lambda issue: (not _is_about(issue, call, expected_call), not issue.decides, issue.argument is None),
    )
    return next(_places(case, issues), None)


def _is_about(issue: Issue, call: int | None, expected_call: int | None) -> bool:
    if expected_call is not None:
        return issue.expected_call == expected_call
    return call is not None and issue.call == call


def _places(case: Case, issues: Iterable[Issue]) -> Iterator[Place]:
    calls = tuple(_places_of_calls(case))
    for issue in issues:
        if issue.expected_call is not None and issue.expected_call < len(calls):
            place = alternative_place(
                case.expected_calls()[issue.expected_call], calls[issue.expected_call], issue.tool
            )
            yield place if issue.argument is None else (*place, "args", issue.argument)
        elif (keys := _KEYS.get(issue.kind)) is not None:
            yield (next((key for key in keys if getattr(case, key)), keys[-1]),)


def _places_of_calls(case: Case) -> Iterator[Place]:
    for index, step in enumerate(case.steps):
        if step.expected_call is not None:
            yield ("steps", index)
    for place, _ in case.placed_expected_calls():
        yield place
