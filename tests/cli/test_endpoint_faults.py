"""Faults of endpoints and unfinished answers in every report of a real run, and a gate that excludes them."""

from __future__ import annotations

import json

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.providers.server import Answer, Call, said, serve
from tests.sampled_rows import first_rows

CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
AS_TEXT = "endpoint fault: the endpoint returned the call as text"
GATE = '\n[gate]\nendpoint_faults = "error"\n'


def ended(reason: str) -> Answer:
    """An answer that the model did not end itself."""
    pieces = said("openai", "It").pieces
    return Answer(tuple(each.replace(b'"stop"', f'"{reason}"'.encode()) for each in pieces if isinstance(each, bytes)))


def run(program: Program, answer: Answer, *words: str) -> str:
    with serve(answer) as server:
        model = f"openai:m@{server.url}/v1"
        return program.run("run", "weather.toml", "--trust", "--model", model, *words).stdout


@pytest.mark.parametrize(
    ("answer", "words"),
    first_rows(
        [
            (said("openai", CALL), "the endpoint returned the call as text"),
            (ended("length"), "cut off (after 7 tokens: raise `max_tokens`, or shorten the conversation"),
            (ended("content_filter"), "refused (the model, or a content filter"),
        ],
        1,
    ),
)
def test_every_report_says_how_an_answer_ended(program: Program, answer: Answer, words: str) -> None:
    program.write("weather.toml", WEATHER)
    reports = [word for name in ("r.md", "r.xml", "r.json") for word in ("--report", name)]
    text = run(program, answer, *reports)
    kept = [(program.folder / name).read_text(encoding="utf-8").replace("\\", "") for name in ("r.md", "r.xml")]
    for report in (text, *kept):
        assert words in report
        assert "no final answer" not in report
    (cause,) = json.loads((program.folder / "r.json").read_text(encoding="utf-8"))["failures"]["causes"]
    assert cause["cause"] in ("endpoint", "cut off", "refused")
    assert cause["advice"] in text


def test_a_gate_takes_faults_out_in_runs_recordings_and_the_history(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    text = run(program, said("openai", CALL), "--record", "recorded")
    assert "  1 of 1 failure is the endpoint's\n" in text
    assert AS_TEXT in program.run("history", "show", "1").stdout
    program.write("weather.toml", WEATHER + GATE)
    for words in (["grade", "recorded", "--suite", "weather.toml"], ["grade", "1"]):
        again = program.run(*words)
        assert again.returncode == 3, again.stdout + again.stderr
        assert f"error: {AS_TEXT}" in again.stdout
    once_more = run(program, said("openai", CALL), "--format", "json")
    report = json.loads(once_more)
    assert (report["exit_code"], report["totals"]["errors"], report["totals"]["endpoint_faults"]) == (3, 1, 0)
    assert report["runs"][0]["error"].startswith(AS_TEXT)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("getWeather", "unknown tool: call 1 getWeather (no tool has this name; the nearest is get_weather)"),
        ("functions.get_weather", "unknown tool: name with the template's residue; get_weather is meant"),
    ],
)
def test_a_name_of_no_tool_is_reported_once(program: Program, name: str, words: str) -> None:
    program.write("weather.toml", WEATHER)
    with serve(said("openai", "", [Call(name, {"city": "Oslo"})]), said("openai", "Done.")) as server:
        text = program.run("run", "weather.toml", "--trust", "--model", f"openai:m@{server.url}/v1").stdout
    assert words in text
    assert "were not checked" not in text
