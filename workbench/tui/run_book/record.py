"""The record of a run, from its plan to its result. The record of a finished run is compressed.

A run of a few rounds takes about fifty kilobytes as objects and two kilobytes compressed, and a comparison has
thousands of runs. A record is decompressed when it is viewed."""

from __future__ import annotations

import pickle
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar
from weakref import ReferenceType, ref

from workbench.authoring.case_list import CaseKey, current_case, has_same_grading, stops_at_same_step
from workbench.authoring.document import CaseOutline
from workbench.authoring.open_suite import OpenSuite
from workbench.config.secrets import NO_SECRETS, Finder
from workbench.dataclasses import dataclass
from workbench.engine.plan import PlannedRun, sends_same_requests
from workbench.engine.redaction import EventRedaction, SuiteParts, shown_result
from workbench.grading.grade import RunResult
from workbench.grading.run_summary import RunSummary, summary_of
from workbench.grading.status import Status, graders_disagree
from workbench.show.spans import Message
from workbench.suite.model import Case
from workbench.trajectory.events import Event, Paused, Resumed, RetryScheduled, StepStarted
from workbench.trajectory.fold import fold
from workbench.trajectory.trajectory import Trajectory

if TYPE_CHECKING:
    from workbench.analysis.alignment import Difference
    from workbench.engine.executor import PermissionQuestion
    from workbench.engine.fork import PastHold
    from workbench.providers.model import HttpRequest
    from workbench.show.views.run_view import RunView


MAX_UNPACKED_RUNS = 256
"""The number of finished runs that stay unpacked. The most recently viewed runs stay."""


@dataclass
class RunContent:
    """The large parts of a run: the events and, after its end, the result."""

    events: list[Event] = field(default_factory=list)
    result: RunResult | None = None


def pack_content(content: RunContent) -> bytes:
    from workbench.grading.packed import fast_pickle  # lazy import: the first screen shows no run

    # Records are compressed while the user scrolls through a list, so the fastest level is used.
    return zlib.compress(fast_pickle((content.events, content.result)), 1)


def unpack_content(data: bytes) -> RunContent:
    """Decompress the content of a run.

    Pickle is safe here, because this process created the data."""
    return RunContent(*pickle.loads(zlib.decompress(data)))


class RecentRuns:
    """Keeps at most `limit` finished runs decompressed. The runs viewed least recently are compressed first."""

    def __init__(self, limit: int = MAX_UNPACKED_RUNS) -> None:
        self._limit = limit
        self._unpacked: dict[int, Callable[[], None]] = {}

    def mark_viewed(self, key: int, compress: Callable[[], None]) -> None:
        """Record that a run is viewed.

        `key` identifies the run while the run exists. `compress` compresses its record."""
        if self._unpacked.pop(key, None) is None and len(self._unpacked) >= self._limit:
            oldest = next(iter(self._unpacked))
            self._unpacked.pop(oldest)()
        self._unpacked[key] = compress


@dataclass(frozen=True, slots=True)
class Spend:
    """The tokens of runs (input and output) and their cost in US dollars.

    `unknown` is true if some prices are unknown. `user_usd` is the cost of the models that played users, `None` if
    unknown."""

    tokens: int = 0
    cost_usd: float = 0.0
    unknown: bool = False
    user_usd: float | None = 0.0


def spend_of(result: RunResult) -> Spend:
    usage = result.trajectory.usage
    tokens = 0
    if usage is not None:
        tokens = usage.input_tokens + usage.output_tokens
    return Spend(tokens, result.cost_usd or 0.0, result.cost_usd is None, result.user_cost_usd)


def total(spends: Iterable[Spend]) -> Spend:
    """Return the tokens and cost of several runs together."""
    tokens, cost_usd, unknown = 0, 0.0, False
    user_usd: float | None = 0.0
    for spend in spends:
        tokens += spend.tokens
        cost_usd += spend.cost_usd
        unknown = unknown or spend.unknown
        user_usd = sum_or_unknown(user_usd, spend.user_usd)
    return Spend(tokens, cost_usd, unknown, user_usd)


def sum_or_unknown(one: float | None, other: float | None) -> float | None:
    """Return the sum of two costs, `None` if one of them is unknown."""
    return None if one is None or other is None else one + other


class Stopwatch:
    """Counts the seconds of a clock, except while it is stopped."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._stopped_s = 0.0
        """The total time in seconds during which the stopwatch was stopped."""
        self._stopped_at_s: float | None = None

    def __call__(self) -> float:
        now = self._stopped_at_s
        if now is None:
            now = self._clock()
        return now - self._stopped_s

    def stop(self, stopped: bool) -> None:
        """Stop or restart the stopwatch."""
        if stopped and self._stopped_at_s is None:
            self._stopped_at_s = self._clock()
        elif not stopped and self._stopped_at_s is not None:
            self._stopped_s += self._clock() - self._stopped_at_s
            self._stopped_at_s = None


_Key = TypeVar("_Key", bound=Hashable)


class Tally(Generic[_Key]):
    """Counts how many keys have each name."""

    def __init__(self) -> None:
        self._names: dict[_Key, tuple[str, ...]] = {}
        self._totals: Counter[str] = Counter()

    def put(self, key: _Key, names: tuple[str, ...]) -> None:
        """Set the names of a key. They replace the key's previous names."""
        self._totals.subtract(self._names.get(key, ()))
        self._totals.update(names)
        self._names[key] = names

    @property
    def totals(self) -> Mapping[str, int]:
        """The count of each name."""
        # The unary plus drops names with a count of zero.
        return +self._totals


class RunIdentity(NamedTuple):
    """Identifies a run within its case.

    The case shows only the latest run with each identity. A fork has an identity of its own, its run id."""

    model: str
    repeat: int
    recorded: bool
    fork: str | None = None


Stage = Literal["waiting", "running", "done"]

RERUN_STATUSES = frozenset({Status.FAILED, Status.ERROR, Status.STOPPED})
"""The statuses of runs that users may want to repeat."""


@dataclass
class RunRecord:
    """One planned, running or finished run.

    `recorded` is true if the run comes from a recording. `started_at` is the ISO 8601 time of the first event.
    `result` is graded by the case in `planned`, which may be newer than the run."""

    planned: PlannedRun
    batch: str = ""
    recorded: bool = False
    started_at: str = ""
    stage: Stage = "waiting"
    figures: RunSummary | None = None
    """The summary of a finished run."""
    is_user_error: bool = False
    """Whether the simulated user of a conversation spoilt the run."""
    graders_disagree: bool = False
    """Whether some grader passes the run and another grader fails it."""
    spent: Spend = field(default_factory=Spend)
    """The usage of a finished run, zero for a recorded run."""
    paused: Paused | None = None
    """The event at which the run waits for the user, if the run waits."""
    request: HttpRequest | str | None = None
    """The next request if the run is held before a request, or the reason why the request cannot be sent, if known."""
    delayed_until: datetime | None = None
    """The earliest time of the next request, if the endpoint asked another run to wait."""
    retry: RetryScheduled | None = None
    """The event of a failed request that the run will repeat."""
    retry_at: datetime | None = None
    """The time at which the failed request will be repeated."""
    step: int = 0
    """The current step of a chain (from 1)."""
    saved_in: Path | None = None
    is_unsaved: bool = False
    """Whether the run was recorded by this program and is not saved yet."""
    original: tuple[PlannedRun, RunResult] | None = None
    """The original plan and result of a regraded run."""
    origin: RunRecord | None = field(default=None, repr=False)
    """The run that this run is a fork of."""
    origin_name: str = ""
    past_holds: tuple[PastHold, ...] = field(default=(), repr=False)
    """The earlier holds of the run that this run replaced when the user stepped back."""
    recent: RecentRuns | None = field(default=None, repr=False)
    """Decides how long the finished run stays unpacked."""
    parts: SuiteParts = field(default_factory=lambda: SuiteParts(NO_SECRETS), repr=False)
    """Removes secrets from everything displayed. The run itself is unchanged."""
    _redaction: EventRedaction | None = field(default=None, repr=False)
    """Removes secrets from the events of the view, including secrets split between two events."""
    _shown_result: tuple[RunResult, Finder, RunResult] | None = field(default=None, repr=False)
    _content: RunContent | None = field(default_factory=RunContent, repr=False)
    _compressed: bytes | None = field(default=None, repr=False)
    """The packed content of a finished run that was not viewed recently."""
    _view: RunView | None = field(default=None, repr=False)
    _shown: ReferenceType[RunView] | None = field(default=None, repr=False)
    """The view of a packed run while a screen shows it. Reused when the run is unpacked."""
    _compared: tuple[int, Difference | None] = field(default=(-1, None), repr=False)
    """The first difference from the origin, and the number of the origin's events at the comparison."""

    @property
    def run_id(self) -> str:
        return self.planned.run_id

    @property
    def case_key(self) -> CaseKey:
        return self.path, self.case_id

    @property
    def path(self) -> Path:
        return self.planned.file.path

    @property
    def case_id(self) -> str:
        return self.planned.case.id

    @property
    def case_name(self) -> str:
        return self.planned.case.name

    @property
    def model(self) -> str:
        return self.planned.model

    @property
    def repeat(self) -> int:
        return self.planned.repeat

    @property
    def events(self) -> Sequence[Event]:
        """The events so far."""
        return self._unpacked.events

    @property
    def result(self) -> RunResult | None:
        """The result, once the run ended."""
        return self._unpacked.result

    @property
    def broke_off(self) -> bool:
        """Whether the run ended by an error, or was stopped or skipped."""
        return self.status in (Status.ERROR, Status.STOPPED, Status.SKIPPED)

    @property
    def status(self) -> Status | None:
        """The status, once the run ended."""
        if self.figures is None:
            return None
        return self.figures.status

    @property
    def has_verdict(self) -> bool:
        """Whether the run ended by itself, possibly with an error. A run that was stopped has no verdict."""
        return self.figures is not None and self.status != Status.STOPPED

    @property
    def view(self) -> RunView:
        """The view of the run, created on first use."""
        content = self._unpacked
        if self._view is None:
            self._view = self._viewed(content)
        return self._view

    def result_reader(self) -> Callable[[], RunResult | None]:
        """Return a function that returns the current result without secrets. Any thread may call the function.

        The function does not decompress the record."""
        # These functions hold the data that they read, because the record may be compressed before a thread calls them.
        secrets = self.parts.secrets
        if self._content is not None:
            result = self._content.result

            def kept() -> RunResult | None:
                if result is None:
                    return None
                return shown_result(result, secrets)

            return kept
        small = self._compressed
        assert small is not None

        def read() -> RunResult | None:
            result = unpack_content(small).result
            if result is None:
                return None
            return shown_result(result, secrets)

        return read

    @property
    def _unpacked(self) -> RunContent:
        if self._content is None:
            assert self._compressed is not None
            self._content = unpack_content(self._compressed)
            # A screen that still shows the run must keep the same view.
            if self._shown is not None:
                self._view = self._shown()
        if self.recent is not None and self.stage == "done":
            self.recent.mark_viewed(id(self), self._pack)
        return self._content

    def _pack(self) -> None:
        if self._compressed is None:
            # The compressed form is kept after decompression, so it is made only once.
            assert self._content is not None
            self._compressed = pack_content(self._content)
        self._shown = None
        if self._view is not None:
            # The view holds the whole run, so this reference is weak. It is valid while a screen shows the view.
            self._shown = ref(self._view)
        self._content, self._view, self._shown_result = None, None, None

    def _viewed(self, content: RunContent) -> RunView:
        from workbench.show.views.run_view import RunView  # lazy import: the first screen shows no run

        view = RunView()
        view.steps = len(self.original_plan.case.steps)
        view.origin = self.origin_name
        self._redaction = EventRedaction(self.parts)
        for event in content.events:
            self._add_to_view(view, event)
        if self.stage == "done":
            for shown in self._redaction.flush():
                view.add(shown)
        if self.request is not None:
            view.set_request(self.parts.secrets.redacted(self.request))
        if self.delayed_until is not None:
            view.delay_until(self.delayed_until)
        if content.result is not None:
            self._grade(view, content.result)
        return view

    def _add_to_view(self, view: RunView, event: Event) -> None:
        self._redaction = self._redaction or EventRedaction(self.parts)
        if view.began is None and self.started_at:
            # The view of a planned run is made before the run's start time is known.
            view.began = datetime.fromisoformat(self.started_at)
        for shown in self._redaction.add(event):
            view.add(shown)

    def _grade(self, view: RunView, result: RunResult) -> None:
        from workbench.show.views.run_grade import expected_of

        former: RunResult | None = None
        if self.original is not None:
            former = self._shown_of(self.original[1])
        view.grade(self._shown_of(result), expected_of(self.shown_case), former, self.shown_case.final)
        if self.difference is not None:
            view.differs(self.difference.sentence)

    @property
    def is_held(self) -> bool:
        return self.paused is not None and self.paused.at != "permission"

    @property
    def hold(self) -> int | None:
        """The sequence number of the `Paused` event of the current hold, `None` if the run is not held."""
        if not self.is_held:
            return None
        for at in reversed(self.events):
            if at.payload is self.paused:
                return at.sequence
        raise LookupError("the events of this held run lack its Paused event")

    @property
    def was_held(self) -> bool:
        """Whether the run was ever held, for example by stepping."""
        return any(isinstance(each.payload, Paused) and each.payload.at != "permission" for each in self.events)

    @property
    def holds_before(self) -> tuple[PastHold, ...]:
        """The holds of the run before the current hold. Empty if the run is not held."""
        from workbench.engine.fork import past_holds

        if not self.is_held:
            return ()
        return (*self.past_holds, *past_holds(tuple(self.events))[:-1])

    @property
    def is_asking(self) -> bool:
        """Whether the run is waiting for permission to execute a call."""
        return self.paused is not None and self.paused.at == "permission"

    @property
    def displayed_stage(self) -> Stage:
        """The stage to display. While an endpoint's limit holds the run back, the stage is "waiting"."""
        if self.delayed_until is not None:
            return "waiting"
        return self.stage

    @property
    def wait(self) -> tuple[datetime, str] | None:
        """The time of the next attempt at a request and the reason for the delay, `None` if the run is not delayed."""
        if self.delayed_until is not None:
            at = f"{self.delayed_until.astimezone():%H:%M:%S}"
            return self.delayed_until, f"waits until {at} at least: the endpoint asked another run to wait"
        if self.retry is not None and self.retry_at is not None:
            text = f"retry {self.retry.attempt} at {self.retry_at.astimezone():%H:%M:%S}: {self.retry.reason}"
            return self.retry_at, text
        return None

    @property
    def trajectory(self) -> Trajectory:
        """The trajectory so far. While the run is active, it is computed from all events."""
        if self.result is None:
            return fold(self.events)
        return self.result.trajectory

    @property
    def shown_result(self) -> RunResult | None:
        """The result without secrets."""
        if self.result is None:
            return None
        return self._shown_of(self.result)

    @property
    def shown_case(self) -> Case:
        """The case that grades the run, without secrets."""
        return self.parts.case(self.planned.case)

    @property
    def shown_trajectory(self) -> Trajectory:
        """The trajectory so far, without secrets."""
        result = self.shown_result
        if result is not None:
            return result.trajectory
        redaction = EventRedaction(self.parts)
        return fold(chain.from_iterable(map(redaction.add, self.events)))

    def _shown_of(self, result: RunResult) -> RunResult:
        # A new finder, made after a new secret or a newly opened suite, may redact more text.
        finder = self.parts.secrets.finder
        known = self._shown_result
        if known is None or known[0] is not result or known[1] is not finder:
            known = self._shown_result = (result, finder, shown_result(result, self.parts.secrets))
        return known[2]

    @property
    def identity(self) -> RunIdentity:
        """The identity of the run within its case."""
        fork = None
        if self.is_fork:
            fork = self.run_id
        return RunIdentity(self.model, self.repeat, self.recorded, fork)

    @property
    def is_fork(self) -> bool:
        """Whether the run is a fork made in this program. Forks never decide the result of their case."""
        return self.planned.fork is not None

    @property
    def difference(self) -> Difference | None:
        """The first difference from the origin.

        `None` if the run has not ended, has no origin, or does not differ."""
        if self.origin is None or self.result is None:
            return None
        # Lazy import: only forks are compared.
        from workbench.analysis.alignment import first_difference

        # While the origin is active, the runs are compared once, and again when the origin is held or ends. Building
        # the trajectory of a long run for every event would take too long.
        seen, now = self._compared[0], len(self.origin.events)
        if seen < 0 or (seen != now and (self.origin.is_held or self.origin.stage == "done")):
            self._compared = now, first_difference(self.origin.trajectory, self.result.trajectory)
        return self._compared[1]

    @property
    def original_plan(self) -> PlannedRun:
        """The plan with which the run was made, before any regrade by an edited case."""
        if self.original is None:
            return self.planned
        return self.original[0]

    def matches_case(self, suite: OpenSuite, case: CaseOutline | None) -> bool:
        """Return whether a case still has the request and the expectations of this run."""
        now = None
        if case is not None:
            now = current_case(suite, case)
        if now is None:
            return suite.file.standalone.hash == self.planned.file.hash
        if not sends_same_requests(self.original_plan, now.suite, now.case) or not has_same_grading(
            self.planned, now.suite, now.case
        ):
            return False
        return self.result is None or stops_at_same_step(now.case, self.result)

    @property
    def plan_to_save(self) -> tuple[PlannedRun, RunResult | None]:
        """The plan and the result to save.

        If an edit of the case would change the requests to the model, these are the original plan and result.
        Otherwise, they are the current ones."""
        if self.original is None or sends_same_requests(self.original_plan, self.planned.suite, self.planned.case):
            return self.planned, self.result
        return self.original

    def add(self, event: Event) -> None:
        """Add an event."""
        self._unpacked.events.append(event)
        if isinstance(event.payload, StepStarted):
            self.step = event.payload.step
        if self._view is not None:
            self._add_to_view(self._view, event)
        # Any wait has ended before this event.
        self.saved_in = self.delayed_until = self.retry = self.retry_at = None
        if isinstance(event.payload, Paused):
            self.paused = event.payload
        elif isinstance(event.payload, Resumed):
            self.paused = self.request = None
        elif isinstance(event.payload, RetryScheduled) and self.started_at:
            wait = timedelta(milliseconds=event.time_ms + event.payload.wait_ms)
            self.retry, self.retry_at = event.payload, datetime.fromisoformat(self.started_at) + wait

    def set_request(self, request: HttpRequest | str) -> None:
        """Store the next request of a held run, or the reason why that request cannot be sent."""
        self.request = request
        if self._view is not None:
            self._view.set_request(self.parts.secrets.redacted(request))

    def delay_until(self, until: datetime) -> None:
        self.delayed_until = until
        if self._view is not None:
            self._view.delay_until(until)

    def finish(self, result: RunResult, began_ms: float | None = None, ended_ms: float | None = None) -> None:
        """Finish the run.

        `began_ms` and `ended_ms` are milliseconds since 1970, if known."""
        self.stage, self.paused, self.saved_in, self.delayed_until = "done", None, None, None
        self.request = None
        self.retry = self.retry_at = None
        self.spent = Spend()
        if not self.recorded:
            self.spent = spend_of(result)
        self._set_result(result, began_ms, ended_ms)

    def regrade(self, planned: PlannedRun, result: RunResult) -> None:
        """Replace the grade by the grade of the case in `planned`."""
        before, figures = self.result, self.figures
        # If the edit of the case was undone, the original plan grades the run again.
        if before is not None and self.original is None:
            self.original = (self.planned, before)
        elif self.original is not None and planned is self.original[0]:
            self.original = None
        self.planned, self.saved_in = planned, None
        if figures is None:
            self._set_result(result, None, None)
        else:
            self._set_result(result, figures.began_ms, figures.ended_ms)

    def _set_result(self, result: RunResult, began_ms: float | None, ended_ms: float | None) -> None:
        self.figures = summary_of(self._shown_of(result), began_ms=began_ms, ended_ms=ended_ms)
        self.is_user_error = result.is_user_error
        self.graders_disagree = graders_disagree(result.grades)
        self._unpacked.result, self._compressed = result, None
        if self._view is not None:
            self._grade(self._view, result)


def distinct(runs: Iterable[RunRecord]) -> list[RunRecord]:
    """Return runs without repetitions, each at its first position."""
    # A record has no hash, because it changes while its run is active. So records are compared by identity.
    return list({id(run): run for run in runs}.values())


def without(runs: Iterable[RunRecord], excluded: RunRecord) -> list[RunRecord]:
    # `list.remove` would compare all fields of records, including events.
    return [run for run in runs if run is not excluded]


def results_of(runs: Iterable[RunRecord]) -> list[RunResult]:
    """Return the results of the finished runs."""
    results: list[RunResult] = []
    for run in runs:
        # Each access may decompress the record, so the result is kept in a variable.
        result = run.result
        if result is not None:
            results.append(result)
    return results


@dataclass(frozen=True)
class Question:
    """The question of a run for permission to execute a call."""

    run: RunRecord
    permission: PermissionQuestion


def waiting_message(run: RunRecord, held_runs: Sequence[RunRecord], starting: Sequence[str]) -> Message:
    """Return a message that says why a run waits.

    `held_runs` are the held runs, `starting` the servers and models that are starting."""
    if run.stage != "waiting":
        return (("Waiting for its turn.", "muted"),)
    needed = [words for words in starting if _is_needed(run, words)]
    if needed:
        return tuple((f"{words[0].upper()}{words[1:]}", "running") for words in needed)
    # A held run counts as a concurrent run at the endpoint. Therefore the next run on the same model may have to wait.
    before = sum(other.model == run.model for other in held_runs)
    if not before:
        return (("Waiting for its turn.", "muted"),)
    runs = f"{before} runs on this model that are held"
    if before == 1:
        runs = "a run on this model that is held"
    return ((f"Waiting for its turn behind {runs}; H goes there.", "warned"),)


def _is_needed(run: RunRecord, starting: str) -> bool:
    # A starting server or model is reported as "starting model NAME" or "downloading server NAME". `RunBook.starting`
    # appends the seconds.
    _, _, what = starting.partition(" ")
    servers = run.planned.suite.servers
    return what.startswith("model ") or any(what.startswith(f"server {server.name} …") for server in servers)
