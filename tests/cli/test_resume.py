"""`workbench run --resume` continues an interrupted batch, and reports on all of it."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.batches import STUCK, WAITING, interrupted
from tests.cli.program import Program, read_until
from tests.cli.suites import WEATHER
from tests.history.foreign import HEAD, ONE_CASE, foreign_history, starting
from tests.samples import SAMPLES
from workbench.cli.batch_command import restored_model_options
from workbench.trajectory.events import JsonValue


def test_an_interrupted_batch_says_how_to_go_on_and_goes_on(program: Program) -> None:
    cut = interrupted(program)
    assert cut.returncode == 130
    assert "to resume: workbench run --resume 1\n" in cut.stderr
    done = program.run("run", "--resume", "1", "--format", "json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert done.stderr == "resuming batch #1: 2 of 3 runs are missing\n"
    assert [(run["case_id"], run["status"]) for run in report["runs"]] == [
        ("right", "passed"),
        ("waiting", "passed"),
        ("wrong", "failed"),
    ]
    assert (report["batch"], report["interrupted"], report["totals"]["runs"]) == (1, False, 3)
    assert report["runs"][0]["rounds"], "what was kept of the first run is in the report too"


def test_a_killed_batch_goes_on_without_being_named(program: Program) -> None:
    interrupted(program, signal.SIGKILL)
    done = program.run("run", "--resume")
    assert "3 runs: 2 passed, 1 failed" in done.stdout
    assert "Right  →" not in done.stdout, "only what is missing is run"
    again = program.run("run", "--resume")
    assert again.returncode == 2
    assert again.stderr.startswith("nothing was run: nothing to resume: no run is missing in any batch of ")


def test_a_suite_that_changed_meanwhile_is_run_as_it_was_and_that_is_said(program: Program) -> None:
    interrupted(program, signal.SIGKILL)
    suite = program.write("weather.toml", WEATHER)
    done = program.run("run", "--resume", "--quiet")
    assert done.stderr == f"{suite} has changed since batch 1: its old text is run\n"
    assert done.stdout.startswith("✗ 1 of 3 cases failed\n")


def test_a_batch_that_goes_on_elsewhere_is_left_alone(program: Program) -> None:
    program.write("weather.toml", WEATHER + WAITING)
    running = program.start("run", "weather.toml", "--concurrency", "1", first=STUCK)
    read_until(running, "Bergen")
    done = program.run("run", "--resume", "1")
    running.send_signal(signal.SIGINT)
    running.communicate()
    assert done.returncode == 2
    assert done.stderr.startswith("nothing was run: batch 1 is running in another program")


def test_what_the_batch_settles_is_not_asked_of_it(program: Program) -> None:
    done = program.run("run", "--resume", "1", "--case", "right", "--repeats", "2")
    assert done.returncode == 2
    assert done.stderr == (
        "the resumed batch determines --case: omit it\nthe resumed batch determines --repeats: omit it\n"
    )


def test_paths_beside_it_must_be_of_the_batch(program: Program) -> None:
    interrupted(program, signal.SIGKILL)
    program.write("other.toml", WEATHER)
    done = program.run("run", "other.toml", "--resume", "1")
    assert done.returncode == 2
    assert "other.toml is not a suite of batch 1: omit the path, because the batch stores its suites" in done.stderr


def test_a_path_where_the_number_of_a_batch_belongs_is_explained(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    done = program.run("run", "--resume", "weather.toml")
    assert done.returncode == 2
    assert "there is no batch 'weather.toml'" in done.stderr
    assert "put paths before --resume, or after the number of a batch" in done.stderr


def test_without_a_path_and_without_a_batch_nothing_is_run(program: Program) -> None:
    done = program.run("run")
    assert (done.returncode, done.stderr) == (
        2,
        "say what to run: workbench run PATH …, --samples, or --resume to complete a batch\n",
    )


def test_a_model_that_is_reached_otherwise_is_refused_but_for_anyway(program: Program) -> None:
    settings = '[models.near]\nprovider = "openai"\nmodel = "m"\nbase_url = "http://127.0.0.1:PORT/v1"\n'
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it never answers, so that runs are missing
        settings = settings.replace("PORT", str(silent.getsockname()[1]))
        program.write("workbench.toml", settings)
        interrupted(program, signal.SIGKILL, "--model", "offline", "--model", "near", "--trust")
    program.write("workbench.toml", settings.replace('"m"', '"n"'))
    done = program.run("run", "--resume", "--trust")
    assert done.returncode == 2
    assert done.stderr == (
        "the model 'near' has different settings than in batch 1: model was m and is now n\n"
        "nothing was run: give the original options again (--model, --base-url, --param, --judge), or --anyway to "
        "resume regardless\n"
    )


def test_a_history_in_a_project_goes_where_the_project_goes(tmp_path: Path) -> None:
    before = Program(tmp_path / "before")
    before.write("workbench.toml", "")
    (before.folder / ".workbench").mkdir()
    interrupted(before, signal.SIGKILL)
    before.folder.rename(tmp_path / "after")
    # Another user's suite at the project's former path is not this suite.
    before.write("weather.toml", "")
    after = Program(tmp_path / "after")
    done = after.run("run", "--resume")
    assert (done.stderr.count("\n"), "3 runs: 2 passed, 1 failed" in done.stdout) == (1, True), done.stderr
    again = after.run("grade", "1")
    assert (again.returncode, again.stderr) == (0, "")
    assert "3 runs regraded" in again.stdout


THEIRS = "openai:gpt@http://127.0.0.1:9/v1"


@pytest.mark.parametrize("name", ["zz.toml", "office.toml"])
def test_what_a_history_says_of_a_bundled_suite_is_not_trusted_for_that(program: Program, name: str) -> None:
    history = program.folder / ".workbench" / "history.sqlite3"
    foreign_history(history, SAMPLES / name, starting("touch started"))
    program.write("workbench.toml", "")
    done = program.run("run", "--resume")
    assert done.returncode == 2
    assert f"run the command: sh -c 'touch started' (in {SAMPLES})" in done.stderr
    assert "not trusted, nothing was started" in done.stderr
    assert not (SAMPLES / "started").exists()


@pytest.mark.parametrize("suite", [Path("samples/zz.toml"), Path("zz.toml")])
def test_a_suite_of_which_no_whole_path_is_known_is_not_run(program: Program, suite: Path) -> None:
    history = program.folder / ".workbench" / "history.sqlite3"
    foreign_history(history, suite, starting("touch started"))
    done = program.run("run", "--resume", "--trust", "--history", str(history))
    assert done.returncode == 2
    assert done.stderr == (f"nothing was run: batch 1 is damaged: the path of its suite {str(suite)!r} is incomplete\n")


@pytest.mark.parametrize("named_by_suite", [False, True])
@pytest.mark.parametrize("sample", [False, True])
def test_who_named_a_model_is_not_believed_of_a_history_that_may_be_anybodys(
    program: Program, sample: bool, named_by_suite: bool
) -> None:
    text = (HEAD.replace("offline", THEIRS) if named_by_suite else HEAD) + ONE_CASE
    suite = program.folder / "theirs.toml"
    if sample:
        suite = SAMPLES / "zz.toml"
    history = program.folder / ".workbench" / "history.sqlite3"
    foreign_history(history, suite, text, THEIRS)
    done = program.run("run", "--resume", "--anyway", "--history", str(history))
    assert done.returncode == 2
    assert "  ask the model gpt at http://127.0.0.1:9/v1\n" in done.stderr
    assert "not trusted, nothing was started" in done.stderr


def test_a_bundled_suite_as_it_is_may_not_ask_any_model_that_a_history_names(program: Program) -> None:
    history = program.folder / ".workbench" / "history.sqlite3"
    sample = SAMPLES / "weather.toml"
    foreign_history(history, sample, sample.read_text(encoding="utf-8"), THEIRS)
    case = "UPDATE runs SET case_id = 'current-weather'"
    with closing(sqlite3.connect(history)) as connection, connection:
        connection.execute(case)
    done = program.run("run", "--resume", "--anyway", "--history", str(history))
    assert done.returncode == 2
    assert "ask the model gpt at http://127.0.0.1:9/v1" in done.stderr


def lacking_in(folder: Path, data: Path) -> Program:
    """A project with a suite, one batch of which lacks all of its runs, in a history that other projects share."""
    folder.mkdir()
    program = Program(folder, {"XDG_DATA_HOME": str(data)})
    program.write("workbench.toml", "")
    program.write("weather.toml", WEATHER)
    assert program.run("run", "weather.toml").returncode == 0
    with closing(sqlite3.connect(data / "toolcall-workbench" / "history.sqlite3")) as connection, connection:
        connection.execute("UPDATE runs SET status = NULL")
        connection.execute("UPDATE parts SET passed = 0")
        connection.execute("DELETE FROM details")
    return program


@pytest.mark.slow
def test_without_a_number_it_is_the_latest_batch_of_the_paths_or_of_the_project(tmp_path: Path) -> None:
    first, second = (lacking_in(tmp_path / name, tmp_path / "data") for name in ("first", "second"))
    third = lacking_in(tmp_path / "third", tmp_path / "data")
    of_project = first.run("run", "--resume")
    today = datetime.now(UTC).astimezone().date()
    assert of_project.stderr.startswith(f"resuming batch #1 of {today} "), "and it says how old that is"
    assert of_project.stderr.endswith(", now: 1 of 1 runs are missing\n")
    of_path = third.run("run", str(second.folder / "weather.toml"), "--resume")
    assert of_path.stderr.startswith("resuming batch #2 of ")
    none = first.run("run", "--resume")
    assert none.returncode == 2
    assert none.stderr == (
        f"nothing was run: nothing to resume: no run is missing in any batch of {first.folder}; "
        "batch 3 has missing runs: --resume 3\n"
    )


U, V = "http://localhost:1/v1", "http://localhost:2/v1"


@pytest.mark.parametrize(
    ("name", "origin", "url", "options"),
    [
        ("m", "command line", U, f" --model m --base-url {U}"),
        ("a,b × calm", "command line", U, f" --model 'a\\,b' --base-url {U}"),
        (f"openai:m@{U}", "command line", V, f" --model openai:m@{U} --base-url {V}"),
        (f"openai:m@{U}", "command line", U, ""),
        ("m", "project", U, ""),
    ],
)
def test_the_way_to_go_on_has_the_address_that_only_the_command_line_gave(
    name: str, origin: str, url: str, options: str
) -> None:
    reached: dict[str, JsonValue] = {"origin": origin, "base_url": url, "params": {}}
    assert restored_model_options({"models": {name: reached, "offline": {"provider": "built in"}}}) == options


def test_the_model_of_a_variant_may_be_named_again(program: Program) -> None:
    program.write("weather.toml", WEATHER + '\n[[variants]]\nname = "calm"\nsystem = "Be calm."\n')
    words = ("run", "weather.toml", "--model", "offline", "--variant", "calm", "--repeats", "2", "--shard", "1/2")
    program.run(*words, "--history", "shard.sqlite3")
    program.run("history", "merge", "shard.sqlite3", "--no-report")
    done = program.run("run", "--resume", "1", "--model", "offline")
    assert (done.returncode, "2 runs: 2 passed" in done.stdout) == (0, True), done.stderr
