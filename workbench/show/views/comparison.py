"""A comparison for a terminal: the matrix and the totals in as many blocks as the width requires, then the paired
tests."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise

from rich.cells import cell_len

from workbench.analysis.failures import BASELINE
from workbench.analysis.side_by_side import Comparison, Pair, Row
from workbench.dataclasses import dataclass
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.show.text import Paint
from workbench.show.views.cases import Title
from workbench.show.views.comparison_facts import (
    CellWords,
    Trouble,
    cell_words,
    interrupted_line,
    left_out_line,
    rule_line,
    titles_of,
    totals_rows,
    troubles,
)
from workbench.show.visible import ELLIPSIS, fit, one_line, shortened

TITLE_WIDTH_MIN = 12
MODEL_WIDTH_MAX = 28
ERROR_WIDTH_MAX = 1_000
SHOWN_MAX = 10
"""The number of discordant cases of a pair, and of kinds of errors, that are listed; the rest is counted."""

_GAP = "  "


def comparison_lines(
    comparison: Comparison, *, width: int, paint: Paint, only_differences: bool = False, interrupted: bool = False
) -> Iterator[str]:
    """Yields the lines of a report, none wider than `width` where that leaves room for a case and a model. With
    `only_differences`, cases with the same result for all graded models are left out; `interrupted` tells that the
    batch was."""
    rows = [row for row in comparison.rows if row.differs or not only_differences]
    matrix = _matrix(comparison, rows)
    for block in _blocks(matrix, comparison, width) if rows else ():
        yield from _table_lines(matrix, block, comparison, paint)
        yield ""
    if only_differences:
        yield paint(left_out_line(len(comparison.rows) - len(rows)), "muted")
        yield ""
    yield from summary_lines(comparison, width=width, paint=paint, interrupted=interrupted)


def summary_lines(comparison: Comparison, *, width: int, paint: Paint, interrupted: bool = False) -> Iterator[str]:
    """Yields the report without the matrix: totals, errors, and the tests between models."""
    totals = _totals(comparison)
    for block in _blocks(totals, comparison, width):
        yield from _table_lines(totals, block, comparison, paint)
        yield ""
    if interrupted:
        yield paint(interrupted_line(comparison), "strong")
        yield ""
    if rule := rule_line(comparison.repeat_rules):
        yield from (paint(line, "muted") for line in _wrapped(rule, width))
        yield ""
    yield from _trouble_lines(troubles(comparison), width, paint)
    titles = titles_of(comparison) if comparison.pairs else {}
    for pair in comparison.pairs:
        yield from _pair_lines(pair, titles, width, paint)
    if BASELINE in comparison.models:
        yield paint(f"{BASELINE} is a baseline, not a language model", "muted")


@dataclass(frozen=True, slots=True)
class _Table:
    """Rows with a title and a text for each model. `statuses` are those of the cells, where these begin with a sign."""

    first: str
    titles: Sequence[Title]
    texts: Sequence[Sequence[str]]
    statuses: Sequence[Sequence[Status | None]] = ()
    title_width_min: int = TITLE_WIDTH_MIN


@dataclass(frozen=True, slots=True)
class _Block:
    """As many columns as fit behind the titles."""

    title_width: int
    columns: range
    widths: Sequence[int]


def _matrix(comparison: Comparison, rows: Sequence[Row]) -> _Table:
    with_repeats = comparison.with_repeats
    words = [
        [None if cell is None else cell_words(cell, with_repeats=with_repeats) for cell in row.cells] for row in rows
    ]
    graded = [each for row in words for each in row if each is not None and each.latency]
    widths = [max(map(len, parts)) for parts in zip(*map(_parts, graded), strict=True)]
    titles = titles_of(comparison)
    return _Table(
        "case",
        [titles[row.suite, row.case_id] for row in rows],
        [["" if each is None else _aligned(each, widths) for each in row] for row in words],
        [[None if cell is None else cell.status for cell in row.cells] for row in rows],
    )


def _totals(comparison: Comparison) -> _Table:
    rows = totals_rows(comparison.totals, comparison.suite_names, len(comparison.rows), comparison.on_same_cases)
    names, texts = zip(*rows, strict=True)
    return _Table("totals", [Title("", name) for name in names], texts, title_width_min=max(map(cell_len, names)))


def _parts(words: CellWords) -> tuple[str, ...]:
    return words.share, words.broke_off, words.score, words.spread, words.latency


def _aligned(words: CellWords, widths: Sequence[int]) -> str:
    if not words.latency:  # it was not graded
        return f"{words.sign} {words.score}"
    share, broke_off, *others = (f"{part:>{width}}" for part, width in zip(_parts(words), widths, strict=True))
    return " ".join(filter(None, (words.sign, share + broke_off, *others)))


def _blocks(table: _Table, comparison: Comparison, width: int) -> Iterator[_Block]:
    """Splits columns into blocks. Titles get a third of the width, and the space that is left in every block; less
    where two models would not fit otherwise."""
    longest = max(cell_len(title.whole) for title in table.titles)
    model_width = min(MODEL_WIDTH_MAX, max(width - table.title_width_min - 2 * len(_GAP), 2) // 2)
    widths = [
        len(_GAP) + max(min(cell_len(one_line(model)), model_width), *(cell_len(row[place]) for row in table.texts))
        for place, model in enumerate(comparison.models)
    ]
    two = max(map(sum, pairwise(widths)), default=0)
    title_width = max(min(longest, width // 3, width - two), table.title_width_min)
    blocks: list[range] = []
    room = 0
    for place, taken in enumerate(widths):
        if not blocks or taken > room:
            blocks.append(range(place, place))
            room = width - title_width
        blocks[-1] = range(blocks[-1].start, place + 1)
        room -= taken
    over = min(width - title_width - sum(widths[block.start : block.stop]) for block in blocks)
    title_width += max(min(over, longest - title_width), 0)
    for block in blocks:
        yield _Block(title_width, block, [taken - len(_GAP) for taken in widths[block.start : block.stop]])


def _table_lines(table: _Table, block: _Block, comparison: Comparison, paint: Paint) -> Iterator[str]:
    models = zip((one_line(comparison.models[column]) for column in block.columns), block.widths, strict=True)
    headings = [fit(_middle_cut(model, width), width) for model, width in models]
    yield paint(_GAP.join((fit(table.first, block.title_width), *headings)).rstrip(), "strong")
    for place, (title, texts) in enumerate(zip(table.titles, table.texts, strict=True)):
        cells = [fit(texts[column], width) for column, width in zip(block.columns, block.widths, strict=True)]
        if table.statuses:
            signed = zip(cells, (table.statuses[place][column] for column in block.columns), strict=True)
            cells = [paint(cell[:1], status.role) + cell[1:] if status is not None else cell for cell, status in signed]
        yield _GAP.join((fit(title.cut(block.title_width), block.title_width), *cells)).rstrip()


def _middle_cut(text: str, width: int) -> str:
    """Returns a name shortened in its middle: models are often distinguished by the end."""
    if cell_len(text) <= width:
        return text
    tail = text[-(width // 2) :]
    while cell_len(tail) > width // 2:
        tail = tail[1:]
    return shortened(text, width - cell_len(tail)).removesuffix(ELLIPSIS) + ELLIPSIS + tail


def _trouble_lines(found: Sequence[Trouble], width: int, paint: Paint) -> Iterator[str]:
    """Yields the errors of the infrastructure, which are in no number: equal errors of a model once."""
    if not found:
        return
    yield paint("errors, which are in no rate, mean or latency", "strong")
    for trouble in islice(found, SHOWN_MAX):
        why = shortened(one_line(trouble.why), ERROR_WIDTH_MAX)
        problem = f"{one_line(trouble.model)}, {counted(trouble.runs, 'run')}: {why}"
        first, *others = _wrapped(problem, width)
        yield f"{paint(Status.ERROR.sign, Status.ERROR.role)} {first}"
        yield from (f"  {line}" for line in others)
    if len(found) > SHOWN_MAX:
        yield paint(f"  … and {counted(len(found) - SHOWN_MAX, 'other error')}", "muted")
    yield ""


def _pair_lines(pair: Pair, titles: Mapping[tuple[str, str], Title], width: int, paint: Paint) -> Iterator[str]:
    """Yields the results of the tests, each followed by the cases on which the two differ."""
    names = one_line(pair.first), one_line(pair.second)
    yield paint(f"{names[1]} against {names[0]}", "strong")
    for sentence in pair.found.sentences(*names):
        yield from (f"  {line}" for line in _wrapped(sentence, width))
    discordant = pair.found.discordant
    for before, after in islice(discordant, SHOWN_MAX):
        signs = " → ".join(paint(cell.status.sign, cell.status.role) for cell in (before, after))
        yield f"  {signs}  {titles[after.suite, after.case_id].cut(max(width - 9, TITLE_WIDTH_MIN))}"
    if len(discordant) > SHOWN_MAX:
        yield paint(f"  … and {counted(len(discordant) - SHOWN_MAX, 'other case')}", "muted")
    yield ""


def _wrapped(text: str, width: int) -> list[str]:
    """Yields lines wrapped behind an indent of two."""
    return textwrap.wrap(text, max(width - 2, 20), break_on_hyphens=False) or [""]
