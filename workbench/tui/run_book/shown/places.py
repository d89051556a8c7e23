"""The place in a run that an item stands for: its round, call, and side of the result."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from workbench.tui.run_book.shown.item_list import RunItems
from workbench.tui.run_book.shown.items import (
    CallItem,
    ForkItem,
    HoldItem,
    MessageItem,
    OutcomeItem,
    ResultItem,
    RoundItem,
    SetAsideItem,
    StepItem,
)


@dataclass(frozen=True, slots=True)
class RunPlace:
    """A place in a run. `round` counts from 1; items before a request belong to its round.

    On a call or its result, `call_id` is the call, `call_index` its index in `Trajectory.calls`, and `answered` how
    many calls of its round are answered before this place. `after_result` is true on a result that has arrived, which
    then counts as answered. Items of a superseded answer have a round but no call. `step` is that of a chain, from 1.
    """

    round: int
    call_id: str | None = None
    call_index: int | None = None
    answered: int | None = None
    after_result: bool = False
    step: int | None = None


def place_at(run: RunItems, index: int) -> RunPlace | None:
    """Return the place of the item at an index, `None` for the end of a run. The cost does not depend on the length of
    the run."""
    item = run.items[index]
    if isinstance(item, OutcomeItem):
        return None
    begun = bisect_right(run.rounds, index)
    asked = run.rounds[begun - 1] if begun else None
    above = run.items[asked] if asked is not None else None
    number = above.round if isinstance(above, RoundItem) else 0
    if isinstance(item, ForkItem):
        return RunPlace(item.fork.round, answered=item.fork.answered)
    if isinstance(item, HoldItem | SetAsideItem):
        return RunPlace(item.round, step=_step(run, index))
    if asked is None or isinstance(item, MessageItem | StepItem):
        return RunPlace(number + 1, step=_step(run, index))
    step = _step(run, asked)
    on_result = isinstance(item, ResultItem)
    at = index - on_result
    call = run.items[at]
    if not isinstance(call, CallItem):
        return RunPlace(number, step=step)
    earlier = bisect_left(run.order, at) - bisect_left(run.order, asked)
    came = isinstance(item, ResultItem) and item.result is not None
    return RunPlace(number, call.call_id, call.index, earlier + came, came, step)


def _step(run: RunItems, index: int) -> int | None:
    """Return the step of the request at or after an index: that of the heading above, unless a request is in
    between."""
    headings = bisect_right(run.steps, index)
    heading = run.steps[headings - 1] if headings else None
    item = run.items[heading] if heading is not None else None
    if heading is None or not isinstance(item, StepItem):
        return None
    asked_between = bisect_left(run.rounds, index) - bisect_left(run.rounds, heading)
    return None if asked_between else item.step
