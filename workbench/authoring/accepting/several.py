"""Accepts what several runs of a case have in common as its expectation: the loosest calls that all of them meet.

A run alone is accepted as `accepting.run` says. Of several, the calls are expected that every run makes, with checks
that hold for all values; their order only as far as it was always the same. What is proposed has been graded: each of
the runs passes with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from workbench.authoring.accepting.calls import AcceptedCall, AcceptError, merged_call
from workbench.authoring.accepting.proposal import NO_CALLS, Proposal
from workbench.authoring.accepting.redaction import proposal_without_secrets
from workbench.authoring.accepting.run import accept_run
from workbench.checks.check import CheckContext, CheckVerdict
from workbench.checks.patterns import CheckError
from workbench.checks.values import json_equal
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.dataclasses import dataclass
from workbench.grading.assignment import MAX_PAIRS, best_pairing
from workbench.grading.grade import CallPairing, GradingError
from workbench.grading.run import grade_run
from workbench.grading.step_rounds import rounds_of_steps
from workbench.grading.traits import TRAITS
from workbench.suite.model import Case, Suite, tool_text
from workbench.suite.numerals import counted
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.suite.settings import settings_of
from workbench.trajectory.trajectory import Trajectory


@dataclass(frozen=True)
class RunToAccept:
    """A run that is over, and how the grader paired its calls with the expected ones."""

    trajectory: Trajectory
    pairings: Sequence[CallPairing] = ()


def proposal_for_all(
    suite: Suite, case: Case, table: Table, runs: Sequence[RunToAccept], secrets: Secrets = NO_SECRETS
) -> Proposal:
    """Propose expectations of the case that each of the runs meets, so that it passes by the case's grader. `table` is
    the case as the suite writes it. Raises AcceptError if the runs do not agree, or if no expectation lets all of them
    pass."""
    lists_all = TRAITS[settings_of(suite, case).grading.by].counts_other_arguments
    proposal = proposal_without_secrets(accept_runs(case, table, runs, lists_all=lists_all), secrets)
    why_not = why_not_met(suite, proposal, table, runs)
    if why_not is not None and proposal.calls and proposal.whole and not proposal.in_place and proposal.in_order:
        loosest = replace(proposal, in_order=False)
        if why_not_met(suite, loosest, table, runs) is None:
            return loosest
    if why_not is not None:
        raise AcceptError(why_not)
    return proposal


def why_not_met(suite: Suite, proposal: Proposal, table: Table, runs: Sequence[RunToAccept]) -> str | None:
    """Return why one of the runs would not pass with these expectations, `None` if all would. Judges and functions are
    not asked again: checks that need one are proposed only where they held."""
    case = Case.model_validate(proposal.expectations_in(table))
    context = CheckContext(lambda *_: True, lambda *_: CheckVerdict(1.0, True))
    for number, run in enumerate(runs, 1):
        try:
            grades, status = grade_run(suite, case, run.trajectory, context=context)
        except (CheckError, GradingError) as error:
            return f"what it would expect cannot be graded: {error}"
        if status not in ("passed", "warned"):
            grade = grades[0]
            why = next((f"{issue.kind}: {issue.why}" for issue in grade.issues if issue.decides), grade.reason)
            return f"run {number} of {len(runs)} would be {status} by {grade.grader}: {why}"
    return None


def accept_runs(case: Case, table: Table, runs: Sequence[RunToAccept], *, lists_all: bool = False) -> Proposal:
    """Accept what all runs have in common; of one run, all of it. With `lists_all`, arguments that are not always given
    are optional, and not left out. Raises AcceptError, also if the runs do not call the same tools."""
    proposals = [accept_run(case, table, run.trajectory, run.pairings) for run in runs]
    if len(proposals) == 1:
        return proposals[0]
    if case.steps:
        return _of_chain(case, table, runs, proposals, lists_all=lists_all)
    _check_tools([frozenset(call.tool for call in proposal.calls) for proposal in proposals])
    rows = sorted(_rows([proposal.calls for proposal in proposals]))
    rows_of_calls = [[run.calls[at] for run, at in zip(proposals, row, strict=True)] for row in rows]
    parts = [*_parts(rows_of_calls)]
    enumerated = _enumerated(runs)
    calls = tuple(
        merged_call(row, table, part, enumerated(row[0].tool), lists_all=lists_all)
        for row, part in zip(rows_of_calls, parts, strict=True)
    )
    places = {call.place for call in calls}
    in_place = bool(calls) and all(proposal.in_place for proposal in proposals) and None not in places
    gone = [call.tool_text for place, call in case.placed_expected_calls() if place not in places]
    no_calls = [NO_CALLS] if calls and "expect_no_calls" in table else []
    one_answer = all(len({call.answer for call in column}) == 1 for column in zip(*rows_of_calls, strict=True))
    return Proposal(
        case.name,
        calls,
        whole=True,
        in_place=in_place,
        in_order=len(calls) < 2 or one_answer or len(set(parts)) > 1,
        gone=(*no_calls, *gone),
    )


def _check_tools(tools: Sequence[frozenset[str]]) -> None:
    if len(set(tools)) > 1:
        counts = Counter(", ".join(sorted(map(tool_text, of_run))) or "nothing" for of_run in tools)
        each = "; ".join(f"{counted(count, 'run')}: {text}" for text, count in counts.most_common())
        raise AcceptError(f"the runs do not call the same tools ({each})")


def _rows(runs: Sequence[Sequence[AcceptedCall]]) -> Iterator[tuple[int, ...]]:
    """Yield which calls of the runs are the same one, by their indices: those that every run makes."""
    for tool in {call.tool for call in runs[0]}:
        of_runs = [[at for at, call in enumerate(calls) if call.tool == tool] for calls in runs]
        fewest = min(range(len(runs)), key=lambda run: len(of_runs[run]))
        columns = []
        for run, there in enumerate(of_runs):
            first = [runs[fewest][at] for at in of_runs[fewest]]
            columns.append([there[at] for at in _alike(first, [runs[run][at] for at in there])])
        yield from zip(*columns, strict=True)


def _alike(first: Sequence[AcceptedCall], others: Sequence[AcceptedCall]) -> list[int]:
    """Return for each call the most similar one of at least as many, each once: of the same expectation, then with the
    most equal arguments, then at the nearest place."""
    if len(first) * len(others) > MAX_PAIRS:
        return [*range(len(first))]
    unit = (len(first) + 1) * (len(others) + 1)
    gains = []
    for at, call in enumerate(first):
        given = {each.name: each.value for each in call.arguments if each.given}
        row = []
        for place, other in enumerate(others):
            theirs = {each.name: each.value for each in other.arguments if each.given}
            shared = [name for name in given if name in theirs]
            equal = sum(json_equal(given[name], theirs[name]) for name in shared)
            same_place = call.place is not None and call.place == other.place
            row.append(unit * (unit * same_place * 1000 + 2 * equal + len(shared)) - abs(at - place))
        gains.append(row)
    return [column for _, column in best_pairing(gains)]


def _parts(rows: Sequence[Sequence[AcceptedCall]]) -> Iterator[int]:
    """Yield the part of the sequence, from 1, to which each row belongs: a part comes after another one if it did in
    every run. Calls of one answer have no order."""
    part = 1
    for at in range(len(rows)):
        if at:
            before, after = zip(*rows[:at], strict=True), zip(*rows[at:], strict=True)
            part += all(
                max(call.answer for call in earlier) < min(call.answer for call in later)
                for earlier, later in zip(before, after, strict=True)
            )
        yield part


def _of_chain(
    case: Case, table: Table, runs: Sequence[RunToAccept], proposals: Sequence[Proposal], *, lists_all: bool
) -> Proposal:
    """Accept what the runs of a chain have in common. Steps that no run reached stay as they are."""
    by_place: list[dict[Place | None, AcceptedCall]] = [
        {call.place: call for call in proposal.calls} for proposal in proposals
    ]
    reached = [rounds_of_steps(case, run.trajectory) for run in runs]
    calls, dropped, enumerated = [], [], _enumerated(runs)
    for number in range(len(case.steps)):
        place: Place = ("steps", number)
        if len({of_run[number] is None for of_run in reached}) > 1:
            raise AcceptError(f"only some of the runs reach step {number + 1}")
        found = [of_run[place] for of_run in by_place if place in of_run]
        try:
            _check_tools([frozenset({of_run[place].tool} if place in of_run else ()) for of_run in by_place])
        except AcceptError as error:
            raise AcceptError(f"step {number + 1}: {error}") from error
        if found:
            calls.append(merged_call(found, table, found[0].answer, enumerated(found[0].tool), lists_all=lists_all))
        elif place in proposals[0].dropped:
            dropped.append(place)
    return replace(proposals[0], calls=tuple(calls), dropped=tuple(dropped))


def _enumerated(runs: Sequence[RunToAccept]) -> Callable[[str], Callable[[str], bool]]:
    """Return what tells of a tool, and then of an argument, whether the tool's schema lists its possible values."""
    start = runs[0].trajectory.start
    schemas = {tool.name: tool.parameters.get("properties") for tool in (start.tools if start is not None else ())}

    def of_tool(tool: str) -> Callable[[str], bool]:
        properties = schemas.get(tool)
        parameters = properties if isinstance(properties, dict) else {}

        def is_enumerated(name: str) -> bool:
            schema = parameters.get(name)
            return isinstance(schema, dict) and isinstance(schema.get("enum"), list)

        return is_enumerated

    return of_tool
