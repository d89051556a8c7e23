"""Lays out the items of a run at a given width: columns aligned, long values cut unless expanded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from rich.cells import cell_len

from workbench.numerals import duration_text
from workbench.show.glyphs import GLYPHS
from workbench.show.lazy_lines import DISPLAY_LIMIT, JoinedLines, LazyLines, compact_json, text_rows
from workbench.show.spans import EMPTY, NARROWEST, Line, Role, Span, cut, cut_line, padded, signed, wrap
from workbench.show.views.deviations import deviation_lines
from workbench.show.views.values import usage_text, waited_text
from workbench.show.visible import one_line
from workbench.trajectory.events import JsonValue, ResponseFinished
from workbench.tui.run_book.shown.items import (
    CallItem,
    ForkItem,
    HoldItem,
    Item,
    MessageItem,
    MissingItem,
    NoticeItem,
    OutcomeItem,
    ResultItem,
    RoundItem,
    SetAsideItem,
    StepItem,
    TextItem,
    ToolsItem,
)
from workbench.tui.trajectory.argument_lines import ARGUMENT_INDENT, MAX_NAME_CELLS
from workbench.tui.trajectory.call_lines import (
    CALL_INDENT,
    call_lines,
    fork_lines,
    hold_lines,
    notice_lines,
    result_lines,
    step_lines,
)
from workbench.tui.trajectory.headline import outcome_lines

NUMBER_WIDTH = 3
LABEL_WIDTH = 7
BODY = NUMBER_WIDTH + LABEL_WIDTH

COLLAPSED_ROWS: Mapping[str, int] = {"system": 1, "user": 8, "assistant": 3, "tool": 2, "reasoning": 3}
"""The rows of a long text that are shown before it is expanded, by role."""


def lines_of(item: Item, width: int, expanded: bool = False) -> Sequence[Line]:
    """Return the lines of one item, none if it has nothing to show yet."""
    width = max(width, NARROWEST)
    match item:
        case TextItem():
            return _text(item, width, expanded)
        case CallItem():
            return call_lines(item, width, expanded)
        case ResultItem():
            return result_lines(item, width, expanded)
        case SetAsideItem():
            return _set_aside(item, width, expanded)
        case HoldItem():
            return hold_lines(item, width, expanded)
        case _:
            return [cut_line(line, width) for line in _short(item, width, expanded)]


def rough_height(item: Item, width: int) -> int:
    """Estimate the number of lines of an item, folded, at almost no cost. 0 is exact."""
    match item:
        case TextItem():
            return 0 if item.text.blank else 1 + len(item.text.text) // max(width, NARROWEST)
        case CallItem():
            held = item.held is not None
            return 1 + held + max(len(item.arguments or ()), len(item.edited or ()), 1) + len(item.issues)
        case ResultItem():
            some = item.result is not None or item.executing or item.asks is not None or item.held is not None
            return 1 if some else 0
        case HoldItem():
            return (1 if item.request is None else 2) if item.why is not None else 0
        case StepItem():
            return 2
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
            return notice_lines(item, width)
        case StepItem():
            return step_lines(item, width, expanded)
        case ForkItem():
            return fork_lines(item, width)
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
    rows = [] if item.text.blank else [line[1:] for line in text_rows(item.text, width, limit, role, BODY)]
    for call in item.calls:
        shown = f"{GLYPHS.call} {one_line(call.tool)} {compact_json(dict(call.arguments), DISPLAY_LIMIT)}"
        texts = wrap(shown, width - BODY) if expanded else [cut(shown, width - BODY)]
        rows += [(Span(text, "muted"),) for text in texts]
    head = _head(item.number, label, "muted" if item.role == "system" else "strong")
    if item.by_hand:
        rows = [(Span(f"{GLYPHS.by_hand} added by hand", "accent"),), *rows]
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


def _round(item: RoundItem, width: int) -> list[Line]:
    response = item.response
    if item.replayed:
        text = Span("replayed", "muted")
    elif response is not None:
        text = Span(cut(_timing(response, width - BODY), width - BODY), "muted")
    elif item.over:
        text = Span("no answer", "muted")
    elif item.retry is not None:
        # A time of day stays correct without being redrawn.
        at = f"{item.retry_at.astimezone():%H:%M:%S}" if item.retry_at is not None else ""
        wait = f"in {duration_text(item.retry.wait_ms)}"
        text = Span(f"{GLYPHS.retry} retry {item.retry.attempt} {f'at {at} ({wait})' if at else wait}", "running")
    else:
        known = (f"{item.awaited.doing} {GLYPHS.running}", *item.awaited.facts(item.now_s))
        text = Span(cut(f" {GLYPHS.dot} ".join(known), width - BODY), "running")
    lines: list[Line] = [(*_head(item.number, "model"), text)]
    for repaired in deviation_lines(response.deviations) if response is not None else ():
        lines += signed(GLYPHS.warned, repaired, "warned", width, CALL_INDENT)
    # Failed attempts that a later one may correct are only warnings.
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
    """Return the latency, the time to the first token if it fits, and the tokens."""
    parts = [duration_text(response.latency_ms)] if response.latency_ms else []
    if response.waited_ms:
        parts.append(waited_text(response.waited_ms))
    if response.stop_reason in ("truncated", "refused"):
        parts.append(response.stop_reason)
    if response.usage is not None:
        parts.append(usage_text(response.usage, unit=""))  # the line has no room for the unit beside the first token
    separator = f" {GLYPHS.dot} "
    first = response.first_token_ms
    if first is not None and 1 <= first < response.latency_ms - 1:
        longer = separator.join([parts[0], f"first token {duration_text(first)}", *parts[1:]])
        if len(longer) <= room:
            return longer
    return separator.join(parts)


def _text(item: TextItem, width: int, expanded: bool) -> Sequence[Line]:
    if item.text.blank:
        return []
    role: Role = "muted" if item.reasoning or item.replayed else "text"
    limit = COLLAPSED_ROWS["reasoning"] if item.reasoning and item.done and not expanded else None
    return text_rows(item.text, width, limit, role, CALL_INDENT)


class _Muted(LazyLines):
    """Superseded lines, without the first."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines) - 1

    def line(self, index: int) -> Line:
        return tuple(Span(text, "muted") for text, _ in self._lines[index + 1])


def _set_aside(item: SetAsideItem, width: int, expanded: bool) -> Sequence[Line]:
    """Return a superseded answer: one line that summarises it or, when expanded, all of it."""
    head = (*_head(item.number, "model", "muted"), Span(f"{GLYPHS.retry} superseded", "accent"))
    if not expanded:
        return [cut_line((*head, Span(f": {_answer_in_short(item.items, width)}", "muted")), width)]
    shown = JoinedLines([lines_of(each, width, expanded=True) for each in item.items])
    timed = (*head, Span("  "), *shown[0][2:])  # without the number, which is already there
    return JoinedLines([[cut_line(timed, width)], _Muted(shown)])


def _answer_in_short(items: Sequence[Item], limit: int) -> str:
    calls = [
        f"{one_line(item.tool)}({_in_short(item.arguments or {}, limit)})"
        for item in items
        if isinstance(item, CallItem)
    ]
    if calls:
        return f"called {', '.join(calls)}"
    texts = [item.text.text[:limit] for item in items if isinstance(item, TextItem) and not item.reasoning]
    return f"said {one_line(' '.join(texts))}" if texts else "no answer"


def _in_short(arguments: Mapping[str, JsonValue], limit: int) -> str:
    return ", ".join(f"{one_line(name)}={compact_json(value, limit)}" for name, value in arguments.items())


def _missing(item: MissingItem, width: int, expanded: bool) -> list[Line]:
    head: Line = (
        Span(" " * CALL_INDENT),
        Span(f"{GLYPHS.missing} ", "failed"),
        Span(one_line(item.tool), "tool"),
        Span("  expected, never called", "failed"),
    )
    lines = [cut_line(head, width)]
    if item.verdicts:
        name_width = min(max(cell_len(one_line(verdict.argument)) for verdict in item.verdicts), MAX_NAME_CELLS)
        for verdict in item.verdicts:
            label = " " * ARGUMENT_INDENT + padded(one_line(verdict.argument), name_width) + "  "
            expected = one_line(verdict.expected)
            value = expected if expanded else cut(expected, width - cell_len(label))
            for row in wrap(value, width - cell_len(label)):
                lines.append((Span(label, "key"), Span(row, "muted")))
                label = " " * cell_len(label)
    return lines
