"""What can stand in a cell, while it is edited."""

from __future__ import annotations

from workbench.tui.state.form.cells import kind_of
from workbench.tui.state.form.completions import Completion, complete
from workbench.tui.state.form.edits import schema_of
from workbench.tui.state.form.row import Cell, FormSource
from workbench.tui.state.form.schemas import arguments_of
from workbench.tui.state.form.tables import value_at

CHOSEN = frozenset({"choice", "check", "one_key", "args", "yes_no", "optional", "required"})
"""Cells that hold one of a few words."""


def suggestions(source: FormSource, cell: Cell, typed: str) -> tuple[Completion, ...]:
    """Completions of what was typed into a cell; all there are when nothing was."""
    key = cell.place[-1]
    match cell.kind:
        case "tool":
            is_mock = cell.place[:1] == ("mocks",) or "tool_calls" in cell.place
            return complete("tool" if is_mock else "expected tool", typed, tools=source.tools)
        case "key" if len(cell.place) > 1 and cell.place[-2] in ("args", "when"):
            table = value_at(source.table, cell.place[:-1])
            used = [name for name in table if name != key] if isinstance(table, dict) else []
            tool = source.tool(value_at(source.table, cell.place[:-2]))
            return complete("argument", typed, tool=tool, used=used)
        case "expected":
            kind = kind_of(value_at(source.table, cell.place))
            return complete("value", typed, schema=schema_of(source, cell.place), kind=kind)
        case "check":
            return complete("check", typed, schema=schema_of(source, cell.place))
        case "option":
            kind = kind_of(value_at(source.table, cell.place))
            return complete("option value", typed, kind=kind, option=cell.option, words=source.models)
        case "weight":
            return complete("weight", typed)
        case "yes_no" | "optional" | "required":
            return complete("word", typed, words=("yes", "no"))
        case "names" if key == "offer":
            return complete("tools", typed, tools=source.tools)
        case "names" if key == "forbidden_args":
            tool = source.tool(value_at(source.table, cell.place[:-1]))
            names = [argument.name for argument in arguments_of(tool)] if tool is not None else []
            return complete("words", typed, words=names)
        case "names":
            return complete("words", typed, words={"tags": source.tags, "models": source.models}.get(str(key), ()))
        case _:
            return complete("word", typed, words=cell.choices) if cell.choices else ()
