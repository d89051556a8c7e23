"""What the environment says about the terminal."""

from __future__ import annotations

import pytest

from workbench.tui.environment import frames_per_second, obstacle, surroundings_of


def test_over_ssh_less_is_painted() -> None:
    here, there = surroundings_of({}), surroundings_of({"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"})
    assert (here.paint_interval_s, there.paint_interval_s) == (0.05, 0.1)
    assert frames_per_second({"SSH_TTY": "/dev/pts/1"}) < frames_per_second({})


@pytest.mark.parametrize(
    ("variables", "few"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "linux"}, True),
        ({}, True),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "screen", "COLORTERM": "truecolor"}, False),
        ({"TERM": "xterm-kitty"}, False),
    ],
)
def test_terminals_of_few_colours_are_known(variables: dict[str, str], few: bool) -> None:
    assert surroundings_of(variables).few_colours is few


def test_an_empty_no_color_means_nothing() -> None:
    assert not surroundings_of({"NO_COLOR": ""}).no_colour
    assert surroundings_of({"NO_COLOR": "1"}).no_colour


def test_visual_comes_before_editor() -> None:
    assert surroundings_of({"EDITOR": "vi", "VISUAL": "hx"}).editor == "hx"
    assert surroundings_of({"EDITOR": "vi"}).editor == "vi"
    assert surroundings_of({}).editor is None


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
    assert obstacle(environment, reads=reads, writes=writes) == said
