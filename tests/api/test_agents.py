"""Agents in Python: functions that run a loop of their own, and values that are refused before the first run."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import workbench
from tests.cli.suites import WEATHER
from workbench import AgentAnswer, AgentCall, AgentRun, Usage

PAGE = (Path(__file__).parents[2] / "docs" / "your-agent.md").read_text(encoding="utf-8")
EXAMPLE, FRAMEWORK = re.findall(r"^```python\n(import workbench\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

NOON = AgentCall("get_time", {"timezone": "Europe/Oslo"}, result="noon")
SUITE = """
format = 1
name = "Clock"
limits = { max_rounds = 1 }
tools = [{ name = "get_time" }]
mocks = [{ tool = "get_time", result = "from the mock" }]
[[cases]]
name = "Time"
user = "What time is it in Bergen?"
[[cases.unordered]]
tool = "get_time"
"""
CHAIN = """
format = 1
name = "Chain"
tools = [{ name = "get_time" }, { name = "set_clock" }]
[[cases]]
name = "Two clocks"
response = { contains = "Done" }
steps = [
  { user = "Set the clocks", tool = "get_time" },
  { tool = "set_clock" },
  { user = "Thanks" },
]
"""


def run_of(suite: str, agent: Any) -> workbench.RunResult:
    Path("s.toml").write_text(suite, encoding="utf-8")
    return workbench.evaluate("s.toml", model=agent).results[0]


@pytest.mark.parametrize(
    ("made", "rounds", "answer"),
    [
        (AgentRun([NOON], "It is noon."), [("", [("noon", False)]), ("It is noon.", [])], "It is noon."),
        (AgentRun([NOON]), [("", [("noon", False)])], ""),
        (AgentRun(answer="No idea."), [("No idea.", [])], "No idea."),
        (
            AgentRun([[NOON, NOON], NOON], "Ok"),
            [("", [("noon", False)] * 2), ("", [("noon", False)]), ("Ok", [])],
            "Ok",
        ),
        (
            AgentRun([AgentAnswer("Let me look.", [AgentCall("get_time", "{}", KeyError("Oslo"))]), NOON], "Noon."),
            [("Let me look.", [("'Oslo'", True)]), ("", [("noon", False)]), ("Noon.", [])],
            "Noon.",
        ),
        (AgentRun([workbench.call("get_time")], "Ok"), [("", [(None, None)]), ("Ok", [])], "Ok"),
        (AgentRun([AgentCall("get_time", result={"hour": 12})]), [("", [('{"hour": 12}', False)])], ""),
    ],
)  # fmt: skip
def test_an_agent_with_its_own_loop_is_asked_once_and_its_own_results_count(
    folder: Path, made: AgentRun, rounds: list[Any], answer: str
) -> None:
    """Also with `max_rounds = 1`, which limits the requests of Workbench and not those of the agent."""
    asked: list[int] = []

    def agent(request: workbench.AgentRequest) -> AgentRun:
        asked.append(request.round)
        return made

    trajectory = run_of(SUITE, agent).trajectory
    seen = []
    for done in trajectory.rounds:
        results = [(call.result and call.result.content, call.result and call.result.is_error) for call in done.calls]
        seen.append((done.text, results))
    assert (asked, seen, trajectory.final_answer) == ([1], rounds, answer)
    assert len({call.call.id for call in trajectory.calls}) == len(trajectory.calls)
    assert trajectory.finish is not None
    assert trajectory.finish.reason == "answered"


def test_tokens_cost_and_latency_are_those_that_the_agent_reports(folder: Path) -> None:
    result = run_of(SUITE, lambda _: AgentRun([NOON], "Noon.", Usage(30, 4), cost_usd=0.25, latency_ms=1500.0))
    assert (result.trajectory.usage, result.cost_usd) == (Usage(30, 4), 0.25)
    assert result.trajectory.model_latency_ms == 1500.0
    each = AgentAnswer(calls=[NOON], usage=Usage(10, 1), cost_usd=0.5)
    result = run_of(SUITE, lambda _: AgentRun([each, each]))
    assert (result.trajectory.usage, result.cost_usd) == (Usage(20, 2), 1.0)
    assert result.trajectory.model_latency_ms > 0
    given = {"cases": {"time-in-bergen": {"calls": [], "cost_usd": 0.5}, "small-talk": []}}
    assert [each.cost_usd for each in workbench.grade_calls("clock.toml", given).results] == [0.5, None]


def test_a_run_that_broke_off_is_an_error_with_its_calls(folder: Path) -> None:
    result = run_of(SUITE, lambda _: AgentRun([NOON], error="the quota is used up"))
    assert (result.status, result.error) == ("error", "the quota is used up")
    assert [call.tool for call in result.trajectory.calls] == ["get_time"]
    assert run_of(SUITE, lambda _: AgentRun([AgentAnswer("I must not", stop_reason="refused")])).status == "failed"


def test_in_a_chain_it_is_asked_for_each_message_of_the_user(folder: Path) -> None:
    """Its rounds are the steps up to the next message; a text after them belongs to none."""
    asked = []

    def agent(request: workbench.AgentRequest) -> AgentRun:
        asked.append((request.round, request.prompt, len(request.messages)))
        if request.prompt == "Thanks":
            return AgentRun(answer="Done.")
        more = [AgentCall("set_clock", id="1"), AgentCall("set_clock", id="1")]
        return AgentRun([NOON, *more], "Both are set.")

    result = run_of(CHAIN, agent)
    assert asked == [(1, "Set the clocks", 1), (4, "Thanks", 6)]
    rounds = [(done.step_number, [call.tool for call in done.calls], done.text) for done in result.trajectory.rounds]
    assert rounds == [
        (1, ["get_time"], ""),
        (2, ["set_clock", "set_clock"], ""),
        (None, [], "Both are set."),
        (3, [], "Done."),
    ]
    assert result.trajectory.final_answer == "Done."
    # The first step ends with its call, so the agent is asked for the second step as a model is.
    prompts: list[str] = []

    def ends_early(request: workbench.AgentRequest) -> AgentRun:
        prompts.append(request.prompt)
        return AgentRun([NOON])

    run_of(CHAIN, ends_early)
    assert prompts == ["Set the clocks", "Set the clocks", "Thanks"]


def test_plain_functions_run_at_the_same_time(folder: Path) -> None:
    both = threading.Barrier(2, timeout=20)

    def agent(request: workbench.AgentRequest) -> str:
        both.wait()
        return "Hello!"

    assert [result.error for result in workbench.evaluate("clock.toml", model=agent).results] == [None, None]


def test_the_function_of_the_page_passes_in_python_and_as_a_subject(folder: Path) -> None:
    Path("weather.toml").write_text(WEATHER, encoding="utf-8")
    exec(compile(EXAMPLE, "docs/your-agent.md", "exec"), {})
    Path("agent.py").write_text(EXAMPLE.rpartition("workbench.evaluate(")[0], encoding="utf-8")
    head, _, rest = WEATHER.partition("[[tools]]")
    [written] = re.findall(r"^```toml\n(\[subject\]\npython.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    Path("weather.toml").write_text(f"{head}\n{written}\n[[tools]]{rest}", encoding="utf-8")
    workbench.evaluate("weather.toml", approve=workbench.ALL).assert_passed()


@pytest.mark.slow
def test_the_framework_of_the_page_is_evaluated(folder: Path) -> None:
    pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed")
    Path("weather.toml").write_text(WEATHER, encoding="utf-8")
    names: dict[str, Any] = {}
    # The framework's own model for tests.
    exec(compile(FRAMEWORK.replace("openai:gpt-6-luna", "test"), "docs/your-agent.md", "exec"), names)
    assert [result.error for result in names["report"].results] == [None]


class Framework:
    """Stands for a class of a framework, under whose module's name it is defined in a test."""

    def __call__(self, task: str) -> str:
        return task


def of_module(module: str, name: str) -> Any:
    return type(name, (Framework,), {"__module__": module})()


async def an_agent(request: object) -> str:
    return "Hello!"


def yielding(request: workbench.AgentRequest) -> Iterator[str]:
    yield "Hello!"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (lambda: an_agent(None), r"the coroutine an_agent\(…\) is not an agent: pass the function an_agent itself"),
        (lambda: Framework, r"the class Framework is not an agent: pass an object of it, such as Framework\(\)"),
        (lambda: workbench.Agent(Framework),  # type: ignore[arg-type]
         "the class Framework is not an agent"),
        (lambda: asyncio, "the module asyncio is not an agent"),
        (lambda: yielding, "the generator yielding is not an agent: return the whole answer"),
        (lambda: lambda: "Hello!", "must be callable with one argument, a workbench.AgentRequest"),
        (lambda: partial(an_agent, None), "must be callable with one argument"),
        (lambda: of_module("pydantic_ai.agent", "Agent"), r"framework: pass workbench.agents.pydantic_ai\(…\)"),
        (lambda: of_module("agents.agent", "Agent"), r"framework: pass workbench.agents.openai_agents\(…\)"),
        (lambda: of_module("langgraph.pregel", "Pregel"), r"framework: pass workbench.agents.langgraph\(…\)"),
        (lambda: of_module("smolagents.agents", "CodeAgent"), r"a CodeAgent of smolagents has no adapter: pass a func"),
        (lambda: 7, "a model is a name, a workbench.Model, a workbench.Agent or a function, not a value of type int"),
        (lambda: None, "not a value of type NoneType"),
    ],
)  # fmt: skip
def test_what_is_no_agent_is_refused_before_the_first_run(folder: Path, given: Callable[[], Any], why: str) -> None:
    with pytest.raises(workbench.UsageError, match=why):
        workbench.evaluate("clock.toml", models=[given()])


def test_a_package_of_the_user_may_have_the_name_of_a_framework(folder: Path) -> None:
    report = workbench.evaluate("clock.toml", model=of_module("agents.weather", "Agent"), cases=["small-talk"])
    assert report.results[0].model == "Agent"


SUBJECT = """
format = 1
name = "Clock"
[subject]
python = "agent:agent"
[[tools]]
name = "get_time"
[[mocks]]
tool = "get_time"
result = "from the mock"
[[cases]]
name = "Time"
user = "What time is it in Bergen?"
[[cases.unordered]]
tool = "get_time"
"""
OWN_LOOP = """
import workbench
loaded = open("loaded", "a").write(".")
def agent(request):
    return workbench.AgentRun([workbench.AgentCall("get_time", result="noon")], "Noon.", cost_usd=0.5)
"""
ROUND_BY_ROUND = """
import workbench
async def agent(request):
    return request.results[0].content if request.results else workbench.call("get_time")
agent = workbench.Agent(agent, name="not used")
"""


@pytest.mark.parametrize(("code", "answer"), [(OWN_LOOP, "Noon."), (ROUND_BY_ROUND, "from the mock")])
def test_a_function_is_the_subject_of_a_suite_after_trust(folder: Path, code: str, answer: str) -> None:
    Path("s.toml").write_text(SUBJECT, encoding="utf-8")
    Path("agent.py").write_text(code, encoding="utf-8")
    with pytest.raises(workbench.ApprovalError, match="call the Python function: agent:agent"):
        workbench.evaluate("s.toml")
    assert not Path("loaded").exists()
    report = workbench.evaluate("s.toml", approve=workbench.ALL, repeats=3)
    results = report.results
    assert [(result.model, result.error, result.status) for result in results] == [("subject", None, "passed")] * 3
    assert {result.trajectory.final_answer for result in results} == {answer}
    assert {result.cost_usd for result in results} == ({0.5} if code == OWN_LOOP else {None})
    if code == OWN_LOOP:
        assert Path("loaded").read_text(encoding="utf-8") == "."


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("", "agent:agent cannot be loaded: agent has no 'agent'"),
        ("class agent: pass", "agent:agent cannot be used: the class agent is not an agent: pass an object of it"),
        ("def agent(): pass", "agent is not an agent: it must be callable with one argument"),
        ("1 / 0", "ZeroDivisionError"),
        ("def agent(request): raise ValueError('no quota')", "the agent subject raised ValueError: no quota"),
        ("import asyncio\nasync def agent(request): await asyncio.Event().wait()", "raise subject.timeout_s to wait"),
        ("import threading\ndef agent(request): threading.Event().wait()", "raise subject.timeout_s to wait longer"),
    ],
)  # fmt: skip
def test_a_subject_in_python_that_fails_is_an_error_with_its_cause(folder: Path, code: str, error: str) -> None:
    Path("s.toml").write_text(SUBJECT.replace("[[tools]]", "timeout_s = 0.3\n[[tools]]"), encoding="utf-8")
    Path("agent.py").write_text(code, encoding="utf-8")
    result = workbench.evaluate("s.toml", approve=workbench.ALL).results[0]
    assert result.status == "error"
    assert error in (result.error or "")


def test_a_subject_has_a_command_or_a_function(folder: Path) -> None:
    for written, why in (
        ('command = ["python", "a.py"]\npython = "agent:agent"', "`command`, `python`"),
        ('python = "agent.py"', "is not a Python reference (write 'module:function')"),
        ('python = "agent:agent"\nenv = { KEY = "x" }', "`env` needs `command`"),
        ('name = "x"', "`command`, `python`"),
    ):
        Path("s.toml").write_text(SUBJECT.replace('python = "agent:agent"', written), encoding="utf-8")
        with pytest.raises(workbench.SuiteError) as refused:
            workbench.load("s.toml")
        assert why in str(refused.value), written
