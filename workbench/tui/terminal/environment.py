"""The terminal that the app runs in, and how often it may be repainted."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from workbench.config.program import SERVED
from workbench.dataclasses import dataclass

LOCAL_PAINTS_PER_S = 20
REMOTE_PAINTS_PER_S = 10
LOCAL_FRAMES_PER_S = 60
REMOTE_FRAMES_PER_S = 30

_TRUE_COLOUR_TERMS = ("direct", "kitty", "ghostty", "alacritty", "foot", "wezterm")
EDITORS = ("sensible-editor", "editor", "nano", "vim", "vi", "micro", "emacs -nw", "notepad")
"""Editors to try if none is named, in order of preference."""

Colours = Literal["standard", "256", "truecolor"]
"""How many colours a terminal has: 16 or fewer, 256, or all. The words are those of `TEXTUAL_COLOR_SYSTEM`."""

_LIGHT = ("7", "15")
"""White and bright white, as `COLORFGBG` numbers the terminal's own colours."""

_NO = ("0", "no", "false", "off")


@dataclass(frozen=True)
class TerminalEnvironment:
    """The terminal's abilities by its environment variables."""

    remote: bool
    """Whether it is remote, over a network."""
    no_colour: bool
    colours: Colours
    light: bool
    """Whether the terminal says that its background is light."""
    in_tmux: bool
    editor: str | None
    """The user's editor, as a command: the one that is named, else the first that the system has."""
    editor_is_named: bool
    """Whether VISUAL or EDITOR names the editor."""
    ascii: bool
    """Whether signs are drawn in ASCII."""
    utf8: bool
    """Whether the terminal can show more than ASCII."""
    clipboards: tuple[tuple[str, ...], ...]
    """Commands that fill the clipboard of the user's desktop, in order of preference."""
    takes_osc52: bool
    """Whether the terminal may support OSC 52. No terminal confirms it."""
    served: bool = False
    """Whether the app is shown in a browser, by `workbench serve`."""

    @property
    def paint_interval_s(self) -> float:
        """The minimum time between repaints of run output."""
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
"""A browser's abilities, whatever the terminal in which its server was started can do."""


def terminal_environment(environment: Mapping[str, str], *, only_ascii: bool = False) -> TerminalEnvironment:
    """Read the environment variables.

    `only_ascii` overrides them."""
    if SERVED in environment:
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
    """Return the command of the first known editor in the folders of `path`."""
    return next((editor for editor in EDITORS if shutil.which(editor.split()[0], path=path)), None)


def _is_utf8(environment: Mapping[str, str]) -> bool:
    """Return whether the locale uses UTF-8.

    Without a locale, as in many containers, the terminal almost always does."""
    named = next(filter(None, (environment.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))), None)
    return named is None or "utf8" in named.lower().replace("-", "")


def _wants_ascii(environment: Mapping[str, str], has_signs: bool) -> bool:
    text = environment.get("WORKBENCH_ASCII", "").lower()
    return not has_signs if not text else text not in _NO


def _clipboards(environment: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """Return the clipboard commands for the display.

    That of macOS needs no display and exists nowhere else."""
    wayland = (("wl-copy",),) if environment.get("WAYLAND_DISPLAY") else ()
    x11 = (("xclip", "-selection", "clipboard"), ("xsel", "--clipboard", "--input"))
    return (*wayland, *(x11 if environment.get("DISPLAY") else ()), ("pbcopy",))


def obstacle(environment: Mapping[str, str], *, reads: bool, writes: bool) -> str | None:
    """Return why the app cannot run here, `None` if it can.

    It reads keys from standard input and draws on standard error, so that standard output can be redirected. `reads`
    and `writes` are whether these are terminals."""
    if SERVED in environment:
        return None
    if not reads:
        return "standard input is not a terminal"
    if not writes:
        return "standard error, on which the app draws, is not a terminal"
    if environment.get("TERM", "") in ("dumb", "unknown"):
        return f"this terminal (TERM={environment['TERM']}) cannot place text"
    return None


def frames_per_second(environment: Mapping[str, str]) -> int:
    """Return Textual's frame rate.

    Textual reads `TEXTUAL_FPS` once, on import."""
    if terminal_environment(environment).remote:
        return REMOTE_FRAMES_PER_S
    return LOCAL_FRAMES_PER_S
