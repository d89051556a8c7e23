"""What a form is made of: rows with a place in a case's table (or the suite's head), each with its cells."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from workbench.authoring.form.argument_schemas import tool_named
from workbench.suite.problems import Place, Problem
from workbench.suite.render import Table
from workbench.trajectory.messages import ToolDefinition

CellKind = Literal[
    "text",
    "lines",
    "number",
    "yes_no",
    "choice",
    "names",
    "words",
    "value",
    "json",
    "tool",
    "key",
    "one_key",
    "check",
    "expected",
    "option",
    "optional",
    "required",
    "weight",
    "args",
    "response",
]
"""What a cell holds: `lines` is text with line breaks, `words` a command, `key` the name of an argument or variable,
`one_key` which of several keys is written, `args` whether arguments matter, and `check`, `expected`, `option`,
`optional`, `required` and `weight` are the parts of one check; `response` is the check of the answer that is not there
yet."""

RowKind = Literal["field", "section", "item", "pair", "more"]
"""A key with its value, a list or table of things, one element of a list, one entry of a table whose keys are free
(arguments), and the row that stands for what is not shown."""


@dataclass(frozen=True)
class Limits:
    """What a number must be."""

    least: float = -math.inf
    most: float = math.inf
    whole: bool = False


ANY_NUMBER = Limits()


@dataclass(frozen=True)
class Cell:
    """One thing to edit. `text` is what a field begins with; `shown` stands there instead while it is not edited, such
    as the default of what is not written (`absent`)."""

    kind: CellKind
    place: Place
    text: str = ""
    absent: bool = False
    shown: str = ""
    choices: tuple[str, ...] = ()
    empty_stays: bool = False
    """Whether a text of no characters is written, rather than the key taken away."""
    limits: Limits = ANY_NUMBER
    """What a number must be."""
    option: str = ""
    """The option of a check that this is."""

    @property
    def is_gap(self) -> bool:
        """Whether it is written as empty, and a value is asked for."""
        return not self.absent and not self.text and self.shown.endswith("?")


@dataclass(frozen=True)
class FormRow:
    """One row. `label_cells` and `widths` are the least widths of the label and the cells, so that rows align."""

    kind: RowKind
    place: Place
    indent: int
    label: str
    cells: tuple[Cell, ...] = ()
    absent: bool = False
    """Whether nothing is written there: it then shows what holds instead, muted."""
    rare: bool = False
    """Whether it is hidden while nothing is written there and only the usual keys are shown."""
    note: str = ""
    """Said behind the cells: how many there are, say."""
    label_cells: int = 0
    widths: tuple[int, ...] = ()
    marks: tuple[str, ...] = ()
    """What the tool's schema refuses about it."""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class FormSource:
    """What a form shows: the table of a case, `at` its place in the file, or the head of the file (`at` is empty).

    `header` is the head in both cases; `problems` are those of the file, `tools` the suite's as far as they are known;
    `models` and `tags` are names that others use. `every_key` shows keys, too, that are seldom written.
    """

    table: Table
    at: Place = ()
    header: Table = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    models: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    every_key: bool = False

    def tool(self, call: object) -> ToolDefinition | None:
        """The tool that a call, a step or a mock names."""
        name = call.get("tool") if isinstance(call, dict) else None
        return tool_named(self.tools, name) if isinstance(name, str) else None

    @property
    def is_case(self) -> bool:
        """Whether it is a case's form rather than the suite's."""
        return bool(self.at)

    @property
    def is_chain(self) -> bool:
        """Whether the case has steps instead of expectations."""
        return self.is_case and "steps" in self.table
