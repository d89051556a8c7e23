"""Rules for the options of every command: no abbreviations, no repeated keys, and formats by file name."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.program import Program
from tests.cli.suites import WEATHER, WRONG
from workbench.cli.app import parser_of_app
from workbench.cli.main import COMMANDS, parser_of
from workbench.config.typed_keys import HIDDEN, looks_like_key, without_keys

KEYS = (
    "sk-proj-4fJx9QmZ27bLw",
    "ghp_a1B2c3D4e5F6g7H8i9J0",
    "AKIAIOSFODNN7EXAMPLE",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "d41d8cd98f00b204e9800998ecf8427e",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N",
)
SHORT = {"--output": "-o", "--verbose": "-v", "--quiet": "-q"}


def parsers() -> Iterator[argparse.ArgumentParser]:
    """Every parser of the program, those of subcommands included."""
    waiting: list[argparse.ArgumentParser] = [parser_of_app(COMMANDS), *map(parser_of, COMMANDS)]
    while waiting:
        parser = waiting.pop()
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += action.choices.values()


@pytest.fixture(params=parsers(), ids=lambda parser: parser.prog)
def parser(request: pytest.FixtureRequest) -> argparse.ArgumentParser:
    found: argparse.ArgumentParser = request.param
    return found


@pytest.mark.parametrize(
    ("command", "former", "present", "said"),
    [
        ("compare", "--against 1", "--baseline 1", "--against is called --baseline now"),
        ("import", "f --runs=r", "f --recordings=r", "--runs is called --recordings now"),
        ("init", "--tools a npx x --tools c", "--tool a npx x --tools c", "--tools is called --tool now"),
        ("record", "--suite s", "--output s", "--suite is called --output now"),
        ("record", "--server --to s -- x --to", "--server -o s -- x --to", "--to is called --output now"),
        ("shrink", "1 --runs 2", "1 --repeats 2", "--runs is called --repeats now"),
        ("shrink", "1 --most-runs 9", "1 --max-runs 9", "--most-runs is called --max-runs now"),
    ],
)
def test_a_former_option_is_the_present_one(
    command: str, former: str, present: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = parser_of(command)
    assert parser.parse_args(former.split()) == parser.parse_args(present.split())
    assert capsys.readouterr().err == f"{said}\n"


def refused(parser: argparse.ArgumentParser, words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(words)
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_every_parser_knows_whole_words_alone_and_repeats_no_key(
    parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    needed = ["1"] * sum(not action.option_strings and action.nargs != "*" for action in parser._actions)
    if "history" in parser.prog.split() and parser.prog.endswith("name"):
        needed = ["1", "--remove"]
    assert parser.allow_abbrev is False
    options = [option for action in parser._actions for option in action.option_strings]
    for long, short in SHORT.items():
        assert (long in options) is (short in options)
    for option in options:
        if option.startswith("--") and option[:-1] not in options:
            refused(parser, [*needed, option[:-1], "1"], capsys)
    for key in KEYS:
        for words in (["--api-key", key], [f"--api-key={key}"], ["--token", key], [f"--key={key}"]):
            said = refused(parser, [*needed, *words], capsys)
            assert "name that variable with --api-key-env" in said
            assert key not in said
        for words in (
            ["--no-such-option", key], [f"--nothing={key}"], ["--no-such-option", f"Authorization=Bearer {key}"],
        ):  # fmt: skip
            said = refused(parser, [*needed, *words], capsys)
            assert key not in said
        for action in parser._actions:
            given = [action.option_strings[-1], key] if action.option_strings else [key]
            with suppress(SystemExit):
                parser.parse_args([*needed, *given])
            assert key not in capsys.readouterr().err


def test_a_key_among_the_words_is_not_repeated_by_a_command_either(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    for key in KEYS[::3]:
        for words in (
            ("run", key), ("run", "weather.toml", "--case", key), ("run", "weather.toml", "--model", key),
            ("run", "weather.toml", "--model", "offline", "--param", key), ("history", "show", key),
        ):  # fmt: skip
            done = program.run(*words)
            assert done.returncode == 2
            assert key not in done.stdout + done.stderr
            assert HIDDEN in done.stderr


@given(st.text(max_size=40), st.sampled_from(KEYS), st.text(max_size=40))
def test_a_key_is_hidden_wherever_it_stands_in_a_message(before: str, key: str, after: str) -> None:
    said = without_keys(f"{before}{key!r}{after}{key}", [key, f"--option={key}"])
    assert key not in said
    assert said.count(HIDDEN) >= 2


def test_what_people_name_suites_models_and_cases_looks_like_no_key() -> None:
    ordinary = (
        "suites/weather-2024.toml", "openai:gpt-4o-mini-2024-07-18", "claude-3-5-sonnet-20241022", "runs/Batch12.json",
        "accounts/fireworks/models/llama-v3p1-405b-instruct", "replay:recordings/batch-1#gpt-4o-mini", "OPENAI_API_KEY",
        "meta-llama/Llama-3.3-70B-Instruct-Turbo", "http://localhost:11434/v1", "the-quick-brown-fox-jumps", "",
    )  # fmt: skip
    assert [word for word in ordinary if looks_like_key(word)] == []


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("compar", "Unknown command compar. Did you mean compare?"),
        ("rnu weather.toml --format json", "Unknown command rnu. Did you mean run?"),
        ("History list", "Unknown command History. Did you mean history?"),
        ("history shwo", "Unknown history command shwo. Did you mean show?"),
        ("models ad --model m", "Unknown models command ad. Did you mean add?"),
        ("run --html r.html weather.toml", "Unknown option --html. Write --report FILE.html"),
        ("compare --csv=r.csv weather.toml", "Unknown option --csv. Write --report FILE.csv"),
        ("run --modl=m weather.toml", "Unknown option --modl. Did you mean --model?"),
        ("history --limt 3", "Unknown option --limt. Did you mean --limit?"),
        ("history show --verbos", "Unknown option --verbos. Did you mean --verbose?"),
        ("--thme dark", "Unknown option --thme. Did you mean --theme?"),
        ("compare --shard 1/2 weather.toml", "compare has no shards: give --shard to 'workbench run' with all models"),
        ("validate weather.toml --trust", "validate starts, imports and asks nothing, so it needs no --trust: "),
        ("nosuch", "There is no command, no file and no folder nosuch. The commands are run, grade, compare, attach, "),
    ],
)  # fmt: skip
def test_a_mistyped_word_is_answered_with_the_near_one(program: Program, typed: str, answer: str) -> None:
    done = program.run(*typed.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(answer)
    assert done.stderr.count("\n") == 1


def test_paths_may_stand_on_both_sides_of_an_option_and_the_words_of_a_command_may_not() -> None:
    arguments = parser_of("validate").parse_args(["a", "--format", "text", "b", "c", "--audit", "d"])
    assert arguments.paths == ["a", "b", "c", "d"]
    assert parser_of("mcp").parse_args(["--trust", "a"]).paths == [Path("a")]
    for command, words in (("record", ["a", "--listen", "b", "c"]), ("schema", ["suite", "d"])):
        with pytest.raises(SystemExit):
            parser_of(command).parse_args(words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["batches", "--stop"],
            "expected one argument, the number or name of a batch: 'workbench batches' lists those",
        ),
        (["history", "export", "41", "json", "-o", "x"], "workbench history export: error: unrecognized arguments: "),
    ],
)
def test_the_command_that_was_meant_is_explained(words: list[str], said: str, program: Program) -> None:
    done = program.run(*words)
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_what_looks_like_a_path_or_is_one_is_no_mistyped_command(program: Program) -> None:
    (program.folder / "compar").mkdir()
    for path in ("compar", "./comparr", "compare.toml", "models/ad"):
        assert "cannot be shown: standard input is not a terminal" in program.run(path).stderr
    assert "comparr.toml: error: there is no such file" in program.run("run", "comparr.toml").stderr
    (program.folder / "git.toml").touch()
    assert "gti.toml: error: there is no such file (did you mean `git.toml`?)" in program.run("run", "gti.toml").stderr
    assert "there is no nowhere" in program.run("models", "nowhere").stderr


def test_several_models_stand_between_commas_wherever_models_are_named() -> None:
    with_models = [each for each in parsers() if "--model" in each._option_string_actions]
    assert {each.prog for each in with_models} == {
        "workbench", "workbench run", "workbench compare", "workbench models", "workbench mcp", "workbench submission",
        "workbench accept", "workbench faults", "workbench mutate", "workbench shrink", "workbench serve",
    }  # fmt: skip
    for each in with_models:
        needed = ["1"] if each.prog == "workbench shrink" else []
        words = [*needed, "--model", "a, b", "--model", r"replay:runs/x\,y", "--model", "http://host/v1?a=1"]
        assert each.parse_args(words).model == ["a", "b", "replay:runs/x,y", "http://host/v1?a=1"]
        with pytest.raises(SystemExit):
            each.parse_args([*needed, "--model", "a,,b"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["compare", "-o", "x.xml"],
            "cannot write x.xml: 'workbench compare' has no junit report; end the name in .txt",
        ),
        (["compare", "-o", "x.xml", "--format", "text"], "'workbench compare' has no junit report"),
        (["run", "-o", "x.json", "--format", "text"], "its ending means json, but --format is text"),
        (
            ["run", "-o", "x.pdf"],
            "cannot write x.pdf: .pdf is not the ending of a format; give --format, or end the name in",
        ),
        (["compare", "-o", "x.jsonl", "--format", "csv"], "its ending means records, but --format is csv"),
        (["compare", "-o", "x.md", "--format", "json"], "its ending means markdown, but --format is json"),
        (["grade", "-o", "x.json", "--format", "text"], "its ending means json, but --format is text"),
    ],
)
def test_a_file_gets_no_report_of_another_form_than_its_name_says(
    program: Program, words: list[str], said: str
) -> None:
    program.write("weather.toml", WEATHER)
    done = program.run(words[0], "weather.toml", *words[1:])
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert [each.name for each in program.folder.glob("x.*")] == []


@pytest.mark.slow
def test_the_form_of_a_report_follows_the_name_of_its_file(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)

    def written(name: str, *words: str) -> str:
        done = program.run(*words, "-o", name)
        assert done.returncode in (0, 1), done.stderr
        return (program.folder / name).read_text(encoding="utf-8")

    run = ("run", "weather.toml", "-q")
    assert json.loads(written("a.JSON", *run, "--record", "runs"))["report"] == "workbench"
    lines = [json.loads(line) for line in written("a.jsonl", *run).splitlines()]
    assert sum("result" in line for line in lines) == 2
    for name in ("a.txt", "a.log", "plain", "page.pdf"):
        form = ("--format", "text") if name.endswith("pdf") else ()
        assert "2 runs: 1 passed, 1 failed" in written(name, *run, *form)
    assert len(json.loads(written("graded.json", "grade", "runs"))["runs"]) == 2
    assert "2 runs: 1 passed, 1 failed" in written("graded.txt", "grade", "runs", "-v")
    refused = program.run("history", "export", "1", "out.json", "--format", "json")
    assert refused.returncode == 2
    assert "out.json looks like a file name: give the folder to export into" in refused.stderr


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (["help"], ["--help"]),
        (["help", "run"], ["run", "--help"]),
        (["help", "models", "add"], ["models", "add", "--help"]),
        (["help", "history", "list"], ["history", "list", "--help"]),
        (["help", "help"], ["help", "--help"]),
        (["version"], ["--version"]),
    ],
)
def test_help_and_version_are_commands_too(program: Program, words: list[str], same: list[str]) -> None:
    done, wanted = program.run(*words), program.run(*same)
    assert (done.returncode, done.stdout, done.stderr) == (0, wanted.stdout, "")


def test_help_on_no_command_names_the_near_one(program: Program) -> None:
    done = program.run("help", "compar")
    assert (done.returncode, done.stderr) == (2, "Unknown command compar. Did you mean compare?\n")


def test_help_fits_a_screen_and_names_every_option(
    parser: argparse.ArgumentParser, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    short = parser.format_help()
    most = 23 if parser.prog == "workbench" else 40
    assert short.count("\n") <= most and max(map(len, short.splitlines())) <= 80
    with pytest.raises(SystemExit):
        parser.parse_args(["--help-all"])
    whole = capsys.readouterr().out
    hidden = ("--gate", "--worse", "--seed", "--looks")
    for action in parser._actions:
        option = action.option_strings[-1:] or [""]
        shown = option[0] not in hidden
        assert (option[0] in whole) is shown
        if parser.prog != "workbench":
            assert option[0] in short or option[0] in ("--help", "--help-all") or not shown
    if parser.prog == "workbench":
        assert [name for name in COMMANDS if name not in short] == []


@pytest.mark.parametrize("option", ["--gate", "--min-pass-rate", "--threshold", "--fail-under"])
def test_a_demand_on_all_cases_is_pointed_to_where_it_goes(program: Program, option: str) -> None:
    done = program.run("grade", "runs", option, "0.9")
    assert done.returncode == 2
    assert done.stderr.startswith(f"Unknown option {option}. To demand a pass rate of every batch, write min_pass_rate")
