"""The editor of one's choice opens at the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.tui.editor import editor_command

FILE = Path("/s/a b.toml")


@pytest.mark.parametrize(
    ("editor", "command"),
    [
        ("vi", ["vi", "+12", str(FILE)]),
        ("/usr/bin/nvim -p", ["/usr/bin/nvim", "-p", "+12", str(FILE)]),
        ("nano", ["nano", "+12", str(FILE)]),
        ("hx", ["hx", f"{FILE}:12"]),
        ("code", ["code", "--wait", "--goto", f"{FILE}:12"]),
        ("code -w", ["code", "-w", "--goto", f"{FILE}:12"]),
        ("'my tools/ed2'", ["my tools/ed2", str(FILE)]),
    ],
)
def test_each_editor_is_told_the_line_in_its_own_way(editor: str, command: list[str]) -> None:
    assert editor_command(editor, FILE, 12) == command


@pytest.mark.parametrize("editor", ["", "  ", "'unclosed"])
def test_what_is_no_command_is_refused(editor: str) -> None:
    with pytest.raises(ValueError, match=r"empty|quotation"):
        editor_command(editor, FILE, 1)
