"""Converts the answers of one model so that any other model accepts them: with new call ids, and without provider
state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count

from workbench.trajectory.events import ResultReceived
from workbench.trajectory.messages import Message
from workbench.trajectory.trajectory import CallRecord, Round

_ID = "call{:05}"
"""The strictest API requires nine letters and digits. Others limit the length or the characters."""


def for_another_model(rounds: Iterable[Round], opening: Iterable[Message]) -> tuple[Round, ...]:
    """Returns rounds that follow the opening of a conversation, with call ids that differ from those in the opening."""
    taken = {call.id for message in opening for call in message.tool_calls}
    ids = (made for number in count(1) if (made := _ID.format(number)) not in taken)
    return tuple(_round(round_, ids) for round_ in rounds)


def _round(of: Round, ids: Iterator[str]) -> Round:
    set_aside = tuple(_round(answer, ids) for answer in of.superseded)
    calls = tuple(_call(call, next(ids)) for call in of.calls)
    renamed = {old.call.id: new.call.id for old, new in zip(of.calls, calls, strict=True)}
    deviations = tuple(replace(each, call_id=renamed.get(each.call_id or "")) for each in of.deviations)
    return replace(of, provider_state=None, superseded=set_aside, calls=calls, deviations=deviations)


def _call(of: CallRecord, call_id: str) -> CallRecord:
    return replace(
        of,
        call=replace(of.call, id=call_id),
        result=_result(of.result, call_id),
        unedited=_result(of.unedited, call_id),
    )


def _result(of: ResultReceived | None, call_id: str) -> ResultReceived | None:
    return replace(of, call_id=call_id) if of is not None else None
