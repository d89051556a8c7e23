"""The workspace: the suites and recordings that were found and read."""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from workbench.authoring.case_list import CaseKey, CurrentCase, current_case
from workbench.authoring.document import Document
from workbench.authoring.open_suite import Change, OpenSuite
from workbench.config.folders import bundled
from workbench.config.model_book import ModelBook
from workbench.config.models import ConfigError
from workbench.config.read_only import refuse_if_read_only
from workbench.dataclasses import dataclass
from workbench.engine.plan import PlannedRun
from workbench.engine.recordings import UNFINISHED_SUFFIX, run_of_recording, suite_of_recording
from workbench.grading.grade import RunResult
from workbench.limits import MAX_RECORDING_HEAD_BYTES
from workbench.providers.built_in import OFFLINE
from workbench.suite.files import folder_name
from workbench.suite.problems import Problem
from workbench.suite.project import Search, find_suites
from workbench.suite.settings import all_model_names
from workbench.suite.suite_file import SuiteFile, load_suite
from workbench.trajectory.recording import SUFFIX, Recording, RecordingError, read_recording

RECORDINGS_FOLDER = "recordings"
"""The name of the folder where runs are saved."""

LONG_CHARACTERS = 200_000
"""The length in characters from which a suite is parsed for editing as soon as it is read. A later parse would make the
screen wait."""


@dataclass(frozen=True)
class RecordedRun:
    """A recorded run. `planned` is the plan with which the same run could be started.

    `known` is whether the model is defined elsewhere than in the recording."""

    planned: PlannedRun
    recording: Recording
    result: RunResult
    known: bool


@dataclass(frozen=True)
class Workspace:
    """The files that were found below some folders (`roots`).

    `samples` is whether these are the bundled samples, which are shown if the current folder has no suites."""

    roots: tuple[Path, ...]
    files: tuple[SuiteFile, ...]
    samples: bool = False
    recorded: tuple[RecordedRun, ...] = ()

    def recording_at(self, path: Path) -> RecordedRun | None:
        for run in self.recorded:
            if run.planned.file.path == path:
                return run
        return None

    def file_at(self, path: Path) -> SuiteFile | None:
        for file in self.files:
            if file.path == path:
                return file
        return None

    @property
    def place(self) -> str:
        """The workspace's name in the status line."""
        if self.samples:
            return "sample suites"
        names = [folder_name(root) for root in self.roots]
        if len(names) > 1:
            return f"{names[0]} and {len(names) - 1} more"
        return "".join(names)


def open_workspace(paths: Sequence[Path], models: ModelBook, search: Search | None) -> Workspace:
    """Find and read suites in the given paths. Without paths, use the current folder, or else the bundled samples.

    A given folder without suites is opened with its recordings. `models` decides which recorded models are known. If
    `search` was stopped, the suites found so far are opened, or the samples if there are none. Then the folders are not
    among the workspace's roots, so that rereading the workspace does not search them again."""
    search = search or Search()
    roots = tuple(paths) or (Path(),)
    found = _found_at(roots, search) if paths else find_suites(roots, search)
    # A folder that the user named is opened even if it is empty.
    if not found and (search.is_stopped or not paths):
        return reread_workspace(Workspace((bundled("sample_suites"),), (), True), models)
    return _read(found if search.is_stopped else roots, found, False, models)


def paths_of_new_suites(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return the paths at which a new suite can be created: the file does not exist, but its folder does."""
    found = []
    for path in paths:
        # A symbolic link to a missing file does not `exist`, but it occupies the path.
        if path.suffix == ".toml" and path.parent.is_dir() and not os.path.lexists(path):
            found.append(path)
    return tuple(found)


def reread_workspace(workspace: Workspace, models: ModelBook, search: Search | None = None) -> Workspace:
    """Find and read the files of a workspace again."""
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


def missing_files(workspace: Workspace) -> tuple[Path, ...]:
    """Return the files that were read and no longer exist."""
    return tuple(file.path for file in workspace.files if file.hash and _is_gone(file.path))


def blocking_problem(workspace: Workspace, path: Path) -> str | None:
    """Return why the suite at `path` cannot run, or `None` if it can."""
    file = workspace.file_at(path)
    if _is_gone(path):
        return f"{path.name} no longer exists"
    if file is None:
        return f"{path.name} is no longer a suite"
    if not file.errors:
        return None
    first = file.errors[0]
    if first.line:
        return f"{path.name}, line {first.line}: {first.message}"
    return f"{path.name} {first.message}"


def _is_gone(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _found_at(roots: Sequence[Path], search: Search) -> tuple[Path, ...]:
    # Each root is searched by itself, so that suites in one root do not hide the recordings in another root.
    found: list[Path] = []
    for root in roots:
        found += find_suites([root], search) or _recordings_below(root, search)
    return find_suites(found)


def _recordings_below(folder: Path, search: Search) -> list[Path]:
    return sorted(search.files_below(folder, (SUFFIX, SUFFIX + UNFINISHED_SUFFIX)))


def _read(roots: tuple[Path, ...], found: Sequence[Path], samples: bool, models: ModelBook) -> Workspace:
    files: list[SuiteFile] = []
    recorded: list[RecordedRun] = []
    for path in found:
        if not is_recording(path):
            files.append(load_suite(path))
            continue
        file, run = _opened(path, models)
        files.append(file)
        if run is not None:
            recorded.append(run)
    for file in files:
        if len(file.text) > LONG_CHARACTERS:
            _ = file.parts
            # Without `freeze`, the garbage collector would scan all suites again and again while the user types.
            gc.freeze()
    return Workspace(roots, tuple(files), samples, tuple(recorded))


def is_recording(path: Path) -> bool:
    """Return whether a file is a recording, according to its name or, if the name does not tell, its first line."""
    if path.name.endswith((SUFFIX, SUFFIX + UNFINISHED_SUFFIX)):
        return True
    # A recording may have any name, so the first line of the file decides.
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
    """Return the folder for recordings of a suite's runs. The folder is beside the suite.

    Runs of samples go to the current folder. Runs of a recording go to the folder of the recording."""
    if of_samples:
        return Path(RECORDINGS_FOLDER)
    if is_recording(suite):
        return suite.parent
    return suite.parent / RECORDINGS_FOLDER


def _opened(path: Path, models: ModelBook | None = None) -> tuple[SuiteFile, RecordedRun | None]:
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
    """Return whether a recorded model is known: it is the offline model, or the suite or its configuration names it.

    A model that only a recording describes is not known, because its address could be any."""
    if model == OFFLINE or (file.suite is not None and model in all_model_names(file.suite)):
        return True
    try:
        return any(spec.name == model for spec in models.named(file.path.parent))
    except ConfigError:
        return False


# All changes of suites, including undo and redo, go through `OpenSuites`. It reports each change to followers in a
# fixed order.


@dataclass(frozen=True)
class SuitesChanged:
    """A change of open suites, as reported to the functions that follow changes.

    `how` says what happened:

    - `read`: the workspace was read, for the `first` time or again. Suites may have changed, appeared or disappeared.
    - `added`: a suite was opened that is not part of the workspace.
    - `edited`: the document of a suite changed. `index` is the case that was edited in place, if any (`HEAD`: the
      suite's settings).
    - `undone`: the document of a suite changed by undo or redo. `case` is the key of the affected case."""

    how: Literal["read", "added", "edited", "undone"]
    suites: tuple[OpenSuite, ...]
    """The suites that may have changed."""
    open: tuple[OpenSuite, ...]
    """All open suites."""
    workspace: Workspace
    first: bool = False
    index: int | None = None
    case: str | None = None


Follower: TypeAlias = Callable[[SuitesChanged], object]


class NotEditableError(ValueError):
    """Raised if a suite cannot be changed now. The message is the reason."""


class OpenSuites:
    """The open suites, in the order of the workspace."""

    def __init__(self, checked: Callable[[SuiteFile], SuiteFile] = lambda file: file) -> None:
        self.suites: tuple[OpenSuite, ...] = ()
        self.workspace = Workspace((), ())
        self.moved = ""
        """A description of the grades that the last change affected. The follower that regrades runs sets it."""
        self.on_error: Callable[[Exception], object] = _raise
        """Called with each error of a follower, before the next follower is called."""
        self._checked = checked
        self._followers: tuple[Follower, ...] = ()

    def follow(self, *followers: Follower) -> None:
        """Register functions to call on every change, in this order, after the functions that are already registered.

        The app relies on the order. The journal comes first, so that edits are on disk before they are visible. The
        runs of recordings, the tree and the grades follow. Each uses the results of the functions before it. The screen
        comes last."""
        self._followers += followers

    def at(self, path: Path) -> OpenSuite | None:
        for suite in self.suites:
            if suite.path == path:
                return suite
        return None

    def editable(self, path: Path) -> OpenSuite:
        """Return the suite at a path if it can be changed. Otherwise raise NotEditableError."""
        suite = self.at(path)
        if suite is None:
            raise NotEditableError(f"{path.name} is no longer open")
        if suite.why_not_editable is not None:
            raise NotEditableError(suite.why_not_editable)
        return suite

    def current_case(self, case: CaseKey) -> CurrentCase | None:
        """Return a case as it is now, or `None` if it has errors or its suite is not open."""
        suite = self.at(case[0])
        if suite is None:
            return None
        for outline in suite.run_cases:
            if outline.key == case[1]:
                return current_case(suite, outline)
        return None

    @property
    def files(self) -> list[SuiteFile]:
        """The open suites as suite files, including unsaved changes."""
        return [suite.file for suite in self.suites]

    @property
    def dirty(self) -> tuple[OpenSuite, ...]:
        return tuple(suite for suite in self.suites if suite.dirty)

    @property
    def moved_grades_text(self) -> str:
        """How the last edit changed the grades of runs, as the end of a notice.

        It is "" if the edit changed no grade."""
        return f"; {self.moved}" if self.moved else ""

    def read(self, workspace: Workspace) -> tuple[OpenSuite, ...]:
        """Open the files of a workspace.

        Returns the suites with unsaved changes whose file changed or disappeared. These suites keep their unsaved text.
        """
        first, self.workspace = not self.workspace.roots, workspace
        recordings = frozenset(run.planned.file.path for run in workspace.recorded)
        conflicts = self._open_files(workspace.files, recordings)
        self._notify("read", self.suites, first=first)
        return conflicts

    def read_one(self, file: SuiteFile) -> None:
        """Open or update one suite from its file."""
        files = (*self._files_besides(file.path), file)
        self.read(replace(self.workspace, files=files, roots=self._roots_with(file.path)))

    def _open_files(self, files: Iterable[SuiteFile], recordings: frozenset[Path]) -> tuple[OpenSuite, ...]:
        known = {suite.path: suite for suite in self.suites}
        suites: list[OpenSuite] = []
        conflicts: list[OpenSuite] = []
        for file in files:
            # An open suite stays the same object, because screens refer to it and to its undo history.
            suite = known.pop(file.path, None)
            if suite is None:
                suite = OpenSuite(file, is_recording=file.path in recordings)
            elif file.hash == suite.disk.hash and file.row_files:
                if file.problems != suite.disk.problems or file.standalone.hash != suite.disk.standalone.hash:
                    suite.rows_changed(file)
            elif file.hash == suite.disk.hash and file.problems == suite.disk.problems:
                pass
            elif not suite.dirty:
                suite.reloaded(file, None)
            elif file.hash or not suite.is_new:
                conflicts.append(suite)
            suites.append(suite)
        # A suite whose file is gone is closed, unless it has unsaved changes.
        left = []
        for suite in known.values():
            if suite.dirty:
                left.append(suite)
                if not suite.is_new:
                    conflicts.append(suite)
        self._open([*suites, *left], len(suites))
        return tuple(conflicts)

    def add(self, suite: OpenSuite) -> None:
        """Open a suite, which need not be on disk."""
        self.workspace = replace(self.workspace, roots=self._roots_with(suite.path))
        self._open([*self.suites, suite], len(self.suites))
        self._notify("added", (suite,))

    def close(self, suite: OpenSuite) -> None:
        """Close a suite whose file is no longer in the workspace."""
        self.suites = tuple(other for other in self.suites if other is not suite)
        self.read(replace(self.workspace, files=self._files_besides(suite.path)))

    def _files_besides(self, path: Path) -> tuple[SuiteFile, ...]:
        return tuple(file for file in self.workspace.files if file.path != path)

    def _roots_with(self, path: Path) -> tuple[Path, ...]:
        roots = self.workspace.roots
        if any(path.is_relative_to(root) for root in roots):
            return roots
        # The user's suites come before the samples.
        samples = bundled("sample_suites")
        return (*filter(samples.__ne__, roots), path, *filter(samples.__eq__, roots))

    def _open(self, suites: list[OpenSuite], placed: int) -> None:
        self.suites = tuple(_in_order(suites, placed))
        for suite in self.suites:
            suite.checked = self._checked

    def change(
        self,
        suite: OpenSuite,
        document: Document,
        summary: str,
        *,
        group: Hashable | None = None,
        case: str | None = None,
        index: int | None = None,
        by_keys: bool = False,
    ) -> bool:
        """Change the document of a suite, and return whether it changed. Every edit calls this method.

        `summary` describes the change. Consecutive changes of one `group` are one undo step. `case` is the key of the
        case that gets the cursor after an undo. `index` is the case that is edited in place (`HEAD`: the suite's
        settings). A filter does not hide this case in the tree. `by_keys` is whether the user typed the change into the
        form key by key."""
        refuse_if_read_only(f"editing {suite.path.name}")
        if not suite.change(document, summary, group, case, by_keys=by_keys):
            return False
        self._notify("edited", (suite,), index=index)
        return True

    def notify_undo(self, suite: OpenSuite, change: Change) -> None:
        """Notify the followers that a change of a suite was undone or redone."""
        self._notify("undone", (suite,), case=change.case)

    def disk_changed(self, suite: OpenSuite) -> None:
        """Notify the followers that the file of a suite was saved or read again."""
        files = list(self.workspace.files)
        paths = [file.path for file in files]
        if suite.path in paths:
            files[paths.index(suite.path)] = suite.disk
        else:
            files.append(suite.disk)
        self.workspace = replace(self.workspace, files=tuple(files))
        self._notify("edited", (suite,))

    def _notify(
        self,
        how: Literal["read", "added", "edited", "undone"],
        suites: Sequence[OpenSuite],
        *,
        first: bool = False,
        index: int | None = None,
        case: str | None = None,
    ) -> None:
        # `moved` is set again by the regrader, which is one of the followers.
        self.moved = ""
        change = SuitesChanged(how, tuple(suites), self.suites, self.workspace, first, index, case)
        for follower in self._followers:
            try:
                follower(change)
            except Exception as error:  # noqa: BLE001 (one follower's error must not keep the change from the others)
                self.on_error(error)


def _raise(error: Exception) -> None:
    raise error


def _in_order(suites: list[OpenSuite], placed: int) -> list[OpenSuite]:
    """Move each suite, except the first `placed` suites, directly after the last suite of the same folder."""
    ordered = suites[:placed]
    for suite in suites[placed:]:
        beside = [at for at, other in enumerate(ordered) if other.path.parent == suite.path.parent]
        # The suite gets the place that it will have in the tree after it is saved.
        ordered.insert(beside[-1] + 1 if beside else len(ordered), suite)
    return ordered


@dataclass(frozen=True, eq=False)
class LinkedMove:
    """Identifies a move of a case between two suites, which is a change of each of them."""

    source: OpenSuite
    target: OpenSuite


def link_move(source: OpenSuite, target: OpenSuite) -> None:
    """Mark the last changes of two suites as one move of a case, so that they are undone together."""
    move = LinkedMove(source, target)
    source.link_change(move)
    target.link_change(move)


SuiteChange = tuple[OpenSuite, Change]
"""A suite and its undone or redone change."""


def undo(suite: OpenSuite, open_suites: OpenSuites) -> list[SuiteChange] | str:
    """Undo the last change of a suite.

    A move of a case to another suite is undone in both suites, because otherwise the case would be in both or in
    neither. Returns the undone changes, or why nothing was undone. The suite that has the case afterwards comes
    last."""
    move = suite.last.linked_to if suite.last is not None else None
    if isinstance(move, LinkedMove) and open_suites.at(move.source.path) is move.source:
        if (
            _is(move, move.source.last)
            and _is(move, move.target.last)
            and open_suites.at(move.target.path) is move.target
        ):
            return _reported([*_undone(move.target), *_undone(move.source)], open_suites)
        if suite is move.target and move.source.has_linked_change(move):
            return f"{move.source.path.name}, which the case came from, has changed since: undo there first (Ctrl+Z)"
    return _reported(_undone(suite), open_suites)


def redo(suite: OpenSuite, open_suites: OpenSuites) -> list[SuiteChange] | str:
    """Redo the change of a suite that was undone last. Moves are handled as in `undo`."""
    move = suite.next.linked_to if suite.next is not None else None
    if isinstance(move, LinkedMove):
        is_open = open_suites.at(move.source.path) is move.source and open_suites.at(move.target.path) is move.target
        if is_open and _is(move, move.source.next) and _is(move, move.target.next):
            return _reported([*_redone(move.source), *_redone(move.target)], open_suites)
        if suite is move.source and not move.target.has_linked_change(move):
            return f"{move.target.path.name}, which the case went to, has changed since: press M to move it again"
    return _reported(_redone(suite), open_suites)


def _is(move: LinkedMove, change: Change | None) -> bool:
    return change is not None and change.linked_to is move


def _reported(changes: list[SuiteChange], open_suites: OpenSuites) -> list[SuiteChange]:
    for suite, change in changes:
        open_suites.notify_undo(suite, change)
    return changes


def _undone(suite: OpenSuite) -> list[SuiteChange]:
    change = suite.undo()
    if change is None:
        return []
    return [(suite, change)]


def _redone(suite: OpenSuite) -> list[SuiteChange]:
    change = suite.redo()
    if change is None:
        return []
    return [(suite, change)]
