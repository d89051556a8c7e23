"""The program itself."""

from __future__ import annotations

from workbench.tui.actions.action import Action

ACTIONS: tuple[Action, ...] = (
    Action("theme", "Change the theme", ()),
    Action("picture", "Save a picture of the screen", ()),
    Action("log", "Show where the log is", ()),
    Action("suspend", "Suspend; fg in the shell comes back", ()),
    Action("help", "Keys and help", ("question_mark",), label="keys"),
    Action("palette", "All commands", ("ctrl+p",), listed=False),
    Action("quit", "Quit", ("q",), label="quit"),
)
