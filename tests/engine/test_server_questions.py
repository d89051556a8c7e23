"""Servers that ask during a call. The case answers; what it does not answer is declined and named."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import workbench
from tests.engine.stepped import Does, Person
from tests.programs import program_of
from tests.sampled_rows import first_rows
from tests.tables import each_row
from workbench.engine.checkpoint import AnswerQuestion, Command, EditArguments, HoldPoint, SkipCall, refusal
from workbench.engine.fork import Fork, ForkPoint, replayed_events
from workbench.engine.plan import plan_runs, sends_same_requests
from workbench.suite.render import suite_text, to_toml_data
from workbench.suite.suite_file import load_suite, parse_suite
from workbench.suite.trust import needs_trust
from workbench.suite.variants import varied_case
from workbench.tools.questions import ServerQuestion
from workbench.trajectory.events import Event, JsonValue, Paused, ServerAsked
from workbench.trajectory.fold import fold
from workbench.trajectory.recording import event_from_line, event_to_line

SERVER = Path(__file__).parents[1] / "tools" / "servers" / "asker.py"

FORM: JsonValue = {
    "type": "object",
    "properties": {"size": {"type": "integer", "maximum": 50}, "name": {"type": "string"}},
    "required": ["size"],
}


DECLARED = 'answers = ["elicitation", "sampling"]'


def suite(answers: str, *, server: str = DECLARED, head: str = "", case: str = "") -> str:
    return (
        f'format = 1\nname = "Ask"\nexecute = true\n{head}\n'
        f'[[servers]]\nname = "shop"\ncommand = [{json.dumps(sys.executable)}, {json.dumps(str(SERVER))}]\n{server}\n'
        f'[[cases]]\nname = "Book"\nuser = "Book."\nordered = [{{ tool = "*" }}]\n{case}\n{answers}\n'
    )


def elicit(message: str = "Which Size?", schema: JsonValue = FORM) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sample(text: str = "2+2?", **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 100, **more}}


NO_FIELDS: JsonValue = {"type": "object", "properties": {}}
OPEN = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Pay", "url": "https://example.test/", "elicitationId": "e1"},
}


def run(folder: Path, text: str, tool: str = "ask", arguments: dict[str, Any] | None = None) -> Any:
    """Return the only run of a suite, whose model makes one call."""

    async def agent(request: Any) -> Any:
        if request.results:
            return request.results[-1].content
        return workbench.call(tool, **(arguments or {}))

    (folder / "ask.toml").write_text(text)
    (result,) = workbench.evaluate(folder / "ask.toml", model=agent, approve=workbench.ALL, execute_all=True).results
    return result


def replied(result: Any, call: int = 0) -> Any:
    assert result.error is None, result.error
    return json.loads(result.trajectory.calls[call].result.content)


def answer(**keys: Any) -> str:
    written = "".join(f"{key} = {value}\n" for key, value in keys.items())
    return f"[[cases.answers]]\n{written}"


FILLED = answer(to='"elicitation"', tool='"ask"', message='{ contains = "Size" }', content="{ size = 42 }")


@pytest.mark.parametrize(
    ("asked", "answers", "reply", "source"),
    first_rows(
        [
            (elicit(), FILLED, {"action": "accept", "content": {"size": 42}}, "case"),
            (elicit(), answer(to='"elicitation"', action='"cancel"') + FILLED, {"action": "cancel"}, "case"),
            (elicit(), answer(to='"elicitation"', action='"decline"'), {"action": "decline"}, "case"),
            (elicit("Which colour?"), FILLED, {"action": "decline"}, "nobody"),
            (elicit(), answer(to='"sampling"', text='"four"'), {"action": "decline"}, "nobody"),
            (elicit("Sure?", NO_FIELDS), answer(to='"elicitation"'), {"action": "accept", "content": {}}, "case"),
            (OPEN, answer(to='"elicitation"', message='"Pay"'), {"action": "accept"}, "case"),
            (sample(), answer(to='"sampling"', message='{ contains = "2" }', text='"four"'), "four", "case"),
        ],
        5,
    ),
)
def test_the_first_answer_that_fits_is_sent(
    tmp_path: Path, asked: dict[str, Any], answers: str, reply: Any, source: str
) -> None:
    result = run(tmp_path, suite(answers), arguments=asked)
    got = replied(result)["result"]
    if isinstance(reply, str):
        got = got["content"]["text"]
    assert got == reply
    (event,) = result.trajectory.asked_by_servers
    assert (event.source, event.server, event.tool) == (source, "shop", "ask")
    assert result.trajectory.calls[0].asked == (event,)
    assert bool(result.trajectory.notices) == (source == "nobody")


@pytest.mark.parametrize(
    ("asked", "answers", "why"),
    first_rows(
        [
            (elicit(), answer(to='"elicitation"', content='{ size = "huge" }'), "content.size: 'huge' is not of type"),
            (
                elicit(),
                answer(to='"elicitation"', content="{ size = 51 }"),
                "content.size: 51 is greater than the maximum",
            ),
            (elicit(), answer(to='"elicitation"'), "'size' is a required property"),
            (
                elicit(),
                answer(to='"elicitation"', content="{ size = 1, sise = 2 }"),
                "no field 'sise', only size, name",
            ),
            (
                OPEN,
                answer(to='"elicitation"', content="{ size = 1 }"),
                "the server asks to open an address, not to fill",
            ),
            (
                sample(tools=[], toolChoice={"mode": "required"}),
                answer(to='"sampling"', text='"x"'),
                "requires a tool call",
            ),
        ],
        4,
    ),
)
def test_an_answer_that_does_not_fit_is_not_sent_and_ends_the_run(
    tmp_path: Path, asked: dict[str, Any], answers: str, why: str
) -> None:
    result = run(tmp_path, suite(answers), arguments=asked)
    assert result.status == workbench.Status.ERROR
    assert "server 'shop' asked in a call of ask, and the answer does not fit" in result.error
    assert why in result.error
    assert "answers[0] of the case" in result.error
    (event,) = result.trajectory.asked_by_servers
    assert (event.action, event.source) == ("decline", "case")


@pytest.mark.slow
def test_the_case_comes_before_the_suite_and_the_notice_names_what_to_write(tmp_path: Path) -> None:
    of_suite = '[[answers]]\nto = "elicitation"\ncontent = { size = 1 }\n'
    text = suite("", head=of_suite)
    assert replied(run(tmp_path, text, arguments=elicit()))["result"]["content"] == {"size": 1}
    text = suite(FILLED, head=of_suite)
    assert replied(run(tmp_path, text, arguments=elicit()))["result"]["content"] == {"size": 42}
    result = run(tmp_path, suite(""), arguments=elicit())
    assert result.trajectory.notices == (
        "server 'shop' asked in a call of ask: 'Which Size?', and no answer applies, so it was declined; write "
        '[[cases.answers]] with to = "elicitation", tool = "ask", content = { size = …, name = … }',
    )
    refused = run(tmp_path, suite(""), arguments=sample())
    assert replied(refused)["error"]["message"] == "User rejected sampling request"
    assert 'text = "…"' in refused.trajectory.notices[0]


@pytest.mark.parametrize(
    ("server", "declared"),
    first_rows(
        [
            ("", set()),
            pytest.param('answers = ["elicitation"]', {"elicitation"}, marks=pytest.mark.slow),
            pytest.param('answers = ["sampling"]', {"sampling"}, marks=pytest.mark.slow),
            ('answers = ["elicitation", "roots"]\nroots = [".", "data"]', {"elicitation", "roots"}),
        ],
        1,
    ),
)
def test_a_server_is_told_what_is_answered(tmp_path: Path, server: str, declared: set[str]) -> None:
    (tmp_path / "data").mkdir()
    who = replied(run(tmp_path, suite("", server=server), "who"))
    assert who.keys() - {"overlaps"} == declared
    if "elicitation" in declared:
        assert who["elicitation"] == {"form": {}, "url": {}}
    asked = run(tmp_path, suite("", server=server), arguments={"method": "roots/list", "params": {}})
    if "roots" in declared:
        uris = [root["uri"] for root in replied(asked)["result"]["roots"]]
        assert uris == [tmp_path.resolve().as_uri(), (tmp_path / "data").resolve().as_uri()]
    else:
        assert "error" in replied(asked)
    undeclared = run(tmp_path, suite("", server=server), arguments=sample())
    if "sampling" not in declared:
        assert replied(undeclared)["error"]["message"] == "Sampling not supported"
        (notice,) = undeclared.trajectory.notices
        assert notice.endswith('which was refused; answers = ["sampling"] in its [[servers]] lets cases answer')


@pytest.mark.parametrize("root", ["gone", "link"])
def test_a_root_is_a_folder_inside_the_folder_of_the_suite(tmp_path: Path, root: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    result = run(inside, suite("", server=f'answers = ["roots"]\nroots = ["{root}"]'), "who")
    assert f"server 'shop' is not started: roots[0], '{root}'," in result.error
    assert {"gone": "is not a folder", "link": "leads out of the suite's folder"}[root] in result.error


@pytest.mark.parametrize(
    ("answers", "arguments", "content", "asked"),
    first_rows(
        [
            (answer(to='"elicitation"', action='"accept"'), {}, '"opened"', 1),
            (answer(to='"elicitation"', action='"accept"'), {"always": True}, "Open it", 1),
            (answer(to='"elicitation"', action='"decline"'), {}, "Open it", 1),
            ("", {}, "Open it", 1),
        ],
        2,
    ),
)
def test_a_call_that_needs_an_address_first_is_repeated_once_the_case_accepts(
    tmp_path: Path, answers: str, arguments: dict[str, Any], content: str, asked: int
) -> None:
    result = run(tmp_path, suite(answers), "open", arguments)
    assert result.trajectory.calls[0].result.content == content
    assert len(result.trajectory.asked_by_servers) == asked
    assert result.trajectory.asked_by_servers[0].request["url"] == "https://example.test/"


def test_a_server_that_asks_without_end_is_left(tmp_path: Path) -> None:
    result = run(tmp_path, suite(FILLED), arguments={**elicit(), "times": 102})
    assert "sent more than 100 requests during a call of ask" in result.error
    assert len(result.trajectory.asked_by_servers) == 100


PEOPLE = ("ada", "bob", "cy", "dan")


@pytest.mark.parametrize("state", ["batch", pytest.param("run", marks=pytest.mark.slow)])
def test_each_run_answers_its_own_questions(tmp_path: Path, state: str) -> None:
    cases = []
    for number, name in enumerate(PEOPLE, 1):
        content = answer(to='"elicitation"', content=f"{{ size = {number} }}")
        cases.append(f'[[cases]]\nname = "{name}"\nuser = "{name}"\nordered = [{{ tool = "*" }}]\n{content}')
    first = suite("", server=f'{DECLARED}\nstate = "{state}"')
    (tmp_path / "ask.toml").write_text(first + "\n".join(cases))

    async def agent(request: Any) -> Any:
        if len(request.results) == 2:
            return " ".join(result.content for result in request.results)
        if request.results:
            return workbench.call("who")
        return workbench.call("ask", **elicit(f"Size for {request.messages[-1].content}?"))

    results = workbench.evaluate(
        tmp_path / "ask.toml", model=agent, approve=workbench.ALL, execute_all=True, repeats=3, concurrency=8
    ).results
    assert len(results) == 15
    for result in results:
        (asked,) = result.trajectory.asked_by_servers
        name = {"Book": "Book."}.get(result.case_name, result.case_name)
        assert asked.message == f"Size for {name}?"
        if result.case_name in PEOPLE:
            assert replied(result)["result"]["content"] == {"size": PEOPLE.index(result.case_name) + 1}
        assert replied(result, 1)["overlaps"] == 0, "two calls were under way at a time"


def test_calls_of_setup_and_final_are_answered_by_the_same_rules(tmp_path: Path) -> None:
    params = '{ message = "Which Size?", requestedSchema = { type = "object", properties = { size = {} } } }'
    own = f'tool = "ask"\nargs = {{ method = "elicitation/create", params = {params} }}\n'
    final = f'[[cases.final.state]]\n{own}result = {{ contains = "42" }}\n'
    text = suite(FILLED, case=f"[[cases.setup]]\n{own}{final}")
    result = run(tmp_path, text, "who")
    assert result.status == workbench.Status.PASSED, result.error
    assert [asked.call_id for asked in result.trajectory.asked_by_servers] == ["setup-0", "final-0"]
    assert [len(result.trajectory.asked_in(stage)) for stage in ("setup", "final")] == [1, 1]


def test_mocks_never_ask(tmp_path: Path) -> None:
    mock = '[[cases.mocks]]\ntool = "ask"\nresult = "mocked"\n'
    result = run(tmp_path, suite(FILLED, case=mock), arguments=elicit())
    assert result.trajectory.calls[0].result.content == "mocked"
    assert result.trajectory.asked_by_servers == ()


ONE_CALL = """
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel
m = MCPServer("sdk")
class Form(BaseModel):
    size: int
@m.tool()
async def book(ctx: Context) -> str:
    reply = await ctx.elicit("Size?", Form)
    return f"{reply.action} {reply.data.size}"
m.run()
"""
FAST = """
from fastmcp import Context, FastMCP
from mcp_types import SamplingMessage, TextContent
m = FastMCP("fast")
@m.tool
async def book(ctx: Context) -> str:
    size = await ctx.elicit("Size?", response_type=int)
    asked = SamplingMessage(role="user", content=TextContent(text="Say it"))
    said = await ctx.session.create_message([asked], max_tokens=9)
    return f"{size.action} {size.data} {said.content.text}"
m.run(show_banner=False)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "field", "content"), [(ONE_CALL, "size", "accept 7"), (FAST, "value", "accept 7 seven")]
)
def test_servers_of_the_sdk_and_of_fastmcp_are_answered(tmp_path: Path, code: str, field: str, content: str) -> None:
    (tmp_path / "made.py").write_text(code)
    answers = answer(to='"elicitation"', content=f"{{ {field} = 7 }}") + answer(to='"sampling"', text='"seven"')
    text = suite(answers).replace(json.dumps(str(SERVER)), '"made.py"')
    result = run(tmp_path, text, "book")
    assert result.error is None, result.error
    assert result.trajectory.calls[0].result.content == content


@each_row(
    ("server", "answers", "problem"),
    [
        ('roots = ["."]', "", 'servers[0].roots: are not declared to the server (write answers = ["roots"])'),
        ('answers = ["roots"]', "", 'servers[0].answers: "roots" needs the folders that the server may use'),
        ('answers = ["roots"]\nroots = ["../x"]', "", "leads out of the suite's folder"),
        ('answers = ["roots"]\nroots = ["C:/x"]', "", "leads out of the suite's folder"),
        ('answers = ["elicitations"]', "", "did you mean `elicitation`?"),
        (f'{DECLARED}\nprotocol = "auto"', "", "servers whose requests are answered speak the older protocol"),
        ("", FILLED, 'no server declares that "elicitation" is answered, so none asks for it'),
        (DECLARED, answer(to='"elicitation"', text='"x"'), "`text` answers a sampling"),
        (
            DECLARED,
            answer(to='"elicitation"', action='"decline"', content="{}"),
            "is sent with `accept` alone",
        ),
        (DECLARED, answer(to='"elicitation"', content="{ a = { b = 1 } }"), "a form has no such value"),
        (DECLARED, answer(to='"elicitation"', message="{ contians = 1 }"), "did you mean `contains`?"),
        (DECLARED, answer(to='"sampling"'), "an answer to a sampling needs `text`"),
        (DECLARED, answer(to='"sampling"', content="{}", text='"x"'), "`content` answers an elicitation"),
        (DECLARED, answer(to='"sampling"', action='"cancel"'), "a sampling request can only be accepted or declined"),
        (DECLARED, answer(to='"sampling"', action='"decline"', text='"x"'), "`text` is not sent when"),
        (DECLARED, answer(to='"roots"'), "must be"),
    ],
)
def test_what_a_suite_cannot_say_is_named(server: str, answers: str, problem: str) -> None:
    problems = parse_suite(suite(answers, server=server), Path("ask.toml")).problems
    assert any(problem in str(each) for each in problems), problems


def test_answers_and_roots_need_trust_and_change_what_a_run_is() -> None:
    text = suite(FILLED, server='answers = ["elicitation", "roots"]\nroots = ["."]')
    file = parse_suite(text, Path("/suites/ask.toml"))
    assert file.suite is not None
    needs = needs_trust(file.suite, file.path)
    assert needs.lines()[1:] == (
        "let a server use the folders: shop /suites",
        'answer what a server asks: elicitation ask accept {"size": 42}',
    )
    other = parse_suite(text.replace("42", "43"), file.path)
    assert other.suite is not None
    assert needs_trust(other.suite, file.path).fingerprint != needs.fingerprint
    (planned,) = plan_runs([file])
    assert sends_same_requests(planned, file.suite, file.suite.cases[0])
    assert not sends_same_requests(planned, other.suite, other.suite.cases[0])
    assert parse_suite(suite_text(to_toml_data(file.suite)), file.path).suite == file.suite


def test_a_renamed_tool_keeps_its_answers(tmp_path: Path) -> None:
    variant = '[[variants]]\nname = "v"\n[[variants.changes]]\ntool = "ask"\nname = "inquire"\n'
    file = parse_suite(suite(FILLED) + variant, Path("ask.toml"))
    assert file.suite is not None
    assert varied_case(file.suite.cases[0], file.suite.variants[0]).answers[0].tool == "inquire"


@pytest.mark.parametrize(
    ("command", "content", "source"),
    first_rows(
        [
            ([AnswerQuestion("accept", {"size": 7})], {"action": "accept", "content": {"size": 7}}, "person"),
            ([AnswerQuestion("decline")], {"action": "decline"}, "person"),
            ([], {"action": "accept", "content": {"size": 42}}, "case"),
        ],
        2,
    ),
)
def test_a_person_who_steps_may_answer_and_the_recording_asks_no_server(
    tmp_path: Path, command: list[AnswerQuestion], content: dict[str, Any], source: str
) -> None:
    (tmp_path / "ask.toml").write_text(suite(FILLED).replace('"Book."', '"ask"'))
    does: Does = {"call 1": [EditArguments(elicit())], "question 1": command}
    person = Person(program_of(tmp_path / "home"))
    try:
        made = person.run(load_suite(tmp_path / "ask.toml"), "offline", does)
    finally:
        person.session.close()
    assert made.held == ["request 1", "call 1", "question 1", "result 1", "request 2"]
    assert replied(made.result)["result"] == content
    (asked,) = made.result.trajectory.asked_by_servers
    assert asked.source == source
    (waiting,) = [paused.asked for event in made.events if isinstance(paused := event.payload, Paused) and paused.asked]
    assert (waiting.source, waiting.content) == ("case", {"size": 42})
    lines = [event_from_line(event_to_line(event)) for event in made.events]
    assert fold(lines) == made.result.trajectory
    fork = Fork(made.result.trajectory, ForkPoint(2))
    again = [what for what in replayed_events(fork, "offline") if isinstance(what, ServerAsked)]
    assert again == [asked]


class Leaving(Person):
    """A user who stops the run when its server asks."""

    def _act(self, held: Event, commands: Sequence[Command]) -> None:
        if isinstance(held.payload, Paused) and held.payload.at == "question":
            self.session.stop(held.run_id)
        else:
            super()._act(held, commands)


def test_a_run_that_is_stopped_while_its_server_waits_ends_the_hold(tmp_path: Path) -> None:
    (tmp_path / "ask.toml").write_text(suite(FILLED).replace('"Book."', '"ask"'))
    person = Leaving(program_of(tmp_path / "home"))
    try:
        made = person.run(load_suite(tmp_path / "ask.toml"), "offline", {"call 1": [EditArguments(elicit())]})
    finally:
        person.session.close()
    assert made.result.status == "stopped"
    assert [type(event.payload).__name__ for event in made.events[-2:]] == ["Resumed", "RunFinished"]


def test_a_reply_by_hand_must_fit_the_form() -> None:
    question = ServerQuestion("elicitation", "shop", "Size?", {"requestedSchema": FORM})
    refused = (
        (AnswerQuestion("accept", {"size": "huge"}), "content.size: 'huge' is not of type 'integer'"),
        (AnswerQuestion("accept", {"size": 1}), None),
        (AnswerQuestion("cancel"), None),
    )
    point = HoldPoint("question", 1, lambda: fold(()), question=question)
    for command, why in refused:
        assert refusal(command, point) == why
    assert refusal(SkipCall(), point) == "the run is held while a server asks: a call can be skipped before it is made"
