"""A tool call that the user makes: the form of its arguments, and the screen with form, request and answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.widgets import Input

from workbench.analysis.tool_lint import Parameter, parameters_of
from workbench.authoring.form.field_text import CellError, read_value, shown_value
from workbench.authoring.from_calls import case_with_expected_call, case_with_mock
from workbench.authoring.proposal import table_without_secrets
from workbench.checks.schemas import BrokenSchemaError, argument_problems
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.engine.server_calls import SuiteServer, ToolExecution
from workbench.numerals import count_text, counted, duration_text
from workbench.show.glyphs import GLYPHS
from workbench.show.lazy_lines import DISPLAY_LIMIT, JsonLines, safe_lines
from workbench.show.spans import (
    EMPTY,
    Line,
    Role,
    Span,
    cells,
    cut,
    cut_line,
    indented,
    padded,
    sign_paragraph,
    title_line,
    wrap,
)
from workbench.show.views.server_output import server_output_lines
from workbench.show.visible import one_line
from workbench.suite.render import Table
from workbench.suite.suite_text import SpliceError
from workbench.tools.answer import ServerError, ToolsError
from workbench.trajectory.events import JsonValue, ServerOutput, ToolDefinition
from workbench.trajectory.json_schema import allowed_values, type_words, types_of, with_definitions
from workbench.tui.kit.actions import Action, Situation, action, key_for
from workbench.tui.kit.bars import KeyBar
from workbench.tui.kit.edited_text import value_line
from workbench.tui.kit.fields import FieldExit, LineField
from workbench.tui.kit.line_search import SearchedScreen
from workbench.tui.kit.line_view import LineView
from workbench.tui.kit.side_screen import ActionOverride
from workbench.tui.kit.stage import Announce
from workbench.tui.kit.strips import Bar
from workbench.tui.runs.dialogs import ManualExecutionScreen
from workbench.tui.runs.runner import Runner

if TYPE_CHECKING:
    from workbench.tools.grant import Grant
    from workbench.tui.shell.workbench import Workbench


NULL = "null"


class CallForm:
    """The parameters of a tool, with the typed texts. A parameter without text is not sent."""

    def __init__(self, tool: ToolDefinition) -> None:
        self.tool = tool
        fields = [field for field in parameters_of(tool.parameters) if field.depth == 0 and not field.item]
        self.fields: tuple[Parameter, ...] = tuple(sorted(fields, key=lambda field: not field.required))
        """The parameters. Required parameters come first."""
        self._schemas = {field.name: with_definitions(field.schema, tool.parameters) for field in self.fields}
        self._texts: dict[str, str] = {}
        # A required parameter must be sent even if it has a default, so its text is the default at first.
        for field in self.fields:
            if field.required and "default" in field.schema:
                self._texts[field.name] = shown_value(field.schema["default"], self._schemas[field.name])
        self._read()

    def text(self, name: str) -> str:
        """Return the text of a parameter, "" if it has none."""
        return self._texts.get(name, "")

    def type_of(self, name: str) -> str:
        """Return the type of a parameter in a few words."""
        return type_words(self._schemas[name])

    def choices(self, name: str) -> tuple[str, ...]:
        """Return the values listed by the schema of a parameter, as texts."""
        schema = self._schemas[name]
        values = allowed_values(schema)
        if values is None and types_of(schema) - {"null"} == {"boolean"}:
            values = (True, False)
        return tuple(shown_value(value, schema) for value in values or ())

    def set(self, name: str, text: str) -> None:
        """Set the text of a parameter. A blank text removes the argument. `""` is the empty string."""
        if text.strip():
            self._texts[name] = text
        else:
            self._texts.pop(name, None)
        self._read()

    def choose_next(self, name: str, step: int) -> None:
        """Select the next (1) or previous (-1) choice. Between the last and the first, no choice is selected."""
        choices, text = ("", *self.choices(name)), self.text(name)
        at = 0
        if text in choices:
            at = choices.index(text)
        self.set(name, choices[(at + step) % len(choices)])

    def _read(self) -> None:
        self.arguments: dict[str, JsonValue] = {}
        """The arguments to send: those with valid texts."""
        self.problems: dict[str, str] = {}
        """The problem of each parameter, by name. The empty name has the problem of all arguments together."""
        for name, text in self._texts.items():
            try:
                self.arguments[name] = self._value(name, text)
            except CellError as error:
                self.problems[name] = str(error)
        for field in self.fields:
            if field.required and field.name not in self._texts:
                self.problems[field.name] = "must be given"
        try:
            found = argument_problems(self.arguments, self.tool.parameters)
        except BrokenSchemaError as error:
            self.unchecked: str | None = f"not checked: the tool's schema is broken: {error}"
            """The reason why the arguments could not be checked, `None` if they were."""
            return
        self.unchecked = None
        for problem in found:
            place, _, message = problem.partition(": ")
            name = self._field_at(place)
            if name:
                self.problems.setdefault(name, message)
            elif not self.problems:
                self.problems[""] = problem

    def _value(self, name: str, text: str) -> JsonValue:
        schema = self._schemas[name]
        # The text `null` means the value null if the schema allows null and does not list the text itself.
        if text.strip() == NULL and "null" in types_of(schema) and NULL not in self.choices(name):
            return None
        return cast("JsonValue", read_value(text, schema))

    def _field_at(self, place: str) -> str:
        """Return the parameter that contains a place such as `args.to[0]`.

        Return "" for `args`, the place of all arguments."""
        if place == "args":
            return ""
        inside = place.removeprefix("args.")
        # A name may contain dots, so the longest matching name is taken.
        names = [field.name for field in self.fields if inside == field.name or _is_inside(inside, field.name)]
        return max(names, key=len, default="")


def _is_inside(place: str, name: str) -> bool:
    return place.startswith((f"{name}.", f"{name}["))


def is_read_only(annotations: Mapping[str, JsonValue]) -> bool:
    """Return whether a server declares a tool as read-only."""
    return annotations.get("readOnlyHint") is True


MAX_NAME_CELLS = 24
MIN_VALUE_CELLS = 24
"""The minimum width of the column of values, if there is room."""
INDENT = 2


@dataclass(frozen=True)
class CallOutcome:
    """The state of the user's last call: not made, `running`, answered (`executed`), or failed with an `error`.

    `output` is the end of a failed server's standard error."""

    running: bool = False
    executed: ToolExecution | None = None
    error: str | None = None
    output: ServerOutput | None = None


class CallPicture(NamedTuple):
    """The lines of a call on its screen.

    `fields` has for each line the parameter shown there, or `None`. `value_at` is the column at which values begin, and
    `answer` the index of the first line of the answer."""

    lines: list[Line]
    fields: list[str | None]
    value_at: int
    answer: int = 0


def call_picture(form: CallForm, outcome: CallOutcome, width: int, secrets: Secrets) -> CallPicture:
    """Return all lines of a call and of its outcome at a width, without secrets."""
    outcome = secrets.redacted(outcome)
    lines: list[Line] = []
    fields: list[str | None] = []
    names = [field.name for field in form.fields]
    longest = max((cell_len(one_line(name)) for name in names), default=0)
    name_width = min(longest + 2, MAX_NAME_CELLS, width // 3)
    room = _value_room(form, width - INDENT - name_width - 1)
    for name in names:
        rows = _field(form, name, name_width, room, width)
        lines += rows
        fields += [name] * len(rows)
    if not names:
        lines.append((Span(" " * INDENT), Span("This tool takes no arguments.", "muted")))
    lines += [EMPTY, *_request(form, width, secrets)]
    answer = len(lines) + 1
    lines += [EMPTY, *_answer(outcome, width)]
    return CallPicture(lines, [*fields, *[None] * (len(lines) - len(fields))], INDENT + name_width + 1, answer)


def _kind(form: CallForm, name: str) -> str:
    kind = one_line(form.type_of(name))
    if form.choices(name):
        return f"{GLYPHS.result}{GLYPHS.call} {kind}"
    return kind


def _value_room(form: CallForm, max_width: int) -> int:
    """Return the total width for values and types: as much as the longest of them need, at most `max_width`."""
    # In a wide pane, types at the right edge would be far away from the values.
    value, kind = MIN_VALUE_CELLS, 0
    for field in form.fields:
        value = max(value, cells(_value(form, field.name, field.schema.get("default"))))
        kind = max(kind, cell_len(_kind(form, field.name)))
    return max(min(value + 2 + kind, max_width), 10)


def _field(form: CallForm, name: str, name_width: int, max_width: int, width: int) -> list[Line]:
    parameter = next(field for field in form.fields if field.name == name)
    label = one_line(name)
    if parameter.required:
        label += "*"
    label = padded(label, name_width)
    line = _value(form, name, parameter.schema.get("default"))
    kind = _kind(form, name)
    kind = cut(kind, max(max_width // 2, max_width - cells(line) - 2))
    shown = cut_line(line, max(max_width - cell_len(kind) - 2, 6))
    gap = " " * max(max_width - cells(shown) - cell_len(kind), 1)
    line = (Span(" " * INDENT), Span(f"{label} ", "key"), *shown, Span(gap), Span(kind, "muted"))
    lines = [cut_line(line, width)]
    inner = INDENT + name_width + 1
    if (problem := form.problems.get(name)) is not None and form.text(name):
        lines += sign_paragraph(GLYPHS.failed, problem, "failed", width, inner)
    elif parameter.description:
        text = cut(one_line(parameter.description.strip()[: 4 * width]), width - inner)
        lines.append((Span(" " * inner), Span(text, "comment")))
    return lines


def _value(form: CallForm, name: str, default: JsonValue) -> Line:
    """Return the text for the value of a parameter, its problem, or its default."""
    text = form.text(name)
    if text and name in form.problems:
        return (Span(one_line(text), "failed"),)
    value = form.arguments.get(name)
    if text and isinstance(value, str):
        return value_line(one_line(shown_value(value)))
    if text:
        return value_line(one_line(text))
    if name in form.problems:
        return (Span(f"{GLYPHS.warned} {form.problems[name]}", "warned"),)
    if default is None:
        return (Span("not given", "muted"),)
    return (Span(f"not given: {one_line(shown_value(default))}", "muted"),)


def _request(form: CallForm, width: int, secrets: Secrets) -> list[Line]:
    lines: list[Line] = [(Span(" Would be sent", "heading"),)]
    for problem in filter(None, (form.problems.get(""), form.unchecked)):
        lines += sign_paragraph(GLYPHS.warned, problem, "warned", width, INDENT)
    return [*lines, *JsonLines(secrets.redacted(form.arguments), width, INDENT)]


def _answer(outcome: CallOutcome, width: int) -> list[Line]:
    if outcome.running:
        return [(Span(f" {GLYPHS.running} calling; x stops waiting", "running"),)]
    if outcome.error is not None:
        lines: list[Line] = [(Span(" No answer", "heading"),)]
        lines += sign_paragraph(GLYPHS.error, outcome.error, "error", width, INDENT)
        if outcome.output is not None:
            lines += server_output_lines(outcome.output, width, INDENT)
        return lines
    if outcome.executed is None:
        return []
    answer = outcome.executed.answer
    took = Span(f"  {duration_text(outcome.executed.duration_ms)}", "muted")
    if answer.is_error:
        return [(Span(f" {GLYPHS.failed} Tool error", "failed"), took), *_content(answer.content, width, "failed")]
    return [(Span(f" {GLYPHS.passed} Answer", "passed"), took), *_content(answer.content, width, "text")]


def _content(content: str, width: int, role: Role) -> Sequence[Line]:
    if not content:
        return [(Span(" " * INDENT), Span("an empty text", "muted"))]
    if content[:1] in ("{", "[") and len(content) <= DISPLAY_LIMIT:
        try:
            return JsonLines(json.loads(content), width, INDENT)
        except (ValueError, RecursionError):
            # Content that is not JSON or is nested too deeply is shown as text.
            pass
    rows = chain.from_iterable(wrap(text, width - INDENT) for text in safe_lines(content))
    lines = indented([(Span(row, role),) for row in rows], INDENT)
    if len(content) > DISPLAY_LIMIT:
        left = f"{GLYPHS.running} {count_text(len(content) - DISPLAY_LIMIT)} more characters; y copies all of them"
        lines.append((Span(" " * INDENT), Span(left, "comment")))
    return lines


class CallView(LineView):
    """The lines of a call, with a cursor. A field opens over the value of a parameter."""

    def __init__(self, form: CallForm, build: Callable[[int], CallPicture], widget_id: str) -> None:
        super().__init__(widget_id)
        self._form = form
        self._build = build
        self._picture = CallPicture([], [], 0)
        self._built_at = -1
        self._typed: str | None = None
        """The parameter with the open field."""
        self._before = ""
        """The text of the parameter when its field was opened."""

    def compose(self) -> ComposeResult:
        yield LineField(self._leave_field, self._line_break)

    def line_count(self) -> int:
        if self._built_at != self.text_width:
            self._built_at = self.text_width
            self._picture = self._build(self.text_width)
        return len(self._picture.lines)

    def line_at(self, index: int) -> Line:
        if index < self.line_count():
            return self._picture.lines[index]
        return EMPTY

    def moved(self) -> None:
        self.close_field()

    def chosen(self, index: int) -> None:
        self.open_field()

    def repaint(self) -> None:
        super().repaint()
        self._place_field()

    @property
    def parameter(self) -> str | None:
        if self.cursor >= self.line_count():
            return None
        return self._picture.fields[self.cursor]

    def rebuild(self) -> None:
        """Build the lines again. The cursor stays on its parameter."""
        name = self.parameter
        self._built_at = -1
        if self.line_count() and name is not None and self.parameter != name:
            self.cursor = self._picture.fields.index(name)
        self.move_cursor(self.cursor)

    def show_answer(self) -> None:
        """Scroll to the answer."""
        self.top = max(self._picture.answer - self.size.height // 3, 0)
        self.repaint()

    def _go(self, step: int) -> None:
        """Go to the next (1) or previous (-1) parameter, if any."""
        fields, now = self._picture.fields, self.parameter
        # A parameter has several lines, so the next parameter begins at the first line with another name.
        for name in fields[self.cursor :: step]:
            if name is not None and name != now:
                self.move_cursor(fields.index(name))
                return
        if now is not None:
            self.move_cursor(fields.index(now))

    # Typing

    @property
    def is_typing(self) -> bool:
        return self._typed is not None

    def open_field(self) -> None:
        if (name := self.parameter) is None:
            return
        self._typed, self._before = name, self._form.text(name)
        field = self.query_one(LineField)
        field.value = self._before
        field.cursor_position = len(self._before)
        field.add_class("open")
        self._place_field()
        self.screen.set_focus(field)

    def close_field(self, *, keep: bool = True) -> None:
        """Close the field. Without `keep`, restore the previous text of the parameter."""
        if self._typed is None:
            return
        name, self._typed = self._typed, None
        if not keep:
            self._form.set(name, self._before)
        self.query_one(LineField).remove_class("open")
        self.screen.set_focus(self)
        self.rebuild()

    @on(Input.Changed)
    def _text_changed(self, event: Input.Changed) -> None:
        if self._typed is not None and event.value != self._form.text(self._typed):
            self._form.set(self._typed, event.value)
            self.rebuild()

    def _leave_field(self, exit_key: FieldExit) -> None:
        self.close_field(keep=exit_key != "back")
        if exit_key in ("previous", "up"):
            self._go(-1)
        elif exit_key != "back":
            self._go(1)
        if exit_key in ("next", "previous"):
            self.open_field()

    def _line_break(self, text: str) -> None:
        # A value stays on one line. A string with line breaks is typed in quotes, with `\n`.
        self.query_one(LineField).insert_joined(text)

    def _place_field(self) -> None:
        if self._typed is None or self._typed not in self._picture.fields:
            return
        field = self.query_one(LineField)
        field.styles.offset = (self._picture.value_at, self._picture.fields.index(self._typed) - self.top)
        field.styles.width = max(self.text_width - self._picture.value_at, 4)

    def choose(self, step: int) -> None:
        """Select the next (1) or previous (-1) value in the schema of the selected parameter."""
        name = self.parameter
        if name is not None and self._form.choices(name):
            self._form.choose_next(name, step)
            self.rebuild()

    def clear_argument(self) -> None:
        """Remove the text of the selected parameter."""
        if (name := self.parameter) is not None:
            self._form.set(name, "")
            self.rebuild()


TYPING: tuple[Action, ...] = (
    Action("call.typing.keep", "Keep the argument", ("enter",), "call", "keep"),
    Action("call.typing.next", "Keep it and go to the next one", ("tab",), "call", "keep, next"),
    Action("call.typing.back", "Discard the typed text", ("escape",), "call", "discard"),
)
"""Actions of an argument's field. The field handles them itself; the key bar shows them while the user types."""


@dataclass(frozen=True)
class CallSituation(Situation):
    """The facts that decide which actions are available: whether a call is running, and whether it was answered."""

    running: bool = False
    answered: bool = False


def _make_call(situation: CallSituation) -> str | None:
    if situation.running:
        return f"the tool is being called; {key_for('call.stop')} stops waiting"
    return None


def _stop_waiting(situation: CallSituation) -> str | None:
    if situation.running:
        return None
    return "the tool is not being called"


def _answered(situation: CallSituation) -> str | None:
    if situation.answered:
        return None
    return "call the tool first"


class NotInCaseError(Exception):
    """Raised if the tree's cursor is on no case of the tool's suite."""


ChangeSelectedCase = Callable[[Path, Callable[[Table], Table], str], str]
"""Changes the table of the selected case, and returns the name of the case.

The arguments are the suite file of the case, the change, and the description of the change. Raises NotInCaseError, and
the errors of changing a case."""


class CallScreen(SearchedScreen[None]):
    """The screen on which the user calls a tool.

    `grant` asks for trust in the server, and returns `None` if the server may not start. `into_case` adds the call
    or its answer to the selected case. `show_log` shows the log of the server."""

    NAME = "call"
    FIRST_ACTIONS = ("call",)
    TITLE_IN_TEXT = "a call by hand"
    ACTION_OVERRIDES = (ActionOverride("back", title="Leave the screen; the typed arguments stay"),)
    AUTO_FOCUS = "#call-view"

    def __init__(
        self,
        app: Workbench,
        form: CallForm,
        server: SuiteServer,
        *,
        runner: Runner,
        secrets: Secrets,
        grant: Callable[[], Awaitable[Grant | None]],
        into_case: ChangeSelectedCase,
        show_log: Callable[[Announce], None],
    ) -> None:
        super().__init__(app)
        self._form = form
        self._server = server
        self._runner = runner
        self._secrets = secrets
        self._grant = grant
        self._into_case = into_case
        self._show_log = show_log
        self._outcome = CallOutcome()
        self._sent: dict[str, JsonValue] = {}
        self._calling: Future[ToolExecution] | None = None

    def compose(self) -> ComposeResult:
        yield Bar("call-title")
        yield CallView(self._form, self._picture, "call-view")
        yield KeyBar("call-keys")

    def on_mount(self) -> None:
        tool = self._form.tool
        left: Line = (Span(" Call ", "badge"), Span(f" {one_line(tool.name)}", "tool"))
        kind = Span("not read-only: asks first ", "warned")
        if is_read_only(tool.annotations):
            kind = Span("read-only ", "passed")
        full: Line = (Span(f"on {one_line(self._server.server.name)} {GLYPHS.dot} ", "muted"), kind)
        self.query_one("#call-title", Bar).set_line(lambda width: title_line(left, (full, (kind,)), width))
        self._show_bars()

    def on_unmount(self) -> None:
        if self._calling is not None:
            self._calling.cancel()

    @property
    def _view(self) -> CallView:
        return self.query_one("#call-view", CallView)

    def _picture(self, width: int) -> CallPicture:
        return call_picture(self._form, self._outcome, width, self._secrets)

    @property
    def situation(self) -> CallSituation:
        running, answered = self._outcome.running, self._outcome.executed is not None
        return CallSituation(has_text=True, running=running, answered=answered)

    def _key_bar_actions(self) -> list[tuple[Action, bool]]:
        if self._view.is_typing:
            return [(action, True) for action in TYPING]
        # Most actions are unavailable before the first call, so the key bar leaves out unavailable actions.
        offered = [each for each in super()._key_bar_actions() if each[1]]
        if self._outcome.running:
            return [each for each in offered if each[0].id == "call.stop"]
        return offered

    def on_descendant_focus(self) -> None:
        self._show_bars()

    @action("enter", "Type the argument", label="type", changes=True)
    def do_type(self) -> None:
        self._view.open_field()

    @action("right space", "Next value that the schema lists", changes=True)
    def do_next(self) -> None:
        self._view.choose(1)

    @action("left", "Previous value that the schema lists", changes=True)
    def do_previous(self) -> None:
        self._view.choose(-1)

    @action("del backspace", "Remove the argument", changes=True)
    def do_clear(self) -> None:
        self._view.clear_argument()

    # Calling

    @action("r", "Run the call with these arguments", label="call", needs=_make_call, changes=True)
    def do_call(self) -> None:
        """Call the tool. Ask first if the tool may change something."""
        problems = self._form.problems
        if problems:
            name, text = next(iter(problems.items()))
            if name:
                text = f"{name}: {text}"
            if len(problems) > 1:
                text += f" (and {counted(len(problems) - 1, 'more problem')})"
            self.announce(f"Not called: {text}", "warned", GLYPHS.warned)
            return
        self.run_worker(self._call(), group="start")

    async def _call(self) -> None:
        tool, arguments = self._form.tool, dict(self._form.arguments)
        grant = await self._grant()
        if grant is None:
            self.announce("Not called: the suite is not trusted", "warned", GLYPHS.warned)
            return
        if not is_read_only(tool.annotations):
            question = ManualExecutionScreen(tool, arguments, self._secrets)
            if await self.workbench.ask(question) != "yes":
                self.announce("Not called", "text", GLYPHS.stopped)
                return
        serving = await self._runner.open_serving()
        calling = self._calling = serving.call(self._server, grant, tool.name, arguments)
        self._sent = dict(arguments)
        self._show(CallOutcome(running=True))
        try:
            executed = await asyncio.wrap_future(calling)
            self._show(CallOutcome(executed=executed))
        except ServerError as error:
            self._show(CallOutcome(error=str(error), output=error.output))
        except ToolsError as error:
            self._show(CallOutcome(error=str(error)))
        except asyncio.CancelledError:
            # The user cancelled the call, or leaving the screen cancelled this worker.
            if self.is_mounted and calling.cancelled():
                self._show(CallOutcome(error="you did not wait for the answer; the tool may have been executed"))
            else:
                raise

    def _show(self, outcome: CallOutcome) -> None:
        if self.is_mounted:
            self._outcome = outcome
            self._view.rebuild()
            self._view.show_answer()
            self._show_bars()

    @action("x", "Stop waiting for the answer", label="stop waiting", needs=_stop_waiting, changes=True)
    def do_stop(self) -> None:
        if self._calling is not None:
            self._calling.cancel()

    @action("y", "Copy the answer, or the arguments", label="copy")
    def do_copy(self) -> None:
        executed = self._outcome.executed
        if executed is not None:
            text, what = executed.answer.content, "the answer"
        else:
            text, what = json.dumps(self._form.arguments, ensure_ascii=False, indent=2), "the arguments"
        self.workbench.copy(text, what, self.announce)

    @action("l", "Live log of the server", label="log", changes=True)
    def do_log(self) -> None:
        self._show_log(self.announce)

    # Using the answer

    @action("M", "Make the call a mock of the case", label="use as mock", needs=_answered, changes=True)
    def do_mock(self) -> None:
        tool, executed = self._form.tool.name, self._outcome.executed
        if executed is not None:
            answer = executed.answer
            self._use(lambda case: case_with_mock(case, tool, self._sent, answer), f"Mock of {tool}")

    @action("C", "Make it an expected call of the case", label="expect it", needs=_answered, changes=True)
    def do_expect(self) -> None:
        tool = self._form.tool.name
        self._use(lambda case: case_with_expected_call(case, tool, self._sent), f"Expect {tool}")

    def _use(self, change: Callable[[Table], Table], success_text: str) -> None:
        suite_file = self._server.suite_file

        # The call was made with the real values, but a suite file must not contain secrets.
        def without_secrets(case: Table) -> Table:
            return table_without_secrets(change(case), case, self._secrets)

        try:
            name = self._into_case(suite_file, without_secrets, success_text)
        except NotInCaseError:
            text = f"Put the cursor of the tree on a case of {suite_file.name}, then come back"
            self.announce(text, "warned", GLYPHS.warned)
        except (SpliceError, ValueError, IndexError) as error:
            self.announce(f"Nothing was changed: {error}", "warned", GLYPHS.warned)
        else:
            self.announce(
                f"{success_text}, in {name}; {key_for('edit.undo')} on the main screen takes it back",
                "passed",
                GLYPHS.passed,
            )
