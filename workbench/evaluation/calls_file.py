"""Files of calls: the tool calls that an agent made outside this program, for each case of a suite.

The calls are graded like the recordings of runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Discriminator, Field, Tag

from workbench.dataclasses import dataclass, parsed_json
from workbench.encoding import SAVE_AS_UTF_8, utf_8_problem
from workbench.engine.ai_sdk import native_run
from workbench.engine.external_run import (
    CallOrCalls,
    RunDocument,
    RunDocumentError,
    document,
    external_payloads,
    external_run_of,
    external_run_started,
)
from workbench.engine.model_specs import cost_of
from workbench.engine.plan import PlannedRun, next_run_id, with_grader
from workbench.engine.planned_run import result_of
from workbench.grading.grade import RunResult
from workbench.grading.status import Status
from workbench.limits import MAX_FILE_BYTES
from workbench.numerals import counted
from workbench.suite.frozen import Frozen, Items, NonEmpty
from workbench.suite.grading_model import GraderName, RepeatRule
from workbench.suite.model import Case
from workbench.suite.suite_file import SuiteFile, cases_by_id
from workbench.tools.listings import definitions_for
from workbench.trajectory.events import Event, EventPayload, RunFinished
from workbench.trajectory.external_run import ExternalRun
from workbench.trajectory.fold import fold
from workbench.trajectory.recording import Header, RecordedSuite, Recording, RecordingError
from workbench.version import __version__

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]')


def repeated_keys(text: str, first_line: int = 1) -> Iterator[str]:
    """Yield a message for each key that occurs twice in an object of a JSON text, with both places.

    JSON allows repeated keys, but parsers silently use the last value. `first_line` is the number of the text's first
    line."""
    objects: list[dict[str, int] | None] = []
    before = ""
    for token in _TOKEN.finditer(text):
        kind = token[0]
        if kind in "{[":
            # A list is put on the stack as `None`, so that a string in it is not mistaken for a key.
            opened: dict[str, int] | None = None
            if kind == "{":
                opened = {}
            objects.append(opened)
        elif kind in "}]":
            objects.pop()
        # A string after a brace or a comma is a key if the innermost bracket belongs to an object.
        elif kind[0] == '"' and before in ("{", ",") and objects and (known := objects[-1]) is not None:
            key = json.loads(kind)
            if key in known:
                places = " and ".join(_place(text, at, first_line) for at in (known[key], token.start()))
                yield f"{json.dumps(key, ensure_ascii=False)} occurs twice in one object, at {places}: keep one of them"
            known.setdefault(key, token.start())
        before = kind


def _place(text: str, offset: int, first_line: int) -> str:
    return f"line {first_line + text.count(chr(10), 0, offset)}, column {offset - text.rfind(chr(10), 0, offset)}"


def _time_with_offset(text: str) -> str:
    if text and datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("write the time with an offset, such as 2026-06-09T10:00:00+02:00")
    return text


AGENT = "given calls"
"""The model's name in results and reports if the file has no agent."""


class GivenRunDocument(RunDocument):
    """A run in a file of calls.

    `started_at` is the start of the run, with an offset from UTC. If the case's `clock` sets no time, relative dates
    count from `started_at`."""

    started_at: Annotated[str, AfterValidator(_time_with_offset)] = ""

    @property
    def external_run(self) -> ExternalRun:
        """The run that this document describes, with its start time."""
        return replace(super().external_run, started_at=self.started_at)


class RunsDocument(Frozen):
    """The runs of a case that ran more than once."""

    runs: Annotated[Items[GivenRunDocument], Field(min_length=1)]


_CALLS, _RUN, _RUNS = "(calls)", "(run)", "(runs)"


def _which(value: Any) -> str:
    if isinstance(value, list | tuple):
        return _CALLS
    if isinstance(value, RunsDocument) or (isinstance(value, dict) and "runs" in value):
        return _RUNS
    return _RUN


CaseRuns = Annotated[
    Annotated[Items[CallOrCalls], Tag(_CALLS)]
    | Annotated[GivenRunDocument, Tag(_RUN)]
    | Annotated[RunsDocument, Tag(_RUNS)],
    Discriminator(_which),
]
"""The runs of a case: the calls of its only run, the only run in full, or several runs."""


class CallsDocument(Frozen):
    """A file of calls: the runs of an agent, keyed by case id.

    `null` marks a case that was not run."""

    schema_: str | None = Field(default=None, alias="$schema")
    agent: NonEmpty | None = None
    cases: dict[str, CaseRuns | None]


class RecordDocument(GivenRunDocument):
    """A line of a file of calls: one run of a case.

    Several lines of one case are its repeats."""

    case: NonEmpty


@dataclass(frozen=True)
class GivenCalls:
    """The runs in a file of calls, keyed by case id. A case that was not run has no runs.

    `places` are texts that say where each case is in the file. Messages quote them."""

    agent: str
    runs: Mapping[str, tuple[ExternalRun, ...]]
    places: Mapping[str, str]


def read_calls(path: Path) -> GivenCalls:
    """Return the runs in a file of calls, which is JSON or JSON lines.

    Raises RecordingError if the file cannot be read."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > MAX_FILE_BYTES:
        raise RecordingError(f"{path} {MAX_FILE_BYTES.reached()}")
    try:
        return calls_of(_parsed(content.decode("utf-8-sig"), path.suffix.lower() in (".jsonl", ".ndjson")))
    except UnicodeDecodeError as error:
        line, why = utf_8_problem(content, error)
        raise RecordingError(f"{path}:{line} {why}: {SAVE_AS_UTF_8}") from error
    except RunDocumentError as error:
        raise RecordingError(f"{path}: {error}") from error


_Lines = list[tuple[int, Any]]


def _parsed(text: str, of_lines: bool) -> object:
    """Parse a JSON text. With `of_lines`, parse each line as JSON, and return the values with their line numbers."""
    if not text.strip():
        raise RunDocumentError('the file is empty: write {"cases": {"ID": [{"tool": "…", "arguments": {…}}]}}')
    if not of_lines:
        try:
            value = parsed_json(text)
            _refuse_repeated_keys(text)
            return value
        except json.JSONDecodeError as error:
            # Text after a complete value means that the file has JSON lines, although its extension is `.json`.
            if error.msg != "Extra data":
                raise RunDocumentError(f"line {error.lineno}, column {error.colno} is not JSON: {error.msg}") from None
        except RunDocumentError:
            raise
        except ValueError as error:
            raise RunDocumentError(f"the text is not JSON: {error}") from None
    lines: _Lines = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                lines.append((number, parsed_json(line)))
            except ValueError as error:
                raise RunDocumentError(f"line {number} is not JSON: {error}") from None
            _refuse_repeated_keys(line, number)
    return tuple(lines)


def _refuse_repeated_keys(text: str, first_line: int = 1) -> None:
    """Raise RunDocumentError for keys that occur twice, such as case ids or arguments.

    JSON parsers would silently use the last value."""
    if found := "; ".join(islice(repeated_keys(text, first_line), _MAX_REPEATED)):
        raise RunDocumentError(found)


_MAX_REPEATED = 20
"""The most duplicate keys in one message."""


def calls_of(value: object) -> GivenCalls:
    """Return the runs in a parsed file of calls: an object with `cases`, or a list of records with `case`.

    Raises RunDocumentError."""
    # A tuple has the numbered lines of a file with JSON lines.
    if isinstance(value, tuple):
        return _of_records((f"line {number}", f"line {number}: $", record) for number, record in value)
    if isinstance(value, list):
        return _of_records((f"$[{index}]", f"$[{index}]", record) for index, record in enumerate(value))
    return _of_document(document(CallsDocument, _native(value)))


def _native(value: object) -> object:
    if not isinstance(value, dict) or not isinstance(value.get("cases"), dict):
        return value
    cases: dict[str, object] = {}
    for case, of_case in value["cases"].items():
        if isinstance(of_case, dict) and isinstance(of_case.get("runs"), list):
            cases[case] = of_case | {"runs": [native_run(run) for run in of_case["runs"]]}
        else:
            cases[case] = native_run(of_case)
    return value | {"cases": cases}


def _of_records(records: Iterable[tuple[str, str, object]]) -> GivenCalls:
    """Group records by case.

    A record is a tuple of its place in the file, the text that replaces `$` in error messages, and its value."""
    runs: dict[str, list[ExternalRun]] = {}
    places: dict[str, str] = {}
    for place, root, value in records:
        try:
            record = document(RecordDocument, native_run(value))
        except RunDocumentError as error:
            raise RunDocumentError(str(error).replace("$", root)) from None
        runs.setdefault(record.case, []).append(record.external_run)
        places.setdefault(record.case, place)
    return GivenCalls(AGENT, {case: tuple(each) for case, each in runs.items()}, places)


def _of_document(document: CallsDocument) -> GivenCalls:
    runs, places = {}, {}
    for case, value in document.cases.items():
        runs[case] = tuple(_runs_in(value))
        places[case] = f"$.cases[{json.dumps(case, ensure_ascii=False)}]"
    return GivenCalls(document.agent or AGENT, runs, places)


def _runs_in(value: Any) -> Iterator[ExternalRun]:
    if isinstance(value, GivenRunDocument):
        yield value.external_run
    elif isinstance(value, RunsDocument):
        for run in value.runs:
            yield run.external_run
    elif value is not None:
        yield external_run_of(value, RunDocument())


@dataclass(frozen=True)
class GivenRun:
    """The recording and the ungraded result of a run in a file of calls, and the case that grades the run."""

    recording: Recording
    recorded: RunResult
    case: Case


def runs_of_calls_file(
    calls: GivenCalls,
    file: SuiteFile,
    path: Path,
    by: GraderName | None,
    repeat_rule: RepeatRule | None = None,
) -> tuple[list[GivenRun], list[str]]:
    """Return the runs in a file of calls at `path`, and messages about problems.

    `file` is the valid suite. The messages report case ids that the suite lacks, cases without calls, and calls without
    the results that their case checks."""
    assert file.suite is not None
    cases = cases_by_id(file.suite)
    problems = []
    for case_id in calls.runs:
        if case_id not in cases:
            problems.append(_unknown(case_id, calls.places[case_id], cases, file))
    missing = []
    for case in file.suite.cases:
        if case.id not in calls.runs and case.skip is None:
            missing.append(case.id)
    if missing:
        way_out = '"ID": [] says that no call was made, and "ID": null that the case was left out'
        problems.append(f"there are no calls for {counted(len(missing), 'case')}: {', '.join(missing)} ({way_out})")
    runs = []
    for case_id, case in cases.items():
        graded_by = with_grader(case, by, repeat_rule)
        for repeat, run in enumerate(calls.runs.get(case_id, ())):
            if _lacks_results(case, run):
                why = "checks results of calls, and no call has one: add `result`, or `is_error`, to the calls"
                problems.append(f"{calls.places[case_id]}: the case {why}")
            runs.append(given_run_of(run, file, graded_by, path, calls.agent, repeat))
    return runs, problems


def _lacks_results(case: Case, run: ExternalRun) -> bool:
    checks = any(True for _ in case.checked_results())
    checks = checks or any(call.is_error is not None for _, call in case.written_calls())
    if not checks or any(each.results for each in run.rounds):
        return False
    return any(each.calls for each in run.rounds)


def _unknown(case: str, place: str, cases: Mapping[str, Case], file: SuiteFile) -> str:
    near = get_close_matches(case, list(cases), n=1)
    hint = f"it has {', '.join(cases) or 'none'}"
    if near:
        hint = f"did you mean {near[0]!r}?"
    return f"{place}: {file.path} has no case {case!r}: {hint}"


def given_run_of(run: ExternalRun, file: SuiteFile, case: Case, path: Path, agent: str, repeat: int) -> GivenRun:
    """Convert a run that an agent made outside this program to a recording without grades."""
    planned = PlannedRun(next_run_id(), file, case, agent, repeat)
    events: list[Event] = []
    for payload in payloads_of_given_run(run, planned):
        # The time of each call is unknown, so the last event gets the whole duration of the run.
        at_ms = 0.0
        if isinstance(payload, RunFinished):
            at_ms = run.latency_ms or 0.0
        events.append(Event(planned.run_id, len(events), at_ms, payload))
    header = Header(
        program=__version__,
        run=planned.run_id,
        started_at=run.started_at,
        suite=RecordedSuite(file.path.name, file.hash, ""),
        case=case.id,
        model=agent,
        repeat=repeat,
    )
    # The trajectory is built from events, as for every other run, so graders treat all runs alike.
    trajectory = fold(events)
    recording = Recording(path, header, tuple(events), trajectory, None)
    ungraded = replace(result_of(planned, Status.ERROR, trajectory), cost_usd=cost_of(trajectory, None))
    return GivenRun(recording, ungraded, case)


def payloads_of_given_run(run: ExternalRun, planned: PlannedRun) -> Iterator[EventPayload]:
    """Yield the events of a run that an agent made outside this program."""
    suite, case = planned.suite, planned.case
    yield external_run_started(suite, case, planned.model, planned.file.hash, definitions_for(suite, case))
    yield from external_payloads(run.rounds)
    if run.error is not None:
        yield RunFinished("error", run.error)
    else:
        yield RunFinished("steps done" if case.steps else "answered")
