"""Accepts the calls of a run as the expectation of its case. The grader has paired them with the expected calls.

A whole run becomes the sequence of its calls. Calls that the model requests together in one answer become an any-order
group, because their order is open. If the run has exactly the expected calls in an allowed order, only arguments
change. Checks that pass are kept. The calls of a chain go into its steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from workbench.authoring.document import Document
from workbench.authoring.form.field_text import value_at, without_keys
from workbench.authoring.proposal import (
    NO_CALLS,
    AcceptedCall,
    AcceptError,
    Proposal,
    accept_step,
    accept_step_without_call,
    accept_steps,
    alternative_place,
    check_calls,
    expect_call,
    merged_call,
    places_of,
    proposal_without_secrets,
    update_expectation,
)
from workbench.checks.check import CheckContext, CheckVerdict
from workbench.checks.patterns import CheckError
from workbench.checks.values import json_equal
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.dataclasses import dataclass
from workbench.grading.grade import CallPairing, GradingError, RunResult
from workbench.grading.matching import MAX_PAIRS, best_pairing, rounds_of_steps
from workbench.grading.run import graded_run
from workbench.grading.status import Status
from workbench.grading.traits import TRAITS
from workbench.numerals import counted
from workbench.show.views.accept import AcceptedCase, AcceptedSuite
from workbench.suite.expected_calls import ExpectedCall, tool_text
from workbench.suite.files import relative_to_cwd
from workbench.suite.model import Case, Suite
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.suite.settings import settings_of
from workbench.suite.suite_file import SuiteFile
from workbench.suite.suite_text import SpliceError
from workbench.suite.toml_equality import toml_equal
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord, Trajectory

_Item = TypeVar("_Item")


def accept_run(case: Case, table: Table, trajectory: Trajectory, pairings: Sequence[CallPairing]) -> Proposal:
    """Propose that a case expects all calls of a run.

    In a chain, each step expects only its first call. `pairings` are the grader's pairs of actual and expected calls.
    Raises AcceptError if the calls cannot be accepted."""
    if case.steps:
        return accept_steps(case, table, trajectory, pairings)
    check_calls(trajectory.calls)
    paired = _paired(case, pairings)
    taken: list[AcceptedCall] = []
    for index, record in enumerate(trajectory.calls):
        pair = paired.get(index)
        if pair is not None and not pair.pairing.same_tool:
            pair = None
        taken.append(_taken(record, table, pair))
    calls = tuple(taken)
    in_place = _is_as_expected(case, calls)
    gone: tuple[str, ...] = ()
    if in_place:
        # If an expected call was repeated, it is written once. Expected calls that the run did not make are kept.
        calls = tuple({call.place: call for call in reversed(calls)}.values())[::-1]
    else:
        gone = tuple(_tools_besides(set(places_of(calls)), case))
        calls = tuple(map(_once, calls))
    if calls and "expect_no_calls" in table:
        gone = (NO_CALLS, *gone)
    return Proposal(case.name, calls, whole=True, in_place=in_place, dropped_tools=gone)


def _once(call: AcceptedCall) -> AcceptedCall:
    """Return a call without the keys `optional` and `times`, so that it is expected exactly once."""
    if not call.other_keys:
        return call
    return replace(call, other_keys=without_keys(call.other_keys, "optional", "times"))


def accept_call(
    case: Case, table: Table, trajectory: Trajectory, pairings: Sequence[CallPairing], call: int
) -> Proposal:
    """Propose that a case expects one call of a run.

    `call` is the index of the call in the run. The call replaces the expectation with which it was paired. In a chain,
    it replaces the expectation of its step. If there is no expectation, the call is added. Raises AcceptError if it
    cannot be accepted."""
    if case.steps:
        return accept_step(case, table, trajectory, pairings, call)
    record = trajectory.calls[call]
    check_calls([record])
    paired = _paired(case, pairings)
    gone: tuple[str, ...] = ()
    if (pair := paired.get(call)) is not None:
        if not pair.pairing.same_tool:
            gone = (pair.expected.tool_text,)
        return Proposal(case.name, (_taken(record, table, pair),), whole=False, dropped_tools=gone)
    place: Place = ("ordered", _position_for(call, paired, len(case.ordered)))
    if case.unordered and not case.ordered:
        place = ("unordered", len(case.unordered))
    if "expect_no_calls" in table:
        gone = (NO_CALLS,)
    return Proposal(case.name, (_taken(record, table, None),), whole=False, added_at=place, dropped_tools=gone)


def accept_missing(case: Case, expected: int) -> Proposal:
    """Propose to remove an expected call that the run did not make.

    `expected` is the index of the expected call in the case."""
    if case.steps:
        return accept_step_without_call(case, expected)
    place, call = list(case.placed_expected_calls())[expected]
    return Proposal(case.name, (), whole=False, dropped=(place,), dropped_tools=(call.tool_text,))


@dataclass(frozen=True)
class _Pair:
    place: Place
    expected: ExpectedCall
    pairing: CallPairing


def _paired(case: Case, pairings: Sequence[CallPairing]) -> dict[int, _Pair]:
    places = list(case.placed_expected_calls())
    found: dict[int, _Pair] = {}
    for pairing in pairings:
        call, expected = pairing.call, pairing.expected_call
        # The case may now have fewer expected calls than when the run was graded.
        if call is not None and expected is not None and expected < len(places):
            found[call] = _Pair(*places[expected], pairing)
    return found


def _tools_besides(places: Collection[Place | None], case: Case) -> Iterator[str]:
    written = set(map(_of_whole_call, places))
    for place, call in case.placed_expected_calls():
        if place not in written:
            yield call.tool_text


def _of_whole_call(place: Place | None) -> Place | None:
    if place is not None and "any_of" in place:
        return place[: place.index("any_of")]
    return place


def _taken(record: CallRecord, table: Table, pair: _Pair | None) -> AcceptedCall:
    if pair is None:
        return expect_call(record)
    if not pair.pairing.same_tool:
        return expect_call(record, pair.place)
    place = alternative_place(pair.expected, pair.place, record.tool)
    written = value_at(table, place)
    assert isinstance(written, dict)
    return update_expectation(record, place, written, pair.pairing.arguments)


def _is_as_expected(case: Case, calls: Sequence[AcceptedCall]) -> bool:
    places = places_of(calls)
    if None in places or not places:
        return False
    times = Counter(map(_of_whole_call, places))
    for written, call in case.placed_expected_calls():
        if not call.fewest <= times[written] <= call.most:
            return False
    positions: list[int] = []
    for place in places:
        if place is not None and place[0] == "ordered":
            positions.append(int(place[1]))
    return positions == sorted(positions)


def _position_for(call: int, paired: Mapping[int, _Pair], count: int) -> int:
    """Return the index in the sequence of expected calls at which to insert the expectation of a call.

    `call` is the index of the call in the run. The expectation goes behind the last expected call that an earlier call
    of the run met. If there is no such expected call, it goes before the first expected call that a later call met.
    Otherwise, it goes to the end."""
    before: list[int] = []
    after: list[int] = []
    for index, pair in paired.items():
        if pair.place[0] == "ordered":
            (before if index < call else after).append(int(pair.place[1]))
    if before:
        return max(before) + 1
    return min(after, default=count)


# Several runs of a case can be accepted together. The new expectation has what the runs have in common: the calls that
# every run made, checks that pass for all values, and the common order of the calls. A proposal is graded before it is
# shown, so every run passes with it.


@dataclass(frozen=True)
class RunToAccept:
    """A finished run, and the grader's pairing of its calls with the expected calls."""

    trajectory: Trajectory
    pairings: Sequence[CallPairing] = ()
    cost_usd: float | None = None


def proposal_for_all(
    suite: Suite, case: Case, table: Table, runs: Sequence[RunToAccept], secrets: Secrets = NO_SECRETS
) -> Proposal:
    """Propose expectations that all runs pass.

    `table` is the case as written in the suite. Raises AcceptError if the runs do not agree, or if no expectations let
    all runs pass."""
    lists_all = TRAITS[settings_of(suite, case).grading.by].counts_other_arguments
    proposal = proposal_without_secrets(accept_runs(case, table, runs, lists_all=lists_all), secrets)
    why_not = unmet_reason(suite, proposal, table, runs)
    # Giving up the order of calls loses no check, so it is tried before the proposal is refused.
    if why_not is not None and proposal.calls and proposal.whole and not proposal.in_place and proposal.in_order:
        loosest = replace(proposal, in_order=False)
        if unmet_reason(suite, loosest, table, runs) is None:
            return loosest
    if why_not is not None:
        raise AcceptError(why_not)
    return proposal


def unmet_reason(suite: Suite, proposal: Proposal, table: Table, runs: Sequence[RunToAccept]) -> str | None:
    """Return why a run would not pass with the proposed expectations. Return `None` if all runs pass.

    Judges and functions are not called again, because a check that calls one is proposed only if it passed."""
    return unmet_reason_of_table(suite, proposal.expectations_in(table), runs)


def unmet_reason_of_table(suite: Suite, table: Table, runs: Sequence[RunToAccept]) -> str | None:
    """Return why a run would not pass with the case `table`. Return `None` if all runs pass."""
    case = Case.model_validate(table)
    # This context stands in for functions and judges: it accepts every value.
    context = CheckContext(lambda *_: True, lambda *_: CheckVerdict(1.0, True))
    for number, run in enumerate(runs, 1):
        try:
            graded = graded_run(suite, case, run.trajectory, context=context, cost_usd=run.cost_usd)
        except (CheckError, GradingError) as error:
            return f"the proposed expectations cannot be graded: {error}"
        if not graded.status.good:
            grade = graded.grades[0]
            why = grade.reason
            for issue in grade.issues:
                if issue.decides:
                    why = f"{issue.kind}: {issue.reason}"
                    break
            return f"run {number} of {len(runs)} would be {graded.status} by {grade.grader}: {why}"
    return None


def accept_runs(case: Case, table: Table, runs: Sequence[RunToAccept], *, lists_all: bool = False) -> Proposal:
    """Propose the calls that all runs have in common. If there is only one run, propose all its calls.

    With `lists_all`, arguments that only some runs give become optional. Otherwise they are left out. Raises
    AcceptError, for example if the runs call different tools."""
    proposals = [accept_run(case, table, run.trajectory, run.pairings) for run in runs]
    if len(proposals) == 1:
        return proposals[0]
    if case.steps:
        return _of_chain(case, table, runs, proposals, lists_all=lists_all)
    proposed = [proposal.calls for proposal in proposals]
    _check_tools(list(map(_tools_of, proposed)))
    # A row has the same call in all runs. A column has the calls of one run.
    rows: list[list[AcceptedCall]] = []
    for indices in sorted(_rows(proposed)):
        rows.append([of_run[at] for of_run, at in zip(proposed, indices, strict=True)])
    parts = [*_parts(rows)]
    enumerated = _enumerated(runs)
    calls: list[AcceptedCall] = []
    for row, part in zip(rows, parts, strict=True):
        calls.append(merged_call(row, table, part, enumerated(row[0].tool), lists_all=lists_all))
    places = set(places_of(calls))
    in_place = bool(calls) and all(proposal.in_place for proposal in proposals) and None not in places
    gone = list(_tools_besides(places, case))
    if calls and "expect_no_calls" in table:
        gone.insert(0, NO_CALLS)
    # If all calls come from one answer, their order in the list means nothing.
    columns = zip(*rows, strict=True)
    one_answer = all(len(set(map(_answer, of_run))) == 1 for of_run in columns)
    return Proposal(
        case.name,
        tuple(calls),
        whole=True,
        in_place=in_place,
        in_order=len(calls) < 2 or one_answer or len(set(parts)) > 1,
        dropped_tools=tuple(gone),
    )


def _check_tools(tools: Sequence[frozenset[str]]) -> None:
    if len(set(tools)) == 1:
        return
    counts = Counter(", ".join(sorted(map(tool_text, of_run))) or "nothing" for of_run in tools)
    each = "; ".join(f"{counted(count, 'run')}: {text}" for text, count in counts.most_common())
    raise AcceptError(f"the runs do not call the same tools ({each})")


def _rows(runs: Sequence[Sequence[AcceptedCall]]) -> Iterator[tuple[int, ...]]:
    """Yield the calls that all runs have in common. Each item has the index of the call in every run.

    If runs call a tool different numbers of times, the run with the fewest calls decides which calls count."""
    # The order of the tools does not matter, because the caller sorts the rows.
    for tool in _tools_of(runs[0]):
        of_runs: list[list[int]] = []
        for calls in runs:
            of_runs.append(list(_indices_of(tool, calls)))
        # All other runs have at least as many calls of this tool as the run `fewest`.
        fewest = min(range(len(runs)), key=lambda run: len(of_runs[run]))
        first = _picked(runs[fewest], of_runs[fewest])
        columns = []
        for calls, there in zip(runs, of_runs, strict=True):
            columns.append(_picked(there, _most_similar_calls(first, _picked(calls, there))))
        yield from zip(*columns, strict=True)


def _indices_of(tool: str, calls: Iterable[AcceptedCall]) -> Iterator[int]:
    for at, call in enumerate(calls):
        if call.tool == tool:
            yield at


def _picked(items: Sequence[_Item], indices: Iterable[int]) -> list[_Item]:
    return [items[at] for at in indices]


def _most_similar_calls(first: Sequence[AcceptedCall], others: Sequence[AcceptedCall]) -> list[int]:
    """Match each call of `first` with the most similar of `others`, and return the indices of the matches.

    Calls with the same expectation are preferred, then calls with many equal arguments, then calls at close positions.
    The assignment problem needs a single number, so each criterion weighs more than all later criteria together.
    `others` must have at least as many calls as `first`. Each call is matched at most once."""
    if len(first) * len(others) > MAX_PAIRS:
        return [*range(len(first))]
    unit = (len(first) + 1) * (len(others) + 1)
    gains = []
    for at, call in enumerate(first):
        given = _given(call)
        row = []
        for place, other in enumerate(others):
            theirs = _given(other)
            shared = given.keys() & theirs.keys()
            equal = sum(json_equal(given[name], theirs[name]) for name in shared)
            same_place = call.place is not None and call.place == other.place
            row.append(unit * (unit * same_place * 1000 + 2 * equal + len(shared)) - abs(at - place))
        gains.append(row)
    return [column for _, column in best_pairing(gains)]


def _given(call: AcceptedCall) -> dict[str, JsonValue]:
    return {each.name: each.value for each in call.arguments if each.given}


def _parts(rows: Sequence[Sequence[AcceptedCall]]) -> Iterator[int]:
    """Yield the position (from 1) of each common call in the sequence of expected calls.

    A call gets a later position only if every run made it in a later answer. Calls of one answer share a position."""
    part = 1
    for at in range(len(rows)):
        if at:
            before, after = zip(*rows[:at], strict=True), zip(*rows[at:], strict=True)
            part += all(map(_answered_before, before, after))
        yield part


def _answered_before(earlier: Iterable[AcceptedCall], later: Iterable[AcceptedCall]) -> bool:
    return max(map(_answer, earlier)) < min(map(_answer, later))


def _answer(call: AcceptedCall) -> int:
    return call.answer


def _tools_of(calls: Iterable[AcceptedCall]) -> frozenset[str]:
    return frozenset(call.tool for call in calls)


def _of_chain(
    case: Case, table: Table, runs: Sequence[RunToAccept], proposals: Sequence[Proposal], *, lists_all: bool
) -> Proposal:
    by_place: list[dict[Place | None, AcceptedCall]] = []
    for proposal in proposals:
        by_place.append({call.place: call for call in proposal.calls})
    reached = [rounds_of_steps(case, run.trajectory) for run in runs]
    calls, dropped, enumerated = [], [], _enumerated(runs)
    for number in range(len(case.steps)):
        place: Place = ("steps", number)
        if len({of_run[number] is None for of_run in reached}) > 1:
            raise AcceptError(f"only some of the runs reach step {number + 1}")
        called: list[list[AcceptedCall]] = []
        for of_run in by_place:
            called.append([of_run[place]] if place in of_run else [])
        found = list(chain.from_iterable(called))
        try:
            _check_tools(list(map(_tools_of, called)))
        except AcceptError as error:
            raise AcceptError(f"step {number + 1}: {error}") from error
        if found:
            calls.append(merged_call(found, table, found[0].answer, enumerated(found[0].tool), lists_all=lists_all))
        elif place in proposals[0].dropped:
            dropped.append(place)
    return replace(proposals[0], calls=tuple(calls), dropped=tuple(dropped))


def _enumerated(runs: Sequence[RunToAccept]) -> Callable[[str], Callable[[str], bool]]:
    """Return a function that takes a tool's name and returns a function of an argument's name.

    The inner function returns whether the tool's schema has an `enum` for the argument."""
    start = runs[0].trajectory.start
    schemas: dict[str, object] = {}
    if start is not None:
        schemas = {tool.name: tool.parameters.get("properties") for tool in start.tools}

    def of_tool(tool: str) -> Callable[[str], bool]:
        properties = schemas.get(tool)
        parameters = properties if isinstance(properties, dict) else {}

        def is_enumerated(name: str) -> bool:
            schema = parameters.get(name)
            return isinstance(schema, dict) and isinstance(schema.get("enum"), list)

        return is_enumerated

    return of_tool


# Accept runs of a whole suite: for each case, the calls that its runs have in common.

_ENDED = ("answered", "decided", "steps done", "step failed")
"""Finish reasons of complete runs, which no limit and no refusal cut short."""


@dataclass(frozen=True)
class CaseToAccept:
    """A case with the runs to accept. `left_out` has the reasons why other runs are not accepted."""

    case: Case
    runs: tuple[RunToAccept, ...]
    left_out: tuple[str, ...] = ()


def exclusion_reason(result: RunResult) -> str | None:
    """Return why a run says nothing about the model, for example because of an error. Return `None` if it is usable."""
    finish = result.trajectory.finish
    if result.status in (Status.ERROR, Status.STOPPED) or finish is None:
        return result.error or result.status
    if finish.reason in _ENDED:
        return None
    return f"it ended early: {finish.reason}"


def exclusion_note(result: RunResult, why: str) -> str:
    return f"run {result.repeat + 1} with {result.model}: {why}"


def case_table(file: SuiteFile, case: Case) -> tuple[int, Table]:
    assert file.suite is not None and file.parts is not None, "cases can be accepted only in a suite without errors"
    number = [other.id for other in file.suite.cases].index(case.id)
    index = file.templates[number] if file.templates else number
    return index, file.parts.cases[index]


def accepted_suite(file: SuiteFile, cases: Sequence[CaseToAccept], secrets: Secrets) -> AcceptedSuite:
    """Propose expectations for cases of a valid suite. The rest of the suite's text stays unchanged."""
    # All cases are changed in one document, one after another. The rest of the text, and comments, stay unchanged.
    document, accepted = Document.of(file.text), []
    for each in cases:
        came_to = _accepted(file, each, secrets)
        if came_to.table is not None:
            index, _ = case_table(file, each.case)
            try:
                document = document.with_case(index, came_to.table)
                came_to = replace(came_to, block=document.block(index), table=document.table(index))
            except SpliceError as error:
                came_to = replace(came_to, outcome="not agreed", why=str(error), table=None)
        accepted.append(came_to)
    assert document.parts is not None, "a sound suite has parts"
    after = document.parts.checked().text
    return AcceptedSuite(path=relative_to_cwd(str(file.path)), before=file.text, after=after, cases=tuple(accepted))


def _accepted(file: SuiteFile, target: CaseToAccept, secrets: Secrets) -> AcceptedCase:
    case, runs = target.case, target.runs
    came_to = AcceptedCase(
        case_id=case.id, case_name=case.name, outcome="no runs", runs=len(runs), left_out=target.left_out
    )
    if case.skip is not None:
        return replace(came_to, outcome="skipped", why=case.skip, left_out=())
    if case.each is not None:
        why = f"it is a row of {case.template}, whose expectations name columns: edit that case for all its rows"
        return replace(came_to, outcome="skipped", why=why, left_out=())
    if not runs:
        return came_to
    assert file.suite is not None
    _, table = case_table(file, case)
    try:
        changed = proposal_for_all(file.suite, case, table, runs, secrets).expectations_in(table)
    except AcceptError as error:
        return replace(came_to, outcome="not agreed", why=str(error))
    if toml_equal(changed, table):
        return replace(came_to, outcome="unchanged")
    return replace(came_to, outcome="proposed", table=changed)
