"""Exactly what the user approved on the screen happens, even if files were changed meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Dialogue, Program
from tests.providers.server import Server, said
from tests.tools.conftest import SERVERS

APPROVED, LATER = "approved-key-4711", "later-key-0815"

SUITE = """
format = 1
name = "Approved"
models = ["local"]
MODULE
[[servers]]
name = "notes"
command = ["python", "notes.py", "approved"]
env = { TOKEN = "$TOKEN" }

[[cases]]
name = "Talk"
user = "Say rain."
response_contains = ["rain"]
"""

NOTES = f"""
import os, sys
from pathlib import Path
sys.path.append({str(SERVERS)!r})
from plain import PlainServer

Path("started").write_text(f"{{sys.argv[1]}} {{os.environ['TOKEN']}}")
server = PlainServer("notes")

@server.tool()
def note() -> str:
    return "noted"

server.run()
"""

CHECKED = """
format = 1
name = "Checked"

[[tools]]
name = "look"

[[cases]]
name = "Look"
user = "Look at Oslo."
response = { python = "rules:fine" }
"""


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    def answer(_request: object) -> object:
        return said("openai", text="It will rain.")

    with Server(answer) as approved, Server(answer) as other:  # type: ignore[arg-type]
        yield approved, other


def settings(server: Server) -> str:
    return f'[models.local]\nprovider = "openai"\nbase_url = "{server.url}/v1"\napi_key_env = "KEY"\n'


def on_terminal(program: Program, *words: str) -> Dialogue:
    """Start the program, up to its question."""
    dialogue = program.ask(*words)
    dialogue.wait_for("[yes/no")
    return dialogue


def answered_yes(dialogue: Dialogue) -> str:
    dialogue.answer("yes")
    return dialogue.end()


def write_all(program: Program, server: Server, key: str, word: str) -> None:
    program.write("workbench.toml", settings(server))
    program.write(".env", f"KEY={key}\nTOKEN={key}\n")
    program.write("suite.toml", SUITE.replace("MODULE", "").replace('"approved"', f'"{word}"'))


def test_nothing_that_is_rewritten_while_the_question_stands_is_used(
    program: Program, servers: tuple[Server, Server]
) -> None:
    approved, other = servers
    program.write("notes.py", NOTES)
    write_all(program, approved, APPROVED, "approved")
    dialogue = on_terminal(program, "run", "suite.toml")
    write_all(program, other, LATER, "later")
    shown = answered_yes(dialogue)
    assert dialogue.wait() == 0, shown
    assert other.requests == []
    assert [request.headers["authorization"] for request in approved.requests] == [f"Bearer {APPROVED}"]
    assert (program.folder / "started").read_text() == f"approved {APPROVED}"
    # Rewritten content needs approval when it is run.
    done = program.run("run", "suite.toml")
    assert (done.returncode, other.requests) == (2, [])


def test_a_call_by_hand_uses_what_was_approved(program: Program, servers: tuple[Server, Server]) -> None:
    program.write("notes.py", NOTES)
    write_all(program, servers[0], APPROVED, "approved")
    dialogue = on_terminal(program, "tools", "suite.toml", "--call", "note")
    write_all(program, servers[1], LATER, "later")
    assert "noted" in answered_yes(dialogue)
    assert (program.folder / "started").read_text() == f"approved {APPROVED}"


def test_checked_endpoints_are_those_that_were_shown(program: Program, servers: tuple[Server, Server]) -> None:
    approved, other = servers
    write_all(program, approved, APPROVED, "approved")
    dialogue = on_terminal(program, "models", "--check")
    write_all(program, other, LATER, "later")
    answered_yes(dialogue)
    assert (other.requests, other.listings) == ([], [])
    assert APPROVED in json.dumps([dict(request.headers) for request in (*approved.listings, *approved.requests)])


@pytest.mark.parametrize("command", [("run", "suite.toml"), ("grade", "runs"), ("grade", "1")])
def test_code_that_changes_while_the_question_stands_is_not_imported(
    program: Program, command: tuple[str, ...]
) -> None:
    program.write("suite.toml", CHECKED)
    rules = program.write("rules.py", "def fine(value):\n    return True\n")
    if command[0] != "run":
        program.run("run", "suite.toml", "--trust", "--record", "runs")
        if command[1] == "runs":  # the functions of a recording are looked for beside it
            rules = program.write("runs/rules.py", rules.read_text())
    dialogue = on_terminal(program, *command)
    rules.write_text(f"from pathlib import Path\nPath({str(program.folder / 'ran')!r}).touch()\n{rules.read_text()}")
    shown = answered_yes(dialogue)
    assert "has changed since it was approved and is not imported" in " ".join(shown.split())
    assert not Path(program.folder / "ran").exists()
    assert dialogue.wait() == 3
