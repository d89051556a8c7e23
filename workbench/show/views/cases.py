"""The joined result of a case's repeats, and the graders' results for one run, as lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from workbench.grading.grade import Grade, RunResult, disagree
from workbench.grading.repeats import ArgumentStatistics, CaseResult
from workbench.grading.status import NOT_APPLICABLE, Status
from workbench.grading.traits import TRAITS
from workbench.numerals import counted, score_text
from workbench.show.text import Paint
from workbench.show.visible import one_line

DISAGREE = "≠"


def repeats_lines(case: CaseResult, paint: Paint, *, with_arguments: bool) -> Iterator[str]:
    """Yields the joined result of several runs of a case: rule, status, how many were good, mean and deviation; with
    `with_arguments` the same for each argument, as shares of its weight."""
    graded = len(case.graded)
    parts = [f"{counted(len(case.runs), 'run')} by {case.rule}: {case.status.sign} {case.status}"]
    if graded:
        parts.append(f"{case.good}/{graded} passed or warned")
    if case.is_flaky:
        parts.append("flaky")
    if case.score is not None and case.deviation is not None:
        parts.append(f"mean {score_text(case.score)} ± {score_text(case.deviation)}")
    if graded < len(case.runs):
        parts.append(f"{len(case.runs) - graded} not graded")
    yield f"    {paint(' · '.join(parts), case.status.role)}"
    if with_arguments and case.arguments:
        yield paint(f"    arguments: {' · '.join(map(_argument_text, case.arguments))}", "muted")


def _argument_text(statistics: ArgumentStatistics) -> str:
    mean, deviation = score_text(statistics.mean_normalised), score_text(statistics.normalised_deviation)
    return one_line(f"{statistics.argument} {mean} ± {deviation}")


def grades_line(grades: Sequence[Grade]) -> str:
    """Returns every grader with status and score, the deciding one first: `critics ✓ 1.00 · decision ✗ 0.67`."""
    mark = f"  {DISAGREE}" if disagree(grades) else ""
    return f"    {' · '.join(map(_grade_text, grades))}{mark}"


def _grade_text(grade: Grade) -> str:
    grader = one_line(grade.grader)
    if grade.verdict == NOT_APPLICABLE:
        return f"{grader} {score_text(None)}"
    if grade.verdict == Status.ERROR:
        return f"{grader} {Status.ERROR.sign}"
    return f"{grader} {(grade.status or grade.verdict).sign} {score_text(grade.score)}"


def parts_line(grade: Grade) -> str | None:
    """Returns the parts of a grade's score, in the words of its grader; `None` where it has no score."""
    if grade.score is None:
        return None
    parts = TRAITS[grade.grader].parts(grade)
    return one_line(f"    {grade.grader}: {' · '.join(parts) if parts else grade.reason}")


def deciders_line(results: Sequence[RunResult], paint: Paint) -> str:
    """Returns which graders decided, how many runs each where there are several, and how many other graders
    disagree."""
    deciders = Counter(result.grader for result in results if result.grader is not None)
    values = ", ".join(
        f"{grader} ({counted(runs, 'run')})" if len(deciders) > 1 else grader for grader, runs in deciders.items()
    )
    differing = sum(result.graders_disagree for result in results)
    others = f"; {DISAGREE} the graders disagree on {counted(differing, 'run')}" if differing else ""
    return paint(f"  {one_line(f'graded by {values}{others}')}", "muted")
