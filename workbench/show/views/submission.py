"""The table of test prompts that a directory of plugins requires with the submission of a plugin.

It has prompts that must call a tool and prompts that must not, with expected tools, actual calls and verdicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
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
from workbench.show.visible import after
from workbench.suite.files import relative_to_cwd
from workbench.suite.model import Case
from workbench.version import __version__

Kind = Literal["must call", "must not call", "other"]

KINDS: tuple[Kind, ...] = ("must call", "must not call", "other")
NEEDED: dict[Kind, int] = {"must call": 5, "must not call": 3}
"""The number of prompts of each kind that a directory requires."""

_CELL_MAX = 1_000
"""Longest cell of the Markdown table, in characters."""


def kind_of(case: Case) -> Kind:
    """Return whether a case requires a call, forbids all calls, or is `other`, which a submission cannot use.

    A skipped case is `other`."""
    # A skipped case has no result to submit.
    if case.skip is not None:
        return "other"
    if case.expected_calls():
        return "must call"
    if case.forbids_all_calls and not case.expects_nothing_yet:
        return "must not call"
    return "other"


def what_is_missing(cases: Iterable[Case]) -> str | None:
    """Return a text on how many prompts of each kind are missing for a submission.

    Return `None` if no prompt is missing.

    The text lists the ids of the cases that are `other`."""
    ids: defaultdict[Kind, list[str]] = defaultdict(list)
    for case in cases:
        ids[kind_of(case)].append(case.id)
    needs, has, add = [], [], []
    for kind, needed in NEEDED.items():
        there = len(ids[kind])
        needs.append(f"{needed} prompts that {kind} a tool")
        has.append(str(there))
        if there < needed:
            add.append(f"{counted(needed - there, 'case')} with {_KEYS[kind]}")
    if not add:
        return None
    needed_text, has_text, add_text = map(" and ".join, (needs, has, add))
    # The ids of other cases are listed, because the author may have forgotten their expectations.
    neither = after("; skipped, or neither of both: ", ", ".join(ids["other"]))
    return f"a submission needs {needed_text}, and there are {has_text}: add {add_text}{neither}"


_KEYS: dict[Kind, str] = {
    "must call": "an expected call (ordered, unordered or steps)",
    "must not call": "expect_no_calls = true",
}


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A case with one model: its prompt, calls and verdict.

    `asked_for` is true for the prompts that count towards the required number. `made_calls` are the calls of the first
    run with this verdict."""

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
    """Yield each model's cases: five that must call a tool, three that must not, then the other cases."""
    for model in report.totals_per_model:
        # The prompts are grouped by kind, whatever the order of the cases.
        of_kind: dict[Kind, list[ShownCase]] = {kind: [] for kind in KINDS}
        for case in report.quality.cases:
            if case.runs[0].model == model:
                shown = report.shown_case(case)
                of_kind[_kind(shown.case)].append(shown)
        asked_for: list[ShownCase] = []
        beside: list[ShownCase] = []
        for kind, found in of_kind.items():
            needed = NEEDED.get(kind, 0)
            asked_for += found[:needed]
            beside += found[needed:]
        for number, each in enumerate((*asked_for, *beside), 1):
            yield _prompt(each, number, asked_for=number <= len(asked_for))


def _kind(case: Case | None) -> Kind:
    """Return the kind of a case. A case that is no longer in its suite is `other`."""
    if case is None:
        return "other"
    return kind_of(case)


def _prompt(shown: ShownCase, number: int, *, asked_for: bool) -> Prompt:
    case, result = shown.case, shown.result
    # The table shows the calls of the run that decided the verdict of the case.
    run = result.decisive_run
    prompt, expected = "", tuple[str, ...]()
    if case is not None:
        prompt = "\n".join(filter(None, (case.opening_text, *(step.user for step in case.steps))))
        expected = tuple(call.tool_text for call in case.expected_calls())
    return Prompt(
        model=run.model,
        number=number,
        kind=_kind(case),
        asked_for=asked_for,
        suite=relative_to_cwd(run.suite),
        case_id=run.case_id,
        case_name=run.case_name,
        prompt=prompt,
        expected_tools=expected,
        made_calls=tuple(made_lines(run.trajectory)),
        verdict=result.status,
        score=result.score,
        good_runs=result.good,
        runs=len(result.runs),
    )


def markdown_of_submission(report: RunsReport) -> Iterator[str]:
    """Yield a Markdown table for each model. Markup in text from suites, models and tools is escaped."""
    names = ", ".join(map(report.secrets.redact, report.suite_names.values()))
    made = f"Workbench {__version__} · {code(report.started_at)}"
    if report.batch is not None:
        made += f" · batch {report.batch}"
    yield f"# Plugin submission: {text(names)}\n\n{made}\n"
    prompts = list(prompts_of(report))
    by_model: dict[str, list[Prompt]] = {}
    for prompt in prompts:
        by_model.setdefault(prompt.model, []).append(prompt)
    for model, of_model in by_model.items():
        yield f"\n## {code(model)}\n\n{' · '.join(_counts(of_model))}\n"
        asked_for: list[Prompt] = []
        beside: list[Prompt] = []
        for prompt in of_model:
            if prompt.asked_for:
                asked_for.append(prompt)
            else:
                beside.append(prompt)
        yield from _table("", asked_for)
        yield from _table("\nFurther cases:\n", beside)


def _table(title: str, prompts: Sequence[Prompt]) -> Iterator[str]:
    if prompts:
        yield title + "\n"
        for line in table(_TITLES, map(_cells, prompts)):
            yield f"{line}\n"


_TITLES = ("", "prompt", "a tool", "expected tools", "calls made", "verdict")


def _counts(prompts: list[Prompt]) -> Iterator[str]:
    for kind in NEEDED:
        good = asked = 0
        for prompt in prompts:
            if prompt.kind == kind:
                asked += 1
                good += prompt.verdict.good
        sign = "✗"
        if asked and good == asked:
            sign = "✓"
        yield f"{sign} {good} of {counted(asked, 'prompt')} that {kind} a tool passed"


def _cells(prompt: Prompt) -> tuple[str, ...]:
    verdict = f"{prompt.verdict.sign} {prompt.verdict}"
    if prompt.runs > 1:
        verdict += f", {prompt.good_runs} of {prompt.runs} runs"
    kind = "–"
    if prompt.kind != "other":
        kind = prompt.kind
    return (
        str(prompt.number),
        text(cut(prompt.prompt, _CELL_MAX)),
        kind,
        ", ".join(map(code, prompt.expected_tools)) or "none",
        ", ".join(code(cut(call, _CELL_MAX)) for call in prompt.made_calls) or "none",
        verdict,
    )


def json_of_submission(report: RunsReport) -> Iterator[str]:
    """Yield the pieces of the table as a JSON object."""
    whole = {
        "report": "workbench submission",
        "version": 1,
        "workbench": __version__,
        "started_at": report.started_at,
        "batch": report.batch,
        "exit_code": report.exit_code,
        "prompts": list(map(asdict, prompts_of(report))),
    }
    yield json_text(whole, indent=2) + "\n"


def rows_of_submission(report: RunsReport) -> Iterator[str]:
    """Yield a CSV row for each prompt with each model."""
    return csv_rows(map(asdict, prompts_of(report)))
