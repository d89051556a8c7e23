"""The rows of a form for `answers`: the replies to requests that a server sends to the user during a call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from workbench.authoring.form.call_rows import result_rows
from workbench.authoring.form.field_text import ABSENT, shown_name, shown_value
from workbench.authoring.form.row import (
    DETAIL,
    Cell,
    Field,
    FormRow,
    FormSource,
    field_row,
    heading,
    raw_row,
    section,
    tool_cell,
    tool_marks,
    unknown_rows,
)
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.suite.server_model import Answer, AnswerAction, AnsweredRequest

ANSWERED: tuple[str, ...] = get_args(AnsweredRequest)
_ACTIONS: tuple[str, ...] = get_args(AnswerAction)


def answers_section(source: FormSource) -> Iterator[FormRow]:
    yield from section(source, "answers", _answer_rows, is_rare=True)


def _answer_rows(source: FormSource, place: Place, answer: Table) -> Iterator[FormRow]:
    to = field_row(answer, place, Field("to", "choice", "to which request?", choices=ANSWERED))
    yield FormRow("item", place, 1, str(int(place[-1]) + 1), to.cells)
    indent = 1 + DETAIL
    yield _tool_row(source, place, answer, indent)
    yield from result_rows(place, answer, indent, is_rare=True, key="message")
    yield field_row(answer, place, Field("action", "choice", "accept", choices=_ACTIONS), indent)
    if answer.get("to") != "sampling" or "content" in answer:
        yield from _content_rows(answer, (*place, "content"), indent)
    if answer.get("to") != "elicitation" or "text" in answer:
        yield field_row(answer, place, Field("text", "lines", empty_stays=True), indent)
    yield from unknown_rows(answer, place, indent, tuple(Answer.model_fields))


def _tool_row(source: FormSource, place: Place, answer: Table, indent: int) -> FormRow:
    cell = tool_cell((*place, "tool"), answer.get("tool", ABSENT))
    if cell.absent:
        cell = replace(cell, shown="any tool")
    marks = tool_marks(source, answer)
    return FormRow("field", cell.place, indent, "tool", (cell,), absent=cell.absent, marks=marks)


def _content_rows(answer: Table, place: Place, indent: int) -> Iterator[FormRow]:
    content = answer.get("content", {})
    if not isinstance(content, dict):
        yield raw_row(place, indent, content)
        return
    yield heading(place, indent, content)
    for name, value in content.items():
        at = (*place, name)
        cells = (Cell("key", at, shown_name(name)), Cell("value", at, shown_value(value), empty_stays=True))
        yield FormRow("pair", at, indent + 2, "", cells)
