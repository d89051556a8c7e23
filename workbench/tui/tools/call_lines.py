"""A call by hand as lines: the form, the request and the answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len

from workbench.authoring.form.typed import shown_value
from workbench.config.secrets import Secrets
from workbench.reports.visible import one_line
from workbench.tools.by_hand import Executed
from workbench.trajectory.messages import JsonValue
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.growing_text import DISPLAY_LIMIT, safe_lines
from workbench.tui.lines.json_lines import JsonLines
from workbench.tui.lines.prose import indented, signed
from workbench.tui.lines.spans import EMPTY, Line, Role, Span, cut, cut_line, padded, wrap
from workbench.tui.lines.words import duration
from workbench.tui.tools.call_form import CallForm

LONGEST_NAME = 24
INDENT = 2


@dataclass(frozen=True)
class CallOutcome:
    """The state of the last call: none yet, `running`, answered, or an `error` without an answer."""

    running: bool = False
    executed: Executed | None = None
    error: str | None = None


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
    name_width = min(max((cell_len(one_line(name)) + 2 for name in names), default=0), LONGEST_NAME, width // 3)
    for name in names:
        rows = _field(form, name, name_width, width)
        lines += rows
        fields += [name] * len(rows)
    if not names:
        lines.append((Span(" " * INDENT), Span("This tool takes no arguments.", "muted")))
    lines += [EMPTY, *_request(form, width, secrets)]
    answer = len(lines) + 1
    lines += [EMPTY, *_answer(outcome, width)]
    return CallPicture(lines, [*fields, *[None] * (len(lines) - len(fields))], INDENT + name_width + 1, answer)


def _field(form: CallForm, name: str, name_width: int, width: int) -> list[Line]:
    parameter = next(field for field in form.fields if field.name == name)
    label = padded(f"{one_line(name)}{'*' if parameter.required else ''}", name_width)
    value, role = _value(form, name, parameter.schema.get("default"))
    choices = f"{GLYPHS.result}{GLYPHS.call} " if form.choices(name) else ""
    kind = f"{choices}{one_line(form.type_of(name))}"
    room = max(width - INDENT - name_width - 1, 10)
    kind = cut(kind, max(room // 2, room - cell_len(value) - 2))
    shown = cut(value, max(room - cell_len(kind) - 2, 6))
    gap = " " * max(room - cell_len(shown) - cell_len(kind), 1)
    line: Line = (Span(" " * INDENT), Span(f"{label} ", "key"), Span(shown, role), Span(gap), Span(kind, "muted"))
    lines = [cut_line(line, width)]
    inner = INDENT + name_width + 1
    if (problem := form.problems.get(name)) is not None and form.text(name):
        lines += signed(GLYPHS.failed, one_line(problem), "failed", width, inner)
    elif parameter.description:
        said = cut(one_line(parameter.description.strip()[: 4 * width]), width - inner)
        lines.append((Span(" " * inner), Span(said, "comment")))
    return lines


def _value(form: CallForm, name: str, default: JsonValue) -> tuple[str, Role]:
    text = form.text(name)
    if text:
        return one_line(text), "failed" if name in form.problems else "string"
    if name in form.problems:
        return f"{GLYPHS.warned} {form.problems[name]}", "warned"
    return ("not given" if default is None else f"not given: {one_line(shown_value(default))}"), "muted"


def _request(form: CallForm, width: int, secrets: Secrets) -> list[Line]:
    lines: list[Line] = [(Span(" Would be sent", "heading"),)]
    for problem in filter(None, (form.problems.get(""), form.unchecked)):
        lines += signed(GLYPHS.warned, one_line(problem), "warned", width, INDENT)
    return [*lines, *JsonLines(secrets.redacted(form.arguments), width, INDENT)]


def _answer(outcome: CallOutcome, width: int) -> list[Line]:
    if outcome.running:
        return [(Span(f" {GLYPHS.running} calling; x stops waiting", "running"),)]
    if outcome.error is not None:
        return [
            (Span(" No answer", "heading"),),
            *signed(GLYPHS.error, one_line(outcome.error), "error", width, INDENT),
        ]
    if outcome.executed is None:
        return []
    answer, took = outcome.executed.answer, duration(outcome.executed.duration_ms)
    said = (
        Span(f" {GLYPHS.failed} Tool error", "failed")
        if answer.is_error
        else Span(f" {GLYPHS.passed} Answer", "passed")
    )
    body = _content(answer.content, width, "failed" if answer.is_error else "text")
    return [(said, Span(f"  {took}", "muted")), *body]


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
