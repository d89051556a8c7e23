"""Converts the frozen models back to plain data as a person writes it: no defaults filled in, checks in their short
form.

A model does not remember everything: whether an id was written or derived from the name (it is written), whether a
float was written as an integer (`5` for `5.0`), and that a schema was JSON text (only one with null needs to be).
"""

from __future__ import annotations

import json

from pydantic import BaseModel

from workbench.checks.check import CheckBase
from workbench.checks.value_kinds import Equals
from workbench.suite.render import Table

_ANY_JSON = frozenset({"equals", "one_of", "equals_text", "result", "results", "mock_result"})
"""Fields whose numbers are the author's own: there 5 and 5.0 are two values."""


def to_toml_data(model: BaseModel) -> Table:
    """Returns a suite, a case or any part of one as plain data; loading it gives an equal model. Raises ValueError for
    a null inside a value, which TOML lacks."""
    names = list(type(model).model_fields)
    if isinstance(model, CheckBase):
        names.sort(key=lambda name: name != model.kind)
    data: Table = {}
    for name in names:
        value = getattr(model, name)
        if name not in model.model_fields_set or name == "plain" or (value is None and name != "equals"):
            continue
        if name == "parameters" and _holds_null(value):
            data[name] = json.dumps(value, ensure_ascii=False)
        else:
            data[name] = _plain(value if name in _ANY_JSON else _short(value))
    return data


def _plain(value: object) -> object:
    match value:
        case Equals(plain=True):
            return _plain(value.equals)
        case BaseModel():
            return to_toml_data(value)
        case dict():
            return {key: _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case None:
            raise ValueError("TOML has no null: for an argument that is null, write { equals_null = true }")
        case _:
            return value


def _short(value: object) -> object:
    """Returns numbers of the format without `.0`, as people write them."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if isinstance(value, tuple):
        return tuple(map(_short, value))
    return value


def _holds_null(value: object) -> bool:
    if isinstance(value, dict | list):
        return any(map(_holds_null, value.values() if isinstance(value, dict) else value))
    return value is None
