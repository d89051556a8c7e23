"""`workbench submission`: the prompts that a plugin directory asks for, and the table of their results."""

from __future__ import annotations

import csv
import json

import pytest

from tests.cli.program import Program
from tests.cli.suites import TOO_LATE, WEATHER

CITIES = ("Oslo", "Bergen", "Rome", "Paris", "Kyiv")
EVIL = "Hello | <script>alert(1)</script> @everyone"


def calling(city: str, expected: str = "") -> str:
    call = f'{{ tool = "get_weather", args = {{ city = "{expected or city}" }} }}'
    return f'[[cases]]\nname = "{city}{expected}"\nuser = "What is the weather in {city}?"\nordered = [{call}]\n'


def not_calling(name: str, user: str) -> str:
    return f'[[cases]]\nname = "{name}"\nuser = "{user}"\nexpect_no_calls = true\n'


HEAD = WEATHER[: WEATHER.index("[[cases]]")]
NONE = [not_calling("hello", EVIL), not_calling("joke", "Tell me a joke."), not_calling("thanks", "Thanks!")]
ENOUGH = HEAD + "".join([NONE[0], *map(calling, CITIES), *NONE[1:]])


def test_the_table_has_five_prompts_that_call_and_then_three_that_do_not(program: Program) -> None:
    program.write("weather.toml", ENOUGH)
    done = program.run("submission", "weather.toml")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("# Plugin submission: Weather\n")
    assert "✓ 5 of 5 prompts that must call a tool passed · ✓ 3 of 3 prompts that must not call a tool" in done.stdout
    rows = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")][2:]
    assert [row[0].removeprefix("| ") for row in rows] == [str(number) for number in range(1, 9)]
    assert [row[2] for row in rows] == ["must call"] * 5 + ["must not call"] * 3
    assert rows[0][3:] == ["`get_weather`", '`get_weather(city="Oslo")`', "✓ passed |"]
    assert rows[5][1] == r"Hello \| \<script\>alert(1)\</script\> `@everyone`"
    assert rows[5][3:] == ["none", "none", "✓ passed |"]


@pytest.mark.parametrize(
    ("suite", "said"),
    [
        (HEAD + "".join(map(calling, CITIES)), "add 3 cases with expect_no_calls = true"),
        (
            HEAD + "".join([*map(calling, CITIES[:4]), NONE[0]]),
            "there are 4 and 1: add 1 case with an expected call (ordered, unordered or steps) and 2 cases with "
            "expect_no_calls = true",
        ),
        (
            ENOUGH.replace('name = "Oslo"', 'name = "Oslo"\nskip = "later"') + TOO_LATE,
            "add 1 case with an expected call (ordered, unordered or steps); skipped, or neither of both: oslo, later",
        ),
    ],
    ids=["none that must not", "too few of both", "skipped, and one that demands nothing of calls"],
)
def test_what_is_missing_is_said_precisely_and_nothing_is_run(program: Program, suite: str, said: str) -> None:
    program.write("weather.toml", suite)
    done = program.run("submission", "weather.toml", "-o", "table.md")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        "nothing was run: a submission needs 5 prompts that must call a tool and 3 prompts that must not call a tool"
        in done.stderr
        and said in done.stderr
    )
    assert not (program.folder / "table.md").exists()


def test_only_the_cases_that_are_chosen_count(program: Program) -> None:
    program.write("weather.toml", ENOUGH)
    done = program.run("submission", "weather.toml", "--case", "oslo", "--case", "joke")
    assert done.returncode == 2
    assert "there are 1 and 1: add 4 cases with an expected call" in done.stderr


def test_further_cases_follow_and_decide_as_for_run(program: Program) -> None:
    program.write("weather.toml", ENOUGH)
    program.write("more.toml", HEAD + calling("Bonn", "Cologne") + not_calling("weather", "The weather in Oslo?"))
    files = ["table.json", "table.csv"]
    words = [word for file in files for word in ("--report", file)]
    done = program.run("submission", "weather.toml", "more.toml", "--no-history", *words)
    assert done.returncode == program.run("run", "weather.toml", "more.toml", "-q").returncode == 1
    assert "Further cases:" in done.stdout
    whole, table = ((program.folder / file).read_text() for file in files)
    document = json.loads(whole)
    assert (document["report"], document["version"], document["exit_code"], document["batch"]) == (
        ("workbench submission", 1, 1, None)
    )
    prompts = document["prompts"]
    assert [(each["asked_for"], each["kind"], each["verdict"]) for each in prompts[8:]] == [
        (False, "must call", "failed"),
        (False, "must not call", "failed"),
    ]
    assert prompts[8]["expected_tools"] == ["get_weather"]
    assert prompts[8]["made_calls"] == ['get_weather(city="Bonn")']
    rows = list(csv.DictReader(table.splitlines()))
    assert [row["prompt"] for row in rows] == [each["prompt"] for each in prompts]
    assert [row["verdict"] for row in rows] == ["passed"] * 8 + ["failed"] * 2


def test_each_model_has_a_table_and_repeats_are_counted(program: Program) -> None:
    program.write("weather.toml", ENOUGH)
    assert program.run("run", "weather.toml", "--record", "runs", "-q").returncode == 0
    done = program.run(
        "submission", "weather.toml", "--model", "offline,replay:runs", "--repeats", "2", "-o", "table.md"
    )
    assert done.returncode == 0, done.stderr
    assert '→ get_weather(city="Oslo")' in done.stdout
    table = (program.folder / "table.md").read_text()
    assert [line for line in table.splitlines() if line.startswith("## ")] == ["## `offline`", "## `replay:runs`"]
    assert table.count("✓ passed, 2 of 2 runs") == 16


def test_an_infrastructure_error_answers_three(program: Program) -> None:
    program.write("weather.toml", ENOUGH.replace("[[cases]]", "[limits]\ntimeout_s = 0.05\n\n[[cases]]", 1))
    program.write("slow.toml", HEAD + TOO_LATE)
    done = program.run("submission", "weather.toml", "slow.toml", "--quiet")
    assert done.returncode == 3
    assert "▲ error" in done.stdout


def test_nothing_to_submit_and_a_form_that_does_not_exist_are_wrong_usage(program: Program) -> None:
    program.write("weather.toml", ENOUGH)
    nothing = program.run("submission")
    assert nothing.returncode == 2
    assert nothing.stderr == "say what to run: workbench submission PATH …, or --samples\n"
    page = program.run("submission", "weather.toml", "-o", "table.html")
    assert page.returncode == 2
    assert "'workbench submission' has no html report; end the name in .json, .csv, .md" in page.stderr
