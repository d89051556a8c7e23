"""Shared by exports of recordings and of batches: write or send runs, and report the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from workbench.cli.redaction import warn, write
from workbench.config.models import ConfigError
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.engine.suite_secrets import register_secrets
from workbench.evaluation.report import Report
from workbench.exchange.exporters.export import write_runs, write_table
from workbench.exchange.exporters.exported import ExportedRun, exported_run, suite_in
from workbench.exchange.exporters.forms import FORMS, ExportError
from workbench.numerals import counted
from workbench.providers.http.errors import shown_url
from workbench.show.visible import one_line
from workbench.trajectory.recording import SUFFIX, Recording, RecordingError, read_recording, recordings_in


@dataclass(frozen=True)
class Export:
    """The file format of exported runs, and where they go: to files at `place`, or to the collector `otlp`.

    If `otlp` is empty, an environment variable names the collector. `hint` tells the user which option names a missing
    place."""

    form: str | None
    place: Path | None
    otlp: str | None
    content: bool
    hint: str

    def is_complete(self) -> bool:
        """Return whether the options name a destination. Otherwise print an error."""
        missing = None
        if self.otlp is not None:
            if self.place is not None or self.form is not None:
                missing = "--otlp sends the runs and writes no file: leave the folder and --format out"
        elif self.content:
            missing = "--otlp-content goes with --otlp"
        elif self.form is None and self.place is not None:
            missing = f"name a form with --format ({', '.join(FORMS)}), or a collector with --otlp"
        elif self.place is None:
            missing = self.hint
        if missing is not None:
            warn(f"nothing was exported: {missing}")
        return missing is None


def export_runs(
    export: Export,
    program: Program,
    runs: Iterable[ExportedRun],
    report: Callable[[], Report],
    stem: str,
    said: str = "",
) -> bool:
    """Write or send runs, and print `said` with the result. Return whether the export succeeded.

    If the format puts all runs into one file, `stem` is the name of this file without its extension. `report` is called
    for formats that are tables, which are written from a report."""
    try:
        line = _sent(export, program, runs) if export.otlp is not None else _written(export, runs, report, stem)
    except (ExportError, RecordingError) as error:
        warn(str(error), program.secrets)
        return False
    if line is None:
        warn("nothing was exported")
        return False
    write(f"{said}{one_line(line)}\n")
    return True


def _written(export: Export, runs: Iterable[ExportedRun], report: Callable[[], Report], stem: str) -> str | None:
    assert export.form is not None and export.place is not None
    if FORMS[export.form].writer:
        all_of_them = _CountedRuns(runs)
        if not all_of_them.any():
            return None
        files = write_runs(all_of_them, export.form, export.place, stem)
        count = all_of_them.count
    else:
        table = report()
        count = len(table.runs)
        if not count:
            return None
        files = write_table(table, export.form, export.place, stem)
    destination = str(files[0]) if len(files) == 1 else f"{counted(len(files), 'file')} in {export.place}"
    return f"{counted(count, 'run')} in {destination}"


def _sent(export: Export, program: Program, runs: Iterable[ExportedRun]) -> str | None:
    # Lazy import: most exports write files.
    from workbench.exchange.exporters.otlp import collector_of, require_protobuf, send

    require_protobuf()
    # The project's `.env` is ignored, because a cloned project must not decide where traces are sent.
    environment = program.environment.variables
    collector = collector_of(export.otlp or "", environment, program.secrets, content=export.content)
    all_of_them = _CountedRuns(runs)
    if not all_of_them.any():
        return None
    sent = send(all_of_them, collector)
    done = f"{counted(sent, 'run')} sent to {shown_url(collector.url)}"
    if export.content:
        return done
    return f"{done}, without texts, arguments and results (add them with --otlp-content)"


class _CountedRuns:
    def __init__(self, runs: Iterable[ExportedRun]) -> None:
        self._runs = iter(runs)
        self.count = 0

    def any(self) -> bool:
        first = next(self._runs, None)
        if first is not None:
            self._runs = chain([first], self._runs)
        return first is not None

    def __iter__(self) -> Iterator[ExportedRun]:
        for run in self._runs:
            self.count += 1
            yield run


def read_runs(
    paths: Iterable[Path], program: Program, on_damage: Callable[[str], None]
) -> Iterator[tuple[Recording, ExportedRun]]:
    """Yield the recordings at the paths, after registering the secrets of their suites.

    `on_damage` is called with the reason for each recording that cannot be read."""
    for file in _files(paths, on_damage):
        try:
            recording = read_recording(file)
            try:
                text = recording.header.suite.text
                # The secrets must be registered before the run is converted, because the conversion redacts them.
                register_secrets(program, file.parent, suite_in(text), text)
            except ConfigError as error:
                on_damage(str(error))
            yield recording, exported_run(recording, program.secrets)
        except RecordingError as error:
            on_damage(str(error))


def _files(paths: Iterable[Path], on_damage: Callable[[str], None]) -> Iterator[Path]:
    for path in paths:
        try:
            files = recordings_in(path) if path.is_dir() else [path]
        except OSError as error:
            on_damage(f"{path} cannot be read: {error.strerror}")
            continue
        if not files:
            on_damage(f"{path} contains no recording (a file *{SUFFIX})")
        yield from files
