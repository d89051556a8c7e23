"""The choice of models: the address of each, and whether its key is set."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.engine.agents.test_agents import AGENT, SUITE
from tests.tui.apps import SMART_HOME, opened, suites_in
from workbench.config.agents import KNOWN_AGENTS
from workbench.providers.built_in import PLANTED_MODELS
from workbench.show.glyphs import GLYPHS
from workbench.suite.render import suite_text

SETTINGS = """
[models.local-llama]
provider = "openai"
base_url = "http://localhost:11434/v1"
model = "llama3.1"

[models.big]
provider = "anthropic"
model = "claude"
api_key_env = "BIG_KEY"
"""
NAMED = SMART_HOME.replace(
    'name = "Smart home"\n', 'name = "Smart home"\nmodels = ["offline", "openai:gpt-4o-mini", "no-such-model"]\n'
)


async def test_each_model_says_whose_it_is_where_it_is_reached_and_whether_its_key_is_there(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=NAMED)
    (suites / "workbench.toml").write_text(SETTINGS)
    variables = {"OPENAI_API_KEY": "sk-a-key-of-mine", "HOME": str(tmp_path)}
    async with opened(suites, size=(220, 40), variables=variables) as app:
        await app.press("m")
        rows = [line.split("[ ] ")[1] for line in app.screen.splitlines() if "[ ] " in line]
        lines = {row.split()[0]: row for row in rows}
        first = ["offline", "local-llama", "big", "openai:gpt-4o-mini", "no-such-model", *PLANTED_MODELS]
        assert list(lines)[: len(first)] == first
        assert "chooses tools by the first word" in lines["offline:hasty"]
        assert "not a language model" in lines["offline"]
        for said in ("named next to the suites", "http://localhost:11434/v1", "no key needed"):
            assert said in lines["local-llama"]
        assert "key missing: set BIG_KEY" in lines["big"]
        assert "named by smart_home" in lines["openai:gpt-4o-mini"]
        assert "key present" in lines["openai:gpt-4o-mini"]
        assert "there is no model 'no-such-model'" in lines["no-such-model"]
        assert "sk-a-key" not in app.screen
        await app.press("down", "space", "enter")
        assert app.app.main.selection.models == ("local-llama",)


@pytest.mark.slow
async def test_settings_that_cannot_be_used_are_said_above_the_list(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    (suites / "workbench.toml").write_text("[models.x]\nprovider = 'none such'\n")
    async with opened(suites, size=(200, 30), variables={"HOME": str(tmp_path)}) as app:
        await app.press("m")
        assert "workbench.toml" in app.screen
        assert "[ ] offline" in app.screen


async def test_a_model_that_was_named_when_the_app_was_opened_is_listed_and_checked(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(200, 30), models=("openai:o9",)) as app:
        await app.press("m")
        assert "[✓] openai:o9" in app.screen
        assert "chosen" in app.screen


async def test_on_80_columns_the_host_of_each_endpoint_is_readable(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=NAMED)
    (suites / "workbench.toml").write_text(SETTINGS)
    async with opened(suites, size=(80, 24), variables={"HOME": str(tmp_path)}) as app:
        await app.press("m")
        for host in ("localhost:11434", "api.anthropic.com", "api.openai.com"):
            assert host in app.screen


async def test_what_offline_is_is_said_whole_in_a_narrow_dialog(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        await app.press("m")
        (row,) = (line for line in app.screen.splitlines() if "[ ] offline (" in line)
        assert "in use · not a language model" in row
        assert "…" not in row


async def test_letters_are_a_part_of_a_name_and_space_checks(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        await app.press("m", *"tea")  # each was a command once
        assert "no model has 'tea' in its name" in app.screen
        await app.press("escape", *"stub", "space", "enter")
        assert app.app.main.selection.models == ("offline:stubborn",)


def installed(folder: Path, name: str, version: str) -> None:
    """Install the small agent of the tests as npm does: the program links to a file of its package."""
    package = folder / "lib" / name
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": name, "version": version}), encoding="utf-8")
    script = package / "index.js"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {AGENT} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / name).symlink_to(script)


@pytest.fixture
def agents_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "gemini", "0.61.0")
    installed(tmp_path, "codex-acp", "2.6.0")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")


@pytest.mark.usefixtures("agents_on_the_path")
async def test_all_agents_are_listed_with_their_version_or_the_command_that_installs_them(tmp_path: Path) -> None:
    variables = {"GEMINI_API_KEY": "key-4711", "HOME": str(tmp_path)}
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(150, 40), variables=variables) as app:
        await app.press("m")
        assert "agent:gemini" in app.screen
        assert "agent:qwen" not in app.screen
        assert "5 agents not installed: type agent to list them." in app.screen
        await app.press(*"agent:")
        rows = [line.split("[ ] ")[1].rstrip(" │") for line in app.screen.splitlines() if "[ ] " in line]
        lines = {row.split()[0]: " ".join(row.split()[1:]) for row in rows}
        assert sorted(lines) == sorted(f"agent:{name}" for name in KNOWN_AGENTS)
        assert lines["agent:gemini"] == "agent 0.61.0 · gemini --acp"
        assert lines["agent:codex"] == "agent 2.6.0, key missing: set OPENAI_API_KEY or another · codex-acp"
        assert lines["agent:qwen"] == "agent, not installed: npm install -g @qwen-code/qwen-code"
        await app.press("escape", *"agent:vibe", "space")
        assert f"{GLYPHS.warned} agent:vibe is not installed: uv tool install mistral-vibe" in app.screen
        await app.press("ctrl+t")
        assert "Agent:vibe is an agent: run a case on it" in app.screen


@pytest.mark.usefixtures("agents_on_the_path")
async def test_a_chosen_agent_runs_the_case(tmp_path: Path) -> None:
    said = json.dumps([["call", "get_weather", {"city": "Oslo"}], ["result"]])
    suite = suite_text({**SUITE, "cases": [{"name": "Oslo", "user": f"Do {said}", "response_contains": ["rain"]}]})
    variables = {"GEMINI_API_KEY": "key-4711", "HOME": str(tmp_path), "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    async with opened(suites_in(tmp_path, weather=suite), size=(120, 40), variables=variables, live=True) as app:
        await app.press("m", *"gemini", "space", "enter", "down", "r")
        await app.until(lambda: "passed" in app.screen and "tests-agent 1.2.3" in app.screen)
        assert "rain in Oslo" in app.screen
        assert "own tools off" in app.screen
