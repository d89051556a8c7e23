"""A limit on the cost of a batch: the expected cost of each run, and the decision which runs may still begin."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Final

from workbench.checks.combined_kinds import Judged
from workbench.config.folders import project_paths
from workbench.config.models import ConfigError, Price
from workbench.config.program import Program
from workbench.dataclasses import dataclass, json_text
from workbench.engine.events import BatchDone, BatchEvent, RunDone
from workbench.engine.model_specs import FREE, ModelSpecs
from workbench.engine.plan import PlannedRun
from workbench.grading.grade import RunResult
from workbench.grading.run_summary import COST_LIMIT_PREFIX
from workbench.grading.scoring import mean
from workbench.grading.status import Status
from workbench.history.history import History
from workbench.numerals import cost_text, counted
from workbench.suite.settings import judged_checks
from workbench.suite.variants import model_of
from workbench.tools.listings import StoredListings, definitions_for
from workbench.trajectory.system_prompt import cut_instructions

CostKey = tuple[str, str, str]
"""The path of a suite, the id of a case, and a model."""

# Guesses are needed only for models without an earlier run. The first finished run of a batch replaces them.
_ROUNDS, _ANSWER_TOKENS = 2, 100
"""The assumed number of requests of a run, and of tokens of each answer, for a model without earlier runs. One request
is for the calls, and one for the final answer."""
_IMAGE_CHARACTERS = 6_000
"""The number of characters that cost as much as an image of a megapixel (1,500 tokens)."""

_JUDGED_CHARACTERS, _RULING_TOKENS = 3_000, 150
"""The assumed size of a request to a judge: its characters including the instructions, and the tokens of the ruling."""
# A rule of thumb for English text. Tokenizers differ by provider, so the same number is used for all models.
_CHARACTERS_A_TOKEN = 4
# A sum of costs may have a rounding error in its last bit. With this tolerance, a sum that equals the limit meets it.
_ROUNDING: Final = 1e-9


class CostLimitError(Exception):
    """The limit on the cost of a batch cannot be enforced.

    Each of `problems` is a sentence that says what to do."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class ExpectedCost:
    """The expected cost of one run in US dollars.

    If the cost is only a guess from the length of the first request, `request_usd` is the cost of this request
    alone."""

    usd: float
    request_usd: float | None = None

    @property
    def is_guess(self) -> bool:
        """Whether the cost is guessed because no earlier run of the model has a known cost."""
        return self.request_usd is not None


@dataclass
class SpentCost:
    """The US dollars spent by a plan's runs, including judges.

    Plans made from this plan, such as its reruns, share the object."""

    usd: float = 0.0


@dataclass(frozen=True)
class CostLimit:
    """A limit on the cost of a plan's runs in US dollars, with the expected cost of each run."""

    usd: float
    expected: Mapping[CostKey, ExpectedCost] = field(repr=False)
    spent: SpentCost = field(default_factory=SpentCost)

    def expected_of(self, run: PlannedRun) -> ExpectedCost:
        """Return the expected cost of a run.

        A run that was not in the original plan, such as a rerun with changed tools, gets the highest expected cost of
        its model."""
        if (known := self.expected.get(_cell(run))) is not None:
            return known
        alike = []
        for (_, _, model), expected in self.expected.items():
            if model_of(model) == run.asked_model:
                alike.append(expected)
        return max(alike or self.expected.values(), key=lambda each: each.usd)

    def notice(self, runs: Sequence[PlannedRun]) -> str:
        guessed, total = 0, 0.0
        for expected in map(self.expected_of, runs):
            guessed += expected.is_guess
            total += expected.usd
        text = f"{counted(len(runs), 'run')}: about {cost_text(total)}; the limit is {cost_text(self.usd)}"
        if self.spent.usd:
            text += f", of which {cost_text(self.spent.usd)} is already spent"
        if guessed:
            text += f" ({counted(guessed, 'run')} guessed from the length of the requests)"
        return text


def cost_limit(
    usd: float,
    runs: Sequence[PlannedRun],
    specs: ModelSpecs,
    program: Program,
    history: Path | None,
    spent_usd: float = 0.0,
) -> CostLimit:
    """Return a limit of `usd` on the cost of runs.

    The expected costs come from earlier runs in `history`. Raises CostLimitError if a price is unknown, and
    HistoryError."""
    cells = {_cell(run): run for run in runs}
    # All prices must be known before the first run because a limit cannot be enforced with an unknown price.
    if problems := tuple(dict.fromkeys(_unpriced(cells.values(), specs))):
        raise CostLimitError(*problems)
    # A mean of 0 is left out: it was computed with a price of 0, and the present price may be higher.
    means = {cell: mean for cell, mean in _means(history).items() if mean}
    paths = project_paths({run.file.path for run in runs}, program.environment.home)
    of_model: dict[str, list[float]] = {}
    for (_, _, model), each in means.items():
        of_model.setdefault(model, []).append(each)
    expected: dict[CostKey, ExpectedCost] = {}
    listings = StoredListings(program.folders.listings)
    for cell, run in cells.items():
        judging = 0.0
        for check in _judged(run, specs):
            judging += _judging_guess(specs.judge_of(run.file.path, check).price)
        price = _price_of(run, specs)
        # The best evidence is tried first: earlier runs of this case, then those of the model, then the length of the
        # request.
        if run.case.skip is not None:
            expected[cell] = ExpectedCost(0.0)
        elif price in (FREE, None):
            expected[cell] = ExpectedCost(judging)
        elif (of_cell := means.get((paths[run.file.path], run.case.id, run.model))) is not None:
            expected[cell] = ExpectedCost(of_cell + judging)
        elif run.model in of_model:
            expected[cell] = ExpectedCost(mean(of_model[run.model]) + judging)
        else:
            request_usd = _dollars(_sent(run, listings), 0, price)
            rounds = _ROUNDS * max(len(run.case.steps), 1)
            guess = rounds * (request_usd + _dollars(0, _ANSWER_TOKENS, price))
            expected[cell] = ExpectedCost(guess + judging, request_usd)
    return CostLimit(usd, expected, SpentCost(spent_usd))


def _cell(run: PlannedRun) -> CostKey:
    return str(run.file.path), run.case.id, run.model


def _means(history: Path | None) -> Mapping[CostKey, float]:
    if history is None or not history.exists():
        return {}
    with History(history) as stored:
        return stored.mean_costs()


def _price_of(run: PlannedRun, specs: ModelSpecs) -> Price | None:
    """Return the price of a run's model.

    Returns `FREE` if the run calls no model API, and `None` if the model is unknown or has no price."""
    try:
        spec = specs.of(run)
    except ConfigError:
        return None
    if spec is None:
        return FREE
    return spec.price


def _judged(run: PlannedRun, specs: ModelSpecs) -> Iterator[Judged]:
    for check in judged_checks(run.suite, run.case):
        try:
            specs.judge_of(run.file.path, check)
        except ConfigError:
            # When the run starts, it reports this problem.
            continue
        yield check


def _unpriced(runs: Iterable[PlannedRun], specs: ModelSpecs) -> Iterator[str]:
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
            # When the run starts, it reports this problem.
            spec = None
        if spec is not None and spec.price is None:
            yield _no_price("model", name)
        with suppress(ConfigError):
            player = specs.user_of(run.file.path, run.case)
            if player is not None and player.price is None:
                yield _no_price("model of the user", player.name)
        for check in _judged(run, specs):
            judge = specs.judge_of(run.file.path, check)
            if judge.price is None:
                yield _no_price("judge", judge.name)


def _no_price(kind: str, name: str) -> str:
    return (
        f"a limit on cost needs the price of the {kind} {name!r}: write price = {{ input = …, output = … }}, in US "
        "dollars per million tokens, into its table [models.NAME] of a workbench.toml"
    )


def _sent(run: PlannedRun, listings: StoredListings) -> int:
    case = run.case
    texts = [run.settings.system, case.opening_text, *(message.content for message in case.messages)]
    tools = list(definitions_for(run.suite, case))
    remembered = listings.of(run.suite, run.file.path)
    for server in run.suite.servers:
        listing = remembered.get(server.name)
        if listing is not None:
            tools += listing.tools
            if server.instructions == "system":
                texts.append(cut_instructions(listing.instructions))
    for tool in tools:
        texts += [tool.name, tool.description, json_text(dict(tool.parameters))]
    return sum(map(len, filter(None, texts))) + _IMAGE_CHARACTERS * len(case.images)


def _judging_guess(price: Price | None) -> float:
    return _dollars(_JUDGED_CHARACTERS, _RULING_TOKENS, price or FREE)


def _dollars(characters: int, answer_tokens: int, price: Price) -> float:
    return (characters / _CHARACTERS_A_TOKEN * price.input + answer_tokens * price.output) / 1_000_000


def cost_with_judges(result: RunResult) -> float | None:
    """Return the cost of a run in US dollars, with its judges and its simulated user.

    Returns `None` if part of the cost is unknown."""
    user_usd = result.trajectory.user_cost_usd
    if result.cost_usd is None or result.judging.cost_usd is None or user_usd is None:
        return None
    return result.cost_usd + result.judging.cost_usd + user_usd


class CostGuard:
    """Lets runs of a batch begin as long as they fit the cost limit.

    An unfinished run counts with its expected cost. While a model's cost is only a guess, only one run of the model
    begins, if its first request fits. The real cost of this run then replaces the guess. `ask` may raise the limit: it
    receives the limit and the amount spent, and returns a new limit or `None`."""

    status: Status = Status.STOPPED

    def __init__(
        self, limit: CostLimit, ask_for_more: Callable[[float, float], Awaitable[float | None]] | None = None
    ) -> None:
        self._limit = limit
        self._usd = limit.usd
        self._ask = ask_for_more
        self._asking: asyncio.Task[float | None] | None = None
        self._under_way: dict[str, tuple[str, float]] = {}
        """The model and the expected cost of each unfinished run, by run id."""
        self._costs: dict[str, list[float]] = {}
        """The costs of finished runs, by model."""
        self._news = asyncio.Event()

    def on_event(self, event: BatchEvent) -> None:
        """Add the cost of a finished run, and wake the waiting runs."""
        if isinstance(event, BatchDone) and self._asking is not None:
            self._asking.cancel()
        if not isinstance(event, RunDone):
            return
        model, expected = self._under_way.pop(event.result.run_id, ("", None))
        if expected is None:
            return
        # A run whose cost is unknown was hardly free, so its expected cost is added.
        cost = cost_with_judges(event.result)
        if cost is None:
            self._limit.spent.usd += expected
        else:
            self._limit.spent.usd += cost
        # Runs without grades ended early, and would make the model look cheap.
        if cost is not None and event.result.grades:
            self._costs.setdefault(model, []).append(cost)
        self._news.set()
        self._news = asyncio.Event()

    async def skip_reason(self, planned: PlannedRun) -> str | None:
        """Return the reason to skip a run, or `None` to start it now.

        If the run does not fit, the call waits for unfinished runs, because they may cost less than expected."""
        while True:
            expected = self._limit.expected_of(planned)
            usd = needed_usd = expected.usd
            waits_for_trial = False
            if expected.request_usd is not None:
                if costs := self._costs.get(planned.model):
                    usd = needed_usd = mean(costs)
                else:
                    needed_usd = expected.request_usd
                    waits_for_trial = any(model == planned.model for model, _ in self._under_way.values())
            under_way = sum(each for _, each in self._under_way.values())
            fits = self._limit.spent.usd + under_way + needed_usd <= self._usd + _ROUNDING
            if not expected.usd or (fits and not waits_for_trial):
                self._under_way[planned.run_id] = planned.model, usd
                return None
            if under_way:
                await self._news.wait()
            elif not await self._is_raised():
                return f"{COST_LIMIT_PREFIX} of {cost_text(self._usd)}"

    async def _is_raised(self) -> bool:
        if self._ask is None:
            return False
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._ask(self._usd, self._limit.spent.usd))
        asking = self._asking
        # All waiting runs share this question, so a run that is cancelled must not cancel the question.
        raised = await asyncio.shield(asking)
        if raised is not None and self._asking is asking:
            self._usd, self._asking = raised, None
        return raised is not None
