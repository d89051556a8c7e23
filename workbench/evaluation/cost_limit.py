"""A limit on the cost of a batch: what its runs are expected to cost, and which of them may still begin."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from workbench.checks.combined_kinds import Judged
from workbench.config.folders import path_in, project_folder
from workbench.config.models import ConfigError, Price
from workbench.config.program import Program
from workbench.dataclasses import dataclass, json_text
from workbench.engine.events import BatchDone, BatchEvent, RunDone
from workbench.engine.model_specs import FREE, Specs
from workbench.engine.plan import PlannedRun
from workbench.grading.grade import RunResult
from workbench.grading.run_summary import COST_LIMIT
from workbench.grading.scoring import mean
from workbench.grading.status import Status
from workbench.history.history import History
from workbench.numerals import cost_text, counted
from workbench.suite.settings import judged_checks
from workbench.suite.variants import model_of
from workbench.tools.listings import Listings, definitions_for

Cell = tuple[str, str, str]
"""The path of a suite, the id of a case, and a model."""

_ROUNDS, _ANSWER_TOKENS = 2, 100
"""A guess at a run that was never made: one request for the calls and one for the answer, each answered like this."""
_JUDGED_CHARACTERS, _RULING_TOKENS = 3_000, 150
"""A guess at one question to a judge, with its instructions."""
_CHARACTERS_A_TOKEN = 4
_ROUNDING: Final = 1e-9


class CostLimitError(Exception):
    """A limit on cost cannot be kept.

    Each of `problems` is one sentence with the way out."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected cost of one run.

    For a guess, which the length of the request alone allows, `request_usd` is what that costs at least."""

    usd: float
    request_usd: float | None = None

    @property
    def is_guess(self) -> bool:
        """Whether no earlier run of the model tells what it will cost."""
        return self.request_usd is not None


@dataclass
class Spent:
    """US dollars that were spent, judges included.

    Plans that are made of one plan share it, such as reruns."""

    usd: float = 0.0


@dataclass(frozen=True)
class CostLimit:
    """What the runs of a plan may cost, in US dollars, and what each of them is expected to cost."""

    usd: float
    expected: Mapping[Cell, Expected] = field(repr=False)
    spent: Spent = field(default_factory=Spent)

    def expected_of(self, run: PlannedRun) -> Expected:
        """Return the expected cost of a run before any run of this batch is over: for one that was not planned at
        first, such as that of a mutant, the highest of its model."""
        if (known := self.expected.get(_cell(run))) is not None:
            return known
        alike = [each for (_, _, model), each in self.expected.items() if model_of(model) == run.asked_model]
        return max(alike or self.expected.values(), key=lambda each: each.usd)

    def notice(self, runs: Sequence[PlannedRun]) -> str:
        """Return what the runs will probably cost, in a sentence."""
        each = [self.expected_of(run) for run in runs]
        guessed = sum(expected.is_guess for expected in each)
        total = sum(expected.usd for expected in each)
        text = f"{counted(len(each), 'run')}: about {cost_text(total)}; the limit is {cost_text(self.usd)}"
        if self.spent.usd:
            text += f", of which {cost_text(self.spent.usd)} was spent before"
        if guessed:
            text += f" ({counted(guessed, 'run')} guessed from the length of the requests)"
        return text


def cost_limit(
    usd: float, runs: Sequence[PlannedRun], specs: Specs, program: Program, history: Path | None, spent_usd: float = 0.0
) -> CostLimit:
    """Return the limit of `usd` on the cost of runs.

    Earlier runs in `history` tell what they will cost. Raises CostLimitError where a price is unknown, and
    HistoryError."""
    cells = {_cell(run): run for run in runs}
    if problems := tuple(dict.fromkeys(_unpriced(cells.values(), specs))):
        raise CostLimitError(*problems)
    means = _means(history)
    home = program.environment.home
    files = {run.file.path for run in runs}
    paths = {file: path_in(project_folder(file.parent, home), file) for file in files}
    of_model: dict[str, list[float]] = {}
    means = {cell: each for cell, each in means.items() if each}  # a price that was 0 then tells nothing of one today
    for (_, _, model), each in means.items():
        of_model.setdefault(model, []).append(each)
    expected: dict[Cell, Expected] = {}
    listings = Listings(program.folders.listings)
    for cell, run in cells.items():
        of_cell = means.get((paths[run.file.path], run.case.id, run.model))
        own = [of_cell] if of_cell is not None else of_model.get(run.model, [])
        judging = sum(_judging_guess(specs.judge_of(run.file.path, check).price) for check in _judged(run, specs))
        price = _price_of(run, specs)
        if run.case.skip is not None or price in (FREE, None):
            expected[cell] = Expected(judging if run.case.skip is None else 0.0)
        elif own:
            expected[cell] = Expected(mean(own) + judging)
        else:
            request_usd = _dollars(_sent(run, listings), 0, price)
            rounds = _ROUNDS * max(len(run.case.steps), 1)
            guess = rounds * (request_usd + _dollars(0, _ANSWER_TOKENS, price))
            expected[cell] = Expected(guess + judging, request_usd)
    return CostLimit(usd, expected, Spent(spent_usd))


def _cell(run: PlannedRun) -> Cell:
    return str(run.file.path), run.case.id, run.model


def _means(history: Path | None) -> Mapping[Cell, float]:
    if history is None or not history.exists():
        return {}
    with History(history) as stored:
        return stored.mean_costs()


def _price_of(run: PlannedRun, specs: Specs) -> Price | None:
    """Return the price of a run: `FREE` if it calls no model, `None` if its model cannot be reached."""
    try:
        spec = specs.of(run)
    except ConfigError:
        return None
    return FREE if spec is None else spec.price


def _judged(run: PlannedRun, specs: Specs) -> Iterator[Judged]:
    """Yield the checks of a run about which a judge can be asked."""
    for check in judged_checks(run.suite, run.case):
        try:
            specs.judge_of(run.file.path, check)
        except ConfigError:
            continue  # the run will say what is wrong
        yield check


def _unpriced(runs: Iterable[PlannedRun], specs: Specs) -> Iterator[str]:
    for run in runs:
        if run.case.skip is not None:
            continue
        name = model_of(run.model)
        if run.own_model is not None or run.subject is not None:
            yield f"a limit on cost needs prices, and {name!r} is a program of unknown cost: leave out the limit"
            continue
        try:
            spec = specs.of(run)
        except ConfigError:
            spec = None  # the run will say what is wrong
        if spec is not None and spec.price is None:
            yield _no_price("model", name)
        for check in _judged(run, specs):
            judge = specs.judge_of(run.file.path, check)
            if judge.price is None:
                yield _no_price("judge", judge.name)


def _no_price(what: str, name: str) -> str:
    return (
        f"a limit on cost needs the price of the {what} {name!r}: write price = {{ input = …, output = … }}, in US "
        "dollars per million tokens, into its table [models.NAME] of a workbench.toml"
    )


def _sent(run: PlannedRun, listings: Listings) -> int:
    """Return about how many characters the first request of a run has."""
    case = run.case
    listed = [tool for each in listings.of(run.suite, run.file.path).values() for tool in each.tools]
    texts = [run.settings.system, case.user, *(message.content for message in case.messages)]
    sent = sum(len(text) for text in texts if text is not None)
    tools = [*definitions_for(run.suite, case), *listed]
    return sent + sum(len(each.name) + len(each.description) + len(json_text(dict(each.parameters))) for each in tools)


def _judging_guess(price: Price | None) -> float:
    return _dollars(_JUDGED_CHARACTERS, _RULING_TOKENS, price or FREE)


def _dollars(characters: int, answered: int, price: Price) -> float:
    return (characters / _CHARACTERS_A_TOKEN * price.input + answered * price.output) / 1_000_000


def cost_with_judges(result: RunResult) -> float | None:
    """Return what a run cost, its judges included; `None` where some of it is not known."""
    judging = result.judging.cost_usd
    return None if result.cost_usd is None or judging is None else result.cost_usd + judging


class Spending:
    """Lets the runs of a batch begin while they fit the limit; a listener of it.

    Runs under way count with their expected cost. Where there is only a guess for a model, one run of it is made first,
    if its first request fits, and tells what the others cost. `ask` may raise the limit: it is given the limit and what
    was spent, and returns the limit to go on with, or `None`.
    """

    status: Status = Status.STOPPED

    def __init__(self, limit: CostLimit, ask: Callable[[float, float], Awaitable[float | None]] | None = None) -> None:
        self._limit = limit
        self._usd = limit.usd
        self._ask = ask
        self._asking: asyncio.Task[float | None] | None = None
        self._under_way: dict[str, tuple[str, float]] = {}
        """The model and the expected cost of each run that has begun, by its id."""
        self._costs: dict[str, list[float]] = {}
        """What finished runs of each model cost."""
        self._news = asyncio.Event()

    def take(self, event: BatchEvent) -> None:
        """Take in what happened."""
        if isinstance(event, BatchDone) and self._asking is not None:
            self._asking.cancel()
        if not isinstance(event, RunDone):
            return
        model, expected = self._under_way.pop(event.result.run_id, ("", None))
        if expected is None:
            return
        cost = cost_with_judges(event.result)
        self._limit.spent.usd += expected if cost is None else cost
        if cost is not None and event.result.grades:
            self._costs.setdefault(model, []).append(cost)
        self._news.set()
        self._news = asyncio.Event()

    async def why_not(self, planned: PlannedRun) -> str | None:
        """Return why a run is not made, once that is known; `None` when it begins now."""
        while True:
            expected = self._limit.expected_of(planned)
            costs = self._costs.get(planned.model)
            usd = mean(costs) if expected.is_guess and costs else expected.usd
            is_trial = expected.is_guess and not costs
            waits = is_trial and any(model == planned.model for model, _ in self._under_way.values())
            under_way = sum(each for _, each in self._under_way.values())
            least = expected.request_usd if is_trial and expected.request_usd is not None else usd
            if not expected.usd or (not waits and self._limit.spent.usd + under_way + least <= self._usd + _ROUNDING):
                self._under_way[planned.run_id] = planned.model, usd
                return None
            if under_way:
                await self._news.wait()
            elif not await self._is_raised():
                return f"{COST_LIMIT} of {cost_text(self._usd)}"

    async def _is_raised(self) -> bool:
        """Return whether the user raised the limit; each time it is reached, one question serves all who wait."""
        if self._ask is None:
            return False
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._ask(self._usd, self._limit.spent.usd))
        asking = self._asking
        raised = await asyncio.shield(asking)
        if raised is not None and self._asking is asking:
            self._usd, self._asking = raised, None
        return raised is not None
