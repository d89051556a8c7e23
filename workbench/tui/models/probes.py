"""The dialog that tests how a model calls tools. Each finding appears as soon as it is known."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult

from workbench.config.models import ConfigError
from workbench.config.program import Program
from workbench.evaluation.approval import Trust
from workbench.evaluation.model_list import (
    CHECK_TIMEOUT_S,
    FoundModels,
    ListedModel,
    ProbeResult,
    advice_of,
    untrusted_models,
)
from workbench.numerals import seconds_text
from workbench.providers.http.checks import CheckResult
from workbench.providers.http.endpoints import Endpoints
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Role, Span, hanging_paragraph, padded
from workbench.show.visible import one_line
from workbench.suite.suite_file import SuiteFile
from workbench.tui.kit.dialogs import Dialog, TextView, keys_line
from workbench.tui.kit.stage import in_background

_ROLES: dict[str, Role] = {"works": "passed", "repaired": "warned", "wrong": "failed", "unclear": "warned"}


class Prober:
    """Tests how one model calls tools. If several folders define the model, the first definition is used."""

    def __init__(
        self, program: Program, trust: Trust, name: str, folders: Sequence[Path], files: Sequence[SuiteFile]
    ) -> None:
        self.name = name
        self._program = program
        self._trust = trust
        self._folder = folders[0]
        self._files = files

    def model(self) -> ListedModel:
        """Return the model, and the environment with its key.

        Raises:
            ConfigError: The model is unknown, or an untrusted `workbench.toml` defines it."""
        program, folder = self._program, self._folder
        spec = program.models.resolve(self.name, folder, by_suite=False)
        listed = ListedModel(spec, program.environment.of(folder))
        # An untrusted file could name a server that must not get the user's key.
        if untrusted_models(FoundModels([listed], [*self._files]), program, self._trust):
            raise ConfigError(
                f"{self.name} is defined in a workbench.toml that you do not trust yet: "
                "run a case on it to be asked for trust"
            )
        return listed

    async def check(self, listed: ListedModel, endpoints: Endpoints) -> CheckResult:
        """Ask the endpoint whether it has the model. The check fails if no answer comes in `CHECK_TIMEOUT_S`."""
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                return await endpoints.check(listed.spec, listed.environment)
        except TimeoutError:
            return CheckResult(False, f"{listed.spec.base_url} did not answer within {seconds_text(CHECK_TIMEOUT_S)}")

    async def send(self, listed: ListedModel, endpoints: Endpoints) -> AsyncGenerator[ProbeResult]:
        # Importing this module loads the engine, which takes long, so a thread does it.
        await in_background(lambda: importlib.import_module("workbench.evaluation.tool_probes"))
        from workbench.evaluation.tool_probes import ToolProbes

        async with aclosing(ToolProbes(self._program, endpoints).send(listed.spec, listed.environment)) as results:
            async for result in results:
                yield result

    def endpoints(self) -> Endpoints:
        """Return new connections to endpoints for one series of probes. The caller closes them."""
        return Endpoints(self._program.secrets)

    def shown(self, text: str) -> str:
        """Return a text on one line, without secrets."""
        return one_line(self._program.secrets.redact(text))


class ProbesScreen(Dialog[None]):
    """Tests a model and shows each result as it comes. Closing the dialog stops the test."""

    HAS_SUBJECT: ClassVar[bool] = False
    DEFAULT_CSS = "ProbesScreen > Vertical { width: 120; }"

    def __init__(self, prober: Prober) -> None:
        super().__init__(keys_line(("↑↓ PgDn", "read"), ("Esc", "close")))
        self._prober = prober
        self._check: CheckResult | None = None
        self._results: list[ProbeResult] = []
        self._problem = ""
        self._is_over = False

    @property
    def heading(self) -> str:
        return f"How {one_line(self._prober.name)} handles tools"

    def body(self) -> ComposeResult:
        yield TextView(self._lines, "reading")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#reading"))
        self.run_worker(self._probe(), group="probes", exclusive=True)

    async def _probe(self) -> None:
        prober = self._prober
        endpoints = prober.endpoints()
        try:
            listed = prober.model()
            self._check = await prober.check(listed, endpoints)
            self._show()
            if self._check.answers:
                async for result in prober.send(listed, endpoints):
                    self._results.append(result)
                    self._show()
        except ConfigError as error:
            self._problem = "; ".join(error.problems)
        finally:
            # If the dialog is closed, this worker is cancelled, and the connections must be closed as well.
            await endpoints.close()
        self._is_over = True
        self._show()

    def _show(self) -> None:
        for reading in self.query(TextView):
            reading.rebuild_lines(from_top=False)
            reading.refresh(layout=True)

    def _lines(self, width: int) -> list[Line]:
        room = max(width - 4, 10)
        lines: list[Line] = [EMPTY]

        def add(head: str, text: str, role: Role, text_role: Role = "text") -> None:
            shown = self._prober.shown(text)
            lines.extend(hanging_paragraph((Span(f" {head}", role),), shown, text_role, max(room - len(head), 10)))

        if self._problem:
            add(f"{GLYPHS.error} ", self._problem, "error")
        if self._check is not None:
            role: Role = "warned" if self._check.answers else "error"
            if self._check.ok:
                role = "passed"
            add(f"{self._check.mark} ", self._check.sentence, role)
        names = max((len(result.probe) for result in self._results), default=0)
        for result in self._results:
            add(f"{result.sign} {padded(result.probe, names)}  ", result.finding, _ROLES[result.state])
        for advice in advice_of(self._results):
            add("→ ", advice, "muted", "muted")
        if not self._is_over:
            add("", f"Asking {GLYPHS.running}", "running", "running")
        return [*lines, EMPTY]
