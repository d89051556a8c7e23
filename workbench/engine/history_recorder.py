"""Records batches in the history while they run: turns the events of a batch into its entries."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.config.folders import path_in, project_folder
from workbench.config.models import ConfigError, ModelSpec
from workbench.config.secrets import Secrets
from workbench.engine.events import BatchDone, BatchEvent, RunDone, RunEvent, steady_clock_ms
from workbench.engine.model_specs import Specs
from workbench.engine.plan import Execution, PlannedRun
from workbench.engine.redaction import RunDoor, SuiteParts, redacted_suite_text
from workbench.history.records import CONFIRMS, DoneRun, Kind, NewBatch, NewRun, NewShard, what_is_asked
from workbench.history.writer import MAX_AT_ONCE, BatchHandle, HistoryWriter
from workbench.suite.model import Case
from workbench.suite.settings import judged_checks
from workbench.suite.suite_file import SuiteFile, parse_suite
from workbench.trajectory.events import Event, JsonValue
from workbench.version import __version__

if TYPE_CHECKING:
    from workbench.engine.plan import PlannedShard

STORED_TIMEOUT_S = 1.0
"""How long the next run waits for those that are over to be written: long enough for a disk that is in order."""


class HistoryRecorder:
    """Records one batch in the history.

    `handle` stands for the batch there; `now_ms` is the time since 1970."""

    def __init__(
        self,
        writer: HistoryWriter,
        runs: Iterable[PlannedRun],
        settings: Mapping[str, JsonValue],
        secrets: Secrets,
        *,
        home: Path | None,
        going_on: BatchHandle | None = None,
        shard: PlannedShard | None = None,
        now_ms: Callable[[], float] | None = None,
    ) -> None:
        """`going_on` is the batch that is resumed, if one is; `shard` the plan of which these are some runs.

        Raises HistoryError when it is going on elsewhere, or cannot be written."""
        runs = tuple(runs)
        self._writer = writer
        self._now_ms = now_ms or steady_clock_ms()
        door = door_of(runs, secrets)
        self._events: dict[str, list[Event]] = {}
        self._given: deque[Future[None]] = deque()
        """Runs that may not be stored yet, the oldest first."""
        if going_on is None:
            self.handle = writer.begin(_new_batch(runs, settings, secrets, home, self._now(), shard), door)
        else:
            self.handle = going_on
            writer.resume(going_on, door)

    def take(self, event: BatchEvent) -> None:
        """Hand the history's part of a batch to its writer; a listener of the batch, behind `timed`."""
        match event:
            case RunEvent(event=happened):
                self._events.setdefault(happened.run_id, []).append(happened)
            case RunDone(result=result):
                events = tuple(self._events.pop(result.run_id, ()))
                done = event.row if event.row is not None else done_run(event, events)
                self._given.append(self._writer.write_run(self.handle, done))
            case BatchDone():
                self._writer.end(self.handle, self._now())
            case _:
                pass

    async def stored(self) -> None:
        """Wait, but not for long, while more runs are not written than go into one commit."""
        while self._given and self._given[0].done():
            self._given.popleft()
        if len(self._given) > MAX_AT_ONCE:
            import asyncio  # where runs are made, it is there; commands that only read a history need none

            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.wrap_future(self._given[0]), STORED_TIMEOUT_S)

    def _now(self) -> str:
        return datetime.fromtimestamp(self._now_ms() / 1000, UTC).isoformat(timespec="milliseconds")


def done_run(done: RunDone, events: tuple[Event, ...]) -> DoneRun:
    """Return a timed run as it is packed for the history."""
    assert done.began_ms is not None and done.ended_ms is not None
    return DoneRun(done.result.run_id, done.result, events, done.began_ms, done.ended_ms)


def door_of(runs: Iterable[PlannedRun], secrets: Secrets) -> RunDoor:
    """Return the door through which runs go into the history."""
    return RunDoor(SuiteParts(secrets), {run.run_id: run.case for run in runs})


def settings_of_batch(
    runs: Iterable[PlannedRun],
    specs: Specs,
    execution: Execution,
    concurrency: int,
    *,
    compares: bool = False,
    until: Mapping[str, JsonValue] | None = None,
    shard: PlannedShard | None = None,
    min_score: float | None = None,
    confirms: int | None = None,
    cost_limit_usd: float | None = None,
) -> dict[str, JsonValue]:
    """Return the settings of a batch: how models and judges are reached, which tools execute, how many runs at a time.

    Neither keys nor the names of the variables that hold them are among them. `compares` is whether its models are
    compared, if it has several; `until` is when it stops, if that may be early. A shard has the settings of its whole
    plan; `min_score` is the gate over the runs of all shards, `cost_limit_usd` the batch's limit. `confirms` is the
    batch whose broken cases are made again."""
    runs = tuple(runs) if shard is None else shard.whole
    models: dict[str, JsonValue] = {}
    for run in runs:
        if run.model not in models:
            models[run.model] = brought_settings(run) or model_settings(partial(specs.of, run))
    settings: dict[str, JsonValue] = {
        "concurrency": concurrency,
        "execute": execution.wanted,
        "execute_all": execution.all_tools,
        "models": models,
        "judges": judges_of(runs, specs),
    }
    # A setting that is not used has no key, so that histories of older versions read the same.
    if runs and runs[0].repeat_rule is not None:
        settings["repeat_rule"] = runs[0].repeat_rule
    if compares and len(models) > 1:
        settings["compares"] = True
    if until is not None:
        settings["until"] = dict(until)
    if shard is not None:
        settings["shard"] = shard.ref.settings
    if cost_limit_usd is not None:
        settings["cost_limit_usd"] = cost_limit_usd
    if shard is not None and min_score is not None:
        settings["min_score"] = min_score
    if confirms is not None:
        settings[CONFIRMS] = confirms
    return settings


def judges_of(runs: Iterable[PlannedRun], specs: Specs) -> dict[str, JsonValue]:
    """Return the settings of each model that may judge some runs, by name.

    A check without a judge is listed under its model's name, or an empty one, with the problem."""
    judges: dict[str, JsonValue] = {}
    for run in runs:
        for check in judged_checks(run.suite, run.case):
            try:
                spec = specs.judge_of(run.file.path, check)
            except ConfigError as error:
                judges.setdefault(check.model or "", {"problem": str(error)})
            else:
                judges.setdefault(spec.name, _reached(spec))
    return judges


OWN_MODEL_SETTINGS: dict[str, JsonValue] = {"provider": "python"}
"""The settings that stand for a model that the caller brings along."""


def brought_settings(run: PlannedRun) -> dict[str, JsonValue]:
    """Return the settings of a model of the caller's or of a suite's subject; empty for any other model."""
    if run.subject is not None:
        return {"provider": "subject"}
    return OWN_MODEL_SETTINGS if run.own_model is not None else {}


def model_settings(find: Callable[[], ModelSpec | None]) -> dict[str, JsonValue]:
    """Return how a model is reached, as JSON; `find` may raise ConfigError."""
    try:
        spec = find()
    except ConfigError as error:
        return {"problem": str(error)}
    return {"provider": "built in"} if spec is None else _reached(spec)


def _reached(spec: ModelSpec) -> dict[str, JsonValue]:
    price = spec.price
    return {
        "provider": spec.provider,
        "model": spec.model,
        "base_url": spec.base_url,
        "params": dict(spec.params),
        "price": None if price is None else {"input": price.input, "output": price.output},
        "origin": spec.origin,
    }


def _new_batch(
    runs: tuple[PlannedRun, ...],
    settings: Mapping[str, JsonValue],
    secrets: Secrets,
    home: Path | None,
    now: str,
    shard: PlannedShard | None,
) -> NewBatch:
    whole = runs if shard is None else shard.whole
    as_they_are = {run.file.path: run.file for run in whole}
    files: dict[Path, SuiteFile] = {}
    ids: dict[Path, dict[str, str]] = {}
    for path, file in as_they_are.items():
        files[path] = _without_secrets(file, secrets)
        ids[path] = {case.id: kept.id for case, kept in zip(_cases(file), _cases(files[path]), strict=True)}

    redacted = cache(secrets.redact)  # there are far fewer names than runs

    def new_run(run: PlannedRun) -> NewRun:
        return NewRun(
            run_id=run.run_id,
            file=files[run.file.path],
            case_id=ids[run.file.path][run.case.id],
            case_name=redacted(run.case.name),
            model=redacted(run.model),
            repeat=run.repeat,
            model_of_suite=run.model_of_suite,
            by=run.by,
            is_fork=run.fork is not None,
        )

    planned = tuple(map(new_run, runs))
    settings = secrets.redacted(settings)
    projects = {path: project_folder(path.parent, home) for path in files}
    kind = _kind_of(runs, settings)
    outline = uid = None
    if kind == "runs":
        from workbench.history.records import Outline, OutlinedRun  # on use: many runs are in no history

        numbers = {path: number for number, path in enumerate(files)}
        outlined = (
            OutlinedRun(
                suite=numbers[run.file.path],
                case_id=run.case_id,
                case_name=run.case_name,
                model=run.model,
                model_of_suite=run.model_of_suite,
                by=run.by,
                repeat=run.repeat,
            )
            for run in (planned if whole is runs else map(new_run, whole))
        )
        outline = Outline.of(outlined, ((path_in(projects[path], path), file.hash) for path, file in files.items()))
        uid = outline.uid(what_is_asked(settings), shard.ref.plan_id if shard is not None else None)
    return NewBatch(
        kind=kind,
        started_at=now,
        program=__version__,
        settings=settings,
        runs=planned,
        projects=projects,
        uid=uid,
        shard=NewShard(shard.places, outline, tuple(files.values())) if shard is not None and outline else None,
    )


def _kind_of(runs: Iterable[PlannedRun], settings: Mapping[str, JsonValue]) -> Kind:
    if CONFIRMS in settings:
        return "reruns"
    if any(run.fork is not None for run in runs):
        return "fork"
    return "runs"


def cases_as_stored(file: SuiteFile, secrets: Secrets) -> dict[str, Case]:
    """Return the cases of a suite by the ids that a history knows them by, in which no secret is."""
    stored = _without_secrets(file, secrets)
    return {then.id: case for then, case in zip(_cases(stored), _cases(file), strict=True)}


def _without_secrets(file: SuiteFile, secrets: Secrets) -> SuiteFile:
    """Return a suite in whose text, names and ids no secret is; its hash stays that of the file."""
    text = redacted_suite_text(file.text, secrets)
    if file.suite is None:
        return replace(file, text=text)
    # Ids may come from names: a case is called what whoever reads the text that is kept will call it.
    read = file.suite if text == file.text else parse_suite(text, file.path).suite
    if read is None or len(read.cases) != len(file.suite.cases):
        read = file.suite
    name = secrets.redact(read.name)
    ids = [secrets.redact(case.id) for case in read.cases]
    if name != read.name or ids != [case.id for case in read.cases]:
        cases = tuple(case.model_copy(update={"id": id_}) for case, id_ in zip(read.cases, ids, strict=True))
        read = read.model_copy(update={"name": name, "cases": cases})
    if read is file.suite and text == file.text:
        return file
    return replace(file, text=text, suite=read)


def _cases(file: SuiteFile) -> tuple[Case, ...]:
    return tuple(file.suite.cases) if file.suite is not None else ()
