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
    Action("palette", "All commands", ("ctrl+p", "colon"), "anywhere", listed=False),
    Action("quit", "Quit", ("q",), label="quit"),
)


def _copy(now: MainSituation) -> str | None:
    return None if now.has_text else "there is nothing to copy here"


def _border(now: MainSituation) -> str | None:
    return None if now.has_borders else "only one pane is shown"


def _moved_border(now: MainSituation) -> str | None:
    return None if now.moved_borders else "the panes that are shown have their first widths"


VIEWING_ACTIONS: tuple[Action, ...] = (
    Action("copy", "Copy what the cursor is on", ("y",), label="copy", why_not=_copy),
    Action("pane.suites", "Go to the suites", ("1",)),
    Action("pane.case", "Go to the case", ("2",)),
    Action("pane.run", "Go to the run", ("3",)),
    Action("pane.next", "Next pane", ("tab",)),
    Action("pane.previous", "Previous pane", ("shift+tab",)),
    Action("zoom", "Zoom the pane, or end the zoom", ("z",), label="zoom"),
    Action("pane.narrower", "Make the pane narrower", ("less_than_sign",), why_not=_border),
    Action("pane.wider", "Make the pane wider", ("greater_than_sign",), why_not=_border),
    Action("pane.widths", "Give the panes their first widths again", (), why_not=_moved_border),
    Action("back", "Stop a search for suites, or leave the filter, the zoom or the pane", ("escape",), listed=False),
)

VIEWING = Feature("viewing", VIEWING_ACTIONS, group="Panes")
PROGRAM = Feature("program", ACTIONS, group="Program")
