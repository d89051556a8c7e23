"""Actions on the displayed run."""

from __future__ import annotations

from workbench.dataclasses import dataclass
from workbench.tui.kit.actions import Action, Feature, MainSituation, Shown, Situation, key_for, why_no_run
from workbench.tui.lines.words import unless_read_only


@dataclass(frozen=True)
class TrajectoryNow(Situation):
    """The situation of the screen of one run. `why_not_graded` is why the run has no grades, if so."""

    shown: Shown = "nothing"
    why_not_graded: str | None = None


def _other_run(now: MainSituation) -> str | None:
    if not now.runs:
        return why_no_run(now)
    more = unless_read_only(f"; {key_for('models')} chooses more models")
    return None if now.runs > 1 else f"this case has only one run to show{more}"


def _open(now: MainSituation) -> str | None:
    return None if now.ran_before else _item(now)


def _item(now: MainSituation) -> str | None:
    return None if now.runs else why_no_run(now)


def _save_run(now: MainSituation) -> str | None:
    if now.shown == "a finished run" or now.held is not None:
        return None
    if now.shown == "a recording":
        return "this run is a recording already"
    if now.shown == "a run":
        return f"this run is not finished yet; {key_for('step')} holds it, and then what there is can be saved"
    return why_no_run(now)


def _fix_prompt(now: MainSituation) -> str | None:
    if now.shown == "nothing":
        return why_no_run(now)
    return None if now.shown_failed else "this run did not fail"


def _fork(now: MainSituation) -> str | None:
    if now.shown == "nothing":
        return why_no_run(now)
    if now.shown == "a run" and now.held is None:
        return f"this run is under way: {key_for('step')} holds it at its next stop, and then it can be forked"
    return None


def _capture(now: MainSituation) -> str | None:
    return None if now.cases else "there is no case that could be captured"


def _accept(now: MainSituation) -> str | None:
    if now.shown == "nothing":
        return why_no_run(now)
    if now.shown == "a run":
        return "this run is not finished yet"
    if now.broke_off:
        return f"only a finished run can be accepted; {key_for('run.case')} runs the case again"
    return now.not_editable


ACTIONS: tuple[Action, ...] = (
    Action("run.expand", "Show all of a value, or fold it", ("enter",), "run", "expand", _open, listed=False),
    Action("run.find", "Search the run", (), why_not=_item),
    Action("run.find_next", "Next match of the search", ("ctrl+g",), "run", why_not=_item, listed=False),
    Action("run.previous", "Previous model or repeat", ("left",), "run", why_not=_other_run),
    Action("run.next", "Next model or repeat", ("right",), "run", why_not=_other_run),
    Action("run.pair", "Show this run and the next one of the case side by side", (), why_not=_other_run),
    Action("accept", "Accept what the model did: the call, or the run", ("a",), label="accept", why_not=_accept),
    Action("accept.run", "Accept the whole run", ("A",), why_not=_accept),
    Action("capture", "Capture: accept what all runs share, of everything that the filter shows", (), why_not=_capture),
    Action("run.fix_prompt", "Copy a prompt for a coding agent to fix what failed", (), why_not=_fix_prompt),
    Action("run.fork", "Fork the run before or after what the cursor is on", ("Y",), "run", "fork", _fork),
    Action(
        "run.save",
        "Save this run as a recording; while it is held, up to there",
        ("w",),
        label="save",
        why_not=_save_run,
    ),
)


def _grades(now: TrajectoryNow) -> str | None:
    return now.why_not_graded


def _save(now: TrajectoryNow) -> str | None:
    if now.shown == "a recording":
        return "this run is a recording already"
    return None if now.shown == "a finished run" else "this run is not finished yet"


def _copy(now: Situation) -> str | None:
    return None if now.has_text else "nothing has happened in this run yet"


OF_STORED_RUN = Action("run.expand", "Open the last run, from the history", ("enter",), "run", "open")
"""What the key does while the pane names a run of the history, for the key bar."""

TRAJECTORY_ACTIONS: tuple[Action, ...] = (
    Action("trajectory.expand", "Show all of a value, or fold it", ("enter",), "trajectory", "expand", listed=False),
    Action("trajectory.find", "Search the run", ("slash",), "trajectory", "search"),
    Action("trajectory.find_next", "Next match of the search", ("ctrl+g",), "trajectory", listed=False),
    Action(
        "trajectory.grades",
        "Grades: the run as every grader scores it",
        ("equals_sign",),
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

FEATURE = Feature(
    "trajectory", (*ACTIONS, *TRAJECTORY_ACTIONS), screens={"trajectory": "the run"}, group="The displayed run"
)
