"""The tools that a suite is known to have while nothing of it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.authoring.known_tools import KnownTools, tools_of_suite
from workbench.suite.server_model import Server
from workbench.tools.listings import StoredListings
from workbench.trajectory.events import ToolDefinition

HEADER: dict[str, object] = {
    "format": 1,
    "name": "S",
    "tools": [{"name": "set_tv", "description": "TV"}, {"name": 5}, {"nam": "x"}],
    "servers": [
        {"name": "home", "command": ["python", "s.py"], "prefix": "home_"},
        {"name": "silent", "command": ["x"]},
        {"name": 7},
    ],
}
SERVER = Server(name="home", command=("python", "s.py"), prefix="home_")


@pytest.fixture
def listings(tmp_path: Path) -> StoredListings:
    return StoredListings(tmp_path / "listings")


def test_tools_written_out_and_tools_listed_before_are_known(tmp_path: Path, listings: StoredListings) -> None:
    file = tmp_path / "s.toml"
    listings.remember(file, SERVER, (ToolDefinition("home_lights"), ToolDefinition("set_tv", "of the server")))
    found = tools_of_suite(HEADER, file, listings)
    assert [(tool.name, tool.description, tool.server) for tool in found] == [
        ("set_tv", "TV", None),
        ("home_lights", "", "home"),
    ]


def test_a_server_that_is_written_differently_now_is_another_one(tmp_path: Path, listings: StoredListings) -> None:
    file = tmp_path / "s.toml"
    listings.remember(file, Server(name="home", command=("python", "other.py")), (ToolDefinition("lights"),))
    assert [tool.name for tool in tools_of_suite(HEADER, file, listings)] == ["set_tv"]


def test_a_damaged_listing_and_a_broken_header_leave_what_is_sound(tmp_path: Path, listings: StoredListings) -> None:
    file = tmp_path / "s.toml"
    listings.remember(file, SERVER, (ToolDefinition("home_lights"),))
    for remembered in (tmp_path / "listings").iterdir():
        remembered.write_text("{")
    assert [tool.name for tool in tools_of_suite(HEADER, file, listings)] == ["set_tv"]
    assert tools_of_suite({"tools": "x", "servers": 5}, file, listings) == ()


def test_tools_are_read_again_for_another_header_and_once_forgotten(tmp_path: Path, listings: StoredListings) -> None:
    file = tmp_path / "s.toml"
    known = KnownTools(listings)
    first = known.of(HEADER, file)
    listings.remember(file, SERVER, (ToolDefinition("home_lights"),))
    assert known.of(HEADER, file) is first
    assert len(known.of(dict(HEADER), file)) == 2
    known.forget()
    assert len(known.of(HEADER, file)) == 2
