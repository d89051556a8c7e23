"""Export runs from recordings or the history into files, without holding all runs in memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

from workbench.config.secrets import Secrets
from workbench.engine.recordings import result_of_recording
from workbench.evaluation.plan import FinishedRun
from workbench.evaluation.report import Report
from workbench.exchange.exporters.exported import ExportedRun, case_in
from workbench.exchange.exporters.forms import FORMS, ExportError, files_of, lines_of
from workbench.show.forms import pieces_of
from workbench.show.report_files import why_not_writable, write_report
from workbench.trajectory.recording import Recording

# File systems allow names of up to 255 bytes. The remaining bytes are for the extension and a number.
_MAX_NAME_BYTES = 180


def target_file(place: Path, stem: str, ending: str) -> Path:
    """Return the path of a new file, and create its folder.

    If `place` is a folder or has no extension, the file is in this folder and is called `stem` with `ending`.
    Otherwise, `place` is the file. Raises ExportError if the file exists or cannot be written."""
    file = place
    if place.is_dir() or not place.suffix:
        file = place / f"{stem}{ending}"
    _make(file.parent)
    if file.exists():
        raise ExportError(f"{file} already exists: move it away, or name another file")
    if (why := why_not_writable(file)) is not None:
        raise ExportError(f"cannot write {file}: {why}")
    return file


def write_runs(runs: Iterable[ExportedRun], form: str, place: Path, stem: str) -> list[Path]:
    """Write runs in one of the `FORMS` that have a writer, and return the new files.

    Raises ExportError."""
    if ending := FORMS[form].ending:
        return [_written(target_file(place, stem, ending), lines_of(form, runs))]
    if place.suffix and not place.is_dir():
        raise ExportError(f"{place} looks like a file name: {form} writes several files, so name a folder")
    _make(place)
    return [_written(_free(place, name), pieces) for name, pieces in files_of(form, runs)]


def write_table(report: Report, form: str, place: Path, stem: str) -> list[Path]:
    """Write a report in one of the forms in `show.forms`, and return the new file. Raises ExportError."""
    return [_written(target_file(place, stem, FORMS[form].ending), pieces_of(form, "history show", report))]


def report_of(recordings: Iterable[Recording], secrets: Secrets) -> Report:
    """Return a report on recorded runs with their recorded grades. Raises RecordingError."""
    runs: list[FinishedRun] = []
    started: list[str] = []
    for recording in recordings:
        result = replace(result_of_recording(recording), suite=recording.header.suite.path)
        runs.append(FinishedRun(len(runs), case_in(recording.header), result))
        started.append(recording.header.started_at)
    return Report(runs=tuple(runs), suites={}, started_at=min(started, default=""), secrets=secrets)


def _written(file: Path, pieces: Iterable[str]) -> Path:
    try:
        write_report(file, pieces)
    except OSError as error:
        raise ExportError(f"cannot write {file}: {error.strerror}") from error
    return file


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(f"cannot write into {folder}: {error.strerror}") from error


def _free(folder: Path, name: str) -> Path:
    stem, dot, ending = name.rpartition(".")
    # The extension `.atif.json` has two parts, which must stay together.
    if ".atif." in name:
        stem, dot, ending = name.partition(".atif.")
    safe = re.sub(r"[^\w.+-]+", "-", stem).encode()[:_MAX_NAME_BYTES].decode(errors="ignore").strip("-.") or "run"
    return next(file for file in _candidates(folder, safe, f"{dot}{ending}") if not file.exists())


def _candidates(folder: Path, stem: str, ending: str) -> Iterator[Path]:
    yield folder / f"{stem}{ending}"
    for number in count(2):
        yield folder / f"{stem}.{number}{ending}"
