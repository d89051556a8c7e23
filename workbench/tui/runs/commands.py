"""Running and stopping cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.tui.kit.stage import Stage
from workbench.tui.runs.dialogs import RepeatsScreen
from workbench.tui.tree.selection import Selection
from workbench.tui.tree.state import Row

if TYPE_CHECKING:
    from workbench.engine.stepper import Until
    from workbench.tui.runs.starting import Cases


class RunCases(Protocol):
    """Starts cases, `repeats` times if given, after asking for trust if necessary. With `until`, one case is run step
    by step."""

    def __call__(self, cases: Cases, repeats: int | None = None, until: Until = "end") -> None: ...


class RunningCommands:
    """Runs and stops cases."""

    def __init__(
        self,
        stage: Stage,
        selection: Selection,
        run_cases: RunCases,
        stop: Callable[[Sequence[str]], object],
        stop_all: Callable[[], object],
    ) -> None:
        self._stage = stage
        self._selection = selection
        self._run_cases = run_cases
        self._stop_runs = stop
        self.methods: dict[str, Callable[[], object]] = {
            "run.case": self._run_case,
            "run.suite": self._run_below,
            "run.shown": self._run_shown,
            "run.failed": self._run_failed,
            "run.repeats": self._run_repeats,
            "run.stop": self._stop,
            "run.stop_all": stop_all,
        }

    def _run_case(self) -> None:
        row = self._selection.row
        if row is not None:
            self._run(row)

    def _run_below(self) -> None:
        if self._selection.tree.whole is not None:
            self._run(self._selection.tree.whole)

    def _run(self, row: Row) -> None:
        self._run_cases(self._selection.runnable_below(row))

    def _run_shown(self) -> None:
        tops = [row for row in self._selection.tree.rows if row.depth == 0]
        below = [below for row in tops for below in self._selection.runnable_below(row)]
        self._run_all(below, "no case can run now")

    def _run_failed(self) -> None:
        below = (
            self._selection.runnable_below(self._selection.tree.whole) if self._selection.tree.whole is not None else []
        )
        remembered = self._selection.tree.remembered
        failed = [
            (suite, tuple(key for key in keys if remembered.is_to_run_again((suite.path, key), self._selection.book)))
            for suite, keys in below
        ]
        self._run_all([each for each in failed if each[1]], "no case here failed, ended in an error or was stopped")

    def _run_all(self, cases: Cases, otherwise: str) -> None:
        if cases:
            self._run_cases(cases)
        else:
            self._stage.announce(f"Nothing was run: {otherwise}", "warned", GLYPHS.warned)

    def _run_repeats(self) -> None:
        row = self._selection.row
        if row is None:
            return
        cases = self._selection.runnable_below(row)
        count = sum(len(keys) for _, keys in cases)

        def run(times: int | None) -> None:
            if times is not None:
                self._run_cases(cases, times)

        self._stage.show(RepeatsScreen(row.case.name if row.case is not None else counted(count, "case")), run)

    def _stop(self) -> None:
        self._stop_runs([run.run_id for run in self._selection.book.under_way(self._selection.case)])
