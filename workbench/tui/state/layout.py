"""Lays out the items of a run as lines of a given width: columns aligned, long values cut unless expanded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby

from rich.cells import cell_len

from workbench.grading.grade import Issue
from workbench.reports.issues import issue_note
from workbench.reports.values import progress_text, tokens_text
from workbench.reports.visible import one_line
from workbench.trajectory.events import ResponseFinished, ResultReceived
from workbench.trajectory.messages import JsonValue
from workbench.tui.glyphs import GLYPHS
from workbench.tui.highlight import json_line
from workbench.tui.state.argument_rows import (
    ARGUMENT_INDENT,
    LONGEST_NAME,
    argument_rows,
    shown_at_argument,
    signed,
)
from workbench.tui.state.items import (
    CallItem,
    Item,
    MessageItem,
    MissingItem,
    NoticeItem,
    OutcomeItem,
    ResultItem,
    RoundItem,
    TextItem,
    ToolsItem,
)
from workbench.tui.state.json_lines import JoinedLines, JsonLines, LazyLines, compact_json
from workbench.tui.state.outcome import outcome_lines
from workbench.tui.state.spans import EMPTY, Line, Role, Span, cells, cut, cut_line, padded, wrap
from workbench.tui.state.words import duration, many
from workbench.tui.state.wrapped import DISPLAY_LIMIT, GrowingText

NUMBER_WIDTH = 3
LABEL_WIDTH = 7
BODY = NUMBER_WIDTH + LABEL_WIDTH
CALL_INDENT = 3
NARROWEST = 24
"""Cells below which lines are laid out as if there were more, and cut by the screen."""

COLLAPSED_ROWS: Mapping[str, int] = {"system": 1, "user": 8, "assistant": 3, "tool": 2, "reasoning": 3, "result": 3}
"""Rows that are shown of a long text before it is expanded."""


LARGEST = 8_000_000
"""Characters of a result that are shown when it is expanded."""


class TextLines(LazyLines):
    """The rows of a text as lines, made when they are asked for: text that streams in may be long."""

    def __init__(self, rows: list[str], indent: int, role: Role) -> None:
        self._rows = rows
        self._indent = Span(" " * indent)
        self._role = role
        self._count = next((at for at in range(len(rows), 0, -1) if rows[at - 1].strip()), 0)

    def __len__(self) -> int:
        return self._count

    def line(self, index: int) -> Line:
        return self._indent, Span(self._rows[index], self._role)


def lines_of(item: Item, width: int, expanded: bool = False) -> Sequence[Line]:
    """The lines of one item; none for an item that has nothing to show yet."""
    width = max(width, NARROWEST)
    match item:
        case TextItem():
            return _text(item, width, expanded)
        case CallItem():
            return _call(item, width, expanded)
        case ResultItem():
            return _result(item, width, expanded)
        case _:
            return [cut_line(line, width) for line in _short(item, width, expanded)]


def rough_height(item: Item, width: int) -> int:
    """About how many lines an item has, folded, at next to no cost; none only if it has none."""
    match item:
        case TextItem():
            return 0 if item.text.blank else 1 + len(item.text.text) // max(width, NARROWEST)
        case CallItem():
            return 1 + max(len(item.arguments or ()), 1) + len(item.issues)
        case ResultItem():
            return 1 if item.result is not None or item.held is not None or item.executing else 0
        case RoundItem() | OutcomeItem():
            return 1 + len(item.errors if isinstance(item, RoundItem) else item.issues)
        case _:
            return 1


def _short(item: Item, width: int, expanded: bool) -> list[Line]:
    match item:
        case MessageItem():
            return _message(item, width, expanded)
        case ToolsItem():
            return _tools(item, width, expanded)
        case NoticeItem():
            return _notice(item, width)
        case RoundItem():
            return _round(item, width)
        case MissingItem():
            return _missing(item, width, expanded)
        case OutcomeItem():
            return [EMPTY, *outcome_lines(item, width, expanded)]
        case _:
            raise TypeError(f"{type(item).__name__} is laid out elsewhere")


def _head(number: int | None, label: str, role: Role = "strong") -> Line:
    shown = f"{number:>{NUMBER_WIDTH - 1}} " if number is not None else " " * NUMBER_WIDTH
    return (Span(shown, "muted"), Span(f"{label:<{LABEL_WIDTH}}", role))


def _message(item: MessageItem, width: int, expanded: bool) -> list[Line]:
    role: Role = "muted" if item.role in ("system", "tool") else "text"
    label = "result" if item.role == "tool" else "model" if item.role == "assistant" else item.role
    limit = None if expanded else COLLAPSED_ROWS.get(item.role, 3)
    rows = [] if item.text.blank else [line[1:] for line in _rows(item.text, width, limit, role, BODY)]
    for call in item.calls:
        shown = f"{GLYPHS.call} {one_line(call.tool)} {compact_json(dict(call.arguments), DISPLAY_LIMIT)}"
        texts = wrap(shown, width - BODY) if expanded else [cut(shown, width - BODY)]
        rows += [(Span(text, "muted"),) for text in texts]
    head = _head(item.number, label, "muted" if item.role == "system" else "strong")
    first, *others = rows or [EMPTY]
    return [(*head, *first), *((Span(" " * BODY), *row) for row in others)]


def _tools(item: ToolsItem, width: int, expanded: bool) -> list[Line]:
    head = _head(None, "tools", "muted")
    if not expanded:
        names = ", ".join(one_line(tool.name) for tool in item.tools)
        return [(*head, Span(cut(f"{len(item.tools)} offered: {names}", width - BODY), "muted"))]
    lines: list[Line] = [(*head, Span(f"{len(item.tools)} offered", "muted"))]
    for tool in item.tools:
        lines.append((Span(" " * BODY), Span(cut(one_line(tool.name), width - BODY), "tool")))
        for row in wrap(one_line(tool.description), width - BODY - 2) if tool.description else ():
            lines.append((Span(" " * (BODY + 2)), Span(row, "muted")))
    return lines


def _notice(item: NoticeItem, width: int) -> list[Line]:
    if item.held:
        return signed(GLYPHS.held, one_line(item.text), "running", width, CALL_INDENT)
    return signed(GLYPHS.warned, one_line(item.text), "warned", width, CALL_INDENT)


def _round(item: RoundItem, width: int) -> list[Line]:
    response = item.response
    if response is not None:
        said = Span(cut(_timing(response, width - BODY), width - BODY), "muted")
    elif item.over:
        said = Span("no answer", "muted")
    elif item.retry is not None:
        # An hour on the clock stays true while nothing is drawn.
        at = f"{item.retry_at.astimezone():%H:%M:%S}" if item.retry_at is not None else ""
        wait = f"in {duration(item.retry.wait_ms)}"
        said = Span(f"{GLYPHS.retry} retry {item.retry.attempt} {f'at {at} ({wait})' if at else wait}", "running")
    else:
        said = Span(f"{'answering' if item.begun else 'waiting for the model'} {GLYPHS.running}", "running")
    lines: list[Line] = [(*_head(item.number, "model"), said)]
    # Attempts that may be, or were, made good by a later one are worth a look, no more.
    lost = item.over and response is None
    for error, same in groupby(item.errors):
        times = len(list(same))
        failure = one_line(error) + (f" ({times} times)" if times > 1 else "")
        if lost:
            lines += signed(GLYPHS.error, failure, "error", width, CALL_INDENT)
        else:
            lines += signed(GLYPHS.warned, failure, "warned", width, CALL_INDENT)
    return lines


def _timing(response: ResponseFinished, room: int) -> str:
    """Latency, time to the first token where there is room for it, tokens."""
    parts = [duration(response.latency_ms)]
    if response.stop_reason in ("truncated", "refused"):
        parts.append(response.stop_reason)
    if response.usage is not None:
        parts.append(tokens_text(response.usage))
    separator = f" {GLYPHS.dot} "
    first = response.first_token_ms
    if first is not None and 1 <= first < response.latency_ms - 1:
        longer = separator.join([parts[0], f"first token {duration(first)}", *parts[1:]])
        if len(longer) <= room:
            return longer
    return separator.join(parts)


def _text(item: TextItem, width: int, expanded: bool) -> Sequence[Line]:
    if item.text.blank:
        return []
    role: Role = "muted" if item.reasoning else "text"
    limit = COLLAPSED_ROWS["reasoning"] if item.reasoning and item.done and not expanded else None
    return _rows(item.text, width, limit, role, CALL_INDENT)


def _call(item: CallItem, width: int, expanded: bool) -> Sequence[Line]:
    head: Line = (Span(" " * CALL_INDENT), Span(f"{GLYPHS.call} ", "accent"), Span(one_line(item.tool), "tool"))
    if item.server is not None:
        head = (*head, Span(f"  on {one_line(item.server)}", "muted"))
    parts: list[Sequence[Line]] = [[cut_line(head, width)]]
    room = width - ARGUMENT_INDENT
    if item.arguments is None:
        written = one_line("".join(item.fragments)[-4 * width :])
        if written:
            tail = written if cell_len(written) <= room else GLYPHS.running + written[-(room // 2) :]
            parts.append([(Span(" " * ARGUMENT_INDENT), Span(cut(tail, room), "muted"))])
    elif item.problem is not None:
        parts.append(signed(GLYPHS.failed, one_line(item.problem), "failed", width, ARGUMENT_INDENT))
        limit = None if expanded else 2
        parts.append(_rows(GrowingText(item.raw or ""), width, limit, "muted", ARGUMENT_INDENT))
    else:
        parts += argument_rows(item.arguments, item.verdicts, item.issues, width, expanded)
    for issue in item.issues:
        if not shown_at_argument(issue, item.verdicts, item.arguments or {}):
            parts.append(_issue(issue, width, ARGUMENT_INDENT))
    return JoinedLines(parts)


def _result(item: ResultItem, width: int, expanded: bool) -> Sequence[Line]:
    result = item.result
    if result is None:
        return _unanswered(item, width)
    role: Role = "failed" if result.is_error else "muted"
    source = f"{result.source} {GLYPHS.dot} {duration(result.latency_ms)}"
    if item.held_ms:
        source += f" {GLYPHS.dot} held {duration(item.held_ms)}"
    head: Line = (Span(" " * CALL_INDENT), Span(f"{GLYPHS.result} ", "accent"), Span(source, "muted"))
    if result.is_error:
        head = (*head, Span("  error", "failed"))
    compact = one_line(result.content[: 4 * width])
    if not expanded and cells(head) + 2 + cell_len(compact) <= width:
        painted = (Span(compact, role),) if result.is_error else json_line(compact)
        return [(*head, Span("  "), *painted)]
    return JoinedLines([[cut_line(head, width)], _body(result, role, width, expanded)])


def _body(result: ResultReceived, role: Role, width: int, expanded: bool) -> Sequence[Line]:
    """What a result says, below its head."""
    parsed = _parsed(result.content, LARGEST if expanded else DISPLAY_LIMIT)
    if parsed is not None and expanded:
        return JsonLines(parsed, width, ARGUMENT_INDENT)
    if expanded:
        return _rows(GrowingText(result.content, LARGEST), width, None, role, ARGUMENT_INDENT)
    rows = _rows(GrowingText(result.content), width, COLLAPSED_ROWS["result"], role, ARGUMENT_INDENT)
    if parsed is None:
        return rows
    return [(indent, *(json_line(text.text) if text.role == role else (text,))) for indent, text in rows]


def _unanswered(item: ResultItem, width: int) -> list[Line]:
    if item.held is not None:
        return signed(GLYPHS.held, one_line(f"asks: {item.held}"), "running", width, CALL_INDENT)
    if item.executing:
        said = progress_text(item.progress) if item.progress is not None else "executing"
        return [(Span(" " * CALL_INDENT), Span(cut(f"{GLYPHS.running} {said}", width - CALL_INDENT), "running"))]
    return []


def _missing(item: MissingItem, width: int, expanded: bool) -> list[Line]:
    head: Line = (
        Span(" " * CALL_INDENT),
        Span(f"{GLYPHS.missing} ", "failed"),
        Span(one_line(item.tool), "tool"),
        Span("  expected, never called", "failed"),
    )
    lines = [cut_line(head, width)]
    if item.verdicts:
        name_width = min(max(cell_len(one_line(verdict.argument)) for verdict in item.verdicts), LONGEST_NAME)
        for verdict in item.verdicts:
            label = " " * ARGUMENT_INDENT + padded(one_line(verdict.argument), name_width) + "  "
            expected = one_line(verdict.expected)
            value = expected if expanded else cut(expected, width - cell_len(label))
            for row in wrap(value, width - cell_len(label)):
                lines.append((Span(label, "key"), Span(row, "muted")))
                label = " " * cell_len(label)
    return lines


def _issue(issue: Issue, width: int, indent: int) -> list[Line]:
    text = issue_note(issue)
    if issue.decides:
        return signed(GLYPHS.failed, text, "failed", width, indent)
    return signed(GLYPHS.warned, text, "warned", width, indent)


def _rows(text: GrowingText, width: int, limit: int | None, role: Role, indent: int) -> Sequence[Line]:
    """Wrapped rows of a text, at most `limit` of them, behind a span of blanks; the last one says what is not shown."""
    rows = text.rows(width - indent)
    lead = Span(" " * indent)
    if limit == 1 and len(rows) > 1:
        return [(lead, Span(cut(rows[0] + " " + rows[1], width - indent), role))]
    lines = TextLines(rows, indent, role)
    # A note instead of a single line would hide that for nothing.
    if limit is not None and len(lines) > limit + (0 if text.hidden else 1):
        note = f"{GLYPHS.running} {many(len(lines) - limit, 'more line')}, Enter shows them"
        if text.hidden:
            note = f"{GLYPHS.running} {text.hidden + DISPLAY_LIMIT:,} characters in all, Enter shows more"
        return [*lines[:limit], (lead, Span(cut(note, width - indent), "comment"))]
    if not text.hidden:
        return lines
    note = f"{GLYPHS.running} {text.hidden:,} more characters; y copies all of them"
    return JoinedLines([lines, [(lead, Span(cut(note, width - indent), "comment"))]])


def _parsed(content: str, longest: int) -> JsonValue:
    """The JSON object or list that a result is, or `None`."""
    if content[:1] not in ("{", "[") or len(content) > longest:
        return None
    try:
        value: JsonValue = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return value
