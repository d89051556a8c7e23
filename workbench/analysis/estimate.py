"""Estimates the tokens and the cost of planned runs from earlier runs."""

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
    """The expected tokens (input and output together) and the expected cost of `runs`.

    `tokens` and `cost_usd` are sums over the runs that can be estimated. `without_tokens` and `without_cost` count the
    other runs."""

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
    """Estimate the tokens and the cost of planned runs.

    `planned` holds the number of runs of each cell, and `before` holds the earlier runs of cells.

    The estimate of a run is the mean of its cell's earlier runs, otherwise the mean of its model's earlier runs. Runs
    that ended in an error are ignored. `is_free` returns whether a model costs nothing."""
    usable: dict[CellKey, list[RunSummary]] = {}
    of_models: dict[str, list[RunSummary]] = {}
    for key, runs in before.items():
        usable[key] = [run for run in runs if run.status != Status.ERROR]
        of_models.setdefault(key[2], []).extend(usable[key])
    model_means = {model: _means(runs) for model, runs in of_models.items()}
    number, without_tokens, without_cost = 0, 0, 0
    tokens, cost_usd = 0.0, 0.0
    for key, times in planned:
        each_tokens, each_cost = _means(usable.get(key, ()))
        model_tokens, model_cost = model_means.get(key[2], (None, None))
        if each_tokens is None:
            each_tokens = model_tokens
        if each_cost is None:
            each_cost = model_cost
        if each_cost is None and is_free(key[2]):
            each_cost = 0.0
        number += times
        tokens += times * (each_tokens or 0.0)
        cost_usd += times * (each_cost or 0.0)
        without_tokens += times * (each_tokens is None)
        without_cost += times * (each_cost is None)
    return Estimate(number, round(tokens), cost_usd, without_tokens, without_cost)


# This is the usual rule of thumb for English text. No tokenizer is installed.
_CHARACTERS_PER_TOKEN = 4


def estimate_of_texts(request_chars: Sequence[int], answer_tokens: int, price: Price | None) -> Estimate:
    """Estimate the tokens and the cost of requests from the lengths of their texts.

    `request_chars` holds the number of characters of each request. `answer_tokens` is the expected number of tokens of
    a response."""
    tokens_in, tokens_out = sum(request_chars) / _CHARACTERS_PER_TOKEN, len(request_chars) * answer_tokens
    tokens = round(tokens_in + tokens_out)
    if price is None:
        return Estimate(len(request_chars), tokens, 0.0, 0, len(request_chars))
    cost = (tokens_in * price.input + tokens_out * price.output) / 1_000_000
    return Estimate(len(request_chars), tokens, cost, 0, 0)


def _means(runs: Sequence[RunSummary]) -> tuple[float | None, float | None]:
    tokens: list[int] = []
    costs: list[float] = []
    for run in runs:
        if run.input_tokens is not None or run.output_tokens is not None:
            tokens.append((run.input_tokens or 0) + (run.output_tokens or 0))
        if run.cost_usd is not None:
            costs.append(run.cost_usd)
    return _mean(tokens), _mean(costs)


def _mean(values: Sequence[float]) -> float | None:
    return mean(values) if values else None
