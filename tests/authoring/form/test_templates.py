"""The templates of new cases, calls, mocks and suites."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tables import each_row
from workbench.authoring.form.row_changes import (
    expected_call,
    new_message,
    new_mock,
    new_step,
    new_suite,
)
from workbench.evaluation.client_servers import server_of_text
from workbench.suite.render import Table, suite_text
from workbench.suite.suite_file import parse_suite
from workbench.suite.suite_text import SuiteText
from workbench.trajectory.events import ToolDefinition

TOOL = ToolDefinition(
    "book",
    "",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "class": {"enum": ["first", "second"]},
            "seats": {"type": "integer", "minimum": 1},
            "language": {"type": "string", "default": "en"},
            "window": {"type": "boolean"},
            "day": {"type": "string", "examples": ["2026-05-01"]},
            "note": {"type": "null"},
            "args": {"type": "integer"},
            "optional": {"type": "string"},
        },
        "required": ["city", "class", "seats", "language", "window", "day", "note", "args"],
    },
)


def test_an_expected_call_has_the_required_arguments_as_the_schema_suggests_them() -> None:
    assert expected_call(TOOL) == {
        "tool": "book",
        "args": {
            "city": {"present": True},
            "class": "first",
            "seats": {"present": True},
            "language": "en",
            "window": True,
            "day": "2026-05-01",
            "note": {"equals_null": True},
            "args": {"present": True},
        },
    }


def test_where_nothing_is_required_or_known_the_arguments_do_not_matter() -> None:
    assert expected_call("book") == {"tool": "book"}
    assert expected_call(ToolDefinition("book", "", {"properties": {"city": {"type": "string"}}})) == {"tool": "book"}


def test_messages_mocks_and_steps_are_sound_in_a_case() -> None:
    case = {
        "name": "By night",
        "user": "",
        "expect_nothing_yet": True,
        "messages": [new_message(), {**new_message("assistant"), "content": "Yes?"}],
        "mocks": [new_mock(TOOL), new_mock("other")],
    }
    assert parse_suite(SuiteText.of(new_suite("Trains")).with_new_case(0, case).text, Path("t.toml")).errors == ()
    assert new_step("book", "Book it.") == {"user": "Book it.", "tool": "book"}


@each_row(
    ("text", "server"),
    [
        (
            "uvx mcp-server-git --repository .",
            {"name": "git", "command": ["uvx", "mcp-server-git", "--repository", "."]},
        ),
        (
            "npx -y @modelcontextprotocol/server-everything@2.1",
            {"name": "everything", "command": ["npx", "-y", "@modelcontextprotocol/server-everything@2.1"]},
        ),
        ("npx @playwright/mcp@latest", {"name": "playwright", "command": ["npx", "@playwright/mcp@latest"]}),
        ("python 'my tools/lights.py'", {"name": "lights", "command": ["python", "my tools/lights.py"]}),
        ("docker run -i mcp/fetch", {"name": "fetch", "command": ["docker", "run", "-i", "mcp/fetch"]}),
        ("node ./shop/dist/index.js", {"name": "shop", "command": ["node", "./shop/dist/index.js"]}),
        ("python /srv/server.py", {"name": "srv", "command": ["python", "/srv/server.py"]}),
        ("python server.py", {"name": "server", "command": ["python", "server.py"]}),
        ("node", {"name": "node", "command": ["node"]}),
        ("http://localhost:8000/mcp", {"name": "localhost", "url": "http://localhost:8000/mcp"}),
    ],
)
def test_a_server_is_made_of_its_command_or_url(text: str, server: Table) -> None:
    assert server_of_text(text).tables == (server,)
    assert parse_suite(suite_text({"format": 1, "name": "Any", "servers": [server]}), Path("t.toml")).errors == ()


@pytest.mark.parametrize("text", ["'unclosed", "ftp://host/x", "http://"])
def test_what_is_neither_command_nor_url_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"command|URL"):
        server_of_text(text)
