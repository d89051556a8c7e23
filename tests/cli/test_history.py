"""`workbench history`: the batches that were run, listed, compared, regraded, exported and removed."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.history.batches import SUITE, run_kept
from tests.schemas import fits
from workbench.cli.main import main
from workbench.history.claims import claim
from workbench.history.history import History

RIGHT = SUITE.replace("Rome", "Berlin")
"""The same suite with an expectation that the offline model meets."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with three batches: one of two cases fails in the first two, in the third with repeats none does."""
    folder = tmp_path_factory.mktemp("kept")
    file = folder / ".workbench" / "history.sqlite3"
    file.parent.mkdir()
    run_kept(folder, file)
    run_kept(folder, file)
    run_kept(folder, file, suite=RIGHT, repeats=2)
    return folder


@pytest.fixture
def program(tmp_path: Path, kept: Path) -> Program:
    """The program in a copy of that project."""
    shutil.copytree(kept, tmp_path, dirs_exist_ok=True)
    with closing(sqlite3.connect(tmp_path / ".workbench" / "history.sqlite3")) as connection:
        connection.execute("UPDATE suites SET project = ?", (str(tmp_path.resolve()),))
        connection.commit()
    return Program(tmp_path)


def words_of(*words: str) -> list[str]:
    """Return the words of a command on batches: those of `workbench history`, except for two separate commands."""
    if words[:1] == ("regrade",):
        return ["grade", *words[1:]]
    if words[:1] == ("export",):
        return ["export", words[1], "-o", *words[2:]]
    return ["history", *words]


def said(program: Program, *words: str, code: int = 0) -> str:
    """Return the output of a command on batches, which prints no complaints."""
    done = program.run(*words_of(*words))
    assert (done.returncode, done.stderr) == (code, "")
    return done.stdout


def complaint(program: Program, *words: str, code: int = 2) -> str:
    """Return the complaint of a command, one line."""
    done = program.run(*words_of(*words))
    assert done.returncode == code
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def kept_batches(program: Program) -> list[int]:
    with History(program.folder / ".workbench" / "history.sqlite3") as history:
        return [batch.number for batch in history.batches()]


def test_an_empty_history_says_how_it_begins(tmp_path: Path) -> None:
    assert "'workbench run PATH' stores one" in said(Program(tmp_path)) == said(Program(tmp_path), "list")
    assert "there is no batch" in complaint(Program(tmp_path), "show")
    assert "there is no batch '7'" in complaint(Program(tmp_path), "diff", "7")


def test_batches_are_listed_the_newest_first_with_a_line_for_each_suite(program: Program) -> None:
    lines = said(program, "list").splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["#3", "#2", "#1"]
    assert re.search(r"(now|\d+ min) +Weather +offline \(baseline\) +✓4 +100\.0%$", lines[0])
    assert re.search(r"Weather +offline \(baseline\) +✓1 ✗1 +50\.0%$", lines[2])
    assert lines[4:6] == [
        "pass rates of the latest whole batches, the oldest first",
        "Weather (weather.toml)  offline  ▄▄█  100.0%",
    ]
    assert lines[-1].startswith("3 batches, in ")


def test_the_list_can_be_cut_and_be_of_one_suite(program: Program) -> None:
    listed = json.loads(said(program, "--limit", "1", "--suite", "weather.toml", "--format", "json"))
    assert [batch["number"] for batch in listed["batches"]] == [3]
    assert [whole["pass_rate"] for whole in listed["trends"][0]["whole_batches"]] == [0.5, 0.5, 1.0]
    assert "no batch of a suite 'clock.toml'" in complaint(program, "list", "--suite", "clock.toml")


def test_a_batch_is_shown_with_what_failed_and_why(program: Program) -> None:
    shown = said(program, "show", "1")
    assert "offline: 2 cases: 1 passed, 1 failed" in shown
    assert "pass rate 50.0% (95%: 2.5% to 97.5%) · mean score 0.75 (95%: " in shown
    assert re.search(
        r"^2  ✗ Weather › Nowhere  offline +0\.50  wrong argument: get_weather.city: not equal$", shown, re.MULTILINE
    )
    assert "Paris" not in shown
    assert "Paris #2" in said(program, "show", "--verbose")
    as_json = json.loads(said(program, "show", "1", "--format", "json"))
    assert [(run["case_id"], run["status"]) for run in as_json["runs"]] == [("paris", "passed"), ("nowhere", "failed")]


def test_a_stored_run_is_told_step_by_step(program: Program) -> None:
    lines = said(program, "show", "#2", "--run", "2").splitlines()
    assert lines[0] == "#2 run 2  Weather › Nowhere  offline"
    assert lines[lines.index("   → get_weather") + 1].split() == ["city", '"Berlin"', "✗", "expected", '"Rome"']
    assert any(line.startswith(" ✗ failed 0.50  ") for line in lines), lines[-6:]
    assert "batch 2 has 2 runs: there is no run 3" in complaint(program, "show", "2", "--run", "3")


def test_a_case_is_shown_over_time(program: Program) -> None:
    lines = said(program, "show", "--case", "nowhere").splitlines()
    assert lines[1] == "offline  ▄▄█  good in 1 of 3 batches, scores by height"
    assert lines[3].startswith("#3") and lines[3].endswith("✓ passed 1.00 (2 of 2)")
    assert "the suite changed here" in lines[4]
    assert lines[6].startswith("#1") and lines[6].endswith("✗ failed 0.50: wrong argument: get_weather.city: not equal")
    assert "did you mean 'nowhere'" in complaint(program, "show", "--case", "nowere")


@pytest.mark.slow
def test_a_case_is_looked_for_in_all_batches_unless_one_is_named(program: Program) -> None:
    program.write("other.toml", SUITE.replace("Nowhere", "Elsewhere").replace("Weather", "Other"))
    program.run("run", "other.toml")
    for words in ((), ("1",)):
        assert "Weather › Nowhere  weather.toml" in said(program, "show", *words, "--case", "nowhere")
    assert "Other" in said(program, "show", "--case", "paris")
    assert "Other" not in said(program, "show", "1", "--case", "paris")
    for chosen, ids in ((["3", "--case", "Nowhere"], ["nowhere"]), (["--case", "*WHERE"], ["elsewhere", "nowhere"])):
        shown = json.loads(said(program, "show", *chosen, "--format", "json"))
        assert shown["case_id"] == (ids[0] if len(ids) == 1 else None)
        assert sorted({run["case_id"] for run in shown["runs"]}) == ids
    assert complaint(program, "show", "4", "--case", "nowhere") == (
        "batch 4 ran no case 'nowhere': did you mean 'elsewhere'?\n"
    )
    assert "ran a case 'x': 'workbench history list' lists all" in complaint(program, "show", "--case", "x")


def test_a_fork_is_compared_with_no_batch_and_what_is_not_whole_is_said(program: Program) -> None:
    program.write("weather.toml", RIGHT)
    program.run("run", "weather.toml", "--case", "paris")
    assert "#4 has only 1 of 2 cases of weather.toml" in said(program, "diff", "3", "4").splitlines()
    with closing(sqlite3.connect(program.folder / ".workbench" / "history.sqlite3")) as connection, connection:
        connection.execute("UPDATE batches SET kind = 'fork' WHERE id = 4")
    for words in (("3", "4"), ("4",)):
        assert complaint(program, "diff", *words).startswith("batch 4 is a fork of one run, so it cannot be compared")


def test_runs_in_error_are_counted_where_cases_have_several_runs(program: Program) -> None:
    with closing(sqlite3.connect(program.folder / ".workbench" / "history.sqlite3")) as connection, connection:
        connection.execute("UPDATE runs SET status = 'error', score = NULL WHERE batch = 3 AND repeat = 1")
    assert "2 cases in 4 runs (2 in error): 2 passed, 0 failed" in said(program, "show", "3")


def test_two_batches_are_compared_case_by_case(program: Program) -> None:
    lines = said(program, "diff", "1").splitlines()
    assert lines[0].startswith("#1 (") and "→ #3 (" in lines[0]
    counts = lines[1].split(" · ")  # a busy machine may be slower, too
    assert (counts[:3], counts[-1]) == (["0 broke", "1 fixed", "0 moved"], "1 as before")
    assert re.match(r"#3 \+50\.0 points \(95%: .*\), better on 1, worse on 0 of 2, p = 1: not enough to tell", lines[2])
    assert "changed between the batches: weather.toml" in lines
    came_to = "failed 0.50 → passed 1.00 (2 of 2), before: wrong argument: get_weather.city: not equal"
    assert f"fixed  Weather › Nowhere  {came_to}" in [re.sub(" {2,}", "  ", line) for line in lines]
    assert "batch 3 is the newest one: give the batch to compare it with" in complaint(program, "diff", "3")
    markdown = said(program, "diff", "3", "1", "--format", "markdown")
    broke = "| broke | Weather › Nowhere | passed 1.00 (2 of 2) → failed 0.50: wrong argument:"
    assert broke in markdown
    as_json = json.loads(said(program, "diff", "1", "2", "--format", "json"))
    assert (as_json["changes"], as_json["compared"], as_json["tests"][0]["pairs"]) == ([], 2, 2)
    (test,) = as_json["tests"]
    assert test["sentence"] == "#1 and #2 agree on 2 cases, +0.0 points (95%: -65.8 to +65.8): nothing tells them apart"
    broke = json.loads(said(program, "diff", "3", "1", "--format", "json"))["changes"][0]
    assert (broke["kind"], broke["case_id"], broke["after"]["status"]) == ("broke", "nowhere", "failed")


def test_two_batches_are_compared_as_another_grader_decides(program: Program) -> None:
    assert "all runs as decision grades them" in said(program, "diff", "1", "3", "--by", "decision").splitlines()
    by_itself, by_other = (
        json.loads(said(program, "diff", "1", "3", *words, "--format", "json"))["changes"][0]["before"]
        for words in ((), ("--by", "decision"))
    )
    assert (by_itself["score"], by_other["score"]) == (0.5, pytest.approx(2 / 3))
    assert "<html" in said(program, "diff", "1", "3", "--by", "decision", "--format", "html")


def test_a_name_stands_for_a_batch_until_another_gets_it(program: Program) -> None:
    assert said(program, "name", "1", "good") == "#1 is now good\n"
    assert said(program, "name", "3", "good") == "#3 is now good; #1 no longer is\n"
    assert said(program, "show", "good").startswith("#3 good  ")
    assert said(program, "name", "good", "--remove") == "#3, no longer good\n"
    assert "there is no batch 'good'" in complaint(program, "show", "good")


@pytest.mark.slow
def test_old_runs_are_graded_by_what_is_expected_today_beside_what_they_were(program: Program) -> None:
    lines = said(program, "regrade", "1", "2").splitlines()
    assert lines[:3] == [
        "#1: 2 runs regraded, grading 1",
        "  Weather › Nowhere (offline): failed 0.50 → passed 1.00",
        "  1 run: failed → passed",
    ]
    assert lines[3] == "#2: 2 runs regraded, grading 1"
    assert "1 passed, 1 failed" in said(program, "show", "1")
    assert "2 passed, 0 failed" in said(program, "show", "1", "--grading", "latest")
    assert "✓ passed 1.00" in said(program, "show", "1", "--grading", "1", "--run", "2")
    assert "1 fixed" in said(program, "diff", "1", "3")
    assert "0 fixed" in said(program, "diff", "1", "3", "--grading", "latest")
    assert "was regraded 1 time: there is no grading 2" in complaint(program, "show", "1", "--grading", "2")
    assert "batch 3 was never regraded" in complaint(program, "show", "3", "--grading", "1")


def test_what_was_skipped_stays_skipped_when_it_is_graded_again(program: Program) -> None:
    program.write("weather.toml", RIGHT.replace('name = "Nowhere"', 'name = "Nowhere"\nskip = "not now"'))
    program.run("run", "weather.toml", "--model", "offline")
    assert "no grade changed" in said(program, "regrade", "4")
    assert "2 cases: 1 passed, 0 failed, 1 skipped" in said(program, "show", "4", "--grading", "1")


def test_what_cannot_be_graded_again_is_said(program: Program) -> None:
    asks_otherwise = RIGHT.replace("city of Berlin?", "town of Berlin?")
    program.write(
        "weather.toml",
        asks_otherwise[: asks_otherwise.index('[[cases]]\nname = "Paris"')]
        + (asks_otherwise[asks_otherwise.index('[[cases]]\nname = "Nowhere"') :]),
    )
    done = program.run("grade", "1", "--format", "json")
    assert done.returncode == 0
    assert "1 run of cases that no longer exist in the suite keep their grades: paris" in done.stderr
    assert "nowhere: its request has changed" in done.stderr
    (run,) = json.loads(done.stdout)["batches"][0]["runs"]
    assert (run["case_id"], run["moved"], run["asked_otherwise"]) == ("nowhere", True, True)


def test_a_suite_that_moved_is_named(program: Program) -> None:
    moved = (program.folder / "weather.toml").rename(program.folder / "elsewhere.toml")
    done = program.run("grade", "1")
    assert done.returncode == 2
    assert "give its new path with --suite FILE" in done.stderr and "nothing was graded" in done.stderr
    assert "1 run: failed → passed" in said(program, "regrade", "1", "--suite", str(moved))


def test_a_batch_is_exported_as_recordings_that_everybody_can_read(program: Program) -> None:
    assert said(program, "export", "3", "runs") == "#3: 4 recordings in runs\n"
    names = sorted(path.name for path in (program.folder / "runs").iterdir())
    assert names == [f"batch-3.weather.{case}.offline.{n}.run.jsonl" for case in ("nowhere", "paris") for n in (1, 2)]
    graded = program.run("grade", "runs")
    assert graded.returncode == 0
    assert graded.stdout.endswith("no grade differs from the recorded one\n")


def test_a_batch_is_exported_as_the_report_of_its_run(program: Program) -> None:
    assert "2 runs in" in said(program, "export", "1", "out", "--format", "json")
    report = json.loads((program.folder / "out" / "batch-1.json").read_text(encoding="utf-8"))
    fits(report, "report")
    assert (report["totals"]["passed"], report["totals"]["failed"], report["exit_code"]) == (1, 1, 1)
    assert "already exists" in complaint(program, "export", "1", "out", "--format", "json")


def test_a_key_that_a_suite_expects_is_found_in_no_new_grades(program: Program) -> None:
    key = "planted-4711-0815"
    program.write(".env", f"S3={key}\n")
    reached = 'provider = "openai"\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "S3"\n'
    program.write("workbench.toml", f"[models.fast]\n{reached}")
    program.write("weather.toml", SUITE.replace("Rome", key))
    told = said(program, "regrade", "1") + said(program, "show", "1", "--grading", "1", "--run", "2", "--verbose")
    assert key not in told and "$S3" in told
    history = program.folder / ".workbench" / "history.sqlite3"
    with closing(sqlite3.connect(history)) as connection:
        (outcomes,) = zip(*connection.execute("SELECT outcome FROM regrades"), strict=True)
        assert [key.encode() in zlib.decompress(each) for each in outcomes] == [False, False]
        # A Workbench that did not know the key would have stored this.
        spoilt = zlib.compress(zlib.decompress(outcomes[1]).replace(b"$S3", key.encode()))
        connection.execute("UPDATE regrades SET outcome = ? WHERE outcome = ?", (spoilt, outcomes[1]))
        connection.commit()
    assert key not in said(program, "show", "1", "--grading", "1", "--run", "2", "--verbose")
    said(program, "export", "1", "runs", "--grading", "1")
    said(program, "export", "1", "runs", "--grading", "1", "--format", "json")
    written = [path.read_text(encoding="utf-8") for path in (program.folder / "runs").iterdir()]
    assert len(written) == 3 and not any(key in text for text in written)


def test_one_damaged_run_costs_no_other_one(program: Program) -> None:
    with closing(sqlite3.connect(program.folder / ".workbench" / "history.sqlite3")) as connection:
        connection.execute(
            "UPDATE details SET events = x'00', block = NULL WHERE run = (SELECT id FROM runs WHERE batch = 1 LIMIT 1)"
        )
        connection.commit()
    for words, done in (
        (["export", "1", "runs"], "#1: 1 recording in runs"),
        (["export", "1", "runs", "--format", "json"], "#1: 1 run in runs"),
        (["regrade", "1"], "#1: 1 run regraded"),
    ):
        told = program.run(*words_of(*words))
        assert told.returncode == 2
        assert re.fullmatch(r"left out: run 1 of batch 1 in .* is damaged: .*\n", told.stderr)
        assert told.stdout.startswith(done)


def test_a_batch_that_is_going_on_is_not_graded_again(program: Program) -> None:
    history = program.folder / ".workbench" / "history.sqlite3"
    with closing(sqlite3.connect(history)) as connection:
        connection.execute("UPDATE batches SET ended_at = NULL WHERE id = 1")
        connection.commit()
    going = claim(history, 1)
    assert "batch 1 is still running: regrade it when it is finished" in complaint(program, "regrade", "1")
    going.release()
    assert "regraded" in said(program, "regrade", "1")


def test_a_name_is_one_line_of_text(program: Program) -> None:
    assert "a name is one line of text" in complaint(program, "name", "1", "a\x1b[31mb\nc")


@pytest.mark.parametrize("number", ["x", "0", "-1", "1" * 10])
@pytest.mark.parametrize(
    "words", [["list", "--limit"], ["show", "--run"], ["show", "1", "--grading"]], ids=lambda words: words[-1]
)
def test_what_no_number_of_something_can_be_is_refused_in_the_same_words(
    capsys: pytest.CaptureFixture[str], words: list[str], number: str
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["history", *words[:-1], f"{words[-1]}={number}"])
    assert left.value.code == 2
    other = ", or latest" if words[-1] == "--grading" else ""
    assert capsys.readouterr().err.endswith(f"argument {words[-1]}: write a number from 1 to 999999999{other}\n")


@pytest.mark.parametrize(("number", "fits"), [("0", True), ("999999999", True), ("x", False), ("-1", False)])
def test_none_may_be_kept(program: Program, number: str, *, fits: bool) -> None:
    done = program.run("history", "prune", f"--keep={number}", "--yes")
    assert (done.returncode == 0) == fits
    assert ("write a number from 0 to 999999999" in done.stderr) != fits


def test_nothing_is_removed_before_somebody_said_yes(program: Program) -> None:
    done = program.run("history", "prune", "--keep", "1")
    assert done.returncode == 2
    assert "nothing was removed (2 batches, about" in done.stderr and "--yes" in done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["#2", "#1"]
    assert kept_batches(program) == [3, 2, 1]
    assert said(program, "prune", "--older-than", "30d") == "there is nothing to remove\n"
    assert "choose batches with --keep N" in complaint(program, "prune", "--yes")


def test_batches_with_a_name_stay(program: Program) -> None:
    said(program, "name", "1", "good")
    assert "removed 1 batch" in said(program, "prune", "--keep", "1", "--yes")
    assert kept_batches(program) == [3, 1]
    assert "removed 1 batch" in said(program, "prune", "--batch", "good", "--yes")
    assert kept_batches(program) == [3]


@pytest.fixture
def going_on(program: Program) -> Iterator[None]:
    """The second batch is one that another program makes runs of."""
    file = program.folder / ".workbench" / "history.sqlite3"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE batches SET ended_at = NULL WHERE id = 2")
        connection.commit()
    claimed = claim(file, 2)
    yield
    claimed.release()


@pytest.mark.usefixtures("going_on")
def test_a_batch_that_goes_on_stays(program: Program) -> None:
    assert "running: 2 of 2 runs finished" in said(program, "list")
    done = program.run("history", "prune", "--keep", "0", "--yes")
    assert "batch 2 is still running and was not removed" in done.stderr
    assert kept_batches(program) == [2]


def test_a_damaged_history_stays_until_the_next_batch_sets_it_aside(program: Program) -> None:
    file = program.folder / ".workbench" / "history.sqlite3"
    file.write_bytes(b"no database" * 100)
    for words in (("list",), ("show", "1"), ("diff", "1", "2"), ("export", "1", "out"), ("prune", "--keep", "1")):
        assert "is damaged: the next batch renames it and starts a new one" in complaint(program, *words)
    assert file.read_bytes() == b"no database" * 100
    assert "was damaged and renamed to history.damaged-" in program.run("run", "weather.toml").stderr
    assert kept_batches(program) == [1]
    (aside,) = file.parent.glob("history.damaged-*")
    assert aside.read_bytes() == b"no database" * 100


IMPATIENT = """
from workbench.evaluation import runtime
runtime.SETTLING_TIMEOUT_S = 0.05
"""
"""Python code for the start of a program: it waits only a moment until its runs are stored."""


@pytest.mark.slow
def test_what_is_no_history_is_left_as_it_is(program: Program) -> None:
    notes = program.write("notes.txt", "no database")
    assert f"{notes.name} is not a history: name another" in complaint(program, "list", "--history", "notes.txt")
    assert "is a folder, not a history" in complaint(program, "name", "1", "good", "--history", ".")
    with closing(sqlite3.connect(program.folder / "theirs.sqlite3")) as theirs, theirs:
        theirs.execute("CREATE TABLE theirs (id)")
    (program.folder / "vault.sqlite3").write_bytes(b"no database" * 1000)
    (program.folder / "loop").symlink_to("loop")
    os.mkfifo(program.folder / "pipe")
    before = set(program.folder.rglob("*"))
    for name, why in (
        ("notes.txt", "notes.txt is not a history: name another"),
        ("theirs.sqlite3", "is a different database"),
        ("vault.sqlite3", "vault.sqlite3 is not a history: name another with --history, or move it away"),
        ("", "is a folder, not a history"),
        ("loop", "loop cannot be used: Too many levels of symbolic links"),
        ("pipe", "pipe is not a file"),
        ("notes.txt/x", "notes.txt/x cannot be used: Not a directory"),
    ):
        assert why in program.run("run", "weather.toml", "--history", name, first=IMPATIENT).stderr
        assert why in complaint(program, "list", "--history", name)
    assert not [file for file in set(program.folder.rglob("*")) - before if file.name.endswith("-claims")]
    assert (program.folder / "vault.sqlite3").read_bytes() == b"no database" * 1000
    assert notes.read_text(encoding="utf-8") == "no database"


def test_a_script_that_wants_no_steps_learns_the_number_of_its_batch(program: Program) -> None:
    assert "\ndetails: workbench history show 4\n" in program.run("run", "weather.toml", "--quiet").stdout


def test_a_history_is_for_its_owner_only(program: Program) -> None:
    assert (program.folder / ".workbench" / "history.sqlite3").stat().st_mode & 0o077 == 0


def test_another_history_can_be_named(program: Program, tmp_path: Path) -> None:
    elsewhere = tmp_path / "other.sqlite3"
    assert f"there is no batch in {elsewhere}" in said(program, "list", "--history", str(elsewhere))
    (program.folder / ".workbench" / "history.sqlite3").rename(elsewhere)
    assert "3 batches" in said(program, "list", "--history", "other.sqlite3")


def test_names_reach_the_terminal_as_plain_text(tmp_path: Path) -> None:
    file = tmp_path / ".workbench" / "history.sqlite3"
    file.parent.mkdir()
    run_kept(tmp_path, file, suite=SUITE.replace('"Weather"', r'"\u001b[31mRed"').replace('"Nowhere"', r'"No\nwhere"'))
    program = Program(tmp_path)
    run_kept(tmp_path, file, suite=SUITE.replace('"Weather"', r'"\u001b[31mRed"'))
    for words in (["list"], ["show", "1"], ["show", "1", "--verbose"], ["diff", "1"], ["show", "1", "--run", "2"]):
        text = said(program, *words)
        assert "\x1b" not in text
        assert "No\nwhere" not in text


@pytest.mark.parametrize(
    "words",
    [
        ["unpacked"],
        ["show", "--run", "0"],
        ["prune", "--older-than", "30"],
        ["name", "1"],
        ["show", "--grading", "last"],
    ],
)
def test_words_that_mean_nothing_are_usage_errors(tmp_path: Path, words: list[str]) -> None:
    done = Program(tmp_path).run("history", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: workbench history")
    assert len(done.stderr.splitlines()) <= 5, "the error is not below a page of options"


def test_runs_that_were_made_after_a_grading_are_not_taken_for_graded_by_it(program: Program) -> None:
    said(program, "regrade", "2")
    with closing(sqlite3.connect(program.folder / ".workbench" / "history.sqlite3")) as connection, connection:
        connection.execute("UPDATE gradings SET graded_at = '2001-01-01T00:00:00.000+00:00'")
    later = "2 runs of batch 2 ended after it was regraded, and have no new grade: "
    assert later in said(program, "show", "2", "--grading", "latest")
    assert later not in said(program, "show", "2")
    assert later in said(program, "diff", "1", "2", "--grading", "latest")
    done = program.run("run", "weather.toml", "--baseline", "2", "--fail-on", "regression")
    assert done.stderr.startswith(later)
