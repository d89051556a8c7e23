"""What faults of tools did to models: a matrix as text, and everything as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from workbench.analysis.faults import OK_VERDICTS, VERDICT_WORDS, FaultMatrix, Tried, Verdict, worst
from workbench.reports.paint import Paint, Tone
from workbench.reports.visible import one_line, shortened
from workbench.suite.numerals import counted
from workbench.trajectory.messages import JsonValue

_ANSWER_MAX = 160


def text_of_faults(matrix: FaultMatrix, paint: Paint) -> Iterator[str]:
    """Yield the matrix, a row for each tool with a fault and a column for each model, then what is not ok."""
    heads = [one_line(_row_text(row)) for row in matrix.rows]
    width = max((len(head) for head in heads), default=0)
    columns = [(model, max(len(one_line(model)), 24)) for model in matrix.models]
    yield f"{'':{width}}  " + "  ".join(f"{one_line(model):{wide}}" for model, wide in columns).rstrip() + "\n"
    for head, row in zip(heads, matrix.rows, strict=True):
        cells = [_cell_text(matrix.cell(row, model), wide, paint) for model, wide in columns]
        yield f"{head:{width}}  " + "  ".join(cells).rstrip() + "\n"
    weak = matrix.weak
    if weak:
        yield "\n"
    for each in weak:
        after = f" after {each.fault} of {each.tool}" + (" for good" if each.lasts == "for good" else "")
        said = f": {shortened(one_line(each.answer), _ANSWER_MAX)}" if each.answer else ""
        yield f"{paint('✗', 'bad')} {one_line(each.model)} · {one_line(each.case_name)}: {each.shown}"
        yield f"{one_line(after)}: {one_line(each.why)}{said}\n"
    untried = [each for each in matrix.tried if each.verdict == "not tried"]
    if untried:
        yield "\n"
    for each in untried:
        what = f"{each.fault} of {each.tool} was not tried" if each.tool else "nothing was tried"
        yield paint(f"- {one_line(each.model)} · {one_line(each.case_name)}: {one_line(what)}: ", "quiet")
        yield paint(f"{one_line(each.why)}\n", "quiet")
    yield "\n"
    for model in matrix.models:
        yield f"{one_line(ok_words(matrix, model))}\n"
    shown = [verdict for verdict in VERDICT_WORDS if any(each.verdict == verdict for each in matrix.tried)]
    for verdict in shown:
        yield paint(f"  {VERDICT_WORDS[verdict].shown}: {VERDICT_WORDS[verdict].about}\n", "quiet")


def _row_text(row: tuple[str, str, str]) -> str:
    tool, fault, lasts = row
    return f"{tool}  {fault}" + (" for good" if lasts == "for good" else "")


def ok_words(matrix: FaultMatrix, model: str) -> str:
    """Return in how many trials what a model did was ok."""
    counts = matrix.counts(model)
    good = sum(count for verdict, count in counts.items() if verdict in OK_VERDICTS)
    tried = sum(counts.values()) - counts.get("not tried", 0)
    return f"{model}: ok in {good} of {counted(tried, 'trial')}"


def cell_words(tried: tuple[Tried, ...]) -> str:
    """Return the verdicts of a cell, with their number if there are several."""
    counts = Counter(each.shown for each in tried)
    return " · ".join(
        verdict if count == len(tried) == 1 else f"{verdict} {count}" for verdict, count in counts.items()
    )


def _cell_text(tried: tuple[Tried, ...], width: int, paint: Paint) -> str:
    return paint(f"{cell_words(tried) or '-':{width}}", _tone(worst(tried)))


def _tone(verdict: Verdict | None) -> Tone:
    if verdict is None or verdict == "not tried":
        return "quiet"
    return "good" if verdict in OK_VERDICTS else "bad"


def json_of_faults(matrix: FaultMatrix, exit_code: int) -> dict[str, JsonValue]:
    """Return everything of a matrix. `trials` have a verdict each; `why` says what it rests on."""
    return {
        "report": "workbench faults",
        "version": 1,
        "exit_code": exit_code,
        "models": {
            model: {verdict.replace(" ", "_"): count for verdict, count in matrix.counts(model).items()}
            for model in matrix.models
        },
        "trials": [
            {
                "suite": each.suite,
                "case_id": each.case_id,
                "case_name": each.case_name,
                "model": each.model,
                "tool": each.tool,
                "fault": each.fault,
                "lasts": each.lasts,
                "verdict": each.verdict,
                "sound": each.verdict in OK_VERDICTS,
                "why": each.why,
                "answer": each.answer,
            }
            for each in matrix.tried
        ],
    }
