"""Lays out the items of a run at a given width: columns aligned, long values cut unless expanded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from rich.cells import cell_len

from workbench.grading.grade import ArgumentVerdict, Issue, RunResult
from workbench.grading.scoring import part_earned
from workbench.grading.status import NOT_APPLICABLE, Status, disagree, passed_if
from workbench.numerals import counted, duration_text, score_text
from workbench.show.glyphs import GLYPHS
from workbench.show.highlight import cut_json, json_line, json_rows
from workbench.show.lazy_lines import (
    DISPLAY_LIMIT,
    GrowingText,
    JoinedLines,
    JsonLines,
    LazyLines,
    compact_json,
    parsed_json,
    text_rows,
)
from workbench.show.spans import (
    EMPTY,
    NARROWEST,
    Line,
    Role,
    Span,
    cells,
    cut,
    cut_line,
    indented,
    padded,
    signed,
    wrap,
)
from workbench.show.views.grade_moves import Move, graded_text
from workbench.show.views.grades import failed_steps, issue_note, issue_text, metric_text, why_passed
from workbench.show.views.run_items import (
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
from workbench.show.views.server_output import server_output_lines
from workbench.show.views.trajectory import changes_by_hand, deviation_lines, fork_text, unread_text
from workbench.show.views.values import progress_text, usage_text, waited_text
from workbench.show.visible import one_line
from workbench.suite.sameness import same
from workbench.trajectory.events import FinishReason, JsonValue, ResponseFinished, ResultReceived

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
    for error, alike in groupby(item.errors):
        times = len(list(alike))
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


ARGUMENT_INDENT = 6
MAX_NAME_CELLS = 18
"""Longer argument names are not aligned."""

MIN_VALUE_CELLS = 6
"""The minimum width of a value, however long the names are."""

_MAX_ON_ONE_ROW = 2_000
"""Characters of a value that are considered when it is shown on one row."""

_EXPECTED = " expected "
"""The word before an expected value, where it fits."""


_Mark = tuple[str, Role]
"""A note after an argument: its text, beginning with a sign, and its role. Empty if there is none."""


def argument_rows(
    arguments: Mapping[str, JsonValue],
    verdicts: Sequence[ArgumentVerdict],
    issues: Sequence[Issue],
    width: int,
    expanded: bool,
    edited: Mapping[str, JsonValue] | None = None,
) -> list[Sequence[Line]]:
    """Return lists of lines: the given arguments, then expected ones that are missing. A verdict that does not fit next
    to its value goes below it. When expanded, values are complete and issues give reasons. `edited` are the user's
    replacements, shown after the values; verdicts are about the model's own."""
    sent = arguments if edited is None else edited
    given = [*arguments, *(name for name in sent if name not in arguments)]
    absent = [verdict.argument for verdict in verdicts if not verdict.given and verdict.argument not in given]
    names = [*given, *absent]
    if not names:
        return [[(Span(" " * ARGUMENT_INDENT), Span("no arguments", "muted"))]]
    judged = {verdict.argument: verdict for verdict in verdicts}
    faults = {issue.argument: issue for issue in issues if issue.argument is not None}
    marks = {name: [_mark(judged.get(name), faults.get(name)), _edit_mark(name, arguments, sent)] for name in names}
    values = {
        name: compact_json(arguments[name], _MAX_ON_ONE_ROW) if name in arguments else "not given" for name in names
    }
    name_width = min(max(cell_len(one_line(name)) for name in names), MAX_NAME_CELLS)
    room = width - ARGUMENT_INDENT - name_width - 2
    for_marks = min(max(map(_width_of, marks.values())), 2 + room // 3)
    value_width = max(min(max(map(cell_len, values.values())), room - for_marks), MIN_VALUE_CELLS)
    parts: list[Sequence[Line]] = []
    for name in names:
        label = Span(" " * ARGUMENT_INDENT + padded(one_line(name), name_width) + "  ", "key")
        if expanded and name in arguments and cell_len(values[name]) > room - for_marks:
            signs = [Span(f"{text}  ", role) for text, role in marks[name] if text]
            parts.append([cut_line((label, *signs), width)])
            parts.append(JsonLines(arguments[name], width, ARGUMENT_INDENT + 2))
        else:
            rows = _value_rows(values[name], marks[name], value_width, room, name in arguments)
            parts.append([cut_line(row, width) for row in ((label, *rows[0]), *indented(rows[1:], width - room))])
        if expanded and name in sent and cell_len(marks[name][1][0]) > room:
            parts.append(JsonLines(sent[name], width, ARGUMENT_INDENT + 2))
        if expanded and name in faults and faults[name].kind != "schema violation":
            why = [(Span(row, "muted"),) for row in wrap(one_line(faults[name].why), room)]
            parts.append(indented(why, width - room))
    return parts


def _width_of(marks: Sequence[_Mark]) -> int:
    return sum(2 + cell_len(text) for text, _ in marks if text)


def _value_rows(value: str, marks: Sequence[_Mark], value_width: int, room: int, given: bool) -> list[Line]:
    """Return the rows of a value and its notes. Notes that do not fit lose the word "expected", then go below."""
    shorter = [(text.replace(_EXPECTED, " ", 1), role) for text, role in marks]
    own_width = min(cell_len(value), value_width)
    if marks[1][0] and own_width + _width_of(shorter) <= room < value_width + _width_of(shorter):
        value_width = own_width  # An edit is read with its value, so the column matters less.
    if value_width + _width_of(shorter) <= room < value_width + _width_of(marks):
        marks = shorter
    beside: Line = EMPTY
    below: list[Line] = []
    for text, role in marks:
        left = room - value_width - cells(beside) - 2
        fitting = [form for form in (text, text.replace(_EXPECTED, " ", 1)) if cell_len(form) <= left]
        if text and fitting and not below:
            beside = (*beside, Span("  "), Span(fitting[0], role))
        elif text:
            below += signed(text[:1], text[2:], role, room, 0)
    own_room = value_width if beside else room
    painted: Line = cut_json(value, own_room) if given else (Span(cut(value, own_room), "muted"),)
    filled = Span(" " * (value_width - cells(painted))) if beside else Span("")
    return [(*painted, filled, *beside) if beside else painted, *below]


def _edit_mark(name: str, arguments: Mapping[str, JsonValue], sent: Mapping[str, JsonValue]) -> _Mark:
    """Return the note for an argument that the user changed."""
    if name not in sent:
        return f"{GLYPHS.by_hand} not sent" if name in arguments else "", "accent"
    if name in arguments and _alike(arguments[name], sent[name]):
        return "", "accent"
    return f"{GLYPHS.by_hand} sent {compact_json(sent[name], _MAX_ON_ONE_ROW)}", "accent"


def _alike(left: JsonValue, right: JsonValue) -> bool:
    try:
        return same(left, right)
    except RecursionError:
        return False  # too deeply nested to compare


def _mark(verdict: ArgumentVerdict | None, fault: Issue | None) -> _Mark:
    """Return the note of an argument: a sign and, unless it is right, the expected value."""
    if verdict is not None and not verdict.listed:
        return f"{GLYPHS.failed} unexpected", "failed"
    if fault is not None and fault.kind == "schema violation" and (verdict is None or verdict.holds is not False):
        return f"{GLYPHS.failed} refused by the schema", "failed" if fault.decides else "warned"
    if verdict is not None and verdict.holds is not None:
        part = part_earned(verdict.score, verdict.weight) if verdict.counted else ""
        earned = f" {part}" if part else ""
        if verdict.holds and fault is not None and fault.kind == "partial credit":
            return f"{GLYPHS.warned}{earned}{_EXPECTED}{one_line(verdict.expected)}", "warned"
        if verdict.holds:
            return GLYPHS.passed, "passed"
        return f"{GLYPHS.failed}{earned}{_EXPECTED}{one_line(verdict.expected)}", "failed"
    if fault is not None and verdict is None and fault.kind == "unexpected argument":
        return f"{GLYPHS.dot} not expected, costs nothing", "muted"
    if fault is not None:
        return f"{GLYPHS.failed} {fault.kind.removesuffix(' argument')}", "failed"
    if verdict is not None:
        return f"{GLYPHS.dot} not judged", "muted"
    return "", "text"


def shown_at_argument(issue: Issue, verdicts: Sequence[ArgumentVerdict], arguments: Mapping[str, JsonValue]) -> bool:
    """Return whether an issue is about an argument with a row of its own, which says all of it."""
    if issue.argument is None or issue.kind == "schema violation":
        return False
    return issue.argument in arguments or any(verdict.argument == issue.argument for verdict in verdicts)


ENDINGS: dict[FinishReason, str] = {
    "decided": "the case covers the first decision only; its calls were graded but not run",
    "step failed": "the chain ends here: it stops at the first step that fails",
    "rounds exhausted": "no further round was allowed; calls of the last answer were graded but not run",
    "refused": "the model refused to answer",
    "truncated": "the answer was cut off at the token limit: raise `max_tokens` of the model",
    "sent too much": "the answer was not read to its end: it is longer than any suite needs",
    "stopped": "you stopped this run; it is not graded",
    "timed out": "the run took longer than its time limit",
}
"""Explanations of endings other than an answer."""


def outcome_lines(item: OutcomeItem, width: int, expanded: bool) -> list[Line]:
    """Return the last lines of a run."""
    if item.result is None:
        return [(Span(f" {GLYPHS.running} grading", "running"),)]
    result = item.result
    lines = [cut_line(_verdict(result), width)]
    if why := why_passed(result):
        lines += signed(" ", why, "muted", width, 1)
    if item.former is not None and Move(item.former, result).moved:
        lines += signed(" ", f"regraded; was {graded_text(item.former)} when it ran", "muted", width, 1)
    if result.not_regraded is not None:
        lines += signed(GLYPHS.warned, result.not_regraded, "warned", width, 1)
    grade = result.grade
    if result.status == Status.ERROR:
        lines += signed(" ", result.error or "the run ended without an error message", "error", width, 1)
        if item.finish is not None and item.finish.server_output is not None:
            lines += server_output_lines(item.finish.server_output, width, 3)
        lines += signed(" ", "Not graded: this is not the model's fault and counts in no score.", "muted", width, 1)
    elif result.status == Status.SKIPPED:
        lines += signed(" ", result.error or "the suite says so", "muted", width, 1)
    elif result.status == Status.STOPPED:
        lines += signed(" ", ENDINGS["stopped"], "muted", width, 1)
    elif item.finish is not None and item.finish.reason in ENDINGS:
        lines += signed(" ", ENDINGS[item.finish.reason], "muted", width, 1)
    if never := [step.step for step in result.steps if step.status is None]:
        steps = f"step {never[0]} was" if len(never) == 1 else f"steps {never[0]} to {never[-1]} were"
        lines += signed(GLYPHS.skipped, f"{steps} never reached", "muted", width, 1)
    if changes := changes_by_hand(result.trajectory):
        text = f"a person changed {counted(changes, 'thing')}"
        text = f"graded by what the model wrote itself; {text}" if grade is not None else text
        lines += signed(GLYPHS.by_hand, text, "accent", width, 1)
    if unread := unread_text(result.trajectory):
        lines += signed(GLYPHS.by_hand, unread, "warned", width, 1)
    if grade is not None and any(issue.kind == "failed step" for issue in grade.issues):
        lines += signed(GLYPHS.failed, failed_steps(result.steps), "failed", width, 1)
    for issue in item.issues:
        role: Role = "failed" if issue.decides else "warned"
        sign = GLYPHS.failed if issue.decides else GLYPHS.warned
        lines += signed(sign, issue_text(issue), role, width, 1)
    for metric in result.metrics if expanded or result.status != Status.PASSED else ():
        sign, role = passed_if(metric.holds).mark
        lines += signed(sign, metric_text(metric), role, width, 1)
    if grade is not None and grade.reason and (expanded or (result.status != Status.PASSED and not grade.issues)):
        lines += signed(" ", grade.reason, "muted", width, 1)
    if facts := _facts(result):
        lines += signed(" ", facts, "muted", width, 1)
    return lines


def _verdict(result: RunResult) -> Line:
    sign, role = result.status.mark
    grade = result.grade
    line: Line = (Span(f" {sign} {result.status}", role),)
    if grade is None:
        return (*line, Span(f": {result.error}", role)) if result.status == Status.NOT_GRADED else line
    if grade.score is not None:
        line = (*line, Span(f"  {score_text(grade.score, '')}", "strong"))
    named = grade.grader if grade.verdict != NOT_APPLICABLE else f"not graded: {grade.reason}"
    line = (*line, Span(f"  {named}", "muted"))
    if disagree(result.grades):
        line = (*line, Span(f"  {GLYPHS.disagree} graders disagree: =", "warned"))
    return line


def _facts(result: RunResult) -> str:
    trajectory = result.trajectory
    if not trajectory.rounds:
        return ""
    parts = [counted(len(trajectory.rounds), "round"), counted(len(trajectory.calls), "call")]
    if trajectory.model_latency_ms:
        parts.append(f"model {duration_text(trajectory.model_latency_ms)}")
    if result.limited_ms not in (0, trajectory.model_latency_ms):
        parts.append(f"whole loop {duration_text(result.limited_ms)}")
    if trajectory.held_ms:
        parts.append(f"held {duration_text(trajectory.held_ms)}")
    if trajectory.usage is not None:
        parts.append(usage_text(trajectory.usage))
    return f" {GLYPHS.dot} ".join(parts)
