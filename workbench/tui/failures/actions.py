"""Actions on the screen of failures."""

from __future__ import annotations

from workbench.tui.kit.actions import Action, Feature, MainSituation, key_for
from workbench.tui.lines.words import unless_read_only


def _failures(now: MainSituation) -> str | None:
    runs = unless_read_only(f"; {key_for('run.suite')} runs the suite or folder")
    return None if now.failed else f"nothing has failed{runs}"


ACTIONS: tuple[Action, ...] = (
    Action("failures", "Failures of the suite or folder, by cause", ("f",), label="failures", why_not=_failures),
    Action("failures.open", "Go to the run; fold a cause", ("enter",), "failures", "go to it", listed=False),
    Action("failures.left", "Fold the cause, or scroll the table back", ("left",), "failures", listed=False),
    Action("failures.right", "Unfold the cause, or scroll the table", ("right",), "failures", listed=False),
    Action("failures.filter", "Filter the runs as you type", ("slash",), "failures", "filter", listed=False),
    Action("failures.copy", "Copy all of it as text", ("y",), "failures", "copy", listed=False),
    Action("failures.other", "Other column", ("tab", "shift+tab"), "failures", "advice", listed=False),
    Action("failures.back", "Leave filter, advice or screen", ("escape",), "failures", "back", listed=False),
    Action("failures.help", "Keys and help", ("question_mark",), "failures", "keys", listed=False),
    Action("failures.quit", "Quit", ("q",), "failures", listed=False),
)

FEATURE = Feature("failures", ACTIONS, screens={"failures": "the failures"})
