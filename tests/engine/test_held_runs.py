"""Holding a run harms nothing: the time does not count, and endpoints may close connections.

However the run ends, no process and no partial file is left, and no secret is in the recording."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.engine.stepped import Does, Person
from tests.programs import begin, program_of
from tests.providers.server import APIS, Api, Call, Server, base_url_of, said, serve
from tests.tools.processes import servers_of
from workbench.config.folders import bundled
from workbench.config.program import Program
from workbench.engine.breakpoints import breakpoint_of
from workbench.engine.checkpoint import AddMessage, AnswerCall, EditArguments, EditResult, SkipCall
from workbench.engine.events import BatchDone, BatchEvent, RunDone, RunEvent, combined_listener
from workbench.engine.plan import plan_runs
from workbench.engine.recordings import RecordingLines, Recordings
from workbench.engine.stepper import Steppers
from workbench.grading.grade import RunResult
from workbench.providers.replay import ReplayModel
from workbench.suite.suite_file import SuiteFile, load_suite, parse_suite
from workbench.trajectory.events import Event, Paused, RunFinished
from workbench.trajectory.recording import read_recording

OSLO = Call("get_weather", {"city": "Oslo"}, "call_1")
ROME = Call("get_weather", {"city": "Rome"}, "call_2")
SECRET = "tok-planted-4711-zz"
PLACES = ["request 1", "call 1", "result 1", "request 2"]


def weather(more: str = "") -> SuiteFile:
    return parse_suite(
        f"""
        format = 1
        name = "Weather"
        tools = [{{ name = "get_weather" }}]
        mocks = [{{ tool = "get_weather", result = "rain in {{city}}" }}]
        cases = [{{ name = "Oslo", user = "Weather in Oslo?" }}]
        {more}
        """,
        Path("weather.toml"),
    )


def recordings(folder: Path, program: Program) -> Recordings:
    folder.mkdir()
    return Recordings(folder, RecordingLines(program.secrets, lambda: datetime.now(UTC).isoformat()))


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return program_of(tmp_path, {"SERVICE_TOKEN": SECRET})


@pytest.fixture
def person(program: Program) -> Iterator[Person]:
    person = Person(program)
    yield person
    person.session.close()
    assert "engine" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.slow
def test_time_in_which_a_run_is_held_counts_nowhere(person: Person) -> None:
    held_s, limit_s = 1.6, 1.5
    with serve(said("openai", calls=[OSLO]), said("openai", "Rain.")) as server:
        model = f"openai:test-model@{base_url_of(server, 'openai')}"
        run_id = person.hold(weather(f"limits = {{ timeout_s = {limit_s} }}"), model, "call 1")
        threading.Event().wait(held_s)
        person.session.continue_run(run_id, "end", person.held_at).result(10)
        result = the_end(person)
    assert result.error is None
    trajectory = result.trajectory
    assert held_s * 1000 <= trajectory.held_ms
    assert trajectory.duration_ms < limit_s * 1000
    counted = [time_ms or 0.0 for done in trajectory.rounds for time_ms in (done.first_token_ms, done.latency_ms)]
    assert max(counted) < limit_s * 1000
    assert [call.result.latency_ms < limit_s * 1000 for call in trajectory.calls if call.result] == [True]


@pytest.mark.parametrize("api", APIS)
def test_an_endpoint_that_hung_up_while_the_run_was_held_is_asked_anew(person: Person, api: Api) -> None:
    with serve(said(api, calls=[OSLO])) as server:
        run_id = person.hold(weather(), f"{api}:test-model@{base_url_of(server, api)}", "call 1")
    with Server([said(api, "Rain.")], port=server.port):
        person.session.continue_run(run_id, "end", person.held_at).result(10)
        result = the_end(person)
    assert (result.error, result.trajectory.final_answer) == (None, "Rain.")


@pytest.mark.parametrize("at", PLACES)
@pytest.mark.parametrize("end", ["stop", "close"])
def test_a_held_run_that_is_stopped_leaves_a_whole_recording(
    person: Person, program: Program, tmp_path: Path, at: str, end: str
) -> None:
    with serve(said("openai", calls=[OSLO]), said("openai", "Rain.")) as server:
        model = f"openai:test-model@{base_url_of(server, 'openai')}"
        run_id = person.hold(weather(), model, at, recordings(tmp_path / "out", program))
        if end == "stop":
            person.session.stop(run_id)
        else:
            person.session.close()
        result = the_end(person)
        assert len(server.requests) == (0 if at == "request 1" else 1), "nothing is asked that was held back"
    assert result.status == "stopped"
    (file,) = (tmp_path / "out").iterdir()
    recording = read_recording(file)
    assert recording.complete
    assert recording.trajectory == result.trajectory
    assert ReplayModel("replay", recording).case_id == "oslo"


@pytest.mark.slow
def test_no_server_outlives_a_session_that_is_closed_while_a_run_on_it_is_held(
    person: Person, program: Program, tmp_path: Path
) -> None:
    for name in ("office.toml", "office_server.py"):
        shutil.copy(bundled("sample_suites") / name, tmp_path / name)
    office = load_suite(tmp_path / "office.toml")
    person.hold(office, "offline", "result 1")
    assert servers_of(os.getpid(), "office_server.py")
    person.session.close()
    assert not servers_of(os.getpid(), "office_server.py")


def test_secrets_typed_into_a_held_run_reach_the_endpoint_and_not_the_recording(
    person: Person, program: Program, tmp_path: Path
) -> None:
    with serve(said("openai", calls=[OSLO, ROME]), said("openai", "Rain.")) as server:
        does: Does = {
            "request 1": [AddMessage(f"Use {SECRET}.")],
            "call 1": [EditArguments({"city": SECRET, SECRET: [SECRET]})],
            "result 1": [EditResult(f"<{SECRET}>")],
            "request 2": [AddMessage(SECRET)],
        }
        record = recordings(tmp_path / "out", program)
        person.run(weather(), f"openai:test-model@{base_url_of(server, 'openai')}", does, record=record)
        bodies = [request.body.decode() for request in server.requests]
    (file,) = (tmp_path / "out").iterdir()
    assert SECRET not in file.read_text()
    assert file.read_text().count("$SERVICE_TOKEN") >= 6
    assert [f"Use {SECRET}." in body for body in bodies] == [True, True]


def test_a_secret_in_a_person_s_answer_reaches_the_endpoint_alone_too(
    person: Person, program: Program, tmp_path: Path
) -> None:
    with serve(said("anthropic", calls=[OSLO]), said("anthropic", "Rain.")) as server:
        record = recordings(tmp_path / "out", program)
        model = f"anthropic:test-model@{base_url_of(server, 'anthropic')}"
        person.run(weather(), model, {"call 1": [AnswerCall(SECRET)]}, record=record)
        assert SECRET.encode() in server.requests[-1].body
    (file,) = (tmp_path / "out").iterdir()
    assert SECRET not in file.read_text()


def test_a_run_that_waits_for_its_turn_is_held_once_it_has_begun(person: Person) -> None:
    calls, answer = said("openai", calls=[OSLO]), said("openai", "Rain.")
    with serve(calls, answer, calls, answer) as server:
        model = f"openai:test-model@{base_url_of(server, 'openai')}"
        first, second = plan_runs([weather()], models=[model], repeats=2)
        person.session.set_breakpoints([breakpoint_of("tool get_weather")])
        begin(person.session, [first, second], concurrency=1)
        held = next_hold(person)
        assert held.run_id == first.run_id
        assert person.session.continue_run(second.run_id, "stop", None).result(10) is None
        person.session.continue_run(first.run_id, "end", held.sequence).result(10)
        held = next_hold(person)
        assert (held.run_id, held.payload) == (second.run_id, Paused("step by step", None, "request", 1))
        assert person.session.continue_run(first.run_id, "stop", None).result(10) == "the run has finished"
        assert (
            person.session.apply_command(first.run_id, SkipCall(), held.sequence).result(10) == "the run has finished"
        )
        person.session.stop_all()


def test_a_run_that_is_only_graded_any_more_is_over() -> None:
    told: list[BatchEvent] = []
    steppers = Steppers(lambda _event: None)
    (run,) = plan_runs([weather()], models=["offline"])
    steppers.prepare([run], "end")
    listener = combined_listener(steppers.on_event, told.append)
    assert steppers.continue_until(run.run_id, "stop", None) is None
    finished = RunEvent(Event(run.run_id, 0, 0.0, RunFinished("answered")))
    listener(finished)
    assert steppers.continue_until(run.run_id, "stop", None) == "the run has finished"
    assert told == [finished]


def next_hold(person: Person) -> Event:
    """Wait until a run is held."""
    while True:
        event = person.said.get(timeout=30)
        if isinstance(event, RunEvent) and isinstance(event.event.payload, Paused):
            return event.event


def the_end(person: Person) -> RunResult:
    """Return the result of the only active run."""
    results: list[RunResult] = []
    while not isinstance(event := person.said.get(timeout=30), BatchDone):
        if isinstance(event, RunDone):
            results.append(event.result)
    (result,) = results
    return result
