"""Cases and gradings for tests, written as in suites."""

from __future__ import annotations

from typing import Any

from workbench.suite.model import Case
from workbench.suite.settings import CriticsOptions, Grading


def call(tool: str, _args: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return an expected call. Without `_args`, the call has no `args`."""
    return {"tool": tool, **({} if _args is None else {"args": _args}), **more}


def case_of(*calls: dict[str, Any], **more: Any) -> Case:
    """Return a case with an ordered list of expected calls."""
    expected = {"ordered": list(calls)} if calls else {}
    return Case.model_validate({"name": "case", "user": "go", **expected, **more})


def critics(fail: float = 0.8, warn: float = 0.9, **options: Any) -> Grading:
    """Return a grading by critics with these options."""
    return Grading(fail_threshold=fail, warn_threshold=warn, critics=CriticsOptions(**options))


COMPATIBLE = critics(arcade_compatible=True)
QUANTITY_FREE = {"fail_on_tool_call_quantity": False, "fail_on_tool_selection": False}
