"""Differences between two batches in what their runs sent to models: the instructions of servers, and images.

Instructions and images influence runs like the text of a suite, but only the stored runs contain them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

from workbench.history.history import History
from workbench.history.records import HistoryError, RunRow, SameSuites
from workbench.show.views.batch_diff import DiffSide, names_of
from workbench.trajectory.events import RunStarted
from workbench.trajectory.recording import RecordingError

CaseKey = tuple[str, str]
"""The key of a suite, and the id of a case."""

MAX_RUNS = 2_000
"""The number of a batch's first runs that are searched for cases."""

_MAX_OF_SUITE, _MAX_CASES = 3, 30
"""The most cases of a suite, and of a batch, that are compared. Each case is read from the history."""

_Run = TypeVar("_Run")
_Other = TypeVar("_Other")


def first_runs(rows: Iterable[RunRow], same_suites: SameSuites | None = None) -> dict[CaseKey, RunRow]:
    """Return each case's first finished run in a stored batch.

    `same_suites` maps keys of suites to their keys in a later batch, if they differ there."""
    found: dict[CaseKey, RunRow] = {}
    for row in islice(rows, MAX_RUNS):
        if row.figures is not None and not row.is_fork:
            suite = (same_suites or {}).get(row.suite.key, row.suite.key)
            found.setdefault((suite, row.case_id), row)
    return found


def stored_start(history: History) -> Callable[[RunRow], RunStarted | None]:
    """Return a function that reads the first event of a stored run. It returns `None` for a damaged run."""

    def start_of(row: RunRow) -> RunStarted | None:
        try:
            return history.recording(row).trajectory.start
        except (HistoryError, RecordingError):
            # The damaged run was already reported when the batch was read.
            return None

    return start_of


def notes_on_instructions(
    before: Mapping[CaseKey, _Run],
    after: Mapping[CaseKey, _Other],
    start_before: Callable[[_Run], RunStarted | None],
    start_after: Callable[[_Other], RunStarted | None],
    names: tuple[str, str],
) -> Iterator[str]:
    """Yield a sentence for each server whose instructions, and each image whose content, differ between two batches.

    A run in `before` is compared with the run of the same case in `after`. The sentences refer to the batches by their
    `names`."""
    reported: set[str] = set()
    looked_at: dict[str, int] = {}
    for key in islice((key for key in after if key in before), MAX_RUNS):
        suite = key[0]
        if looked_at.get(suite, 0) == _MAX_OF_SUITE or sum(looked_at.values()) == _MAX_CASES:
            continue
        looked_at[suite] = looked_at.get(suite, 0) + 1
        then, now = start_before(before[key]), start_after(after[key])
        if then is None or now is None:
            continue
        sentences = list(_image_changes(then, now, names))
        # A run that was offered no tools may have ended before its servers sent instructions.
        if then.tools and now.tools:
            sentences += _changes(then, now, names)
        for sentence in sentences:
            if sentence not in reported:
                reported.add(sentence)
                yield sentence


def instructions_between(history: History, before: DiffSide, after: DiffSide, same_suites: SameSuites) -> Iterator[str]:
    """Yield a sentence for each difference in instructions and images between two batches of a history."""
    start_of = stored_start(history)
    earlier, later = first_runs(before.runs, same_suites), first_runs(after.runs)
    return notes_on_instructions(earlier, later, start_of, start_of, names_of(before, after))


def _image_changes(before: RunStarted, after: RunStarted, names: tuple[str, str]) -> Iterator[str]:
    old, new = _images(before), _images(after)
    for file in old.keys() & new.keys():
        if old[file] != new[file]:
            yield f"the image {file} of the case {after.case_name!r} differs between {names[0]} and {names[1]}"


def _images(start: RunStarted) -> dict[str, str]:
    images = {}
    for message in start.messages:
        for each in message.media:
            images[each.file] = each.sha256
    return images


def _changes(before: RunStarted, after: RunStarted, names: tuple[str, str]) -> Iterator[str]:
    earlier, later = names
    old = {each.server: each.text for each in before.instructions}
    new = {each.server: each.text for each in after.instructions}
    for server in {**old, **new}:
        if server not in old:
            yield f"{earlier} did not send the instructions of the server {server!r}, which {later} sends"
        elif server not in new:
            yield f"{earlier} sent instructions of the server {server!r}, which {later} does not send"
        elif old[server] != new[server]:
            yield f"the instructions of the server {server!r} differ between {earlier} and {later}"
