"""Copying tries several ways in order, and reports the one that worked."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from workbench.limits import MAX_CLIPBOARD_BYTES
from workbench.tui.kit.clipboard import TIMEOUT_S, copy


def fake_tmux(folder: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> Path:
    program = folder / "tmux"
    program.write_text(f'#!/bin/sh\necho "$@" > {folder}/arguments\ncat > {folder}/buffer\nexit {code}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder / "buffer"


def test_inside_tmux_its_buffer_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = fake_tmux(tmp_path, monkeypatch, 0)
    sent: list[str] = []
    assert "tmux" in copy("a\nb ✓", in_tmux=True, send=sent.append, folder=tmp_path)
    assert buffer.read_text(encoding="utf-8") == "a\nb ✓"
    assert (tmp_path / "arguments").read_text() == "load-buffer -w -\n"
    assert not sent


def test_a_tmux_that_refuses_leaves_it_to_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tmux(tmp_path, monkeypatch, 1)
    sent: list[str] = []
    assert "OSC 52" in copy("text", in_tmux=True, send=sent.append, folder=tmp_path)
    assert sent == ["text"]


def test_outside_of_tmux_the_terminal_is_asked(tmp_path: Path) -> None:
    sent: list[str] = []
    assert "OSC 52" in copy("text", in_tmux=False, send=sent.append, folder=tmp_path)
    assert sent == ["text"]


def test_what_is_too_long_for_a_terminal_goes_into_a_file(tmp_path: Path) -> None:
    text = "x" * (MAX_CLIPBOARD_BYTES + 1)
    where = copy(text, in_tmux=False, send=lambda _: None, folder=tmp_path / "state")
    file = tmp_path / "state" / "copied.txt"
    assert str(file) in where
    assert file.read_text(encoding="utf-8") == text


def test_a_text_that_cannot_be_encoded_is_copied_all_the_same(tmp_path: Path) -> None:
    copy("\ud800", in_tmux=False, send=None, folder=tmp_path)
    assert (tmp_path / "copied.txt").read_text(encoding="utf-8") == "?"


def fake_clipboard(folder: Path, script: str) -> list[tuple[str, ...]]:
    """A command that fills a clipboard, which is the file `clipboard` of the folder."""
    program = folder / "xclip"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return [("no-such-command",), (str(program), str(folder / "clipboard"))]


def test_at_a_desktop_its_clipboard_is_filled_and_named(tmp_path: Path) -> None:
    sent: list[str] = []
    clipboards = fake_clipboard(tmp_path, 'cat > "$1"')
    where = copy("a ✓", in_tmux=False, send=sent.append, folder=tmp_path, clipboards=clipboards)
    assert "xclip" in where
    assert (tmp_path / "clipboard").read_text(encoding="utf-8") == "a ✓"
    assert not sent


def test_a_clipboard_that_hands_the_text_out_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    clipboards = fake_clipboard(tmp_path, 'cat > "$1"; sleep 3 &')
    began = time.monotonic()
    assert "xclip" in copy("text", in_tmux=False, send=None, folder=tmp_path, clipboards=clipboards)
    assert time.monotonic() - began < TIMEOUT_S


def test_a_clipboard_that_refuses_leaves_it_to_the_terminal(tmp_path: Path) -> None:
    clipboards = fake_clipboard(tmp_path, "cat > /dev/null; exit 1")
    assert "OSC 52" in copy("text", in_tmux=False, send=lambda _: None, folder=tmp_path, clipboards=clipboards)
