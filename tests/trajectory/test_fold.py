"""A trajectory is exactly the fold of its events, however they are split and wherever they were stored."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trajectory.scripts import events_of, scripts, stamped
from workbench.trajectory.events import (
    CallEdited,
    CallFinished,
    CallStarted,
    Deviation,
    Event,
    EventPayload,
    Paused,
    Regenerated,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultEdited,
    ResultReceived,
    Resumed,
    RetryScheduled,
    RunFinished,
    RunStarted,
    StepStarted,
    TextDelta,
    TextWasReasoning,
    Usage,
)
from workbench.trajectory.fold import TrajectoryError, TrajectoryFold, fold
from workbench.trajectory.recording import EventLineError, event_from_line, event_to_line


@given(scripts())
def test_events_written_as_lines_read_back_equal(script: list[Event]) -> None:
    lines = [event_to_line(event) for event in script]
    assert all("\n" not in line and line.encode() for line in lines)
    assert [event_from_line(line) for line in lines] == script


@given(scripts())
def test_the_fold_of_recorded_events_is_the_live_trajectory(script: list[Event]) -> None:
    live = TrajectoryFold()
    for event in script:
        live.add(event)
    assert fold(event_from_line(event_to_line(event)) for event in script) == live.trajectory


@given(scripts(), st.data())
def test_how_text_was_cut_into_pieces_does_not_matter(script: list[Event], data: st.DataObject) -> None:
    pieces: list[tuple[float, EventPayload]] = []
    for event in script:
        if isinstance(event.payload, TextDelta):
            cut = data.draw(st.integers(0, len(event.payload.text)))
            halves = (event.payload.text[:cut], event.payload.text[cut:])
            pieces += [(event.time_ms, TextDelta(event.payload.round, half)) for half in halves]
        else:
            pieces.append((event.time_ms, event.payload))
    recut = [Event(script[0].run_id, number, ms, what) for number, (ms, what) in enumerate(pieces)]
    assert fold(recut) == fold(script)


@given(scripts())
def test_every_prefix_folds_and_only_the_whole_is_finished(script: list[Event]) -> None:
    adding = TrajectoryFold()
    for event in script:
        adding.add(event)
        assert (adding.trajectory.finish is not None) == isinstance(event.payload, RunFinished)
    assert len(adding.trajectory.calls) == len({call.call.id for call in adding.trajectory.calls})


def test_the_loop_time_has_tools_and_retries_in_it_and_no_start_up_queue_hold_or_judging() -> None:
    at: list[tuple[float, EventPayload]] = [
        (8000.0, started()),
        (8040.0, RequestStarted(1)),  # 40 in the queue
        (8050.0, RequestFailed(1, "busy")),
        (8050.0, RetryScheduled(1, 2, 500.0, "busy")),
        (8557.0, RequestStarted(1)),  # 500 for the retry, 7 in the queue
        (8600.0, CallStarted(1, "c", "t")),
        (8600.0, CallFinished("c")),
        (8600.0, ResponseFinished(1, "tool calls", None, None, 43.0)),
        (8600.0, Paused("stepping", "c", "call", 1)),
        (8700.0, ResultReceived("c", "skipped", False, "skipped", 0.0)),
        (8900.0, Resumed(300.0)),
        (9000.0, StepStarted(2)),  # 100 for judging step 1
        (9000.0, RequestStarted(2)),
        (9020.0, CallStarted(2, "d", "t")),
        (9020.0, CallFinished("d")),
        (9020.0, ResponseFinished(2, "tool calls", None, None, 20.0)),
        (9320.0, ResultReceived("d", "ok", False, "case mock", 80.0)),  # 220 for judging the mock's condition
        (9400.0, RunFinished("step failed")),  # 80 for judging step 2
    ]
    made = fold(Event("run", number, ms, what) for number, (ms, what) in enumerate(at))
    assert made.loop_ms == 10 + 500 + 43 + 20 + 80
    assert (made.model_latency_ms, made.held_ms, made.duration_ms) == (63.0, 300.0, 9100.0)


def started() -> RunStarted:
    return RunStarted("hash", "case", "Case", "m", None, (), ())


def test_text_that_was_reasoning_is_no_answer_and_deviations_belong_to_their_round() -> None:
    repaired = (Deviation("thoughts in the answer", "so it is"),)
    whole = fold(
        stamped(
            [
                started(),
                RequestStarted(1),
                TextDelta(1, "Hm"),
                TextWasReasoning(1),
                TextDelta(1, "No."),
                ResponseFinished(1, "answered", None, 1.0, 2.0, deviations=repaired),
                RunFinished("answered"),
            ]
        )
    )
    assert (whole.rounds[0].reasoning, whole.final_answer) == ("Hm", "No.")
    assert whole.deviations == whole.rounds[0].deviations == repaired


def test_lines_of_answers_without_deviations_are_as_they_always_were() -> None:
    line = event_to_line(Event("r", 1, 0.0, ResponseFinished(1, "answered", None, 1.0, 2.0)))
    assert "deviations" not in line
    assert event_from_line(line).payload == ResponseFinished(1, "answered", None, 1.0, 2.0)


def test_the_final_answer_is_the_text_of_the_last_round_only_if_that_ended_in_words() -> None:
    answered = fold(events_of([("Looking it up. ", 1), ("It rains.", 0)]))
    assert answered.final_answer == "It rains."
    exhausted = fold(events_of([("Looking it up. ", 1)], finish=RunFinished("rounds exhausted")))
    assert exhausted.final_answer == ""


@pytest.mark.parametrize(
    "wrong",
    [
        [Event("r", 0, 0, RequestStarted(1))],
        [Event("r", 1, 0, RunStarted("", "", "", "", None, (), ()))],
        [Event("r", 0, 0, RunStarted("", "", "", "", None, (), ())), Event("r", 1, 0, TextDelta(1, "no request"))],
        [Event("r", 0, 0, RunStarted("", "", "", "", None, (), ())), Event("s", 1, 0, RequestStarted(1))],
        [
            Event("r", 0, 0, RunStarted("", "", "", "", None, (), ())),
            Event("r", 1, 0, RunFinished("answered")),
            Event("r", 2, 0, RequestStarted(1)),
        ],
    ],
    ids=["no start", "gap", "text before a request", "two runs", "after the end"],
)
def test_events_that_cannot_follow_each_other_are_refused(wrong: list[Event]) -> None:
    with pytest.raises(TrajectoryError):
        fold(wrong)


@given(st.text(max_size=80))
def test_a_line_that_is_no_event_is_refused(line: str) -> None:
    with pytest.raises(EventLineError):
        event_from_line(line)


def test_a_known_event_with_a_wrong_field_is_refused() -> None:
    line = event_to_line(Event("r", 0, 0.0, RequestStarted(1)))
    assert event_from_line(line).payload == RequestStarted(1)
    for wrong in (line.replace("round", "rnd"), line.replace("request_started", "nothing"), "[]", "3"):
        with pytest.raises(EventLineError):
            event_from_line(wrong)


def test_sequence_numbers_have_no_gaps() -> None:
    script = events_of([("a", 1), ("b", 0)])
    assert [event.sequence for event in script] == list(itertools.islice(itertools.count(), len(script)))


@given(scripts())
def test_what_a_person_changes_never_changes_what_the_model_wrote(script: list[Event]) -> None:
    edits = (CallEdited, ResultEdited)
    kept = [event for event in script if not isinstance(event.payload, edits)]
    untouched = [Event(event.run_id, number, event.time_ms, event.payload) for number, event in enumerate(kept)]
    before, after = fold(untouched), fold(script)
    assert [record.call for record in after.calls] == [record.call for record in before.calls]
    originals = [record.unedited or record.result for record in after.calls]
    assert originals == [record.result for record in before.calls]


@given(scripts())
def test_the_time_in_which_a_run_was_held_is_its_own_number(script: list[Event]) -> None:
    made = fold(script)
    assert made.held_ms == round(
        sum(event.payload.held_ms for event in script if isinstance(event.payload, Resumed)), 3
    )
    assert made.duration_ms == round(max(script[-1].time_ms - made.held_ms, 0.0), 3)


def test_an_answer_set_aside_stays_with_its_round_and_its_tokens_count() -> None:
    first, *answered = [event.payload for event in events_of([("Looking. ", 1), ("Rain.", 0)])]
    again = answered[:7]
    made = fold(stamped([first, *again, Regenerated(1), *again, *answered[7:]]))
    assert [round_.number for round_ in made.rounds] == [1, 2]
    assert [[call.call.id for call in answer.calls] for answer in made.rounds[0].superseded] == [["c1-0"]]
    assert made.touched
    assert made.usage == Usage(9, 15)
