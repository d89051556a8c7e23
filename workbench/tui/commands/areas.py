"""Every area of commands. With them come most screens, so this is imported when the first action is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.tui.commands.accepting import AcceptingCommands
from workbench.tui.commands.audit import AuditCommands
from workbench.tui.commands.breaking import BreakingCommands
from workbench.tui.commands.comparing import CompareCommands
from workbench.tui.commands.editing import EditingCommands
from workbench.tui.commands.failures import FailuresCommands
from workbench.tui.commands.forking import ForkingCommands
from workbench.tui.commands.form import FormCommands
from workbench.tui.commands.grades import GradesCommands
from workbench.tui.commands.history import HistoryCommands
from workbench.tui.commands.program import ProgramCommands
from workbench.tui.commands.running import RunningCommands
from workbench.tui.commands.saving import SavingCommands
from workbench.tui.commands.stepping import SteppingCommands
from workbench.tui.commands.structure import StructureCommands
from workbench.tui.commands.toml import TomlCommands
from workbench.tui.commands.tools import ToolsCommands
from workbench.tui.commands.trajectory import TrajectoryCommands
from workbench.tui.commands.tree import TreeCommands
from workbench.tui.commands.viewing import ViewingCommands

if TYPE_CHECKING:
    from workbench.tui.screens.main import MainScreen
    from workbench.tui.workbench import Workbench

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
