"""A small agent that speaks ACP over its standard streams, and does what the prompt scripts.

A prompt holds a JSON list of actions, each a list whose first word names it:

- `["say", TEXT]`, `["think", TEXT]`, `["plan", TEXT]`: a message, a thought, a plan;
- `["call", TOOL, ARGUMENTS]`: a call through the MCP server that has the tool, reported as agents do;
- `["together", [[TOOL, ARGUMENTS], …]]`: calls that are sent at once, before any is answered;
- `["describe"]`: says the names and descriptions of the tools;
- `["result"]`: says the text of the last result;
- `["forge", TOOL, ARGUMENTS, STATUS]`: a call that is reported and never sent;
- `["own", TITLE, ARGUMENTS, OUTPUT]`: a call of a tool of its own; `["ask", TITLE]` asks for the permission first;
- `["permit", TOOL, ARGUMENTS]`: asks for the permission to call a tool of a server, and calls it if it is given;
- `["raw", TEXT]`: a line as it is; `["update", {…}]`: a session update as it is; `["errors", BYTES]`,
  `["words", VARIABLE]`: standard error; `["tell", METHOD]`: a notification; `["ask for", METHOD]`: a request;
- `["crash", CODE]`, `["kill"]`, `["flood", MESSAGES]`, `["hang"]` until it is cancelled, which it notes in a file if it
  names one,
  `["stop", REASON]`, `["answer", {…}]` (further fields of the answer to the prompt), `["cost", USD]`;
- `["big", CHARACTERS]`: a long message; `["stranger"]`: says what the relay answers to a wrong token;
- `["env", NAME]`, `["cwd"]`, `["spawn", FILE]`: says a variable or its folder, starts a process that stays.

Options on the command line: `--no-list` lists no tools, `--login` demands a login, `--deaf` ignores SIGTERM,
cancelling and the end of its input, `--slow-start` never answers `initialize`, `--late` starts its servers only after
the session was opened, and `--gone` ends then. `1.3.0` or the like is its version.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

OPTIONS = sys.argv[1:]
OUT = threading.Lock()
CANCELLED = threading.Event()
LISTED = threading.Event()
ANSWERS: dict[Any, Any] = {}
ANSWERED = threading.Condition()


def send(**message: Any) -> None:
    with OUT:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def update(of: str, /, **what: Any) -> None:
    send(method="session/update", params={"sessionId": "s1", "update": {"sessionUpdate": of, **what}})


def ask(number: str, method: str, params: Any) -> Any:
    send(id=number, method=method, params=params)
    with ANSWERED:
        ANSWERED.wait_for(lambda: number in ANSWERS or CANCELLED.is_set())
        return ANSWERS.pop(number, None)


class Server:
    """A client of one MCP server."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.said = said
        self.name = said["name"]
        variables = {each["name"]: each["value"] for each in said["env"]}
        self.process = subprocess.Popen(
            [said["command"], *said["args"]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **variables},
            text=True,
        )
        self.number = 0
        self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t"}})
        self.write(method="notifications/initialized")
        self.tools: list[dict[str, Any]] = []
        if "--no-list" not in OPTIONS:
            LISTED.set()
            self.tools = self.request("tools/list", {})["tools"]

    def write(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout is not None
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise EOFError
            message = json.loads(line)
            if "id" in message:
                return message

    def begin(self, method: str, params: Any) -> int:
        self.number += 1
        self.write(id=self.number, method=method, params=params)
        return self.number

    def request(self, method: str, params: Any) -> Any:
        self.begin(method, params)
        message = self.read()
        return message.get("result", message.get("error"))


class Agent:
    def __init__(self, servers: list[Server]) -> None:
        self.servers = servers
        self.calls = 0
        self.result: Any = None
        self.answer: dict[str, Any] = {}
        self.started = threading.Event()
        self.stop = "end_turn"

    def start(self, servers: list[Any]) -> None:
        self.servers = [*map(Server, servers)]
        self.started.set()

    def server_of(self, tool: str) -> Server:
        for server in self.servers:
            if any(each["name"] == tool for each in server.tools):
                return server
        return self.servers[0]

    def reported(self, title: str, **what: Any) -> str:
        self.calls += 1
        update("tool_call", toolCallId=f"t{self.calls}", title=title, kind="other", status="pending", **what)
        return f"t{self.calls}"

    def call(self, tool: str, arguments: Any, number: str | None = None) -> None:
        server = self.server_of(tool)
        if number is None:
            number = self.reported(f"mcp__{server.name}__{tool}", rawInput={})
        update("tool_call_update", toolCallId=number, status="in_progress", rawInput=arguments)
        self.result = server.request("tools/call", {"name": tool, "arguments": arguments})
        update("tool_call_update", toolCallId=number, status="completed", rawOutput=self.text())

    def text(self) -> str:
        return "".join(block.get("text", "") for block in self.result.get("content", []))

    def together(self, calls: list[Any]) -> None:
        begun = []
        for tool, arguments in calls:
            server = self.server_of(tool)
            number = self.reported(f"{server.name}_{tool}", rawInput=arguments)
            server.begin("tools/call", {"name": tool, "arguments": arguments})
            begun.append((server, number))
        for server, number in begun:
            self.result = server.read()["result"]
            update("tool_call_update", toolCallId=number, status="completed")

    def stranger(self) -> None:
        """Request the tools with a token of another run."""
        relay = self.servers[0].said
        variables = {**os.environ, **{each["name"]: "a-guess" for each in relay["env"]}}
        asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        answer = subprocess.run(
            [relay["command"], *relay["args"]],
            input=f"{asked}\n",
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        said(answer.stdout or "no answer")

    def permission(self, title: str, **what: Any) -> bool:
        number = self.reported(title, **what)
        options = [
            {"optionId": "yes", "name": "Always", "kind": "allow_always"},
            {"optionId": "once", "name": "Once", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]
        # Some agents name the call by its id alone.
        params = {"sessionId": "s1", "toolCall": {"toolCallId": number}, "options": options}
        answer = ask(f"ask-{number}", "session/request_permission", params)
        outcome = (answer or {}).get("outcome", {})
        said(f"[{outcome.get('optionId', outcome.get('outcome'))}]")
        return bool(outcome.get("optionId") == "once")

    def act(self, action: list[Any]) -> None:
        name, *words = action
        match name:
            case "say":
                said(words[0])
            case "think":
                update("agent_thought_chunk", content={"type": "text", "text": words[0]})
            case "plan":
                update("plan", entries=[{"content": words[0], "status": "pending", "priority": "high"}])
            case "call":
                self.call(*words)
            case "together":
                self.together(words[0])
            case "describe":
                tools = [tool for server in self.servers for tool in server.tools]
                said(", ".join(": ".join(filter(None, [tool["name"], tool.get("description")])) for tool in tools))
            case "result":
                said(self.text())
            case "forge":
                tool, arguments, status = words
                number = self.reported(f"mcp__{self.server_of(tool).name}__{tool}", rawInput=arguments)
                update("tool_call_update", toolCallId=number, status=status, rawOutput="forged")
            case "own":
                title, arguments, output = words
                number = self.reported(title, rawInput=arguments)
                block = {"type": "content", "content": {"type": "text", "text": output}}
                update("tool_call_update", toolCallId=number, status="completed", content=[block])
            case "ask":
                self.permission(words[0])
            case "permit":
                tool, arguments = words
                server = self.server_of(tool)
                if self.permission(f"{tool} ({server.name} MCP Server)", rawInput=arguments):
                    self.call(tool, arguments, f"t{self.calls}")
            case "raw":
                with OUT:
                    sys.stdout.write(words[0] + "\n")
                    sys.stdout.flush()
            case "big":
                said("x" * words[0])
            case "stranger":
                self.stranger()
            case "update":
                send(method="session/update", params={"sessionId": "s1", "update": words[0]})
            case "errors":
                sys.stderr.write("e" * words[0] + "\nthe last words\n")
                sys.stderr.flush()
            case "words":
                sys.stderr.write(f"my key is {os.environ[words[0]]}\n")
                sys.stderr.flush()
            case "crash":
                sys.stderr.write("it fell over\n")
                sys.stderr.flush()
                os._exit(words[0])
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hang":
                CANCELLED.wait()
            case "flood":
                for step in range(words[0]):
                    update("plan", entries=[{"content": f"step {step}", "status": "pending"}])
            case "stop":
                self.stop = words[0]
            case "answer":
                self.answer = words[0]
            case "tell":
                send(method=words[0], params={})
            case "ask for":
                ask("asked", words[0], {})
            case "cost":
                update("usage_update", used=1, size=2, cost={"amount": words[0], "currency": "USD"})
            case "env":
                said(str(os.environ.get(words[0])))
            case "cwd":
                said(f"{Path.cwd()} has {sorted(each.name for each in Path.cwd().iterdir())}")
            case "spawn":
                child = subprocess.Popen(["sleep", "600"], start_new_session=True)
                Path(words[0]).write_text(f"{os.getpid()} {child.pid}", encoding="utf-8")

    def prompt(self, number: Any, text: str) -> None:
        actions = json.loads(text[text.index("[[") :])
        if not LISTED.is_set() and "--late" in OPTIONS:
            actions = [["say", "there are no tools yet"]]
        self.started.wait()
        for action in actions:
            if CANCELLED.is_set():
                break
            self.act(action)
        # The cancellation may come before the agent hangs.
        for name, *words in actions:
            if name == "hang" and words and CANCELLED.is_set():
                Path(words[0]).write_text("cancelled", encoding="utf-8")
        reason = "cancelled" if CANCELLED.is_set() else self.stop
        send(id=number, result={"stopReason": reason, **self.answer})


def said(text: str) -> None:
    update("agent_message_chunk", content={"type": "text", "text": text}, messageId="m1")


def main() -> None:
    if "--deaf" in OPTIONS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    agent: Agent | None = None
    for line in sys.stdin:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method")
        match method:
            case "initialize" if "--slow-start" in OPTIONS:
                sys.stderr.write("loading a model\n")
                sys.stderr.flush()
            case "initialize":
                capabilities = {"promptCapabilities": {"image": True}}
                version = next((word for word in OPTIONS if word[0].isdigit()), "1.2.3")
                info = {"name": "tests-agent", "version": version}
                result = {"protocolVersion": 1, "agentCapabilities": capabilities, "agentInfo": info}
                send(id=number, result=result)
            case "session/new" if "--login" in OPTIONS:
                send(id=number, error={"code": -32000, "message": "Authentication required"})
            case "session/new":
                agent = Agent([])
                if "--late" not in OPTIONS:
                    agent.start(message["params"]["mcpServers"])
                modes = [{"id": "default", "name": "Default"}, {"id": "plan", "name": "Plan"}]
                result = {"sessionId": "s1", "modes": {"currentModeId": "default", "availableModes": modes}}
                send(id=number, result=result)
                if "--late" in OPTIONS:
                    told = message["params"]["mcpServers"]
                    threading.Thread(target=agent.start, args=(told,), daemon=True).start()
                if "--gone" in OPTIONS:
                    os._exit(3)
            case "session/set_mode":
                send(id=number, result={})
            case "session/prompt":
                assert agent is not None
                text = "".join(block.get("text", "") for block in message["params"]["prompt"])
                threading.Thread(target=agent.prompt, args=(number, text), daemon=True).start()
            case "session/cancel" if "--deaf" not in OPTIONS:
                CANCELLED.set()
                with ANSWERED:
                    ANSWERED.notify_all()
            case None:
                with ANSWERED:
                    ANSWERS[number] = message.get("result")
                    ANSWERED.notify_all()
    while "--deaf" in OPTIONS:
        time.sleep(60)


if __name__ == "__main__":
    main()
