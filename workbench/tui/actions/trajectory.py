"""The screen of one run."""

from __future__ import annotations

from workbench.tui.actions.action import Action, Situation


def _grades(now: Situation) -> str | None:
    return None if now.graded else now.why_not_graded


def _save(now: Situation) -> str | None:
    if now.shown == "a recording":
        return "this run is a recording already"
    return None if now.shown == "a finished run" else "this run is not over yet"


def _copy(now: Situation) -> str | None:
    return None if now.has_text else "nothing has happened in this run yet"


ACTIONS: tuple[Action, ...] = (
    Action("trajectory.expand", "Show all of a value, or fold it", ("enter",), "trajectory", "expand", listed=False),
    Action("trajectory.find", "Search the run", ("slash",), "trajectory", "search"),
    Action("trajectory.find_next", "Next match of the search", ("ctrl+g",), "trajectory", listed=False),
    Action(
        "trajectory.grades",
        "Grades: the run as every grader reads it",
        ("g",),
        "trajectory",
        "grades",
        _grades,
    ),
    Action("trajectory.copy", "Copy what the cursor is on", ("y",), "trajectory", "copy", _copy),
    Action("trajectory.save", "Save the run as a recording", ("w",), "trajectory", "save", _save),
    Action("trajectory.back", "End the search, or leave the screen", ("escape",), "trajectory", "back", listed=False),
    Action("trajectory.help", "Keys and help", ("question_mark",), "trajectory", "keys", listed=False),
    Action("trajectory.quit", "Quit", ("q",), "trajectory", listed=False),
)
