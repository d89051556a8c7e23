"""The user's editor opens at the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tables import each_row
from workbench.tui.kit.external_editor import EditorError, edit_in_editor, editor_command

FILE = Path("/s/a b.toml")


@each_row(
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


def script(folder: Path, body: str) -> str:
    file = folder / "vi"
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return str(file)


def test_a_text_comes_back_from_the_editor_and_leaves_nothing_behind(tmp_path: Path) -> None:
    editor = script(tmp_path, f'echo "$@" > {tmp_path}/called; printf "b = 2" >> "$2"')
    assert edit_in_editor(editor, "a = 1\n", "movie-night.toml", 7) == "a = 1\nb = 2"
    line, file = (tmp_path / "called").read_text().split()
    assert line == "+7"
    assert Path(file).name == "movie-night.toml"
    assert not Path(file).parent.exists()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('printf x >> "$2"; exit 3', "ended with code 3"),
        ('printf "\\377" >> "$2"', "not UTF-8"),
    ],
)
def test_what_an_editor_that_fails_has_written_is_kept_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(EditorError, match=said) as caught:
        edit_in_editor(script(tmp_path, body), "a = 1", "case.toml", 1)
    kept = Path(str(caught.value).rsplit(" ", 1)[1])
    assert kept.read_bytes().startswith(b"a = 1")
    assert kept.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("editor", ["/no/such/editor", "'", ""])
def test_an_editor_that_cannot_be_started_is_an_error(editor: str) -> None:
    with pytest.raises(EditorError, match="cannot be started"):
        edit_in_editor(editor, "a = 1", "case.toml", 1)
