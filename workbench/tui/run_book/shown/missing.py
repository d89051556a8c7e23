"""Expected calls that were not made, and where to show each among the calls that were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.grading.grade import CallPairing, Issue
from workbench.suite.model import Case, ExpectedCall
from workbench.suite.problems import Place
from workbench.tui.run_book.shown.items import MissingItem

PlacedCall = tuple[Place, ExpectedCall]
"""An expected call and its place in the case."""


def expected_of(case: Case) -> tuple[PlacedCall, ...]:
    """Return the expected calls of a case in the order of `Case.expected_calls()`. In a chain, each has its step, from
    0, as place."""
    steps = [(("steps", at), call) for at, step in enumerate(case.steps) if (call := step.expected_call) is not None]
    return (*steps, *case.placed_expected_calls())


def missing_calls(
    pairings: Sequence[CallPairing],
    issues: Sequence[Issue],
    expected: Sequence[PlacedCall],
    calls: Sequence[int],
    outcome: int,
    steps: Mapping[int, int],
) -> list[tuple[int, MissingItem]]:
    """Return the missing calls of a run, each with the index of the item that it is shown before, in order.

    `calls` are the indices of the run's calls, each followed by its result; `outcome` is that of the run's end. `steps`
    maps each step of a chain to the index of the item before which it ends.
    """
    by_expected = {pairing.expected_call: pairing for pairing in pairings if pairing.expected_call is not None}
    lost = {issue.expected_call for issue in issues if issue.kind == "missing call" and issue.call is None}
    lost |= {index for index, pairing in by_expected.items() if pairing.call is None}
    met = {
        index: calls[pairing.call]
        for index, pairing in by_expected.items()
        if pairing.call is not None and pairing.call < len(calls)
    }
    end = calls[-1] + 2 if calls else outcome
    placed: list[tuple[int, MissingItem]] = []
    for index in sorted(index for index in lost if index is not None):
        own = tuple(issue for issue in issues if issue.expected_call == index and issue.call is None)
        named = expected[index][1].tool_text if index < len(expected) else None
        tool = named or next((issue.tool for issue in own if issue.tool), "a call")
        pairing = by_expected.get(index)
        item = MissingItem(tool, index, pairing.arguments if pairing else (), own)
        place: Place = expected[index][0] if index < len(expected) else ()
        if place[:1] == ("steps",):
            placed.append((steps.get(int(place[1]) + 1, outcome), item))
        else:
            placed.append((_expected_before(index, met, expected, end), item))
    placed.sort(key=lambda pair: pair[0])
    return placed


def _expected_before(index: int, met: Mapping[int, int], expected: Sequence[PlacedCall], end: int) -> int:
    """Return the item before which a call was expected: the next expected call in the sequence that was made, otherwise
    after the previous one, otherwise after all calls."""
    position = _position(expected, index)
    if position is None:
        return end
    around = [(_position(expected, other), at) for other, at in met.items()]
    later = [(other, at) for other, at in around if other is not None and other > position]
    if later:
        return min(later)[1]
    earlier = [(other, at) for other, at in around if other is not None and other <= position]
    return max(earlier)[1] + 2 if earlier else end


def _position(expected: Sequence[PlacedCall], index: int) -> int | None:
    """Return the position of an expected call in the sequence, `None` if there is no sequence. Unknown expected calls
    count as a sequence."""
    if index >= len(expected):
        return index
    place = expected[index][0]
    return int(place[1]) if place[0] == "ordered" else None
