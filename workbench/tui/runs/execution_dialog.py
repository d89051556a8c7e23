"""The dialogs before a tool that may change something is executed, with the exact call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar, Literal

from textual.binding import Binding, BindingType

from workbench.config.secrets import Secrets
from workbench.reports.visible import one_line, visible
from workbench.trajectory.messages import JsonValue, ToolDefinition
from workbench.tui.kit.asking import AskScreen
from workbench.tui.kit.dialogs import Option
from workbench.tui.lines.highlight import json_line
from workbench.tui.lines.spans import EMPTY, Line, Role, Span, wrap, wrap_line
from workbench.tui.lines.words import hints_in_words, model_label
from workbench.tui.run_book.record import Question

ExecutionAnswer = Literal["yes", "no", "stop"]

_LABEL_WIDTH = 8


class ExecutionScreen(AskScreen[ExecutionAnswer]):
    """Asks for permission: yes for this tool and run, no (the run ends as an error), or stop the run. Closes with
    `None` when the question is withdrawn. The keys for stopping all runs and quitting work as usual."""

    TITLE_LINE = "A run wants to execute a tool for real"
    REST_S = 0.4
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "answer('stop')", show=False),
        Binding("X", "app.stop_all", show=False),
        Binding("q", "app.quit", show=False),
    ]
    MORE_KEYS = (("x", "stop"), ("X", "stop all"), ("q", "quit"))

    def __init__(self, question: Question, secrets: Secrets) -> None:
        super().__init__(
            lambda width: execution_lines(question, width, secrets),
            [
                ("yes", Option("once", "for this tool, until this run ends", key="o")),
                ("no", Option("no", "the run ends as an error", key="n")),
            ],
            leaving="no",
            harmless=frozenset({"stop"}),
        )
        self.question = question


class HandExecutionScreen(AskScreen[Literal["yes", "no"]]):
    """Asks before calling a tool by hand that may change something."""

    TITLE_LINE = "Execute this tool for real?"

    def __init__(self, tool: ToolDefinition, arguments: Mapping[str, JsonValue], secrets: Secrets) -> None:
        super().__init__(
            lambda width: hand_lines(tool, arguments, width, secrets),
            [
                ("yes", Option("once", "exactly this call", key="o")),
                ("no", Option("no", "nothing is called", key="n")),
            ],
            leaving="no",
        )


def execution_lines(question: Question, width: int, secrets: Secrets) -> list[Line]:
    """Return the exact call, with secrets replaced."""
    run, call, tool = question.run, question.asked.call, question.asked.tool
    room = max(width - _LABEL_WIDTH - 4, 10)
    lines: list[Line] = [EMPTY]
    repeat = f" #{run.repeat + 1}" if run.repeat else ""
    lines += _labelled("case", f"{run.path.stem} › {run.case_name}{repeat}, on {model_label(run.model)}", room, "text")
    return [*lines, *_call_lines(tool, call.arguments, width, secrets)]


def hand_lines(tool: ToolDefinition, arguments: Mapping[str, JsonValue], width: int, secrets: Secrets) -> list[Line]:
    """Return the exact call by hand, with secrets replaced."""
    return [EMPTY, *_call_lines(tool, arguments, width, secrets)]


def _call_lines(tool: ToolDefinition, arguments: Mapping[str, JsonValue], width: int, secrets: Secrets) -> list[Line]:
    room = max(width - _LABEL_WIDTH - 4, 10)
    tool = secrets.redacted(tool)
    lines = _labelled("server", tool.server or "", room, "strong")
    lines += _labelled("tool", tool.name, room, "warned")
    lines += _labelled("says", tool.description or "nothing about itself", room, "muted")
    lines += _labelled("marked", hints_in_words(tool.annotations) or "not at all, so it may do anything", room, "text")
    lines.append(EMPTY)
    if not arguments:
        return [*lines, (Span("  without arguments", "muted"),), EMPTY]
    written = json.dumps(secrets.redacted(dict(arguments)), ensure_ascii=False, indent=2)
    for text in written.split("\n"):
        hang = min(len(text) - len(text.lstrip()) + 2, width // 2)
        lines += [(Span("  "), *row) for row in wrap_line(json_line(visible(text)), max(width - 4, 10), hang)]
    return [*lines, EMPTY]


def _labelled(label: str, text: str, room: int, role: Role) -> list[Line]:
    rows = wrap(one_line(text), room)
    lead = f"  {label:<{_LABEL_WIDTH}}"
    return [(Span(lead if at == 0 else " " * len(lead), "muted"), Span(row, role)) for at, row in enumerate(rows)]
