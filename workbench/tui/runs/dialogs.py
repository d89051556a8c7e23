"""The dialogs of running cases: trust, cost limits, repeats, and permission to execute a tool."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from workbench.config.secrets import Secrets
from workbench.engine.events import CostLimitReached
from workbench.limits import MAX_REPEATS
from workbench.numerals import cost_text, count_text, counted
from workbench.show.highlight import json_line
from workbench.show.spans import EMPTY, Line, Role, Span, hanging_paragraph, with_margin, wrap, wrap_line
from workbench.show.views.values import hints_in_words
from workbench.show.visible import model_label, one_line, visible
from workbench.suite.trust import SuiteNeeds
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.tui.kit.dialogs import Dialog, Option, keys_line
from workbench.tui.kit.fields import SafeInput
from workbench.tui.kit.questions import QuestionScreen
from workbench.tui.kit.strips import Bar
from workbench.tui.run_book.record import Question

ExecutionAnswer = Literal["call", "run", "batch", "no", "stop"]

_LABEL_WIDTH = 8


class ExecutionScreen(QuestionScreen[ExecutionAnswer]):
    """Asks for permission to execute a call.

    The user can say yes for this call, for the tool in this run, or for the tool in all runs of the batch. The user can
    also say no (the run ends in an error) or stop the run. Closes with `None` when the question is withdrawn. The keys
    to stop all runs and to quit work as usual."""

    TITLE_LINE = "A run wants to execute a tool for real"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "answer('stop')", "Stop the run", show=False),
        Binding("X", "app.stop_all", "Stop all runs", show=False),
        Binding("q", "app.quit", "Quit", show=False),
    ]
    MORE_KEYS = (("x", "stop"), ("X", "stop all"), ("q", "quit"))

    def __init__(self, question: Question, secrets: Secrets) -> None:
        super().__init__(
            lambda width: execution_lines(question, width, secrets),
            [
                ("call", Option("once", "this call only")),
                ("run", Option("this run", "this tool, until this run ends")),
                ("batch", Option("all runs", "this tool, in all runs of this batch")),
                ("no", Option("no", "the run ends as an error")),
            ],
            leaving="no",
            harmless=frozenset({"stop"}),
        )
        self.question = question


CostLimitAnswer = Literal["more", "all", "stop"]


class CostLimitScreen(QuestionScreen[CostLimitAnswer]):
    """Asks whether a batch may exceed its cost limit: by the same amount again, without a limit, or not at all.

    Closes with `None` when the question is withdrawn."""

    TITLE_LINE = "The cost limit is reached"

    def __init__(self, reached: CostLimitReached, remaining_runs: int) -> None:
        super().__init__(
            lambda width: cost_limit_lines(reached, remaining_runs, width),
            [
                ("more", Option("more", f"up to {cost_text(reached.limit_usd * 2)}")),
                ("all", Option("no limit", "make all runs, whatever they cost")),
                ("stop", Option("stop", "make no further run; the batch can be resumed")),
            ],
            leaving="stop",
        )
        self.reached = reached


def cost_limit_lines(reached: CostLimitReached, remaining_runs: int, width: int) -> list[Line]:
    """Return the text of the question: the cost so far, and the number of runs left."""
    spent = f"{cost_text(reached.spent_usd)} of {cost_text(reached.limit_usd)} is spent, judges included."
    waiting = f"{counted(remaining_runs, 'run')} left: the next one would probably go beyond the limit."
    return [EMPTY, *with_margin(spent, width, "strong"), *with_margin(waiting, width), EMPTY]


class ManualExecutionScreen(QuestionScreen[Literal["yes", "no"]]):
    """Asks for confirmation before the user executes a tool that may change something."""

    TITLE_LINE = "Execute this tool for real?"

    def __init__(self, tool: ToolDefinition, arguments: Mapping[str, JsonValue], secrets: Secrets) -> None:
        super().__init__(
            lambda width: hand_lines(tool, arguments, width, secrets),
            [
                ("yes", Option("once", "exactly this call")),
                ("no", Option("no", "nothing is called")),
            ],
            leaving="no",
        )


def execution_lines(question: Question, width: int, secrets: Secrets) -> list[Line]:
    """Return the lines that show the call that a run wants to execute, with its arguments but without secrets."""
    run, call, tool = question.run, question.permission.call, question.permission.tool
    room = max(width - _LABEL_WIDTH - 4, 10)
    lines: list[Line] = [EMPTY]
    repeat = ""
    if run.repeat:
        repeat = f" #{run.repeat + 1}"
    lines += _labelled("case", f"{run.path.stem} › {run.case_name}{repeat}, on {model_label(run.model)}", room, "text")
    return [*lines, *_call_lines(tool, call.arguments, width, secrets)]


def hand_lines(tool: ToolDefinition, arguments: Mapping[str, JsonValue], width: int, secrets: Secrets) -> list[Line]:
    """Return the lines that show the call that the user wants to execute, with its arguments but without secrets."""
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
        # The further lines of a long value are indented by two more cells, so the nesting stays visible.
        hang = min(len(text) - len(text.lstrip()) + 2, width // 2)
        for row in wrap_line(json_line(visible(text)), max(width - 4, 10), hang):
            lines.append((Span("  "), *row))
    return [*lines, EMPTY]


def _labelled(label: str, text: str, max_width: int, role: Role) -> list[Line]:
    return hanging_paragraph((Span(f"  {label:<{_LABEL_WIDTH}}", "muted"),), text, role, max_width)


_DEFAULT_REPEATS = "3"


class RepeatsScreen(Dialog[int]):
    """Asks how often to run a `subject`: a case or a number of cases. The answer is 1 to `MAX_REPEATS`."""

    TITLE_LINE: ClassVar[str] = "Run several times"
    DEFAULT_CSS = """
    RepeatsScreen > Vertical { width: 60; }
    RepeatsScreen Input { border: none; height: 1; padding: 0 1; background: $background; }
    """

    def __init__(self, subject: str) -> None:
        super().__init__(keys_line(("Enter", "run"), ("Esc", "leave")))
        self._subject = subject

    def body(self) -> ComposeResult:
        yield Bar("asked")
        yield SafeInput(_DEFAULT_REPEATS, widget_id="times", whole_number=True, max_length=4)

    def on_mount(self) -> None:
        self.query_one("#asked", Bar).set_line(
            lambda _: (Span(f" How often to run {one_line(self._subject)}, on each model?"),)
        )
        self.set_focus(self.query_one("#times"))

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        text = event.value.strip()
        if text.isdecimal() and 1 <= int(text) <= MAX_REPEATS:
            self.dismiss(int(text))
        else:
            self.show_notice(f"A number from 1 to {count_text(MAX_REPEATS)}")


TrustAnswer = Literal["once", "always", "mocks", "no"]

_ANSWERS: tuple[tuple[TrustAnswer, Option], ...] = (
    ("once", Option("once", "until this program ends")),
    ("always", Option("always", "until this changes")),
    ("mocks", Option("mocks", "start nothing: the tools as last listed, answered by mocks")),
)


class TrustScreen(QuestionScreen[TrustAnswer]):
    """Asks whether to trust a suite: once, always, or not. With `mocks`, the user may also let mocks answer the tools.

    `allowed` lists what a trusted suite may do, one item per line. `no_label` is the text of the option "no"."""

    def __init__(
        self,
        path: Path,
        needs: SuiteNeeds,
        allowed: Sequence[str],
        *,
        mocks: bool = False,
        no_label: str = "do not run this suite",
    ) -> None:
        # The title depends on the suite. The class variable is only the default.
        self.TITLE_LINE = _title(needs)  # type: ignore[misc]
        options = [answer for answer in _ANSWERS if mocks or answer[0] != "mocks"]
        harmless = frozenset[TrustAnswer]()
        if mocks:
            harmless = frozenset({"mocks"})
        super().__init__(
            lambda width: trust_lines(path, allowed, width),
            [*options, ("no", Option("no", no_label))],
            leaving=no_label.removesuffix(" this suite"),
            harmless=harmless,
        )


def _title(needs: SuiteNeeds) -> str:
    if needs.commands or needs.modules or needs.python:
        return "This suite wants to start something"
    if needs.urls:
        return "This suite wants to reach a server"
    if needs.models:
        if len(needs.models) == 1:
            return "This suite wants to ask a model"
        return "This suite wants to ask models"
    if needs.calls:
        return "This suite wants to call tools itself"
    if needs.answers:
        return "This suite wants to answer servers"
    return "This suite wants to read the environment"


def trust_lines(path: Path, allowed: Sequence[str], width: int) -> list[Line]:
    room = max(width - 4, 10)
    lines: list[Line] = [EMPTY]
    lines += with_margin(str(path.absolute()), width, "strong")
    lines += with_margin(f"Trusting {one_line(path.name)} allows it, on this machine, to:", width)
    lines.append(EMPTY)
    for need in allowed:
        for at, row in enumerate(wrap(one_line(need), room - 2)):
            mark = "    "
            if at == 0:
                mark = "  - "
            lines.append((Span(mark, "warned"), Span(row, "warned")))
    lines.append(EMPTY)
    return lines
