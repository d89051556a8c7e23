"""The tools that a run is offered, who answers its calls, and how runs share servers."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.programs import grant_of
from tests.tools.conftest import QUICK, SERVERS, SUITE_FILE
from tests.tools.processes import becomes_true, group_is_gone, is_running
from workbench.checks.patterns import CheckError
from workbench.config.program import Environment
from workbench.config.secrets import Secrets
from workbench.suite.model import Case, Suite
from workbench.tools.answer import ServerError, ToolAnswer, ToolsError, UnknownToolError, UntrustedError
from workbench.tools.server_pool import ServerPool
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import JsonValue, ToolCall

ENVIRONMENT = Environment(os.environ, Secrets())
WORKSHOP = {"name": "shop", "command": ["python", "workshop.py"]}
STUBBORN = {"name": "shop", "command": ["python", "workshop.py", "stubborn"]}
ECHO = {"name": "echo", "description": "Written out", "annotations": {"readOnlyHint": True}}
BARE_SCHEMA = {"type": "object", "properties": {}}


def a_suite(**keys: object) -> Suite:
    return Suite.model_validate({"format": 1, "name": "s", **keys})


def a_case(**keys: object) -> Case:
    return Case.model_validate({"name": "c", "user": "u", **keys})


async def open_(
    pool: ServerPool,
    suite: Suite,
    case: Case | None = None,
    *,
    file: Path = SUITE_FILE,
    execute: bool = True,
    trusted: bool = True,
) -> Toolbox:
    grant = grant_of(suite, file, ENVIRONMENT) if trusted else None
    return await pool.open_toolbox(suite, case or a_case(), file, execute=execute, grant=grant)


def a_call(tool: str, **arguments: JsonValue) -> ToolCall:
    return ToolCall("c1", tool, arguments)


async def process_of(toolbox: Toolbox) -> int:
    return int((await (await toolbox.plan(a_call("process_id"))).run()).content)


def names(toolbox: Toolbox) -> list[str]:
    return [definition.name for definition in toolbox.definitions]


async def test_a_case_has_tools_of_its_own_which_take_the_place_of_the_suites(pool: ServerPool) -> None:
    suite = a_suite(tools=[ECHO, {"name": "other"}])
    own = [{"name": "echo", "description": "Of the case"}, {"name": "extra"}]
    toolbox = await open_(pool, suite, a_case(tools=own, offer=["extra", "echo"]))
    assert [(tool.name, tool.description) for tool in toolbox.definitions] == [("echo", "Of the case"), ("extra", "")]
    assert names(await open_(pool, suite, a_case())) == ["echo", "other"]
    with pytest.raises(ToolsError, match="two tools named 'process_id'"):
        await open_(pool, a_suite(servers=[WORKSHOP]), a_case(tools=[{"name": "process_id"}]))


async def test_a_written_out_tool_is_shown_as_it_is_written(pool: ServerPool) -> None:
    toolbox = await open_(pool, a_suite(tools=[ECHO]), trusted=False)
    (echo,) = toolbox.definitions
    assert (echo.name, echo.description, echo.parameters) == ("echo", "Written out", BARE_SCHEMA)
    assert (echo.annotations, echo.server) == ({"readOnlyHint": True}, None)


async def test_a_case_may_offer_a_part_of_the_tools(pool: ServerPool) -> None:
    suite = a_suite(tools=[{"name": "lock"}, {"name": "unlock"}, {"name": "knock"}])
    assert names(await open_(pool, suite)) == ["lock", "unlock", "knock"]
    assert names(await open_(pool, suite, a_case(offer=["knock", "lock"]))) == ["lock", "knock"]
    assert names(await open_(pool, suite, a_case(offer=[]))) == []


async def test_a_case_that_names_a_tool_which_is_not_there_is_refused(pool: ServerPool) -> None:
    """Once the tools are known: those of a server too, under their prefixed names."""
    suite = a_suite(tools=[{"name": "lock"}], servers=[{**WORKSHOP, "prefix": "shop_"}])
    expected, echo = [{"tool": "shop_ecko"}], [{"tool": "shop_echo"}]
    there = "but there is no such tool"
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"offer": ["lock", "lokc"]}, f"offers 'lokc', {there} (did you mean 'lock'?)"),
        ({"ordered": expected}, "expects 'shop_ecko', but no such tool is offered (did you mean 'shop_echo'?)"),
        (
            {"unordered": expected, "offer": []},
            "expects 'shop_ecko', but no such tool is offered (no tools are defined",
        ),
        ({"unordered": echo, "offer": ["lock"]}, "expects 'shop_echo', but no such tool is offered (add it to `offer`"),
        ({"unordered": [{"tool": "*"}], "offer": []}, "expects a call, but no tool is offered (offer one"),
        ({"user": {"goal": "x", "stop": {"called": ["lokc"]}}}, f"waits for a call of 'lokc', {there} (did you mean"),
        ({"steps": [{"user": "Go.", "tool": "echo"}]}, "expects 'echo', but no such tool is offered (did you mean"),
        ({"disallowed": [{"tool": "unlock"}]}, f"forbids 'unlock', {there} (did you mean 'lock'?; write unlisted"),
        ({"mocks": [{"tool": "Lock", "result": 1}]}, f"mocks 'Lock', {there} (did you mean 'lock'?)"),
    ]
    for wrong, says in refusals:
        with pytest.raises(UnknownToolError) as refused:
            await open_(pool, suite, a_case(**wrong))
        assert str(refused.value).startswith(says)
    purpose = {"unlisted": True}
    fine: dict[str, Any] = {
        "user": {"goal": "x", "stop": {"called": ["shop_echo", "teleport"]}},
        "offer": ["lock"],
        "unordered": [{"tool": "lock"}, {"tool": "teleport", **purpose}],
        "disallowed": [{"tool": "*", "args": {"x": 1}}, *echo, {"tool": "rm_rf", **purpose}],
        "mocks": [{"tool": "shop_echo", "result": 1}, {"tool": "rm_rf", "result": 1, **purpose}],
    }
    assert names(await open_(pool, suite, a_case(**fine))) == ["lock"]


async def test_a_mock_of_the_suite_is_for_any_case_and_must_be_of_a_tool_that_somebody_has(pool: ServerPool) -> None:
    mocked = a_suite(tools=[{"name": "lock"}, {"name": "knock"}], mocks=[{"tool": "knock", "result": 1}])
    assert names(await open_(pool, mocked, a_case(offer=["lock"]))) == ["lock"]
    with pytest.raises(UnknownToolError, match="mocks 'knock', but there is no such tool"):
        await open_(pool, a_suite(tools=[{"name": "lock"}], mocks=[{"tool": "knock", "result": 1}]))


async def test_two_tools_of_one_name_are_refused(pool: ServerPool) -> None:
    suite = a_suite(tools=[ECHO], servers=[WORKSHOP])
    with pytest.raises(ToolsError, match="two tools named 'echo', one in the suite and one of server 'shop'"):
        await open_(pool, suite)


async def test_a_prefix_keeps_tools_of_one_name_apart(pool: ServerPool) -> None:
    suite = a_suite(tools=[ECHO], servers=[{**WORKSHOP, "prefix": "shop_"}])
    toolbox = await open_(pool, suite)
    assert {"echo", "shop_echo"} <= set(names(toolbox))
    planned = await toolbox.plan(a_call("shop_echo", text="hi"))
    assert (planned.source, planned.server) == ("server", "shop")
    assert await planned.run() == ToolAnswer("hi")


async def test_answers_come_from_step_case_suite_server_and_default_in_this_order(pool: ServerPool) -> None:
    written = {"name": "written"}
    suite = a_suite(
        tools=[written],
        servers=[WORKSHOP],
        mocks=[
            {"tool": "echo", "when": {"text": {"prefix": "b"}}, "result": "suite {text}"},
            {"tool": "echo", "when": {"text": "abc"}, "result": "never reached"},
        ],
    )
    case = a_case(mocks=[{"tool": "echo", "when": {"text": {"one_of": ["abc", "bcd"]}}, "result": "case {text}"}])
    toolbox = await open_(pool, suite, case)
    step = await toolbox.plan(a_call("echo", text="abc"), step_mock="step {text}")
    of_case = await toolbox.plan(a_call("echo", text="bcd"))
    of_suite = await toolbox.plan(a_call("echo", text="bee"))
    real = await toolbox.plan(a_call("echo", text="cde"))
    default = await toolbox.plan(a_call("written", x=1))
    answers = [(plan.source, plan.server, (await plan.run()).content) for plan in (step, of_case, of_suite, real)]
    assert answers == [
        ("step mock", None, "step abc"),
        ("case mock", None, "case bcd"),
        ("suite mock", None, "suite bee"),
        ("server", "shop", "cde"),
    ]
    assert (default.source, default.server) == ("default", None)
    assert json.loads((await default.run()).content)["input_received"] == {"x": 1}


async def test_without_execute_nothing_runs_on_a_server(pool: ServerPool) -> None:
    planned = await (await open_(pool, a_suite(servers=[WORKSHOP]), execute=False)).plan(a_call("crash"))
    assert (planned.source, planned.server) == ("default", None)
    assert "Mock result for crash" in (await planned.run()).content


async def test_a_call_to_a_tool_that_is_not_on_offer_is_a_tool_error_whatever_is_mocked(pool: ServerPool) -> None:
    suite = a_suite(tools=[{"name": "lock"}, {"name": "unlock"}], mocks=[{"tool": "unlock", "result": "open"}])
    planned = await (await open_(pool, suite, a_case(offer=["lock"]))).plan(a_call("unlock"))
    assert planned.source == "default"
    assert await planned.run() == ToolAnswer("There is no tool named unlock. The tools are: lock.", is_error=True)


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        ({"n": 1}, None),
        ({}, "Input validation error: args.n: 'n' is a required property"),
        ({"n": "x", "m": 2}, "Input validation error: args.m: 'm' is not a property of the schema; "),
    ],
)
async def test_the_default_answer_refuses_invalid_arguments_as_a_server_would(
    pool: ServerPool, arguments: dict[str, JsonValue], refused: str | None
) -> None:
    schema = {"required": ["n"], "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    suite = a_suite(tools=[{"name": "count", "parameters": schema}])
    answer = await (await (await open_(pool, suite)).plan(a_call("count", **arguments))).run()
    assert answer.is_error is (refused is not None)
    assert refused is None or answer.content.startswith(refused)


@pytest.mark.parametrize("step_mock", [None, "locked"], ids=["mock", "mock of the step"])
async def test_broken_arguments_are_a_tool_error_that_says_why_whatever_is_mocked(
    pool: ServerPool, step_mock: JsonValue
) -> None:
    suite = a_suite(tools=[{"name": "lock"}], mocks=[{"tool": "lock", "result": "locked"}])
    toolbox = await open_(pool, suite)
    call = ToolCall("c1", "lock", {}, raw='{"door": ', problem="it ends in the middle")
    assert await (await toolbox.plan(call, step_mock)).run() == ToolAnswer(
        "The arguments are not a JSON object: it ends in the middle", is_error=True
    )


async def test_the_mock_of_a_step_answers_whatever_tool_was_called(pool: ServerPool) -> None:
    toolbox = await open_(pool, a_suite())
    planned = await toolbox.plan(a_call("anything"), step_mock={"value": 345})
    assert (planned.source, await planned.run()) == ("step mock", ToolAnswer('{"value":345}'))


async def test_each_run_counts_its_own_results(pool: ServerPool) -> None:
    suite = a_suite(tools=[{"name": "flaky"}], mocks=[{"tool": "flaky", "results": ["first", "second"]}])
    one, other = await open_(pool, suite), await open_(pool, suite)
    assert [(await (await run.plan(a_call("flaky"))).run()).content for run in (one, one, other)] == [
        "first",
        "second",
        "first",
    ]


async def test_python_checks_of_the_suite_can_be_called(pool: ServerPool, tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text("def is_even(value): return value % 2 == 0")
    case = {"name": "c", "user": "u", "ordered": [{"tool": "t", "args": {"n": {"python": "rules:is_even"}}}]}
    toolbox = await open_(pool, a_suite(cases=[case]), file=tmp_path / "suite.toml")
    assert toolbox.call_python("rules:is_even", 4)
    untrusted = await open_(pool, a_suite(), file=tmp_path / "suite.toml", trusted=False)
    with pytest.raises(CheckError, match="untrusted"):
        untrusted.call_python("rules:is_even", 4)


async def test_no_server_of_an_untrusted_suite_is_started(pool: ServerPool, tmp_path: Path) -> None:
    with pytest.raises(UntrustedError, match=r"suite\.toml is not trusted, so its server 'shop' is not started"):
        await open_(pool, a_suite(servers=[WORKSHOP]), trusted=False)
    assert not (tmp_path / "log" / "servers").exists()


async def test_runs_share_one_server_and_suites_do_not(pool: ServerPool) -> None:
    suite = a_suite(servers=[WORKSHOP])
    one, other, foreign = await asyncio.gather(
        open_(pool, suite), open_(pool, suite), open_(pool, suite, file=SERVERS / "other.toml")
    )
    assert await process_of(one) == await process_of(other)
    assert await process_of(one) != await process_of(foreign)


async def test_a_run_that_is_stopped_while_it_waits_does_not_take_the_server_from_others(
    pool: ServerPool, tmp_path: Path
) -> None:
    suite = a_suite(servers=[WORKSHOP])
    stopped, other = asyncio.create_task(open_(pool, suite)), asyncio.create_task(open_(pool, suite))
    await becomes_true((tmp_path / "log" / "servers").exists)
    stopped.cancel()
    assert "add" in names(await other)
    assert stopped.cancelled()


async def test_a_server_that_failed_is_tried_again_only_after_renewal(pool: ServerPool, tmp_path: Path) -> None:
    suite_file = tmp_path / "suite.toml"
    suite = a_suite(servers=[{"name": "shop", "command": ["python", "later.py"]}])
    with pytest.raises(ServerError, match="ended with exit code 2 before it listed its tools"):
        await open_(pool, suite, file=suite_file)
    shutil.copy(SERVERS / "plain.py", tmp_path)
    shutil.copy(SERVERS / "workshop.py", tmp_path / "later.py")
    with pytest.raises(ServerError, match="ended with exit code 2 before it listed its tools"):
        await open_(pool, suite, file=suite_file)
    await pool.begin_batch()
    assert "add" in names(await open_(pool, suite, file=suite_file))


async def test_a_server_that_dies_leaves_the_others_alone_and_comes_back_after_renewal(pool: ServerPool) -> None:
    suite = a_suite(servers=[WORKSHOP, {**WORKSHOP, "name": "other", "prefix": "other_"}])
    toolbox = await open_(pool, suite)
    survivor = (await (await toolbox.plan(a_call("other_process_id"))).run()).content
    with pytest.raises(ServerError, match="server 'shop' ended with exit code 3"):
        await (await toolbox.plan(a_call("crash"))).run()
    with pytest.raises(ServerError, match="server 'shop' ended with exit code 3"):
        await (await toolbox.plan(a_call("add", a=1, b=2))).run()
    assert (await (await toolbox.plan(a_call("other_add", a=1, b=2))).run()).content == "3"
    await pool.begin_batch()
    renewed = await open_(pool, suite)
    assert (await (await renewed.plan(a_call("add", a=1, b=2))).run()).content == "3"
    assert (await (await renewed.plan(a_call("other_process_id"))).run()).content == survivor


@pytest.mark.slow
async def test_all_servers_are_closed_together_even_stubborn_ones(pool: ServerPool) -> None:
    suite = a_suite(servers=[{**STUBBORN, "name": f"s{n}", "prefix": f"s{n}_"} for n in range(8)])
    toolbox = await open_(pool, suite)
    processes = [int((await (await toolbox.plan(a_call(f"s{n}_process_id"))).run()).content) for n in range(8)]
    assert all(map(is_running, processes))
    async with asyncio.timeout(8 * (QUICK.polite_s + QUICK.terminate_s)):  # which one after the other would take
        await asyncio.gather(pool.close(), pool.close())
    assert all(map(group_is_gone, processes))
    with pytest.raises(ServerError, match="server 's0' is not started: the program is quitting"):
        await open_(pool, suite)


async def test_closing_while_servers_start_ends_the_runs_that_wait(pool: ServerPool, tmp_path: Path) -> None:
    opening = asyncio.create_task(open_(pool, a_suite(servers=[STUBBORN])))
    await becomes_true((tmp_path / "log" / "servers").exists)
    await pool.close()
    with pytest.raises(ServerError, match="server 'shop' was closed"):
        await opening


async def test_logs_are_named_after_suite_and_server(pool: ServerPool, tmp_path: Path) -> None:
    await open_(pool, a_suite(servers=[{**WORKSHOP, "name": "my shop/1"}]))
    (log,) = (tmp_path / "log" / "servers").iterdir()
    assert log.name.startswith("suite-my-shop-1-")
    assert log.suffix == ".log"
