"""Derives the situation of the main screen, which decides the available actions."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.grading.status import Status
from workbench.show.views.grades import why_not_graded
from workbench.show.visible import one_line
from workbench.tui.kit.actions import NO_EDITOR, NO_EDITOR_IN_BROWSER, MainSituation, Shown, Typing, key_for
from workbench.tui.run_book.record import RunRecord
from workbench.tui.shell.panes import PanesScreen
from workbench.tui.trajectory.pane import run_name
from workbench.tui.tree.selection import any_runnable_below, can_run


def situation_of(screen: PanesScreen) -> MainSituation:
    """Return the situation of the main screen."""
    row, whole = screen.selection.row, screen.selection.tree.whole
    kind = row.key.kind if row is not None else None
    case = screen.selection.case
    suite, shown = screen.selection.suite, screen.selection.run
    can_copy = {
        "suites": row is not None,
        "case": bool(screen.case_pane.text_to_copy()[0]) if screen.pane == "case" else False,
        "run": screen.run_pane.run_list.item is not None,
    }
    return MainSituation(
        pane=screen.pane,
        row="case" if kind == "step" else kind,
        on_step=kind == "step",
        runnable=int(whole is not None and any_runnable_below(screen.selection.tree, whole, screen.book)),
        variants=any(
            each.file.suite is not None and each.file.suite.variants for each in screen.selection.suites_below()[0]
        ),
        broken=row is not None and suite is not None and _cannot_run(screen),
        case_running=case is not None and bool(screen.book.under_way(case)),
        running=len(screen.book.under_way()),
        failures=screen.book.any_failed or screen.selection.tree.remembered.any_to_run_again,
        failed="failed" in screen.book.endings,
        cases=screen.selection.tree.case_count,
        shown=_what_is_shown(shown),
        shown_failed=shown is not None and shown.status == Status.FAILED,
        ran_before=screen.selection.last_result is not None,
        graded=shown is not None and shown.result is not None and bool(shown.result.grades),
        why_not_graded=_why_not_graded(shown),
        broke_off=shown is not None and shown.broke_off,
        runs=len(screen.selection.runs),
        has_file=suite is not None,
        has_text=can_copy[screen.pane],
        editor=screen.editor,
        no_editor=NO_EDITOR_IN_BROWSER if screen.app.is_web else NO_EDITOR,
        not_editable=suite.why_not_editable if suite is not None else "put the cursor on a suite or a case",
        undoable=suite.undoable if suite is not None else None,
        redoable=suite.redoable if suite is not None else None,
        movable=tuple(step for step in (-1, 1) if screen.selection.tree.neighbour(step) is not None),
        elsewhere=any(
            other is not suite and other.why_not_editable is None for other in screen.selection.open_suites.suites
        ),
        dirty=suite is not None and (suite.dirty or bool(suite.invalid_texts)),
        gone=suite is not None and suite.is_gone,
        dirty_suites=len(screen.selection.open_suites.dirty),
        has_borders=bool(screen.borders),
        moved_borders=screen.are_borders_moved,
        view=screen.case_pane.view,
        typing=_typing(screen),
        held=shown.paused.at if shown is not None and shown.paused and shown.paused.at != "permission" else None,
        held_beside=_held_beside(screen.selection.runs, shown),
        first_hold=shown is not None and shown.held and not shown.holds_before,
        other_call=_other_call(screen, shown),
        held_runs=len(screen.book.held_runs),
        not_mockable=_why_not_taken(screen, answered=True),
        not_expectable=_why_not_taken(screen, answered=False),
        refused=screen.case_pane.refused,
        form_refuses=screen.case_pane.form_refuses() if screen.pane == "case" else {},
    )


def _cannot_run(screen: PanesScreen) -> bool:
    row, suite = screen.selection.row, screen.selection.suite
    if row is None or suite is None or suite.file.suite is not None:
        return False
    return row.case is None or not can_run(suite, row.case.key)


def _typing(screen: PanesScreen) -> Typing | None:
    if screen.filter_box.typing:
        return "a filter"
    if screen.pane == "run":
        return screen.run_pane.typing
    return screen.case_pane.typing if screen.pane == "case" else None


def _held_beside(runs: Sequence[RunRecord], shown: RunRecord | None) -> str | None:
    """Return which other run of the case is held and how to get there, `None` if there is none."""
    held = next((run for run in runs if run.held and run is not shown), None)
    if shown is None or held is None or shown.held:
        return None
    way = "run.previous" if runs.index(held) < runs.index(shown) else "run.next"
    over = "this run is over" if shown.result is not None else "this run is not held"
    return f"{over}; {run_name(held, runs)} is held: {key_for(way)} shows it"


def _other_call(screen: PanesScreen, run: RunRecord | None) -> str | None:
    """Return a message if the run is held at a different call than the selected one, otherwise `None`."""
    place = screen.run_pane.run_list.place
    if run is None or run.paused is None or place is None or place.call_id in (None, run.paused.call_id):
        return None
    tool, other = (run.view.tool_of(call_id) for call_id in (run.paused.call_id, place.call_id))
    if tool is None or other is None:
        return None
    where = "before" if run.paused.at == "call" else "after the result of"
    named = "this other call of it" if other == tool else one_line(other)
    what = "is over" if run.view.is_answered(place.call_id or "") else "comes later"
    return f"the run is held {where} {one_line(tool)}: {named} {what}; {key_for('step.held')} goes to the one held"


def _why_not_taken(screen: PanesScreen, *, answered: bool) -> str | None:
    """Return why the selected call cannot be put into the case, with its result if `answered`."""
    suite, run, call_id = screen.selection.suite, screen.selection.run, screen.run_pane.call_meant
    if run is None or call_id is None:
        return "put the cursor on a call or its result"
    if answered and not run.view.is_answered(call_id):
        return f"this call has no answer yet: {key_for('step')} steps to it"
    return suite.why_not_editable if suite is not None else None


def _why_not_graded(run: RunRecord | None) -> str:
    return why_not_graded(run.result) if run is not None and run.result is not None and not run.result.grades else ""


def _what_is_shown(run: RunRecord | None) -> Shown:
    if run is None:
        return "nothing"
    return (
        "a recording" if run.recorded and not run.unwritten else "a finished run" if run.result is not None else "a run"
    )
