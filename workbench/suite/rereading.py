"""Reads a suite again after an edit: only new or changed cases are read, the others are reused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import accumulate

from workbench.dataclasses import dataclass
from workbench.suite.advice import unknown_tags
from workbench.suite.loading import SuiteFile, parse_suite
from workbench.suite.model import Case, derived_id
from workbench.suite.problems import Problem
from workbench.suite.render import Table
from workbench.suite.splice import SuiteText

MAX_FRESH = 8
"""With more cases than this to read, the whole file is read."""

_CASE = re.compile(r"cases\[(\d+)\]")


@dataclass(frozen=True)
class _Reused:
    """How two texts correspond: for each case now, the earlier one it equals, or `None`."""

    cases: tuple[int | None, ...]

    @property
    def fresh(self) -> tuple[int, ...]:
        return tuple(at for at, old in enumerate(self.cases) if old is None)


def reread(file: SuiteFile, before: SuiteText, now: SuiteText) -> SuiteFile | None:
    """Returns the suite as `parse_suite` reads the text of `now`, where `file` is the result for the text of `before`;
    `None` when only reading the whole text can tell."""
    reused = _reused(before, now)
    if reused is None or any(map(_is_of_several, file.problems)):
        return None
    fresh = reused.fresh
    if not _ids_differ(file, now, reused):
        return None
    alone, found = _alone(file, now, fresh)
    of_fresh = [problem for problem in found if problem.where.startswith("cases[")]
    if any(map(_is_of_several, found)):
        return None
    if fresh and alone is None and not any(problem.severity == "error" for problem in of_fresh):
        return None
    problems = sorted((*_moved(file.problems, before, now, reused), *of_fresh), key=lambda problem: problem.line or 0)
    suite = None
    if not any(problem.severity == "error" for problem in problems):
        if file.suite is None:
            return None
        cases = list(alone or ())
        of_now = [file.suite.cases[old] if old is not None else cases.pop(0) for old in reused.cases]
        suite = file.suite.model_copy(update={"cases": tuple(of_now)})
        if list(unknown_tags(suite)) != list(unknown_tags(file.suite)):
            return None
    elif now.header.get("aggregates"):
        return None
    digest = sha256(now.text.encode("utf-8", errors="surrogatepass")).hexdigest()
    return SuiteFile(file.path, now.text, digest, suite, tuple(problems))


def _reused(before: SuiteText, now: SuiteText) -> _Reused | None:
    """Returns `None` where more than cases has changed, or too many of them."""
    if not (before.in_blocks and now.in_blocks and before.blocks and now.blocks) or before.header is not now.header:
        return None
    if not now.header:
        return None  # the missing key outside the cases is then reported at the first case
    if before.between != now.between:
        # Whatever is between cases may have moved: only blank lines certainly do not matter.
        if before.between[0].rstrip() != now.between[0].rstrip():
            return None
        if any(gap.strip() for gap in (*before.between[1:], *now.between[1:])):
            return None
    places = {id(block): at for at, block in enumerate(before.blocks)}
    if len(places) < len(before.blocks):
        return None
    cases = tuple(places.get(id(block)) for block in now.blocks)
    if cases.count(None) > MAX_FRESH or len(set(cases) - {None}) + cases.count(None) < len(cases):
        return None
    return _Reused(cases)


def _ids_differ(file: SuiteFile, now: SuiteText, reused: _Reused) -> bool:
    """Returns whether no two cases have the same id; those that were reused differ among themselves."""
    fresh = [_id(now.cases[at]) for at in reused.fresh]
    if not fresh:
        return True
    if file.suite is not None:
        known = file.suite.cases
        others: set[object] = {known[old].id for old in reused.cases if old is not None}
    else:
        others = {_id(now.cases[at]) for at, old in enumerate(reused.cases) if old is not None}
    return len(set(fresh)) == len(fresh) and not others & set(fresh)


def _is_of_several(problem: Problem) -> bool:
    """Returns whether a problem involves several cases, or a case and a place outside it."""
    return _CASE.search(problem.message) is not None


def _id(case: Table) -> object:
    name, written = case.get("name"), case.get("id")
    if isinstance(written, str):
        return written
    return derived_id(name) if isinstance(name, str) else id(case)


def _alone(
    file: SuiteFile, now: SuiteText, fresh: Sequence[int]
) -> tuple[tuple[Case, ...] | None, tuple[Problem, ...]]:
    """Returns some cases read together with everything outside the cases, and the problems with their places in the
    whole text."""
    if not fresh:
        return (), ()
    wanted = set(fresh)
    pieces: list[str] = []
    shifts: list[int] = []
    lines = lines_alone = 0
    for at, gap in enumerate(now.between):
        if gap.strip():
            pieces.append(gap)
            lines_alone += gap.count("\n")
        lines += gap.count("\n")
        if at == len(now.blocks):
            break
        if at in wanted:
            if pieces and not pieces[-1].endswith("\n"):
                pieces.append("\n")
                lines_alone += 1
            pieces.append(now.blocks[at])
            shifts.append(lines - lines_alone)
            lines_alone += now.blocks[at].count("\n")
        lines += now.blocks[at].count("\n")
    read = parse_suite("".join(pieces), file.path)
    problems = []
    for problem in read.problems:
        which = _CASE.match(problem.where)
        if which is not None:
            number = int(which[1])
            where = f"cases[{fresh[number]}]{problem.where[which.end() :]}"
            problem = replace(_shifted(problem, shifts[number]), where=where)
        problems.append(problem)
    return read.suite.cases if read.suite is not None else None, tuple(problems)


def _moved(problems: Sequence[Problem], before: SuiteText, now: SuiteText, reused: _Reused) -> list[Problem]:
    """Returns the problems that remain, with their present lines and indices."""
    if not problems:
        return []
    starts_before, starts_now = _starts(before), _starts(now)
    now_at = {old: at for at, old in enumerate(reused.cases) if old is not None}
    moved: list[Problem] = []
    for problem in problems:
        which = _CASE.match(problem.where)
        if which is None:
            moved.append(_shifted(problem, _shift_outside(problem.line, starts_before, starts_now)))
        elif (at := now_at.get(int(which[1]))) is not None:
            old = int(which[1])
            shift = starts_now[2 * at + 1] - starts_before[2 * old + 1]
            moved.append(replace(_shifted(problem, shift), where=f"cases[{at}]{problem.where[which.end() :]}"))
    return moved


def _starts(text: SuiteText) -> list[int]:
    """Returns how many lines end before each piece: the text before the first case, that case, the text behind it, …"""
    counts = []
    for gap, block in zip(text.between, text.blocks, strict=False):
        counts += [gap.count("\n"), block.count("\n")]
    return [0, *accumulate(counts)]


def _shift_outside(line: int | None, before: Sequence[int], now: Sequence[int]) -> int:
    """Returns by how much a line between cases has moved. Where anything is there, the pieces are the same."""
    if line is None or len(before) != len(now):
        return 0
    # The last gap that begins on an earlier line, or on this one.
    gap = max((at for at in range(0, len(before), 2) if before[at] < line), default=0)
    return now[gap] - before[gap]


def _shifted(problem: Problem, lines: int) -> Problem:
    return replace(problem, line=problem.line + lines) if problem.line and lines else problem
