"""As many one-to-one pairs as possible of members and calls, where a call fits a member or does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence


def paired_in_turn(members: Sequence[int], calls: Iterable[int], fits: Callable[[int, int], bool]) -> dict[int, int]:
    """The call of each member that got one: a largest pairing, which takes a call before those that come after it.

    The calls are walked in the order given; each is taken if the pairing can be enlarged by it, for which calls that
    were taken before may pass to other members. The walk stops when every member has a call. `fits(member, call)` is
    asked only as far as that needs.
    """
    call_of: dict[int, int] = {}
    settled: set[int] = set()
    for call in calls:
        if len(call_of) == len(members):
            break
        free = next((member for member in members if member not in call_of and fits(member, call)), None)
        if free is not None:
            call_of[free] = call
        elif call_of:
            _enlarge(call_of, call, [member for member in members if member not in settled], fits, settled)
    return call_of


def _enlarge(
    call_of: dict[int, int],
    call: int,
    members: Sequence[int],
    fits: Callable[[int, int], bool],
    settled: set[int],
) -> None:
    """Give the call to a member along a shortest augmenting path, if there is one.

    Where there is none, no path leads on from any member that was reached, nor will one ever: they are `settled`.
    """
    offered: dict[int, int] = {}
    seeking = [call]
    for seeker in seeking:
        for member in members:
            if member in offered or not fits(member, seeker):
                continue
            offered[member] = seeker
            if member in call_of:
                seeking.append(call_of[member])
            else:
                _pass_on(call_of, member, offered, call)
                return
    settled.update(offered)


def _pass_on(call_of: dict[int, int], member: int, offered: dict[int, int], call: int) -> None:
    """Walk the path back from a free member: every call on it goes to the member that it was offered to."""
    member_of = {taken: holder for holder, taken in call_of.items()}
    while True:
        given = call_of[member] = offered[member]
        if given == call:
            return
        member = member_of[given]
