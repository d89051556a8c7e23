"""What changed in suites since a baseline, as a reason beside the verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

from workbench.batches.plan import same_value
from workbench.history.history import History
from workbench.history.records import BatchRow, DamagedError, SameSuites, SuiteRef
from workbench.suite.loading import parse_suite
from workbench.suite.model import Case, Suite
from workbench.suite.numerals import counted

_MAX_NAMED = 5


def changed_suites(
    history: History, baseline: BatchRow, suites: Iterable[SuiteRef], same: SameSuites
) -> dict[SuiteRef, Suite | None]:
    """Return the suites of now that have another text than in the baseline, each as it was then; `None` where that
    cannot be read."""
    now = {suite.key: suite for suite in suites}
    found: dict[SuiteRef, Suite | None] = {}
    for then in baseline.suites:
        suite = now.get(same.get(then.key, then.key))
        if suite is not None and suite.hash != then.hash:
            found[suite] = None
            with suppress(DamagedError):
                found[suite] = parse_suite(history.suite_text(then), then.file).suite
    return found


def lost_expectations(before: Suite | None, after: Suite) -> Iterator[str]:
    """Yields the ids of the cases that expect nothing any more."""
    expected = {case.id for case in before.cases if not case.expects_nothing} if before is not None else None
    for case in after.cases:
        if case.expects_nothing and (expected is None or case.id in expected):
            yield case.id


def note_on_suite(path: str, before: Suite | None, after: Suite, urgent: Collection[str]) -> str | None:
    """Return what is different in a suite that has changed; nothing where only comments and layout are. Of its cases,
    `urgent` ones are named first."""
    parts = [*_differences(before, after, urgent)] if before is not None else ["its earlier text cannot be read"]
    return f"{path} changed since the baseline: {'; '.join(parts)}" if parts else None


def _differences(before: Suite, after: Suite, urgent: Collection[str]) -> Iterator[str]:
    if not same_value(before.model_copy(update={"cases": ()}), after.model_copy(update={"cases": ()})):
        yield "what all its cases share"
    then, now = ({case.id: case for case in suite.cases} for suite in (before, after))
    found: dict[str, list[Case]] = {
        "changed": [case for id_, case in now.items() if id_ in then and not same_value(then[id_], case)],
        "added": [case for id_, case in now.items() if id_ not in then],
        "removed": [case for id_, case in then.items() if id_ not in now],
    }
    for how, cases in found.items():
        if cases:
            cases.sort(key=lambda case: case.id not in urgent)
            named = ", ".join(case.name for case in cases[:_MAX_NAMED])
            more = ", …" if len(cases) > _MAX_NAMED else ""
            yield f"{counted(len(cases), 'case')} {how} ({named}{more})"
