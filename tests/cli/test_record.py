"""`workbench record` as a user runs it: a proxy until Ctrl+C, and a tee in a client's configuration."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from tests.cli.forking import forked_command
from tests.cli.program import COMMAND, Program
from tests.providers.server import Call, Server, said

KEY = "sk-planted-0123456789-abcdef"
SERVER = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("weather")

@server.tool()
def get_weather(city: str) -> str:
    '''The weather in a city.'''
    print("to standard error", file=sys.stderr)
    return f"rain in {city}, as sk-planted-0123456789-abcdef knows"

server.run("stdio")
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def ask(url: str, messages: list[object]) -> bytes:
    body = {"model": "gpt-x", "stream": True, "messages": messages, "tools": [{"function": {"name": "w__get_weather"}}]}
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    request = Request(f"{url}/chat/completions", json.dumps(body).encode(), headers)
    with build_opener(ProxyHandler({})).open(request) as answer:
        read: bytes = answer.read()
        return read


def started(program: Program, *words: str) -> tuple[subprocess.Popen[str], str]:
    """Start the proxy as a separate program. Return it and the base URL that it prints."""
    proxy = subprocess.Popen(
        [*COMMAND, "record", "--listen", "127.0.0.1:0", *words],
        cwd=program.folder,
        env=program.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert proxy.stderr is not None
    line = proxy.stderr.readline()
    assert "give the program the base URL " in line, line
    return proxy, line.split("base URL ")[1].split(";")[0]


async def called_through_tee(program: Program) -> str:
    """Call the tool with a client whose configuration has the tee. Return the tool's answer."""
    from mcp import Client, StdioServerParameters, stdio_client

    program.write("server.py", SERVER)
    words = [*COMMAND[1:], "record", "--server", "-o", "seen.jsonl", "--", sys.executable, "server.py"]
    parameters = StdioServerParameters(command=COMMAND[0], args=words, env=program.environment, cwd=str(program.folder))
    with (program.folder / "errors").open("w") as errors:
        async with Client(stdio_client(parameters, errlog=errors)) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["get_weather"]
            result = await client.call_tool("get_weather", {"city": "Oslo"})
    return str(getattr(result.content[0], "text", ""))


@pytest.mark.slow
def test_conversations_and_a_servers_log_become_a_suite_that_passes(program: Program) -> None:
    call = Call("w__get_weather", {"city": "Oslo"}, "call_1")
    with Server([said("openai", calls=[call]), said("openai", "It rains.")]) as server:
        proxy, url = started(
            program,
            *("--upstream", f"{server.url}/v1", "--output", "made.toml", "--recordings", "runs"),
            *("--server-log", "seen.jsonl"),
        )
        request: list[object] = [{"role": "user", "content": "The weather in Oslo?"}]
        assert b"w__get_weather" in ask(url, request)
        raw = asyncio.run(called_through_tee(program))
        assert raw == f"rain in Oslo, as {KEY} knows"
        function = {"name": call.tool, "arguments": call.text}
        answered: list[object] = [
            {"role": "assistant", "tool_calls": [{"id": call.id, "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": call.id, "content": "rain, in short"},
        ]
        assert b"rains" in ask(url, [*request, *answered])
    proxy.send_signal(signal.SIGINT)
    output, errors = proxy.communicate(timeout=60)
    assert proxy.returncode == 0, errors
    assert "conversation 1, openai gpt-x, request 1: w__get_weather, " in errors
    assert "1 of 1 call found in the servers' logs → their raw results" in output
    assert "seen.jsonl: 1 of 1 call matched" in output and "made.toml: 1 case" in output
    suite = (program.folder / "made.toml").read_text()
    assert '[grading]\nextra_calls = "allow_read_only"\n' in suite
    assert "rain in Oslo, as $RECORDED_KEY" in suite and "The weather in a city." in suite and "in short" not in suite
    log = (program.folder / "seen.jsonl").read_text()
    assert [json.loads(line)["seen"] for line in log.splitlines()] == ["start", "tools", "call"]
    runs = [file.read_text() for file in (program.folder / "runs").iterdir()]
    assert len(runs) == 1 and "rain, in short" in runs[0]
    assert not [*program.folder.glob("*.kept.jsonl")], "removed when all is written"
    assert not [text for text in (suite, log, *runs, output, errors) if KEY in text]
    assert "to standard error" in (program.folder / "errors").read_text()
    assert "1 valid suite (1 case)" in program.run("validate", "made.toml").stdout
    assert "1 run: 1 passed" in program.run("grade", "runs").stdout
    replayed = program.run("run", "made.toml", "--model", "replay:runs")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    refused = program.run("record", "--upstream", "openai", "--output", "made.toml")
    assert refused.returncode == 2 and "made.toml exists" in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_what_was_recorded_outlives_the_program_and_a_suite_that_cannot_be_written(
    program: Program, ending: signal.Signals
) -> None:
    kept = program.folder / "made.toml.kept.jsonl"
    call = Call("w__get_weather", {"city": f"Oslo {KEY}"}, "call_1")
    with Server([said("openai", calls=[call]), said("openai", "It rains."), said("openai", "Hello.")]) as server:
        upstream = ("--upstream", f"{server.url}/v1")
        proxy, url = started(program, *upstream, "--output", "made.toml", "--recordings", "runs")
        request: list[object] = [{"role": "user", "content": "The weather in Oslo?"}]
        ask(url, request)
        assert len(kept.read_bytes().splitlines()) == 1, "kept when the program has its answer"
        function = {"name": call.tool, "arguments": call.text}
        request += [
            {"role": "assistant", "tool_calls": [{"id": call.id, "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": call.id, "content": "rain"},
        ]
        ask(url, request)
        ask(url, [{"role": "user", "content": "Hello?"}])
    program.write("made.toml", "in the way")
    proxy.send_signal(ending)
    _, errors = proxy.communicate(timeout=60)
    assert proxy.returncode == (-9 if ending == signal.SIGKILL else 2)
    if ending == signal.SIGINT:
        assert "made.toml was not saved: the file already exists; what was recorded is kept in made" in errors
    (program.folder / "made.toml").unlink()
    for run in (program.folder / "runs").glob("*"):
        run.unlink()
    text = kept.read_text()
    assert KEY not in text and text.count("The weather in Oslo?") == 1, "what is repeated is kept once"
    refused = program.run("record", *upstream, "--output", "made.toml")
    assert refused.returncode == 2 and "workbench record --kept made.toml.kept.jsonl --output" in refused.stderr
    with kept.open("a") as file:
        file.write(text[:50])  # a line that was broken off
    made = program.run("record", "--kept", kept.name, "--output", "made.toml", "--recordings", "runs")
    assert made.returncode == 0, made.stderr
    assert "made.toml: 2 cases" in made.stdout and "made.toml.kept.jsonl can be removed now" in made.stdout
    graded = program.run("grade", "runs")
    assert "2 runs: 2 passed" in graded.stdout, graded.stdout
    kept.write_text('{"a": 1}\n')
    broken = program.run("record", "--kept", kept.name, "--output", "other.toml")
    assert broken.returncode == 2 and "line 1: not a line that `workbench record` wrote" in broken.stderr


def test_a_tee_passes_every_byte_the_exit_code_and_signals(program: Program) -> None:
    echo = "import sys,os; d=sys.stdin.buffer.read(); os.write(1, d[::-1]); sys.stderr.write('err'); sys.exit(7)"
    words = ["record", "--server", "-o", "seen.jsonl", "--", sys.executable, "-c"]
    tee, forked_tee = [*COMMAND, *words], [*forked_command(), *words]
    data = bytes(range(256)) * 1000 + b'\n{"jsonrpc": "2.0"}\n[1]\n"'
    done = subprocess.run(
        [*forked_tee, echo], input=data, capture_output=True, cwd=program.folder, env=program.environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, data[::-1], b"err")
    waits = "import signal,sys; signal.signal(15, lambda *_: sys.exit(9)); print('ready', flush=True); signal.pause()"
    with subprocess.Popen(
        [*tee, waits], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=program.folder, env=program.environment
    ) as waiting:
        assert waiting.stdout is not None and waiting.stdout.readline() == b"ready\n"
        os.kill(waiting.pid, signal.SIGTERM)
        assert waiting.wait(30) == 9
    missing = subprocess.run(
        [*forked_tee[:-2], "no-such-server"], capture_output=True, cwd=program.folder, env=program.environment
    )
    assert missing.returncode == 127 and b"no-such-server cannot be started" in missing.stderr and not missing.stdout


@pytest.mark.slow
def test_keys_among_the_words_of_the_servers_command_are_not_written_down(program: Program) -> None:
    answers = "for line in sys.stdin: print(json.dumps({'id': json.loads(line)['id'], 'result': sys.argv}), flush=True)"
    given = ["--token", "correcthorse", "--api-key=battery9", "postgres://a:s3cret9@db/x", f"ghp_{'aB3' * 12}", "Oslo"]
    tee = [*forked_command(), "record", "--server", "-o", "seen.jsonl", "--", sys.executable, "-c"]
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {}}}
    done = subprocess.run(
        [*tee, f"import sys,json\n{answers}", *given],
        input=json.dumps(asked) + "\n",
        capture_output=True,
        text=True,
        cwd=program.folder,
        env=program.environment,
    )
    assert json.loads(done.stdout)["result"][1:] == given
    call = json.loads((program.folder / "seen.jsonl").read_text().splitlines()[-1])
    key = "$RECORDED_KEY"
    assert call["result"][1:] == ["--token", key, f"--api-key={key}", f"postgres://a:{key}@db/x", key, "Oslo"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--output", "s.toml"], "--upstream is missing"),
        (["--upstream", "openai"], "nothing would be written"),
        (["--upstream", "openai", "--output", "s.toml", "--listen", "0.0.0.0:80"], "on this machine only"),
        (["--server", "-o", "x"], "--server needs a command and a file"),
        (["-o", "x", "--", "cat"], "a command needs --server"),
    ],
)
def test_what_cannot_be_is_refused(program: Program, words: list[str], says: str) -> None:
    done = program.run("record", *words)
    assert done.returncode == 2 and says in done.stderr
    assert not (program.folder / "s.toml").exists()
