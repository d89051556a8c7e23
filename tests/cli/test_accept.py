"""`workbench accept`: the calls that several runs share become the expectation of their case in its file."""

from __future__ import annotations

import json
import signal
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.program import Program, read_until
from tests.cli.suites import SLOW, WEATHER
from tests.providers.server import Answer, Call, Request, Server, document, said
from workbench.cli.main import main

HEAD = WEATHER[: WEATHER.index("[[cases]]")]
OSLO = """# What people ask most.
[[cases]]
name = "Oslo"   # the capital
user = "What is the weather in Oslo?"
expect_nothing_yet = true

# The end.
"""
ACCEPTED = """# What people ask most.
[[cases]]
name = "Oslo"   # the capital
user = "What is the weather in Oslo?"

[[cases.ordered]]
tool = "get_weather"
[cases.ordered.args]
city = "Oslo"
days = { range = [1, 3] }
units = { one_of = ["C", "F"] }
why = { present = true }

# The end.
"""
WORDS = ("--model", "openai:m", "--concurrency", "1", "-q")
RUNS = [
    [Call("get_weather", {"city": "Oslo", "days": 1, "units": "C", "why": "asked", "more": True})],
    [Call("get_weather", {"city": "Oslo", "days": 3, "units": "F", "why": "the user wants it"})],
    [Call("get_weather", {"city": "Oslo", "days": 2, "units": "C", "why": "weather"})],
]
PAGE = Path(__file__).parents[2] / "docs" / "recording.md"
Script = Sequence[Sequence[Call] | Answer]


@contextmanager
def scripted(program: Program, runs: Script) -> Iterator[tuple[str, ...]]:
    """Serve an endpoint whose runs make these calls in their first answer, run by run, and no calls afterwards."""
    left = iter(runs)

    def answer(request: Request) -> Answer:
        if request.json["messages"][-1]["role"] == "tool":
            return said("openai", "It rains.")
        calls = next(left)
        if isinstance(calls, Answer):
            return calls
        return said("openai", calls=calls) if calls else said("openai", "Hello.")

    with Server(answer) as server:
        yield ("accept", "weather.toml", *WORDS, "--base-url", f"{server.url}/v1")


def test_the_difference_is_shown_and_then_written_and_all_else_stays_byte_for_byte(program: Program) -> None:
    file = program.write("weather.toml", HEAD + OSLO)
    with scripted(program, RUNS * 2) as words:
        shown = program.run(*words)
        assert file.read_text() == HEAD + OSLO
        done = program.run(*words, "--write")
    assert (shown.returncode, done.returncode) == (0, 0), shown.stderr + done.stderr
    assert file.read_bytes() == (HEAD + ACCEPTED).encode()
    assert done.stdout == shown.stdout + "wrote 1 case to weather.toml\n"
    difference = shown.stdout.partition("\n\n")[2]
    assert difference.startswith("--- weather.toml\n+++ weather.toml\n@@ ")
    changed = [line for line in difference.splitlines() if line[:1] in ("-", "+")][2:]
    added = ACCEPTED.partition('Oslo?"\n')[2].partition("\n\n# The end")[0]
    assert changed == ["-expect_nothing_yet = true", *(f"+{line}" for line in added.splitlines())]
    assert shown.stdout.startswith("weather.toml\n  + oslo  proposed from 3 runs\n\n")


def test_the_example_of_the_page_is_what_is_shown(program: Program) -> None:
    program.write("weather.toml", HEAD + OSLO.partition("\n\n# The end")[0] + "\n")
    runs = [[Call("get_weather", {"city": "Oslo", "days": d, "units": u})] for d, u in ((1, "C"), (3, "F"), (2, "C"))]
    with scripted(program, runs) as words:
        shown = program.run(*words).stdout
    example = PAGE.read_text(encoding="utf-8").partition("```diff\n")[2].partition("```")[0]
    assert example == shown.partition("\n\n")[2].rstrip("\n") + "\n"


def test_line_ends_and_the_other_cases_stay(program: Program) -> None:
    text = (HEAD + OSLO + "\n" + OSLO.replace("Oslo", "Rome")).replace("\n", "\r\n")
    file = program.write("weather.toml", "")
    file.write_bytes(text.encode())
    with scripted(program, RUNS) as words:
        done = program.run(*words, "--case", "oslo", "--write")
    assert done.returncode == 0, done.stderr
    wanted = (HEAD + ACCEPTED + "\n" + OSLO.replace("Oslo", "Rome")).replace("\n", "\r\n")
    assert file.read_bytes() == wanted.encode()


def test_what_is_accepted_passes_and_is_accepted_no_more(program: Program) -> None:
    file = program.write("weather.toml", HEAD + OSLO + "\n" + OSLO.replace("Oslo", "Hello"))
    with scripted(program, [*RUNS, [], [], [], *RUNS, [], [], []]) as words:
        assert program.run(*words, "--only-empty", "--write").returncode == 0
        again = program.run(*words)
    assert [case.get("expect_no_calls") for case in tomllib.loads(file.read_text())["cases"]] == [None, True]
    assert (again.returncode, again.stdout) == (0, "weather.toml\n  ✓ oslo   unchanged\n  ✓ hello  unchanged\n")
    empty = program.run("accept", "weather.toml", "--model", "offline", "--only-empty")
    assert (empty.returncode, empty.stdout) == (0, "")
    assert "every chosen case already has expectations" in empty.stderr


def test_runs_that_do_not_agree_are_reported_and_not_written(program: Program) -> None:
    file = program.write("weather.toml", HEAD + OSLO)
    with scripted(program, [RUNS[0], [], RUNS[1]]) as words:
        done = program.run(*words, "--write")
    assert done.returncode == 1
    assert (
        "✗ oslo  not agreed: the runs do not call the same tools (2 runs: get_weather; 1 run: nothing)" in done.stdout
    )
    assert file.read_text() == HEAD + OSLO


def test_runs_in_error_are_left_out_and_named(program: Program) -> None:
    file = program.write("weather.toml", HEAD + OSLO)
    refused = document({"error": {"message": "no such model"}}, status=404)
    with scripted(program, [RUNS[0], refused, RUNS[0]]) as words:
        done = program.run(*words, "--write", "--format", "text")
        assert done.returncode == 2, "one of both"
    with scripted(program, [RUNS[0], refused, RUNS[0]]) as words:
        done = program.run(*words, "--write")
    assert done.returncode == 3
    assert "+ oslo  proposed from 2 runs\n      left out: run 2 with openai:m: " in done.stdout
    assert "no such model" in done.stdout
    assert tomllib.loads(file.read_text())["cases"][0]["ordered"][0]["args"]["days"] == 1
    with scripted(program, [refused] * 3) as words:
        done = program.run(*words)
    assert done.returncode == 3 and "▲ oslo  no runs\n" in done.stdout


def test_a_program_reads_json_a_person_pastes_toml_or_markdown(program: Program) -> None:
    program.write("weather.toml", HEAD + OSLO + '[[cases]]\nname = "Later"\nuser = "u"\nskip = "not yet"\n')
    said_by = {}
    for form in ("json", "toml", "markdown"):
        with scripted(program, RUNS) as words:
            done = program.run(*words, "--format", form)
        assert done.returncode == 0, done.stderr
        said_by[form] = done.stdout
    report = json.loads(said_by["json"])
    assert (report["report"], report["version"], report["exit_code"]) == ("workbench accept", 1, 0)
    first, later = report["cases"]
    assert (first["suite"], first["case_id"], first["outcome"], first["runs"]) == (
        "weather.toml",
        "oslo",
        "proposed",
        3,
    )
    assert first["expectations"]["ordered"][0]["args"]["days"] == {"range": [1, 3]}
    assert (later["outcome"], later["why"], later["expectations"]) == ("skipped", "not yet", None)
    assert said_by["toml"] == "# weather.toml\n" + ACCEPTED.partition("\n# The end")[0] + "\n"
    (case,) = tomllib.loads(said_by["toml"])["cases"]
    assert case["ordered"] == first["expectations"]["ordered"]
    assert "| + | oslo | proposed from 3 runs |\n" in said_by["markdown"]
    assert "\n-expect_nothing_yet = true\n" in said_by["markdown"]


def test_a_file_that_changed_meanwhile_is_not_overwritten(program: Program) -> None:
    file = program.write("weather.toml", HEAD + OSLO)
    changed = HEAD + OSLO + "# mine\n"

    def calls() -> Iterator[Sequence[Call]]:
        yield RUNS[0]
        yield RUNS[1]
        file.write_text(changed)
        yield RUNS[2]

    with scripted(program, calls()) as words:  # type: ignore[arg-type]
        done = program.run(*words, "--write")
    assert done.returncode == 2
    assert "changed on disk since it was read" in done.stderr
    assert file.read_text() == changed


def test_what_is_interrupted_accepts_nothing(program: Program) -> None:
    file = program.write("weather.toml", HEAD + SLOW)
    running = program.start("accept", "weather.toml", "--model", "offline", "--write")
    read_until(running, "get_weather")
    running.send_signal(signal.SIGINT)
    _, complaints = running.communicate()
    assert running.returncode == 130
    assert "interrupted: nothing was accepted" in complaints
    assert file.read_text() == HEAD + SLOW


def test_samples_are_not_written_and_a_suite_is_needed(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    done = program.run("accept", "--samples", "--model", "offline", "--write")
    assert done.returncode == 2 and "is a bundled sample, which is not changed" in done.stderr
    assert main(["accept"]) == 2
    assert "say what to run: workbench accept PATH …" in capsys.readouterr().err


def test_a_secret_that_a_model_says_is_neither_shown_nor_written(program: Program) -> None:
    file = program.write("weather.toml", HEAD + OSLO)
    program.write(".env", "SHOP_PASSWORD=planted-secret-4711\n")
    told = [Call("get_weather", {"city": "Oslo", "token": "planted-secret-4711"})]
    for form in ("text", "toml", "json", "markdown"):
        with scripted(program, [told] * 3) as words:
            assert "planted" not in program.run(*words, "--format", form).stdout
    with scripted(program, [told] * 3) as words:
        done = program.run(*words, "--write")
    assert done.returncode == 0, done.stderr
    assert "planted" not in done.stdout + done.stderr + file.read_text()
    args = tomllib.loads(file.read_text())["cases"][0]["ordered"][0]["args"]
    assert args == {"city": "Oslo", "token": {"present": True}}


def test_a_suite_that_needs_trust_starts_nothing_without_it(program: Program) -> None:
    text = HEAD + '[[servers]]\nname = "s"\ncommand = ["touch", "started"]\n\n' + OSLO
    file = program.write("weather.toml", text)
    done = program.run("accept", "weather.toml", "--model", "offline", "--write")
    assert (done.returncode, done.stdout) == (2, "")
    assert "not trusted, nothing was started" in done.stderr
    assert file.read_text() == text and not (program.folder / "started").exists()
