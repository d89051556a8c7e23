"""How many tokens and how much money runs will probably take, from runs that were made before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from workbench.analysis.comparison import CellKey
from workbench.config.models import Price
from workbench.dataclasses import dataclass
from workbench.grading.run_summary import RunSummary
from workbench.grading.scoring import mean
from workbench.grading.status import Status


@dataclass(frozen=True, slots=True)
class Estimate:
    """The expected use of `runs`.

    `tokens` in and out together and `cost_usd` are those of the runs for which earlier ones tell; `without_tokens` and
    `without_cost` count the others."""

    runs: int
    tokens: int
    cost_usd: float
    without_tokens: int
    without_cost: int


def estimate(
    planned: Iterable[tuple[CellKey, int]],
    before: Mapping[CellKey, Sequence[RunSummary]],
    *,
    is_free: Callable[[str], bool],
) -> Estimate:
    """Return what the planned numbers of runs of some cells will probably take: for each cell the mean of its earlier
    runs, otherwise that of all earlier runs of its model. Runs that ended in an error tell nothing. `is_free` says
    whether a model costs nothing, runs or no runs."""
    told = {key: [run for run in runs if run.status != Status.ERROR] for key, runs in before.items()}
    of_models: dict[str, list[RunSummary]] = {}
    for (_, _, model), runs in told.items():
        of_models.setdefault(model, []).extend(runs)
    means = {model: _means(runs) for model, runs in of_models.items()}
    number, without_tokens, without_cost = 0, 0, 0
    tokens, cost_usd = 0.0, 0.0
    for key, times in planned:
        each_tokens, each_cost = _means(told.get(key, ()))
        model_tokens, model_cost = means.get(key[2], (None, None))
        each_tokens = model_tokens if each_tokens is None else each_tokens
        each_cost = model_cost if each_cost is None else each_cost
        if each_cost is None and is_free(key[2]):
            each_cost = 0.0
        number += times
        tokens += times * (each_tokens or 0.0)
        cost_usd += times * (each_cost or 0.0)
        without_tokens += times * (each_tokens is None)
        without_cost += times * (each_cost is None)
    return Estimate(number, round(tokens), cost_usd, without_tokens, without_cost)


_CHARACTERS_A_TOKEN = 4


def estimate_of_texts(sent: Sequence[int], answered: int, price: Price | None) -> Estimate:
    """Return what requests will probably take of which only the text is known: `sent` has the characters of each, and
    each is answered with about so many tokens."""
    tokens_in, tokens_out = sum(sent) / _CHARACTERS_A_TOKEN, len(sent) * answered
    cost = (tokens_in * price.input + tokens_out * price.output) / 1_000_000 if price is not None else 0.0
    return Estimate(len(sent), round(tokens_in + tokens_out), cost, 0, 0 if price is not None else len(sent))


def _means(runs: Sequence[RunSummary]) -> tuple[float | None, float | None]:
    """Return the mean tokens and the mean cost of the runs that report them."""
    tokens = [
        (run.input_tokens or 0) + (run.output_tokens or 0)
        for run in runs
        if run.input_tokens is not None or run.output_tokens is not None
    ]
    costs = [run.cost_usd for run in runs if run.cost_usd is not None]
    return mean(tokens) if tokens else None, mean(costs) if costs else None
