"""A recorded run is replayed: its last attempts, its errors, its end and, on request, its pace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.trajectory.scripts import stamped
from workbench.providers.built_in import BuiltInModels
from workbench.providers.model import AnswerFinished, ModelError, ModelRequest
from workbench.providers.replay import ReplayModel
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    Event,
    EventPayload,
    ModelEvent,
    ReasoningDelta,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    RetryScheduled,
    RunFinished,
    RunStarted,
    TextDelta,
    Usage,
)
from workbench.trajectory.recording import Header, RecordedSuite, event_to_line, header_line, read_recording

START = RunStarted("hash", "case", "Case", "m", None, (), ())
CALL: list[ModelEvent] = [
    CallStarted(1, "call-x", "t"),
    CallArgumentsDelta("call-x", '{"a"'),
    CallFinished("call-x", {}, '{"a"', "cut"),
]
ROUND: list[ModelEvent] = [ReasoningDelta(1, "Hm."), *CALL]
CARRIED = ResponseFinished(1, "tool calls", Usage(3, 5), 1.0, 2.0, {"signed": "x"})


def recorded(
    folder: Path,
    events: Sequence[Event],
    name: str = "a",
    case_id: str = "case",
    started_at: str = "now",
    model: str = "m",
) -> Path:
    file = folder / f"{name}.run.jsonl"
    header = Header("1", "run", started_at, RecordedSuite("a.toml", "", ""), case_id, model, 0)
    file.write_text("\n".join([header_line(header), *map(event_to_line, events)]))
    return file


def replay(folder: Path, happenings: Sequence[EventPayload]) -> ReplayModel:
    return ReplayModel("replay:a", read_recording(recorded(folder, stamped([START, *happenings]))))


async def played(model: ReplayModel, number: int = 1) -> list[ModelEvent | AnswerFinished]:
    return [piece async for piece in model.stream(ModelRequest(number, None, (), ()))]


async def test_a_round_comes_with_its_call_ids_usage_stop_reason_and_carry(tmp_path: Path) -> None:
    model = replay(tmp_path, [RequestStarted(1), *ROUND, CARRIED])
    assert await played(model) == [*ROUND, AnswerFinished("tool calls", Usage(3, 5), {"signed": "x"})]


async def test_only_the_attempt_that_succeeded_is_played(tmp_path: Path) -> None:
    failed = [RequestStarted(1), *ROUND, RequestFailed(1, "429"), RetryScheduled(1, 2, 5.0, "429")]
    model = replay(
        tmp_path, [*failed, RequestStarted(1), TextDelta(1, "Hi"), ResponseFinished(1, "answered", None, 1, 2)]
    )
    assert await played(model) == [TextDelta(1, "Hi"), AnswerFinished("answered")]


async def test_a_recorded_error_comes_again_after_what_came_before_it(tmp_path: Path) -> None:
    model = replay(tmp_path, [RequestStarted(1), *ROUND, RequestFailed(1, "cut"), RunFinished("error", "cut")])
    pieces = []
    with pytest.raises(ModelError, match=r"^cut$"):
        async for piece in model.stream(ModelRequest(1, None, (), ())):
            pieces.append(piece)
    assert pieces == ROUND


ANSWERED: list[EventPayload] = [RequestStarted(1), TextDelta(1, "Hi"), ResponseFinished(1, "answered", None, 1.0, 2.0)]
CALLED: list[EventPayload] = [RequestStarted(1), *ROUND, CARRIED, ResultReceived("call-x", "ok", False, "default", 1.0)]


@pytest.mark.parametrize(
    ("happenings", "number", "said"),
    [
        ([*ANSWERED, RunFinished("answered")], 2, r"no answer for request 2: the recorded run ended \(answered\)"),
        ([*CALLED, RunFinished("error", "server gone")], 2, "^server gone$"),
        (
            [*CALLED, RequestStarted(2), RunFinished("timed out", "not finished within 1 s")],
            2,
            "^not finished within 1 s$",
        ),
        ([*CALLED, RunFinished("stopped")], 2, "no whole answer for request 2, because the recorded run was stopped"),
        ([RequestStarted(1), *CALL[:2]], 1, "no whole answer for request 1, because the recorded run breaks off"),
        ([], 1, "no whole answer for request 1"),
    ],
)
async def test_a_request_beyond_the_recording_is_an_error_that_says_so(
    tmp_path: Path, happenings: Sequence[EventPayload], number: int, said: str
) -> None:
    with pytest.raises(ModelError, match=said):
        await played(replay(tmp_path, happenings), number)


async def test_at_its_own_pace_each_piece_comes_as_long_after_the_request_as_it_did(tmp_path: Path) -> None:
    moments_ms = (0.0, 500.0, 520.0, 1500.0, 1600.0)
    happenings: list[EventPayload] = [
        START,
        RequestStarted(1),
        TextDelta(1, "A"),
        TextDelta(1, "B"),
        ResponseFinished(1, "answered", None, 1, 2),
    ]
    events = [Event("run", n, ms, what) for n, (ms, what) in enumerate(zip(moments_ms, happenings, strict=True))]
    now_s = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    recording = read_recording(recorded(tmp_path, events))
    at_once = ReplayModel("replay:a", recording, sleep=sleep, clock=lambda: now_s)
    assert [now_s async for _ in at_once.stream(ModelRequest(1, None, (), ()))] == [0.0, 0.0, 0.0]
    paced = ReplayModel("replay:a", recording, original_pace=True, sleep=sleep, clock=lambda: now_s)
    assert [now_s async for _ in paced.stream(ModelRequest(1, None, (), ()))] == pytest.approx([0.02, 1.0, 1.1])


async def test_it_is_opened_by_name_relative_to_a_folder(tmp_path: Path) -> None:
    recorded(tmp_path, stamped([START, *ANSWERED]))
    model = BuiltInModels().open("replay:a.run.jsonl", tmp_path, "case")
    async with model.turn():
        assert len([piece async for piece in model.stream(ModelRequest(1, None, (), ()))]) == 2
    assert (model.name, model.seed, model.notices) == ("replay:a.run.jsonl", None, ())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "write replay:FILE, replay:FOLDER or replay:FOLDER#MODEL"),
        ("no.run.jsonl", "No such file"),
        ("n" * 300, "nnn cannot be read: File name too long"),
        ("a.toml", "not a recording"),
        (".", r"contains no recording \(a file \*\.run\.jsonl\); .*junk\.run\.jsonl is not a recording"),
    ],
)
def test_what_is_no_recording_is_named_when_it_is_checked_and_when_it_is_opened(
    tmp_path: Path, name: str, said: str
) -> None:
    (tmp_path / "a.toml").write_text("format = 1")
    (tmp_path / "junk.run.jsonl").write_text("junk")
    with pytest.raises(ModelError, match=said):
        BuiltInModels().check(f"replay:{name}", tmp_path)
    with pytest.raises(ModelError, match=said):
        BuiltInModels().open(f"replay:{name}", tmp_path, "case")


def test_a_recording_plays_its_own_case_alone(tmp_path: Path) -> None:
    recorded(tmp_path, stamped([START]))
    with pytest.raises(ModelError, match=r"records the case 'case', not 'other': choose that one with --case case, or"):
        BuiltInModels().open("replay:a.run.jsonl", tmp_path, "other")


async def test_a_folder_plays_the_newest_recording_of_each_case(tmp_path: Path) -> None:
    def says(text: str, *named: str) -> None:
        answered = ResponseFinished(1, "answered", None, 1.0, 2.0)
        recorded(tmp_path, stamped([START, RequestStarted(1), TextDelta(1, text), answered]), *named)

    says("old", "z", "case", "2026-01-01T00:00:00+00:00")
    says("new", "a", "case", "2026-01-02T00:00:00+00:00")
    says("another", "y", "other", "2026-01-03T00:00:00+00:00")
    (tmp_path / "junk.run.jsonl").write_text("junk")
    models = BuiltInModels()
    for case_id, text in (("case", "new"), ("other", "another")):
        model = models.open("replay:.", tmp_path, case_id)
        pieces = [piece async for piece in model.stream(ModelRequest(1, None, (), ()))]
        assert pieces[0] == TextDelta(1, text)
    with pytest.raises(
        ModelError, match=r"contains no recording of the case 'third'; .*junk\.run\.jsonl is not a recor"
    ):
        models.open("replay:.", tmp_path, "third")


def says(folder: Path, text: str, name: str, case_id: str, model: str) -> None:
    answered = ResponseFinished(1, "answered", None, 1.0, 2.0)
    events = stamped([START, RequestStarted(1), TextDelta(1, text), answered])
    recorded(folder, events, name, case_id, model=model)


async def first_piece(name: str, folder: Path, case_id: str = "case") -> ModelEvent | AnswerFinished:
    return (await played(BuiltInModels().open(name, folder, case_id)))[0]  # type: ignore[arg-type]


HTTP = "openai:llama-3.1@http://localhost:1234/v1"


def test_a_folder_with_recordings_of_several_models_is_refused_and_names_them(tmp_path: Path) -> None:
    says(tmp_path, "quick's", "a", "case", "quick")
    says(tmp_path, "the other's", "b", "another", HTTP)
    said = rf"contains recordings of several models, {re.escape(HTTP)} and quick: choose one, as with replay:\.#{HTTP}$"
    with pytest.raises(ModelError, match=said):
        BuiltInModels().check("replay:.", tmp_path)
    with pytest.raises(ModelError, match=said):
        BuiltInModels().open("replay:.", tmp_path, "case")


def test_of_very_many_models_the_first_ones_are_named(tmp_path: Path) -> None:
    for number in range(12):
        says(tmp_path, "", f"a{number}", "case", f"m{number:02}")
    with pytest.raises(ModelError, match="m00, m01, m02, m03, m04, m05, m06, m07 and 4 more: choose one"):
        BuiltInModels().check("replay:.", tmp_path)


async def test_one_of_the_models_is_chosen_behind_the_folder(tmp_path: Path) -> None:
    says(tmp_path, "quick's", "a", "case", "quick")
    for model in (HTTP, "replay:here#there"):
        says(tmp_path, f"{model}'s", f"b{len(model)}", "case", model)
    models = BuiltInModels()
    for model in ("quick", HTTP, "replay:here#there"):
        models.check(f"replay:.#{model}", tmp_path)
        played_model = models.open(f"replay:.#{model}", tmp_path, "case")
        assert played_model.name == f"replay:.#{model}"
        assert await first_piece(f"replay:.#{model}", tmp_path) == TextDelta(1, f"{model}'s")


@pytest.mark.parametrize("wanted", ["slow", ""])
def test_a_model_of_which_there_is_no_recording_is_named_with_those_that_there_are(tmp_path: Path, wanted: str) -> None:
    says(tmp_path, "", "a", "case", "quick")
    said = rf"contains no recording of the model '{wanted}', only of quick$"
    with pytest.raises(ModelError, match=said):
        BuiltInModels().check(f"replay:.#{wanted}", tmp_path)
    with pytest.raises(ModelError, match=said):
        BuiltInModels().open(f"replay:.#{wanted}", tmp_path, "case")


def test_a_case_that_the_chosen_model_was_not_recorded_on_is_named_with_the_model(tmp_path: Path) -> None:
    says(tmp_path, "", "a", "case", "quick")
    says(tmp_path, "", "b", "other", "slow")
    with pytest.raises(ModelError, match=r"contains no recording of the case 'other' on quick$"):
        BuiltInModels().open("replay:.#quick", tmp_path, "other")


async def test_a_folder_or_a_file_with_such_a_sign_in_its_name_is_what_it_is(tmp_path: Path) -> None:
    for folder, text in (("runs", "not this"), ("runs#2", "this")):
        (tmp_path / folder).mkdir()
        says(tmp_path / folder, text, "a#b", "case", "2")
    assert await first_piece("replay:runs#2", tmp_path) == TextDelta(1, "this")
    assert await first_piece("replay:runs#2#2", tmp_path) == TextDelta(1, "this")
    assert await first_piece("replay:runs#2/a#b.run.jsonl", tmp_path) == TextDelta(1, "this")
    with pytest.raises(ModelError, match="gone#2 cannot be read: No such file"):
        BuiltInModels().check("replay:gone#2", tmp_path)
