"""Decides whether changed cases can affect findings elsewhere in their suite.

Also recognises changes of the text above the cases that affect no case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workbench.suite.model import Suite
from workbench.suite.render import Table
from workbench.suite.toml_equality import toml_equal

_TEXTS = frozenset({"name", "description", "system"})
"""Keys outside the cases on whose texts no finding depends."""

_DEPENDENT = {
    "response": frozenset({"aggregates"}),  # aggregates may name the checks of answers
    "setup": frozenset({"servers", "mocks"}),  # a warning counts the cases that use a shared state
    "final": frozenset({"servers", "mocks"}),
    "tools": frozenset({"mocks", "answers", "grading", "subject"}),  # these may name the tools of any case
}
"""Keys of a case, each with the keys outside the cases whose findings depend on it."""


def affects_findings_elsewhere(header: Table, changed: Iterable[Table]) -> bool:
    """Return whether findings outside some new, edited or removed cases may depend on these cases.

    `header` is the content outside the cases. Equal ids, names and tags of cases are compared elsewhere."""
    keys = set[str]().union(*changed)
    return any(key in keys and not needing.isdisjoint(header) for key, needing in _DEPENDENT.items())


def changed_texts(before: Table, now: Table) -> Mapping[str, str] | None:
    """Return the new name, description and system prompt of a suite, if they are all that changed outside its cases.

    Returns `None` if anything else changed."""
    if before is now:
        return {}
    if before.keys() != now.keys():
        return None
    found: dict[str, str] = {}
    for key, value in now.items():
        if toml_equal(before[key], value):
            continue
        # A missing or empty name is an error, so such a change adds or removes a problem.
        if key not in _TEXTS or not isinstance(value, str) or not isinstance(before[key], str):
            return None
        if key == "name" and not (value and before[key]):
            return None
        found[key] = value
    return found


def have_same_lines(before: str, now: str) -> bool:
    """Return whether two versions of the text above the cases differ in at most one line and have equally many lines.

    All lines below then keep their numbers."""
    lines_before, lines_now = before.rstrip().split("\n"), now.rstrip().split("\n")
    if len(lines_before) != len(lines_now):
        return False
    return sum(a != b for a, b in zip(lines_before, lines_now, strict=True)) <= 1


def tag_findings_may_differ(before: Suite, now: Suite) -> bool:
    """Return whether the warnings about tags that no case has may differ between two versions of the cases."""
    wanted = set(now.gate.quarantine).union(*(aggregate.tags for aggregate in now.aggregates))
    if not wanted:
        return False
    known_before, known_now = _tags(before), _tags(now)
    if known_before == known_now:
        return False
    # A warning names the most similar tag.
    return not (wanted <= known_before and wanted <= known_now)


def _tags(suite: Suite) -> set[str]:
    return set(suite.tags).union(*(case.tags for case in suite.cases))
