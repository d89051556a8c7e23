"""The state remembered between sessions, and damage to its file."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from workbench.tui.kit.memory import EMPTY_MEMORY, MAX_PROJECTS, Memory, MemoryContent, ProjectPosition

HOME = ProjectPosition("/suites/home.toml", "movie-night", (("folder", "/suites/old"),), ("offline", "fast"))
ALL = (
    MemoryContent("paper", "form", "run", True).with_position("/suites", HOME).with_command("zoom").with_command("copy")
)
ALL = replace(ALL, borders={"wide": (0.3, 0.6), "narrow": (0.4,)})

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def test_what_was_remembered_is_there_the_next_time(tmp_path: Path) -> None:
    file = tmp_path / "state" / "app.json"
    assert Memory(file).read() == EMPTY_MEMORY
    Memory(file).change(lambda _: ALL)
    assert Memory(file).read() == ALL


def test_two_programs_at_once_keep_what_the_other_did_not_touch(tmp_path: Path) -> None:
    one, other = Memory(tmp_path / "app.json"), Memory(tmp_path / "app.json")
    one.change(lambda known: replace(known, theme="paper"))
    other.change(lambda known: replace(known, zoomed=True))
    one.change(lambda known: replace(known, theme="ember"))
    assert other.read() == MemoryContent("ember", zoomed=True)


def test_nothing_is_written_when_nothing_changed(tmp_path: Path) -> None:
    Memory(tmp_path / "app.json").change(lambda known: known)
    assert not list(tmp_path.iterdir())


def test_projects_that_were_not_open_for_long_are_forgotten() -> None:
    known = EMPTY_MEMORY
    for number in range(MAX_PROJECTS + 5):
        known = known.with_position(f"/{number}", HOME)
    known = known.with_position("/5", ProjectPosition("other"))
    assert len(known.projects) == MAX_PROJECTS
    assert next(iter(known.projects)) == "/6"
    assert [*known.projects][-1] == "/5"


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"format": 9}', b"[" * 50_000, b'{"format": 1, "x": 1}'])
def test_a_damaged_or_unknown_file_counts_as_none_and_the_log_says_so(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "app.json"
    file.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert Memory(file).read() == EMPTY_MEMORY
    assert str(file) in caplog.text
    Memory(file).change(lambda _: ALL)
    assert Memory(file).read() == ALL


def test_a_place_that_cannot_be_written_is_no_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "state").write_text("a file")
    Memory(tmp_path / "state" / "app.json").change(lambda _: ALL)
    assert "cannot be written" in caplog.text


LOOKS = st.dictionaries(st.sampled_from(["theme", "view", "right", "zoomed", "projects", "commands", "borders"]), JSON)
PLACES = st.dictionaries(st.sampled_from(["suite", "case", "folded", "models", "x"]), JSON)


@settings(max_examples=examples(100))
@given(LOOKS, PLACES)
def test_whatever_stands_in_the_file_can_be_read_and_kept(
    tmp_path_factory: pytest.TempPathFactory, looks: dict[str, object], place: dict[str, object]
) -> None:
    file = tmp_path_factory.mktemp("memory") / "app.json"
    for content in (looks, {"projects": {"/p": place}}):
        file.write_text(json.dumps({"format": 1, **content}))
        found = Memory(file).read()
        Memory(file).change(lambda known: known.with_position("/q", HOME))
        assert Memory(file).read() == found.with_position("/q", HOME)
