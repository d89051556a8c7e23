"""Validation rules for the user of a conversation, and for the checks after the conversation.

The rules read parsed TOML, like those of `workbench.suite.rules`."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.checks.check import check_names_in
from workbench.suite.call_rules import nothing_scored
from workbench.suite.check_rules import check_rules, given_rules, unknown_text_check
from workbench.suite.problems import Finding, Place, did_you_mean, in_backticks, quoted, requires_key, table, tables

_SCRIPTED = ("otherwise", "patience")
_PLAYED = ("opening", "style", "facts", "model", "prompt", "tries", "vary", "review")


def user_rules(case: dict[str, object], user: dict[str, object], place: Place) -> Iterator[Finding]:
    if "goal" in user and "messages" in user:
        hint = "write a script with `messages`, or a `goal` for a model to play"
        yield Finding(place, "`goal` and `messages` exclude each other", hint)
    elif "goal" not in user and "messages" not in user:
        yield Finding(place, "the user needs `messages` or `goal`", "write [[cases.user.messages]], or a `goal`")
    elif "goal" in user:
        yield from requires_key(user, dict.fromkeys(_SCRIPTED, "messages"), place)
    else:
        yield from requires_key(user, dict.fromkeys(_PLAYED, "goal"), place)
    if case.get("images"):
        yield Finding((*place[:-1], "images"), "`images` cannot be sent in a conversation", "remove them")
    yield from _script_rules(user, place)
    for name, fact in table(user.get("facts")).items():
        yield from _condition_rules(table(fact).get("when"), (*place, "facts", name, "when"))
    if "stop" in user:
        yield from _condition_rules(user["stop"], (*place, "stop"))
        if not table(user["stop"]):
            yield Finding((*place, "stop"), "must not be empty", 'write { called = ["TOOL"] } or { answer = check }')


def _script_rules(user: dict[str, object], place: Place) -> Iterator[Finding]:
    messages = user.get("messages")
    if messages == []:
        yield Finding((*place, "messages"), "must not be empty", "write [[cases.user.messages]] for each message")
    first: dict[str, int] = {}
    for index, message in tables(messages):
        at: Place = (*place, "messages", index)
        yield from _condition_rules(message.get("when"), (*at, "when"))
        name = message.get("id")
        if isinstance(name, str):
            if name in first:
                message_of = f"two messages have the id {quoted(name)}: also messages[{first[name]}]"
                yield Finding((*at, "id"), message_of, "give every message its own id")
            first.setdefault(name, index)
    waiting = [index for index, message in tables(messages) if table(message.get("when"))]
    if waiting and len(waiting) == len(tuple(tables(messages))):
        hint = "leave `when` out of the message that begins the conversation"
        message_of = "no message can begin the conversation: each waits for an answer or a call"
        yield Finding((*place, "messages", waiting[0], "when"), message_of, hint)


def _condition_rules(condition: object, place: Place) -> Iterator[Finding]:
    answer = table(condition).get("answer")
    at: Place = (*place, "answer")
    if isinstance(answer, dict) and not check_names_in(answer):
        yield from unknown_text_check(answer, at, "must be text or one check: an answer is text")
    elif isinstance(answer, dict):
        yield from check_rules(answer, at, of_answer=True)
        yield from given_rules(answer, at)
        yield from nothing_scored(answer, ("weight", "optional", "required"), at, "in a condition")


def goal_rules(final: dict[str, object], place: Place) -> Iterator[Finding]:
    """Find problems in `goal`, the judged check of the whole conversation."""
    if "goal" not in final:
        return
    goal = final["goal"]
    if not isinstance(goal, dict) or "judged" not in goal:
        yield Finding(place, "must be a judged check", 'write { judged = "The agent told the user …" }')
        return
    yield from check_rules(goal, place)
    yield from nothing_scored(goal, ("weight", "optional", "required"), place, "in `final`")


def after_message_rules(case: dict[str, object], place: Place) -> Iterator[Finding]:
    """Check that every `after_message` of a call or a change names an existing message."""
    user, ids = table(case.get("user")), []
    for _, message in tables(user.get("messages")):
        if isinstance(name := message.get("id"), str):
            ids.append(name)
    for call, at in _with_after_message(case, place):
        name = call["after_message"]
        if not isinstance(name, str) or name in ids:
            continue
        if not ids:
            hint = "give a message of a scripted user this `id`"
        else:
            hint = did_you_mean(name, ids) or f"ids: {in_backticks(ids)}"
        yield Finding((*at, "after_message"), f"no message has the id {quoted(name)}", hint)


_CALLS = ("ordered", "unordered", "changes", "any_order")
_HOLDS_CALLS = frozenset((*_CALLS, "final", "user"))


def _with_after_message(owner: dict[str, object], place: Place) -> Iterator[tuple[dict[str, object], Place]]:
    for key in _CALLS:
        for index, call in tables(owner[key]) if key in owner else ():
            at: Place = (*place, key, index)
            if "after_message" in call:
                yield call, at
            # Most calls hold no other calls.
            if not _HOLDS_CALLS.isdisjoint(call):
                yield from _with_after_message(call, at)
    if isinstance(final := owner.get("final"), dict):
        yield from _with_after_message(final, (*place, "final"))
    for index, message in tables(table(owner.get("user")).get("messages")):
        yield from _with_after_message(message, (*place, "user", "messages", index))
