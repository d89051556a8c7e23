"""A form's rows. Each has a place in the table of a case, or in the suite's head, and its cells."""

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
"""The kind of a cell: `lines` is text with line breaks, `words` a command, `key` the name of an argument or variable,
`one_key` which of several keys is written, `args` whether arguments matter. `check`, `expected`, `option`, `optional`,
`required` and `weight` are the parts of one check. `response` is the check of the answer if there is none yet."""

RowKind = Literal["field", "section", "item", "pair", "more"]
"""The kind of a row: a key with its value, a list or table, one element of a list, one entry of a table with free keys
(such as arguments), and the row that stands for hidden rows."""


@dataclass(frozen=True)
class Limits:
    """The bounds of a number."""

    least: float = -math.inf
    most: float = math.inf
    whole: bool = False


ANY_NUMBER = Limits()


@dataclass(frozen=True)
class Cell:
    """One editable value. `text` is the content that editing starts with. While the cell is not edited, `shown` is
    displayed if set, such as the default of an unwritten (`absent`) value."""

    kind: CellKind
    place: Place
    text: str = ""
    absent: bool = False
    shown: str = ""
    choices: tuple[str, ...] = ()
    empty_stays: bool = False
    """Whether empty text is written; otherwise it removes the key."""
    limits: Limits = ANY_NUMBER
    option: str = ""
    """The option of a check that this cell edits."""

    @property
    def is_gap(self) -> bool:
        """Whether the value is empty and must be filled in."""
        return not self.absent and not self.text and self.shown.endswith("?")


@dataclass(frozen=True)
class FormRow:
    """One row. `label_cells` and `widths` are the minimum widths of the label and the cells, which align rows."""

    kind: RowKind
    place: Place
    indent: int
    label: str
    cells: tuple[Cell, ...] = ()
    absent: bool = False
    """Whether nothing is written there. The row then shows the default, muted."""
    rare: bool = False
    """Whether the row is hidden as long as it is absent and only the usual keys are shown."""
    note: str = ""
    """Text after the cells, such as a count."""
    label_cells: int = 0
    widths: tuple[int, ...] = ()
    marks: tuple[str, ...] = ()
    """Reasons why the tool's schema refuses the content."""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class FormSource:
    """The data of a form: the table of a case with `at`, its place in the file, or the head of the file (`at` is
    empty).

    `header` is the head in both cases. `problems` are those of the file, `tools` the suite's known tools, `models` and
    `tags` the names in use. With `every_key`, rarely used keys are shown, too.
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
        """Return the tool that a call, a step or a mock names, if it is known."""
        name = call.get("tool") if isinstance(call, dict) else None
        return tool_named(self.tools, name) if isinstance(name, str) else None

    @property
    def is_case(self) -> bool:
        """Whether this is the form of a case, not of the suite."""
        return bool(self.at)

    @property
    def is_chain(self) -> bool:
        """Whether the case has steps instead of expectations."""
        return self.is_case and "steps" in self.table
