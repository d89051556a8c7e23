"""The progress of a batch in one line: what is going on, what is over and how, what is left and about how long it
takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import field

from rich.cells import cell_len

from workbench.dataclasses import dataclass
from workbench.grading.status import Status
from workbench.numerals import cost_text, counted, estimate_time_text
from workbench.show.spans import Role
from workbench.show.text import Paint
from workbench.show.views.values import Awaited
from workbench.show.visible import fit, one_line

ENOUGH_RUNS = 3
ENOUGH_S = 1.0
"""How many runs of a model must be over, and for how many seconds it must have run, before the rest is estimated."""

BAR_WIDTH, SHORT_BAR_WIDTH = 12, 6
_BAR = 5
"""The priority of the bar: parts with a higher number are kept rather than it."""

MODEL_WIDTH_MAX = 20

_WORTH_A_WORD_S = 2.0
"""Shorter waits for an answer are not shown."""


@dataclass
class _OfModel:
    """The runs of one model. `made` were made here and took time, unlike those that were over already."""

    planned: int = 0
    done: int = 0
    made: int = 0
    running: int = 0
    began_s: float | None = None


@dataclass
class Progress:
    """Counts the runs of a batch. Times are seconds of any one clock."""

    statuses: Counter[Status] = field(default_factory=Counter)
    cost_usd: float = 0.0
    """Of the runs whose cost is known."""
    cost_unknown: bool = False
    """Whether there are runs of unknown cost."""
    starting: dict[int, str] = field(default_factory=dict)
    """The servers and models that are starting, such as "server weather", by a number each."""
    _models: dict[str, _OfModel] = field(default_factory=dict)
    _under_way: set[str] = field(default_factory=set)
    _waiting: set[str] = field(default_factory=set)
    awaited: dict[str, Awaited] = field(default_factory=dict)
    """The requests under way, by run, the oldest first."""

    def plan(self, models: Iterable[str]) -> None:
        """Add planned runs, one for each of the models named."""
        for model in models:
            self._models.setdefault(model, _OfModel()).planned += 1

    def over_already(self, model: str, status: Status, cost_usd: float | None, runs: int = 1) -> None:
        """Count runs of the batch that were over before; `cost_usd` is what they cost together."""
        self._models.setdefault(model, _OfModel()).planned += runs
        self._over(model, status, cost_usd, runs)

    def began(self, run_id: str, model: str, now_s: float) -> None:
        """Note that a run has begun; further calls have no effect."""
        if run_id not in self._under_way:
            self._under_way.add(run_id)
            of_model = self._models[model]
            of_model.running += 1
            if of_model.began_s is None:
                of_model.began_s = now_s

    def waits(self, run_id: str, *, waits: bool) -> None:
        """Note whether a run waits to ask its endpoint again."""
        (self._waiting.add if waits else self._waiting.discard)(run_id)

    def starts_up(self, number: int, what: str, *, over: bool) -> None:
        """Note that a server or a model begins to start, or has started."""
        if over:
            self.starting.pop(number, None)
        else:
            self.starting[number] = what

    def ended(self, run_id: str, model: str, status: Status, cost_usd: float | None) -> None:
        """Count a finished run."""
        of_model = self._models[model]
        self._waiting.discard(run_id)
        self.awaited.pop(run_id, None)
        if run_id in self._under_way:
            self._under_way.remove(run_id)
            of_model.running -= 1
        of_model.made += status != Status.SKIPPED
        self._over(model, status, cost_usd)

    def _over(self, model: str, status: Status, cost_usd: float | None, runs: int = 1) -> None:
        self._models[model].done += runs
        self.statuses[status] += runs
        self.cost_usd += cost_usd or 0.0
        self.cost_unknown |= cost_usd is None

    @property
    def running(self) -> int:
        return len(self._under_way)

    @property
    def waiting(self) -> int:
        """How many running runs wait to ask their endpoint again."""
        return len(self._waiting & self._under_way)

    @property
    def planned(self) -> int:
        return sum(model.planned for model in self._models.values())

    @property
    def done(self) -> int:
        return sum(model.done for model in self._models.values())

    @property
    def by_model(self) -> dict[str, tuple[int, int]]:
        """Returns, for each model, how many runs are over and how many were planned."""
        return {name: (model.done, model.planned) for name, model in self._models.items()}

    def left_s(self, now_s: float) -> float | None:
        """Returns about how many seconds are left: models run in parallel, so that the slowest one decides. `None`
        while a model with runs left has not shown its speed, and when nothing is left."""
        guesses: list[float] = []
        for model in self._models.values():
            left = model.planned - model.done
            if not left:
                continue
            if model.began_s is None or model.made < max(ENOUGH_RUNS, model.running):
                return None
            spent = now_s - model.began_s
            if spent < ENOUGH_S:
                return None
            guesses.append(spent / model.made * left)
        return max(guesses) if guesses else None


def progress_line(progress: Progress, now_s: float, *, width: int, paint: Paint, only_ascii: bool = False) -> str:
    """Returns the line, in at most `width` cells: less important parts are left out where there is no room."""
    done, planned = progress.done, progress.planned
    left = progress.left_s(now_s)
    parts: list[tuple[int, list[tuple[str, Role]]]] = [(_BAR, [(_bar(done, planned, BAR_WIDTH, only_ascii), "text")])]
    parts.append((0, [(f"{done:,}/{planned:,}", "strong")]))
    parts.append((1, _ends(progress, only_ascii)))
    waiting = f", {progress.waiting:,} of them waiting" if progress.waiting else ""
    parts.append((2, [(f"{progress.running:,} running{waiting}", "text")] if progress.running else []))
    parts.append((2, [(starting_text(progress.starting.values()), "text")] if progress.starting else []))
    parts.append((5, _awaited(progress, now_s)))
    parts.append((4, [(f"{planned - done:,} left", "text")] if done < planned else []))
    parts.append((3, [(f"about {estimate_time_text(left)}", "text")] if left is not None else []))
    unknown = " + ?" if progress.cost_unknown else ""
    parts.append((6, [(cost_text(progress.cost_usd) + unknown, "text")] if progress.cost_usd else []))
    if len(progress.by_model) > 1:
        for number, (name, (over, of_all)) in enumerate(progress.by_model.items()):
            shown = fit(one_line(name), min(cell_len(one_line(name)), MODEL_WIDTH_MAX))
            parts.append((7 + number, [(f"{shown} {over:,}/{of_all:,}", "muted")]))
    parts = [part for part in parts if part[1]]
    gap = " | " if only_ascii else " · "
    while len(parts) > 1 and _width(parts, gap) > width:
        last = max(parts, key=lambda part: part[0])
        if last[0] == _BAR and cell_len(last[1][0][0]) > SHORT_BAR_WIDTH:
            parts[0] = (_BAR, [(_bar(done, planned, SHORT_BAR_WIDTH, only_ascii), "text")])
        else:
            parts.remove(last)
    if _width(parts, gap) > width:
        return fit(f"{done:,}/{planned:,}", width).rstrip()
    return paint(gap, "muted").join(" ".join(paint(text, tone) for text, tone in words) for _, words in parts)


def starting_text(what: Iterable[str]) -> str:
    """Returns what is starting: "starting server weather", or "starting server weather and 2 others"."""
    first, *others = what
    more = f" and {counted(len(others), 'other')}" if others else ""
    return f"starting {one_line(first)}{more}"


def _bar(done: int, planned: int, length: int, only_ascii: bool) -> str:
    full = done * length // planned if planned else length
    one, other = ("#", ".") if only_ascii else ("█", "░")
    return one * full + other * (length - full)


def _ends(progress: Progress, only_ascii: bool) -> list[tuple[str, Role]]:
    return [
        (f"{count:,} {status.counted}" if only_ascii else f"{status.sign} {count:,}", status.role)
        for status in Status
        if (count := progress.statuses[status])
    ]


def _awaited(progress: Progress, now_s: float) -> list[tuple[str, Role]]:
    """Returns for how long the oldest answer is waited for, and what is known of it."""
    oldest = next(iter(progress.awaited.values()), None)
    if oldest is None or now_s - oldest.sent_s < _WORTH_A_WORD_S:
        return []
    return [(f"{oldest.doing}: {', '.join(oldest.facts(now_s))}", "text")]


def _width(parts: list[tuple[int, list[tuple[str, Role]]]], gap: str) -> int:
    shown = gap.join(" ".join(text for text, _ in words) for _, words in parts)
    return cell_len(shown)
