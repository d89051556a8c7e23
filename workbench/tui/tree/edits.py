"""Changes the structure of suites in the tree: duplicate, rename, move, delete.

Each change is one undo step."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.case_list import (
    CaseListChange,
    free_name,
    free_path,
    index_of,
    moved_to_suite,
    tools_used,
    with_copy,
    with_moved,
    with_name,
    without,
)
from workbench.authoring.document import HEAD, CaseOutline
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import link_move
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.suite.suite_text import SpliceError
from workbench.tui.kit.actions import key_for
from workbench.tui.kit.dialogs import Option
from workbench.tui.kit.questions import NameScreen
from workbench.tui.tree.new_suites import DeleteScreen, NewSuites, WhichSuiteScreen
from workbench.tui.tree.rows import RowKey

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


_BACK = f"{key_for('edit.undo')} brings it back"


class SuiteChanger:
    """Duplicates, renames, moves and deletes cases and suites."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._selection = app.selection
        self._open_suites = app.open_suites

    # Cases

    def duplicate(self) -> None:
        row = self._selection.row
        if row is None or row.open is None:
            return
        suite = row.open
        if row.case is None:
            self._duplicate_suite(suite)
        else:
            index = row.case.index
            self._apply(suite, lambda: with_copy(suite, index))

    def rename(self) -> None:
        row = self._selection.row
        if row is None or row.open is None or not self._can_be_restructured(row.open):
            return
        suite, key = row.open, row.case_key
        if row.case is not None:
            # Renaming an unsaved case changes its id, but an active run of the case keeps the old id. Such a case is
            # not renamed.
            if not suite.is_saved(row.case.id) and not self._is_free(suite, row.case):
                return
            title, name, message = "Rename the case", row.case.name, "Its id does not change once it is saved."
        else:
            named = suite.document.table(HEAD).get("name")
            name = named if isinstance(named, str) else ""
            title, message = "Rename the suite", f"The name of the suite; its file stays {suite.path.name}."

        def on_answer(new_name: str | None) -> None:
            if new_name is not None and new_name != name:
                self._apply(suite, lambda: with_name(suite, index_of(suite, key), new_name))

        self._app.show(NameScreen(title, name, message, lambda text: None), on_answer)

    def move(self, step: int) -> None:
        """Move the case down (1) or up (-1)."""
        row, to = self._selection.row, self._selection.tree.neighbour(step)
        if row is not None and row.open is not None and row.case is not None and to is not None:
            suite, index = row.open, row.case.index
            self._apply(suite, lambda: with_moved(suite, index, to))

    def move_over(self) -> None:
        row = self._selection.row
        if row is None or row.open is None or row.case is None:
            return
        source, key = row.open, row.case.key
        if not self._is_free(source, row.case):
            return
        others = (suite for suite in self._open_suites.suites if suite is not source)
        targets = [suite for suite in others if suite.why_not_editable is None]
        options: list[Option] = []
        for suite in targets:
            about = f"{counted(len(suite.cases), 'case')}  "
            if suite.path.parent != source.path.parent:
                about += one_line(str(suite.path.parent))
            options.append(Option(one_line(suite.path.name), about))

        def on_answer(which: int | None) -> None:
            if which is not None:
                self._move_case(source, key, targets[which])

        self._app.show(WhichSuiteScreen(options), on_answer)

    def _move_case(self, source: OpenSuite, key: str, target: OpenSuite) -> None:
        try:
            for suite in (source, target):
                self._check_open(suite)
            index = index_of(source, key)
            left, arrived = moved_to_suite(source, index, target)
        except SpliceError as error:
            self._refuse(error)
            return
        used = tools_used(source.document.table(index))
        name = source.cases[index].name
        self._open_suites.change(source, left.document, left.summary, case=left.cursor_key)
        self._open_suites.change(target, arrived.document, arrived.summary, case=arrived.case)
        # One undo step must cover both suites. Undo in only one of them would lose or duplicate the case.
        link_move(source, target)
        self._selection.select(target.path, arrived.case)
        text = f"Moved {name} to {target.path.name}; {key_for('edit.undo')} undoes it"
        lacking = self._missing_tools(target, used)
        if lacking:
            self._app.announce(f"{text}. No tool there is called {', '.join(lacking)}", "warned", GLYPHS.warned)
        else:
            self._app.announce(text)

    def _missing_tools(self, target: OpenSuite, used: tuple[str, ...]) -> list[str]:
        header = target.document.table(HEAD)
        known = {tool.name for tool in self._app.main.known_tools.of(header, target.path)}
        # A server whose tools are not known yet may offer any tool.
        if "servers" in header and not known:
            return []
        return [name for name in used if name not in known]

    def delete(self) -> None:
        row = self._selection.row
        if row is None or row.open is None:
            return
        suite = row.open
        if row.case is None:
            self._app.work(self._delete_suite(suite), group="ask")
        elif self._is_free(suite, row.case) and self._can_be_restructured(suite):
            self._app.work(self._delete_case(suite, row.case), group="ask")

    async def _delete_case(self, suite: OpenSuite, case: CaseOutline) -> None:
        # The case may have been moved, renamed or started while the question was open.
        question = DeleteScreen(f"Delete the case {one_line(case.name)}?", (), ("Ctrl+Z brings it back", ""))
        if await self._app.ask(question) != "delete" or not self._is_free(suite, case):
            return
        if self._apply(suite, lambda: without(suite, index_of(suite, case.key))):
            self._app.announce(f"Deleted {case.name}; {_BACK}")

    # Suites

    def _duplicate_suite(self, suite: OpenSuite) -> None:
        document = suite.document
        name = document.table(HEAD).get("name") if document.is_sound else None
        if isinstance(name, str):
            names = []
            for other in self._open_suites.suites:
                if other.file.suite is not None:
                    names.append(other.file.suite.name)
            try:
                document = document.with_header("name", free_name(name, names))
            except SpliceError as error:
                self._refuse(error)
                return
        folder = suite.path.parent
        # The samples are part of the installed program, so their copies go to the working directory.
        if self._app.services.is_bundled(suite.path):
            folder = Path()
        path = free_path(folder / suite.path.name, (other.path for other in self._open_suites.suites))
        folded = RowKey("suite", suite.path) in self._selection.tree.folded
        self._app.part(NewSuites).add(suite.copied(path, document), folded=folded)
        self._app.announce(f"Duplicated as {path.name}; {key_for('save')} saves it")

    async def _delete_suite(self, suite: OpenSuite) -> None:
        path = suite.path
        if self._app.services.is_bundled(path):
            self._announce_refusal(
                f"{path.name} came with the program and cannot be deleted; "
                f"{key_for('tree.duplicate')} makes your own copy"
            )
            return
        if any(run.path == path for run in self._selection.book.active_runs()):
            self._announce_refusal(f"Cases of {path.name} are running: {key_for('run.stop_all')} stops them")
            return
        parts = [str(path), counted(len(suite.cases), "case")]
        if suite.dirty:
            parts.append("Unsaved changes are kept with it.")
        title, how = f"Delete the suite {one_line(path.name)}?", "move the file to the program's own folder"
        if await self._app.ask(DeleteScreen(title, parts, (how, "move the file"))) != "delete":
            return
        text = None
        if suite.dirty:
            text = suite.document.text
        try:
            moved_to = await asyncio.to_thread(_move_away, path, text, self._app.program.folders.deleted)
        except OSError as error:
            self._announce_refusal(f"{path.name} was not deleted: {error.strerror or error}")
            return
        self._app.services.drafting.forget(suite)
        self._open_suites.close(suite)
        self._app.announce(f"Deleted {path.name}; it is kept as {' and '.join(map(str, moved_to))}")

    # Helpers

    def _apply(self, suite: OpenSuite, change: Callable[[], CaseListChange]) -> bool:
        try:
            self._check_open(suite)
            changed = change()
        except SpliceError as error:
            self._refuse(error)
            return False
        self._open_suites.change(suite, changed.document, changed.summary, case=changed.cursor_key)
        self._selection.select(suite.path, changed.case)
        return True

    def _check_open(self, suite: OpenSuite) -> None:
        """Check that a suite is still open after a dialog.

        Raises SpliceError if the suite was closed."""
        if self._open_suites.at(suite.path) is not suite:
            raise SpliceError(f"{suite.path.name} is no longer open")

    def _can_be_restructured(self, suite: OpenSuite) -> bool:
        if suite.document.parts is None:
            self._announce_refusal(f"{suite.path.name} is not TOML: correct its text first")
        return suite.document.parts is not None

    def _is_free(self, suite: OpenSuite, case: CaseOutline) -> bool:
        # The user reaches a run through its case. Without the case, the run could not be watched or stopped.
        is_free = not self._selection.book.active_runs((suite.path, case.id))
        if not is_free:
            self._announce_refusal(f"{case.name} is running: {key_for('run.stop')} stops it")
        return is_free

    def _refuse(self, error: SpliceError) -> None:
        self._announce_refusal(f"Nothing was changed: {error}")

    def _announce_refusal(self, why: str) -> None:
        self._app.announce(why, "warned", GLYPHS.warned)


def _move_away(path: Path, unsaved: str | None, folder: Path) -> list[Path]:
    """Move a suite's file into a folder, and write unsaved text beside it.

    Returns both paths. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    paths: list[Path] = []
    if unsaved is not None:
        name = f"{path.stem}-unsaved{path.suffix}" if path.exists() else path.name
        paths.append(free_path(folder / name, ()))
        # The arguments preserve line ends and invalid characters.
        paths[-1].write_text(unsaved, encoding="utf-8", errors="surrogatepass", newline="")
    # A symbolic link to a missing file must be moved too, but `exists` is false for it.
    if path.exists() or path.is_symlink():
        paths.insert(0, free_path(folder / path.name, ()))
        shutil.move(path, paths[0])
    return paths
