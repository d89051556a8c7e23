"""Runs on the workers of a real dask cluster: the results equal those of one process, no key is sent, and workers may
die."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import select
import signal
import socket
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program as CommandLine
from tests.cli.suites import SLOW, WEATHER, WRONG
from tests.evaluation.test_one_door import apart_from_times, shown
from tests.programs import program_of
from tests.providers.server import (
    MARK,
    Answer,
    Call,
    Pause,
    Request,
    Server,
    Signal,
    base_url_of,
    document,
    error_document,
    said,
)
from tests.sampled_rows import first_of
from workbench.engine.events import ClusterNotice
from workbench.engine.plan import plan_runs
from workbench.evaluation.approval import needs_of_plan
from workbench.evaluation.cluster import batch, dask
from workbench.evaluation.cluster import dask as local
from workbench.evaluation.cluster.batch import WorkerGroup
from workbench.evaluation.cluster.dask import Portion
from workbench.evaluation.cluster.endpoint_limits import EndpointLimits, EndpointQueue, group_of
from workbench.evaluation.cluster_worker import prepare
from workbench.evaluation.options import OptionsError, RunOptions, Stop, cluster_address
from workbench.evaluation.plan import ClusterError, Plan
from workbench.evaluation.planner import plan
from workbench.evaluation.report import Report
from workbench.evaluation.run import Evaluation
from workbench.grading.grade import RunResult
from workbench.grading.packed import SharedParts
from workbench.history.history import History
from workbench.suite.suite_file import load_suite
from workbench.trajectory.events import EventPayload

CHECKED = """
[[cases]]
name = "Checked"
user = "What is the weather in Oslo?"
ordered = [{ tool = "get_weather", args = { city = { python = "checks:check" } } }]
"""


def _untimed(payload: EventPayload) -> Any:
    names = [field.name for field in fields(payload) if not field.name.endswith("_ms")]
    return type(payload).__name__, [getattr(payload, name) for name in names]


def told_in(history: Path) -> list[Any]:
    """Return a history's facts on each run, without times."""
    with History(history) as opened:
        runs = opened.runs(1)
        recordings = [opened.recording(run) for run in runs]
    return [
        (
            *(run.place, run.figures and run.figures.status, apart_from_times(dict(recording.result or {}))),
            [_untimed(event.payload) for event in recording.events],
        )
        for run, recording in zip(runs, recordings, strict=True)
    ]


class Own:
    name = "mine"

    def open(self, planned: object) -> Any:
        raise AssertionError


HEAD = WEATHER[: WEATHER.index("[[cases]]")]
KEY = "sk-of-the-workers-0123456789abcdef"
SECRET = "tok-9f8e7d6c5b4a3210"
OWN_SECRET = "tok-that-no-worker-has-0815"
ONE_ROUND = HEAD + "[limits]\nmax_rounds = 1\n"
POLITE = """
[[cases]]
name = "Polite"
user = "What is the weather in Oslo?"
response = { judged = "is polite" }
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of the workers."""
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def scheduler(home: Path) -> Iterator[str]:
    """A cluster of another user: two workers with a key and a token that this process does not have."""
    from distributed import LocalCluster

    folders = {f"XDG_{name}_HOME": str(home / name) for name in ("STATE", "CONFIG", "DATA")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**folders, "OPENAI_API_KEY": KEY, "CITY_TOKEN": SECRET}.items():
            patch.setenv(name, value)
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit=0
        )
    with cluster:
        yield cluster.scheduler_address


def planned(folder: Path, cluster: str | None, **options: Any) -> Plan:
    program = program_of(folder / "home", options.pop("environment", {}))
    history = folder / f"history-{'cluster' if cluster else 'one'}.db"
    options = {"suites": (folder / "weather.toml",), "history": history, "cluster": cluster, **options}
    chosen = RunOptions(**options)
    if chosen.base_url is not None:
        program = replace(program, models=type(program.models)(program.folders.config, options=chosen.model_options))
    return plan(chosen, program)


async def evaluated(plan: Plan, said: list[str] | None = None) -> Report:
    """The report on a plan, of which everything is approved."""
    async with Evaluation(plan, needs_of_plan(plan).approved()) as going:
        async for event in going:
            if isinstance(event, ClusterNotice) and said is not None:
                said.append(event.text)
        return await going.report()


class Wiretap:
    """Forwards and records the traffic with a scheduler."""

    def __init__(self, address: str) -> None:
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        self._to = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self.heard = bytearray()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                there = socket.create_connection(self._to)
                for ends in ((client, there), (there, client)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                self.heard += data
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._listener.close()


@pytest.mark.slow
async def test_a_cluster_comes_to_the_same_report_and_history_as_one_process(
    scheduler: str, tmp_path: Path, home: Path
) -> None:
    check = (
        "import logging, os\ndef check(value):\n    print('noise')\n"
        "    logging.getLogger('workbench.checks').warning('noise, %s', os.environ.get('CITY_TOKEN'))\n"
        "    return value == 'Oslo'\n"
    )
    (tmp_path / "checks.py").write_text(check, encoding="utf-8")
    (tmp_path / "weather.toml").write_text(WEATHER + WRONG + CHECKED, encoding="utf-8")
    options: dict[str, Any] = {"repeats": 9, "models": ("offline", "offline:hasty")}
    one, two = [await evaluated(planned(tmp_path, cluster, **options)) for cluster in (None, scheduler)]
    assert shown(two) == shown(one) and two.totals.passed == 36
    assert told_in(tmp_path / "history-cluster.db") == told_in(tmp_path / "history-one.db")
    (log,) = home.rglob("workbench.log")
    assert "noise, $CITY_TOKEN" in log.read_text(encoding="utf-8") and SECRET not in log.read_text(encoding="utf-8")


@pytest.mark.slow
async def test_no_key_travels_limits_hold_over_workers_and_a_pause_is_everybodys(
    scheduler: str, tmp_path: Path
) -> None:
    (tmp_path / "weather.toml").write_text(ONE_ROUND + POLITE, encoding="utf-8")
    both = Signal()
    arrivals: list[float] = []
    refused: list[float] = []
    judged: list[Request] = []

    def answer_to(request: Request) -> Answer:
        if b"is polite" in request.body:
            judged.append(request)
            return said("openai", calls=[Call("verdict", {"mark": MARK, "rationale": "It is.", "holds": True})])
        assert request.headers["authorization"] == f"Bearer {KEY}"
        arrivals.append(time.monotonic())
        if len(arrivals) == 1:  # waits for the other worker to be there, then asks for a pause
            refusal = document(error_document("openai", "slow down"), 429, {"retry-after": "4"})
            return replace(refusal, before=(both,))
        if len(arrivals) == 2:
            refused.append(time.monotonic())
            both.set()
        return replace(
            said("openai", f"Rain, {SECRET}, {OWN_SECRET}."), before=(Pause(2.0 if len(arrivals) == 2 else 0.1),)
        )

    tap = Wiretap(scheduler)
    with Server(answer_to) as server:
        plan = planned(
            tmp_path,
            tap.address,
            models=("test",),
            base_url=base_url_of(server, "openai"),
            api_key_env="OPENAI_API_KEY",
            environment={"OWN_TOKEN": OWN_SECRET},
            judge=f"openai:judge@{server.url}/v1",
            repeats=8,
            concurrency=2,
        )
        report = await evaluated(plan)
    tap.close()
    assert report.totals.errors == 0 and len(arrivals) == 9 and report.totals.passed == 8
    assert 1 <= len(judged) <= 2, "each worker asks once about what is the same"
    assert server.most_at_once <= 4, "two of the model, two of the judge"
    # The worker that was refused waits by itself; the other one can only have heard of the pause, while its first
    # answer took its time.
    assert not [at for at in arrivals if refused[0] < at < refused[0] + 3.9]
    heard = bytes(tap.heard)
    assert b"What is the weather in Oslo?" in heard and b"OPENAI_API_KEY" in heard
    assert KEY.encode() not in heard and SECRET.encode() not in heard
    # This process knows neither: what it was told has them taken out. What it alone knows, it takes out itself.
    assert all(run.trajectory.final_answer == f"Rain, $CITY_TOKEN, {OWN_SECRET}." for run in report.results)
    told = str(told_in(tmp_path / "history-cluster.db"))
    assert "Rain, $CITY_TOKEN, $OWN_TOKEN." in told and OWN_SECRET not in told


async def test_what_a_worker_cannot_prepare_is_a_reason_and_no_error_which_dask_would_log_with_the_suites() -> None:
    (why,) = await prepare(b"https://bob:pw@h")
    assert "Error: " in why and "pw@" not in why


@pytest.mark.slow
@pytest.mark.parametrize("what", ["version", "python", "key", "code", "model", "secret", "folder"])
async def test_what_is_not_as_approved_is_refused_before_the_first_run(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    (tmp_path / "checks.py").write_text("def check(value): return True\n", encoding="utf-8")
    (tmp_path / "weather.toml").write_text(WEATHER + CHECKED, encoding="utf-8")
    settings = '[models.mine]\nprovider = "openai"\nmodel = "test"\nbase_url = "http://127.0.0.1:9/v1"\n'
    (tmp_path / "workbench.toml").write_text(settings + 'api_key_env = "OPENAI_API_KEY"\n', encoding="utf-8")
    options: dict[str, Any] = {"models": ("mine",)}
    if what == "key":
        (tmp_path / "workbench.toml").write_text(settings + 'api_key_env = "OTHER_KEY"\n', encoding="utf-8")
    if what == "secret":
        options["environment"] = {"CITY_TOKEN": SECRET}
        (tmp_path / "weather.toml").write_text(WEATHER + CHECKED.replace("Oslo", SECRET), encoding="utf-8")
    plan = planned(tmp_path, scheduler, **options)
    approval = needs_of_plan(plan).approved()
    match what:
        case "version":
            monkeypatch.setattr(dask, "__version__", "99.0")
        case "python":
            monkeypatch.setattr(platform, "python_version_tuple", lambda: ("3", "99", "1"))
        case "code":
            (tmp_path / "checks.py").write_text("import os\ndef check(value): return True\n", encoding="utf-8")
        case "model":
            (tmp_path / "workbench.toml").write_text(settings.replace(":9", ":10"), encoding="utf-8")
        case "folder":
            moved = tmp_path.with_name("moved")
            tmp_path.rename(moved)
    with pytest.raises(ClusterError) as refused:
        async with Evaluation(plan, approval):
            raise AssertionError
    if what == "folder":
        moved.rename(tmp_path)
    expected = {
        "version": r": it has Workbench 0\.1\.0, and this is 99\.0: install the same there",
        "python": rf": it has Python {platform.python_version()}, and this is .*: use the same one",
        "key": r": mine needs a key, and OTHER_KEY is not set there: set it where the worker is started",
        "code": r": refused, because it differs from the approval: the code of checks \(of weather.toml\) is different",
        "model": r": refused, .*: the model 'mine', test at http://127.0.0.1:10/v1 with no key, is different there",
        "secret": r"a secret would be sent .*: .*weather.toml:\d+ \(.*\) holds a secret: write \$\{CITY_TOKEN\}",
        "folder": r": refused, because it differs from the approval: the code of checks",
    }
    assert refused.match(expected[what])
    assert not (tmp_path / "history-cluster.db").exists() or not told_in(tmp_path / "history-cluster.db")


@pytest.mark.slow
async def test_runs_of_a_lost_worker_are_given_to_others_and_one_that_kills_each_is_an_error(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = (
        "import os\nfrom pathlib import Path\n"
        "def check(value):\n    mark = Path(__file__).with_name('died')\n"
        "    if MOST > (len(mark.read_bytes()) if mark.exists() else 0):\n"
        "        with mark.open('a') as file: file.write('x')\n        os.kill(os.getpid(), 9)\n    return True\n"
    )
    told = iter([True])
    received = SharedParts.received

    def receive(in_common: SharedParts, *transferred: Any) -> RunResult:
        if next(told, False):
            raise ValueError("a result that cannot be read")
        return received(in_common, *transferred)

    monkeypatch.setattr(SharedParts, "received", receive)
    (tmp_path / "weather.toml").write_text(WEATHER + WRONG + CHECKED, encoding="utf-8")
    (tmp_path / "checks.py").write_text(kills.replace("MOST", "1"), encoding="utf-8")
    heard: list[str] = []
    report = await evaluated(planned(tmp_path, scheduler, repeats=4), heard)
    assert [result.status for result in report.results] == ["passed"] * 4 + ["failed"] * 4 + ["passed"] * 4
    for why in ("", "its messages could not be handled; the log holds the details"):
        assert any(f"is lost ({why}" in text and "unfinished run" in text for text in heard)
    assert len(told_in(tmp_path / "history-cluster.db")) == 12

    (tmp_path / "died").unlink()
    (tmp_path / "checks.py").write_text(kills.replace("MOST", "3"), encoding="utf-8")
    report = await evaluated(planned(tmp_path, scheduler, cases=["checked"], history=None))
    assert report.results[0].status == "error"
    assert str(report.results[0].error).startswith("the worker that made it was lost 3 times, the last one tcp://")


def test_a_run_that_was_lost_twice_goes_last_to_a_worker_with_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "weather.toml").write_text(WEATHER + WRONG + CHECKED, encoding="utf-8")
    kills, beside, later = runs = plan_runs([load_suite(tmp_path / "weather.toml")])
    limits = EndpointLimits("", "offline", 4, None)
    queue = EndpointQueue(limits, Counter([limits]), {group_of(kills): deque(runs)})
    for _ in range(2):
        assert queue.pop_portion(1) == [kills, beside] and queue.lost(kills) and queue.lost(beside)
    assert not queue.only_suspects and queue.pop_portion(1) == [later]
    worker = batch._Worker("tcp://worker")
    worker.assigned[1] = batch._AssignedPortion(Portion(1, (), 1, 1, ()), queue, {}, (), suspect=False)
    assert queue.only_suspects and not worker.may_have_more_of(queue), "whoever is beside it would be suspected, too"
    worker.assigned.clear()
    assert worker.may_have_more_of(queue) and queue.pop_portion(1) == [kills]
    worker.assigned[2] = batch._AssignedPortion(Portion(2, (), 1, 2, ()), queue, {}, (), suspect=True)
    assert not worker.may_have_more_of(EndpointQueue(limits, Counter()))
    assert not queue.lost(kills) and queue.drop(None) == [beside] and not queue.length


def nannies_of(monkeypatch: pytest.MonkeyPatch, *good: int) -> list[Any]:
    """Replace the function that starts workers on this machine. Only the starts with these numbers succeed.

    Return the list of started workers."""
    from dask import config

    started: list[Any] = []
    made = local.LocalWorkers._nanny

    def numbered(workers: local.LocalWorkers, place: int) -> Any:
        with config.set({} if len(started) in good else {"distributed.worker.preload": ["no_such_module"]}):
            started.append(made(workers, place))
        return started[-1]

    monkeypatch.setattr(local.LocalWorkers, "_nanny", numbered)
    return started


@pytest.mark.slow
async def test_a_batch_ends_when_no_worker_of_this_machine_can_be_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gives_up(nanny: Any, _code: int) -> None:
        if nanny.status.name == "running":
            await nanny.close()

    nannies = nannies_of(monkeypatch, 1)
    monkeypatch.setattr("distributed.Nanny._on_worker_exit", gives_up)
    (tmp_path / "weather.toml").write_text(HEAD + CHECKED, encoding="utf-8")
    kills = "import os\ndef check(value): os.kill(os.getpid(), 9)\n"
    (tmp_path / "checks.py").write_text(kills, encoding="utf-8")
    monkeypatch.setattr(batch, "NO_WORKER_TIMEOUT_S", 0.0)
    heard: list[str] = []
    report = await evaluated(planned(tmp_path, "local:1", repeats=3, history=None), heard)
    assert heard[-1] == "no worker could be started again for 0 s: the missing runs were not made"
    assert [result.status for result in report.results] == ["stopped"] * 3 and report.interrupted
    assert len(nannies) >= 2, "a start that does not succeed is tried again"


@pytest.mark.slow
async def test_a_worker_of_this_machine_that_nobody_watches_is_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nannies = nannies_of(monkeypatch, 0, 1)
    cluster = dask.DaskCluster(cluster_address("local:1"))
    await cluster.open()
    try:
        (before,) = await cluster.workers()
        await nannies[-1].close()  # as dask does with one whose next process does not start, or not soon enough
        while not await cluster.workers() - {before}:  # noqa: ASYNC110 (a process elsewhere)
            await asyncio.sleep(0.05)
    finally:
        await cluster.close()
    nannies_of(monkeypatch)
    monkeypatch.setattr(local, "START_ATTEMPTS", 1)
    with pytest.raises(ClusterError, match=r"local:1 .* did not start, tried 1 times: ModuleNotFoundError: No module"):
        await dask.DaskCluster(cluster_address("local:1")).open()


@pytest.mark.slow
def test_a_program_that_is_killed_leaves_no_folder_of_its_workers(tmp_path: Path) -> None:
    (tmp_path / "weather.toml").write_text(HEAD + SLOW, encoding="utf-8")
    (temporary := tmp_path / "tmp").mkdir()
    program = CommandLine(tmp_path, {"TMPDIR": str(temporary)})
    assert program.run("run", "weather.toml", "--cluster", "local:1", "--detach").returncode == 0
    (batch,) = json.loads(program.run("batches", "--format", "json").stdout)["batches"]
    of_it = Path(f"/proc/{batch['process']}/task").glob("*/children")
    children = [int(child) for task in of_it for child in task.read_text().split()]
    (keeper,) = (child for child in children if b"workbench keeper" in Path(f"/proc/{child}/cmdline").read_bytes())
    assert list(temporary.glob("workbench-*"))
    ends = os.pidfd_open(keeper)
    os.kill(batch["process"], signal.SIGKILL)
    assert select.select([ends], [], [], 60)[0]
    os.close(ends)
    assert not list(temporary.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("answer", first_of([b"", b"HTTP/1.1 400 Bad request\r\n\r\n"], 1))
async def test_what_answers_and_is_no_scheduler_is_said_in_time(monkeypatch: pytest.MonkeyPatch, answer: bytes) -> None:
    async def answering(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    monkeypatch.setattr(dask, "CONNECT_TIMEOUT_S", 1.0)
    async with await asyncio.start_server(answering, "127.0.0.1") as server:
        cluster = dask.DaskCluster(cluster_address(f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
        with pytest.raises(ClusterError, match=r"there is no dask scheduler at this address \(it s"):
            await cluster.open()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_cluster_that_does_not_answer_is_given_up_on_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "weather.toml").write_text(WEATHER, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        patient = "import workbench.evaluation.cluster.dask as dask\ndask.CONNECT_TIMEOUT_S = 600.0\n"
        running = CommandLine(tmp_path).start("run", "weather.toml", "--cluster", where, first=patient)
        with silent.accept()[0] as connection:
            assert connection.recv(1)
            running.send_signal(number)
            _, complaints = running.communicate()
    assert running.wait() == 130 and complaints == "interrupted\nnothing was run\n"


@pytest.mark.slow
async def test_stopping_stops_the_runs_of_all_workers_and_of_portions_that_are_on_their_way(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "STOP_TIMEOUT_S", 600.0)
    submit = WorkerGroup.submit

    def stopping(group: WorkerGroup, worker: str, portion: Portion) -> Any:
        going.stop()
        return submit(group, worker, portion)

    monkeypatch.setattr(WorkerGroup, "submit", stopping)
    (tmp_path / "weather.toml").write_text(HEAD + SLOW, encoding="utf-8")
    plan = planned(tmp_path, scheduler, repeats=6, concurrency=2)
    async with Evaluation(plan, needs_of_plan(plan).approved()) as going:
        report = await going.report()
    assert [result.status for result in report.results] == ["stopped"] * 6


@pytest.mark.slow
def test_the_command_line_starts_workers_of_its_own_and_says_what_does_not_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weather.toml").write_text(WEATHER + WRONG, encoding="utf-8")
    of_others = tmp_path / "tmp" / "dask-scratch-space"  # where dask works, and imports from, if it is left to itself
    of_others.mkdir(parents=True)
    program = CommandLine(tmp_path, {"TMPDIR": str(of_others.parent)})
    spread = program.run("run", "weather.toml", "--cluster", "local:2", "-q")
    assert spread.returncode == 1 and spread.stdout.startswith("✗ 1 of 2 cases failed\n"), spread.stderr
    assert spread.stderr == ""
    assert list(of_others.parent.rglob("*")) == [of_others]
    refused = program.run("run", "weather.toml", "--cluster", "somewhere")
    assert refused.returncode == 2 and "a cluster must be local:N or the address of a dask scheduler" in refused.stderr
    without = "import sys; sys.modules['distributed'] = None"
    refused = program.run("run", "weather.toml", "--cluster", "local:2", first=without)
    assert refused.returncode == 2 and "pip install 'toolcall-workbench[cluster]'" in refused.stderr
    refusals: tuple[tuple[dict[str, Any], str], ...] = (
        ({"models": (Own(),)}, "exists only in this process"),
        ({"until": Stop()}, "leave out --cluster"),
        ({"cluster": "local:0"}, "a local cluster has 1 to 512 workers"),
    )
    for what, why in refusals:
        with pytest.raises(OptionsError, match=why):
            RunOptions(**{"suites": ("weather.toml",), "cluster": "local:2", **what})
    with pytest.raises(ClusterError, match=r"no certificates for tls: name them in its settings, distributed.comm.tls"):
        asyncio.run(dask.DaskCluster(cluster_address("tls://127.0.0.1:1")).open())
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"pip install 'toolcall-workbench\[cluster\]'"):
        asyncio.run(dask.DaskCluster(cluster_address("local:2")).open())
    assert os.environ.get("OPENAI_API_KEY") != KEY
