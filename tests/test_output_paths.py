"""No way out of the program passes secrets, ordinary words pass unchanged, and the table lists every way out.

A talkative endpoint and a talkative server repeat all planted secrets in every form, and the output of each way out is
searched for them. The server's own log proves that it received exactly the model's arguments."""

from __future__ import annotations

import ast
import asyncio
import base64
import gzip
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import pytest
from mcp import Client, StdioServerParameters

from tests.cli.forking import forked_command
from tests.cli.program import COMMAND, Program
from tests.history.unpacking import texts_in
from tests.integrations.sessions import session
from tests.output_paths import DOORS
from tests.providers.server import Answer, Call, Request, Server, document, said
from tests.remote.batches import TOKEN, ToldBatch
from tests.tools.conftest import SERVERS
from tests.tui.apps import Opened, conversation, opened
from workbench.authoring.accept import accept_run
from workbench.authoring.from_calls import case_with_expected_call, case_with_mock
from workbench.authoring.proposal import proposal_without_secrets, table_without_secrets
from workbench.config.folders import Folders
from workbench.config.secrets import Secrets
from workbench.exchange.exporters.forms import FORMS as EXPORTED
from workbench.remote.viewer import Connection
from workbench.suite.render import Table
from workbench.suite.suite_file import load_suite
from workbench.tools.answer import ToolAnswer
from workbench.trajectory.events import Event, JsonValue, TextDelta, ToolCall
from workbench.trajectory.fold import fold
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

ROOT = Path(__file__).parents[1] / "workbench"

KEY = "sk-planted-0123456789-abcdef"
LONG = 'pl+anted/"quoted"=ü?&value'
PEM = "-----BEGIN KEY-----\nplantedplantedplanted4711\n-----END KEY-----"
PHRASE = "planted horse battery staple"
ENVIRONMENT = {
    "KEY_VARIABLE": KEY,
    "HEADER_TOKEN": "planted-h-42",
    "DB_PASS": "correcthorse",
    "SHORT_PASS": "zz4",
    "NUMBER_SETTING": "47110815",
    "LONG_SECRET": LONG,
    "PEM_SETTING": PEM,
    "UNUSED_TOKEN": "planted-unused-0815",
    "UNUSED_GITHUB_PAT": "ghp_plantedplantedplanted",
    "SERVICE_JWT": "eyJplanted.eyJplanted.c2ln",
    "DATABASE_URL": "postgres://app:planted-url-pw@db.test/shop",
    "CACHE_URL": "redis://cache:swordfish@cache.test/0",
    "POSTGRES_PASSWORD": "postgres",
}
DOTENV = {"DOTENV_PASSWORD": "planted-dotenv-0815", "PLAIN_SETTING": PHRASE, "SORT_KEY": "postgres"}

BESIDE = ("xml", "md", "csv", "jsonl", "txt", "html")
"""The file extensions of the further reports."""

PLANTED = {
    "a key": KEY,
    "a header": "planted-h-42",
    "a plain password": "correcthorse",
    "a short password": "zz4",
    "a number": "47110815",
    "one with quotes": LONG,
    "the same in JSON": json.dumps(LONG)[1:-1],
    "the same percent-encoded": quote(LONG, safe=""),
    "base64": base64.b64encode(KEY.encode()).decode().rstrip("="),
    "base64 in the middle": base64.b64encode(b"x" + KEY.encode()).decode()[2:-2],
    "base64 further on": base64.urlsafe_b64encode(b"xy" + LONG.encode()).decode().rstrip("=")[3:-2],
    "several lines": "plantedplantedplanted4711",
    "one of a .env": "planted-dotenv-0815",
    "several words of a .env": PHRASE,
    "one that nothing uses": "planted-unused-0815",
    "one with a known beginning": "ghp_plantedplantedplanted",
    "a token": "eyJplanted.eyJplanted.c2ln",
    "a password in an address": "planted-url-pw",
    "a plain one in an address": "cache:swordfish@",
}
MIXED = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5"
FORMS = {
    "a password in an address that is said": "postgres://bob:said-pw@db.test/shop",
    "a GitHub token": f"ghp_{MIXED}",
    "an OpenAI key": f"sk-proj-{MIXED}",
    "a JWT": f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0NyJ9.{MIXED}",
    "a private key": f"-----BEGIN PRIVATE KEY-----\n{MIXED}{MIXED}\n-----END PRIVATE KEY-----",
}
"""Values that are secret by their form alone. Nobody has them as a value."""
PLANTED |= FORMS | {"a password in an address that is said": "said-pw", "a private key": MIXED + MIXED}
IN_A_SUITE = "glpat-theUsersOwn4711aBcDe"
"""A token that the suite itself asks for and expects."""

UNNAMED = {"a plain password", "a short password", "a number", "several lines"}
"""Values that are secret only because a suite passes them to a server."""
SAID = " ".join(
    [
        *(KEY, "planted-h-42", "correcthorse", "(zz4)", "47110815", LONG, quote(LONG, safe=""), PEM, PHRASE),
        *("planted-dotenv-0815", "planted-unused-0815", "ghp_plantedplantedplanted", "eyJplanted.eyJplanted.c2ln"),
        *("planted-url-pw", "redis://cache:swordfish@cache.test/0", base64.b64encode(KEY.encode()).decode()),
        base64.b64encode(b"x" + KEY.encode()).decode(),
        base64.urlsafe_b64encode(b"xy" + LONG.encode()).decode(),
        *FORMS.values(),
        json.dumps(json.dumps([LONG, *FORMS.values()])),
        IN_A_SUITE,
    ]
)

SETTINGS = """
[models.talkative]
provider = "openai"
base_url = "URL/v1"
api_key_env = "KEY_VARIABLE"
"""
SUITE = """
format = 1
name = "Talkative"
models = ["talkative"]
execute = true
[[servers]]
name = "shop"
command = ["python", "shop.py"]
env = { A = "$DB_PASS", B = "$SHORT_PASS", C = "$NUMBER_SETTING", D = "${LONG_SECRET}", E = "$PEM_SETTING", \
MODE = "postgres" }
[[cases]]
name = "Ordinary words"
user = "Query postgres with glpat-theUsersOwn4711aBcDe."
[[cases.ordered]]
tool = "query_postgres"
args = { database = "postgres", note = { present = true }, text = { present = true } }
[[cases]]
name = "Checked"
user = "Say all you know."
response_contains = ["I know"]
[[cases.ordered]]
tool = "query_postgres"
args = { database = { prefix = "postgres" }, text = { contains = "correcthorse" } }
[[cases]]
name = "Refused"
user = "refuse"
expect_no_calls = true
"""
SERVED = """
format = 1
name = "Served"
[[servers]]
name = "hosted"
url = "URL/mcp"
headers = { Authorization = "Bearer $HEADER_TOKEN" }
[[cases]]
name = "Served"
user = "Do it."
expect_no_calls = true
"""
SHOP = (
    f"""
import sys
sys.path.append({str(SERVERS)!r})
"""
    + """
import json
from plain import PlainServer, Tell

said = open("said.txt", encoding="utf-8").read()
sys.stderr.write(said[:40])
sys.stderr.flush()
sys.stderr.write(said[40:] + "\\n")
print(said)
server = PlainServer("shop")

def query_postgres(database: str, text: str, note: dict, tell: Tell) -> str:
    with open("called.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps([database, text, note]) + "\\n")
    tell(1, 2, f"knows {said}")
    return f"from {database}: {said}"

query_postgres.__doc__ = f"Knows {said}"
server.tool(readOnlyHint=True)(query_postgres)
server.run()
"""
)
NOTE = {"text": SAID, SAID: [SAID, 47110815, {"deep": SAID}]}


def _talkative(request: Request) -> Answer:
    """Says all it knows, in an error too."""
    if request.path != "/v1/chat/completions" or b"refuse" in request.body:
        return document({"error": {"message": f"not you: {SAID}"}}, 401)
    if len(request.json["messages"]) > 1:
        return said("openai", text=f"I know {SAID}.")
    return said("openai", calls=[Call("query_postgres", {"database": "postgres", "text": SAID, "note": NOTE})])


@dataclass
class Left:
    """What has left by each door."""

    texts: dict[str, list[str]] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)
    called: list[list[object]] = field(default_factory=list)
    out: dict[str, str] = field(default_factory=dict)

    def add(self, door: str, *texts: str) -> None:
        self.texts.setdefault(door, []).extend(texts)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    """One session of all commands before a talkative endpoint and server."""
    program = Program(tmp_path_factory.mktemp("doors"), ENVIRONMENT)
    found = Left()

    def run(name: str, *words: str, codes: tuple[int, ...] = (0,)) -> None:
        done = program.run(*words)
        assert done.returncode in codes, (name, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        found.out[name] = done.stdout + done.stderr
        found.add("terminal", found.out[name])

    program.write("suites/.env", "".join(f'{name}="{value}"\n' for name, value in DOTENV.items()))
    program.write("suites/talkative.toml", SUITE)
    program.write("suites/shop.py", SHOP)
    program.write("suites/said.txt", SAID)
    with Server(_talkative) as server:
        program.write("suites/workbench.toml", SETTINGS.replace("URL", server.url))
        program.write("suites/served.toml", SERVED.replace("URL", server.url))
        suite = "suites/talkative.toml"
        verbose = ("--verbose", "--record", "recordings", "--output", "report.txt")
        run("text", "run", suite, "--trust", *verbose, codes=(3,))
        run("plain", "run", suite, "--trust", codes=(3,))
        beside = [word for form in BESIDE for word in ("--report", f"report.{form}")]
        run("json", "run", suite, "--trust", "--format", "json", "--output", "report.json", *beside, codes=(3,))
        run("json lines", "run", suite, "--trust", "--format", "jsonl", codes=(3,))
        run("served", "run", "suites/served.toml", "--trust", codes=(3,))
        run("models", "models", "suites", "--check", "--trust", codes=(0, 3))
        lint = ("--report", "report.sarif", "--report", "report.codequality.json")
        run("tools", "tools", suite, "--trust", "--lint", *lint, codes=(0, 1))
        arguments = json.dumps({"database": "postgres", "text": SAID, "note": NOTE})
        run("call", "tools", suite, "--trust", "--call", "query_postgres", "--args", arguments)
        call = ("tools", suite, "--trust", "--call", "query_postgres", "--args", arguments, "--format", "json")
        run("call as JSON", *call)
        found.sent = [request.body.decode() for request in server.requests]
        _record_in_front_of(server.url, program)
        found.add("Python", _said_by_pytest(program), asyncio.run(_said_over_mcp(program)))
    run("validate", "validate", "suites", "--audit")
    run("batch", "history", "show", "1", *[word.replace("report.", "report.shown.") for word in beside], codes=(0, 2))
    run("changes", "history", "diff", "1", "2", "--report", "report.changes.html", codes=(0, 2))
    run("list", "history", "list", "--format", "json")
    for form in ("text", "json"):
        run(f"run shown as {form}", "history", "show", "1", "--run", "2", "--format", form)
    run("history regraded", "grade", "1", "--trust", codes=(0, 3))
    run("regraded", "grade", "recordings", "--trust", codes=(0, 1, 3))
    run("exported", "export", "1", "-o", "exported")
    run("report", "export", "1", "-o", "exported", "--format", "json", codes=(0, 1, 3))
    for form in EXPORTED:
        run(f"exported as {form}", "export", "1", "-o", "exported", "--format", form)
    run("recordings exported", "export", "recordings", "-o", "exported", "--format", "messages")
    seen = "suites/seen.toml"
    recorded = program.run("record", "--kept", f"{seen}.kept.jsonl", "-o", seen, "--recordings", "seen")
    assert recorded.returncode == 0, recorded.stderr
    found.add("kept conversations", recorded.stdout, recorded.stderr)
    if find_spec("opentelemetry.proto") is not None:
        with Server([Answer((b"",), 200, {}, "length")]) as collector:
            run("sent", "export", "1", "--otlp", collector.url, "--otlp-content")
            found.add("collectors", *(request.body.decode(errors="replace") for request in collector.requests))
    found.called = [json.loads(line) for line in (program.folder / "suites/called.jsonl").read_text().splitlines()]
    places = {
        "report files": [
            *program.folder.glob("report.*"),
            *(file for file in program.folder.glob("exported/*") if not file.name.endswith(".run.jsonl")),
        ],
        "logs of tees": [*program.folder.glob("tee.jsonl")],
        "kept conversations": [*program.folder.glob("suites/seen*"), *program.folder.glob("seen/*")],
        "recordings": [*program.folder.glob("recordings/*"), *program.folder.glob("exported/*.run.jsonl")],
        "program log": [*program.folder.rglob("workbench.log")],
        "server logs": [file for file in program.folder.rglob("*.log") if file.name != "workbench.log"],
        "audit log": [*program.folder.rglob("executions*")],
        "remembered tools": [*program.folder.rglob("listings/*")],
    }
    for door, files in places.items():
        found.add(door, *(text for file in files for text in _texts_of(file)))
    assert {file.suffix[1:] for file in places["report files"]} >= {*BESIDE, "json", "sarif"}
    (history,) = program.folder.rglob("*.sqlite3")
    found.add("history", *texts_in(history))
    yield found


def _record_in_front_of(url: str, program: Program) -> None:
    """Run a tee before the server, then a proxy before the endpoint. Both see the programs' output, and are killed."""
    asked: list[JsonValue] = [
        {"method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}},
        {"method": "tools/list"},
        {"method": "tools/call", "params": {"name": "query_postgres", "arguments": {"database": SAID, "text": SAID}}},
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": at, **each}) for at, each in enumerate(asked) if isinstance(each, dict)
    ]
    words = [*forked_command(), "record", "--server", "-o", "../tee.jsonl", "--", sys.executable, "shop.py"]
    subprocess.run(
        words,
        cwd=program.folder / "suites",
        env=program.environment,
        input="\n".join([*lines, ""]).encode(),
        capture_output=True,
        timeout=60,
    )
    words = [*COMMAND, "record", "--listen", "127.0.0.1:0", "--upstream", f"{url}/v1"]
    words += ["-o", "suites/seen.toml"]
    with subprocess.Popen(
        words, cwd=program.folder, env=program.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as proxy:
        assert proxy.stderr is not None
        address = proxy.stderr.readline().split("base URL ")[1].split(";")[0]
        body = {"model": "m", "messages": [{"role": "user", "content": SAID}], "tools": []}
        headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
        sent = urllib.request.Request(f"{address}/chat/completions", json.dumps(body).encode(), headers)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sent) as answer:
            assert b"planted" in answer.read()
        proxy.kill()


def _said_by_pytest(program: Program) -> str:
    words = ("--workbench", "--workbench-trust", "-p", "no:cacheprovider", "talkative.toml")
    done = session(program.folder / "suites", *words, environment=program.environment)
    assert done.code == 1, done.output
    return done.output


async def _said_over_mcp(program: Program) -> str:
    command, *words = forked_command()
    words += ["mcp", "talkative.toml", "--model", "talkative", "--trust"]
    folder = str(program.folder / "suites")
    server = StdioServerParameters(command=command, args=words, cwd=folder, env=program.environment)
    async with Client(server) as client:
        ran = await client.call_tool("run", {"model": "talkative"})
        assert not ran.is_error, ran
        why = await client.call_tool("failures", {})
        report = await client.read_resource(ran.structured_content["report"])
        return f"{ran}{why}{report}"


def test_no_secret_is_told_to_viewers_of_a_batch(tmp_path: Path) -> None:
    suite = _written(tmp_path / "home.toml", APP_SUITE)
    folders = Folders(*(tmp_path / name for name in ("state", "log", "config", "data")))
    said = " ".join([TOKEN, *FORMS.values()])
    batch = ToldBatch(
        folders, tmp_path / "h.sqlite3", suite, lambda run: conversation(run, [("set_lights", {said: [said]})], said)
    )
    with closing(batch), Connection(batch.telling.known, "watch") as viewer:
        told = [viewer.receive()]
        batch.go(0, slice(None))
        batch.finish(0)
        while "done" not in told[-1]:
            told.append(viewer.receive())
    text = json.dumps(told, ensure_ascii=False)
    assert "$TOKEN" in text
    assert "$OPENAI_KEY" in text
    assert not [name for name, secret in PLANTED.items() if name in FORMS and secret in text]


@pytest.mark.parametrize("door", ["logs of tees", "kept conversations"])
def test_no_secret_is_kept_of_what_programs_say(left: Left, door: str) -> None:
    """No suite names a secret here. The values are secret because they were sent as a key, or by the names of
    variables."""
    assert door in {each.name for each in DOORS}
    texts = left.texts[door]
    assert any("$DOTENV_PASSWORD" in text for text in texts), "something passed it that had to be redacted"
    assert {name for name, secret in PLANTED.items() if any(secret in text for text in texts)} == UNNAMED


@pytest.mark.parametrize(
    "door",
    [
        *("terminal", "report files", "recordings", "history", "server logs", "audit log", "remembered tools"),
        *("collectors", "Python"),
    ],
)
def test_no_secret_leaves_by_a_door_of_the_command_line(left: Left, door: str) -> None:
    assert door in {each.name for each in DOORS}
    if door == "collectors":
        pytest.importorskip("opentelemetry.proto", reason="the extra otlp")
    texts = left.texts[door]
    assert any("$DB_PASS" in text for text in texts), "something passed it that had to be redacted"
    leaked = [
        (name, text[max(text.index(secret) - 60, 0) : text.index(secret) + 60])
        for name, secret in PLANTED.items()
        for text in texts
        if secret in text
    ]
    assert not leaked


def test_arguments_arrive_byte_for_byte_and_ordinary_words_change_nothing(left: Left) -> None:
    assert left.called == [["postgres", SAID, NOTE]] * len(left.called)
    assert len(left.called) == 14
    answers = [json.loads(body)["messages"][-1]["content"] for body in left.sent if b'"tool"' in body.encode()]
    assert f"from postgres: {SAID}" in answers
    assert "query_postgres" in left.out["text"]
    assert "✓ passed" in left.out["plain"]
    report = json.loads(next(text for text in left.texts["report files"] if text.startswith('{\n"report"')))
    assert [run["status"] for run in report["runs"]] == ["passed", "passed", "error"]


def test_a_stored_run_with_a_checked_secret_keeps_its_verdict_and_says_why(left: Left) -> None:
    unmoved = {"history regraded": "no grade changed", "regraded": "no grade differs from the recorded one"}
    for which, words in unmoved.items():
        assert "cannot be regraded and keeps its verdict: the argument 'text' of call 1" in left.out[which]
        assert words in left.out[which]


APP_SUITE = """
format = 1
name = "Home"
[[tools]]
name = "set_lights"
[[cases]]
name = "Lights"
user = "Use correcthorse."
[[cases.ordered]]
tool = "set_lights"
args = { room = "hall", token = "planted-dotenv-0815" }
"""


async def test_no_secret_is_drawn_copied_or_put_into_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run itself is unchanged, so it is graded by the model's real output."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home.toml").write_text(APP_SUITE, encoding="utf-8")
    (tmp_path / ".env").write_text("DOTENV_PASSWORD=planted-dotenv-0815\n", encoding="utf-8")
    variables = {**ENVIRONMENT, "DB_PASSWORD": "correct4horse"}
    secrets = ("planted-dotenv-0815", "correct4horse", KEY, "planted-url-pw", FORMS["a GitHub token"])
    said = " ".join(secrets)
    arguments: dict[str, JsonValue] = {"room": "hall", "token": "planted-dotenv-0815", "more": [said], said: 1}
    left: dict[str, str] = {}

    def look(app: Opened, door: str) -> None:
        left[door] = " ".join(app.screen.split())

    async with opened(tmp_path, variables=variables, size=(200, 60)) as app:
        app.app.program.secrets.add("KEY_VARIABLE", KEY)
        (run,) = await app.run("r")
        happenings = conversation(run, [("set_lights", arguments)], "")
        pieces = [TextDelta(2, piece) for piece in (f"I know {said[:25]}", said[25:60], f"{said[60:]} too. ")]
        happenings[-3:-2] = pieces
        app.session.say(run, *happenings[:-3])
        await app.pilot.pause()
        look(app, "while it runs")
        app.session.say(run, *happenings[-3:], first=len(happenings) - 3)
        result = app.session.grade(run, fold(Event(run.run_id, at, 1.0, what) for at, what in enumerate(happenings)))
        app.session.end_batch()
        assert result.trajectory.calls[0].arguments == arguments
        await app.until(lambda: "too." in app.screen)
        look(app, "the run")
        assert "I know $DOTENV_PASSWORD $DB_PASSWORD $KEY_VARIABLE $DATABASE_URL" in left["the run"]
        assert "$GITHUB_TOKEN" in left["the run"]
        app.app.main.announce(f"A notice of {said}")
        app.app.main.sub_title = said
        await app.pilot.pause()
        look(app, "a notice")
        for door, keys in (("grades", "equals_sign"), ("the trajectory", "t")):
            await app.press(keys)
            look(app, door)
            await app.press("y")
            await app.pilot.pause()
            left[f"copied from {door}"] = app.app.clipboard
            await app.press("escape")
        app.app.copy(said, "it", app.app.main.announce)
        await app.until(lambda: "Copied it" in app.screen)
        left["copied"] = app.app.clipboard
        await app.press("ctrl+p", *"picture", "enter")
        await app.until(lambda: "Saved in" in " ".join(app.screen.split()))
        left |= {file.name: file.read_text(encoding="utf-8") for file in tmp_path.glob("workbench-*")}
        assert len([name for name in left if name.startswith("workbench-")]) == 2
        await app.press("2", "e")
        look(app, "the suite in its editor")
    leaked = [(door, secret) for door, text in left.items() for secret in secrets if secret in text]
    assert not leaked


def test_what_is_accepted_of_a_run_holds_no_secret(tmp_path: Path) -> None:
    suite = load_suite(_written(tmp_path / "home.toml", APP_SUITE.replace(', token = "planted-dotenv-0815"', "")))
    assert suite.suite is not None
    (case,) = suite.suite.cases
    secrets = Secrets()
    secrets.add_from_file("DOTENV_PASSWORD", "planted-dotenv-0815")
    call = ToolCall(
        "c", "set_lights", {"room": "hall", "token": "planted-dotenv-0815", "more": ["planted-dotenv-0815"]}
    )
    trajectory = Trajectory("run", rounds=(Round(1, calls=(CallRecord(call, 1),), stop_reason="tool calls"),))
    table: Table = {"name": "Lights", "user": "u", "ordered": [{"tool": "set_lights", "args": {"room": "hall"}}]}
    proposal = proposal_without_secrets(accept_run(case, table, trajectory, ()), secrets)
    present = {"present": True}
    assert proposal.applied(table)["ordered"] == [
        {"tool": "set_lights", "args": {"room": "hall", "token": present, "more": present}}
    ]
    expecting = case_with_expected_call(table, "set_lights", call.arguments)
    mocked = case_with_mock(expecting, "set_lights", call.arguments, ToolAnswer("knows planted-dotenv-0815"))
    cleaned = table_without_secrets(mocked, table, secrets)
    assert "planted-dotenv-0815" not in repr(cleaned)
    assert cleaned["mocks"][0]["when"] == {"room": "hall", "token": present, "more": present}  # type: ignore[index]
    assert cleaned["mocks"][0]["result"] == "knows $DOTENV_PASSWORD"  # type: ignore[index]
    assert table_without_secrets(expecting, expecting, secrets) is not None
    with pytest.raises(ValueError, match="contains a secret"):
        table_without_secrets(case_with_expected_call(table, "use_planted-dotenv-0815", {}), table, secrets)


def _written(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


_WRITES = {"write", "writelines", "write_text", "write_bytes", "write_atomically", "copy_to_clipboard", "print", "dump"}
_MAY_WRITE = _WRITES | {
    *("open", "fdopen", "mkstemp", "FileHandler", "StreamHandler", "run", "Popen"),
    *("execute", "executemany", "executescript"),
}
_OPENS_ANEW = ("O_WRONLY", "O_RDWR", "O_CREAT", "flags")
_SQL = ("INSERT", "UPDATE ", "REPLACE")


def _texts_of(file: Path) -> Iterator[str]:
    """Yield the text of a file, and the data packed in an HTML page."""
    text = unescape(file.read_text(encoding="utf-8"))
    pattern = r'<script type="application/octet-stream"[^>]*>(.*?)</script>'
    yield re.sub(pattern, "", text)  # what is packed may look like a short secret
    for packed in re.findall(pattern, text):
        yield gzip.decompress(base64.b64decode(packed)).decode()


def _writers() -> Iterator[str]:
    """Every function of the program that writes something, as the table names it."""
    for file in sorted(ROOT.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "Handler" not in text and not re.search(rf"\b({'|'.join(_MAY_WRITE)})\(", text):
            continue
        for names, node in _nodes(ast.parse(text), ()):
            if _is_handler(node) or (isinstance(node, ast.Call) and _writes(node)):
                yield f"{file.relative_to(ROOT).as_posix()}:{'.'.join(names)}"


def _nodes(tree: ast.AST, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], ast.AST]]:
    """Yield all nodes with the names of the functions and classes around them."""
    for node in ast.iter_child_nodes(tree):
        inner = names
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = (*names, node.name)
        yield inner if isinstance(node, ast.ClassDef) else names, node
        yield from _nodes(node, inner)


def _is_handler(node: ast.AST) -> bool:
    """Return whether a class is a handler of a log. Handlers of requests answer with text that has passed the ways
    out."""
    bases = [ast.unparse(base) for base in node.bases] if isinstance(node, ast.ClassDef) else []
    return any("Handler" in base and base != "web.RequestHandler" for base in bases)


def _writes(call: ast.Call) -> bool:
    match call.func:
        case ast.Name(id=last) | ast.Attribute(attr=last) if last not in _MAY_WRITE:
            return False  # writing each call out as text takes seconds
    called, text = ast.unparse(call.func), ast.unparse(call)
    name = called.rpartition(".")[2]
    if called in ("write", "command.write"):  # of `cli.redaction`, and what passes lines on to it
        return False
    if name in ("open", "fdopen") and called != "os.open":
        modes = [each.value for each in ast.walk(call) if isinstance(each, ast.Constant)]
        return any(isinstance(mode, str) and len(mode) < 4 and set(mode) & set("wxa+") for mode in modes)
    if name in ("execute", "executemany", "executescript"):
        return any(word in text.upper() for word in _SQL)
    return (
        name in _WRITES
        or name in ("mkstemp", "FileHandler", "StreamHandler")
        or (called == "os.open" and any(flag in text for flag in _OPENS_ANEW))
        or (called in ("subprocess.run", "subprocess.Popen") and "input=" in text)
    )


def test_every_way_out_is_a_door() -> None:
    """Whoever adds a way out names it in `tests/output_paths.py`, has it redact, and plants a secret before it."""
    named = [writer for door in DOORS for writer in door.writers]
    assert sorted(set(named)) == sorted(named)
    assert set(_writers()) == set(named)
