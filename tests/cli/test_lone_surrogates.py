"""Models may write half of a surrogate pair, which UTF-8 cannot express: every JSON form holds it escaped."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER

HALF = "\ud800"
RUN = {
    "calls": [{"tool": "get_weather", "arguments": {"city": f"Oslo{HALF}"}, "result": f"Rain{HALF}"}],
    "answer": f"It rains{HALF}",
}
SUBJECT = 'subject = { command = ["python", "agent.py"], name = "agent" }\n'
OUT = "out/weather.right.agent.1.run.jsonl"
WHOLE = (r"Oslo\ud800", r"Rain\ud800", r"It rains\ud800")
"""The argument, the result and the answer, escaped."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A batch and a recording of a run with lone surrogates, and a file with its calls."""
    program = Program(tmp_path_factory.mktemp("surrogates"))
    program.write("weather.toml", SUBJECT + WEATHER)
    program.write("agent.py", f"print({json.dumps(RUN)!r})")
    program.write("calls.json", json.dumps({"cases": {"right": RUN}}))
    done = program.run("run", "weather.toml", "--trust", "--record", "out", "--format", "jsonl")
    assert (done.returncode, done.stderr) == (1, "")
    program.write("events.jsonl", done.stdout)
    return program


@pytest.mark.parametrize(
    ("words", "held"),
    [
        (("run", "weather.toml", "--trust", "--format", "json"), WHOLE),
        (("run", "weather.toml", "--trust", "--format", "json", "--lean"), WHOLE),
        (("run", "weather.toml", "--trust", "--format", "records"), WHOLE),
        (("run", "weather.toml", "--trust", "--format", "jsonl"), WHOLE),
        (("history", "show", "1", "--format", "json"), ()),
        (("history", "show", "1", "--format", "json", "--lean"), ()),
        (("history", "show", "1", "--format", "records"), WHOLE),
        (("history", "show", "1", "--run", "1", "--format", "json"), WHOLE),
        (("history", "show", "--case", "right", "--format", "json"), ()),
        (("history", "diff", "1", "1", "--format", "json"), ()),
        (("grade", OUT, "--format", "json"), WHOLE),
        (("grade", OUT, "--format", "json", "--lean"), WHOLE),
        (("grade", "1", "--format", "json"), ()),
        (("grade", "--suite", "plain.toml", "--calls", "calls.json", "--format", "json"), WHOLE),
    ],
    ids=" ".join,
)
def test_every_json_form_can_be_read_and_holds_it(
    recorded: Program, words: tuple[str, ...], held: tuple[str, ...]
) -> None:
    recorded.write("plain.toml", WEATHER)
    done = recorded.run(*words)
    assert (done.returncode in (0, 1), ascii(done.stderr)) == (True, "''")
    assert missing_in(done.stdout, held) == []


@pytest.mark.parametrize(
    ("form", "held"),
    [
        *[(form, WHOLE) for form in ("inspect", "atif", "recordings", "json", "records", "messages")],
        ("otlp", ()),  # names, counts and verdicts alone
    ],
)
def test_every_exported_file_can_be_read_and_holds_it(
    recorded: Program, tmp_path: Path, form: str, held: tuple[str, ...]
) -> None:
    done = recorded.run("export", "1", "--format", form, "-o", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert files
    for file in files:
        assert missing_in(file.read_text(encoding="utf-8"), held) == []


def missing_in(text: str, expected: tuple[str, ...]) -> list[str]:
    """Return the texts that are missing in a JSON document, or in a document for each line."""
    documents: list[Any]
    try:
        documents = [json.loads(text)]
    except json.JSONDecodeError:
        documents = list(map(json.loads, text.splitlines()))
    # A JSON text within a string is escaped twice.
    content = re.sub(r"\\+", r"\\", json.dumps(documents))
    return [each for each in expected if each not in content]
