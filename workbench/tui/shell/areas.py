"""Every area of commands, wired to what it needs. With them come many modules, so this is imported when the first
action is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from workbench.tui.accepting.accept import AcceptingCommands
from workbench.tui.audit.opening import AuditCommands
from workbench.tui.breakpoints.commands import BreakingCommands
from workbench.tui.case.commands import EditingCommands, FormCommands, TomlCommands
from workbench.tui.comparing.opening import CompareCommands
from workbench.tui.failures.opening import FailuresCommands
from workbench.tui.grades.opening import GradesCommands
from workbench.tui.history.opening import HistoryCommands
from workbench.tui.runs.commands import RunningCommands, choose_models
from workbench.tui.saving.commands import SavingCommands
from workbench.tui.shell.program import ProgramCommands, ViewingCommands
from workbench.tui.stepping.commands import SteppingCommands
from workbench.tui.stepping.forking import ForkingCommands
from workbench.tui.tools.opening import ToolsCommands
from workbench.tui.tools.servers import Known
from workbench.tui.trajectory.opening import RunScreens
from workbench.tui.tree.changing import StructureCommands
from workbench.tui.tree.commands import TreeCommands
from workbench.tui.two_runs.opening import PairScreens

if TYPE_CHECKING:
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


Method = Callable[["MainScreen"], object]


class Areas:
    """The areas of an app."""

    def __init__(self, app: Workbench) -> None:
        selection, book, listings = app.selection, app.selection.book, app.main.known_tools.listings

        def tools_changed() -> None:
            app.main.known_tools.forget()
            app.main.auditor.forget()

        breaking = BreakingCommands(app)
        runs = RunScreens(app, book, app.run_saver.save_soon)
        pairs = PairScreens(app, selection, runs)
        self.comparing = CompareCommands(
            app,
            selection,
            app.runner,
            run_on=app.run_on,
            stop_all=app.action_stop_all,
            choose_models=partial(choose_models, app),
            runs=runs,
            pairs=pairs,
            over_time=lambda *about: history.show_case(*about),
        )
        history = HistoryCommands(
            app,
            selection,
            app.history,
            app.runner,
            deeds=lambda: app.deeds,
            comparing=self.comparing,
            runs=runs,
            pairs=pairs,
        )
        tools = ToolsCommands(
            app,
            selection,
            Known(app.runner, listings, book, app.program.secrets),
            approve_servers=app.starter.approval_of_servers,
            tools_changed=tools_changed,
            turn_breakpoint=breaking.turn_at_tool,
        )
        on_main = (
            RunningCommands(app),
            SteppingCommands(app),
            breaking,
            ForkingCommands(app),
            AcceptingCommands(app),
            TreeCommands(app),
            StructureCommands(app),
            EditingCommands(app),
            FormCommands(),
            SavingCommands(app),
            TomlCommands(app),
            ViewingCommands(app),
            ProgramCommands(app),
        )
        openers = (
            tools,
            GradesCommands(app, selection),
            FailuresCommands(app, selection, app.main),
            AuditCommands(app, selection, listings),
            self.comparing,
            pairs,
            history,
        )
        self.methods: Mapping[str, Method] = {
            **{name: method for area in on_main for name, method in area.methods.items()},
            **{name: _opening(method) for area in openers for name, method in area.methods.items()},
        }
        """What performs each action of the main screen, by its id."""


def _opening(open_screen: Callable[[], object]) -> Method:
    return lambda screen: open_screen()
