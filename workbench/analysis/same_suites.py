"""Finds the suites that two batches have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workbench.history.records import SuiteRef

SameSuites = Mapping[str, str]
"""Maps the key of a suite in the earlier batch to that in the later one, where they may differ. Other suites have one
key."""


def same_suites(earlier: Iterable[SuiteRef], later: Iterable[SuiteRef]) -> SameSuites:
    """Returns the suites that are the same in both batches. They are the same where project and path are. In another
    checkout, or on another machine, the project differs: then the path alone decides, if each batch has exactly one
    suite at that path."""
    before, after = _alone(earlier), _alone(later)
    return {key: after[path] for path, key in before.items() if path in after}


def _alone(suites: Iterable[SuiteRef]) -> dict[str, str]:
    """Returns the keys of suites by their paths, except paths that several have."""
    keys: dict[str, set[str]] = {}
    for suite in suites:
        keys.setdefault(suite.path, set()).add(suite.key)
    return {path: found.pop() for path, found in keys.items() if len(found) == 1}
