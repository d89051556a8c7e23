"""The audits of suites as rows: findings by case, then what no case covers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from workbench.analysis.audit.audit import Audit
from workbench.analysis.audit.unmeetable import AuditFinding
from workbench.dataclasses import dataclass
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Span, cut_line, plain, wrap
from workbench.show.views.audit import coverage_texts
from workbench.show.visible import one_line
from workbench.suite.problems import written
from workbench.suite.suite_file import SuiteFile

Target = tuple[Path, str | None]
"""The target of a row: a suite, and the id of a case or `None` for its settings."""


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One line and its target."""

    line: Line
    target: Target


@dataclass(frozen=True, slots=True)
class AuditedSuite:
    """A suite and its audit."""

    file: SuiteFile
    audit: Audit


def audit_rows(audited: Sequence[AuditedSuite], width: int) -> list[AuditRow]:
    """Return all rows, at most `width` cells wide, including suites without findings."""
    rows: list[AuditRow] = []
    for each in audited:
        if rows:
            rows.append(AuditRow(EMPTY, rows[-1].target))
        rows += _suite_rows(each, width)
    return rows


def finding_count(audited: Sequence[AuditedSuite]) -> int:
    """Return the total number of findings."""
    return sum(len(each.audit.findings) for each in audited)


def audit_text(audited: Sequence[AuditedSuite]) -> str:
    """Return everything as text, for copying."""
    return "\n".join(plain(row.line).rstrip() for row in audit_rows(audited, 120))


def _suite_rows(each: AuditedSuite, width: int) -> Iterator[AuditRow]:
    path, suite = each.file.path, each.file.suite
    name = suite.name if suite is not None else path.stem
    home: Target = (path, None)
    found = counted(len(each.audit.findings), "finding") if each.audit.findings else "nothing found"
    yield AuditRow(cut_line((Span(f" {one_line(name)} ", "strong"), Span(f" {found}", "muted")), width), home)
    names = {case.id: case.name for case in suite.cases} if suite is not None else {}
    for finding in each.audit.findings:
        yield from _finding_rows(finding, path, names, width)
    yield from _coverage_rows(each, home, width)


def _finding_rows(finding: AuditFinding, path: Path, names: Mapping[str, str], width: int) -> Iterator[AuditRow]:
    target: Target = (path, finding.case)
    sign = Span(f"   {GLYPHS.audit} ", "warned" if finding.weight == "warning" else "muted")
    about = one_line(names[finding.case]) if finding.case is not None else written(finding.place)
    kind = Span(f"  {finding.kind}", "warned" if finding.weight == "warning" else "muted")
    yield AuditRow(cut_line((sign, Span(about), kind), width), target)
    for text in wrap(one_line(finding.message), max(width - 7, 1)):
        yield AuditRow((Span(f"      {text}"),), target)
    if finding.hint:
        for text in wrap(one_line(finding.hint), max(width - 9, 1)):
            yield AuditRow((Span(f"        {text}", "muted"),), target)


def _coverage_rows(each: AuditedSuite, home: Target, width: int) -> Iterator[AuditRow]:
    for number, text in enumerate(coverage_texts(each.audit.coverage)):
        indent = 6 if number else 3
        for row in wrap(text, max(width - indent - 1, 1)):
            yield AuditRow((Span(" " * indent + row, "muted"),), home)
