"""Adds what in a suite can never hold, or expects nothing, to the problems of its file: shown before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from workbench.analysis.audit.expectations import audit_calls
from workbench.analysis.audit.finding import AuditKind
from workbench.analysis.audit.literal_tables import literal_tables
from workbench.analysis.audit.tool_table import ToolTable
from workbench.checks.check import Checks
from workbench.suite.loading import SuiteFile, with_findings
from workbench.suite.model import Case, Mock, Suite
from workbench.suite.problems import Finding, Place, warning
from workbench.suite.settings import settings_of
from workbench.tools.listings import Listings

NEVER_MET: frozenset[AuditKind] = frozenset({"never holds", "refused value", "unknown argument"})
"""Findings of an audit that say by themselves why no run can pass."""


def with_unmeetable(file: SuiteFile, listings: Listings) -> SuiteFile:
    """Return a file with a problem for each expectation that the schemas of known tools rule out, for each table that
    was probably meant as a check, and for each case that expects nothing. `listings` are what servers last listed."""
    suite = file.suite
    if suite is None:
        return file
    file = with_findings(file, unmeetable(suite, ToolTable.of(suite, listings.of(suite, file.path))))
    return replace(file, suite=None) if file.errors else file


def unmeetable(suite: Suite, table: ToolTable) -> Iterator[Finding]:
    """Yield the findings that `with_unmeetable` adds."""
    yield from _of_mocks(suite.mocks, ("mocks",), table.of_cases(suite.cases))
    for index, case in enumerate(suite.cases):
        yield from _of_case(suite, case, ("cases", index), table.of_cases([case]))


def _of_case(suite: Suite, case: Case, place: Place, table: ToolTable) -> Iterator[Finding]:
    if case.expects_nothing:
        hint = "write `ordered`, `expect_no_calls = true` or `response`; `expect_nothing_yet = true` marks a draft"
        yield warning(place, "expects nothing: no run of this case can show a mistake", hint)
    tables: list[Finding] = []
    for at, call in case.written_calls():
        tables += _of_checks(call.args, call.tool, (*place, *at, "args"), table)
    # Where invalid arguments fail no run, a value that the schema refuses can still meet the expectation.
    can_be_met = settings_of(suite, case).grading.invalid_arguments != "fail"
    yield from map(_as_warning, tables) if can_be_met else tables
    yield from _of_mocks(case.mocks, (*place, "mocks"), table)
    for found in audit_calls(case, place, table):
        is_explained = any(each.place[: len(found.place)] == found.place for each in tables)
        if found.kind in NEVER_MET and not is_explained:
            yield warning(found.place, found.message, found.hint)


def _of_mocks(mocks: Sequence[Mock], place: Place, table: ToolTable) -> Iterator[Finding]:
    """Yield what is found in the conditions of mocks: warnings, because other calls than valid ones may meet them."""
    for number, mock in enumerate(mocks):
        yield from map(_as_warning, _of_checks(mock.when, mock.tool, (*place, number, "when"), table))


def _of_checks(checks: Checks | None, tool: str | None, place: Place, table: ToolTable) -> Iterator[Finding]:
    definition = table.find(tool) if tool is not None else None
    for name, check in (checks or {}).items():
        yield from literal_tables(check, name, definition, (*place, name))


def _as_warning(found: Finding) -> Finding:
    return replace(found, severity="warning")
