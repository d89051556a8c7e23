"""The list of batches as a table, and the facts of a single batch in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.analysis.trends import MAX_TREND, TrendKey, good_and_graded
from workbench.dataclasses import dataclass, json_text
from workbench.grading.status import FINAL, Status
from workbench.history.records import Until
from workbench.numerals import (
    cost_text,
    count_text,
    counted,
    counted_of,
    duration_text,
    of_text,
    rate_text,
    short_count,
)
from workbench.show.doc import Column, Table, Value, age, joined, names, rate, share, short_when, when, words
from workbench.show.glyphs import GLYPHS
from workbench.show.signs import FORK, sparkline
from workbench.show.spans import Role
from workbench.show.views.agents import settings_text
from workbench.show.views.user_turns import GAVE_UP
from workbench.show.visible import after, model_label, one_line
from workbench.show.when import local_time, took_s

if TYPE_CHECKING:
    from workbench.history.records import BatchPart, BatchRow, MergedShards, Regrade, SuiteRef
    from workbench.trajectory.events import JsonValue

NARROW = 64
"""Width in cells below which dates lack the year and only the first state is shown."""
ROOMY = 100
"""Least width in cells at which ages are shown."""
_NAMES_LEAST, _WITH_MODELS = 8, 58
_BETWEEN = " · "


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """A batch in the list, with facts that its record does not hold.

    `grading` is the regrade whose grades `parts` counts, or `None` for the original grades. `regraded` is the number of
    regrades. `is_active` is true while a program runs the batch. `marked` is true if the user marked it for a
    comparison."""

    batch: BatchRow
    parts: Sequence[BatchPart]
    is_active: bool = False
    regraded: int = 0
    grading: Regrade | None = None
    marked: bool = False

    @property
    def user_errors(self) -> int:
        return sum(part.user_errors for part in self.parts)

    @property
    def gave_up(self) -> int:
        return sum(part.gave_up for part in self.parts)

    @property
    def role(self) -> Role:
        """The role of the texts in a row. Forks and reruns are muted, because they do not count in results of cases."""
        return "text" if self.batch.kind == "runs" else "muted"


def batch_table(rows: Sequence[BatchFacts], now: datetime | None = None, *, marks: bool = False) -> Table[BatchFacts]:
    """Return the list of batches as a table. `now` adds a column of ages, and `marks` a column of the user's marks."""
    columns: list[Column[BatchFacts]] = [
        Column("batch", _batch, least=_NAMES_LEAST, gap=0),
        Column(
            "started",
            lambda row: when(row.batch.started_at),
            short=lambda row: short_when(row.batch.started_at),
            short_below=NARROW,
        ),
        Column("suite", lambda row: names(_suites(row.batch), row.role), least=_NAMES_LEAST),
        Column("model", _models, least=_NAMES_LEAST, from_cells=_WITH_MODELS),
        Column("state", _state, short=_first_state, short_below=NARROW),
        Column("results", _results, from_cells=NARROW),
        Column("pass rate", lambda row: rate(*good_and_graded(row.parts)), right=True),
    ]
    if now is not None:
        columns.insert(2, Column("age", lambda row: age(row.batch.started_at, now), from_cells=ROOMY, passing=True))
    if marks:
        columns.insert(0, Column("mark", _mark, passing=True))
    return Table(columns, rows, _note)


def facts_of(
    batches: Sequence[BatchRow], regraded: Mapping[int, int] | None = None, active_batches: Container[int] = ()
) -> list[BatchFacts]:
    """Return the rows of batches with their original grades.

    `regraded` maps the number of a batch to the number of its regrades. `active_batches` has the numbers of batches
    that a program is running."""
    times = regraded or {}
    facts = []
    for batch in batches:
        facts.append(BatchFacts(batch, batch.parts, batch.number in active_batches, times.get(batch.number, 0)))
    return facts


def _batch(row: BatchFacts) -> Value:
    batch = row.batch
    role = row.role
    if batch.name:
        role = "strong"
    shown = words(batch_name(batch), role)
    # CSV has the number and the name in separate columns, so that the number stays a number.
    return Value(shown.spans, {"batch": batch.number, "name": batch.name})


def _models(row: BatchFacts) -> Value:
    shown = names(list(map(model_label, row.batch.models)), "muted")
    return Value(shown.spans, ", ".join(row.batch.models))


def _suites(batch: BatchRow) -> list[str]:
    return [one_line(suite.name) for suite in batch.suites]


def _mark(row: BatchFacts) -> Value:
    sign = " "
    if row.marked:
        sign = GLYPHS.marked
    return words(sign, "accent")


def _state(row: BatchFacts) -> Value:
    return joined(_states(row))


def _first_state(row: BatchFacts) -> Value:
    return joined(_states(row)[:1])


def _states(row: BatchFacts) -> list[Value]:
    batch, found = row.batch, list[Value]()
    # Nothing else is known about a batch that cannot be read.
    if batch.damage is not None:
        return [words("damaged", "error")]
    if row.is_active:
        found.append(words(f"{GLYPHS.running} {of_text(batch.planned - batch.missing, batch.planned)}", "running"))
    elif batch.missing:
        found.append(words(f"{GLYPHS.missing} {count_text(batch.missing)} missing", "warned"))
    if batch.kind == "fork":
        found.append(words(FORK, "muted"))
    elif batch.kind == "reruns":
        found.append(words(f"{GLYPHS.retry} reruns of #{batch.confirms}", "muted"))
    if row.grading is not None:
        found.append(words(f"{GLYPHS.retry} grading {row.grading.number}", "accent"))
    elif row.regraded:
        found.append(words("as it ran", "muted"))
    return found


def _results(row: BatchFacts) -> Value:
    counts = {}
    shown = []
    for status in FINAL:
        count = sum(part.counts[status] for part in row.parts)
        counts[status.column] = count
        if status == Status.ERROR:
            count -= row.user_errors
        if count:
            shown.append(words(f"{status.sign}{short_count(count)}", status.role))
    if row.user_errors:
        shown.append(words(f"{short_count(row.user_errors)} {GLYPHS.user_error}", "warned"))
    counts |= {"user_errors": row.user_errors, "gave_up": row.gave_up}
    return Value(joined(shown, " ").spans, counts)


def _note(row: BatchFacts) -> Value:
    batch = row.batch
    if batch.damage is not None:
        return words(one_line(f"damaged: {batch.damage}"), "error")
    found: list[Value] = []
    if missing := missing_text(batch, is_active=row.is_active):
        found.append(words(missing, "warned"))
    if batch.valid_arguments is not None and batch.valid_arguments < 1:
        found.append(words(f"valid arguments {rate_text(batch.valid_arguments)}", "muted"))
    if row.user_errors:
        found.append(words(f"the user spoilt {counted(row.user_errors, 'run')}", "warned"))
    if row.gave_up:
        found.append(words(f"{GAVE_UP} in {counted(row.gave_up, 'run')}", "warned"))
    if batch.shard is not None:
        found.append(words(str(batch.shard), "muted"))
    if row.regraded:
        found.append(words(f"regraded {counted(row.regraded, 'time')}", "muted"))
    return joined(found, f" {GLYPHS.dot} ")


def batch_name(batch: BatchRow) -> str:
    """Return the number of a batch, with the name that the user gave it."""
    return f"#{batch.number}{after(' ', one_line(batch.name or ''))}"


def pass_rate_text(parts: Sequence[BatchPart]) -> str:
    """Return the pass rate over parts of batches as text."""
    good, graded = good_and_graded(parts)
    return rate(good, graded).text


def missing_text(batch: BatchRow, *, is_active: bool, suggestions: Sequence[str] = ()) -> str:
    """Return how many runs of a batch are missing, and why, such as `3 of 20 runs missing: stopped`.

    Return "" if no run is missing. `is_active` is true while a program runs the batch. `suggestions` has suggestions
    for completing the batch. A hint to merge shards is added if it applies."""
    if is_active:
        return f"running: {counted_of(batch.planned - batch.missing, batch.planned, 'run')} finished"
    if not batch.missing:
        return ""
    lacks = f"{counted_of(batch.missing, batch.planned, 'run')} missing: {why_missing(batch)}"
    return lacks + after("; ", ", or ".join(filter(None, (merge_hint(batch), *suggestions))))


def kind_text(batch: BatchRow) -> str:
    """Return a phrase that says that a batch is a fork or has reruns, or "" for any other batch."""
    if batch.kind == "fork":
        return "a fork of one run: an experiment that counts for no case"
    if not batch.confirms:
        return ""
    return f"reruns of cases that broke in batch {batch.confirms}: they count for no case"


def why_missing(batch: BatchRow) -> str:
    """Return why runs of a batch are missing, such as `stopped` or `merged from 3 of 20 shards`."""
    if batch.merged is not None:
        return f"merged from {shards_text(batch.merged)}"
    if batch.ended_at is None:
        return "interrupted"
    limit = batch.settings.get("cost_limit_usd")
    if isinstance(limit, int | float):
        return f"stopped, cost limit {cost_text(limit)}"
    return "stopped"


def merge_hint(batch: BatchRow) -> str:
    """Return a hint on how to complete a merged batch by merging its shards again, or "" if this is impossible.

    It is impossible for a batch that was not merged, or whose shards come from different splits of the plan."""
    if batch.merged is None or batch.merged.of is None:
        return ""
    if batch.merged.missing:
        return "merge the other shards too"
    return "merge its shards again when they are whole"


def shards_text(merged: MergedShards) -> str:
    """Return the number of merged shards and of planned shards, such as `3 of 20 shards`."""
    if merged.of is None:
        return counted(len(merged.shards), "shard")
    return counted_of(len(merged.shards), merged.of, "shard")


def times_text(batch: BatchRow) -> str:
    """Return the start of a batch, and its duration if it has ended."""
    text = local_time(batch.started_at)
    if (took := took_s(batch.started_at, batch.ended_at)) is not None:
        text += f", took {duration_text(took * 1000)}"
    return text


def settings_lines(batch: BatchRow, agents: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the version and the settings of a batch, then the address and the parameters of each model.

    `agents` has the names and versions of agents by model. A setting of an unexpected type is omitted, because another
    program may have written the history."""
    settings = batch.settings
    how = [f"Workbench {one_line(batch.program)}", _executed(settings)]
    at_a_time = settings.get("concurrency")
    # `isinstance` would count `true` as a number.
    if type(at_a_time) is int:
        how.insert(1, f"{counted(at_a_time, 'run')} at a time on each endpoint")
    yield ", ".join(how)
    if (until := Until.of(settings)) is not None:
        looks = ""
        if until.looks:
            looks = f", at {counted(until.looks, 'look')}"
        yield f"until decided{looks}, in a random order with seed {until.seed}"
    yield from shard_lines(batch)
    models = settings.get("models")
    if isinstance(models, Mapping):
        for name, model in models.items():
            if isinstance(model, Mapping):
                parts = [*agents.get(name, ()), settings_text(model) or one_line(_BETWEEN.join(_endpoint_lines(model)))]
                yield f"{model_label(name)}: {one_line(_BETWEEN.join(parts))}"


def _executed(settings: Mapping[str, JsonValue]) -> str:
    if settings.get("execute_all") is True:
        return "all tools executed"
    wanted = settings.get("execute")
    if isinstance(wanted, bool):
        if wanted:
            return "tools marked read-only executed"
        return "no tool executed"
    return "tools mocked or executed as the cases say"


def _endpoint_lines(model: Mapping[str, JsonValue]) -> Iterator[str]:
    if isinstance(problem := model.get("problem"), str):
        yield f"could not be reached: {problem}"
    for key in ("model", "provider", "base_url"):
        if isinstance(value := model.get(key), str) and value:
            yield value
    for key in ("headers", "query"):
        if isinstance(settings := model.get(key), Mapping):
            yield f"{key} {', '.join(f'{name} = {value}' for name, value in settings.items())}"
    if isinstance(params := model.get("params"), Mapping):
        for key, value in params.items():
            yield f"{key} {json_text(value)}"
    if isinstance(price := model.get("price"), Mapping) and price:
        yield f"{price.get('input')} and {price.get('output')} USD for a million tokens in and out"
    if isinstance(origin := model.get("origin"), str) and origin:
        yield f"from {origin}"


def shard_lines(batch: BatchRow) -> Iterator[str]:
    """Yield a line if the batch is a shard, or if it was merged from shards."""
    shard, merged = batch.shard, batch.merged
    if shard is not None:
        yield one_line(f"{shard} of a plan of {counted(shard.planned, 'run')}{after(', plan ', shard.plan_id)}")
    elif merged is not None:
        lacks = after(", without ", ", ".join(map(str, merged.missing)))
        yield one_line(f"merged from {shards_text(merged)}{lacks}{after(', plan ', merged.plan_id)}")


@dataclass(frozen=True, slots=True)
class Trend:
    """The pass rates of a suite with a model in its latest complete batches, oldest first."""

    suite: str
    model: str
    rates: Sequence[float]


def trend_table(suites: Sequence[SuiteRef], trends: Mapping[TrendKey, Sequence[tuple[int, float]]]) -> Table[Trend]:
    """Return a table with the trend of each suite with each model.

    For each suite and model, `trends` has the batches with their pass rates, oldest first."""
    known = {suite.key: suite for suite in suites}
    paths = Counter(suite.path for suite in known.values())
    rows: list[Trend] = []
    for (key, model), rates in trends.items():
        if key in known:
            suite = known[key]
            path = suite.path
            # Two projects may have suites at the same path. The folder of the project distinguishes them.
            if paths[path] > 1:
                path = f"{Path(suite.project).name}/{path}"
            latest = [share for _, share in rates[-MAX_TREND:]]
            rows.append(Trend(one_line(f"{suite.name} ({path})"), one_line(model), latest))
    columns: list[Column[Trend]] = [
        Column("suite", lambda row: words(row.suite), least=_NAMES_LEAST),
        Column("model", lambda row: words(row.model), least=_NAMES_LEAST),
        Column("trend", lambda row: words(sparkline(row.rates), "accent")),
        Column("last", lambda row: share(row.rates[-1], "strong"), right=True),
    ]
    return Table(columns, sorted(rows, key=lambda row: (row.suite, row.model)))
