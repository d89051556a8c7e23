"""Records running batches in the history, by converting their events to history entries."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.config.agents import KNOWN_AGENTS
from workbench.config.folders import path_in, project_folder
from workbench.config.models import ConfigError, ModelSpec
from workbench.config.secrets import Secrets
from workbench.engine.events import BatchDone, BatchEvent, RunDone, RunEvent, steady_clock_ms
from workbench.engine.model_specs import ModelSpecs
from workbench.engine.plan import ExecutionRules, PlannedRun
from workbench.engine.redaction import RunRedaction, SuiteParts, redacted_suite_text
from workbench.history.records import CONFIRMS, Kind, NewBatch, NewRun, NewShard, RunWithEvents, settings_of_answers
from workbench.history.writer import MAX_RUNS_PER_COMMIT, BatchHandle, HistoryWriter
from workbench.suite.case_images import images_hash
from workbench.suite.model import Case, Subject
from workbench.suite.settings import judged_checks
from workbench.suite.suite_file import SuiteFile, parse_suite
from workbench.trajectory.events import Event, JsonValue
from workbench.version import __version__

if TYPE_CHECKING:
    from workbench.engine.plan import PlannedShard

STORED_TIMEOUT_S = 1.0
"""The seconds that a run waits at most for earlier runs to be written. A slower disk does not stop the batch."""


class HistoryRecorder:
    """Records one batch in the history, where `handle` identifies it.

    `now_ms` returns milliseconds since 1970."""

    def __init__(
        self,
        writer: HistoryWriter,
        runs: Iterable[PlannedRun],
        settings: Mapping[str, JsonValue],
        secrets: Secrets,
        *,
        home: Path | None,
        resumed: BatchHandle | None = None,
        shard: PlannedShard | None = None,
        now_ms: Callable[[], float] | None = None,
    ) -> None:
        """Begin a batch in the history, or resume the batch `resumed`.

        `shard` is set if the runs are one shard of a plan. Raises HistoryError if another program is running the batch,
        or if the history cannot be written."""
        runs = tuple(runs)
        self._writer = writer
        self._now_ms = now_ms or steady_clock_ms()
        redaction = redaction_of(runs, secrets)
        self._events: defaultdict[str, list[Event]] = defaultdict(list)
        self._given: deque[Future[None]] = deque()
        """A future for each run that may not be stored yet, the oldest first."""
        if resumed is None:
            self.handle = writer.begin(_new_batch(runs, settings, secrets, home, self._now(), shard), redaction)
        else:
            self.handle = resumed
            writer.resume(resumed, redaction)

    def on_event(self, event: BatchEvent) -> None:
        """Record an event of the batch.

        Events need their times, which `with_times` adds."""
        if isinstance(event, RunEvent):  # tested first, because most events are of this kind
            happened = event.event
            self._events[happened.run_id].append(happened)
            return
        match event:
            case RunDone(result=result):
                events = tuple(self._events.pop(result.run_id, ()))
                done = event.row or run_with_events(event, events)
                self._given.append(self._writer.write_run(self.handle, done))
            case BatchDone():
                self._writer.end(self.handle, self._now())
            case _:
                pass

    async def wait_until_stored(self) -> None:
        """Wait at most one second if more finished runs wait to be written than one commit can hold."""
        while self._given and self._given[0].done():
            self._given.popleft()
        if len(self._given) > MAX_RUNS_PER_COMMIT:
            import asyncio  # imported here: most commands start faster without it

            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.wrap_future(self._given[0]), STORED_TIMEOUT_S)

    def _now(self) -> str:
        return datetime.fromtimestamp(self._now_ms() / 1000, UTC).isoformat(timespec="milliseconds")


def run_with_events(event: RunDone, events: tuple[Event, ...]) -> RunWithEvents:
    """Return a finished run with its events and times, in the form that the history stores."""
    assert event.began_ms is not None and event.ended_ms is not None
    return RunWithEvents(event.result.run_id, event.result, events, event.began_ms, event.ended_ms)


def redaction_of(runs: Iterable[PlannedRun], secrets: Secrets) -> RunRedaction:
    return RunRedaction(SuiteParts(secrets), {run.run_id: run.case for run in runs})


def settings_of_batch(
    runs: Iterable[PlannedRun],
    specs: ModelSpecs,
    execution: ExecutionRules,
    concurrency: int,
    *,
    compares: bool = False,
    until: Mapping[str, JsonValue] | None = None,
    shard: PlannedShard | None = None,
    min_score: float | None = None,
    confirms: int | None = None,
    cost_limit_usd: float | None = None,
) -> dict[str, JsonValue]:
    """Return the settings of a batch as JSON: models, judges, tool execution and concurrency.

    API keys and the names of their variables are left out. `compares` marks a comparison of models, and `until` is the
    rule for early stopping. Each `shard` stores the settings of the whole plan. `min_score` is the gate over all runs
    of the plan. `cost_limit_usd` is the limit of the batch. `confirms` is the number of the batch whose broken cases
    this batch reruns."""
    # All shards of a plan must store the same settings, because the plan's id is derived from them.
    runs = tuple(runs) if shard is None else shard.whole
    models: dict[str, JsonValue] = {}
    for run in runs:
        if run.model not in models:
            models[run.model] = external_model_settings(run) or model_settings(partial(specs.of, run))
    settings: dict[str, JsonValue] = {
        "concurrency": concurrency,
        "execute": execution.wanted,
        "execute_all": execution.all_tools,
        "models": models,
        "judges": judges_of(runs, specs),
    }
    # A setting without effect gets no key, so that the settings equal those of batches from older versions.
    if runs and runs[0].repeat_rule is not None:
        settings["repeat_rule"] = runs[0].repeat_rule
    if images := images_of_suites(run.file for run in runs):
        settings["images"] = images
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


def images_of_suites(files: Iterable[SuiteFile]) -> dict[str, JsonValue]:
    """Return the hash of each suite's images, keyed by the hash of the suite's text.

    Suites without images are left out."""
    # A suite's text only names its images, so the suite's hash does not change with their content.
    found: dict[str, JsonValue] = {}
    for file in {file.path: file for file in files}.values():
        if file.suite is not None and any(case.images for case in file.suite.cases):
            found[file.hash] = images_hash(file.suite, file.path.absolute().parent)
    return found


def judges_of(runs: Iterable[PlannedRun], specs: ModelSpecs) -> dict[str, JsonValue]:
    """Return the settings of all judges that the runs may need, keyed by the judge's name.

    If a check has no usable judge, its entry describes the problem. The key of such an entry is the model that the
    check names, or an empty text."""
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
"""The settings of a model that the caller of the Python API supplies."""


def external_model_settings(run: PlannedRun) -> dict[str, JsonValue]:
    """Return the settings of a caller's own model or of a suite's subject; empty for other models."""
    if run.subject is not None:
        return {"provider": "subject", **_agent_settings(run.subject)}
    return OWN_MODEL_SETTINGS if run.own_model is not None else {}


def _agent_settings(subject: Subject) -> dict[str, JsonValue]:
    """Return the settings of an agent, with the names of its environment variables; empty for other subjects."""
    if not subject.is_agent:
        return {}
    known = KNOWN_AGENTS.get(subject.agent or "")
    return {
        "agent": subject.agent,
        "command": [*(subject.started_command or ())],
        "mode": subject.mode or (known.mode if known else ""),
        "builtin": subject.builtin,
        "folder": subject.folder,
        "env": [*subject.env],
    }


def model_settings(find: Callable[[], ModelSpec | None]) -> dict[str, JsonValue]:
    """Return the settings of the model that `find` returns, as JSON: provider, address, parameters and price.

    If `find` raises ConfigError, the settings describe the problem."""
    try:
        spec = find()
    except ConfigError as error:
        return {"problem": str(error)}
    if spec is None:
        return {"provider": "built in"}
    return _reached(spec)


def _reached(spec: ModelSpec) -> dict[str, JsonValue]:
    price: JsonValue = None
    if spec.price is not None:
        price = {"input": spec.price.input, "output": spec.price.output}
    reached: dict[str, JsonValue] = {
        "provider": spec.provider,
        "model": spec.model,
        "base_url": spec.base_url,
        "params": dict(spec.params),
        "price": price,
        "origin": spec.origin,
    }
    # Unset settings are left out, so that the settings equal those of batches from earlier versions.
    for name, settings in (("headers", spec.headers), ("query", spec.query)):
        if settings:
            reached[name] = dict(settings)
    if spec.images is not None:
        reached["images"] = spec.images
    if spec.audio:
        reached["audio"] = True
    return reached


def _new_batch(
    runs: tuple[PlannedRun, ...],
    settings: Mapping[str, JsonValue],
    secrets: Secrets,
    home: Path | None,
    now: str,
    shard: PlannedShard | None,
) -> NewBatch:
    # Even a shard stores the whole plan, which identifies the batch when shards are merged.
    whole = runs if shard is None else shard.whole
    files: dict[Path, SuiteFile] = {}
    ids: dict[Path, dict[str, str]] = {}
    for path, file in {run.file.path: run.file for run in whole}.items():
        files[path] = _without_secrets(file, secrets)
        ids[path] = {}
        for case, stored in zip(_cases(file), _cases(files[path]), strict=True):
            ids[path][case.id] = stored.id

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
        from workbench.history.records import Outline, OutlinedRun  # imported here: many runs have no history

        numbers = {path: number for number, path in enumerate(files)}
        outlined = []
        for run in planned if whole is runs else map(new_run, whole):
            outlined.append(
                OutlinedRun(
                    suite=numbers[run.file.path],
                    case_id=run.case_id,
                    case_name=run.case_name,
                    model=run.model,
                    model_of_suite=run.model_of_suite,
                    by=run.by,
                    repeat=run.repeat,
                )
            )
        suites = [(path_in(projects[path], path), file.hash) for path, file in files.items()]
        outline = Outline.of(outlined, suites)
        # The id of a plan is equal on every computer, so that shards can be matched.
        uid = outline.uid(settings_of_answers(settings), shard.ref.plan_id if shard is not None else None)
    new_shard: NewShard | None = None
    if shard is not None and outline:
        new_shard = NewShard(shard.places, outline, tuple(files.values()))
    return NewBatch(
        kind=kind,
        started_at=now,
        program=__version__,
        settings=settings,
        runs=planned,
        projects=projects,
        uid=uid,
        shard=new_shard,
    )


def _kind_of(runs: Iterable[PlannedRun], settings: Mapping[str, JsonValue]) -> Kind:
    if CONFIRMS in settings:
        return "reruns"
    if any(run.fork is not None for run in runs):
        return "fork"
    return "runs"


def stored_cases(file: SuiteFile, secrets: Secrets) -> dict[str, Case]:
    """Return the cases of a suite, keyed by the redacted ids that the history stores."""
    cases = {}
    for stored, case in zip(_cases(_without_secrets(file, secrets)), _cases(file), strict=True):
        cases[stored.id] = case
    return cases


def _without_secrets(file: SuiteFile, secrets: Secrets) -> SuiteFile:
    text = redacted_suite_text(file.text, secrets)
    if file.suite is None:
        return replace(file, text=text, header=None)
    # A case without an id gets an id made from its name. Parse the redacted text, so that the ids are the same as for
    # readers of the history.
    read = file.suite if text == file.text else parse_suite(text, file.path).suite
    if read is None or len(read.cases) != len(file.suite.cases):
        read = file.suite
    name = secrets.redact(read.name)
    ids = [secrets.redact(case.id) for case in read.cases]
    if name != read.name or ids != [case.id for case in read.cases]:
        cases = []
        for case, case_id in zip(read.cases, ids, strict=True):
            cases.append(case.model_copy(update={"id": case_id}))
        read = read.model_copy(update={"name": name, "cases": tuple(cases)})
    if read is file.suite and text == file.text:
        return file
    return replace(file, text=text, suite=read, header=None)


def _cases(file: SuiteFile) -> tuple[Case, ...]:
    return tuple(file.suite.cases) if file.suite is not None else ()
