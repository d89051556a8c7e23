"""Starts runs: reloads changed suites, asks for trust if necessary, and plans the runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.case_list import CaseKey
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import blocking_problem, is_stale
from workbench.config.models import DEFAULT_CONCURRENCY
from workbench.config.program import Program
from workbench.config.read_only import is_read_only
from workbench.engine.model_specs import ModelSpecs
from workbench.engine.plan import AGENT_NOT_FORKED, SUBJECT_NOT_STEPPED, ExecutionRules, PlannedRun, plan_runs
from workbench.evaluation.approval import (
    Approval,
    Needs,
    PendingApproval,
    Trust,
    TypedServers,
    needs_of_plan,
    servers_as_typed,
)
from workbench.evaluation.plan import Plan
from workbench.history.records import HistoryError
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import model_label
from workbench.suite.suite_file import SuiteFile
from workbench.suite.trust import needs_trust
from workbench.suite.variants import Variants, has_variant_of, model_of, variant_name_of
from workbench.tui.kit.stage import Announce
from workbench.tui.runs.runner import Runner
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.engine.missing_runs import Resumption
    from workbench.engine.stepper import StepTarget
    from workbench.evaluation.options import AddedVariants, AppStart, RunOptions
    from workbench.suite.model import Case
    from workbench.tools.python_code import HashedCode
    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.runs.fork_draft import ForkDraft, StepBack
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


Cases = Sequence[tuple[OpenSuite, tuple[str, ...]]]
"""The keys of cases, by suite."""

RunTarget = tuple[Path, str, str]
"""A run of a case on a model: the path of the suite, the id of the case, and the model."""


class Starter:
    """Starts runs of suites that the user trusts. Trust lasts until the program ends."""

    def __init__(
        self,
        app: Workbench,
        selection: Selection,
        panes: MainScreen,
        runner: Runner,
        program: Program,
        trust: Trust,
        *,
        catch_up: Callable[[], Awaitable[object]],
        suspend_questions: Callable[[], AbstractContextManager[None]],
        history: Path | None,
        compares: bool,
    ) -> None:
        """Create a starter.

        `catch_up` reloads all suites and asks about conflicts. `suspend_questions` suspends questions of runs.
        `history` has the costs of earlier runs. With `compares`, the history shows batches of several models as
        comparisons."""
        self._app = app
        self._selection = selection
        self._open_suites = selection.open_suites
        self._book = selection.book
        self._panes = panes
        self._runner = runner
        self._program = program
        self._trust = trust
        self._history = history
        self._read_again = catch_up
        self._suspend_questions = suspend_questions
        self._compares = compares
        self._busy = asyncio.Lock()
        self._starting_cases: set[CaseKey] = set()
        """The cases that are about to start: their suites are being read, or a question is open."""
        self._added: tuple[AddedVariants, ...] = ()
        """The variants that the command line adds to suites."""

    def add_bundled_variants(self) -> None:
        """Add the bundled variants, which simulate the prompts and tools of host programs, to all suites in memory."""
        # Lazy imports: few sessions need the variants of hosts.
        from workbench.evaluation.options import AddedVariants
        from workbench.suite.added_variants import HOST_LIBRARY, host_variants

        if all(added.origin != HOST_LIBRARY for added in self._added):
            self._added = (*self._added, AddedVariants(host_variants(), HOST_LIBRARY))

    async def begin(self, start: AppStart) -> None:
        """Run the cases selected on the command line."""
        self._added = start.options.added_variants
        cases: list[tuple[OpenSuite, tuple[str, ...]]] = []
        for suite in self._open_suites.suites:
            text = suite.file.suite
            if text is not None:
                ids = tuple(case.id for case in text.cases if start.options.selection.includes(text, case))
                if ids:
                    cases.append((suite, ids))
        await self.run(cases, start.options.repeats, start=start)

    def run_soon(
        self,
        cases: Cases,
        repeats: int | None = None,
        until: StepTarget = "end",
        variants: Variants | None = None,
    ) -> None:
        """Start cases in the background, like `run`."""
        self._app.work(self.run(cases, repeats, until, variants=variants), "start")

    def run_targets_soon(self, targets: Sequence[RunTarget], repeats: int | None, announce: Announce) -> None:
        """Start cases on given models in the background, like `run_targets`. Announce why some are not run."""

        async def run() -> None:
            why = await self.run_targets(targets, repeats)
            if why is not None:
                announce(f"Not run: {why}", "warned", GLYPHS.warned)

        self._app.work(run(), "start")

    async def run(
        self,
        cases: Cases,
        repeats: int | None = None,
        until: StepTarget = "end",
        *,
        start: AppStart | None = None,
        variants: Variants | None = None,
    ) -> None:
        """Run cases, `repeats` times if given, or announce why none was run.

        If `until` is not "end", one case runs once and is held there. It runs as the variant of the displayed
        run, or else on the first model. `start` has the options of the command line. `variants` replace the variants
        that the user selected."""
        # A second key press during a question must not start the cases twice.
        fresh: list[tuple[OpenSuite, tuple[str, ...]]] = []
        beginning: set[CaseKey] = set()
        for suite, keys in cases:
            free = tuple(key for key in keys if self._is_free((suite.path, key)))
            if free:
                fresh.append((suite, free))
            for key in free:
                beginning.add((suite.path, key))
        if not fresh:
            self._app.announce("That is already starting")
            return
        self._starting_cases |= beginning
        try:
            async with self._exclusive_start():
                await self._run(fresh, repeats, until, start, variants or self._selection.variants)
        finally:
            self._starting_cases -= beginning

    @asynccontextmanager
    async def _exclusive_start(self) -> AsyncIterator[None]:
        """Allow one start at a time, and suspend questions of runs during the start."""
        with self._suspend_questions():
            async with self._busy:
                yield

    def _is_free(self, case: CaseKey) -> bool:
        return case not in self._starting_cases and not self._book.active_runs(case)

    async def _run(
        self, cases: Cases, repeats: int | None, until: StepTarget, start: AppStart | None, variants: Variants
    ) -> None:
        wanted = [suite.path for suite, _ in cases]
        await self._catch_up([suite for suite, _ in cases])
        runs: list[PlannedRun] = []
        lost: Path | None = None
        refused: str | None = None
        for suite, case_ids in cases:
            # The reload may have closed the suite.
            if self._open_suites.at(suite.path) is not suite:
                continue
            # Unsaved edits are included. Cases with errors are left out, so the others can run.
            file = self._with_added_variants(suite.runnable(case_ids) or suite.file)
            if isinstance(file, str):
                refused = refused or file
                continue
            planned = self._planned(file, case_ids, repeats, start, variants)
            if planned and (refusal := self._refusal(file)) is not None:
                refused = refused or refusal
            elif file.suite is not None and not planned:
                lost = lost or file.path
            else:
                runs += planned
        options = None
        if start is not None:
            options = start.options
        limited = await self._with_cost_limit(self.plan(runs, options), options)
        if isinstance(limited, str):
            self._app.announce(f"Nothing was run: {limited}", "warned", GLYPHS.warned)
            return
        plan, approval, _ = await self._approve_plan(limited)
        if plan.runs:
            models = len({run.model for run in plan.runs})
            if until != "end":
                plan = replace(plan, runs=(self._run_to_step(plan.runs),))
                if plan.runs[0].is_out_of_reach:
                    self._app.announce(SUBJECT_NOT_STEPPED, "warned", GLYPHS.warned)
                    return
            if until == "end":
                self._panes.show_run_pane()
            else:
                self._panes.go_to("run")
            await self._runner.start(plan, approval, until)
            refused = refused or _not_held(plan.runs, start)
            if (notice := refused or self._other_model(plan.runs)) is not None:
                self._app.announce(notice, "warned", GLYPHS.warned)
            elif len(plan.runs) < models:
                model = model_label(plan.runs[0].model)
                which = "one"
                if plan.runs[0].variant is None:
                    which = "the first"
                self._app.announce(f"Step by step on {model}, {which} of {counted(models, 'model')}; m chooses another")
            return
        why = refused or await asyncio.to_thread(self._why_nothing_ran, wanted)
        if why is None and lost is not None:
            why = f"the cases to run are no longer in {lost.name}"
        text = "Nothing was run"
        if why:
            text += f": {why}"
        self._app.announce(text, "warned", GLYPHS.warned)

    def _run_to_step(self, runs: Sequence[PlannedRun]) -> PlannedRun:
        """Return the run to step through: with the variant of the displayed run, or else the first run."""
        shown = self._selection.run
        if shown is None or variant_name_of(shown.model) is None:
            return runs[0]
        for run in runs:
            if run.model == shown.model:
                return run
        return runs[0]

    def _with_added_variants(self, file: SuiteFile) -> SuiteFile | str:
        """Return a suite with the variants of the command line, or why they cannot be added."""
        from workbench.suite.added_variants import AddedVariantError, with_variants

        if file.suite is None:
            return file
        try:
            for added in self._added:
                file = with_variants(file, added.tables, added.origin)
        except AddedVariantError as error:
            return str(error)
        return file

    async def run_targets(self, targets: Sequence[RunTarget], repeats: int | None) -> str | None:
        """Run cases on given models, `repeats` times if given. Return why some are not run, or `None`.

        Active runs are omitted."""
        async with self._exclusive_start():
            # A case can run on several models at once, so the model is part of a run's identity.
            busy = {(run.path, run.case_id, run.model) for run in self._book.active_runs()}
            of_suites: dict[Path, dict[RunTarget, None]] = {}
            for each in targets:
                if each not in busy:
                    of_suites.setdefault(each[0], {})[each] = None
            if not of_suites:
                return "that is already running"
            await self._catch_up([suite for suite in self._open_suites.suites if suite.path in of_suites])
            runs: list[PlannedRun] = []
            why: str | None = None
            for path, fresh in of_suites.items():
                planned = await self._planned_of(path, fresh, repeats)
                if isinstance(planned, str):
                    why = why or planned
                else:
                    runs += planned
            limited = await self._with_cost_limit(self.plan(runs))
            if isinstance(limited, str):
                return limited
            plan, approval, untrusted = await self._approve_plan(limited)
            if plan.runs:
                await self._runner.start(plan, approval)
            return why or untrusted

    async def _planned_of(
        self, path: Path, targets: Collection[RunTarget], repeats: int | None
    ) -> tuple[PlannedRun, ...] | str:
        """Return the planned runs of one suite, or why the runs are impossible."""
        suite, lost = self._open_suites.at(path), None
        if suite is not None:
            case_ids = tuple(dict.fromkeys(case_id for _, case_id, _ in targets))
            file = self._with_added_variants(suite.runnable(case_ids) or suite.file)
            if isinstance(file, str):
                return file
            # Planning thousands of cells takes too long for the event loop.
            planned = await asyncio.to_thread(self._planned_on, file, targets, repeats)
            if planned:
                return self._refusal(file) or planned
            lost = _lost_variants(file, targets)
        why = await asyncio.to_thread(self._why_nothing_ran, [path])
        return why or lost or f"the cases to run are no longer in {path.name}"

    def _planned_on(
        self, file: SuiteFile, targets: Collection[RunTarget], repeats: int | None
    ) -> tuple[PlannedRun, ...]:
        every = Variants(all_of_them=True)
        usual = self._planned(file, [case_id for _, case_id, _ in targets], repeats, None, every)
        planned: set[RunTarget] = set()
        runs: list[PlannedRun] = []
        for run in usual:
            on_model = (file.path, run.case.id, run.model)
            planned.add(on_model)
            if on_model in targets:
                runs.append(run)
        # Runs on models that the suite names are already planned, and need approval. The user selected all other
        # models.
        others: dict[str, list[str]] = {}
        for each in targets:
            if each not in planned:
                others.setdefault(each[2], []).append(each[1])
        for model, case_ids in others.items():
            # The requested name may include a variant. All variants of the model are planned, and the variants that
            # were not requested are left out.
            of_model = plan_runs([file], models=[model_of(model)], case_ids=case_ids, repeats=repeats, variants=every)
            runs += [run for run in of_model if run.model == model]
        return tuple(runs)

    async def run_unsaved_case(
        self, suite: OpenSuite, written: Callable[[OpenSuite], SuiteFile | str], case_id: str
    ) -> Sequence[PlannedRun] | str:
        """Run a case that no open suite contains, once on each model. Return its runs, or why there are none.

        `written` adds the case to the current file of the open suite."""
        async with self._exclusive_start():
            await self._catch_up([suite])
            if self._open_suites.at(suite.path) is not suite:
                return f"{suite.path.name} is no longer open"
            file = written(suite)
            if not isinstance(file, str):
                file = self._with_added_variants(file)
            if isinstance(file, str):
                return file
            runs = self._planned(file, [case_id], 1, None, self._selection.variants)
            limited = await self._with_cost_limit(self.plan(runs))
            if isinstance(limited, str):
                return limited
            plan, approval, untrusted = await self._approve_plan(limited)
            if not plan.runs:
                return untrusted or "no model was chosen"
            await self._runner.start(plan, approval)
            return plan.runs

    async def fork(self, draft: ForkDraft | StepBack) -> str | None:
        """Start a fork of a run. The current case grades the fork. Return why the fork did not start, or `None`."""
        return await self._fork(draft, self._book.branch)

    async def step_back(self, back: StepBack) -> str | None:
        """Replace a held run by a fork that stops at the previous hold. Return why that is impossible, or `None`."""
        # The held run is stopped last, so it still exists if the fork cannot start.
        why = await self._fork(back, self._book.step_back, until="stop")
        if why is None:
            self._runner.stop([back.run.run_id])
        return why

    async def _fork(
        self, draft: ForkDraft | StepBack, register: Callable[[str, RunRecord], object], until: StepTarget = "end"
    ) -> str | None:
        async with self._exclusive_start():
            path = draft.run.path
            await self._catch_up([suite for suite in self._open_suites.suites if suite.path == path])
            now = self._open_suites.current_case((path, draft.run.case_id))
            if now is None:
                return (
                    await asyncio.to_thread(self._why_nothing_ran, [path])
                    or "the case of this run no longer exists or has errors"
                )
            why = draft.why_not(now) or self._refusal(now.file)
            if why is not None:
                return why
            planned = draft.planned(now, self._selection.models)
            if planned.subject is not None:
                return AGENT_NOT_FORKED if planned.subject.is_agent else SUBJECT_NOT_STEPPED
            limited = await self._with_cost_limit(self.plan([planned]))
            if isinstance(limited, str):
                return limited
            plan, approval, untrusted = await self._approve_plan(limited)
            if not plan.runs:
                return untrusted
            why = draft.why_not(now)
            # The run may have continued during the question.
            if why is not None:
                return why
            register(planned.run_id, draft.run)
            await self._runner.start(plan, approval, until)
            return None

    async def run_forks(self, plan: Plan, origins: Mapping[str, RunRecord]) -> str | None:
        """Start planned forks. Return why some are not started, or `None`.

        `origins` are the origins by the ids of the forks."""
        async with self._exclusive_start():
            for file in plan.files:
                refusal = self._refusal(file)
                if refusal is not None:
                    return refusal
            limited = await self._with_cost_limit(plan)
            if isinstance(limited, str):
                return limited
            approved, approval, untrusted = await self._approve_plan(limited)
            if approved.runs:
                for run in approved.runs:
                    self._book.branch(run.run_id, origins[run.run_id])
                await self._runner.start(approved, approval)
            return untrusted

    async def resume(self, resumption: Resumption) -> str | None:
        """Execute the missing runs of a batch. Return why they are not executed, or `None`.

        The caller must have reserved the batch in the history for this process."""
        from workbench.evaluation.cost_limit import CostLimitError
        from workbench.evaluation.resume import plan_of

        async with self._exclusive_start():
            try:
                plan = await asyncio.to_thread(plan_of, resumption, self._program, self._trust.store.is_exempt)
            except (CostLimitError, HistoryError) as error:
                return str(error)
            approved, approval, untrusted = await self._approve_plan(plan)
            if untrusted is not None:
                return untrusted
            try:
                await self._runner.start(approved, approval)
            except HistoryError as error:
                return str(error)
            return None

    async def approval_to_run(self, plan: Plan) -> Approval | str:
        """Ask for trust in the suites of a plan whose runs the caller starts.

        Return the approval, or why there is none."""
        async with self._exclusive_start():
            return await self._approval(
                await asyncio.to_thread(needs_of_plan, plan, self._typed_servers()), "ask no model"
            )

    async def approval_to_grade(self, cases: Sequence[tuple[SuiteFile, Case]]) -> Approval | str:
        """Ask for trust in the suites of the cases to grade. Return the approval, or why there is none."""
        proposal = await asyncio.to_thread(Needs.of_grading, cases, self._program)
        return await self._approval(proposal, "grade nothing")

    def code_to_grade(self, file: SuiteFile) -> HashedCode | None:
        """Return the suite's Python code if grading may call it without asking the user, otherwise `None`."""
        assert file.suite is not None
        if is_read_only():
            return None
        proposal = Needs.of_grading([(file, case) for case in file.suite.cases], self._program)
        for request in proposal.requests:
            if self._trust.covers(request):
                return request.grant.code
        return None

    async def _catch_up(self, suites: Sequence[OpenSuite]) -> None:
        files = [suite.disk for suite in suites if not suite.is_new]
        if await asyncio.to_thread(lambda: any(map(is_stale, files))):
            await self._read_again()

    def plan(self, runs: Sequence[PlannedRun], options: RunOptions | None = None) -> Plan:
        """Return the plan of runs. Without `options`, the suites decide which tools are executed and mocked."""
        execution, concurrency = ExecutionRules(None, False, self._trust.store.is_exempt), DEFAULT_CONCURRENCY
        if options is not None:
            execute = options.execute_all or options.execute
            execution = ExecutionRules(execute, options.execute_all, self._trust.store.is_exempt)
            concurrency = options.concurrency
        return Plan.of(runs, self._program, execution=execution, concurrency=concurrency, compares=self._compares)

    async def _with_cost_limit(self, plan: Plan, options: RunOptions | None = None) -> Plan | str:
        """Return a plan with its cost limit, or why the limit cannot be kept. Announce the estimated cost."""
        from workbench.evaluation.planner import cost_limit_usd_of

        wanted_usd = None
        if options is not None:
            wanted_usd = options.max_cost_usd
        usd = cost_limit_usd_of(plan.runs, wanted_usd)
        if usd is None or not plan.runs:
            return plan
        from workbench.evaluation.cost_limit import CostLimitError, cost_limit

        specs = ModelSpecs(self._program.models, self._program.environment)
        try:
            limit = await asyncio.to_thread(cost_limit, usd, plan.runs, specs, self._program, self._history)
        except (CostLimitError, HistoryError) as error:
            return str(error)
        self._app.announce(limit.notice(plan.runs))
        return replace(plan, cost_limit=limit)

    async def _approve_plan(self, plan: Plan) -> tuple[Plan, Approval, str | None]:
        """Ask for trust in the suites of a plan.

        Returns the plan without untrusted suites, its approval, and a notice. The notice names the first untrusted
        suite. It is `None` if all suites are trusted."""
        # A thread collects the needs of thousands of runs.
        decision = await self._ask_for_trust(
            await asyncio.to_thread(needs_of_plan, plan, self._typed_servers()), "do not run this suite"
        )
        if not decision.refused:
            return plan, decision.approval(), None
        trusted = plan.only({file.path for file in plan.files}.difference(decision.refused))
        return trusted, decision.approval(), f"{decision.refused[0].name} is not trusted"

    async def _approval(self, needs: Needs, no_label: str) -> Approval | str:
        decision = await self._ask_for_trust(needs, no_label)
        if decision.refused:
            return f"{decision.refused[0].name} is not trusted"
        return decision.approval()

    def _typed_servers(self) -> TypedServers:
        return {suite.path: typed for suite in self._open_suites.suites if (typed := suite.typed_servers)}

    async def _ask_for_trust(self, needs: Needs, no_label: str) -> PendingApproval:
        from workbench.tui.runs.dialogs import TrustScreen

        typed = self._typed_servers()
        for problem in await asyncio.to_thread(self._trust.grant_typed, needs):
            self._app.announce(f"{problem}; it holds until you quit", "warned", GLYPHS.warned)
        decision = PendingApproval(needs, self._trust)
        for question in decision.questions:
            request = question.first
            answer = await self._app.ask(
                TrustScreen(
                    request.file.path,
                    request.needs_to_ask,
                    question.lines,
                    mocks=request.can_run_on_mocks,
                    no_label=no_label,
                )
            )
            # The answer holds for this session even if storing it failed.
            for problem in await asyncio.to_thread(decision.answer, question, answer or "no"):
                self._app.announce(f"{problem}; it holds until you quit", "warned", GLYPHS.warned)
        for request in needs.requests:
            suite = self._open_suites.at(request.file.path)
            if suite is not None and self._trust.covers_whole(request):
                suite.forget_typed(typed.get(suite.path, ()))
        return decision

    async def approval_of_servers(
        self, file: SuiteFile, program: Program | None = None, *, typed: bool = False
    ) -> Approval | str:
        """Ask for trust in the servers of a suite. Return the approval, or why the servers may not start.

        `program` starts the servers with other environment variables than the app's. With `typed`, the user has just
        typed the commands of the servers, which then need no trust."""
        refusal = self._refusal(file)
        if refusal is not None:
            return refusal
        of_user = servers_as_typed(file) if typed else self._typed_servers()
        proposal = await asyncio.to_thread(Needs.of_servers, [file], program or self._program, typed=of_user)
        approval = await self._approval(proposal, "start nothing")
        if isinstance(approval, str):
            return f"Nothing was started: {approval}"
        return approval

    def _planned(
        self, file: SuiteFile, case_ids: Sequence[str], repeats: int | None, start: AppStart | None, variants: Variants
    ) -> tuple[PlannedRun, ...]:
        """Plan the runs of cases.

        The case of a recording runs on the recorded model (if known) with the recorded variant, unless the user
        selected a model."""
        planned_as = partial(plan_runs, [file], case_ids=case_ids, repeats=repeats)
        if start is not None:
            planned_as = partial(planned_as, by=start.options.by, repeat_rule=start.options.repeat_rule)
        recorded = self._open_suites.workspace.recording_at(file.path)
        if self._selection.models or recorded is None or not recorded.known:
            return planned_as(models=self._selection.models, variants=variants)
        model = recorded.planned.asked_model
        if (name := variant_name_of(recorded.planned.model)) is not None:
            variants = Variants(variants.names | {name}, variants.all_of_them, plain=False)
        planned = planned_as(models=[model], variants=variants)
        # The user did not select the model, so the runs need approval like runs on a model that the suite names.
        return tuple(replace(run, model_of_suite=True) for run in planned)

    def _refusal(self, file: SuiteFile) -> str | None:
        """Return why the case of a recording cannot run: its suite needs files that a recording does not contain.

        `None` if the case can run."""
        recorded = self._open_suites.workspace.recording_at(file.path)
        if recorded is None or file.suite is None:
            return None
        needs = needs_trust(file.suite, file.path)
        if needs.commands or needs.modules:
            missing = "servers"
        elif needs.python:
            missing = "Python code"
        else:
            return None
        suite = recorded.recording.header.suite.path
        return (
            f"{file.path.name} is a recording, which does not contain the {missing} of its suite: open {suite} itself"
        )

    def _other_model(self, runs: Sequence[PlannedRun]) -> str | None:
        """Return a notice if a recorded case runs on another model that the user did not select."""
        if self._selection.models:
            return None
        for run in runs:
            recorded = self._open_suites.workspace.recording_at(run.file.path)
            if recorded is not None and not recorded.known:
                model = recorded.planned.model
                return f"Recorded on {model}, which is not named here: runs on {model_label(run.model)}; m chooses"
        return None

    def _why_nothing_ran(self, paths: Sequence[Path]) -> str | None:
        for path in paths:
            if (why := blocking_problem(self._open_suites.workspace, path)) is not None:
                return why
        return None


def _lost_variants(file: SuiteFile, targets: Collection[RunTarget]) -> str | None:
    if file.suite is None:
        return None
    for _, _, model in targets:
        if not has_variant_of(file.suite, model):
            return f"{file.path.name} has no variant {variant_name_of(model)!r} any more"
    return None


def _not_held(runs: Sequence[PlannedRun], start: AppStart | None) -> str | None:
    """Return a notice if the command line's breakpoints cannot hold the runs.

    Runs of a subject, such as an agent, cannot be held."""
    if start is not None and start.breakpoints and any(run.is_out_of_reach for run in runs):
        return SUBJECT_NOT_STEPPED
    return None
