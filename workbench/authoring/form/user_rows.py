"""The rows for the user of a case: a single message, a script of messages, or a role that a model plays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from workbench.authoring.form.call_rows import calls_section, response_rows, result_rows
from workbench.authoring.form.field_text import ABSENT, shown_name
from workbench.authoring.form.row import (
    DETAIL,
    Cell,
    Field,
    FormRow,
    FormSource,
    Limits,
    field_row,
    heading,
    raw_row,
    unknown_rows,
)
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.suite.user_model import OTHERWISE, ScriptedMessage, TurnCondition, UserTable, WithheldFact
from workbench.trajectory.events import UserEnd

_MESSAGE = Field("user", "lines", "what is asked?", empty_stays=True)
_GOAL = Field("goal", "lines", "none")
_SPEECH = (Field("opening", "lines", "the model begins"), Field("style", "lines"))
_SCRIPT_FIELDS = (
    Field("otherwise", "lines", OTHERWISE, rare=True),
    Field("patience", "number", "2", rare=True, limits=Limits(0, whole=True)),
)
_PLAYED_FIELDS = (
    Field("model", "text", "--user-model"),
    Field("prompt", "lines", "the shipped prompt", rare=True),
    Field("tries", "number", "3", rare=True, limits=Limits(1, 10, whole=True)),
    Field("vary", "yes_no", "yes", rare=True),
    Field("review", "choice", "never", rare=True, choices=("never", "failed")),
)
_MAX_TURNS = Field("max_turns", "number", "10", limits=Limits(1, whole=True))
_ENDS: tuple[str, ...] = get_args(UserEnd)
_INDENT = 2


def user_section(source: FormSource) -> Iterator[FormRow]:
    """Yield the rows of the case's message, or of the simulated user of its conversation."""
    user = source.table.get("user", ABSENT)
    if not isinstance(user, dict):
        yield field_row(source.table, (), _MESSAGE)
        if not source.is_chain:
            # Two rows offer to make the case a conversation: by the first message of a script, or by a goal.
            yield heading(("user", "messages"), _INDENT, None, is_rare=True)
            yield field_row({}, ("user",), replace(_GOAL, rare=True), _INDENT)
        return
    place: Place = ("user",)
    is_played = "goal" in user
    yield FormRow("section", place, 0, "user", note="played by a model" if is_played else "scripted")
    if is_played or "messages" not in user:
        yield field_row(user, place, _GOAL, _INDENT)
    yield from _applicable(user, _SPEECH, is_played)
    if not is_played or "messages" in user:
        yield from _messages(source, user)
    if is_played or "facts" in user:
        yield from _facts(user)
    yield from _applicable(user, _PLAYED_FIELDS, is_played)
    yield from _applicable(user, _SCRIPT_FIELDS, not is_played)
    yield field_row(user, place, _MAX_TURNS, _INDENT)
    yield from _condition_rows(user, (*place, "stop"), _INDENT)
    yield from unknown_rows(user, place, _INDENT, tuple(UserTable.model_fields))


def _applicable(user: Table, fields: tuple[Field, ...], apply: bool) -> Iterator[FormRow]:
    """Yield the rows of `fields`. `apply` means that these keys have an effect for a user of this kind.

    Otherwise, only a key that is written gets a row, so that the person at the app can remove the key."""
    for field in fields:
        if apply or field.key in user:
            yield field_row(user, ("user",), field, _INDENT)


def _messages(source: FormSource, user: Table) -> Iterator[FormRow]:
    place: Place = ("user", "messages")
    messages = user.get("messages", [])
    if not isinstance(messages, list):
        yield raw_row(place, _INDENT, messages)
        return
    yield heading(place, _INDENT, messages)
    for index, message in enumerate(messages):
        yield from _message_rows(source, (*place, index), message)


def _message_rows(source: FormSource, place: Place, message: object) -> Iterator[FormRow]:
    label, indent = str(int(place[-1]) + 1), _INDENT + 1 + DETAIL
    if not isinstance(message, dict):
        yield raw_row(place, _INDENT + 1, message, label)
        return
    say = field_row(message, place, Field("say", "lines", "what is said?", empty_stays=True))
    yield FormRow("item", place, _INDENT + 1, label, say.cells)
    yield field_row(message, place, Field("id", "text", rare=True), indent)
    yield from _condition_rows(message, (*place, "when"), indent)
    yield field_row(message, place, Field("end", "choice", "the user stays", choices=_ENDS), indent)
    for key in ("ordered", "unordered", "disallowed"):
        yield from calls_section(source, (*place, key), indent, is_rare=True)
    yield from response_rows((*place, "response"), message.get("response", ABSENT), indent, is_rare=True)
    yield from unknown_rows(message, place, indent, tuple(ScriptedMessage.model_fields))


def _facts(user: Table) -> Iterator[FormRow]:
    place: Place = ("user", "facts")
    facts = user.get("facts", {})
    if not isinstance(facts, dict):
        yield raw_row(place, _INDENT, facts)
        return
    yield heading(place, _INDENT, facts)
    for name, fact in facts.items():
        at = (*place, name)
        # A fact may be plain text. It is a table if it has a condition.
        table = fact if isinstance(fact, dict) else {"value": fact}
        value = field_row(table, at, Field("value", "lines", "which fact?", empty_stays=True)).cells[0]
        if not isinstance(fact, dict):
            value = replace(value, place=at)
        yield FormRow("pair", at, _INDENT + 2, "", (Cell("key", at, shown_name(name)), value))
        yield from _condition_rows(table, (*at, "when"), _INDENT + 4)
        yield from unknown_rows(table, at, _INDENT + 4, tuple(WithheldFact.model_fields))


def _condition_rows(owner: Table, place: Place, indent: int) -> Iterator[FormRow]:
    """Yield the rows of a condition on the conversation: a check of the last answer, and the called tools."""
    key = str(place[-1])
    condition = owner.get(key, {})
    if not isinstance(condition, dict):
        yield raw_row(place, indent, condition)
        return
    answer, *parts = result_rows(place, condition, indent, is_rare=True, key="answer")
    yield replace(answer, label=f"{key} answer", rare=False)
    yield from parts
    called = field_row(condition, place, Field("called", "names", "no call"), indent)
    yield replace(called, label=f"{key} called")
    yield from unknown_rows(condition, place, indent, tuple(TurnCondition.model_fields))
