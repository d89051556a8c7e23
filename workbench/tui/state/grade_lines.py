"""What the screen of grades says: a few lines for each grader, and everything about the grade under the cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.grading.explaining import Explanation, disagreement
from workbench.grading.formulas import in_numbers
from workbench.grading.grade import Grade, Status
from workbench.reports.issues import issue_text
from workbench.reports.visible import one_line
from workbench.tui.glyphs import GLYPHS
from workbench.tui.state.argument_rows import signed
from workbench.tui.state.grades import GradesState, status_of
from workbench.tui.state.layout import NARROWEST
from workbench.tui.state.outcome import STATUS_SIGNS
from workbench.tui.state.pairing_lines import pairing_lines
from workbench.tui.state.spans import EMPTY, Line, Role, Span, cut_line, plain, spread, wrap
from workbench.tui.state.words import many, score

ROWS = 2
"""Rows of each grader in the list."""

MOST_ISSUES = 200
"""Issues that are shown; copying has all of them."""

_VERBS: Mapping[Status, str] = {"failed": "fail it", "warned": "warn", "passed": "pass it"}

_UNBROKEN = 200
"""Cells in which a copied line is laid out."""


def list_line(state: GradesState, index: int, width: int) -> Line:
    """One row of the list: of each grader its name and score, then its status and why."""
    grade = state.grades[index // ROWS]
    sign, role = _sign(grade)
    if index % ROWS:
        return cut_line((Span(f"   {_word(grade)}", role), Span(f"  {one_line(grade.reason)}", "muted")), width)
    decides: Line = (Span("  decides", "accent"),) if state.decides(grade) else EMPTY
    head: Line = (Span(f" {sign} ", role), Span(grade.grader, "strong"), *decides)
    return spread(head, (Span(score(grade.score), role),), width)


def _sign(grade: Grade) -> tuple[str, Role]:
    if grade.verdict == "not applicable":
        return GLYPHS.skipped, "muted"
    return STATUS_SIGNS[status_of(grade)]


def _word(grade: Grade) -> str:
    return "does not apply" if grade.verdict == "not applicable" else status_of(grade)


def detail_lines(state: GradesState, width: int) -> list[Line]:
    """How the grade under the cursor came about: the verdict, the formula, the calls, the issues."""
    grade, explanation = state.selected, state.explanation
    seen, width = width, max(width, NARROWEST)
    lines = _head(state, grade, explanation, width)
    if state.more and explanation.more:
        lines += [EMPTY, _heading(f"How {explanation.system} scores")]
        for text in explanation.more:
            lines += signed(GLYPHS.dot, one_line(text), "muted", width, 1)
    lines += pairing_lines(state, width)
    lines += _issues(grade, explanation, width)
    return [cut_line(line, seen) for line in lines]


def _head(state: GradesState, grade: Grade, explanation: Explanation, width: int) -> list[Line]:
    sign, role = _sign(grade)
    decides = f" {GLYPHS.dot} decides" if state.decides(grade) else ""
    lines: list[Line] = [
        cut_line((Span(f" {grade.grader}", "strong"), Span(f"  {explanation.system}{decides}", "muted")), width),
        cut_line((Span(f" {sign} {_word(grade)}", role), Span(f"  {score(grade.score)}", "strong")), width),
    ]
    lines += _paragraph(grade.reason, width, "error" if grade.verdict == "error" else "text")
    if grade.score is not None:
        lines += [EMPTY, *_paragraph(explanation.rule, width, "muted", " score = ")]
        if explanation.formula is not None:
            lines += _paragraph(in_numbers(explanation.formula), width, "number", "       = ")
        else:
            lines += _paragraph(f"Decided before that: {explanation.shortcut}.", width, "accent")
        lines += _paragraph(f"{explanation.verdict}.", width, "text")
    if explanation.beside and grade.verdict != "failed":
        what = "something beside the score, which stands at the end"
        lines += signed(GLYPHS.failed, f"The run fails by {what}.", "failed", width, 1)
    if sides := disagreement_text(state.grades):
        lines += signed(GLYPHS.disagree, sides, "warned", width, 1)
    return lines


def disagreement_text(grades: Sequence[Grade]) -> str:
    """Who would let the run fail and who would not, with why; empty when the graders agree."""
    sides: list[str] = []
    for status, side in disagreement(grades):
        *names, last = [f"{side[0].grader} ({one_line(side[0].reason)})", *(grade.grader for grade in side[1:])]
        who = f"{', '.join(names)} and {last}" if names else last
        sides.append(f"{who} would {_VERBS[status]}")
    return f"The graders disagree: {'; '.join(sides)}" if sides else ""


def _issues(grade: Grade, explanation: Explanation, width: int) -> list[Line]:
    lines: list[Line] = []
    found = [issue for issue in grade.issues if not issue.decides]
    for title, issues, sign, role in (
        ("Issues", found, GLYPHS.warned, "warned"),
        ("Fails the run, whatever the score", explanation.beside, GLYPHS.failed, "failed"),
    ):
        if issues:
            lines += [EMPTY, _heading(title)]
        for issue in issues[:MOST_ISSUES]:
            lines += signed(sign, issue_text(issue), role, width, 1)  # type: ignore[arg-type]
        if len(issues) > MOST_ISSUES:
            lines.append((Span(f"   {GLYPHS.running} {many(len(issues) - MOST_ISSUES, 'more issue')}", "comment"),))
    return lines


def copied_grade(state: GradesState) -> tuple[str, str]:
    """Everything about the grade under the cursor as text, and what to call it."""
    head = f"{state.result.case_name} [{state.result.model}]"
    lines = "\n".join(plain(line).rstrip() for line in detail_lines(state, _UNBROKEN))
    return one_line(head) + "\n" + lines, f"the grade of {state.selected.grader}"


def _paragraph(text: str, width: int, role: Role, label: str = " ") -> list[Line]:
    """A text behind a label, all of its rows at the same cell."""
    first, *others = wrap(one_line(text), max(width - len(label), 10))
    return [
        (Span(label, "muted"), Span(first, role)),
        *((Span(" " * len(label)), Span(row, role)) for row in others),
    ]


def _heading(text: str) -> Line:
    return (Span(f" {text}", "heading"),)
