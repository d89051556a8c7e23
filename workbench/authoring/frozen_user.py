"""Turns the user messages of a run into a fixed script of its case."""

from __future__ import annotations

from workbench.suite.render import Table
from workbench.trajectory.events import JsonValue, UserSaid
from workbench.trajectory.trajectory import Trajectory

_KEPT = ("max_turns", "stop")
"""The keys with the same meaning for a scripted user and a user that a model plays."""


def frozen_user(case: Table, trajectory: Trajectory) -> Table:
    """Return the case with a scripted user, who sends the user messages of a run, one after each answer.

    If a message was in the script before, it keeps its id and its expectations. Raises ValueError for a run without
    user messages."""
    sent = [turn.said for turn in trajectory.user_turns if turn.said is not None]
    user = case.get("user")
    if not sent or not isinstance(user, dict):
        raise ValueError("this run is not a conversation, so it has no user messages for a script")
    messages: list[JsonValue] = []
    for each in sent:
        message = _written(user, each)
        message = {"id": each.message, **message} if each.message is not None else message
        messages.append({**message, "say": each.text} | ({"end": each.end} if each.end is not None else {}))
    ended = trajectory.user_turns[-1].ended
    if ended is not None and ended.end == "gave up":
        # When a script is over, the user counts as done. That the user gave up must therefore be written.
        messages[-1] = {**_table(messages[-1]), "end": "gave up"}
    kept = {key: value for key, value in user.items() if key in _KEPT}
    return {**case, "user": {**kept, "messages": messages}}


def _written(user: Table, sent: UserSaid) -> dict[str, JsonValue]:
    """Return the table of the scripted message that the user sent as `sent`, without its keys `when` and `end`.

    The scripted message is found by its id, or else by its text."""
    text = sent.text if sent.original is None else sent.original
    messages = user.get("messages")
    for message in map(_table, messages if isinstance(messages, list) else ()):
        if message.get("id") == sent.message and (sent.message is not None or message.get("say") == text):
            return {key: value for key, value in message.items() if key not in ("when", "end")}
    return {}


def _table(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}
