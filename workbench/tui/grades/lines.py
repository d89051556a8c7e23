"""The lines of the screen of grades: the list of graders, and the explanation of the selected grade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from workbench.grading.explanation import Explanation, dimension_terms, disagreement, evaluate, formula_in_numbers
from workbench.grading.grade import Grade, Issue, reason_of
from workbench.grading.scoring import ROUNDING_SLACK
from workbench.grading.status import Status, graders_disagree
from workbench.numerals import counted, duration_text, score_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import (
    EMPTY,
    NARROWEST,
    Line,
    Note,
    Role,
    Span,
    cells,
    cut,
    cut_line,
    hanging_paragraph,
    heading,
    plain,
    sign_paragraph,
    spread,
    wrap,
)
from workbench.show.views.grades import failed_steps, note_of_grade, note_of_issue, note_of_metric
from workbench.show.visible import one_line
from workbench.tui.grades.pairing import pairing_blocks, shown_steps, step_lines
from workbench.tui.grades.state import GradesState

ROWS = 3
"""The number of rows of each grader in the list: the name and two rows of reason."""

MAX_ISSUES = 200
"""The maximum number of issues to show."""

_VERBS: Mapping[Status, str] = {Status.FAILED: "fail it", Status.WARNED: "warn", Status.PASSED: "pass it"}

_MIN_BEHIND_CELLS = 10
"""The minimum width of a text after its label. With less, the text goes below the label."""

_COPIED_CELLS = 200
"""The width of copied lines. They are wrapped less often than on the screen."""


def list_line(state: GradesState, index: int, width: int) -> Line:
    """Return line `index` of the list of graders.

    The first line of a grader has its name and score. Its other lines have the status and the reason."""
    grade = state.grades[index // ROWS]
    sign, word, role = note_of_grade(grade)
    if index % ROWS:
        # The status and the reason are wrapped together. Only the word of the status is coloured.
        room = max(width - 3, 1)
        first, *others = wrap(f"{word}  {one_line(reason_of(grade))}", room)
        if index % ROWS == 1:
            return cut_line((Span(f"   {first[: len(word)]}", role), Span(first[len(word) :], "muted")), width)
        return cut_line((Span(f"   {cut(' '.join(others), room)}", "muted"),), width)
    decides = EMPTY
    if state.decides(grade):
        decides = (Span("  decides", "accent"),)
    head: Line = (Span(f" {sign} ", role), Span(grade.grader, "strong"), *decides)
    return spread(head, (Span(score_text(grade.score, ""), role),), width)


class GradePage(NamedTuple):
    """The lines that explain a grade.

    `bad` has the index of each line where a wrong call or a missed expectation begins."""

    lines: list[Line]
    bad: tuple[int, ...]


def grade_page(state: GradesState, width: int) -> GradePage:
    """Return the explanation of the selected grade: verdict, formula, calls and issues."""
    grade, explanation = state.selected, state.explanation
    # If the screen is narrower than the narrowest layout, lines are laid out for that layout and then cut.
    seen, width = width, max(width, NARROWEST)
    lines = _head_lines(state, grade, explanation, width)
    bad: list[int] = []
    for block in pairing_blocks(state, width):
        if not block.right:
            bad.append(len(lines))
        lines += block.lines
    lines += _issues(state, grade, explanation, width)
    lines += _section("Checks of the answer", [*map(note_of_metric, state.result.metrics)], width)
    if state.more:
        scores = [Note(GLYPHS.dot, text) for text in explanation.more]
        lines += _section(f"How {explanation.system} scores", scores, width)
        if graders_disagree(state.grades):
            sides: list[Note] = []
            for status, side in disagreement(state.grades):
                for each in side:
                    sides.append(Note(status.sign, f"{each.grader}: {reason_of(each)}", status.role))
            lines += _section("The graders disagree", sides, width)
    return GradePage([cut_line(line, seen) for line in lines], tuple(bad))


def _head_lines(state: GradesState, grade: Grade, explanation: Explanation, width: int) -> list[Line]:
    sign, word, role = note_of_grade(grade)
    system = explanation.system
    if state.decides(grade):
        system += f" {GLYPHS.dot} decides"
    lines = [cut_line((Span(f" {grade.grader}", "strong"), Span(f"  {system}", "muted")), width)]
    score = f" {score_text(grade.score, '')}".rstrip()
    status: Line = (Span(f" {sign} {word}", role), Span(score, "strong"), Span("  "))
    text_role: Role = "text"
    if grade.verdict == Status.ERROR:
        text_role = "error"
    lines += _after_label(status, reason_of(grade), width, text_role)
    if sides := disagreement_text(state.grades):
        lines += _after_label((Span(f" {GLYPHS.disagree} ", "warned"),), sides, width, "warned")
    if grade.score is None:
        return [*lines, *step_lines(state, width)]
    lines += [EMPTY, *_paragraph(explanation.rule, width, "muted", " score = ")]
    if explanation.formula is not None:
        lines += _paragraph(formula_in_numbers(explanation.formula), width, "number", "       = ")
    else:
        lines += _paragraph(f"Decided before that: {explanation.shortcut}.", width, "accent")
    lines += _paragraph(f"{explanation.verdict}.", width, "text")
    return [*lines, *_dimension_lines(state, grade, width), *step_lines(state, width)]


def _dimension_lines(state: GradesState, grade: Grade, width: int) -> list[Line]:
    found = dimension_terms(grade, len(state.case.response_contains))
    if not found:
        return []
    lines: list[Line] = [EMPTY]
    for name, formula, words in found:
        role: Role = "text"
        # Fractions are sums of floats, so a fraction of 1 may be slightly less than 1.
        if evaluate(formula) < 1 - ROUNDING_SLACK:
            role = "warned"
        label: Line = (Span(f" {name:<12}", "key"),)
        lines += _after_label(label, f"{formula_in_numbers(formula)} {GLYPHS.dot} {words}", width, role)
    numbers, latency = grade.numbers, "not known"
    if numbers["latency_ms"]:
        within = "over"
        if numbers["latency_ok"]:
            within = "within"
        latency = f"{duration_text(numbers['latency_ms'])}, {within} its limit"
    return [*lines, *_after_label((Span(f" {'latency':<12}", "key"),), f"{latency}; adds 0", width, "text")]


def disagreement_text(grades: Sequence[Grade]) -> str:
    """Return which graders fail the run and which pass it, the smaller group first. Return "" if all agree."""
    sides: list[str] = []
    for status, side in sorted(disagreement(grades), key=lambda found: len(found[1])):
        graders = [grade.grader for grade in side]
        names = ", ".join((*graders[:-2], " and ".join(graders[-2:])))
        sides.append(f"{names} would {_VERBS[status]}")
    return "; ".join(sides)


def _issues(state: GradesState, grade: Grade, explanation: Explanation, width: int) -> list[Line]:
    steps = shown_steps(state)
    of_steps = {issue for step in steps for issue in step.issues}
    issues = [_issue(state, each) for each in grade.issues if not each.decides and each not in of_steps]
    # The lines above show each step, so one note covers all failed steps.
    beside = [each for each in explanation.deciding_issues if not steps or each.kind != "failed step"]
    failing = [_issue(state, issue) for issue in beside]
    if len(beside) < len(explanation.deciding_issues):
        failing.insert(0, Note(GLYPHS.failed, failed_steps(steps), "failed"))
    return [
        *_section("Issues", issues, width),
        *_section("Fails the run, whatever the score", failing, width),
    ]


def _issue(state: GradesState, issue: Issue) -> Note:
    note, step = note_of_issue(issue), state.step_of(issue)
    if issue.kind == "failed step":
        return note._replace(text=issue.why)
    if step is not None:
        return note._replace(text=f"step {step}: {note.text}")
    return note


def _section(title: str, notes: Sequence[Note], width: int) -> list[Line]:
    if not notes:
        return []
    lines: list[Line] = [EMPTY, heading(title)]
    for note in notes[:MAX_ISSUES]:
        lines += sign_paragraph(*note, width, 1)
    if len(notes) > MAX_ISSUES:
        lines.append((Span(f"   {GLYPHS.running} {counted(len(notes) - MAX_ISSUES, 'more issue')}", "comment"),))
    return lines


def copied_grade(state: GradesState) -> tuple[str, str]:
    """Return the selected grade as text with all details, and a name of this text for the notice."""
    # The page shows values in full only while `more` is set, so it is set while the text is made.
    shown, state.more = state.more, True
    lines = "\n".join(plain(line).rstrip() for line in grade_page(state, _COPIED_CELLS).lines)
    state.more = shown
    return f"{state.title}\n{lines}", f"the grade of {state.selected.grader}"


def _paragraph(text: str, width: int, role: Role, label: str = " ") -> list[Line]:
    return _after_label((Span(label, "muted"),), text, width, role)


def _after_label(label: Line, text: str, width: int, role: Role) -> list[Line]:
    at = cells(label)
    if width - at < _MIN_BEHIND_CELLS:
        return [cut_line(label, width), *_paragraph(text, width, role)]
    return hanging_paragraph(label, text, role, width - at)
