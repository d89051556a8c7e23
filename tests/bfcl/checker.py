"""An independent implementation of the leaderboard's checker for Python calls, as a reference for the tests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Made = tuple[str, Mapping[str, Any]]
"""A call: the function's name, with `_` for dots, and its arguments."""

TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}


def is_right(
    functions: Sequence[Mapping[str, Any]], answers: Sequence[Mapping[str, Any]], made: Sequence[Made]
) -> bool:
    """Return whether calls match the answers. Each answer takes the first remaining call that fits it, and no call may
    be left."""
    if len(made) != len(answers):
        return False
    left = list(made)
    for answer in answers:
        [(name, values)] = answer.items()
        function = next(each for each in functions if each["name"] == name)
        found = next((call for call in left if call_is_right(function, values, call)), None)
        if found is None:
            return False
        left.remove(found)
    return True


def call_is_right(function: Mapping[str, Any], values: Mapping[str, Any], made: Made) -> bool:
    name, arguments = made
    parameters = function["parameters"]
    if name != function["name"].replace(".", "_") or any(each not in arguments for each in parameters["required"]):
        return False
    for argument, value in arguments.items():
        if argument not in parameters["properties"] or argument not in values:
            return False
        if not value_is_right(parameters["properties"][argument], values[argument], value):
            return False
    return all(argument in arguments or "" in accepted for argument, accepted in values.items())


def value_is_right(described: Mapping[str, Any], accepted: Sequence[Any], value: Any) -> bool:
    """Return whether an argument has its type and is among the accepted values."""
    kind = TYPES[described["type"]]
    inner = TYPES[described["items"]["type"]] if kind is list else None
    if described["type"] == "float" and type(value) is int:
        value = float(value)
    if not _type_is_right(value, accepted, kind, inner):
        return False
    written = _written_type(accepted)
    if (written is not None and written is not kind) or not _is(value, kind):
        return value in accepted
    if kind is dict:
        return any(each != "" and _dict_is_right(each, value) for each in accepted)
    if kind is list and inner is dict:
        return any(len(each) == len(value) and all(map(_dict_is_right, each, value)) for each in accepted)
    if kind is str:
        return standard(value) in [standard(each) for each in accepted if isinstance(each, str)]
    if kind is list:
        return [*map(standard, value)] in [[*map(standard, each)] for each in accepted]
    return value in accepted


def standard(value: Any) -> Any:
    """Return a text in lower case without blanks and punctuation. Other values stay as they are."""
    return re.sub(r"[ ,./\-_*^]", "", value).lower().replace("'", '"') if isinstance(value, str) else value


def _is(value: Any, kind: type | None) -> bool:
    return type(value) is kind


def _written_type(accepted: Sequence[Any]) -> type | None:
    return next((type(each) for each in accepted if each != ""), None)


def _type_is_right(value: Any, accepted: Sequence[Any], kind: type, inner: type | None) -> bool:
    if not _is(value, kind):
        return _is(value, _written_type(accepted))
    if inner is None:
        return True
    return any(
        not isinstance(each, list) or all(_type_is_right(item, each, inner, None) for item in value)
        for each in accepted
    )


def _dict_is_right(fields: Mapping[str, Sequence[Any]], value: Mapping[str, Any]) -> bool:
    return all(
        name in fields and standard(given) in [*map(standard, fields[name])] for name, given in value.items()
    ) and all(name in value or "" in accepted for name, accepted in fields.items())
