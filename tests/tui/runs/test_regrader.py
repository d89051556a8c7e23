"""Grades follow expectations: an edit regrades the current runs, a message says what changed, and undo reverts it."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sampled_rows import first_rows
from tests.tui.apps import SMART_HOME, Call, Opened, conversation, opened, suites_in
from workbench.authoring.document import HEAD, Document
from workbench.checks.check import CheckContext
from workbench.engine.plan import PlannedRun
from workbench.evaluation import regrade
from workbench.grading.grade import Judgement, RunResult
from workbench.grading.status import Status

RIGHT: Sequence[Call] = (
    ("set_lights", {"room": "living room", "brightness": 9}),
    ("set_tv", {"power": "on"}),
)
CASES = 300
MANY = 'format = 1\nname = "Many"\n\n[[tools]]\nname = "go"\n' + "".join(
    f'\n[[cases]]\nname = "Case {number}"\nuser = "Go to {number}."\n'
    f'[[cases.ordered]]\ntool = "go"\nargs = {{ to = {{ equals = {number}, required = false }}, how = "fast" }}\n'
    for number in range(CASES)
)
CHECKED = SMART_HOME.replace('power = "on"', 'power = { python = "powers:is_power" }')


@pytest.fixture
def on_threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads on which runs are regraded, one for each run."""
    names: list[str] = []

    def graded_anew(result: RunResult, planned: PlannedRun, context: CheckContext) -> RunResult:
        names.append(threading.current_thread().name)
        return original(result, planned, context)

    original = regrade.regrade_result
    monkeypatch.setattr(regrade, "regrade_result", graded_anew)
    return names


async def ran(app: Opened, calls: Sequence[Call], *keys: str) -> None:
    """Run cases by keys, by default the selected case. Every run makes these calls."""
    for run in await app.run(*(keys or ("r",))):
        app.session.finish(run, conversation(run, calls, "Done."))
    app.session.end_batch()
    await app.settle()


async def change(app: Opened, old: str, new: str) -> None:
    """Change the text of the selected case."""
    main = app.app.main
    assert main.selection.suite is not None
    assert main.selection.case is not None
    text = main.selection.suite.document.text
    assert old in text
    main.open_suites.change(
        main.selection.suite, Document.of(text.replace(old, new)), "Changed", case=main.selection.case[1]
    )
    await app.settle()


async def test_an_edit_regrades_the_run_says_what_moved_and_undo_takes_it_back(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await ran(app, RIGHT)
        assert "✓ passed" in app.screen
        await change(app, 'power = "on"', 'power = "off", room = "hall"')
        assert "✗ failed" in app.screen
        assert "regraded; was passed 1.00 when it ran" in app.screen
        assert "1 run: passed → failed, no model call" in app.screen
        assert "changed since" not in app.screen
        assert "0/1" in app.screen
        await app.press("ctrl+z")
        assert "✓ passed" in app.screen
        assert "regraded" not in app.screen
        assert "1/1" in app.screen
        assert "Undone: Changed; 1 run: failed → passed, no model call" in app.screen


async def test_a_run_that_was_graded_anew_has_nothing_new_to_be_seen(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(120, 16)) as app:
        await ran(app, RIGHT)
        await app.press("3", "home")
        missing = '[[cases.ordered]]\ntool = "set_lights"\n\n[[cases.ordered]]\ntool = "set_tv"'
        await change(app, '[[cases.ordered]]\ntool = "set_tv"', missing)
        assert app.app.main.book.counts().ended.get(Status.FAILED, 0) == 1
        assert " new " not in app.screen


async def test_another_question_is_marked_and_graded_all_the_same(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await ran(app, RIGHT)
        await change(app, "Start movie night.", "Begin movie night.")
        assert "changed since" in app.screen
        await change(app, 'power = "on"', 'power = "off", room = "hall"')
        assert "✗ failed" in app.screen
        assert "changed since" in app.screen


@pytest.mark.slow
async def test_typing_grades_once_a_key_and_only_what_is_typed_in(tmp_path: Path, on_threads: list[str]) -> None:
    async with opened(suites_in(tmp_path, many=MANY)) as app:
        await ran(app, [("go", {"to": 0, "how": "fast"})], "R")
        await app.press("2", "v", "e", "ctrl+end")
        main = app.app.main
        for typed in ("# a", "# ab", "# abc"):
            document = main.open_suites.suites[0].document
            main.open_suites.change(
                main.open_suites.suites[0], document.with_block(0, f"{document.block(0)}{typed}\n"), "Typed", index=0
            )
        await app.settle()
        assert on_threads == [], "a comment grades nothing"
        for number in (1, 12, 123):
            document = main.open_suites.suites[0].document
            table = {**document.table(0), "ordered": [{"tool": "go", "args": {"to": number}}]}
            main.open_suites.change(
                main.open_suites.suites[0], document.with_case(0, table), "Typed", group="typing", index=0
            )
        await app.settle()
        assert len(on_threads) == 3


@pytest.mark.slow
async def test_a_change_of_settings_grades_everything_beside_what_is_done(
    tmp_path: Path, on_threads: list[str]
) -> None:
    async with opened(suites_in(tmp_path, many=MANY)) as app:
        await ran(app, [("go", {"to": 0, "how": "fast"})], "R")
        main = app.app.main
        assert main.book.counts().ended.get(Status.FAILED, 0) == CASES - 1
        (suite,) = main.open_suites.suites
        for threshold in (0.9, 0.5):
            document = suite.document.with_header("grading", {"fail_threshold": threshold, "warn_threshold": 1.0})
            main.open_suites.change(suite, document, "Changed", index=HEAD)
        assert on_threads == [], "nothing while the change is made"
        await app.settle()
        assert threading.main_thread().name not in on_threads
        assert len(on_threads) == CASES, "the first change was called off"
        assert f"{CASES - 1} runs: failed → warned, no model call" in app.screen
        assert main.book.counts().ended.get(Status.WARNED, 0) == CASES - 1
        await app.press("ctrl+z", "ctrl+z")
        await app.settle()
        assert main.book.counts().ended.get(Status.FAILED, 0) == CASES - 1
        assert len(on_threads) == CASES, "former grades are known"


@pytest.mark.slow
async def test_a_filter_for_failures_follows(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await ran(app, RIGHT, "R")
        await app.press("1", "slash", *"status:failed", "enter")
        assert "Movie night" not in app.screen.split("│")[1]
        await change(app, 'power = "on"', 'power = "off", room = "hall"')
        assert any("✗ Movie night" in line for line in app.screen.splitlines())


async def test_what_others_wrote_regrades_too(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        await ran(app, RIGHT)
        other = SMART_HOME.replace('power = "on"', 'power = "off", room = "hall"')
        (suites / "smart_home.toml").write_text(other, encoding="utf-8")
        await app.press("f5")
        await app.until(lambda: "1 run: passed → failed, no model call" in app.screen)
        assert "✗ failed" in app.screen


async def test_a_run_that_was_under_way_is_graded_by_what_its_case_says_when_it_ends(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (run,) = await app.run("r")
        await change(app, 'power = "on"', 'power = "off", room = "hall"')
        app.session.finish(run, conversation(run, RIGHT, "Done."))
        await app.settle()
        assert "✗ failed" in app.screen
        assert "changed since" not in app.screen


async def test_a_recording_holds_the_present_grade_and_the_case_that_gives_it(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        await ran(app, RIGHT)
        await app.press("w")
        await change(app, 'power = "on"', 'power = "off", room = "hall"')
        await app.press("w")
    first, second = sorted((suites / "recordings").iterdir())
    for file, power, status in ((first, '"on"', "passed"), (second, '"off"', "failed")):
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        assert f"power = {power}" in lines[0]["suite"]["text"]
        assert lines[-1]["result"]["status"] == status


@pytest.mark.parametrize(("trust", "status"), first_rows([(True, "✗ failed"), (False, "✓ passed")], 1))
async def test_python_is_called_beside_and_only_where_it_is_trusted(
    tmp_path: Path, on_threads: list[str], trust: bool, status: str
) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    (suites / "powers.py").write_text("def is_power(value):\n    return value == 'off'\n", encoding="utf-8")
    async with opened(suites, trust=trust) as app:
        await ran(app, RIGHT)
        await change(app, 'power = "on"', 'power = { python = "powers:is_power" }, room = "hall"')
        assert status in app.screen
        assert ("changed since" in app.screen) is not trust
        assert threading.main_thread().name not in on_threads
        assert trust or "Python code of a suite that is not trusted" in app.screen


async def test_what_was_never_judged_is_an_error_that_names_the_way_out(tmp_path: Path, on_threads: list[str]) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await ran(app, RIGHT)
        await change(app, 'power = "on"', 'power = { judged = "is a power" }')
        (run,) = app.app.main.selection.runs
        assert run.result is not None
        assert run.result.status == "error"
        assert run.result.error is not None
        assert "r runs the case and asks the judge" in run.result.error
        assert "1 run: passed → error, no model call" in app.screen
        assert threading.main_thread().name not in on_threads


async def test_what_is_known_of_a_value_is_judged_without_asking(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await ran(app, RIGHT)
        (run,) = app.app.main.selection.runs
        assert run.result is not None
        run.finish(replace(run.result, judgements=(Judgement("m", "is a power", '"on"', False, "It is a state."),)))
        await change(app, 'power = "on"', 'power = { judged = "is a power" }')
        assert "1 run: passed → failed, no model call" in app.screen
