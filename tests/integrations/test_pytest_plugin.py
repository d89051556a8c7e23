"""Suites as tests of pytest: real sessions in a process of their own, in folders as users have them."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from importlib.metadata import entry_points
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from pathlib import Path

import pytest

import workbench
from tests.api.conftest import BROKEN, CLOCK
from tests.cli.by_chance import Booking, suite
from tests.integrations.sessions import session
from tests.providers.server import Answer, Call, Request, Server, base_url_of, error_document, said
from tests.sampled_rows import first_of, first_rows
from workbench.config.passed_variables import passed_variables
from workbench.integrations.pytest_plugin.fixtures import Settings
from workbench.integrations.pytest_plugin.tests import Batch, RemoteBatch, SuiteTest, VerdictServer
from workbench.suite.trust import TrustStore, needs_trust

GATED = CLOCK.replace('name = "Clock"', 'name = "Gated"\n\n[gate]\nmin_pass_rate = RATE', 1)

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8").partition("\n## pytest\n")[2]
ORDINARY = PAGE.partition("```python\n")[2].partition("```")[0]
"""The tests with fixtures that the page shows."""

SETTINGS = """

def test_settings(workbench):
    report = workbench.evaluate("clock.toml", cases=["small-talk"])
    print("models:", *report.totals_per_model)
    workbench.grade(workbench.load("clock.toml").case("small-talk"), answer="Fine.").assert_passed()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with suites, other TOML files, and ordinary tests."""
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "-p no:randomly --strict-markers"\n')
    (tmp_path / "other.toml").write_text('[tool.format]\nformat = "x"\n')
    (tmp_path / "clock.toml").write_text(CLOCK)
    (tmp_path / "test_agent.py").write_text(ORDINARY + SETTINGS)
    return tmp_path


def test_the_entry_point_is_installed() -> None:
    assert [each.value for each in entry_points(group="pytest11", name="workbench")] == [
        "workbench.integrations.pytest_plugin.entry"
    ]


@pytest.mark.slow
def test_without_the_option_nothing_is_collected_imported_or_written(tmp_path: Path) -> None:
    (tmp_path / "clock.toml").write_text(CLOCK)
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n"
        "def test_modules():\n"
        "    heavy = ('workbench', 'pydantic', 'aiohttp')\n"
        "    loaded = {name for name in sys.modules if name.partition('.')[0] in heavy}\n"
        "    assert loaded == {'workbench', 'workbench.integrations',\n"
        "                      'workbench.integrations.pytest_plugin',\n"
        "                      'workbench.integrations.pytest_plugin.entry'}, loaded\n"
    )
    ran = session(tmp_path, "-p", "no:cacheprovider", "-q", starts=True)
    assert ran.code == 0 and ran.outcomes == {"passed": 1}, ran.output
    assert "workbench" not in ran.output
    assert {path.name for path in tmp_path.iterdir()} <= {"clock.toml", "test_nothing.py", "__pycache__"}


@pytest.mark.parametrize(
    "workers",
    first_of([(), ("-n", "2"), ("-n", "2", "--dist", "loadfile")], 1),
    ids=["alone", "xdist", "files"],
)
def test_each_case_with_each_model_is_a_test(project: Path, workers: tuple[str, ...]) -> None:
    asked = ("--workbench", "--workbench-model", "offline", "--workbench-report", "report.json", "-rf")
    ran = session(project, *asked, "--junitxml", "junit.xml", *workers)
    assert ran.code == 1 and ran.outcomes == {"failed": 1, "passed": 4}, ran.output
    assert "quantity: 1 call expected, 0 made\n" in ran.output
    assert "missing call: get_time" in ran.output and "Traceback" not in ran.output
    assert "offline: pass rate 50.0% of 2 graded runs, mean score 0.50" in ran.output
    cases = ElementTree.parse(project / "junit.xml").iter("testcase")
    by_name = {case.attrib["name"]: case for case in cases}
    assert {"time-in-bergen[offline]", "small-talk[offline]", "test_agent", "test_one_case", "test_settings"} == set(
        by_name
    )
    bergen = by_name["time-in-bergen[offline]"]
    assert {each.attrib["name"]: each.attrib["value"] for each in bergen.iter("property")}["score"] == "0"
    assert bergen.find("failure") is not None
    assert [run["status"] for run in json.loads((project / "report.json").read_text())["runs"]] == ["failed", "passed"]


def test_a_list_of_models_has_full_names(project: Path) -> None:
    asked = ("--workbench", "--collect-only", "-q", "clock.toml", "--workbench-model")
    output = session(project, *asked, "openai:gpt-6-luna,offline,gpt-6.1-sol").output
    for name in ("openai:gpt-6-luna", "offline", "openai:gpt-6.1-sol"):
        assert f"small-talk[{name}]" in output, output
    assert "a model name is empty" in session(project, *asked, "offline,").output


@pytest.mark.slow
def test_suites_of_installed_packages_are_collected_only_by_name(project: Path) -> None:
    installed = project / "lib" / "site-packages" / "p"
    installed.mkdir(parents=True)
    (project / "clock.toml").rename(installed / "clock.toml")
    asked = ("--workbench", "--workbench-model", "offline", "--collect-only")
    whole = session(project, *asked)
    assert "small-talk" not in whole.output, whole.output
    assert f"installed packages not collected: {Path('lib', 'site-packages')}" in whole.output
    for named in ("lib/site-packages", "lib/site-packages/p/clock.toml"):
        assert "small-talk" in session(project, *asked, named).output


def test_other_tests_run_without_a_suite(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text("def test_other():\n    pass\n")
    ran = session(tmp_path, "--workbench", "--workbench-model", "offline", "-q")
    assert (ran.code, ran.outcomes) == (0, {"passed": 1}), ran.output


def test_tests_are_selected_by_id_tag_and_last_failure(project: Path) -> None:
    asked = ("--workbench", "--workbench-model", "offline", "-q")
    one = session(project, *asked, "clock.toml::small-talk[offline]")
    assert one.outcomes == {"passed": 1}, one.output
    tagged = session(project, *asked, "-k", "time and offline")
    assert tagged.outcomes == {"failed": 1, "deselected": 4}, tagged.output
    again = session(project, *asked, "--lf")
    assert again.outcomes["failed"] == 1 and "passed" not in again.outcomes, again.output
    refused = session(project, *asked, "--workbench-report", "report.doc")
    assert refused.code == 4 and "its ending is not the form of a report" in refused.output
    listed = session(project, *asked, "--collect-only")
    assert "clock.toml::time-in-bergen[offline]" in listed.output and listed.code == 0


def test_settings_of_the_project_say_the_same_as_options(project: Path) -> None:
    ini = '[tool.pytest.ini_options]\nworkbench = true\nworkbench_models = ["offline"]\n'
    (project / "pyproject.toml").write_text(ini)
    ran = session(project, "-q", "-s")
    assert ran.outcomes == {"failed": 1, "passed": 4}, ran.output
    assert "models: offline" in ran.output


@pytest.mark.parametrize(
    ("rate", "outcomes"),
    first_rows([("0.5", {"passed": 2, "xfailed": 1}), ("0.9", {"failed": 1, "passed": 1, "xfailed": 1})], 1),
)
def test_the_gate_of_a_suite_decides_and_not_each_case(tmp_path: Path, rate: str, outcomes: dict[str, int]) -> None:
    (tmp_path / "gated.toml").write_text(GATED.replace("RATE", rate))
    ran = session(tmp_path, "--workbench", "--workbench-model", "offline", "-q")
    assert ran.outcomes == outcomes, ran.output
    if "failed" in outcomes:
        assert "gate of gated with offline: pass rate 50.0% of 2 graded runs, 90% required: missed" in ran.output


def test_a_failing_case_of_a_gated_suite_fails_where_the_gate_is_not_selected(tmp_path: Path) -> None:
    (tmp_path / "gated.toml").write_text(GATED.replace("RATE", "0.5"))
    ran = session(tmp_path, "--workbench", "--workbench-model", "offline", "-q", "--deselect", "gated.toml::gate")
    assert ran.outcomes == {"passed": 1, "failed": 1, "deselected": 1}, ran.output
    assert ran.code == 1


def test_a_budget_excuses_no_failing_case(tmp_path: Path) -> None:
    budget = '[[aggregates]]\nname = "speed"\nof = "latency_ms"\nat_most = { p95 = 1e9 }\n\n[[cases]]'
    (tmp_path / "clock.toml").write_text(CLOCK.replace("[[cases]]", budget, 1))
    ran = session(tmp_path, "--workbench", "--workbench-model", "offline", "-q")
    assert ran.outcomes == {"passed": 2, "failed": 1}, ran.output


def test_a_session_in_which_nothing_was_graded_fails_with_a_sentence(tmp_path: Path) -> None:
    skipped = CLOCK.replace("[[cases]]\n", '[[cases]]\nskip = "later"\n')
    (tmp_path / "clock.toml").write_text(skipped)
    ran = session(tmp_path, "--workbench", "--workbench-model", "offline", "-q")
    assert ran.code == 1, ran.output
    assert "no run that counts was graded: 2 skipped, so the session fails" in ran.output
    assert session(tmp_path, "--workbench", "--collect-only", "-q").code == 0


def test_a_case_in_quarantine_fails_no_session(tmp_path: Path) -> None:
    quarantined = CLOCK.replace(
        'name = "Clock"', 'name = "Clock"\ntags = ["shaky"]\n\n[gate]\nquarantine = ["shaky"]', 1
    )
    (tmp_path / "quarantined.toml").write_text(quarantined)
    ran = session(tmp_path, "--workbench", "--workbench-model", "offline", "-q")
    assert ran.outcomes == {"passed": 1, "xfailed": 1}, ran.output


def test_a_suite_with_errors_is_an_error_of_the_collection_with_its_line(project: Path) -> None:
    (project / "broken.toml").write_text(BROKEN)
    ran = session(project, "--workbench", "-q")
    assert ran.code == 2, ran.output
    assert re.search(r"broken\.toml:6: .*did you mean `expect_no_calls`", ran.output), ran.output
    assert "Traceback" not in ran.output


def _answers(request: Request) -> Answer:
    if request.json["messages"][-1]["role"] == "tool":
        return said("openai", text="It is noon.")
    if "time" in request.json["messages"][-1]["content"]:
        return said("openai", calls=[Call("get_time", {"timezone": "Europe/Oslo"})])
    return said("openai", text="Fine.")


def _many(folder: Path, cases: int) -> None:
    head, _, _ = CLOCK.partition("[[cases]]")
    tests = [
        f'[[cases]]\nname = "Talk {number}"\nuser = "How are you?"\nexpect_no_calls = true\n' for number in range(cases)
    ]
    (folder / "many.toml").write_text(head + "\n".join(tests))


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "3"), marks=pytest.mark.slow)], ids=["alone", "xdist"])
def test_all_tests_are_one_batch_with_one_writer_and_one_limit(tmp_path: Path, workers: tuple[str, ...]) -> None:
    _many(tmp_path, 24)
    with Server(_answers) as server:
        ran = session(
            tmp_path,
            *("--workbench", "--workbench-concurrency", "4", "--workbench-history", "-q"),
            *("--workbench-model", f"openai:gpt-4o-mini@{base_url_of(server, 'openai')}"),
            *workers,
            environment={"OPENAI_API_KEY": "sk-planted-in-the-environment"},
        )
        assert ran.outcomes == {"passed": 24}, ran.output
        assert len(server.requests) == 24 and server.most_at_once <= 4
    assert "batch 1 in the history" in ran.output and "sk-planted" not in ran.output


@pytest.mark.parametrize(
    ("errors", "outcomes"), first_rows([("error", {"error": 2}), ("fail", {"failed": 2}), ("skip", {"skipped": 2})], 1)
)
def test_what_an_endpoint_is_to_blame_for_is_no_failure(tmp_path: Path, errors: str, outcomes: dict[str, int]) -> None:
    (tmp_path / "clock.toml").write_text(CLOCK)
    refused = Answer((json.dumps(error_document("openai", "no such key")).encode(),), 401)
    with Server(lambda _: refused) as server:
        model = f"openai:gpt-4o-mini@{base_url_of(server, 'openai')}"
        ran = session(
            tmp_path,
            *("--workbench", "--workbench-model", model, f"--workbench-errors={errors}", "-q"),
            environment={"OPENAI_API_KEY": "sk-planted-in-the-environment"},
        )
    assert ran.outcomes == outcomes, ran.output


@pytest.mark.slow
@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)], ids=["alone", "two workers"]
)
def test_suites_outside_of_the_root_have_a_name_of_their_own(project: Path, workers: tuple[str, ...]) -> None:
    root = project / "root"
    root.mkdir()
    (root / "pytest.ini").write_text("[pytest]\n")
    (project / "clock_2.toml").write_text(CLOCK)
    paths = ("../clock.toml", "../clock_2.toml", "--rootdir=.", "-c", "pytest.ini")
    ran = session(root, "--workbench", "--workbench-model", "offline", "-q", *paths, *workers)
    assert ran.outcomes == {"failed": 2, "passed": 2}, ran.output
    assert "FAILED ../clock_2.toml::time-in-bergen[offline]" in ran.output
    again = session(
        root, "--workbench", "--workbench-model", "offline", "-q", "--lf", *paths, *(("-n", "1") if workers else ())
    )
    assert again.outcomes["failed"] == 2 and "passed" not in again.outcomes, again.output


def test_a_report_that_cannot_be_written_is_no_success(project: Path) -> None:
    (project / "folder.html").mkdir()
    given = ("--workbench", "--workbench-model", "offline", "-q", "clock.toml", "--workbench-report")
    ran = session(project, *given, "folder.html", "--workbench-report", "written.html", "-k", "small")
    assert ran.outcomes["passed"] == 1 and ran.code == 1, ran.output
    assert f"no report in {project / 'folder.html'}: Is a directory" in ran.output
    assert f"report in {project / 'written.html'}\n" in ran.output and (project / "written.html").is_file()
    ran = session(project, *given, "none/page.html")
    assert ran.code == 4 and "there is no folder" in ran.output, ran.output


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--workbench-model", "gone"), "there is no model 'gone'"),
        pytest.param(
            ("--workbench-model", "gone", "-n", "2"), "there is no model 'gone'", marks=pytest.mark.slow, id="-n 2"
        ),
        (("--workbench-model", "offline", "--workbench-model", "gone"), "there is no model 'gone'"),
        (("--workbench-model", "replay:no-folder"), "no-folder"),
        (("-o", "workbench_models=gone"), "there is no model 'gone'"),
        (("--workbench-repeats", "0"), "write a number from 1, not '0'"),
        (("--workbench-concurrency", "0"), "write a number from 1, not '0'"),
        (("--workbench-concurrency", "many"), "write a number from 1, not 'many'"),
        (("--workbench-max-cost", "0"), "write a number of US dollars above 0, not '0'"),
        (("--workbench-errors", "sometimes"), "invalid choice: 'sometimes'"),
        (("--workbench-report", "page.docx"), "--workbench-report: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_bad_option_is_one_usage_error(project: Path, given: tuple[str, ...], said: str) -> None:
    ran = session(project, "--workbench", *given, "-q", "clock.toml")
    assert ran.code == pytest.ExitCode.USAGE_ERROR and ran.output.count(said) == 1, ran.output
    assert "Traceback" not in ran.output and "INTERNALERROR" not in ran.output, ran.output


def test_the_desk_goes_on_when_somebody_without_the_token_asks(project: Path) -> None:
    suite = workbench.load(project / "clock.toml")
    settings = Settings((), None, None, 1, False, False, False, (), "error")
    desk = VerdictServer()
    try:
        address, token = desk.address
        assert stat.S_IMODE(Path(address).parent.stat().st_mode) == 0o700
        with pytest.raises(AuthenticationError):
            Client(address, authkey=b"another")
        with socket.socket(socket.AF_UNIX) as gone:
            gone.connect(address)
        desk.open(
            Batch(
                settings,
                {f"{cell.case.id}[{cell.model}]": SuiteTest(suite, cell) for cell in suite.cells(("offline",))},
            )
        )
        worker = RemoteBatch((address, token))
        assert worker.verdict("small-talk[offline]").outcome == "passed"
    finally:
        desk.close()


def test_nothing_is_started_that_was_not_approved(project: Path) -> None:
    marker = project / "started"
    server = (
        f'[[servers]]\nname = "own"\ncommand = ["{sys.executable}", "-c", "open({str(marker)!r}, \'w\')"]\n\n[[tools]]'
    )
    (project / "served.toml").write_text(CLOCK.replace("[[tools]]", server, 1))
    ran = session(project, "--workbench", "--workbench-model", "offline", "-q", "clock.toml", "served.toml")
    assert ran.outcomes == {"failed": 1, "passed": 1, "error": 2}, ran.output
    assert "--workbench-trust" in ran.output and not marker.exists()


def test_the_batch_ends_with_the_session(tmp_path: Path) -> None:
    """`-x` after the first failure cancels the requests in progress, and no more are sent."""
    _many(tmp_path, 40)
    (tmp_path / "many.toml").write_text(
        (tmp_path / "many.toml").read_text().replace("expect_no_calls = true", "[[cases.ordered]]\ntool = 'get_time'")
    )
    with Server(_answers) as server:
        ran = session(
            tmp_path,
            *("--workbench", "--workbench-concurrency", "1", "-x", "-q"),
            *("--workbench-model", f"openai:gpt-4o-mini@{base_url_of(server, 'openai')}"),
            environment={"OPENAI_API_KEY": "sk-planted-in-the-environment"},
        )
        assert ran.outcomes == {"failed": 1}, ran.output
        assert ran.code == 1 and "stopping after 1 failures" in ran.output


def test_what_was_trusted_for_good_needs_no_option(project: Path) -> None:
    served = project / "served.toml"
    marker = project / "started"
    server = f'[[servers]]\nname = "own"\ncommand = ["touch", "{marker}"]\n\n[[tools]]'
    served.write_text(CLOCK.replace("[[tools]]", server, 1))
    (case, *_) = workbench.load(served).cases
    store = TrustStore(project / ".home" / "toolcall-workbench" / "trust.json")
    needs = needs_trust(case.suite.definition, served)
    store.trust(served, replace(needs, passed=passed_variables(os.environ)))
    ran = session(project, "--workbench", "--workbench-model", "offline", "-q", "served.toml")
    assert "not approved" not in ran.output and marker.exists(), ran.output


@pytest.mark.slow
def test_only_what_surely_broke_since_a_baseline_fails_its_test(tmp_path: Path) -> None:
    """Room 2 always fails, room 3 fails once, room 4 failed before, and room 5 is skipped."""
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "-p no:randomly"\n')
    (tmp_path / ".workbench").mkdir()
    rooms = suite(6)
    (tmp_path / "rooms.toml").write_text(rooms)
    agent = Booking(lambda room, asked: room != 4 and (asked == 1 or (room != 2 and (room, asked) != (3, 2))))
    with Server(agent) as server:
        model = f"openai:agent@{server.url}/v1"
        asked = ("--workbench", "--workbench-history", "--workbench-trust", "-rxf", "--workbench-model", model)
        first = session(tmp_path, *asked)
        assert first.outcomes == {"failed": 1, "passed": 5}, first.output
        second = session(tmp_path, *asked, "--workbench-baseline", "1", "-n", "2")
        (tmp_path / "rooms.toml").write_text(
            rooms.replace('user = "Book room 5."', 'user = "Book room 5."\nskip = "no"')
        )
        third = session(tmp_path, *asked, "--workbench-baseline", "1", "-k", "not room-2")
        refused = session(tmp_path, *asked, "--workbench-baseline", "none")
    assert (second.code, second.outcomes) == (1, {"failed": 1, "passed": 3, "xfailed": 2}), second.output
    assert "since the baseline #1: broke: failed 4 of 4 reruns" in second.output
    assert "since the baseline #1: not confirmed: passed 2 of 2 reruns" in second.output
    assert "no regression: the case did not pass in the baseline either" in second.output
    assert "regression: 1 case broke since the baseline #1 · 1 case failed and passed again" in second.output
    assert (third.code, third.outcomes.get("failed")) == (1, None), third.output
    assert "regression: 1 case is missing since the baseline #1" in third.output
    assert refused.code == 1 and "there is no batch 'none'" in refused.output
