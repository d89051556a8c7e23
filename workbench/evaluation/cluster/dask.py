"""A dask cluster: its workers, the calls and tasks that they execute, and the messages from and to the workers.

All messages pass through the scheduler, so they must not contain secrets. The program searches the setup message for
secrets before it sends it, and workers redact their messages. dask is imported only when a cluster is opened."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import platform
import pydoc
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from workbench.config.model_book import ModelOptions
from workbench.dataclasses import dataclass
from workbench.engine.plan import PlannedRun, with_grader
from workbench.evaluation.options import ClusterAddress
from workbench.evaluation.plan import ClusterError, NotInstalledError
from workbench.evaluation.worker_messages import EventMessage, PauseMessage, ResultMessage
from workbench.numerals import seconds_text
from workbench.providers.http.rate_limits import Lease
from workbench.providers.model import RetryPolicy
from workbench.suite.grading_model import GraderName, RepeatRule
from workbench.suite.model import Case
from workbench.suite.suite_file import SuiteFile
from workbench.version import __version__

SILENCE_TIMEOUT_S = 10.0
"""The time, in seconds, without a message from the program after which a worker stops."""


@dataclass(frozen=True)
class SuiteText:
    """The source text of a suite, in which variables are `$NAME` instead of their values.

    `path` is absolute. `hash` is the hash of the suite's file."""

    path: Path
    text: str
    hash: str
    is_historical: bool


class RunRef(NamedTuple):
    """A planned run as a worker receives it: without its suite and case, which the worker already has.

    `suite` is an index into `WorkerSetup.suites`, and `case` is an id."""

    run_id: str
    suite: int
    case: str
    model: str
    repeat: int
    model_of_suite: bool
    by: GraderName | None
    repeat_rule: RepeatRule | None

    @classmethod
    def of(cls, run: PlannedRun, suite: int) -> RunRef:
        return cls(
            run.run_id, suite, run.written.id, run.model, run.repeat, run.model_of_suite, run.by, run.repeat_rule
        )

    def planned(self, file: SuiteFile, case: Case) -> PlannedRun:
        written = with_grader(case, self.by, self.repeat_rule)
        of_person = (self.model_of_suite, self.by)
        return PlannedRun(self.run_id, file, written, self.model, self.repeat, *of_person, repeat_rule=self.repeat_rule)


@dataclass(frozen=True)
class WorkerSetup:
    """The first message to each worker: the suites, and the options for their runs.

    The message also says what the user has approved. `granted` are indices of approved suites, and `approved` are the
    hashes of everything approved (`endpoint_limits.approval_hashes`). `samples` are a few runs that together need
    everything that the batch needs. `history` means that runs are stored. `events` means that the program wants the
    events of runs. `is_own_process` means that the worker process was started for this batch. `instructions` holds
    `Plan.instructions` by the index of the suite."""

    token: str
    suites: tuple[SuiteText, ...]
    samples: tuple[RunRef, ...]
    granted: frozenset[int]
    approved: frozenset[str]
    models: ModelOptions
    execute: bool | None
    execute_all: bool
    concurrency: int
    original_pace: bool
    renew_judgements: bool
    retries: RetryPolicy
    history: bool
    events: bool
    is_own_process: bool
    instructions: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class Portion:
    """A message to a worker: execute these runs, `concurrency` at a time.

    `leases` are the worker's shares of the endpoints' limits. Later messages refer to the leases by `lease_id`. If
    `leases` is `None`, the worker uses the leases that it already has under this id."""

    number: int
    runs: tuple[RunRef, ...]
    concurrency: int
    lease_id: int
    leases: tuple[Lease, ...] | None


@dataclass(frozen=True)
class StopRuns:
    """A message to a worker: stop one run, or all runs if `run_id` is `None`."""

    run_id: str | None


@dataclass(frozen=True)
class ReturnLeases:
    """A message to a worker: return these leases. The program may send it more than once."""

    lease_id: int


@dataclass(frozen=True)
class PortionDone:
    """A message from a worker: all runs of one `Portion` message have been reported.

    The worker keeps the portion's leases until another portion uses them or the program asks the worker to return
    them."""

    number: int


@dataclass(frozen=True)
class LeasesReturned:
    """A message from a worker: these leases are no longer in use.

    For each lease, `waits_s` has the seconds until each of its permits may be used again."""

    lease_id: int
    waits_s: tuple[tuple[float, ...], ...]


ToWorker = StopRuns | PauseMessage | ReturnLeases
FromWorker = ResultMessage | PauseMessage | EventMessage | PortionDone | LeasesReturned


_logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 10.0
WORKERS_TIMEOUT_S = 10.0
"""The time, in seconds, for the first worker to join."""
CALL_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 4.0

PROGRAM_SIGNALS = frozenset({signal.SIGINT, signal.SIGHUP})
"""The signals that only the program handles. Its workers ignore them."""

NOT_INSTALLED = "--cluster needs packages that are not installed: pip install 'toolcall-workbench[cluster]'"

_CONFIG = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
}
"""The settings of workers started here: no web pages, no profiling."""


class UnreachableError(Exception):
    """A worker or the scheduler did not answer a request. The message is the reason."""


class DaskCluster:
    """A connection to a dask cluster, whose workers are identified by their addresses.

    Use this object on the event loop that opened the cluster."""

    def __init__(self, address: ClusterAddress) -> None:
        self._address = address
        self._open = AsyncExitStack()
        self._client: Any = None

    async def open(self) -> None:
        """Start the workers, or connect to the scheduler.

        Raises ClusterError if that fails."""
        try:
            await asyncio.to_thread(_imported)
        except ImportError as error:
            raise NotInstalledError(NOT_INSTALLED) from error
        try:
            if self._address.is_local:
                await self._start()
            else:
                await self._connect()
        except (OSError, TimeoutError, RuntimeError, ValueError, TypeError) as error:
            await self.close()
            raise ClusterError(f"the cluster {self._address.text} cannot be used: {error}") from error
        except BaseException:
            await self.close()
            raise

    async def _start(self) -> None:
        import dask
        from distributed import Client, Scheduler, Security

        # Any client of a scheduler can execute code in its workers. Temporary certificates make this program the only
        # client.
        security = await asyncio.to_thread(Security.temporary)
        # Ctrl+C signals the whole process group. The signals are blocked in this thread, so that workers start with
        # them blocked. Later, workers ignore them.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, PROGRAM_SIGNALS)
        self._open.callback(signal.pthread_sigmask, signal.SIG_SETMASK, before)
        # dask imports modules from its working folder. By default, this folder is in the shared temporary folder, in
        # which other users may create files.
        own = self._open.enter_context(TemporaryDirectory(prefix="workbench-", ignore_cleanup_errors=True))
        self._open.enter_context(_removed_if_killed(own))
        config = {**_CONFIG, "temporary-directory": own}
        at: dict[str, Any] = {"host": "127.0.0.1", "protocol": "tls://", "security": security, "dashboard": False}
        with dask.config.set(config):
            scheduler = Scheduler(port=0, dashboard_address="127.0.0.1:0", **at)
        await self._open.enter_async_context(scheduler)
        workers = LocalWorkers(
            scheduler.address,
            self._address.workers,
            config,
            silence_logs=logging.CRITICAL,
            dashboard_address=None,
            **at,
        )
        await self._open.enter_async_context(workers)
        self._client = await self._open.enter_async_context(
            Client(scheduler.address, asynchronous=True, security=security, set_as_default=False)
        )

    async def _connect(self) -> None:
        from distributed import Client, Security

        connecting = Security().get_connection_args("client")
        if self._address.text.startswith("tls:") and not connecting["ssl_context"]:
            raise ValueError(
                "dask has no certificates for tls: name them in its settings, distributed.comm.tls, in a file such as "
                "~/.config/dask/tls.yaml"
            )
        await _ask_for_scheduler(self._address.text, connecting)
        client = Client(self._address.text, asynchronous=True, timeout=CONNECT_TIMEOUT_S, set_as_default=False)
        self._client = await self._open.enter_async_context(client)
        # Workers join some time after their scheduler answers.
        for _ in range(int(WORKERS_TIMEOUT_S / 0.2)):
            if await self.workers():
                return
            await asyncio.sleep(0.2)
        raise ValueError(f"the scheduler has no worker: start one, as in 'dask worker {self._address.text}'")

    async def workers(self) -> frozenset[str]:
        """Return the addresses of all workers; raise UnreachableError if the scheduler is gone."""
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                return frozenset(await self._client.scheduler.ncores())
        except Exception as error:
            raise UnreachableError(_reason_of(error)) from error

    async def unsuitability(self, worker: str) -> str | None:
        """Return why a worker cannot be used; `None` if the worker can be used.

        An example is a different version of Python or Workbench."""
        here = ".".join(platform.python_version_tuple()[:2])
        python = await self.call(worker, platform.python_version)
        if python.split(".")[:2] != here.split("."):
            return f"it has Python {python}, and this is {platform.python_version()}: use the same one"
        version = await self.call(worker, pydoc.locate, "workbench.version.__version__")
        if version is None:
            return f"it has no Workbench: install toolcall-workbench {__version__} there"
        if version != __version__:
            return f"it has Workbench {version}, and this is {__version__}: install the same there"
        return None

    async def call(
        self, worker: str, function: Callable[..., Any], *arguments: object, timeout_s: float = CALL_TIMEOUT_S
    ) -> Any:
        """Call a function in a worker, without waiting for the worker's tasks, and return the result.

        dask finds the function by name. Raises UnreachableError."""
        try:
            async with asyncio.timeout(timeout_s):
                answers = await self._client.run(function, *arguments, workers=[worker])
            return answers[worker]
        except Exception as error:
            raise UnreachableError(_reason_of(error)) from error

    def submit(self, worker: str, key: str, function: Callable[..., object], *arguments: object) -> Any:
        return self._client.submit(function, *arguments, key=key, workers=[worker], pure=False)

    async def result(self, task: Any) -> Any:
        """Wait for a task and return its result; raise UnreachableError if the task fails."""
        try:
            return await task
        except Exception as error:
            raise UnreachableError(_reason_of(error)) from error

    async def close(self) -> None:
        """Disconnect from the cluster, and end the workers that were started here."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._open.aclose()
        except Exception:
            _logger.info("closing the cluster %s", self._address.text, exc_info=True)


@contextmanager
def _removed_if_killed(folder: str) -> Iterator[None]:
    """Remove a folder if this program is killed inside the context.

    A second process waits for the end of this program and then removes the folder."""
    # The shell reads until this program ends, then waits a second, because workers end later than the program.
    script = 'read -r _; sleep 1; rm -rf -- "$1"'
    keeper = subprocess.Popen(
        ["/bin/sh", "-c", script, "workbench keeper", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    try:
        yield
    finally:
        keeper.kill()
        keeper.communicate()


def _imported() -> None:
    importlib.import_module("distributed")
    quiet_logs()


async def _ask_for_scheduler(address: str, connecting: dict[str, Any]) -> None:
    """Wait until a dask scheduler answers at an address.

    dask's own client could wait forever, but this wait has a time limit. Raises OSError if nothing answers, and
    ValueError if something other than a scheduler answers."""
    from distributed.comm.core import CommClosedError, connect
    from distributed.core import send_recv

    why = "it says nothing"
    try:
        # `connect` has its own time limit, at which it raises OSError. The request has no time limit, so the outer
        # limit applies to it.
        async with asyncio.timeout(CONNECT_TIMEOUT_S * 1.1):
            comm = await connect(address, timeout=CONNECT_TIMEOUT_S, **connecting)
            try:
                who = (await send_recv(comm, op="identity"))["type"]
            finally:
                comm.abort()
        if who == "Scheduler":
            return
        why = f"it is a {who}"
    except (CommClosedError, TimeoutError):
        pass
    except OSError:
        raise
    except Exception:  # noqa: BLE001 (dask fails in many ways on foreign bytes, with MemoryError for one)
        why = "it speaks another language"
    raise ValueError(
        f"there is no dask scheduler at this address ({why}): give the address that 'dask scheduler' prints"
    )


def _reason_of(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, OSError):
        return "the connection to it is closed"
    if str(error):
        return f"{type(error).__name__}: {error}"
    return type(error).__name__


def quiet_logs() -> None:
    """Send dask's messages to the program's log instead of the screen."""
    for name in ("distributed", "distributed.client", "bokeh", "tornado", "tornado.application"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        # dask's own messages are not needed, because this module reports the errors that matter.
        logger.setLevel(logging.CRITICAL)


START_TIMEOUT_S = 60.0
"""The time, in seconds, for a worker to start."""
START_ATTEMPTS = 3
"""The number of attempts for the first start of a worker. A worker that has run before is restarted without limit."""
RESTART_DELAY_S = 1.0
POLL_INTERVAL_S = 0.5
MAX_DEAD_POLLS = 60
"""The number of checks that find a process dead before its nanny is replaced."""
END_TIMEOUT_S = 1.5


class LocalWorkers:
    """Starts and restarts workers on this machine for a scheduler.

    A dask nanny restarts a worker that dies, but gives up if a start fails. In this case, another nanny is started.
    Workers inherit the blocked signals of the thread that enters this context. The thread must block `PROGRAM_SIGNALS`,
    because only the program handles these signals."""

    def __init__(self, scheduler: str, workers: int, config: Mapping[str, object], **options: Any) -> None:
        self._scheduler = scheduler
        self._config = config
        self._options = options
        self._workers = workers
        self._keeping: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> LocalWorkers:
        """Start all workers.

        Raises RuntimeError if a worker cannot be started."""
        loop = asyncio.get_running_loop()
        first: list[asyncio.Future[None]] = []
        for place in range(self._workers):
            first.append(loop.create_future())
            self._keeping.append(asyncio.create_task(self._keep(place, first[place])))
        try:
            await asyncio.gather(*first)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._keeping:
            task.cancel()
        await asyncio.gather(*self._keeping, return_exceptions=True)

    async def _keep(self, place: int, first: asyncio.Future[None]) -> None:
        """Keep one worker running.

        `first` completes when the worker has started, or has failed to start."""
        from distributed.core import Status

        for attempt in count(1):
            nanny = self._nanny(place)
            try:
                async with asyncio.timeout(START_TIMEOUT_S):
                    await nanny
                if not first.done():
                    first.set_result(None)
                dead = 0
                while nanny.status == Status.running and dead < MAX_DEAD_POLLS:
                    await asyncio.sleep(POLL_INTERVAL_S)
                    dead += 1
                    if nanny.is_alive():
                        dead = 0
                _logger.warning("worker %d of this machine: its nanny has ended; another one is started", place)
            # A process can fail to start in many ways, so any error is caught.
            except Exception as error:
                _logger.warning("worker %d of this machine could not be started", place, exc_info=True)
                if not first.done() and attempt == START_ATTEMPTS:
                    first.set_exception(RuntimeError(f"a worker did not start, tried {attempt} times: {_why(error)}"))
                    return
            finally:
                await _ended(nanny)
            await asyncio.sleep(RESTART_DELAY_S)

    def _nanny(self, place: int) -> Any:
        import dask
        from distributed import Nanny

        with dask.config.set(self._config):
            return Nanny(self._scheduler, name=place, nthreads=1, memory_limit=0, **self._options)


def _why(error: Exception) -> str:
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    if isinstance(error, TimeoutError):
        return f"it did not start within {seconds_text(START_TIMEOUT_S)}"
    return f"{type(error).__name__}: {error}"


async def _ended(nanny: Any) -> None:
    process = nanny.process
    try:
        await nanny.close(timeout=END_TIMEOUT_S)
    # dask raises various errors if a process is ended while it starts.
    except Exception:
        _logger.info("ending a worker of this machine", exc_info=True)
    finally:
        if process is not None and (pid := process.pid) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
