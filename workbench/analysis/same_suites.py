"""Which suites of two batches are one and the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workbench.history.records import SuiteRef

SameSuites = Mapping[str, str]
"""The key of a suite in the later batch by that in the earlier one, where the two may differ. Others have one key."""


def same_suites(earlier: Iterable[SuiteRef], later: Iterable[SuiteRef]) -> SameSuites:
    """A suite is the same where project and path are. In another checkout, or on another machine, the project is
    another one: then the path alone has to do, if each batch has a suite at that path once."""
    before, after = _alone(earlier), _alone(later)
    return {key: after[path] for path, key in before.items() if path in after}


def _alone(suites: Iterable[SuiteRef]) -> dict[str, str]:
    """The keys of suites by their paths, but for paths that several have."""
    keys: dict[str, set[str]] = {}
    for suite in suites:
        keys.setdefault(suite.path, set()).add(suite.key)
    return {path: found.pop() for path, found in keys.items() if len(found) == 1}
