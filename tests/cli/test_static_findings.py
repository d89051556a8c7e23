"""Findings without runs as SARIF, GitLab Code Quality and annotations."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.cli.test_github import commands_in, properties
from tests.show.hostile_texts import texts
from workbench.show.views.findings import StaticFinding, annotations_of, code_quality, sarif

WEAK = (
    WEATHER.replace('description = "Current weather for a city."\n', "")
    + """
[[cases]]
name = "Weak ##[error] ::error::x"
user = "Hi"
expect_no_calls = true
"""
)
BROKEN = """format = 1
name = "Broken"
[[cases]]
name = "No user"
[[cases.ordered]]
tool = "x"
argz = {}
"""


@pytest.fixture
def repository(program: Program) -> Program:
    (program.folder / ".git").mkdir()
    program.write("my suites/weak.toml", WEAK)
    program.write("my suites/broken.toml", BROKEN)
    return program


def quality(program: Program, *words: str) -> list[dict[str, Any]]:
    """Code Quality as GitLab reads it: each finding has these five."""
    done = program.run(*words, "--report", "gl.codequality.json", "--report", "x.sarif")
    found: list[dict[str, Any]] = json.loads((program.folder / "gl.codequality.json").read_text(encoding="utf-8"))
    assert found, done.stderr
    for each in found:
        assert set(each) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert each["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert set(each["location"]) == {"path", "lines"}
        assert each["location"]["lines"]["begin"] >= 1
        assert (program.folder / each["location"]["path"]).is_file()
    assert len({each["fingerprint"] for each in found}) == len(found)
    assert {each["fingerprint"] for each in found} == set(fingerprints(program))
    return found


def fingerprints(program: Program) -> list[str]:
    """SARIF as code scanning reads it, and the fingerprints in it."""
    log = json.loads((program.folder / "x.sarif").read_text(encoding="utf-8"))
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert run["tool"]["driver"]["name"] == "Workbench"
    for each in run["results"]:
        assert rules[each["ruleIndex"]]["id"] == each["ruleId"]
        assert each["level"] in ("error", "warning", "note")
        assert each["message"]["text"]
        (location,) = each["locations"]
        place = location["physicalLocation"]
        assert (program.folder / unquote(place["artifactLocation"]["uri"])).is_file()
        assert " " not in place["artifactLocation"]["uri"]
        assert place["region"]["startLine"] >= 1
    return [each["partialFingerprints"]["workbench/v1"] for each in run["results"]]


def test_problems_and_what_an_audit_finds(repository: Program) -> None:
    found = quality(repository, "validate", "my suites", "--audit")
    kinds = {each["check_name"] for each in found}
    assert "suite-error" in kinds and "audit-weak-case" in kinds
    (weak,) = (each for each in found if each["check_name"] == "audit-weak-case")
    line = WEAK.splitlines()[weak["location"]["lines"]["begin"] - 1]
    assert line == "[[cases]]" or line.startswith("response")
    assert weak["location"]["path"] == "my suites/weak.toml"
    assert repository.run("validate", "my suites", "--format", "sarif").stdout.startswith("{")


def test_what_lint_finds_in_tools(program: Program) -> None:
    (program.folder / ".git").mkdir()
    program.write("weak.toml", WEAK)
    (found,) = quality(program, "tools", "weak.toml", "--lint")
    assert (found["check_name"], found["severity"]) == ("tools-no-description", "minor")
    assert WEAK.splitlines()[found["location"]["lines"]["begin"] - 1] == "[[tools]]"
    listed = program.run("tools", "weak.toml", "--format", "sarif")
    assert (listed.returncode, listed.stdout) == (2, "")
    assert "report findings of --lint: give --lint too" in listed.stderr
    assert json.loads(program.run("tools", "weak.toml", "--lint", "--format", "codequality").stdout) == [found]
    assert program.run("tools", "weak.toml", "--report", "listed.json", "--report", "listed.txt").returncode == 0
    assert json.loads((program.folder / "listed.json").read_text())["suites"]


def test_fingerprints_stay_while_lines_and_cases_move(repository: Program) -> None:
    before = quality(repository, "validate", "my suites/weak.toml", "--audit")
    head, between, rest = WEAK.partition("[[cases]]")
    new = '[[cases]]\nname = "New"\nuser = "Hi"\nexpect_no_calls = true\n\n'
    repository.write("my suites/weak.toml", f"\n\n{head}\n# a comment\n{new}{between}{rest}")
    after = quality(repository, "validate", "my suites/weak.toml", "--audit")
    assert {each["fingerprint"] for each in before} <= {each["fingerprint"] for each in after}
    assert [each["location"] for each in before] != [each["location"] for each in after]


def test_in_a_job_of_github_they_are_annotated(repository: Program) -> None:
    job = Program(repository.folder, {"GITHUB_ACTIONS": "true"})
    for words in (["validate", "my suites", "--audit"], ["tools", "my suites/weak.toml", "--lint"]):
        done = job.run(*words)
        found = commands_in(done.stdout + done.stderr)
        assert found
        assert {properties(each)["file"] for each in found} <= {"my suites/weak.toml", "my suites/broken.toml"}
    assert commands_in(job.run("tools", "my suites/weak.toml").stdout) == []


@given(texts)
def test_any_text_is_written_and_read_back(text: str) -> None:
    findings = [StaticFinding("a", "error", text, "s.toml", 3, text)] * 12
    log = json.loads("".join(sarif(findings)).encode())
    (run,) = log["runs"]
    assert len({each["partialFingerprints"]["workbench/v1"] for each in run["results"]}) == 12
    read = json.loads("".join(code_quality(findings)).encode())
    assert [each["location"]["lines"]["begin"] for each in read] == [3] * 12
    lines = list(annotations_of(findings))
    assert len(lines) == 10 and all(line.startswith("::error ") and line.count("\n") == 1 for line in lines)


NAMES = (
    "line\nbreak",
    "x\r::error file=y,line=1::forged",
    "%0A::error::forged",
    "a,line=9,title=b::c",
    "##[error]gone",
    "\x1b]0;title\x07\x85\u2028",
    "\u202egpj.exe\u2066",
    "C:drive",
    "a?b#c&d=e",
    "..%2F..%2Fup",
    "not text \udcff",
    "[x](javascript:y)<b>&amp;\"'",
)
"""Of files and cases."""


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_no_name_of_a_file_or_case_is_more_than_a_name(program: Program, name: str) -> None:
    (program.folder / ".git").mkdir()
    case = "".join(f"\\U{ord(char):08x}" for char in name if not 0xD800 <= ord(char) < 0xE000)
    file = program.write(f"suites/{name}.toml", f'format = 1\nname = "S"\n[[cases]]\nname = "{case}"\nodd = "{case}"\n')
    job = Program(program.folder, {"GITHUB_ACTIONS": "true"})
    done = job.run("validate", "suites", "--report", "x.codequality.json", "--report", "x.sarif")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    for uri in _uris(program.folder / "x.sarif"):
        assert re.fullmatch(r"suites/(?:[\w.~/-]|%[0-9A-F]{2})+", uri, re.ASCII)
        assert (program.folder / unquote(uri)) == file or "\udcff" in name
    for each in json.loads((program.folder / "x.codequality.json").read_text("utf-8")):
        for text in (each["location"]["path"], each["description"]):
            assert not {unicodedata.category(char) for char in text} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    annotations = commands_in(done.stdout + done.stderr)
    assert annotations and all(each.startswith("::error file=suites/") for each in annotations)
    for each in annotations:
        given = properties(each)
        assert set(given) == {"file", "line", "endLine", "title"}
        assert (given["title"], given["line"].isdigit()) == ("suite-error", True)


def test_a_suite_outside_of_the_repository_is_at_no_place_in_it(program: Program) -> None:
    (program.folder / "repository" / ".git").mkdir(parents=True)
    outside = program.write("outside/broken.toml", BROKEN)
    inside = Program(program.folder / "repository", {"GITHUB_ACTIONS": "true"})
    done = inside.run("validate", "../outside", "--report", "x.codequality.json", "--report", "x.sarif")
    assert set(_uris(inside.folder / "x.sarif")) == {outside.as_uri()}
    found = json.loads((inside.folder / "x.codequality.json").read_text("utf-8"))
    assert {each["location"]["path"] for each in found} == {"outside/broken.toml"}
    annotations = commands_in(done.stdout + done.stderr)
    assert annotations and all("file" not in properties(each) for each in annotations)


def _uris(log: Path) -> list[str]:
    """The places in SARIF. A whole URI has no base."""
    (run,) = json.loads(log.read_text("utf-8"))["runs"]
    places = [
        location["physicalLocation"]["artifactLocation"] for each in run["results"] for location in each["locations"]
    ]
    assert places
    for each in places:
        assert ("uriBaseId" in each) == (not urlsplit(each["uri"]).scheme)
    return [each["uri"] for each in places]
