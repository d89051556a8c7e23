"""docs/recordings.md: its example is a recording, its commands for jq work, and it explains every key."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from tests.tables import each_row
from workbench.dataclasses import stored_name
from workbench.trajectory.events import Message, ToolDefinition, Usage
from workbench.trajectory.recording import EVENT_NAMES, Header, RecordedSuite, read_recording

PAGE = (Path(__file__).parents[2] / "docs" / "recordings.md").read_text(encoding="utf-8")


@pytest.fixture
def example(tmp_path: Path) -> Path:
    found = re.search(r"<!-- example -->\n```jsonl\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    file = tmp_path / "x.run.jsonl"
    file.write_text(found[1], encoding="utf-8")
    return file


def test_the_example_is_a_whole_recording(example: Path) -> None:
    recording = read_recording(example)
    assert recording.complete
    assert [call.tool for call in recording.trajectory.calls] == ["get_weather"]


@pytest.mark.parametrize("cls", [Header, RecordedSuite, Message, ToolDefinition, Usage])
def test_every_key_of_what_is_recorded_is_explained(cls: type) -> None:
    assert [stored_name(field) for field in fields(cls) if f"`{stored_name(field)}`" not in PAGE] == []


@each_row(("cls", "name"), EVENT_NAMES.items())
def test_every_event_has_a_row_with_its_keys(cls: type, name: str) -> None:
    [row] = [line for line in PAGE.split("\n") if re.match(rf"\| [^|]*`{name}`", line)]
    assert [stored_name(field) for field in fields(cls) if f"`{stored_name(field)}`" not in row] == []


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_the_commands_for_jq_work(example: Path) -> None:
    commands = re.findall(r"^jq .*", PAGE, re.MULTILINE)
    assert len(commands) == 3
    (example.parent / "runs").mkdir()
    shutil.copy(example, example.parent / "runs")
    shutil.copy(example, example.parent / "stream.jsonl")
    said = [
        subprocess.run(command, shell=True, cwd=example.parent, capture_output=True, text=True, check=True).stdout
        for command in commands
    ]
    assert '"tool":"get_weather"' in said[0]
    assert said[1] == "failed not equal\n"
