"""Forking the displayed run: preparing and starting it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from workbench.config.program import Program
from workbench.providers.built_in import OFFLINE
from workbench.suite.settings import models_named_by
from workbench.tui.kit.stage import Panes, Stage
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.run_book.forks import place_said
from workbench.tui.runs.fork_draft import ForkDraft, ForkKey, fork_draft
from workbench.tui.runs.model_choices import model_choices
from workbench.tui.stepping.fork_dialog import ForkScreen
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.authoring.case_now import CaseNow
    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.run_book.shown.places import RunPlace


class ForkingCommands:
    """Handles `run.fork`. The draft of a fork that was not started is shown again the next time."""

    def __init__(
        self,
        stage: Stage,
        selection: Selection,
        panes: Panes,
        program: Program,
        *,
        place: Callable[[], RunPlace | None],
        fork: Callable[[ForkDraft], Awaitable[str | None]],
    ) -> None:
        self._stage = stage
        self._selection = selection
        self._open_suites = selection.open_suites
        self._panes = panes
        self._program = program
        self._place = place
        """Returns the place of the cursor in the displayed run."""
        self._start_fork = fork
        """Starts a fork, after asking for approval. Returns why not, if it is not started."""
        self._drafts: dict[ForkKey, ForkDraft] = {}
        self.methods: dict[str, Callable[[], object]] = {"run.fork": self._fork}

    def _fork(self) -> None:
        run = self._selection.run
        if run is None:
            return
        now = self._open_suites.case_now((run.path, run.case_id))
        if now is None:
            self._refused("its case no longer exists, or has errors")
            return
        draft = self._draft(run, now)
        if (why := draft.why_not(now)) is not None:
            self._refused(why)
            return
        self._drafts[draft.key] = draft

        def start(wanted: bool | None) -> None:
            if wanted:
                self._stage.work(self._start(draft), group="start")

        self._stage.show(ForkScreen(self._stage, draft), start)

    def _draft(self, run: RunRecord, now: CaseNow) -> ForkDraft:
        files, workspace = [suite.file for suite in self._open_suites.suites], self._open_suites.workspace
        named = [each.planned.model for each in workspace.recorded]
        models = model_choices(self._program, files, self._selection.models, named)
        recorded = workspace.recording_at(run.path) if run.recorded else None
        # As for running: a model described only by a recording is not known.
        likely = (
            ()
            if recorded is None or recorded.known
            else (*self._selection.models, *models_named_by(now.suite), OFFLINE)
        )
        draft = fork_draft(run, self._place(), now, models.choices, likely)
        if (before := self._drafts.get(draft.key)) is not None:
            draft.resume(before)
        return draft

    async def _start(self, draft: ForkDraft) -> None:
        why = await self._start_fork(draft)
        if why is not None:
            self._refused(why)
            return
        self._drafts.pop(draft.key, None)
        shown = [index for index, run in enumerate(self._selection.runs) if run.origin is draft.run]
        if shown:  # otherwise the user has gone elsewhere
            self._panes.bring("run")
            self._selection.choose_run(shown[-1])
        self._stage.announce(f"Forked from {place_said(draft.fork)}; earlier steps are replayed", "text", GLYPHS.fork)

    def _refused(self, why: str) -> None:
        self._stage.announce(f"Not forked: {why}", "warned", GLYPHS.warned)
