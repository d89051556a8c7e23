"""A folder with a suite, in which the examples of docstrings and of the documentation run unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

CLOCK = """format = 1
name = "Clock"

[[tools]]
name = "get_time"
description = "The current time in a time zone."
parameters = { type = "object", required = ["timezone"], properties = { timezone = { type = "string" } } }

[[mocks]]
tool = "get_time"
result = "It is 12:00 in {timezone}."

[[cases]]
name = "Time in Bergen"
user = "What time is it in Bergen?"
tags = ["time"]
[[cases.ordered]]
tool = "get_time"
args = { timezone = "Europe/Oslo" }

[[cases]]
name = "Small talk"
user = "How are you?"
expect_no_calls = true
"""

BROKEN = """format = 1
name = "Broken"
[[cases]]
name = "Typing error"
user = "What time is it?"
expect_no_cals = true
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with suites. The program stores its data below it."""
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    (project / "clock.toml").write_text(CLOCK, encoding="utf-8")
    (project / "broken.toml").write_text(BROKEN, encoding="utf-8")
    return project
