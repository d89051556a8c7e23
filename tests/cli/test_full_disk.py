"""A full disk: a missing file that the user asked for is a failure, the message names the file, and no partial file is
left."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import COMMAND, Program
from tests.cli.suites import WEATHER
from tests.cli.test_resume_of_odd_batches import lose
from tests.sampled_rows import first_of


def on_full_disk(program: Program, *words: str, most: int = 4096) -> subprocess.CompletedProcess[str]:
    """Run the program with a maximum file size of `most` bytes, which has the effect of a full disk. Its output goes to
    pipes, which have no limit."""
    return subprocess.run(
        [*COMMAND, *words],
        capture_output=True,
        text=True,
        cwd=program.folder,
        env={**program.environment, "PYTHONDONTWRITEBYTECODE": "1"},  # else half of a module is kept for others
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
        timeout=60,
        check=False,
    )


RUN = ("run", "weather.toml", "--quiet", "--repeats", "20")


@pytest.fixture
def program(program: Program) -> Program:
    """The program in a folder with a suite."""
    program.write("weather.toml", WEATHER)
    program.write("workbench.toml", "")
    return program


def left_in(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


@pytest.mark.slow
def test_a_history_that_was_named_and_is_not_written_is_a_failure(program: Program) -> None:
    done = on_full_disk(program, *RUN, "--history", "mine.sqlite3")
    assert done.returncode == 2
    assert "mine.sqlite3" in done.stderr and "20 runs are not in the history" in done.stderr


@pytest.mark.slow
def test_the_usual_history_that_is_not_written_is_a_warning(program: Program) -> None:
    done = on_full_disk(program, *RUN)
    assert (done.returncode, "20 runs are not in the history" in done.stderr) == (0, True)


@pytest.mark.slow
def test_a_resumed_batch_that_is_not_written_is_a_failure(program: Program) -> None:
    (program.folder / ".workbench").mkdir()
    assert program.run(*RUN).returncode == 0
    lose(program, 3)
    done = on_full_disk(program, "run", "--resume", "1", "--quiet")
    assert done.returncode == 2
    assert "nothing was run: " in done.stderr or "not in the history" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--record", "--record-failed"])
def test_recordings_that_are_not_written_are_a_failure_and_leave_nothing(program: Program, option: str) -> None:
    program.write("weather.toml", WEATHER.replace('"Oslo" }', '"Bergen" }'))
    done = on_full_disk(program, *RUN, "--no-history", option, "out", most=500)
    assert done.returncode == 2
    assert "not every run could be recorded in out: File too large" in done.stderr
    assert not left_in(program.folder / "out")


@pytest.mark.parametrize("name", first_of(["report.json", "report.html", "report.junit.xml", "report.md"], 1))
def test_a_report_that_is_not_written_is_a_failure_and_leaves_the_old_one(program: Program, name: str) -> None:
    folder = program.folder / "out"
    program.write(f"out/{name}", "the old one")
    done = on_full_disk(program, *RUN, "--no-history", "--output", f"out/{name}", most=64)
    assert (done.returncode, left_in(folder), (folder / name).read_text()) == (2, [name], "the old one")
    assert f"cannot write out/{name}: File too large" in done.stderr


@pytest.mark.slow
def test_a_stream_of_events_that_is_not_written_names_its_file(program: Program) -> None:
    done = on_full_disk(program, *RUN, "--no-history", "--format", "jsonl", "--output", "events.jsonl")
    assert done.returncode == 2
    assert "File too large: 'events.jsonl'" in done.stderr


@pytest.mark.slow
def test_exports_that_are_not_written_are_a_failure_and_leave_nothing(program: Program) -> None:
    program.run(*RUN, "--record", "runs", "--no-history")
    for words in (
        ("export", "runs", "--format", "inspect", "-o", "out"),
        ("export", "runs", "--format", "csv", "-o", "out.csv"),
        ("grade", "runs", "-o", "out.json"),
    ):
        done = on_full_disk(program, *words, most=64)
        assert (done.returncode, "File too large" in done.stderr, "out" in done.stderr) == (2, True, True), words
        assert not left_in(program.folder / "out") and not [*program.folder.glob("*out*.*")]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "code"), [(RUN, 0), (("validate", "none.toml"), 2), (("no-command",), 2)])
def test_standard_error_that_cannot_be_written_changes_no_exit_code(
    program: Program, words: tuple[str, ...], code: int
) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *words], stderr=full, cwd=program.folder, env=program.environment, timeout=60, check=False
        )
    assert done.returncode == code
