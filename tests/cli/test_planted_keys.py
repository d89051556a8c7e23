"""Keys that were planted in the environment and in `.env` are found in nothing that leaves the program, although the
endpoints tell all they know."""

from __future__ import annotations

from dataclasses import replace

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.history.unpacking import texts_in
from tests.providers.server import Answer, Call, Request, Server, document, said

SETTINGS = """
[models.local]
provider = "openai"
base_url = "URL/v1"
api_key_env = "KEY_VARIABLE"
"""

SERVED = """
format = 1
name = "Served"
[[servers]]
name = "hosted"
url = "URL/mcp"
headers = { Authorization = "Bearer $HEADER_VARIABLE" }
[[cases]]
name = "Served"
user = "Do it."
expect_no_calls = true
"""
LEAKY = """
format = 1
name = "Leaky"
servers = [{ name = "leaky", command = ["python", "leaky.py"], env = { TOLD = "$DOTENV_PASSWORD" } }]
[[cases]]
name = "Leaky"
user = "Do it."
expect_no_calls = true
"""
LEAKY_SERVER = "import os, sys\nsys.stderr.write(os.environ['TOLD'] + '\\n')\nprint(os.environ['TOLD'])\nsys.exit(1)\n"
PLANTED = {
    "KEY_VARIABLE": "planted-key-4711",
    "DOTENV_PASSWORD": "planted-dotenv-0815",
    "HEADER_VARIABLE": "planted-h-42",
}


def _indiscreet(request: Request) -> Answer:
    """Says all it knows: the key it was sent, and what no endpoint should ever have seen."""
    known = f"{request.headers.get('authorization')} {PLANTED['DOTENV_PASSWORD']}"
    if request.path == "/mcp" or b"refuse" in request.body:
        return document({"error": {"message": f"not you: {known}"}}, 401)
    if len(request.json["messages"]) > 1:
        return said("openai", text=f"I was told {known}.").in_pieces_of(3)
    call = Call("get_weather", {"city": known, known: [known]})
    return said("openai", text=f"My key is {known}!", calls=[call]).in_pieces_of(5)


def test_planted_keys_are_found_nowhere(program: Program) -> None:
    program = replace(program, variables={name: PLANTED[name] for name in ("KEY_VARIABLE", "HEADER_VARIABLE")})
    program.write("suites/.env", f"DOTENV_PASSWORD={PLANTED['DOTENV_PASSWORD']}\n")
    refused = '[[cases]]\nname = "Refused"\nuser = "refuse"\nexpect_no_calls = true\n'
    program.write("suites/weather.toml", WEATHER.replace("[[tools]]", 'models = ["local"]\n[[tools]]', 1) + refused)
    program.write("suites/leaky.toml", LEAKY)
    program.write("suites/leaky.py", LEAKY_SERVER)
    with Server(_indiscreet) as server:
        program.write("suites/served.toml", SERVED.replace("URL", server.url))
        program.write("suites/workbench.toml", SETTINGS.replace("URL", server.url))
        out = []
        for words in (
            ["--verbose", "--record", "recordings", "--output", "report.txt"],
            ["--format", "json", "--output", "report.json"],
            ["--format", "jsonl"],
        ):
            done = program.run("run", "suites", "--trust", *words)
            assert done.returncode == 3, done.stderr
            out.append(done.stdout + done.stderr)
            assert "$KEY_VARIABLE" in out[-1]
        checked = program.run("models", "suites", "--check", "--trust")
        out.append(checked.stdout + checked.stderr)
        sent = {request.headers.get("authorization") for request in (*server.requests, *server.listings)}
        assert {f"Bearer {PLANTED[name]}" for name in program.variables} <= sent
    (program.folder / "suites" / ".env").unlink()
    written = {file: file.read_bytes() for file in program.folder.rglob("*") if file.is_file()}
    kept = {file.relative_to(program.folder).parts[0] for file in written}
    assert {"recordings", "report.txt", "report.json", "state"} <= kept
    (history,) = [file for file in written if file.suffix == ".sqlite3"]
    for text in (*(text.encode() for text in (*out, *texts_in(history))), *written.values()):
        assert not [secret for secret in PLANTED.values() if secret.encode() in text]
