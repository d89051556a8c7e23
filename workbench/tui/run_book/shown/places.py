"""The places of a run that its items stand for, and where it is held."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.dataclasses import dataclass
from workbench.trajectory.events import Paused, Regenerated, ResultEdited
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

if TYPE_CHECKING:
    from workbench.providers.model import HttpRequest


def hold(run: RunItems, paused: Paused) -> None:
    """Show that the run is held: at a call or result, or at the end if a request is next."""
    go_on(run)
    index = run.index_of(paused.call_id)
    if index is None:
        last = run.request()
        number = paused.round if paused.round is not None else (last.round if last is not None else 0) + 1
        run.held = run.append(HoldItem(number, paused.why))
        return
    call, answer = run.call(paused.call_id), run.result(paused.call_id)
    assert call is not None
    assert answer is not None
    if paused.at == "call":
        call.held, run.held = paused.why, index
    elif paused.at == "result":
        answer.held, run.held = paused.why, index + 1
    else:
        answer.asks, run.held = paused.why, index + 1


def go_on(run: RunItems, held_ms: float = 0.0) -> None:
    """Show that the run continues. Only the time that it asked for permission is kept."""
    match run.take_held():
        case ResultItem(asks=asks) as answer:
            if asks is not None:
                answer.held_ms += held_ms
            answer.asks = answer.held = None
        case CallItem() as call:
            call.held = None
        case HoldItem() as held:
            held.why = held.request = None
        case None:
            pass


def put_request(run: RunItems, request: HttpRequest | str) -> None:
    """Show the request before which the run is held, or why it cannot be sent."""
    if run.held is not None and isinstance(held := run.items[run.held], HoldItem):
        held.request = request
        run.changed(run.held)


def add_message(run: RunItems, message: MessageItem) -> None:
    """Show a message that the user added before the next request. A hold moves behind it."""
    held = run.items[run.held] if run.held is not None else None
    run.append(message)
    if isinstance(held, HoldItem):
        again = HoldItem(held.round, held.why)
        go_on(run)
        run.held = run.append(again)


def edit_result(run: RunItems, edit: ResultEdited) -> None:
    """Show the edited result and keep the original."""
    if (answer := run.result(edit.call_id)) is not None and answer.result is not None:
        answer.unedited = answer.unedited or answer.result
        answer.result = replace(answer.result, content=edit.content, is_error=edit.is_error)


def set_aside(run: RunItems, asked: Regenerated) -> None:
    """Show that the last request will be repeated: its answer becomes one item, and messages added since come before
    the next attempt."""
    request = run.request()
    if request is None or run.round is None or request.round != asked.round or run.outcome is not None:
        return
    run.finish_text()
    go_on(run)
    old = run.cut(run.round)
    run.round = None
    answer = tuple(item for item in old if not isinstance(item, MessageItem))
    run.append(SetAsideItem(asked.round, request.number, answer))
    for item in old:
        if isinstance(item, MessageItem):
            run.append(item)


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
