"""`workbench shrink` reduces a case that a planted weakness fails to the part that triggers the weakness."""

from __future__ import annotations

import tomllib

import pytest

from tests.cli.program import Program

SUITE = """format = 1
name = "Mail"
system = "You are helpful. Be short. Never lie."

[[tools]]
name = "archive"
description = "Archives a message. It can be found later."
[tools.parameters]
type = "object"
required = ["id"]
[tools.parameters.properties]
id = { type = "string" }

[[tools]]
name = "send_report"
description = "Report of sales by mail. Sends it to everybody."
[tools.parameters]
type = "object"
[tools.parameters.properties]
to = { type = "string", format = "email" }

[[tools]]
name = "make_chart"
description = "Makes a chart of sales for a year. Needs a report. Does not send it."
[tools.parameters]
type = "object"
[tools.parameters.properties]
year = { type = "integer" }

[[tools]]
name = "weather"
description = "Weather of a city."

[[cases]]
name = "Chart"
user = "Hello there. Please make a chart of sales from the report of last week for me. Thank you very much."
messages = [
  { role = "user", content = "Good morning." },
  { role = "assistant", content = "Good morning!" },
]
ordered = [{ tool = "make_chart" }]
"""


def test_a_case_that_the_hasty_model_fails_shrinks_to_the_word_it_falls_for(program: Program) -> None:
    program.write("suite.toml", SUITE)
    program.run("run", "suite.toml", "--model", "offline:hasty", "-q")
    done = program.run("shrink", "1", "--run", "1", "--repeats", "1", "--fails", "1", "--first", "2", "-o", "out.toml")
    assert done.returncode == 0, done.stderr
    assert "Chart fails in 2 of 2 runs: wrong tool (make_chart, but send_report was called)" in done.stderr
    assert "at most 198 further runs" in done.stderr
    assert "to run it: workbench run out.toml --model offline:hasty\n" in done.stdout
    assert "left out 2 of 4 tools: archive, weather" in done.stdout
    assert '-user = "Hello there. Please make a chart' in done.stdout
    left = tomllib.loads((program.folder / "out.toml").read_text(encoding="utf-8"))
    described = {tool["name"]: tool.get("description") for tool in left["tools"]}
    assert described == {"send_report": "Report of sales by mail.", "make_chart": None}
    assert left["cases"] == [
        {"id": "chart", "name": "Chart", "user": "report", "ordered": [{"tool": "make_chart"}]},
    ]
    assert "system" not in left
    again = program.run("run", "out.toml", "--model", "offline:hasty", "-q", "--format", "text")
    assert (again.returncode, "expected make_chart(…), got send_report()" in again.stdout) == (1, True)
    assert "#2" in program.run("history", "list").stdout  # of the attempts there is none
    assert "#3" not in program.run("history", "list").stdout


@pytest.mark.slow
def test_few_runs_leave_more_and_what_does_not_fail_is_not_shrunk(program: Program) -> None:
    program.write("suite.toml", SUITE)
    program.run("run", "suite.toml", "--model", "offline:hasty", "-q", "--record", "runs")
    (recording,) = map(str, (program.folder / "runs").iterdir())
    few = program.run("shrink", recording, "--first", "1", "--max-runs", "9")
    assert few.returncode == 0, few.stderr
    assert "stopped by --max-runs 9; perhaps more could be left out" in few.stdout
    only = program.run("shrink", recording, "--estimate")
    assert (only.returncode, only.stdout) == (0, "")
    sound = program.run("shrink", recording, "--model", "offline")
    assert (sound.returncode, sound.stdout) == (1, "")
    assert "of the first 5 runs (5 passed), 0 failed in the same way, but at least 80% must" in sound.stderr
    for words in (("--model", "a,b"), ("--fails", "4"), ("-o", "gone/x.toml")):
        assert program.run("shrink", recording, *words).returncode == 2
