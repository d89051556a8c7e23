"""The situation of the main screen: the facts that decide which actions are available."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workbench.authoring.open_suite import OpenSuite
from workbench.grading.status import Status
from workbench.show.views.grades import why_not_graded
from workbench.show.visible import one_line
from workbench.tui.holds.actions import StepActions
from workbench.tui.kit.actions import (
    NO_EDITOR,
    NO_EDITOR_IN_BROWSER,
    MainSituation,
    RunPaneContent,
    Typing,
    actions_of,
    key_for,
)
from workbench.tui.run_book.record import RunRecord
from workbench.tui.shell.panes import PanesScreen
from workbench.tui.trajectory.actions import ShownRunActions
from workbench.tui.trajectory.pane import run_name
from workbench.tui.tree.rows import Row, keys_of
from workbench.tui.tree.selection import any_runnable_below, can_run

_NO_CASE_YET = "this run is of a request that is no case yet: accept it in the line below first"

_SHOWN_RUN_ACTIONS = frozenset({each.id for group in (ShownRunActions, StepActions) for each in actions_of(group)}) - {
    *("run.expand", "run.find", "run.find_next", "step.held"),
} | {"grades", "run.pair"}
"""The actions on the displayed run that need the case of the run."""


def situation_of(screen: PanesScreen) -> MainSituation:
    selection, book, tree = screen.selection, screen.book, screen.selection.tree
    movable = tuple(step for step in (-1, 1) if tree.neighbour(step) is not None)
    # This is computed for each key, so it must not read files or walk through trajectories.
    situation = MainSituation(
        pane=screen.pane,
        runnable=int(tree.suite_or_folder is not None and any_runnable_below(tree, tree.suite_or_folder, book)),
        variants=any(map(_has_variants, selection.suites_below()[0])),
        case_running=selection.case is not None and bool(book.active_runs(selection.case)),
        running=len(book.active_runs()),
        failures=book.any_failed or tree.remembered.has_reruns,
        failed="failed" in book.endings,
        cases=tree.case_count,
        has_stored_runs=selection.last_result is not None,
        runs=len(selection.runs),
        has_text=_has_text(screen),
        editor=screen.editor,
        why_no_editor=NO_EDITOR_IN_BROWSER if screen.app.is_web else NO_EDITOR,
        move_directions=movable,
        has_other_suite=_is_other_editable(screen),
        dirty_suites=len(selection.open_suites.dirty),
        has_borders=bool(screen.borders),
        moved_borders=screen.are_borders_moved,
        view=screen.case_pane.view,
        typing=_typing(screen),
        held_runs=len(book.held_runs),
        why_not_mockable=_why_not_taken(screen, answered=True),
        why_not_expectable=_why_not_taken(screen, answered=False),
        refused=screen.case_pane.refused,
    )
    if screen.adder is not None and screen.request_line.is_open:
        if screen.request_line.typing:
            situation = replace(situation, line=screen.adder.state.state)
        if (shown := screen.adder.runs_shown) is not None:
            situation = replace(situation, runs=len(shown[0]), refusals=dict.fromkeys(_SHOWN_RUN_ACTIONS, _NO_CASE_YET))
    if screen.pane == "case":
        situation = replace(situation, form_refusals=screen.case_pane.form_refusals())
    if selection.row is not None:
        situation = _with_row(situation, selection.row)
    if selection.suite is not None:
        situation = _with_suite(situation, selection.suite)
    if selection.run is not None:
        situation = _with_run(situation, screen, selection.run)
    return situation


def _has_variants(suite: OpenSuite) -> bool:
    return suite.file.suite is not None and bool(suite.file.suite.variants)


def _with_row(situation: MainSituation, row: Row) -> MainSituation:
    # The steps of a case are rows of the tree, but their actions are the actions of the case.
    if row.key.kind == "step":
        return replace(situation, row="case", on_step=True, broken=_cannot_run(row))
    return replace(situation, row=row.key.kind, broken=_cannot_run(row), why_case_not_editable=row.why_not_editable)


def _with_suite(situation: MainSituation, suite: OpenSuite) -> MainSituation:
    return replace(
        situation,
        has_file=True,
        why_row_not_editable=suite.why_not_editable,
        undoable=suite.undoable,
        redoable=suite.redoable,
        is_unsaved=suite.dirty or bool(suite.invalid_texts),
        is_deleted=suite.is_gone,
    )


def _with_run(situation: MainSituation, screen: PanesScreen, run: RunRecord) -> MainSituation:
    situation = replace(
        situation,
        shown=_shown_as(run),
        shown_failed=run.status == Status.FAILED,
        broke_off=run.broke_off,
        other_held_run=_other_held_run(screen.selection.runs, run),
        first_hold=run.is_held and not run.holds_before,
        by_agent=run.planned.subject is not None and run.planned.subject.is_agent,
        user_is_scripted=(user := run.planned.case.conversation) is not None and not user.is_played,
        other_call=_other_call(screen, run),
    )
    if run.result is not None:
        situation = replace(situation, graded=bool(run.result.grades))
        if not run.result.grades:
            situation = replace(situation, why_not_graded=why_not_graded(run.result))
    if run.paused is not None and run.paused.at != "permission":
        situation = replace(situation, held=run.paused.at)
    return situation


def _shown_as(run: RunRecord) -> RunPaneContent:
    if run.recorded and not run.is_unsaved:
        return "a recording"
    if run.result is not None:
        return "a finished run"
    return "a run"


def _has_text(screen: PanesScreen) -> bool:
    if screen.pane == "suites":
        return screen.selection.row is not None
    if screen.pane == "case":
        return bool(screen.case_pane.text_to_copy()[0])
    return screen.run_pane.run_list.item is not None


def _is_other_editable(screen: PanesScreen) -> bool:
    here = screen.selection.suite
    suites = screen.selection.open_suites.suites
    return any(suite is not here and suite.why_not_editable is None for suite in suites)


def _cannot_run(row: Row) -> bool:
    if row.open is None or row.open.file.suite is not None:
        return False
    return row.case is None or not any(can_run(row.open, key) for key in keys_of(row.open, row.case))


def _typing(screen: PanesScreen) -> Typing | None:
    if screen.request_line.typing:
        return "a request"
    if screen.filter_box.typing:
        return "a filter"
    if screen.pane == "run":
        return screen.run_pane.typing
    if screen.pane == "case":
        return screen.case_pane.typing
    return None


def _other_held_run(runs: Sequence[RunRecord], shown: RunRecord) -> str | None:
    """Return a message about another held run of the case, `None` if there is none."""
    held = next((run for run in runs if run.is_held and run is not shown), None)
    if held is None or shown.is_held:
        return None
    way = key_for("run.previous") if runs.index(held) < runs.index(shown) else key_for("run.next")
    state = "this run is not held" if shown.result is None else "this run has ended"
    return f"{state}; {run_name(held, runs)} is held: {way} shows it"


def _other_call(screen: PanesScreen, run: RunRecord) -> str | None:
    """Return a message if the run is held at a call other than the selected one, otherwise `None`."""
    # Editing is possible only at the held call, but the cursor may be on another call.
    place = screen.run_pane.run_list.place
    if run.paused is None or place is None or place.call_id is None or place.call_id == run.paused.call_id:
        return None
    tool, other = run.view.tool_of(run.paused.call_id), run.view.tool_of(place.call_id)
    if tool is None or other is None:
        return None
    position = {"call": "before", "question": "while a server asks in"}.get(run.paused.at, "after the result of")
    named = "this other call of it" if other == tool else one_line(other)
    state = "is over" if run.view.is_answered(place.call_id) else "comes later"
    return f"the run is held {position} {one_line(tool)}: {named} {state}; {key_for('step.held')} goes to the one held"


def _why_not_taken(screen: PanesScreen, *, answered: bool) -> str | None:
    """Return why the selected call cannot be added to the case, `None` if it can.

    With `answered`, the call must have a result."""
    suite, run, call_id = screen.selection.suite, screen.selection.run, screen.run_pane.call_meant
    if run is None or call_id is None:
        return "put the cursor on a call or its result"
    if answered and not run.view.is_answered(call_id):
        return f"this call has no answer yet: {key_for('step')} steps to it"
    row = screen.selection.row
    if suite is None or row is None:
        return None
    return row.why_not_editable
