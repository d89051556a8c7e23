"""`workbench run --break` opens the app on a held run. Options that contradict it are refused first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER, WRONG
from tests.tui.in_terminal import Terminal


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--break", "tol x"), "--break 'tol x': column 1: \"tol\" is not a kind of breakpoint (did you mean `tool`?)"),
        (("--break", "error", "--format", "json"), "--format cannot be used with --break, which opens the app"),
        (("--break", "error", "--shard", "1/2"), "--shard cannot be used with --break"),
        (("--break", "error", "--case", "nope"), "there is no case 'nope'"),
        (("--break", "error"), "the app cannot be shown: "),
        (
            ("--break", "tool get_wether"),
            'no open suite has a known tool "get_wether" (did you mean `get_weather`?)',
        ),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_runs(program: Program, words: tuple[str, ...], said: str) -> None:
    program.write("weather.toml", WEATHER)
    done = program.run("run", "weather.toml", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_app_opens_on_the_first_run_that_is_held_and_ends_with_0(tmp_path: Path) -> None:
    (tmp_path / "weather.toml").write_text(WEATHER + WRONG)
    kept = tmp_path / "recorded"
    words = ["run", "weather.toml", "--break", "failed-check", "--break", "round 9", "--record", str(kept)]
    with Terminal(words, tmp_path / "state", folder=tmp_path, columns=160, rows=40) as terminal:
        terminal.wait_for('city "Oslo" is not "Nowhere"')
        assert "Wrong" in terminal.screen
        terminal.send("B")
        terminal.wait_for("For this session only: given with --break")
        assert "failed-check" in terminal.screen
        assert "round 9" in terminal.screen
        terminal.send("\x1b")
        terminal.wait_for("failed-check")
        terminal.wait_for(lambda: "For this session only" not in terminal.screen)
        terminal.send("c")
        terminal.wait_for("✗ failed")
        terminal.send("q")
        assert terminal.end() == 0
    assert len(list(kept.iterdir())) == 2
    assert not (tmp_path / "state" / "toolcall-workbench" / "breakpoints").exists()


@pytest.mark.slow
def test_a_run_that_is_never_held_is_told(tmp_path: Path) -> None:
    (tmp_path / "weather.toml").write_text(WEATHER + WRONG)
    words = ["run", "weather.toml", "--break", "tool nothing", "--case", "right"]
    with Terminal(words, tmp_path / "state", folder=tmp_path) as terminal:
        terminal.wait_for("No run was held")
        assert "✓ Right" in terminal.screen
        terminal.send("q")
        assert terminal.end() == 0
