"""`workbench compare --baseline` compares new runs with a batch of the history by the paired tests."""

from __future__ import annotations

import json

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.schemas import fits
from tests.show.html_page import Page

CASES = 7
"""So many discordant cases as p = 0.016 takes."""

FIRST, CASE = WEATHER.split("[[cases]]")
SUITE = FIRST + "".join(f"[[cases]]{CASE.replace('Right', f'Right {number}')}" for number in range(CASES))
BROKEN = SUITE.replace('args = { city = "Oslo" }', 'args = { city = "Rome" }')


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A batch called main, in which the offline model is right, and its recordings."""
    program = Program(tmp_path_factory.mktemp("against"))
    program.write("weather.toml", SUITE)
    assert program.run("run", "weather.toml", "--by", "decision", "--record", "made").returncode == 0
    assert program.run("history", "name", "1", "main").returncode == 0
    return program


def test_a_model_that_both_have_is_tested_and_reported_in_every_form(before: Program) -> None:
    before.write("weather.toml", BROKEN)
    words = ("compare", "weather.toml", "--baseline", "main", "--model", "offline,replay:made", "--by", "decision")
    done = before.run(*words, *(word for end in ("json", "md", "html") for word in ("--report", f"x.{end}")))
    assert (done.returncode, done.stderr) == (0, "")
    told = " ".join(done.stdout.split())
    report = json.loads((before.folder / "x.json").read_text(encoding="utf-8"))
    fits(report, "compare")
    found = report["baseline"]
    assert (report["exit_code"], found["batch"], found["compared"], found["fail_on"]) == (0, 1, CASES, None)
    (test,) = found["tests"]
    assert (test["model"], test["better"], test["worse"], test["rate_difference"]) == ("offline", 0, CASES, -1.0)
    assert test["rate_interval"]["high"] < 0
    assert test["sentence"].startswith("this batch -")
    assert "better on 0, worse on 7 of 7, p = 0.016: a real difference" in test["sentence"]
    assert found["notes"] == ["only this batch has replay:made: only offline is compared"]
    markdown, page = ((before.folder / f"x.{end}").read_text(encoding="utf-8") for end in ("md", "html"))
    assert test["sentence"] in told
    assert test["sentence"] in markdown
    assert test["sentence"] in Page(page).said
    assert "✗ regression: 7 cases broke since the baseline #1 main" in told
    assert "| broke | Weather › Right 6 |" in markdown


def test_the_only_model_is_compared_with_the_only_one_and_other_graders_are_told(before: Program) -> None:
    before.write("weather.toml", SUITE)
    done = before.run("compare", "weather.toml", "--baseline", "1", "--model", "replay:made", "--format", "json")
    found = json.loads(done.stdout)["baseline"]
    assert (done.returncode, [test["model"] for test in found["tests"]]) == (0, ["replay:made"])
    assert found["notes"] == [
        "the batches have different models: replay:made is compared with offline",
        "graded by decision before, by critics now",
    ]


@pytest.mark.parametrize(
    ("against", "words", "said"),
    [
        ("release", (), "nothing was run: there is no batch 'release' in "),
        ("1", ("--resume",), "--baseline compares new runs with a batch, and --resume completes a stored batch"),
        ("1", ("--until", "decided"), "--until stops as soon as the models of this batch are decided"),
        ("1", ("--model", "replay:made,replay:made#offline"), "nothing was run: batch 1 cannot be the baseline"),
    ],
)
def test_what_cannot_be_compared_is_said_before_anything_runs(
    before: Program, against: str, words: tuple[str, ...], said: str
) -> None:
    before.write("weather.toml", SUITE)
    done = before.run("compare", "weather.toml", "--baseline", against, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)


@pytest.mark.slow
def test_batches_that_no_test_holds_for_are_refused(before: Program) -> None:
    before.write("weather.toml", SUITE.replace("Right", "Other"))
    done = before.run("compare", "weather.toml", "--baseline", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "nothing was run: batch 1 has no case that is selected now: there is nothing to compare\n"
    both = ("compare", "weather.toml", "--model", "offline,replay:made")
    stopped = before.run(*both, "--until", "decided", "--format", "json")
    number = json.loads(stopped.stdout)["batch"]
    done = before.run(*both, "--baseline", str(number))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"nothing was run: batch {number} could stop early (--until)")
