"""Undo and redo. Moving a case between suites changes both, and both changes are undone together."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.authoring.open_suite import Change, OpenSuite
from workbench.authoring.open_suites import OpenSuites


@dataclass(frozen=True, eq=False)
class Move:
    """Links the last changes of two suites."""

    source: OpenSuite
    target: OpenSuite


def tie(source: OpenSuite, target: OpenSuite) -> None:
    """Link the last changes of two suites as one move of a case."""
    move = Move(source, target)
    source.make_part(move)
    target.make_part(move)


Went = tuple[OpenSuite, Change]
"""A suite and the change that was undone or redone in it."""


def undo(suite: OpenSuite, open_suites: OpenSuites) -> list[Went] | str:
    """Undo the last step of a suite. A move is undone in both suites; the suite that then has the case comes last.

    Returns what was undone, or why nothing was: a case must not vanish from both suites.
    """
    move = suite.last.part_of if suite.last is not None else None
    if isinstance(move, Move) and open_suites.at(move.source.path) is move.source:
        if (
            _is(move, move.source.last)
            and _is(move, move.target.last)
            and open_suites.at(move.target.path) is move.target
        ):
            return _told([*_undone(move.target), *_undone(move.source)], open_suites)
        if suite is move.target and move.source.stands(move):
            return f"{move.source.path.name}, which the case came from, has changed since: undo there first (Ctrl+Z)"
    return _told(_undone(suite), open_suites)


def redo(suite: OpenSuite, open_suites: OpenSuites) -> list[Went] | str:
    """Redo the next step of a suite, the counterpart of `undo`."""
    move = suite.next.part_of if suite.next is not None else None
    if isinstance(move, Move):
        is_open = open_suites.at(move.source.path) is move.source and open_suites.at(move.target.path) is move.target
        if is_open and _is(move, move.source.next) and _is(move, move.target.next):
            return _told([*_redone(move.source), *_redone(move.target)], open_suites)
        if suite is move.source and not move.target.stands(move):
            return f"{move.target.path.name}, which the case went to, has changed since: M moves it again"
    return _told(_redone(suite), open_suites)


def _is(move: Move, change: Change | None) -> bool:
    return change is not None and change.part_of is move


def _told(went: list[Went], open_suites: OpenSuites) -> list[Went]:
    for suite, change in went:
        open_suites.went(suite, change)
    return went


def _undone(suite: OpenSuite) -> list[Went]:
    change = suite.undo()
    return [(suite, change)] if change is not None else []


def _redone(suite: OpenSuite) -> list[Went]:
    change = suite.redo()
    return [(suite, change)] if change is not None else []
