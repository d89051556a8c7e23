"""The start of the app: reads suites, draws the first frame, and restores the position of the last session."""

from __future__ import annotations

import gc
from collections.abc import Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from workbench.authoring.workspace import Workspace, open_workspace, paths_of_new_suites
from workbench.config.model_book import ModelBook
from workbench.config.models import ConfigError
from workbench.numerals import counted
from workbench.providers.built_in import is_built_in
from workbench.suite.project import Search
from workbench.suite.variants import NO_VARIANTS, Variants
from workbench.tui.breakpoints.project import Breakpoints
from workbench.tui.kit.actions import unless_read_only
from workbench.tui.kit.memory import EMPTY_MEMORY, Memory, MemoryContent, ProjectPosition, project_of
from workbench.tui.kit.stage import in_background
from workbench.tui.tree.state import RowKey, RowKind

if TYPE_CHECKING:
    from workbench.evaluation.options import AppStart
    from workbench.tui.comparison.screen import StartComparison
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


MAX_FOLDED = 1_000
"""The maximum number of stored folds."""

_FOLDABLE: dict[str, RowKind] = {"folder": "folder", "suite": "suite"}


def last_models(memory: Memory, workspace: Workspace, book: ModelBook) -> tuple[str, ...]:
    """Return the models last chosen in this project if all of them still exist, otherwise none.

    Reads the memory and the models' files, so call it in a thread."""
    place = memory.read().projects.get(project_of(workspace))
    folders = {file.path.parent for file in workspace.files} or {Path()}
    if place is None or not all(_exists(book, model, folders) for model in place.models):
        return ()
    return place.models


def last_variants(memory: Memory, workspace: Workspace) -> Variants:
    """Return the last chosen variants of this project that still exist in a suite."""
    place = memory.read().projects.get(project_of(workspace), ProjectPosition())
    if not place.variants:
        return NO_VARIANTS
    suites = [file.suite for file in workspace.files if file.suite is not None]
    known = {variant.name for suite in suites for variant in suite.variants}
    return Variants(frozenset(known.intersection(place.variants)))


def _exists(book: ModelBook, model: str, folders: Collection[Path]) -> bool:
    if is_built_in(model):
        return True
    for folder in folders:
        with suppress(ConfigError):
            book.resolve(model, folder, by_suite=False)
            return True
    return False


def restore_position(content: MemoryContent, main: MainScreen) -> None:
    """Restore the layout and the last position in the project, as far as suites and cases still exist."""
    if content.view is not None:
        main.case_pane.view = content.view
    main.right = content.right or main.right
    main.zoomed = content.zoomed
    main.moved_borders = dict(content.borders)
    place = content.projects.get(project_of(main.selection.open_suites.workspace))
    if place is not None:
        folded = (RowKey(_FOLDABLE[kind], Path(path)) for kind, path in place.folded if kind in _FOLDABLE)
        main.selection.tree.fold_only(folded)
        for suite in main.selection.tree.suites:
            if str(suite.path) == place.suite:
                is_there = place.case in {case.key for case in (*suite.cases, *suite.run_cases)}
                main.selection.tree.select(suite.path, place.case if is_there else None)
                break
    main.place_panes()
    main.suite_tree.move_cursor(main.selection.tree.cursor)
    main.show_selected()


def current_position(content: MemoryContent, main: MainScreen) -> MemoryContent:
    """Return `content` with the current layout and position: the selected case, folds, models and variants."""
    selection, project = main.selection, project_of(main.selection.open_suites.workspace)
    models = selection.models
    # Models of the command line are not remembered for the project.
    if selection.models_for_now:
        models = content.projects.get(project, ProjectPosition()).models
    variants = tuple(sorted(selection.variants.names))
    if selection.variants_for_now:
        variants = content.projects.get(project, ProjectPosition()).variants
    folded = sorted((key.kind, str(key.path)) for key in selection.tree.folded)
    place = ProjectPosition(folded=tuple(folded[:MAX_FOLDED]), models=models, variants=variants)
    line = main.saved_request_line
    if line is None:
        # The line was not opened in this session, so the stored line is kept.
        line = content.projects.get(project, ProjectPosition()).line
    place = replace(place, line=line)
    if selection.suite is not None:
        place = replace(place, suite=str(selection.suite.path))
    if selection.outline is not None:
        place = replace(place, case=selection.outline.key)
    layout = replace(
        content,
        view=main.case_pane.view,
        right=main.right if main.right != "suites" else content.right,
        zoomed=main.zoomed,
        borders=MappingProxyType(dict(main.moved_borders)),
    )
    return layout.with_position(project, place)


FIRST_PAINT_S = 0.25
"""The maximum wait for the suites, in seconds, before the first frame."""

PRELOAD_DELAY_S = 2.0
"""The time in seconds from the first frame until modules of the first keys are imported."""

PRELOADED_MODULES = (
    "workbench.tui.kit.help",
    "workbench.evaluation.runtime",
    "workbench.tui.runs.start",
    "workbench.tui.trajectory.run_lines",
)
"""The modules that `?` and the first run import, which takes an eighth of a second."""


class StartUp:
    """Starts the app with the suites at `paths`.

    `start` selects cases to run at once. `shown_batch` is the number of a batch in another process to observe.
    `problems` were found in the user's configuration files."""

    # Nothing is drawn until the suites are read or FIRST_PAINT_S has passed. Otherwise Textual would draw three or four
    # whole frames at the start.

    def __init__(
        self,
        app: Workbench,
        paths: Sequence[Path],
        *,
        start: AppStart | None,
        shown_batch: int | None,
        problems: Sequence[str],
    ) -> None:
        self._app = app
        self._paths = tuple(paths)
        self._begin = start
        self._shown_batch = shown_batch
        self._problems = tuple(problems)
        self._new: tuple[Path, ...] = ()
        """The given paths that do not exist yet. Suites will be created there."""
        self._held_back = ExitStack()
        self.has_ended = False
        """Whether the first frame was drawn."""
        self.compared: StartComparison | None = None
        """The comparison that starts with the app, if any."""

    def pause_drawing(self) -> None:
        """Draw nothing until `show_first`."""
        self._held_back.enter_context(self._app.batch_update())

    def begin(self) -> None:
        """Begin to read the suites in the background."""
        self._app.work(self._open(), "open")
        self._app.set_timer(FIRST_PAINT_S, self.show_first)

    def show_first(self) -> None:
        """Draw the first frame."""
        self._held_back.close()
        self.has_ended = True
        main = self._app.main
        main.check_idle()
        main.call_after_refresh(self._app.services.history_reader.begin)
        # An app without a terminal is driven by a script, for which preloading saves no time.
        if not self._app.is_headless:
            # Modules, suites and widgets live until the process ends, so the garbage collector can skip them.
            gc.freeze()
            self._app.set_timer(PRELOAD_DELAY_S, self._preload_modules)
        gc.enable()

    def _preload_modules(self) -> None:
        # A thread does this, so that keys are handled between two imports.
        self._app.work(in_background(lambda: [import_module(name) for name in PRELOADED_MODULES]), "loading")

    async def _open(self) -> None:
        search = Search()
        found = await self._app.services.searches.run(search, partial(self._found, search))
        workspace, models, breakpoints, problem = found
        if problem is not None:
            self._problems += (problem,)
        # `call_later` runs after the screen's own messages. By then, the screen is mounted.
        self._app.main.call_later(self._opened, search, workspace, models, breakpoints)

    def _found(self, search: Search) -> tuple[Workspace, tuple[str, ...], Breakpoints, str | None]:
        app, services = self._app, self._app.services
        selection, models = services.selection, services.program.models
        if self._begin is None:
            self._new = paths_of_new_suites(self._paths)
        workspace = open_workspace(self._paths, models, search)
        if self._new:
            workspace = replace(workspace, files=tuple(f for f in workspace.files if f.path not in self._new))
        chosen = selection.models
        if not selection.models_for_now:
            chosen = last_models(app.memory, workspace, models)
        return (workspace, chosen, *services.breakpoints.find(workspace.roots[0]))

    def _opened(self, search: Search, workspace: Workspace, models: tuple[str, ...], breakpoints: Breakpoints) -> None:
        app, services = self._app, self._app.services
        services.selection.models = models
        if self._begin is not None:
            services.selection.variants = self._begin.options.all_variants
            services.selection.variants_for_now = True
        else:
            services.selection.variants = last_variants(app.memory, workspace)
        services.breakpoints.replace_all(breakpoints)
        services.open_suites.read(workspace)
        services.watch.begin()
        # If nothing is remembered, the screens keep their defaults, which saves a second layout.
        if (remembered := app.memory.read()) != EMPTY_MEMORY:
            restore_position(remembered, app.main)
        app.call_after_refresh(self.show_first)
        problems = [*self._problems, *app.appearance.problems_at_start]
        if problems:
            app.announce_problems(problems)
        elif (notice := _notice(search, workspace)) is not None:
            app.main.announce(notice)
        if self._new:
            from workbench.tui.tree.new_suites import NewSuites

            for path in self._new:
                app.part(NewSuites).make(path)
        app.work(self._begin_runs(), "ask")

    async def _begin_runs(self) -> None:
        app, services = self._app, self._app.services
        await services.drafting.recover()
        if self._shown_batch is not None:
            from workbench.tui.history.stored_screens import observe_batch

            observe_batch(app, self._shown_batch)
        if self._begin is None:
            return
        if self._begin.opens == "compare":
            from workbench.tui.comparison.screen import StartComparison

            self.compared = StartComparison(app, self._begin)
            self.compared.open()
        await services.starter.begin(self._begin)


def _notice(search: Search, workspace: Workspace) -> str | None:
    if workspace.samples:
        why = "Search stopped before any suite" if search.is_stopped else "No suites here"
        if search.skipped:
            why += f" ({counted(len(search.skipped), 'folder')} of installed packages not searched)"
        keys = unless_read_only(". r runs the case, N makes a suite")
        return f"{why}: these are the samples{keys}"
    if search.is_stopped:
        return f"Search stopped: {counted(len(workspace.files), 'suite')} found until then"
    return search.skipped_message
