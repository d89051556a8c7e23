"""The verdicts of pydantic-evals and of Workbench on the same agent and endpoint."""

from __future__ import annotations

import json
from typing import Any

import pytest

import workbench
from tests.providers.server import Answer, Call, Request, Server, document
from tests.providers.server.formats import whole_document
from workbench import agents

pytestmark = pytest.mark.slow

OSLO, ROME = ("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})
Calls = list[tuple[str, dict[str, Any]]]
ROWS: list[tuple[Calls, Calls, bool]] = [
    ([OSLO], [OSLO], True),
    ([OSLO], [ROME], False),
    ([OSLO, ROME], [OSLO, ROME], True),
    ([OSLO], [OSLO, ROME], False),
    ([], [OSLO], False),
    ([], [], True),
    ([OSLO], [], False),
]
"""The calls of the endpoint, the expected calls, and whether they match."""


def answer_to(request: Request) -> Answer:
    """Make the calls that the request asks for. After the results, answer with text."""
    messages = json.loads(request.body)["messages"]
    calls: list[Call] = []
    if messages[-1]["role"] != "tool":
        for number, (tool, arguments) in enumerate(json.loads(messages[-1]["content"])):
            calls.append(Call(tool, arguments, f"call_{number}"))
    answer = whole_document("openai", "" if calls else "Done.", calls)
    return document({**answer, "model": "test-model", "created": 1})


async def test_the_verdicts_are_those_of_pydantic_evals() -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed")
    evals = pytest.importorskip("pydantic_evals", reason="pydantic-evals is not installed")
    evaluators = pytest.importorskip("pydantic_evals.evaluators")
    models = pytest.importorskip("pydantic_ai.models.openai")
    providers = pytest.importorskip("pydantic_ai.providers.openai")
    with Server(answer_to) as server:
        provider = providers.OpenAIProvider(base_url=f"{server.url}/v1", api_key="none")
        agent = pydantic_ai.Agent(models.OpenAIChatModel("test-model", provider=provider))

        @agent.tool_plain  # type: ignore[untyped-decorator]
        def get_weather(city: str) -> str:
            return f"rain in {city}"

        async def calls_of(request: str) -> Calls:
            made: Calls = []
            for message in (await agent.run(request)).all_messages():
                for part in message.parts:
                    if part.part_kind == "tool-call":
                        made.append((part.tool_name, part.args_as_dict()))
            return made

        suite = workbench.Suite("Weather", tools=[get_weather])
        cases = []
        for number, (made, expected, _) in enumerate(ROWS):
            name, request = f"r{number}", json.dumps(made)
            cases.append(evals.Case(name=name, inputs=request, expected_output=expected))
            case = suite.case(name, request)
            for tool, arguments in expected:
                case.expects(tool, **arguments)
            if not expected:
                case.expects_nothing()
        dataset = evals.Dataset(name="weather", cases=cases, evaluators=[evaluators.EqualsExpected()])
        theirs: dict[str, bool] = {}
        evaluated = await dataset.evaluate(calls_of, progress=False)
        assert not evaluated.failures
        for case in evaluated.cases:
            theirs[case.name] = all(result.value for result in case.assertions.values())
        report = await workbench.evaluate_async(suite, model=agents.pydantic_ai(agent))
    ours = {case.runs[0].case_id: case.status in ("passed", "warned") for case in report.cases}
    holds = {f"r{number}": each for number, (_, _, each) in enumerate(ROWS)}
    assert theirs == holds
    assert ours == holds
