"""Tools that are remembered from when their server last ran."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.programs import grant_of
from tests.tools.conftest import PLANTED, QUICK, SERVERS
from workbench.config.program import Program
from workbench.suite.model import Case, Suite
from workbench.suite.server_model import Server
from workbench.tools.answer import ServerError, UntrustedError
from workbench.tools.listings import DamagedListingError, StoredListings
from workbench.tools.server_pool import ServerPool
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import ToolCall, ToolDefinition

NOW = datetime.fromisoformat("2026-11-20T18:02:03+01:00")
FILE = Path("/suites/home.toml")
HOME = Server(name="home", command=("home",), prefix="h_")
TOOLS = (
    ToolDefinition("h_lock", "Locks.", {"type": "object"}, {"readOnlyHint": False}, "home"),
    ToolDefinition("h_look", "Sch\ud800n.", server="home"),
)


@pytest.fixture
def listings(tmp_path: Path) -> StoredListings:
    return StoredListings(tmp_path / "listings", lambda: NOW)


def test_what_is_remembered_is_recalled(listings: StoredListings, tmp_path: Path) -> None:
    listings.remember(FILE, HOME, TOOLS)
    listing = listings.recall(FILE, HOME)
    assert listing is not None
    assert (listing.tools, listing.listed_at) == (TOOLS, NOW)
    (file,) = (tmp_path / "listings").iterdir()
    assert file.name.startswith("home-home-")
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["format"] == 1


def test_long_names_of_any_script_are_remembered_too(listings: StoredListings) -> None:
    file, server = FILE.with_name("宅" * 80 + ".toml"), HOME.model_copy(update={"name": "服" * 80})
    listings.remember(file, server, TOOLS)
    assert listings.recall(file, server) is not None


def test_another_suite_and_another_definition_are_other_servers(listings: StoredListings) -> None:
    listings.remember(FILE, HOME, TOOLS)
    assert listings.recall(FILE.with_name("other.toml"), HOME) is None
    assert listings.recall(FILE, HOME.model_copy(update={"prefix": ""})) is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "null",
        "[" * 100_000,
        '{"format": 2}',
        '{"format": 1, "listed_at": "x", "tools": []}',
        '{"format": 1, "listed_at": "2026-11-20T18:02:03+01:00", "tools": {}}',
        '{"format": 1, "listed_at": "2026-11-20T18:02:03+01:00", "tools": [1]}',
        '{"format": 1, "listed_at": "2026-11-20T18:02:03+01:00", "tools": [{"name": 1}]}',
    ],
)
def test_a_damaged_listing_is_named(listings: StoredListings, tmp_path: Path, content: str) -> None:
    listings.remember(FILE, HOME, TOOLS)
    (file,) = (tmp_path / "listings").iterdir()
    file.write_text(content)
    with pytest.raises(DamagedListingError, match=f"{file} is damaged and was ignored"):
        listings.recall(FILE, HOME)
    assert listings.of(Suite(format=1, name="s", servers=(HOME,)), FILE) == {}


def test_a_listing_that_cannot_be_written_harms_nobody(tmp_path: Path) -> None:
    (tmp_path / "listings").write_text("a file in the way")
    StoredListings(tmp_path / "listings").remember(FILE, HOME, TOOLS)


class Shop:
    """A suite with one server, whose program can be taken away."""

    def __init__(self, folder: Path, program: Program) -> None:
        self.file = folder / "suite.toml"
        self.source = folder / "shop.py"
        self.source.write_text((SERVERS / "antique.py").read_text())
        self.program = program
        servers: list[Any] = [{"name": "shop", "command": ["python", "shop.py"], "env": {"TOKEN": "$SHOP_TOKEN"}}]
        self.suite = Suite.model_validate({"format": 1, "name": "s", "servers": servers})

    async def open(self, *, execute: bool = False, trusted: bool = True) -> Toolbox:
        """The toolbox of a run of a program that has just begun."""
        pool = ServerPool(self.program, QUICK, lambda: NOW)
        try:
            grant = grant_of(self.suite, self.file, self.program.environment) if trusted else None
            case = Case(id="c", name="c", user="u")
            return await pool.open_toolbox(self.suite, case, self.file, execute=execute, grant=grant)
        finally:
            await pool.close()

    def stored(self, tools: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
        """Tools as they are remembered: without secrets."""
        return self.program.secrets.redacted(tools)

    @property
    def listing(self) -> Path:
        (file,) = self.program.folders.listings.iterdir()
        return file


@pytest.fixture
def shop(tmp_path: Path, program: Program) -> Shop:
    return Shop(tmp_path, program)


async def test_a_server_that_is_asked_needs_no_notice(shop: Shop) -> None:
    assert (await shop.open()).notices == ()
    assert (await shop.open()).notices == ()


async def test_the_tools_of_a_server_that_does_not_start_are_those_it_last_listed(shop: Shop) -> None:
    tools = (await shop.open()).definitions
    shop.source.unlink()
    toolbox = await shop.open()
    assert toolbox.definitions == shop.stored(tools)
    (notice,) = toolbox.notices
    assert notice.startswith(
        "tools of server 'shop' as listed on 2026-11-20 18:02: "
        "server 'shop' ended with exit code 2 before it listed its tools (command: python shop.py; log: "
    )
    planned = await toolbox.plan(ToolCall("c1", "say"))
    assert planned.source == "default"


async def test_the_tools_of_an_untrusted_suite_are_those_listed_when_it_was_trusted(shop: Shop) -> None:
    tools = (await shop.open()).definitions
    shop.source.write_text("raise SystemExit('started without trust')")
    toolbox = await shop.open(trusted=False)
    assert toolbox.definitions == shop.stored(tools)
    assert toolbox.notices == ("tools of server 'shop' as listed on 2026-11-20 18:02: the suite is not trusted",)


async def test_what_is_to_be_executed_is_never_taken_from_memory(shop: Shop) -> None:
    await shop.open()
    shop.source.unlink()
    with pytest.raises(ServerError, match="ended with exit code 2"):
        await shop.open(execute=True)
    with pytest.raises(UntrustedError):
        await shop.open(execute=True, trusted=False)


async def test_without_memory_the_error_says_what_to_do(shop: Shop) -> None:
    with pytest.raises(UntrustedError, match=r"its server 'shop' is not started, and no earlier run .* --trust"):
        await shop.open(trusted=False)
    shop.source.unlink()
    with pytest.raises(ServerError, match="ended with exit code 2"):
        await shop.open()


async def test_a_damaged_listing_is_ignored_and_said_to_be(shop: Shop) -> None:
    await shop.open()
    shop.listing.write_text("{")
    with pytest.raises(UntrustedError, match=rf"; {shop.listing} is damaged and was ignored"):
        await shop.open(trusted=False)
    await shop.open()
    assert (await shop.open(trusted=False)).definitions


async def test_whoever_asks_for_trust_can_know_what_is_remembered(shop: Shop) -> None:
    pool = ServerPool(shop.program)
    assert pool.stored_listings(shop.suite, shop.file) == {}
    tools = (await shop.open()).definitions
    assert pool.stored_listings(shop.suite, shop.file)["shop"].tools == shop.stored(tools)


async def test_a_listing_holds_no_secret(shop: Shop) -> None:
    (tool,) = (await shop.open()).definitions
    assert tool.description == PLANTED
    (remembered,) = (await shop.open(trusted=False)).definitions
    assert remembered.description == "$SHOP_TOKEN"
    assert PLANTED not in shop.listing.read_text()
