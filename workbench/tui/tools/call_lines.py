"""A call by hand: its form, and the lines of form, request and answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from rich.cells import cell_len

from workbench.analysis.tool_lint import Parameter, parameters_of
from workbench.authoring.form.typed import CellError, read_value, shown_value
from workbench.checks.schemas import BrokenSchemaError, argument_problems
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.engine.server_calls import Executed
from workbench.numerals import duration_text
from workbench.show.glyphs import GLYPHS
from workbench.show.lazy_lines import DISPLAY_LIMIT, JsonLines, safe_lines
from workbench.show.spans import EMPTY, Line, Role, Span, cells, cut, cut_line, indented, padded, signed, wrap
from workbench.show.views.server_output import server_output_lines
from workbench.show.visible import one_line
from workbench.trajectory.events import JsonValue, ServerOutput, ToolDefinition
from workbench.trajectory.json_schema import allowed_values, type_words, types_of, with_definitions
from workbench.tui.kit.typed_text import value_line

NULL = "null"


class CallForm:
    """The parameters of a tool and their texts. A parameter without text is not given."""

    def __init__(self, tool: ToolDefinition) -> None:
        self.tool = tool
        fields = [field for field in parameters_of(tool.parameters) if field.depth == 0 and not field.item]
        self.fields: tuple[Parameter, ...] = tuple(sorted(fields, key=lambda field: not field.required))
        """The parameters, required ones first."""
        self._schemas = {field.name: with_definitions(field.schema, tool.parameters) for field in self.fields}
        self._texts: dict[str, str] = {}
        for field in self.fields:
            if field.required and "default" in field.schema:
                self._texts[field.name] = shown_value(field.schema["default"], self._schemas[field.name])
        self._read()

    def text(self, name: str) -> str:
        """Return the text of a parameter, empty if it is not given."""
        return self._texts.get(name, "")

    def type_of(self, name: str) -> str:
        """Describe the type of a parameter in a few words."""
        return type_words(self._schemas[name])

    def choices(self, name: str) -> tuple[str, ...]:
        """Return the values that the schema lists as texts, empty if it lists none."""
        schema = self._schemas[name]
        values = allowed_values(schema)
        if values is None and types_of(schema) - {"null"} == {"boolean"}:
            values = (True, False)
        return tuple(shown_value(value, schema) for value in values or ())

    def set(self, name: str, text: str) -> None:
        """Set the text of a parameter. Empty text (but not `""`) removes the argument."""
        if text.strip():
            self._texts[name] = text
        else:
            self._texts.pop(name, None)
        self._read()

    def choose_next(self, name: str, step: int) -> None:
        """Select the next choice; after the last one comes none."""
        choices = ("", *self.choices(name))
        at = choices.index(self.text(name)) if self.text(name) in choices else 0
        self.set(name, choices[(at + step) % len(choices)])

    def _read(self) -> None:
        self.arguments: dict[str, JsonValue] = {}
        """The arguments that would be sent: all valid ones."""
        self.problems: dict[str, str] = {}
        """The problems by parameter. The empty name has those of all arguments together."""
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
            """Why the arguments could not be checked."""
            return
        self.unchecked = None
        for problem in found:
            place, _, message = problem.partition(": ")
            name = self._field_at(place)
            if name or not self.problems:
                self.problems.setdefault(name, message if name else problem)

    def _value(self, name: str, text: str) -> JsonValue:
        schema = self._schemas[name]
        if text.strip() == NULL and "null" in types_of(schema) and NULL not in self.choices(name):
            return None
        return cast("JsonValue", read_value(text, schema))

    def _field_at(self, place: str) -> str:
        """Return the parameter that contains a place such as `args.to[0]`, the longest match. Empty if the place is
        about all arguments."""
        inside = place.removeprefix("args.")
        names = [field.name for field in self.fields if inside == field.name or _is_inside(inside, field.name)]
        return max(names, key=len, default="") if place != "args" else ""


def _is_inside(place: str, name: str) -> bool:
    return place.startswith((f"{name}.", f"{name}["))


def is_read_only(annotations: Mapping[str, JsonValue]) -> bool:
    """Return whether a server declares a tool as read-only."""
    return annotations.get("readOnlyHint") is True


MAX_NAME_CELLS = 24
MIN_VALUE_CELLS = 24
"""The cells of the column of values, where there is room for it and for the types."""
INDENT = 2


@dataclass(frozen=True)
class CallOutcome:
    """The state of the last call: none yet, `running`, answered, or an `error` without an answer. `output` is the end
    of what a server that failed wrote to standard error."""

    running: bool = False
    executed: Executed | None = None
    error: str | None = None
    output: ServerOutput | None = None


class CallPicture(NamedTuple):
    """The lines, and the parameter that each belongs to, if any. Values begin at the cell `value_at` of a parameter's
    first line. The answer begins at the line `answer`."""

    lines: list[Line]
    fields: list[str | None]
    value_at: int
    answer: int = 0


def call_picture(form: CallForm, outcome: CallOutcome, width: int, secrets: Secrets) -> CallPicture:
    """Return all lines of a call at a width."""
    outcome = secrets.redacted(outcome)
    lines: list[Line] = []
    fields: list[str | None] = []
    names = [field.name for field in form.fields]
    name_width = min(max((cell_len(one_line(name)) + 2 for name in names), default=0), MAX_NAME_CELLS, width // 3)
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
    choices = f"{GLYPHS.result}{GLYPHS.call} " if form.choices(name) else ""
    return f"{choices}{one_line(form.type_of(name))}"


def _value_room(form: CallForm, room: int) -> int:
    """Return how many cells of `room` values and types take, so that types stand near the values."""
    values = [cells(_value(form, field.name, field.schema.get("default"))) for field in form.fields]
    kinds = [cell_len(_kind(form, field.name)) for field in form.fields]
    return max(min(max([MIN_VALUE_CELLS, *values]) + 2 + max(kinds, default=0), room), 10)


def _field(form: CallForm, name: str, name_width: int, room: int, width: int) -> list[Line]:
    parameter = next(field for field in form.fields if field.name == name)
    label = padded(f"{one_line(name)}{'*' if parameter.required else ''}", name_width)
    line = _value(form, name, parameter.schema.get("default"))
    kind = _kind(form, name)
    kind = cut(kind, max(room // 2, room - cells(line) - 2))
    shown = cut_line(line, max(room - cell_len(kind) - 2, 6))
    gap = " " * max(room - cells(shown) - cell_len(kind), 1)
    line = (Span(" " * INDENT), Span(f"{label} ", "key"), *shown, Span(gap), Span(kind, "muted"))
    lines = [cut_line(line, width)]
    inner = INDENT + name_width + 1
    if (problem := form.problems.get(name)) is not None and form.text(name):
        lines += signed(GLYPHS.failed, problem, "failed", width, inner)
    elif parameter.description:
        text = cut(one_line(parameter.description.strip()[: 4 * width]), width - inner)
        lines.append((Span(" " * inner), Span(text, "comment")))
    return lines


def _value(form: CallForm, name: str, default: JsonValue) -> Line:
    """Return the value of a parameter: text has quotes if it could be mistaken for something else."""
    text = form.text(name)
    if text and name in form.problems:
        return (Span(one_line(text), "failed"),)
    if text:
        value = form.arguments.get(name)
        return value_line(one_line(shown_value(value) if isinstance(value, str) else text))
    if name in form.problems:
        return (Span(f"{GLYPHS.warned} {form.problems[name]}", "warned"),)
    return (Span("not given" if default is None else f"not given: {one_line(shown_value(default))}", "muted"),)


def _request(form: CallForm, width: int, secrets: Secrets) -> list[Line]:
    lines: list[Line] = [(Span(" Would be sent", "heading"),)]
    for problem in filter(None, (form.problems.get(""), form.unchecked)):
        lines += signed(GLYPHS.warned, problem, "warned", width, INDENT)
    return [*lines, *JsonLines(secrets.redacted(form.arguments), width, INDENT)]


def _answer(outcome: CallOutcome, width: int) -> list[Line]:
    if outcome.running:
        return [(Span(f" {GLYPHS.running} calling; x stops waiting", "running"),)]
    if outcome.error is not None:
        return [
            (Span(" No answer", "heading"),),
            *signed(GLYPHS.error, outcome.error, "error", width, INDENT),
            *(server_output_lines(outcome.output, width, INDENT) if outcome.output is not None else ()),
        ]
    if outcome.executed is None:
        return []
    answer, took = outcome.executed.answer, duration_text(outcome.executed.duration_ms)
    text = (
        Span(f" {GLYPHS.failed} Tool error", "failed")
        if answer.is_error
        else Span(f" {GLYPHS.passed} Answer", "passed")
    )
    body = _content(answer.content, width, "failed" if answer.is_error else "text")
    return [(text, Span(f"  {took}", "muted")), *body]


def _content(content: str, width: int, role: Role) -> Sequence[Line]:
    if not content:
        return [(Span(" " * INDENT), Span("an empty text", "muted"))]
    if content[:1] in ("{", "[") and len(content) <= DISPLAY_LIMIT:
        try:
            return JsonLines(json.loads(content), width, INDENT)
        except (ValueError, RecursionError):
            pass  # displayed as text
    rows = [row for text in safe_lines(content) for row in wrap(text, width - INDENT)]
    lines = indented([(Span(row, role),) for row in rows], INDENT)
    if len(content) > DISPLAY_LIMIT:
        left = f"{GLYPHS.running} {len(content) - DISPLAY_LIMIT:,} more characters; y copies all of them"
        lines.append((Span(" " * INDENT), Span(left, "comment")))
    return lines
