"""Actions on the screen of the audit."""

from __future__ import annotations

from workbench.tui.kit.actions import Action, Feature, MainSituation, Situation, search_actions


def _audit(now: MainSituation) -> str | None:
    return None if now.has_file or now.row == "folder" else "there is no suite here"


def _found(now: Situation) -> str | None:
    return None if now.has_text else "nothing has been audited yet"


ACTIONS: tuple[Action, ...] = (
    Action(
        "audit",
        "Audit the suite or folder: find cases that check too little",
        ("exclamation_mark",),
        label="audit",
        why_not=_audit,
    ),
    Action("audit.open", "Go to the case", ("enter", "right"), "audit", "go to it", _found, listed=False),
    Action("audit.copy", "Copy all of it as text", ("y",), "audit", "copy", _found, listed=False),
    *search_actions("audit"),
    Action("audit.back", "Leave the screen", ("escape", "left"), "audit", "back", listed=False),
    Action("audit.help", "Keys and help", ("question_mark",), "audit", "keys", listed=False),
    Action("audit.quit", "Quit", ("q",), "audit", listed=False),
)

FEATURE = Feature("audit", ACTIONS, screens={"audit": "the audit"})
