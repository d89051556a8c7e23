"""Chooses the models to run on, and adds new ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
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


class ModelCommands:
    """Chooses models."""

    def __init__(
        self,
        stage: Stage,
        selection: Selection,
        program: Program,
        is_bundled: Callable[[Path], bool],
        remember: Callable[[], object],
    ) -> None:
        self._stage = stage
        self._selection = selection
        self._program = program
        self._is_bundled = is_bundled
        self._remember = remember
        self.methods: dict[str, Callable[[], object]] = {
            "models": partial(self.choose_models, selection.show_again),
        }

    def choose_models(self, taken: Callable[[], object]) -> None:
        """Ask for the models to run on. `taken` is called if the selection changed. No endpoint is asked before."""
        selection = self._selection
        endpoints, problems = known_endpoints(self._program, self._folders, presets.PRESETS)
        choices = self._choices()
        told = [problem for problem in problems if problem not in choices.problems]
        state = ModelsState(ModelChoices(choices.choices, (*choices.problems, *told)), selection.models, endpoints)

        def take(models: tuple[str, ...] | None) -> None:
            if models is not None:
                selection.models, selection.models_for_now = models, False
                taken()
                self._remember()

        self._stage.show(ModelsScreen(state, ModelWays(self._ask, self._add, self._choices)), take)

    @property
    def _folders(self) -> list[Path]:
        files = (suite.file for suite in self._selection.open_suites.suites)
        return list(dict.fromkeys(file.path.parent for file in files)) or [Path()]

    def _choices(self) -> ModelChoices:
        open_suites = self._selection.open_suites
        recorded = [run.planned.model for run in open_suites.workspace.recorded]
        files = [suite.file for suite in open_suites.suites]
        return model_choices(self._program, files, self._selection.models, recorded)

    async def _ask(self, endpoint: KnownEndpoint) -> KnownEndpoint:
        return await in_background(lambda: asyncio.run(with_models(endpoint, self._program)))

    def _add(
        self,
        endpoints: Sequence[KnownEndpoint],
        endpoint: KnownEndpoint | None,
        model: str,
        added: Callable[[str | None], None],
    ) -> None:
        first = next(iter(self._selection.open_suites.suites), None)
        adder = ModelAdder(self._program, self._folders[0], bundled=first is not None and self._is_bundled(first.path))
        preset = endpoint.preset if endpoint is not None else None
        self._stage.show(AddModelScreen(endpoints, preset, model, adder), added)
