"""Failed runs by cause: their numbers, advice for each cause, and a table of expected and actual tools."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from rich.cells import cell_len

from workbench.analysis.causes import (
    ADVICE,
    CauseGroup,
    CauseNumbers,
    ConfusionCounts,
    FailedRun,
    FailureNumbers,
    Failures,
    Symptom,
    ToolPair,
)
from workbench.dataclasses import dataclass
from workbench.numerals import count_text, counted, counted_of, score_text
from workbench.show.doc import Column, Table, Value, words
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import (
    ELLIPSIS,
    EMPTY,
    Line,
    Role,
    Span,
    cut,
    cut_line,
    cut_middle,
    hanging_paragraph,
    heading,
    padded,
    paragraph,
    plain,
    spread,
    wrap_line,
)
from workbench.show.text import Paint, table_lines
from workbench.show.views.grades import expected_and_got
from workbench.show.visible import after, one_line

MIXED_UP_MAX = 5
"""Number of entries of the confusion table in a summary."""

MAX_EXAMPLES = 5
"""Maximum number of examples with a cause's advice. The list has all runs."""

MAX_EXAMPLES_FROM = 200
"""Maximum number of runs that are searched for examples. Every movement of the cursor starts a search."""

MAX_RUNS_OF_EXAMPLE = 6
"""Maximum number of runs named for one example."""

MAX_SUBJECTS = 20

WIDEST_NAME = 32
"""Maximum width in cells of a tool's name in the table of tools."""

NO_CALL, NOT_EXPECTED = "no call", "not expected"
_GAP = 2
_COPIED_CELLS = 120
"""Width of a copied text in cells. Only its prose is wrapped."""


def failure_lines(failures: FailureNumbers, paint: Paint, *, with_advice: bool = True) -> Iterator[str]:
    """Yield a summary of the causes of failures, each with its frequency, main subject and advice.

    Without failed runs, yield nothing."""
    if not failures.failed:
        return
    yield ""
    yield paint(f"Failures by cause: {counted_of(failures.failed, failures.graded, 'graded run')}", "strong")
    yield from table_lines(causes_table(failures.groups, with_advice=with_advice), sys.maxsize, paint)
    if mixed_up := failures.confusion.confused_pairs:
        named = []
        for pair, count in mixed_up[:MIXED_UP_MAX]:
            named.append(f"{_pair_text(pair)} {count_text(count)}×")
        if (more := len(mixed_up) - MIXED_UP_MAX) > 0:
            named.append(f"and {counted(more, 'other')}")
        yield f"expected and called: {', '.join(named)}"


def causes_table(groups: Sequence[CauseNumbers], *, with_advice: bool = True) -> Table[CauseNumbers]:
    """Return a table with a row for each cause. The advice is the remark on the row."""
    columns: list[Column[CauseNumbers]] = [
        Column("cause", lambda group: words(group.cause, "failed")),
        Column("runs", lambda group: words(frequency_text(group))),
        Column("concerns", lambda group: words(subject_text(group))),
    ]
    if not with_advice:
        return Table(columns, groups)
    return Table(columns, groups, _advice_note)


def _advice_note(group: CauseNumbers) -> Value:
    return words(one_line(f"→ {group.advice}"), "muted")


def _pair_text(pair: ToolPair) -> str:
    expected, called = pair
    return one_line(f"{expected or NOT_EXPECTED} → {called or NO_CALL}")


def frequency_text(group: CauseNumbers) -> str:
    """Return how often a cause occurs, such as `3 runs, the main cause of 2` or `2 runs, never the main cause`."""
    runs, main = counted(len(group.indices), "run"), len(group.main_indices)
    if main == len(group.indices):
        return runs
    if not main:
        return f"{runs}, never the main cause"
    return f"{runs}, the main cause of {count_text(main)}"


def subject_text(group: CauseNumbers) -> str:
    """Return the tool or parameter that a cause concerns most often, and the number of others.

    Return "" if the cause concerns no tool."""
    if not group.subjects:
        return ""
    (subject, count), *others = group.subjects
    text = one_line(f"{subject} {count_text(count)}×")
    if others:
        text += f", and {counted(len(others), 'other')}"
    return text


def symptom_text(symptom: Symptom) -> str:
    """Return a symptom in words, such as `set_lights.brightness: expected 5..40, got 60 (outside)`."""
    parts: list[str] = []
    if symptom.subject is not None:
        parts.append(str(symptom.subject))
    if facts := expected_and_got(symptom.expected, symptom.got):
        parts.append(facts)
    return one_line(": ".join(parts) + after(" (", symptom.remark, ")"))


@dataclass(frozen=True, slots=True)
class RunNames:
    """The names by which texts refer to failed runs.

    A name includes the suite if there are several suites, and the model if there are several models."""

    suites: Mapping[str, str]
    with_suite: bool = True
    with_model: bool = True

    def case(self, run: FailedRun) -> str:
        result = run.result
        if not self.with_suite:
            return one_line(result.case_name)
        suite = self.suites.get(result.suite, Path(result.suite).stem)
        return one_line(f"{suite} › {result.case_name}")

    def label_of(self, run: FailedRun) -> str:
        """Return the model and the repeat of a run, which distinguish it from other runs of its case."""
        text = ""
        if self.with_model:
            text = f"  {one_line(run.result.model)}"
        if run.result.repeat:
            text += f" #{run.result.repeat + 1}"
        return text


def failures_text(failures: Failures, suites: Mapping[str, str]) -> str:
    """Return the failures as plain text: causes with advice, all runs, and the confusion table."""
    names = RunNames(suites)
    lines: list[Line] = [(Span(f"{counted_of(len(failures.runs), failures.graded, 'graded run')} failed"),)]
    for group in failures.groups:
        lines += [EMPTY, *cause_lines(group, _COPIED_CELLS), EMPTY]
        for run in group.runs:
            lines.append((Span(f"   {names.case(run)}{names.label_of(run)}"),))
            for each in run.symptoms_of(group.cause):
                lines.append((Span(f"     {symptom_text(each)}"),))
    table = ConfusionTable(failures.confusion)
    lines += [EMPTY, heading("Expected and called, over all graded runs"), *table.lines(sys.maxsize, 0)]
    return "".join(f"{plain(line).rstrip()}\n" for line in lines)


def cause_lines(group: CauseGroup, width: int) -> Iterator[Line]:
    """Yield the meaning of a cause, its advice, and the tools and parameters it concerns."""
    yield from wrap_line(
        (Span(f" {group.cause}", "failed"), Span(f"  {frequency_text(group.numbers)}", "muted")), width, hang=3
    )
    yield from paragraph(ADVICE[group.cause].meaning, width, "muted")
    yield EMPTY
    yield from _advice(group.advice, width)
    if group.subjects:
        yield EMPTY
        yield heading("Tools and parameters")
        names = []
        needed = 0
        for subject, number in group.subjects[:MAX_SUBJECTS]:
            name, count = one_line(str(subject)), count_text(number)
            names.append((name, count))
            needed = max(needed, cell_len(name) + len(count) + 5)
        for name, count in names:
            # Counts stand after the longest name and not at the edge, which is far away in a wide pane.
            yield spread((Span("   "), Span(name, "tool")), (Span(count),), min(needed, width))
        if (more := len(group.subjects) - MAX_SUBJECTS) > 0:
            yield (Span(f"   and {count_text(more)} more", "muted"),)


def example_lines(group: CauseGroup, names: RunNames, width: int) -> Iterator[Line]:
    """Yield the symptoms of some runs as examples of a cause. Runs of a case with equal symptoms are one example."""
    yield heading("Examples")
    alike: dict[tuple[str, tuple[Symptom, ...]], list[str]] = {}
    for run in group.runs[:MAX_EXAMPLES_FROM]:
        symptoms = tuple(run.symptoms_of(group.cause))
        alike.setdefault((names.case(run), symptoms), []).append(names.label_of(run).strip())
    for (title, symptoms), which in islice(alike.items(), MAX_EXAMPLES):
        shown = which
        if len(which) > 1:
            # The first of several runs has an empty name if there is only one model.
            shown = [run or "#1" for run in which[:MAX_RUNS_OF_EXAMPLE]]
        if len(which) > MAX_RUNS_OF_EXAMPLE:
            shown.append(ELLIPSIS)
        text = f"{title}  {', '.join(shown)}".rstrip()
        yield from wrap_line((Span("   "), Span(text, "strong")), width, hang=3)
        for symptom in symptoms:
            yield from _symptom(symptom, width)


def run_lines(run: FailedRun, names: RunNames, width: int) -> Iterator[Line]:
    """Yield the causes of a failed run with their symptoms, then the advice."""
    result = run.result
    title = [Span(f" {GLYPHS.failed} ", "failed"), Span(names.case(run) + names.label_of(run), "strong")]
    if result.grade is not None:
        title.append(Span(f"  {result.grade.grader} {score_text(result.score, '')}", "muted"))
    yield from wrap_line(tuple(title), width, hang=3)
    for cause in run.causes:
        yield EMPTY
        line = [Span(f" {cause}", "failed")]
        if cause == run.main and len(run.causes) > 1:
            line.append(Span("  the main cause", "muted"))
        yield cut_line(tuple(line), width)
        for symptom in run.symptoms_of(cause):
            yield from _symptom(symptom, width)
    yield EMPTY
    yield from _advice(run.advice, width)


def _advice(text: str, width: int) -> Iterator[Line]:
    yield heading("What to do")
    yield from paragraph(f"{text[:1].upper()}{text[1:]}.", width)


def _symptom(symptom: Symptom, width: int) -> Iterator[Line]:
    facts: list[tuple[str, str | None, Role]] = [
        ("", symptom.remark or None, "text"),
        ("expected ", symptom.expected, "muted"),
        ("got      ", symptom.got, "muted"),
    ]
    if symptom.subject is not None:
        facts.insert(0, ("", str(symptom.subject), "tool"))
    for word, text, role in facts:
        if text is not None:
            room = max(width - 5 - len(word), 10)
            yield from hanging_paragraph((Span(f"     {word}", "muted"),), text, role, room)


class ConfusionTable:
    """A table with a row for each expected tool and a column for each called tool."""

    def __init__(self, confusion: ConfusionCounts) -> None:
        self._counts = confusion.counts
        self._rows, self._columns = confusion.rows, confusion.columns
        self._names = [_name(row, NOT_EXPECTED) for row in self._rows]
        self._heads = [_name(column, NO_CALL) for column in self._columns]

    def last_first(self, width: int) -> int:
        """Return the index of the column with which the table must begin to show its last column.

        Return 0 if all columns fit."""
        room = width - self._side(width) - 1
        first = len(self._heads)
        while first > 0 and (room := room - cell_len(self._heads[first - 1]) - _GAP) >= 0:
            first -= 1
        return min(first, max(len(self._heads) - 1, 0))

    def lines(self, width: int, first: int) -> list[Line]:
        """Return the lines of the table from column `first` on, with as many columns as fit, but at least one."""
        side, columns, heads = self._side(width), self._columns, self._heads
        shown = self._shown(width - side - 1, first)
        # If only one column is shown and it does not fit, its title is cut.
        widest = max(width - side - 1 - _GAP, 1)
        lines: list[Line] = []
        if len(shown) < len(columns):
            numbers = f"columns {first + 1} to {shown.stop}"
            if len(shown) == 1:
                numbers = f"column {first + 1}"
            scroll = f"{GLYPHS.result} {GLYPHS.call} scroll"
            lines.append((Span(cut(f" {numbers} of {len(columns)} {GLYPHS.dot} {scroll}", width), "muted"),))
        head = [Span(f" {padded('expected', side)}", "muted")]
        for at in shown:
            role: Role = "warned"
            if columns[at]:
                role = "heading"
            head.append(Span(f"  {cut_middle(heads[at], widest)}", role))
        lines.append(tuple(head))
        for row, name in zip(self._rows, self._names, strict=True):
            role = "warned"
            if row:
                role = "tool"
            spans = [Span(f" {padded(cut_middle(name, side), side)}", role)]
            for at in shown:
                text, role = self._cell(row, columns[at])
                spans.append(Span(f"  {text:>{min(cell_len(heads[at]), widest)}}", role))
            lines.append(tuple(spans))
        return lines

    def _cell(self, expected: str | None, called: str | None) -> tuple[str, Role]:
        count = self._counts.get((expected, called), 0)
        if not count:
            return GLYPHS.dot, "muted"
        if expected == called:
            return count_text(count), "passed"
        if expected is None:
            return count_text(count), "warned"
        return count_text(count), "failed"

    def _shown(self, max_width: int, first: int) -> range:
        stop = first
        while stop < len(self._heads) and (max_width := max_width - cell_len(self._heads[stop]) - _GAP) >= 0:
            stop += 1
        return range(first, min(max(stop, first + 1), len(self._heads)))

    def _side(self, width: int) -> int:
        return min(max(map(cell_len, (*self._names, "expected"))), max(width // 2 - _GAP, 8))


def _name(tool: str | None, default: str) -> str:
    if tool is None:
        return default
    return cut_middle(one_line(tool), WIDEST_NAME)
