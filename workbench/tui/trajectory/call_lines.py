"""Lays out the calls of a run with grades, holds and breakpoints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from workbench.grading.grade import Issue
from workbench.grading.status import Status
from workbench.numerals import duration_text, score_text
from workbench.show.glyphs import GLYPHS
from workbench.show.highlight import json_line, json_rows
from workbench.show.lazy_lines import DISPLAY_LIMIT, GrowingText, JoinedLines, JsonLines, parsed_json, text_rows
from workbench.show.spans import EMPTY, Line, Role, Span, cells, cut, cut_line, indented, padded, signed, wrap
from workbench.show.views.by_hand import fork_text
from workbench.show.views.grades import issue_note
from workbench.show.views.values import progress_text
from workbench.show.visible import one_line
from workbench.trajectory.events import ResultReceived
from workbench.tui.run_book.shown.items import CallItem, ForkItem, HoldItem, NoticeItem, ResultItem, StepItem
from workbench.tui.trajectory.argument_lines import ARGUMENT_INDENT, argument_rows, shown_at_argument

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


def hold_lines(item: HoldItem, width: int, expanded: bool) -> Sequence[Line]:
    """Return the lines of the place before a request, empty if the run is not held there. The request is one line or,
    when expanded, all that is sent."""
    if item.why is None:
        return []
    held, request = held_lines(f"before the request of round {item.round}", item.why, width), item.request
    if request is None:
        return held
    if isinstance(request, str):
        return [*held, *signed(GLYPHS.failed, f"cannot be sent: {request}", "failed", width, CALL_INDENT)]
    target, more = f"{request.method} {request.url}", "" if expanded else "  Enter: what is sent"
    room = width - CALL_INDENT
    if not expanded:
        target = cut(one_line(target), max(room - cell_len(more), room // 2))
        line = (Span(" " * CALL_INDENT), Span(target, "muted"), Span(more, "comment"))
        return [*held, cut_line(line, width)]
    texts = [target, *(f"{name}: {value}" for name, value in request.headers)]
    rows = [(Span(" " * CALL_INDENT), Span(row, "muted")) for text in texts for row in wrap(one_line(text), room)]
    return JoinedLines([held, rows, JsonLines(request.body, width, CALL_INDENT)])


def notice_lines(item: NoticeItem, width: int) -> list[Line]:
    """Return the lines of a notice or of a wait."""
    if item.waits:
        return signed(GLYPHS.retry, item.text, "running", width, CALL_INDENT)
    return signed(GLYPHS.warned, item.text, "warned", width, CALL_INDENT)


def fork_lines(item: ForkItem, width: int) -> list[Line]:
    """Return the lines of the point where a fork departs from its origin."""
    lines = signed(GLYPHS.fork, fork_text(item.fork, item.origin), "accent", width, CALL_INDENT)
    if item.difference:
        lines += signed(" ", f"first difference: {item.difference}", "muted", width, CALL_INDENT)
    return lines


def step_lines(item: StepItem, width: int, expanded: bool) -> list[Line]:
    """Return the heading of a step. Once it is graded, it has its sign, score and reason."""
    number = f" of {item.of}" if item.of else ""
    head: Line = (Span(f" {item.name}{number}", "heading"),)
    grade = item.grade
    below: list[Line] = [(Span(f"{' ' * CALL_INDENT}no system prompt", "muted"),)] if item.unprompted else []
    if grade is None:
        return [EMPTY, head, *below]
    if grade.status is None:
        return [EMPTY, (*head, Span(f"  {GLYPHS.skipped} not graded", "muted")), *below]
    sign, role = grade.status.mark
    head = (*head, Span(f"  {sign} {grade.status}", role))
    if grade.score is not None:
        head = (*head, Span(f"  {score_text(grade.score, '')}", "strong"))
    if grade.why and (expanded or grade.status != Status.PASSED):
        rows = wrap(one_line(grade.why), width - CALL_INDENT)
        below += [(Span(" " * CALL_INDENT), Span(row, "muted")) for row in rows]
    return [EMPTY, head, *below]


MAX_RESULT_CHARS = 8_000_000
"""The characters of a result that are shown when it is expanded."""

_RESULT_ROWS = 3
"""The rows of a long result that are shown before it is expanded."""


def call_lines(item: CallItem, width: int, expanded: bool) -> Sequence[Line]:
    """Return the lines of a call: its tool, the arguments with verdicts, and issues of the whole call."""
    head: Line = (Span(" " * CALL_INDENT), Span(f"{GLYPHS.call} ", "accent"), Span(one_line(item.tool), "tool"))
    if item.server is not None:
        head = (*head, Span(f"  on {one_line(item.server)}", "muted"))
    if item.edited is not None:
        head = (*head, Span(f"  {GLYPHS.by_hand} edited", "accent"))
    parts: list[Sequence[Line]] = []
    if item.held is not None:
        parts.append(held_lines(f"before {one_line(item.tool)}", item.held, width))
    parts.append([cut_line(head, width)])
    room = width - ARGUMENT_INDENT
    if item.arguments is None:
        written = one_line("".join(item.fragments)[-4 * width :])
        if written:
            tail = written if cell_len(written) <= room else GLYPHS.running + written[-(room // 2) :]
            parts.append([(Span(" " * ARGUMENT_INDENT), Span(cut(tail, room), "muted"))])
    elif item.problem is not None:
        parts.append(signed(GLYPHS.failed, item.problem, "failed", width, ARGUMENT_INDENT))
        limit = None if expanded else 2
        parts.append(text_rows(GrowingText(item.raw or ""), width, limit, "muted", ARGUMENT_INDENT))
        if item.edited is not None:
            sent = f"{GLYPHS.by_hand} sent instead:"
            parts.append([(Span(" " * ARGUMENT_INDENT), Span(sent, "accent"))])
            parts += argument_rows(item.edited, (), (), width, expanded)
    else:
        parts += argument_rows(item.arguments, item.verdicts, item.issues, width, expanded, item.edited)
    for issue in item.issues:
        if not shown_at_argument(issue, item.verdicts, item.arguments or {}):
            parts.append(_issue(issue, width, ARGUMENT_INDENT))
    return JoinedLines(parts)


def result_lines(item: ResultItem, width: int, expanded: bool) -> Sequence[Line]:
    """Return the lines of a result, or of what it waits for."""
    text = _answered(item, item.result, width, expanded) if item.result is not None else _unanswered(item, width)
    if item.held is None:
        return text
    return JoinedLines([text, held_lines(f"after the result of {one_line(item.tool)}", item.held, width)])


def _answered(item: ResultItem, result: ResultReceived, width: int, expanded: bool) -> Sequence[Line]:
    failed = result.is_error and result.source != "skipped"
    role: Role = "failed" if failed else "muted"
    source = _source(item.unedited or result)
    if item.held_ms:
        source += f" {GLYPHS.dot} held {duration_text(item.held_ms)}"
    by_hand = result.source in ("edited", "skipped")
    head: Line = (
        Span(" " * CALL_INDENT),
        Span(f"{GLYPHS.result} ", "accent"),
        Span(source, "accent" if by_hand else "muted"),
    )
    if failed:
        head = (*head, Span("  error", "failed"))
    if item.unedited is not None:
        more = "" if expanded else ", Enter: original"
        head = (*head, Span(f"  {GLYPHS.by_hand} edited", "accent"), Span(more, "comment"))
    compact = one_line(result.content[: 4 * width])
    if not expanded and cells(head) + 2 + cell_len(compact) <= width:
        painted = (Span(compact, role),) if failed else json_line(compact)
        return [(*head, Span("  "), *painted)]
    parts: list[Sequence[Line]] = [[cut_line(head, width)], _body(result, role, width, expanded)]
    if expanded and item.unedited is not None:
        kind = ", an error" if item.unedited.is_error else ", no error" if result.is_error else ""
        was = f"{GLYPHS.by_hand} it was{kind}"
        parts.append([(Span(" " * CALL_INDENT), Span(cut(was, width - CALL_INDENT), "accent"))])
        parts.append(_body(item.unedited, "muted", width, expanded))
    return JoinedLines(parts)


def _source(result: ResultReceived) -> str:
    """Return where a result came from and how long it took."""
    match result.source:
        case "edited":
            return f"{GLYPHS.by_hand} answered by hand"
        case "skipped":
            return f"{GLYPHS.by_hand} skipped by hand"
        case "replayed" | "reported" as known:
            return known
        case source:
            return f"{source} {GLYPHS.dot} {duration_text(result.latency_ms)}"


def _body(result: ResultReceived, role: Role, width: int, expanded: bool) -> Sequence[Line]:
    """Return the content of a result."""
    parsed = parsed_json(result.content, MAX_RESULT_CHARS if expanded else DISPLAY_LIMIT)
    if parsed is not None and expanded:
        return JsonLines(parsed, width, ARGUMENT_INDENT)
    if expanded:
        return text_rows(GrowingText(result.content, MAX_RESULT_CHARS), width, None, role, ARGUMENT_INDENT)
    text = GrowingText(result.content)
    rows = text_rows(text, width, _RESULT_ROWS, role, ARGUMENT_INDENT)
    if parsed is None:
        return rows
    shown = sum(row[-1].role == role for row in rows)
    painted = json_rows(text.rows(width - ARGUMENT_INDENT), shown)
    return [*indented(painted, ARGUMENT_INDENT), *rows[shown:]]


def _unanswered(item: ResultItem, width: int) -> list[Line]:
    if item.asks is not None:
        return signed(GLYPHS.held, f"asks: {item.asks}", "running", width, CALL_INDENT)
    if item.executing:
        text = progress_text(item.progress) if item.progress is not None else "executing"
        return [(Span(" " * CALL_INDENT), Span(cut(f"{GLYPHS.running} {text}", width - CALL_INDENT), "running"))]
    return []


def _issue(issue: Issue, width: int, indent: int) -> list[Line]:
    text = issue_note(issue)
    if issue.decides:
        return signed(GLYPHS.failed, text, "failed", width, indent)
    return signed(GLYPHS.warned, text, "warned", width, indent)
