"""The queues and limits of a cluster's batch, and the hashes of what the user approved.

Each endpoint has a queue of runs. Workers borrow shares of the endpoint's limits. The workers compare hashes with their
own files and settings, and refuse everything that the user did not approve."""

from __future__ import annotations

import hashlib
import heapq
import json
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, field
from functools import partial
from itertools import chain
from pathlib import Path

from workbench.config.models import ConfigError, ModelSpec
from workbench.dataclasses import dataclass
from workbench.engine.batch import QueueKey
from workbench.engine.plan import PlannedRun
from workbench.evaluation.approval import Approval
from workbench.evaluation.plan import Plan
from workbench.limits import MAX_HOLD_SECONDS
from workbench.providers.built_in import BuiltInModels, is_built_in
from workbench.providers.http.rate_limits import Lease
from workbench.providers.model import ModelError
from workbench.suite.files import absolute
from workbench.suite.settings import judged_checks
from workbench.suite.trust import SuiteNeeds

_HASHED_FILE_BYTES = 16 << 20
"""The size in bytes above which a command's file is identified only by its size."""


def representative_runs(runs: Iterable[PlannedRun]) -> tuple[PlannedRun, ...]:
    """Return a few runs that together need everything that all runs need.

    The returned runs include each model of each suite, and each case with a judge."""
    found: dict[str, PlannedRun] = {}
    models: set[tuple[Path, str, bool]] = set()
    cases: set[tuple[Path, str]] = set()
    for run in runs:
        model, case = (run.file.path, run.model, run.model_of_suite), (run.file.path, run.case.id)
        if model not in models or (case not in cases and any(judged_checks(run.suite, run.case))):
            found[run.run_id] = run
        models.add(model)
        cases.add(case)
    return tuple(found.values())


def approval_hashes(approval: Approval, samples: Iterable[PlannedRun]) -> dict[str, str]:
    """Return a hash of each approved item, with a message to show if a worker computes a different hash.

    A worker computes the hashes again, and refuses runs if one of its hashes was not approved. The hashes cover suite
    paths, commands, addresses, modules, file contents, variable names and model settings. They never cover the values
    of variables."""
    found: dict[str, str] = {}
    for path, grant in approval.grants.items():
        of = f"(of {path.name})"
        for words, *what in _of_suite(grant.needs, of):
            found[_hashed(path, what)] = words
        for name, module in grant.code.modules.items():
            found[_hashed(path, ["code", name, module.sha256])] = f"the code of {name} {of} is different there"
    for path, spec in _specs(approval, samples):
        settings = {name: getattr(spec, name) for name in _HASHED_SETTINGS}
        if spec.cloud is not None:
            settings["cloud"] = [asdict(spec.cloud), spec.credentials]
        price = None
        if spec.price is not None:
            price = [spec.price.input, spec.price.output, spec.price.cached_input]
        message = f"the model {spec.name!r}, {spec.description}, is different there"
        found[_hashed(path, ["model", settings, price])] = message
    return found


_HASHED_SETTINGS = (
    "name",
    "provider",
    "model",
    "base_url",
    "api_key_env",
    "params",
    "read_timeout_s",
    "legacy_auth",
    "thoughts",
    "images",
    "audio",
    "headers",
    "query",
    "key_command",
    "origin",
)


def missing_resources(approval: Approval, samples: Iterable[PlannedRun]) -> Iterator[str]:
    """Yield a sentence for each key, variable, folder or recording that runs need and that this machine lacks."""
    samples = tuple(samples)
    for path, spec in _specs(approval, samples):
        if not spec.variables or approval.model_refusal(path, spec) is not None:
            continue
        try:
            environment = approval.specs.environment_at(path)
        except ConfigError as error:
            yield str(error)
            continue
        for variable in spec.variables:
            if not environment.get(variable, "").strip():
                what = f"{variable} for its requests, which"
                if variable == spec.api_key_env:
                    what = f"a key, and {variable}"
                yield f"{spec.name} needs {what} is not set there: set it where the worker is started"
    for path, grant in approval.grants.items():
        needs, variables = grant.needs, grant.environment
        if isinstance(variables, ConfigError):
            yield str(variables)
        else:
            for name in needs.environment:
                if name not in variables:
                    yield f"{path.name} needs the variable {name}, which is not set there"
        if (needs.commands or needs.modules or needs.python) and not needs.folder.is_dir():
            yield f"{path.name} needs the folder {needs.folder}, which does not exist there"
    built_in = BuiltInModels()
    for run in samples:
        if run.subject is None and is_built_in(run.asked_model):
            try:
                built_in.check(run.asked_model, run.file.path.parent if run.model_of_suite else Path())
            except ModelError as error:
                yield str(error)


def unreachable_models(approval: Approval, samples: Iterable[PlannedRun]) -> Iterator[str]:
    """Yield the reasons why models of these runs cannot be reached."""
    for run in samples:
        try:
            approval.specs.of(run)
        except ConfigError as error:
            yield from error.problems


def _specs(approval: Approval, samples: Iterable[PlannedRun]) -> Iterator[tuple[Path, ModelSpec]]:
    """Yield pairs of a suite's path and the settings of a model that a run of this suite calls.

    Judges and models of simulated users are included. Models that cannot be resolved are left out."""
    for run in samples:
        path = run.file.path
        ways: list[Callable[[], ModelSpec | None]] = []
        if run.subject is None:
            ways.append(partial(approval.specs.of_model, run.model, path, by_suite=run.model_of_suite))
        ways.append(partial(approval.specs.user_of, path, run.case))
        for check in judged_checks(run.suite, run.case):
            ways.append(partial(approval.specs.judge_of, path, check))
        for way in ways:
            try:
                spec = way()
            except ConfigError:
                continue
            if spec is not None:
                yield path, spec


def endpoints_of(approval: Approval, samples: Iterable[PlannedRun]) -> Mapping[tuple[str, str], list[ModelSpec]]:
    """Return the settings of the models and judges of these runs, grouped by address and model."""
    found: dict[tuple[str, str], list[ModelSpec]] = {}
    for _, spec in _specs(approval, samples):
        found.setdefault((spec.endpoint, spec.model), []).append(spec)
    return found


def _of_suite(needs: SuiteNeeds, endpoint: str) -> Iterator[tuple[str, str, str]]:
    for command in needs.commands:
        yield f"it would run the command {command} {endpoint}", "command", str(command)
        for word in command.words:
            if (content := _content(Path(command.folder or needs.folder), word)) is not None:
                yield f"the file {word} of a command {endpoint} is different there", f"file {word}", content
    for kind, written in (
        ("open the address", needs.urls),
        ("import the module", needs.modules),
        ("call the function", needs.python),
        ("read the variable", needs.environment),
        ("ask the model", needs.models),
        ("call the tool", needs.calls),
    ):
        for each in written:
            yield f"it would {kind} {each} {endpoint}", kind, str(each)


def _content(folder: Path, word: str) -> str | None:
    """Return the hash of the file that a word of a command names; `None` if the folder has no such file.

    A large file is identified by its size instead of a hash."""
    try:
        file = folder / word
        if Path(word).is_absolute() or not file.is_file():
            return None
        size = file.stat().st_size
        if size > _HASHED_FILE_BYTES:
            return str(size)
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None


def _hashed(suite: Path, content: object) -> str:
    # The hash includes the suite's path, because a command may be approved for one suite and not for another.
    return hashlib.sha256(json.dumps([str(absolute(suite)), content], sort_keys=True).encode()).hexdigest()


PERMIT_MARGIN_S = 1.0
"""The extra time, in seconds, that a permit rests, because requests take different times to arrive."""
MAX_PERMITS = 500
"""The most permits of an endpoint. At a higher rate, a permit allows several requests a minute."""
LOST_LEASE_TIMEOUT_S = 12.0
"""The time, in seconds, after which a lost worker's part is lent again. Within this time, a worker without messages
stops, and all but its longest requests end."""


class EndpointLimits:
    """The limits of one model at one address, for all workers together.

    At most `concurrency` requests are in flight at a time, and `per_minute` are sent in any minute. Workers borrow
    shares of both limits. `clock` returns monotonic seconds."""

    def __init__(
        self,
        endpoint: str,
        model: str,
        concurrency: int,
        per_minute: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoint = endpoint
        self.model = model
        self.concurrency = concurrency
        self._clock = clock
        self._held_until_s = float("-inf")
        self._free = concurrency
        self._coming: list[tuple[float, int]] = []
        """The parts of the limit that lost workers had: the time at which each becomes free, and its number of
        requests."""
        self._permits: list[float] | None = None
        """The times at which permits that are not lent may be used again, as a heap."""
        self._all_permits = 0
        self._permit_s = 0.0
        if per_minute is not None:
            uses = max(1, math.ceil(per_minute / MAX_PERMITS))
            self._all_permits = max(1, int(per_minute // uses))
            # With less than one request a minute, there is a single permit, which rests for longer than a minute after
            # each use.
            self._permit_s = (60.0 + PERMIT_MARGIN_S) / uses
            if per_minute < 1:
                self._permit_s = 60.0 / per_minute + PERMIT_MARGIN_S
            self._permits = [clock()] * self._all_permits

    @classmethod
    def of(cls, endpoint: str, model: str, specs: Iterable[ModelSpec], concurrency: int) -> EndpointLimits:
        """Return the limits of one model at an endpoint. If several settings name the model, the lowest limit applies.

        `concurrency` is the default for settings that do not limit concurrency."""
        rates, at_once = [], []
        for spec in specs:
            at_once.append(spec.concurrency or concurrency)
            if spec.requests_per_minute is not None:
                rates.append(spec.requests_per_minute)
        return cls(endpoint, model, min(at_once, default=concurrency), min(rates, default=None))

    @property
    def most_parts(self) -> int:
        """The highest number of shares that can be lent at the same time."""
        if self._permits is None:
            return self.concurrency
        return min(self.concurrency, self._all_permits)

    @property
    def held_s(self) -> float:
        """The time, in seconds, until the endpoint accepts requests again."""
        return max(0.0, self._held_until_s - self._clock())

    def hold(self, seconds: float) -> None:
        """Record that the endpoint asked for a pause of some seconds."""
        self._held_until_s = max(self._held_until_s, self._clock() + min(seconds, MAX_HOLD_SECONDS))

    def can_lend(self) -> bool:
        """Return whether a share is available now."""
        now_s = self._clock()
        while self._coming and self._coming[0][0] <= now_s:
            self._free += heapq.heappop(self._coming)[1]
        return self._free > 0 and (self._permits is None or bool(self._permits))

    def lend(self, parts: int) -> Lease:
        """Lend one of `parts` equal shares of the limits. Call this method only if `can_lend` returns true."""
        # The size is rounded up, so that no share is empty. The last share gets the remainder.
        at_once = min(self._free, -(-self.concurrency // parts))
        self._free -= at_once
        waits_s: tuple[float, ...] | None = None
        if self._permits is not None:
            now_s = self._clock()
            count = min(len(self._permits), -(-self._all_permits // parts))
            # Leases have durations instead of times, because the clocks of two machines differ.
            waits_s = tuple(max(0.0, heapq.heappop(self._permits) - now_s) for _ in range(count))
        return Lease(self.endpoint, self.model, at_once, waits_s, self._permit_s)

    def return_lease(self, lease: Lease, waits_s: Iterable[float]) -> None:
        """Take back a share that a worker returns.

        Each of its permits may be used again after the given number of seconds."""
        self._free += lease.concurrency
        self._add_permits(waits_s)

    def lost(self, lease: Lease) -> None:
        """Record that the worker with this share was lost.

        The share becomes available after some time, because the worker may still be sending requests."""
        rests_s = 0.0
        if self.endpoint:
            rests_s = LOST_LEASE_TIMEOUT_S
        heapq.heappush(self._coming, (self._clock() + rests_s, lease.concurrency))
        self._add_permits(LOST_LEASE_TIMEOUT_S + self._permit_s for _ in lease.waits_s or ())

    def _add_permits(self, waits_s: Iterable[float]) -> None:
        if self._permits is not None:
            now_s = self._clock()
            for wait_s in waits_s:
                heapq.heappush(self._permits, now_s + wait_s)


MAX_PORTIONS_PER_WORKER = 2
"""The most portions of a queue that a worker has at a time. The second portion keeps it busy while the first ends."""
TARGET_PORTIONS_PER_WORKER = 2
"""The number of portions of a queue for each worker. With several small portions, all workers end at about the same
time."""
MAX_PORTION_BY_LOSSES = (100, 20, 1)
"""The largest portion after no, one or two losses of its runs. After three losses, a run ends as an error."""

Endpoint = tuple[str, str]
"""The address of an endpoint, and a model at it. The address is empty for a model without an endpoint."""

RunGroup = tuple[Path, str, bool]
"""A suite, a model, and whether the suite names the model. All runs of a portion have the same group."""


@dataclass(eq=False)
class EndpointQueue:
    """The runs that wait for one endpoint. `limits` bounds how many of them are in progress."""

    limits: EndpointLimits
    asked_by: Counter[EndpointLimits]
    """The number of queues that ask each endpoint. All queues share this counter."""
    waiting: dict[RunGroup, deque[PlannedRun]] = field(default_factory=dict)
    """The waiting runs by group, in order. A group without waiting runs has no entry."""
    retried: deque[PlannedRun] = field(default_factory=deque)
    """The runs that were lost with their workers. These runs are assigned first."""
    suspects: deque[PlannedRun] = field(default_factory=deque)
    """Runs that end as errors if they are lost once more.

    These runs are assigned last, each alone to a worker. If this worker is lost too, the run was the cause."""
    needs: dict[RunGroup, tuple[EndpointLimits, ...]] = field(default_factory=dict)
    """The limits of all endpoints that the runs of a group ask. This queue's limits come first."""
    losses: Counter[str] = field(default_factory=Counter)

    @property
    def length(self) -> int:
        return sum(map(len, self._queues()))

    @property
    def only_suspects(self) -> bool:
        """Whether all waiting runs are suspects.

        A suspect is a run whose worker was lost twice. If a third worker is lost, the run ends as an error."""
        return bool(self.suspects) and self._next() is self.suspects

    def needed(self) -> tuple[EndpointLimits, ...]:
        """Return the limits of all endpoints to which the next portion's runs send requests."""
        return self.needs[group_of(self._next()[0])]

    def lend(self, workers: int) -> tuple[Lease, ...]:
        """Lend a share of each limit that the next portion needs.

        Shares are small enough for all portions that `workers` may have at a time. Call this method only if every
        needed limit can lend a share."""
        leases = []
        for limits in self.needed():
            parts = min(limits.most_parts, workers * MAX_PORTIONS_PER_WORKER * self.asked_by[limits])
            leases.append(limits.lend(parts))
        return tuple(leases)

    def pop_portion(self, workers: int) -> list[PlannedRun]:
        """Remove and return the runs of the next portion, which all belong to one `RunGroup`."""
        run_queue = self._next()
        group, losses = group_of(run_queue[0]), self.losses[run_queue[0].run_id]
        most = MAX_PORTION_BY_LOSSES[losses]
        if losses == 0:
            parts = min(workers * MAX_PORTIONS_PER_WORKER, self.limits.most_parts)
            # A portion with fewer than `least` runs could not use its whole share of the limit.
            least = -(-self.limits.concurrency // parts)
            most = min(most, max(least, -(-self.length // (parts * TARGET_PORTIONS_PER_WORKER))))
        runs: list[PlannedRun] = []
        while (
            run_queue
            and len(runs) < most
            and (group_of(run_queue[0]), self.losses[run_queue[0].run_id]) == (group, losses)
        ):
            runs.append(run_queue.popleft())
        if not self.waiting.get(group, True):
            del self.waiting[group]
        return runs

    def lost(self, run: PlannedRun) -> bool:
        """Queue a run again after its worker was lost.

        Returns false if the run was lost too often and must end as an error."""
        self.losses[run.run_id] += 1
        left = len(MAX_PORTION_BY_LOSSES) - self.losses[run.run_id]
        if left == 1:
            self.suspects.append(run)
        elif left > 1:
            self.retried.append(run)
        return left > 0

    def drop(self, run_id: str | None) -> list[PlannedRun]:
        """Remove and return the waiting run with this id, or all waiting runs if `run_id` is `None`."""

        def stays(run: PlannedRun) -> bool:
            return run_id not in (None, run.run_id)

        dropped = [run for run in chain(*self._queues()) if not stays(run)]
        self.retried, self.suspects = deque(filter(stays, self.retried)), deque(filter(stays, self.suspects))
        kept: dict[RunGroup, deque[PlannedRun]] = {}
        for group, run_queue in self.waiting.items():
            if left := deque(filter(stays, run_queue)):
                kept[group] = left
        self.waiting = kept
        return dropped

    def _queues(self) -> Iterator[deque[PlannedRun]]:
        yield from (self.retried, *self.waiting.values(), self.suspects)

    def _next(self) -> deque[PlannedRun]:
        return next(filter(None, self._queues()))


def endpoint_queues(
    plan: Plan, queue_of: Callable[[PlannedRun], QueueKey], samples: Iterable[PlannedRun], approval: Approval
) -> tuple[tuple[EndpointQueue, ...], Mapping[Endpoint, EndpointLimits]]:
    """Return the queues of a plan's runs, and the limits of all endpoints by address and model.

    The endpoints of judges are included. `samples` are the `representative_runs` of the plan."""
    samples = tuple(samples)
    endpoints: dict[Endpoint, EndpointLimits] = {}
    for endpoint, specs in endpoints_of(approval, samples).items():
        endpoints[endpoint] = EndpointLimits.of(*endpoint, specs, plan.concurrency)
    # All runs of a suite have the same judges, so the runs in `samples` are enough.
    judges: dict[Path, set[Endpoint]] = {}
    for sample in samples:
        asked = endpoints_of(approval, [sample]).keys() - {_endpoint_of(sample, approval)}
        judges.setdefault(sample.file.path, set()).update(asked)
    queues: dict[Endpoint, EndpointQueue] = {}
    queue_of_group: dict[RunGroup, EndpointQueue] = {}
    asked_by: Counter[EndpointLimits] = Counter()
    for run in plan.runs:
        group = group_of(run)
        queue = queue_of_group.get(group)
        if queue is None:
            # Models without an endpoint, such as built-in models, are limited only by concurrency.
            endpoint = _endpoint_of(run, approval) or ("", queue_of(run).key)
            if endpoint not in endpoints:
                endpoints[endpoint] = EndpointLimits(*endpoint, queue_of(run).concurrency, None)
            queue = queue_of_group[group] = queues.setdefault(endpoint, EndpointQueue(endpoints[endpoint], asked_by))
            others = sorted(judges.get(run.file.path, set()) - {endpoint})
            queue.needs[group] = tuple(endpoints[each] for each in (endpoint, *others))
        queue.waiting.setdefault(group, deque()).append(run)
    for queue in queues.values():
        asked_by.update(set(chain.from_iterable(queue.needs.values())))
    return tuple(queues.values()), endpoints


def group_of(run: PlannedRun) -> RunGroup:
    return run.file.path, run.model, run.model_of_suite


def _endpoint_of(run: PlannedRun, approval: Approval) -> Endpoint | None:
    try:
        spec = approval.specs.of(run)
    except ConfigError:
        return None
    if spec is not None:
        return (spec.endpoint, spec.model)
    return None
