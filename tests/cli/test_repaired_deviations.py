"""Deviations of an endpoint that were repaired, wherever a run is shown: steps, reports, the history, a replay."""

from __future__ import annotations

import json

import pytest

from tests.cli.program import Program
from tests.providers.server import APIS, Api, Call, base_url_of, said, serve
from tests.sampled_rows import first_of
from tests.show.html_page import Page

SUITE = """format = 1
name = "Weather"

[[tools]]
name = "get_weather"
parameters = { type = "object", properties = { city = { type = "string" } } }

[[cases]]
name = "Right"
user = "Weather in Oslo?"
response = "It rains."
[[cases.ordered]]
tool = "get_weather"
args = { city = "Oslo" }
"""
OSLO = '{"city": "Oslo"}'
ARGUMENTS = "repaired: the endpoint sends the arguments once more after their end"
THOUGHTS = "repaired: the answer contains thoughts: the endpoint does not separate them as reasoning"
SUMMARY = "▲ repaired: repeated arguments in 1 of 1 run, thoughts in the answer in 1 of 1 run\n"


@pytest.mark.parametrize("api", first_of(APIS, 1))
def test_what_was_repaired_is_graded_as_repaired_and_told_everywhere(program: Program, api: Api) -> None:
    program.write("suite.toml", SUITE)
    written = "<think>It may rain or not.</think>\n\nIt rains."
    with serve(said(api, "", [Call("get_weather", OSLO * 2)]), said(api, written)) as server:
        program.write("workbench.toml", f'[models.m]\nprovider = "{api}"\nbase_url = "{base_url_of(server, api)}"\n')
        reports = [f"report.{ending}" for ending in ("json", "md", "html", "xml")]
        words = [word for report in reports for word in ("--report", report)]
        done = program.run("run", "suite.toml", "--trust", "--model", "m", "-v", "--record", "recorded", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert SUMMARY in done.stdout
    shown = program.run("history", "show", "1", "--run", "1").stdout
    assert SUMMARY in program.run("history", "show", "1").stdout
    assert program.run("grade", "1").returncode == 0
    assert SUMMARY in program.run("history", "show", "1").stdout
    made, markdown, html, junit = (program.folder.joinpath(name).read_text(encoding="utf-8") for name in reports)
    rounds = json.loads(made)["runs"][0]["rounds"]
    assert [[each["kind"] for each in round_["deviations"]] for round_ in rounds] == [
        ["repeated arguments"],
        ["thoughts in the answer"],
    ]
    assert (rounds[0]["calls"][0]["arguments"], rounds[0]["calls"][0]["raw"]) == ({"city": "Oslo"}, OSLO * 2)
    assert rounds[1]["text"] == "It rains."
    assert SUMMARY in markdown
    for place, sign in ((done.stdout, "▲"), (shown, "!"), (junit, "▲")):
        assert f"{sign} {ARGUMENTS}" in place
        assert f"{sign} {THOUGHTS}" in place
    page = Page(html)
    assert SUMMARY.strip() in page.said
    assert f"▲ {ARGUMENTS}" in page.runs[0] and f"▲ {THOUGHTS}" in page.runs[0]
    again = program.run("run", "suite.toml", "--trust", "--model", "replay:recorded")
    assert (again.returncode, SUMMARY in again.stdout) == (0, True)
    regraded = program.run("grade", "recorded")
    assert (regraded.returncode, SUMMARY in regraded.stdout) == (0, True)


def test_thoughts_stay_in_the_answer_where_the_settings_say_so(program: Program) -> None:
    program.write("suite.toml", SUITE.split("[[cases.ordered]]")[0].replace("It rains.", "<think>Hm</think>It rains."))
    with serve(said("openai", "<think>Hm</think>It rains.")) as server:
        program.write(
            "workbench.toml",
            f'[models.m]\nprovider = "openai"\nbase_url = "{server.url}/v1"\nthoughts = "answer"\n',
        )
        done = program.run("run", "suite.toml", "--trust", "--model", "m")
        program.write("workbench.toml", '[models.m]\nprovider = "openai"\nthoughts = "both"\n')
        wrong = program.run("run", "suite.toml", "--trust", "--model", "m")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "repaired" not in done.stdout
    assert "models.m.thoughts is invalid: give 'reasoning' or 'answer'" in wrong.stderr
