"""Grades in words: issues, steps, judgements, and the validity of arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from workbench.grading.status import NOT_APPLICABLE, Status, graders_disagree, passed_or_failed
from workbench.grading.traits import TRAITS
from workbench.numerals import NOTHING, cost_text, counted, range_text, score_text, setting_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Line, Note, Span
from workbench.show.views.values import usage_text
from workbench.show.visible import after, compact_json, one_line, shortened

if TYPE_CHECKING:
    from workbench.grading.grade import (
        Grade,
        Issue,
        IssueKind,
        Judgement,
        JudgeUsage,
        Metric,
        RunResult,
        StepGrade,
    )
    from workbench.show.text import Paint
    from workbench.suite.model import Case


def issue_text(issue: Issue) -> str:
    """Return an issue in words, as `kind: where: expected …, got … (why)`. Missing parts are omitted."""
    remarks = [_why(issue)]
    if issue.decides:
        remarks.append("this alone fails the case")
    return _issue_line(issue, issue_place(issue), remarks)


def issue_note(issue: Issue) -> str:
    """Return an issue in words, without its call and argument, for places that show these already."""
    place = None
    # The refused value may be deep inside an argument, so its place is not visible and must be in the message.
    if issue.kind == "schema violation":
        place = issue.argument
    return _issue_line(issue, place, [_why(issue)])


def _issue_line(issue: Issue, place: str | None, remarks: Sequence[str]) -> str:
    text = ": ".join(filter(None, (issue.kind, place, issue_facts(issue))))
    return one_line(text + after(" (", "; ".join(filter(None, remarks)), ")"))


def note_of_issue(issue: Issue, *, at_call: bool = False) -> Note:
    """Return an issue in words with a sign. With `at_call`, its call and argument are omitted."""
    status, text = Status.WARNED, issue_text
    if issue.decides:
        status = Status.FAILED
    if at_call:
        text = issue_note
    return Note(status.sign, text(issue), status.role)


def _why(issue: Issue) -> str:
    """Return the reason of an issue. It is shortened if the line already names the expected and the called tool."""
    # The line already names the expected tool and the called tool.
    if issue.kind == "wrong tool" and issue.expected and issue.got:
        return issue._replace(why="").reason
    return issue.reason


def issue_place(issue: Issue) -> str:
    """Return the call (counted from 1), the tool and the argument of an issue.

    Return "" if the issue concerns the whole run."""
    subject = ".".join(filter(None, (issue.tool, issue.argument)))
    if issue.call is None:
        return subject
    return f"call {issue.call + 1} {subject}"


def issue_facts(issue: Issue) -> str:
    """Return the expected and the actual value of an issue, such as `expected 5..40, got 60`."""
    return expected_and_got(issue.expected, issue.got)


def expected_and_got(expected: str | None, got: str | None) -> str:
    """Return a text such as `expected 5..40, got 60`. A value that is `None` is omitted."""
    facts: list[str] = []
    if expected is not None:
        facts.append(f"expected {expected}")
    if got is not None:
        facts.append(f"got {got}")
    return ", ".join(facts)


def verdict(status: Status, score: float | None) -> Line:
    """Return a status with its sign and the score, such as `✓ passed 1.00`."""
    shown = after(" ", score_text(score, ""))
    return (Span(f"{status.sign} {status}", status.role), Span(shown, "strong"))


def result_text(result: RunResult) -> str:
    """Return the sign, status, score and error of a result. Missing parts are omitted."""
    text = f"{result.status.sign} {result.status}"
    if result.grades:
        text += f" {score_text(result.score, 'no score')}"
    if result.error is not None:
        text += f": {one_line(result.error)}"
    return text


# Kinds of issues that lower a score.
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
    """Return whether an issue is worth a look even though the run passed.

    Such issues are invalid calls, calls that a real server answered with an error, and a simulated user who gave up."""
    if issue.kind in ("schema violation", "broken arguments", "user gave up"):
        return True
    if issue.kind != "tool error" or issue.call is None:
        return False
    # A mock answers with an error only if the case wants an error. A server's error was not planned.
    return result.trajectory.calls[issue.call].server is not None


def doubt_texts(result: RunResult) -> list[str]:
    """Return the issues of a passed run that are worth a look, as text."""
    # These facts are checked before the grade, because reading a grade from the history is slow.
    is_clean = False not in result.valid_arguments and not (result.executions or result.user_outcome)
    if result.status != Status.PASSED or is_clean or result.grade is None:
        return []
    found = []
    for issue in result.grade.issues:
        if is_doubt(issue, result):
            found.append(issue_text(issue))
    return found


def why_passed(result: RunResult) -> str:
    """Return why a run with issues did not fail: its score, and the threshold that the score meets.

    Return "" for a run that failed or has no issues."""
    grade = result.grade
    if grade is None or grade.score is None or not result.passed:
        return ""
    if not any(issue.kind in _AGAINST_SCORE for issue in grade.issues):
        return ""
    warns_from, passes_from = TRAITS[grade.grader].thresholds(result.grading)
    text = f"{result.status}: score {score_text(grade.score)} meets the threshold"
    if grade.verdict == Status.PASSED or warns_from == passes_from:
        return f"{text} {setting_text(passes_from)}"
    return f"{text} {setting_text(warns_from)}, not {setting_text(passes_from)}"


def note_of_step(step: StepGrade, steps: int, *, brief: bool = False) -> Note:
    """Return the grade of a step, such as `✓ step 1  1.00  right: tool 1.00, arguments 1.00`.

    `steps` is the number of steps. `brief` omits the reason of a step that passed."""
    text = f"step {step.step:>{len(str(steps))}}  {score_text(step.score, f'{NOTHING:>4}')}"
    if not brief or step.status != Status.PASSED:
        text += f"  {one_line(step.why)}"
    if step.status is None:
        return Note(NOTHING, text.rstrip())
    return Note(step.status.sign, text.rstrip(), step.status.role)


def step_lines(steps: Sequence[StepGrade], paint: Paint, width: int) -> Iterator[str]:
    """Yield a line for each step, cut to `width` cells."""
    for step in steps:
        sign, text, role = note_of_step(step, len(steps))
        yield f"{paint(sign, role)} {shortened(text, width - 2)}"


def judgement_text(judgement: Judgement) -> str:
    """Return a judgement on one line: the judge, the criteria, the finding, and the rationale."""
    # Suites often write criteria on several lines, which are joined here.
    criteria = " ".join(judgement.criteria.split())
    verb, enough = "does not hold", "is not enough"
    if judgement.holds:
        verb, enough = "holds", "is enough"
    if judgement.scale is not None and judgement.number is not None:
        verb = f"rated {_on_scale(judgement.number, judgement.scale)}, which {enough}"
    return one_line(f'judged by {judgement.model}: "{criteria}" {verb}: {judgement.rationale}')


def _on_scale(number: float, scale: tuple[float, float]) -> str:
    return f"{setting_text(number)} on {range_text(*scale)}"


def metric_text(metric: Metric) -> str:
    """Return the value of a named check on one line, such as `polite 0.75 (4 on 1..5), expected …: why`.

    If the check failed, the expected value and the reason are omitted, because the issue of the check has them."""
    value = f"{metric.name} {score_text(metric.value)}"
    if metric.about is not None:
        return one_line(f"{value} ({metric.about})")
    if metric.number is not None and metric.scale is not None:
        value += f" ({_on_scale(metric.number, metric.scale)})"
    if metric.holds:
        value += f", expected {metric.expected}{after(': ', metric.why)}"
    return one_line(value)


def note_of_metric(metric: Metric) -> Note:
    """Return the value of a named check, with the sign for passed or failed."""
    status = passed_or_failed(metric.holds)
    return Note(status.sign, metric_text(metric), status.role)


def judging_text(use: JudgeUsage) -> str:
    """Return the number of requests to judges, with tokens and cost if they are known."""
    facts = [counted(use.asked, "question")]
    if use.usage is not None:
        facts.append(usage_text(use.usage))
        if use.cost_usd is not None:
            facts.append(f"cost: {cost_text(use.cost_usd)}")
    return " · ".join(facts)


MAX_NAMED = 8
"""Maximum number of failed steps that are named. Further steps are only counted."""


def failed_steps(steps: Sequence[StepGrade]) -> str:
    """Return a sentence that names the failed steps of a chain."""
    failed = []
    for step in steps:
        if step.status == Status.FAILED:
            failed.append(str(step.step))
    if len(failed) == 1:
        return f"step {failed[0]} failed, and with it the chain"
    which = f"steps {', '.join(failed[:-1])} and {failed[-1]}"
    # A chain may have hundreds of steps, and the sentence must fit on one line.
    if len(failed) > MAX_NAMED:
        which = counted(len(failed), "step")
    return f"{which} failed, and with them the chain"


def why_not_graded(result: RunResult) -> str:
    """Return why a finished run has no grades, as a clause for the end of a sentence."""
    why = one_line(result.error or "")
    if result.status == Status.SKIPPED:
        return f"this case is skipped, so there is nothing to grade{after(': ', why)}"
    if result.status == Status.STOPPED:
        return "you stopped this run, so it is not graded"
    if result.status == Status.NOT_GRADED:
        return f"this case {why}, so there is nothing to grade"
    if result.trajectory.finish_reason in (None, "error", "timed out", "user error"):
        return f"this run did not finish, so it is not graded: {why}"
    return f"this run finished, but could not be graded: {why}"


CUT = " … (cut)"


def cut(text: str, max_chars: int) -> str:
    """Return a text of at most `max_chars` characters. A cut text ends with `CUT`."""
    if len(text) <= max_chars:
        return text
    return text[: max_chars - len(CUT)] + CUT


def issue_lines(run: RunResult) -> list[str]:
    """Return the issues of the deciding grade, or the reason why the run was not graded."""
    grade = run.grade
    if grade is not None:
        # A run may pass in spite of its issues. The threshold that it met then explains the verdict.
        lines = [*map(issue_text, grade.issues), *filter(None, [why_passed(run)])]
        return lines or [one_line(run.reason or grade.reason)]
    if run.error is None:
        return []
    return [one_line(run.error)]


def expected_lines(case: Case, grade: Grade | None) -> list[str]:
    """Return the calls that a case expects, as lines. The checks of arguments are worded as in the grade."""
    # Lazy import: the writers of reports load this module, and show no expected calls.
    from workbench.grading.pairing_issues import call_notes

    # The grade has descriptions of the checks. Without a grade, checks are shown as written in the suite.
    described: dict[tuple[int | None, str], str] = {}
    if grade is not None:
        for pairing in grade.pairings:
            for verdict in pairing.arguments:
                described[pairing.expected_call, verdict.argument] = verdict.expected
    lines = []
    for index, call in enumerate(case.expected_calls()):
        texts = []
        for alternative in call.alternatives:
            # A grade describes only the arguments of the alternative that it chose.
            in_words = {} if call.any_of else described
            arguments: list[str] = []
            for name, check in (alternative.args or {}).items():
                arguments.append(f"{name}: {in_words.get((index, name)) or compact_json(check.as_written())}")
            given = "…" if alternative.args is None else ", ".join(arguments)
            texts.append(f"{alternative.tool_text}({given})")
        lines.append(one_line(", ".join([" or ".join(texts), *call_notes(call)])))
    return lines


DISAGREE = GLYPHS.disagree


def note_of_grade(grade: Grade) -> Note:
    """Return the sign and the word for a grade: its status, or `not applicable`."""
    if grade.verdict == NOT_APPLICABLE:
        return Note(GLYPHS.skipped, "not applicable")
    status = grade.status or grade.verdict
    return Note(status.sign, status, status.role)


def grades_line(grades: Sequence[Grade]) -> str:
    """Return all verdicts on one line, the deciding grader's first, such as `critics ✓ 1.00 · decision ✗ 0.67`."""
    line = f"    {' · '.join(map(_grade_text, grades))}"
    if graders_disagree(grades):
        line += f"  {DISAGREE}"
    return line


def _grade_text(grade: Grade) -> str:
    grader = one_line(grade.grader)
    if grade.verdict == NOT_APPLICABLE:
        return f"{grader} {score_text(None)}"
    text = f"{grader} {note_of_grade(grade).sign}"
    if grade.verdict != Status.ERROR:
        text += f" {score_text(grade.score)}"
    return text


def parts_line(grade: Grade) -> str | None:
    """Return a line with the partial scores of a grade in its grader's words, or `None` if the grade has no score."""
    if grade.score is None:
        return None
    parts = " · ".join(TRAITS[grade.grader].parts(grade))
    return one_line(f"    {grade.grader}: {parts or grade.reason}")


def deciders_line(results: Sequence[RunResult], paint: Paint) -> str:
    """Return a line that names the deciding graders and counts the runs on which graders disagree."""
    deciders = Counter(filter(None, (result.grader for result in results)))
    names = [*deciders]
    if len(deciders) > 1:
        names = []
        for grader, runs in deciders.items():
            names.append(f"{grader} ({counted(runs, 'run')})")
    line = f"graded by {', '.join(names)}"
    if differing := sum(result.graders_disagree for result in results):
        line += f"; {DISAGREE} the graders disagree on {counted(differing, 'run')}"
    return paint(f"  {one_line(line)}", "muted")
