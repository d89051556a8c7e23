"""Regrades finished runs when expectations change: a few runs at once, many in the background."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.case_list import CaseKey
from workbench.authoring.workspace import SuitesChanged
from workbench.checks.patterns import CheckError
from workbench.config.program import Program
from workbench.grading.grade import unjudged_error
from workbench.numerals import counted, of_text
from workbench.suite.suite_file import SuiteFile
from workbench.tui.run_book.regrades import MAX_IMMEDIATE_RUNS, DueCase, DueRun, Regrading
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from textual.worker import Worker

    from workbench.checks.check import CheckVerdict, Judge
    from workbench.checks.combined_kinds import Judged
    from workbench.engine.judges import JudgementCache, RunJudge
    from workbench.grading.grade import RunResult
    from workbench.tools.python_code import HashedCode, PythonFunctions
    from workbench.trajectory.events import JsonValue
    from workbench.tui.shell.workbench import Workbench


ANSWER_DELAY_S = 0.15
"""The time in seconds without changes before many runs are regraded."""

RUNS_PER_CHECK = 25
"""The number of runs to regrade between checks for cancellation."""

PROGRESS_DELAY_S = 1.0
"""The time in seconds before the progress is shown."""


class Regrader:
    """Keeps the grades of runs up to date while suites are edited. Never calls a model, a server or a tool."""

    def __init__(
        self,
        app: Workbench,
        selection: Selection,
        program: Program,
        trusted_code: Callable[[SuiteFile], HashedCode | None],
        clock: Callable[[], float],
    ) -> None:
        self._app = app
        self._selection = selection
        self._open_suites = selection.open_suites
        self._book = selection.book
        self._program = program
        self._trusted_code = trusted_code
        self._clock = clock
        self._state = Regrading(selection.book)
        self._functions: dict[HashedCode, PythonFunctions] = {}
        self._remembered: JudgementCache | None = None
        self._worker: Worker[object] | None = None

    def follow(self, change: SuitesChanged) -> None:
        """Regrade the runs affected by a change of suites: a few runs at once, many in the background.

        The description of the new grades is stored in `OpenSuites.moved`."""
        selected, outline = self._selection.suite, self._selection.outline
        for suite in change.suites:
            seen = None
            if selected is suite:
                seen = outline
            self._state.follow(suite, seen)
        self._state.forget_others(change.open)
        self._open_suites.moved = self._grade()

    def finish(self, cases: Iterable[CaseKey]) -> None:
        """Regrade the ended runs of these cases if their suites changed while the runs were active."""
        before = self._state.waiting
        for case in cases:
            if self._book.finished(case) and (suite := self._open_suites.at(case[0])) is not None:
                self._state.finish(suite, case)
        if self._state.waiting > before and (self._worker is None or self._worker.is_finished):
            self._grade()

    def _grade(self) -> str:
        """Regrade a few runs at once, and schedule the rest. Describe how grades changed."""
        # One run more than the limit is requested, to find out whether there are too many runs.
        first = self._state.due(MAX_IMMEDIATE_RUNS + 1)
        if sum(len(case.runs) for case in first) > MAX_IMMEDIATE_RUNS or self._state.waiting > len(first):
            self._begin()
            return ""
        quick: list[DueCase] = []
        results: dict[int, RunResult] = {}
        for case in first:
            if any(due.mode != "at once" for due in case.runs):
                continue
            quick.append(case)
            for due in case.runs:
                results[id(due.run)] = self._regrade_run(due)
        self._state.done(quick, results)
        # Only the screens above the main screen are updated here. The caller updates the main screen.
        regraded = {case.key for case in quick if case.runs}
        self._app.services.update_grades_above_main(regraded)
        if len(quick) < len(first):
            self._begin()
        return self._state.take_summary()

    def _begin(self) -> None:
        """Start regrading in the background.

        If background regrading is already in progress, it is cancelled, and the new work includes its remaining
        runs."""
        self._worker = self._app.work(self._regrade_waiting, group="regrade", exclusive=True)

    async def _regrade_waiting(self) -> None:
        state = self._state
        # Another edit within this time cancels the work before it has cost anything.
        await asyncio.sleep(ANSWER_DELAY_S)
        total, began_s, shown_s = state.waiting, self._clock(), 0.0
        refused: dict[Path, str] = {}
        not_regraded: Counter[str] = Counter()
        while piece := state.due(RUNS_PER_CHECK):
            due: list[DueRun] = []
            for case in piece:
                due += case.runs
            state.done(piece, await self._regrade_in_thread(due, refused, not_regraded))
            if due:
                self._app.services.update_grades_everywhere({case.key for case in piece})
            if self._clock() - max(began_s, shown_s) > PROGRESS_DELAY_S:
                shown_s = self._clock()
                self._app.announce(
                    f"Regrading: {of_text(max(total - state.waiting, 0), total)} cases", keep_warning=True
                )
        parts = [state.take_summary()]
        for why, runs in not_regraded.items():
            parts.append(f"{counted(runs, 'run')} not regraded ({why}): r runs them again")
        self._app.services.update_all_grades()
        if any(parts) or shown_s:
            self._app.announce("; ".join(filter(None, parts)) or "Regraded: no grade changed", keep_warning=True)

    async def _regrade_in_thread(
        self, due_runs: Sequence[DueRun], refused: dict[Path, str], not_regraded: Counter[str]
    ) -> dict[int, RunResult]:
        """Regrade runs in a thread, and return the results by the `id()` of the run records.

        `not_regraded` counts the runs without a result by reason. `refused` collects the suites whose Python code must
        not be called, each with the reason."""
        results: dict[int, RunResult] = {}
        codes: dict[Path, HashedCode] = {}
        quick = [each for each in due_runs if each.mode in ("at once", "in background")]
        if quick:
            graded = await asyncio.to_thread(lambda: list(map(self._regrade_run, quick)))
            results = {id(each.run): result for each, result in zip(quick, graded, strict=True)}
        for each in due_runs:
            path = each.now.file.path
            if each.mode == "with Python":
                if path not in refused and path not in codes:
                    found = await asyncio.to_thread(self._trusted_code, each.now.file)
                    if found is None:
                        refused[path] = "Python code of a suite that is not trusted"
                    else:
                        codes[path] = found
                result = None
                if path not in refused:
                    result = await self._regrade_with_python(each, codes[path])
                # No result means that a check did not end. Calling the suite's code again would block as long again.
                if result is not None:
                    results[id(each.run)] = result
                else:
                    not_regraded[refused.setdefault(path, "a Python check that does not end")] += 1
        return results

    async def _regrade_with_python(self, due_run: DueRun, code: HashedCode) -> RunResult | None:
        """Return the result of a run, `None` if its Python code takes too long."""
        from workbench.engine.planned_run import GRADING_TIMEOUT_S
        from workbench.tools.python_code import PythonFunctions, in_thread

        functions = self._functions.setdefault(code, PythonFunctions(code))
        try:
            async with asyncio.timeout(GRADING_TIMEOUT_S):
                return await in_thread(lambda: self._regrade_run(due_run, functions))
        except TimeoutError:
            return None

    def _regrade_run(self, due_run: DueRun, functions: PythonFunctions | None = None) -> RunResult:
        if due_run.known is not None:
            return due_run.known
        # Lazy imports: these modules load slowly. Usually, a run has already loaded them.
        from workbench.checks.check import CheckContext
        from workbench.evaluation.regrade import regrade_result

        judge = self._judge_of(due_run)
        answer = None
        if functions is not None:
            answer = functions.answer
        context = CheckContext(answer, _repeating_judge(judge))
        result = regrade_result(due_run.result, due_run.now, context)
        judgements = tuple(dict.fromkeys((*result.judgements, *judge.judgements)))
        return replace(result, judgements=judgements)

    def _judge_of(self, due_run: DueRun) -> RunJudge:
        from workbench.engine.judges import JudgementCache, RunJudge
        from workbench.evaluation.judges import judge_for

        program, folder = self._program, due_run.now.file.path.parent
        if self._remembered is None:
            self._remembered = JudgementCache(program.folders.judgements, program.secrets)
        recorded = due_run.result.judgements
        return RunJudge(lambda check: judge_for(check, folder, program.models), self._remembered, recorded=recorded)


def _repeating_judge(judge: RunJudge) -> Judge:
    """Return a judge that repeats known judgements and never asks a model, so regrading costs nothing."""

    def known(check: Judged, value: JsonValue) -> CheckVerdict:
        try:
            return judge.known_judgement(check, value)
        except CheckError as error:
            raise unjudged_error(check, "this value has not been judged; r runs the case and asks the judge") from error

    return known
