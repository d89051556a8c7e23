"""`workbench import` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.exchange.importers.samples import ADK, OPENAI, WEATHER_SCHEMA

KEY = "ghp_a1B2c3D4e5F6g7H8i9J0"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path, {"DB_PASSWORD": "planted-4711-pw"})


def said_in(text: str) -> dict[str, object]:
    """The sample with another request, and a secret in the arguments of its call."""
    messages = json.loads(json.dumps(OPENAI["messages"]))
    messages[1]["content"] = text
    messages[2]["tool_calls"][0]["function"]["arguments"] = json.dumps({"city": "Oslo", "token": KEY})
    return {**OPENAI, "messages": messages}


def test_a_file_becomes_a_suite_and_recordings_that_grade(program: Program) -> None:
    program.write("chats.json", json.dumps(OPENAI))
    done = program.run("import", "chats.json", "--recordings", "runs")
    assert done.returncode == 0, done.stderr
    assert "chats.json (openai) became chats.toml: 1 case" in done.stdout
    assert "✓ 1 call that was made → ordered" in done.stdout
    assert "· the final answer is in the run, and no check asks for it" in done.stdout
    assert program.run("validate", "chats.toml").stdout.endswith("\n1 valid suite (1 case)\n")
    graded = program.run("grade", "runs")
    assert graded.returncode == 0 and "1 run: 1 passed" in graded.stdout
    replayed = program.run("run", "chats.toml", "--model", "replay:runs")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr


def test_a_folder_of_one_form_becomes_one_suite_and_every_file_left_out_is_named(program: Program) -> None:
    for name, text in (("a.json", "First?"), ("b.json", "Second?")):
        program.write(f"chats/{name}", json.dumps(said_in(text)))
    program.write("chats/broken.json", "{")
    program.write("chats/code.py", "print()")
    done = program.run("import", "chats", "--recordings", "runs")
    assert done.returncode == 0, done.stderr
    assert "(a.json)" in done.stdout and "(b.json)" in done.stdout
    assert "· broken.json: line 1: not imported: is not JSON" in done.stdout
    assert "· code.py: not imported: it is a Python file" in done.stdout
    assert "chats (openai) became chats.toml: 2 cases, 2 left out" in done.stdout
    assert (program.folder / "chats.toml").read_text(encoding="utf-8").count("[[tools]]") == 1
    assert "2 runs: 2 passed" in program.run("grade", "runs").stdout
    program.write("chats/z.json", json.dumps(ADK))
    several = program.run("import", "chats", "-o", "all.toml")
    assert several.returncode == 2 and "several forms (z.json: adk, a.json: openai)" in several.stderr
    chosen = program.run("import", "chats", "-o", "all.toml", "--from", "openai")
    assert "z.json: not imported" in chosen.stdout.replace("z.json: line 1", "z.json")


def test_nothing_is_overwritten_unless_it_is_said(program: Program) -> None:
    program.write("chats.json", json.dumps(OPENAI))
    suite = program.write("chats.toml", "mine")
    refused = program.run("import", "chats.json")
    assert refused.returncode == 2 and "chats.toml exists" in refused.stderr
    dry = program.run("import", "chats.json", "--dry-run")
    assert dry.returncode == 0 and "would become" in dry.stdout
    assert suite.read_text() == "mine"
    assert program.run("import", "chats.json", "--recordings", "runs", "--force").returncode == 0
    again = program.run("import", "chats.json", "-o", "other.toml", "--recordings", "runs")
    assert again.returncode == 2 and "runs has recordings already" in again.stderr
    assert not (program.folder / "other.toml").exists()
    assert program.run("import", "chats.json", "--recordings", "runs", "--force").returncode == 0
    assert len([*(program.folder / "runs").iterdir()]) == 2


def test_no_secret_of_a_file_gets_into_what_is_made_of_it(program: Program) -> None:
    program.write("chats.json", json.dumps(said_in(f"Use {KEY} and planted-4711-pw")))
    done = program.run("import", "chats.json", "--recordings", "runs")
    assert done.returncode == 0, done.stderr
    assert "1 value that looked like a key became $IMPORTED_KEY_…" in done.stdout
    made = [program.folder / "chats.toml", *(program.folder / "runs").iterdir()]
    texts = [done.stdout, done.stderr, *(file.read_text(encoding="utf-8") for file in made)]
    assert not [text for text in texts if KEY in text or "planted-4711-pw" in text]
    assert "Use $IMPORTED_KEY_1 and $DB_PASSWORD" in made[0].read_text(encoding="utf-8")
    assert "token = { present = true }" in made[0].read_text(encoding="utf-8")
    assert program.run("grade", "runs").returncode == 0


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("x.json", "{", "line 1: is not JSON"),
        ("x.json", '{"a": 1}', "has no form that can be recognized: name one with --from"),
        ("x.yaml", "a: [", "line 2: is not YAML"),
        ("x.csv", "a,b\n1,2,3\n", "line 2: has 3 values, and the first line names 2"),
        ("x.json", "", "the file is empty"),
        ("x.jsonl", '{"messages": []}\n{"messages": [\n', "line 2: is not JSON"),
    ],
)
def test_what_cannot_be_read_is_refused_with_place_and_reason(
    program: Program, name: str, text: str, says: str
) -> None:
    program.write(name, text)
    done = program.run("import", name)
    assert done.returncode == 2
    assert says in done.stderr
    assert "nothing was imported" in done.stderr
    assert not (program.folder / "x.toml").exists()


def test_a_table_needs_its_map_which_decides_the_form(program: Program) -> None:
    program.write("rows.jsonl", '{"question": "Hi", "expected": "greet", "more": 1}\n')
    assert "has no form that can be recognized" in program.run("import", "rows.jsonl").stderr
    unknown = program.run("import", "rows.jsonl", "--map", "query=question")
    assert unknown.returncode == 2 and "write MEANING=FIELD" in unknown.stderr
    done = program.run("import", "rows.jsonl", "--map", "user=question,tool=expected")
    assert done.returncode == 0, done.stderr
    assert "✓ expected → tool" in done.stdout and "· fields without a meaning in --map: more" in done.stdout
    assert program.run("validate", "rows.toml").returncode == 0


def test_without_a_place_for_its_files_no_suite_is_written(program: Program) -> None:
    program.write("chats.json", json.dumps(OPENAI))
    program.write("runs", "a file")
    unrecorded = program.run("import", "chats.json", "--recordings", "runs")
    assert unrecorded.returncode == 2
    assert "no suite was written, since the run cannot be saved in runs" in unrecorded.stderr
    assert not (program.folder / "chats.toml").exists()
    nowhere = program.run("import", "chats.json", "-o", "no/chats.toml", "--recordings", "kept")
    assert nowhere.returncode == 2 and "no/chats.toml cannot be written: there is no folder no" in nowhere.stderr
    assert not (program.folder / "kept").exists()


def test_a_missing_file_and_an_unknown_form_are_refused(program: Program) -> None:
    assert "nothing.json cannot be read: No such file" in program.run("import", "nothing.json").stderr
    assert program.run("import", "nothing.json", "--from", "parquet").returncode == 2


def test_tools_come_from_another_suite_or_from_a_list(program: Program) -> None:
    program.write("w.evalset.json", json.dumps(ADK))
    program.write("tools.json", json.dumps({"tools": [{"name": "get_weather", "inputSchema": WEATHER_SCHEMA}]}))
    done = program.run("import", "w.evalset.json", "--tools-from", "tools.json")
    assert done.returncode == 0, done.stderr
    assert "· now: not defined in tools.json" in done.stdout and "no definitions of tools" not in done.stdout
    assert "expects 'now', but no such tool is offered" in program.run("validate", "w.toml").stderr
    program.write("chats.json", json.dumps(OPENAI))
    tools = 'format = 1\nname = "T"\n[[tools]]\nname = "now"\n[[tools]]\nname = "get_weather"\n'
    program.write("parts/tools.toml", f'{tools}[[servers]]\nname = "clock"\ncommand = ["python", "clock.py"]\n')
    done = program.run("import", "w.evalset.json", "--tools-from", "parts/tools.toml", "--force")
    assert (
        "· the servers of parts/tools.toml start in the new suite's folder: check paths in their commands"
        in done.stdout
    )
    assert program.run("validate", "w.toml").stdout.startswith("1 valid suite (3 cases)")
    own = program.run("import", "chats.json", "--tools-from", "parts/tools.toml")
    assert "· get_weather: defined by the file itself; the definition in parts/tools.toml is ignored" in own.stdout
    assert 'offer = ["get_weather"]' in (program.folder / "chats.toml").read_text(encoding="utf-8")
    refused = program.run("import", "chats.json", "--tools-from", "w.evalset.json", "--force")
    assert refused.returncode == 2 and "w.evalset.json: must be a list, not a table" in refused.stderr


def test_rows_that_become_no_case_are_counted(program: Program) -> None:
    program.write("rows.csv", 'query,tool,expected_args\nHi,get,{"a": 1}\nHo,get,{bad\n')
    done = program.run("import", "rows.csv", "--dry-run", "--map", "user=query,tool=tool,args=expected_args")
    assert "1 case, 1 left out" in done.stdout
