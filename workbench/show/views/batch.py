"""One batch of a history as lines for a terminal: its settings, its totals, what did not pass."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from rich.cells import cell_len

from workbench.analysis.batch_diff import decider_of
from workbench.analysis.comparison import ModelTotals, cells_of, model_totals
from workbench.analysis.early_stop import stored_watch
from workbench.analysis.gates import GateFold, GateResult, as_watched, gates_of
from workbench.analysis.totals import Latency
from workbench.analysis.watched import Until
from workbench.dataclasses import json_text
from workbench.grading.status import Status
from workbench.history.records import BatchRow, Regrade, RunRow, SuiteRef
from workbench.numerals import (
    cost_text,
    counted,
    duration_text,
    mean_text,
    rate_text,
    rates_text,
    score_text,
    scores_text,
    tokens_text,
)
from workbench.show.forms import LINES_MAX
from workbench.show.signs import FORK
from workbench.show.text import Paint
from workbench.show.views.argument_validity import valid_arguments_text
from workbench.show.views.batch_list import called, merge_hint, missing_text, shards_text
from workbench.show.views.batch_text import endpoint_text
from workbench.show.views.cases import Title, cut_titles, cut_what
from workbench.show.views.values import percentiles_text
from workbench.show.visible import fit, one_line, shortened
from workbench.show.when import epoch_ms, local_time, took_s
from workbench.suite.model import Gate
from workbench.trajectory.events import JsonValue

_TITLE_MIN = 12
_MODEL_MAX = 24


def head_lines(
    batch: BatchRow,
    gradings: Sequence[Regrade],
    shown: Regrade | None,
    runs: Sequence[RunRow],
    options: str,
    *,
    going: bool,
    width: int,
    paint: Paint,
) -> Iterator[str]:
    """Yields what a batch is, and its settings. `shown` is the regrade that is used, as in its `runs`, `options` are
    those that resuming it needs, `going` is whether some program is running it now."""
    took = took_s(batch.started_at, batch.ended_at)
    took_text = f", took {duration_text(took * 1000)}" if took is not None else ""
    yield f"{paint(called(batch), 'strong')}  {local_time(batch.started_at)}{took_text}"
    if missing := missing_text(batch, going=going):
        either = ", or" if merge_hint(batch) else ";"
        resume = (
            ""
            if going or batch.kind == "reruns"
            else f"{either} 'workbench {batch.resumed_by} --resume {batch.number}{options}' runs them"
        )
        yield paint(f"  {missing}{one_line(resume)}", "warned")
    if batch.kind == "fork":
        yield f"  {FORK}: an experiment that counts for no case"
    if batch.kind == "reruns":
        yield f"  reruns of cases that broke in batch {batch.confirms}: they count for no case"
    for each in gradings:
        this = ", which this is" if each is shown else ""
        yield f"  regraded, grading {each.number}: {local_time(each.graded_at)}{this}"
    for line in (*_graded_by(runs), *settings_lines(batch)):
        yield paint(shortened(f"  {line}", max(width, _TITLE_MIN)), "muted")


def _graded_by(runs: Iterable[RunRow]) -> Iterator[str]:
    """Returns which graders decided, and how many runs where there are several."""
    deciders = Counter(by for run in runs if run.figures is not None and (by := decider_of(run.figures)) is not None)
    deciders_text = (f"{by} ({counted(some, 'run')})" if len(deciders) > 1 else by for by, some in deciders.items())
    if deciders:
        yield f"graded by {', '.join(deciders_text)}"


def later_runs(batch: BatchRow, grading: Regrade | None, runs: Sequence[RunRow], history: str) -> Iterator[str]:
    """Yields a note that some runs were made after the regrade that is used, so that they lack its grades. `history` is
    the option that commands need to find the batch."""
    at_ms = epoch_ms(grading.graded_at) if grading is not None else None
    ended = (run.figures.ended_ms for run in runs if run.figures is not None) if at_ms is not None else ()
    if at_ms is not None and (later := sum(ms is not None and ms > at_ms for ms in ended)):
        yield (
            f"{counted(later, 'run')} of batch {batch.number} ended after it was regraded, and have no new grade: "
            f"'workbench history regrade {batch.number}{history}' regrades all of them"
        )


def settings_lines(batch: BatchRow) -> Iterator[str]:
    """Yields the program and settings of a batch, and how its models were reached. A setting of an unknown kind, as a
    foreign history may have, is left out."""
    settings = batch.settings
    at_a_time = settings.get("concurrency")
    wanted = settings.get("execute")
    if settings.get("execute_all") is True:
        executed = "all tools executed"
    elif isinstance(wanted, bool):
        executed = "tools marked read-only executed" if wanted else "no tool executed"
    else:
        executed = "tools mocked or executed as the cases say"
    pace = f"{counted(at_a_time, 'run')} at a time, " if type(at_a_time) is int else ""
    yield f"Workbench {one_line(batch.program)}, {pace}{executed}"
    if (until := Until.of(settings)) is not None:
        looks = f", at {counted(until.looks, 'look')}" if until.looks else ""
        yield f"until decided{looks}, in a random order by seed {until.seed}"
    yield from shard_lines(batch)
    models = settings.get("models")
    for name, model in models.items() if isinstance(models, Mapping) else ():
        facts = ", ".join(_facts(model)) if isinstance(model, Mapping) else ""
        yield one_line(f"{name}: {facts}")


def shard_lines(batch: BatchRow) -> Iterator[str]:
    """Yields which shard of a plan a batch is, or from which it was merged."""
    shard, merged = batch.shard, batch.merged
    if shard is not None:
        yield one_line(f"{shard} of a plan of {counted(shard.planned, 'run')}{_plan(shard.plan_id)}")
    elif merged is not None:
        lacks = f", without {', '.join(map(str, merged.missing))}" if merged.missing else ""
        yield one_line(f"merged from {shards_text(merged)}{lacks}{_plan(merged.plan_id)}")


def _plan(plan_id: str | None) -> str:
    return f", plan {plan_id}" if plan_id is not None else ""


_KINDS: Mapping[str, type] = dict.fromkeys(("provider", "model", "base_url", "origin", "problem"), str) | dict.fromkeys(
    ("params", "price"), dict
)


def _facts(settings: Mapping[str, JsonValue]) -> Iterator[str]:
    for key, value in settings.items():
        if value and isinstance(value, _KINDS.get(key, object)):
            yield f"{value}" if key in ("provider", "model", "base_url") else f"{key} {json_text(value)}"


def totals_lines(batch: BatchRow, runs: Sequence[RunRow], paint: Paint) -> Iterator[str]:
    """Yields the totals of each suite with each model."""
    parts: dict[tuple[SuiteRef, str], array[int]] = {}
    for index, run in enumerate(runs):
        if run.figures is not None:
            parts.setdefault((run.suite, run.model), array("L")).append(index)
    for suite in batch.suites:
        yield f"{paint(one_line(suite.name), 'strong')}  {paint(one_line(suite.path), 'muted')}"
        for part in batch.parts:
            if part.suite != suite:
                continue
            some = f", {counted(part.cases, 'case')} of {suite.cases:,}" if not part.whole else ""
            # The cells of one suite with one model are in memory at a time.
            over = (runs[index].figures for index in parts.get((suite, part.model), ()))
            if cells := cells_of(figures for figures in over if figures is not None):
                yield from _model_lines(model_totals(part.model, cells.values()), some, paint)
            else:
                yield f"  {one_line(part.model)}: no run is finished{some}"


def gates_reached(batch: BatchRow, gates: Mapping[str, Gate], runs: Sequence[RunRow]) -> Iterator[GateResult]:
    """Returns what the runs of a batch reach of its suites' gates, or of the one that it was made with; `gates` are by
    the suites' keys. Forks do not count. A shard has only some of the runs, and reaches nothing."""
    if batch.shard is not None:
        return
    if batch.min_score is not None:
        figures = (run.figures for run in runs if run.figures is not None and not run.is_fork)
        yield from gates_of(None, Gate(min_score=batch.min_score), figures)
        return
    watch = stored_watch(batch, runs, {str(suite.file): gates.get(suite.key, Gate()) for suite in batch.suites})
    watched = {(each.suite, each.model): each for each in watch.gates} if watch is not None else {}
    of_batch = next((each for each in watched.values() if each.suite is None), None)
    if of_batch is not None:
        figures = (run.figures for run in runs if run.figures is not None and not run.is_fork)
        yield from as_watched(gates_of(None, Gate(min_pass_rate=of_batch.gate), figures), watched)
        return
    reached: dict[SuiteRef, GateFold] = {}
    for run in runs:
        if run.figures is not None and not run.is_fork:
            if (fold := reached.get(run.suite)) is None:
                gate = gates.get(run.suite.key, Gate())
                fold = reached[run.suite] = GateFold(str(run.suite.file), gate)
            fold.add(run.figures)
    for fold in reached.values():
        yield from as_watched(fold.results(), watched)


def _model_lines(totals: ModelTotals, some: str, paint: Paint) -> Iterator[str]:
    parts = ", ".join(f"{count:,} {status.counted}" for count, status in totals.counted)
    runs = f" in {counted(totals.runs, 'run')}" if totals.runs != totals.cases else ""
    if runs and totals.runs_in_error:
        runs += f" ({totals.runs_in_error:,} in error)"
    yield f"  {paint(one_line(totals.model), 'strong')}: {counted(totals.cases, 'case')}{runs}{some}: {parts}"
    if totals.endpoint_faults:
        yield f"    {endpoint_text(totals.endpoint_faults, totals.failed)}"
    facts = []
    if totals.pass_rate is not None and totals.interval is not None:
        bounds = rates_text(totals.interval.low, totals.interval.high)
        facts.append(f"pass rate {rate_text(totals.pass_rate)} (95%: {bounds})")
    if totals.mean_score is not None:
        found = totals.score_interval
        bounds = f" (95%: {scores_text(found.low, found.high)})" if found is not None else ""
        facts.append(f"mean score {mean_text(totals.mean_score)}{bounds}")
    if arguments := valid_arguments_text(totals.valid_arguments):
        facts.append(arguments)
    if facts:
        yield paint(f"    {' · '.join(facts)}", "muted")
    facts = [
        text
        for title, times in (("latency", totals.latency), ("first token", totals.first_token))
        if (text := _latency(title, times))
    ]
    if totals.input_tokens is not None or totals.output_tokens is not None:
        facts.append(tokens_text(totals.input_tokens or 0, totals.output_tokens or 0))
    if totals.cost_usd:
        unknown = totals.runs_of_unknown_cost
        facts.append(cost_text(totals.cost_usd) + (f" without {counted(unknown, 'run')}" if unknown else ""))
    if facts:
        yield paint(f"    {' · '.join(facts)}", "muted")


def _latency(title: str, times: Latency | None) -> str:
    return f"{title} {percentiles_text(times)}" if times is not None else ""


def runs_lines(runs: Sequence[RunRow], width: int | None, paint: Paint, *, every: bool) -> Iterator[str]:
    """Yields a line for each run, with its place in the batch and why it did not pass; without `every`, only for those
    that did not. Without `width`, no line is cut; of more than `LINES_MAX` runs, the first ones have a line."""
    listed = (
        run for run in runs if every or run.figures is None or run.figures.status not in (Status.PASSED, Status.SKIPPED)
    )
    shown = list(islice(listed, LINES_MAX))
    if not shown:
        yield "every run passed" if runs else "no run"
        return
    place = max(len(f"{run.place + 1:,}") for run in shown)
    model = max(cell_len(one_line(run.model)) for run in shown)
    if width is not None:
        model = min(model, _MODEL_MAX, max(width // 5, _TITLE_MIN))
    titles = cut_titles(list(map(_title, shown)), max(width // 3, _TITLE_MIN) if width is not None else None)
    for run, title in zip(shown, titles, strict=True):
        figures = run.figures
        sign = paint(figures.status.sign, figures.status.role) if figures is not None else paint("·", "muted")
        score = score_text(figures.score) if figures is not None and figures.score is not None else ""
        what = f"{title}  {fit(one_line(run.model), model)}"
        lead = f"{run.place + 1:>{place},}  {sign} {what}  {score:>4}"
        room = width - (place + 2 + 2 + cell_len(title) + 2 + model + 2 + 4 + 2) if width is not None else None
        why = (figures.reason or "") if figures is not None else "never finished"
        yield f"{lead}  {cut_what(why, room)}".rstrip()
    if more := sum(1 for _ in listed):
        yield f"and {counted(more, 'other run')}: --format records has a line for each"


def run_title(run: RunRow) -> str:
    """Returns suite and case on one line, with the repeat where it is not the first."""
    return _title(run).whole


def _title(run: RunRow) -> Title:
    fork, repeat = f"{FORK} " if run.is_fork else "", f" #{run.repeat + 1}" if run.repeat else ""
    return Title(run.suite.name, run.case_name, lead=fork, tail=repeat)
