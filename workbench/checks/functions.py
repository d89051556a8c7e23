"""Checks as Python functions, one for each kind: `contains("vacation")` returns `{"contains": "vacation"}`.

A function returns the check as a suite writes it. Checks from functions therefore nest and are validated like checks in
a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from inspect import Parameter, Signature
from typing import Any

from workbench.checks.check import CHECK_CLASSES, CheckBase
from workbench.checks.values import json_text
from workbench.startup import late_pattern

WrittenTable = dict[str, Any]
"""A check as a suite writes it: `{"near": 5, "tolerance": 0.5}`."""


@cache
def check_function(kind: str) -> Callable[..., WrittenTable]:
    r"""Return the function that writes checks of a kind. Raise KeyError for an unknown kind.

    The expected value is positional: several values for a list, two for a range, names for fields. The options of the
    kind are keywords.

    >>> check_function("near")(5, tolerance=0.5)
    {'near': 5, 'tolerance': 0.5}
    >>> check_function("any_of")("Oslo", check_function("prefix")("Berg"))
    {'any_of': ['Oslo', {'prefix': 'Berg'}]}
    """
    check = CHECK_CLASSES[kind]
    reads = check.editor(kind).input_kind
    values = _VALUES.get(reads, _ONE_VALUE)
    options = [name for name in check.model_fields if name not in (kind, "plain")]
    named = [Parameter(name, Parameter.KEYWORD_ONLY, default=check.model_fields[name].default) for name in options]
    others = [each for each in values if each.kind is Parameter.VAR_KEYWORD]
    signature = Signature([*(each for each in values if each not in others), *named, *others])

    def written(*arguments: object, **keywords: object) -> WrittenTable:
        try:
            given = signature.bind(*arguments, **keywords).arguments
        except TypeError as error:
            raise TypeError(f"the check {kind}: {error}; call it as {kind}{signature}") from None
        table: WrittenTable = {kind: _expected(reads, given)}
        for name in options:
            if name in given:
                table[name] = given[name]
        return table

    written.__name__ = written.__qualname__ = kind
    written.__doc__ = _documentation(check)
    written.__signature__ = signature  # type: ignore[attr-defined]
    return written


_ONE_VALUE = (Parameter("value", Parameter.POSITIONAL_ONLY),)
_VALUES: Mapping[str, tuple[Parameter, ...]] = {
    "checks": (Parameter("values", Parameter.VAR_POSITIONAL),),
    "values": (Parameter("values", Parameter.VAR_POSITIONAL),),
    "fields": (
        Parameter("fields", Parameter.POSITIONAL_ONLY, default={}),
        Parameter("named", Parameter.VAR_KEYWORD),
    ),
    "range": (Parameter("low", Parameter.POSITIONAL_ONLY), Parameter("high", Parameter.POSITIONAL_ONLY)),
    "length": (
        Parameter("length", Parameter.POSITIONAL_ONLY),
        Parameter("most", Parameter.POSITIONAL_ONLY, default=None),
    ),
    "nothing": (),
    "presence": (Parameter("given", Parameter.POSITIONAL_ONLY, default=True),),
}
"""The parameters of the expected value, by the form's kind of input."""


def _expected(reads: str, given: Mapping[str, Any]) -> object:
    match reads:
        case "checks" | "values":
            values = given.get("values", ())
            if len(values) == 1 and isinstance(values[0], list | tuple):
                (values,) = values
            return [as_written(each) if reads == "checks" else each for each in values]
        case "fields":
            fields = {**given.get("fields", {}), **given.get("named", {})}
            return {name: as_written(each) for name, each in fields.items()}
        case "check":
            return as_written(given["value"])
        case "range":
            return [given["low"], given["high"]]
        case "length" if given.get("most") is not None:
            return [given["length"], given["most"]]
        case "length":
            return given["length"]
        case "nothing":
            return True
        case "presence":
            return given.get("given", True)
        case _:
            return given["value"]


def as_written(value: object) -> object:
    """Return an expected value in its TOML form. TOML has no null, so a null at any depth is written as a check."""
    if value is None:
        return {"equals_null": True}
    if isinstance(value, Mapping):
        return {name: as_written(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        if any(inner is None for inner in value):
            return {"same_elements": [as_written(inner) for inner in value], "in_order": True}
        return [*value]
    return value


def _documentation(check: type[CheckBase]) -> str:
    lines = [f"{check.meaning[:1].upper()}{check.meaning[1:]}.", "", f"In a suite: `{check.written}`."]
    lines += _option_lines(check)
    return "\n".join(lines)


def _option_lines(check: type[CheckBase]) -> Iterator[str]:
    for name, meaning in check.options.items():
        default = check.model_fields[name].default
        ending = ""
        if default is not None:
            ending = f" (default {json_text(default)})"
        yield _LINK.sub(r"\1", f"`{name}`: {meaning}{ending}")


_LINK = late_pattern(r"\[([^]]*)\]\([^)]*\)")
