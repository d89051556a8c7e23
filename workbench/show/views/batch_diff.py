"""The changes between two batches: their numbers by kind, significance tests, and a line for each change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from workbench.analysis.batch_diff import CHANGE_KINDS, BatchDiff, CaseChange, ChangeKind
from workbench.analysis.measures import SCORE, SLOWER_GROWTH
from workbench.analysis.paired import PairedComparison
from workbench.grading.run_summary import finished_summaries
from workbench.grading.status import GOOD_WORDS
from workbench.history.records import BatchRow, Regrade, RunRow, SameSuites, SuiteRef
from workbench.numerals import count_text, counted, counted_of, duration_text, figure, of_text
from workbench.show.doc import Block, Column, Heading, Paragraph, Table, line_of, words
from workbench.show.forms import LINES_MAX
from workbench.show.spans import Line, Role, Span
from workbench.show.views.agents import agents_of
from workbench.show.views.batch import later_runs
from workbench.show.views.batch_list import batch_name
from workbench.show.views.cases import Title
from workbench.show.visible import one_line, shortened
from workbench.show.when import local_time

_TITLE_LEAST = 12
_MODEL_LEAST = 16
_HOW_LEAST = 24
_HOW_MAX = 400

TONES: dict[ChangeKind, Role] = {
    "broke": "failed",
    "fixed": "passed",
    "moved": "warned",
    "new": "accent",
    "gone": "muted",
    "missing": "failed",
    "slower": "warned",
    "errored": "error",
}


class DiffSide(Protocol):
    """One of two compared batches, with its runs. `grading` is its regrade, or `None` for its original grades."""

    @property
    def batch(self) -> BatchRow: ...
    @property
    def grading(self) -> Regrade | None: ...
    @property
    def runs(self) -> Sequence[RunRow]: ...


_SLOWER = f"{figure(100 * (SLOWER_GROWTH.times - 1))}% and {duration_text(SLOWER_GROWTH.by)}"

MEANINGS: Mapping[ChangeKind, str] = {
    "broke": f"Failed now, {GOOD_WORDS} before.",
    "fixed": f"Failed before, {GOOD_WORDS} now.",
    "moved": "Neither broken nor fixed, but with another status or score.",
    "new": "Only in the later batch.",
    "gone": "Only in the earlier batch.",
    "missing": "Graded before, and skipped now or without anything that is expected.",
    "slower": f"Graded both times, and the model took at least {_SLOWER} longer.",
    "errored": "Graded before, in error now: a problem of the infrastructure, not a regression.",
}


def diff_view(
    diff: BatchDiff, suites: Mapping[str, SuiteRef], *, title: str, tests: Iterable[str], notes: Iterable[str]
) -> Iterator[Block]:
    """Yield the changes between two batches, the sentences on paired tests, and the notes.

    `suites` has the suites by `SuiteRef.key`."""
    yield Heading(line_of(title))
    yield Paragraph(counts_line(diff))
    for sentence in tests:
        yield Paragraph(line_of(sentence))
    for note in notes:
        yield Paragraph(line_of(note, "muted"))
    yield from changes_blocks(diff.changes, suites, with_model=len(diff.models) > 1)


def changes_blocks(
    changes: Sequence[CaseChange], suites: Mapping[str, SuiteRef], *, with_model: bool, max_changes: int = LINES_MAX
) -> Iterator[Block]:
    """Yield a table of the first `max_changes` changes, then a line that counts the other changes."""
    if changes:
        yield changes_table(changes[:max_changes], suites, with_model=with_model)
    if (more := len(changes) - max_changes) > 0:
        yield Paragraph(line_of(f"and {counted(more, 'other change')}: --format records has a line for each", "muted"))


def changes_table(
    changes: Sequence[CaseChange], suites: Mapping[str, SuiteRef], *, with_model: bool
) -> Table[CaseChange]:
    def title(change: CaseChange) -> Title:
        return Title(suites[change.suite].name, change.case_name)

    columns = [
        Column[CaseChange]("what", lambda change: words(change.kind, TONES[change.kind])),
        Column(
            "case",
            lambda change: words(title(change).whole),
            least=_TITLE_LEAST,
            fit=lambda change, width: words(title(change).cut(width)),
        ),
    ]
    if with_model:
        columns.append(Column("model", lambda change: words(one_line(change.model), "muted"), least=_MODEL_LEAST))
    columns.append(
        Column("how", lambda change: words(shortened(one_line(change.sentence), _HOW_MAX)), least=_HOW_LEAST)
    )
    return Table(columns, changes)


def counts_line(diff: BatchDiff) -> Line:
    """Return a line that counts the changes of each kind and the unchanged cases.

    Example: `2 broke · 1 fixed · 0 moved · 3 new · 40 as before`."""
    counts: list[Span] = []
    for kind in CHANGE_KINDS:
        number = len(diff.of(kind))
        # The first three kinds are always named, because an omitted 0 would look like missing data.
        if number or kind in ("broke", "fixed", "moved"):
            role: Role = "muted"
            if number:
                role = TONES[kind]
            counts += [Span(f"{count_text(number)} {kind}", role), Span(" · ", "muted")]
    return *counts, Span(f"{count_text(diff.unchanged_cases)} as before", "muted")


def notes_of(diff: BatchDiff, before: str, after: str, suites: Mapping[str, SuiteRef]) -> Iterator[str]:
    """Yield notes on differences of models and graders, and on cases that could not be compared.

    `before` and `after` are the names of the batches. `suites` has the suites by `SuiteRef.key`."""
    if diff.across is not None:
        # Two batches with a single model each are compared even if the models differ.
        earlier, later = map(one_line, diff.across)
        yield f"the batches have different models: {later} is compared with {earlier}"
    only = []
    # If only one batch has a model, the cases of this model cannot be compared.
    for side, models in ((before, diff.only_before), (after, diff.only_after)):
        if models:
            only.append(f"only {side} has {one_line(', '.join(models))}")
    if only:
        yield f"{'; '.join(only)}: {_models_left(diff)}"
    if diff.left_out:
        yield f"{counted(diff.left_out, 'case')} not compared, because not graded in both"
    yield from _changed_graders(diff, suites)
    if diff.rules:
        rules = (_rule(*rule, cases, diff.compared) for rule, cases in diff.rules.items())
        yield f"graded by other rules: {'; '.join(rules)}"


def _rule(name: str, before: str, after: str, cases: int, compared: int) -> str:
    some = ""
    if cases < compared:
        some = f" ({counted_of(cases, compared, 'case')})"
    return one_line(f"{name} was {before}, and is {after}{some}")


def _changed_graders(diff: BatchDiff, suites: Mapping[str, SuiteRef]) -> Iterator[str]:
    """Yield a note on each change of graders between the batches.

    The note counts the affected cases by suite, unless all cases are affected."""
    compared: set[tuple[str, str]] = set()
    for each in diff.decided:
        compared.update(each.cases)
    of_suites = Counter(suite for suite, _ in compared)
    for each in diff.decided:
        if each.before == each.after:
            continue
        deciders = f"graded by {' and '.join(each.before)} before, by {' and '.join(each.after)} now"
        if len(each.cases) == len(compared):
            yield deciders
            continue
        found = Counter(suite for suite, _ in each.cases)
        parts = []
        for suite, cases in found.items():
            parts.append(_part(cases, of_suites[suite], suites[suite].path))
        yield f"{deciders}: {one_line(', '.join(parts))}"


def _part(cases: int, of: int, path: str) -> str:
    if cases == of:
        return path
    return f"{counted_of(cases, of, 'case')} of {path}"


def _models_left(diff: BatchDiff) -> str:
    if not diff.models:
        return "the batches have no model in common"
    if len(diff.models) == 1:
        return f"only {one_line(min(diff.models))} is compared"
    return "not compared"


def notes_between(diff: BatchDiff, before: DiffSide, after: DiffSide, same: SameSuites, history: str) -> Iterator[str]:
    """Yield all notes on the comparison of two stored batches.

    `same` maps the key of each suite in the earlier batch to the key of the same suite in the later batch. `history` is
    the option that selects the history in printed commands."""
    suites = {}
    for side in (before, after):
        for suite in side.batch.suites:
            suites[suite.key] = suite
    yield from notes_of(diff, *names_of(before, after), suites)
    yield from _agent_versions(before, after)
    yield from _other_differences(before.batch, after.batch, same)
    for side in (before, after):
        yield from later_runs(side.batch, side.grading, side.runs, history)


def _agent_versions(before: DiffSide, after: DiffSide) -> Iterator[str]:
    earlier, later = (agents_of(finished_summaries(side.runs)) for side in (before, after))
    for model, agents in later.items():
        then, now = " and ".join(earlier.get(model, ())), " and ".join(agents)
        if then and then != now:
            yield one_line(f"{model} was {then}, and is {now}")
        elif then:
            yield one_line(f"{model} is {now} in both")


def names_of(before: DiffSide, after: DiffSide) -> tuple[str, str]:
    """Return the names that sentences use for the two batches."""
    return f"#{before.batch.number}", f"#{after.batch.number}"


def title_of(before: DiffSide, after: DiffSide) -> str:
    """Return a title with the name, start and regrade of both batches.

    Example: `#2 (2026-03-02 09:30) → #3 good (2026-03-03 09:30, grading 1)`."""
    titles = []
    for side in (before, after):
        at = local_time(side.batch.started_at)
        titles.append(f"{batch_name(side.batch)} ({at}{by_grading(side.grading)})")
    return " → ".join(titles)


def by_grading(grading: Regrade | None) -> str:
    """Return a suffix for the name of a batch, such as `, grading 1`, or "" for its original grades."""
    if grading is None:
        return ""
    return f", grading {grading.number}"


def _other_differences(before: BatchRow, after: BatchRow, same: SameSuites) -> Iterator[str]:
    for batch in (before, after):
        some: dict[str, None] = {}
        for part in batch.parts:
            if not part.whole:
                some[f"{of_text(part.cases, part.suite.cases)} cases of {part.suite.path}"] = None
        if some:
            yield f"#{batch.number} has only {one_line(', '.join(some))}"
    hashes = {}
    for suite in before.suites:
        hashes[same.get(suite.key, suite.key)] = suite.hash
    changed = []
    for suite in after.suites:
        # A suite that the earlier batch lacks is not reported as changed.
        if hashes.get(suite.key, suite.hash) != suite.hash:
            changed.append(suite.path)
    if changed:
        yield f"changed between the batches: {one_line(', '.join(changed))}"
    then, now = (batch.settings.get("models") for batch in (before, after))
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        others = []
        for name in now:
            if name in then and then[name] != now[name]:
                others.append(name)
        if others:
            yield f"at a different address or with different settings: {one_line(', '.join(others))}"
    if before.program != after.program:
        yield f"made by Workbench {one_line(before.program)}, then {one_line(after.program)}"


def test_lines(tests: Mapping[str, PairedComparison], before: str, after: str) -> Iterator[str]:
    """Yield the results of the models' paired tests as sentences. `before` and `after` are the batches' names."""
    for model, test in tests.items():
        if not test.count:
            continue
        sentences = list(test.sentences(before, after))
        if not test.by(SCORE).differs:
            # The sentence that the scores do not differ adds nothing to the sentence on pass rates.
            equal = test.score_sentence(before, after)
            sentences = [sentence for sentence in sentences if sentence != equal]
        for sentence in sentences:
            if len(tests) > 1:
                sentence = f"{one_line(model)}: {sentence}"
            yield sentence
