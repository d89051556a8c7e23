"""Lets a model draft new cases for a tool: the questions to the user, and the change of the suite."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from textual.worker import Worker

from workbench.authoring.case_list import CaseListChange, with_new_cases
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import NotEditableError
from workbench.config.models import ConfigError
from workbench.evaluation.plan import PlanError
from workbench.numerals import counted
from workbench.providers.built_in import is_built_in
from workbench.show.difference import difference
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, with_margin
from workbench.show.visible import model_label, one_line
from workbench.suite.suite_text import SpliceError
from workbench.tui.kit.actions import key_for
from workbench.tui.kit.dialogs import Option
from workbench.tui.kit.questions import QuestionScreen
from workbench.tui.kit.stage import Announce

if TYPE_CHECKING:
    from workbench.evaluation.case_drafts import Drafts
    from workbench.evaluation.plan import Plan
    from workbench.grading.grade import RunResult
    from workbench.trajectory.events import ToolDefinition
    from workbench.tui.shell.workbench import Workbench


class NotDraftedError(Exception):
    """Raised with the reason if no case can be drafted."""


class ToolDrafter:
    """Drafts cases for one tool at a time. If the user agrees, adds the cases as one undo step."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._selection = app.selection
        self._program = app.program
        self._approve = app.services.starter.approval_to_run
        self._worker: Worker[object] | None = None

    def draft_or_stop(
        self, suite_file: Path, tool: ToolDefinition, tools: Sequence[ToolDefinition], announce: Announce
    ) -> None:
        """Draft cases for a tool in the background, or stop drafting."""
        if self._worker is not None:
            announce("Drafting was stopped; nothing changed", "warned", GLYPHS.warned)
            self._worker.cancel()
            return

        async def work() -> None:
            try:
                await self._draft(suite_file, tool, tools, announce)
            except (NotDraftedError, NotEditableError, PlanError, ConfigError, SpliceError) as error:
                announce(f"Nothing was drafted: {one_line(str(error))}", "warned", GLYPHS.warned)
            finally:
                self._worker = None

        self._worker = self._app.work(work(), "ask")

    async def _draft(
        self, path: Path, tool: ToolDefinition, tools: Sequence[ToolDefinition], announce: Announce
    ) -> None:
        from workbench.evaluation.case_drafts import (
            DraftOptions,
            accepted_drafts,
            asking_suite,
            checking_suite,
            definable_tools,
            draft_check_plan,
            drafting_plan,
            drafts_in,
            expected_use,
            use_text,
        )

        suite = self._selection.open_suites.editable(path)
        now, models = suite.file.suite, self._selection.models
        system: str | None = None
        before: list[str] = []
        if now is not None:
            models, system = models or tuple(now.models), now.system
            before = [case.request for case in now.cases if case.request]
        if not models:
            raise NotDraftedError(f"no model is chosen; {key_for('models')} chooses one")
        model = models[0]
        if is_built_in(model):
            raise NotDraftedError(f"{model} is not a language model; {key_for('models')} chooses one")
        options, by_name = DraftOptions(model, model), definable_tools(tools)
        if tool.name not in by_name:
            raise NotDraftedError(f"a suite cannot hold the definition of {tool.name}")
        asking = drafting_plan(asking_suite([tool.name], by_name, path, system=system), options, self._program)
        expected = use_text(options, 1, expected_use(asking, by_name, options))
        if await self._app.ask(_BeforeScreen(tool.name, expected)) != "ask":
            return
        announce(f"Asking {model_label(model)} for cases; {key_for('tools.draft')} stops it", "running", GLYPHS.running)
        answered = await self._results(asking)
        found = drafts_in(answered, [tool.name], by_name, before, self._program.secrets)
        if not found.kept:
            raise NotDraftedError("; ".join(map(str, (*found.failed, *found.rejected))))
        # Each draft is run several times, and dropped if any of its runs does not pass.
        runs = f"{counted(len(found.kept), 'draft')}, {counted(options.repeats, 'time')} each"
        announce(f"Running {runs}; {key_for('tools.draft')} stops it", "running", GLYPHS.running)
        checking = checking_suite(found.kept, by_name, path, now, None)
        results = await self._results(draft_check_plan(checking, options, self._program))
        held = accepted_drafts(found.kept, results, options.repeats)
        # The suite may have changed while the model answered, so it is read again, here and after the question.
        suite = self._selection.open_suites.editable(path)
        change = self._change(suite, tool, held)
        if await self._app.ask(_AfterScreen(suite, change, (found, held))) != "add":
            announce("Nothing was added")
            return
        suite = self._selection.open_suites.editable(path)
        change = self._change(suite, tool, held)
        assert change is not None
        self._selection.open_suites.change(suite, change.document, change.summary, case=change.case)
        announce(f"{change.summary}; {key_for('edit.undo')} takes them back", "passed", GLYPHS.passed)

    async def _results(self, plan: Plan) -> Sequence[RunResult]:
        """Run a plan and return its results. The app does not list these runs."""
        from workbench.evaluation.run import Evaluation

        approval = await self._approve(plan)
        if isinstance(approval, str):
            raise NotDraftedError(approval)
        async with Evaluation(plan, approval) as evaluation:
            report = await evaluation.report()
        return [finished.result for finished in report.runs]

    @staticmethod
    def _change(suite: OpenSuite, tool: ToolDefinition, drafts: Drafts) -> CaseListChange | None:
        if not drafts.kept:
            return None
        summary = f"{counted(len(drafts.kept), 'case')} drafted for {one_line(tool.name)}"
        return with_new_cases(suite.document, [draft.table() for draft in drafts.kept], summary)


class _BeforeScreen(QuestionScreen[Literal["ask", "no"]]):
    """Asks the user before a model is asked for drafts, because that may cost money."""

    TITLE_LINE = "Let a model draft cases?"

    def __init__(self, tool: str, expected: str) -> None:
        def lines(width: int) -> list[Line]:
            return [
                EMPTY,
                *with_margin(f"About {one_line(tool)}: {one_line(expected)}.", width),
                *with_margin(
                    "The definitions of the tools and the instructions of the suite are sent. No tool is executed, and "
                    "you see the cases before they are added.",
                    width,
                    "muted",
                ),
            ]

        answers: list[tuple[Literal["ask", "no"], Option]] = [
            ("ask", Option("ask", "for cases, and run them")),
            ("no", Option("no", "nothing is sent")),
        ]
        super().__init__(lines, answers, leaving="ask nothing")


class _AfterScreen(QuestionScreen[Literal["add", "no"]]):
    """Shows the change of the suite and the invalid drafts, which are dropped. Asks whether to add the valid drafts."""

    TITLE_LINE = "Add the drafted cases?"
    DEFAULT_CSS = "_AfterScreen > Vertical { width: 116; }"

    def __init__(self, suite: OpenSuite, change: CaseListChange | None, drafted: Sequence[Drafts]) -> None:
        dropped = list(chain.from_iterable(drafts.rejected for drafts in drafted))
        after = suite.document.text
        if change is not None:
            after = change.document.text
        changed = difference(suite.document.text, after)

        def lines(width: int) -> list[Line]:
            head = "No draft was dropped."
            if dropped:
                head = f"{counted(len(dropped), 'draft')} dropped:"
            found = [EMPTY, *with_margin(head, width)]
            for each in dropped:
                found += with_margin(f"{GLYPHS.missing} {each}", width, "muted")
            return [*found, EMPTY, *changed.drawn(width)]

        answers: list[tuple[Literal["add", "no"], Option]] = [("no", Option("no", "the suite stays as it is"))]
        if change:
            answers.insert(0, ("add", Option("add", f"to {one_line(suite.path.name)}, with the tag draft")))
        super().__init__(lines, answers, leaving="leave it as it is", default="add" if change else None)
