"""Validation rules for the keys of expected calls.

The rules read parsed TOML, like those of `workbench.suite.rules`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from workbench.suite.check_rules import check_rules, is_check
from workbench.suite.expected_calls import CALL_RULES
from workbench.suite.problems import Finding, Place, in_backticks, table

ARGUMENT_KEYS: Final = ("args", "forbidden_args", "only_args", "unlisted")
"""The keys of an expected call that concern its arguments."""


def call_rules(call: dict[str, object], place: Place) -> Iterator[Finding]:
    """Find problems in the keys of an expected call. Checks of its arguments are left to `check_rules`."""
    if "any_of" in place[-2:-1]:
        yield from _alternative_rules(call, place)
    elif place[-1] in ("before", "after"):
        yield from _expected_rules(call, place)
        for key in ("optional", "times", "because"):
            if key in call:
                yield Finding((*place, key), f"`{key}` has no meaning in `{place[-1]}`", "remove it")
    elif "disallowed" in place or "final" in place:
        yield from _has_tool(call, place, "an expected call needs it")
        where = "disallowed" if "disallowed" in place else "changes"
        for key in CALL_RULES:
            if key in call:
                yield Finding((*place, key), f"`{key}` has no meaning in `{where}`", "remove it")
    else:
        yield from _expected_rules(call, place)
    if "after_message" in call and (place[-1] in ("before", "after") or {"disallowed", "steps", "any_of"} & {*place}):
        hint = "write it at an expected call or a change"
        yield Finding((*place, "after_message"), "`after_message` has no meaning here", hint)
    if isinstance(result := call.get("result"), dict):
        at = (*place, "result")
        yield from check_rules(result, at)
        yield from nothing_scored(result, ("weight", "optional", "required"), at, "for a result")


def _expected_rules(call: dict[str, object], place: Place) -> Iterator[Finding]:
    if "any_of" not in call:
        if "steps" not in place:
            yield from _has_tool(call, place, "an expected call needs it, or `any_of`")
    elif call["any_of"] == []:
        yield Finding((*place, "any_of"), "must not be empty", "list the calls, one of which is expected")
    else:
        for key in ("tool", *ARGUMENT_KEYS):
            if key in call:
                message = f"`{key}` cannot be combined with `any_of`, which lists whole calls"
                yield Finding((*place, key), message, "write it into the alternatives")
        for key in ("result", "is_error"):
            inside = [number for number, each in enumerate(_alternatives(call)) if key in each]
            if key in call and inside:
                message = f"`{key}` is written both beside `any_of` and inside it"
                yield Finding((*place, "any_of", inside[0], key), message, "write it at only one of the two places")
    if call.get("optional") is True and "times" in call:
        hint = "write the fewest times as 0, such as times = [0, 3]"
        yield Finding((*place, "optional"), "`optional` cannot be combined with `times`", hint)


def _alternative_rules(call: dict[str, object], place: Place) -> Iterator[Finding]:
    yield from _has_tool(call, place, "an alternative needs it")
    for key in ("any_of", "optional", "times", "because"):
        if key in call:
            hint = "list all alternatives in one `any_of`" if key == "any_of" else "write it next to `any_of`"
            yield Finding((*place, key), f"`{key}` is not allowed inside `any_of`", hint)


def _alternatives(call: dict[str, object]) -> list[dict[str, object]]:
    alternatives = call.get("any_of")
    if not isinstance(alternatives, list):
        return []
    return [table(each) for each in alternatives]


def _has_tool(call: dict[str, object], place: Place, needed: str) -> Iterator[Finding]:
    if "tool" not in call:
        yield Finding((*place, "tool"), f"`tool` is missing: {needed}")


def nothing_scored(check: object, options: Iterable[str], place: Place, location: str) -> Iterator[Finding]:
    """Find options that affect only the score of a check, in a place where checks have no score.

    `location` describes the place in messages."""
    for option in options:
        if option in table(check) and is_check(check):
            message = f"`{option}` has no meaning {location}: the check decides, and counts in no score"
            yield Finding((*place, option), message, "remove it")


def arcade_rules(call: object, place: Place) -> Iterator[Finding]:
    """Find keys without a counterpart in Arcade evals."""
    given = [key for key in (*CALL_RULES, "parallel") if getattr(call, key, None) not in (None, False, ())]
    if given:
        message = f"arcade_compatible grades as Arcade does, which has no {in_backticks(given, ' or ')}"
        yield Finding((*place, given[0]), message, "remove it, or arcade_compatible")
