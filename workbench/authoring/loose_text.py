"""Reads a suite while some of its text is not TOML: the last valid version, and the errors in that text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from workbench.authoring.document import HEAD, Document
from workbench.suite.loading import SuiteFile, parse_suite
from workbench.suite.problems import Problem, written
from workbench.suite.splice import SpliceError, SuiteText


def with_loose(document: Document, sound: SuiteFile) -> SuiteFile:
    """Return a document with loose texts as a suite file. `sound` is the suite with their last valid versions."""
    parts = document.parts
    assert parts is not None
    kept = [problem for problem in sound.problems if not any(_is_of(problem, at) for at in document.loose)]
    if kept:
        ends = {at: _end(parts, at) for at in document.loose}
        grown = {at: text.rstrip("\n").count("\n") - _lines(parts, at) for at, text in document.loose.items()}
        kept = [_moved(problem, ends, grown) for problem in kept]
    problems = [_problem(document, parts, at, sound.path) for at in document.loose]
    ordered = sorted((*problems, *kept), key=lambda problem: problem.line or 0)
    return replace(sound, suite=None, text=document.text, problems=tuple(ordered))


def _problem(document: Document, parts: SuiteText, at: int, path: Path) -> Problem:
    """Return why a text is loose, with the line in the file."""
    text, first = document.loose[at], document.first_line(at) if at != HEAD else 1
    where = written(("cases", at)) if at != HEAD else ""
    if Document.of(text).parts is None:
        problem = parse_suite(text, path).errors[0]
        return replace(problem, line=(problem.line or 1) + first - 1, where=where)
    try:
        parts.with_head(text) if at == HEAD else parts.with_case_text(at, text)
    except SpliceError as error:
        return Problem(path, first, where, str(error))
    raise AssertionError("a text that is loose is no block")


def _is_of(problem: Problem, at: int) -> bool:
    if at == HEAD:
        return not problem.where.startswith("cases[")
    case = written(("cases", at))
    return problem.where == case or problem.where.startswith((f"{case}.", f"{case}["))


def _lines(parts: SuiteText, at: int) -> int:
    return (parts.between[0].rstrip() if at == HEAD else parts.blocks[at]).count("\n")


def _end(parts: SuiteText, at: int) -> int:
    """Return the last line of a block, from 1."""
    before = 1 if at == HEAD else Document.of_parts(parts, "").first_line(at)
    return before + _lines(parts, at)


def _moved(problem: Problem, ends: dict[int, int], grown: dict[int, int]) -> Problem:
    if problem.line is None:
        return problem
    return replace(problem, line=problem.line + sum(grown[at] for at, end in ends.items() if problem.line > end))
