"""Grades in words: issues, steps, judgements, and which arguments were valid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from workbench.grading.status import NOT_APPLICABLE, Status, disagree, passed_if
from workbench.grading.traits import TRAITS
from workbench.numerals import NOTHING, cost_text, counted, range_text, score_text, setting_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Line, Note, Span
from workbench.show.views.values import usage_text
from workbench.show.visible import compact_json, one_line, shortened

if TYPE_CHECKING:
    from workbench.grading.grade import (
        Grade,
        Issue,
        IssueKind,
        Judgement,
        JudgeUse,
        Metric,
        RunResult,
        StepGrade,
    )
    from workbench.show.text import Paint
    from workbench.suite.model import Case


def issue_text(issue: Issue) -> str:
    """Return `kind: where: expected …, got … (why)`, safe to show; parts that an issue lacks are left out."""
    parts = [issue.kind, *filter(None, [issue_place(issue), issue_facts(issue)])]
    return one_line(": ".join(parts) + _remark(_why(issue), "this alone fails the case" if issue.decides else ""))


def issue_note(issue: Issue) -> str:
    """Return an issue as `issue_text` does, for places where the call and the argument are visible.

    What a schema refuses may lie deep inside an argument."""
    place = issue.argument if issue.kind == "schema violation" else None
    parts = [issue.kind, *filter(None, [place, issue_facts(issue)])]
    return one_line(": ".join(parts) + _remark(_why(issue)))


def note_of_issue(issue: Issue, *, at_call: bool = False) -> Note:
    """Return an issue behind its sign; `at_call` for places where the call and the argument are visible."""
    status = Status.FAILED if issue.decides else Status.WARNED
    return Note(status.sign, issue_note(issue) if at_call else issue_text(issue), status.role)


def _why(issue: Issue) -> str:
    """Return the reason, empty where the kind and both calls already say it."""
    return "" if issue.kind == "wrong tool" and issue.expected and issue.got else issue.why


def _remark(*parts: str) -> str:
    text = "; ".join(filter(None, parts))
    return f" ({text})" if text else ""


def issue_place(issue: Issue) -> str:
    """Return the call (counted from 1), the tool and the argument that an issue concerns; empty for the whole run."""
    subject = ".".join(part for part in (issue.tool, issue.argument) if part)
    return f"call {issue.call + 1} {subject}" if issue.call is not None else subject


def issue_facts(issue: Issue) -> str:
    """Return the expected and the actual value."""
    facts = (("expected", issue.expected), ("got", issue.got))
    return ", ".join(f"{word} {what}" for word, what in facts if what is not None)


def verdict(status: Status, score: float | None) -> Line:
    """Return a status with its score: `✓ passed 1.00`."""
    shown = f" {score_text(score)}" if score is not None else ""
    return (Span(f"{status.sign} {status}", status.role), Span(shown, "strong"))


def result_text(result: RunResult) -> str:
    """Return the sign, the status, the score and the error of a result, without those that it lacks."""
    score = f" {score_text(result.score)}" if result.grades else ""
    why = f": {one_line(result.error)}" if result.error is not None else ""
    return f"{result.status.sign} {result.status}{score}{why}"


_AGAINST_SCORE: frozenset[IssueKind] = frozenset(
    {
        "wrong tool",
        "missing call",
        "extra call",
        "wrong argument",
        "missing argument",
        "invalid argument",
        "wrong order",
    }
)


def is_doubt(issue: Issue, result: RunResult) -> bool:
    """Return whether an issue makes a run doubtful that passed: a call was invalid, or a real server answered it by an
    error."""
    if issue.kind in ("schema violation", "broken arguments"):
        return True
    return (
        issue.kind == "tool error" and issue.call is not None and result.trajectory.calls[issue.call].server is not None
    )


def doubts(result: RunResult) -> list[str]:
    """Return the issues that make a run doubtful that passed, as text."""
    # Known without unpacking a run, of which a batch has many.
    is_clean = False not in result.valid_arguments and not result.executions
    if result.status != Status.PASSED or is_clean or result.grade is None:
        return []
    return [issue_text(issue) for issue in result.grade.issues if is_doubt(issue, result)]


def why_passed(result: RunResult) -> str:
    """Return why a run passed, or was warned, in which something is wrong: its score and the threshold that it meets.

    Empty for other runs."""
    grade = result.grade
    if grade is None or grade.score is None or not result.passed:
        return ""
    if not any(issue.kind in _AGAINST_SCORE for issue in grade.issues):
        return ""
    low, high = TRAITS[grade.grader].thresholds(result.grading)
    met = high if grade.verdict == Status.PASSED else low
    short = f", not {setting_text(high)}" if met != high else ""
    return f"{result.status}: score {score_text(grade.score)} meets the threshold {setting_text(met)}{short}"


def note_of_step(step: StepGrade, steps: int, *, brief: bool = False) -> Note:
    """Return the grade of one of some steps: `✓ step 1  1.00  right: tool 1.00, arguments 1.00`.

    `brief` leaves out why a step passed."""
    sign, role = step.status.mark if step.status is not None else (NOTHING, "muted")
    score = score_text(step.score, f"{NOTHING:>4}")
    why = "" if brief and step.status == Status.PASSED else step.why
    return Note(sign, f"step {step.step:>{len(str(steps))}}  {score}  {one_line(why)}".rstrip(), role)


def step_lines(steps: Sequence[StepGrade], paint: Paint, width: int) -> Iterator[str]:
    """Yield a line for each step, cut to `width` cells."""
    for step in steps:
        sign, text, role = note_of_step(step, len(steps))
        yield f"{paint(sign, role)} {shortened(text, width - 2)}"


def judgement_text(judgement: Judgement) -> str:
    """Return a judgement on one line: the judge, the criteria, the finding, and the rationale."""
    criteria = " ".join(judgement.criteria.split())
    verb = "holds" if judgement.holds else "does not hold"
    if judgement.scale is not None and judgement.number is not None:
        enough = "is enough" if judgement.holds else "is not enough"
        verb = f"rated {_on_scale(judgement.number, judgement.scale)}, which {enough}"
    return one_line(f'judged by {judgement.model}: "{criteria}" {verb}: {judgement.rationale}')


def _on_scale(number: float, scale: tuple[float, float]) -> str:
    return f"{setting_text(number)} on {range_text(*scale)}"


def metric_text(metric: Metric) -> str:
    """Return a metric on one line, without a sign: `polite 0.75 (4 on 1..5), expected …: why`.

    The issue of a check that does not hold says the rest."""
    if metric.about is not None:
        return one_line(f"{metric.name} {score_text(metric.value)} ({metric.about})")
    given = "" if metric.number is None or metric.scale is None else f" ({_on_scale(metric.number, metric.scale)})"
    value = f"{metric.name} {score_text(metric.value)}{given}"
    why = f": {metric.why}" if metric.why else ""
    return one_line(f"{value}, expected {metric.expected}{why}" if metric.holds else value)


def note_of_metric(metric: Metric) -> Note:
    """Return a metric behind the sign of whether its check holds."""
    status = passed_if(metric.holds)
    return Note(status.sign, metric_text(metric), status.role)


def judging_text(use: JudgeUse) -> str:
    """Return how often judges were asked, their tokens and their cost, where that is known."""
    tokens = [f"{usage_text(use.usage)}"] if use.usage is not None else []
    cost = [f"cost: {cost_text(use.cost_usd)}"] if use.usage is not None and use.cost_usd is not None else []
    return " · ".join((counted(use.asked, "question"), *tokens, *cost))


MAX_NAMED = 8
"""The number of failed steps that are named. More are only counted."""


def failed_steps(steps: Sequence[StepGrade]) -> str:
    """Return which steps of a chain failed."""
    failed = [str(step.step) for step in steps if step.status == Status.FAILED]
    if len(failed) == 1:
        return f"step {failed[0]} failed, and with it the chain"
    which = f"steps {', '.join(failed[:-1])} and {failed[-1]}"
    return f"{which if len(failed) <= MAX_NAMED else counted(len(failed), 'step')} failed, and with them the chain"


def why_not_graded(result: RunResult) -> str:
    """Return why a finished run has no grades, as the end of a sentence."""
    why = one_line(result.error or "")
    if result.status == Status.SKIPPED:
        return f"this case is skipped, so there is nothing to grade{f': {why}' if why else ''}"
    if result.status == Status.STOPPED:
        return "you stopped this run, so it is not graded"
    if result.status == Status.NOT_GRADED:
        return f"this case {why}, so there is nothing to grade"
    finish = result.trajectory.finish
    if finish is None or finish.reason in ("error", "timed out"):
        return f"this run did not finish, so it is not graded: {why}"
    return f"this run finished, but could not be graded: {why}"


CUT = " … (cut)"


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` characters, saying so where something is missing."""
    return text if len(text) <= most else text[: most - len(CUT)] + CUT


def issue_lines(run: RunResult) -> list[str]:
    """Return what is wrong in a run by the grader that decides, or why it was not graded."""
    grade = run.grade
    if grade is None:
        return [one_line(run.error)] if run.error is not None else []
    lines = [*map(issue_text, grade.issues), *filter(None, [why_passed(run)])]
    return lines or [one_line(run.reason or grade.reason)]


def expected_lines(case: Case, grade: Grade | None) -> list[str]:
    """Return the calls that a case expects, with the checks of their arguments as the grade describes them."""
    described = {
        (pairing.expected_call, verdict.argument): verdict.expected
        for pairing in (grade.pairings if grade is not None else ())
        for verdict in pairing.arguments
    }
    lines = []
    for index, call in enumerate(case.expected_calls()):
        checks = [
            (name, described.get((index, name)) or compact_json(check.as_written()))
            for name, check in (call.args or {}).items()
        ]
        arguments = "…" if call.args is None else ", ".join(f"{name}: {what}" for name, what in checks)
        lines.append(one_line(f"{call.tool_text}({arguments})"))
    return lines


DISAGREE = GLYPHS.disagree


def note_of_grade(grade: Grade) -> Note:
    """Return the status that a grade gives a run behind its sign, or that the grader does not apply."""
    if grade.verdict == NOT_APPLICABLE:
        return Note(GLYPHS.skipped, "not applicable")
    status = grade.status or grade.verdict
    return Note(status.sign, status, status.role)


def grades_line(grades: Sequence[Grade]) -> str:
    """Return every grader with status and score, the deciding one first: `critics ✓ 1.00 · decision ✗ 0.67`."""
    mark = f"  {DISAGREE}" if disagree(grades) else ""
    return f"    {' · '.join(map(_grade_text, grades))}{mark}"


def _grade_text(grade: Grade) -> str:
    grader, sign = one_line(grade.grader), note_of_grade(grade).sign
    if grade.verdict == NOT_APPLICABLE:
        return f"{grader} {score_text(None)}"
    return f"{grader} {sign}" if grade.verdict == Status.ERROR else f"{grader} {sign} {score_text(grade.score)}"


def parts_line(grade: Grade) -> str | None:
    """Return the parts of a grade's score, in the words of its grader; `None` where it has no score."""
    if grade.score is None:
        return None
    parts = TRAITS[grade.grader].parts(grade)
    return one_line(f"    {grade.grader}: {' · '.join(parts) if parts else grade.reason}")


def deciders_line(results: Sequence[RunResult], paint: Paint) -> str:
    """Return which graders decided, how many runs each where there are several, and how many other graders disagree."""
    deciders = Counter(result.grader for result in results if result.grader is not None)
    values = ", ".join(
        f"{grader} ({counted(runs, 'run')})" if len(deciders) > 1 else grader for grader, runs in deciders.items()
    )
    differing = sum(result.graders_disagree for result in results)
    others = f"; {DISAGREE} the graders disagree on {counted(differing, 'run')}" if differing else ""
    return paint(f"  {one_line(f'graded by {values}{others}')}", "muted")
