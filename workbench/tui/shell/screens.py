"""The actions of the main screen that open other screens and dialogs. Each is imported when it is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.tui.kit.actions import MainActions, MainSituation, action, key_for, unless_read_only, why_no_run
from workbench.tui.trajectory.actions import why_no_other_run

if TYPE_CHECKING:
    from workbench.tui.kit.side_screen import SideScreen


def _make(now: MainSituation) -> str | None:
    if now.not_editable is not None:
        return now.not_editable
    return "this suite has errors: correct them first" if now.broken else None


def _run(now: MainSituation) -> str | None:
    if not now.variants:
        return f"no suite here has variants; {key_for('variant')} makes one"
    return None if now.runnable else "there is no case here that could run"


class SetupActions(MainActions):
    """Chooses models, and makes and runs variants."""

    GROUP = "Runs"

    @action(
        "m",
        "Choose models, or add one",
        name="models",
        label="models",
        changes=True,
        words="model provider api key env environment token credentials "
        "login endpoint url settings config openai anthropic ollama llm price",
    )
    def choose_models(self) -> None:
        """Choose the models to run on."""
        from workbench.tui.models.chooser import ModelChooser

        ModelChooser(self.app).choose(self.app.selection.show_again)

    @action("V", "Make a variant: try another system prompt", name="variant", needs=_make, changes=True)
    def make_variant(self) -> None:
        """Try another system prompt."""
        from workbench.tui.variants.maker import VariantMaker

        self.app.part(VariantMaker).of_prompt()

    @action("", "Run as written and as all variants", name="variant.run", needs=_run, changes=True)
    def run_variants(self) -> None:
        """Run what is selected as written and as all variants."""
        from workbench.tui.variants.maker import VariantMaker

        self.app.part(VariantMaker).run_all()


def _suite_or_folder(now: MainSituation) -> str | None:
    return None if now.has_file or now.row == "folder" else "there is no suite here"


def _suite(now: MainSituation) -> str | None:
    return None if now.has_file else "there is no suite here"


def _grades(now: MainSituation) -> str | None:
    if now.graded or now.ran_before:
        return None
    if now.shown == "nothing":
        return why_no_run(now)
    if now.shown == "a run":
        return "this run is not finished yet"
    return now.why_not_graded


def _failures(now: MainSituation) -> str | None:
    runs = unless_read_only(f"; {key_for('run.suite')} runs the suite or folder")
    return None if now.failed else f"nothing has failed{runs}"


def _runnable(now: MainSituation) -> str | None:
    return None if now.runnable else "there is no case here that could run"


def _cases(now: MainSituation) -> str | None:
    return None if now.cases else "there is no case to compare models on"


def _case(now: MainSituation) -> str | None:
    return None if now.row == "case" else "put the cursor on a case"


class ScreenActions(MainActions):
    """Opens the other screens."""

    GROUP = "Screens"

    @action(
        "t",
        "Tools and servers of the suite or folder",
        name="tools",
        label="tools",
        needs=_suite_or_folder,
        words="server mcp connect functions schema import",
    )
    def open_tools(self) -> None:
        """Show the tools and servers."""
        from workbench.tui.tools.screen import open_tools

        open_tools(self.app)

    @action(
        "l",
        "Log of the server of the run or suite",
        name="server.log",
        needs=_suite,
        words="stderr output mcp error",
    )
    def open_log(self) -> None:
        """Show the log of a server."""
        from workbench.tui.tools.log_screen import open_log

        open_log(self.app)

    @action(
        "=",
        "Grades: the run as every grader scores it",
        name="grades",
        label="grades",
        needs=_grades,
        words="score why explain metrics",
    )
    def open_grades(self) -> None:
        """Show the grades of the run."""
        from workbench.tui.grades.screen import open_grades

        open_grades(self.app)

    @action(
        "f",
        "Failures of the suite or folder, by cause",
        name="failures",
        label="failures",
        needs=_failures,
        words="errors causes report confusion",
    )
    def open_failures(self) -> None:
        """Show the failures by cause."""
        from workbench.tui.failures.screen import Failures

        self.app.part(Failures).open()

    @action(
        "",
        "Break the tools of the case, suite or folder: try faults of their results",
        name="faults",
        needs=_runnable,
        changes=True,
        words="chaos inject robustness error timeout injection",
    )
    def try_faults(self) -> None:
        """Try faults of tools."""
        from workbench.tui.faults.trials import FaultTrials

        self.app.part(FaultTrials).begin()

    @action(
        "!",
        "Audit the suite or folder: find cases that check too little",
        name="audit",
        label="audit",
        needs=_suite_or_folder,
        words="lint check quality",
    )
    def open_audit(self) -> None:
        """Show the audit."""
        from workbench.tui.audit.screen import open_audit

        open_audit(self.app)

    @action(
        "v",
        "Compare models on the suite or folder",
        name="compare",
        label="compare",
        needs=_cases,
        words="diff benchmark versus table cost price",
    )
    def open_comparison(self) -> None:
        """Show models side by side."""
        from workbench.tui.comparison.screen import Comparison

        self.app.part(Comparison).open()

    @action(
        "h",
        "History: all stored batches",
        name="history",
        label="history",
        words="past results previous open batches baseline diff regression export",
    )
    def open_history(self) -> None:
        """Show the stored batches."""
        from workbench.tui.history.batches_screen import StoredBatches

        self.app.part(StoredBatches).open()

    @action("", "The case over time, in the history", name="timeline", needs=_case, words="past results trend flaky")
    def open_timeline(self) -> None:
        """Show the selected case over time."""
        suite, case = self.app.selection.suite, self.app.selection.outline
        if suite is not None and case is not None:
            self.show_timeline(None, suite.path, case.id, case.name)

    @action(
        "",
        "Show this run and the next one of the case side by side",
        name="run.pair",
        needs=why_no_other_run,
        words="diff compare",
    )
    def open_pair(self) -> None:
        """Show two runs of the case side by side."""
        from workbench.tui.run_pair.screen import open_pair

        open_pair(self.app)

    @action("O", "Observe a program and its model, to record what they say", name="observe", changes=True)
    def observe(self) -> None:
        """Record what a program and its model say."""
        from workbench.tui.observing.observer import Observer

        self.app.part(Observer).ask()

    # For screens below that of the history

    def show_timeline(self, shown: SideScreen[Any] | None, suite: Path | str, case_id: str, case_name: str) -> None:
        """Show a case over time, above a screen (`None`: the main screen)."""
        from workbench.tui.history.timeline_screen import show_timeline

        show_timeline(self.app, shown, suite, case_id, case_name)

    def open_last_run(self) -> None:
        """Show the run of the history that decides the last result of the selected case."""
        from workbench.tui.history.stored_screens import open_last_run

        open_last_run(self.app)

    def open_last_grades(self) -> None:
        """Show the grades of that run."""
        from workbench.tui.history.stored_screens import open_last_grades

        open_last_grades(self.app)
