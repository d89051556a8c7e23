"""Lines of the items of a run at a given width, long values cut unless expanded, and what is copied of an item."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len

from workbench.grading.grade import ArgumentVerdict, Issue, RunResult
from workbench.grading.scoring import part_earned
from workbench.grading.status import NOT_APPLICABLE, Status, disagree
from workbench.numerals import counted, duration_text
from workbench.show.glyphs import GLYPHS
from workbench.show.highlight import cut_json, json_line, json_rows
from workbench.show.lazy_lines import (
    DISPLAY_LIMIT,
    IN_APP,
    GrowingText,
    JoinedLines,
    JsonLines,
    LazyLines,
    Ways,
    parsed_json,
    text_rows,
)
from workbench.show.spans import (
    EMPTY,
    NARROWEST,
    Line,
    Note,
    Role,
    Span,
    behind,
    cells,
    cut,
    cut_line,
    indented,
    padded,
    plain,
    signed,
    wrap,
)
from workbench.show.views.grade_moves import Move, graded_text
from workbench.show.views.grades import failed_steps, issue_lines, note_of_issue, note_of_metric, verdict, why_passed
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
from workbench.show.views.trajectory import changes_by_hand, deviation_lines, fork_text, source_text, unread_text
from workbench.show.views.values import call_text, progress_text, usage_text, waited_text
from workbench.show.visible import TOO_DEEP, compact_json, one_line
from workbench.suite.sameness import same
from workbench.trajectory.events import FinishReason, JsonValue, ResponseFinished, ResultReceived, ServerOutput

if TYPE_CHECKING:
    from workbench.grading.grade import RunResult


NUMBER_WIDTH = 3
LABEL_WIDTH = 7
BODY = NUMBER_WIDTH + LABEL_WIDTH
CALL_INDENT = 3
ARGUMENT_INDENT = 6

COLLAPSED_ROWS: Mapping[str, int] = {"system": 1, "user": 8, "assistant": 3, "tool": 2, "reasoning": 3}
"""The rows of a long text that are shown before it is expanded, by role."""

_RESULT_ROWS, _BROKEN_ROWS = 3, 2
"""The rows of a long result, and of arguments that are no JSON, that are shown before they are expanded."""

MAX_RESULT_CHARS = 8_000_000
"""The characters of a result that are shown when it is expanded."""

MAX_NAME_CELLS = 18
"""Longer argument names are not aligned."""

MIN_VALUE_CELLS = 6
"""The minimum width of a value, however long the names are."""

_MAX_ON_ONE_ROW = 2_000
"""Characters of a value that are considered when it is shown on one row."""

_EXPECTED = " expected "
"""The word before an expected value, where it fits."""

_CALL, _ARGUMENT = Span(" " * CALL_INDENT), Span(" " * ARGUMENT_INDENT)


def lines_of(item: Item, width: int, expanded: bool = False, ways: Ways = IN_APP) -> Sequence[Line]:
    """Return the lines of one item, none if it has nothing to show yet."""
    width = max(width, NARROWEST)
    lines = _LAYOUTS[type(item)](_Layout(width, expanded, ways), item)
    return [cut_line(line, width) for line in lines] if isinstance(lines, list) else lines


class _Layout(NamedTuple):
    """Lay out items of a run at one width."""

    width: int
    expanded: bool
    ways: Ways

    def rows(self, text: GrowingText, limit: int | None, role: Role, indent: int) -> Sequence[Line]:
        return text_rows(text, self.width, None if self.expanded else limit, role, indent, self.ways)

    def note(self, note: Note, indent: int = CALL_INDENT) -> list[Line]:
        return signed(*note, self.width, indent)

    def below(self, text: str, role: Role, indent: int = CALL_INDENT) -> list[Line]:
        """Return a wrapped text below the head of an item."""
        return [(Span(" " * indent), Span(row, role)) for row in wrap(one_line(text), self.width - indent)]

    # Before a request

    def message(self, item: MessageItem) -> list[Line]:
        room = self.width - BODY
        role: Role = "muted" if item.role in ("system", "tool") else "text"
        limit = COLLAPSED_ROWS.get(item.role, 3)
        rows = [] if item.text.blank else [line[1:] for line in self.rows(item.text, limit, role, BODY)]
        for call in item.calls:
            shown = f"{GLYPHS.call} {one_line(call.tool)} {compact_json(dict(call.arguments), DISPLAY_LIMIT)}"
            texts = wrap(shown, room) if self.expanded else [cut(shown, room)]
            rows += [(Span(text, "muted"),) for text in texts]
        if item.by_hand:
            rows = [(Span(f"{GLYPHS.by_hand} added by hand", "accent"),), *rows]
        first, *others = rows or [EMPTY]
        label = {"tool": "result", "assistant": "model"}.get(item.role, item.role)
        head = _head(item.number, label, "muted" if item.role == "system" else "strong")
        return [(*head, *first), *indented(others, BODY)]

    def tools(self, item: ToolsItem) -> list[Line]:
        head, offered = _head(None, "tools", "muted"), f"{len(item.tools)} offered"
        if not self.expanded:
            names = ", ".join(one_line(tool.name) for tool in item.tools)
            return [(*head, Span(cut(f"{offered}: {names}", self.width - BODY), "muted"))]
        lines: list[Line] = [(*head, Span(offered, "muted"))]
        for tool in item.tools:
            lines.append((Span(" " * BODY), Span(cut(one_line(tool.name), self.width - BODY), "tool")))
            lines += self.below(tool.description, "muted", BODY + 2) if tool.description else []
        return lines

    def notice(self, item: NoticeItem) -> list[Line]:
        waits = Note(GLYPHS.retry, item.text, "running")
        return self.note(waits if item.waits else Note(GLYPHS.warned, item.text, "warned"))

    def fork(self, item: ForkItem) -> list[Line]:
        lines = self.note(Note(GLYPHS.fork, fork_text(item.fork, item.origin), "accent"))
        return lines + (self.note(Note(" ", f"first difference: {item.difference}")) if item.difference else [])

    def step(self, item: StepItem) -> list[Line]:
        """Return the heading of a step.

        Once it is graded, it has its sign, score and reason."""
        number = f" of {item.of}" if item.of else ""
        head: Line = (Span(f" {item.name}{number}", "heading"),)
        below = self.below("no system prompt", "muted") if item.unprompted else []
        grade = item.grade
        if grade is not None:
            status: Line = (Span(f"{GLYPHS.skipped} not graded", "muted"),)
            head = (*head, Span("  "), *(status if grade.status is None else verdict(grade.status, grade.score)))
            if grade.status is not None and grade.why and (self.expanded or grade.status != Status.PASSED):
                below += self.below(grade.why, "muted")
        return [EMPTY, head, *below]

    def hold(self, item: HoldItem) -> Sequence[Line]:
        """Return the lines of the place before a request, empty if the run is not held there.

        The request is one line or, when expanded, all that is sent."""
        if item.why is None:
            return []
        held = held_lines(f"before the request of round {item.round}", item.why, self.width)
        request, room = item.request, self.width - CALL_INDENT
        if request is None:
            return held
        if isinstance(request, str):
            return [*held, *self.note(Note(GLYPHS.failed, f"cannot be sent: {request}", "failed"))]
        target = f"{request.method} {request.url}"
        if not self.expanded:
            more = f"  {self.ways.expand}: what is sent"
            target = cut(one_line(target), max(room - cell_len(more), room // 2))
            return [*held, (_CALL, Span(target, "muted"), Span(more, "comment"))]
        texts = [target, *(f"{name}: {value}" for name, value in request.headers)]
        rows = [row for text in texts for row in self.below(text, "muted")]
        return JoinedLines([held, rows, JsonLines(request.body, self.width, CALL_INDENT)])

    # An answer

    def round(self, item: RoundItem) -> list[Line]:
        response, room = item.response, self.width - BODY
        role: Role = "muted"
        if item.replayed:
            text = "replayed"
        elif response is not None:
            text = _timing(response, room)
        elif item.over:
            text = "no answer"
        else:
            text, role = _awaited(item), "running"
        lines: list[Line] = [(*_head(item.number, "model"), Span(cut(text, room), role))]
        for repaired in deviation_lines(response.deviations) if response is not None else ():
            lines += self.note(Note(GLYPHS.warned, repaired, "warned"))
        # Failed attempts that a later one may correct are only warnings.
        status = Status.ERROR if item.over and response is None else Status.WARNED
        for error, alike in groupby(item.errors):
            times = len(list(alike))
            failure = one_line(error) + (f" ({times} times)" if times > 1 else "")
            lines += self.note(Note(status.sign, failure, status.role))
        return lines

    def text(self, item: TextItem) -> Sequence[Line]:
        if item.text.blank:
            return []
        role: Role = "muted" if item.reasoning or item.replayed else "text"
        return self.rows(item.text, COLLAPSED_ROWS["reasoning"] if item.reasoning and item.done else None, role, 3)

    def set_aside(self, item: SetAsideItem) -> Sequence[Line]:
        """Return a superseded answer: one line that summarises it or, when expanded, all of it."""
        head = (*_head(item.number, "model", "muted"), Span(f"{GLYPHS.retry} superseded", "accent"))
        if not self.expanded:
            return [(*head, Span(f": {_answer_in_short(item.items, self.width)}", "muted"))]
        shown = JoinedLines([lines_of(each, self.width, True, self.ways) for each in item.items])
        timed = (*head, Span("  "), *shown[0][2:])  # without the number, which is already there
        return JoinedLines([[cut_line(timed, self.width)], _Muted(shown)])

    # Calls

    def call(self, item: CallItem) -> Sequence[Line]:
        """Return the lines of a call: its tool, the arguments with verdicts, and issues of the whole call."""
        server = f"  on {one_line(item.server)}" if item.server is not None else ""
        edited = f"  {GLYPHS.by_hand} edited" if item.edited is not None else ""
        tool: Line = (_CALL, Span(f"{GLYPHS.call} ", "accent"), Span(one_line(item.tool), "tool"))
        head: Line = (*tool, Span(server, "muted"), Span(edited, "accent"))
        parts: list[Sequence[Line]] = []
        if item.held is not None:
            parts.append(held_lines(f"before {one_line(item.tool)}", item.held, self.width))
        parts.append([cut_line(head, self.width)])
        room = self.width - ARGUMENT_INDENT
        if item.arguments is None:
            if written := one_line("".join(item.fragments)[-4 * self.width :]):
                tail = written if cell_len(written) <= room else GLYPHS.running + written[-(room // 2) :]
                parts.append([(_ARGUMENT, Span(cut(tail, room), "muted"))])
        elif item.problem is not None:
            parts.append(self.note(Note(GLYPHS.failed, item.problem, "failed"), ARGUMENT_INDENT))
            parts.append(self.rows(GrowingText(item.raw or ""), _BROKEN_ROWS, "muted", ARGUMENT_INDENT))
            if item.edited is not None:
                parts.append([(_ARGUMENT, Span(f"{GLYPHS.by_hand} sent instead:", "accent"))])
                parts += argument_rows(item.edited, (), (), self.width, self.expanded)
        else:
            parts += argument_rows(item.arguments, item.verdicts, item.issues, self.width, self.expanded, item.edited)
        for issue in item.issues:
            if not shown_at_argument(issue, item.verdicts, item.arguments or {}):
                parts.append(self.note(note_of_issue(issue, at_call=True), ARGUMENT_INDENT))
        return JoinedLines(parts)

    def result(self, item: ResultItem) -> Sequence[Line]:
        """Return the lines of a result, or of what it waits for."""
        text = self._answered(item, item.result) if item.result is not None else self._unanswered(item)
        if item.held is None:
            return text
        return JoinedLines([text, held_lines(f"after the result of {one_line(item.tool)}", item.held, self.width)])

    def _answered(self, item: ResultItem, result: ResultReceived) -> Sequence[Line]:
        failed = result.is_error and result.source != "skipped"
        role: Role = "failed" if failed else "muted"
        held = f" {GLYPHS.dot} held {duration_text(item.held_ms)}" if item.held_ms else ""
        by_hand = result.source in ("edited", "skipped")
        source = Span(source_text(item.unedited or result) + held, "accent" if by_hand else "muted")
        head: Line = (_CALL, Span(f"{GLYPHS.result} ", "accent"), source, Span("  error" if failed else "", "failed"))
        if item.unedited is not None:
            more = "" if self.expanded else f", {self.ways.expand}: original"
            head = (*head, Span(f"  {GLYPHS.by_hand} edited", "accent"), Span(more, "comment"))
        compact = one_line(result.content[: 4 * self.width])
        if not self.expanded and cells(head) + 2 + cell_len(compact) <= self.width:
            painted = (Span(compact, role),) if failed else json_line(compact)
            return [(*head, Span("  "), *painted)]
        parts: list[Sequence[Line]] = [[cut_line(head, self.width)], self._content(result, role)]
        if self.expanded and item.unedited is not None:
            kind = ", an error" if item.unedited.is_error else ", no error" if result.is_error else ""
            parts.append([cut_line((_CALL, Span(f"{GLYPHS.by_hand} it was{kind}", "accent")), self.width)])
            parts.append(self._content(item.unedited, "muted"))
        return JoinedLines(parts)

    def _content(self, result: ResultReceived, role: Role) -> Sequence[Line]:
        parsed = parsed_json(result.content, MAX_RESULT_CHARS if self.expanded else DISPLAY_LIMIT)
        if parsed is not None and self.expanded:
            return JsonLines(parsed, self.width, ARGUMENT_INDENT)
        text = GrowingText(result.content, MAX_RESULT_CHARS if self.expanded else DISPLAY_LIMIT)
        rows = self.rows(text, _RESULT_ROWS, role, ARGUMENT_INDENT)
        if parsed is None:
            return rows
        shown = sum(row[-1].role == role for row in rows)
        painted = json_rows(text.rows(self.width - ARGUMENT_INDENT), shown)
        return [*indented(painted, ARGUMENT_INDENT), *rows[shown:]]

    def _unanswered(self, item: ResultItem) -> list[Line]:
        if item.asks is not None:
            return self.note(Note(GLYPHS.held, f"asks: {item.asks}", "running"))
        if item.executing:
            text = progress_text(item.progress) if item.progress is not None else "executing"
            return [(_CALL, Span(cut(f"{GLYPHS.running} {text}", self.width - CALL_INDENT), "running"))]
        return []

    def missing(self, item: MissingItem) -> list[Line]:
        tool, never = Span(one_line(item.tool), "tool"), Span("  expected, never called", "failed")
        lines: list[Line] = [(_CALL, Span(f"{GLYPHS.missing} ", "failed"), tool, never)]
        widest = max((cell_len(one_line(wanted.argument)) for wanted in item.verdicts), default=0)
        for wanted in item.verdicts:
            name = padded(one_line(wanted.argument), min(widest, MAX_NAME_CELLS))
            label = Span(f"{_ARGUMENT.text}{name}  ", "key")
            room, expected = self.width - cell_len(label.text), one_line(wanted.expected)
            lines += behind((label,), expected if self.expanded else cut(expected, room), "muted", room)
        # Without verdicts, the issues alone say what was expected.
        for issue in () if item.verdicts else item.issues:
            lines += self.below(issue.expected, "muted", ARGUMENT_INDENT) if issue.expected else []
        return lines

    # The end

    def outcome(self, item: OutcomeItem) -> list[Line]:
        result = item.result
        if result is None:
            return [EMPTY, (Span(f" {GLYPHS.running} grading", "running"),)]
        lines: list[Line] = [EMPTY, (Span(" "), *outcome_line(result, self.ways.grades))]
        for each in outcome_notes(item, result, in_full=self.expanded):
            lines += self.note(each, 1) if isinstance(each, Note) else server_output_lines(each, self.width, 3)
        return lines


_LAYOUTS: Mapping[type[Item], Callable[[_Layout, Any], Sequence[Line]]] = {
    MessageItem: _Layout.message,
    ToolsItem: _Layout.tools,
    NoticeItem: _Layout.notice,
    StepItem: _Layout.step,
    HoldItem: _Layout.hold,
    ForkItem: _Layout.fork,
    RoundItem: _Layout.round,
    SetAsideItem: _Layout.set_aside,
    TextItem: _Layout.text,
    CallItem: _Layout.call,
    ResultItem: _Layout.result,
    MissingItem: _Layout.missing,
    OutcomeItem: _Layout.outcome,
}


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


def _head(number: int | None, label: str, role: Role = "strong") -> Line:
    shown = f"{number:>{NUMBER_WIDTH - 1}} " if number is not None else " " * NUMBER_WIDTH
    return (Span(shown, "muted"), Span(f"{label:<{LABEL_WIDTH}}", role))


def _awaited(item: RoundItem) -> str:
    """Return what is known of an answer that is waited for."""
    if item.retry is None:
        known = (f"{item.awaited.doing} {GLYPHS.running}", *item.awaited.facts(item.now_s))
        return f" {GLYPHS.dot} ".join(known)
    # A time of day stays correct without being redrawn.
    at = f"{item.retry_at.astimezone():%H:%M:%S}" if item.retry_at is not None else ""
    wait = f"in {duration_text(item.retry.wait_ms)}"
    return f"{GLYPHS.retry} retry {item.retry.attempt} {f'at {at} ({wait})' if at else wait}"


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


class _Muted(LazyLines):
    """Superseded lines, without the first."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines) - 1

    def line(self, index: int) -> Line:
        return tuple(Span(text, "muted") for text, _ in self._lines[index + 1])


def _answer_in_short(items: Sequence[Item], limit: int) -> str:
    calls = [call_text(item.tool, item.arguments or {}, limit) for item in items if isinstance(item, CallItem)]
    if calls:
        return f"called {', '.join(calls)}"
    texts = [item.text.text[:limit] for item in items if isinstance(item, TextItem) and not item.reasoning]
    return f"said {one_line(' '.join(texts))}" if texts else "no answer"


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
    """Return lists of lines: the given arguments, then expected ones that are missing.

    A verdict that does not fit next to its value goes below it. When expanded, values are complete and issues give
    reasons. `edited` are the user's replacements, shown after the values; verdicts are about the model's own."""
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
    """Return the rows of a value and its notes.

    Notes that do not fit lose the word "expected", then go below."""
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


def outcome_line(result: RunResult, ways_to_grades: str = "") -> Line:
    """Return how a run ended: `✗ failed 0.50  critics  ≠ graders disagree`."""
    grade, status = result.grade, result.status
    if grade is None:
        why = f": {one_line(result.error or '')}" if status == Status.NOT_GRADED else ""
        return (*verdict(status, None), Span(why, status.role))
    named = grade.grader if grade.verdict != NOT_APPLICABLE else f"not graded: {grade.reason}"
    disagrees = f"  {GLYPHS.disagree} graders disagree{ways_to_grades}" if disagree(result.grades) else ""
    return (*verdict(status, grade.score), Span(f"  {one_line(named)}", "muted"), Span(disagrees, "warned"))


def outcome_notes(item: OutcomeItem, result: RunResult, *, in_full: bool) -> Iterator[Note | ServerOutput]:
    """Yield what there is to say of the end of a run below its status."""
    grade, finish, status = result.grade, item.finish, result.status
    if why := why_passed(result):
        yield Note(" ", why)
    if item.former is not None and Move(item.former, result).moved:
        yield Note(" ", f"regraded; was {graded_text(item.former)} when it ran")
    if result.not_regraded is not None:
        yield Note(GLYPHS.warned, result.not_regraded, "warned")
    if status == Status.ERROR:
        yield Note(" ", result.error or "the run ended without an error message", "error")
        if finish is not None and finish.server_output is not None:
            yield finish.server_output
        yield Note(" ", "Not graded: this is not the model's fault and counts in no score.")
    elif status == Status.SKIPPED:
        yield Note(" ", result.error or "the suite says so")
    elif status == Status.STOPPED:
        yield Note(" ", ENDINGS["stopped"])
    elif finish is not None and finish.reason in ENDINGS:
        yield Note(" ", ENDINGS[finish.reason])
    if never := [step.step for step in result.steps if step.status is None]:
        steps = f"step {never[0]} was" if len(never) == 1 else f"steps {never[0]} to {never[-1]} were"
        yield Note(GLYPHS.skipped, f"{steps} never reached")
    if changes := changes_by_hand(result.trajectory):
        own = "graded by what the model wrote itself; " if grade is not None else ""
        yield Note(GLYPHS.by_hand, f"{own}a person changed {counted(changes, 'thing')}", "accent")
    if unread := unread_text(result.trajectory):
        yield Note(GLYPHS.by_hand, unread, "warned")
    if grade is not None and any(issue.kind == "failed step" for issue in grade.issues):
        yield Note(GLYPHS.failed, failed_steps(result.steps), "failed")
    yield from map(note_of_issue, item.issues)
    if in_full or status != Status.PASSED:
        yield from map(note_of_metric, result.metrics)
    if grade is not None and grade.reason and (in_full or (status != Status.PASSED and not grade.issues)):
        yield Note(" ", grade.reason)
    if facts := _facts(result):
        yield Note(" ", facts)


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


_UNBROKEN = 200
"""The width in which short items fit on one line."""


def copied_text(item: Item) -> tuple[str, str]:
    """Return the text of an item, in full, and its name for the notice."""
    match item:
        case MessageItem() | TextItem():
            return item.text.text, "the text"
        case ToolsItem():
            return "\n".join(tool.name for tool in item.tools), "the tools' names"
        case NoticeItem():
            return item.text, "the notice"
        case HoldItem(request=request):
            if request is None or isinstance(request, str):
                return item.why or "", "why the run is held"
            headers = (f"{name}: {value}" for name, value in request.headers)
            body = json.dumps(request.body, indent=2, ensure_ascii=False)
            return "\n".join((f"{request.method} {request.url}", *headers, "", body)), "the request"
        case ForkItem():
            return item.fork.run_id, "the id of the run that this one was forked from"
        case SetAsideItem():
            return "\n".join(filter(None, (copied_text(shown)[0] for shown in item.items))), "the superseded answer"
        case RoundItem(errors=errors) if errors:
            return "\n".join(errors), "the errors"
        case CallItem(edited=edited):
            written = item.raw if item.raw is not None else "".join(item.fragments)
            if item.problem is None and item.arguments is not None:
                written = _json(item.arguments)
            if edited is None:
                return f"{item.tool} {written}", "the call"
            return f"{item.tool} {written}\nedited: {item.tool} {_json(edited)}", "the call as written and as edited"
        case ResultItem(unedited=unedited):
            content = item.result.content if item.result is not None else ""
            if unedited is None:
                return content, "the result"
            return f"{content}\nit was: {unedited.content}", "the result as edited and as it was"
        case MissingItem():
            wanted = "\n".join(f"{verdict.argument} = {verdict.expected}" for verdict in item.verdicts)
            return f"{item.tool}\n{wanted}".strip(), "the expected call"
        case OutcomeItem(result=result):
            return _outcome(result) if result is not None else "", "the outcome"
        case _:
            shown = "\n".join(plain(line).strip() for line in lines_of(item, _UNBROKEN)).strip()
            return shown, "the step" if isinstance(item, StepItem) else "the answer's time and tokens"


def _outcome(result: RunResult) -> str:
    head = f"{result.case_name} [{result.model}]: {result.status}"
    return "\n".join([head, *issue_lines(result)])


def _json(arguments: Mapping[str, JsonValue]) -> str:
    try:
        return json.dumps(dict(arguments))
    except RecursionError:
        return TOO_DEEP
