"""Actions on the screen of two runs."""

from __future__ import annotations

from workbench.dataclasses import dataclass
from workbench.tui.kit.actions import Action, Feature, Situation, search_actions


@dataclass(frozen=True)
class PairNow(Situation):
    """The situation of the screen. `differ` is whether the runs differ."""

    differ: bool = False


def _differ(now: PairNow) -> str | None:
    return None if now.differ else "both runs say and do the same"


ACTIONS: tuple[Action, ...] = (
    Action("pair.next", "Next difference", ("right_square_bracket",), "pair", "next", _differ),
    Action("pair.previous", "Previous difference", ("left_square_bracket",), "pair", "previous", _differ),
    Action("pair.expand", "Show all of it, or fold it", ("enter",), "pair", "expand", listed=False),
    Action("pair.unfold", "Unfold", ("right",), "pair", listed=False),
    Action("pair.fold", "Fold", ("left",), "pair", listed=False),
    Action("pair.copy", "Copy the comparison as text", ("y",), "pair", "copy"),
    Action("pair.first", "Open the first run", ("1",), "pair", "first run"),
    Action("pair.second", "Open the second run", ("2",), "pair", "second run"),
    Action("pair.layout", "Side by side, or one above the other", ("tab",), "pair"),
    *search_actions("pair"),
    Action("pair.back", "Leave the screen", ("escape",), "pair", "back", listed=False),
    Action("pair.help", "Keys and help", ("question_mark",), "pair", "keys", listed=False),
    Action("pair.quit", "Quit", ("q",), "pair", listed=False),
)

FEATURE = Feature("two_runs", ACTIONS, screens={"pair": "two runs side by side"})
