"""What surrounds the app: the kind of terminal it is in, and how often that may be repainted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LOCAL_PAINTS_PER_S = 20
REMOTE_PAINTS_PER_S = 10
LOCAL_FRAMES_PER_S = 60
REMOTE_FRAMES_PER_S = 30

_RICH_TERMS = ("256color", "direct", "kitty", "ghostty", "alacritty", "foot", "wezterm")


@dataclass(frozen=True)
class Surroundings:
    """What the environment's variables say about the terminal."""

    remote: bool
    """Whether a network lies between."""
    no_colour: bool
    few_colours: bool
    """Whether the terminal has 16 colours or fewer."""
    in_tmux: bool
    editor: str | None
    """The user's editor, as a command."""

    @property
    def paint_interval_s(self) -> float:
        """The least time between two paints of what runs report."""
        return 1 / (REMOTE_PAINTS_PER_S if self.remote else LOCAL_PAINTS_PER_S)


def surroundings_of(environment: Mapping[str, str]) -> Surroundings:
    """Read the variables that matter."""
    term = environment.get("TERM", "")
    rich = environment.get("COLORTERM", "") != "" or any(word in term for word in _RICH_TERMS)
    return Surroundings(
        remote=any(environment.get(name) for name in ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT")),
        no_colour=environment.get("NO_COLOR", "") != "",
        few_colours=not rich,
        in_tmux=bool(environment.get("TMUX")),
        editor=environment.get("VISUAL") or environment.get("EDITOR") or None,
    )


def obstacle(environment: Mapping[str, str], *, reads: bool, writes: bool) -> str | None:
    """Why the app cannot be shown here, `None` when it can. It reads keys from standard input and draws on standard
    error, so that standard output may go elsewhere; `reads` and `writes` say whether those are a terminal."""
    if not reads:
        return "standard input is not a terminal"
    if not writes:
        return "standard error, on which the app draws, is not a terminal"
    if environment.get("TERM", "") in ("dumb", "unknown"):
        return f"this terminal (TERM={environment['TERM']}) cannot place text"
    return None


def frames_per_second(environment: Mapping[str, str]) -> int:
    """How often Textual may draw at all; it reads `TEXTUAL_FPS` once, when it is imported."""
    return REMOTE_FRAMES_PER_S if surroundings_of(environment).remote else LOCAL_FRAMES_PER_S
