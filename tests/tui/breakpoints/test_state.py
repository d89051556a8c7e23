"""Breakpoints that are set, switched, changed and stored: the resulting file, and damaged files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.config.folders import project_folder
from workbench.config.secrets import Secrets
from workbench.engine.breakpoints import Breakpoint, breakpoint_line, breakpoint_of
from workbench.tui.breakpoints.project import BreakpointFile, Breakpoints

LINES = ("tool send_email", "tool set_lights when { brightness = { range = [50, 100] } }", "error", "round 2")
POINTS = tuple(map(breakpoint_of, LINES))


def file_in(folder: Path) -> BreakpointFile:
    return BreakpointFile(folder / "breakpoints", folder / "project")


def said(points: Breakpoints) -> list[tuple[str, bool]]:
    return [(breakpoint_line(point), point.enabled) for point in points.points]


def test_what_is_kept_comes_back_switched_off_ones_too(tmp_path: Path) -> None:
    points = Breakpoints(file=file_in(tmp_path))
    for point in POINTS:
        points.put(point)
    points.toggle(2)
    assert file_in(tmp_path).read() == (points.points, None)
    text = file_in(tmp_path).path.read_text()
    assert text.splitlines()[1:] == [LINES[0], LINES[1], f"off {LINES[2]}", LINES[3]]
    assert file_in(tmp_path).path.stat().st_mode & 0o077 == 0


def test_a_secret_in_a_condition_holds_runs_and_is_not_in_the_file(tmp_path: Path) -> None:
    secrets = Secrets()
    secrets.add("PASS", "open-sesame")
    points = Breakpoints(file=file_in(tmp_path), secrets=secrets)
    line = 'tool login when { token = "open-sesame" }'
    assert (points.put(POINTS[0]), points.put(breakpoint_of(line))) == (0, 1)
    assert said(points) == [(LINES[0], True), (line, True)]
    assert points.problem is not None and "is not saved" in points.problem
    assert file_in(tmp_path).read() == ((POINTS[0],), None)


def test_each_project_has_a_file_of_its_own(tmp_path: Path) -> None:
    one, two = (BreakpointFile(tmp_path, tmp_path / name / "suites") for name in ("one", "two"))
    assert one.write(POINTS) is None
    assert two.read() == ((), None)


def test_switching_sets_takes_away_and_switches_on_again() -> None:
    points = Breakpoints()
    assert points.switch(POINTS[0]) == "set"
    points.toggle(0)
    assert points.switch(POINTS[0]) == "switched on"
    assert points.switch(POINTS[0]) == "removed"
    assert points.points == ()


def test_the_same_breakpoint_is_never_there_twice() -> None:
    points = Breakpoints(POINTS)
    assert points.put(POINTS[2]) == 2
    assert points.put(POINTS[2], 0) == 0
    assert points.put(POINTS[2], 9) == 0, "the one that was to be changed was taken away meanwhile"
    assert said(points) == [(LINES[2], True), (LINES[1], True), (LINES[3], True)]


def test_a_changed_breakpoint_stays_off() -> None:
    points = Breakpoints(POINTS)
    points.toggle(0)
    points.put(Breakpoint("tool", "other"), 0)
    assert said(points)[0] == ("tool other", False)


def test_all_are_switched_and_every_change_is_told() -> None:
    points, told = Breakpoints(POINTS), []
    points.changed = lambda: told.append(points.tools)
    points.enable_all(False)
    points.enable_all(True)
    assert told == [frozenset(), {"send_email", "set_lights"}]


def test_lines_of_a_damaged_file_that_can_be_read_are_kept_and_the_file_is_set_aside(tmp_path: Path) -> None:
    file = file_in(tmp_path)
    file.write(POINTS)
    file.path.write_bytes(file.path.read_bytes() + b"tool\nerror \xff\n")
    points, problem = file.read()
    assert points == POINTS
    assert problem is not None
    assert f"{file.path.name}.damaged" in problem
    assert "4 of its breakpoints could be read" in problem
    assert file.read() == (POINTS, None)
    assert b"\xff" in file.path.with_name(f"{file.path.name}.damaged").read_bytes()


@given(st.binary(max_size=200))
def test_whatever_stands_in_the_file_it_is_read_in_words(tmp_path_factory: pytest.TempPathFactory, junk: bytes) -> None:
    file = file_in(tmp_path_factory.mktemp("junk"))
    file.path.parent.mkdir()
    file.path.write_bytes(junk)
    points, _ = file.read()
    assert file.read() == (points, None)


def test_a_file_where_the_folder_should_be_is_told_and_the_breakpoint_holds(tmp_path: Path) -> None:
    (tmp_path / "breakpoints").write_text("")
    points = Breakpoints(file=file_in(tmp_path))
    points.switch(POINTS[0])
    assert points.points == POINTS[:1]
    assert points.problem is not None
    assert points.problem.endswith("they work until you quit")


def test_a_project_is_the_nearest_folder_with_settings_or_a_repository(tmp_path: Path) -> None:
    inner = tmp_path / "project" / "suites" / "deep"
    inner.mkdir(parents=True)
    assert project_folder(inner, None) == inner
    (tmp_path / "project" / ".git").mkdir()
    assert project_folder(inner, None) == tmp_path / "project"
    assert project_folder(inner, tmp_path / "project") == inner
    (tmp_path / "project" / "suites" / "workbench.toml").touch()
    assert project_folder(inner, None) == tmp_path / "project" / "suites"
