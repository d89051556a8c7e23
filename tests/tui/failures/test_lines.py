"""The failures as rows and lines: causes that fold, a filter, a table whose first column stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.analysis.runs import called
from tests.grading.cases import call, case_of
from workbench.analysis.failures import confusion_of, failures_of
from workbench.engine.plan import PlannedRun, plan_runs
from workbench.show.spans import cells, plain
from workbench.show.views.failures import ConfusionTable, RunNames
from workbench.suite.model import Case
from workbench.suite.suite_file import load_suite
from workbench.tui.failures.state import FailureList, detail_lines, row_line
from workbench.tui.run_book.record import RunRecord

SUITE = """
format = 1
name = "Weather"
models = ["one", "two"]

[[cases]]
name = "Oslo"
user = "Weather in Oslo?"
[[cases.ordered]]
tool = "weather"
args = { city = "Oslo" }

[[cases]]
name = "Mail"
user = "Mail me."
disallowed = [{ tool = "delete" }]
[[cases.ordered]]
tool = "mail"
""".lstrip()

WRONG_TOOL = ("forecast", {"city": "Oslo"})
WRONG_CITY = ("weather", {"city": "Rome"})
RIGHT = ("weather", {"city": "Oslo"})


def planned_in(folder: Path) -> list[PlannedRun]:
    file = folder / "weather.toml"
    file.write_text(SUITE, encoding="utf-8")
    return list(plan_runs([load_suite(file)]))


def ended(planned: PlannedRun, *calls: tuple[str, dict[str, str]]) -> RunRecord:
    """Return a finished, graded run with these calls."""
    result, _ = called(planned.case, *calls)
    record = RunRecord(planned)
    record.finish(replace(result, run_id=planned.run_id, model=planned.model))
    return record


def failures_in(folder: Path) -> FailureList:
    """Oslo failed with both models, one of them by a wrong tool; Mail broke a prohibition, with one not over yet."""
    runs = {(run.case.name, run.model): run for run in planned_in(folder)}
    records = [
        ended(runs["Oslo", "one"], WRONG_CITY),
        ended(runs["Oslo", "two"], WRONG_TOOL),
        ended(runs["Mail", "one"], ("delete", {}), ("mail", {}), ("mail", {})),
        RunRecord(runs["Mail", "two"]),
    ]
    state = FailureList(records, {folder / "weather.toml": "Weather"})
    state.set_failures(failures_of(state.results()))
    return state


def shown(state: FailureList, width: int = 40) -> list[str]:
    return [plain(row_line(state, row, width)).rstrip() for row in state.rows]


def test_causes_stand_with_their_counts_and_the_runs_below_them(tmp_path: Path) -> None:
    state = failures_in(tmp_path)
    assert shown(state) == [
        "▾ forbidden call                       1",
        "    Mail  one",
        "▾ wrong tool                           1",
        "    Oslo  two",
        "▾ extra call                           1",
        "    Mail  one             forbidden call",
        "▾ wrong argument                       1",
        "    Oslo  one",
        "Expected and called  all graded runs",
    ]
    assert state.under_way == 1


def test_a_cause_folds_from_any_of_its_rows_and_the_cursor_goes_to_it(tmp_path: Path) -> None:
    state = failures_in(tmp_path)
    state.move_to(3)
    assert state.fold(True)
    assert shown(state)[2:4] == ["▸ wrong tool                           1", "▾ extra call                           1"]
    assert state.cursor == 2
    assert not state.fold(True)
    assert state.fold(False)
    assert state.cursor == 2


def test_the_filter_shows_runs_by_case_model_tool_or_parameter(tmp_path: Path) -> None:
    state = failures_in(tmp_path)
    state.set_filter("weather.city")
    assert shown(state) == ["▾ wrong argument                       1", "    Oslo  one"]
    state.set_filter("nobody")
    assert state.rows == []
    assert state.selected is None


def test_the_run_under_the_cursor_is_the_one_to_go_to(tmp_path: Path) -> None:
    state = failures_in(tmp_path)
    assert state.record is None
    state.move_to(3)
    assert state.record is not None
    assert (state.record.case_name, state.record.model) == ("Oslo", "two")


def test_looking_again_resumes_where_one_was(tmp_path: Path) -> None:
    before = failures_in(tmp_path)
    before.move_to(1)
    before.fold(True)
    before.move_to(2)
    again = FailureList(before.records, {tmp_path / "weather.toml": "Weather"})
    again.set_failures(failures_of(again.results()))
    assert before.selected is not None
    again.resume(before.folded, before.selected.key)
    assert (again.cursor, shown(again)[0]) == (2, "▸ forbidden call                       1")
    again.resume(frozenset(), None)
    assert again.cursor == 1, "Enter goes to a run at once"


def test_beside_a_cause_stand_meaning_advice_subjects_examples_and_the_table(tmp_path: Path) -> None:
    state = failures_in(tmp_path)
    table = ConfusionTable(state.failures.confusion)
    said = [plain(line).strip() for line in detail_lines(state, state.rows[2], table, 0, 60)]
    assert said[0] == "wrong tool  1 run"
    for heading in ("What to do", "Tools and parameters", "Examples", "Expected and called"):
        assert any(line.startswith(heading) for line in said)
    assert ["weather,", "but", "forecast", "was", "called", "1"] in [line.split() for line in said]


def test_beside_a_run_stand_all_its_causes(tmp_path: Path) -> None:
    state = failures_in(tmp_path)
    table = ConfusionTable(state.failures.confusion)
    said = [plain(line).strip() for line in detail_lines(state, state.rows[1], table, 0, 60)]
    assert "forbidden call  the main cause" in said
    assert "extra call" in said
    assert said[said.index("What to do") + 1].startswith("Say in the description of delete when it must not")


def test_where_there_is_little_room_the_case_gives_way_and_the_model_stays(tmp_path: Path) -> None:
    state = failures_in(tmp_path)
    suites = {state.failures.runs[0].result.suite: "Weather", "elsewhere.toml": "Elsewhere"}
    state.names = RunNames(suites, with_suite=True, with_model=state.names.with_model)
    assert shown(state, 24)[3] == "    Weather › Oslo  two"
    assert shown(state, 18)[3] == "    Weather…  two"
    assert shown(state, 24)[5] == "    Weather › Mail  one", "the other main cause goes first"


def test_equal_examples_of_a_case_stand_there_once_with_all_their_models(tmp_path: Path) -> None:
    one, two = planned_in(tmp_path)[:2]
    state = FailureList([ended(run, WRONG_CITY) for run in (one, two)], {tmp_path / "weather.toml": "Weather"})
    state.set_failures(failures_of(state.results()))
    table = ConfusionTable(state.failures.confusion)
    said = [plain(line).strip() for line in detail_lines(state, state.rows[0], table, 0, 60)]
    assert "Oslo  one, two" in said
    assert len([line for line in said if line.startswith("got")]) == 1


def test_the_table_beside_a_run_says_that_it_is_over_all_of_them(tmp_path: Path) -> None:
    state = failures_in(tmp_path)
    table = ConfusionTable(state.failures.confusion)
    said = [plain(line).strip() for line in detail_lines(state, state.rows[1], table, 0, 60)]
    assert "Expected and called  over all 3 graded runs" in said


def test_no_line_is_wider_than_its_place(tmp_path: Path) -> None:
    state = failures_in(tmp_path)
    table = ConfusionTable(state.failures.confusion)
    for width in range(24, 100):
        assert all(cells(row_line(state, row, width)) <= width for row in state.rows)
        for row in state.rows:
            for first in range(table.last_first(width) + 1):
                assert all(cells(line) <= width for line in detail_lines(state, row, table, first, width))


def test_the_table_scrolls_by_columns_and_keeps_its_first() -> None:
    tools = ["Calendar_CreateEvent", "Calendar_UpdateEvent", "Calendar_DeleteEvent"]
    table = ConfusionTable(confusion_of([([tool], [tool]) for tool in tools] + [(tools[:1], [])]))
    wide = [plain(line) for line in table.lines(120, 0)]
    assert wide[0].split() == ["expected", "no", "call", tools[0], tools[2], tools[1]]
    assert table.last_first(120) == 0
    narrow = [plain(line).rstrip() for line in table.lines(54, 0)]
    assert narrow[0].strip() == "columns 1 to 2 of 4 · ← → scroll"
    assert narrow[2].split() == ["Calendar_CreateEvent", "1", "1"]
    last = [plain(line).rstrip() for line in table.lines(54, table.last_first(54))]
    assert last[0].strip() == "column 4 of 4 · ← → scroll"
    assert last[2].split() == ["Calendar_CreateEvent", "·"]


def test_a_case_of_no_expectation_makes_an_empty_table_and_no_row_for_it() -> None:
    case: Case = case_of(disallowed=[call("mail")])
    result, _ = called(case, ("mail", {}))
    assert result.status == "failed"
    table = ConfusionTable(confusion_of([]))
    assert table.last_first(40) == 0
    assert [plain(line).strip() for line in table.lines(40, 0)] == ["expected"]
