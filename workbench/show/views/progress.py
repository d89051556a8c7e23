"""The progress of a batch in one line: runs that are in progress, finished and left, and the remaining time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import NamedTuple

from rich.cells import cell_len

from workbench.dataclasses import dataclass
from workbench.grading.status import Status
from workbench.numerals import cost_text, count_text, counted, estimate_time_text, with_user_cost
from workbench.show.spans import EMPTY, Line, Span, cells
from workbench.show.views.values import AnswerProgress
from workbench.show.visible import fit, one_line

ENOUGH_RUNS = 3
ENOUGH_S = 1.0
"""Finished runs of a model, and seconds since its first run, that an estimate of the remaining time needs."""

BAR_WIDTH, SHORT_BAR_WIDTH = 12, 6
_BAR = 5
"""The rank of the bar. Parts with a lower rank are dropped later."""

MODEL_WIDTH_MAX = 20

_MIN_SHOWN_S = 2.0
"""Shortest wait for an answer, in seconds, that is shown."""


@dataclass
class _OfModel:
    """The counts of one model's runs.

    `ended` counts the runs from which the speed is estimated. It excludes skipped runs and runs that ended before the
    batch was resumed."""

    planned: int = 0
    done: int = 0
    ended: int = 0
    running: int = 0
    began_s: float | None = None


@dataclass
class Progress:
    """The counts of a running batch. All times are seconds on one clock, which the caller chooses."""

    statuses: Counter[Status] = field(default_factory=Counter)
    cost_usd: float = 0.0
    """The cost of the runs whose cost is known."""
    cost_unknown: bool = False
    """Whether there are runs of unknown cost."""
    user_usd: float | None = 0.0
    """The cost of the models that played users, or `None` if it is unknown."""
    starting: dict[int, str] = field(default_factory=dict)
    """The servers and models that are starting, such as `server weather`, by the number of their start."""
    _models: dict[str, _OfModel] = field(default_factory=dict)
    _under_way: set[str] = field(default_factory=set)
    _waiting: set[str] = field(default_factory=set)
    awaited: dict[str, AnswerProgress] = field(default_factory=dict)
    """The requests in flight by run, oldest first."""

    def plan(self, models: Iterable[str]) -> None:
        """Add planned runs. `models` has the model of each run."""
        for model in models:
            self._models.setdefault(model, _OfModel()).planned += 1

    def add_ended(self, model: str, status: Status, cost_usd: float | None, runs: int = 1) -> None:
        """Count runs that ended before the batch was resumed. `cost_usd` is their total cost."""
        self._models.setdefault(model, _OfModel()).planned += runs
        self._over(model, status, cost_usd, runs)

    def add_run(self, run_id: str, model: str, now_s: float) -> None:
        """Record that a run has begun. Later calls for the same run have no effect."""
        if run_id not in self._under_way:
            self._under_way.add(run_id)
            of_model = self._models[model]
            of_model.running += 1
            if of_model.began_s is None:
                of_model.began_s = now_s

    def set_waiting(self, run_id: str, *, waits: bool) -> None:
        """Record whether a run is waiting for the retry of a failed request."""
        if waits:
            self._waiting.add(run_id)
        else:
            self._waiting.discard(run_id)

    def set_starting(self, number: int, words: str, *, has_ended: bool) -> None:
        """Record that a server or a model is starting or, with `has_ended`, that its start has ended."""
        if has_ended:
            self.starting.pop(number, None)
        else:
            self.starting[number] = words

    def count_run(
        self, run_id: str, model: str, status: Status, cost_usd: float | None, user_usd: float | None = 0.0
    ) -> None:
        """Count a finished run. `user_usd` is the cost of the model that simulated its user."""
        of_model = self._models[model]
        self._waiting.discard(run_id)
        self.awaited.pop(run_id, None)
        if run_id in self._under_way:
            self._under_way.remove(run_id)
            of_model.running -= 1
        # A skipped case takes no time. Counting it would make the estimate too short.
        of_model.ended += status != Status.SKIPPED
        self.user_usd = None if self.user_usd is None or user_usd is None else self.user_usd + user_usd
        self._over(model, status, cost_usd)

    def _over(self, model: str, status: Status, cost_usd: float | None, runs: int = 1) -> None:
        self._models[model].done += runs
        self.statuses[status] += runs
        # Unknown costs are recorded, because a sum without them would look like the whole cost.
        self.cost_usd += cost_usd or 0.0
        self.cost_unknown |= cost_usd is None

    @property
    def running(self) -> int:
        return len(self._under_way)

    @property
    def waiting(self) -> int:
        """The number of runs that are waiting for the retry of a failed request."""
        # A run may begin to wait before it counts as running.
        return len(self._waiting & self._under_way)

    @property
    def planned(self) -> int:
        return sum(model.planned for model in self._models.values())

    @property
    def done(self) -> int:
        return sum(model.done for model in self._models.values())

    @property
    def by_model(self) -> dict[str, tuple[int, int]]:
        """For each model, the number of finished runs and the number of planned runs."""
        return {name: (model.done, model.planned) for name, model in self._models.items()}

    def left_s(self, now_s: float) -> float | None:
        """Return the estimated remaining seconds. Models run in parallel, so the slowest model decides.

        Return `None` if nothing is left, or while the speed of a model with remaining runs is unknown."""
        guesses: list[float] = []
        for model in self._models.values():
            left = model.planned - model.done
            if not left:
                continue
            # Runs that began together end at about the same time, so the first of them say little about the speed.
            if model.began_s is None or model.ended < max(ENOUGH_RUNS, model.running):
                return None
            spent = now_s - model.began_s
            # Over a short time, each finished run would change the estimate a lot.
            if spent < ENOUGH_S:
                return None
            guesses.append(spent / model.ended * left)
        return max(guesses, default=None)


def progress_line(progress: Progress, now_s: float, *, width: int, only_ascii: bool = False) -> Line:
    """Return the line of progress in at most `width` cells. If space is short, less important parts are dropped."""
    done, planned = progress.done, progress.planned
    separator = " · "
    if only_ascii:
        separator = " | "
    gap: Line = (Span(separator, "muted"),)
    parts = [part for part in _parts(progress, now_s, only_ascii) if part.line]
    # The least important part is dropped first. The bar is shortened before it is dropped.
    while len(parts) > 1 and cells(_joined(parts, gap)) > width:
        last = max(parts, key=lambda part: part.rank)
        if last.rank == _BAR and cells(last.line) > SHORT_BAR_WIDTH:
            parts[0] = _Part(_BAR, (Span(_bar(done, planned, SHORT_BAR_WIDTH, only_ascii)),))
        else:
            parts.remove(last)
    line = _joined(parts, gap)
    if cells(line) <= width:
        return line
    return (Span(fit(_done(done, planned), width).rstrip()),)


class _Part(NamedTuple):
    """A part of the progress line. Parts with a higher rank are dropped first."""

    rank: int
    line: Line


def _parts(progress: Progress, now_s: float, only_ascii: bool) -> Iterator[_Part]:
    done, planned = progress.done, progress.planned
    yield _Part(_BAR, (Span(_bar(done, planned, BAR_WIDTH, only_ascii)),))
    yield _Part(0, (Span(_done(done, planned), "strong"),))
    yield _Part(1, _status_counts(progress, only_ascii))
    if progress.running:
        yield _Part(2, (Span(f"{count_text(progress.running)} running{waiting_text(progress.waiting)}"),))
    if progress.starting:
        yield _Part(2, (Span(starting_text(progress.starting.values())),))
    yield _Part(5, _oldest_request_text(progress, now_s))
    if done < planned:
        yield _Part(4, (Span(f"{count_text(planned - done)} left"),))
    if (left_s := progress.left_s(now_s)) is not None:
        yield _Part(3, (Span(f"about {estimate_time_text(left_s)}"),))
    known = known_cost_text(progress.cost_usd, has_unknown=progress.cost_unknown) if progress.cost_usd else ""
    if cost := with_user_cost(known, progress.user_usd):
        yield _Part(6, (Span(cost),))
    if len(progress.by_model) > 1:
        # Models have the highest ranks, so they are dropped first, starting with the last model.
        for rank, (name, (over, of_all)) in enumerate(progress.by_model.items(), 7):
            shown = fit(one_line(name), min(cell_len(one_line(name)), MODEL_WIDTH_MAX))
            yield _Part(rank, (Span(f"{shown} {_done(over, of_all)}", "muted"),))


def _joined(parts: Iterable[_Part], gap: Line) -> Line:
    first, *others = parts
    spans = list(first.line)
    for part in others:
        spans += (*gap, *part.line)
    return tuple(spans)


def _done(done: int, planned: int) -> str:
    return f"{count_text(done)}/{count_text(planned)}"


def waiting_text(runs: int) -> str:
    """Return `, 4 of them waiting` if `runs` is 4, to follow the number of running runs, or "" if `runs` is 0."""
    if runs:
        return f", {count_text(runs)} of them waiting"
    return ""


def known_cost_text(cost_usd: float, *, has_unknown: bool) -> str:
    """Return the known cost of runs. If some runs have an unknown cost, a mark is added, as in `$0.25 + ?`."""
    cost = cost_text(cost_usd)
    if has_unknown:
        cost += " + ?"
    return cost


def starting_text(each: Iterable[str]) -> str:
    """Return a text on the servers and models that are starting, such as `starting server weather and 2 others`."""
    first, *others = each
    text = one_line(first)
    if others:
        text += f" and {counted(len(others), 'other')}"
    return text


def _bar(done: int, planned: int, length: int, only_ascii: bool) -> str:
    full, one, other = length, "█", "░"
    if planned:
        full = done * length // planned
    if only_ascii:
        one, other = "#", "."
    return one * full + other * (length - full)


def _status_counts(progress: Progress, only_ascii: bool) -> Line:
    spans: list[Span] = []
    for status in Status:
        if not progress.statuses[status]:
            continue
        number = count_text(progress.statuses[status])
        text = f"{status.sign} {number}"
        if only_ascii:
            text = f"{number} {status.counted}"
        if spans:
            spans.append(Span(" "))
        spans.append(Span(text, status.role))
    return tuple(spans)


def _oldest_request_text(progress: Progress, now_s: float) -> Line:
    # Requests are in the order of sending.
    oldest = next(iter(progress.awaited.values()), None)
    if oldest is None or now_s - oldest.sent_s < _MIN_SHOWN_S:
        return EMPTY
    return (Span(f"{oldest.doing}: {', '.join(oldest.facts(now_s))}"),)
