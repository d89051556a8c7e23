"""Lays out what stands between the messages of a run: holds, beginnings of steps, forks."""

from __future__ import annotations

from rich.cells import cell_len

from workbench.reports.by_hand import fork_text
from workbench.reports.visible import one_line
from workbench.tui.lines.glyphs import GLYPHS, STATUS_SIGNS
from workbench.tui.lines.prose import signed
from workbench.tui.lines.spans import EMPTY, Line, Span, padded, wrap
from workbench.tui.lines.words import score
from workbench.tui.run_book.shown.items import ForkItem, HoldItem, NoticeItem, StepItem

CALL_INDENT = 3

_OFFERED = {"s next stop": "step", "c continue": "step.continue"}
_KEYS = "  ".join(_OFFERED)
"""The keys that let a held run continue, with their actions."""


def held_lines(where: str, why: str, width: int) -> list[Line]:
    """Return where and why a run is held, highlighted over the whole width."""
    texts = [f"held {where}"]
    for more in (one_line(why), _KEYS):
        longer = f"{texts[-1]} {GLYPHS.dot} {more}"
        if cell_len(longer) + 3 <= width:
            texts[-1] = longer
        else:
            texts.append(more)
    rows = [row for text in texts for row in wrap(text, width - 3)]
    signs = [GLYPHS.held, *[" "] * (len(rows) - 1)]
    return [(Span(padded(f" {sign} {row}", width), "badge"),) for sign, row in zip(signs, rows, strict=True)]


def held_action(line: Line, cell: int) -> str | None:
    """Return the action offered at a cell of a held line, `None` if there is none."""
    if len(line) != 1 or line[0].role != "badge" or _KEYS not in line[0].text:
        return None
    text = line[0].text
    starts = {cell_len(text[: text.rindex(words)]): words for words in _OFFERED}
    return next((_OFFERED[words] for start, words in starts.items() if start <= cell < start + len(words)), None)


def hold_lines(item: HoldItem, width: int) -> list[Line]:
    """Return the lines of the place before a request, empty if the run is not held there."""
    return held_lines(f"before the request of round {item.round}", item.why, width) if item.why is not None else []


def notice_lines(item: NoticeItem, width: int) -> list[Line]:
    """Return the lines of a notice or of a wait."""
    if item.waits:
        return signed(GLYPHS.retry, one_line(item.text), "running", width, CALL_INDENT)
    return signed(GLYPHS.warned, one_line(item.text), "warned", width, CALL_INDENT)


def fork_lines(item: ForkItem, width: int) -> list[Line]:
    """Return the lines of the point where a fork departs from its origin."""
    lines = signed(GLYPHS.fork, one_line(fork_text(item.fork, item.origin)), "accent", width, CALL_INDENT)
    if item.difference:
        lines += signed(" ", one_line(f"first difference: {item.difference}"), "muted", width, CALL_INDENT)
    return lines


def step_lines(item: StepItem, width: int, expanded: bool) -> list[Line]:
    """Return the heading of a step. Once it is graded, it has its sign, score and reason."""
    number = f" of {item.of}" if item.of else ""
    head: Line = (Span(f" {item.name}{number}", "heading"),)
    grade = item.grade
    told: list[Line] = [(Span(f"{' ' * CALL_INDENT}no system prompt", "muted"),)] if item.unprompted else []
    if grade is None:
        return [EMPTY, head, *told]
    if grade.status is None:
        return [EMPTY, (*head, Span(f"  {GLYPHS.skipped} not graded", "muted")), *told]
    sign, role = STATUS_SIGNS[grade.status]
    head = (*head, Span(f"  {sign} {grade.status}", role))
    if grade.score is not None:
        head = (*head, Span(f"  {score(grade.score)}", "strong"))
    if grade.why and (expanded or grade.status != "passed"):
        rows = wrap(one_line(grade.why), width - CALL_INDENT)
        told += [(Span(" " * CALL_INDENT), Span(row, "muted")) for row in rows]
    return [EMPTY, head, *told]
