"""A limit on the cost of a batch: `--max-cost` and `limits.batch_cost_usd`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.cli.by_chance import Booking
from tests.cli.by_chance import suite as rooms
from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.providers.server import MARK, Answer, Call, Request, Server, said

HEAD = WEATHER[: WEATHER.index("[[cases]]")]
PRICES = """
[models.paid]
provider = "openai"
base_url = "{url}/v1"
price = {{ input = 0.0, output = 100000.0 }}

[models.unpriced]
provider = "openai"
base_url = "{url}/v1"
"""
RUN_USD = 0.7
"""One answer of seven tokens."""


ANSWERS = count(1)
"""No two answers are alike, so that each is judged."""


def answering(request: Request) -> Answer:
    if b"verdict" in request.body:
        return said("openai", calls=[Call("verdict", {"mark": MARK, "rationale": "It is.", "holds": True})])
    return said("openai", text=f"Rain, said for the {next(ANSWERS)}th time.")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(answering) as serving:
        yield serving


def cases(number: int, checks: str = 'response_contains = ["Rain"]') -> str:
    return "".join(
        f'\n[[cases]]\nname = "Case {each}"\nuser = "What is the weather in Oslo?"\n{checks}\n'
        for each in range(number)
    )


@pytest.fixture
def suite(program: Program, server: Server) -> Path:
    program.write("workbench.toml", PRICES.format(url=server.url))
    return program.write("weather.toml", HEAD + cases(12))


def test_no_run_begins_beyond_the_limit_however_many_may_run_at_once(
    program: Program, server: Server, suite: Path
) -> None:
    done = program.run(
        "run", suite.name, "--model", "paid", "--trust", "--max-cost", "3", "--format", "json", "--concurrency", "8"
    )
    assert done.returncode == 3
    assert len(server.requests) == 4
    report = json.loads(done.stdout)
    assert report["totals"]["cost_limited"] == report["totals"]["stopped"] == 8
    assert report["totals"]["cost_usd"] == pytest.approx(4 * RUN_USD)
    assert [run["error"] for run in report["runs"] if run["status"] == "stopped"] == [
        "not run: cost limit of $3.00"
    ] * 8
    assert "12 runs: about $240.00; the limit is $3.00 (12 runs guessed from the length of the requests)" in done.stderr
    assert "to resume: workbench run --resume 1" in done.stderr


@pytest.mark.slow
def test_what_was_not_made_is_resumed_under_the_whole_limit(program: Program, server: Server, suite: Path) -> None:
    program.run("run", suite.name, "--model", "paid", "--trust", "--max-cost", "3")
    listed = program.run("history", "list").stdout
    assert "8 of 12 runs missing: stopped, cost limit $3.00" in listed
    assert "not run: cost limit of $3.00" in program.run("history", "show", "1").stdout
    program.run("export", "1", "-o", "out", "--format", "json")
    [file] = (program.folder / "out").glob("*.json")
    stored = json.loads(file.read_text(encoding="utf-8"))
    assert (stored["interrupted"], stored["exit_code"], stored["totals"]["cost_limited"]) == (False, 3, 8)
    again = program.run("run", "--resume", "1", "--trust")
    assert (again.returncode, len(server.requests)) == (3, 4)
    assert "8 runs: about $5.60; the limit is $3.00, of which $2.80 is already spent" in again.stderr
    more = program.run("run", "--resume", "1", "--trust", "--max-cost", "4.25")
    assert (more.returncode, len(server.requests)) == (3, 6)
    assert "6 runs not made: cost limit" in more.stdout
    whole = program.run("run", "--resume", "1", "--trust", "--max-cost", "100")
    assert (whole.returncode, len(server.requests)) == (0, 12)


def test_earlier_runs_tell_what_runs_will_cost(program: Program, server: Server, suite: Path) -> None:
    program.run("run", suite.name, "--model", "paid", "--trust")
    done = program.run("run", suite.name, "--model", "paid", "--trust", "--max-cost", "1.5")
    assert "12 runs: about $8.40; the limit is $1.50\n" in done.stderr
    assert (done.returncode, len(server.requests)) == (3, 12 + 2)


def test_the_lowest_limit_of_the_suites_holds_and_the_option_wins(program: Program, server: Server) -> None:
    program.write("workbench.toml", PRICES.format(url=server.url))
    limited = HEAD.replace("\n[[tools]]", "\n[limits]\nbatch_cost_usd = 1.5\n\n[[tools]]", 1)
    program.write("weather.toml", limited + cases(4))
    done = program.run("run", "weather.toml", "--model", "paid", "--trust")
    assert (done.returncode, len(server.requests)) == (3, 2)
    assert program.run("run", "weather.toml", "--model", "paid", "--trust", "--max-cost", "9").returncode == 0


def test_judges_count(program: Program, server: Server) -> None:
    program.write("workbench.toml", PRICES.format(url=server.url))
    program.write("weather.toml", HEAD + cases(4, 'response = { judged = "is polite" }'))
    judged = ("--judge", "paid", "--no-judge-cache")
    done = program.run("run", "weather.toml", "--model", "paid", *judged, "--trust", "--max-cost", "100")
    assert (done.returncode, len(server.requests)) == (0, 8)
    done = program.run("run", "weather.toml", "--model", "paid", *judged, "--trust", "--max-cost", "2", "--no-history")
    assert (done.returncode, len(server.requests)) == (3, 8 + 2)


@pytest.mark.parametrize(
    ("model", "judge", "what"),
    [("unpriced", "paid", "model 'unpriced'"), ("paid", "unpriced", "judge 'unpriced'")],
)
def test_an_unknown_price_is_an_error_where_a_limit_is_set(
    program: Program, server: Server, model: str, judge: str, what: str
) -> None:
    program.write("workbench.toml", PRICES.format(url=server.url))
    program.write("weather.toml", HEAD + cases(1, 'response = { judged = "is polite" }'))
    done = program.run("run", "weather.toml", "--model", model, "--judge", judge, "--trust", "--max-cost", "1")
    assert (done.returncode, server.requests) == (2, [])
    assert f"a limit on cost needs the price of the {what}: write price = {{ input = …, output = … }}" in done.stderr
    assert "into its table [models.NAME] of a workbench.toml" in done.stderr


def test_runs_that_cost_nothing_are_made_beyond_the_limit(program: Program, server: Server, suite: Path) -> None:
    done = program.run(
        "compare", suite.name, "--model", "paid,offline", "--trust", "--max-cost", "0.5", "--format", "json"
    )
    assert (done.returncode, len(server.requests)) == (3, 1)
    text = program.run("compare", "--resume", "1", "--trust", "--format", "text")
    assert text.returncode == 3 and "11 runs not made: cost limit\n" in text.stdout
    totals = json.loads(done.stdout)["totals"]
    assert [(each["model"], each["stopped"]) for each in totals] == [("paid", 11), ("offline", 0)]


def test_a_limit_of_a_case_is_refused_with_the_place_where_it_belongs(program: Program) -> None:
    program.write("weather.toml", WEATHER.replace('tags = ["easy"]', "limits = { batch_cost_usd = 1 }"))
    done = program.run("validate", "weather.toml")
    assert done.returncode == 2
    assert "unknown key `batch_cost_usd` in the limits" in done.stdout + done.stderr


@pytest.mark.parametrize("usd", ["0", "-1", "nan", "inf", "much"])
def test_a_limit_is_an_amount_above_nothing(program: Program, suite: Path, usd: str) -> None:
    done = program.run("run", suite.name, f"--max-cost={usd}")
    assert done.returncode == 2
    assert f"must be a number of US dollars above 0, not {usd!r}" in done.stderr


@pytest.mark.slow
def test_reruns_of_cases_that_broke_end_at_the_limit_too(program: Program) -> None:
    program.write("rooms.toml", rooms(4))
    words = ("run", "rooms.toml", "--model", "paid", "--trust")
    with Server(Booking(lambda room, asked: (room, asked) != (3, 2))) as server:
        program.write("workbench.toml", PRICES.format(url=server.url))
        assert program.run(*words).returncode == 0
        against = ("--baseline", "1", "--fail-on", "regression", "--max-cost", "6.5", "--format", "json")
        done = program.run(*words, *against)
    assert done.returncode == 3, done.stderr
    (case,) = json.loads(done.stdout)["baseline"]["confirmed"]
    assert (case["outcome"], case["good"], case["why"]) == ("perhaps by chance", 1, "not run: cost limit of $6.50")


def test_each_shard_may_spend_its_part(program: Program, server: Server, suite: Path) -> None:
    part = ("--shard", "1/2", "--plan", "nightly", "--history", "one.sqlite3")
    done = program.run("run", suite.name, "--model", "paid", "--trust", "--max-cost", "3", *part)
    assert (done.returncode, len(server.requests)) == (3, 2)
    assert "6 runs: about $120.00; the limit is $1.50" in done.stderr


def test_a_cluster_keeps_no_limit_and_refuses_one(program: Program, server: Server, suite: Path) -> None:
    done = program.run("run", suite.name, "--model", "paid", "--trust", "--max-cost", "3", "--cluster", "local:2")
    assert (done.returncode, server.requests) == (2, [])
    assert "which needs a single program: leave out --cluster, or the limit" in done.stderr


def test_the_case_of_a_run_that_is_not_made_is_no_success_in_a_junit_report(
    program: Program, server: Server, suite: Path
) -> None:
    done = program.run("run", suite.name, "--model", "paid", "--trust", "--max-cost", "3", "--format", "junit")
    assert done.returncode == 3
    assert done.stdout.count("not run: cost limit of $3.00") >= 8
