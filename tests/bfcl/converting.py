"""Rows of the Berkeley Function Calling Leaderboard as cases of a suite.

A row is what its two files of JSON lines say of one id: `question` and `function`, and the `ground_truth` of
`possible_answer`. Categories with simulated APIs (multi-turn, memory, web search) are judged by the state of the
simulation, which no suite has: of a multi-turn row, only the first turn is taken.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from workbench.exchange.importers.bfcl import json_schema_of

Row = Mapping[str, Any]
Table = dict[str, Any]

MOST_ANSWERS = 64
"""Whole values that an argument with inner alternatives is written out as."""

GRADING: Table = {"by": "trajectory"}
"""The grading that comes nearest to the leaderboard's: all or nothing, each call once, in any order."""

_PYTHON_TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}
_LEAVE_OUT = ""
"""Among the accepted values of a parameter: it may be left out."""


class UnconvertibleError(ValueError):
    """A row that no case can say; the message says why."""


def suite_of(name: str, cases: Sequence[Table]) -> Table:
    """A suite of cases, as TOML would have it."""
    return {"format": 1, "name": name, "grading": GRADING, "cases": list(cases)}


def case_of(row: Row, answers: Sequence[Mapping[str, Any]] | None = None, category: str = "") -> Table:
    """The case of a row; without `answers` nothing may be called, or, in `relevance`, something must be.

    Raises UnconvertibleError.
    """
    *before, last = row["question"][0]
    case: Table = {
        "id": row["id"],
        "name": row["id"],
        "user": last["content"],
        "tools": [tool_of(function) for function in row["function"]],
        "limits": {"max_rounds": 1},
    }
    if system := "\n\n".join(message["content"] for message in before if message["role"] == "system"):
        case["system"] = system
    if history := [message for message in before if message["role"] != "system"]:
        case["messages"] = history
    if answers is None:
        return case | ({"ordered": [{"tool": "*"}]} if category == "relevance" else {"expect_no_calls": True})
    functions = {function["name"]: function for function in row["function"]}
    calls = [_call(functions[name], values) for answer in answers for name, values in answer.items()]
    return case | {"unordered": calls, "extra_calls": "forbid"}


def first_turn_of(row: Row, functions: Sequence[Mapping[str, Any]], turns: Sequence[Sequence[str]]) -> Table:
    """The first turn of a multi-turn row. Its calls must be made in order; others, such as looks around, may be."""
    by_name = {function["name"]: function for function in functions}
    case = case_of({**row, "function": list(functions)})
    del case["expect_no_calls"], case["limits"]
    return case | {"ordered": [_written_call(text, by_name) for text in turns[0]]}


def tool_of(function: Mapping[str, Any]) -> Table:
    """A function's description as a tool. Dots are no part of names for most providers, and become `_`."""
    parameters = json_schema_of(function["parameters"])
    holds_null = "null" in json.dumps(parameters)
    return {
        "name": function["name"].replace(".", "_"),
        "description": function["description"],
        "parameters": json.dumps(parameters) if holds_null else parameters,
    }


def _call(function: Mapping[str, Any], values: Mapping[str, Any]) -> Table:
    properties = function["parameters"]["properties"]
    required = function["parameters"].get("required", ())
    args = {}
    for name, accepted in values.items():
        if name in properties and (checks := list(_checks(properties[name], accepted))):
            check: Table = checks[0] if len(checks) == 1 else {"any_of": checks}
            if _LEAVE_OUT in accepted and name not in required:
                check = {**check, "optional": True}
            args[name] = check
    return {"tool": function["name"].replace(".", "_"), "args": args, "only_args": True}


def _checks(described: Mapping[str, Any], accepted: Sequence[Any]) -> Iterator[Table]:
    """A check for each value that is accepted; none of a parameter that must be left out."""
    kind = _PYTHON_TYPES[described["type"]]
    written = next((type(value) for value in accepted if value != _LEAVE_OUT), None)
    # A value of another type than the function has stands for a variable, and is compared to the letter.
    exact = written is not None and written is not kind
    inner = _PYTHON_TYPES[described["items"]["type"]] if kind is list and not exact else None
    for value in accepted:
        if value == _LEAVE_OUT:
            if exact and str in (kind, written):
                yield _exactly(value)
            elif not exact and kind in (str, list):
                yield {"equals_text": kind()}
        elif exact or kind not in (str, list, dict):
            yield _exactly(value)
        elif kind is dict or inner is dict:
            whole = [_whole_values(value)] if kind is dict else [_whole_values(each) for each in value]
            for each in _each_combination(whole):
                yield {"equals_text": each[0] if kind is dict else list(each)}
        else:
            yield {"equals_text": _sayable(value)}


def _exactly(value: Any) -> Table:
    return {"equals_null": True} if value is None else {"equals": _sayable(value), "cast": False}


def _whole_values(fields: Mapping[str, Sequence[Any]]) -> list[Table]:
    """All tables that have one of the accepted values in each field."""
    choices = []
    for name, accepted in fields.items():
        choices.append([{name: _sayable(value)} for value in accepted] + [{}] * (_LEAVE_OUT in accepted))
    return [{key: value for field in chosen for key, value in field.items()} for chosen in _each_combination(choices)]


def _each_combination(choices: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    count = 1
    for each in choices:
        count *= len(each)
    if count > MOST_ANSWERS:
        raise UnconvertibleError(f"an argument has {count} accepted values")
    return list(product(*choices))


def _sayable(value: Any) -> Any:
    if "null" in json.dumps(value):
        raise UnconvertibleError("null inside a value")
    return value


def _written_call(text: str, functions: Mapping[str, Mapping[str, Any]]) -> Table:
    """A call written as Python; arguments without names are those of the function in their order."""
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    names = list(functions[call.func.id]["parameters"]["properties"])
    given = dict(zip(names, call.args, strict=False)) | {each.arg: each.value for each in call.keywords}
    args = {name: _exactly(ast.literal_eval(value)) for name, value in given.items() if name is not None}
    return {"tool": call.func.id, "args": args, "only_args": True}
