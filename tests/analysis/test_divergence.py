"""The first difference of two trajectories: its place, its kind and its wording."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.drawn_runs import asked, call, run, trajectories
from tests.tables import each_row
from workbench.analysis.alignment import Difference, first_difference
from workbench.trajectory.events import JsonValue, ResultReceived, ToolCall, UserSaid, UserSource
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory


def spoken(text: str, by: UserSource) -> Round:
    return replace(asked(1), said=UserSaid(1, text, by))


LIGHTS, TV = call("set_lights", room="hall"), call("set_tv", power="off")


@each_row(
    ("origin", "fork", "where", "sentence"),
    [
        (
            run(asked(1, "", LIGHTS), asked(2, "Done.")),
            run(asked(1, "", LIGHTS), asked(2, "Now the TV.", TV)),
            (2, "tool", 0),
            'round 2: calls set_tv(power="off") instead of answering',
        ),
        (
            run(asked(1, "", LIGHTS, TV)),
            run(asked(1, "", LIGHTS)),
            (1, "tool", 1),
            'round 1, call 2: does not call set_tv(power="off")',
        ),
        (
            run(asked(1, "", LIGHTS)),
            run(asked(1, "", TV)),
            (1, "tool", 0),
            'round 1: calls set_tv(power="off") instead of set_lights',
        ),
        (
            run(asked(1, "", LIGHTS)),
            run(asked(1, "", call("set_lights", room="bath"))),
            (1, "argument", 0),
            'round 1: calls set_lights with room="bath" instead of "hall"',
        ),
        (
            run(asked(1, "", call("set_lights"))),
            run(asked(1, "", LIGHTS)),
            (1, "argument", 0),
            'round 1: calls set_lights with room="hall", not without',
        ),
        (
            run(asked(1, "", LIGHTS)),
            run(asked(1, "", call("set_lights"))),
            (1, "argument", 0),
            'round 1: calls set_lights without room, not with "hall"',
        ),
        (
            run(asked(1, "The weather in Oslo today is rain.")),
            run(asked(1, "The weather in Oslo today is sun.")),
            (1, "text", None),
            'round 1: says "…today is sun." instead of "…today is rain."',
        ),
        (run(asked(1, "Hm.")), run(asked(1)), (1, "text", None), 'round 1: says nothing instead of "Hm."'),
        (
            run(asked(1, "", LIGHTS), asked(2)),
            run(asked(1, "", call("set_lights", "no", True, room="hall")), asked(2)),
            (1, "result", 0),
            'round 1: set_lights is answered by the error "no" instead of "ok"',
        ),
        (
            run(asked(1, "", LIGHTS), reason="rounds exhausted"),
            run(asked(1, "", call("set_lights", None, room="hall")), reason="stopped"),
            (1, "result", 0),
            'round 1: set_lights is not answered instead of "ok"',
        ),
        (
            run(asked(1, "Hi.")),
            run(asked(1, "Hi.", told=("Be kind.",))),
            (1, "message", None),
            'round 1: "Be kind." was added by hand; the model does the same',
        ),
        (
            run(asked(1, "", LIGHTS), reason="stopped"),
            run(asked(1, "", LIGHTS), asked(2)),
            (2, "end", None),
            "round 2: continues, while the other run ends (stopped)",
        ),
        (
            run(asked(1, "", LIGHTS), asked(2)),
            run(asked(1, "", LIGHTS), reason=None),
            (2, "end", None),
            "round 2: is not over, while the other run continues",
        ),
        (
            run(spoken("it is A17.", "model")),
            run(spoken("it is B2.", "model")),
            (1, "message", None),
            'round 1: the user says "it is B2." instead of "it is A17."',
        ),
        (
            run(spoken("it is A17.", "model")),
            run(spoken("Number A17.", "person")),
            (1, "message", None),
            'round 1: the user said "Number A17." instead of "it is A17."; the model does the same',
        ),
        (
            run(spoken("it is A17.", "model"), asked(2, "Done.")),
            run(spoken("Number A17.", "person"), asked(2, "No.")),
            (2, "text", None),
            'round 2: says "No." instead of "Done.", after the user said "Number A17." instead of "it is A17."',
        ),
        (
            run(asked(1)),
            run(asked(1), reason="timed out"),
            (1, "end", None),
            "round 1: ends (timed out), while the other run ends (answered)",
        ),
    ],
)
def test_the_first_difference_is_said_with_its_place(
    origin: Trajectory, fork: Trajectory, where: tuple[int, str, int | None], sentence: str
) -> None:
    found = first_difference(origin, fork)
    assert found is not None
    assert (found.round, found.kind, found.call) == where
    assert found.sentence == sentence


def test_arguments_that_a_person_changed_and_those_that_are_no_object_differ_too() -> None:
    edited = replace(LIGHTS, edited={"room": "bath"})
    broken = replace(LIGHTS, call=ToolCall("c", "set_lights", {}, "{", "it ends too early"))
    by_hand = first_difference(run(asked(1, "", LIGHTS)), run(asked(1, "", edited)))
    assert by_hand is not None
    assert by_hand.argument == "room"
    no_object = first_difference(run(asked(1, "", call("set_lights"))), run(asked(1, "", broken)))
    assert no_object is not None
    assert (
        no_object.sentence == 'round 1: calls set_lights with "{" (not a JSON object) instead of an object of arguments'
    )


def edited(record: CallRecord, content: str) -> CallRecord:
    assert record.result is not None
    return replace(record, result=replace(record.result, content=content), unedited=record.result)


SKIPPED = replace(LIGHTS, result=ResultReceived("c", "This call was not made.", True, "skipped", 0.0))
BY_HAND = replace(LIGHTS, result=ResultReceived("c", "Sure.", False, "edited", 0.0))
OTHER_ARGUMENTS = replace(LIGHTS, edited={"room": "bath"}, result=ResultReceived("c", "Bath.", False, "default", 1.0))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (edited(LIGHTS, "BROKEN"), "the result of set_lights was changed"),
        (SKIPPED, "set_lights was skipped"),
        (BY_HAND, "set_lights was answered by hand"),
        (edited(BY_HAND, "Well."), "the result of set_lights was changed"),
        (OTHER_ARGUMENTS, "the arguments of set_lights were changed"),
    ],
)
def test_what_a_person_changed_is_named_behind_what_the_model_then_did(changed: CallRecord, said: str) -> None:
    as_made = run(asked(1, "", LIGHTS), asked(2, "", TV), asked(3, "Done."))
    in_words = run(asked(1, "", changed), asked(2, "No."))
    instead = 'round 2: answers in words instead of calling set_tv(power="off"), after '
    assert sentence(as_made, in_words) == f"{instead}{said}"
    calls = 'round 2: calls set_tv(power="off") instead of answering, after '
    assert sentence(in_words, as_made) == f"{calls}{said} in the other run"
    same = replace(as_made, rounds=(asked(1, "", changed), *as_made.rounds[1:]))
    assert sentence(as_made, same) == f"round 1: {said}; the model does the same"
    assert sentence(same, as_made) == f"round 1: {said} in the other run; the model does the same"


def test_a_message_that_a_person_added_is_named_behind_what_the_model_then_did() -> None:
    found = sentence(run(asked(1, "", TV)), run(asked(1, "Hm.", told=("Wait.",))))
    assert found == 'round 1: answers in words instead of calling set_tv(power="off"), after "Wait." was added by hand'


def test_results_that_differ_after_the_same_change_by_hand_differ_of_themselves() -> None:
    other = replace(OTHER_ARGUMENTS, result=ResultReceived("c", "No.", False, "server", 1.0))
    found = first_difference(run(asked(1, "", OTHER_ARGUMENTS)), run(asked(1, "", other)))
    assert found is not None
    assert (found.kind, found.by_hand) == ("result", False)


def sentence(origin: Trajectory, fork: Trajectory) -> str:
    found = first_difference(origin, fork)
    assert found is not None
    return found.sentence


def test_times_ids_sources_and_how_a_number_is_written_are_no_difference() -> None:
    one = CallRecord(ToolCall("a", "t", {"x": 1}), 1, result=ResultReceived("a", "ok", False, "server", 5.0))
    other = CallRecord(ToolCall("b", "t", {"x": 1.0}), 1, result=ResultReceived("b", "ok", False, "replayed", 1.0))
    first, second = run(asked(1, "", one)), run(replace(asked(1, "", other), latency_ms=3.0, replayed=True))
    assert first_difference(first, second) is None


def test_values_of_any_depth_are_compared() -> None:
    deep: JsonValue = "the end"
    for _ in range(20_000):
        deep = [deep]
    found = first_difference(run(asked(1, "", TV)), run(asked(1, "", call("set_tv", power=deep))))
    assert found is not None
    assert found.sentence == 'round 1: calls set_tv with power=a value too deep to show instead of "off"'


@given(trajectories)
def test_a_trajectory_differs_from_itself_in_nothing(trajectory: Trajectory) -> None:
    assert first_difference(trajectory, trajectory) is None


@given(trajectories, trajectories)
def test_the_place_is_the_same_from_both_sides(one: Trajectory, other: Trajectory) -> None:
    assert place(first_difference(one, other)) == place(first_difference(other, one))


@given(trajectories)
def test_no_change_by_hand_hides_what_a_model_did_otherwise(changed: Trajectory) -> None:
    if not changed.rounds:
        return
    *before, last = untouched(changed)
    other = replace(changed, rounds=(*before, replace(last, text=last.text + "!")))
    for found in (first_difference(changed, other), first_difference(other, changed)):
        assert place(found) == (len(changed.rounds), "text", None, None)
        assert found is not None
        assert not found.by_hand


def untouched(trajectory: Trajectory) -> list[Round]:
    """The rounds as they might have been without a person."""
    plain = ResultReceived("c", "plain", False, "default", 1.0)
    return [
        replace(
            round_,
            added=(),
            calls=tuple(
                replace(call, result=plain, edited=None, unedited=None) if call.touched else call
                for call in round_.calls
            ),
        )
        for round_ in trajectory.rounds
    ]


def place(found: Difference | None) -> tuple[object, ...] | None:
    return (found.round, found.kind, found.call, found.argument) if found is not None else None


@given(trajectories, st.data())
def test_what_comes_before_the_first_difference_is_the_same(trajectory: Trajectory, data: st.DataObject) -> None:
    if not trajectory.rounds:
        return
    at = data.draw(st.integers(0, len(trajectory.rounds) - 1))
    changed = [*trajectory.rounds]
    changed[at] = replace(changed[at], text=changed[at].text + "!")
    found = first_difference(trajectory, replace(trajectory, rounds=tuple(changed)))
    assert found is not None
    assert (found.round, found.kind) == (at + 1, "text")
    assert "\n" not in found.sentence
