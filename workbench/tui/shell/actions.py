"""Actions of the program itself."""

from __future__ import annotations

from workbench.tui.kit.actions import Action, Feature, MainSituation

ACTIONS: tuple[Action, ...] = (
    Action("theme", "Change the theme", ()),
    Action("picture", "Save a picture of the screen", ()),
    Action("redraw", "Draw the screen anew", ("ctrl+l",), "anywhere", listed=False),
    Action("log", "Show where the log is", ()),
    Action("suspend", "Suspend; fg in the shell resumes", ()),
    Action("help", "Keys and help", ("question_mark",), label="keys"),
    Action("palette", "All commands", ("ctrl+p",), "anywhere", listed=False),
    Action("quit", "Quit", ("q",), label="quit"),
)


def _copy(now: MainSituation) -> str | None:
    return None if now.has_text else "there is nothing to copy here"


VIEWING_ACTIONS: tuple[Action, ...] = (
    Action("copy", "Copy what the cursor is on", ("y",), label="copy", why_not=_copy),
    Action("pane.suites", "Go to the suites", ("1",)),
    Action("pane.case", "Go to the case", ("2",)),
    Action("pane.run", "Go to the run", ("3",)),
    Action("pane.next", "Next pane", ("tab",)),
    Action("pane.previous", "Previous pane", ("shift+tab",)),
    Action("zoom", "Zoom the pane, or end the zoom", ("z",), label="zoom"),
    Action("back", "Leave the filter, the zoom or the pane", ("escape",), listed=False),
)

VIEWING = Feature("viewing", VIEWING_ACTIONS, group="Panes")
PROGRAM = Feature("program", ACTIONS, group="Program")
