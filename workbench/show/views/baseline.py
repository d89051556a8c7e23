"""A batch compared with its baseline, as lines for a terminal and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cached_property
from typing import Literal

from workbench.analysis.batch_diff import BatchDiff, CaseChange, ChangeKind
from workbench.analysis.comparison import CellKey
from workbench.analysis.confirmation import Confirmation, Confirmed
from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.history.records import BatchRow, Regrade, SuiteRef
from workbench.numerals import counted
from workbench.show.forms import LINES_MAX
from workbench.show.markdown import text
from workbench.show.spans import Role
from workbench.show.text import Paint
from workbench.show.views.batch_diff import change_lines, changes_table, counts_text, notes_of, test_lines
from workbench.show.views.batch_list import called
from workbench.show.visible import one_line
from workbench.show.when import local_time

FailOn = Literal["regression"]
Confirm = Literal["reruns", "repeats", "none"]
"""How it is made sure that a case broke: it is made again, its repeats decide, or it is not."""

_CHANGES_MAX = 100
"""So many changes are listed in Markdown."""

BATCH_NAMES = "the baseline", "this batch"
"""The names of the two batches in sentences."""


@dataclass(frozen=True)
class AgainstBaseline:
    """The changes since the baseline, for the cases that were selected. `suites` are by their keys; `grading` is the
    regrade of the baseline that was used; `fail_on` is what is demanded."""

    batch: BatchRow
    grading: Regrade | None
    diff: BatchDiff
    suites: Mapping[str, SuiteRef]
    fail_on: FailOn | None
    notes: tuple[str, ...] = ()
    """Reasons beside what broke."""
    suite_changes: tuple[str, ...] = ()
    """What is different in suites since the baseline."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """The keys of the suites by the paths that runs have."""
    confirm: Confirm = "none"
    confirmed: Confirmed | None = None
    """What is known of the cases that broke, where the test of all cases left them to chance."""

    @property
    def is_worse(self) -> bool:
        """Whether chance is asked for, and does not explain how much fewer good runs there are in all cases."""
        return self.confirm != "none" and any(test.is_worse for test in self.diff.tests.values())

    def deciding(self, kind: ChangeKind) -> tuple[CaseChange, ...]:
        """Returns the changes of a kind without those of cases in quarantine."""
        return tuple(change for change in self.diff.of(kind) if change.decides)

    @property
    def broke(self) -> int:
        """How many cases broke, as far as that is sure."""
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
        parts = ["all cases together are worse"] if self.is_worse else []
        parts += [f"{counted(self.broke, 'case')} broke"] if self.broke else []
        kinds: tuple[ChangeKind, ...] = ("gone", "missing")
        for kind in kinds:
            if found := len(self.deciding(kind)):
                parts.append(f"{counted(found, 'case')} {'is' if found == 1 else 'are'} {kind}")
        since = f"since the baseline {called(self.batch)}"
        said = f"regression: {' and '.join(parts)} {since}" if parts else f"no regression {since}"
        return " · ".join((said, *self._beside))

    @cached_property
    def _sentences(self) -> Mapping[CellKey, str]:
        changes = (*self.deciding("broke"), *self.deciding("missing"))
        found: dict[CellKey, str] = {(each.suite, each.case_id, each.model): each.kind for each in changes}
        cases = self.confirmed.cases if self.confirmed is not None else ()
        return found | {(case.suite, case.case_id, case.model): case.sentence for case in cases}

    def sentence_of(self, run: RunResult) -> str | None:
        """What became of the case of a run since the baseline, where it broke or is missing."""
        said = self._sentences.get((self.keys.get(run.suite, ""), run.case_id, run.model))
        return None if said is None else f"since the baseline {called(self.batch)}: {said}"

    def surely_broke(self, run: RunResult) -> bool:
        """Whether the case of a run broke, and chance does not explain it as far as that was asked."""
        key = self.keys.get(run.suite, ""), run.case_id, run.model
        if self.confirmed is not None and not self.is_worse:
            return any((case.suite, case.case_id, case.model) == key for case in self.confirmed.of("confirmed"))
        return any((each.suite, each.case_id, each.model) == key for each in self.deciding("broke"))

    @property
    def _beside(self) -> Iterator[str]:
        """Yields what the verdict does not count: cases that are no regression by what is known of them."""
        if self.confirmed is None:
            return
        if recovered := self.confirmed.of("recovered"):
            yield f"{counted(len(recovered), 'case')} failed and passed again"
        if undecided := self.confirmed.of("perhaps by chance"):
            yield f"{counted(len(undecided), 'case')} failed perhaps by chance"
        if self.confirmed.reruns:
            yield counted(self.confirmed.reruns, "extra run")


def baseline_lines(
    against: AgainstBaseline, width: int | None, paint: Paint, *, only_worse: bool = False
) -> Iterator[str]:
    """Yields the changes, and the verdict as the last line. With `only_worse`, single cases are shown only if they
    broke, are gone or in error. Without `width`, nothing is cut."""
    diff = against.diff
    changes = [
        change for change in diff.changes if not only_worse or change.kind in ("broke", "gone", "missing", "errored")
    ]
    again = f", as regraded on {local_time(against.grading.graded_at)}" if against.grading is not None else ""
    title = f"against the baseline {called(against.batch)} of {local_time(against.batch.started_at)}{again}"
    yield ""
    yield paint(title, "strong")
    yield f"  {counts_text(diff, paint)}"
    for sentence in test_lines(against.diff.tests, *BATCH_NAMES):
        yield from (f"  {line}" for line in _wrapped(sentence, width))
    for note in (*notes_of(diff, *BATCH_NAMES, against.suites), *against.notes):
        yield from (paint(f"  {line}", "muted") for line in _wrapped(note, width))
    with_model = len(diff.models) > 1
    yield from change_lines(changes, against.suites, width, paint, with_model=with_model)
    if changes:
        yield ""
    for outcome, line in confirmation_lines(against):
        sign = _SIGNS[outcome]
        for at, part in enumerate(_wrapped(line, width)):
            yield f"{paint(*sign) if sign is not None and not at else ' '} {part}"
    for change in against.suite_changes:
        yield from (paint(f"  {line}", "muted") for line in _wrapped(change, width))
    if against.is_empty:
        yield paint(f"▲ {against.verdict}", "warned")
        return
    yield paint(f"✗ {against.verdict}", "failed") if against.regressed else paint(f"✓ {against.verdict}", "passed")


_SIGNS: Mapping[Confirmation | None, tuple[str, Role] | None] = {
    "confirmed": ("✗", "failed"),
    "recovered": ("·", "muted"),
    "perhaps by chance": ("▲", "warned"),
    None: None,
}


def confirmation_lines(against: AgainstBaseline) -> Iterator[tuple[Confirmation | None, str]]:
    """Yields what is known of each case that broke, with its outcome, and of all cases together, in a sentence each."""
    if against.confirm == "none":
        return
    with_model, cases = len(against.diff.models) > 1, against.confirmed.cases if against.confirmed is not None else ()
    for case in cases[:LINES_MAX]:
        model = f" [{one_line(case.model)}]" if with_model else ""
        yield case.outcome, f"{one_line(case.case_name)}{model}  {one_line(case.sentence)}"
    if (more := len(cases) - LINES_MAX) > 0:
        yield None, f"and {counted(more, 'other case')}"
    for model, test in against.diff.tests.items():
        if (sentence := test.shares_sentence()) is not None:
            yield None, f"{one_line(model)}: {sentence}" if len(against.diff.tests) > 1 else sentence


def _wrapped(sentence: str, width: int | None) -> list[str]:
    """Returns lines to stand behind an indent of two; without `width`, one."""
    if width is None:
        return [sentence]
    return textwrap.wrap(sentence, max(width - 2, 20), break_on_hyphens=False)


def baseline_notes(against: AgainstBaseline) -> Iterator[str]:
    """Yields whether the changes are more than chance, and what else there is to know of the comparison."""
    yield from test_lines(against.diff.tests, *BATCH_NAMES)
    yield from notes_of(against.diff, *BATCH_NAMES, against.suites)
    yield from against.notes


def baseline_markdown(against: AgainstBaseline, redact: Callable[[str], str] = str) -> Iterator[str]:
    """Yields pieces of Markdown: the verdict, the tests, what broke and what was mended since the baseline; `redact`
    takes secrets out of its texts."""
    sign = "▲" if against.is_empty else "✓"
    if against.regressed:
        sign = "✗"
    yield f"\n### {sign} {text(redact(against.verdict))}\n\n{counts_text(against.diff, Paint(False))}\n"
    for note in baseline_notes(against):
        yield f"\n{text(redact(note))}.\n"
    if lines := [*(line for _, line in confirmation_lines(against)), *against.suite_changes]:
        yield "\n" + "".join(f"- {text(redact(line))}\n" for line in lines)
    changes = against.diff.changes
    if changes:
        with_model = len(against.diff.models) > 1
        shown = changes_table(changes[:_CHANGES_MAX], against.suites, with_model=with_model, redact=redact)
        yield "\n" + "".join(f"{line}\n" for line in shown)
        if (more := len(changes) - _CHANGES_MAX) > 0:
            yield f"\nand {counted(more, 'other change')}.\n"
