"""The expectations of a case in words, for reports that show them beside the runs."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.checks.check import describe_whole
from workbench.checks.values import json_text
from workbench.dataclasses import dataclass
from workbench.grading.pairing_issues import call_notes
from workbench.suite.expected_calls import AnyOrder, ExpectedCall
from workbench.suite.model import Case, Step
from workbench.suite.settings import Grading, extra_calls_of


@dataclass(frozen=True, slots=True)
class ExpectedArgument:
    """An argument of an expected call, and its check in words on one line."""

    argument: str
    check: str


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expected or a disallowed call. If it has `alternatives`, one of them is expected.

    `arguments` is `None` if any arguments are right. `forbidden` names the arguments that the call must not have. With
    `only_args`, any other argument is wrong. `place` is the place in the order of calls: `ordered 2`, `ordered 2, in
    any order`, `unordered`, `step 1` or `disallowed`. `notes` are further expectations, such as `1 to 3 times`."""

    tool: str
    place: str
    arguments: tuple[ExpectedArgument, ...] | None
    forbidden: tuple[str, ...] = ()
    only_args: bool = False
    notes: tuple[str, ...] = ()
    alternatives: tuple[Expectation, ...] = ()


@dataclass(frozen=True, slots=True)
class Expectations:
    """Everything that a case expects.

    `calls` are in the order of `Case.expected_calls()`, and `disallowed` is in the order of `Case.disallowed`.
    `no_calls` is true if the case expects no calls at all. `others` describes the unexpected calls that fail a run.
    `answer` and `final` describe the checks of the final answer and the conditions after the run, one line each."""

    calls: tuple[Expectation, ...] = ()
    disallowed: tuple[Expectation, ...] = ()
    no_calls: bool = False
    others: str = ""
    answer: tuple[str, ...] = ()
    final: tuple[str, ...] = ()


def forbidden_extra_calls(case: Case, grading: Grading) -> str:
    """Describe the unexpected calls that fail a run. Return an empty text if no unexpected call fails a run."""
    match extra_calls_of(case, grading):
        case None | "allow":
            return ""
        case "forbid" | ():
            return "no other calls"
        case "allow_read_only":
            return "no other calls, except of tools that are annotated as read-only"
        case names:
            return f"no other calls, except of {', '.join(names)}"


def expectations_of(case: Case, grading: Grading) -> Expectations:
    return Expectations(
        calls=tuple(_expected(case)),
        disallowed=tuple(_expectation(call, "disallowed") for call in case.disallowed),
        no_calls=case.expect_no_calls,
        others=forbidden_extra_calls(case, grading),
        answer=tuple(_answer_checks(case)),
        final=tuple(final_lines(case)),
    )


def final_lines(case: Case) -> Iterator[str]:
    """Yield the requirements of a case's `final` in words, one line for each change and each state."""
    if case.final is None:
        return
    if case.final.changes == ():
        yield "nothing was changed"
    for change in case.final.changes or ():
        yield f"changed by {_described(change)}"
    if case.final.changes:
        yield "and by no other call"
    for state in case.final.state:
        given = ", ".join(f"{name}={json_text(value)}" for name, value in state.args.items())
        parts = []
        if state.is_error:
            parts.append("an error")
        if state.result is not None:
            parts.append(describe_whole(state.result))
        yield f"{state.tool}({given}) returns {', '.join(parts) or 'no error'}"


def _described(call: ExpectedCall) -> str:
    if call.args is None:
        return f"{call.tool_text}, with any arguments"
    checks = ", ".join(f"{name}: {describe_whole(check)}" for name, check in call.args.items())
    only = " and no others" if call.only_args else ""
    return f"{call.tool_text}({checks}){only}"


def _answer_checks(case: Case) -> Iterator[str]:
    for text in case.response_contains:
        yield f"contains {text}"
    for name, check in case.answer_checks:
        described = describe_whole(check)
        yield described if name is None else f"{name}: {described}"


def _expected(case: Case) -> Iterator[Expectation]:
    for number, step in enumerate(case.steps, 1):
        if step.expects_call:
            yield _expectation(step, f"step {number}")
    for number, item in enumerate(case.ordered, 1):
        yield from _of_item(item, f"ordered {number}", ", in any order")
    for item in case.unordered:
        yield from _of_item(item, "unordered", "")


def _of_item(item: ExpectedCall | AnyOrder, place: str, of_group: str) -> Iterator[Expectation]:
    if not isinstance(item, AnyOrder):
        yield _expectation(item, place)
        return
    if item.parallel:
        of_group = ", in one answer"
    for call in item.any_order:
        yield _expectation(call, f"{place}{of_group}")


def _expectation(call: ExpectedCall | Step, place: str) -> Expectation:
    arguments = None
    if call.args is not None:
        arguments = tuple(ExpectedArgument(name, describe_whole(check)) for name, check in call.args.items())
    notes = call_notes(call)
    if call.because is not None:
        notes.append(f"because: {call.because}")
    return Expectation(
        tool=call.tool or "",
        place=place,
        arguments=arguments,
        forbidden=call.forbidden_args,
        only_args=call.only_args,
        notes=tuple(notes),
        alternatives=tuple(_expectation(each, place) for each in call.any_of),
    )
