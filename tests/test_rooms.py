"""The table of rooms, the import contract and the actual imports agree."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from workbench.suite.grading_model import GRADERS

ROOT = Path(__file__).parent.parent
HEAVY = ("openai", "anthropic", "mcp", "textual")


LAYERS = [
    [name.strip().removeprefix("workbench.") for name in layer.split("|")]
    for layer in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ][0]["layers"]
]
ROOMS = {
    room: {below for layer in LAYERS[level + 1 :] for below in layer}
    for level, rooms in enumerate(LAYERS)
    for room in rooms
}
"""Each room, and those it may import."""


def test_every_room_is_a_layer_and_a_row_of_the_table() -> None:
    packages = {path.parent.name for path in (ROOT / "workbench").glob("*/__init__.py")}
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert packages == set(ROOMS) == set(re.findall(r"^\| `(\w+)` \|[^|]*\|$", text, re.MULTILINE))


IMPORTER = """
import json, os, sys
import aiohttp, pydantic, rich
for room, names in json.load(sys.stdin).items():
    sys.stdout.flush()
    if os.fork() == 0:
        for name in names:
            __import__(name)
        print(json.dumps([room, [*sys.modules]]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, room
"""
"""Imports each room in a separate process, forked from one that has imported what most rooms need."""


ON_USE = ("workbench.tools.oauth",)
"""Modules whose classes derive from those of a heavy package: their room imports them on use alone."""


def modules_of(room: str) -> list[str]:
    names = [
        "workbench." + ".".join(path.relative_to(ROOT / "workbench").with_suffix("").parts)
        for path in sorted((ROOT / "workbench" / room).rglob("*.py"))
        if path.name not in ("__init__.py", "__main__.py")
    ]
    return [name for name in names if name not in ON_USE]


def loaded_by(imported: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the modules that are loaded after the imports of each key."""
    given = json.dumps(imported)
    done = subprocess.run([sys.executable, "-c", IMPORTER], input=given, capture_output=True, text=True, check=True)
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.slow
def test_importing_a_whole_room_loads_no_room_that_it_must_not_reach() -> None:
    loaded_by_room = loaded_by({room: modules_of(room) for room in ROOMS})
    assert loaded_by_room.keys() == ROOMS.keys()
    for room, loaded in loaded_by_room.items():
        assert set(modules_of(room)) & set(loaded), room
        loaded_rooms = {name.split(".")[1] for name in loaded if name.startswith("workbench.")} & set(ROOMS)
        assert loaded_rooms <= {room, *ROOMS[room]}, room
        allowed_heavy = {"tui": {"textual"}, "integrations": {"mcp"}}.get(room, set())
        assert not {name for name in HEAVY if name in loaded} - allowed_heavy, room


MOST_MODULES = {
    **{f"grading.{grader}": 35 for grader in GRADERS},
    "grading.trajectory": 37,
    "show.junit": 25,
    "tui.failures.screen": 40,
    "tui.history.batches_screen": 46,
    "tui.history.timeline": 40,
    "tui.tools.log_screen": 30,
}
"""How many of our modules one of them may load, itself among them, packages aside.

A grader needs the records of a run (with their media), the models of a suite (with their servers and places), and every
check (with the clock); `trajectory` also the results of calls and prohibitions."""


@pytest.mark.slow
def test_a_module_loads_little_besides_itself() -> None:
    loaded = loaded_by({f"workbench.{name}": [f"workbench.{name}"] for name in MOST_MODULES})
    for name, most in MOST_MODULES.items():
        files = [(ROOT / module.replace(".", "/")).with_suffix(".py") for module in loaded[f"workbench.{name}"]]
        ours = [str(file.relative_to(ROOT)) for file in files if file.is_file()]
        assert len(ours) <= most, f"{name} loads {len(ours)} modules: {', '.join(sorted(ours))}"


SEAMS = ("api", "agents", "cli.main", "checks", "grading", "analysis", "suite")
"""What tests of the rooms at the edge import: the public interface, `main`, and the pure rooms."""

IMPORT_MORE = {
    "api": "evaluating framework_agents media provider_tools",
    "cli": """
        batches forking detached export github grade_calls history history_file init models options progress
        published_scores recordings repeated resume resume_of_odd_batches shards static_findings stopping
        unwritable_history
    """,
    "evaluation": """
        adding approval ci_jobs client_servers clocks cluster cluster_limits cost_limit exit_code_property
        instructions kept_runs one_door reachable repeated_keys run runtime starter stored_runs
    """,
    "integrations": "pytest_plugin",
    "remote": "batches gate read_only_walk records serve server",
}
"""Tests of the rooms at the edge that import more of the program. Add none: a new test goes through
`workbench.evaluate`, a command, or the app."""


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)


def test_tests_of_the_rooms_at_the_edge_reach_the_program_as_a_user_does() -> None:
    for room, names in IMPORT_MORE.items():
        found = set()
        for file in (ROOT / "tests" / room).rglob("*.py"):
            inside = {name.partition(".")[2] for name in _imported(file) if name.startswith("workbench.")}
            if any(not name.startswith(SEAMS) for name in inside):
                found.add(file.stem.removeprefix("test_"))
        assert found == set(names.split()), room


def test_the_files_that_the_architecture_names_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text[text.index("## Where to change what") :].split("\n## ")[0]
    assert len(re.findall(r"^\| [a-z]", section, re.MULTILINE)) == 26  # a head and 25 changes
    rooms = "|".join(ROOMS)
    named = re.findall(rf"`((?:workbench|themes|{rooms})/[\w/.*<>]+)`", text)
    assert len(named) > 40
    missing = []
    for name in named:
        pattern = name.replace("<feature>", "*")
        if not [*ROOT.glob(pattern), *ROOT.glob(f"workbench/{pattern}")]:
            missing.append(name)
    assert not missing


def test_the_modules_that_the_architecture_names_exist() -> None:
    """Names such as `tui.storage` or `engine.recorder.Recorder` are those of a module or of an object in it."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = "|".join(ROOMS)
    missing = []
    for dotted in sorted(set(re.findall(rf"`((?:{rooms})(?:\.\w+)+)`", text))):
        parts = dotted.split(".")
        paths = [ROOT.joinpath("workbench", *parts[:count]) for count in range(2, len(parts) + 1)]
        found = [path for path in paths if path.with_suffix(".py").exists() or path.is_dir()]
        if not found:
            missing.append(dotted)
            continue
        inside = parts[len(found[-1].relative_to(ROOT / "workbench").parts) :]
        file = found[-1].with_suffix(".py")
        if inside and (not file.exists() or not re.search(rf"\b{inside[0]}\b", file.read_text(encoding="utf-8"))):
            missing.append(dotted)
    assert not missing
