"""Real agents in place of a model, each against a local endpoint.

Missing agents are skipped. `docs/your-agent.md` explains how to install them, and they are looked up in PATH. No test
needs a key or a network."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import COMMAND, INFRASTRUCTURE, OK, Program
from tests.engine.agents.endpoint import Script, offered, results
from tests.providers.server import HANG, Answer, Server, Signal, Tell
from workbench.config.agents import KNOWN_AGENTS
from workbench.suite.render import suite_text

pytestmark = pytest.mark.slow

OFFICE = Path(__file__).parents[2] / "tools" / "servers" / "office.py"
KEY = "sk-test-endpoint-4711"
CANARY = "CANARY-OF-THE-USER"
WAIT_S = 300.0

CALLS: Sequence[tuple[str, dict[str, Any]]] = (
    ("get_weather", {"location": "Oslo"}),
    ("search_docs", {"query": "umbrellas"}),
    ("send_mail", {"to": "ann@example.com"}),
)
"""One to a real server, one to a mock of a tool with a schema of its results, and one to a tool of the suite alone."""

ANSWERS = ("partly cloudy at Oslo, 21.5", "MOCKED handbook on umbrellas", "MOCKED mail to ann@example.com")
OFFERED = ("search_docs", "get_weather", "calculate", "send_email", "create_task", "send_mail")

SUITE: dict[str, Any] = {
    "format": 1,
    "name": "Office",
    "servers": [{"name": "office", "command": ["python", str(OFFICE)]}],
    "tools": [
        {
            "name": "send_mail",
            "parameters": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
        }
    ],
    "mocks": [
        {"tool": "search_docs", "result": "MOCKED handbook on {query}"},
        {"tool": "send_mail", "result": "MOCKED mail to {to}"},
    ],
}


def case_of(name: str, user: str) -> dict[str, Any]:
    return {
        "name": name,
        "user": user,
        "ordered": [{"tool": tool, "args": arguments} for tool, arguments in CALLS],
        "grading": {"by": "trajectory"},
        "response_contains": ["It rains"],
    }


def _opencode(url: str) -> dict[str, str]:
    options = {"baseURL": f"{url}/v1", "apiKey": KEY}
    local = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"test-model": {}}}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps({"provider": {"local": local}, "model": "local/test-model"})}


def _openai(url: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": "test-model"}


@dataclass(frozen=True)
class Host:
    """A real agent: the variables that set its endpoint, the tools of its own that remain, and its behaviour.

    `shell` is a call of its own shell that would create a file with the given name."""

    name: str
    variables: Callable[[str], Mapping[str, str]]
    stay: tuple[str, ...] = ()
    tells_tokens: bool = True
    shell: tuple[str, str] | None = None

    def __str__(self) -> str:
        return self.name


HOSTS = (
    Host(
        "claude-code",
        lambda url: {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_MODEL": "test-model"},
        shell=("Bash", '{"command": "touch FILE", "description": "touch"}'),
    ),
    Host(
        "codex",
        _openai,
        ("list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource", "request_user_input", "view_image"),
        shell=("exec_command", '{"cmd": "touch FILE"}'),
    ),
    Host(
        "gemini",
        lambda url: {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": KEY, "GEMINI_MODEL": "gemini-2.5-flash"},
        shell=("run_shell_command", '{"command": "touch FILE"}'),
    ),
    Host(
        "opencode",
        _opencode,
        tells_tokens=False,
        shell=("bash", '{"command": "touch FILE", "description": "touch"}'),
    ),
    Host("qwen", _openai, shell=("run_shell_command", '{"command": "touch FILE", "is_background": false}')),
    Host(
        "fast-agent",
        lambda url: {
            "GENERIC_BASE_URL": f"{url}/v1",
            "GENERIC_API_KEY": KEY,
            "FAST_AGENT_MODEL": "generic.test-model",
        },
        tells_tokens=False,
    ),
)


@pytest.fixture(params=HOSTS, ids=str)
def host(request: pytest.FixtureRequest) -> Host:
    found: Host = request.param
    known = KNOWN_AGENTS[found.name]
    if shutil.which(known.command[0]) is None:
        pytest.skip(f"{known.command[0]} is not on the path: {known.install}")
    return found


class Desk:
    """A user's folder with a suite, and a home whose files no agent may read or change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "user"
        self.home = self.folder / "home"
        self.temporary = folder / "t"
        self.temporary.mkdir()
        for place in (
            *(".claude/CLAUDE.md", ".codex/AGENTS.md", ".gemini/GEMINI.md", ".qwen/QWEN.md", "AGENTS.md"),
            *(".config/opencode/AGENTS.md", "../AGENTS.md", "../CLAUDE.md", "../GEMINI.md", "../QWEN.md"),
            # Above the folder of temporary files: OpenCode reads the files in all folders above its working folder.
            *("../../AGENTS.md", "../../CLAUDE.md", "../../GEMINI.md", "../../QWEN.md"),
        ):
            file = self.home / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"Say {CANARY}.", encoding="utf-8")
        self.before = self._files()

    def _files(self) -> dict[str, bytes]:
        return {str(file): file.read_bytes() for file in self.home.rglob("*") if file.is_file()}

    def write(self, *cases: dict[str, Any], **keys: Any) -> None:
        text = suite_text({**SUITE, **keys, "cases": list(cases)})
        (self.folder / "office.toml").write_text(text, encoding="utf-8")

    def start(self, host: Host, server: Server, *words: str) -> subprocess.Popen[str]:
        variables = {**host.variables(server.url), "HOME": str(self.home), "TMPDIR": str(self.temporary)}
        given = [*COMMAND, words[0], "office.toml", "--trust", "--execute", "--report=r.json", *words[1:]]
        program = Program(self.folder, variables)
        return subprocess.Popen(
            given,
            cwd=self.folder,
            env=program.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, host: Host, server: Server, *words: str) -> tuple[int, str]:
        with self.start(host, server, *words) as program:
            output, _ = program.communicate(timeout=WAIT_S)
        return program.returncode, output

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The runs of the report."""
        report = json.loads((self.folder / "r.json").read_text(encoding="utf-8"))
        runs: list[dict[str, Any]] = report["runs"]
        return runs

    def is_as_before(self) -> bool:
        """Return whether no process, no folder of a run and no change in the home folder is left."""
        assert self._files() == self.before
        assert not [*self.temporary.iterdir()]
        assert not _processes_with(str(self.temporary))
        return True


def _processes_with(text: str) -> list[str]:
    """The command lines of the processes whose environment holds a text."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (folder / "environ").read_bytes() and folder.name != str(os.getpid()):
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def calls_of(run: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(call["tool"], call["arguments"]) for round_ in run["rounds"] for call in round_["calls"]]


def last_of(server: Server) -> dict[str, Any]:
    """The last request of a conversation: that with all results. An agent's own requests may come after it."""
    asked: list[dict[str, Any]] = [request.json for request in server.requests if request.body]
    return max(asked, key=lambda request: len(results(request)))


def test_the_calls_of_the_model_arrive_and_the_answers_of_mocks_and_servers_reach_it(host: Host, desk: Desk) -> None:
    desk.write(case_of("Oslo", "Weather in Oslo, please."))
    with Server(Script(CALLS)) as server:
        code, output = desk.run(host, server, "run", "--model", f"agent:{host.name}")
    assert code == OK, output
    [run] = desk.runs
    assert calls_of(run) == list(CALLS)
    assert re.match(r"\d+\.\d+", run["agent"]["version"])
    last = last_of(server)
    for answer, said in zip(ANSWERS, results(last), strict=True):
        assert answer in said
    assert {name for _, name in offered(last) if not name.endswith(OFFERED)} == set(host.stay)
    told = [(each["input_tokens"], each["output_tokens"]) for round_ in run["rounds"] if (each := round_["usage"])]
    assert told == ([(44, 28)] if host.tells_tokens else [])
    assert not [request for request in server.requests if CANARY.encode() in request.body]
    assert KEY not in output + (desk.folder / "r.json").read_text(encoding="utf-8")
    assert desk.is_as_before()


def test_sessions_at_once_keep_their_calls_apart(host: Host, desk: Desk) -> None:
    desk.write(case_of("One", "First."), case_of("Two", "Second."), subject={"agent": host.name, "builtin": "forbid"})
    with Server(Script(CALLS)) as server:
        code, output = desk.run(host, server, "run", "--concurrency", "2")
    assert code == OK, output
    assert [calls_of(run) for run in desk.runs] == [list(CALLS)] * 2
    assert desk.is_as_before()


def test_a_shell_of_the_agents_own_stays_undone_where_it_is_forbidden(host: Host, desk: Desk) -> None:
    if host.shell is None:
        pytest.skip("the agent has no shell")
    tool, arguments = host.shell
    made = desk.folder / "made-by-shell"
    desk.write({"name": "Shell", "user": "Go."}, subject={"agent": host.name, "builtin": "forbid"})
    with Server(Script([(tool, json.loads(arguments.replace("FILE", str(made))))])) as server:
        code, output = desk.run(host, server, "run")
    [run] = desk.runs
    assert not made.exists()
    assert code != INFRASTRUCTURE, output
    assert tool in {name for request in server.requests if request.body for _, name in offered(request.json)}
    assert not calls_of(run)
    assert desk.is_as_before()


@pytest.mark.parametrize("how", ["time limit", "interrupt"])
def test_an_agent_that_waits_for_its_model_is_ended(host: Host, desk: Desk, how: str) -> None:
    waiting = Signal()
    script = Script(CALLS[:1], last=Answer(before=(Tell(waiting), HANG)))
    limit = 8 if how == "time limit" else 300
    desk.write(case_of("Oslo", "Weather in Oslo, please."), limits={"timeout_s": limit})
    with Server(script) as server, desk.start(host, server, "run", "--model", f"agent:{host.name}") as program:
        if how == "interrupt":
            waiting.wait(WAIT_S)
            program.send_signal(signal.SIGINT)
        output, _ = program.communicate(timeout=WAIT_S)
    assert program.returncode != OK, output
    assert ("not finished within 8 s" in output) == (how == "time limit")
    assert desk.is_as_before()


CODE = """
const weather = await tools.mcp_office.get_weather({location: "Oslo"});
const found = await tools.mcp_office.search_docs({query: "umbrellas"});
return [weather, found, await tools.mcp_workbench.send_mail({to: "ann@example.com"})];
"""


def test_calls_that_a_model_of_vibe_makes_from_code_arrive(desk: Desk) -> None:
    if shutil.which("vibe-acp") is None:
        pytest.skip(f"vibe-acp is not on the path: {KNOWN_AGENTS['vibe'].install}")
    vibe = Host(
        "vibe",
        lambda url: {"MISTRAL_BASE_URL": f"{url}/v1", "MISTRAL_API_KEY": KEY, "MISTRAL_MODEL": "test-model"},
    )
    desk.write(case_of("Oslo", "Weather in Oslo, please."))
    with Server(Script([("run_typescript", {"code": CODE})])) as server:
        code, output = desk.run(vibe, server, "run", "--model", "agent:vibe")
    assert code == OK, output
    assert calls_of(desk.runs[0]) == list(CALLS)
    assert all(answer in results(last_of(server))[-1] for answer in ANSWERS)
    assert not [request for request in server.requests if CANARY.encode() in request.body]
    assert KEY not in output
    assert desk.is_as_before()


@pytest.fixture
def opencode() -> Host:
    if shutil.which("opencode") is None:
        pytest.skip(f"opencode is not on the path: {KNOWN_AGENTS['opencode'].install}")
    return next(each for each in HOSTS if each.name == "opencode")


def test_opencode_reads_the_instructions_of_a_copied_folder_and_none_above_it(opencode: Host, desk: Desk) -> None:
    project = desk.folder / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("Say PROJECT.", encoding="utf-8")
    desk.write({"name": "Hi", "user": "Hi."}, subject={"agent": "opencode", "folder": "project"})
    with Server(Script(())) as server:
        desk.run(opencode, server, "run")
    asked = b"".join(request.body for request in server.requests)
    assert (b"Say PROJECT." in asked, CANARY.encode() in asked) == (True, False)


def test_one_table_compares_an_agent_with_a_model(opencode: Host, desk: Desk) -> None:
    host = opencode
    desk.write(case_of("Oslo", "Weather in Oslo, please."))
    with Server(Script(CALLS)) as server:
        code, output = desk.run(host, server, "compare", "--model", "offline,agent:opencode")
    assert code == OK, output
    assert ["case", "offline", "agent:opencode"] in [line.split() for line in output.splitlines()]
