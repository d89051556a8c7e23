"""Writes what was observed: conversations as cases of a suite, and as recordings of their runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.importing.bounds import RefusedError
from workbench.importing.imported import Imported, Note
from workbench.importing.importing import learn_keys, must_be_free, written
from workbench.importing.suite_making import RULE_OF_NEW_SUITES, made_suite
from workbench.numerals import counted
from workbench.observing.conversations import ConversationEnded, Observer
from workbench.observing.keeping import SUFFIX
from workbench.observing.merging import Merger, ServerLog

_NAME = "recorded"


@dataclass(frozen=True)
class Destination:
    """Where a suite and recordings go; one of both may be `None`. What exists is replaced or added to with `force`."""

    suite: Path | None
    recordings: Path | None
    force: bool = False

    @property
    def kept(self) -> Path:
        """Where conversations are kept until these are written: beside them."""
        beside = self.suite or self.recordings
        assert beside is not None
        return beside.with_name(beside.name + SUFFIX)

    def check(self) -> None:
        """Raises RefusedError where something is in the way."""
        if not self.force:
            must_be_free(self.suite, self.recordings, "--suite")


@dataclass(frozen=True)
class Saved:
    """What was written, and the report for a person."""

    cases: int
    runs: int
    lines: tuple[str, ...]


def save_observed(
    observer: Observer, destination: Destination, secrets: Secrets, logs: Iterable[ServerLog] = ()
) -> Saved:
    """Write all conversations that can be taken, with what the logs of servers know of their calls. The report names
    each conversation, and why it was not taken if it was not. Raises RefusedError where nothing can be written."""
    learn_keys(
        [
            [*step.messages, *step.head.values(), *([step.answer.message] if step.answer is not None else [])]
            for each in observer.conversations
            for step in each.steps[-1:]
        ],
        "RECORDED_KEY",
        secrets,
    )
    merger = Merger(tuple(logs), secrets)
    ended = observer.end(merger.case)
    cases = tuple(each.case for each in ended if each.case is not None)
    lines = [f"· {note}" for note in observer.notes]
    if not cases:
        return Saved(
            0, 0, (*_refused(ended), *lines, *merger.lines, "no conversation can be taken: nothing is written")
        )
    name = destination.suite.stem if destination.suite is not None else _NAME
    path = destination.suite or Path(f"{_NAME}.toml")
    try:
        made = made_suite(Imported(cases, suite=RULE_OF_NEW_SUITES), name, path, secrets)
    except RefusedError as error:
        return Saved(0, 0, (*_refused(ended), f"· {error}", *lines, "nothing is written"))
    runs = written(made, destination.suite, destination.recordings, secrets, force=destination.force)
    assert made.file.suite is not None
    report = []
    for case, imported in zip(made.file.suite.cases, made.cases, strict=True):
        report.append(f"{imported.place} → {case.id}")
        report += [f"  ✓ {line}" for line in imported.mapped]
        report += [f"  · {_said(note, imported.place)}" for note in imported.notes]
    report += [*_refused(ended), *(f"· {note}" for note in made.notes), *lines, *merger.lines]
    if destination.suite is not None:
        report.append(f"{destination.suite}: {counted(len(made.cases), 'case')}")
    if destination.recordings is not None:
        report.append(f"{destination.recordings}: {counted(runs, 'run')}: workbench grade {destination.recordings}")
    return Saved(len(made.cases), runs, tuple(report))


def _refused(ended: Iterable[ConversationEnded]) -> list[str]:
    return [f"✗ conversation {each.number}: {each.why}" for each in ended if each.case is None]


def _said(note: Note, place: str) -> str:
    return str(note).removeprefix(f"{place}: ")
