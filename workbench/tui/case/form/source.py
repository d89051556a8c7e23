"""The form of the selected row, and the document after a change of its table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from workbench.authoring.document import HEAD, Document
from workbench.authoring.form.row import FormSource
from workbench.authoring.known_tools import with_own_tools
from workbench.authoring.open_suite import OpenSuite
from workbench.suite.problems import Place, Problem
from workbench.suite.render import Table
from workbench.suite.rules import NO_CASES
from workbench.trajectory.messages import ToolDefinition
from workbench.tui.lines.prose import Message
from workbench.tui.lines.words import at_line

_CASE = re.compile(r"cases\[(\d+)\]")


def form_source(
    suite: OpenSuite, index: int, tools: tuple[ToolDefinition, ...] = (), models: Iterable[str] = ()
) -> FormSource | None:
    """Return the form of a case, or of the suite's settings (`HEAD`), `None` while its text is not TOML. `models` are
    additional known names."""
    document = suite.document
    if document.parts is None or index in document.loose or not _has(document, index) or _is_nothing(suite):
        return None
    at: Place = () if index == HEAD else ("cases", index)
    header = document.table(HEAD)
    written = header.get("models")
    known = chain(written if isinstance(written, list) else (), models)
    return FormSource(
        document.table(index),
        at,
        header,
        tuple(_in_form(problem) for problem in suite.problems_of(index)),
        tools if index == HEAD else with_own_tools(tools, document.table(index)),
        tuple(name for name in known if isinstance(name, str)),
        document.tags,
    )


def case_of_problem(problem: Problem | None) -> int:
    """Return the index of the case that a problem is about, `HEAD` for everything else."""
    match = _CASE.match(problem.where) if problem is not None else None
    return int(match[1]) if match else HEAD


def why_no_form(suite: OpenSuite, index: int) -> Message:
    """Return why there is no form: what is wrong with the text, and what to do."""
    problems = suite.problems_of(index) or suite.file.errors
    said = problems[0] if problems else None
    reasons: list[str] = [] if said is None else [at_line(said, "Line"), *filter(None, [said.hint])]
    if _is_nothing(suite):
        return tuple((reason, "error" if at == 0 else "muted") for at, reason in enumerate(reasons))
    what = "This file" if suite.document.parts is None else "What the suite says" if index == HEAD else "This case"
    return (
        (f"{what} is not TOML at the moment.", "strong"),
        ("", "text"),
        *((reason, "error" if at == 0 else "muted") for at, reason in enumerate(reasons)),
        ("", "text"),
        ("o  shows the TOML, where you can correct it", "text"),
    )


def with_table(document: Document, index: int, table: Table) -> Document:
    """Replace the table of a case, or of the suite's settings (`HEAD`). Raises SpliceError for values that TOML does
    not have."""
    if index != HEAD:
        return document.with_case(index, table)
    before = document.table(HEAD)
    for key in (*before, *(key for key in table if key not in before)):
        if key not in before or key not in table or before[key] is not table[key]:
            document = document.with_header(key, table.get(key))
    return document


def _in_form(problem: Problem) -> Problem:
    """Return a problem with a hint that fits the form."""
    return replace(problem, hint="n makes the first one") if problem.message == NO_CASES else problem


def _is_nothing(suite: OpenSuite) -> bool:
    """Return whether there is no editable suite: a missing or unreadable file, or an invalid recording."""
    return suite.is_gone or (suite.why_not_editable is not None and suite.file.suite is None)


def _has(document: Document, index: int) -> bool:
    return index == HEAD or index < len(document.cases)
