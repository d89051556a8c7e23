"""Results of mutation testing of tools, for each model.

They are the undetected mutants, the pass rate by number of decoy tools, and the cases that detect no mutant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.analysis.mutants import MutantResult, MutationReport
from workbench.numerals import counted, rate_text
from workbench.show.doc import Block, Items, Paragraph, Section, line_of
from workbench.show.spans import Line, Span
from workbench.show.visible import one_line

_MAX_NAMED = 5


def mutation_view(report: MutationReport) -> Iterator[Block]:
    """Yield a section for each model, then the omitted cases and the number of runs that were saved."""
    # Mutants of several suites may have the same name.
    with_suite = len({result.suite for result in report.results}) > 1
    for model in report.models:
        yield Section(line_of(one_line(model), "strong"), list(_of_model(report, model, with_suite=with_suite)))
    if report.left_out:
        lines = []
        for title, why in report.left_out.items():
            lines.append(line_of(f"- {one_line(title)}: left out, {one_line(why)}", "muted"))
        yield Items(lines, most=len(lines))
    if report.saved_runs:
        yield Paragraph(line_of(f"{counted(report.saved_runs, 'run')} saved: a mutant was noticed before", "muted"))


def _of_model(report: MutationReport, model: str, *, with_suite: bool) -> Iterator[Block]:
    # Decoys are shown as a curve below.
    mine = [each for each in report.results if each.model == model and each.mutant.kind != "decoys"]
    survivors = [result for result in mine if result.survives]
    tried = [result for result in mine if result.run]
    if tried:
        share = f"{len(tried) - len(survivors)} of {counted(len(tried), 'mutant')} noticed"
        yield Paragraph(line_of(share))
    lines = [_survivor_line(result, with_suite=with_suite) for result in survivors]
    for result in mine:
        # A run that ended in an error does not show whether the case detects the mutant. It is listed as an error.
        if result.unclear:
            lines.append(_error_line(result, with_suite=with_suite))
    if lines:
        yield Items(lines, most=len(lines))
    if curve := report.curve(model):
        points = " · ".join(f"{decoys}: {rate_text(rate)}" for decoys, rate in curve)
        yield Paragraph(line_of(f"pass rate over the number of decoys, of cases that pass without: {points}"))
    if blind := report.unnoticing_cases(model):
        cases = counted(len(blind), "case")
        yield Paragraph(line_of(f"{cases} noticed no mutant of an expected tool: {_names(blind)}"))


def _survivor_line(result: MutantResult, *, with_suite: bool) -> Line:
    should = "no case expects a call of it"
    if result.expecting_cases:
        should = f"should be noticed by {_names(result.expecting_cases)}"
    return Span("◇", "warned"), Span(f" survives  {_name(result, with_suite=with_suite)}: {should}")


def _error_line(result: MutantResult, *, with_suite: bool) -> Line:
    return line_of(f"- {_name(result, with_suite=with_suite)}: in error on {_names(result.unclear)}")


def _name(result: MutantResult, *, with_suite: bool) -> str:
    name = result.mutant.name
    if with_suite:
        name = f"{result.suite} › {name}"
    return one_line(name)


def _names(titles: Sequence[str]) -> str:
    text = ", ".join(map(one_line, titles[:_MAX_NAMED]))
    if len(titles) > _MAX_NAMED:
        return f"{text} and {len(titles) - _MAX_NAMED} more"
    return text
