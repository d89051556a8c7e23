"""Turn the user messages of a run with a simulated user into a fixed script of its case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.authoring.frozen_user import frozen_user
from workbench.authoring.proposal import table_without_secrets
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.suite.render import Table
from workbench.suite.suite_text import SpliceError
from workbench.tui.kit.actions import key_for

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


def freeze_user(app: Workbench) -> None:
    """Write the user messages of the displayed run into its case as a script. One undo step reverts the change."""
    suite, run, row = app.selection.suite, app.selection.run, app.selection.row
    if suite is None or run is None or row is None or row.case is None:
        return
    table = suite.document.table(row.case.index)
    try:
        frozen = table_without_secrets(frozen_user(table, run.trajectory), table, app.program.secrets)
        document = suite.document.with_case(row.case.index, frozen)
    except (ValueError, SpliceError, IndexError) as error:
        app.announce(f"Nothing was changed: {error}", "warned", GLYPHS.warned)
        return
    turns = counted(sum(turn.said is not None for turn in run.trajectory.user_turns), "message")
    summary = f"the user is a script of {turns}"
    if _has_conditions(table):
        summary += ", each said whatever the answer"
    app.open_suites.change(suite, document, summary, case=row.case.key)
    moved = app.open_suites.moved_grades_text
    text = f"In {one_line(row.case.name)}, {summary}; {key_for('edit.undo')} undoes it, {key_for('save')} saves{moved}"
    app.announce(text, "passed", GLYPHS.passed)


def _has_conditions(case: Table) -> bool:
    user = case.get("user")
    messages = user.get("messages") if isinstance(user, dict) else None
    if not isinstance(messages, list):
        return False
    return any(isinstance(message, dict) and "when" in message for message in messages)
