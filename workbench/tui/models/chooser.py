"""Opens the dialog that chooses models. The form of a model and its probes are opened from there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.open_suite import OpenSuite
from workbench.config import models as presets
from workbench.config.models import ConfigError, ModelSpec
from workbench.evaluation.model_list import (
    KnownEndpoint,
    check_refusal,
    endpoint_with_models,
    known_endpoints,
)
from workbench.evaluation.typed_model import (
    named_model,
)
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import model_label, one_line
from workbench.suite.settings import models_of
from workbench.tui.kit.stage import in_background
from workbench.tui.models.choices import ModelChoices, model_choices
from workbench.tui.models.dialog import ModelFunctions, ModelsScreen, ModelsState
from workbench.tui.models.form import Added, AddModelScreen, ModelAdder
from workbench.tui.models.probes import Prober, ProbesScreen

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


def variants_of(suites: Sequence[OpenSuite]) -> dict[str, str]:
    """Return a description of each variant by the variant's name. It also names the suites that have the variant."""
    found: dict[str, tuple[str, list[str]]] = {}
    for suite in suites:
        if suite.file.suite is None:
            continue
        for variant in suite.file.suite.variants:
            about = one_line(variant.description) or "a variant"
            found.setdefault(variant.name, (about, []))[1].append(suite.path.stem)
    return {name: f"{about} {GLYPHS.dot} of {one_line(', '.join(stems))}" for name, (about, stems) in found.items()}


class ModelChooser:
    """Opens the dialog that chooses models, and gives it the app's functions."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._selection = app.selection
        self._program = app.program
        self._endpoints, self._problems = known_endpoints(app.program, self._folders, presets.PRESETS)

    def choose(self, taken: Callable[[], object]) -> None:
        """Open the dialog. `taken` is called after the user has confirmed a choice."""
        # Files are read here, before the dialog opens. The dialog asks the endpoints for their models.
        selection = self._selection
        variants, run_as = variants_of(selection.open_suites.suites), selection.variants
        state = ModelsState(self._choices(), selection.models, self._endpoints, self._suite_models, variants, run_as)

        def on_answer(models: tuple[str, ...] | None) -> None:
            if models is not None:
                selection.models, selection.models_for_now = models, False
                if state.chosen_variants != selection.variants:
                    selection.variants, selection.variants_for_now = state.chosen_variants, False
                taken()
                self._app.remember()

        functions = ModelFunctions(self._ask, self._add, self._change, self._probe, self._choices)
        self._app.show(ModelsScreen(state, functions), on_answer)

    @property
    def _suite_models(self) -> tuple[str, ...]:
        row = self._selection.row
        files = self._selection.open_suites.files
        if row is not None and row.file is not None:
            files = [row.file]
        suites = [file.suite for file in files if file.suite is not None]
        if row is not None and row.case is not None and suites:
            return models_of(suites[0], files[0].case_of(row.case.index, row.case.id))
        return tuple(dict.fromkeys(chain.from_iterable(map(models_of, suites))))

    @property
    def _folders(self) -> list[Path]:
        suites = list(self._selection.open_suites.suites)
        if self._selection.suite is not None:
            suites.insert(0, self._selection.suite)
        return list(dict.fromkeys(suite.path.parent for suite in suites)) or [Path()]

    def _choices(self) -> ModelChoices:
        open_suites = self._selection.open_suites
        recorded = [run.planned.asked_model for run in open_suites.workspace.recorded]
        found = model_choices(self._program, open_suites.files, self._selection.models, recorded)
        problems = dict.fromkeys((*found.problems, *self._problems))
        return ModelChoices(found.choices, tuple(problems))

    # The keys of endpoints may be in files. A thread with its own event loop reads the files, so that the app does not
    # wait.
    async def _ask(self, endpoint: KnownEndpoint) -> KnownEndpoint:
        return await in_background(lambda: asyncio.run(endpoint_with_models(endpoint, self._program)))

    def _add(
        self,
        endpoints: Sequence[KnownEndpoint],
        endpoint: KnownEndpoint | None,
        model: str,
        added: Callable[[Added | None], None],
    ) -> None:
        adder = self._adder(self._folders[0])
        preset = endpoint.preset if endpoint is not None else None
        self._app.show(AddModelScreen(endpoints, preset, model, adder), added)

    def _change(self, endpoints: Sequence[KnownEndpoint], name: str, changed: Callable[[Added | None], None]) -> str:
        """Open the form that changes a model of a `workbench.toml`. Return why that is impossible, or ""."""
        for folder in self._folders:
            try:
                known = named_model(name, folder, self._program)
            except ConfigError as error:
                return error.problems[0]
            if known is not None:
                # Settings files do not name a preset, so the preset with the same base URL is used.
                preset = next((each.preset for each in endpoints if each.preset.base_url == known.base_url), None)
                self._app.show(AddModelScreen(endpoints, preset, known.model, self._adder(folder, known)), changed)
                return ""
        return f"{model_label(name)} is in no workbench.toml, so there is nothing to change"

    def _probe(self, name: str) -> None:
        files = [file for file in self._selection.open_suites.files if file.suite is not None]
        self._app.show(ProbesScreen(Prober(self._program, self._app.services.trust, name, self._folders, files)))

    def _adder(self, folder: Path, known: ModelSpec | None = None) -> ModelAdder:
        beside = [suite.path for suite in self._selection.open_suites.suites if suite.path.parent == folder]
        bundled = any(map(self._app.services.is_bundled, beside))
        files = [file for file in self._selection.open_suites.files if file.suite is not None]

        def why_not(spec: ModelSpec) -> str | None:
            return check_refusal(known, spec, files, self._program, self._app.services.trust)

        return ModelAdder(self._program, folder, bundled=bundled, known=known, check_refusal=why_not)
