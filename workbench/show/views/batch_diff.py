"""The changes between two batches, as lines for a terminal and as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from rich.cells import cell_len

from workbench.analysis.batch_diff import KINDS, BatchDiff, CaseChange, ChangeKind
from workbench.analysis.paired import Paired
from workbench.history.records import BatchRow, Regrade, RunRow, SameSuites, SuiteRef
from workbench.numerals import counted
from workbench.show.forms import LINES_MAX
from workbench.show.markdown import code, table, text
from workbench.show.spans import Role
from workbench.show.text import Paint
from workbench.show.views.batch import later_runs
from workbench.show.views.batch_list import called
from workbench.show.views.cases import Title, cut_titles, cut_what
from workbench.show.visible import fit, one_line
from workbench.show.when import local_time

_TITLE_MIN = 12
_MODEL_MAX = 24

TONES: dict[ChangeKind, Role] = {
    "broke": "failed",
    "fixed": "passed",
    "moved": "warned",
    "new": "text",
    "gone": "text",
    "missing": "failed",
    "slower": "warned",
    "errored": "error",
}


class DiffSide(Protocol):
    """A batch, its runs, and the regrade that counts, `None` for the original grades."""

    @property
    def batch(self) -> BatchRow: ...
    @property
    def grading(self) -> Regrade | None: ...
    @property
    def runs(self) -> Sequence[RunRow]: ...


def counts_text(diff: BatchDiff, paint: Paint) -> str:
    """Returns how many cases changed in which way: `2 broke · 1 fixed · 0 moved · 3 new`, and how many did not."""
    found = [(kind, len(diff.of(kind))) for kind in KINDS]
    counts = [_count(number, kind, paint) for kind, number in found if number or kind in ("broke", "fixed", "moved")]
    return " · ".join([*counts, f"{diff.as_before:,} as before"])


def _count(number: int, kind: ChangeKind, paint: Paint) -> str:
    return paint(f"{number:,} {kind}", TONES[kind] if number else "muted")


def notes_of(diff: BatchDiff, before: str, after: str, suites: Mapping[str, SuiteRef]) -> Iterator[str]:
    """Yields what a reader has to know of the comparison: models and graders that differ, and what could not be
    compared. `before` and `after` name the batches, `suites` are by their keys."""
    if diff.across is not None:
        earlier, later = map(one_line, diff.across)
        yield f"the batches have different models: {later} is compared with {earlier}"
    sides = ((before, diff.only_before), (after, diff.only_after))
    if only := [f"only {side} has {one_line(', '.join(models))}" for side, models in sides if models]:
        yield f"{'; '.join(only)}: {_models_left(diff)}"
    if diff.left_out:
        yield f"{counted(diff.left_out, 'case')} not compared, because not graded in both"
    yield from _graded_otherwise(diff, suites)
    if diff.rules:
        rules = (_rule(*rule, cases, diff.compared) for rule, cases in diff.rules.items())
        yield f"graded by other rules: {'; '.join(rules)}"


def _rule(name: str, before: str, after: str, cases: int, compared: int) -> str:
    some = f" ({cases:,} of {counted(compared, 'case')})" if cases < compared else ""
    return one_line(f"{name} was {before}, and is {after}{some}")


def _graded_otherwise(diff: BatchDiff, suites: Mapping[str, SuiteRef]) -> Iterator[str]:
    """Yields that different graders decided in the later batch, and for which cases, where these are not all."""
    compared = {case for each in diff.decided for case in each.cases}
    of_suites = Counter(suite for suite, _ in compared)
    for each in diff.decided:
        if each.before != each.after:
            deciders = f"graded by {' and '.join(each.before)} before, by {' and '.join(each.after)} now"
            found = Counter(suite for suite, _ in each.cases)
            parts = (_part(cases, of_suites[suite], suites[suite].path) for suite, cases in found.items())
            yield deciders if len(each.cases) == len(compared) else f"{deciders}: {one_line(', '.join(parts))}"


def _part(cases: int, of: int, path: str) -> str:
    return path if cases == of else f"{cases:,} of {counted(of, 'case')} of {path}"


def _models_left(diff: BatchDiff) -> str:
    if not diff.models:
        return "the batches have no model in common"
    return f"only {one_line(min(diff.models))} is compared" if len(diff.models) == 1 else "not compared"


def notes_between(diff: BatchDiff, before: DiffSide, after: DiffSide, same: SameSuites, history: str) -> Iterator[str]:
    """Yields all notes on two batches of a history; `same` as in `batch_diff`, `history` is the option that commands
    need to find them."""
    suites = {suite.key: suite for side in (before, after) for suite in side.batch.suites}
    yield from notes_of(diff, *names_of(before, after), suites)
    yield from _what_else(before.batch, after.batch, same)
    for side in (before, after):
        yield from later_runs(side.batch, side.grading, side.runs, history)


def names_of(before: DiffSide, after: DiffSide) -> tuple[str, str]:
    """Returns the names of the batches in sentences."""
    return f"#{before.batch.number}", f"#{after.batch.number}"


def title_of(before: DiffSide, after: DiffSide) -> str:
    """Returns which batches they are, when they began, and the regrade of each where one is used: `#2 (2026-03-02
    09:30) → #3 good (2026-03-03 09:30, grading 1)`."""
    return " → ".join(
        f"{called(side.batch)} ({local_time(side.batch.started_at)}{by_grading(side.grading)})"
        for side in (before, after)
    )


def by_grading(grading: Regrade | None) -> str:
    """Returns the regrade that is used of a batch, to follow its name; empty for the original grades."""
    return f", grading {grading.number}" if grading is not None else ""


def _what_else(before: BatchRow, after: BatchRow, same: SameSuites) -> Iterator[str]:
    """Yields what differs in the later batch apart from the results of its runs."""
    for batch in (before, after):
        parts = [part for part in batch.parts if not part.whole]
        some = dict.fromkeys(f"{part.cases:,} of {part.suite.cases:,} cases of {part.suite.path}" for part in parts)
        if some:
            yield f"#{batch.number} has only {one_line(', '.join(some))}"
    hashes = {same.get(suite.key, suite.key): suite.hash for suite in before.suites}
    changed = [suite.path for suite in after.suites if hashes.get(suite.key, suite.hash) != suite.hash]
    if changed:
        yield f"changed between the batches: {one_line(', '.join(changed))}"
    then, now = (batch.settings.get("models") for batch in (before, after))
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        others = [name for name in now if name in then and then[name] != now[name]]
        if others:
            yield f"at a different address or with different settings: {one_line(', '.join(others))}"
    if before.program != after.program:
        yield f"made by Workbench {one_line(before.program)}, then {one_line(after.program)}"


def test_lines(tests: Mapping[str, Paired], before: str, after: str) -> Iterator[str]:
    """Yields the results of the paired tests of some models in plain sentences; `before` and `after` name the
    batches."""
    for model, test in tests.items():
        if test.count:
            of_model = f"{one_line(model)}: " if len(tests) > 1 else ""
            alike = () if any(test.differences) else (test.score_sentence(before, after),)
            yield from (f"{of_model}{told}" for told in test.sentences(before, after) if told not in alike)


def change_lines(
    changes: Sequence[CaseChange], suites: Mapping[str, SuiteRef], width: int | None, paint: Paint, *, with_model: bool
) -> Iterator[str]:
    """Yields a heading for each kind and a line for each change; `suites` by their keys. Without `width`, no line is
    cut; of more than `LINES_MAX` changes, the first ones have a line."""
    more, changes = len(changes) - LINES_MAX, changes[:LINES_MAX]
    models = max((cell_len(one_line(change.model)) for change in changes), default=0) if with_model else 0
    model = min(models, _MODEL_MAX, max(width // 6, _TITLE_MIN)) if width is not None else models
    taken = 2 + 2 + (model + 2 if with_model else 0)
    longest = max((cell_len(one_line(change.sentence)) for change in changes), default=0)
    least = max(width // 3, width - taken - longest, _TITLE_MIN) if width is not None else None
    titles = cut_titles([_title(change, suites) for change in changes], least)
    kind = None
    for change, title in zip(changes, titles, strict=True):
        if change.kind != kind:
            kind = change.kind
            yield ""
            yield paint(kind, TONES[kind])
        lead = f"  {title}"
        if with_model:
            lead += f"  {paint(fit(one_line(change.model), model), 'muted')}"
        room = width - taken - cell_len(title) if width is not None else None
        yield f"{lead}  {cut_what(change.sentence, room)}"
    if more > 0:
        yield f"and {counted(more, 'other change')}: --format records has a line for each"


def markdown_lines(
    diff: BatchDiff, suites: Mapping[str, SuiteRef], *, title: str, notes: Sequence[str], with_model: bool
) -> Iterator[str]:
    """Yields the changes for a pull request: the counts, and one table of all changes."""
    yield f"## {text(title)}"
    yield ""
    yield counts_text(diff, Paint(False))
    for note in notes:
        yield ""
        yield text(note)
    if not diff.changes:
        return
    yield ""
    yield from changes_table(diff.changes, suites, with_model=with_model)


def changes_table(
    changes: Sequence[CaseChange],
    suites: Mapping[str, SuiteRef],
    *,
    with_model: bool,
    redact: Callable[[str], str] = str,
) -> Iterator[str]:
    """Yields changes as a table of Markdown; `redact` takes secrets out of its texts."""
    rows = (
        (
            change.kind,
            text(redact(_title(change, suites).whole)),
            *([code(redact(change.model))] if with_model else []),
            text(redact(change.sentence)),
        )
        for change in changes[:LINES_MAX]
    )
    yield from table(["what", "case", *(["model"] if with_model else []), "how"], rows)
    if (more := len(changes) - LINES_MAX) > 0:
        yield f"\nand {counted(more, 'other change')}"


def _title(change: CaseChange, suites: Mapping[str, SuiteRef]) -> Title:
    return Title(suites[change.suite].name, change.case_name)
