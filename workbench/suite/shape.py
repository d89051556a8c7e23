"""Checks the keys and types of a suite. It turns pydantic's errors into plain messages with places in the file.

Rules that types cannot express, such as mutually exclusive keys, are in `workbench.suite.rules`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from workbench.checks.answer_checks import NAMED_CHECKS, ONE_CHECK
from workbench.checks.check import CHECK_CLASSES
from workbench.checks.fields import NAMED_WEIGHTS
from workbench.numerals import setting_text
from workbench.suite.expected_calls import DisallowedCall, ExpectedCall
from workbench.suite.grading_model import (
    EXTRA_RULE,
    EXTRA_TOOLS,
    AccuracyTable,
    Aggregate,
    CriticsTable,
    DimensionsTable,
    Gate,
    GradingTable,
    LimitsTable,
    StatisticsTable,
    SuiteLimitsTable,
)
from workbench.suite.model import (
    EACH_FILE,
    EACH_ROWS,
    EXPECTATIONS,
    Annotations,
    AtMost,
    Case,
    CaseImage,
    CaseVariant,
    FinalState,
    FinalTable,
    Mock,
    PriorCall,
    PriorMessage,
    ProviderTool,
    SetupCall,
    Step,
    Subject,
    Suite,
    Tool,
    ToolChange,
    Variant,
)
from workbench.suite.problems import Finding, Place, did_you_mean, in_backticks, keys_of, kind_of_value
from workbench.suite.server_model import Answer, Server
from workbench.suite.user_model import (
    PLAIN_FACT,
    SAID_AFTER,
    SAID_ANYWHERE,
    USER_TABLE,
    USER_TEXT,
    WITHHELD_FACT,
    SaidText,
    ScriptedMessage,
    TurnCondition,
    UserTable,
    WithheldFact,
)

_OF_SUITE_AND_CASE: dict[tuple[str, ...], tuple[str, type[BaseModel]]] = {
    ("limits",): ("the limits", LimitsTable),
    ("grading",): ("the grading", GradingTable),
    ("grading", "critics"): ("the options of critics", CriticsTable),
    ("grading", "accuracy"): ("the options of accuracy", AccuracyTable),
    ("grading", "dimensions"): ("the options of dimensions", DimensionsTable),
    ("mocks",): ("a mock", Mock),
    ("answers",): ("an answer", Answer),
    ("tools",): ("a tool", Tool),
    ("tools", "annotations"): ("annotations", Annotations),
}

EXPECTED_LISTS: tuple[tuple[str, ...], ...] = (
    ("ordered",),
    ("ordered", "any_order"),
    ("unordered",),
    ("unordered", "any_order"),
)
"""The keys of a case that lead to lists of expected calls."""

_CONDITIONS = (("disallowed", "before"), ("disallowed", "after"))
_EXPECTED_CALLS: dict[tuple[str, ...], tuple[str, type[BaseModel]]] = {}
_OWNERS: tuple[tuple[str, ...], ...] = (("cases",), ("cases", "variants"), ("cases", "user", "messages"))
"""The tables that have lists of expected calls."""

for _owner in _OWNERS:
    for _keys in (*EXPECTED_LISTS, *_CONDITIONS):
        _EXPECTED_CALLS[*_owner, *_keys] = ("an expected call", ExpectedCall)
        _EXPECTED_CALLS[*_owner, *_keys, "any_of"] = ("an alternative", ExpectedCall)
_EXPECTED_CALLS["cases", "steps", "any_of"] = ("an alternative", ExpectedCall)

TABLES: dict[tuple[str, ...], tuple[str, type[BaseModel]]] = {
    (): ("the suite", Suite),
    **_OF_SUITE_AND_CASE,
    ("limits",): ("the limits", SuiteLimitsTable),
    ("gate",): ("the gate", Gate),
    ("aggregates",): ("an aggregate", Aggregate),
    ("aggregates", "at_least"): ("the gates of an aggregate", StatisticsTable),
    ("aggregates", "above"): ("the gates of an aggregate", StatisticsTable),
    ("aggregates", "at_most"): ("the gates of an aggregate", StatisticsTable),
    ("subject",): ("the subject", Subject),
    ("servers",): ("a server", Server),
    ("provider_tools",): ("a tool of providers", ProviderTool),
    ("variants",): ("a variant", Variant),
    ("variants", "servers"): ("a server", Server),
    ("variants", "tools"): ("a tool", Tool),
    ("variants", "tools", "annotations"): ("annotations", Annotations),
    ("variants", "mocks"): ("a mock", Mock),
    ("variants", "changes"): ("a changed tool", ToolChange),
    ("cases",): ("a case", Case),
    **{("cases", *keys): entry for keys, entry in _OF_SUITE_AND_CASE.items()},
    ("cases", "messages"): ("a message", PriorMessage),
    ("cases", "messages", "tool_calls"): ("a tool call", PriorCall),
    ("cases", "images"): ("an image", CaseImage),
    ("cases", "setup"): ("a call of `setup`", SetupCall),
    **_EXPECTED_CALLS,
    ("cases", "disallowed"): ("a disallowed call", DisallowedCall),
    ("cases", "variants"): ("a variant of a case", CaseVariant),
    ("cases", "variants", "disallowed"): ("a disallowed call", DisallowedCall),
    ("cases", "at_most"): ("`at_most`", AtMost),
    ("cases", "final"): ("`final`", FinalTable),
    ("cases", "final", "changes"): ("a change", ExpectedCall),
    ("cases", "final", "state"): ("a final state", FinalState),
    ("cases", "final", "says"): ("a text of `says`", SaidText),
    ("cases", "steps"): ("a step", Step),
    ("cases", "user"): ("the user", UserTable),
    ("cases", "user", "messages"): ("a message of the user", ScriptedMessage),
    ("cases", "user", "messages", "disallowed"): ("a disallowed call", DisallowedCall),
    ("cases", "user", "messages", "when"): ("a condition of a message", TurnCondition),
    ("cases", "user", "facts"): ("a fact", WithheldFact),
    ("cases", "user", "facts", "when"): ("the condition of a fact", TurnCondition),
    ("cases", "user", "stop"): ("`stop`", TurnCondition),
}
"""Every table of the format by the keys that lead to it. Each has a name for messages and a model."""

ARRAYS_OF_TABLES = frozenset(
    {
        ("servers",),
        ("tools",),
        ("provider_tools",),
        ("mocks",),
        ("answers",),
        ("aggregates",),
        ("variants",),
        ("variants", "servers"),
        ("variants", "tools"),
        ("variants", "mocks"),
        ("variants", "changes"),
        ("cases",),
        ("cases", "mocks"),
        ("cases", "answers"),
        ("cases", "tools"),
        ("cases", "messages"),
        ("cases", "messages", "tool_calls"),
        ("cases", "images"),
        ("cases", "setup"),
        *(key for key in _EXPECTED_CALLS if key[-2:] not in _CONDITIONS),
        ("cases", "disallowed"),
        ("cases", "variants"),
        ("cases", "variants", "disallowed"),
        ("cases", "final", "changes"),
        ("cases", "final", "state"),
        ("cases", "steps"),
        ("cases", "user", "messages"),
        ("cases", "user", "messages", "disallowed"),
    }
)

# Later code walks values recursively, and tomllib accepts more levels than Python's stack has.
_DEEPEST = 64
"""Maximum number of nesting levels in a suite."""

_FOUND_BY_RULES = frozenset({"check_mixed", "check_without_name", "invalid-json-value"})


def nested_too_deeply(raw: dict[str, object]) -> bool:
    """Return whether tables and lists are nested in more than 64 levels. No tool call needs that many."""
    level: list[object] = [raw]
    for _ in range(_DEEPEST):
        inner: list[object] = []
        for outer in level:
            if isinstance(outer, dict):
                inner += outer.values()
            elif isinstance(outer, list):
                inner += outer
        if not inner:
            return False
        level = inner
    return True


def value_findings(value: object, place: Place = ()) -> Iterator[Finding]:
    """Find values that JSON lacks: dates and times, `nan`, and `inf` outside a range or a limit."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, dict | list | float | date | time):
                yield from value_findings(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            if isinstance(inner, dict | list | float | date | time):
                yield from value_findings(inner, (*place, index))
    elif isinstance(value, date | time):
        text = value.isoformat()
        hint = f'write the text "{text}"'
        if len(place) > 1 and place[-2] in ("args", "when"):
            hint += f', or {{ datetime = "{text}" }}'
        yield Finding(place, "TOML dates and times are not allowed: a model sends text", hint)
    elif isinstance(value, float) and math.isnan(value):
        yield Finding(place, "`nan` is not allowed: it equals nothing, not even itself")
    elif isinstance(value, float) and math.isinf(value) and not _may_be_infinite(place):
        hint = "only `range`, `limits` and `times` take `inf`"
        yield Finding(place, "infinite numbers are not allowed: JSON has none", hint)


def _may_be_infinite(place: Place) -> bool:
    if len(place) < 2:
        return False
    kind = CHECK_CLASSES.get(str(place[-2]))
    return "limits" in place[:-1] or place[-2] == "times" or (kind is not None and kind.may_be_infinite)


def shape_findings(raw: dict[str, object], error: ValidationError) -> Iterator[Finding]:
    """Yield the errors of `Suite.model_validate(raw)` as findings, one for each place."""
    seen: set[Place] = set()
    for detail in error.errors(include_url=False):
        if detail["type"] in _FOUND_BY_RULES:
            continue
        finding = _finding(raw, detail)
        if finding.place not in seen and not _is_consequence(finding.place, detail):
            seen.add(finding.place)
            yield finding


def _is_consequence(place: Place, detail: ErrorDetails) -> bool:
    # Some errors only follow from others. pydantic reports a list as too short if all its elements are invalid. It
    # reports an id as missing if the name is missing.
    if detail["type"] == "too_short":
        return bool(detail["input"])
    # The default of a field, such as the name of a subject, is not created if a field that it depends on is wrong.
    if detail["type"] == "default_factory_not_called":
        return True
    return detail["type"] == "missing" and keys_of(place) == ("cases", "id")


def _finding(raw: dict[str, object], detail: ErrorDetails) -> Finding:
    kind = detail["type"]
    place, value = _place_of(raw, detail["loc"])
    context: Mapping[str, Any] = detail.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(place, in_group=len(place) > 2 and detail["loc"][-2:-1] == ("group",))
    if len(place) > 1 and place[-1] == "weight":
        return Finding(
            place, f"must be a number from 0, or one of {in_backticks(NAMED_WEIGHTS)}, not {kind_of_value(value)}"
        )
    if len(place) > 1 and _is_pair(place) and kind in ("missing", "too_long"):
        if kind == "missing":
            place = place[:-1]
        return Finding(place, "needs exactly two numbers: [low, high]")
    match kind:
        case "missing":
            return _missing(place)
        case "string_type":
            message, hint = f"must be text in quotes, not {kind_of_value(value)}", ""
        case "int_type" | "int_from_float":
            message, hint = f"must be a whole number, not {kind_of_value(value)}", ""
        case "float_type":
            message, hint = f"must be a number, not {kind_of_value(value)}", ""
        case "finite_number":
            message, hint = "must be a finite number", ""
        case "bool_type":
            message, hint = f"must be true or false, not {kind_of_value(value)}", "without quotes, in lower case"
        case "tuple_type":
            message, hint = f"must be a list, not {kind_of_value(value)}", _list_hint(place, value)
        case "model_type" | "dict_type":
            if keys_of(place)[-2:] == ("tools", "parameters") and isinstance(value, str):
                message, hint = "the JSON text must be an object", 'write {"type": "object", …}'
            else:
                message, hint = f"must be a table, not {kind_of_value(value)}", _table_hint(place, value)
        case "literal_error":
            return _not_allowed(place, value, str(context["expected"]))
        case "greater_than_equal":
            message, hint = f"must be at least {setting_text(context['ge'])}, not {value}", ""
        case "greater_than":
            message, hint = f"must be more than {setting_text(context['gt'])}, not {value}", ""
        case "less_than_equal":
            message, hint = f"must be at most {setting_text(context['le'])}, not {value}", ""
        case "string_too_short" | "too_short":
            message, hint = "must not be empty", ""
        case "value_error":
            message, _, hint = str(context["error"]).partition(": write ")
            if hint:
                hint = f"write {hint}"
        case _:
            message, hint = detail["msg"], ""
    return Finding(place, message, hint)


def _place_of(raw: dict[str, object], location: tuple[int | str, ...]) -> tuple[Place, object]:
    # A location also contains tags of unions, which are not keys of the file. Its last part may be a missing key.
    place: Place = ()
    value: object = raw
    for number, part in enumerate(location):
        if _is_tag(location[:number], part):
            continue
        is_inside = (isinstance(value, dict) and part in value) or (
            isinstance(value, list) and isinstance(part, int) and part < len(value)
        )
        if is_inside:
            place = (*place, part)
            value = value[part]  # type: ignore[index]
        elif number == len(location) - 1 and isinstance(value, dict | list):
            place = (*place, part)
            value = None
    return place, value


_TAGS_OF_USERS = frozenset({USER_TEXT, USER_TABLE, PLAIN_FACT, WITHHELD_FACT, SAID_ANYWHERE, SAID_AFTER})


def _is_tag(previous: tuple[int | str, ...], part: int | str) -> bool:
    """Return whether a part of an error's location is a tag of pydantic's unions, not a key of the file.

    `previous` are the parts before it."""
    if part in ("call", "group"):
        return len(previous) > 1 and previous[-2] in ("ordered", "unordered") and isinstance(previous[-1], int)
    if part in (ONE_CHECK, NAMED_CHECKS):
        return previous[-1:] == ("response",)
    if part in (EXTRA_RULE, EXTRA_TOOLS):
        return previous[-1:] == ("extra_calls",)
    if part in (EACH_FILE, EACH_ROWS):
        return previous[-1:] == ("each",)
    if part in _TAGS_OF_USERS:
        return previous[-1:] == ("user",) or previous[-2:-1] in (("says",), ("facts",))
    return False


def _is_pair(place: Place) -> bool:
    return any(part in _pairs() for part in place[-2:])


@cache
def _pairs() -> frozenset[str]:
    pairs = set()
    for kind in CHECK_CLASSES.values():
        for name in (kind.kind, *kind.options):
            if kind.editor(name).input_kind == "range":
                pairs.add(name)
    return frozenset(pairs)


def _missing(place: Place) -> Finding:
    owner = "this table"
    if known := TABLES.get(_table_keys(place[:-1])):
        owner = known[0]
    return Finding(place, f"`{place[-1]}` is missing: {owner} needs it")


def _table_keys(place: Place) -> tuple[str, ...]:
    """Return the keys that lead to a table, as a key of `TABLES`.

    `TABLES` has no names that users choose. The name of a fact under `user.facts` is therefore left out."""
    keys = keys_of(place)
    if keys[:3] == ("cases", "user", "facts"):
        return (*keys[:3], *keys[4:])
    return keys


def _unknown_key(place: Place, in_group: bool) -> Finding:
    key = str(place[-1])
    if in_group:
        hint = "beside `any_order`, a group takes only `parallel`: write other keys into its calls"
        return Finding(place, f"`{key}` is not allowed next to `any_order`", hint)
    if key == "any_order":
        return Finding(place, "`any_order` is allowed only in `ordered` and `unordered`", "write the calls themselves")
    keys = _table_keys(place[:-1])
    owner, known = TABLES[keys]
    home = _home_of(key, keys)
    if keys == ("cases", "steps") and key in EXPECTATIONS and key != "final":
        hint = "a step expects the one call of its `tool`, with `args`, and a chain has no other expectations"
    elif home is not None:
        above = f"[{'.'.join(keys)}]"
        if keys in ARRAYS_OF_TABLES:
            above = f"[{above}]"
        hint = f"`{key}` is a key of {home}: write it above `{above}`, as keys below a header belong to its table"
    else:
        hint = (
            _inner_table_hint(key, keys)
            or _other_word_hint(key, known.model_fields)
            or did_you_mean(key, known.model_fields)
            or _form_hint(key, keys)
            or _limit_hint(key, keys)
            or f"known keys: {in_backticks(known.model_fields)}"
        )
    return Finding(place, f"unknown key `{key}` in {owner}", hint)


def _form_hint(key: str, keys: tuple[str, ...]) -> str:
    if keys != ("provider_tools",):
        return ""
    form = f"{{ {key} = … }}"
    return f"write what a request offers below the name of its API: messages = {form}, responses = {form}"


def _inner_table_hint(key: str, keys: tuple[str, ...]) -> str:
    for array in ARRAYS_OF_TABLES:
        if len(array) == len(keys) + 2 and (*keys, array[-2], key) == array:
            return f"write `[[{'.'.join(array)}]]`"
    return ""


_OTHER_WORDS = {
    "ordered": ("expected", "expect", "expects", "expected_calls", "expected_tools", "calls", "tool_calls"),
    "user": ("input", "prompt", "query", "question", "message", "request"),
    "system": ("system_prompt", "system_message", "instructions"),
}
"""Keys of the format, and names for them in other programs."""


def _other_word_hint(key: str, known: Iterable[str]) -> str:
    for name, words in _OTHER_WORDS.items():
        if name in known and key.lower() in words:
            return f"did you mean `{name}`?"
    return ""


def _limit_hint(key: str, keys: tuple[str, ...]) -> str:
    if key not in SuiteLimitsTable.model_fields:
        return ""
    if key not in LimitsTable.model_fields:
        return "write it into `limits` of the suite: it is about a whole batch"
    if "cases" in keys:
        return "write it into `limits` of the case, or of the suite"
    return "write it into `limits`"


def _home_of(key: str, keys: tuple[str, ...]) -> str | None:
    for length in range(len(keys) - 1, -1, -1):
        entry = TABLES.get(keys[:length])
        if entry is not None and key in entry[1].model_fields:
            return entry[0]
    return None


def _not_allowed(place: Place, value: object, expected: str) -> Finding:
    hint = ""
    if expected == "True":
        return Finding(place, f"`{place[-1]}` takes only true, not {kind_of_value(value)}")
    # pydantic gives the allowed words as one text: "'a', 'b' or 'c'".
    allowed = expected.replace(" or ", ", ").replace("'", "").split(", ")
    if isinstance(value, str):
        hint = did_you_mean(value, allowed)
    if place[-1] == "extra_calls":
        hint = hint or 'or list the tools whose calls are free: ["search"]'
    return Finding(place, f"must be {in_backticks(allowed[:-1])} or `{allowed[-1]}`, not {kind_of_value(value)}", hint)


def _list_hint(place: Place, value: object) -> str:
    keys = keys_of(place)
    if keys in ARRAYS_OF_TABLES:
        return f"write `[[{'.'.join(keys)}]]`, with two brackets on each side, for each one"
    if isinstance(value, str) and len(value) <= 20 and value.isprintable() and '"' not in value:
        return f'write ["{value}"]'
    return "write [ … ]"


def _table_hint(place: Place, value: object) -> str:
    keys = keys_of(place)
    if isinstance(value, list) and keys in TABLES and isinstance(place[-1], str):
        return f"write `[{'.'.join(keys)}]`, with one bracket on each side"
    if place[-1:] == ("args",) or place[-1:] == ("when",):
        return "write { argument = value }"
    return ""
