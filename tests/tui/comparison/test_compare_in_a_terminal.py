"""Three endpoints of different speed compared in the real program at 80×24: none of them holds up another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.providers.server import Answer, Request, Server, Signal, document, said
from tests.tui.apps import SMART_HOME, suites_in
from tests.tui.in_terminal import Terminal
from workbench.grading.run_summary import RunSummary
from workbench.history.history import History

CASES = 4
RETRY_AFTER_S = 2

SUITE = 'format = 1\nname = "Greetings"\n' + "".join(
    f'\n[[cases]]\nname = "Greeting {number}"\nuser = "Say hello."\nexpect_no_calls = true\n'
    for number in range(1, CASES + 1)
)
MODEL = '[models.{name}]\nprovider = "openai"\nmodel = "m"\nbase_url = "{url}/v1"\n'

HELLO = said("openai", "Hello.")
LIMITED = document({"error": {"message": "slow down"}}, status=429, headers={"retry-after": str(RETRY_AFTER_S)})


def refuses_first() -> Iterator[Answer]:
    """The answers of an endpoint that refuses its first request."""
    yield LIMITED
    while True:
        yield HELLO


def figures_in(history: Path) -> dict[str, list[RunSummary]]:
    """Return the results of each model in the only batch of a history."""
    with History(history) as kept:
        (batch,) = kept.batches()
        figures = [run.figures for run in kept.runs(batch.number)]
    assert None not in figures
    over = [each for each in figures if each is not None]
    return {model: [each for each in over if each.model == model] for model in batch.models}


@pytest.mark.slow
def test_a_slow_endpoint_holds_up_no_other_and_waiting_after_a_429_is_no_latency(tmp_path: Path) -> None:
    gate, answers = Signal(), refuses_first()

    def when_told(_: Request) -> Answer:
        return Answer((gate, *HELLO.pieces))

    with ExitStack() as stack:
        scripts = {"quick": lambda _: HELLO, "limited": lambda _: next(answers), "slow": when_told}
        servers = {name: stack.enter_context(Server(script)) for name, script in scripts.items()}
        stack.callback(gate.set)
        (tmp_path / "greetings.toml").write_text(SUITE, encoding="utf-8")
        models = "\n".join(MODEL.format(name=name, url=server.url) for name, server in servers.items())
        (tmp_path / "workbench.toml").write_text(models, encoding="utf-8")
        words = ["compare", "greetings.toml", "--trust", "--history", "history.db"]
        words += [word for name in servers for word in ("--model", name)]
        with Terminal(words, tmp_path / "state", columns=80, rows=24, folder=tmp_path) as terminal:

            def passed() -> list[int]:
                return [line.count("✓") for line in terminal.screen.splitlines() if re.match(r"\S Greeting", line)]

            terminal.wait_for(f"{2 * CASES}/{3 * CASES}")
            terminal.wait_for(lambda: passed() == [2] * CASES)
            assert servers["slow"].requests
            gate.set()
            terminal.wait_for(lambda: passed() == [1 + 3] * CASES)  # the row's own sign, too
            terminal.send("q")
            assert terminal.end() == 0
    runs = figures_in(tmp_path / "history.db")
    assert {model: [run.status for run in of] for model, of in runs.items()} == {
        name: ["passed"] * CASES for name in servers
    }
    waited = [run for run in runs["limited"] if (run.ended_ms or 0) - (run.began_ms or 0) >= RETRY_AFTER_S * 1000]
    assert waited
    assert max(run.latency_ms for run in runs["limited"]) < RETRY_AFTER_S * 1000


@pytest.mark.slow
def test_the_time_runs_on_where_models_are_compared_and_in_the_history(tmp_path: Path) -> None:
    gate = Signal()
    with Server(lambda _: Answer((gate, *HELLO.pieces))) as server, ExitStack() as stack:
        stack.callback(gate.set)
        (tmp_path / "greetings.toml").write_text(SUITE, encoding="utf-8")
        (tmp_path / "workbench.toml").write_text(MODEL.format(name="slow", url=server.url), encoding="utf-8")
        words = [
            "compare",
            "greetings.toml",
            "--trust",
            "--history",
            "history.db",
            "--model",
            "slow",
            "--model",
            "offline",
        ]
        with Terminal(words, tmp_path / "state", columns=160, rows=48, folder=tmp_path) as terminal:

            def clock() -> str:
                found = re.search(r" (\d+:\d\d) ", terminal.screen.splitlines()[0])
                return found[1] if found else ""

            def runs_on() -> None:
                before = clock()
                terminal.wait_for(lambda: clock() > before)

            terminal.wait_for(lambda: "Compare" in terminal.screen and clock() != "")
            runs_on()
            terminal.send("\x1b")
            terminal.wait_for("Suites")
            terminal.send("h")
            terminal.wait_for(lambda: "History" in terminal.screen and clock() != "")
            runs_on()


@pytest.mark.slow
def test_the_samples_are_compared_wherever_one_is(tmp_path: Path) -> None:
    here = suites_in(tmp_path, home=SMART_HOME)
    words = [
        "compare",
        "--samples",
        "--case",
        "exact-id",
        "--model",
        "offline",
        "--model",
        "openai:m@http://127.0.0.1:9/v1",
    ]
    with Terminal(words, tmp_path, folder=here) as terminal:
        terminal.wait_for("Exact id")
        assert "Movie night" not in terminal.screen
