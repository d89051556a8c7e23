"""What was expected of a run, what it did and what was wrong, as lines for reports in files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.numerals import duration_text
from workbench.show.views.deviations import deviation_lines
from workbench.show.views.grades import issue_text, why_passed
from workbench.show.views.values import call_text, result_text, shown_json
from workbench.show.visible import one_line

if TYPE_CHECKING:
    from workbench.checks.check import Check
    from workbench.grading.grade import Grade, RunResult
    from workbench.suite.model import Case
    from workbench.trajectory.trajectory import Trajectory

CUT = " … (cut)"


def cut(text: str, most: int) -> str:
    """Returns a text of at most `most` characters, saying so where something is missing."""
    return text if len(text) <= most else text[: most - len(CUT)] + CUT


def issue_lines(run: RunResult) -> list[str]:
    """Returns what is wrong in a run by the grader that decides, or why it was not graded."""
    grade = run.grade
    if grade is None:
        return [one_line(run.error)] if run.error is not None else []
    lines = [*map(issue_text, grade.issues), *filter(None, [why_passed(run)])]
    return lines or [one_line(run.reason or grade.reason)]


def expected_lines(case: Case, grade: Grade | None) -> list[str]:
    """Returns the calls that a case expects, with the checks of their arguments as the grade describes them."""
    described = {
        (pairing.expected_call, verdict.argument): verdict.expected
        for pairing in (grade.pairings if grade is not None else ())
        for verdict in pairing.arguments
    }
    lines = []
    for index, call in enumerate(case.expected_calls()):
        checks = [
            (name, described.get((index, name)) or as_written(check)) for name, check in (call.args or {}).items()
        ]
        arguments = "…" if call.args is None else ", ".join(f"{name}: {what}" for name, what in checks)
        lines.append(one_line(f"{call.tool_text}({arguments})"))
    return lines


def as_written(check: Check) -> str:
    """Return a check as a suite has it."""
    return shown_json(check.as_written())


def made_lines(trajectory: Trajectory) -> list[str]:
    """Returns the calls that a run made."""
    return [call_text(call.tool, call.arguments) for call in trajectory.calls]


def told_steps(trajectory: Trajectory) -> Iterator[str]:
    """Yields a finished run as the steps of its rounds: calls, results, words and errors."""
    for round_ in trajectory.rounds:
        yield from (f"▲ {one_line(error)}" for error in round_.errors)
        for call in round_.calls:
            broken = f" broken arguments ({one_line(call.call.problem)})" if call.call.problem is not None else ""
            yield f"→ {call_text(call.tool, call.arguments)}{broken}"
            if call.result is not None:
                error = "error " if call.result.is_error else ""
                who = f"server {call.server}" if call.server is not None else call.result.source
                time = duration_text(call.result.latency_ms)
                yield f"← {one_line(str(who))} {time}  {error}{result_text(call.result.content)}"
        if round_.text.strip():
            yield f"« {one_line(round_.text.strip())}"
        if round_.stop_reason == "truncated":
            yield f"▲ cut off {round_.cut_off}"
        elif round_.stop_reason == "refused":
            yield "▲ refused"
        yield from (f"▲ {line}" for line in deviation_lines(round_.deviations))
