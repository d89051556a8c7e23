"""The alignment of two runs: no part is lost or repeated, and equal parts are in one row."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings

from tests.analysis.drawn_runs import asked, call, run, trajectories
from tests.example_counts import examples
from workbench.analysis import alignment
from workbench.analysis.alignment import (
    MAX_COMPARED,
    AlignedRow,
    Part,
    PartState,
    align,
    call_key,
    first_difference,
    result_key,
    same_call,
    same_result,
)
from workbench.trajectory.events import JsonValue, Message, RunStarted
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

FEW = settings(max_examples=examples(100))
SEARCH, BOOK = call("search", to="LHR"), call("book", flight="BA 700")


def beside(rows: tuple[AlignedRow, ...], kind: str = "call") -> list[tuple[str | None, str | None, PartState]]:
    """Return the aligned parts by the names of tools or the numbers of rounds."""
    return [
        (*(_name(part) if part is not None else None for part in (row.left, row.right)), row.state)  # type: ignore[misc]
        for row in rows
        if row.part.kind == kind
    ]


def _name(part: Part) -> str:
    return part.call.tool if part.call is not None else part.text or str(part.round)


def parts_of(trajectory: Trajectory) -> list[object]:
    """Return all displayed parts of a run in order."""
    start = trajectory.start
    found: list[object] = [start.system] if start is not None and start.system else []
    found += [message.content for message in start.messages] if start is not None else []
    for each in trajectory.rounds:
        found.append(each)
        found += [each.step.system] if each.step is not None and each.step.system else []
        found += [each.step.user] if each.step is not None and each.step.user else []
        found += [each.said.text] if each.said is not None and each.said.text else []
        found += [*each.added, *([each.text] if each.text else [])]
        for made in each.calls:
            found += [made, *([made.result] if made.result is not None else [])]
    return [*found, "the end"]


def shown(part: Part) -> object:
    if part.kind == "end":
        return "the end"
    if part.kind == "result" and part.call is not None:
        return part.call.result
    return part.of or part.call or part.text


@FEW
@given(trajectories, trajectories)
def test_every_part_of_both_runs_is_there_once_and_in_order(left: Trajectory, right: Trajectory) -> None:
    rows = align(left, right)
    assert [shown(row.left) for row in rows if row.left is not None] == parts_of(left)
    assert [shown(row.right) for row in rows if row.right is not None] == parts_of(right)


@FEW
@given(trajectories, trajectories)
def test_the_side_that_is_alone_is_named(left: Trajectory, right: Trajectory) -> None:
    for row in align(left, right):
        assert (row.left is None) == (row.state == "right")
        assert (row.right is None) == (row.state == "left")


@FEW
@given(trajectories)
def test_a_run_beside_itself_is_the_same_all_along(trajectory: Trajectory) -> None:
    assert {row.state for row in align(trajectory, trajectory)} == {"same"}


def has_manual_message(trajectory: Trajectory) -> bool:
    return any(each.said is not None and each.said.by == "person" for each in trajectory.rounds)


@FEW
@given(trajectories, trajectories)
def test_something_differs_just_where_there_is_a_first_difference(left: Trajectory, right: Trajectory) -> None:
    rows = align(left, right)
    found = first_difference(left, right)
    assert (found is not None) == any(row.state != "same" for row in rows)
    is_touched = left.touched or right.touched or has_manual_message(left) or has_manual_message(right)
    if found is not None and not is_touched:
        before = [row for row in rows if row.part.kind == "round" and row.part.round < found.round]
        assert all(row.state == "same" for row in before)


def test_a_round_that_only_one_run_has_stands_alone_and_the_rest_beside_what_belongs_to_it() -> None:
    left = run(asked(1, "", SEARCH), asked(2, "", BOOK), asked(3, "Booked."))
    right = run(asked(1, "", SEARCH), asked(2, "", call("search", to="CDG")), asked(3, "", BOOK), asked(4, "Done."))
    rows = align(left, right)
    assert beside(rows) == [("search", "search", "same"), (None, "search", "right"), ("book", "book", "same")]
    assert [row.state for row in rows if row.part.kind == "round"] == ["same", "right", "same", "differs"]
    assert beside(rows, "text") == [("Booked.", "Done.", "differs")]


def test_a_call_that_was_made_instead_of_another_stands_beside_it() -> None:
    rows = align(run(asked(1, "", SEARCH)), run(asked(1, "", BOOK)))
    assert beside(rows) == [("search", "book", "differs")]


def test_calls_of_one_round_are_matched_by_their_tools() -> None:
    other = call("search", to="CDG")
    rows = align(run(asked(1, "", SEARCH, BOOK)), run(asked(1, "", BOOK, other)))
    assert beside(rows) == [("search", None, "left"), ("book", "book", "same"), (None, "search", "right")]


def test_what_ends_alike_stays_together_behind_a_difference() -> None:
    end = asked(3, "Good night.")
    rows = align(run(asked(1, "", SEARCH), end), run(asked(1, "", BOOK), asked(2, "", SEARCH), end))
    assert [row.state for row in rows if row.part.kind == "round"] == ["right", "same", "same"]


def test_another_system_prompt_and_another_message_are_seen() -> None:
    def started(system: str, user: str) -> Trajectory:
        start = RunStarted("hash", "case", "Case", "m", system, (Message("user", user),), ())
        return replace(run(asked(1, "Hello.")), start=start)

    rows = align(started("Be brief.", "Hi"), started("Be kind.", "Hi"))
    assert [(row.part.kind, row.state) for row in rows[:2]] == [("system", "differs"), ("said", "same")]


@FEW
@given(trajectories, trajectories)
def test_calls_that_are_the_same_are_told_by_their_identity(left: Trajectory, right: Trajectory) -> None:
    for one, other in product(left.calls, right.calls):
        assert (call_key(one) == call_key(other)) == same_call(one, other)
        assert (result_key(one) == result_key(other)) == same_result(one, other)


def test_what_is_no_json_number_is_told_from_one_however_deep_and_5_is_5_0() -> None:
    deep: JsonValue = 5
    for _ in range(5_000):
        deep = [{"in": deep}]
    same = call_key(call("search", deep=deep, number=5, found=True))
    assert same == call_key(call("search", number=5.0, found=True, deep=deep))
    assert same != call_key(call("search", number=5, found=1, deep=deep))


def test_many_calls_of_one_round_are_each_compared_with_the_one_beside_them_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = []

    def counted(one: CallRecord, other: CallRecord) -> bool:
        compared.append(one)
        return same_call(one, other)

    monkeypatch.setattr(alignment, "same_call", counted)
    many = [[call("search", to=f"{side}{number}") for number in range(60)] for side in ("a", "b")]
    align(*(run(asked(1, "", *calls)) for calls in many))
    assert len(compared) <= 2 * 60


def test_very_long_runs_that_differ_everywhere_are_paired_in_their_order() -> None:
    def long(tool: str) -> Trajectory:
        calls: list[CallRecord] = [call(tool, number=number) for number in range(MAX_COMPARED // 50)]
        rounds: list[Round] = [asked(number, "", each) for number, each in enumerate(calls, 1)]
        return run(*rounds)

    rows = [row for row in align(long("search"), long("book")) if row.part.kind == "round"]
    assert all(row.left and row.right and row.left.round == row.right.round for row in rows)
