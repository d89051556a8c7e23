"""Starting runs: suites that changed are read again, trust is asked for where it is needed, what may run is planned."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.batches.plan import PlannedRun, plan_runs
from workbench.batches.trusting import can_do_with_mocks, models_asked, must_ask, needs_of, with_asked
from workbench.config.resources import bundled
from workbench.history.errors import HistoryError
from workbench.suite.loading import SuiteFile
from workbench.suite.model import GraderName
from workbench.suite.trust import Needs, TrustError, TrustStore
from workbench.tools.listings import Listings
from workbench.tui.glyphs import GLYPHS
from workbench.tui.state.open_suite import OpenSuite
from workbench.tui.state.run_record import CaseKey
from workbench.tui.state.words import many, model_label
from workbench.tui.workspace import is_stale, trouble

if TYPE_CHECKING:
    from workbench.batches.begin import Begin
    from workbench.batches.resuming import Resumption
    from workbench.engine.stepping import Until
    from workbench.suite.model import Case
    from workbench.tui.screens.trust import TrustAnswer, TrustScreen
    from workbench.tui.state.fork_draft import ForkDraft
    from workbench.tui.workbench import Workbench

Cases = Sequence[tuple[OpenSuite, tuple[str, ...]]]
"""Keys of cases by suite."""

RunOf = tuple[Path, str, str]
"""Suite, id of a case, model."""


class Starter:
    """Starts cases, and remembers what was trusted until the program ends. With `trust_all` nothing is asked."""

    def __init__(self, app: Workbench, *, trust_all: bool) -> None:
        self._app = app
        self._trust_all = trust_all
        self._trusted_once: set[tuple[Path, str]] = set()
        self._busy = asyncio.Lock()
        self._beginning: set[CaseKey] = set()
        """Cases that are on their way: their suites are being read, or somebody is asked about them."""
        self._store = TrustStore(app.program.folders.trust_file, bundled_folder=bundled("sample_suites"))

    def is_bundled(self, suite: Path) -> bool:
        """Whether a suite came with the program."""
        return self._store.is_bundled(suite)

    async def begin(self, begin: Begin) -> None:
        """Run what the app begins with."""
        suites = [(suite, suite.file.suite) for suite in self._app.main.desk.suites]
        cases = [
            (suite, tuple(case.id for case in said.cases if begin.selection.takes(said, case)))
            for suite, said in suites
            if said is not None
        ]
        await self.run([each for each in cases if each[1]], begin.repeats, begin=begin)

    async def run(
        self, cases: Cases, repeats: int | None = None, until: Until = "end", *, begin: Begin | None = None
    ) -> None:
        """Run cases, `repeats` times if that is given, or say why none was. With `until` the case is run once, on its
        first model, and held there; `begin` says more of how. Cases that are on their way to be run already are left
        out, and only one thing is asked at a time."""
        fresh = [(suite, tuple(key for key in keys if self._is_free((suite.path, key)))) for suite, keys in cases]
        fresh = [(suite, keys) for suite, keys in fresh if keys]
        if not fresh:
            self._app.main.announce("That is being started already")
            return
        beginning = {(suite.path, key) for suite, keys in fresh for key in keys}
        self._beginning |= beginning
        try:
            async with self._busy:
                await self._run(fresh, repeats, until, begin)
        finally:
            self._beginning -= beginning

    def _is_free(self, case: CaseKey) -> bool:
        return case not in self._beginning and not self._app.main.book.under_way(case)

    async def _run(self, cases: Cases, repeats: int | None, until: Until, begin: Begin | None) -> None:
        main = self._app.main
        wanted = [suite.path for suite, _ in cases]
        await self._catch_up([suite for suite, _ in cases])
        runs: list[PlannedRun] = []
        trusted: set[Path] = set()
        lost: Path | None = None
        refused: str | None = None
        for suite, case_ids in cases:
            if main.desk.at(suite.path) is not suite:
                continue
            # As it is edited, saved or not; cases that are being mended do not keep the others from running.
            file = suite.runnable(case_ids) or suite.file
            planned = self._planned(file, case_ids, repeats, begin.by if begin is not None else None)
            if planned and (refusal := self._refusal(file)) is not None:
                refused = refused or refusal
                continue
            if file.suite is not None and not planned:
                lost = lost or file.path
            elif planned:
                trust = await self._trust(file, planned)
                if trust is None:
                    continue
                if trust:
                    trusted.add(file.path)
            runs += planned
        if runs:
            models = len({run.model for run in runs})
            if until != "end":
                runs = runs[:1]
            (main.bring if until == "end" else main.go_to)("run")
            await self._app.runner.start(runs, frozenset(trusted), self._store.is_exempt, until, begin)
            if (notice := refused or self._other_model(runs)) is not None:
                main.announce(notice, "warned", GLYPHS.warned)
            elif len(runs) < models:
                model = model_label(runs[0].model)
                main.announce(f"Step by step on {model}, the first of {many(models, 'model')}; m chooses another")
            return
        why = refused or await asyncio.to_thread(self._why_none, wanted)
        if why is None and lost is not None:
            why = f"what was to run is no longer in {lost.name}"
        self._app.announce(f"Nothing was run: {why}" if why else "Nothing was run", "warned", GLYPHS.warned)

    async def run_on(self, wanted: Sequence[RunOf], repeats: int | None) -> str | None:
        """Run cases on single models, whatever else they are run on, `repeats` times if that is given; says why some
        are not. What is under way already is left out."""
        async with self._busy:
            main = self._app.main
            busy = {(run.path, run.case_id, run.model) for run in main.book.under_way()}
            of_suites: dict[Path, dict[RunOf, None]] = {}
            for each in wanted:
                if each not in busy:
                    of_suites.setdefault(each[0], {})[each] = None
            if not of_suites:
                return "that runs already"
            await self._catch_up([suite for suite in main.desk.suites if suite.path in of_suites])
            runs: list[PlannedRun] = []
            trusted: set[Path] = set()
            why: str | None = None
            for path, fresh in of_suites.items():
                suite = main.desk.at(path)
                case_ids = tuple(dict.fromkeys(case_id for _, case_id, _ in fresh))
                file = (suite.runnable(case_ids) or suite.file) if suite is not None else None
                # Of thousands of cells that takes longer than a key may.
                planned = await asyncio.to_thread(self._planned_on, file, fresh, repeats) if file is not None else ()
                if file is None or not planned:
                    why = why or await asyncio.to_thread(self._why_none, [path])
                    why = why or f"what was to run is no longer in {path.name}"
                    continue
                if (refusal := self._refusal(file)) is not None:
                    why = why or refusal
                    continue
                trust = await self._trust(file, planned)
                if trust is None:
                    why = why or f"{path.name} is not trusted"
                    continue
                trusted |= {path} if trust else set()
                runs += planned
            if runs:
                await self._app.runner.start(runs, frozenset(trusted), self._store.is_exempt)
            return why

    def _planned_on(self, file: SuiteFile, wanted: Collection[RunOf], repeats: int | None) -> tuple[PlannedRun, ...]:
        """Runs on models that the suite names stay such: they are asked about. Others the user has chosen once."""
        usual = self._planned(file, [case_id for _, case_id, _ in wanted], repeats, None)
        planned = {(file.path, run.case.id, run.model) for run in usual}
        runs = [run for run in usual if (file.path, run.case.id, run.model) in wanted]
        others: dict[str, list[str]] = {}
        for each in wanted:
            if each not in planned:
                others.setdefault(each[2], []).append(each[1])
        for model, case_ids in others.items():
            runs += plan_runs([file], models=[model], case_ids=case_ids, repeats=repeats)
        return tuple(runs)

    async def fork(self, draft: ForkDraft) -> str | None:
        """Start a fork of a run, graded by its case as it is now; says why not, if it is not started."""
        async with self._busy:
            main, path = self._app.main, draft.run.path
            await self._catch_up([suite for suite in main.desk.suites if suite.path == path])
            now = main.desk.case_now((path, draft.run.case_id))
            if now is None:
                return await asyncio.to_thread(self._why_none, [path]) or "its case is gone, or has errors"
            if (why := draft.why_not(now) or self._refusal(now.file)) is not None:
                return why
            planned = draft.planned(now, main.models)
            trust = await self._trust(now.file, [planned])
            if trust is None:
                return f"{path.name} is not trusted"
            main.book.branch(planned.run_id, draft.run)
            await self._app.runner.start([planned], frozenset({path} if trust else ()), self._store.is_exempt)
            return None

    async def resume(self, resumption: Resumption) -> str | None:
        """Make the missing runs of a batch of the history that is claimed; says why not, if they are not made."""
        async with self._busy:
            trusted: set[Path] = set()
            for file in resumption.files:
                trust = await self._trust(file, [run for run in resumption.runs if run.file.path == file.path])
                if trust is None:
                    return f"{file.path.name} is not trusted"
                if trust:
                    trusted.add(file.path)
            exempt = self._store.is_exempt
            try:
                await self._app.runner.start(resumption.runs, frozenset(trusted), exempt, going_on=resumption)
            except HistoryError as error:
                return str(error)
            return None

    async def may_grade(self, file: SuiteFile, cases: Iterable[Case]) -> bool:
        """Whether runs of some cases may be graded, calling the functions of their suite, after asking for trust."""
        from workbench.batches.regrading import grading_needs
        from workbench.tui.screens.trust import TrustScreen

        needs = grading_needs(file, cases, ())
        if needs.nothing or self.is_trusted(file):
            return True
        return await self._answer(file, TrustScreen(file.path, self._needs(file), refusing="grade nothing")) != "no"

    async def _catch_up(self, suites: Sequence[OpenSuite]) -> None:
        """Read everything again if one of these suites is another one on the disk."""
        if await asyncio.to_thread(lambda: any(is_stale(suite.disk) for suite in suites if not suite.is_new)):
            await self._app.saver.settle(await self._app.reader.read())

    async def _trust(self, file: SuiteFile, planned: Sequence[PlannedRun]) -> bool | None:
        """Whether a suite is trusted for runs of it, after asking where that is needed; `None`: there may be none."""
        models = self._app.program.models
        needs = with_asked(self._needs(file), models_asked(planned, models))
        if self._allows(file, needs):
            return True
        if not must_ask(needs, planned, models):
            return False
        answer = await self._asked(file, planned)
        return None if answer == "no" else answer != "mocks"

    async def may_start_servers(self, file: SuiteFile) -> str | None:
        """Why the servers of a suite without errors may not be started, after asking for trust; `None` if they may."""
        from workbench.tui.screens.trust import TrustScreen

        refusal = self._refusal(file)
        if refusal is None and not self.is_trusted(file):
            answer = await self._answer(file, TrustScreen(file.path, self._needs(file), refusing="start nothing"))
            refusal = f"Nothing was started: {file.path.name} is not trusted" if answer == "no" else None
        return refusal

    def _planned(
        self, file: SuiteFile, case_ids: Sequence[str], repeats: int | None, by: GraderName | None
    ) -> tuple[PlannedRun, ...]:
        """A recorded case runs on the model on which it was recorded, where that is known and no other was chosen."""
        main = self._app.main
        recorded = main.workspace.recording_at(file.path)
        if main.models or recorded is None or not recorded.known:
            return plan_runs([file], models=main.models, case_ids=case_ids, repeats=repeats, by=by)
        planned = plan_runs([file], models=[recorded.planned.model], case_ids=case_ids, repeats=repeats, by=by)
        # Not the user chose it: whatever the suite describes is asked about.
        return tuple(replace(run, model_of_suite=True) for run in planned)

    def _refusal(self, file: SuiteFile) -> str | None:
        """Why a recording cannot be run anew, if it cannot: what stands beside its suite does not stand beside it."""
        recorded = self._app.main.workspace.recording_at(file.path)
        needs = needs_of(file, self._app.program.models)
        if recorded is None or not (needs.commands or needs.modules or needs.python):
            return None
        what = "servers" if needs.commands or needs.modules else "Python code"
        suite = recorded.recording.header.suite.path
        return f"{file.path.name} is a recording, which does not hold the {what} of its suite: open {suite} itself"

    def _other_model(self, runs: Sequence[PlannedRun]) -> str | None:
        """Says that a recorded case runs on another model, when nobody chose that."""
        main = self._app.main
        for run in runs if not main.models else ():
            recorded = main.workspace.recording_at(run.file.path)
            if recorded is not None and not recorded.known:
                model = recorded.planned.model
                return f"Recorded on {model}, which is not named here: runs on {model_label(run.model)}; m chooses"
        return None

    def _why_none(self, paths: Sequence[Path]) -> str | None:
        return next(filter(None, (trouble(self._app.main.workspace, path) for path in paths)), None)

    def is_trusted(self, file: SuiteFile) -> bool:
        """Whether a suite may start, import and call what it names, without asking."""
        return self._allows(file, self._needs(file))

    def _allows(self, file: SuiteFile, needs: Needs) -> bool:
        known = (file.path, needs.fingerprint) in self._trusted_once
        of_history = file.as_then or needs != self._needs(file)
        return self._trust_all or known or self._store.is_trusted(file.path, needs, of_history=of_history)

    async def _asked(self, file: SuiteFile, planned: Sequence[PlannedRun]) -> TrustAnswer:
        from workbench.tui.screens.trust import TrustScreen

        program = self._app.program
        mocks = can_do_with_mocks(file, planned, program.models, Listings(program.folders.listings))
        asked = models_asked(planned, program.models)
        needs = with_asked(self._needs(file), asked)
        return await self._answer(file, TrustScreen(file.path, needs, asked=asked, mocks=mocks), needs)

    async def _answer(self, file: SuiteFile, screen: TrustScreen, needs: Needs | None = None) -> TrustAnswer:
        needs = needs or self._needs(file)
        answer = await self._app.push_screen_wait(screen) or "no"
        if answer == "always":
            try:
                self._store.trust(file.path, needs)
            except TrustError as error:
                self._app.main.announce(f"{error}; it holds until you quit", "warned", GLYPHS.warned)
        if answer in ("once", "always"):
            self._trusted_once.add((file.path, needs.fingerprint))
        return answer

    def _needs(self, file: SuiteFile) -> Needs:
        return needs_of(file, self._app.program.models)
