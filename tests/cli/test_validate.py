"""`workbench validate`: every problem with its place, and nothing started."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.samples import SAMPLES

WITH_RULE = WEATHER.replace("format = 1", 'format = 1\ngrading.extra_calls = "allow_read_only"', 1)
"""A suite with a rule for extra calls."""


def test_a_sound_suite_answers_zero(program: Program) -> None:
    program.write("suites/weather.toml", WITH_RULE)
    program.write("suites/other.toml", 'title = "not a suite"')
    done = program.run("validate", "suites")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "1 valid suite (1 case)\n"


def test_where_the_grader_counts_surplus_calls_the_key_that_frees_them_is_named(program: Program) -> None:
    """The note fails nothing, and appears once for all suites with the same rule of a grader."""
    program.write("a.toml", WEATHER)
    program.write("b.toml", WEATHER)
    program.write("c.toml", WEATHER.replace("format = 1", 'format = 1\ngrading.by = "trajectory"'))
    done = program.run("validate", ".", "--fail-on", "note")
    assert (done.returncode, done.stderr) == (0, "")
    note, total = done.stdout.splitlines()
    assert note == (
        "note: `extra_calls` is not set for 2 cases of 2 suites: under `critics` a further call scores 0 for the "
        'run, even of a look-up; extra_calls = "allow_read_only" in [grading] allows calls of read-only tools'
    )
    assert total == "3 valid suites (3 cases)"


def test_all_problems_of_all_files_are_said_with_file_line_path_and_way_out(program: Program) -> None:
    text = WEATHER.replace("description", "descripton", 1).replace('user = "What', 'usr = "What')
    line = text[: text.index("usr =")].count("\n") + 1
    program.write("a.toml", text)
    program.write("b.toml", "format = 1\nname = \n")
    done = program.run("validate", "a.toml", "b.toml")
    assert done.returncode == 2
    problems = done.stderr.splitlines()
    assert any(said.startswith("a.toml:8: error: tools[0].descripton:") and "description" in said for said in problems)
    assert any(said.startswith(f"a.toml:{line}: error: cases[0].usr of ") for said in problems)
    assert any(said.startswith("b.toml:2: error:") for said in problems)
    assert "2 with errors" in done.stdout


def test_the_settings_beside_the_suites_are_checked_too(program: Program) -> None:
    program.write("workbench.toml", '[models.a]\nprovider = "x"\n')
    program.write("suites/weather.toml", WEATHER)
    done = program.run("validate", "suites/weather.toml")
    assert done.returncode == 2
    assert "workbench.toml:2: models.a.provider" in done.stderr
    assert done.stderr.count("\n") == 1


def test_nothing_to_validate_is_a_usage_error(program: Program) -> None:
    done = program.run("validate", ".")
    assert done.returncode == 2
    assert "no suite at ." in done.stderr


AUDITED = """\
format = 1
name = "Audited"

[[tools]]
name = "look"
[tools.parameters]
type = "object"
[tools.parameters.properties.where]
enum = ["here", "there"]

[[cases]]
name = "Too little"
user = "Look here"
disallowed = [{ tool = "look", args = { where = "there" } }]

[[cases]]
name = "Refused"
user = "Look up"
ordered = [{ tool = "look", args = { where = "up" } }]
"""


def test_an_audit_says_what_cases_cannot_find_out_and_what_none_covers(program: Program) -> None:
    program.write("audited.toml", AUDITED)
    done = program.run("validate", "--audit", "audited.toml")
    assert done.returncode == 0
    assert done.stderr.startswith(
        'audited.toml:19: warning: cases[1].ordered[0].args.where of "Refused": the schema of '
    )
    first, *rest, _, total = done.stdout.splitlines()
    assert first.startswith("audited.toml:11: weak case: too-little: an agent that neither calls nor says anything")
    assert rest == [
        "Audited: 1 of 1 tools, 1 of 1 parameters, 0 of 2 enum values covered",
        '  no case covers these enum values: look.where = "here"; look.where = "there"',
    ]
    assert total == "1 valid suite (2 cases), 1 warning, 1 audit finding"


def test_a_table_that_names_no_check_keeps_a_suite_from_running(program: Program) -> None:
    """Compared as a value, it could never hold, and every model would fail."""
    program.write("pay.toml", AUDITED.replace('{ where = "up" }', '{ where = { contain = "he" } }'))
    said = (
        'pay.toml:19: error: cases[1].ordered[0].args.where of "Refused": names no check, '
        'and the schema of "look" accepts no object'
    )
    for command in ("validate", "run"):
        done = program.run(command, "pay.toml")
        assert done.returncode == 2, command
        assert said in done.stderr and 'did you mean `contains = "he"`?' in done.stderr


def test_a_run_tells_an_expectation_that_can_never_hold_before_its_first_request(program: Program) -> None:
    program.write("audited.toml", AUDITED)
    done = program.run("run", "audited.toml", "--no-history")
    assert "audited.toml:19: warning: cases[1].ordered[0].args.where" in done.stderr


@pytest.mark.parametrize(("fail_on", "code"), [("warning", 1), ("note", 1), ("error", 0), (None, 0)])
def test_ci_can_demand_an_audit_without_findings(program: Program, fail_on: str | None, code: int) -> None:
    program.write("audited.toml", AUDITED)
    demanded = ["--fail-on", fail_on] if fail_on else []
    assert program.run("validate", "--audit", "audited.toml", *demanded).returncode == code


def test_only_notes_meet_a_demand_for_no_warnings(program: Program) -> None:
    noted = AUDITED.partition("[[cases]]")[0] + '[[cases]]\nname = "None"\nuser = "Hi"\nexpect_no_calls = true\n'
    program.write("noted.toml", noted)
    assert program.run("validate", "--audit", "noted.toml", "--fail-on", "warning").returncode == 0
    assert program.run("validate", "--audit", "noted.toml", "--fail-on", "note").returncode == 1


def test_an_audit_looks_at_the_tools_that_servers_listed_last_and_starts_none(program: Program) -> None:
    program.write("asks.toml", AUDITED.replace("[[tools]]", '[[servers]]\nname = "s"\ncommand = ["s"]\n\n[[tools]]', 1))
    done = program.run("validate", "--audit", "asks.toml")
    assert "the tools of the server 's' are unknown" in done.stdout
    assert done.returncode == 0


@pytest.mark.slow
def test_a_name_that_no_tool_has_is_an_error_of_its_runs_and_a_warning_where_the_tools_are_known(
    program: Program,
) -> None:
    for name in ("office.toml", "office_server.py"):
        shutil.copy(SAMPLES / name, program.folder / name)
    file = program.folder / "office.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('tool = "calculate"', 'tool = "calculat"', 1), encoding="utf-8")
    assert "no such tool" not in program.run("validate", "office.toml").stderr, "nobody knows the server's tools yet"
    report = json.loads(program.run("run", "office.toml", "--trust", "--format", "json").stdout)
    said = "expects 'calculat', but no such tool is offered (did you mean 'calculate'?)"
    (wrong,) = [run for run in report["runs"] if run["error"] == said]
    assert (wrong["status"], wrong["score"], wrong["rounds"], report["exit_code"]) == ("error", None, [], 3)
    assert any(run["status"] == "passed" for run in report["runs"])
    warned = program.run("validate", "office.toml")
    assert warned.returncode == 0
    assert "expects 'calculat', but no such tool is offered" in warned.stderr and "1 warning" in warned.stdout


def test_files_with_a_byte_order_mark_are_read_as_without_it(program: Program) -> None:
    mark = "\ufeff"
    program.write("weather.toml", mark + WEATHER)
    program.write("calls.json", mark + '{"cases": {"right": [{"tool": "get_weather", "arguments": {"city": "Oslo"}}]}}')
    for words in (
        ("validate", "."),
        ("run", "weather.toml"),
        ("grade", "--calls", "calls.json", "--suite", "weather.toml"),
        ("history", "show", "1"),
    ):
        done = program.run(*words)
        assert done.returncode == 0, (words, done.stderr)
    (program.folder / "old.toml").write_bytes(WEATHER.encode("utf-16"))
    refused = program.run("validate", ".")
    assert refused.returncode == 2
    assert "old.toml:1: error: is UTF-16, not UTF-8 (save the file as UTF-8" in refused.stdout + refused.stderr
