"""The content of the files of each form."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hypothesis import given, settings

from tests.example_counts import examples
from tests.exchange.exporters.recorded_runs import events_of, run_of, wrong_run
from tests.trajectory.scripts import scripts
from workbench.exchange.exporters.export import write_runs
from workbench.exchange.exporters.forms import FORMS, files_of, lines_of
from workbench.trajectory.events import Event, Message, ToolCall

ROOT = Path(__file__).parents[3]


def test_a_run_is_a_line_of_messages_with_what_it_came_to() -> None:
    (line,) = lines_of("messages", [wrong_run()])
    document = json.loads(line)
    assert document["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Is it raining in Oslo?"},
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "I look.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Bergen"}'}}
            ],
        },
        {"role": "tool", "content": "rain", "tool_call_id": "c1"},
        {"role": "assistant", "content": "It rains."},
    ]
    assert [tool["function"]["name"] for tool in document["tools"]] == ["get_weather"]
    assert document["metadata"]["status"] == "failed"
    assert document["metadata"]["reason"] == "wrong argument: get_weather.city: city is Bergen"


def test_a_run_is_an_atif_trajectory() -> None:
    broken = ToolCall("c1", "get_weather", {}, '{"city', "JSON that ends too early")
    (_, pieces), *_ = files_of("atif", [run_of(events_of([("", "", [(broken, "no", True)]), ("Yes.", "", ())]))])
    document = json.loads("".join(pieces))
    assert document["schema_version"] == "ATIF-v1.7"
    assert document["agent"]["tool_definitions"][0]["function"]["name"] == "get_weather"
    assert [(step["step_id"], step["source"]) for step in document["steps"]] == [
        (1, "system"),
        (2, "user"),
        (3, "agent"),
        (4, "agent"),
    ]
    agent = document["steps"][2]
    assert agent["tool_calls"] == [
        {
            "tool_call_id": "c1",
            "function_name": "get_weather",
            "arguments": {},
            "extra": {"raw_arguments": '{"city'},
        }
    ]
    assert agent["observation"] == {"results": [{"source_call_id": "c1", "content": "no", "extra": {"is_error": True}}]}
    assert agent["metrics"] == {"prompt_tokens": 3, "completion_tokens": 5, "cached_tokens": 0}
    assert document["final_metrics"]["total_prompt_tokens"] == 6


def test_runs_are_samples_of_a_log_of_inspect() -> None:
    (name, pieces), *others = [(name, "".join(text)) for name, text in files_of("inspect", [wrong_run(), wrong_run()])]
    assert not others
    assert re.fullmatch(r"2026-11-22T20-31-49-00-00_weather_[0-9a-f]{22}\.json", name)
    log = json.loads(pieces)
    assert log["results"]["scores"][0]["metrics"]["mean"]["value"] == 0.5
    sample = log["samples"][0]
    assert (sample["id"], sample["epoch"], sample["target"]) == ("oslo", 1, ['get_weather(city: "Oslo")'])
    assert [message["role"] for message in sample["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert sample["scores"]["critics"]["value"] == 0.5
    assert sample["events"][0]["tools"][0]["name"] == "get_weather"
    assert sample["output"]["completion"] == "It rains."


@settings(max_examples=examples(100), deadline=None)
@given(events=scripts())
def test_every_run_can_be_exported_as_far_as_it_is(events: list[Event]) -> None:
    """Forks, edits, retries, chains, runs that broke off."""
    run = run_of(events)
    asked = [each for each in run.result.trajectory.rounds if each.stop_reason is not None]
    for form in FORMS:
        if FORMS[form].writer:
            one_file = bool(FORMS[form].ending)
            texts = [*lines_of(form, [run])] if one_file else ["".join(text) for _, text in files_of(form, [run])]
            document: Any = json.loads(texts[0])
            if form == "messages":
                answers = [each for each in document["messages"] if each["role"] == "assistant"]
                start = run.result.trajectory.start
                earlier = sum(each.role == "assistant" for each in start.messages) if start is not None else 0
                assert len(answers) == len(asked) + earlier


def test_files_are_never_overwritten_and_names_fit(tmp_path: Path) -> None:
    runs = [run_of(events_of([("Yes.", "", ())], opening=[Message("user", "?")]))]
    first = write_runs(runs, "atif", tmp_path / "out", "runs")
    second = write_runs(runs, "atif", tmp_path / "out", "runs")
    assert [file.name for file in (*first, *second)] == [
        "weather.oslo.m-1.1.atif.json",
        "weather.oslo.m-1.1.2.atif.json",
    ]
    assert write_runs(runs, "messages", tmp_path / "new" / "a.jsonl", "runs") == [tmp_path / "new" / "a.jsonl"]


def test_the_page_names_every_form() -> None:
    text = (ROOT / "docs" / "importing.md").read_text(encoding="utf-8")
    assert not [form for form in FORMS if f"`{form}`" not in text]
