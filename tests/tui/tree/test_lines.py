"""The lines of the tree: the result of a case, and the visible part of its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from tests.tui.apps import MOVIE_NIGHT, SMART_HOME, Call, Opened, conversation, opened, opening, suites_in
from workbench.engine.events import RunDone
from workbench.engine.plan import PlannedRun
from workbench.grading.grade import RunResult
from workbench.grading.status import Status
from workbench.show.spans import cells, plain
from workbench.trajectory.events import Event, EventPayload, FinishReason, RequestStarted, RunFinished
from workbench.trajectory.fold import fold
from workbench.tui.tree.lines import tree_line

LONG = "Dims the lights of the living room for a film"


def break_off(app: Opened, planned: PlannedRun, reason: FinishReason = "error") -> None:
    """End a run whose endpoint does not answer, or whose user is at fault."""
    happened: tuple[EventPayload, ...] = (opening(planned), RequestStarted(1), RunFinished(reason, "refused"))
    app.session.say(planned, *happened)
    events = [Event(planned.run_id, number, float(number), what) for number, what in enumerate(happened)]
    case, at = planned.case, str(planned.file.path)
    result = RunResult(
        planned.run_id,
        at,
        case.id,
        case.name,
        planned.model,
        planned.repeat,
        Status.ERROR,
        fold(events),
        (),
        error="refused",
    )
    app.session.listener(RunDone(result))


@pytest.mark.parametrize(
    "calls", first_of([MOVIE_NIGHT, (("set_lights", {"brightness": 0}),)], 1), ids=["failed", "passed"]
)
async def test_an_error_on_one_model_takes_no_grade_from_the_others_and_is_none(
    tmp_path: Path, calls: Sequence[Call]
) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), models=("one", "two"), trust=True) as app:
        await app.press("end", "up")
        good, unreachable = await app.run("r")
        app.session.finish(good, conversation(good, calls, "Done."))
        break_off(app, unreachable)
        app.session.end_batch()
        await app.settle()
        state, book = app.app.main.selection.tree, app.app.main.book
        by_label = {row.label: plain(tree_line(state, row, book, 30)) for row in state.rows}
        passed = calls is not MOVIE_NIGHT
        assert by_label["smart_home"].split()[-2:] == ["1/1" if passed else "0/1", "1▲"]
        assert by_label["Lights off"].split()[0] == ("✓" if passed else "✗")
        assert by_label["Lights off"].split()[-2] == "▲" and by_label["Lights off"].split()[-1] != "error"


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        (("passed", "passed", "user error"), ["✓", "Lights", "off", "2/2", "1", "!"]),
        (("passed", "failed", "user error"), ["✗", "Lights", "off", "≠", "1/2", "1", "!"]),
        (("user error", "error", "user error"), ["▲", "Lights", "off", "2", "!"]),
    ],
    ids=["good", "failed", "none graded"],
)
async def test_runs_that_a_user_spoilt_stand_beside_the_graded_ones(
    tmp_path: Path, ends: Sequence[str], shown: Sequence[str]
) -> None:
    repeated = SMART_HOME.replace('name = "Lights off"', 'name = "Lights off"\nrepeats = 3')
    async with opened(suites_in(tmp_path, smart_home=repeated), models=("one",), trust=True) as app:
        await app.press("end", "up")
        for run, end in zip(await app.run("r"), ends, strict=True):
            if end in ("error", "user error"):
                break_off(app, run, "user error" if end == "user error" else "error")
            else:
                calls: Sequence[Call] = (("set_lights", {"brightness": 0}),) if end == "passed" else MOVIE_NIGHT
                app.session.finish(run, conversation(run, calls, "Done."))
        app.session.end_batch()
        await app.settle()
        state, book = app.app.main.selection.tree, app.app.main.book
        [row] = [row for row in state.rows if row.label == "Lights off"]
        assert plain(tree_line(state, row, book, 34)).split() == shown


@pytest.mark.parametrize("status", ["waiting", "error"])
async def test_a_long_name_keeps_most_of_its_row(tmp_path: Path, status: str) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME.replace("Movie night", LONG)), trust=True) as app:
        await app.press("home", "down", "down")
        (run,) = await app.run("r")
        if status == "error":
            break_off(app, run)
            await app.settle()
        state, book = app.app.main.selection.tree, app.app.main.book
        row = next(row for row in state.rows if row.label == LONG)
        for width in (20, 30, 40):
            line = plain(tree_line(state, row, book, width))
            assert cells(tree_line(state, row, book, width)) <= width
            left = line.removesuffix(status).rstrip()
            assert len(left) - 6 >= int(0.6 * (width - 6)) - 1, line
        assert plain(tree_line(state, row, book, 60)).endswith(status)
