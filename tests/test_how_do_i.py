"""docs/how-do-i.md: every block is written or run unchanged, with a local server as the model.

If an answer says what fails, the same commands are also run with a model that fails."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest

from tests.cli.forking import forked_command
from tests.cli.program import Program, read_until
from tests.providers import tool_model
from tests.providers.server import HANG, MARK, Answer, Call, Request, Server, document, models_document, said
from tests.tools.conftest import SERVERS
from tests.tools.guarded import guarded
from tests.tui.in_terminal import WORKBENCH, Terminal
from tests.tui.pages import ROOT, Block, blocks_of, follow, page

HEAD, *SECTIONS = re.split(r"^### ", page("how-do-i.md"), flags=re.MULTILINE)
(SUITE,) = blocks_of(HEAD)
TEXTS = dict(section.split("\n", 1) for section in SECTIONS)
RUN = Block("sh", "workbench run shop.toml --model gpt --trust")
FIND = (Call("find_order", {"order": "A-17"}),)
TOKEN = "tok-4711"

STOCK_SERVER = f"""
import os, sys
sys.path.insert(0, {str(SERVERS)!r})
from plain import PlainServer
if os.environ["STOCK_TOKEN"] != {TOKEN!r}:
    sys.exit(1)
server = PlainServer("stock")
@server.tool(readOnlyHint=True)
def count_stock(sku: str) -> int:
    "Count what is left."
    return 3
server.run()
"""
COLD_NPX = f"""#!/bin/sh
# npx that finds the package only while there is a network.
[ ! -f offline ] && [ "$*" = "-y @modelcontextprotocol/server-filesystem ." ] || exit 1
STOCK_TOKEN={TOKEN} exec {sys.executable} stock_server.py
"""


class Reply(NamedTuple):
    """What the model does with the request of an answer."""

    calls: tuple[Call, ...] = FIND
    text: str = "Done."


class Then(NamedTuple):
    """A further command that the answer speaks of."""

    command: str
    code: int = 0
    shows: str = ""


class Expected(NamedTuple):
    """`good` passes, and `bad` makes the last command end with 1. `files` are written, `shows` is printed."""

    good: Reply = Reply()
    bad: Reply | None = None
    shows: str = ""
    files: tuple[str, ...] = ()
    then: tuple[Then, ...] = ()


def calls(tool: str, **arguments: object) -> Reply:
    return Reply((Call(tool, arguments),))


REFUND = (Call("find_order", {"order": "A-17"}), Call("refund", {"order": "A-17", "amount": 5}, "call_2"))
TEA = [{"sku": "tea", "quantity": 2}]

ANSWERS = {
    "Forbid a tool": Expected(bad=Reply(REFUND), shows="2 passed"),
    "Allow other calls, or the same one again": Expected(
        calls("refund", order="A-17", amount=80), bad=calls("find_order", order="A-17"), shows="2 passed"
    ),
    "Run one case with many inputs": Expected(bad=Reply((), "Gone."), shows="3 passed"),
    "Accept a number within 5 percent": Expected(
        calls("refund", order="A-17", amount=41.9), bad=calls("refund", order="A-17", amount=42.5), shows="2 passed"
    ),
    "Check an argument that is free text": Expected(
        calls("ship", note="Please leave it next door!"), bad=calls("ship", note="Ring twice."), shows="2 passed"
    ),
    "Check nested objects and arrays": Expected(
        calls("ship", items=TEA, address={"street": "Karl Johans gate 1", "city": "Oslo"}),
        bad=calls("ship", items=TEA, address={"city": "Bergen"}),
        shows="2 passed",
    ),
    "Check the state after the run": Expected(
        calls("refund", order="A-17", amount=20), bad=calls("refund", order="A-17", amount=25), shows="2 passed"
    ),
    "Test a conversation of several turns": Expected(bad=Reply(REFUND), shows="2 passed"),
    "Let a model judge an answer": Expected(Reply((), "I am sorry."), bad=Reply((), "Gone."), shows="2 passed"),
    "Mock a result": Expected(
        shows='{"order":"A-17","state":"shipped"}',
        then=(Then("sed -i '/^when/s/A-17/B-2/' shop.toml; workbench run shop.toml", shows="no such order"),),
    ),
    "Give a server its key": Expected(
        shows="count_stock", then=(Then("rm .env; workbench tools shop.toml --trust", 3),)
    ),
    "Log in to a server": Expected(shows="tracker: logged in, with 2 tools"),
    "Use a server that npx starts slowly": Expected(
        shows="count_stock", then=(Then("touch offline; workbench tools shop.toml --trust", 3, "count_stock"),)
    ),
    "Use a local model": Expected(shows="round trip"),
    "Compare two prompts": Expected(shows="gpt × short", files=("prompts.html",)),
    "Measure how reliable a model is": Expected(shows="pass^5"),
    "Limit what a batch costs": Expected(
        shows="1 passed",
        then=(
            Then("workbench run shop.toml --model gpt --max-cost 0.0000001 --trust", 3, "cost limit"),
            Then("workbench run --resume --max-cost 1 --trust", 0, "1 passed"),
        ),
    ),
    "Watch a run step by step": Expected(),
    "Run only what changed": Expected(shows="1 run: 1 passed", then=(Then("workbench history diff 1 2"),)),
    "Continue a batch that stopped": Expected(shows="resuming batch"),
    "Make a case from a run": Expected(
        calls("refund", order="A-17", amount=20),
        then=(
            Then("cat shop.toml", shows='args = { order = "A-17", amount = 20 }'),
            Then("workbench run shop.toml --model gpt", shows="2 passed"),
        ),
    ),
    "Gate in CI": Expected(bad=Reply(()), shows="90% required: met", files=("junit.xml",)),
    "Share results": Expected(
        files=("report.html", "report.md", "runs/shop.find.gpt.1.run.jsonl"),
        then=(Then("workbench grade runs", shows="1 passed"),),
    ),
    "Grade my own agent": Expected(
        shows="1 passed",
        then=(Then("sed -i s/A-17/A-18/ calls.jsonl; workbench grade --suite shop.toml --calls calls.jsonl", 1),),
    ),
    "Import cases from another tool": Expected(
        files=("questions.toml",), then=(Then("workbench run questions.toml", shows="1 passed"),)
    ),
}


class User:
    """A user who follows an answer in a separate folder, in which `gpt` is a model of the local server."""

    def __init__(self, folder: Path) -> None:
        self.reply = Reply()
        self.hangs = False
        self.request = "Look up the order A-17."
        self.server = Server(self._answer, models=document(models_document("llama3.1:8b")))
        self.program = Program(folder)

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.program.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return self.program.environment | {"PATH": path, "PYTHONPATH": str(ROOT)}

    def prepare(self) -> None:
        write = self.program.write
        write("bin/workbench", f'#!/bin/sh\nexec {shlex.join(forked_command())} "$@"\n').chmod(0o755)
        write("bin/npx", COLD_NPX).chmod(0o755)
        write("stock_server.py", STOCK_SERVER)
        model = f'[models.gpt]\nprovider = "openai"\nbase_url = "{self.server.url}/v1"\n'
        write("config/toolcall-workbench/workbench.toml", model)
        self.follow(SUITE)

    def follow(self, block: Block) -> subprocess.CompletedProcess[str]:
        """Write the file of a block, or run its commands."""
        local = block.text.replace("http://localhost:11434", self.server.url)
        if block.kind == "sh":
            return self.shell(local)
        first, content = local.split("\n", 1)
        asked = re.findall(r'(?:^user|\bwords) = "([^"{}\n]+)"', content, re.MULTILINE)
        self.request = asked[-1] if asked else self.request
        content = content.replace('model = "gpt-6-luna"', f'model = "gpt-6-luna"\nbase_url = "{self.server.url}/v1"')
        with (self.program.folder / first.removeprefix("# ")).open("a", encoding="utf-8") as file:
            file.write(f"{content}\n\n")
        return subprocess.CompletedProcess([], 0, "", "")

    def shell(self, script: str) -> subprocess.CompletedProcess[str]:
        bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        folder, environment = self.program.folder, self.environment
        return subprocess.run(
            bash, cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )

    def _answer(self, request: Request) -> Answer:
        if self.hangs:
            return Answer((HANG,))
        if b'"verdict"' in request.body:
            verdict = {"mark": MARK, "rationale": "It is read.", "holds": b"sorry" in request.body}
            return said("openai", calls=[Call("verdict", verdict)])
        messages = request.json["messages"]
        users = [message["content"] for message in messages if message["role"] == "user"]
        if users[-1] != self.request and "A-17" not in users[-1]:
            return tool_model.endpoint("openai")(request)
        reply = self.reply if users[-1] == self.request else Reply()
        if messages[-1]["role"] == "tool" or not reply.calls:
            return said("openai", reply.text)
        return said("openai", calls=reply.calls)


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    user = User(tmp_path)
    with user.server:
        user.prepare()
        yield user


def changed_suites(user: User) -> None:
    """A repository with two suites, of which one has changed since the last commit."""
    user.program.write("other.toml", SUITE.text.replace('"Shop"', '"Other"'))
    committed = "git init -q && git add *.toml && git -c user.name=U -c user.email=u@example.org commit -qm Suites"
    assert user.shell(committed).returncode == 0
    user.program.write("shop.toml", SUITE.text.replace('"Find"', '"Find it"\nid = "find"'))


def interrupted_batch(user: User) -> None:
    """A batch whose model had not answered when Ctrl+C was pressed."""
    user.hangs = True
    running = user.program.start("run", "shop.toml", "--model", "gpt")
    while not user.server.requests:
        assert running.poll(0.01) is None
    running.send_signal(signal.SIGINT)
    assert "to resume: workbench run --resume 1" in running.communicate()[1]
    user.hangs = False


BEFORE: dict[str, Callable[[User], None]] = {
    "Run only what changed": changed_suites,
    "Continue a batch that stopped": interrupted_batch,
}


BY_HAND = ("Watch a run step by step", "Log in to a server")
"""Answers in which the user acts in the terminal or a browser. Each has its own test."""


def test_all_answers_are_run() -> None:
    assert list(ANSWERS) == list(TEXTS)
    assert len(ANSWERS) == 25


@pytest.mark.parametrize("name", [name for name in ANSWERS if name not in BY_HAND])
def test_an_answer_does_what_it_says(user: User, name: str) -> None:
    expected, blocks = ANSWERS[name], blocks_of(TEXTS[name])
    if name in BEFORE:
        BEFORE[name](user)
    user.reply = expected.good
    if all(block.kind != "sh" for block in blocks):
        blocks.append(RUN)
    for block in blocks:
        done = user.follow(block)
        assert done.returncode == 0, done.stdout + done.stderr
    assert expected.shows in done.stdout + done.stderr
    assert TOKEN not in done.stdout + done.stderr
    for file in expected.files:
        assert (user.program.folder / file).stat().st_size
    for command, code, shows in expected.then:
        done = user.shell(command)
        assert done.returncode == code, done.stdout + done.stderr
        assert shows in done.stdout + done.stderr
    if expected.bad is not None:
        user.reply = expected.bad
        done = user.follow(blocks[-1])
        assert done.returncode == 1, done.stdout + done.stderr


def test_a_run_is_watched_step_by_step(user: User) -> None:
    folder = user.program.folder
    user.program.write("bin/workbench", f'#!/bin/sh\nexec {shlex.join(WORKBENCH)} "$@"\n')
    shell = user.environment | {"PS1": "$ "}
    with Terminal([], folder / "state", folder=folder, environment=shell, program=("sh",)) as terminal:
        follow(blocks_of(TEXTS["Watch a run step by step"]), terminal)


def test_a_person_logs_in_to_a_server(user: User) -> None:
    name = "Log in to a server"
    suite, command = blocks_of(TEXTS[name])
    with guarded() as server:
        user.follow(suite._replace(text=suite.text.replace("https://tracker.example.test/mcp", server.url)))
        with user.program.start(*shlex.split(command.text)[1:]) as running:
            address = re.findall(r"^http://.*", read_until(running, "/authorize?"), re.MULTILINE)[-1]
            assert httpx2.get(address, follow_redirects=True).status_code == 200
            said, complaints = running.communicate()
        assert running.returncode == 0, complaints
    assert ANSWERS[name].shows in said
