"""The actions that run and stop cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.tui.kit.actions import MainActions, MainSituation, action, key_for

if TYPE_CHECKING:
    from workbench.authoring.open_suite import OpenSuite
    from workbench.tui.runs.start import Cases
    from workbench.tui.tree.state import Row


def why_not_run(situation: MainSituation) -> str | None:
    """Return why the selected case cannot be run, `None` if it can."""
    if situation.broken:
        elsewhere = f"in another editor, then {key_for('reload')} reloads it"
        return f"this suite has errors: correct them here ({key_for('edit')}), or {elsewhere}"
    if situation.row != "case":
        return f"put the cursor on a case; {key_for('run.suite')} runs a whole suite or folder"
    if situation.case_running:
        return f"this case is running; {key_for('run.stop')} stops it"
    return None


def _run_suite(situation: MainSituation) -> str | None:
    if situation.runnable:
        return None
    if situation.running:
        return f"every case here is already running; {key_for('run.stop_all')} stops them"
    if situation.broken:
        return "this suite has errors: correct them first"
    return "there is no case here that could run"


def _stop(situation: MainSituation) -> str | None:
    if situation.case_running:
        return None
    return "this case is not running"


def _stop_all(situation: MainSituation) -> str | None:
    if situation.running:
        return None
    return "nothing is running"


def _run_shown(situation: MainSituation) -> str | None:
    if situation.cases:
        return None
    return "there is no case that could run"


def _run_failed(situation: MainSituation) -> str | None:
    if situation.failures:
        return None
    return "no case has failed, ended in an error or been stopped"


def _run_repeats(situation: MainSituation) -> str | None:
    if situation.row == "case":
        return why_not_run(situation)
    return _run_suite(situation)


class RunActions(MainActions):
    """Runs and stops cases."""

    GROUP = "Runs"

    @action(
        "r",
        "Run the case",
        name="run.case",
        label="run",
        needs=why_not_run,
        changes=True,
        words="execute start test play try go",
    )
    def run_case(self) -> None:
        row = self.app.selection.row
        if row is not None:
            self._run(row)

    @action(
        "R",
        "Run the whole suite or folder",
        name="run.suite",
        label="run suite",
        needs=_run_suite,
        changes=True,
        words="execute start test",
    )
    def run_suite(self) -> None:
        whole = self.app.selection.tree.suite_or_folder
        if whole is not None:
            self._run(whole)

    def _run(self, row: Row) -> None:
        self.app.services.starter.run_soon(self.app.selection.runnable_below(row))

    @action("E", "Run everything that the filter shows", name="run.shown", needs=_run_shown, changes=True)
    def run_shown(self) -> None:
        cases: list[tuple[OpenSuite, tuple[str, ...]]] = []
        # Every runnable case is below one of the top rows.
        for row in self.app.selection.tree.rows:
            if row.depth == 0:
                cases += self.app.selection.runnable_below(row)
        self._run_all(cases, "no case can run now")

    @action(
        "F",
        "Rerun what failed, ended in an error or was stopped",
        name="run.failed",
        needs=_run_failed,
        changes=True,
        words="retry again repeat errors",
    )
    def run_failed(self) -> None:
        selection, remembered = self.app.selection, self.app.selection.tree.remembered
        failed: list[tuple[OpenSuite, tuple[str, ...]]] = []
        for suite, keys in selection.runnable_below(selection.tree.suite_or_folder):
            own = tuple(key for key in keys if remembered.needs_rerun((suite.path, key), selection.book))
            if own:
                failed.append((suite, own))
        self._run_all(failed, "no case here failed, ended in an error or was stopped")

    def _run_all(self, cases: Cases, otherwise: str) -> None:
        if cases:
            self.app.services.starter.run_soon(cases)
        else:
            self.app.announce(f"Nothing was run: {otherwise}", "warned", GLYPHS.warned)

    @action(
        "]",
        "Next failed case, or one in error or stopped",
        name="failed.next",
        label="next failed",
        needs=_run_failed,
        words="jump error",
    )
    def next_failed(self) -> None:
        self._go_to_failed(1)

    @action("[", "Previous failed case, or one in error or stopped", name="failed.previous", needs=_run_failed)
    def previous_failed(self) -> None:
        self._go_to_failed(-1)

    def _go_to_failed(self, step: int) -> None:
        selection, main = self.app.selection, self.app.main
        cases, below = selection.cases_around()
        failed: list[int] = []
        for at, (suite, key) in enumerate(cases):
            if selection.tree.remembered.needs_rerun((suite.path, key), selection.book):
                failed.append(at)
        if step < 0:
            ahead = [at for at in failed if at < below.start]
        else:
            # From a suite or folder, the search begins at its first case.
            start = below.start if selection.case is None else below.stop
            ahead = [at for at in failed if at >= start]
        if not (ahead or failed):
            self.app.announce("No case that the filter shows failed", "warned", GLYPHS.warned)
            return
        suite, key = cases[(ahead or failed)[0 if step > 0 else -1]]
        selection.select(suite.path, key)
        if main.pane == "case":
            main.go_to("run")
        else:
            main.show_run_pane()
        main.run_pane.run_list.go_to_failure()

    @action(
        "T",
        "Run several times",
        name="run.repeats",
        needs=_run_repeats,
        changes=True,
        words="repeat pass@k consistency flaky",
    )
    def run_repeats(self) -> None:
        from workbench.tui.runs.dialogs import RepeatsScreen

        row = self.app.selection.row
        if row is None:
            return
        cases = self.app.selection.runnable_below(row)
        count = sum(len(keys) for _, keys in cases)

        def run(times: int | None) -> None:
            if times is not None:
                self.app.services.starter.run_soon(cases, times)

        subject = counted(count, "case")
        if row.case is not None:
            subject = row.case.name
        self.app.show(RepeatsScreen(subject), run)

    @action(
        "x",
        "Stop the case",
        name="run.stop",
        label="stop",
        needs=_stop,
        changes=True,
        words="cancel abort interrupt kill halt",
    )
    def stop(self) -> None:
        under_way = self.app.selection.book.active_runs(self.app.selection.case)
        self.app.services.runner.stop([run.run_id for run in under_way])

    @action(
        "X",
        "Stop all runs",
        name="run.stop_all",
        label="stop all",
        needs=_stop_all,
        changes=True,
        words="cancel abort interrupt kill halt",
    )
    def stop_all(self) -> None:
        self.app.services.stop_all()
