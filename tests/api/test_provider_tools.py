"""Tools that a provider runs itself: offered by a suite, expected by name, shown, replayed, and never answered here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import workbench
from tests.api.test_evaluating import nothing_left_behind
from tests.providers.server import Answer, Api, base_url_of, said, serve
from tests.providers.server.formats import sse
from tests.show.html_page import page_of
from workbench.cli.main import main
from workbench.show.views.trajectory import trajectory_lines

SUITE = """format = 1
name = "Weather"

[[tools]]
name = "get_weather"
parameters = { type = "object", properties = { city = { type = "string" } } }

[[provider_tools]]
name = "web_search"
messages = { type = "web_search_20250305", name = "web_search", max_uses = 2 }
responses = { type = "web_search" }

[[cases]]
name = "Oslo"
user = "What is the weather?"
extra_calls = "forbid"
response_contains = ["fine"]
limits = { max_tool_calls = 2 }
[[cases.ordered]]
tool = "web_search"
args = { query = "oslo" }
[[cases.ordered]]
tool = "get_weather"
args = { city = "Oslo" }
[cases.final]
changes = [{ tool = "get_weather" }]
"""

FORMS: dict[Api, dict[str, Any]] = {
    "anthropic": {"type": "web_search_20250305", "name": "web_search", "max_uses": 2},
    "openai-responses": {"type": "web_search"},
}
FOUND = {"type": "web_search_result", "title": "Oslo today", "url": "https://example.test", "encrypted_content": "ENC"}
BLOCKS = [
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "oslo"}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [FOUND]},
    {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Oslo"}},
]
ITEMS = [
    {"type": "web_search_call", "id": "ws1", "status": "completed", "action": {"type": "search", "query": "oslo"}},
    {"type": "function_call", "id": "f1", "call_id": "c1", "name": "get_weather", "arguments": '{"city":"Oslo"}'},
]


def searched(api: Api) -> Answer:
    """An answer with a search by the provider and a call of the suite's tool."""
    events: list[dict[str, Any]]
    if api == "anthropic":
        events = [{"type": "message_start", "message": {"usage": {"input_tokens": 3}}}]
        for index, block in enumerate(BLOCKS):
            events.append({"type": "content_block_start", "index": index, "content_block": block})
            events.append({"type": "content_block_stop", "index": index})
        events += [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
    else:
        events = [{"type": "response.completed", "response": {"status": "completed", "output": ITEMS}}]
    return Answer(tuple(sse(event, event["type"]) for event in events))


def evaluated(folder: Path, api: Api, answers: Sequence[Answer], **options: Any) -> tuple[workbench.Report, list[Any]]:
    """Evaluate the suite in a folder on these answers; return the report, and the bodies of the requests."""
    with nothing_left_behind(), serve(*answers) as server:
        name = f"{api}:tiny@{base_url_of(server, api)}"
        report = workbench.evaluate(folder / "weather.toml", model=name, approve=workbench.ALL, **options)
        return report, [request.json for request in server.requests]


@pytest.fixture
def suite(folder: Path) -> Path:
    file = folder / "weather.toml"
    file.write_text(SUITE, encoding="utf-8")
    return file


@pytest.mark.parametrize("api", FORMS)
def test_one_suite_offers_a_tool_in_the_form_of_each_api_and_expects_it_by_name(suite: Path, api: Api) -> None:
    answers = [searched(api), said(api, "It is fine.")]
    report, (first, second) = evaluated(suite.parent, api, answers, record=suite.parent / "runs")
    assert report.passed, report.text()
    assert first["tools"][-1] == FORMS[api]
    assert json.dumps(first["tools"]).count("web_search") == json.dumps(FORMS[api]).count("web_search")
    trajectory = report.results[0].trajectory
    search, weather = trajectory.calls
    assert (search.tool, search.by_provider, search.server) == ("web_search", True, None)
    assert (weather.tool, weather.by_provider) == ("get_weather", False)
    if api == "anthropic":
        assert search.result is not None
        assert json.loads(search.result.content) == [{k: v for k, v in FOUND.items() if k != "encrypted_content"}]
        assert search.result.source == "provider"
        assert second["messages"][1]["content"] == BLOCKS
    else:
        assert second["input"][1:3] == ITEMS
    again = workbench.evaluate(suite, model=f"replay:{suite.parent / 'runs'}", approve=workbench.ALL)
    assert again.passed, again.text()
    assert [each.tool for each in again.results[0].trajectory.calls] == ["web_search", "get_weather"]


def test_a_tool_without_any_form_is_offered_by_the_endpoint_itself(suite: Path) -> None:
    lines = [line for line in SUITE.split("\n") if not line.startswith(("messages =", "responses ="))]
    suite.write_text("\n".join(lines), encoding="utf-8")
    answers = [searched("anthropic"), said("anthropic", "It is fine.")]
    report, (first, _) = evaluated(suite.parent, "anthropic", answers, record=suite.parent / "runs")
    assert report.passed, report.text()
    assert [tool["name"] for tool in first["tools"]] == ["get_weather"]
    again = workbench.evaluate(suite, model=f"replay:{suite.parent / 'runs'}", approve=workbench.ALL)
    assert again.passed, again.text()
    assert again.results[0].trajectory.offered == report.results[0].trajectory.offered


def test_a_search_with_other_arguments_fails_as_any_call_does(suite: Path) -> None:
    suite.write_text(SUITE.replace('query = "oslo"', 'query = "bergen"'), encoding="utf-8")
    report, _ = evaluated(suite.parent, "anthropic", [searched("anthropic"), said("anthropic", "It is fine.")])
    assert not report.passed
    assert "query" in (report.results[0].reason or "")


def test_a_provider_s_tool_that_the_suite_does_not_offer_is_only_shown(suite: Path) -> None:
    alone = SUITE[: SUITE.index("[[provider_tools]]")] + SUITE[SUITE.index("[[cases]]") :]
    before, after = alone.split("[[cases.ordered]]\n", 1)
    suite.write_text(before + after[after.index("[[cases.ordered]]") :], encoding="utf-8")
    report, _ = evaluated(suite.parent, "anthropic", [searched("anthropic"), said("anthropic", "It is fine.")])
    assert report.passed, report.text()
    trajectory = report.results[0].trajectory
    assert [each.tool for each in trajectory.calls] == ["get_weather"]
    assert [each.tool for each in trajectory.rounds[0].not_offered] == ["web_search"]
    assert "Oslo today" in page_of(report).runs[0]
    assert any(line.startswith("← provider") and "Oslo today" in line for line in trajectory_lines(trajectory))
    (shown,) = json.loads(report.json())["runs"][0]["rounds"][0]["calls_of_provider"]
    assert (shown["tool"], shown["source"]) == ("web_search", "provider")


def test_a_model_of_another_api_is_not_offered_the_tool_and_the_run_says_so(suite: Path) -> None:
    report, (request,) = evaluated(suite.parent, "openai", [said("openai", "It is fine.")])
    assert [tool["function"]["name"] for tool in request["tools"]] == ["get_weather"]
    (notice,) = report.results[0].trajectory.notices
    assert notice.startswith("web_search is not offered to ")
    assert notice.endswith("`provider_tools` defines it only for messages, responses")


def test_providers_run_no_tools_for_a_suite_without_trust(suite: Path) -> None:
    with serve() as server, pytest.raises(workbench.ApprovalError) as refused:
        workbench.evaluate(suite, model=f"anthropic:tiny@{server.url}")
    assert "let the provider of a model run its own tool: web_search" in str(refused.value)
    # The offline model has no provider, so no question is needed.
    report = workbench.evaluate(suite, model="offline")
    assert "web_search is not offered" in report.results[0].trajectory.notices[0]


def test_a_tool_that_the_provider_leaves_to_us_is_answered_by_an_error_and_by_no_mock(suite: Path) -> None:
    mock = '\n[[cases.mocks]]\ntool = "web_search"\nresult = "mocked"\n'
    suite.write_text(SUITE + mock, encoding="utf-8")
    call = {"type": "tool_use", "id": "t1", "name": "web_search", "input": {"query": "oslo"}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": call},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    answer = Answer(tuple(sse(event, event["type"]) for event in events))
    report, (_, second) = evaluated(suite.parent, "anthropic", [answer, said("anthropic", "It is fine.")])
    (result,) = second["messages"][-1]["content"]
    assert (result["is_error"], result["content"]) == (
        True,
        "web_search is a tool of the provider, which did not run it.",
    )
    assert not report.passed


FAULTS = [
    ('name = "web_search"', 'type = "web_search"\nname = "web_search"', "unknown key `type` in a tool of providers"),
    ('name = "web_search"', 'name = "get_weather"', "is also one of `provider_tools`"),
    ('user = "What', 'mocks = [{ tool = "web_search", result = "x" }]\nuser = "What', "the provider runs it"),
    ("messages = {", "message = {", "did you mean `messages`?"),
    ('responses = { type = "web_search" }', 'responses = "web_search"', "must be a table"),
]


@pytest.mark.parametrize(("old", "new", "words"), FAULTS)
def test_faults_in_a_suite_are_named(
    suite: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, words: str
) -> None:
    suite.write_text(SUITE.replace(old, new, 1), encoding="utf-8")
    main(["validate", str(suite)])
    said_here = capsys.readouterr()
    assert words in said_here.out + said_here.err


def test_a_suite_with_tools_of_providers_has_no_problem(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--audit", str(suite)]) == 0
    report = capsys.readouterr().out
    assert "web_search" not in report
    assert "0 audit findings" in report
