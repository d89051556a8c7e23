"""The comparison of a batch with its baseline: the verdict and its reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Literal

from workbench.analysis.batch_diff import BatchDiff, CaseChange, ChangeKind
from workbench.analysis.comparison import CellKey
from workbench.analysis.confirmation import Confirmation, ConfirmationReport, ConfirmedCase
from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.history.records import BatchRow, Regrade, SuiteRef
from workbench.numerals import counted
from workbench.show.doc import Block, Heading, Items, Paragraph, Section, line_of
from workbench.show.forms import LINES_MAX
from workbench.show.spans import EMPTY, Line, Span
from workbench.show.views.batch_diff import changes_blocks, counts_line, notes_of, test_lines
from workbench.show.views.batch_list import batch_name
from workbench.show.visible import one_line
from workbench.show.when import local_time

FailOn = Literal["regression"]
Confirm = Literal["reruns", "repeats", "none"]
"""The way to confirm a broken case: reruns, its repeats, or none."""

_MAX_DOCUMENT_CHANGES = 100
"""Maximum number of changes in Markdown, so that the report fits into a comment on GitHub."""

BATCH_NAMES = "the baseline", "this batch"
"""The words for the two batches in sentences."""


@dataclass(frozen=True)
class AgainstBaseline:
    """The changes of a batch's selected cases since its baseline.

    `batch` is the baseline. `grading` is the regrade of the baseline that was compared, or `None` for the original
    grades. `fail_on` says which changes make the command fail."""

    batch: BatchRow
    grading: Regrade | None
    diff: BatchDiff
    suites: Mapping[str, SuiteRef]
    fail_on: FailOn | None
    notes: tuple[str, ...] = ()
    """Facts about the comparison as a whole, such as models without a counterpart."""
    suite_changes: tuple[str, ...] = ()
    """Differences of the suites since the baseline, in words."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """The key of each suite by the path that its runs name."""
    confirm: Confirm = "none"
    confirmed: ConfirmationReport | None = None
    """The evidence on the broken cases of each model whose test of all cases found no difference beyond chance."""

    @property
    def is_worse(self) -> bool:
        """Whether a model has significantly fewer good runs over all cases. Always false if `confirm` is "none"."""
        return self.confirm != "none" and any(test.is_worse for test in self.diff.tests.values())

    def deciding(self, kind: ChangeKind) -> tuple[CaseChange, ...]:
        """Return the changes of a kind, without the changes of cases in quarantine."""
        return tuple(change for change in self.diff.of(kind) if change.decides)

    @property
    def broke(self) -> int:
        """The number of cases that broke.

        If cases were rerun for confirmation, only confirmed cases count, unless all cases together are worse."""
        # If all cases together are worse by more than chance, no single case needs to be confirmed.
        if self.confirmed is not None and not self.is_worse:
            return len(self.confirmed.of("confirmed"))
        return len(self.deciding("broke"))

    @property
    def regressed(self) -> bool:
        """Whether all cases together are worse, or any case broke, is gone or is missing."""
        return bool(self.broke or self.deciding("gone") or self.deciding("missing") or self.is_worse)

    @property
    def is_empty(self) -> bool:
        """Whether no case was graded in both batches, so that regressions are unknown."""
        return not (self.diff.compared or self.regressed)

    @property
    def failed(self) -> bool:
        """Whether there is a regression that must fail the command."""
        return self.fail_on == "regression" and self.regressed

    @property
    def verdict(self) -> str:
        """One line that says whether there is a regression."""
        if self.is_empty:
            return f"nothing was compared: no case was graded here and in the baseline {batch_name(self.batch)}"
        parts: list[str] = []
        if self.is_worse:
            parts.append("all cases together are worse")
        if self.broke:
            parts.append(f"{counted(self.broke, 'case')} broke")
        kinds: tuple[ChangeKind, ...] = ("gone", "missing")
        for kind in kinds:
            if found := len(self.deciding(kind)):
                verb = "are"
                if found == 1:
                    verb = "is"
                parts.append(f"{counted(found, 'case')} {verb} {kind}")
        regression = "no regression"
        if parts:
            regression = f"regression: {' and '.join(parts)}"
        return " · ".join((f"{regression} since the baseline {batch_name(self.batch)}", *self._other_failures))

    @cached_property
    def _sentences(self) -> Mapping[CellKey, str]:
        found: dict[CellKey, str] = {}
        for change in (*self.deciding("broke"), *self.deciding("missing")):
            # The sentences of confirmed cases are set below, because they replace the kind of change.
            found[change.suite, change.case_id, change.model] = change.kind
        if self.confirmed is not None:
            for case in self.confirmed.cases:
                found[case.suite, case.case_id, case.model] = case.sentence
        return found

    def sentence_of(self, run: RunResult) -> str | None:
        """Return a sentence about the case of a run.

        Returns `None` unless the case broke since the baseline, or was graded there and has no verdict now."""
        said = self._sentences.get((self.keys.get(run.suite, ""), run.case_id, run.model))
        if said is None:
            return None
        return f"since the baseline {batch_name(self.batch)}: {said}"

    def surely_broke(self, run: RunResult) -> bool:
        """Return whether the case of a run broke.

        If cases were rerun for confirmation, only confirmed cases count, unless all cases together are worse."""
        cases: Sequence[CaseChange | ConfirmedCase] = self.deciding("broke")
        if self.confirmed is not None and not self.is_worse:
            cases = self.confirmed.of("confirmed")
        key = self.keys.get(run.suite, ""), run.case_id, run.model
        return any((case.suite, case.case_id, case.model) == key for case in cases)

    @property
    def _other_failures(self) -> Iterator[str]:
        """Yield how many cases failed without being a regression, and the number of reruns."""
        if self.confirmed is None:
            return
        if recovered := self.confirmed.of("recovered"):
            yield f"{counted(len(recovered), 'case')} failed and passed again"
        if undecided := self.confirmed.of("perhaps by chance"):
            yield f"{counted(len(undecided), 'case')} failed perhaps by chance"
        if self.confirmed.reruns:
            yield counted(self.confirmed.reruns, "extra run")


def baseline_view(
    against: AgainstBaseline, *, only_worse: bool = False, as_document: bool = False, max_changes: int | None = None
) -> Iterator[Block]:
    """Yield the verdict on a batch and at most `max_changes` changes since its baseline.

    In a terminal, the verdict comes last, because a terminal shows the end of an output. In a document, it comes first,
    and `max_changes` is smaller by default. With `only_worse`, only cases that broke, are gone or missing, or ended in
    an error are listed."""
    if as_document:
        yield Heading(verdict_line(against), level=2)
    title = f"against the baseline {batch_name(against.batch)} of {local_time(against.batch.started_at)}"
    if against.grading is not None:
        title += f", as regraded on {local_time(against.grading.graded_at)}"
    diff = against.diff
    changes: Sequence[CaseChange] = diff.changes
    if only_worse:
        changes = [change for change in changes if change.kind in _WORSE]
    if not max_changes:
        max_changes = LINES_MAX
        if as_document:
            max_changes = _MAX_DOCUMENT_CHANGES
    blocks: list[Block] = [Paragraph(counts_line(diff))]
    for note in baseline_notes(against):
        blocks.append(Paragraph(line_of(note)))
    blocks += changes_blocks(changes, against.suites, with_model=len(diff.models) > 1, max_changes=max_changes)
    confirmed: list[Line] = []
    for outcome, line in confirmation_lines(against):
        confirmed.append((*_SIGNS[outcome], Span(line)))
    if confirmed:
        blocks.append(Items(confirmed, most=len(confirmed)))
    for difference in against.suite_changes:
        blocks.append(Paragraph(line_of(difference, "muted")))
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
    """Return a line with the sign and the text of the verdict."""
    if against.is_empty:
        return line_of(f"▲ {against.verdict}", "warned")
    if against.regressed:
        return line_of(f"✗ {against.verdict}", "failed")
    return line_of(f"✓ {against.verdict}", "passed")


def baseline_notes(against: AgainstBaseline) -> Iterator[str]:
    """Yield the results of the significance tests, then notes on the comparison."""
    yield from test_lines(against.diff.tests, *BATCH_NAMES)
    yield from notes_of(against.diff, *BATCH_NAMES, against.suites)
    yield from against.notes


def confirmation_lines(against: AgainstBaseline) -> Iterator[tuple[Confirmation | None, str]]:
    """Yield the outcome of the reruns and a sentence for each broken case, then a sentence for each model.

    Sentences that are not about one case have the outcome `None`."""
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
            if len(against.diff.tests) > 1:
                sentence = f"{one_line(model)}: {sentence}"
            yield None, sentence
