"""The facts about the terminal in the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tables import each_row
from workbench.tui.terminal.environment import (
    ESCAPE_S,
    MAX_ESCAPE_S,
    escape_delay_s,
    frames_per_second,
    terminal_environment,
    why_unusable,
)


def test_over_ssh_less_is_painted() -> None:
    here, there = terminal_environment({}), terminal_environment({"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"})
    assert (here.paint_interval_s, there.paint_interval_s) == (0.05, 0.1)
    assert frames_per_second({"SSH_TTY": "/dev/pts/1"}) < frames_per_second({})


@each_row(
    ("value", "wait_s"),
    [("", ESCAPE_S), ("0", 0.0), ("100", 0.1), ("9" * 5_000, MAX_ESCAPE_S), ("-1", ESCAPE_S), ("soon", ESCAPE_S)],
)
def test_the_wait_after_an_escape_is_set_as_for_ncurses(value: str, wait_s: float) -> None:
    assert escape_delay_s({"ESCDELAY": value}) == wait_s


@each_row(
    ("variables", "colours"),
    [
        ({"TERM": "xterm"}, "standard"),
        ({"TERM": "linux"}, "standard"),
        ({}, "standard"),
        ({"TERM": "xterm-256color"}, "256"),
        ({"TERM": "rxvt", "COLORTERM": "rxvt-xpm"}, "256"),
        ({"TERM": "screen", "COLORTERM": "truecolor"}, "truecolor"),
        ({"TERM": "xterm-kitty"}, "truecolor"),
    ],
)
def test_the_number_of_colours_is_known(variables: dict[str, str], colours: str) -> None:
    assert terminal_environment(variables).colours == colours


@pytest.mark.parametrize(("value", "light"), [("0;15", True), ("0;default;7", True), ("15;0", False), ("", False)])
def test_a_terminal_may_say_that_it_is_light(value: str, light: bool) -> None:
    assert terminal_environment({"COLORFGBG": value}).light is light


def test_an_empty_no_color_means_nothing() -> None:
    assert not terminal_environment({"NO_COLOR": ""}).no_colour
    assert terminal_environment({"NO_COLOR": "1"}).no_colour


def test_visual_comes_before_editor() -> None:
    assert terminal_environment({"EDITOR": "vi", "VISUAL": "hx"}).editor == "hx"
    assert terminal_environment({"EDITOR": "vi"}).editor == "vi"


def test_without_a_named_editor_the_first_of_the_system_is_taken(tmp_path: Path) -> None:
    def found() -> tuple[str | None, bool]:
        terminal = terminal_environment({"EDITOR": "", "PATH": f"/nowhere:{tmp_path}"})
        return terminal.editor, terminal.editor_is_named

    assert found() == (None, False)
    for program, editor in (("emacs", "emacs -nw"), ("vi", "vi"), ("nano", "nano"), ("editor", "editor")):
        (tmp_path / program).touch(mode=0o755)
        assert found() == (editor, False)
    assert terminal_environment({}).editor is None


@pytest.mark.parametrize(
    ("environment", "reads", "writes", "said"),
    [
        ({"TERM": "xterm"}, True, True, None),
        ({}, True, True, None),
        ({"TERM": "xterm"}, False, True, "standard input is not a terminal"),
        ({"TERM": "xterm"}, True, False, "standard error, on which the app draws, is not a terminal"),
        ({"TERM": "dumb"}, True, True, "this terminal (TERM=dumb) cannot place text"),
    ],
)
def test_where_the_app_cannot_be_shown_it_says_why(
    environment: dict[str, str], reads: bool, writes: bool, said: str | None
) -> None:
    assert why_unusable(environment, reads=reads, writes=writes) == said


@each_row(
    ("variables", "only_ascii", "utf8"),
    [
        ({}, False, True),
        ({"LANG": "en_US.UTF-8"}, False, True),
        ({"LANG": "C.utf8"}, False, True),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "C"}, True, False),
        ({"LC_CTYPE": "de_DE.ISO-8859-1"}, True, False),
        ({"TERM": "linux", "LANG": "C.UTF-8"}, True, True),
        ({"WORKBENCH_ASCII": "1"}, True, True),
        ({"WORKBENCH_ASCII": "0", "LANG": "C"}, False, False),
    ],
)
def test_locale_and_wish_decide_about_ascii(variables: dict[str, str], only_ascii: bool, utf8: bool) -> None:
    found = terminal_environment(variables)
    assert (found.ascii, found.utf8) == (only_ascii, utf8)


def test_ascii_can_be_asked_for() -> None:
    assert terminal_environment({"LANG": "C.UTF-8"}, only_ascii=True).ascii


@pytest.mark.parametrize(
    ("variables", "commands", "osc52"),
    [
        ({"DISPLAY": ":0"}, ["xclip", "xsel", "pbcopy"], True),
        ({"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}, ["wl-copy", "xclip", "xsel", "pbcopy"], True),
        ({"DISPLAY": "localhost:10", "SSH_TTY": "/dev/pts/1"}, [], True),
        ({"TERM": "linux"}, ["pbcopy"], False),
        ({"TERM": "screen", "STY": "1.pts"}, ["pbcopy"], False),
    ],
)
def test_a_clipboard_is_used_where_somebody_sits_before_it(
    variables: dict[str, str], commands: list[str], osc52: bool
) -> None:
    found = terminal_environment(variables)
    assert ([command[0] for command in found.clipboards], found.takes_osc52) == (commands, osc52)
