"""Runner for a file of Arcade evals, in the Python that it is written for: prints the suites in it as JSON.

`PYTHON arcade_runner.py FILE < FILE`: it needs nothing but the standard library and the imports of the file. Output of
the file itself goes to standard error.
"""

from __future__ import annotations

import asyncio
import datetime
import enum
import inspect
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

CRITICS = ("BinaryCritic", "NumericCritic", "SimilarityCritic", "DatetimeCritic", "NoneCritic")
OPTIONS = ("value_range", "match_threshold", "similarity_threshold", "metric", "tolerance", "max_difference")
RUBRIC = (
    "fail_threshold",
    "warn_threshold",
    "fail_on_tool_selection",
    "fail_on_tool_call_quantity",
    "tool_selection_weight",
)


def plain(value: Any) -> Any:
    """Return a value that JSON cannot express as one that it can: enumerations by value, times as ISO 8601."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return str(value)


def is_suite(value: object) -> bool:
    # By name: this file imports nothing but the standard library.
    return any(kind.__name__ == "EvalSuite" for kind in type(value).__mro__)


def built(function: Any) -> Any:
    """Return the suite that a function decorated with `@tool_eval` builds."""
    suite = inspect.unwrap(function)()
    if inspect.iscoroutine(suite):
        return asyncio.run(suite)
    return suite


def attributes_of(value: object, names: tuple[str, ...]) -> dict[str, Any]:
    """Return those attributes of a value that the file's version of Arcade knows."""
    found = {}
    for name in names:
        if hasattr(value, name):
            found[name] = getattr(value, name)
    return found


def critic_of(critic: Any) -> dict[str, Any]:
    names = [kind.__name__ for kind in type(critic).__mro__]
    weight = getattr(critic, "_original_weight", critic.weight)
    if isinstance(weight, enum.Enum):
        weight = weight.name.lower()
    found = {
        "critic": names[0] if names[0] in CRITICS else "custom",
        "class": names[0],
        "field": critic.critic_field,
        "weight": weight,
    }
    return found | attributes_of(critic, OPTIONS)


def case_of(case: Any) -> dict[str, Any]:
    return {
        "name": case.name,
        "system": case.system_message,
        "user": case.user_message,
        "messages": case.additional_messages,
        "calls": [{"tool": call.name, "args": call.args} for call in case.expected_tool_calls],
        "critics": list(map(critic_of, case.critics or [])),
        "rubric": attributes_of(case.rubric, RUBRIC),
    }


def suite_of(suite: Any) -> dict[str, Any]:
    tools = getattr(getattr(suite, "_internal_registry", None), "_tools", {})
    return {
        "name": suite.name,
        "tools": list(tools.values()),
        "cases": list(map(case_of, suite.cases)),
        "comparative": len(getattr(suite, "_comparative_case_builders", [])),
    }


def main(path: str) -> None:
    # Standard output is for the suites alone: from here on, the file's own prints go to standard error.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    source = sys.stdin.buffer.read()
    sys.path.insert(0, str(Path(path).resolve().parent))
    module = types.ModuleType("arcade_suite")
    module.__file__ = path
    sys.modules[module.__name__] = module
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    suites: list[Any] = []
    problems: list[dict[str, str]] = []
    for name, value in list(vars(module).items()):
        if is_suite(value):
            suites.append(value)
        elif getattr(value, "__tool_eval__", False) and getattr(value, "__module__", "") == module.__name__:
            try:
                suite = built(value)
            except Exception as error:  # noqa: BLE001 - whatever a file of the user raises
                problems.append({"name": name, "error": f"{type(error).__name__}: {error}"})
                continue
            suites.append(suite)
    # A decorated function may return a suite that is also a variable of the module.
    unique = list({id(suite): suite for suite in suites}.values())
    json.dump({"arcade_suites": list(map(suite_of, unique)), "problems": problems}, answer, default=plain)
    answer.flush()


if __name__ == "__main__":
    main(sys.argv[1])
