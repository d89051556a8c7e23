"""Forking the run that is shown: preparing it, and starting it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.providers.built_in import OFFLINE
from workbench.suite.settings import models_named_by
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.run_book.forks import place_said
from workbench.tui.runs.fork_draft import ForkDraft, ForkKey, fork_draft
from workbench.tui.runs.model_choices import model_choices
from workbench.tui.stepping.fork_dialog import ForkScreen

if TYPE_CHECKING:
    from workbench.authoring.case_now import CaseNow
    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


class ForkingCommands:
    """The method of `run.fork`. What was chosen and typed for a fork that was not started stands there the next
    time."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._drafts: dict[ForkKey, ForkDraft] = {}
        self.methods: dict[str, Callable[[MainScreen], object]] = {"run.fork": self._fork}

    def _fork(self, screen: MainScreen) -> None:
        run = screen.run_shown
        if run is None:
            return
        now = screen.desk.case_now((run.path, run.case_id))
        if now is None:
            self._refused("its case is gone, or has errors")
            return
        draft = self._draft(screen, run, now)
        if (why := draft.why_not(now)) is not None:
            self._refused(why)
            return
        self._drafts[draft.key] = draft

        def start(wanted: bool | None) -> None:
            if wanted:
                self._app.run_worker(self._start(draft), group="start")

        self._app.push_screen(ForkScreen(self._app, draft), start)

    def _draft(self, screen: MainScreen, run: RunRecord, now: CaseNow) -> ForkDraft:
        files, workspace = [suite.file for suite in screen.desk.suites], screen.workspace
        named = [each.planned.model for each in workspace.recorded]
        models = model_choices(self._app.program, files, screen.models, named)
        recorded = workspace.recording_at(run.path) if run.recorded else None
        # As when it is run: a text that describes a model is not known by being in a recording.
        likely = () if recorded is None or recorded.known else (*screen.models, *models_named_by(now.suite), OFFLINE)
        draft = fork_draft(run, screen.run_pane.run_list.place, now, models.choices, likely)
        if (before := self._drafts.get(draft.key)) is not None:
            draft.resume(before)
        return draft

    async def _start(self, draft: ForkDraft) -> None:
        why = await self._app.fork(draft)
        if why is not None:
            self._refused(why)
            return
        self._drafts.pop(draft.key, None)
        main = self._app.main
        shown = [index for index, run in enumerate(main.runs_shown) if run.origin is draft.run]
        if shown:  # else somebody has gone elsewhere meanwhile
            main.bring("run")
            main.selection.choose_run(shown[-1])
        main.announce(f"Forked from {place_said(draft.fork)}; earlier steps are replayed", "text", GLYPHS.fork)

    def _refused(self, why: str) -> None:
        self._app.main.announce(f"Not forked: {why}", "warned", GLYPHS.warned)
