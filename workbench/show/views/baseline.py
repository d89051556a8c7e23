"""A batch compared with its baseline: the verdict and its reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Literal

from workbench.analysis.batch_diff import BatchDiff, CaseChange, ChangeKind
from workbench.analysis.comparison import CellKey
from workbench.analysis.confirmation import Confirmation, Confirmed, ConfirmedCase
from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.history.records import BatchRow, Regrade, SuiteRef
from workbench.numerals import counted
from workbench.show.doc import Block, Heading, Items, Paragraph, Section, line_of
from workbench.show.forms import LINES_MAX
from workbench.show.spans import EMPTY, Line, Span
from workbench.show.views.batch_diff import changes_blocks, counts_line, notes_of, test_lines
from workbench.show.views.batch_list import called
from workbench.show.visible import one_line
from workbench.show.when import local_time

FailOn = Literal["regression"]
Confirm = Literal["reruns", "repeats", "none"]
"""How a broken case is confirmed: by reruns, by its repeats, or not at all."""

_MAX_DOCUMENT_CHANGES = 100
"""Changes that are listed in Markdown, which a comment has to hold."""

BATCH_NAMES = "the baseline", "this batch"
"""The names of the two batches in sentences."""


@dataclass(frozen=True)
class AgainstBaseline:
    """The changes since the baseline, for the cases that were selected.

    `suites` are by their keys; `grading` is the regrade of the baseline that was used; `fail_on` is what is demanded.
    """

    batch: BatchRow
    grading: Regrade | None
    diff: BatchDiff
    suites: Mapping[str, SuiteRef]
    fail_on: FailOn | None
    notes: tuple[str, ...] = ()
    """Reasons besides cases that broke."""
    suite_changes: tuple[str, ...] = ()
    """Differences of suites since the baseline."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """The keys of the suites by the paths that runs have."""
    confirm: Confirm = "none"
    confirmed: Confirmed | None = None
    """Evidence on cases that broke although the test of all cases left them to chance."""

    @property
    def is_worse(self) -> bool:
        """Whether chance is asked for, and does not explain how much fewer good runs there are in all cases."""
        return self.confirm != "none" and any(test.is_worse for test in self.diff.tests.values())

    def deciding(self, kind: ChangeKind) -> tuple[CaseChange, ...]:
        """Return the changes of a kind without those of cases in quarantine."""
        return tuple(change for change in self.diff.of(kind) if change.decides)

    @property
    def broke(self) -> int:
        """How many cases broke, as far as that is sure."""
        # If all cases together are worse, chance does not explain them, and none has to be confirmed.
        if self.confirmed is not None and not self.is_worse:
            return len(self.confirmed.of("confirmed"))
        return len(self.deciding("broke"))

    @property
    def regressed(self) -> bool:
        """Whether a case broke, is gone or missing, or all cases together are worse."""
        return bool(self.broke or self.deciding("gone") or self.deciding("missing") or self.is_worse)

    @property
    def is_empty(self) -> bool:
        """Whether no case was graded both times, so that nothing is known of regressions."""
        return not (self.diff.compared or self.regressed)

    @property
    def failed(self) -> bool:
        """Whether the demand is not met."""
        return self.fail_on == "regression" and self.regressed

    @property
    def verdict(self) -> str:
        """Whether there is a regression, in one line."""
        if self.is_empty:
            return f"nothing was compared: no case was graded here and in the baseline {called(self.batch)}"
        parts: list[str] = []
        if self.is_worse:
            parts.append("all cases together are worse")
        if self.broke:
            parts.append(f"{counted(self.broke, 'case')} broke")
        kinds: tuple[ChangeKind, ...] = ("gone", "missing")
        for kind in kinds:
            if found := len(self.deciding(kind)):
                verb = "is" if found == 1 else "are"
                parts.append(f"{counted(found, 'case')} {verb} {kind}")
        regression = f"regression: {' and '.join(parts)}" if parts else "no regression"
        return " · ".join((f"{regression} since the baseline {called(self.batch)}", *self._beside))

    @cached_property
    def _sentences(self) -> Mapping[CellKey, str]:
        found: dict[CellKey, str] = {}
        for change in (*self.deciding("broke"), *self.deciding("missing")):
            found[change.suite, change.case_id, change.model] = change.kind
        if self.confirmed is not None:
            for case in self.confirmed.cases:
                found[case.suite, case.case_id, case.model] = case.sentence
        return found

    def sentence_of(self, run: RunResult) -> str | None:
        """Return the change of a run's case since the baseline, if it broke or is missing, as a sentence."""
        said = self._sentences.get((self.keys.get(run.suite, ""), run.case_id, run.model))
        if said is None:
            return None
        return f"since the baseline {called(self.batch)}: {said}"

    def surely_broke(self, run: RunResult) -> bool:
        """Return whether the case of a run broke, and chance does not explain it as far as that was asked."""
        cases: Sequence[CaseChange | ConfirmedCase] = self.deciding("broke")
        if self.confirmed is not None and not self.is_worse:
            cases = self.confirmed.of("confirmed")
        key = self.keys.get(run.suite, ""), run.case_id, run.model
        return any((case.suite, case.case_id, case.model) == key for case in cases)

    @property
    def _beside(self) -> Iterator[str]:
        """Yield the cases that the verdict does not count, because the evidence is against a regression."""
        if self.confirmed is None:
            return
        if recovered := self.confirmed.of("recovered"):
            yield f"{counted(len(recovered), 'case')} failed and passed again"
        if undecided := self.confirmed.of("perhaps by chance"):
            yield f"{counted(len(undecided), 'case')} failed perhaps by chance"
        if self.confirmed.reruns:
            yield counted(self.confirmed.reruns, "extra run")


def baseline_view(
    against: AgainstBaseline, *, only_worse: bool = False, as_document: bool = False, most: int | None = None
) -> Iterator[Block]:
    """Yield the verdict and the changes since the baseline, `most` of them.

    The verdict is last for a terminal, which shows the end, and first in a document, which lists fewer changes. With
    `only_worse`, cases are listed only if they broke, are gone or missing, or ended in an error.
    """
    if as_document:
        yield Heading(verdict_line(against), level=2)
    title = f"against the baseline {called(against.batch)} of {local_time(against.batch.started_at)}"
    if against.grading is not None:
        title += f", as regraded on {local_time(against.grading.graded_at)}"
    diff = against.diff
    changes = []
    for change in diff.changes:
        if not only_worse or change.kind in _WORSE:
            changes.append(change)
    most = most or (_MAX_DOCUMENT_CHANGES if as_document else LINES_MAX)
    blocks: list[Block] = [Paragraph(counts_line(diff))]
    blocks += (Paragraph(line_of(note)) for note in baseline_notes(against))
    blocks += changes_blocks(changes, against.suites, with_model=len(diff.models) > 1, most=most)
    if confirmed := [(*_SIGNS[outcome], Span(line)) for outcome, line in confirmation_lines(against)]:
        blocks.append(Items(confirmed, most=len(confirmed)))
    blocks += (Paragraph(line_of(change, "muted")) for change in against.suite_changes)
    yield Section(line_of(title), blocks)
    if not as_document:
        yield Paragraph(verdict_line(against))


_WORSE: tuple[ChangeKind, ...] = ("broke", "gone", "missing", "errored")

_SIGNS: Mapping[Confirmation | None, Line] = {
    "confirmed": line_of("✗ ", "failed"),
    "recovered": line_of("· ", "muted"),
    "perhaps by chance": line_of("▲ ", "warned"),
    None: EMPTY,
}


def verdict_line(against: AgainstBaseline) -> Line:
    """Return the verdict with its sign."""
    if against.is_empty:
        return line_of(f"▲ {against.verdict}", "warned")
    if against.regressed:
        return line_of(f"✗ {against.verdict}", "failed")
    return line_of(f"✓ {against.verdict}", "passed")


def baseline_notes(against: AgainstBaseline) -> Iterator[str]:
    """Yield whether the changes are more than chance, and notes on the comparison."""
    yield from test_lines(against.diff.tests, *BATCH_NAMES)
    yield from notes_of(against.diff, *BATCH_NAMES, against.suites)
    yield from against.notes


def confirmation_lines(against: AgainstBaseline) -> Iterator[tuple[Confirmation | None, str]]:
    """Yield a sentence on each case that broke, with its outcome, then on all cases together."""
    if against.confirm == "none":
        return
    if against.confirmed is not None:
        cases = against.confirmed.cases
        for case in cases[:LINES_MAX]:
            name = one_line(case.case_name)
            if len(against.diff.models) > 1:
                name += f" [{one_line(case.model)}]"
            yield case.outcome, f"{name}  {one_line(case.sentence)}"
        if (more := len(cases) - LINES_MAX) > 0:
            yield None, f"and {counted(more, 'other case')}"
    for model, test in against.diff.tests.items():
        if (sentence := test.shares_sentence()) is not None:
            yield None, f"{one_line(model)}: {sentence}" if len(against.diff.tests) > 1 else sentence
