"""The measure "valid arguments" in words, and which calls could not be checked, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from workbench.grading.argument_counts import ValidArguments
from workbench.grading.grade import RunResult
from workbench.grading.valid_arguments import why_unchecked
from workbench.numerals import counted, rate_text
from workbench.show.visible import one_line, shortened

_WHY_MAX = 300


def checked_text(valid: int, checked: int) -> str:
    """Returns a rate with the number of calls that it rests on: `97.5% of 40`; less than all is never shown as all."""
    return f"{rate_text(valid / checked)} of {checked:,}" if checked else "unknown"


def valid_arguments_text(found: ValidArguments) -> str:
    """Returns the rate of all calls, with the tools that were called with invalid arguments; empty where nothing is
    known of any call."""
    if not found.tools:
        return ""
    if not found.checked:
        return "valid arguments unknown"
    bad = [tool for tool in found.tools if tool.valid < tool.checked]
    of_tools = ", ".join(f"{one_line(tool.tool)} {tool.valid:,} of {tool.checked:,}" for tool in bad)
    rate = f"valid arguments {rate_text(found.valid / found.checked)}"
    return f"{rate} of {counted(found.checked, 'call')} ({of_tools})" if bad else rate


def unchecked_lines(
    results: Iterable[RunResult], shown_as: Callable[[RunResult], RunResult] = lambda result: result
) -> Iterator[str]:
    """Yield for each tool of a suite whose calls no schema could check why not, once, but for names that an issue says
    are no tool's. `shown_as` returns a run as its lines may show it."""
    told: set[tuple[str, str]] = set()
    for result in results:
        if None not in result.valid_arguments:
            continue
        unknown = {
            (result.suite, tool)
            for tool, valid in zip(result.called, result.valid_arguments, strict=False)
            if valid is None
        }
        if unknown <= told:
            continue
        told |= unknown
        shown = shown_as(result)
        issues = shown.grade.issues if shown.grade is not None else ()
        named = {issue.tool for issue in issues if issue.kind in ("unknown tool", "endpoint fault")}
        for tool, why in why_unchecked(shown.trajectory).items():
            if tool not in named:
                yield f"the arguments of {shortened(one_line(tool), _WHY_MAX)} were not checked: {why}"
