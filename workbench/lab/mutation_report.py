"""Which changes of tools a suite does not notice: as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.lab.mutation import MutantResult, MutationReport
from workbench.numerals import counted, rate_text
from workbench.show.text import Paint
from workbench.show.visible import one_line
from workbench.trajectory.events import JsonValue

_MAX_NAMED = 5


def text_of_mutation(report: MutationReport, paint: Paint) -> Iterator[str]:
    """Yield, for each model, the survivors with the cases that should have noticed them, the curve over decoys, and the
    cases that notice nothing."""
    several = len({result.suite for result in report.results}) > 1
    for model in report.models:
        mine = [result for result in report.results if result.model == model and result.mutant.kind != "decoys"]
        survivors = [result for result in mine if result.survives]
        tried = [result for result in mine if result.run]
        yield paint(f"{one_line(model)}\n", "strong")
        if tried:
            share = f"{len(tried) - len(survivors)} of {counted(len(tried), 'mutant')} noticed"
            yield f"  {share}\n"
        for result in survivors:
            yield f"  {paint('◇', 'warned')} survives  {_name(result, several=several)}: {_should(result)}\n"
        for result in mine:
            if result.unclear:
                yield f"  - {_name(result, several=several)}: in error on {_names(result.unclear)}\n"
        curve = report.curve(model)
        if curve:
            points = " · ".join(f"{decoys}: {rate_text(rate)}" for decoys, rate in curve)
            yield f"  pass rate over the number of decoys, of cases that pass without: {points}\n"
        blind = report.blind(model)
        if blind:
            yield f"  {counted(len(blind), 'case')} noticed no mutant of the tools that they expect: {_names(blind)}\n"
    if report.left_out:
        yield "\n"
    for title, why in report.left_out.items():
        yield paint(f"- {one_line(title)}: left out, {one_line(why)}\n", "muted")
    if report.spared:
        yield paint(f"\n{counted(report.spared, 'run')} saved: a mutant was noticed before\n", "muted")


def _name(result: MutantResult, *, several: bool) -> str:
    return one_line(f"{result.suite} › {result.mutant.name}" if several else result.mutant.name)


def _should(result: MutantResult) -> str:
    if not result.should:
        return "no case expects a call of it"
    return f"should be noticed by {_names(result.should)}"


def _names(titles: tuple[str, ...]) -> str:
    more = f" and {len(titles) - _MAX_NAMED} more" if len(titles) > _MAX_NAMED else ""
    return f"{', '.join(map(one_line, titles[:_MAX_NAMED]))}{more}"


def json_of_mutation(report: MutationReport, exit_code: int) -> dict[str, JsonValue]:
    """Return everything that is known of the mutants."""
    return {
        "report": "workbench mutate",
        "version": 1,
        "exit_code": exit_code,
        "runs_saved": report.spared,
        "left_out": dict(report.left_out),
        "models": {
            model: {
                "survivors": [each.mutant.name for each in report.survivors if each.model == model],
                "decoys": [{"decoys": decoys, "pass_rate": rate} for decoys, rate in report.curve(model)],
                "notice_nothing": [*report.blind(model)],
            }
            for model in report.models
        },
        "mutants": [
            {
                "suite": each.suite,
                "name": each.mutant.name,
                "kind": each.mutant.kind,
                "tools": [*each.mutant.tools],
                "model": each.model,
                "survives": each.survives,
                "cases": [*each.run],
                "noticed_by": [*each.noticed],
                "should_be_noticed_by": [*each.should],
                "in_error_on": [*each.unclear],
                "pass_rate": each.pass_rate,
            }
            for each in report.results
        ],
    }
