"""Which mock answers a call, and its answer."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.programs import functions_in
from tests.tables import each_row
from workbench.checks.check import CheckVerdict
from workbench.checks.combined_kinds import Judged
from workbench.suite.model import Mock
from workbench.tools.answer import PythonReferenceError, ToolAnswer, ToolsError, UntrustedError
from workbench.tools.mocks import Mocks, default_answer, mock_answer
from workbench.tools.python_code import PythonFunctions
from workbench.trajectory.events import JsonValue, ToolCall


def a_call(tool: str = "get_weather", **arguments: JsonValue) -> ToolCall:
    return ToolCall("c1", tool, arguments)


def mock(**keys: object) -> Mock:
    return Mock.model_validate({"tool": "get_weather", **keys})


def mocks(*of_case: Mock, of_suite: tuple[Mock, ...] = (), folder: Path = Path(), trusted: bool = True) -> Mocks:
    functions = functions_in(folder, "mocks", "rules", "rude") if trusted else PythonFunctions(None)
    return Mocks(of_case, of_suite, functions)


async def said(mocks_of_run: Mocks, call: ToolCall) -> ToolAnswer | None:
    planned = await mocks_of_run.plan(call)
    return None if planned is None else await planned.run()


async def text(mocks_of_run: Mocks, call: ToolCall) -> str | None:
    answer = await said(mocks_of_run, call)
    return None if answer is None else answer.content


async def test_the_first_mock_whose_condition_holds_answers() -> None:
    run = mocks(
        mock(when={"city": "Seattle"}, result="rain"),
        mock(when={"city": {"prefix": "San"}, "days": {"range": [1, 3]}}, result="sun"),
        mock(result="clouds"),
    )
    assert await text(run, a_call(city="Seattle", days=9)) == "rain"
    assert await text(run, a_call(city="San Jose", days=2)) == "sun"
    assert await text(run, a_call(city="San Jose")) == "clouds"


async def test_no_mock_answers_another_tool_or_a_condition_that_fails() -> None:
    run = mocks(mock(when={"city": "Seattle"}, result="rain"))
    assert (await run.plan(a_call("get_time", city="Seattle"))) is None
    assert (await run.plan(a_call(city="Oslo"))) is None


async def test_conditions_compare_as_json_does() -> None:
    run = mocks(mock(when={"n": 1}, result="one"))
    assert await text(run, a_call(n=1.0)) == "one"
    assert (await run.plan(a_call(n=True))) is None
    assert (await run.plan(a_call(n="1"))) is None


async def test_the_mocks_of_the_case_come_before_those_of_the_suite() -> None:
    run = mocks(mock(when={"city": "Oslo"}, result="case"), of_suite=(mock(result="suite"),))
    first, second = (await run.plan(a_call(city="Oslo"))), (await run.plan(a_call(city="Rome")))
    assert first is not None
    assert second is not None
    assert (first.source, (await first.run()).content) == ("case mock", "case")
    assert (second.source, (await second.run()).content) == ("suite mock", "suite")


@each_row(
    ("result", "content"),
    [
        ("Weather in {city}: clear", "Weather in Oslo: clear"),
        ("{days} days, {exact}, {places}", '3 days, true, ["a",{"b":null}]'),
        ("{unknown} and {} and { city } stay", "{unknown} and {} and { city } stay"),
        ('{"city": "{city}"}', '{"city": "Oslo"}'),
        ("{{city}}", "{Oslo}"),
        ({"city": "{city}", "all": ["{days}", 5]}, '{"city":"Oslo","all":["3",5]}'),
        ({"{city}": 1}, '{"{city}":1}'),
        (["Tromsø", 1.5, False], '["Tromsø",1.5,false]'),
        (21, "21"),
        (True, "true"),
        ("", ""),
    ],
)
def test_results_are_filled_from_the_arguments(result: JsonValue, content: str) -> None:
    arguments: dict[str, JsonValue] = {"city": "Oslo", "days": 3, "exact": True, "places": ["a", {"b": None}]}
    assert mock_answer(result, arguments) == ToolAnswer(content)


@given(st.text(), st.text())
def test_what_an_argument_says_is_not_filled_again(first: str, second: str) -> None:
    assert mock_answer("{a}{b}", {"a": first, "b": second}).content == first + second


async def test_a_mock_answers_so_many_matching_calls_as_it_says() -> None:
    down = mock(error="down", times=2, when={"n": {"range": [1, 9]}})
    run = mocks(down, mock(result="up"))
    assert [await text(run, a_call(n=n)) for n in (1, 20, 2, 3)] == ["down", "up", "down", "up"]
    resumed = mocks(down, mock(result="up"))
    resumed.count_replayed(a_call(n=1), ToolAnswer("down", is_error=True))
    assert [await text(resumed, a_call(n=n)) for n in (2, 3)] == ["down", "up"]


async def test_results_come_one_per_matching_call_and_the_last_repeats() -> None:
    several = mock(results=["first", {"n": "{n}"}], when={"n": {"range": [1, 9]}})
    run = mocks(several, mock(result="other"))
    calls = [a_call(n=1), a_call(n=99), a_call(n=2), a_call(n=3)]
    assert [await text(run, call) for call in calls] == ["first", "other", '{"n":"2"}', '{"n":"3"}']
    assert await text(mocks(several), a_call(n=5)) == "first"


async def test_an_error_is_a_tool_error() -> None:
    assert await said(mocks(mock(error="503 Service Unavailable")), a_call()) == ToolAnswer(
        "503 Service Unavailable", is_error=True
    )


async def test_a_delay_is_waited_for_before_the_answer() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    run = Mocks((mock(error="busy", delay_ms=250), mock(result="x")), (), functions_in(Path()), sleep)
    planned = await run.plan(a_call())
    assert planned is not None
    assert waits == []
    assert await planned.run() == ToolAnswer("busy", is_error=True)
    assert waits == [0.25]


def test_the_default_answer_names_the_tool_and_repeats_the_input() -> None:
    answer = default_answer(a_call(city="Oslo", days=3))
    assert json.loads(answer.content) == {
        "status": "success",
        "result": "Mock result for get_weather",
        "input_received": {"city": "Oslo", "days": 3},
    }
    assert not answer.is_error


FUNCTIONS = """
import sys

def forecast(arguments):
    return {"city": arguments["city"], "days": [1, 2]}

def plain(arguments):
    return "{city} as it is"

def nothing(arguments):
    return None

def divide(arguments):
    return 1 / 0

def leave(arguments):
    sys.exit("bye")

def a_set(arguments):
    return {1, 2}

def typed(arguments):
    raise TypeError("no number")

def pair(city, days):
    return city

def is_north(value):
    return value in ("Oslo", "Tromsø")

def fail(value):
    raise ValueError("who knows")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mocks.py").write_text(FUNCTIONS)
    return tmp_path


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        ("forecast", ToolAnswer('{"city":"Oslo","days":[1,2]}')),
        ("plain", ToolAnswer("{city} as it is")),
        ("nothing", ToolAnswer("null")),
        ("divide", ToolAnswer("ZeroDivisionError: division by zero", is_error=True)),
        ("leave", ToolAnswer("SystemExit: bye", is_error=True)),
        ("typed", ToolAnswer("TypeError: no number", is_error=True)),
    ],
)
async def test_a_python_function_answers(folder: Path, function: str, answer: ToolAnswer) -> None:
    assert await said(mocks(mock(python=f"mocks:{function}"), folder=folder), a_call(city="Oslo")) == answer


async def test_a_function_that_is_missing_is_no_answer_for_the_model(folder: Path) -> None:
    with pytest.raises(PythonReferenceError, match="mocks has no function 'forcast'"):
        await said(mocks(mock(python="mocks:forcast"), folder=folder), a_call(city="Oslo"))


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("a_set", "mocks:a_set returned what is not JSON: Object of type set is not JSON serializable"),
        ("pair", r"mocks:pair must take one argument, a dict: pair\(\) missing 1 required positional argument: 'days'"),
    ],
)
async def test_a_function_that_cannot_answer_is_no_answer_for_the_model(folder: Path, function: str, why: str) -> None:
    with pytest.raises(PythonReferenceError, match=why):
        await said(mocks(mock(python=f"mocks:{function}"), folder=folder), a_call(city="Oslo"))


async def test_python_of_a_suite_that_is_not_trusted_is_not_run(folder: Path) -> None:
    with pytest.raises(UntrustedError, match="mocks:forecast is not run"):
        await said(mocks(mock(python="mocks:forecast"), folder=folder, trusted=False), a_call(city="Oslo"))


async def test_a_condition_may_ask_python(folder: Path) -> None:
    run = mocks(mock(when={"city": {"python": "mocks:is_north"}}, result="snow"), folder=folder)
    assert await text(run, a_call(city="Oslo")) == "snow"
    assert (await run.plan(a_call(city="Rome"))) is None


async def test_a_condition_that_cannot_be_evaluated_says_so(folder: Path) -> None:
    run = mocks(mock(when={"city": {"python": "mocks:fail"}}, result="snow"), folder=folder)
    with pytest.raises(ToolsError, match=r"the condition of a mock for 'get_weather' cannot be evaluated: .*who knows"):
        await run.plan(a_call(city="Oslo"))


async def test_a_judge_is_asked_about_a_condition_only_when_all_else_of_it_holds() -> None:
    asked: list[JsonValue] = []

    async def judge(check: Judged, value: JsonValue) -> CheckVerdict:
        asked.append(value)
        return CheckVerdict(1.0, True) if value == "Oslo" else CheckVerdict(0.0, False)

    run = mocks(mock(when={"city": {"judged": "is cold"}, "days": 3}, result="snow"))
    assert (await run.plan(a_call(city="Oslo", days=2), judge)) is None
    assert (await run.plan(a_call(days=3), judge)) is None
    assert asked == []
    assert (await run.plan(a_call(city="Rome", days=3), judge)) is None
    assert (await run.plan(a_call(city="Oslo", days=3), judge)) is not None
    assert asked == ["Rome", "Oslo"]
    parts = {"all_of": [{"judged": "is cold"}, {"prefix": "O"}]}
    run = mocks(mock(when={"city": {"any_of": [parts, "Rome"]}}, result="snow"))
    assert (await run.plan(a_call(city="Rome"), judge)) is not None
    assert (await run.plan(a_call(city="Nice"), judge)) is None
    assert (await run.plan(a_call(city="Omsk"), judge)) is None
    assert (await run.plan(a_call(city="Oslo"), judge)) is not None
    assert asked == ["Rome", "Oslo", "Omsk", "Oslo"]
    with pytest.raises(ToolsError, match=r"judged: is cold' needs a judge"):
        await mocks(mock(when={"city": {"judged": "is cold"}}, result="snow")).plan(a_call(city="Oslo"))


async def test_a_condition_that_asks_python_does_not_hold_up_the_others(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import threading\n"
        "opened = threading.Event()\n"
        "def waits(value):\n    return opened.wait(20)\n"
        "def opens():\n    opened.set()\n"
    )
    functions = functions_in(tmp_path, "slow")
    run = Mocks((mock(when={"city": {"python": "slow:waits"}}, result="snow"),), (), functions)
    planning = asyncio.create_task(run.plan(a_call(city="Oslo")))
    await asyncio.sleep(0)  # the condition is being evaluated now, and the loop goes on
    functions.function("slow:opens")()
    assert await planning is not None


async def test_a_mock_cannot_change_what_the_model_is_said_to_have_called(tmp_path: Path) -> None:
    (tmp_path / "rude.py").write_text("def clears(arguments):\n    arguments['items'].clear()\n    return 'done'\n")
    call = a_call(items=["a"])
    assert await text(mocks(mock(python="rude:clears"), folder=tmp_path), call) == "done"
    assert call.arguments == {"items": ["a"]}


@pytest.mark.parametrize("kind", ["KeyboardInterrupt", "GeneratorExit", "BaseException"])
async def test_python_that_raises_what_ends_programs_only_ends_its_run(tmp_path: Path, kind: str) -> None:
    (tmp_path / "rude.py").write_text(f"def ends(arguments):\n    raise {kind}('bye')\n")
    with pytest.raises(PythonReferenceError, match=f"raised {kind}: bye"):
        await said(mocks(mock(python="rude:ends"), folder=tmp_path), a_call())
