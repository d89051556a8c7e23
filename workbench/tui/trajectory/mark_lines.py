"""Lays out what stands between the messages of a run: where it is held, where a step begins, where a fork does."""

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
"""What lets a run go on that is held, and which actions that are."""


def held_lines(where: str, why: str, width: int) -> list[Line]:
    """Where a run is held, and why, over the whole width: nobody is to overlook it."""
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
    """The action that is offered in a cell of a line that says where a run is held; `None` where none is."""
    if len(line) != 1 or line[0].role != "badge" or _KEYS not in line[0].text:
        return None
    text = line[0].text
    starts = {cell_len(text[: text.rindex(words)]): words for words in _OFFERED}
    return next((_OFFERED[words] for start, words in starts.items() if start <= cell < start + len(words)), None)


def hold_lines(item: HoldItem, width: int) -> list[Line]:
    """The place before a request; nothing where the run is not held any more."""
    return held_lines(f"before the request of round {item.round}", item.why, width) if item.why is not None else []


def notice_lines(item: NoticeItem, width: int) -> list[Line]:
    """What is not as the suite would have it, or what the run waits for."""
    if item.waits:
        return signed(GLYPHS.retry, one_line(item.text), "running", width, CALL_INDENT)
    return signed(GLYPHS.warned, one_line(item.text), "warned", width, CALL_INDENT)


def fork_lines(item: ForkItem, width: int) -> list[Line]:
    """Where a fork becomes a run of its own."""
    lines = signed(GLYPHS.fork, one_line(fork_text(item.fork, item.origin)), "accent", width, CALL_INDENT)
    if item.difference:
        lines += signed(" ", one_line(f"first difference: {item.difference}"), "muted", width, CALL_INDENT)
    return lines


def step_lines(item: StepItem, width: int, expanded: bool) -> list[Line]:
    """The heading of a step with, once it is graded, its sign, its score and why."""
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
