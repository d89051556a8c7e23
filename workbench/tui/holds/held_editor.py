"""The editor of text for a held run, below its trajectory, with problems shown while typing."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget

from workbench.checks.schemas import BrokenSchemaError, argument_problems
from workbench.dataclasses import dataclass, json_text, parsed_json
from workbench.engine.checkpoint import AddMessage, AnswerCall, EditArguments, EditResult
from workbench.numerals import count_text
from workbench.show.highlight import Colours, JsonColours, PlainColours
from workbench.show.spans import EMPTY, Line, Span, spread
from workbench.show.visible import one_line
from workbench.suite.problems import Problem
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.trajectory import CallRecord
from workbench.tui.kit.actions import ANSWERS, HeldKind
from workbench.tui.kit.strips import Bar
from workbench.tui.kit.suggestions import ProblemList
from workbench.tui.kit.text_editor import TextEditor
from workbench.tui.kit.typed_text import MAX_LINE_CHARS, MAX_SHOWN_LINES, Place, marks
from workbench.tui.run_book.record import RunRecord

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


_SYNTAX = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
"""Accepts any number, so that errors in numbers are reported after syntax errors."""

_TOKEN = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}\[\]]|[^\s{}\[\]:,"]+')


def arguments_in(text: str) -> dict[str, JsonValue]:
    """Parse a JSON object.

    Raises ValueError for anything else, duplicate keys, and numbers that JSON does not have or that are too large;
    `json.JSONDecodeError` if the error has a position."""
    try:
        value = _SYNTAX.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("arguments are a JSON object: { and } around them")
    _check(text)
    arguments: dict[str, JsonValue] = parsed_json(text)
    return arguments


def _check(text: str) -> None:
    """Check valid JSON for duplicate keys and bad numbers.

    Raises JSONDecodeError for the first error."""
    keys: list[set[str]] = []
    for found in _TOKEN.finditer(text):
        token, string, is_key = found[0], found[1], found[2]
        wrong = None
        if token in ("{", "["):
            keys.append(set())
        elif token in ("}", "]"):
            keys.pop()
        elif is_key:
            key = json.loads(string)
            wrong = "this key is already in the object" if key in keys[-1] else None
            keys[-1].add(key)
        elif not string and token not in ("true", "false", "null"):
            wrong = _why_no_number(token)
        if wrong is not None:
            raise json.JSONDecodeError(wrong, text, found.start())


def _why_no_number(token: str) -> str | None:
    if token in ("NaN", "Infinity", "-Infinity"):
        return f"there is no {token} in JSON"
    try:
        fits = math.isfinite(float(token)) if set(token) & set(".eE") else int(token) is not None
    except ValueError:  # Python only reads integers up to a few thousand digits
        fits = False
    return None if fits else "too large a number"


@dataclass(frozen=True)
class HeldText:
    """A text to be typed.

    `call` is the call it belongs to, and `hold` the hold at that call (`RunRecord.hold`). `original` is the initial
    text, `tool` the definition of the call's tool."""

    kind: HeldKind
    run: RunRecord
    original: str = ""
    is_error: bool = False
    call: CallRecord | None = None
    tool: ToolDefinition | None = None
    hold: int | None = None

    @property
    def key(self) -> tuple[str, HeldKind]:
        """The key of its draft: a run has one of each kind."""
        return self.run.run_id, self.kind

    @property
    def meant_for(self) -> int | None:
        """The hold that the text can be sent at: only that of its call.

        A message fits any hold."""
        if self.call is not None:
            return self.hold
        return self.run.hold

    @property
    def title(self) -> str:
        """The title of the editor."""
        if self.call is None:
            return "To the model"
        what = {"arguments": "Arguments of", "result": "Result of", "answer": "Answer in place of"}[self.kind]
        return f"{what} {one_line(self.call.tool)}"

    @property
    def file_name(self) -> str:
        """The name of a file with this text."""
        if self.kind == "arguments":
            return "arguments.json"
        return f"{self.kind}.txt"

    @property
    def too_large(self) -> str | None:
        """Why the text is too large to be edited here, if it is."""
        lines = self.original.split("\n")
        longest = max(map(len, lines))
        if len(lines) > MAX_SHOWN_LINES:
            return f"{count_text(len(lines))} lines are too many to type here"
        if longest > MAX_LINE_CHARS:
            return f"a line of {count_text(longest)} characters is too long to type here"
        return None

    @property
    def why_gone(self) -> str | None:
        """Why the text can no longer be sent, if so."""
        if self.run.result is not None:
            return "the run is over"
        if not self.run.held:
            return "the run has continued"
        if self.meant_for == self.run.hold:
            return None
        return "the run has moved on to another stop"

    @property
    def gone_problems(self) -> tuple[Problem, ...]:
        """Why the text can no longer be sent, and the way out."""
        text = f"{self.why_gone}: this was not sent, and stays here until Esc; F7 selects it, Ctrl+C copies it"
        return (_problem(None, text),)

    def problems(self, text: str) -> tuple[Problem, ...]:
        """Return the problems of a text.

        Errors prevent sending, warnings do not."""
        if self.kind == "message":
            if text.strip():
                return ()
            return (_problem(None, "there is nothing to say yet"),)
        if self.kind != "arguments":
            return ()
        try:
            arguments = arguments_in(text)
        except ValueError as error:
            at = error.lineno if isinstance(error, json.JSONDecodeError) else None
            return (_problem(at, _message(error)),)
        if self.tool is None:
            return ()
        try:
            refused = argument_problems(arguments, self.tool.parameters)
        except BrokenSchemaError as error:
            refused = (f"not checked, as the tool's schema is broken: {error}",)
        return tuple(
            Problem(Path(), None, "", message.removeprefix("args: "), severity="warning") for message in refused
        )

    def mistake_at(self, text: str) -> Place | None:
        """Return the line and column, from 0, of a syntax error in arguments."""
        if self.kind == "arguments":
            try:
                arguments_in(text)
            except json.JSONDecodeError as error:
                return error.lineno - 1, error.colno - 1
            except ValueError:
                return None
        return None

    def is_unchanged(self, text: str, is_error: bool) -> bool:
        """Return whether a text without errors changes nothing."""
        if self.kind == "arguments" and text != self.original:
            try:
                return repr(arguments_in(text)) == repr(arguments_in(self.original))
            except ValueError:
                return False
        return self.kind in ("arguments", "result") and (text, is_error) == (self.original, self.is_error)

    @property
    def sent_notice(self) -> str:
        """The notice after sending."""
        tool = one_line(self.call.tool) if self.call is not None else ""
        return {
            "arguments": f"{tool} is called with these arguments when the run continues",
            "result": f"The model reads this result of {tool} when the run continues",
            "answer": f"{tool} is answered with this, and not called",
            "message": "The model reads this before its next request, if there is one",
        }[self.kind]

    def command(self, text: str, is_error: bool) -> EditArguments | EditResult | AnswerCall | AddMessage:
        """Return the command for the run.

        Raises ValueError for arguments that are not a JSON object."""
        match self.kind:
            case "arguments":
                return EditArguments(arguments_in(text))
            case "result":
                return EditResult(text, is_error)
            case "answer":
                return AnswerCall(text, is_error)
            case _:
                return AddMessage(text)


def in_words(problem: Problem) -> Problem:
    """Return a problem with its line in the message."""
    if problem.line:
        return replace(problem, line=None, message=f"line {problem.line}, {problem.message}")
    return problem


def text_for(run: RunRecord, kind: HeldKind) -> HeldText:
    """Return the text to type where a run is held, for the given kind."""
    call_id = run.paused.call_id if run.paused is not None else None
    trajectory = run.trajectory
    call = next((call for call in trajectory.calls if call.call.id == call_id), None)
    if kind == "message" or call is None:
        return HeldText("message", run)
    tools = trajectory.start.tools if trajectory.start is not None else ()
    tool = next((tool for tool in tools if tool.name == call.tool), None)
    if kind == "arguments":
        return HeldText(kind, run, _written(call), False, call, tool, run.hold)
    if kind == "result" and call.result is not None:
        return HeldText(kind, run, call.result.content, call.result.is_error, call, tool, run.hold)
    return HeldText("answer", run, "", False, call, tool, run.hold)


def _written(call: CallRecord) -> str:
    """Return a call's arguments as JSON, or the model's own text if that is invalid."""
    if call.edited is None and call.call.problem is not None:
        return call.call.raw or ""
    return json_text(dict(call.sent.arguments), indent=2)


def _message(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}"
    return str(error)


def _problem(line: int | None, message: str) -> Problem:
    return Problem(Path(), line, "", message)


MIN_ROWS = 2
"""The minimum rows of the text. The maximum is half of the pane."""


class HeldEditor(Vertical):
    """An editor with, for results, a switch for tool errors.

    It closes only on request: text stays, whatever the run does."""

    DEFAULT_CSS = """
    HeldEditor { height: auto; }
    HeldEditor > Bar { background: $panel; }
    HeldEditor > ProblemList { display: none; max-height: 3; }
    """

    class Kept(Message):
        """Posted to send the text."""

    class Ended(Message):
        """Posted when typing ends without sending."""

    def __init__(self, stage: Workbench, held: HeldText, text: str, is_error: bool) -> None:
        super().__init__()
        self._stage = stage
        self.held = held
        self.is_error = is_error
        self.is_sending = False
        """Whether the text was sent and not answered yet."""
        self.refused = ""
        """Why the text was last refused."""
        self._begun = text
        self._undoable: list[str] = []
        self._redoable: list[str] = []
        self._known = (text, 0)
        """The last known text, and its undo step."""
        self._gone: str | None = None

    def compose(self) -> ComposeResult:
        yield Bar("held-title")
        colours: type[Colours] = PlainColours if self.held.kind == "message" else JsonColours
        yield TextEditor(self._tell, colours, "held-text")
        yield ProblemList("held-problems")

    def on_mount(self) -> None:
        editor = self.editor
        editor.assist = self._assist
        editor.begin(self._begun, 1, (0, 0), 0)
        if not self.held.original:  # continue a draft at its end
            editor.typed.move("text_end")
        self._say()
        self.screen.set_focus(editor)

    @property
    def editor(self) -> TextEditor:
        """The text editor."""
        return self.query_one(TextEditor)

    @property
    def typing(self) -> HeldKind | None:
        """The kind of text being typed, while the editor has the focus."""
        if self.editor.has_focus:
            return self.held.kind
        return None

    @property
    def text(self) -> str:
        """The current text."""
        if self.is_mounted:
            return self.editor.typed.text
        return self._begun

    @property
    def is_changed(self) -> bool:
        """Whether the text differs from the original."""
        return (self.text, self.is_error) != (self.held.original, self.held.is_error)

    def follow(self) -> None:
        """Update the display if the text can no longer be sent."""
        if self.is_mounted and self.held.why_gone != self._gone:
            self._say()

    def undo(self, *, again: bool = False) -> None:
        """Undo or redo."""
        source, target = (self._redoable, self._undoable) if again else (self._undoable, self._redoable)
        if source:
            target.append(self._known[0])
            self._known = (source.pop(), -1)
            self.editor.take(self._known[0])
            self._say()

    def take(self, text: str) -> None:
        """Replace the text by one from elsewhere."""
        self.editor.take(text)
        self._tell(text, -1)

    def switch_error(self) -> None:
        """Switch whether it is a tool error."""
        self.is_error = not self.is_error
        self._say()

    def go_to_problem(self) -> None:
        """Go to the error."""
        if (at := self.held.mistake_at(self.text)) is not None:
            self.editor.go_to(*at)

    def _tell(self, text: str, step: int) -> None:
        before, step_before = self._known
        if step != step_before or not self._undoable:
            self._undoable.append(before)
        self._redoable.clear()
        self._known = (text, step)
        self._say()
        if self.refused:
            self._stage.end_notice(self.refused)
            self.refused = ""

    def _say(self) -> None:
        self._gone = self.held.why_gone
        problems = self.held.problems(self.text) if self._gone is None else self.held.gone_problems
        self.editor.mark(marks([each for each in problems if each.line], 1, self.editor.line_count()), 1)
        self.query_one(ProblemList).show([in_words(each) for each in problems])
        self.query_one("#held-title", Bar).say(self._title)
        self.fit()

    def _title(self, width: int) -> Line:
        sign = "x" if self.is_error else " "
        switch: Line = EMPTY
        if self.held.kind in ANSWERS:
            switch = (Span(f"[{sign}] tool error ", "failed" if self.is_error else "muted"),)
        return spread((Span(f" {self.held.title}", "strong"),), switch, width)

    def fit(self) -> None:
        """Adjust the height to the text and the available room."""
        assert isinstance(self.parent, Widget)
        most = max(self.parent.size.height // 2 - 1, MIN_ROWS)
        rows = min(max(self.editor.line_count(), MIN_ROWS), most)
        if self.editor.styles.height is None or self.editor.styles.height.value != rows:
            self.editor.styles.height = rows

    def _assist(self, key: str) -> bool:
        one_line = self.held.kind != "arguments" and self.editor.line_count() == 1
        if key == "ctrl+enter" or (key == "enter" and one_line):
            self.post_message(self.Kept())
            return True
        return False

    @on(TextEditor.Ended)
    def _ended(self, event: TextEditor.Ended) -> None:
        event.stop()
        self.post_message(self.Ended())

    @on(ProblemList.Chosen)
    def _problem_chosen(self, event: ProblemList.Chosen) -> None:
        event.stop()
        self.go_to_problem()
        self.editor.focus()

    def on_click(self, event: events.Click) -> None:
        if event.widget is self.query_one("#held-title") and self.held.kind in ANSWERS:
            self.switch_error()
