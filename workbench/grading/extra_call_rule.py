"""The rule of a case about extra calls, applied to one run."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.dataclasses import dataclass
from workbench.suite.expected_calls import ANY_TOOL, same_tool
from workbench.suite.grading_model import ExtraCalls
from workbench.trajectory.trajectory import CallRecord


@dataclass(frozen=True, slots=True)
class ExtraCallRule:
    """The rule of a case about extra calls (calls that no expectation needs), applied to one run.

    `written` is the suite's `extra_calls`, or `None` if the grader's own rule applies. `read_only` names the tools
    whose extra calls cost nothing with "allow_read_only". `corrected` holds the indices of calls that were refused for
    their arguments and then corrected. These calls did nothing, so they cost nothing, whatever their tool."""

    written: ExtraCalls | None
    read_only: frozenset[str] = frozenset()
    corrected: frozenset[int] = frozenset()

    def is_free(self, call: int, tool: str) -> bool:
        """Return whether a call costs nothing if it turns out to be an extra call."""
        return self.written == "allow" or call in self.corrected or self.is_free_tool(tool)

    def free_calls(self, calls: Sequence[CallRecord]) -> frozenset[int]:
        """Return the indices of the calls that cost nothing if they turn out to be extra calls."""
        if self.frees_none:
            return frozenset()
        return frozenset([index for index, record in enumerate(calls) if self.is_free(index, record.tool)])

    @property
    def frees_none(self) -> bool:
        """Whether no call can be free, whatever its tool."""
        return self.written in (None, "forbid") and not self.corrected

    def is_free_tool(self, tool: str) -> bool:
        """Return whether all extra calls of a tool cost nothing because the tool is listed or read-only."""
        match self.written:
            case "allow_read_only":
                return tool in self.read_only
            case "allow" | "forbid" | None:
                return False
            case names:
                return any(name == ANY_TOOL or same_tool(name, tool) for name in names)

    @property
    def failure_reason(self) -> str | None:
        """The reason why an extra call fails the run, or `None` if extra calls never fail it."""
        match self.written:
            case "allow" | None:
                return None
            case "forbid":
                return "extra calls are forbidden"
            case "allow_read_only":
                return 'extra_calls = "allow_read_only", and the tool is not annotated as read-only'
            case names:
                return f"extra_calls lists {', '.join(names) or 'no tool'} only"
