"""The table that directories of plugins ask for: prompts that must call a tool and prompts that must not, expected
tools, made calls, verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Literal

from workbench.dataclasses import dataclass, json_text
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.show.csv import csv_rows
from workbench.show.markdown import code, table, text
from workbench.show.views.grades import cut
from workbench.show.views.runs_report import RunsReport, ShownCase
from workbench.show.views.trajectory import made_lines
from workbench.suite.files import from_here
from workbench.suite.model import Case
from workbench.version import __version__

Kind = Literal["must call", "must not call", "other"]

KINDS: tuple[Kind, ...] = ("must call", "must not call", "other")
NEEDED: dict[Kind, int] = {"must call": 5, "must not call": 3}
"""How many prompts of each kind a directory asks for."""

_CELL_MAX = 1_000
"""Characters of a cell of the Markdown table."""


def kind_of(case: Case) -> Kind:
    """Return what a case asks of calls.

    One that is skipped, or demands neither a call nor none, is no prompt of a submission."""
    if case.skip is not None:
        return "other"
    if case.expected_calls():
        return "must call"
    return "must not call" if case.forbids_all_calls and not case.expects_nothing_yet else "other"


def what_is_missing(cases: Iterable[Case]) -> str | None:
    """Return what these cases lack for a submission, and which of them count for neither kind; `None` for nothing."""
    cases = tuple(cases)
    there = {kind: sum(kind_of(case) == kind for case in cases) for kind in NEEDED}
    lacking = {kind: needed - there[kind] for kind, needed in NEEDED.items() if there[kind] < needed}
    if not lacking:
        return None
    keys = {"must call": "an expected call (ordered, unordered or steps)", "must not call": "expect_no_calls = true"}
    add = " and ".join(f"{counted(number, 'case')} with {keys[kind]}" for kind, number in lacking.items())
    needs = " and ".join(f"{needed} prompts that {kind} a tool" for kind, needed in NEEDED.items())
    has = " and ".join(map(str, there.values()))
    others = ", ".join(case.id for case in cases if kind_of(case) == "other")
    neither = f"; skipped, or neither of both: {others}" if others else ""
    return f"a submission needs {needs}, and there are {has}: add {add}{neither}"


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What a case came to with a model.

    `asked_for` says whether it is one of those that a directory asks for; `made_calls` are those of the first run with
    this verdict."""

    model: str
    number: int
    kind: Kind
    asked_for: bool
    suite: str
    case_id: str
    case_name: str
    prompt: str
    expected_tools: tuple[str, ...]
    made_calls: tuple[str, ...]
    verdict: Status
    score: float | None
    good_runs: int
    runs: int


def prompts_of(report: RunsReport) -> Iterator[Prompt]:
    """Yield what each case came to, model by model: five that must call and three that must not, then the rest."""
    for model in report.totals_per_model:
        shown = [report.shown_case(case) for case in report.quality.cases if case.runs[0].model == model]
        of_kind: dict[Kind, list[ShownCase]] = {kind: [] for kind in KINDS}
        for each in shown:
            of_kind[kind_of(each.case) if each.case is not None else "other"].append(each)
        asked_for = [each for kind, needed in NEEDED.items() for each in of_kind[kind][:needed]]
        beside = [each for kind in KINDS for each in of_kind[kind][NEEDED.get(kind, 0) :]]
        for number, each in enumerate((*asked_for, *beside), 1):
            yield _prompt(each, number, asked_for=number <= len(asked_for))


def _prompt(shown: ShownCase, number: int, *, asked_for: bool) -> Prompt:
    case, result = shown.case, shown.result
    run = next((run for run in result.runs if run.status == result.status), result.runs[0])
    asked = [case.user, *(step.user for step in case.steps)] if case is not None else []
    return Prompt(
        model=run.model,
        number=number,
        kind=kind_of(case) if case is not None else "other",
        asked_for=asked_for,
        suite=from_here(run.suite),
        case_id=run.case_id,
        case_name=run.case_name,
        prompt="\n".join(words for words in asked if words is not None),
        expected_tools=tuple(call.tool_text for call in case.expected_calls()) if case is not None else (),
        made_calls=tuple(made_lines(run.trajectory)),
        verdict=result.status,
        score=result.score,
        good_runs=result.good,
        runs=len(result.runs),
    )


def markdown_of_submission(report: RunsReport) -> Iterator[str]:
    """Yield a table for each model, in which no text of a suite, a model or a tool has any effect."""
    names = ", ".join(report.secrets.redact(suite.name) for suite in report.suites.values())
    batch = f" · batch {report.batch}" if report.batch is not None else ""
    yield f"# Plugin submission: {text(names)}\n\nWorkbench {__version__} · {code(report.started_at)}{batch}\n"
    prompts = list(prompts_of(report))
    for model in dict.fromkeys(prompt.model for prompt in prompts):
        of_model = [prompt for prompt in prompts if prompt.model == model]
        yield f"\n## {code(model)}\n\n{' · '.join(_counts(of_model))}\n"
        for title, asked_for in (("", True), ("\nFurther cases:\n", False)):
            rows = [_cells(prompt) for prompt in of_model if prompt.asked_for == asked_for]
            if rows:
                yield title + "\n" + "".join(f"{line}\n" for line in table(_TITLES, rows))


_TITLES = ("", "prompt", "a tool", "expected tools", "calls made", "verdict")


def _counts(prompts: list[Prompt]) -> Iterator[str]:
    for kind in NEEDED:
        good = [prompt.verdict.good for prompt in prompts if prompt.kind == kind]
        sign = "✓" if good and all(good) else "✗"
        yield f"{sign} {sum(good)} of {counted(len(good), 'prompt')} that {kind} a tool passed"


def _cells(prompt: Prompt) -> tuple[str, ...]:
    sign = prompt.verdict.sign
    several = f", {prompt.good_runs} of {prompt.runs} runs" if prompt.runs > 1 else ""
    return (
        str(prompt.number),
        text(cut(prompt.prompt, _CELL_MAX)),
        "–" if prompt.kind == "other" else prompt.kind,
        ", ".join(map(code, prompt.expected_tools)) or "none",
        ", ".join(code(cut(call, _CELL_MAX)) for call in prompt.made_calls) or "none",
        f"{sign} {prompt.verdict}{several}",
    )


def json_of_submission(report: RunsReport) -> Iterator[str]:
    """Yield one object."""
    whole = {
        "report": "workbench submission",
        "version": 1,
        "workbench": __version__,
        "started_at": report.started_at,
        "batch": report.batch,
        "exit_code": report.exit_code,
        "prompts": [asdict(prompt) for prompt in prompts_of(report)],
    }
    yield json_text(whole, indent=2) + "\n"


def rows_of_submission(report: RunsReport) -> Iterator[str]:
    """Yield a row of CSV for each prompt with each model."""
    return csv_rows(map(asdict, prompts_of(report)))
