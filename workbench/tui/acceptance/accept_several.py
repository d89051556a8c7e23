"""Accept several runs at once: the calls that all runs of a case share become the case's expectations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.analysis.estimate import Estimate, estimate
from workbench.authoring.accept import CaseToAccept, RunToAccept, accepted_suite, exclusion_note, exclusion_reason
from workbench.authoring.case_list import has_same_grading
from workbench.authoring.document import Document
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.proposal import AcceptError
from workbench.dataclasses import dataclass
from workbench.engine.plan import plan_runs, sends_same_requests
from workbench.grading.grade import CallPairing, RunResult
from workbench.grading.run_summary import RunSummary, finished_summaries
from workbench.numerals import count_text, counted
from workbench.providers.built_in import is_built_in
from workbench.show.difference import difference
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Span, hanging_paragraph, with_margin
from workbench.show.views.accept import OUTCOME_MARKS, AcceptedSuite
from workbench.show.views.values import estimate_text
from workbench.show.visible import one_line
from workbench.suite.model import Case, Suite
from workbench.tui.acceptance.accept import pairings_of
from workbench.tui.kit.actions import key_for
from workbench.tui.kit.dialogs import Option, PreviewScreen
from workbench.tui.kit.questions import QuestionScreen
from workbench.tui.kit.stage import in_background
from workbench.tui.run_book.record import RunRecord

if TYPE_CHECKING:
    from workbench.analysis.comparison import CellKey
    from workbench.history.records import RunRow
    from workbench.tui.shell.workbench import Workbench


Cases = Sequence[tuple[OpenSuite, tuple[str, ...]]]
"""Suites with the keys of some of their cases."""

REPEATS = 3
"""The number of runs of each case, the same as for `workbench accept`."""

RunsToAccept = Literal["use", "missing", "all", "no"]


@dataclass(frozen=True)
class _SuiteCases:
    """Cases of one suite, and the runs to accept for each case."""

    suite: OpenSuite
    keys: tuple[str, ...]
    cases: tuple[CaseToAccept, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        pairs = zip(self.keys, self.cases, strict=True)
        return tuple(key for key, each in pairs if not each.runs and each.case.skip is None)

    @property
    def runnable(self) -> tuple[str, ...]:
        pairs = zip(self.keys, self.cases, strict=True)
        return tuple(key for key, each in pairs if each.case.skip is None)


class CasesAccepter:
    """Accepts runs of the cases that the tree's filter shows.

    Asks which runs to use, shows the difference in the suite's text, and applies the change."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._selection = app.selection
        self._run_cases = app.services.starter.run
        self._secrets = app.program.secrets
        self._delivered = asyncio.Event()
        app.services.run_update_callbacks.append(self._delivered.set)

    def begin(self) -> None:
        """Ask which runs to accept."""
        self._app.work(self._accept(), group="start")

    async def _accept(self) -> None:
        shown = self._filtered_cases()
        found = list(self._suites_to_accept(shown))
        reasons = []
        for suite, _ in shown:
            why = _why_not_accepted(suite)
            if why is not None:
                reasons.append(f"{one_line(suite.path.name)}: {why}")
        left = "; ".join(reasons)
        if not found:
            self._app.announce(f"Nothing is accepted: {left or 'no case is shown'}", "warned", GLYPHS.warned)
            return
        missing, everything = [], []
        for each in found:
            if each.missing:
                missing.append((each.suite, each.missing))
            if each.runnable:
                everything.append((each.suite, each.runnable))
        if not everything:
            self._app.announce("Nothing is accepted: every case shown is skipped", "warned", GLYPHS.warned)
            return
        question = AcceptSeveralScreen(found, left, self._estimate(missing), self._estimate(everything))
        answer = await self._app.ask(question)
        if answer is None or answer == "no":
            return
        if answer != "use":
            if not await self._run_and_wait(missing if answer == "missing" else everything):
                return
            if not self._app.shows_main:
                way = "choose 'Accept the calls that all runs of a case share' in the palette"
                self._app.announce(f"The runs have ended: {way}")
                return
            # The question was about the cases in `shown`. The filter may show different cases by now.
            found = list(self._suites_to_accept(shown))
        await self._propose(found)

    def _filtered_cases(self) -> Cases:
        # A suite may be below several roots of the tree, but must be listed once.
        below: dict[int, tuple[OpenSuite, tuple[str, ...]]] = {}
        for row in self._selection.tree.rows:
            if row.depth == 0:
                for suite, keys in self._selection.tree.cases_below(row):
                    below[id(suite)] = (suite, keys)
        return tuple(below.values())

    def _suites_to_accept(self, shown: Cases) -> Iterator[_SuiteCases]:
        for suite, wanted in shown:
            now = suite.file.suite
            if now is None or _why_not_accepted(suite) is not None:
                continue
            cases = {each.key: suite.file.case_of(each.index, each.id) for each in suite.run_cases}
            there, to_accept = [], []
            for key in filter(cases.__contains__, wanted):
                there.append(key)
                to_accept.append(self._case_to_accept(suite, now, key, cases[key]))
            if there:
                yield _SuiteCases(suite, tuple(there), tuple(to_accept))

    def _case_to_accept(self, suite: OpenSuite, now: Suite, key: str, case: Case) -> CaseToAccept:
        runs, others = [], []
        if self._selection.book.active_runs((suite.path, key)):
            others.append("a run of it is under way")
        for run in self._selection.book.counting_runs((suite.path, key)):
            result = run.result
            if result is None:
                continue
            if not sends_same_requests(run.planned, now, case):
                others.append(exclusion_note(result, "the request of the case has changed since"))
            elif (why := _why_not(result)) is not None:
                others.append(exclusion_note(result, why))
            else:
                try:
                    if result.grade is not None and has_same_grading(run.planned, now, case):
                        pairings: Sequence[CallPairing] = result.grade.pairings
                    else:
                        pairings = pairings_of(now, case, result)
                except AcceptError as error:
                    others.append(exclusion_note(result, str(error)))
                else:
                    runs.append(RunToAccept(result.trajectory, pairings, result.cost_usd))
        return CaseToAccept(case, tuple(runs), tuple(others))

    def _estimate(self, cases: Cases) -> Estimate:
        planned: dict[CellKey, int] = {}
        for suite, keys in cases:
            for run in plan_runs([suite.file], models=self._selection.models, case_ids=keys, repeats=REPEATS):
                cell = str(run.file.path), run.case.id, run.model
                planned[cell] = planned.get(cell, 0) + 1
        return estimate(planned.items(), {cell: self._earlier_runs(cell) for cell in planned}, is_free=is_built_in)

    def _earlier_runs(self, cell: CellKey) -> Sequence[RunSummary]:
        """Return the finished runs of a cell: those of this session, or else the last runs in the history."""
        case, model = (Path(cell[0]), cell[1]), cell[2]
        runs: list[RunRecord | RunRow] = [run for run in self._selection.book.finished(case) if run.model == model]
        if not runs:
            last = self._selection.tree.remembered.of(case)
            if last is not None:
                runs = [run for run in last.runs if run.model == model]
        return list(finished_summaries(runs))

    async def _run_and_wait(self, cases: Cases) -> bool:
        wanted = []
        for suite, keys in cases:
            for key in keys:
                wanted.append((suite.path, key))
        await self._run_cases(cases, REPEATS)
        began = False
        # Events are delivered only during an `await`. There is none between the check and `clear`, so no delivery is
        # missed.
        while self._selection.book.any_active(wanted):
            began = True
            self._delivered.clear()
            await self._delivered.wait()
        return began

    async def _propose(self, found: Sequence[_SuiteCases]) -> None:
        # The thread gets the files as they are now, because the user may edit the suites meanwhile. `_apply` skips
        # edited suites.
        files = [each.suite.file for each in found]

        def propose() -> list[AcceptedSuite]:
            pairs = zip(files, found, strict=True)
            return [accepted_suite(file, each.cases, self._secrets) for file, each in pairs]

        accepted = await in_background(propose)
        count = sum(len(suite.proposed) for suite in accepted)
        title, verb = "Nothing to accept from these runs", None
        if count:
            title, verb = "What the runs share", f"take {counted(count, 'case')}"
        if not await self._app.ask(PreviewScreen(title, lambda width: accepted_lines(accepted, width), verb)):
            return
        self._apply(found, accepted)

    def _apply(self, found: Sequence[_SuiteCases], accepted: Sequence[AcceptedSuite]) -> None:
        taken, changed = 0, []
        for each, suite in zip(found, accepted, strict=True):
            if not suite.proposed:
                continue
            name = one_line(each.suite.path.name)
            # If the suite was edited since, the user has confirmed a change to an older text, so the suite is skipped.
            if each.suite.document.text != suite.before or self._selection.open_suites.at(each.suite.path) is None:
                changed.append(name)
                continue
            summary = f"accepted {counted(len(suite.proposed), 'case')}"
            self._selection.open_suites.change(each.suite, Document.of(suite.after), summary)
            taken += len(suite.proposed)
        if changed:
            self._app.announce(f"Not accepted, changed meanwhile: {', '.join(changed)}", "warned", GLYPHS.warned)
        else:
            moved = self._selection.open_suites.moved_grades_text
            self._app.announce(
                f"Accepted {counted(taken, 'case')}; {key_for('edit.undo')} undoes it, one suite at a time{moved}",
                "passed",
                GLYPHS.passed,
            )


def _why_not_accepted(suite: OpenSuite) -> str | None:
    if suite.file.suite is None:
        return "the suite has errors: correct them first"
    return suite.why_not_editable


def _why_not(result: RunResult) -> str | None:
    if result.has_redacted_calls:
        return "the run is stored without the secrets in its calls"
    return exclusion_reason(result)


class AcceptSeveralScreen(QuestionScreen[RunsToAccept]):
    """Asks whether to accept existing runs or to make new runs. Shows an estimate of the cost of new runs."""

    TITLE_LINE = "Accept what all runs share, for the cases that the filter shows"

    def __init__(self, found: Sequence[_SuiteCases], exclusions: str, missing: Estimate, everything: Estimate) -> None:
        cases = having = runs = lacking = skipped = 0
        for each in found:
            cases += len(each.cases)
            lacking += len(each.missing)
            skipped += len(each.cases) - len(each.runnable)
            for case in each.cases:
                having += bool(case.runs)
                runs += len(case.runs)
        text = "Each case then expects what all of its runs share. You see the difference first."
        shown = f"{counted(cases, 'case')} shown"
        if skipped:
            shown += f", {count_text(skipped)} of them skipped"
        if having:
            shown += f"; {having} of them with {counted(runs, 'current run')}."
        else:
            shown += "; there is no current run."

        def lines(width: int) -> list[Line]:
            shown_lines: list[Line] = [EMPTY, *with_margin(text, width), *with_margin(shown, width)]
            if exclusions:
                shown_lines += with_margin(f"Left out: {exclusions}", width, "warned")
            return [*shown_lines, EMPTY]

        answers: list[tuple[RunsToAccept, Option]] = []
        if having:
            answers.append(("use", Option("use these runs", "nothing is run")))
        if lacking and having:
            answers.append(("missing", Option(f"run the other {lacking}", _estimate_text(missing))))
        answers.append(("all", Option("run all of them", _estimate_text(everything))))
        answers.append(("no", Option("no", "nothing is accepted")))
        super().__init__(
            lines, answers, leaving="leave", harmless=frozenset({"use"}), default="use" if having else None
        )


def _estimate_text(estimate: Estimate) -> str:
    text = f"{counted(estimate.runs, 'run')}, {REPEATS} of each"
    cost = estimate_text(estimate)
    if cost:
        text += f": {cost}"
    return text


def accepted_lines(suites: Sequence[AcceptedSuite], width: int) -> list[Line]:
    """Return the lines of the proposals: the outcome of each case, and the difference of each suite's text."""
    lines: list[Line] = []
    for suite in suites:
        lines += [EMPTY, *with_margin(suite.path, width, "strong")]
        for case in suite.cases:
            sign, role = OUTCOME_MARKS[case.outcome]
            outcome = f"{one_line(case.case_name)}: {one_line(case.said)}"
            lines += hanging_paragraph((Span(f"  {sign} ", role),), outcome, "text", max(width - 6, 10))
            for why in case.left_out:
                lines += hanging_paragraph((Span("      "),), f"left out: {one_line(why)}", "muted", max(width - 8, 10))
        if suite.proposed:
            lines += [EMPTY, *difference(suite.before, suite.after).drawn(width)]
    return [*lines, EMPTY]
