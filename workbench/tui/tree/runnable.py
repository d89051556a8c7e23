"""Finds the cases that can run now: without errors, in suites without errors outside of cases, and not running."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.authoring.open_suite import OpenSuite
from workbench.tui.run_book.book import RunBook
from workbench.tui.tree.state import Row, TreeState


def runnable_below(tree: TreeState, row: Row, book: RunBook) -> list[tuple[OpenSuite, tuple[str, ...]]]:
    """Return the cases at or below a row that can run and are not running, by suite."""
    below = []
    for suite, keys in tree.cases_below(row):
        if free := tuple(_free(suite, keys, book)):
            below.append((suite, free))
    return below


def any_runnable_below(tree: TreeState, row: Row, book: RunBook) -> bool:
    """Return whether there is any such case. Fast if one of the first is."""
    return any(True for suite, keys in tree.cases_below(row) for _ in _free(suite, keys, book))


def can_run(suite: OpenSuite, key: str) -> bool:
    """Return whether a case has no errors, and its suite none outside of cases."""
    return suite.file.suite is not None or key in _sound_cases(suite)


def _free(suite: OpenSuite, keys: tuple[str, ...], book: RunBook) -> Iterator[str]:
    if suite.file.suite is None:
        sound = _sound_cases(suite)
        keys = tuple(key for key in keys if key in sound)
    return (key for key in keys if not book.under_way((suite.path, key)))


def _sound_cases(suite: OpenSuite) -> frozenset[str]:
    """Return the keys of the cases that can run although their suite has errors, none if there are errors outside of
    cases."""
    if any(not problem.where.startswith("cases[") for problem in suite.file.errors) or not suite.document.in_blocks:
        return frozenset()
    broken = suite.broken_cases
    return frozenset(case.key for case in suite.cases if case.index not in broken)
