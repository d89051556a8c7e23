"""Lines of a run's items at a given width.

Long values are cut unless they are expanded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len

from workbench.grading.grade import ArgumentVerdict, Issue
from workbench.grading.scoring import earned_share_text
from workbench.grading.status import Status, passed_or_failed
from workbench.numerals import duration_text
from workbench.show.glyphs import GLYPHS
from workbench.show.highlight import cut_json, json_line, json_rows
from workbench.show.lazy_lines import (
    DISPLAY_LIMIT,
    IN_APP,
    ActionNames,
    GrowingText,
    JoinedLines,
    JsonLines,
    LazyLines,
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
    cells,
    cut,
    cut_line,
    hanging_paragraph,
    indented,
    padded,
    sign_paragraph,
    wrap,
)
from workbench.show.views.grades import note_of_issue, verdict
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
    ServerRequestItem,
    StepItem,
    SuiteCallItem,
    SupersededItem,
    TextItem,
    ToolsItem,
)
from workbench.show.views.run_outcome import outcome_line, outcome_notes
from workbench.show.views.server_output import server_output_lines
from workbench.show.views.trajectory import (
    asked_head,
    deviation_lines,
    fork_text,
    own_source_text,
    reply_text,
    source_text,
)
from workbench.show.views.user_turns import refused_text, said_line
from workbench.show.views.values import call_text, progress_text, usage_text, waited_text
from workbench.show.visible import after, compact_json, one_line, widest_cells
from workbench.suite.toml_equality import toml_equal
from workbench.trajectory.events import JsonValue, ResponseFinished, ResultReceived

if TYPE_CHECKING:
    pass


NUMBER_WIDTH = 3
LABEL_WIDTH = 7
BODY = NUMBER_WIDTH + LABEL_WIDTH
CALL_INDENT = 3
ARGUMENT_INDENT = 6

COLLAPSED_ROWS: Mapping[str, int] = {"system": 1, "user": 8, "assistant": 3, "tool": 2, "reasoning": 3}
"""Rows of a long text before it is expanded, by role."""
_MESSAGE_LABELS = {"tool": "result", "assistant": "model"}

_MESSAGE_ROLES: Mapping[str, Role] = {"system": "muted", "tool": "muted"}

_LABEL_ROLES: Mapping[str, Role] = {"system": "muted"}

_RESULT_ROWS, _BROKEN_ROWS = 3, 2
"""Rows of a long result and of invalid JSON arguments that are shown before the user expands them."""

MAX_RESULT_CHARS = 8_000_000
"""Characters of an expanded result that are shown."""

MAX_NAME_CELLS = 18
"""Maximum width in cells of an argument's name that is aligned with other names."""

MIN_VALUE_CELLS = 6
"""Least width of a value, however long the names are."""

_MAX_ON_ONE_ROW = 2_000
"""Number of characters of a value that are read to show the value on one row."""

_EXPECTED = " expected "
"""The word before an expected value. It is shown where it fits."""

_CALL, _ARGUMENT = Span(" " * CALL_INDENT), Span(" " * ARGUMENT_INDENT)


def lines_of(item: Item, width: int, expanded: bool = False, actions: ActionNames = IN_APP) -> Sequence[Line]:
    """Return the lines of an item, or no lines if it has nothing to show yet."""
    width = max(width, NARROWEST)
    lines = _LAYOUTS[type(item)](_Layout(width, expanded, actions), item)
    # A `LazyLines` cuts its lines when they are read. Cutting them here would build all of them.
    if isinstance(lines, list):
        return [cut_line(line, width) for line in lines]
    return lines


class _Layout(NamedTuple):
    """The layout of items as lines, with a given width and options."""

    width: int
    expanded: bool
    names: ActionNames

    def rows(self, text: GrowingText, limit: int | None, role: Role, indent: int) -> Sequence[Line]:
        if self.expanded:
            limit = None
        return text_rows(text, self.width, limit, role, indent, self.names)

    def note(self, note: Note, indent: int = CALL_INDENT) -> list[Line]:
        return sign_paragraph(*note, self.width, indent)

    def below(self, text: str, role: Role, indent: int = CALL_INDENT) -> list[Line]:
        rows: list[Line] = []
        for row in wrap(one_line(text), self.width - indent):
            rows.append((Span(" " * indent), Span(row, role)))
        return rows

    # Before a request

    def message(self, item: MessageItem) -> list[Line]:
        room = self.width - BODY
        rows: list[Line] = []
        if item.by_hand:
            rows.append((Span(f"{GLYPHS.by_hand} added by hand", "accent"),))
        if not item.text.blank:
            role = _MESSAGE_ROLES.get(item.role, "text")
            # The first span of a line is its indent, which is removed here.
            for line in self.rows(item.text, COLLAPSED_ROWS.get(item.role, 3), role, BODY):
                rows.append(line[1:])
        for call in item.calls:
            shown = f"{GLYPHS.call} {one_line(call.tool)} {compact_json(dict(call.arguments), DISPLAY_LIMIT)}"
            texts = [cut(shown, room)]
            if self.expanded:
                texts = wrap(shown, room)
            for text in texts:
                rows.append((Span(text, "muted"),))
        if item.source and rows:
            source = Span(f"  {item.source}", "muted")
            if cells((*rows[-1], source)) <= room:
                rows[-1] = (*rows[-1], source)
            else:
                rows.append((Span(cut(item.source, room), "muted"),))
        for refused in item.refused if self.expanded else ():
            for text in wrap(refused_text(refused), room):
                rows.append((Span(text, "warned"),))
        first, *others = rows or [EMPTY]
        head = _head(item.number, _MESSAGE_LABELS.get(item.role, item.role), _LABEL_ROLES.get(item.role, "strong"))
        return [(*head, *first), *indented(others, BODY)]

    def tools(self, item: ToolsItem) -> list[Line]:
        head, offered = _head(None, "tools", "muted"), f"{len(item.tools)} offered"
        if not self.expanded:
            names = ", ".join(one_line(tool.name) for tool in item.tools)
            return [(*head, Span(cut(f"{offered}: {names}", self.width - BODY), "muted"))]
        lines: list[Line] = [(*head, Span(offered, "muted"))]
        for tool in item.tools:
            lines.append((Span(" " * BODY), Span(cut(one_line(tool.name), self.width - BODY), "tool")))
            if tool.description:
                lines += self.below(tool.description, "muted", BODY + 2)
        return lines

    def notice(self, item: NoticeItem) -> list[Line]:
        if item.is_waiting:
            return self.note(Note(GLYPHS.retry, item.text, "running"))
        if item.quiet:
            return self.note(Note(GLYPHS.dot, item.text))
        return self.note(Note(GLYPHS.warned, item.text, "warned"))

    def own_call(self, item: SuiteCallItem) -> Sequence[Line]:
        call = item.call
        head = [*_head(None, call.stage, "muted")]
        if item.holds is not None:
            status = passed_or_failed(item.holds)
            head.append(Span(f"{status.sign} ", status.role))
        head.append(Span(call_text(call.tool, call.arguments, DISPLAY_LIMIT)))
        role: Role = "failed" if call.is_error else "muted"
        answered = (_CALL, Span(f"{GLYPHS.result} {own_source_text(call)}", role))
        lines = [cut_line(tuple(head), self.width), cut_line(answered, self.width)]
        if not call.content.strip():
            return lines
        return JoinedLines([lines, self.rows(GrowingText(call.content), _RESULT_ROWS, role, ARGUMENT_INDENT)])

    def asked(self, item: ServerRequestItem) -> Sequence[Line]:
        asked, lines = item.request, [*self.note(Note(GLYPHS.asks, asked_head(item.request), "text"))]
        if self.expanded and asked.request:
            lines += self.below(compact_json(dict(asked.request)), "muted", ARGUMENT_INDENT)
        if item.hold_reason is not None:
            lines += held_lines("before the reply", item.hold_reason, self.width)
        if item.is_waiting:
            return [*lines, *self.note(Note(GLYPHS.result, f"would be: {reply_text(asked)}"))]
        if (notice := asked.notice) is not None:
            return [*lines, *self.note(Note(GLYPHS.warned, notice, "warned"))]
        return [*lines, *self.note(Note(GLYPHS.result, reply_text(asked)))]

    def fork(self, item: ForkItem) -> list[Line]:
        lines = self.note(Note(GLYPHS.fork, fork_text(item.fork, item.origin), "accent"))
        if item.difference:
            lines += self.note(Note(" ", f"first difference: {item.difference}"))
        return lines

    def step(self, item: StepItem) -> list[Line]:
        head: list[Span] = [Span(f" {item.name}", "heading")]
        below: list[Line] = []
        if item.of:
            head.append(Span(f" of {item.of}", "heading"))
        if item.unprompted:
            below += self.below("no system prompt", "muted")
        if (grade := item.grade) is None:
            return [EMPTY, tuple(head), *below]
        head.append(Span("  "))
        if grade.status is None:
            head.append(Span(f"{GLYPHS.skipped} not graded", "muted"))
        else:
            head += verdict(grade.status, grade.score)
            if grade.why and (self.expanded or grade.status != Status.PASSED):
                below += self.below(grade.why, "muted")
        return [EMPTY, tuple(head), *below]

    def hold(self, item: HoldItem) -> Sequence[Line]:
        """Return the lines of a breakpoint, or no line if the run is not paused there.

        They show the message of the simulated user or the request that is sent next. The request takes one line or,
        if expanded, as many lines as it needs."""
        if item.why is None:
            return []
        if item.user_message is not None:
            held = held_lines("before a message of the user", item.why, self.width)
            return [*held, *self.below(said_line(item.user_message), "text")]
        held = held_lines(f"before the request of round {item.round}", item.why, self.width)
        request, room = item.request, self.width - CALL_INDENT
        if request is None:
            return held
        if isinstance(request, str):
            return [*held, *self.note(Note(GLYPHS.failed, f"cannot be sent: {request}", "failed"))]
        target = f"{request.method} {request.url}"
        if not self.expanded:
            more = f"  {self.names.expand}: what is sent"
            target = cut(one_line(target), max(room - cell_len(more), room // 2))
            return [*held, (_CALL, Span(target, "muted"), Span(more, "comment"))]
        rows = self.below(target, "muted")
        for name, value in request.headers:
            rows += self.below(f"{name}: {value}", "muted")
        return JoinedLines([held, rows, JsonLines(request.body, self.width, CALL_INDENT)])

    # An answer

    def round(self, item: RoundItem) -> list[Line]:
        response, room = item.response, self.width - BODY
        role: Role = "muted"
        if item.replayed:
            text = "replayed"
        elif response is not None:
            text = _timing(response, room)
        elif item.has_ended:
            text = "no answer"
        else:
            text, role = _answer_progress(item), "running"
        lines: list[Line] = [(*_head(item.number, "model"), Span(cut(text, room), role))]
        if response is not None:
            for repaired in deviation_lines(response.deviations):
                lines += self.note(Note(GLYPHS.warned, repaired, "warned"))
        # Failed attempts are only warnings, because a later attempt may succeed.
        status = Status.WARNED
        if item.has_ended and response is None:
            status = Status.ERROR
        for error, alike in groupby(item.errors):
            failure, times = one_line(error), len(list(alike))
            if times > 1:
                failure += f" ({times} times)"
            lines += self.note(Note(status.sign, failure, status.role))
        return lines

    def text(self, item: TextItem) -> Sequence[Line]:
        if item.text.blank:
            return []
        role: Role = "text"
        if item.reasoning or item.replayed:
            role = "muted"
        # Reasoning stays unfolded while it grows, because there is nothing else to see yet.
        limit = None
        if item.reasoning and item.done:
            limit = COLLAPSED_ROWS["reasoning"]
        return self.rows(item.text, limit, role, 3)

    def superseded(self, item: SupersededItem) -> Sequence[Line]:
        """Return the lines of an answer that was regenerated: a summary or, if expanded, the whole answer."""
        head = (*_head(item.number, "model", "muted"), Span(f"{GLYPHS.retry} superseded", "accent"))
        if not self.expanded:
            return [(*head, Span(f": {_answer_summary(item.items, self.width)}", "muted"))]
        shown = JoinedLines([lines_of(each, self.width, True, self.names) for each in item.items])
        # The head already has the number of the answer.
        timed = (*head, Span("  "), *shown[0][2:])
        return JoinedLines([[cut_line(timed, self.width)], _Muted(shown)])

    # Calls

    def call(self, item: CallItem) -> Sequence[Line]:
        head = [_CALL, Span(f"{GLYPHS.call} ", "accent"), Span(one_line(item.tool), "tool")]
        if item.server is not None:
            head.append(Span(f"  on {one_line(item.server)}", "muted"))
        if item.by_provider:
            head.append(Span("  run by the provider", "muted"))
        if item.edited is not None:
            head.append(Span(f"  {GLYPHS.by_hand} edited", "accent"))
        parts: list[Sequence[Line]] = []
        if item.hold_reason is not None:
            parts.append(held_lines(f"before {one_line(item.tool)}", item.hold_reason, self.width))
        parts.append([cut_line(tuple(head), self.width)])
        if item.arguments is None:
            parts.append(self._partial_arguments(item))
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

    def _partial_arguments(self, item: CallItem) -> list[Line]:
        room = self.width - ARGUMENT_INDENT
        # Only a slice is made visible, because the text may be long. Four times the width fills at least one row.
        tail = one_line("".join(item.fragments)[-4 * self.width :])
        if not tail:
            return []
        if cell_len(tail) > room:
            tail = GLYPHS.running + tail[-(room // 2) :]
        return [(_ARGUMENT, Span(cut(tail, room), "muted"))]

    def result(self, item: ResultItem) -> Sequence[Line]:
        if item.result is None:
            text: Sequence[Line] = self._unanswered(item)
        else:
            text = self._answered(item, item.result)
        if item.hold_reason is None:
            return text
        return JoinedLines(
            [text, held_lines(f"after the result of {one_line(item.tool)}", item.hold_reason, self.width)]
        )

    def _answered(self, item: ResultItem, result: ResultReceived) -> Sequence[Line]:
        failed = result.is_error and result.source != "skipped"
        head = [_CALL, Span(f"{GLYPHS.result} ", "accent"), self.origin(item, result)]
        role: Role = "muted"
        if failed:
            role = "failed"
            head.append(Span("  error", "failed"))
        if item.unedited is not None:
            head.append(Span(f"  {GLYPHS.by_hand} edited", "accent"))
            if not self.expanded:
                head.append(Span(f", {self.names.expand}: original", "comment"))
        compact = one_line(result.content[: 4 * self.width])
        if not self.expanded and cells(tuple(head)) + 2 + cell_len(compact) <= self.width:
            painted = json_line(compact)
            if failed:
                painted = (Span(compact, role),)
            return [(*head, Span("  "), *painted)]
        parts: list[Sequence[Line]] = [[cut_line(tuple(head), self.width)], self._content(result, role)]
        if self.expanded and item.unedited is not None:
            kind = ""
            if item.unedited.is_error:
                kind = ", an error"
            elif result.is_error:
                kind = ", no error"
            parts.append([cut_line((_CALL, Span(f"{GLYPHS.by_hand} it was{kind}", "accent")), self.width)])
            parts.append(self._content(item.unedited, "muted"))
        return JoinedLines(parts)

    def origin(self, item: ResultItem, result: ResultReceived) -> Span:
        text = source_text(item.unedited or result)
        if item.held_ms:
            text += f" {GLYPHS.dot} held {duration_text(item.held_ms)}"
        if result.source in ("edited", "skipped"):
            return Span(text, "accent")
        return Span(text, "muted")

    def _content(self, result: ResultReceived, role: Role) -> Sequence[Line]:
        limit = DISPLAY_LIMIT
        if self.expanded:
            limit = MAX_RESULT_CHARS
        parsed = parsed_json(result.content, limit)
        if parsed is not None and self.expanded:
            return JsonLines(parsed, self.width, ARGUMENT_INDENT)
        text = GrowingText(result.content, limit)
        rows = self.rows(text, _RESULT_ROWS, role, ARGUMENT_INDENT)
        if parsed is None:
            return rows
        # A last row in another role is a note that counts further rows. It is not coloured as JSON.
        shown = sum(row[-1].role == role for row in rows)
        painted = json_rows(text.rows(self.width - ARGUMENT_INDENT), shown)
        return [*indented(painted, ARGUMENT_INDENT), *rows[shown:]]

    def _unanswered(self, item: ResultItem) -> list[Line]:
        if item.asks is not None:
            return self.note(Note(GLYPHS.held, f"asks: {item.asks}", "running"))
        if not item.executing:
            return []
        text = "executing"
        if item.progress is not None:
            text = progress_text(item.progress)
        return [(_CALL, Span(cut(f"{GLYPHS.running} {text}", self.width - CALL_INDENT), "running"))]

    def missing(self, item: MissingItem) -> list[Line]:
        tool, never = Span(one_line(item.tool), "tool"), Span("  expected, never called", "failed")
        lines: list[Line] = [(_CALL, Span(f"{GLYPHS.missing} ", "failed"), tool, never)]
        widest = max((cell_len(one_line(wanted.argument)) for wanted in item.verdicts), default=0)
        for wanted in item.verdicts:
            name = padded(one_line(wanted.argument), min(widest, MAX_NAME_CELLS))
            label = Span(f"{_ARGUMENT.text}{name}  ", "key")
            room, expected = self.width - cell_len(label.text), one_line(wanted.expected)
            if not self.expanded:
                expected = cut(expected, room)
            lines += hanging_paragraph((label,), expected, "muted", room)
        for issue in item.issues:
            # Without verdicts, only the issues say which arguments were expected.
            if not item.verdicts and issue.expected:
                lines += self.below(issue.expected, "muted", ARGUMENT_INDENT)
            if issue.because is not None:
                lines += self.below(f"because: {issue.because}", "muted", ARGUMENT_INDENT)
        return lines

    # The end

    def outcome(self, item: OutcomeItem) -> list[Line]:
        result = item.result
        if result is None:
            return [EMPTY, (Span(f" {GLYPHS.running} grading", "running"),)]
        lines: list[Line] = [EMPTY, (Span(" "), *outcome_line(result, self.names.grades))]
        for each in outcome_notes(item, result, in_full=self.expanded):
            if isinstance(each, Note):
                lines += self.note(each, 1)
            else:
                lines += server_output_lines(each, self.width, 3)
        return lines


_LAYOUTS: Mapping[type[Item], Callable[[_Layout, Any], Sequence[Line]]] = {
    MessageItem: _Layout.message,
    ToolsItem: _Layout.tools,
    NoticeItem: _Layout.notice,
    SuiteCallItem: _Layout.own_call,
    ServerRequestItem: _Layout.asked,
    StepItem: _Layout.step,
    HoldItem: _Layout.hold,
    ForkItem: _Layout.fork,
    RoundItem: _Layout.round,
    SupersededItem: _Layout.superseded,
    TextItem: _Layout.text,
    CallItem: _Layout.call,
    ResultItem: _Layout.result,
    MissingItem: _Layout.missing,
    OutcomeItem: _Layout.outcome,
}


def rough_height(item: Item, width: int) -> int:
    """Estimate the number of lines of a folded item without laying it out. An estimate of 0 is exact."""
    match item:
        case TextItem():
            if item.text.blank:
                return 0
            return 1 + len(item.text.text) // max(width, NARROWEST)
        case CallItem():
            held = item.hold_reason is not None
            return 1 + held + max(len(item.arguments or ()), len(item.edited or ()), 1) + len(item.issues)
        case ResultItem():
            return int(
                item.result is not None or item.executing or item.asks is not None or item.hold_reason is not None
            )
        case HoldItem(why=None):
            return 0
        case HoldItem():
            return 1 + (item.request is not None or item.user_message is not None)
        case StepItem():
            return 2
        case RoundItem():
            return 1 + len(item.errors)
        case OutcomeItem():
            return 1 + len(item.issues)
        case _:
            return 1


def _head(number: int | None, label: str, role: Role = "strong") -> Line:
    shown = ""
    if number is not None:
        shown = f"{number:>{NUMBER_WIDTH - 1}}"
    return (Span(f"{shown:<{NUMBER_WIDTH}}", "muted"), Span(f"{label:<{LABEL_WIDTH}}", role))


def _answer_progress(item: RoundItem) -> str:
    if item.retry is None:
        known = (f"{item.awaited.doing} {GLYPHS.running}", *item.awaited.facts(item.now_s))
        return f" {GLYPHS.dot} ".join(known)
    when = f"in {duration_text(item.retry.wait_ms)}"
    if item.retry_at is not None:
        # Unlike a countdown, a time of day stays correct if the line is not drawn again.
        when = f"at {item.retry_at.astimezone():%H:%M:%S} ({when})"
    return f"{GLYPHS.retry} retry {item.retry.attempt} {when}"


def _timing(response: ResponseFinished, max_width: int) -> str:
    """Return the latency and the tokens of an answer as text, with the time to the first token if there is room."""
    parts: list[str] = []
    if response.latency_ms:
        parts.append(duration_text(response.latency_ms))
    if response.waited_ms:
        parts.append(waited_text(response.waited_ms))
    if response.stop_reason in ("truncated", "refused"):
        parts.append(response.stop_reason)
    if response.usage is not None:
        # The unit is left out to make room for the time to the first token.
        parts.append(usage_text(response.usage, unit=""))
    separator = f" {GLYPHS.dot} "
    first = response.first_token_ms
    # If the two times differ by at most a millisecond, the answer was not streamed.
    if first is not None and 1 <= first < response.latency_ms - 1:
        longer = separator.join([parts[0], f"first token {duration_text(first)}", *parts[1:]])
        if len(longer) <= max_width:
            return longer
    return separator.join(parts)


class _Muted(LazyLines):
    """The lines of a regenerated answer without its first line, in muted colours."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines) - 1

    def line(self, index: int) -> Line:
        return tuple(Span(text, "muted") for text, _ in self._lines[index + 1])


def _answer_summary(items: Sequence[Item], limit: int) -> str:
    calls, texts = [], []
    for item in items:
        if isinstance(item, CallItem):
            calls.append(call_text(item.tool, item.arguments or {}, limit))
        elif isinstance(item, TextItem) and not item.reasoning:
            texts.append(item.text.text[:limit])
    if calls:
        return f"called {', '.join(calls)}"
    if texts:
        return f"said {one_line(' '.join(texts))}"
    return "no answer"


_OFFERED = {"s next stop": "step", "c continue": "step.continue"}
_KEYS = "  ".join(_OFFERED)
"""The keys that continue a held run. `_OFFERED` has their actions."""


def held_lines(where: str, why: str, width: int) -> list[Line]:
    """Return lines that say where and why a run is paused, highlighted over the whole width."""
    texts = [f"held {where}"]
    for more in (one_line(why), _KEYS):
        longer = f"{texts[-1]} {GLYPHS.dot} {more}"
        if cell_len(longer) + 3 <= width:
            texts[-1] = longer
        else:
            texts.append(more)
    rows: list[str] = []
    for text in texts:
        rows += wrap(text, width - 3)
    lines: list[Line] = []
    sign = GLYPHS.held
    for row in rows:
        lines.append((Span(padded(f" {sign} {row}", width), "badge"),))
        # Only the first row has the sign for a pause.
        sign = " "
    return lines


def held_action(line: Line, cell: int) -> str | None:
    """Return the action that a click at a cell triggers, or `None` if the cell has no action.

    `line` is a line from `held_lines`."""
    if len(line) != 1 or line[0].role != "badge" or _KEYS not in line[0].text:
        return None
    text = line[0].text
    for words, action in _OFFERED.items():
        start = cell_len(text[: text.rindex(words)])
        if start <= cell < start + len(words):
            return action
    return None


_Mark = tuple[str, Role]
"""A note after an argument: its text and its role. The text begins with a sign, and is empty if there is no note."""


def argument_rows(
    arguments: Mapping[str, JsonValue],
    verdicts: Sequence[ArgumentVerdict],
    issues: Sequence[Issue],
    width: int,
    expanded: bool,
    edited: Mapping[str, JsonValue] | None = None,
) -> list[Sequence[Line]]:
    """Return the lines of the given arguments, then of the expected arguments that are missing.

    A verdict that does not fit beside its value goes below the value. With `expanded`, values are not cut and issues
    have reasons. `edited` has the arguments that the user put in place of the model's. The verdicts are on the model's
    arguments."""
    sent = arguments
    if edited is not None:
        sent = edited
    # The model's own arguments come first, then the arguments that the user added, then the missing arguments.
    listed = dict.fromkeys((*arguments, *sent))
    for each in verdicts:
        if not each.given:
            listed[each.argument] = None
    names = list(listed)
    if not names:
        return [[(Span(" " * ARGUMENT_INDENT), Span("no arguments", "muted"))]]
    judged = {verdict.argument: verdict for verdict in verdicts}
    faults = {}
    for issue in issues:
        if issue.argument is not None:
            faults[issue.argument] = issue
    marks = {}
    for name in names:
        marks[name] = [_mark(judged.get(name), faults.get(name)), _edit_mark(name, arguments, sent)]
    values = dict.fromkeys(names, "not given")
    for name, value in arguments.items():
        values[name] = compact_json(value, _MAX_ON_ONE_ROW)
    # Names take the width they need, up to a maximum. Notes take at most a third of the rest, and values take the
    # remainder.
    name_width = min(widest_cells(names), MAX_NAME_CELLS)
    room = width - ARGUMENT_INDENT - name_width - 2
    for_marks = min(max(map(_width_of, marks.values())), 2 + room // 3)
    value_width = max(min(max(map(cell_len, values.values())), room - for_marks), MIN_VALUE_CELLS)
    parts: list[Sequence[Line]] = []
    for name in names:
        label = Span(" " * ARGUMENT_INDENT + padded(one_line(name), name_width) + "  ", "key")
        if expanded and name in arguments and cell_len(values[name]) > room - for_marks:
            signs = []
            for text, role in marks[name]:
                if text:
                    signs.append(Span(f"{text}  ", role))
            parts.append([cut_line((label, *signs), width)])
            parts.append(JsonLines(arguments[name], width, ARGUMENT_INDENT + 2))
        else:
            first, *rest = _value_rows(values[name], marks[name], value_width, room, name in arguments)
            fitted = [cut_line((label, *first), width)]
            for row in indented(rest, width - room):
                fitted.append(cut_line(row, width))
            parts.append(fitted)
        if expanded and name in sent and cell_len(marks[name][1][0]) > room:
            parts.append(JsonLines(sent[name], width, ARGUMENT_INDENT + 2))
        if expanded and name in faults and faults[name].kind != "schema violation":
            why: list[Line] = [(Span(row, "muted"),) for row in wrap(one_line(faults[name].why), room)]
            parts.append(indented(why, width - room))
    return parts


def _width_of(marks: Sequence[_Mark]) -> int:
    return sum(2 + cell_len(text) for text, _ in marks if text)


def _value_rows(value: str, marks: Sequence[_Mark], value_width: int, max_width: int, given: bool) -> list[Line]:
    """Return the rows of a value and of the notes on the value (`marks`).

    A note that does not fit beside the value loses the word "expected". If the shorter note does not fit either, it
    goes below the value."""
    shorter = [(text.replace(_EXPECTED, " ", 1), role) for text, role in marks]
    own_width = min(cell_len(value), value_width)
    if marks[1][0] and own_width + _width_of(shorter) <= max_width < value_width + _width_of(shorter):
        # The user's edit stands directly after the value, so it is not aligned with the notes on other arguments.
        value_width = own_width
    if value_width + _width_of(shorter) <= max_width < value_width + _width_of(marks):
        marks = shorter
    beside: Line = EMPTY
    below: list[Line] = []
    for text, role in marks:
        left = max_width - value_width - cells(beside) - 2
        fitting = []
        for form in (text, text.replace(_EXPECTED, " ", 1)):
            if cell_len(form) <= left:
                fitting.append(form)
        if text and fitting and not below:
            beside = (*beside, Span("  "), Span(fitting[0], role))
        elif text:
            below += sign_paragraph(text[:1], text[2:], role, max_width, 0)
    own_room = max_width
    if beside:
        own_room = value_width
    painted: Line = (Span(cut(value, own_room), "muted"),)
    if given:
        painted = cut_json(value, own_room)
    if beside:
        painted = (*painted, Span(" " * (value_width - cells(painted))), *beside)
    return [painted, *below]


def _edit_mark(name: str, arguments: Mapping[str, JsonValue], sent: Mapping[str, JsonValue]) -> _Mark:
    if name not in sent and name in arguments:
        return f"{GLYPHS.by_hand} not sent", "accent"
    if name not in sent or (name in arguments and _is_alike(arguments[name], sent[name])):
        return "", "accent"
    return f"{GLYPHS.by_hand} sent {compact_json(sent[name], _MAX_ON_ONE_ROW)}", "accent"


def _is_alike(left: JsonValue, right: JsonValue) -> bool:
    try:
        return toml_equal(left, right)
    except RecursionError:
        # Values that are nested too deeply to compare count as different.
        return False


def _mark(verdict: ArgumentVerdict | None, fault: Issue | None) -> _Mark:
    """Return the note on an argument: a sign and, unless the argument is right, the expected value or the fault."""
    if verdict is not None and not verdict.listed:
        return f"{GLYPHS.failed} unexpected", "failed"
    if fault is not None and fault.kind == "schema violation" and (verdict is None or verdict.holds is not False):
        role: Role = "warned"
        if fault.decides:
            role = "failed"
        return f"{GLYPHS.failed} refused by the schema", role
    if verdict is not None and verdict.holds is not None:
        return _mark_of_check(verdict, fault)
    if fault is not None and verdict is None and fault.kind == "unexpected argument":
        return f"{GLYPHS.dot} not expected, costs nothing", "muted"
    if fault is not None:
        return f"{GLYPHS.failed} {fault.kind.removesuffix(' argument')}", "failed"
    if verdict is not None:
        return f"{GLYPHS.dot} not judged", "muted"
    return "", "text"


def _mark_of_check(verdict: ArgumentVerdict, fault: Issue | None) -> _Mark:
    is_partial = fault is not None and fault.kind == "partial credit"
    if verdict.holds and not is_partial:
        return GLYPHS.passed, "passed"
    text = f"{_EXPECTED}{one_line(verdict.expected)}"
    if verdict.counted:
        text = after(" ", earned_share_text(verdict.score, verdict.weight)) + text
    if verdict.holds:
        return (f"{GLYPHS.warned}{text}", "warned")
    return (f"{GLYPHS.failed}{text}", "failed")


def shown_at_argument(issue: Issue, verdicts: Sequence[ArgumentVerdict], arguments: Mapping[str, JsonValue]) -> bool:
    """Return whether the row of an argument already shows everything that an issue says."""
    if issue.argument is None or issue.kind == "schema violation":
        return False
    return issue.argument in arguments or any(verdict.argument == issue.argument for verdict in verdicts)
