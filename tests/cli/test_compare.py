"""`workbench compare` with endpoints that differ in answers and speed, and the app that shows it."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.cli.batches import wait_until_one_is_kept
from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.providers.server import HANG, Answer, Call, Pause, Request, Server, Signal, Tell, document, said
from tests.schemas import fits
from tests.tui.in_terminal import LEAVES, Terminal

SUITE = (
    WEATHER
    + """
[[cases]]
name = "No call"
user = "Say hello."
expect_no_calls = true
"""
)

MODEL = """
[models.{name}]
provider = "openai"
model = "m"
base_url = "{url}/v1"
price = {{ input = 1000, output = 10000 }}
"""

GO_ON = "to resume the batch and compare all its runs: workbench compare --resume 1"

BOTH = ("compare", "weather.toml", "--trust", "--model", "right", "--model", "lazy")

SLOW_S = 0.2


def right(request: Request) -> Answer:
    """Call the requested tool, then answer with text."""
    messages = request.json["messages"]
    if "Oslo" in str(messages) and messages[-1]["role"] != "tool":
        return said("openai", calls=[Call("get_weather", {"city": "Oslo"})])
    return said("openai", "Done.")


def lazy(_: Request) -> Answer:
    """Never calls anything, and takes its time."""
    answer = said("openai", "It rains.")
    return Answer((Pause(SLOW_S), *answer.pieces), answer.status, answer.headers, answer.framing)


@contextmanager
def endpoints(folder: Path) -> Iterator[None]:
    """The suite and two models that can be asked."""
    with ExitStack() as stack:
        urls = {script.__name__: stack.enter_context(Server(script)).url for script in (right, lazy)}
        text = "".join(MODEL.format(name=name, url=url) for name, url in urls.items())
        (folder / "workbench.toml").write_text(text, encoding="utf-8")
        (folder / "weather.toml").write_text(SUITE, encoding="utf-8")
        yield


def test_two_models_stand_side_by_side_and_exit_with_0_whatever_fails(program: Program) -> None:
    with endpoints(program.folder):
        done = program.run(*BOTH)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    rows = {line[:14].strip(): line[14:].split() for line in reversed(lines)}
    assert rows["case"] == ["right", "lazy"]
    assert (rows["Right"][0], rows["Right"][4]) == ("✓", "✗")
    assert (rows["No call"][0], rows["No call"][4]) == ("✓", "✓")
    assert ["pass", "rate", "100.0%", "50.0%"] in (line.split() for line in lines)
    assert ["cost", "$0.2430", "$0.1620"] in (line.split() for line in lines)
    told = lines[lines.index("lazy against right") + 1]
    assert told.startswith("  lazy -50.0 points (95%: -90.5 to +48.6), better on 0, worse on 1 of 2, p = 1: not")
    assert lines[-1] == "batch 1 in the history"


def test_json_fits_its_schema_and_says_who_is_slow(program: Program) -> None:
    with endpoints(program.folder):
        report = json.loads(program.run(*BOTH, "--format", "json", "--repeats", "2", "--quiet").stdout)
    fits(report, "compare")
    assert (report["models"], report["batch"], report["exit_code"]) == (["right", "lazy"], 1, 0)
    fast, slow = report["totals"]
    assert (fast["runs"], slow["runs"], slow["passing"][1]["k"]) == (4, 4, 2)
    assert slow["latency"]["p50_ms"] >= 1000 * SLOW_S
    assert slow["first_token"]["p50_ms"] >= 1000 * SLOW_S
    assert 0 < slow["cases_a_minute"] <= 2 * 60 / SLOW_S


def test_the_name_of_the_file_says_the_form(program: Program) -> None:
    with endpoints(program.folder):
        program.run(*BOTH)
    for name, begins in (("x.md", "| case |"), ("x.JSON", "{"), ("x.txt", "pass rates on 2 cases: ")):
        done = program.run("compare", "--resume", "1", "--output", name, "--quiet")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert (program.folder / name).read_text(encoding="utf-8").startswith(begins)


def test_markdown_goes_to_a_file_and_only_differences_into_it(program: Program) -> None:
    with endpoints(program.folder):
        done = program.run(*BOTH, "--format", "markdown", "--output", "compared.md", "--only-differences")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "the report is in compared.md, batch 1 in the history\n"
    written = (program.folder / "compared.md").read_text(encoding="utf-8")
    assert "| case | right | lazy |" in written
    assert "| Right | ✓ 1.00" in written
    assert "| No call |" not in written


def test_models_that_the_suite_names_are_compared_and_cases_can_be_chosen(program: Program) -> None:
    with endpoints(program.folder):
        program.write("weather.toml", 'models = ["lazy", "right"]\n' + SUITE)
        done = program.run("compare", "weather.toml", "--trust", "--case", "no-call")
    lines = done.stdout.splitlines()
    assert ["case", "lazy", "right"] in (line.split() for line in lines)
    assert [line for line in lines if line.startswith("Right")] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "nothing to compare: offline is the only model; give --model at least twice"),
        (("--model", "offline", "--model", "offline"), "nothing to compare: offline is the only model"),
        (("--model", "offline", "--model", "nobody"), "'nobody'"),
        (("--model", "offline", "--model", "replay:x"), "x cannot be read: No such file"),
        (("--case", "nope"), "there is no case 'nope'"),
    ],
)
def test_what_cannot_be_compared_is_said_before_anything_runs(
    program: Program, words: tuple[str, ...], said: str
) -> None:
    program.write("weather.toml", SUITE)
    done = program.run("compare", "weather.toml", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_errors_are_told_apart_and_answered_with_3(program: Program) -> None:
    with endpoints(program.folder), Server(lambda _: document({"error": {"message": "no such key"}}, 401)) as broken:
        with (program.folder / "workbench.toml").open("a", encoding="utf-8") as file:
            file.write(MODEL.format(name="broken", url=broken.url))
        done = program.run("compare", "weather.toml", "--trust", "--model", "right", "--model", "broken")
    assert done.returncode == 3
    assert re.search("graded cases +2 of 2 +0 of 2", done.stdout)
    assert "▲ broken, 2 runs: " in done.stdout
    assert "nothing to compare: no case was graded with both right and broken" in done.stdout


def test_an_interrupted_comparison_says_what_is_done_and_how_it_goes_on(program: Program) -> None:
    asked = Signal()
    with Server(lambda _: Answer((Tell(asked), HANG))) as stuck:
        program.write("weather.toml", SUITE)
        program.write("workbench.toml", MODEL.format(name="stuck", url=stuck.url))
        running = program.start("compare", "weather.toml", "--trust", "--model", "offline", "--model", "stuck")
        asked.wait(20)
        running.send_signal(signal.SIGINT)
        rest, complaints = running.communicate()
    assert running.returncode == 130
    assert "stopped" in rest
    assert complaints.splitlines() == ["stopping; finished runs are kept", GO_ON]
    assert "'workbench compare --resume 1' runs them" in program.run("history", "show", "1").stdout


@pytest.mark.slow
def test_what_is_left_unfinished_in_the_app_goes_on_as_a_comparison(tmp_path: Path) -> None:
    asked = Signal()
    with Server(lambda _: Answer((Tell(asked), HANG))) as stuck:
        (tmp_path / "weather.toml").write_text(SUITE, encoding="utf-8")
        (tmp_path / "workbench.toml").write_text(MODEL.format(name="stuck", url=stuck.url), encoding="utf-8")
        words = ["compare", "weather.toml", "--trust", "--model", "offline", "--model", "stuck"]
        with Terminal(words, tmp_path / "state", folder=tmp_path, columns=80, rows=24) as terminal:
            terminal.wait_for("Compare")
            asked.wait(20)
            terminal.send("X")
            terminal.wait_for("stopped")
            terminal.wipe()
            terminal.send("q")
            assert terminal.end() == 0
    assert GO_ON in bytes(terminal.output).rsplit(LEAVES, 1)[1].decode()


@pytest.mark.parametrize(
    ("form", "said", "last"),
    [
        ("text", "interrupted: 1 run stopped\n", "batch 1 in the history\n"),
        ("markdown", "interrupted: 1 run stopped\n", "\n\nbatch 1 in the history\n"),
    ],
)
def test_the_report_of_an_interrupted_comparison_says_so_and_which_batch_it_is(
    program: Program, form: str, said: str, last: str
) -> None:
    asked = Signal()
    with Server(lambda _: Answer((Tell(asked), HANG))) as stuck:
        program.write("weather.toml", SUITE)
        program.write("workbench.toml", MODEL.format(name="stuck", url=stuck.url))
        running = program.start(
            *("compare", "weather.toml", "--trust", "--model", "stuck", "--model", "offline"),
            *("--format", form, "--case", "right"),
        )
        asked.wait(20)
        wait_until_one_is_kept(program, running)
        running.send_signal(signal.SIGINT)
        rest, _ = running.communicate()
    assert said in rest
    assert rest.endswith(last)


def test_an_interrupted_comparison_goes_on_with_what_is_missing_and_compares_all_of_it(program: Program) -> None:
    asked = Signal()
    free: list[bool] = []

    def slow(request: Request) -> Answer:
        return said("openai", "Done.") if free else Answer((Tell(asked), HANG))

    with Server(slow) as server:
        program.write("weather.toml", SUITE)
        program.write("workbench.toml", MODEL.format(name="slow", url=server.url))
        running = program.start("compare", "weather.toml", "--trust", "--model", "slow", "--model", "offline")
        asked.wait(20)
        running.send_signal(signal.SIGINT)
        running.communicate()
        free.append(True)
        done = program.run("compare", "--resume", "--trust", "--model", "slow", "--format", "json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["batch"], report["interrupted"]) == (0, 1, False)
    assert report["models"] == ["slow", "offline"], "in the order in which they were named"
    assert [total["graded"] for total in report["totals"]] == [2, 2]
    again = program.run("compare", "--resume", "1", "--output", "all.json")
    assert again.returncode == 0
    assert again.stderr.startswith("batch #1 is complete: nothing was run\n")
    told = json.loads((program.folder / "all.json").read_text(encoding="utf-8"))
    assert [told[key] for key in ("cases", "pairs")] == [report[key] for key in ("cases", "pairs")]


def test_what_cannot_be_resumed_is_said(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    assert program.run("run", "weather.toml", "--quiet").returncode in (0, 1)
    done = program.run("compare", "--resume", "1")
    assert (done.returncode, done.stderr) == (2, "nothing to compare: offline is the only model of batch 1\n")
    assert "say what to compare" in program.run("compare").stderr


def distracted(request: Request) -> Answer:
    """Loses the right tool among many, but not its own prompt."""
    if len(request.json["tools"]) > 20:
        return said("openai", "I have no such tool.")
    return right(request)


def test_hosts_put_other_prompts_and_tools_around_those_of_the_suite(program: Program) -> None:
    offers = SUITE.replace('name = "Right"', 'name = "Right"\noffer = ["get_weather"]')
    with Server(distracted) as server:
        program.write("workbench.toml", MODEL.format(name="distracted", url=server.url))
        program.write("weather.toml", f'system = "Written."\n{offers}')
        command = ("compare", "weather.toml", "--trust", "--hosts", "--model", "distracted")
        done = program.run(*command, "-o", "report.json")
        text = program.run(*command).stdout
        asked = set()
        for request in server.requests:
            first, tools = request.json["messages"][0], request.json["tools"]
            prompt = first["content"] if first["role"] == "system" else ""
            asked.add((prompt[:10], len(tools)))
            assert "get_weather" in {tool["function"]["name"] for tool in tools}
    assert done.returncode == 0, done.stderr
    report = json.loads((program.folder / "report.json").read_text(encoding="utf-8"))
    hosts = ["no prompt", "concise assistant", "coding agent", "forty tools"]
    assert report["models"] == ["distracted", *(f"distracted × {name}" for name in hosts)]
    assert report["most_failures"]["models"] == ["distracted × forty tools"]
    assert "most failures with distracted × forty tools (1 of 2 cases), only there Right; fewest with" in " ".join(
        text.split()
    )
    assert asked == {("Written.", 1), ("", 1), ("You are a ", 1), ("You work i", 13), ("You are a ", 41)}


def test_in_a_terminal_the_app_opens_on_the_comparison_and_leaves_its_sum_behind(tmp_path: Path) -> None:
    with (
        endpoints(tmp_path),
        Terminal(
            ["compare", "weather.toml", "--model", "right", "--model", "lazy", "--only-differences"],
            tmp_path / "state",
            folder=tmp_path,
            columns=80,
            rows=24,
        ) as terminal,
    ):
        terminal.answer("This suite wants to ask models", "1")
        terminal.wait_for(lambda: all(said in terminal.screen for said in ("Compare", "50.0%", "100.0%")))
        terminal.wait_for(lambda: not any(said in terminal.screen for said in ("…", "No call")))
        terminal.wipe()
        terminal.send("q")
        assert terminal.end() == 0
    left = bytes(terminal.output).rsplit(LEAVES, 1)[1].decode()
    assert "pass rate        100.0%" in left
    assert "better on 0, worse on 1" in left
    assert "--resume" not in left
