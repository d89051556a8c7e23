"""Restores the last position: converts between the screen and what is remembered."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from workbench.authoring.workspace import Workspace
from workbench.config.model_book import ModelBook
from workbench.config.models import ConfigError
from workbench.providers.built_in import is_built_in
from workbench.suite.files import resolved
from workbench.tui.kit.memory import Memory, Place, Remembered
from workbench.tui.tree.state import RowKey, RowKind

if TYPE_CHECKING:
    from workbench.tui.shell.main_screen import MainScreen


MAX_FOLDED = 1_000
"""The maximum number of folded branches that are stored."""

_FOLDABLE: dict[str, RowKind] = {"folder": "folder", "suite": "suite"}


def project_of(workspace: Workspace) -> str:
    """Return the key of a project: the opened paths."""
    return os.pathsep.join(str(resolved(root)) for root in workspace.roots)


def last_models(memory: Memory, workspace: Workspace, book: ModelBook) -> tuple[str, ...]:
    """Return the models last chosen in this project, none unless all of them still exist. Reads files."""
    place = memory.read().projects.get(project_of(workspace))
    folders = {file.path.parent for file in workspace.files} or {Path()}
    chosen = place.models if place is not None else ()
    return chosen if all(any(_exists(book, model, folder) for folder in folders) for model in chosen) else ()


def _exists(book: ModelBook, model: str, folder: Path) -> bool:
    if is_built_in(model):
        return True
    try:
        book.resolve(model, folder, by_suite=False)
    except ConfigError:
        return False
    return True


def restore_position(remembered: Remembered, main: MainScreen) -> None:
    """Restore the last position in a project, as far as it still exists."""
    if remembered.view is not None:
        main.case_pane.view = remembered.view
    main.right = remembered.right or main.right
    main.zoomed = remembered.zoomed
    main.moved_borders = dict(remembered.borders)
    place = remembered.projects.get(project_of(main.selection.open_suites.workspace))
    if place is not None:
        folded = (RowKey(_FOLDABLE[kind], Path(path)) for kind, path in place.folded if kind in _FOLDABLE)
        main.selection.tree.fold_only(folded)
        suite = next((suite for suite in main.selection.tree.suites if str(suite.path) == place.suite), None)
        if suite is not None:
            main.selection.tree.select(
                suite.path, place.case if place.case in {case.key for case in suite.cases} else None
            )
    main.place_panes()
    main.suite_tree.move_cursor(main.selection.tree.cursor)
    main.show_selected()


def current_position(remembered: Remembered, main: MainScreen) -> Remembered:
    """Return what to remember of the present screen."""
    project, row = project_of(main.selection.open_suites.workspace), main.selection.row
    before = remembered.projects.get(project, Place())
    place = Place(
        suite=str(row.open.path) if row is not None and row.open is not None else "",
        case=row.case.key if row is not None and row.case is not None else None,
        folded=tuple(sorted((key.kind, str(key.path)) for key in main.selection.tree.folded))[:MAX_FOLDED],
        models=before.models if main.selection.models_for_now else main.selection.models,
    )
    looks = replace(
        remembered,
        view=main.case_pane.view,
        right=main.right if main.right != "suites" else remembered.right,
        zoomed=main.zoomed,
        borders=MappingProxyType(dict(main.moved_borders)),
    )
    return looks.with_place(project, place)
