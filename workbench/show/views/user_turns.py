"""The simulated user in words: messages with their source, unsent messages, and how the conversation ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.numerals import counted_of
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.trajectory.events import UserEnded, UserRefused, UserSaid, UserSource

if TYPE_CHECKING:
    from workbench.trajectory.trajectory import Trajectory, UserTurn

_SOURCES: dict[UserSource, str] = {
    "opening": "opening",
    "script": "",
    "otherwise": "nothing fits",
    "model": "played",
    "person": f"{GLYPHS.by_hand} by hand",
}


GAVE_UP = "the user gave up"


def gave_up_text(gave_up: int, runs: int) -> str:
    """Return a text such as `the user gave up in 1 of 3 runs`, or "" if the simulated user never gave up."""
    if not gave_up or runs == 1:
        return GAVE_UP * gave_up
    return f"{GAVE_UP} in {counted_of(gave_up, runs, 'run')}"


def source_of(said: UserSaid, refused: int) -> str:
    """Return where a simulated user's message came from, such as `played · 2nd try` after one refused attempt.

    Return "" for a message of a script."""
    source = _SOURCES[said.by]
    if refused and said.by != "person":
        source += f" {GLYPHS.dot} {_nth(refused + 1)} try"
    return source


def _nth(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{endings.get(number, 'th')}"


def refused_text(refused: UserRefused) -> str:
    """Return an unsent message with the reason, such as `not sent, invented "B99": My number is B99.`"""
    fault = refused.fault + (f' "{refused.detail}"' if refused.detail else "")
    return one_line(f"not sent, {fault}: {refused.text}")


def ended_text(ended: UserEnded) -> str:
    """Return how the user ended the conversation, such as `ended: gave up (no message of the script fits …)`."""
    why = f" ({ended.why})" if ended.why else ""
    return one_line(f"ended: {ended.end}{why}")


def said_line(said: UserSaid, refused: int = 0) -> str:
    """Return a message of the user with its source as a line, such as `» it is A17.  played`."""
    source = source_of(said, refused)
    return f"» {one_line(said.text)}" + (f"  ({source})" if source else "")


def turn_lines(turn: UserTurn) -> Iterator[str]:
    """Yield the user's messages in one turn as lines. Messages that were not sent come first."""
    for refused in turn.refused:
        yield f"{GLYPHS.warned} user, {refused_text(refused)}"
    if turn.said is not None:
        yield said_line(turn.said, len(turn.refused))


def lines_before(trajectory: Trajectory, turn: int | None) -> Iterator[str]:
    """Yield the lines of the user's turn with the number `turn`. Yield nothing if `turn` is `None`."""
    for each in trajectory.user_turns:
        if each.number == turn:
            yield from turn_lines(each)


def last_lines(trajectory: Trajectory) -> Iterator[str]:
    """Yield the lines of the user's last turn if the model did not answer it, and how the conversation ended."""
    if not trajectory.user_turns:
        return
    last = trajectory.user_turns[-1]
    if not trajectory.rounds or trajectory.rounds[-1].turn != last.number:
        yield from turn_lines(last)
    if last.ended is not None:
        yield f"» user {ended_text(last.ended)}"
