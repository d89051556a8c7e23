"""The workspace: finds and reads suites and recordings."""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from workbench.batches.plan import PlannedRun
from workbench.batches.recorded import run_of_recording, suite_of_recording
from workbench.batches.recordings import UNFINISHED
from workbench.config.model_book import ModelBook
from workbench.config.models import ConfigError
from workbench.config.resources import bundled
from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.limits import MAX_RECORDING_HEAD_BYTES
from workbench.providers.built_in import OFFLINE
from workbench.suite.disk import shown_name
from workbench.suite.loading import SuiteFile, load_suite
from workbench.suite.problems import Problem
from workbench.suite.project import Search, find_suites
from workbench.suite.settings import models_named_by
from workbench.trajectory.recording import SUFFIX, Recording, RecordingError, read_recording

RECORDINGS_FOLDER = "recordings"
"""The name of the folder where runs are saved."""

LONG_CHARACTERS = 200_000
"""Longer suites are parsed for editing when they are read, so that the screen does not wait for it."""


@dataclass(frozen=True)
class RecordedRun:
    """A run from a recording, in the form of one that was planned and made here. `known` is false if the model is
    defined only by the recording."""

    planned: PlannedRun
    recording: Recording
    result: RunResult
    known: bool


@dataclass(frozen=True)
class Workspace:
    """The files that were found under the given roots. `samples` is true for the bundled samples, shown if the current
    folder has no suites."""

    roots: tuple[Path, ...]
    files: tuple[SuiteFile, ...]
    samples: bool = False
    recorded: tuple[RecordedRun, ...] = ()

    def recording_at(self, path: Path) -> RecordedRun | None:
        """Return the run in the recording at `path`, if any."""
        return next((run for run in self.recorded if run.planned.file.path == path), None)

    @property
    def place(self) -> str:
        """The name in the status line."""
        if self.samples:
            return "sample suites"
        names = [shown_name(root) for root in self.roots]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more" if names else ""


def open_workspace(paths: Sequence[Path], models: ModelBook, search: Search | None = None) -> Workspace:
    """Find and read suites: in the given paths, otherwise in the current folder, otherwise the bundled samples. A given
    folder without suites opens with its recordings. `models` decides which recorded models are known.

    A `search` that was stopped opens what it found, and the samples if that is nothing. The folders are then no roots:
    nothing looks through them again.
    """
    search = search or Search()
    roots = tuple(paths) or (Path(),)
    found = _found_at(roots, search) if paths else find_suites(roots, search)
    if not found and (search.is_stopped or not paths):
        return read_again(Workspace((bundled("sample_suites"),), (), True), models)
    return _read(found if search.is_stopped else roots, found, False, models)


def to_begin(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return those of the given paths at which a new suite can begin: names of TOML files in existing folders under
    which there is nothing."""
    return tuple(
        path for path in paths if path.suffix == ".toml" and path.parent.is_dir() and not os.path.lexists(path)
    )


def read_again(workspace: Workspace, models: ModelBook, search: Search | None = None) -> Workspace:
    """Find and read everything again."""
    found = _found_at(workspace.roots, search or Search())
    return _read(workspace.roots, found, workspace.samples, models)


def is_stale(file: SuiteFile) -> bool:
    """Return whether the file on disk has changed since it was read."""
    if is_recording(file.path):
        return _opened(file.path)[0].hash != file.hash
    try:
        return hashlib.sha256(file.path.read_bytes()).hexdigest() != file.hash
    except OSError:
        return True


def lost(workspace: Workspace) -> tuple[Path, ...]:
    """Return the files that were read and no longer exist."""
    return tuple(file.path for file in workspace.files if file.hash and _is_gone(file.path))


def trouble(workspace: Workspace, path: Path) -> str | None:
    """Return why the suite at `path` cannot run: it is gone, or its first error."""
    file = next((file for file in workspace.files if file.path == path), None)
    if _is_gone(path):
        return f"{path.name} no longer exists"
    if file is None:
        return f"{path.name} is no longer a suite"
    if not file.errors:
        return None
    first = file.errors[0]
    return f"{path.name}, line {first.line}: {first.message}" if first.line else f"{path.name} {first.message}"


def _is_gone(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _found_at(roots: Sequence[Path], search: Search) -> tuple[Path, ...]:
    """Return the suites at each root, or its recordings if it has none."""
    found = (path for root in roots for path in (find_suites([root], search) or _recordings_below(root, search)))
    return find_suites(found)


def _recordings_below(folder: Path, search: Search) -> list[Path]:
    return sorted(search.files_below(folder, (SUFFIX, SUFFIX + UNFINISHED)))


def _read(roots: tuple[Path, ...], found: Sequence[Path], samples: bool, models: ModelBook) -> Workspace:
    files: list[SuiteFile] = []
    recorded: list[RecordedRun] = []
    for path in found:
        file, run = _opened(path, models) if is_recording(path) else (load_suite(path), None)
        files.append(file)
        recorded += [run] if run is not None else []
    for file in files:
        if len(file.text) > LONG_CHARACTERS:
            _ = file.parts
            # Otherwise the garbage collector would scan all of it again and again while somebody types.
            gc.freeze()
    return Workspace(roots, tuple(files), samples, tuple(recorded))


def is_recording(path: Path) -> bool:
    """Return whether a file is a recording, by its name or by its first line."""
    if path.name.endswith((SUFFIX, SUFFIX + UNFINISHED)):
        return True
    try:
        # Opening a pipe or a device would block.
        if path.name.endswith(".toml") or not path.is_file():
            return False
        with path.open("rb") as file:
            first = file.readline(MAX_RECORDING_HEAD_BYTES)
    except OSError:
        return False
    return first.lstrip().startswith(b"{") and b'"recording"' in first


def recordings_folder(suite: Path, *, of_samples: bool) -> Path:
    """Return the folder for runs of a suite: next to it. Runs of samples go to the current folder; those of a recording
    go to its own folder."""
    if of_samples:
        return Path(RECORDINGS_FOLDER)
    return suite.parent if is_recording(suite) else suite.parent / RECORDINGS_FOLDER


def _opened(path: Path, models: ModelBook | None = None) -> tuple[SuiteFile, RecordedRun | None]:
    """Return the suite in a recording and its run. Errors in the recording become a problem."""
    try:
        recording = read_recording(path)
        file = suite_of_recording(recording)
        run = run_of_recording(recording, file)
        if run is None:
            return file, None
        planned, result = run
        known = models is not None and _is_known(planned.asked_model, file, models)
        return file, RecordedRun(planned, recording, result, known)
    except RecordingError as error:
        return SuiteFile(path, "", "", None, (Problem(path, None, "", str(error)),)), None


def _is_known(model: str, file: SuiteFile, models: ModelBook) -> bool:
    """Return whether a recorded model is the offline one, or one that the suite or its configuration names. A model
    described only by a recording is not known, because it could point anywhere."""
    if model == OFFLINE or (file.suite is not None and model in models_named_by(file.suite)):
        return True
    try:
        return any(spec.name == model for spec in models.named(file.path.parent))
    except ConfigError:
        return False
