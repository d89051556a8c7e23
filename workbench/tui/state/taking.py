"""What a tool answered by hand, put into a case: as a mock that answers the same call again, or as an expected call."""

from __future__ import annotations

import json
from collections.abc import Mapping

from workbench.suite.checks import OPTION_NAMES, check_names_in
from workbench.suite.render import Table
from workbench.tools.answer import ToolAnswer
from workbench.trajectory.json_text import json_text
from workbench.trajectory.messages import JsonValue
from workbench.tui.state.form.tables import items_at, with_item, with_value


def case_with_mock(case: Table, tool: str, arguments: Mapping[str, JsonValue], answer: ToolAnswer) -> Table:
    """A case with a mock more, before those of the same tool that would answer in its place; one for the very same
    arguments is replaced."""
    mock: Table = {"tool": tool}
    if arguments:
        mock["when"] = {name: _expected(value) for name, value in arguments.items()}
    if answer.is_error:
        mock["error"] = answer.content
    else:
        mock["result"] = _result(answer.content)
    mocks = items_at(case, ("mocks",))
    same = [at for at, other in enumerate(mocks) if _is_of(other, tool)]
    for at in same:
        if isinstance(other := mocks[at], dict) and other.get("when") == mock.get("when"):
            return with_value(case, ("mocks", at), mock)
    return with_item(case, ("mocks", same[0] if same else len(mocks)), mock)


def case_expecting(case: Table, tool: str, arguments: Mapping[str, JsonValue]) -> Table:
    """A case that expects the call too, last of those in order. Raises ValueError for a case that cannot: a chain, or
    one that expects no calls."""
    if "steps" in case:
        raise ValueError("the case is a chain, whose steps expect one call each: put the call into a step")
    if case.get("expect_no_calls"):
        raise ValueError("the case expects that nothing is called: take that out first")
    call: Table = {"tool": tool, "args": {name: _expected(value) for name, value in arguments.items()}}
    return with_item(case, ("ordered", len(items_at(case, ("ordered",)))), call)


def _is_of(mock: object, tool: str) -> bool:
    return isinstance(mock, dict) and mock.get("tool") == tool


def _expected(value: JsonValue) -> object:
    """A value as the suite expects it; what TOML cannot say is expected to be given."""
    if value is None:
        return {"equals_null": True}
    if _has_null(value):
        return {"present": True}
    reads_as_check = isinstance(value, dict) and (check_names_in(value) or (value and OPTION_NAMES.issuperset(value)))
    return {"equals": value} if reads_as_check else value


def _result(content: str) -> object:
    """A table or list where the model would be given the very same text for it, else the text."""
    if content[:1] not in ("{", "["):
        return content
    try:
        value: JsonValue = json.loads(content)
        if _has_null(value) or json_text(value) != content:
            return content
    except (ValueError, RecursionError):
        return content
    return value


def _has_null(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))
    return any(map(_has_null, value)) if isinstance(value, list) else value is None
