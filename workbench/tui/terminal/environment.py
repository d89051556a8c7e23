"""The capabilities of the app's terminal, read from environment variables."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from workbench.config.program import SERVED_VARIABLE
from workbench.dataclasses import dataclass

LOCAL_PAINTS_PER_S = 20
REMOTE_PAINTS_PER_S = 10
LOCAL_FRAMES_PER_S = 60
REMOTE_FRAMES_PER_S = 30

# Terminals, SSH and tmux send a sequence in one piece. If the SSH client reads a sequence in two pieces, OpenSSH sends
# the second with its next packet, 20 ms later (`ObscureKeystrokeTiming`). Terminals with the kitty keyboard protocol
# send Escape as a complete sequence, so the app need not wait.
ESCAPE_S = 0.025
"""The default time in seconds to wait for the rest of a sequence after an Escape. Users can set `ESCDELAY`."""

MAX_ESCAPE_S = 1.0

_TRUE_COLOUR_TERMS = ("direct", "kitty", "ghostty", "alacritty", "foot", "wezterm")
EDITORS = ("sensible-editor", "editor", "nano", "vim", "vi", "micro", "emacs -nw", "notepad")
"""Editors to look for if the user named none, in order of preference."""

Colours = Literal["standard", "256", "truecolor"]
"""The colours of a terminal, named as in `TEXTUAL_COLOR_SYSTEM`: at most 16, 256, or all."""

_LIGHT = ("7", "15")
"""The numbers of white and bright white in `COLORFGBG`."""

_FALSE_VALUES = ("0", "no", "false", "off")


@dataclass(frozen=True)
class TerminalEnvironment:
    """The capabilities of a terminal."""

    remote: bool
    """Whether the terminal is remote (SSH)."""
    no_colour: bool
    colours: Colours
    light: bool
    """Whether the terminal declares a light background (`COLORFGBG`)."""
    in_tmux: bool
    editor: str | None
    """The command of the user's editor. If the user names none, it is the first known editor that is installed."""
    editor_is_named: bool
    """Whether VISUAL or EDITOR names the editor."""
    ascii: bool
    """Whether signs are drawn in ASCII."""
    utf8: bool
    """Whether the terminal can show more than ASCII."""
    clipboards: tuple[tuple[str, ...], ...]
    """Commands that fill the clipboard of the user's desktop, in order of preference."""
    takes_osc52: bool
    """Whether the terminal may support OSC 52 (copying by an escape sequence). No terminal confirms OSC 52."""
    served: bool = False
    """Whether the app runs in a browser, started by `workbench serve`."""

    @property
    def paint_interval_s(self) -> float:
        """The minimum time between two repaints of a run's output, in seconds."""
        return 1 / (REMOTE_PAINTS_PER_S if self.remote else LOCAL_PAINTS_PER_S)


IN_BROWSER = TerminalEnvironment(
    remote=False,
    no_colour=False,
    colours="truecolor",
    light=False,
    in_tmux=False,
    editor=None,
    editor_is_named=False,
    ascii=False,
    utf8=True,
    clipboards=(),
    takes_osc52=True,
    served=True,
)
"""The capabilities of a browser. The server's own terminal does not matter."""


def terminal_environment(environment: Mapping[str, str], *, only_ascii: bool = False) -> TerminalEnvironment:
    """Return the terminal's capabilities according to environment variables. `only_ascii` forces ASCII."""
    if SERVED_VARIABLE in environment:
        if not only_ascii:
            return IN_BROWSER
        return replace(IN_BROWSER, ascii=True)
    term = environment.get("TERM", "")
    remote = any(environment.get(name) for name in ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"))
    utf8 = _is_utf8(environment)
    named = environment.get("VISUAL") or environment.get("EDITOR") or None
    return TerminalEnvironment(
        remote=remote,
        no_colour=environment.get("NO_COLOR", "") != "",
        colours=_colours(term, environment.get("COLORTERM", "")),
        light=environment.get("COLORFGBG", "").rpartition(";")[2] in _LIGHT,
        in_tmux=bool(environment.get("TMUX")),
        editor=named or _editor_of_system(environment.get("PATH", "")),
        editor_is_named=named is not None,
        ascii=only_ascii or _wants_ascii(environment, utf8 and term != "linux"),
        utf8=utf8,
        clipboards=() if remote else _clipboards(environment),
        takes_osc52=term != "linux" and not environment.get("STY"),
    )


def _colours(term: str, colorterm: str) -> Colours:
    if colorterm.lower() in ("truecolor", "24bit") or any(word in term for word in _TRUE_COLOUR_TERMS):
        return "truecolor"
    if colorterm or "256color" in term:
        return "256"
    return "standard"


def _editor_of_system(path: str) -> str | None:
    for editor in EDITORS:
        if shutil.which(editor.split()[0], path=path):
            return editor
    return None


def _is_utf8(environment: Mapping[str, str]) -> bool:
    # The order is that of the C library: the first set variable decides. Without a locale, as in many containers, the
    # terminal almost always uses UTF-8.
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        locale = environment.get(name)
        if locale:
            return "utf8" in locale.lower().replace("-", "")
    return True


def _wants_ascii(environment: Mapping[str, str], has_signs: bool) -> bool:
    text = environment.get("WORKBENCH_ASCII", "").lower()
    if text:
        return text not in _FALSE_VALUES
    return not has_signs


def _clipboards(environment: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    commands: list[tuple[str, ...]] = []
    if environment.get("WAYLAND_DISPLAY"):
        commands.append(("wl-copy",))
    if environment.get("DISPLAY"):
        commands += [("xclip", "-selection", "clipboard"), ("xsel", "--clipboard", "--input")]
    # `pbcopy` exists only on macOS, where no display variable is set.
    commands.append(("pbcopy",))
    return tuple(commands)


def why_unusable(environment: Mapping[str, str], *, reads: bool, writes: bool) -> str | None:
    """Return why the app cannot run in this terminal, `None` if it can.

    `reads` is whether standard input is a terminal. `writes` is whether standard error is a terminal."""
    # The app draws on standard error, so users can redirect standard output.
    if SERVED_VARIABLE in environment:
        return None
    if not reads:
        return "standard input is not a terminal"
    if not writes:
        return "standard error, on which the app draws, is not a terminal"
    if environment.get("TERM", "") in ("dumb", "unknown"):
        return f"this terminal (TERM={environment['TERM']}) cannot place text"
    return None


def frames_per_second(environment: Mapping[str, str]) -> int:
    """Return the frame rate for `TEXTUAL_FPS`. Textual reads the variable when it is imported."""
    if terminal_environment(environment).remote:
        return REMOTE_FRAMES_PER_S
    return LOCAL_FRAMES_PER_S


def escape_delay_s(environment: Mapping[str, str]) -> float:
    """Return the time in seconds to wait after an Escape.

    The user may set milliseconds in ESCDELAY, as for programs with ncurses. An invalid number is ignored."""
    milliseconds = environment.get("ESCDELAY", "")
    if milliseconds.isascii() and milliseconds.isdecimal():
        return min(float(milliseconds) / 1000, MAX_ESCAPE_S)
    return ESCAPE_S
