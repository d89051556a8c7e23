"""Rules that no single type can express about a case: required keys, keys that exclude each other, its conversation and
chain."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workbench.checks.check import CHECK_CLASSES, RESERVED_NAMES, check_names_in
from workbench.suite.model import derived_id
from workbench.suite.problems import Finding, Place, code, described, did_you_mean, quoted, tables, warning
from workbench.suite.rules import check_rules, checks_rules, mock_rules, tools_rules, weight_rules

_EXCLUDED_BY_STEPS = ("user", "ordered", "unordered", "disallowed", "extra_calls", "expect_no_calls")

_FIELDS_OF_ROLE: dict[object, tuple[str, ...]] = {
    "user": ("role", "content"),
    "assistant": ("role", "content", "tool_calls"),
    "tool": ("role", "call", "content", "is_error"),
}


def cases_rules(cases: object) -> Iterator[Finding]:
    """Checks all cases of a suite, and that their ids differ."""
    yield from _ids(cases)
    for index, case in tables(cases):
        yield from _case_rules(case, ("cases", index))


def _ids(cases: object) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for index, case in tables(cases):
        name, case_id = case.get("name"), case.get("id")
        is_derived = "id" not in case
        if is_derived and isinstance(name, str) and name:
            case_id = derived_id(name)
        if not isinstance(case_id, str):
            continue
        if case_id in first:
            how = f"the id {quoted(case_id)}" + (", derived from the name" if is_derived else "")
            message = f"two cases have {how}: also cases[{first[case_id]}]"
            place: Place = ("cases", index, "name" if is_derived else "id")
            yield Finding(place, message, "give this case a different `id`")
        first.setdefault(case_id, index)


def _case_rules(case: dict[str, object], place: Place) -> Iterator[Finding]:
    if "steps" in case:
        yield from _chain_rules(case, place)
    elif "user" not in case:
        yield Finding(place, "a case needs `user`, the request, or `steps`")
    if "stop_on_failure" in case and "steps" not in case:
        yield Finding((*place, "stop_on_failure"), "`stop_on_failure` needs `steps`", "remove it")
    if case.get("skip") == "":
        yield Finding((*place, "skip"), "must say why the case is skipped", "write a reason, or remove the key")
    if case.get("models") == []:
        yield Finding((*place, "models"), "must not be empty", "leave it out to use the suite's models")
    if case.get("expect_no_calls") is True:
        for key in ("ordered", "unordered"):
            if case.get(key):
                message = f"`{key}` expects calls, and `expect_no_calls` expects none"
                yield Finding((*place, key), message, "remove one of them; `disallowed` may stay")
    yield from _offer_rules(case.get("offer"), (*place, "offer"))
    yield from _response_rules(case, place)
    yield from _message_rules(case.get("messages"), (*place, "messages"))
    yield from tools_rules(case.get("tools"), (*place, "tools"))
    yield from mock_rules(case.get("mocks"), (*place, "mocks"))
    for call, at in _calls(case, place):
        yield from checks_rules(call.get("args"), (*at, "args"))
        if call.get("only_args") is True and "args" not in call and "tool" in call:
            hint = "name the arguments in `args`; args = {} is for a call without any"
            yield Finding((*at, "only_args"), "`only_args` needs `args`", hint)
        if "disallowed" not in at:
            yield from weight_rules(call.get("args"), (*at, "args"))


def _calls(case: dict[str, object], place: Place) -> Iterator[tuple[dict[str, object], Place]]:
    for key in ("ordered", "unordered", "disallowed", "steps"):
        for index, item in tables(case.get(key)):
            at = (*place, key, index)
            if key == "ordered" and "any_order" in item:
                for inner, call in tables(item["any_order"]):
                    yield call, (*at, "any_order", inner)
            else:
                yield item, at


def _chain_rules(case: dict[str, object], place: Place) -> Iterator[Finding]:
    for key in _EXCLUDED_BY_STEPS:
        if key in case:
            hint = "move it into the first step" if key == "user" else "a case has expectations or steps, not both"
            yield Finding((*place, key), f"`{key}` cannot be used together with `steps`", hint)
    steps = case["steps"]
    if steps == []:
        yield Finding((*place, "steps"), "must not be empty", "write [[cases.steps]] for each step")
    for index, step in tables(steps):
        at = (*place, "steps", index)
        if index == 0 and "user" not in step:
            yield Finding(at, "the first step needs `user`, the request")
        for key in ("args", "forbidden_args", "only_args", "unlisted"):
            if key in step and "tool" not in step:
                message = f"`{key}` needs `tool`: a step without `tool` expects no call"
                yield Finding((*at, key), message, "name the tool, or remove the key")


def _offer_rules(offer: object, place: Place) -> Iterator[Finding]:
    if not isinstance(offer, list):
        return
    for index, name in enumerate(offer):
        if name in offer[:index]:
            yield Finding((*place, index), f"{described(name)} is offered twice", "remove one of them")


def _response_rules(case: dict[str, object], place: Place) -> Iterator[Finding]:
    if "response" not in case:
        return
    place = (*place, "response")
    response = case["response"]
    if isinstance(response, dict):
        before = list(check_rules(response, place, of_answer=True))
        yield from before
        if not before and not check_names_in(response):
            yield from _named_rules(response, place)
    elif not isinstance(response, str):
        message = f"must be text or one check, not {described(response)}"
        yield Finding(place, message, "the final answer is text")


def _named_rules(checks: dict[str, object], place: Place) -> Iterator[Finding]:
    """Checks the named checks of an answer. A name that could be part of a check is refused, and so is plain text, with
    which a misspelt check would be a name."""
    if not checks:
        yield Finding(place, "must be text, one check, or checks by name", 'such as { contains = "text" }')
    for name, value in checks.items():
        at = (*place, name)
        if name in RESERVED_NAMES:
            yield Finding(at, f"`{name}` cannot be the name of a check: it is a check or an option", "choose another")
        elif not _NAME.fullmatch(name):
            hint = "write letters, digits, `_` and `-`"
            yield Finding(at, f"{quoted(name)} cannot be the name of a check", hint)
        elif not isinstance(value, dict) or not check_names_in(value):
            hint = did_you_mean(name, CHECK_CLASSES) or 'such as { contains = "text" }'
            yield Finding(at, "must be a table with one check", hint)
        else:
            yield from check_rules(value, at, of_answer=True)


_NAME = re.compile(r"[\w-]+")


def _message_rules(messages: object, place: Place) -> Iterator[Finding]:
    made: dict[str, Place] = {}
    answered: set[str] = set()
    for index, message in tables(messages):
        at = (*place, index)
        role = message.get("role")
        fields = _FIELDS_OF_ROLE.get(role) if isinstance(role, str) else None
        if fields is None:
            continue
        for key in ("content", "tool_calls", "call", "is_error"):
            if key in message and key not in fields:
                hint = f"it takes {code(fields[1:])}"
                yield Finding((*at, key), f"a message with the role `{role}` takes no `{key}`", hint)
        if role == "assistant" and not message.get("content") and not message.get("tool_calls"):
            yield Finding(at, "an assistant message needs `content` or `tool_calls`")
        if role != "assistant" and "content" not in message:
            yield Finding(at, f"a message with the role `{role}` needs `content`")
        for number, call in tables(message.get("tool_calls")):
            call_id = call.get("id")
            if isinstance(call_id, str):
                if call_id in made:
                    hint = "give every call its own id"
                    yield Finding((*at, "tool_calls", number, "id"), f"two calls have the id {quoted(call_id)}", hint)
                made.setdefault(call_id, (*at, "tool_calls", number))
        if role == "tool":
            yield from _answer_rules(message, at, made, answered)
    for call_id, at in made.items():
        if call_id not in answered:
            hint = "many models refuse such a conversation: add a message with the role `tool`"
            yield warning(at, f"the call {quoted(call_id)} has no answer", hint)


def _answer_rules(
    message: dict[str, object], place: Place, made: dict[str, Place], answered: set[str]
) -> Iterator[Finding]:
    call_id = message.get("call")
    if "call" not in message:
        yield Finding(place, "a message with the role `tool` needs `call`, the id of the call that it answers")
    elif not isinstance(call_id, str):
        return
    elif call_id not in made:
        hint = "write the `id` of a tool call in an earlier assistant message"
        yield Finding((*place, "call"), f"no earlier call has the id {quoted(call_id)}", hint)
    elif call_id in answered:
        yield Finding((*place, "call"), f"the call {quoted(call_id)} is answered twice")
    else:
        answered.add(call_id)
