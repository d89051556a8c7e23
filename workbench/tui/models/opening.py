"""Opens the dialog for choosing models, and from it the form for a new one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from workbench.config import presets
from workbench.config.program import Program
from workbench.evaluation.reachable import KnownEndpoint, known_endpoints, with_models
from workbench.tui.kit.stage import Stage, in_background
from workbench.tui.models.adder import ModelAdder
from workbench.tui.models.choices import ModelChoices, model_choices
from workbench.tui.models.dialog import ModelsScreen, ModelWays
from workbench.tui.models.form import AddModelScreen
from workbench.tui.models.state import ModelsState
from workbench.tui.tree.selection import Selection


class ModelsOpening:
    """Builds the dialog and the form. `is_bundled` tells whether a suite came with the program."""

    def __init__(
        self, stage: Stage, selection: Selection, program: Program, is_bundled: Callable[[Path], bool]
    ) -> None:
        self._stage = stage
        self._selection = selection
        self._program = program
        self._is_bundled = is_bundled
        self._endpoints, self._problems = known_endpoints(program, self._folders, presets.PRESETS)

    def screen(self) -> ModelsScreen:
        """Return the dialog. Files are read; endpoints are asked once it is shown."""
        state = ModelsState(self._choices(), self._selection.models, self._endpoints)
        return ModelsScreen(state, ModelWays(self._ask, self._add, self._choices))

    @property
    def _folders(self) -> list[Path]:
        """The folders of the suites, that of the selected one first."""
        selected = self._selection.suite
        files = [suite.path for suite in self._selection.open_suites.suites]
        first = [selected.path] if selected is not None else []
        return list(dict.fromkeys(path.parent for path in (*first, *files))) or [Path()]

    def _choices(self) -> ModelChoices:
        open_suites = self._selection.open_suites
        recorded = [run.planned.model for run in open_suites.workspace.recorded]
        files = [suite.file for suite in open_suites.suites]
        found = model_choices(self._program, files, self._selection.models, recorded)
        problems = dict.fromkeys((*found.problems, *self._problems))
        return ModelChoices(found.choices, tuple(problems))

    async def _ask(self, endpoint: KnownEndpoint) -> KnownEndpoint:
        return await in_background(lambda: asyncio.run(with_models(endpoint, self._program)))

    def _add(
        self,
        endpoints: Sequence[KnownEndpoint],
        endpoint: KnownEndpoint | None,
        model: str,
        added: Callable[[str | None], None],
    ) -> None:
        folder = self._folders[0]
        bundled = any(
            self._is_bundled(suite.path) for suite in self._selection.open_suites.suites if suite.path.parent == folder
        )
        adder = ModelAdder(self._program, folder, bundled=bundled)
        preset = endpoint.preset if endpoint is not None else None
        self._stage.show(AddModelScreen(endpoints, preset, model, adder), added)
