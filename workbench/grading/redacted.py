"""Finds what was redacted in a stored run, and decides whether the run can still be graded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.checks.check import asks_for_run
from workbench.grading.grade import RedactedPlace, RunResult
from workbench.suite.model import ANY_TOOL, Case
from workbench.suite.tool_names import same_tool
from workbench.trajectory.trajectory import CallRecord, Trajectory


def redacted_places(
    raw: Trajectory, stored: Trajectory, case: Case | None, stored_case: Case | None
) -> list[RedactedPlace]:
    """Returns the places where the stored run and case differ from the originals."""
    places: list[RedactedPlace] = []
    sees_run = case is not None and any(asks_for_run(check) for _, check in case.answer_checks)
    if stored is not raw:
        for index, (before, after) in enumerate(zip(raw.calls, stored.calls, strict=True)):
            places += _in_call(index, before, after)
            if sees_run and before.result != after.result:
                places.append(RedactedPlace("result", index))
        if _schemas(raw) != _schemas(stored):
            places.append(RedactedPlace("schema"))
        if stored.final_answer != raw.final_answer:
            places.append(RedactedPlace("answer"))
    if (
        case is not None
        and stored_case is not None
        and stored_case is not case
        and _expectations(case) != _expectations(stored_case)
    ):
        places.append(RedactedPlace("case"))
    return places


def why_not_regraded(result: RunResult, case: Case, *, as_stored: bool) -> str | None:
    """Returns why a stored run cannot be regraded by a case, `None` if it can: it cannot when a check would look at
    a redacted place. `as_stored` means that the case is the one stored with the run."""
    for place in result.redacted:
        if place.what == "case":
            if as_stored:
                return _kept("what the case expects holds a secret, which is not stored")
        elif place.call is not None and any(asks_for_run(check) for _, check in case.answer_checks):
            which = f"call {place.call + 1}"
            return _kept(f"{which} holds a secret, which is not stored, and a Python function sees the run")
        elif place.what == "answer":
            if case.checks_answer:
                return _kept("the answer holds a secret, which is not stored, and the case checks the answer")
        elif place.what == "schema":
            if any(call.args for _, call in case.written_calls()):
                return _kept("the schema of a tool holds a secret, which is not stored, and arguments are checked")
        elif place.call is not None and place.call < len(result.trajectory.calls):
            why = _why_of_call(place, result.trajectory.calls[place.call], case)
            if why is not None:
                return _kept(why)
    return None


def _schemas(trajectory: Trajectory) -> list[object]:
    start = trajectory.start
    return [tool.parameters for tool in start.tools] if start is not None else []


def _kept(why: str) -> str:
    return f"cannot be regraded and keeps its verdict: {why}"


def _in_call(index: int, before: CallRecord, after: CallRecord) -> Iterator[RedactedPlace]:
    if before is after:
        return
    if before.tool != after.tool:
        yield RedactedPlace("tool", index)
    if list(before.arguments) != list(after.arguments):
        yield RedactedPlace("names", index)
    for name, value in before.arguments.items():
        if name in after.arguments and after.arguments[name] is not value:
            yield RedactedPlace("argument", index, name)


def _why_of_call(place: RedactedPlace, record: CallRecord, case: Case) -> str | None:
    assert place.call is not None
    which = f"call {place.call + 1} ({record.tool})"
    if place.what == "tool":
        return f"the name of the tool of call {place.call + 1} holds a secret, which is not stored"
    checks = [call.args for _, call in case.written_calls() if call.tool and _is_meant(call.tool, record.tool)]
    if place.what == "names" and any(each is not None for each in checks):
        return f"the name of an argument of {which} holds a secret, which is not stored"
    if any(place.argument in (each or ()) for each in checks):
        return f"the argument {place.argument!r} of {which} holds a secret, which is not stored, and is checked"
    return None


def _is_meant(expected: str, tool: str) -> bool:
    return expected == ANY_TOOL or same_tool(expected, tool)


def _expectations(case: Case) -> tuple[object, ...]:
    steps = tuple((step.tool, step.args, step.forbidden_args) for step in case.steps)
    expected: Sequence[object] = (case.ordered, case.unordered, case.disallowed, case.response, case.response_contains)
    return (*expected, steps)
