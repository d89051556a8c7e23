"""Forks in real batches: endpoints and stateful servers receive nothing of the replayed part."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.engine.stepped import Person
from tests.engine.test_stepping_over_http import Said, conversation
from tests.programs import begin, program_of
from tests.providers.server import APIS, Answer, Api, Call, Request, Server, base_url_of, said
from workbench.config.secrets import Secrets
from workbench.engine.checkpoint import EditResult
from workbench.engine.events import BatchDone, RunDone
from workbench.engine.fork import Fork, ForkPoint
from workbench.engine.plan import plan_fork, plan_runs
from workbench.engine.recordings import RecordingLines, Recordings
from workbench.grading.grade import RunResult
from workbench.suite.suite_file import SuiteFile, load_suite
from workbench.trajectory.events import Usage
from workbench.trajectory.recording import read_recording
from workbench.trajectory.trajectory import Trajectory

SERVERS = Path(__file__).parents[1] / "tools" / "servers"
SUITE = """
format = 1
name = "Looking"
system = "Look around."
execute = true

[[servers]]
name = "counting"
command = ["python", "counting.py"]

[[cases]]
name = "Look"
user = "What do you see?"
limits = { max_latency_ms = 60000 }
[[cases.ordered]]
tool = "look"
args = { place = "roof" }
[[cases.ordered]]
tool = "look"
args = { place = "hall" }
"""

LONG = "functions.look:0!" + "x" * 80
"""An id that no other API takes: too long, and of letters that some refuse."""

ACCEPTED: dict[Api, str] = {
    "openai": r"[A-Za-z0-9]{9}",  # OpenAI itself takes 40 characters, Mistral's servers only these
    "openai-responses": r".{1,64}",
    "anthropic": r"[A-Za-z0-9_-]+",
}


def plays(api: Api, *answers: Answer) -> Callable[[Request], Answer]:
    """Answers by how many results the conversation has."""

    def answer(request: Request) -> Answer:
        return answers[sum(thing.who == "result" for thing in conversation(api, request.json))]

    return answer


class House:
    """A session on a suite whose server counts, and one endpoint for each API that plays two calls and an answer."""

    def __init__(self, folder: Path) -> None:
        (folder / "looking.toml").write_text(SUITE, encoding="utf-8")
        for name in ("counting.py", "plain.py"):
            shutil.copy(SERVERS / name, folder)
        self.folder = folder
        self.file: SuiteFile = load_suite(folder / "looking.toml")
        self.person = Person(program_of(folder / "home"))
        self.servers = {api: Server(plays(api, *self._answers(api))) for api in APIS}

    def _answers(self, api: Api) -> Sequence[Answer]:
        calls = [Call("look", {"place": place}, f"{LONG}{place}") for place in ("roof", "hall")]
        return [said(api, calls=[calls[0]]), said(api, calls=[calls[1]]), said(api, "A roof, a hall.")]

    def model(self, api: Api) -> str:
        return f"{api}:test-model@{base_url_of(self.servers[api], api)}"

    @property
    def requests(self) -> int:
        return sum(len(server.requests) for server in self.servers.values())

    def run(self, model: str) -> RunResult:
        return self.person.run(self.file, model, until="end").result

    def fork(self, fork: Fork, model: str, record: Recordings | None = None, person: Person | None = None) -> RunResult:
        assert self.file.suite is not None
        planned, person = plan_fork(self.file, self.file.suite.cases[0], model, fork), person or self.person
        begin(person.session, [planned], record=record)
        results: list[RunResult] = []
        while not isinstance(event := person.said.get(timeout=30), BatchDone):
            results += [event.result] if isinstance(event, RunDone) else []
        (result,) = results
        return result


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    house = House(tmp_path_factory.mktemp("house"))
    for server in house.servers.values():
        server.__enter__()
    yield house
    house.person.session.close()
    for server in house.servers.values():
        server.__exit__()


def looks(trajectory: Trajectory) -> list[int]:
    """The numbers that the server gave to the calls of a run."""
    results = [call.result.content for call in trajectory.calls if call.result is not None]
    return [int(found[1]) for result in results if (found := re.match(r"look (\d+)", result))]


@pytest.mark.parametrize("api", APIS)
def test_no_endpoint_and_no_server_is_asked_about_what_came_before(house: House, api: Api) -> None:
    origin = house.run(house.model(api))
    first, second = looks(origin.trajectory)
    requests = house.servers[api].requests
    before = len(requests)
    forked = house.fork(Fork(origin.trajectory, ForkPoint(2)), house.model(api))
    assert forked.error is None
    assert len(requests) == before + 2, "the second and the third request, and not the first"
    assert looks(forked.trajectory) == [first, second + 1], "the first call was not made again"
    again = house.fork(Fork(forked.trajectory, ForkPoint(2, 1), result=EditResult("nothing")), house.model(api))
    assert len(requests) == before + 3
    assert [call.result.content for call in again.trajectory.calls if call.result][1] == "nothing"
    last = conversation(api, requests[-1].json)
    assert last[-1] == Said("result", "nothing", f"{LONG}hall" if api != "anthropic" else last[-1].to)
    assert requests[before].json == requests[before - 2].json, "what the origin sent, byte for byte"
    assert requests[before].body == requests[before - 2].body
    assert (again.status, again.score) == (origin.status, origin.score) == ("passed", 1.0)


@pytest.mark.parametrize("origin_api", APIS)
@pytest.mark.parametrize("api", APIS)
def test_every_api_takes_up_what_every_other_one_began(house: House, origin_api: Api, api: Api) -> None:
    if api == origin_api:
        return
    origin = house.run(house.model(origin_api))
    before = house.requests
    forked = house.fork(Fork(origin.trajectory, ForkPoint(3)), house.model(api))
    assert (forked.error, forked.status) == (None, "passed")
    assert house.requests == before + 1
    things = conversation(api, house.servers[api].requests[-1].json)
    calls = [thing.to for thing in things if thing.who == "call"]
    assert calls == [thing.to for thing in things if thing.who == "result"]
    assert all(re.fullmatch(ACCEPTED[api], call_id) for call_id in calls)
    assert len(set(calls)) == 2


def test_only_what_is_asked_anew_costs_anything(house: House) -> None:
    origin = house.run(house.model("openai"))
    forked = house.fork(Fork(origin.trajectory, ForkPoint(3)), house.model("openai"))
    assert origin.trajectory.usage is not None
    assert forked.trajectory.usage is not None
    answer = forked.trajectory.rounds[2]
    assert forked.trajectory.usage == answer.usage != Usage()
    assert forked.trajectory.model_latency_ms == answer.latency_ms


def test_a_fork_is_recorded_read_replayed_and_forked_again(house: House) -> None:
    model = house.model("openai")
    origin = house.run(model)
    folder = house.folder / "out"
    folder.mkdir()
    record = Recordings(folder, RecordingLines(Secrets(), lambda: "2026-11-22T10:00:00Z"))
    forked = house.fork(Fork(origin.trajectory, ForkPoint(2, 1), system="Be brief."), model, record)
    assert record.problem is None
    (file,) = folder.iterdir()
    recording = read_recording(file)
    assert recording.complete
    assert recording.trajectory == forked.trajectory
    before = house.requests
    replayed = house.run(f"replay:{file}")
    assert house.requests == before
    assert [round_.text for round_ in replayed.trajectory.rounds] == ["", "", "A roof, a hall."]
    once_more = house.fork(Fork(recording.trajectory, ForkPoint(3)), model)
    assert house.requests == before + 1
    assert house.servers["openai"].requests[-1].json["messages"][0]["content"] == "Be brief."
    assert once_more.trajectory.fork is not None


def test_a_recording_that_breaks_off_is_forked_as_far_as_it_goes(house: House) -> None:
    model = house.model("anthropic")
    folder = house.folder / "cut"
    folder.mkdir()
    record = Recordings(folder, RecordingLines(Secrets(), lambda: "2026-11-22T10:00:00Z"))
    origin = house.run(model)
    house.fork(Fork(origin.trajectory, ForkPoint(2)), model, record)
    (file,) = folder.iterdir()
    content = file.read_bytes()
    file.write_bytes(content[: content.rindex(b"response_finished")])
    recording = read_recording(file)
    assert not recording.complete
    forked = house.fork(Fork(recording.trajectory, ForkPoint(2)), model)
    assert forked.status == "passed"


def test_a_fork_where_nothing_is_left_to_ask_is_an_error_that_says_so(house: House) -> None:
    origin = house.run(house.model("openai"))
    before = house.requests
    forked = house.fork(Fork(origin.trajectory, ForkPoint(4)), house.model("openai"))
    said = "the run cannot be forked there: the model answered in round 3, so there is nothing left to ask"
    assert (forked.status, forked.error, house.requests) == ("error", said, before)


def test_what_was_typed_reaches_the_endpoint_as_it_is(house: House, tmp_path: Path) -> None:
    origin = house.run(house.model("openai"))
    named = house.folder / "workbench.toml"
    address = base_url_of(house.servers["openai"], "openai")
    named.write_text(
        f'[models.keyed]\nprovider = "openai"\nmodel = "m"\nbase_url = "{address}"\napi_key_env = "HOUSE_KEY"\n',
        encoding="utf-8",
    )
    person = Person(program_of(tmp_path, {"HOUSE_KEY": "sk-house-1234567890"}))
    fork = Fork(origin.trajectory, ForkPoint(3), system="The key is sk-house-1234567890.")
    try:
        result = house.fork(fork, "keyed", person=person)
    finally:
        person.session.close()
        named.unlink()
    assert result.error is None
    assert house.servers["openai"].requests[-1].json["messages"][0]["content"] == "The key is sk-house-1234567890."


def test_a_fork_never_has_the_id_of_its_origin(house: House) -> None:
    assert house.file.suite is not None
    numbers = iter(["run-7", "run-8"])
    planned = plan_fork(
        house.file,
        house.file.suite.cases[0],
        "offline",
        Fork(Trajectory("run-7"), ForkPoint(1)),
        next_run_id=lambda: next(numbers),
    )
    assert planned.run_id == "run-8"
    assert plan_runs([house.file])[0].fork is None
