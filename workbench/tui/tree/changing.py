"""The structure of suites, changed from the tree: new, duplicate, rename, move, delete. Each is one step of undo."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.case_list import (
    Restructured,
    free_name,
    free_path,
    index_behind,
    index_of,
    moved_over,
    named_path,
    suite_name,
    tools_used,
    with_copy,
    with_moved,
    with_name,
    with_new_case,
    without,
)
from workbench.authoring.document import HEAD, CaseOutline
from workbench.authoring.form.templates import new_case, new_suite
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.undo import tie
from workbench.reports.values import counted
from workbench.reports.visible import one_line
from workbench.suite.disk import resolved
from workbench.suite.splice import SpliceError
from workbench.tui.kit.dialogs import Option
from workbench.tui.kit.naming import NameScreen
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.tree.dialogs import DeleteSuiteScreen, NewCase, NewCaseScreen, WhichSuiteScreen

if TYPE_CHECKING:
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


_BACK = "Ctrl+Z brings it back"


class StructureCommands:
    """The methods of `actions.tree` that change suites."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "tree.new": self._new,
            "tree.new_suite": self._new_suite,
            "tree.duplicate": self._duplicate,
            "tree.rename": self._rename,
            "tree.up": lambda screen: self._move(screen, -1),
            "tree.down": lambda screen: self._move(screen, 1),
            "tree.move": self._move_over,
            "tree.delete": self._delete,
        }

    # Cases

    def _new(self, screen: MainScreen) -> None:
        row = screen.suites.selected
        if row is None or row.open is None:
            self._new_suite(screen)
            return
        suite, before = row.open, row.case.key if row.case is not None else None
        if not self._can_be_restructured(screen, suite):
            return

        def make(wanted: NewCase | None) -> None:
            if wanted is not None and self._can_be_restructured(screen, suite):
                tools = screen.known_tools.of(suite.document.table(HEAD), suite.path)
                case = new_case(wanted.kind, wanted.name, tools)
                if self._take(screen, suite, lambda: with_new_case(suite, index_behind(suite, before), case)):
                    screen.announce(f"New case {wanted.name}: e edits it, r runs it, Ctrl+S saves the suite")

        self._app.push_screen(NewCaseScreen(suite.path.name, lambda name: None), make)

    def _duplicate(self, screen: MainScreen) -> None:
        row = screen.suites.selected
        if row is None or row.open is None:
            return
        suite = row.open
        if row.case is None:
            self._duplicate_suite(screen, suite)
        else:
            index = row.case.index
            self._take(screen, suite, lambda: with_copy(suite, index))

    def _rename(self, screen: MainScreen) -> None:
        row = screen.suites.selected
        if row is None or row.open is None or not self._can_be_restructured(screen, row.open):
            return
        suite, key = row.open, row.case.key if row.case is not None else None
        if row.case is not None:
            if not suite.is_saved(row.case.id) and not self._is_free(screen, suite, row.case):
                return  # its id would follow its name
            title, name, said = "Rename the case", row.case.name, "Its id stays, once it was saved."
        else:
            named = suite.document.table(HEAD).get("name")
            name = named if isinstance(named, str) else ""
            title, said = "Rename the suite", f"What the suite is called; its file stays {suite.path.name}."

        def take(wanted: str | None) -> None:
            if wanted is not None and wanted != name:
                self._take(screen, suite, lambda: with_name(suite, index_of(suite, key), wanted))

        self._app.push_screen(NameScreen(title, name, said, lambda text: None), take)

    def _move(self, screen: MainScreen, step: int) -> None:
        row, to = screen.suites.selected, screen.suites.neighbour(step)
        if row is not None and row.open is not None and row.case is not None and to is not None:
            suite, index = row.open, row.case.index
            self._take(screen, suite, lambda: with_moved(suite, index, to))

    def _move_over(self, screen: MainScreen) -> None:
        row = screen.suites.selected
        if row is None or row.open is None or row.case is None:
            return
        source, key = row.open, row.case.key
        if not self._is_free(screen, source, row.case):
            return
        targets = [suite for suite in screen.desk.suites if suite is not source and suite.why_not_editable is None]
        options = [
            Option(
                one_line(suite.path.name), f"{counted(len(suite.cases), 'case')}  {one_line(str(suite.path.parent))}"
            )
            for suite in targets
        ]

        def take(which: int | None) -> None:
            if which is not None:
                self._take_over(screen, source, key, targets[which])

        self._app.push_screen(WhichSuiteScreen(options), take)

    def _take_over(self, screen: MainScreen, source: OpenSuite, key: str, target: OpenSuite) -> None:
        try:
            for suite in (source, target):
                _check_open(screen, suite)
            index = index_of(source, key)
            left, arrived = moved_over(source, index, target)
        except SpliceError as error:
            self._refuse(screen, error)
            return
        used = tools_used(source.document.table(index))
        name = source.cases[index].name
        screen.open_suites.change(source, left.document, left.said, case=left.about)
        screen.open_suites.change(target, arrived.document, arrived.said, case=arrived.case)
        tie(source, target)
        screen.selection.select(target.path, arrived.case)
        said = f"Moved {name} to {target.path.name}; Ctrl+Z takes it back"
        lacking = self._lacking(screen, target, used)
        if lacking:
            screen.announce(f"{said}. No tool there is called {', '.join(lacking)}", "warned", GLYPHS.warned)
        else:
            screen.announce(said)

    def _lacking(self, screen: MainScreen, target: OpenSuite, used: tuple[str, ...]) -> list[str]:
        """Tools that a suite surely has not: nothing is known of those of a server that never listed them."""
        header = target.document.table(HEAD)
        known = {tool.name for tool in screen.known_tools.of(header, target.path)}
        return [] if "servers" in header and not known else [name for name in used if name not in known]

    def _delete(self, screen: MainScreen) -> None:
        row = screen.suites.selected
        if row is None or row.open is None:
            return
        suite = row.open
        if row.case is None:
            self._app.run_worker(self._delete_suite(screen, suite), group="ask")
        else:
            index, name = row.case.index, row.case.name
            if self._is_free(screen, suite, row.case) and self._take(screen, suite, lambda: without(suite, index)):
                screen.announce(f"Deleted {name}; {_BACK}")

    # Suites

    def _new_suite(self, screen: MainScreen) -> None:
        folder = self._folder(screen)
        where = f"The file, in {resolved(folder)}:"

        def named(text: str) -> Path | str:
            return named_path(folder, text, lambda path: self._why_not_new(screen, folder, path))

        def refusal(text: str) -> str | None:
            path = named(text)
            return path if isinstance(path, str) else None

        def take(text: str | None) -> None:
            path = named(text) if text is not None else None
            if isinstance(path, Path):
                self._make_suite(screen, path)

        self._app.push_screen(NameScreen("New suite", "", where, refusal), take)

    def _make_suite(self, screen: MainScreen, path: Path) -> None:
        self._add(screen, OpenSuite.new(path, new_suite(suite_name(path))))
        screen.announce(f"New suite {path.name}: n makes its first case, Ctrl+S saves it")

    def _duplicate_suite(self, screen: MainScreen, suite: OpenSuite) -> None:
        document = suite.document
        name = document.table(HEAD).get("name") if document.is_sound else None
        if isinstance(name, str):
            names = [other.file.suite.name for other in screen.desk.suites if other.file.suite is not None]
            try:
                document = document.with_header("name", free_name(name, names))
            except SpliceError as error:
                self._refuse(screen, error)
                return
        folder = Path() if self._app.starter.is_bundled(suite.path) else suite.path.parent
        path = free_path(folder / suite.path.name, (other.path for other in screen.desk.suites))
        self._add(screen, OpenSuite.new(path, document.text))
        screen.announce(f"Duplicated as {path.name}; Ctrl+S saves it")

    def _add(self, screen: MainScreen, suite: OpenSuite) -> None:
        screen.open_suites.add(suite)
        screen.selection.select(suite.path)
        screen.go_to("suites")

    async def _delete_suite(self, screen: MainScreen, suite: OpenSuite) -> None:
        path = suite.path
        if self._app.starter.is_bundled(path):
            self._say_no(screen, f"{path.name} came with the program and stays; d makes a copy of your own")
            return
        if any(run.path == path for run in screen.book.under_way()):
            self._say_no(screen, f"Cases of {path.name} are running: X stops them")
            return
        said = [str(path), counted(len(suite.cases), "case")]
        if suite.dirty:
            said.append("What was changed here and is not saved is kept with it.")
        if await self._app.push_screen_wait(DeleteSuiteScreen(said)) != "delete":
            return
        folder = self._app.program.folders.deleted
        text = suite.document.text if suite.dirty else None
        try:
            kept = await asyncio.to_thread(_put_away, path, text, folder)
        except OSError as error:
            self._say_no(screen, f"{path.name} was not deleted: {error.strerror or error}")
            return
        self._app.drafting.forget(suite)
        screen.open_suites.close(suite)
        screen.announce(f"Deleted {path.name}; it is kept as {' and '.join(map(str, kept))}")

    def _why_not_new(self, screen: MainScreen, folder: Path, path: Path) -> str | None:
        if path.suffix != ".toml":
            return "a suite is a TOML file: its name ends with .toml, or with nothing"
        if screen.desk.at(path) is not None or path.exists():
            return f"{path.name} is there already"
        if not path.is_relative_to(folder) or ".." in path.relative_to(folder).parts:
            return f"a new suite stands in {resolved(folder)}, or in a folder below it"
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            return "hidden files and folders are not looked into: leave out the dot at the beginning"
        return None

    def _folder(self, screen: MainScreen) -> Path:
        """Where a new suite goes: the folder under the cursor, or that of the suite there."""
        row = screen.suites.selected
        roots = screen.workspace.roots
        if row is not None:
            folder = row.key.path if row.key.kind == "folder" else row.key.path.parent
        else:
            folder = next((root for root in roots if root.is_dir()), Path())
        return Path() if self._app.starter.is_bundled(folder / "suite.toml") else folder

    # What all have in common

    def _take(self, screen: MainScreen, suite: OpenSuite, change: Callable[[], Restructured]) -> bool:
        """Make a change, with the cursor on what it led to; what keeps it from being made is said."""
        try:
            _check_open(screen, suite)
            changed = change()
        except SpliceError as error:
            self._refuse(screen, error)
            return False
        screen.open_suites.change(suite, changed.document, changed.said, case=changed.about)
        screen.selection.select(suite.path, changed.case)
        return True

    def _can_be_restructured(self, screen: MainScreen, suite: OpenSuite) -> bool:
        """Whether there is any use in asking for more."""
        if suite.document.parts is None:
            self._say_no(screen, f"{suite.path.name} is not TOML: mend its text first")
        return suite.document.parts is not None

    def _is_free(self, screen: MainScreen, suite: OpenSuite, case: CaseOutline) -> bool:
        """Whether no run of a case is under way: one that is could not be reached any more without its case."""
        is_free = not screen.book.under_way((suite.path, case.id))
        if not is_free:
            self._say_no(screen, f"{case.name} is running: x stops it")
        return is_free

    def _refuse(self, screen: MainScreen, error: SpliceError) -> None:
        self._say_no(screen, f"Nothing was changed: {error}")

    def _say_no(self, screen: MainScreen, why: str) -> None:
        screen.announce(why, "warned", GLYPHS.warned)


def _check_open(screen: MainScreen, suite: OpenSuite) -> None:
    """Raises SpliceError for a suite that was closed while something was asked about it."""
    if screen.desk.at(suite.path) is not suite:
        raise SpliceError(f"{suite.path.name} is no longer there")


def _put_away(path: Path, unsaved: str | None, folder: Path) -> list[Path]:
    """Move a suite's file into a folder, and write what was not saved beside it; where they are. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    kept: list[Path] = []
    if unsaved is not None:
        name = f"{path.stem}-unsaved{path.suffix}" if path.exists() else path.name
        kept.append(free_path(folder / name, ()))
        kept[-1].write_text(unsaved, encoding="utf-8", errors="surrogatepass", newline="")
    if path.exists() or path.is_symlink():
        kept.insert(0, free_path(folder / path.name, ()))
        shutil.move(path, kept[0])
    return kept
