"""`workbench mutate`: changes that a model ignores survive, the others are noticed."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.program import Program
from workbench.analysis.mutants import MUTANT_KINDS

SUITE = """
format = 1
name = "Light"

[grading]
invalid_arguments = "note"

[[tools]]
name = "paint"
description = "Sets the colour of the light."
[tools.parameters]
type = "object"
required = ["colour"]
[tools.parameters.properties]
colour = { type = "string", description = "colour name", enum = ["red", "green"] }

[[tools]]
name = "send_mail"
description = "Sends mail to a person."
[tools.parameters]
type = "object"
required = ["to"]
[tools.parameters.properties]
to = { type = "string", format = "email" }

[[cases]]
name = "Red"
user = "Set the colour of the light to red."
[[cases.ordered]]
tool = "paint"
args = { colour = "red" }

[[cases]]
name = "Any"
user = "Set the colour of the light to 'violet'."
[[cases.ordered]]
tool = "paint"
args = { colour = { one_of = ["red", "green", "violet"] } }

[[cases]]
name = "Listed"
user = "Set the colour of the light to 'violet'."
[[cases.ordered]]
tool = "paint"
args = { colour = { one_of = ["red", "green"] } }
"""


def test_mutants_that_a_model_looks_at_are_noticed_and_the_others_survive(program: Program) -> None:
    program.write("suite.toml", SUITE)
    done = program.run("mutate", "suite.toml", "--model", "offline,offline:careless", "--format", "json", "--quiet")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    by_name = {(each["model"], each["name"]): each for each in report["mutants"]}
    sound, careless = by_name["offline", "no enum: paint"], by_name["offline:careless", "no enum: paint"]
    assert (sound["survives"], sound["noticed_by"]) == (False, ["Listed"])
    assert (careless["survives"], careless["noticed_by"]) == (True, [])
    assert careless["should_be_noticed_by"] == ["Red", "Any", "Listed"]
    assert report["left_out"] == {"offline:careless · Listed": "failed without a mutant"}
    unexpected = by_name["offline", "no description: send_mail"]
    assert (unexpected["survives"], unexpected["should_be_noticed_by"]) == (True, [])
    assert [point["decoys"] for point in report["models"]["offline"]["decoys"]] == [1, 2, 4, 8]
    assert report["runs_saved"] > 0
    assert by_name["offline", "no description: paint"]["noticed_by"] == ["Any", "Listed"]


def test_the_report_names_survivors_and_what_would_notice_them(program: Program) -> None:
    program.write("suite.toml", SUITE)
    done = program.run(
        "mutate", "suite.toml", "--tool", "paint", "--kind", "parameter renamed", "--kind", "decoys", "-q"
    )
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert "0 of 1 mutant noticed" in lines
    assert "◇ survives  parameter renamed: paint.colour: should be noticed by Red, Any, Listed" in lines
    assert any(
        line.startswith("pass rate over the number of decoys, of cases that pass without: 1: 100.0%") for line in lines
    )
    nothing = program.run("mutate", "suite.toml", "--tool", "gone", "--kind", "no enum")
    assert nothing.returncode == 2
    assert "nothing was mutated" in nothing.stderr


def test_the_rows_of_one_case_count_once(program: Program) -> None:
    rows = 'user = "Set the colour of the light to red."\neach = [{ id = "a", n = "1" }, { id = "b", n = "2" }]'
    text = SUITE.replace('name = "Red"\nuser = "Set the colour of the light to red."', f'name = "Red {{n}}"\n{rows}')
    program.write("suite.toml", text)
    done = program.run("mutate", "suite.toml", "--tool", "paint", "--kind", "parameter renamed", "-q")
    assert "parameter renamed: paint.colour: should be noticed by Red 1, Any, Listed" in done.stdout, done.stdout


def test_the_page_and_the_command_have_all_kinds(program: Program) -> None:
    page = (Path(__file__).parents[2] / "docs" / "lab.md").read_text(encoding="utf-8")
    offered = " ".join(program.run("mutate", "--help").stdout.split())
    assert [kind for kind in MUTANT_KINDS if kind not in offered] == []
    assert [kind for kind in MUTANT_KINDS if f"| `{kind}` |" not in page] == []
