"""The rows of the audit screen: their targets and widths."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.analysis.audit.audit import audit_suite
from workbench.show.spans import cells
from workbench.suite.suite_file import parse_suite
from workbench.tui.audit.screen import AuditedSuite, audit_rows, audit_text, finding_count

SUITE = """\
format = 1
name = "Weak"
tools = [{ name = "look" }, { name = "leave" }]
mocks = [{ tool = "look", result = 1 }, { tool = "look", result = 2 }]
cases = [{ name = "Only forbids", user = "u", disallowed = [{ tool = "look" }] }]
"""
FILE = parse_suite(SUITE, Path("weak.toml"))


def audited() -> list[AuditedSuite]:
    assert FILE.suite is not None
    return [AuditedSuite(FILE, audit_suite(FILE.suite, {}))]


def test_a_finding_leads_to_its_case_and_one_of_the_suite_to_the_suite() -> None:
    targets = {row.target for row in audit_rows(audited(), 80)}
    assert targets == {(Path("weak.toml"), None), (Path("weak.toml"), "only-forbids")}
    assert finding_count(audited()) == 2


@pytest.mark.parametrize("width", [12, 40, 80, 160])
def test_no_row_is_wider_than_there_is_room(width: int) -> None:
    assert max(cells(row.line) for row in audit_rows(audited() * 2, width)) <= width


def test_the_text_says_what_is_not_covered() -> None:
    assert "no case covers these tools: leave" in audit_text(audited())
