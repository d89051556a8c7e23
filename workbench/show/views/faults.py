"""The reactions of models to faults of tools: the matrix, the failures in words, and the trials of a cell."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from workbench.analysis.fault_matrix import (
    OK_VERDICTS,
    VERDICT_WORDS,
    FaultDuration,
    FaultMatrix,
    FaultName,
    FaultTrial,
    fault_label,
    shown_verdict,
    verdict_sign,
)
from workbench.numerals import counted
from workbench.show.doc import (
    Block,
    Column,
    Fact,
    Facts,
    Heading,
    Items,
    Matrix,
    Paragraph,
    Section,
    Value,
    line_of,
    words,
)
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Line, Span
from workbench.show.visible import after, one_line, shortened

_MAX_ANSWER_CHARS = 160
_NOTHING = "(nothing)"


def faults_view(matrix: FaultMatrix) -> Iterator[Block]:
    """Yield the matrix of faults, then the trials in which a model did not react well.

    The matrix has a row for each pair of a tool and a fault, and a column for each model."""

    def cell(row: tuple[str, FaultName, FaultDuration], column: int) -> Value:
        return cell_value(matrix.cell(row, matrix.models[column]))

    first = Column[tuple[str, FaultName, FaultDuration]]("tool and fault", lambda row: words(_row_text(row)), least=16)
    yield Matrix(first, [one_line(model) for model in matrix.models], matrix.rows, cell)
    if weak := [_weak_line(each) for each in matrix.failed_trials]:
        yield Items(weak, most=len(weak))
    if matrix.untried:
        yield _untried_items(matrix)
    yield from ok_view(matrix)
    yield verdicts_block(matrix)


def ok_view(matrix: FaultMatrix) -> Iterator[Block]:
    """Yield how many trials of each model have the verdict ok."""
    for model in matrix.models:
        yield Paragraph(line_of(ok_words(matrix, model)))


def verdicts_block(matrix: FaultMatrix) -> Facts:
    """Return a block with the meaning of each verdict that occurs."""
    facts: list[Fact] = []
    for verdict in matrix.verdicts:
        sign, role = verdict_sign(verdict)
        facts.append((line_of(f"{sign} {verdict}", role), Span(VERDICT_WORDS[verdict].about, "muted")))
    return Facts(facts)


def legend_view(matrix: FaultMatrix) -> Iterator[Block]:
    """Yield the meanings of the verdicts, and the faults that were not tried."""
    yield Heading(line_of("Verdicts"), level=2)
    yield verdicts_block(matrix)
    if matrix.untried:
        yield Heading(line_of("Not tried"), level=2)
        yield _untried_items(matrix)


def trial_section(trial: FaultTrial) -> Section:
    """Return a section about a trial: its verdict, the reason, and the run from the request to the answer."""
    sign, role = verdict_sign(trial.verdict)
    run = [("request", trial.request), ("result", trial.made)]
    for call in trial.after:
        run.append(("then", f"{call.tool} {json.dumps(dict(call.sent.arguments), ensure_ascii=False)}"))
        if call.result is not None:
            run.append(("", f"{GLYPHS.result} {call.result.content}"))
    run.append(("answer", trial.answer))
    facts = []
    for label, text in run:
        facts.append((line_of(label, "muted"), Span(one_line(text) or _NOTHING)))
    blocks: list[Block] = [Paragraph(line_of(one_line(trial.why), "muted"))]
    # A trial without a run has only a reason.
    if trial.run_id is not None:
        blocks.append(Facts(facts))
    return Section(line_of(one_line(f"{sign} {trial.case_name}: {trial.verdict}"), role), blocks)


def cell_value(trials: Sequence[FaultTrial]) -> Value:
    """Return a cell of the matrix: the sign of the worst verdict of its trials, and their verdicts in words."""
    sign, role = verdict_sign(shown_verdict(trials))
    return words(f"{sign} {one_line(cell_words(trials))}", role)


def _row_text(row: tuple[str, FaultName, FaultDuration]) -> str:
    tool, fault, lasts = row
    return one_line(f"{tool}  {fault_label(fault, lasts)}")


def _weak_line(trial: FaultTrial) -> Line:
    sign, role = verdict_sign(trial.verdict)
    answer = after(": ", shortened(one_line(trial.answer), _MAX_ANSWER_CHARS))
    text = f"{trial.model} · {trial.case_name}: {trial.verdict} after {trial.fault_name} of {trial.tool}: {trial.why}"
    return Span(f"{sign} ", role), Span(f"{one_line(text)}{answer}")


def _untried_items(matrix: FaultMatrix) -> Items:
    return Items([line_of(f"- {_untried_text(each)}", "muted") for each in matrix.untried], most=len(matrix.untried))


def _untried_text(trial: FaultTrial) -> str:
    untried = "nothing was tried"
    if trial.tool:
        untried = f"{trial.fault} of {trial.tool} was not tried"
    return one_line(f"{trial.model} · {trial.case_name}: {untried}: {trial.why}")


def ok_words(matrix: FaultMatrix, model: str) -> str:
    """Return in words how many trials of a model have the verdict ok."""
    counts = matrix.counts(model)
    good = sum(count for verdict, count in counts.items() if verdict in OK_VERDICTS)
    # Trials that could not run say nothing about the model.
    tried = sum(counts.values()) - counts.get("not tried", 0)
    return one_line(f"{model}: ok in {good} of {counted(tried, 'trial')}")


def cell_words(trials: Sequence[FaultTrial]) -> str:
    """Return the verdicts of a cell in words. If there are several trials, each verdict has its number of trials."""
    counts = Counter(each.verdict for each in trials)
    if len(trials) == 1:
        return trials[0].verdict
    return " · ".join(f"{verdict} {count}" for verdict, count in counts.items())
