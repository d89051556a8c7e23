"""The editor for a text that changes or answers a held run. The text is checked on every change."""

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
from workbench.engine.checkpoint import (
    AddMessage,
    AnswerCall,
    AnswerQuestion,
    Edit,
    EditArguments,
    EditMessage,
    EditResult,
    SayMessage,
)
from workbench.numerals import count_text
from workbench.show.highlight import Colours, JsonColours, PlainColours
from workbench.show.spans import EMPTY, Line, Span, spread
from workbench.show.visible import one_line
from workbench.suite.problems import Problem
from workbench.tools.questions import problem_of_reply, question_of
from workbench.trajectory.events import JsonValue, ServerAsked, ToolDefinition
from workbench.trajectory.trajectory import CallRecord
from workbench.tui.kit.actions import ERROR_KINDS, HeldKind
from workbench.tui.kit.edited_text import MAX_LINE_CHARS, MAX_SHOWN_LINES, Place, marks
from workbench.tui.kit.strips import Bar
from workbench.tui.kit.suggestions import ProblemList
from workbench.tui.kit.text_editor import TextEditor
from workbench.tui.run_book.record import RunRecord

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


# The decoder returns numbers as text. `_check` then reports a bad number with its position, which the decoder would
# not.
_SYNTAX = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)

# A token is a string (with a colon if it is a key), a bracket, a number or a literal.
_TOKEN = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}\[\]]|[^\s{}\[\]:,"]+')


def arguments_in(text: str) -> dict[str, JsonValue]:
    """Parse the arguments of a call, a JSON object.

    Raises:
        json.JSONDecodeError: The text is not JSON, has a duplicate key, a number that JSON does not have, or a number
            that is too large.
        ValueError: The value is not an object, or is nested too deeply."""
    try:
        value = _SYNTAX.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("arguments must be a JSON object: write { and } around them")
    _check(text)
    arguments: dict[str, JsonValue] = parsed_json(text)
    return arguments


def _check(text: str) -> None:
    """Raise JSONDecodeError at the first duplicate key or invalid number. The text must be valid JSON."""
    # `keys` has a set for each open bracket: the keys of the object so far. The set of an array stays empty.
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
            if key in keys[-1]:
                wrong = "this key is already in the object"
            keys[-1].add(key)
        elif not string and token not in ("true", "false", "null"):
            wrong = _why_no_number(token)
        if wrong is not None:
            raise json.JSONDecodeError(wrong, text, found.start())


def _why_no_number(token: str) -> str | None:
    if token in ("NaN", "Infinity", "-Infinity"):
        return f"there is no {token} in JSON"
    try:
        if not set(token).isdisjoint(".eE"):
            fits = math.isfinite(float(token))
        else:
            int(token)
            fits = True
    except ValueError:  # Python reads integers only up to 4,300 digits
        fits = False
    return None if fits else "too large a number"


@dataclass(frozen=True)
class HeldText:
    """A text that the user edits while a run is held.

    `original` is the initial text. `call` is the held call, and `tool` the definition of its tool. `hold` identifies
    the stop at which the call is held (`RunRecord.hold`). `request` is the server's request if the text is a reply."""

    kind: HeldKind
    run: RunRecord
    original: str = ""
    is_error: bool = False
    call: CallRecord | None = None
    tool: ToolDefinition | None = None
    hold: int | None = None
    request: ServerAsked | None = None

    @property
    def key(self) -> tuple[str, HeldKind]:
        """The key under which an unsent text is kept. A run keeps at most one text of each kind."""
        return self.run.run_id, self.kind

    @property
    def target_hold(self) -> int | None:
        """The number of the stop at which the text can be sent. A message can be sent at any stop."""
        if self.hold is not None:
            return self.hold
        return self.run.hold

    @property
    def title(self) -> str:
        """The title of the editor, such as `Arguments of search`."""
        if self.kind == "said":
            return "Message of the user"
        if self.kind == "speech":
            return "In place of the user"
        if self.call is None:
            return "To the model"
        if self.request is not None:
            return f"Reply to {one_line(self.request.server)}"
        of_kind = {"arguments": "Arguments of", "result": "Result of", "answer": "Answer in place of"}[self.kind]
        return f"{of_kind} {one_line(self.call.tool)}"

    @property
    def file_name(self) -> str:
        """The name of the temporary file with the text, for the user's own editor."""
        if self.is_json:
            return f"{self.kind}.json"
        return f"{self.kind}.txt"

    @property
    def is_json(self) -> bool:
        """Whether the text is a JSON object: the arguments of a call, or the content of a form."""
        return self.kind == "arguments" or (self.request is not None and self.request.kind == "elicitation")

    @property
    def too_large(self) -> str | None:
        """Why the text is too large for this editor, `None` if it is not."""
        lines = self.original.split("\n")
        longest = max(map(len, lines))
        if len(lines) > MAX_SHOWN_LINES:
            return f"{count_text(len(lines))} lines are too many to type here"
        if longest > MAX_LINE_CHARS:
            return f"a line of {count_text(longest)} characters is too long to type here"
        return None

    @property
    def why_not_sendable(self) -> str | None:
        """Why the text can no longer be sent, `None` if it still can."""
        if self.run.result is not None:
            return "the run has finished"
        if not self.run.is_held:
            return "the run has continued"
        if self.target_hold == self.run.hold:
            return None
        return "the run has moved on to another stop"

    @property
    def unsendable_problems(self) -> tuple[Problem, ...]:
        """The problem shown for a text that can no longer be sent. It explains how to keep the text."""
        text = f"{self.why_not_sendable}: this was not sent, and stays here until Esc; F7 selects it, Ctrl+C copies it"
        return (_problem(None, text),)

    def problems(self, text: str) -> tuple[Problem, ...]:
        """Return the problems of a text. Errors prevent sending, warnings do not."""
        if self.kind in ("message", "said", "speech"):
            if text.strip():
                return ()
            return (_problem(None, "there is nothing to say yet"),)
        if not self.is_json:
            return ()
        try:
            arguments = arguments_in(text)
        except ValueError as error:
            return (_invalid(error),)
        if self.request is not None:
            refused_reply = problem_of_reply(question_of(self.request), "accept", arguments, None)
            return () if refused_reply is None else (_problem(None, refused_reply),)
        if self.tool is None:
            return ()
        try:
            refused = argument_problems(arguments, self.tool.parameters)
        except BrokenSchemaError as error:
            refused = (f"not checked, as the tool's schema is broken: {error}",)
        warnings = []
        for message in refused:
            warnings.append(Problem(Path(), None, "", message.removeprefix("args: "), severity="warning"))
        return tuple(warnings)

    def mistake_at(self, text: str) -> Place | None:
        """Return the line and column (from 0) of the JSON error in the text, `None` if there is none."""
        if self.is_json:
            try:
                arguments_in(text)
            except json.JSONDecodeError as error:
                return error.lineno - 1, error.colno - 1
            except ValueError:
                return None
        return None

    def is_unchanged(self, text: str, is_error: bool) -> bool:
        """Return whether the run would be unchanged if the text were sent. The text must have no errors."""
        # Two spellings of the same arguments are equal. Unlike `==`, `repr` distinguishes 1 from 1.0 and True.
        if self.kind == "arguments" and text != self.original:
            try:
                return repr(arguments_in(text)) == repr(arguments_in(self.original))
            except ValueError:
                return False
        return self.kind in ("arguments", "result", "said") and (text, is_error) == (self.original, self.is_error)

    @property
    def sent_notice(self) -> str:
        """The notice after the text was sent."""
        tool = one_line(self.call.tool) if self.call is not None else ""
        return {
            "arguments": f"{tool} is called with these arguments when the run continues",
            "result": f"The model reads this result of {tool} when the run continues",
            "answer": f"{tool} is answered with this, and not called",
            "reply": f"The server of {tool} gets this reply",
            "said": "The user says this when the run continues",
            "speech": "The model reads this in place of the user's message",
            "message": "The model reads this before its next request, if there is one",
        }[self.kind]

    def command(self, text: str, is_error: bool) -> Edit:
        """Return the command that sends a text to the run.

        Raises ValueError for invalid arguments."""
        match self.kind:
            case "arguments":
                return EditArguments(arguments_in(text))
            case "result":
                return EditResult(text, is_error)
            case "answer":
                return AnswerCall(text, is_error)
            case "reply" if self.is_json:
                return AnswerQuestion("accept", arguments_in(text))
            case "reply":
                return AnswerQuestion("accept", text=text)
            case "said":
                return EditMessage(text)
            case "speech":
                return SayMessage(text)
            case _:
                return AddMessage(text)


def in_words(problem: Problem) -> Problem:
    """Return a problem with its line number in the message."""
    if problem.line:
        return replace(problem, line=None, message=f"line {problem.line}, {problem.message}")
    return problem


def text_for(run: RunRecord, kind: HeldKind) -> HeldText:
    """Return the text for the user to edit. `kind` is, for example, "arguments" or "result".

    The text belongs to the held call. If no call is held, the text is a message to the model."""
    call = _held_call(run)
    if run.paused is not None and run.paused.said is not None and kind in ("said", "speech"):
        return HeldText(kind, run, run.paused.said.text if kind == "said" else "", hold=run.hold)
    if kind == "message" or call is None:
        return HeldText("message", run)
    tool = None
    if run.trajectory.start is not None:
        tool = next((tool for tool in run.trajectory.start.tools if tool.name == call.tool), None)
    if kind == "arguments":
        return HeldText(kind, run, _arguments_text(call), False, call, tool, run.hold)
    if kind == "reply" and run.paused is not None and (asked := run.paused.asked) is not None:
        return HeldText(kind, run, _initial_reply(asked), False, call, tool, run.hold, asked)
    if kind == "result" and call.result is not None:
        return HeldText(kind, run, call.result.content, call.result.is_error, call, tool, run.hold)
    return HeldText("answer", run, "", False, call, tool, run.hold)


def _held_call(run: RunRecord) -> CallRecord | None:
    if run.paused is None:
        return None
    for call in run.trajectory.calls:
        if call.call.id == run.paused.call_id:
            return call
    return None


def _arguments_text(call: CallRecord) -> str:
    if call.edited is None and call.call.problem is not None:
        return call.call.raw or ""
    return json_text(dict(call.sent.arguments), indent=2)


def _initial_reply(request: ServerAsked) -> str:
    if request.kind == "sampling":
        return request.text or ""
    content = dict(request.content or {})
    properties = (question_of(request).schema or {}).get("properties")
    if not content and isinstance(properties, dict):
        for name, field in properties.items():
            if isinstance(field, dict) and "default" in field:
                content[name] = field["default"]
    return json_text(content, indent=2)


def _invalid(error: ValueError) -> Problem:
    if isinstance(error, json.JSONDecodeError):
        return _problem(error.lineno, f"column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}")
    return _problem(None, str(error))


def _problem(line: int | None, message: str) -> Problem:
    return Problem(Path(), line, "", message)


MIN_ROWS = 2
"""The minimum number of rows of the text. The maximum is half of the pane."""


class HeldEditor(Vertical):
    """The editor for a text that changes or answers a held run. A result can be marked as a tool error.

    Only the user closes the editor. If the run continues, the text stays."""

    DEFAULT_CSS = """
    HeldEditor { height: auto; }
    HeldEditor > Bar { background: $panel; }
    HeldEditor > ProblemList { display: none; max-height: 3; }
    """

    class Kept(Message):
        """Posted when the user sends the text."""

    class Ended(Message):
        """Posted when the user closes the editor without sending."""

    def __init__(self, app: Workbench, held_text: HeldText, text: str, is_error: bool) -> None:
        super().__init__()
        self._app = app
        self.held_text = held_text
        self.is_error = is_error
        self.is_sending = False
        """Whether the text was sent and the run has not replied yet."""
        self.refused = ""
        """The notice of the last refusal. Cleared when the text changes."""
        self._initial_text = text
        self._undoable: list[str] = []
        self._redoable: list[str] = []
        self._known = (text, 0)
        """The last known text, and the number of its undo step."""
        self._why_not_sendable: str | None = None

    def compose(self) -> ComposeResult:
        yield Bar("held-title")
        colours: type[Colours] = PlainColours if self.held_text.kind == "message" else JsonColours
        yield TextEditor(self._text_changed, colours, "held-text")
        yield ProblemList("held-problems")

    def on_mount(self) -> None:
        editor = self.editor
        editor.assist = self._assist
        editor.begin(self._initial_text, 1, (0, 0), 0)
        # If there is no text to change, the cursor is at the end of what was typed before.
        if not self.held_text.original:
            editor.typed.move("text_end")
        self._say()
        self.screen.set_focus(editor)

    @property
    def editor(self) -> TextEditor:
        return self.query_one(TextEditor)

    @property
    def typing(self) -> HeldKind | None:
        """The kind of text if the editor has the focus, otherwise `None`."""
        if self.editor.has_focus:
            return self.held_text.kind
        return None

    @property
    def text(self) -> str:
        if self.is_mounted:
            return self.editor.typed.text
        return self._initial_text

    @property
    def is_changed(self) -> bool:
        return (self.text, self.is_error) != (self.held_text.original, self.held_text.is_error)

    def follow(self) -> None:
        """Update the note that the text can no longer be sent. Called after events of the run."""
        if self.is_mounted and self.held_text.why_not_sendable != self._why_not_sendable:
            self._say()

    def undo(self, *, is_redo: bool = False) -> None:
        """Undo the last change. With `is_redo`, redo the change that was undone last."""
        source, target = self._undoable, self._redoable
        if is_redo:
            source, target = target, source
        if source:
            target.append(self._known[0])
            # The editor gives no undo step the number -1, so the next change begins a new step.
            self._known = (source.pop(), -1)
            self.editor.set_text(self._known[0])
            self._say()

    def set_text(self, text: str) -> None:
        """Replace the text, for example by the text of the user's own editor."""
        self.editor.set_text(text)
        # The editor gives no undo step the number -1, so this change is a step of its own.
        self._text_changed(text, -1)

    def switch_error(self) -> None:
        """Mark the edited result as a tool error, or remove the mark."""
        self.is_error = not self.is_error
        self._say()

    def go_to_problem(self) -> None:
        """Move the cursor to the error in the text. Do nothing if the error has no position."""
        if (at := self.held_text.mistake_at(self.text)) is not None:
            self.editor.go_to(*at)

    def _text_changed(self, text: str, step: int) -> None:
        # Changes with the same step number are undone together, so only the text before a new step is stored.
        before, step_before = self._known
        if step != step_before or not self._undoable:
            self._undoable.append(before)
        self._redoable.clear()
        self._known = (text, step)
        self._say()
        if self.refused:
            self._app.end_notice(self.refused)
            self.refused = ""

    def _say(self) -> None:
        self._why_not_sendable = self.held_text.why_not_sendable
        problems = self.held_text.unsendable_problems
        if self._why_not_sendable is None:
            problems = self.held_text.problems(self.text)
        # Only problems with a line are marked. Others would mark the first line.
        on_lines = [each for each in problems if each.line]
        self.editor.mark(marks(on_lines, 1, self.editor.line_count()), 1)
        self.query_one(ProblemList).show(list(map(in_words, problems)))
        self.query_one("#held-title", Bar).set_line(self._title)
        self.fit()

    def _title(self, width: int) -> Line:
        switch: Line = EMPTY
        if self.held_text.kind in ERROR_KINDS:
            switch = (Span("[x] tool error ", "failed") if self.is_error else Span("[ ] tool error ", "muted"),)
        return spread((Span(f" {self.held_text.title}", "strong"),), switch, width)

    def fit(self) -> None:
        """Adjust the height to the text, up to half of the pane."""
        assert isinstance(self.parent, Widget)
        most = max(self.parent.size.height // 2 - 1, MIN_ROWS)
        rows = min(max(self.editor.line_count(), MIN_ROWS), most)
        if self.editor.styles.height is None or self.editor.styles.height.value != rows:
            self.editor.styles.height = rows

    def _assist(self, key: str) -> bool:
        # Arguments are JSON with line breaks, so Enter never sends arguments.
        one_line = not self.held_text.is_json and self.editor.line_count() == 1
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
        if event.widget is self.query_one("#held-title") and self.held_text.kind in ERROR_KINDS:
            self.switch_error()
