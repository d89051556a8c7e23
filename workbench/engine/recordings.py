"""Recordings of runs: written while a batch goes on, or saved when a run is over or held.

docs/recordings.md describes the file; `workbench.trajectory.recording` reads it, and this module returns the result
of a recorded run."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import count
from pathlib import Path

from workbench.config.secrets import Secrets
from workbench.engine.events import BatchEvent, BatchListener, RunDone, RunEvent
from workbench.engine.model_specs import FREE, cost_of
from workbench.engine.plan import PlannedRun, grader_named, with_grader
from workbench.engine.redaction import EventDoor, SuiteParts, redacted_result, redacted_run, redacted_suite_text
from workbench.grading.grade import NOBODY_ASKED, JudgeUse, RunResult
from workbench.grading.result_json import outcome_from_json, outcome_of, outcome_to_json
from workbench.grading.status import Status
from workbench.numerals import count_text
from workbench.providers.built_in import is_built_in
from workbench.suite.model import GRADERS, Case, Suite
from workbench.suite.suite_file import Excerpts, SuiteFile, parse_suite
from workbench.suite.variants import UnknownVariantError, model_of, variant_of
from workbench.trajectory.events import (
    CallEdited,
    Event,
    JsonValue,
    MessageAdded,
    Paused,
    Regenerated,
    ResponseFinished,
    ResultEdited,
    ResultReceived,
    RunFinished,
    RunStarted,
)
from workbench.trajectory.recording import (
    SUFFIX,
    Header,
    RecordedSuite,
    Recording,
    RecordingError,
    event_to_line,
    header_line,
    result_line,
)
from workbench.version import __version__

_logger = logging.getLogger(__name__)

UNFINISHED = ".part"
"""The suffix of a recording while its run goes on, and for ever when the program is killed."""

_WORTH_A_WRITE = (
    *(RunStarted, ResponseFinished, ResultReceived, RunFinished),
    *(Paused, CallEdited, ResultEdited, MessageAdded, Regenerated),
)
"""Events after which a recording is brought to the disk: a run rarely waits there for the next one."""

_FLUSHED_EVERY_S = 1.0
"""Events older than this go to the disk with the next one, so that a killed program loses little of an answer."""

_NUMBERED = re.compile(rf"(.+)\.(\d{{1,9}}){re.escape(SUFFIX)}(?:{re.escape(UNFINISHED)})?")

_NAME_PARTS_BYTES = (30, 50, 36)
"""How long suite, case and model may be in a file's name, so that the name fits every file system."""


class RecordingLines:
    """The lines of recordings.

    `now` gives the time as ISO 8601 text."""

    def __init__(self, secrets: Secrets, now: Callable[[], str], excerpts: Excerpts | None = None) -> None:
        self._secrets = secrets
        self._now = now
        self._excerpts = excerpts or Excerpts()
        self._parts = SuiteParts(secrets)

    def prepare(self, runs: Iterable[PlannedRun]) -> None:
        """Take the suites of runs apart now, and not when the first of them begins."""
        for run in {run.file.path: run for run in runs}.values():
            self._excerpts.of(run.file, run.case.id)

    def header(self, planned: PlannedRun) -> str:
        """Return the first line, of a run that begins now."""
        text = self._excerpts.of(planned.file, planned.case.id)
        header = Header(
            program=__version__,
            run=planned.run_id,
            started_at=self._now(),
            suite=RecordedSuite(planned.file.path.name, planned.file.hash, text),
            case=planned.case.id,
            model=planned.model,
            repeat=planned.repeat,
            by=planned.by,
        )
        return _header_line(header, self._secrets)

    def redacted(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        """Texts without secrets."""
        return self._secrets.redacted(texts)

    def door(self) -> EventDoor:
        """Return the redaction that the events of one run pass before they become lines (`event_to_line`)."""
        return EventDoor(self._parts)

    def result(self, planned: PlannedRun, result: RunResult) -> str:
        """Return the last line."""
        return _result_line(redacted_result(result, self._parts, planned.case))

    def whole(self, planned: PlannedRun, events: Iterable[Event], result: RunResult | None) -> Iterator[str]:
        """Yield all lines of a run, as far as it is."""
        yield self.header(planned)
        if result is None:
            door = self.door()
            shown = [*(stored for event in events for stored in door.take(event)), *door.rest()]
            yield from map(event_to_line, shown)
        else:
            stored, redacted = redacted_run(events, result, self._parts, planned.case)
            yield from map(event_to_line, stored)
            yield _result_line(redacted)


class Recordings:
    """Records the runs of a batch into a folder, as they happen; with `only_failed`, those that end well are removed.

    No error of a file stops a run: `problem` has the first one. To be used on one thread. `clock` gives monotonic
    seconds."""

    def __init__(
        self,
        folder: Path,
        lines: RecordingLines,
        *,
        only_failed: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.problem: str | None = None
        self._folder = folder
        self._lines = lines
        self._only_failed = only_failed
        self._clock = clock
        self._open: dict[str, _RunFile] = {}
        self._doors: dict[str, EventDoor] = {}
        self._numbers: dict[str, int] | None = None
        """For each stem the highest number in the folder, looked up once: a folder may hold thousands."""

    def listener(self, runs: Iterable[PlannedRun]) -> BatchListener:
        """Return a listener of a batch that records these runs."""
        planned = {run.run_id: run for run in runs}
        self._lines.prepare(planned.values())

        def record(event: BatchEvent) -> None:
            if isinstance(event, RunEvent):
                self._add(event.event, planned)
            elif isinstance(event, RunDone):
                self._finish(planned, event.result)

        return record

    def _add(self, event: Event, planned: dict[str, PlannedRun]) -> None:
        run_id = event.run_id
        try:
            if isinstance(event.payload, RunStarted):
                run = planned[run_id]
                self._open[run_id] = self._new_file(run)
                self._doors[run_id] = self._lines.door()
                self._open[run_id].write(self._lines.header(run))
            file = self._open.get(run_id)
            if file is not None:
                for shown in self._doors[run_id].take(event):
                    file.write(event_to_line(shown))
                now_s = self._clock()
                if isinstance(event.payload, _WORTH_A_WRITE) or now_s - file.flushed_s > _FLUSHED_EVERY_S:
                    file.flush(now_s)
        except (OSError, ValueError, TypeError, RecursionError) as error:
            self._give_up(run_id, error)

    def _new_file(self, run: PlannedRun) -> _RunFile:
        if self._numbers is None:
            self._numbers = _numbers_in(self._folder)
        stem = _stem(*self._lines.redacted((run.file.path.stem, run.case.id, run.model)))
        file = _RunFile(self._folder, stem, self._numbers.get(stem, 0) + 1)
        self._numbers[stem] = file.number
        return file

    def _finish(self, planned: dict[str, PlannedRun], result: RunResult) -> None:
        file = self._open.get(result.run_id)
        if file is None:
            return
        try:
            if self._only_failed and result.status not in (Status.FAILED, Status.ERROR):
                file.remove()
            else:
                for shown in self._doors[result.run_id].rest():
                    file.write(event_to_line(shown))
                file.write(self._lines.result(planned[result.run_id], result))
                file.finish()
            del self._open[result.run_id], self._doors[result.run_id]
        except (OSError, ValueError, TypeError, RecursionError) as error:
            self._give_up(result.run_id, error)

    def _give_up(self, run_id: str, error: Exception) -> None:
        file = self._open.pop(run_id, None)
        if file is not None:
            file.remove()
        if self.problem is None:
            self.problem = f"not every run could be recorded in {self._folder}: {_reason(error)}"
            _logger.error("%s", self.problem)


def recording_lines(secrets: Secrets) -> RecordingLines:
    """Return the lines of runs that begin when the clock says so."""
    return RecordingLines(secrets, lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))


def save_recording(
    folder: Path,
    planned: PlannedRun,
    events: Sequence[Event],
    result: RunResult | None,
    *,
    started_at: str,
    secrets: Secrets,
    excerpts: Excerpts | None = None,
) -> Path:
    """Write a run into a folder, which is made if need be, and return the new file.

    One that is not over, and so has no `result`, is written as far as it is.

    `started_at` is when the run began, as ISO 8601 text; runs of a suite share `excerpts`, which take it apart once.
    Raises RecordingError when the file cannot be written.
    """
    lines = RecordingLines(secrets, lambda: started_at, excerpts).whole(planned, events, result)
    stem = secrets.redacted((planned.file.path.stem, planned.case.id, planned.model))
    return _new_file(folder, _stem(*stem), 1, lines)


def export_recording(folder: Path, recording: Recording, secrets: Secrets, before: str = "") -> Path:
    """Write a run of the history into a folder, as `save_recording` does; the file's name begins with `before`."""

    header, parts = recording.header, SuiteParts(secrets)

    def written() -> Iterator[str]:
        door = EventDoor(parts)
        yield _header_line(header, secrets)
        yield from map(event_to_line, (shown for event in recording.events for shown in door.take(event)))
        yield from map(event_to_line, door.rest())
        if recording.result is not None:
            suite = suite_of_recording(recording).suite
            case = next((case for case in suite.cases if case.id == header.case), None) if suite else None
            yield _result_line(redacted_result(result_of_recording(recording), parts, case))

    stem = secrets.redacted((recording.path.stem, header.case, header.model))
    return _new_file(folder, f"{before}{_stem(*stem)}", header.repeat + 1, written())


def _header_line(header: Header, secrets: Secrets) -> str:
    text = redacted_suite_text(header.suite.text, secrets)
    return header_line(secrets.redacted(replace(header, suite=replace(header.suite, text=text))))


def _result_line(result: RunResult) -> str:
    return result_line(result.run_id, outcome_to_json(outcome_of(result)))


def _new_file(folder: Path, stem: str, first: int, lines: Iterable[str]) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = _RunFile(folder, stem, first)
        try:
            for line in lines:
                file.write(line)
            return file.finish()
        except BaseException:
            file.remove()
            raise
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise RecordingError(f"the run cannot be saved in {folder}: {_reason(error)}") from error


class _RunFile:
    """The file of one run, new and readable by its owner only.

    It has an unfinished name until it is finished.

    `first` is the number to try first; `number` the one that was free; `flushed_s` when it was last brought to the
    disk, in seconds of the caller's clock. Everything raises OSError.
    """

    def __init__(self, folder: Path, stem: str, first: int) -> None:
        for number in count(first):
            self._path = folder / f"{stem}.{number}{SUFFIX}"
            self._unfinished = folder / f"{stem}.{number}{SUFFIX}{UNFINISHED}"
            try:
                descriptor = os.open(self._unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                continue
            self._file = os.fdopen(descriptor, "w", encoding="utf-8", newline="\n")
            # Looked for only now: another program that has this number gives its name away when it is done.
            if not os.path.lexists(self._path):
                break
            self.remove()
        self.number = number
        self.flushed_s = 0.0

    def write(self, line: str) -> None:
        self._file.write(line + "\n")

    def flush(self, now_s: float) -> None:
        self._file.flush()
        self.flushed_s = now_s

    def finish(self) -> Path:
        """Close the file, give it its name, and return that."""
        self._file.close()
        return self._unfinished.rename(self._path)

    def remove(self) -> None:
        """Close the file and remove it, as far as that is possible."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._unfinished.unlink()


def _numbers_in(folder: Path) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for name in (path.name for path in folder.iterdir()):
        if found := _NUMBERED.fullmatch(name):
            numbers[found[1]] = max(numbers.get(found[1], 0), int(found[2]))
    return numbers


def _stem(*parts: str) -> str:
    return ".".join(_safe(part, length) for part, length in zip(parts, _NAME_PARTS_BYTES, strict=True))


def _safe(text: str, length: int) -> str:
    """Return a part of a file's name: letters, digits, `_` and `-`, at most so many bytes."""
    return re.sub(r"[^\w-]+", "-", text).encode()[:length].decode(errors="ignore").strip("-") or "run"


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)


# Recorded runs as they are opened again: the suite in a recording, and what its run came to.

_MAX_NAMED_CASES = 5
"""How many cases of a suite a message names at most; there is one message for each recording."""


def suite_of_recording(recording: Recording) -> SuiteFile:
    """Return the suite in a recording, as if it stood where the recording does; its problems are in it.

    It has the recorded case alone, except where that could not be cut out of the suite's text. The case is graded by
    the run's grader.

    Raises RecordingError when that is no grader of this program."""
    header = recording.header
    file = parse_suite(header.suite.text, recording.path)
    if header.by is None or file.suite is None:
        return file
    by = grader_named(header.by)
    if by is None:
        raise RecordingError(f"{recording.path} was graded by {header.by!r}, which is not one of {', '.join(GRADERS)}")
    cases = tuple(with_grader(case, by) if case.id == header.case else case for case in file.suite.cases)
    return replace(file, suite=file.suite.model_copy(update={"cases": cases}))


def case_of_recording(recording: Recording, file: SuiteFile) -> Case:
    """Return the case of a recording in a valid suite.

    Raises RecordingError when the suite has no case of its id, or lacks its variant."""
    cases = file.suite.cases if file.suite is not None else ()
    wanted = recording.header.case
    for case in cases:
        if case.id == wanted:
            if file.suite is not None:
                _must_have_variant(recording, file.suite)
            return case
    ids = [case.id for case in cases]
    if len(ids) <= _MAX_NAMED_CASES:
        its_cases = f": {', '.join(ids)}"
    else:
        near = get_close_matches(wanted, ids, n=1)
        its_cases = f" among its {count_text(len(ids))}{f': did you mean {near[0]!r}?' if near else ''}"
    raise RecordingError(
        f"{recording.path} is a run of the case {wanted!r}, but {file.path} has no such case{its_cases}"
    )


def _must_have_variant(recording: Recording, suite: Suite) -> None:
    try:
        variant_of(suite, recording.header.model)
    except UnknownVariantError as error:
        raise RecordingError(f"{recording.path} is a run of a variant, but {error}") from None


def run_of_recording(recording: Recording, file: SuiteFile) -> tuple[PlannedRun, RunResult] | None:
    """Return the recorded run as it was planned, and its result; `file` is the result of `suite_of_recording`.

    `None` where that does not have the case.

    Raises RecordingError when its result is none, or when the suite lacks its variant."""
    header = recording.header
    cases = file.suite.cases if file.suite is not None else ()
    case = next((case for case in cases if case.id == header.case), None)
    if case is None:
        return None
    assert file.suite is not None
    _must_have_variant(recording, file.suite)
    planned = PlannedRun(header.run, file, case, header.model, header.repeat, by=grader_named(header.by))
    return planned, replace(result_of_recording(recording), grading=planned.settings.grading)


def result_of_recording(recording: Recording) -> RunResult:
    """Return the recorded run with the grades it was given; without a result it ended in an error that says so.

    Raises RecordingError when its result is none.
    """
    header, start = recording.header, recording.trajectory.start
    try:
        outcome = outcome_from_json(recording.result or (_HELD if _is_held(recording) else _CUT))
    except ValueError as error:
        raise RecordingError(f"{recording.path}: its result cannot be read: {error}") from error
    return RunResult(
        run_id=header.run,
        suite=str(recording.path),
        case_id=header.case,
        case_name=start.case_name if start is not None else header.case,
        model=header.model,
        repeat=header.repeat,
        status=outcome.status,
        trajectory=recording.trajectory,
        grades=outcome.grades,
        error=outcome.error,
        cost_usd=cost_of(recording.trajectory, FREE if is_built_in(model_of(header.model)) else None),
        judgements=outcome.judgements,
        steps=outcome.steps,
        redacted=outcome.redacted,
        metrics=outcome.metrics,
        valid_arguments=outcome.valid_arguments,
    )


def judging_of_recording(recording: Recording) -> JudgeUse:
    """Return the cost of the judges of a recorded run when it was made.

    Raises RecordingError."""
    try:
        return outcome_from_json(recording.result or _CUT).judging or NOBODY_ASKED
    except ValueError as error:
        raise RecordingError(f"{recording.path}: its result cannot be read: {error}") from error


_CUT: dict[str, JsonValue] = {
    "status": "error",
    "error": "the recording ends before the run does",
    "score": None,
    "grades": [],
}

_HELD: dict[str, JsonValue] = _CUT | {"error": "the recording ends where the run was held"}


def _is_held(recording: Recording) -> bool:
    """Return whether a recording ends while its run was held."""
    whats = (event.payload for event in reversed(recording.events))
    last = next((what for what in whats if not isinstance(what, CallEdited | ResultEdited | MessageAdded)), None)
    return isinstance(last, Paused) and last.at != "permission"
