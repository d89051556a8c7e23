"""Shows in a run's items where it is held and what the user does there."""

from __future__ import annotations

from dataclasses import replace

from workbench.trajectory.events import Paused, Regenerated, ResultEdited
from workbench.tui.run_book.shown.item_list import RunItems
from workbench.tui.run_book.shown.items import CallItem, HoldItem, MessageItem, ResultItem, SetAsideItem


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
            held.why = None
        case None:
            pass


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
