"""Writes recordings of runs with their results: during a batch, or on request for a run that has ended or is held.

docs/recordings.md describes the file format, and `workbench.trajectory.recording` reads it."""

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
from workbench.engine.plan import PlannedRun, parse_grader, with_grader
from workbench.engine.redaction import EventRedaction, SuiteParts, redacted_result, redacted_run, redacted_suite_text
from workbench.grading.grade import NO_JUDGE_USAGE, JudgeUsage, RunResult
from workbench.grading.result_json import Outcome, outcome_from_json, outcome_of, outcome_to_json
from workbench.grading.status import Status
from workbench.numerals import count_text
from workbench.providers.built_in import is_built_in
from workbench.startup import late_pattern
from workbench.suite.excerpts import Excerpts
from workbench.suite.grading_model import GRADERS
from workbench.suite.model import Case, Suite
from workbench.suite.suite_file import SuiteFile, parse_suite
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

UNFINISHED_SUFFIX = ".part"
"""The suffix of a recording while its run is in progress. A program that is killed leaves files with this
suffix."""

_FLUSHED_EVENTS = (
    *(RunStarted, ResponseFinished, ResultReceived, RunFinished),
    *(Paused, CallEdited, ResultEdited, MessageAdded, Regenerated),
)
"""Events after which a recording is flushed: they are rare, and the next event may take long."""

_FLUSH_INTERVAL_S = 1.0
"""The maximum number of seconds between two flushes of an arriving answer. A killed program loses at
most the text of this interval."""

_NUMBERED = late_pattern(rf"(.+)\.(\d{{1,9}}){re.escape(SUFFIX)}(?:{re.escape(UNFINISHED_SUFFIX)})?")

_NAME_PARTS_BYTES = (30, 50, 36)
"""The maximum length of each part (suite, case, model) of a file's name. Every file system accepts the sum."""


class RecordingLines:
    """Renders runs as lines of a recording, without secrets.

    `now` returns the time as ISO 8601 text."""

    def __init__(self, secrets: Secrets, now: Callable[[], str], excerpts: Excerpts | None = None) -> None:
        self._secrets = secrets
        self._now = now
        self._excerpts = excerpts or Excerpts()
        self._parts = SuiteParts(secrets)

    def parse_suites(self, runs: Iterable[PlannedRun]) -> None:
        """Parse the suites of runs in advance, so that no run waits for the parser."""
        for run in {run.file.path: run for run in runs}.values():
            self._excerpts.of(run.file, run.case.id)

    def header(self, planned: PlannedRun) -> str:
        """Return the first line of the recording of a run that begins now."""
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
        return self._secrets.redacted(texts)

    def redaction(self) -> EventRedaction:
        """Return a new redaction for the events of one run. Redact each event before `event_to_line`."""
        return EventRedaction(self._parts)

    def result(self, planned: PlannedRun, result: RunResult) -> str:
        """Return the last line of a run's recording, which holds the redacted result."""
        return _result_line(redacted_result(result, self._parts, planned.case))

    def all_lines(self, planned: PlannedRun, events: Iterable[Event], result: RunResult | None) -> Iterator[str]:
        """Yield all lines of a run's recording.

        Without `result`, the run has not ended, and the last line is missing."""
        yield self.header(planned)
        if result is None:
            yield from map(event_to_line, self.redaction().redact_all(events))
        else:
            stored, redacted = redacted_run(events, result, self._parts, planned.case)
            yield from map(event_to_line, stored)
            yield _result_line(redacted)


class Recordings:
    """Records the runs of a batch into a folder while they are in progress, on one thread.

    With `only_failed`, the recordings of runs that did not fail are removed. A file error does not stop a run;
    `problem` is the first error. `clock` returns monotonic seconds."""

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
        self._redactions: dict[str, EventRedaction] = {}
        self._numbers: dict[str, int] | None = None
        """The highest number of each stem in the folder; read once, because a folder may hold thousands of files."""

    def listener(self, runs: Iterable[PlannedRun]) -> BatchListener:
        planned = {run.run_id: run for run in runs}
        self._lines.parse_suites(planned.values())

        def record(event: BatchEvent) -> None:
            if isinstance(event, RunEvent):
                self._add(event.event, planned)
            elif isinstance(event, RunDone):
                self._finish(planned, event.result)

        return record

    def _add(self, event: Event, planned: dict[str, PlannedRun]) -> None:
        run_id = event.run_id
        try:
            # A run that is skipped or stopped before its start emits no `RunStarted`, and gets no file.
            if isinstance(event.payload, RunStarted):
                run = planned[run_id]
                self._open[run_id] = self._new_file(run)
                self._redactions[run_id] = self._lines.redaction()
                self._open[run_id].write(self._lines.header(run))
            file = self._open.get(run_id)
            if file is not None:
                for shown in self._redactions[run_id].add(event):
                    file.write(event_to_line(shown))
                now_s = self._clock()
                if isinstance(event.payload, _FLUSHED_EVENTS) or now_s - file.flushed_s > _FLUSH_INTERVAL_S:
                    file.flush(now_s)
        except (OSError, ValueError, TypeError, RecursionError) as error:
            self._give_up(run_id, error)

    def _new_file(self, run: PlannedRun) -> _RunFile:
        if self._numbers is None:
            self._numbers = _numbers_in(self._folder)
        # Names of cases and models may hold secrets as well.
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
                for shown in self._redactions[result.run_id].flush():
                    file.write(event_to_line(shown))
                file.write(self._lines.result(planned[result.run_id], result))
                file.finish()
            del self._open[result.run_id], self._redactions[result.run_id]
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
    """Return a `RecordingLines` that dates recordings with the current time."""
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
    """Write the recording of a run into a folder, and return the new file. A missing folder is created.

    `result` is `None` for a run that has not ended. `started_at` is the time of the run's beginning as ISO 8601 text.
    Pass the same `excerpts` for several runs of one suite, so that the suite is parsed only once. Raises RecordingError
    when the file cannot be written."""
    lines = RecordingLines(secrets, lambda: started_at, excerpts).all_lines(planned, events, result)
    stem = secrets.redacted((planned.file.path.stem, planned.case.id, planned.model))
    return _new_file(folder, _stem(*stem), 1, lines)


def export_recording(folder: Path, recording: Recording, secrets: Secrets, before: str = "") -> Path:
    """Write a run of the history into a folder, and return the new file.

    The file's name begins with `before`. Raises RecordingError like `save_recording`."""
    header, parts = recording.header, SuiteParts(secrets)

    def written() -> Iterator[str]:
        yield _header_line(header, secrets)
        yield from map(event_to_line, EventRedaction(parts).redact_all(recording.events))
        if recording.result is not None:
            case = _recorded_case(recording, suite_of_recording(recording))
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
        # The errors come from the disk, or from a tool's values that JSON cannot express.
        raise RecordingError(f"the run cannot be saved in {folder}: {_reason(error)}") from error


class _RunFile:
    """The new recording file of one run, readable by its owner only.

    The file has a temporary name until `finish` renames it. The final name includes `number`, the first free number
    from `first` on. `flushed_s` is the time of the last flush, in seconds of the caller's clock. All methods raise
    OSError."""

    def __init__(self, folder: Path, stem: str, first: int) -> None:
        for number in count(first):
            self._path = folder / f"{stem}.{number}{SUFFIX}"
            self._unfinished = folder / f"{stem}.{number}{SUFFIX}{UNFINISHED_SUFFIX}"
            try:
                descriptor = os.open(self._unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                continue
            self._file = os.fdopen(descriptor, "w", encoding="utf-8", newline="\n")
            # Create the unfinished file before this check, because another program may finish a file with the same
            # number in between.
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
        self._file.close()
        return self._unfinished.rename(self._path)

    def remove(self) -> None:
        # Closing writes the rest of the text, which fails on a full disk. The file is removed in any case.
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._unfinished.unlink()


def _numbers_in(folder: Path) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for path in folder.iterdir():
        if found := _NUMBERED.fullmatch(path.name):
            numbers[found[1]] = max(numbers.get(found[1], 0), int(found[2]))
    return numbers


def _stem(*parts: str) -> str:
    return ".".join(_safe(part, length) for part, length in zip(parts, _NAME_PARTS_BYTES, strict=True))


def _safe(text: str, length: int) -> str:
    """Shorten a text to a part of a file's name: letters, digits, `_` and `-`, at most `length` bytes."""
    # The cut may split the last character. Its first bytes are then ignored.
    return re.sub(r"[^\w-]+", "-", text).encode()[:length].decode(errors="ignore").strip("-") or "run"


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)


_MAX_NAMED_CASES = 5
"""The maximum number of a suite's cases that a message names. Each recording has its own message."""


def suite_of_recording(recording: Recording) -> SuiteFile:
    """Return the suite that a recording contains, with the problems found in it.

    The path of the returned file is the recording's path. The suite usually has only the recorded case, with the grader
    that decided the run. Raises RecordingError if this version lacks the grader."""
    header = recording.header
    file = parse_suite(header.suite.text, recording.path)
    if header.by is None or file.suite is None:
        return file
    by = parse_grader(header.by)
    if by is None:
        raise RecordingError(f"{recording.path} was graded by {header.by!r}, which is not one of {', '.join(GRADERS)}")
    cases = list(file.suite.cases)
    for index, case in enumerate(cases):
        if case.id == header.case:
            cases[index] = with_grader(case, by)
    return replace(file, suite=file.suite.model_copy(update={"cases": tuple(cases)}))


def _recorded_case(recording: Recording, file: SuiteFile) -> Case | None:
    if file.suite is None:
        return None
    return next((case for case in file.suite.cases if case.id == recording.header.case), None)


def case_of_recording(recording: Recording, file: SuiteFile) -> Case:
    """Return the case that a recording ran, from a valid suite.

    Raises RecordingError when the suite lacks this case or the variant of the run."""
    case, wanted = _recorded_case(recording, file), recording.header.case
    if case is not None:
        assert file.suite is not None
        _must_have_variant(recording, file.suite)
        return case
    ids: list[str] = []
    if file.suite is not None:
        ids = [each.id for each in file.suite.cases]
    if len(ids) <= _MAX_NAMED_CASES:
        its_cases = f": {', '.join(ids)}"
    else:
        its_cases = f" among its {count_text(len(ids))}"
        if near := get_close_matches(wanted, ids, n=1):
            its_cases += f": did you mean {near[0]!r}?"
    raise RecordingError(
        f"{recording.path} is a run of the case {wanted!r}, but {file.path} has no such case{its_cases}"
    )


def _must_have_variant(recording: Recording, suite: Suite) -> None:
    try:
        variant_of(suite, recording.header.model)
    except UnknownVariantError as error:
        raise RecordingError(f"{recording.path} is a run of a variant, but {error}") from None


def run_of_recording(recording: Recording, file: SuiteFile) -> tuple[PlannedRun, RunResult] | None:
    """Return the planned run of a recording, and its result; `None` if the suite lacks the recorded case.

    `file` is the suite from `suite_of_recording`. Raises RecordingError when the result cannot be read, or when the
    suite lacks the variant of the run."""
    header = recording.header
    case = _recorded_case(recording, file)
    if case is None:
        return None
    assert file.suite is not None
    _must_have_variant(recording, file.suite)
    planned = PlannedRun(header.run, file, case, header.model, header.repeat, by=parse_grader(header.by))
    return planned, replace(result_of_recording(recording), grading=planned.settings.grading)


def result_of_recording(recording: Recording, outcome: Outcome | None = None) -> RunResult:
    """Return the recorded run with its grades. A recording without a result gives the status `error`.

    `outcome` is the result if the caller has already read it. Raises RecordingError when the result cannot be read."""
    header, start = recording.header, recording.trajectory.start
    if outcome is None:
        result = recording.result
        if not result:
            result = _HELD if _is_held(recording) else _CUT
        try:
            outcome = outcome_from_json(result)
        except ValueError as error:
            raise RecordingError(f"{recording.path}: its result cannot be read: {error}") from error
    # A recording has no prices, so the cost is known only for runs of built-in models.
    price = FREE if is_built_in(model_of(header.model)) else None
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
        cost_usd=cost_of(recording.trajectory, price),
        judgements=outcome.judgements,
        steps=outcome.steps,
        redacted=outcome.redacted,
        metrics=outcome.metrics,
        valid_arguments=outcome.valid_arguments,
    )


def judging_of_recording(recording: Recording) -> JudgeUsage:
    """Return the cost of the judges of a recorded run.

    Raises RecordingError when the result cannot be read."""
    try:
        return outcome_from_json(recording.result or _CUT).judging or NO_JUDGE_USAGE
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
    for event in reversed(recording.events):
        # A held run ends with a `Paused` event, which only edits may follow.
        if not isinstance(event.payload, CallEdited | ResultEdited | MessageAdded):
            return isinstance(event.payload, Paused) and event.payload.at != "permission"
    return False
