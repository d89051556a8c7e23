"""A comparison as GitHub Markdown: tables with models across, and the results of the tests in sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from workbench.analysis.comparison import Cell, CellKey
from workbench.analysis.side_by_side import Comparison, Pair, compared
from workbench.analysis.watched import PairWatched
from workbench.dataclasses import dataclass
from workbench.numerals import counted
from workbench.show.markdown import code, table, text
from workbench.show.views.baseline import AgainstBaseline, baseline_markdown
from workbench.show.views.cases import Title
from workbench.show.views.comparison_facts import (
    cell_words,
    interrupted_line,
    left_out_line,
    rule_line,
    titles_of,
    totals_rows,
    troubles,
)
from workbench.suite.model import Gate


@dataclass(frozen=True, slots=True)
class Filtered:
    """Selected cases, each by its suite and id, and the words of the filter."""

    words: str
    cases: Collection[tuple[str, str]]


def comparison_markdown(
    cells: Mapping[CellKey, Cell],
    models: Sequence[str],
    suite_names: Mapping[str, str],
    gates: Mapping[str, Gate],
    *,
    only_differences: bool = False,
    filtered: Filtered | None = None,
    watched: Sequence[PairWatched] = (),
) -> str:
    """Yields cells as Markdown, in columns by `models`; `suite_names` gives the names of suites, and `gates` their
    gates, by the keys of suites in the cells. `watched` as in `compared`."""
    return markdown_of(
        compared(cells, models, suite_names, gates, watched), only_differences=only_differences, filtered=filtered
    )


def markdown_of(
    comparison: Comparison,
    *,
    only_differences: bool = False,
    filtered: Filtered | None = None,
    interrupted: bool = False,
    recorded_as: str | None = None,
    against: AgainstBaseline | None = None,
) -> str:
    """Yields a comparison as Markdown. With `only_differences`, cases with the same result for all graded models are
    left out, and with `filtered` those that are not selected; totals and tests cover all cases. `interrupted` tells
    that the batch was, `recorded_as` where it is stored; `against` is the comparison with a stored one."""
    chosen = [row for row in comparison.rows if filtered is None or (row.suite, row.case_id) in filtered.cases]
    rows = [row for row in chosen if row.differs or not only_differences]
    parts: list[Iterable[str]] = []
    models = [code(model) for model in comparison.models]
    titles = titles_of(comparison)
    if rows:
        with_repeats = comparison.with_repeats  # computed once, because it looks at all cells
        matrix = (
            (
                text(titles[row.suite, row.case_id].whole),
                *(_cell(cell, with_repeats=with_repeats) for cell in row.cells),
            )
            for row in rows
        )
        parts.append(table(["Case", *models], matrix))
    if filtered is not None:
        which = f"{len(chosen):,} of {counted(len(comparison.rows), 'case')}"
        only = ", only differences" if only_differences else ""
        parts.append([f"Filter {code(filtered.words)}{only}: {which}; totals and tests are of all."])
    elif only_differences:
        parts.append([f"{left_out_line(len(comparison.rows) - len(rows)).capitalize()}."])
    parts.append(
        table(
            ["Totals", *models],
            (
                (name, *words)
                for name, words in totals_rows(
                    comparison.totals, comparison.suite_names, len(comparison.rows), comparison.on_same_cases
                )
            ),
        )
    )
    if interrupted:
        parts.append([f"{interrupted_line(comparison).capitalize()}."])
    if rule := rule_line(comparison.repeat_rules):
        parts.append([f"{rule.capitalize()}."])
    if found := troubles(comparison):
        items = (f"- {code(each.model)}, {counted(each.runs, 'run')}: {text(each.why)}" for each in found)
        parts.append(["Errors, which are in no rate, mean or latency:", "", *items])
    parts += (_pair(pair, titles) for pair in comparison.pairs)
    if against is not None:
        parts.append(["".join(baseline_markdown(against)).strip()])
    if recorded_as is not None:
        parts.append([f"{recorded_as.capitalize()}."])
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _cell(cell: Cell | None, *, with_repeats: bool) -> str:
    if cell is None:
        return ""
    words = cell_words(cell, with_repeats=with_repeats)
    score = f"{words.score} {words.spread}".rstrip()
    return f"{words.sign} {' · '.join(filter(None, (words.share + words.broke_off, score, words.latency)))}"


def _pair(pair: Pair, titles: Mapping[tuple[str, str], Title]) -> Iterator[str]:
    names = code(pair.first), code(pair.second)
    sentences = ". ".join(sentence[:1].upper() + sentence[1:] for sentence in pair.found.sentences(*names))
    yield f"**{names[1]} against {names[0]}:** {sentences}."
    if pair.found.discordant:
        yield ""
    for before, after in pair.found.discordant:
        signs = f"{before.status.sign} → {after.status.sign}"
        yield f"- {signs} {text(titles[after.suite, after.case_id].whole)}"
