"""Text typed for a held run, and the command that it becomes: a call's arguments, its result, an answer in place of the
tool, or a message to the model.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

from workbench.checks.schemas import BrokenSchemaError, argument_problems
from workbench.dataclasses import dataclass, json_text, parsed_json
from workbench.engine.checkpoint import AddMessage, AnswerCall, EditArguments, EditResult
from workbench.show.visible import one_line
from workbench.suite.problems import Problem
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.trajectory import CallRecord
from workbench.tui.kit.actions import HeldKind
from workbench.tui.kit.typed_text import LONGEST_SHOWN, MAX_LINE_CHARS, Place
from workbench.tui.run_book.record import RunRecord

_SYNTAX = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
"""Accepts any number, so that errors in numbers are reported after syntax errors."""

_TOKEN = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}\[\]]|[^\s{}\[\]:,"]+')


def arguments_in(text: str) -> dict[str, JsonValue]:
    """Parse a JSON object. Raises ValueError for anything else, duplicate keys, and numbers that JSON does not have or
    that are too large; `json.JSONDecodeError` if the error has a position."""
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
    """Check valid JSON for duplicate keys and bad numbers. Raises JSONDecodeError for the first error."""
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
    """A text to be typed. `call` is what it is about, and `hold` the hold at that call (`RunRecord.hold`). `original`
    is the initial text, `tool` the definition of the call's tool."""

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
        """The hold that the text can be sent at: only that of its call. A message fits any hold."""
        return self.hold if self.call is not None else self.run.hold

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
        return "arguments.json" if self.kind == "arguments" else f"{self.kind}.txt"

    @property
    def too_large(self) -> str | None:
        """Why the text is too large to be edited here, if it is."""
        lines = self.original.split("\n")
        longest = max(map(len, lines))
        if len(lines) > LONGEST_SHOWN:
            return f"{len(lines):,} lines are too many to type here"
        return f"a line of {longest:,} characters is too long to type here" if longest > MAX_LINE_CHARS else None

    @property
    def why_gone(self) -> str | None:
        """Why the text can no longer be sent, if so."""
        if self.run.result is not None:
            return "the run is over"
        if not self.run.held:
            return "the run has continued"
        return None if self.meant_for == self.run.hold else "the run has moved on to another stop"

    @property
    def gone_problems(self) -> tuple[Problem, ...]:
        """The problem that the text can no longer be sent, and what to do with it."""
        text = f"{self.why_gone}: this was not sent, and stays here until Esc; F7 selects it, Ctrl+C copies it"
        return (_problem(None, text),)

    def problems(self, text: str) -> tuple[Problem, ...]:
        """Return the problems of a text. Errors prevent sending, warnings do not."""
        if self.kind == "message":
            return () if text.strip() else (_problem(None, "there is nothing to say yet"),)
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
        """Return the command for the run. Raises ValueError for arguments that are not a JSON object."""
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
    return replace(problem, line=None, message=f"line {problem.line}, {problem.message}") if problem.line else problem


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
