"""No redacted event contains a secret, however the model's stream is split. Events without secrets stay the same
object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from workbench.config.secrets import Secrets
from workbench.engine.redaction import EventRedaction, RunRedaction, SuiteParts
from workbench.grading.grade import Grade, Issue, RunResult
from workbench.grading.status import Status
from workbench.history.packing import RunPacker
from workbench.history.records import RunWithEvents
from workbench.suite.model import Case
from workbench.suite.settings import CriticsOptions, Grading
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    Event,
    EventPayload,
    Message,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    RetryScheduled,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolDefinition,
    Usage,
)
from workbench.trajectory.fold import fold
from workbench.trajectory.recording import event_to_line
from workbench.trajectory.trajectory import Trajectory

KEY = "sk-planted-4711"
START = RunStarted("hash", "case", "Case", "model", None, (), ())
END = ResponseFinished(1, "answered", Usage(4711, 1), 1.0, 2.0)


def secrets_of(*values: str) -> Secrets:
    secrets = Secrets()
    for number, value in enumerate(values):
        secrets.add(f"KEY_{number}" if number else "KEY", value)
    return secrets


def told(secrets: Secrets, happenings: Iterable[EventPayload]) -> tuple[list[EventPayload], Trajectory]:
    """Return the redacted events of a run that starts with the first request. Every event keeps its number."""
    redaction = EventRedaction(SuiteParts(secrets))
    events = [Event("run-1", at, 0.0, what) for at, what in enumerate((START, RequestStarted(1), *happenings))]
    shown = [stored for event in events for stored in redaction.add(event)] + redaction.flush()
    assert [event.sequence for event in shown] == [event.sequence for event in events]
    lines = "\n".join(map(event_to_line, shown))
    assert not [value for _, value in secrets.values if value in lines]
    return [event.payload for event in shown[2:]], fold(shown)


def test_a_secret_in_one_piece_becomes_its_name() -> None:
    said, _ = told(secrets_of(KEY), [TextDelta(1, f"It is {KEY}!")])
    assert said == [TextDelta(1, "It is $KEY!")]


def test_a_secret_cut_into_letters_becomes_its_name_where_it_begins() -> None:
    said, trajectory = told(secrets_of(KEY), [*(TextDelta(1, letter) for letter in f"a {KEY} b"), END])
    assert trajectory.rounds[0].text == "a $KEY b"
    assert said[:4] == [TextDelta(1, "a"), TextDelta(1, " "), TextDelta(1, "$KEY"), TextDelta(1, "")]


def test_what_only_began_like_a_secret_is_held_back_until_that_is_clear_and_stays_the_same() -> None:
    redaction = EventRedaction(SuiteParts(secrets_of(KEY)))
    pieces = [Event("run-1", at, 0.0, TextDelta(1, text)) for at, text in enumerate(("It says sk-", "pl", "enty!"))]
    left = [redaction.add(event) for event in pieces]
    assert left == [[], [], pieces]
    assert all(event is piece for event, piece in zip(left[2], pieces, strict=True))


def test_a_secret_around_a_call_is_hidden_too() -> None:
    pieces: list[EventPayload] = [
        TextDelta(1, KEY[:5]),
        CallStarted(1, "c", "t"),
        TextDelta(1, KEY[5:] + " there"),
        END,
    ]
    _, trajectory = told(secrets_of(KEY), pieces)
    assert trajectory.rounds[0].text == "$KEY there"


def test_arguments_are_clean_in_pieces_and_when_they_are_whole() -> None:
    cut = [CallArgumentsDelta("c", piece) for piece in ('{"auth": "sk-pla', "nted-47", '11"}')]
    done = CallFinished("c", {"auth": [KEY], KEY: 1}, raw=f"x{KEY}", problem=f"{KEY} is odd")
    said, trajectory = told(secrets_of(KEY), [CallStarted(1, "c", "t"), *cut, done])
    assert "".join(what.fragment for what in said if isinstance(what, CallArgumentsDelta)) == '{"auth": "$KEY"}'
    call = trajectory.calls[0].call
    assert (call.arguments, call.raw, call.problem) == ({"auth": ["$KEY"], "$KEY": 1}, "x$KEY", "$KEY is odd")


def test_pieces_of_two_calls_at_once_are_told_apart() -> None:
    pieces: list[EventPayload] = [CallStarted(1, "a", "t"), CallStarted(1, "b", "t")]
    for left, right in zip(KEY, "12" * 9, strict=False):
        pieces += [CallArgumentsDelta("a", left), CallArgumentsDelta("b", right)]
    _, trajectory = told(secrets_of(KEY), [*pieces, RunFinished("stopped")])
    assert [call.call.raw for call in trajectory.calls] == ["$KEY", ("12" * 9)[: len(KEY)]]


def test_every_other_text_of_a_run_is_clean() -> None:
    tool = ToolDefinition("t", f"uses {KEY}", {"properties": {"x": {"default": KEY}}})
    start = replace(START, system=KEY, messages=(Message("user", f"my key: {KEY}"),), tools=(tool,), notices=(KEY,))
    happenings: list[EventPayload] = [
        RequestStarted(1),
        RequestFailed(1, f"401: {KEY}"),
        RetryScheduled(1, 2, 1.0, f"401: {KEY}"),
        RequestStarted(1),
        CallStarted(1, f"id-{KEY}", f"tool-{KEY}"),
        CallArgumentsDelta(f"id-{KEY}", "{}"),
        CallFinished(f"id-{KEY}"),
        replace(END, provider_state={"signature": [f"<{KEY}>"]}),
        ResultReceived(f"id-{KEY}", f"got {KEY}", False, "server", 1.0),
        RunFinished("error", f"broke at {KEY}"),
    ]
    redaction = EventRedaction(SuiteParts(secrets_of(KEY)))
    events = [Event("run-1", at, 0.0, what) for at, what in enumerate((start, *happenings))]
    shown = [stored for event in events for stored in redaction.add(event)]
    assert KEY not in "".join(map(event_to_line, shown))
    trajectory = fold(shown)
    assert trajectory.usage == Usage(4711, 1)
    assert trajectory.calls[0].result is not None


def test_a_number_that_is_a_secret_is_hidden_too() -> None:
    done = CallFinished("c", {"pin": 12345678, "other": 1234567})
    _, trajectory = told(secrets_of("12345678"), [CallStarted(1, "c", "t"), done])
    assert trajectory.calls[0].arguments == {"pin": "$KEY", "other": 1234567}


def test_a_secret_that_becomes_known_during_a_run_counts_from_then_on() -> None:
    secrets = Secrets()
    redaction = EventRedaction(SuiteParts(secrets))
    assert redaction.add(Event("run-1", 0, 0.0, START)) == [Event("run-1", 0, 0.0, START)]
    secrets.add("KEY", KEY)
    (shown,) = redaction.add(Event("run-1", 1, 0.0, TextDelta(1, KEY)))
    assert shown.payload == TextDelta(1, "$KEY")


VALUE = st.text("abc-1", min_size=4, max_size=7).filter(lambda value: not value.isalnum())
VALUES = st.lists(VALUE, min_size=1, max_size=3)
WORDS = st.text("abc-1 ", max_size=8)


def cut(text: str, places: Sequence[int]) -> list[str]:
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[begin:end] for begin, end in pairwise(edges)] or [text]


@given(VALUES, st.lists(WORDS, min_size=2, max_size=4), st.lists(st.integers(0, 99), max_size=12), st.data())
def test_no_cutting_lets_a_secret_through(
    values: list[str], words: list[str], places: list[int], data: st.DataObject
) -> None:
    planted = data.draw(st.sampled_from(values))
    pieces = cut(planted.join(words), places)
    breaks = data.draw(st.sets(st.integers(0, len(pieces))))
    happenings: list[EventPayload] = []
    for number, piece in enumerate(pieces):
        happenings.append(TextDelta(1, piece))
        if number in breaks:
            happenings.append(CallStarted(1, f"x{number}", "t"))
    _, trajectory = told(secrets_of(*values), [*happenings, END])
    assert not [value for value in values if value in trajectory.rounds[0].text]


@given(VALUES, WORDS, st.lists(st.integers(0, 99), max_size=12))
def test_text_without_a_secret_stays_as_it_is(values: list[str], text: str, places: list[int]) -> None:
    secrets = secrets_of(*values)
    if secrets.redact(text) != text:
        return
    _, trajectory = told(secrets, [*(TextDelta(1, piece) for piece in cut(text, places)), END])
    assert trajectory.rounds[0].text == text


PLAIN = st.text('ab1 "\\\n\x1bü', max_size=4)
SPELLINGS = st.lists(st.text('ab1"\\-\n', min_size=3, max_size=6), min_size=1, max_size=2, unique=True)


@given(SPELLINGS, st.data())
def test_a_search_of_what_is_stored_of_a_run_finds_all_that_redacting_it_changes(
    values: list[str], data: st.DataObject
) -> None:
    secrets = secrets_of(*values)
    text = st.lists(PLAIN | st.sampled_from(values), max_size=3).map("".join)
    some = data.draw
    answer, fragment = some(text), some(text)
    tool = ToolDefinition("t", some(PLAIN | text), {"default": some(PLAIN | text)})
    happenings: list[EventPayload] = [
        replace(START, tools=(tool,), messages=(Message("user", some(text)),)),
        RequestStarted(1),
        *(TextDelta(1, piece) for piece in cut(answer[:4], some(st.lists(st.integers(0, 9), max_size=3)))),
        CallStarted(1, "c", some(text)),
        *(TextDelta(1, piece) for piece in cut(answer[4:], [1])),
        *(CallArgumentsDelta("c", piece) for piece in cut(fragment, some(st.lists(st.integers(0, 9), max_size=3)))),
        CallFinished("c", {some(text): [some(text), 12345678]}, raw=some(st.none() | text)),
        END,
        ResultReceived("c", some(text), False, "server", 1.0),
        RunFinished("error", some(st.none() | text)),
    ]
    events = tuple(Event("run-1", at, 0.0, what) for at, what in enumerate(happenings))
    issue = Issue("wrong argument", some(text), argument=some(text))
    result = RunResult(
        *("run-1", "s.toml", "case", "Case", "model", 0, Status.FAILED, fold(events)),
        (Grade("critics", 0.5, Status.FAILED, some(text), issues=(issue,)),),
        error=some(st.none() | text),
    )
    user = some(PLAIN | text)
    case = Case.model_validate({"id": "case", "name": "Case", "user": user, "response_contains": [some(text) or "x"]})
    run = RunWithEvents("run-1", result, events, 0.0, 1.0)
    redaction = RunRedaction(SuiteParts(secrets), {"run-1": case})
    assert RunPacker(redaction).packed(run) == RunPacker().packed(redaction.redacted(run))


def test_options_are_searched_again_for_a_secret_that_becomes_known() -> None:
    options = Grading(critics=CriticsOptions(weights=((KEY, 1.0),)))
    secrets = secrets_of("sk-another-0815")
    parts = SuiteParts(secrets)
    assert parts.grading(options) is options
    secrets.add("LATE", KEY)
    assert parts.grading(options).critics.weights == (("$LATE", 1.0),)
