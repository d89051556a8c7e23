"""The changes between two batches as rows and lines, without a screen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.tui.apps import SMART_HOME
from tests.tui.histories import Made, well, write_history
from workbench.history.records import Regrade, SuiteRef
from workbench.show.markdown import text
from workbench.show.spans import Span, cells, plain
from workbench.trajectory.events import JsonValue
from workbench.tui.history import changes as diff_lines
from workbench.tui.history.changes import DiffList
from workbench.tui.run_book.stored_batches import read_two


def changes_in(folder: Path, *batches: Made) -> DiffList:
    """Return the changes between the first two batches of a history."""
    suite = folder / "home.toml"
    suite.write_text(SMART_HOME, encoding="utf-8")
    write_history(folder / "history.sqlite3", suite, *batches)
    return DiffList(*read_two(folder / "history.sqlite3", (1, None), (2, None)), history="")


def rows_of(state: DiffList) -> list[str]:
    return [row.kind if row.change is None else f"  {row.change.case_name}" for row in state.rows]


def test_changes_stand_by_kind_and_fold(tmp_path: Path) -> None:
    state = changes_in(tmp_path, Made(well("Movie night")), Made(well("Lights off")))
    assert rows_of(state) == ["broke", "  Lights off", "fixed", "  Movie night"]
    state.move_to(1)
    assert state.fold(True)
    assert rows_of(state) == ["broke", "fixed", "  Movie night"]
    assert state.cursor == 0
    assert plain(diff_lines.head_lines(state, 80)[0]).strip() == "1 broke · 1 fixed · 0 moved · 1 as before"


def test_a_filter_shows_changes_by_kind_case_and_reason_and_unfolds_them(tmp_path: Path) -> None:
    state = changes_in(tmp_path, Made(well("Movie night")), Made(well("Lights off", "Nothing to do")))
    state.fold(True)
    state.set_filter("broke set_tv lights")
    assert rows_of(state) == ["broke", "  Lights off"]


def test_more_letters_of_a_filter_look_at_the_same_texts(tmp_path: Path) -> None:
    state = changes_in(tmp_path, Made(well("Movie night")), Made(well("Lights off")))
    looked: list[str] = []

    class Counting(dict[str, SuiteRef]):
        def __getitem__(self, key: str) -> SuiteRef:
            looked.append(key)
            return super().__getitem__(key)

    state.suites = Counting(state.suites)
    for typed in ("n", "ni", "nig"):
        state.set_filter(typed)
        assert len(looked) == len(state.diff.changes)
    assert rows_of(state) == ["fixed", "  Movie night"]


def test_cases_of_a_batch_that_was_cut_off_are_not_gone(tmp_path: Path) -> None:
    state = changes_in(tmp_path, Made(well()), Made(well("Movie night"), cut_after=1))
    assert rows_of(state) == ["broke", "  Movie night"]


def test_one_model_is_compared_with_another_where_each_batch_has_one(tmp_path: Path) -> None:
    state = changes_in(tmp_path, Made(well("Movie night"), models=("one",)), Made(well(), models=("two",)))
    assert rows_of(state) == ["fixed", "  Movie night"]
    change = state.rows[1].change
    assert change is not None
    said = [plain(line).strip() for line in diff_lines.detail_lines(state, state.rows[1], 80, head_is_cut=True)]
    assert "#1  one" in said
    assert "#2  two" in said
    sides = state.sides(change)
    assert [side.run.model for side in sides if side is not None] == ["one", "two"]


def test_of_repeats_the_run_is_shown_that_came_to_what_the_case_came_to(tmp_path: Path) -> None:
    state = changes_in(tmp_path, Made(well(), repeats=2), Made(well("Lights off"), repeats=2))
    change = state.rows[1].change
    assert change is not None
    sides = state.sides(change)
    statuses = [side.run.figures.status for side in sides if side is not None and side.run.figures is not None]
    assert statuses == ["passed", "failed"]


def test_models_of_one_batch_alone_are_left_out_and_named(tmp_path: Path) -> None:
    state = changes_in(
        tmp_path, Made(well(), models=("one", "two", "three")), Made(well("Lights off"), models=("one", "two"))
    )
    assert rows_of(state) == ["broke", "  Lights off", "  Lights off"]
    assert plain(diff_lines.head_lines(state, 80)[1]).strip() == "only #1 has three: not compared"


def test_another_grader_is_told_at_the_top_and_in_what_is_copied(tmp_path: Path) -> None:
    state = changes_in(tmp_path, Made(well(), by="decision"), Made(well("Lights off"), by="accuracy"))
    note = "graded by decision before, by accuracy now"
    assert plain(diff_lines.head_lines(state, 80)[1]).strip() == note
    assert note in state.as_text()


def test_what_else_is_to_be_known_is_what_the_command_line_says_and_never_out_of_reach(tmp_path: Path) -> None:
    made = Made(well(), models=("one", "two"), cases=("lights-off",))
    state = changes_in(tmp_path, Made(well(), models=("one", "two")), made)
    before, after = state.before, state.after
    reached: dict[str, JsonValue] = {"models": {"one": {"provider": "p", "params": {"temperature": 0.9}}}}
    then: dict[str, JsonValue] = {"models": {"one": {"provider": "p"}}}
    grading = Regrade(1, 2, 1, "2001-01-01T00:00:00+00:00", "0.1.0")
    state = DiffList(
        replace(before, batch=replace(before.batch, settings=then)),
        replace(after, batch=replace(after.batch, settings=reached, program="9.9.9"), grading=grading),
        history="",
    )
    notes = (
        "#2 has only 1 of 3 cases of home.toml",
        "at a different address or with different settings: one",
        f"made by Workbench {before.batch.program}, then 9.9.9",
        "2 runs of batch 2 ended after it was regraded, and have no new grade: 'workbench grade 2'"
        " regrades all of them",
    )
    assert state.notes == notes
    said = [plain(line).strip() for line in diff_lines.head_lines(state, 200)]
    assert set(state.notes) < set(said)
    assert said.index(state.notes[0]) < said.index(state.tests[0]), "the counts leave these out"
    assert state.rows[0].change is None
    for row in (state.rows[0], None):
        lines = diff_lines.detail_lines(state, row, 200, head_is_cut=True)
        assert set(state.notes) < {plain(line).strip() for line in lines}
        shorter = diff_lines.detail_lines(state, row, 200, head_is_cut=False)
        assert not set(state.notes) & {plain(line).strip() for line in shorter}, "the head has said it"
    state.set_filter("nothing fits")
    assert {text(note) for note in state.notes} < set(state.as_text().splitlines())
    assert ", grading 1)" in state.as_text().splitlines()[0]


def test_a_long_model_leaves_the_case_its_room(tmp_path: Path) -> None:
    long = "mediocre-quantized-instruct-q4_K_M-2026-11-long-name"
    state = changes_in(tmp_path, Made(well(), models=("one", long)), Made(well("Movie night"), models=("one", long)))
    rows = [plain(diff_lines.row_line(state, row, 44)) for row in state.rows if row.change is not None]
    assert all("Movie night" in row and cells((Span(row),)) <= 44 for row in rows)
    assert "mediocre-…" in rows[1]
    wide = [plain(diff_lines.row_line(state, row, 100)) for row in state.rows if row.change is not None]
    assert long in wide[1]
