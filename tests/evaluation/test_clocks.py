"""The clock of a case: sent to the model, stored in the run, and the reference for dates in checks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

import workbench
from tests.show.html_page import Page, elements_of
from workbench.checks.clock import fixed_clock
from workbench.cli.main import main
from workbench.config.secrets import Secrets
from workbench.exchange.exporters.exported import exported_run
from workbench.grading.status import Status
from workbench.history.history import History
from workbench.show.views.run_items import MessageItem
from workbench.show.views.run_view import RunView
from workbench.suite.suite_file import parse_suite

FIXED = "2026-06-09T10:00 Europe/Berlin"
TOLD = "The current time is Tuesday, 2026-06-09T10:00+02:00 (Europe/Berlin)."

HEAD = f"""
format = 1
name = "Dates"
system = "Be brief."
clock = "{FIXED}"
[[tools]]
name = "remind"
parameters = {{ type = "object", properties = {{ due = {{ type = "string" }} }} }}
"""

CASE = """
[[cases]]
name = "tomorrow"
user = "Remind me tomorrow at 15:00."
ordered = [{ tool = "remind", args = { due = { datetime = "today+1d 15:00" } } }]
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder. The program stores its data below it."""
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Reminding:
    """A model that calls `remind` once with a date, and records its system prompts."""

    def __init__(self, due: str) -> None:
        self.due = due
        self.prompts: list[str | None] = []

    async def __call__(self, request: workbench.AgentRequest) -> workbench.AgentReply:
        self.prompts.append(request.system)
        if len(self.prompts) == 1:
            return workbench.call("remind", due=self.due)
        return "Done."


def ran(text: str, due: str = "2026-06-10T15:00") -> tuple[list[str | None], workbench.RunResult]:
    """Run the only case of a suite, and return its system prompts and its result."""
    Path("s.toml").write_text(text, encoding="utf-8")
    agent = Reminding(due)
    report = workbench.evaluate("s.toml", model=workbench.Agent(agent, name="agent"), history=True)
    return agent.prompts, report.results[0]


@pytest.mark.parametrize(
    ("due", "status"),
    [
        ("2026-06-10T15:00", Status.PASSED),
        ("2026-06-10T13:00Z", Status.PASSED),
        ("2026-06-10 15:05", Status.PASSED),
        ("2026-06-10T15:00Z", Status.FAILED),
        ("2026-06-09T15:00", Status.FAILED),
    ],
)
def test_a_fixed_clock_is_told_and_decides_what_tomorrow_is(due: str, status: Status) -> None:
    prompts, result = ran(HEAD + CASE, due)
    assert prompts == [f"Be brief.\n\n{TOLD}"] * 2
    assert result.status == status
    start = result.trajectory.start
    assert start is not None and start.clock == "2026-06-09T10:00+02:00 Europe/Berlin"


def test_a_clock_without_a_time_has_that_of_the_start_and_stands_alone_without_a_text() -> None:
    text = HEAD.replace('system = "Be brief."\n', "").replace(FIXED, "UTC")
    due = (datetime.now(UTC) + timedelta(days=1)).date().isoformat() + "T15:00"
    prompts, result = ran(text + CASE.replace("user =", 'clock = "Asia/Tokyo"\nuser ='), due)
    start = result.trajectory.start
    assert start is not None and start.clock is not None
    kept = fixed_clock(start.clock)
    assert kept is not None and kept.zone == "Asia/Tokyo"
    assert timedelta() <= datetime.now(UTC) - kept.at < timedelta(minutes=3)
    assert prompts[0] is not None and prompts[0].startswith("The current time is ") and "Asia/Tokyo" in prompts[0]


def test_a_run_is_graded_later_by_the_time_that_its_model_was_told(capsys: pytest.CaptureFixture[str]) -> None:
    _, result = ran(HEAD + CASE)
    assert result.status == Status.PASSED
    # The suite has another time now, but the run keeps its own.
    Path("s.toml").write_text((HEAD + CASE).replace(FIXED, "Europe/Berlin"), encoding="utf-8")
    assert main(["grade", "1"]) == 0
    assert "no grade changed" in capsys.readouterr().out
    with History(next(Path().rglob("history.sqlite3"))) as history:
        (row,) = history.each_run(1)
        recording = history.recording(row)
    run_view = RunView()
    for event in recording.events:
        run_view.add(event)
    shown = [item.text.text for item in run_view.items if isinstance(item, MessageItem) and item.role == "system"]
    assert shown == ["Be brief.", TOLD]
    assert exported_run(recording, Secrets()).conversation[0].message.content == f"Be brief.\n\n{TOLD}"


def test_the_offline_model_and_the_page_of_a_run() -> None:
    Path("s.toml").write_text(HEAD + CASE.replace("tomorrow at 15:00", "on 2026-06-10 at 15:00"), encoding="utf-8")
    assert main(["run", "s.toml", "--model", "offline", "--report", "page.html"]) == 0
    (run,) = Page(Path("page.html").read_text(encoding="utf-8")).records("runs")
    assert f"clock{TOLD}" in elements_of(run["view"], "system")


@contextmanager
def endpoint() -> Iterator[tuple[str, list[dict[str, object]]]]:
    """Serve the Chat Completions API. Yield the address and the received requests, each of which gets a text."""
    asked: list[dict[str, object]] = []

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            chunk = {"choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"}]}
            content = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answering)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        server.server_close()


def test_the_time_is_sent_over_http_in_the_system_message() -> None:
    Path("s.toml").write_text(
        HEAD + '[[cases]]\nname = "a"\nuser = "Hello"\nexpect_no_calls = true\n', encoding="utf-8"
    )
    with endpoint() as (url, asked):
        Path("workbench.toml").write_text(f'[models.local]\nprovider = "openai"\nmodel = "m"\nbase_url = "{url}"\n')
        report = workbench.evaluate("s.toml", model="local", approve=workbench.ALL)
    assert report.results[0].status == Status.PASSED, report.results[0].error
    (request,) = asked
    messages = request["messages"]
    assert isinstance(messages, list)
    assert messages[0]["content"] == f"Be brief.\n\n{TOLD}"


MOCKED = """
[[mocks]]
tool = "remind"
when = { due = { datetime = "today+1d 15:00" } }
result = "tomorrow"
[[mocks]]
tool = "remind"
result = "another day"
"""


def test_conditions_of_mocks_are_relative_to_the_clock_of_the_run() -> None:
    text = HEAD + MOCKED + CASE.replace("user =", 'clock = "2026-06-11T10:00 UTC"\nuser =')
    for due, answer in (("2026-06-12T15:00", "tomorrow"), ("2026-06-10T15:00", "another day")):
        (call,) = ran(text, due)[1].trajectory.calls
        assert call.result is not None and call.result.content == answer


def without_clock(text: str) -> str:
    return text.replace(f'clock = "{FIXED}"\n', "")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (CASE, "cases[0].ordered[0].args.due"),
        (CASE.replace("{ datetime", "{ any_of = [{ datetime").replace(':00" }', ':00" }] }'), "args.due.any_of[0]"),
        ('[[cases]]\nname = "a"\nuser = "b"\nresponse = { datetime = "now" }\n', "cases[0].response"),
        (MOCKED + CASE.replace("user =", 'clock = "UTC"\nuser ='), "mocks[0].when.due"),
    ],
)
def test_a_relative_date_needs_a_clock(text: str, place: str) -> None:
    assert parse_suite(HEAD + text, Path("s.toml")).problems == ()
    (problem,) = parse_suite(without_clock(HEAD) + text, Path("s.toml")).problems
    assert problem.severity == "error" and problem.where.endswith(place)
    word = "now" if "now" in text else "today"
    assert problem.message == f"`{word}` needs `clock`, which also tells the model the date"


def test_a_run_from_elsewhere_without_a_time_is_not_graded_by_the_present_one() -> None:
    made = [workbench.call("remind", due="2026-06-10T15:00")]

    def graded(text: str) -> workbench.Graded:
        Path("s.toml").write_text(text, encoding="utf-8")
        return workbench.grade(workbench.load("s.toml").cases[0], made, answer="Done.")

    open_end = graded((HEAD + CASE).replace(FIXED, "Europe/Berlin"))
    assert open_end.status == Status.ERROR
    assert (
        open_end.result.error == "remind.due: `today` needs the time of the run, which is unknown: write it in `clock`"
    )
    assert graded(HEAD + CASE).passed
