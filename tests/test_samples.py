"""The sample suites load without a problem, name existing tools, and show what they claim to show."""

from __future__ import annotations

import json
import queue
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from tests.cli.forking import write_forked_python
from tests.programs import begin, program_of
from tests.tables import each_row
from workbench.config.folders import bundled
from workbench.engine.events import BatchDone, BatchEvent, RunDone
from workbench.engine.plan import ExecutionRules, plan_runs
from workbench.evaluation.runtime import Runtime
from workbench.grading.grade import RunResult
from workbench.suite.model import Suite
from workbench.suite.suite_file import load_suite

SAMPLES = bundled("sample_suites")
FILES = sorted(SAMPLES.glob("*.toml"))
OFFICE_TOOLS = {"search_docs", "get_weather", "calculate", "send_email", "create_task"}

NOT_PASSED = {
    ("weather", "weather-with-ambiguous-location"): ("failed", 0.75),
    ("slack", "message-in-the-model-s-own-words"): ("warned", 0.83),
    ("office", "hr-assistant"): ("failed", 0.5),
    ("office", "e-mail-to-a-name"): ("failed", 1.0),
    ("letter_count", "banana"): ("failed", 0.0),
    ("letter_count", "mississippi"): ("failed", 0.0),
    ("letter_count", "hello"): ("failed", 0.0),
    ("weather_agent", "T003_no_tool_needed"): ("failed", 0.5),
    ("office_chains", "a-dozen"): ("failed", 0.33),
    ("office_decisions", "hr-assistant"): ("failed", 0.67),
    ("office_decisions", "weather-in-tokyo-exact-units"): ("warned", 0.83),
    ("office_decisions", "weather-in-tokyo-any-units"): ("warned", 0.83),
    ("tasks", "events-today"): ("failed", 0.0),
    ("tasks", "list-then-add"): ("failed", 0.5),
    ("tasks", "list-and-add-any-order"): ("failed", 0.5),
    ("tasks", "own-weights"): ("failed", 0.5),
    ("smart_home", "a-bit-cold"): ("failed", 0.0),
    ("smart_home", "dim-a-little"): ("failed", 0.0),
    ("smart_home", "movie-night"): ("failed", 0.0),
    ("smart_home", "lock-up"): ("failed", 0.33),
    ("smart_home", "bedtime-routine"): ("failed", 0.0),
    ("smart_home", "never-that-bright"): ("failed", 0.5),
    ("smart_home", "let-me-in"): ("failed", 0.0),
    ("library", "something-cheerful"): ("skipped", 0.0),
    ("library", "search-then-details"): ("failed", 0.5),
    ("library", "at-most-three"): ("failed", 0.0),
}
"""What the baseline gets wrong, and how wrong; and the case that is skipped for want of a judge."""

Results = dict[tuple[str, str], RunResult]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    """The runs of all sample cases on the offline model, with execution of tools where the suite asks for it."""
    said: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
    home = tmp_path_factory.mktemp("home")
    session = Runtime(said.put, program_of(home))
    runs = plan_runs([load_suite(file) for file in FILES])
    done: list[RunResult] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(write_forked_python(home / "python")))
        begin(session, runs, execution=ExecutionRules(exempt=lambda _file: True))
        while not isinstance(event := said.get(timeout=60), BatchDone):
            if isinstance(event, RunDone):
                done.append(event.result)
        session.close()
    yield {(Path(result.suite).stem, result.case_id): result for result in done}


def suite(name: str) -> Suite:
    file = load_suite(SAMPLES / f"{name}.toml")
    assert file.suite is not None
    return file.suite


def test_there_are_the_samples_that_the_documentation_names() -> None:
    assert [file.stem for file in FILES] == [
        "critic_gallery",
        "generic_tool",
        "letter_count",
        "library",
        "office",
        "office_chains",
        "office_decisions",
        "returns_desk",
        "slack",
        "smart_home",
        "tasks",
        "weather",
        "weather_agent",
    ]


@each_row("file", FILES)
def test_a_sample_loads_without_a_problem_and_explains_itself(file: Path) -> None:
    loaded = load_suite(file)
    assert loaded.problems == ()
    assert loaded.text.startswith("# ")
    assert loaded.suite is not None and loaded.suite.description


@each_row(
    "name",
    [
        "weather",
        "slack",
        "critic_gallery",
        "generic_tool",
        "office_decisions",
        "tasks",
        "letter_count",
        "smart_home",
        "library",
    ],
)
def test_samples_with_tools_written_out_start_nothing_and_expect_only_these(name: str) -> None:
    sample = suite(name)
    tools = {tool.name for tool in sample.tools}
    assert not sample.servers and not sample.execute
    assert {mock.tool for mock in sample.mocks} == tools
    assert {call.tool for case in sample.cases for call in case.expected_calls()} <= tools


@pytest.mark.slow
async def test_the_office_server_has_the_tools_that_the_office_suites_expect() -> None:
    parameters = StdioServerParameters(command=sys.executable, args=["office_server.py"], cwd=SAMPLES)
    async with Client(parameters) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        refused = await client.call_tool("calculate", {"operation": "divide", "a": 1, "b": 0})
        sent = await client.call_tool("send_email", {"to": "a@example.com", "subject": "Hi", "body": "Hello"})
        no_date = await client.call_tool("create_task", {"title": "Fix", "due_date": "soon"})
    expected = (*suite("office").cases, *suite("office_chains").cases)
    assert set(listed) == OFFICE_TOOLS
    for call in (call for case in expected for call in case.expected_calls()):
        assert set(call.args or {}) <= set(listed[call.tool].input_schema["properties"])
    assert [name for name, tool in listed.items() if tool.annotations and tool.annotations.read_only_hint] == [
        "search_docs",
        "get_weather",
        "calculate",
    ]
    assert refused.is_error and "Division by zero" in str(refused.content)
    assert no_date.is_error and "YYYY-MM-DD" in str(no_date.content)
    assert not sent.is_error and "sends nothing" in str(sent.content)


@pytest.mark.slow
def test_the_baseline_passes_all_cases_but_those_it_should_not(results: Results) -> None:
    found = {
        key: (result.status, round(result.score or 0, 2))
        for key, result in results.items()
        if result.status != "passed"
    }
    assert found == NOT_PASSED
    assert len(results) == sum(len(suite(file.stem).cases) for file in FILES)


def test_office_tools_are_really_executed(results: Results) -> None:
    sources = {
        call.result.source
        for (name, _), result in results.items()
        if name == "office"
        for call in result.trajectory.calls
        if call.result is not None
    }
    assert sources == {"server"}


def test_the_case_that_needs_no_tool_calls_none(results: Results) -> None:
    result = results["office", "arithmetic-is-not-a-search"]
    assert result.trajectory.calls == ()
    assert result.trajectory.final_answer == "None of the tools on offer fits this request."


def test_the_chained_request_goes_on_from_the_real_result(results: Results) -> None:
    trajectory = results["office", "multiply-then-divide"].trajectory
    assert [(call.round, dict(call.arguments)) for call in trajectory.calls] == [
        (1, {"operation": "multiply", "a": 15, "b": 23}),
        (2, {"operation": "divide", "a": 345, "b": 5}),
    ]
    assert "69" in trajectory.final_answer


def test_the_error_of_a_tool_reaches_the_answer(results: Results) -> None:
    trajectory = results["office", "divide-by-zero"].trajectory
    assert trajectory.calls[0].result is not None and trajectory.calls[0].result.is_error
    assert trajectory.final_answer.startswith("calculate failed: ")


def test_a_mock_that_computes_answers_from_the_arguments(results: Results) -> None:
    (call,) = results["letter_count", "bookkeeper"].trajectory.calls
    assert call.result is not None and (call.result.source, call.result.content) == ("suite mock", "3")


def test_a_chain_goes_on_from_what_its_tool_really_answered(results: Results) -> None:
    result = results["office_chains", "multiply-then-divide"]
    calls = result.trajectory.calls
    assert [call.arguments for call in calls] == [
        {"operation": "multiply", "a": 15, "b": 23},
        {"operation": "divide", "a": 345, "b": 5},
    ]
    assert [(call.result.source, json.loads(call.result.content)["result"]) for call in calls if call.result] == [
        ("server", 345),
        ("server", 69),
    ]
    assert "69" in result.trajectory.final_answer


def test_the_steps_of_the_chains_are_judged_one_by_one(results: Results) -> None:
    found = {
        case: [(step.status, step.score) for step in result.steps]
        for (name, case), result in results.items()
        if name == "office_chains"
    }
    right = ("passed", 1.0)
    assert found.pop("a-dozen") == [("failed", pytest.approx(2 / 3)), (None, None)]
    assert found == {
        "multiply-then-divide": [right, right],
        "multiply-then-add": [right, right],
        "weather": [right],
        "add-then-search": [right, right],
        "a-prompt-of-its-own": [right],
        "nothing-more-to-do": [right, right],
    }


def test_the_chains_show_every_mock_and_message_that_a_step_can_have(results: Results) -> None:
    answers = {
        case: [call.result and (call.result.source, call.result.content) for call in result.trajectory.calls]
        for (name, case), result in results.items()
        if name == "office_chains"
    }
    assert answers["multiply-then-add"] == [("case mock", "50"), ("case mock", "75")]
    assert answers["weather"] == [("case mock", "72°F, sunny")]
    assert answers["add-then-search"] == [("case mock", "15"), ("step mock", "Travel expenses: Trains before planes.")]
    asked = [round_.step for round_ in results["office_chains", "add-then-search"].trajectory.rounds]
    assert [step and step.user for step in asked] == [None, "Now find our policy on travel expenses"]
    (only,) = results["office_chains", "a-prompt-of-its-own"].trajectory.rounds
    assert only.step is not None and only.step.system == "You are a math expert."
