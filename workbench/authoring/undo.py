"""A case moved to another suite is a change of both, and one step: taken back and done again in both at once."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.authoring.open_suite import Change, OpenSuite
from workbench.authoring.open_suites import OpenSuites


@dataclass(frozen=True, eq=False)
class Move:
    """What the last changes of two suites have in common."""

    source: OpenSuite
    target: OpenSuite


def tie(source: OpenSuite, target: OpenSuite) -> None:
    """The last change of each is one move of a case."""
    move = Move(source, target)
    source.make_part(move)
    target.make_part(move)


Went = tuple[OpenSuite, Change]
"""A suite, and what was taken back or done again in it."""


def undo(suite: OpenSuite, open_suites: OpenSuites) -> list[Went] | str:
    """Take back the last step of a suite. Of a move both parts are taken back, the suite where the case is then last.

    Returns what was taken back, or why nothing was: a case must not vanish from both suites.
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
            return f"{move.source.path.name}, where the case was, has changed since: Ctrl+Z there first"
    return _told(_undone(suite), open_suites)


def redo(suite: OpenSuite, open_suites: OpenSuites) -> list[Went] | str:
    """Do the next step of a suite again, as `undo` took it back."""
    move = suite.next.part_of if suite.next is not None else None
    if isinstance(move, Move):
        is_open = open_suites.at(move.source.path) is move.source and open_suites.at(move.target.path) is move.target
        if is_open and _is(move, move.source.next) and _is(move, move.target.next):
            return _told([*_redone(move.source), *_redone(move.target)], open_suites)
        if suite is move.source and not move.target.stands(move):
            return f"{move.target.path.name}, where the case went, has changed since: M moves it anew"
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
