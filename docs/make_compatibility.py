"""Drives two independent servers from the npm registry through the command line; writes docs/compatibility.md to BFCL.

    npm install --prefix FOLDER @copilotkit/aimock @modelcontextprotocol/server-everything
    python docs/make_compatibility.py FOLDER

The first speaks the wire formats of model APIs, the second is MCP's own test server.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "compatibility.md"
APIS = {"Chat Completions": ("openai", "/v1"), "Responses": ("openai-responses", "/v1"), "Messages": ("anthropic", "")}
START_S = 30.0

Json = dict[str, Any]
Outcomes = dict[str, dict[str, str]]
"""The outcome of each attempt, by API or transport."""


@dataclass(frozen=True)
class Scenario:
    """One case for the model server: its scripted answer and the expected outcome."""

    name: str
    fixtures: list[Json]
    status: str = "passed"
    case: str = ""
    says: str = ""
    """The text that the error or the retry must contain."""
    differs: dict[str, str] = field(default_factory=dict)
    """Why the outcome differs for an API for a reason outside Workbench."""


WEATHER = {"name": "get_weather", "arguments": {"city": "Oslo"}}
EXPECT_WEATHER = 'ordered = [{ tool = "get_weather", args = { city = "Oslo" } }]'


def answer(user: str, response: Json, **match: Any) -> Json:
    return {"match": {"userMessage": user, **match}, "response": response}


def error(user: str, status: int, message: str, **match: Any) -> Json:
    return answer(user, {"error": {"message": message, "type": "test_error"}, "status": status}, **match)


SCENARIOS = (
    Scenario(
        "a text answer",
        [answer("words", {"content": "Hello there."})],
        case='response_contains = ["hello there"]',
    ),
    Scenario(
        "a call, its result, an answer",
        [
            answer("loop", {"toolCalls": [WEATHER]}, hasToolResult=False),
            answer("loop", {"content": "Rain in Oslo."}, hasToolResult=True),
        ],
        case=EXPECT_WEATHER + '\nresponse_contains = ["rain"]',
    ),
    Scenario(
        "two calls in one answer",
        [
            answer(
                "parallel",
                {"toolCalls": [WEATHER, {"name": "get_weather", "arguments": {"city": "Rome"}}]},
                hasToolResult=False,
            ),
            answer("parallel", {"content": "Rain and sun."}, hasToolResult=True),
        ],
        case='unordered = [{ tool = "get_weather", args = { city = "Rome" } }, '
        '{ tool = "get_weather", args = { city = "Oslo" } }]',
    ),
    Scenario(
        "reasoning",
        [answer("reasoning", {"reasoning": "They want a greeting.", "content": "Hello."})],
        case='response_contains = ["hello"]',
    ),
    Scenario(
        "a name with dots, mapped and mapped back",
        [
            answer(
                "dots", {"toolCalls": [{"name": "home_lights_set", "arguments": {"on": True}}]}, hasToolResult=False
            ),
            answer("dots", {"content": "Done."}, hasToolResult=True),
        ],
        case='ordered = [{ tool = "home.lights.set", args = { on = true } }]',
    ),
    Scenario(
        "broken argument JSON",
        [
            answer(
                "broken", {"toolCalls": [{"name": "get_weather", "arguments": '{"city": "Os'}]}, hasToolResult=False
            ),
            answer("broken", {"content": "Sorry."}, hasToolResult=True),
        ],
        status="failed",
        case=EXPECT_WEATHER,
        says="broken arguments",
        differs={"Messages": "the server itself replaces broken JSON by {}"},
    ),
    Scenario(
        "cut off at the token limit",
        [answer("truncated", {"content": "The weather is", "finishReason": "length"})],
        status="failed",
        case='response_contains = ["rain"]',
    ),
    Scenario(
        "429 with Retry-After, then an answer",
        [error("limited", 429, "Slow down.", sequenceIndex=0), answer("limited", {"content": "Hello."})],
        case='response_contains = ["hello"]',
        says="429",
    ),
    Scenario(
        "500, then an answer",
        [error("crashed", 500, "Oops.", sequenceIndex=0), answer("crashed", {"content": "Hello."})],
        case='response_contains = ["hello"]',
        says="500",
    ),
    Scenario(
        "529, then an answer",
        [error("overloaded", 529, "Overloaded.", sequenceIndex=0), answer("overloaded", {"content": "Hello."})],
        case='response_contains = ["hello"]',
        says="529",
    ),
    Scenario("400", [error("refused", 400, "No such thing.")], status="error", says="No such thing."),
    Scenario("401", [error("wrong key", 401, "Invalid key.")], status="error", says="MODEL_KEY"),
    Scenario(
        "disconnected",
        [{**answer("disconnected", {"content": "Hello."}), "chaos": {"disconnectRate": 1.0}}],
        status="error",
    ),
    Scenario(
        "malformed answer",
        [{**answer("malformed", {"content": "Hello."}), "chaos": {"malformedRate": 1.0}}],
        status="error",
    ),
    Scenario("no answer prepared (503)", [], status="error", says="503"),
)

SUITE = """format = 1
name = "Compatibility"
[limits]
timeout_s = 60
[[tools]]
name = "get_weather"
description = "Current weather for a city."
parameters = { type = "object", required = ["city"], properties = { city = { type = "string" } } }
[[tools]]
name = "home.lights.set"
description = "Switches the lights."
parameters = { type = "object", required = ["on"], properties = { on = { type = "boolean" } } }
"""


@contextmanager
def started(command: list[str], port: int, environment: dict[str, str] | None = None) -> Iterator[None]:
    """Run a server, wait until it listens on the port, and end it afterwards."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
    )
    try:
        deadline = time.monotonic() + START_S
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{' '.join(command)} does not listen on port {port}")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(10)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def key_of(fixture: Json, provider: str) -> Json:
    """Return the fixture for one API. The server counts matches, and the APIs must not share a count."""
    match = fixture["match"]
    return {**fixture, "match": {**match, "userMessage": f"{match['userMessage']} / {provider}"}}


def suite_text(provider: str) -> str:
    cases = []
    for scenario in SCENARIOS:
        word = scenario.fixtures[0]["match"]["userMessage"] if scenario.fixtures else "nothing"
        cases.append(f'[[cases]]\nname = "{scenario.name}"\nuser = "{word} / {provider}"\n{scenario.case}\n')
    return SUITE + "".join(cases)


def workbench(*words: str, folder: Path, environment: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Run the command line in its own folder. Return the exit code, standard output and standard error."""
    home = {"HOME": str(folder)} | {
        f"XDG_{kind.upper()}_HOME": str(folder / kind) for kind in ("state", "config", "data")
    }
    done = subprocess.run(
        [sys.executable, "-m", "workbench.cli.main", *words],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **home, **(environment or {})},
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def model_outcomes(modules: Path, folder: Path) -> Outcomes:
    """Run every scenario on every API."""
    server = modules / "@copilotkit/aimock/dist/cli.js"
    fixtures = [
        key_of(fixture, provider)
        for provider, _ in APIS.values()
        for scenario in SCENARIOS
        for fixture in scenario.fixtures
    ]
    (folder / "fixtures.json").write_text(json.dumps({"fixtures": fixtures}))
    port = free_port()
    outcomes: Outcomes = {scenario.name: {} for scenario in SCENARIOS}
    command = ["node", str(server), "--strict", "-p", str(port), "-f", str(folder / "fixtures.json")]
    with started(command, port):
        for api, (provider, path) in APIS.items():
            (folder / "suite.toml").write_text(suite_text(provider))
            code, out, complaints = workbench(
                "run",
                "suite.toml",
                *("--model", f"{provider}:test-model", "--base-url", f"http://127.0.0.1:{port}{path}"),
                *("--api-key-env", "MODEL_KEY", "--format", "json", "--concurrency", "20"),
                folder=folder,
                environment={"MODEL_KEY": "mock-key-for-compatibility"},
            )
            if not out:
                raise SystemExit(f"workbench run answered {code}: {complaints}")
            for run in json.loads(out)["runs"]:
                scenario = next(scenario for scenario in SCENARIOS if scenario.name == run["case_name"])
                outcomes[scenario.name][api] = outcome_of(scenario, run, api)
    return outcomes


def outcome_of(scenario: Scenario, run: Json, api: str) -> str:
    right = run["status"] == scenario.status and scenario.says in json.dumps(run)
    if right:
        return f"{run['status']}, as expected" if run["status"] != "passed" else "passed"
    if api in scenario.differs:
        return f"{run['status']}: {scenario.differs[api]}"
    return f"**{run['status']}, {scenario.status} expected**: {run['error'] or run['score']}"


SERVERS = {
    "stdio": ("stdio", 'command = ["node", "{index}", "stdio"]'),
    "streamable HTTP": ("streamableHttp", 'url = "http://127.0.0.1:{port}/mcp"'),
    "SSE": ("sse", 'url = "http://127.0.0.1:{port}/sse"\ntransport = "sse"'),
}
LISTING = "the server's tools"
CALLS: tuple[tuple[str, Json, str], ...] = (
    ("echo", {"message": "Grüße, 世界"}, "Grüße, 世界"),
    ("get-sum", {"a": 2, "b": 40}, "42"),
    ("get-structured-content", {"location": "New York"}, "temperature"),
    ("get-tiny-image", {}, "[image/png"),
    ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}, "Resource 1"),
    ("get-resource-links", {"count": 2}, "[resource "),
    ("trigger-long-running-operation", {"duration": 1, "steps": 4}, "completed"),
)


def tool_outcomes(modules: Path, folder: Path) -> Outcomes:
    """List and call tools over every transport."""
    index = modules / "@modelcontextprotocol/server-everything/dist/index.js"
    outcomes: Outcomes = {LISTING: {}, **{tool: {} for tool, _, _ in CALLS}}
    for transport, (mode, settings) in SERVERS.items():
        port = free_port()
        text = settings.format(index=index, port=port)
        name = re.sub(r"\W", "-", transport)
        (folder / f"{name}.toml").write_text(
            f'format = 1\nname = "Everything"\n[[servers]]\nname = "everything"\n{text}\n'
            '[[cases]]\nname = "none"\nuser = "Hello."\n'
        )
        if mode == "stdio":
            try_tools(folder, f"{name}.toml", transport, outcomes)
        else:
            with started(["node", str(index), mode], port, {"PORT": str(port)}):
                try_tools(folder, f"{name}.toml", transport, outcomes)
    return outcomes


def try_tools(folder: Path, suite: str, transport: str, outcomes: Outcomes) -> None:
    code, out, complaints = workbench("tools", suite, "--trust", "--format", "json", folder=folder)
    if code != 0:
        raise SystemExit(f"workbench tools over {transport} answered {code}: {complaints}")
    tools = [tool for listed in json.loads(out)["suites"] for source in listed["sources"] for tool in source["tools"]]
    outcomes[LISTING][transport] = f"{len(tools)} listed"
    for tool, arguments, wanted in CALLS:
        words = ("--call", tool, "--args", json.dumps(arguments))
        code, out, complaints = workbench("tools", suite, "--trust", *words, folder=folder)
        outcomes[tool][transport] = "answered" if code == 0 and wanted in out else f"**{code}**: {out or complaints}"


def outcome_lines(outcomes: Outcomes) -> str:
    """Return a line for each outcome that is the same everywhere, then one line for each attempt with several
    outcomes."""
    same: dict[str, list[str]] = {}
    several: list[str] = []
    for attempt, by_column in outcomes.items():
        if len(set(by_column.values())) == 1:
            same.setdefault(next(iter(by_column.values())), []).append(attempt)
        else:
            several.append(f"- {attempt}: " + "; ".join(f"{column} {outcome}" for column, outcome in by_column.items()))
    return "\n".join([*(f"- {outcome}: {'; '.join(attempts)}" for outcome, attempts in same.items()), *several])


def version_of(modules: Path, package: str) -> str:
    version: str = json.loads((modules / package / "package.json").read_text())["version"]
    return version


def main() -> None:
    modules = Path(sys.argv[1]) / "node_modules"
    with tempfile.TemporaryDirectory() as scratch:
        models = model_outcomes(modules, Path(scratch))
        tools = tool_outcomes(modules, Path(scratch))
    page = PAGE_TEXT.format(
        aimock=version_of(modules, "@copilotkit/aimock"),
        everything=version_of(modules, "@modelcontextprotocol/server-everything"),
        apis=", ".join(APIS),
        models=outcome_lines(models),
        transports=", ".join(SERVERS),
        tools=outcome_lines(tools),
    )
    _, heading, by_hand = PAGE.read_text(encoding="utf-8").partition("\n## BFCL\n")
    PAGE.write_text(page + heading + by_hand, encoding="utf-8")
    sys.stdout.write(page)


PAGE_TEXT = """# Compatibility

Model APIs and MCP transports were tried with independent servers, and verdicts were compared with those of BFCL.
`python docs/make_compatibility.py FOLDER` repeats the trials of APIs and transports with servers from
`npm install --prefix FOLDER …`.

## Model APIs

The answers of `@copilotkit/aimock` {aimock} over {apis}:

{models}

## Clouds

Azure OpenAI, Amazon Bedrock and Google Vertex were tried with local servers that imitate their addresses, signatures
(AWS version 4, also for `bedrock-mantle`), tokens (a service account's and a managed identity's) and Bedrock's binary
event streams: streamed calls, refusals, throttling, damaged and cut streams, renewed tokens.

Only the real clouds show whether

- they accept the SDKs' addresses and versions for each model and region,
- their refusals have the codes and words that the messages here expect,
- sign-ins by `aws sso login`, `gcloud` and `az`, and identities of machines, give credentials.

## MCP

The tools of `@modelcontextprotocol/server-everything` {everything} over {transports}:

{tools}
"""


if __name__ == "__main__":
    main()
