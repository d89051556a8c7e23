"""Tokens of known formats in the output of programs, and the user's own tokens in suites."""

from __future__ import annotations

import signal
import tomllib

import pytest

from tests.cli.program import Program
from tests.cli.test_record import ask, started
from tests.history.unpacking import texts_in
from tests.providers.server import Call, Server, said

OWN = "ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5"
OTHER = OWN.replace("aB3d", "zZ9y")
ADDRESS = "postgres://bob:pw@db.test/shop"
SUITE = f"""
format = 1
name = "Tokens"
[[tools]]
name = "log_in"
[[cases]]
name = "Own"
user = "Log in with {OWN} at {ADDRESS}."
[[cases.ordered]]
tool = "log_in"
args = {{ token = "{OWN}", at = "{ADDRESS}" }}
[[cases.mocks]]
tool = "log_in"
result = "welcome, {OWN}"
"""
CALL = Call("log_in", {"token": OWN, "at": ADDRESS, "more": OTHER})
SETTINGS = """
[models.m]
provider = "openai"
base_url = "URL/v1"
"""
WORDS = ("--model", "m", "-q")


@pytest.fixture
def ran(program: Program) -> Program:
    """The program with a stored and recorded batch. Its model repeats the suite's own token and another one."""
    program.write("tokens.toml", SUITE)
    with Server([said("openai", calls=[CALL]), said("openai", text=f"Done with {OWN} and {OTHER}.")]) as server:
        program.write("workbench.toml", SETTINGS.replace("URL", server.url))
        done = program.run("run", "tokens.toml", *WORDS, "--trust", "--record", "out", "--report", "report.json")
    assert done.returncode == 0, done.stdout + done.stderr
    return program


def test_what_a_suite_holds_stays_in_its_runs_which_are_graded_again_alike(ran: Program) -> None:
    (recording,) = ran.folder.glob("out/*")
    (history,) = ran.folder.rglob("*.sqlite3")
    for text in (recording.read_text(), "".join(texts_in(history)), (ran.folder / "report.json").read_text()):
        assert OWN in text
        assert ADDRESS in text
        assert OTHER not in text
        assert "$GITHUB_TOKEN" in text
    graded = ran.run("grade", "out")
    assert graded.returncode == 0
    assert graded.stdout.endswith("no grade differs from the recorded one\n")
    again = ran.run("grade", "1")
    assert (again.returncode, "cannot be regraded" in again.stdout) == (0, False)
    assert "no grade changed" in again.stdout
    assert ran.run("export", "1", "-o", "exported").returncode == 0
    (exported,) = ran.folder.glob("exported/*")
    assert OWN in exported.read_text()
    assert ran.run("grade", "exported").stdout.endswith("no grade differs from the recorded one\n")


def test_what_is_accepted_keeps_the_suites_own_token_and_asks_for_others_to_be_present(program: Program) -> None:
    head, case = SUITE.split("[[cases.ordered]]")
    program.write("tokens.toml", f"{head}expect_nothing_yet = true\n[[cases.mocks]]{case.split('[[cases.mocks]]')[1]}")
    with Server([said("openai", calls=[CALL]), said("openai", text="Done.")]) as server:
        program.write("workbench.toml", SETTINGS.replace("URL", server.url))
        done = program.run("accept", "tokens.toml", *WORDS, "--write", "--trust", "--repeats", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    (expected,) = tomllib.loads((program.folder / "tokens.toml").read_text())["cases"][0]["ordered"]
    assert expected["args"] == {"token": OWN, "at": ADDRESS, "more": {"present": True}}


@pytest.mark.slow
def test_what_is_recorded_holds_none_and_each_place_is_named(program: Program) -> None:
    call = Call("log_in", {"at": ADDRESS, "token": OTHER, "city": "Oslo"}, "call_1")
    with Server([said("openai", calls=[call]), said("openai", text="Done.")]) as endpoint:
        words = ("--upstream", f"{endpoint.url}/v1", "-o", "new.toml", "--recordings", "new")
        proxy, url = started(program, *words)
        asked: list[object] = [{"role": "user", "content": f"Log in with {OTHER}."}]
        ask(url, asked)
        made = {"id": call.id, "type": "function", "function": {"name": "log_in", "arguments": call.text}}
        asked += [
            {"role": "assistant", "tool_calls": [made]},
            {"role": "tool", "tool_call_id": call.id, "content": f"at {ADDRESS}"},
        ]
        ask(url, asked)
        proxy.send_signal(signal.SIGINT)
        report, errors = proxy.communicate(timeout=60)
    suite = (program.folder / "new.toml").read_text()
    for text in (suite, report, errors, *(file.read_text() for file in program.folder.glob("new/*"))):
        assert OTHER not in text
        assert ":pw@" not in text
    (case,) = tomllib.loads(suite)["cases"]
    assert case["ordered"][0]["args"] == {"at": {"present": True}, "token": {"present": True}, "city": "Oslo"}
    assert case["mocks"][0]["result"] == "at postgres://bob:$PASSWORD@db.test/shop"
    for place in ("ordered[0].args.at", "ordered[0].args.token"):
        assert f"{place} holds a secret, so only `present = true` is checked" in report
        assert f"# {place} holds a secret" in suite
    for place in ("user", "mocks[0].result"):
        assert f"{place} held a secret, which was replaced" in report
