"""README.md, followed to the letter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tui.pages import ROOT, Block, blocks_of, clone_in, follow, shell_in
from tests.tui.shell.test_first_steps import INSTALLS
from workbench.suite.project import find_suites

README = (ROOT / "README.md").read_text(encoding="utf-8")
START, SUITE, RUN, _ = blocks_of(README)
COMMAND, *OUTPUT = RUN.text.splitlines()

LONGEST_CHARACTERS = 3_500


def without_times(text: str) -> str:
    return re.sub(r" +(?:<?\d+ ms|[\d.]+ s)\b", " N ms", text)


def test_the_start_command_opens_the_samples_and_its_key_runs_one_that_passes(tmp_path: Path) -> None:
    assert "`r` runs the case under the cursor, `R` its suite, `?` shows the keys, `q` quits." in README
    clone = clone_in(tmp_path)
    assert any("sample_suites" not in str(found) for found in find_suites([clone])), "other suites are in the clone too"
    seen = [
        Block("sh", START.text.removeprefix(INSTALLS)),
        Block("screen", "▾ sample_suites\n· Exact id"),
        Block("keys", "r"),
        Block("screen", "✓ passed 1.00  critics"),
        Block("keys", "R"),
        Block("screen", "✓ Exact id"),
        Block("keys", "q"),
    ]
    with shell_in(clone) as terminal:
        follow(seen, terminal)


def test_the_suite_runs_as_installed_and_prints_what_is_shown(tmp_path: Path) -> None:
    clone = clone_in(tmp_path)
    assert len(SUITE.text.splitlines()) == 10
    assert "Save this as `lights.toml`:" in README
    (clone / "lights.toml").write_text(SUITE.text, encoding="utf-8")
    shown = [part.strip("\n") for part in "\n".join(OUTPUT).split("…") if part.strip()]
    assert shown and COMMAND.startswith("$ .venv/bin/workbench run ")
    with shell_in(clone, rows=60) as terminal:
        follow([Block("sh", COMMAND.removeprefix("$ "))], terminal)
        terminal.wait_for("in the history")
        for part in shown:
            assert without_times(part) in without_times(terminal.screen)


@pytest.mark.parametrize("command", re.findall(r"`(\.venv/bin/workbench[^`]*)`", README))
def test_the_other_commands_work_as_they_are_written(tmp_path: Path, command: str) -> None:
    clone = clone_in(tmp_path)
    (clone / "lights.toml").write_text(SUITE.text, encoding="utf-8")
    with shell_in(clone) as terminal:
        follow([Block("sh", command), Block("screen", "Kitchen light"), Block("keys", "q")], terminal)


def test_it_is_short() -> None:
    assert len(README) < LONGEST_CHARACTERS
