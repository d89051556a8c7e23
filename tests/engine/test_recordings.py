"""Runs are recorded as they happen, one file each, and a problem with a file never affects a run."""

from __future__ import annotations

import queue
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.cli.suites import SLOW, TOO_LATE, WEATHER, WRONG
from tests.programs import begin, program_of
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.engine.events import BatchDone, BatchEvent, RunDone, RunEvent, combined_listener
from workbench.engine.plan import PlannedRun, plan_runs
from workbench.engine.planned_run import result_of
from workbench.engine.recordings import (
    RecordingLines,
    Recordings,
    result_of_recording,
    save_recording,
    suite_of_recording,
)
from workbench.evaluation.runtime import Runtime
from workbench.grading.grade import RunResult
from workbench.grading.status import Status
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import (
    Event,
    EventPayload,
    ExecutionProgress,
    RequestStarted,
    ResponseFinished,
    RunStarted,
    TextDelta,
)
from workbench.trajectory.recording import Recording, RecordingError, read_recording
from workbench.trajectory.trajectory import Trajectory

NOW = "2026-11-21T09:30:00.000+00:00"


def planned(text: str, path: str = "weather.toml", **options: object) -> tuple[PlannedRun, ...]:
    file = parse_suite(text, Path(path))
    assert file.suite is not None, file.problems
    return plan_runs([file], **options)  # type: ignore[arg-type]


def recordings(folder: Path, secrets: Secrets = NO_SECRETS, *, only_failed: bool = False) -> Recordings:
    return Recordings(folder, RecordingLines(secrets, lambda: NOW), only_failed=only_failed)


def stopped(run: PlannedRun) -> RunResult:
    return result_of(run, Status.STOPPED, Trajectory(run.run_id))


@dataclass
class Made:
    """The events of a batch."""

    events: dict[str, list[Event]]
    results: dict[str, RunResult]


class Maker:
    """Makes runs, and passes each event to `seen`."""

    def __init__(self, folder: Path) -> None:
        self._said: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
        self.session = Runtime(self._said.put, program_of(folder))

    def __call__(
        self, runs: tuple[PlannedRun, ...], record: Recordings | None, seen: Callable[[Event], None] = lambda _: None
    ) -> Made:
        begin(self.session, runs, trusted=False, record=record)
        made = Made({run.run_id: [] for run in runs}, {})
        while not isinstance(event := self._said.get(timeout=20), BatchDone):
            if isinstance(event, RunEvent):
                seen(event.event)
                made.events[event.event.run_id].append(event.event)
            elif isinstance(event, RunDone):
                made.results[event.result.run_id] = event.result
        return made


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Maker]:
    maker = Maker(tmp_path / "home")
    yield maker
    maker.session.close()


def test_a_recording_is_read_anew_for_every_batch_that_plays_it(make: Maker, tmp_path: Path) -> None:
    file = tmp_path / "weather.right.offline.1.run.jsonl"
    cities = []
    for city in ("Oslo", "Bergen"):
        file.unlink(missing_ok=True)
        make(planned(WEATHER.replace("Oslo", city)), recordings(tmp_path))
        (result,) = make(planned(WEATHER, models=[f"replay:{file}"]), None).results.values()
        cities += [call.arguments["city"] for call in result.trajectory.calls]
    assert cities == ["Oslo", "Bergen"]


def test_each_run_is_a_file_that_reads_back_to_its_events_and_its_result(make: Maker, tmp_path: Path) -> None:
    runs = planned(WEATHER + WRONG)
    record = recordings(tmp_path)
    made = make(runs, record)
    files = [tmp_path / f"weather.{case}.offline.1.run.jsonl" for case in ("right", "wrong")]
    for run, file in zip(runs, files, strict=True):
        read, result = read_recording(file), made.results[run.run_id]
        assert list(read.events) == made.events[run.run_id]
        assert read.trajectory == result.trajectory
        assert result_of_recording(read) == replace(result, suite=str(file))
        assert (read.header.started_at, read.header.suite.hash) == (NOW, run.file.hash)
        assert file.stat().st_mode & 0o777 == 0o600
    assert record.problem is None
    assert sorted(tmp_path.glob("*.*")) == files


def test_a_recording_holds_its_case_alone_with_all_that_it_needs(make: Maker, tmp_path: Path) -> None:
    runs = planned(WEATHER + WRONG)
    make(runs, recordings(tmp_path))
    file = suite_of_recording(read_recording(tmp_path / "weather.wrong.offline.1.run.jsonl"))
    assert file.suite == runs[1].suite.model_copy(update={"cases": (runs[1].case,)})


def test_only_runs_that_failed_or_ended_in_an_error_are_kept(make: Maker, tmp_path: Path) -> None:
    make(planned(WEATHER + WRONG + TOO_LATE), recordings(tmp_path, only_failed=True))
    kept = sorted(file.name for file in tmp_path.glob("*.*"))
    assert kept == ["weather.later.offline.1.run.jsonl", "weather.wrong.offline.1.run.jsonl"]


def test_skipped_cases_and_runs_that_never_began_leave_no_file(make: Maker, tmp_path: Path) -> None:
    make(planned(WEATHER.replace('name = "Right"', 'name = "Right"\nskip = "later"')), recordings(tmp_path))
    assert list(tmp_path.glob("*.jsonl*")) == []


def test_no_file_is_ever_overwritten(make: Maker, tmp_path: Path) -> None:
    (tmp_path / "weather.right.offline.1.run.jsonl").write_text("mine")
    (tmp_path / "weather.right.offline.2.run.jsonl.part").write_text("of another program that is running")
    make(planned(WEATHER.replace("[[cases]]", "[[cases]]\nrepeats = 2")), recordings(tmp_path))
    make(planned(WEATHER), recordings(tmp_path))
    names = sorted(file.name for file in tmp_path.glob("*.run.jsonl*"))
    assert names == [f"weather.right.offline.{n}.run.jsonl{'.part' if n == 2 else ''}" for n in range(1, 6)]
    assert (tmp_path / "weather.right.offline.1.run.jsonl").read_text() == "mine"


def test_while_a_run_goes_on_its_file_has_another_name_and_can_be_read(make: Maker, tmp_path: Path) -> None:
    read: list[Recording] = []

    def look(event: Event) -> None:
        if isinstance(event.payload, ResponseFinished):
            read.append(read_recording(tmp_path / "weather.slow.offline.1.run.jsonl.part"))
            make.session.stop_all()

    make(planned(WEATHER[: WEATHER.index("[[cases]]")] + SLOW), recordings(tmp_path), look)
    assert not read[0].complete
    assert read[0].trajectory.rounds[0].stop_reason == "tool calls"
    assert [file.name for file in tmp_path.glob("weather*")] == ["weather.slow.offline.1.run.jsonl"]


def test_a_long_answer_reaches_the_disk_while_it_streams(tmp_path: Path) -> None:
    now_s = 0.0
    record = Recordings(tmp_path, RecordingLines(NO_SECRETS, lambda: NOW), clock=lambda: now_s)
    [run] = planned(WEATHER)
    listener = record.listener([run])
    pieces = [TextDelta(1, text) for text in ("one", "two", "three", "four")]
    start = RunStarted("", "right", "Right", "offline", None, (), ())
    happenings: list[EventPayload] = [start, RequestStarted(1), *pieces]
    seen = []
    for number, what in enumerate(happenings):
        listener(RunEvent(Event(run.run_id, number, 0.0, what)))
        [file] = tmp_path.iterdir()
        seen.append("".join(round_.text for round_ in read_recording(file).trajectory.rounds))
        now_s += 0.4
    listener(RunDone(stopped(run)))
    assert seen == ["", "", "", "onetwo", "onetwo", "onetwo"]


def test_names_are_safe_and_short_whatever_suites_and_cases_are_called(make: Maker, tmp_path: Path) -> None:
    text = WEATHER.replace('name = "Right"', f'name = "Right"\nid = "../../{"ü" * 300}"')
    make(planned(text, "…/.hidden suite\n.toml"), recordings(tmp_path))
    [file] = tmp_path.glob("*.jsonl")
    assert file.name == f"hidden-suite.{'ü' * 24}.offline.1.run.jsonl"
    assert read_recording(file).header.case == f"../../{'ü' * 300}"


def test_secrets_stay_out_of_header_and_result(make: Maker, tmp_path: Path) -> None:
    secrets = Secrets()
    secrets.add("CITY_KEY", "Nowhere")
    make(planned(WEATHER + WRONG), recordings(tmp_path, secrets))
    text = (tmp_path / "weather.wrong.offline.1.run.jsonl").read_text()
    assert "Nowhere" not in text
    assert "$CITY_KEY" in text


def test_a_folder_that_is_gone_stops_no_run_and_is_said(make: Maker, tmp_path: Path) -> None:
    record = recordings(tmp_path / "gone")
    made = make(planned(WEATHER + WRONG), record)
    assert sorted(result.status for result in made.results.values()) == ["failed", "passed"]
    assert record.problem == f"not every run could be recorded in {tmp_path / 'gone'}: No such file or directory"


def test_a_folder_that_goes_while_a_run_is_written_is_said_too(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    record = recordings(tmp_path / "out")
    [run] = planned(WEATHER)
    passed_on: list[BatchEvent] = []
    listener = combined_listener(record.listener([run]), passed_on.append)
    listener(RunEvent(Event(run.run_id, 0, 0.0, RunStarted("", "right", "Right", "offline", None, (), ()))))
    shutil.rmtree(tmp_path / "out")
    listener(RunDone(stopped(run)))
    assert record.problem is not None
    assert len(passed_on) == 2


def test_what_cannot_be_said_in_json_is_a_problem_of_that_recording_alone(tmp_path: Path) -> None:
    record = recordings(tmp_path)
    [run] = planned(WEATHER)
    listener = record.listener([run])
    listener(RunEvent(Event(run.run_id, 0, 0.0, RunStarted("", "right", "Right", "offline", None, (), ()))))
    listener(RunEvent(Event(run.run_id, 1, 0.0, ExecutionProgress("c", float("inf")))))
    listener(RunDone(stopped(run)))
    assert record.problem is not None
    assert not [*tmp_path.glob("weather*")]


def test_a_run_that_is_over_can_be_saved(make: Maker, tmp_path: Path) -> None:
    [run] = planned(WEATHER)
    made = make((run,), None)
    folder = tmp_path / "new" / "folder"
    saved = save_recording(
        folder, run, made.events[run.run_id], made.results[run.run_id], started_at=NOW, secrets=NO_SECRETS
    )
    assert saved == folder / "weather.right.offline.1.run.jsonl"
    read = read_recording(saved)
    assert read.complete
    assert read.trajectory == made.results[run.run_id].trajectory


def test_a_run_that_cannot_be_saved_says_why(tmp_path: Path) -> None:
    [run] = planned(WEATHER)
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match=r"cannot be saved in .*file: File exists"):
        save_recording(tmp_path / "file", run, [], stopped(run), started_at=NOW, secrets=NO_SECRETS)


def test_a_recording_without_a_result_is_a_run_in_error(make: Maker, tmp_path: Path) -> None:
    make(planned(WEATHER), recordings(tmp_path))
    file = tmp_path / "weather.right.offline.1.run.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:5]))
    result = result_of_recording(read_recording(file))
    assert (result.status, result.error) == ("error", "the recording ends before the run does")


def test_a_result_of_another_kind_is_refused_with_its_file(make: Maker, tmp_path: Path) -> None:
    make(planned(WEATHER), recordings(tmp_path))
    file = tmp_path / "weather.right.offline.1.run.jsonl"
    file.write_text(file.read_text().replace('"status":"passed"', '"status":"splendid"'))
    with pytest.raises(
        RecordingError, match=r"right\.offline\.1\.run\.jsonl: its result cannot be read: status: must be"
    ):
        result_of_recording(read_recording(file))
