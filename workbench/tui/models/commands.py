"""Chooses the models to run on. The dialog, and what asks endpoints, are imported when it is first opened."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from workbench.config.program import Program
from workbench.evaluation.approval import Trust
from workbench.tui.kit.stage import Stage
from workbench.tui.tree.selection import Selection


class ModelCommands:
    """Chooses models."""

    def __init__(
        self,
        stage: Stage,
        selection: Selection,
        program: Program,
        trust: Trust,
        is_bundled: Callable[[Path], bool],
        remember: Callable[[], object],
    ) -> None:
        self._stage = stage
        self._selection = selection
        self._program = program
        self._trust = trust
        self._is_bundled = is_bundled
        self._remember = remember
        self.methods: dict[str, Callable[[], object]] = {
            "models": partial(self.choose_models, selection.show_again),
        }

    def choose_models(self, taken: Callable[[], object]) -> None:
        """Ask for the models to run on. `taken` is called if the selection changed."""
        from workbench.tui.models.opening import ModelsOpening

        def take(models: tuple[str, ...] | None) -> None:
            if models is not None:
                self._selection.models, self._selection.models_for_now = models, False
                self._selection.variants = screen.state.chosen_variants
                taken()
                self._remember()

        opening = ModelsOpening(self._stage, self._selection, self._program, self._trust, self._is_bundled)
        screen = opening.screen()
        self._stage.show(screen, take)
