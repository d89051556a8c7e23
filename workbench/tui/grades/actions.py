"""Actions on the screen of grades."""

from __future__ import annotations

from workbench.dataclasses import dataclass
from workbench.tui.kit.actions import Action, Feature, MainSituation, Situation, search_actions, why_no_run


@dataclass(frozen=True)
class GradesNow(Situation):
    """The situation of the screen. `runs` is how many runs of the case have grades."""

    runs: int = 0


def _grades(now: MainSituation) -> str | None:
    if now.graded or now.ran_before:
        return None
    if now.shown == "nothing":
        return why_no_run(now)
    if now.shown == "a run":
        return "this run is not finished yet"
    return now.why_not_graded


def _other_run(now: GradesNow) -> str | None:
    return None if now.runs > 1 else "this case has no other run with grades"


ACTIONS: tuple[Action, ...] = (
    Action("grades", "Grades: the run as every grader scores it", ("equals_sign",), label="grades", why_not=_grades),
    Action("grades.next", "Next grader", ("right_curly_bracket",), "grades", "next", listed=False),
    Action("grades.previous", "Previous grader", ("left_curly_bracket",), "grades", "previous", listed=False),
    Action(
        "grades.explain",
        "Details: how the grader scores, values in full",
        ("enter",),
        "grades",
        "more",
        listed=False,
    ),
    Action("grades.bad", "Next wrong call", ("f8",), "grades", "next bad", listed=False),
    Action(
        "grades.next_run",
        "Next model or repeat of the case",
        ("right_square_bracket",),
        "grades",
        why_not=_other_run,
        listed=False,
    ),
    Action(
        "grades.previous_run",
        "Previous model or repeat",
        ("left_square_bracket",),
        "grades",
        why_not=_other_run,
        listed=False,
    ),
    Action("grades.show", "Go to the calls", ("right",), "grades", listed=False),
    Action("grades.copy", "Copy the grade with everything behind it", ("y",), "grades", "copy", listed=False),
    Action("grades.other", "Other column", ("tab", "shift+tab"), "grades", listed=False),
    *search_actions("grades"),
    Action("grades.back", "Leave the calls or the screen", ("escape", "left"), "grades", "back", listed=False),
    Action("grades.help", "Keys and help", ("question_mark",), "grades", "keys", listed=False),
    Action("grades.quit", "Quit", ("q",), "grades", listed=False),
)

FEATURE = Feature("grades", ACTIONS, screens={"grades": "the grades"})
