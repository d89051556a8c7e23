"""Findings on suites and tools that need no run, as GitLab Code Quality and as SARIF.

Each finding has a fingerprint that does not change when lines move."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from workbench.analysis.audit.contradictions import AuditFinding
from workbench.analysis.tool_lint import LintFinding, ToolName
from workbench.dataclasses import json_text
from workbench.numerals import counted
from workbench.show.views.audit import finding_text
from workbench.show.views.tools import SuiteTools, lint_text
from workbench.show.visible import after, one_line
from workbench.show.workflow_commands import ANNOTATIONS_MAX, command
from workbench.suite.files import is_outside, relative_to_repository, resolved
from workbench.suite.problems import Place, Problem, place_text
from workbench.suite.suite_file import SuiteFile
from workbench.version import __version__

Level = Literal["error", "warning", "note"]

_SARIF_MAX = 5_000
"""Maximum number of SARIF results that GitHub shows."""
_SEVERITIES: dict[Level, str] = {"error": "major", "warning": "minor", "note": "info"}
_CASE = re.compile(r"^cases\[(\d+)\]")


class StaticFinding(NamedTuple):
    """A finding at a line of a suite's file.

    `rule` names the kind of the finding. `subject` names the affected part in words that stay the same when lines or
    cases move."""

    rule: str
    level: Level
    message: str
    path: str
    line: int
    subject: str


def findings_of_file(file: SuiteFile, audited: Iterable[AuditFinding]) -> Iterator[StaticFinding]:
    """Yield the problems of a suite's file, and the findings of an audit."""
    path = relative_to_repository(str(file.path))
    for problem in file.problems:
        yield _problem_finding(problem, file, path)
    for found in audited:
        # The subject names a case by its id. The case's index changes when another case is inserted before it.
        place: Place = found.place
        level: Level = "note"
        if place[:1] == ("cases",):
            place = place[2:]
        where = place_text(place)
        line = file.line_of(found.place)
        if found.weight == "warning":
            level = "warning"
        subject = f"{found.case or ''} {where}"
        yield StaticFinding(_rule("audit", found.kind), level, finding_text(found), path, line, subject)


def _problem_finding(problem: Problem, file: SuiteFile, path: str) -> StaticFinding:
    # The subject names a case by its id, because its index changes when another case is inserted before it.
    def named(match: re.Match[str]) -> str:
        index = int(match[1])
        try:
            case = file.case_of(index, "")
        except IndexError:
            return "cases"
        return case.template or case.id

    message = after("", problem.place, ": ") + problem.message + after(" (", problem.hint, ")")
    subject = f"{_CASE.sub(named, problem.where)} {problem.message}"
    return StaticFinding(f"suite-{problem.severity}", problem.severity, message, path, problem.line or 1, subject)


def findings_of_tools(file: SuiteFile, suite: SuiteTools) -> Iterator[StaticFinding]:
    """Yield the lint findings on a suite's tools, and a finding for each server that did not list its tools."""
    path = relative_to_repository(suite.path)
    for source in suite.sources:
        if source.error is not None:
            line = _line_of(file, ToolName("", source.server))
            message = f"server {source.server}: {source.error}"
            yield StaticFinding("tools-server-error", "error", message, path, line, source.server or "")
    for finding in suite.findings or ():
        yield _lint_finding(finding, file, path)


def _lint_finding(finding: LintFinding, file: SuiteFile, path: str) -> StaticFinding:
    names = ", ".join(tool.name or f"server {tool.server}" for tool in finding.tools)
    message = ": ".join(filter(None, (names, lint_text(finding))))
    line = 1
    if finding.tools:
        line = _line_of(file, finding.tools[0])
    subject = " ".join(f"{tool.server or ''}/{tool.case or ''}/{tool.name}" for tool in finding.tools)
    return StaticFinding(
        _rule("tools", finding.rule), finding.severity, message, path, line, f"{subject} {finding.where}"
    )


def _line_of(file: SuiteFile, tool: ToolName) -> int:
    """Return the line that defines a tool in the suite, or the line of the tool's server."""
    if file.suite is None:
        return 1
    suite = file.suite
    place: Place = ()
    if tool.server is not None:
        for number, server in enumerate(suite.servers):
            if server.name == tool.server:
                place = ("servers", number)
                break
    elif tool.case is not None:
        for number, case in enumerate(suite.cases):
            for at, each in enumerate(case.tools):
                if (case.id, each.name) == (tool.case, tool.name):
                    place = ("cases", number, "tools", at)
    else:
        for number, each in enumerate(suite.tools):
            if each.name == tool.name:
                place = ("tools", number)
                break
    return file.line_of(place)


def _rule(group: str, kind: str) -> str:
    return f"{group}-{kind.replace(' ', '-')}"


def _with_fingerprints(findings: Iterable[StaticFinding]) -> Iterator[tuple[StaticFinding, str]]:
    """Yield each finding with its fingerprint. Equal findings are numbered, so that their fingerprints differ."""
    seen: Counter[tuple[str, ...]] = Counter()
    for finding in findings:
        identity = (finding.rule, finding.path, finding.subject)
        seen[identity] += 1
        # The line is omitted, so that edits above the text do not change the fingerprint.
        text = "\0".join((*identity, str(seen[identity])))
        # The text of a suite may hold lone surrogates, which UTF-8 cannot encode.
        yield finding, hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def code_quality(findings: Sequence[StaticFinding]) -> Iterator[str]:
    """Yield the pieces of a report for GitLab: a JSON list in the Code Quality format."""
    shown = []
    for finding, fingerprint in _with_fingerprints(findings):
        shown.append(
            {
                "description": one_line(finding.message),
                "check_name": finding.rule,
                "fingerprint": fingerprint,
                "severity": _SEVERITIES[finding.level],
                "location": {"path": one_line(_path_in_repository(finding.path)), "lines": {"begin": finding.line}},
            }
        )
    yield json_text(shown, indent=2) + "\n"


def sarif(findings: Sequence[StaticFinding]) -> Iterator[str]:
    """Yield the pieces of a SARIF 2.1.0 report. If findings exceed GitHub's limit, the mildest are omitted."""
    order: tuple[Level, ...] = ("error", "warning", "note")
    # Sorting is stable, so findings of equal level keep their order.
    shown = sorted(_with_fingerprints(findings), key=lambda each: order.index(each[0].level))[:_SARIF_MAX]
    rules = list(dict.fromkeys(finding.rule for finding, _ in shown))
    described = []
    for rule in rules:
        described.append({"id": rule, "shortDescription": {"text": rule.replace("-", " ")}})
    driver = {"name": "Workbench", "version": __version__, "rules": described}
    results = []
    for finding, fingerprint in shown:
        results.append(_sarif_result(finding, fingerprint, rules))
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    yield json_text(log, indent=2) + "\n"


def _sarif_result(finding: StaticFinding, fingerprint: str, rules: Sequence[str]) -> dict[str, Any]:
    artifact = _artifact(finding.path)
    place = {"artifactLocation": artifact, "region": {"startLine": finding.line}}
    return {
        "ruleId": finding.rule,
        "ruleIndex": rules.index(finding.rule),
        "level": finding.level,
        "message": {"text": one_line(finding.message)},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"workbench/v1": fingerprint},
    }


def _artifact(path: str) -> dict[str, str]:
    """Return the SARIF location of a file, relative to the repository if the file is inside it."""
    # Lazy import: few reports are SARIF.
    from urllib.parse import quote

    if is_outside(path):
        return {"uri": f"file://{quote(resolved(Path(path)).as_posix(), errors='replace')}"}
    return {"uri": quote(path, errors="replace"), "uriBaseId": "%SRCROOT%"}


def _path_in_repository(path: str) -> str:
    """Return a path without `/` or `../` at its start, because Code Quality requires paths inside the repository."""
    return re.sub(r"^(?:\.\./|/)+", "", path)


def annotations_of(findings: Sequence[StaticFinding]) -> Iterator[str]:
    """Yield up to nine annotations of each level for GitHub, then one annotation that counts the others."""
    for level, name in (("error", "error"), ("warning", "warning"), ("note", "notice")):
        found = [finding for finding in findings if finding.level == level]
        for each in found[:ANNOTATIONS_MAX]:
            yield command(name, one_line(each.message), title=each.rule, file=each.path, line=each.line)
        if (more := len(found) - ANNOTATIONS_MAX) > 0:
            yield command(name, f"and {counted(more, f'other {name}')}: the log has all of them", title="Workbench")
