"""Actions on the comparison of models."""

from __future__ import annotations

from workbench.tui.kit.actions import Action, Feature, MainSituation, search_actions, unless_refused


def _compare(now: MainSituation) -> str | None:
    return None if now.cases else "there is no case to compare models on"


def _own(name: str, title: str, keys: tuple[str, ...], label: str = "", screen: str = "compare") -> Action:
    action_id = f"{screen}.{name}"
    return Action(action_id, title, keys, screen, label, unless_refused(action_id), listed=False)


ACTIONS: tuple[Action, ...] = (
    Action("compare", "Compare models on the suite or folder", ("v",), label="compare", why_not=_compare),
    _own("open", "Show the run of the cell", ("enter",), "open"),
    _own("run", "Run the cell", ("r",), "run"),
    _own(
        "run_all",
        "Run all that is shown and has not finished; if all have, press twice to rerun them",
        ("R",),
        "run all",
    ),
    _own("run_errors", "Rerun what ended in an error, of all that is shown", ("F",)),
    _own("models", "Choose models", ("m",), "models"),
    _own("pair", "Pair the column with the base: is it better? Paired tests, case by case", ("p",), "test"),
    _own("differences", "Show all cases, or only those on which models differ", ("full_stop",), "differences"),
    _own("sort", "Sort by the column in another order: worst first, best first, as in the suite", ("o",), "sort"),
    _own("filter", "Filter as you type: name, tag, failed, model:failed", ("slash",), "filter"),
    _own("mark", "Mark the cell; mark two to see them side by side", ("space",), "mark"),
    _own("totals", "Zoom the cases: hide the totals, or show them", ("z",), "totals"),
    _own("base", "Make the column the base of the comparison, or end that", ("asterisk",), "base"),
    _own("repeats", "Run all that is shown several times", ("T",), "repeats"),
    _own("timeline", "History of the case: its runs over time", ("h",)),
    _own("copy", "Copy all of it as Markdown", ("y",), "copy"),
    _own("reload", "Reload the batch of the history", ("f5", "ctrl+r")),
    _own("stop", "Stop the cell", ("x",), "stop"),
    _own("stop_all", "Stop all runs", ("X",)),
    _own("left", "Column to the left", ("left",)),
    _own("right", "Column to the right", ("right",)),
    _own("other", "To the totals, and back", ("tab", "shift+tab")),
    _own("back", "Leave filter, mark or screen", ("escape",), "back"),
    _own("help", "Keys and help", ("question_mark",), "keys"),
    _own("quit", "Quit", ("q",)),
    _own("open", "Show both runs of the case side by side", ("enter",), "side by side", "paired"),
    _own("copy", "Copy the results of the tests", ("y",), "copy", "paired"),
    *search_actions("paired"),
    _own("back", "Back to the comparison", ("escape",), "back", "paired"),
    _own("help", "Keys and help", ("question_mark",), "keys", "paired"),
    _own("quit", "Quit", ("q",), screen="paired"),
)

FEATURE = Feature("comparing", ACTIONS, screens={"compare": "the comparison", "paired": "the paired tests"})
