"""Names the calls of tools that do not exist."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.grading.grade import Issue
from workbench.grading.tool_names import is_offered
from workbench.grading.tool_residue import meant_tool
from workbench.suite.model import Case
from workbench.trajectory.trajectory import Trajectory


def unknown_tools(case: Case, trajectory: Trajectory) -> Iterator[Issue]:
    """Yield the calls of names that no offered tool has, where the case does not name them either. They decide nothing
    by themselves: the score and the requirements say what such a call costs."""
    tools = trajectory.start.tools if trajectory.start is not None else ()
    if not tools or all(is_offered(record.tool, tools) for record in trajectory.calls):
        return

    names = [tool.name for tool in tools]
    written = {call.tool for call in (*case.expected_calls(), *case.disallowed)}
    for index, record in enumerate(trajectory.calls):
        name = record.tool
        if name in written or is_offered(name, tools) or meant_tool(name, names) is not None:
            continue
        nearest = _nearest(name, names)
        hint = f"; the nearest is {nearest}" if nearest is not None else ""
        yield Issue("unknown tool", f"no tool has this name{hint}", tool=name, call=index)


def _nearest(name: str, names: list[str]) -> str | None:
    """Return the name that is most like another one; `None` where none is like it."""
    from rapidfuzz import fuzz, process  # on use: most runs call tools that exist

    found = process.extractOne(name, names, scorer=fuzz.WRatio, processor=str.lower, score_cutoff=60)
    return found[0] if found is not None else None
