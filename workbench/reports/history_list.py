"""The batches of a history as lines for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from rich.cells import cell_len

from workbench.analysis.over_time import MAX_TREND, TrendKey, rate_of
from workbench.grading.grade import Status
from workbench.history.records import BatchPart, BatchRow, MergedShards, SuiteRef
from workbench.numbers import counted, decimals
from workbench.reports.paint import Paint
from workbench.reports.signs import STATUS_SIGNS, sparkline
from workbench.reports.values import cost_text
from workbench.reports.visible import fit, one_line, shortened
from workbench.reports.when import ago, local_time

_ROOMY = 100
"""From this width on, the age of a batch is shown too."""
_WHEN, _AGO, _RATE, _GAP = 16, 11, 6, 2
_NAMES_MIN = 8


def batch_lines(
    batches: Sequence[BatchRow],
    regraded: Mapping[int, int],
    going: Container[int],
    *,
    now: datetime,
    width: int,
    paint: Paint,
) -> Iterator[str]:
    """Yields a line for each batch, and another where there is something to add. `regraded` is how often batches were
    regraded, by their numbers; `going` has the numbers of those that are going on; `now` has a time zone."""
    if not batches:
        return
    number = max(len(f"#{batch.number}") for batch in batches)
    results = [_signs(batch) for batch in batches]
    result = max(map(cell_len, results))
    ago_width = _AGO + _GAP if width >= _ROOMY else 0
    room = width - number - _GAP - _WHEN - _GAP - ago_width - result - _GAP - _RATE - 2 * _GAP
    models = max(min(max(cell_len(_models(batch)) for batch in batches), room // 2), _NAMES_MIN)
    suites = max(min(max(cell_len(_suites(batch)) for batch in batches), room - models), _NAMES_MIN)
    gap = " " * _GAP
    for batch, signs in zip(batches, results, strict=True):
        rate = rate_text(batch.parts)
        cells = [
            paint(f"{f'#{batch.number}':>{number}}", "strong"),
            fit(local_time(batch.started_at), _WHEN),
            *([paint(fit(ago(batch.started_at, now), _AGO), "quiet")] if ago_width else []),
            fit(_suites(batch), suites),
            fit(_models(batch), models),
            fit(signs, result),
            paint(f"{rate:>{_RATE}}", "good" if batch.pass_rate == 1 else "plain"),
        ]
        yield gap.join(cells)
        notes = " · ".join(_notes(batch, regraded.get(batch.number, 0), going=batch.number in going))
        if notes or batch.name:
            name = paint(one_line(batch.name), "strong") + (" · " if notes else "") if batch.name else ""
            left = width - number - _GAP - (cell_len(one_line(batch.name)) + 3 if batch.name else 0)
            shown = paint(shortened(notes, left), "warn" if batch.missing or batch.damage else "quiet")
            yield f"{' ' * (number + _GAP)}{name}{shown}"


def trend_lines(
    suites: Sequence[SuiteRef], trends: Mapping[TrendKey, Sequence[tuple[int, float]]], width: int, paint: Paint
) -> Iterator[str]:
    """Yields, for each suite with each model, the results of its latest whole batches, the oldest first; `trends` as
    from `trends_of`, the oldest batch first."""
    known = {suite.key: suite for suite in suites}
    paths = Counter(suite.path for suite in known.values())
    names = {
        key: one_line(f"{suite.name} ({f'{Path(suite.project).name}/' if paths[suite.path] > 1 else ''}{suite.path})")
        for key, suite in known.items()
    }
    rows = [
        (names[key], one_line(model), [rate for _, rate in rates][-MAX_TREND:])
        for (key, model), rates in trends.items()
        if key in names
    ]
    if not rows:
        return
    longest = max(len(rates) for _, _, rates in rows)
    room = width - longest - _RATE - 4 * _GAP
    model_width = min(max(cell_len(model) for _, model, _ in rows), max(room // 3, _NAMES_MIN))
    name_width = max(min(max(cell_len(name) for name, _, _ in rows), room - model_width), _NAMES_MIN)
    yield "pass rates of the latest whole batches, the oldest first"
    for name, model, rates in sorted(rows, key=lambda row: row[:2]):
        last = f"{decimals(100 * rates[-1], 1, full=100)}%"
        yield (
            f"  {fit(name, name_width)}  {fit(model, model_width)}  "
            f"{sparkline(rates)}{' ' * (longest - len(rates))}  {paint(f'{last:>{_RATE}}', 'strong')}"
        )


def called(batch: BatchRow) -> str:
    """Returns the name of a batch for a person: its number, and its name if it has one."""
    return f"#{batch.number} {one_line(batch.name)}" if batch.name else f"#{batch.number}"


def rate_text(parts: Sequence[BatchPart]) -> str:
    """Returns the pass rate of some parts: `83.3%`, `-` where nothing was graded."""
    good, graded = rate_of(parts)
    return f"{decimals(100 * good / graded, 1, full=100)}%" if graded else "-"


def missing_text(batch: BatchRow, *, going: bool) -> str:
    """Returns what of a batch has not run: `3 of 20 runs missing: stopped`; empty when all have. `going` tells that
    some program is running it now."""
    if going:
        return f"running: {batch.planned - batch.missing:,} of {counted(batch.planned, 'run')} finished"
    if not batch.missing:
        return ""
    way_on = f"; {merging_on}" if (merging_on := merge_hint(batch)) else ""
    return f"{batch.missing:,} of {counted(batch.planned, 'run')} missing: {why_missing(batch)}{way_on}"


def why_missing(batch: BatchRow) -> str:
    """Returns what became of a batch that lacks runs: `stopped`, `merged from 3 of 20 shards`."""
    if batch.merged is not None:
        return f"merged from {shards_text(batch.merged)}"
    if batch.ended_at is None:
        return "interrupted"
    limit = batch.settings.get("cost_limit_usd")
    return f"stopped, cost limit {cost_text(limit)}" if isinstance(limit, int | float) else "stopped"


def merge_hint(batch: BatchRow) -> str:
    """Returns how a merged batch comes to what it lacks, beside running that; empty for any other batch, and for
    one whose shards are parts of different numbers."""
    if batch.merged is None or batch.merged.of is None:
        return ""
    return "merge the other shards too" if batch.merged.missing else "merge its shards again when they are whole"


def shards_text(merged: MergedShards) -> str:
    """Returns how many shards of a plan were merged: `3 of 20 shards`."""
    some = f"{len(merged.shards):,} of " if merged.of is not None else ""
    return some + counted(merged.of or len(merged.shards), "shard")


def _notes(batch: BatchRow, regraded: int, *, going: bool) -> Iterator[str]:
    if batch.damage is not None:
        yield one_line(f"damaged: {batch.damage}")
        return
    if missing := missing_text(batch, going=going):
        yield missing
    if batch.valid_arguments is not None and batch.valid_arguments < 1:
        yield f"valid arguments {decimals(100 * batch.valid_arguments, 1, full=100)}%"
    if batch.shard is not None:
        yield str(batch.shard)
    if regraded:
        yield f"regraded {counted(regraded, 'time')}"


def _signs(batch: BatchRow) -> str:
    """Returns how its runs ended: `✓12 ✗3`."""
    ended: tuple[Status, ...] = ("passed", "warned", "failed", "error", "skipped", "not graded")
    return " ".join(f"{STATUS_SIGNS[status]}{count:,}" for status in ended if (count := batch.count(status)))


def _suites(batch: BatchRow) -> str:
    return _some([suite.name for suite in batch.suites])


def _models(batch: BatchRow) -> str:
    return _some(batch.models)


def _some(names: Sequence[str]) -> str:
    names = list(dict.fromkeys(map(one_line, names)))
    return names[0] + (f" +{len(names) - 1}" if len(names) > 1 else "") if names else ""
