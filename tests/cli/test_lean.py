"""`--lean`: a smaller JSON report with the same information."""

from __future__ import annotations

import json

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER, WRONG
from tests.cli.test_agents import CASE
from tests.engine.agents.test_agents import AGENT, SUITE
from tests.schemas import fits, with_defaults
from workbench.suite.render import suite_text

AGENT_SUITE = suite_text({**SUITE, "subject": {"acp": ["python", str(AGENT)], "builtin": "forbid"}, "cases": [CASE]})


@pytest.mark.parametrize("suite", [WEATHER + WRONG, AGENT_SUITE], ids=["model", "agent"])
@pytest.mark.parametrize(
    ("command", "definition"),
    [
        (("grade", "out"), "LeanReportDocument"),
        (("history", "show", "1"), "LeanShownBatch"),
    ],
    ids=["grade", "history show"],
)
def test_it_says_all_that_the_whole_report_says(
    program: Program, command: tuple[str, ...], definition: str, suite: str
) -> None:
    program.write("weather.toml", suite)
    program.run("run", "weather.toml", "--record", "out", "--quiet", "--trust")
    whole, lean = program.run(*command, "--format", "json"), program.run(*command, "--format", "json", "--lean")
    assert (lean.returncode, lean.stderr) == (whole.returncode, whole.stderr)
    assert len(lean.stdout) < 0.8 * len(whole.stdout)
    document, expected = json.loads(lean.stdout), json.loads(whole.stdout)
    fits(document, "lean-report")
    with_defaults(document, definition)
    for run in document["runs"]:
        checked = run.pop("checked", [])
        for grade in run.get("grades", ()):
            for argument in (each for pairing in grade["pairings"] for each in pairing["arguments"]):
                said = checked[argument.pop("checked")]
                argument |= {name: said[name] for name in ("argument", "expected", "got", "given")}
    for timed in (document, expected):
        timed.pop("started_at", None)
    assert document == expected | {"version": 3}


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("history", "show", "1", "--run", "1", "--format", "json"), "leave out --run and --case, or --lean"),
        (("grade", "1", "--format", "json"), "--lean applies only to recordings and calls"),
        (("history", "show", "1"), "--lean is for JSON reports: give --format json"),
    ],
)
def test_it_is_refused_where_it_means_nothing(program: Program, command: tuple[str, ...], why: str) -> None:
    program.write("weather.toml", WEATHER)
    program.run("run", "weather.toml", "--quiet")
    done = program.run(*command, "--lean")
    assert (done.returncode, done.stdout) == (2, "")
    assert why in done.stderr
