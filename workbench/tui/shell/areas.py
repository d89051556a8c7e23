"""Every area of commands. With them come most screens, so this is imported when the first action is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.tui.accepting.accept import AcceptingCommands
from workbench.tui.audit.opening import AuditCommands
from workbench.tui.breakpoints.commands import BreakingCommands
from workbench.tui.case.commands import EditingCommands, FormCommands, TomlCommands
from workbench.tui.comparing.opening import CompareCommands
from workbench.tui.failures.opening import FailuresCommands
from workbench.tui.grades.opening import GradesCommands
from workbench.tui.history.opening import HistoryCommands
from workbench.tui.runs.commands import RunningCommands
from workbench.tui.saving.commands import SavingCommands
from workbench.tui.shell.program import ProgramCommands, ViewingCommands
from workbench.tui.stepping.commands import SteppingCommands
from workbench.tui.stepping.forking import ForkingCommands
from workbench.tui.tools.opening import ToolsCommands
from workbench.tui.trajectory.opening import TrajectoryCommands
from workbench.tui.tree.changing import StructureCommands
from workbench.tui.tree.commands import TreeCommands

if TYPE_CHECKING:
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


Method = Callable[["MainScreen"], object]


def methods_of(app: Workbench) -> dict[str, Method]:
    """What performs each action, by its id."""
    areas = (
        RunningCommands(app),
        SteppingCommands(app),
        BreakingCommands(app),
        ForkingCommands(app),
        AcceptingCommands(app),
        TreeCommands(app),
        StructureCommands(app),
        EditingCommands(app),
        FormCommands(),
        SavingCommands(app),
        TomlCommands(app),
        ViewingCommands(app),
        ToolsCommands(app),
        GradesCommands(app),
        FailuresCommands(app),
        AuditCommands(app),
        CompareCommands(app),
        TrajectoryCommands(app),
        HistoryCommands(app),
        ProgramCommands(app),
    )
    return {name: method for area in areas for name, method in area.methods.items()}
