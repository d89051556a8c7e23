"""Applies a case's rule about surplus calls, which no expectation accounts for: which are free, which are wrong.

A free call is left out before a grader compares the calls with the expected ones, and is shown beside its result. So
the grader's score, status and reasons are those of a run without it. `trajectory` ignores surplus calls by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from workbench.checks.check import CheckContext, EqualsRule, evaluate
from workbench.dataclasses import dataclass
from workbench.grading.grade import CallPairing, Grade, Issue, PublishedGrade
from workbench.grading.pairing import MAX_PAIRS, NOT_ALL_COMPARED, best_pairing
from workbench.grading.status import Status
from workbench.grading.valid_arguments import check_calls
from workbench.suite.model import ANY_TOOL, Case, ExpectedCall, ExtraCalls, GraderName
from workbench.suite.settings import Grading, extra_calls_of, surplus_rule
from workbench.suite.tool_names import ToolRegistry, is_meant, same_tool
from workbench.trajectory.events import ToolDefinition
from workbench.trajectory.trajectory import CallRecord, Trajectory

ALLOWED = "extra, allowed"
"""The outcome of a surplus call that costs nothing."""


@dataclass(frozen=True, slots=True)
class ExtraCallRule:
    """The rule of one case for one run. `written` is `None` where the grader's own rule counts; `read_only` are the
    names of the tools that "allow_read_only" means, `corrected` are the calls, by index, that were refused for their
    arguments and then corrected: they did nothing, so no list has to name their tools."""

    written: ExtraCalls | None
    read_only: frozenset[str] = frozenset()
    corrected: frozenset[int] = frozenset()

    def frees(self, call: int, tool: str) -> bool:
        """Return whether a call is free if it is surplus."""
        return self.written == "allow" or call in self.corrected or self.is_free_tool(tool)

    def is_free_tool(self, tool: str) -> bool:
        """Return whether the rule picks out a tool whose surplus calls are free: by its name, or as read-only."""
        match self.written:
            case "allow_read_only":
                return tool in self.read_only
            case "allow" | "forbid" | None:
                return False
            case names:
                return any(name == ANY_TOOL or same_tool(name, tool) for name in names)

    @property
    def why_wrong(self) -> str | None:
        """Why a surplus call that is not free fails the run, `None` where it does not."""
        match self.written:
            case "allow" | None:
                return None
            case "forbid":
                return "extra calls are forbidden"
            case "allow_read_only":
                return 'extra_calls = "allow_read_only", and the tool is not annotated as read-only'
            case names:
                return f"extra_calls lists {', '.join(names) or 'no tool'} only"


def rule_of(case: Case, grading: Grading, trajectory: Trajectory) -> ExtraCallRule:
    """Return the rule that a case has for a run."""
    written = extra_calls_of(case, grading)
    if written in ("allow", "forbid", None):
        return ExtraCallRule(written)
    read_only = _read_only(trajectory) if written == "allow_read_only" else frozenset()
    return ExtraCallRule(written, read_only, _corrected(trajectory))


def _corrected(trajectory: Trajectory) -> frozenset[int]:
    if not any(record.result is not None and record.result.is_error for record in trajectory.calls):
        return frozenset()
    return frozenset(index for index, check in enumerate(check_calls(trajectory)) if check.corrected)


def _read_only(trajectory: Trajectory) -> frozenset[str]:
    """Return the names of the offered tools that are annotated as read-only (MCP's `readOnlyHint`)."""
    found = [tool.name for tool in _offered(trajectory) if tool.annotations.get("readOnlyHint") is True]
    # Providers that allow no dots in names get underscores, and models answer with them.
    return frozenset([*found, *(name.replace(".", "_") for name in found)])


def _offered(trajectory: Trajectory) -> tuple[ToolDefinition, ...]:
    return trajectory.start.tools if trajectory.start is not None else ()


def graded_without_free_calls(
    by: GraderName,
    case: Case,
    grading: Grading,
    trajectory: Trajectory,
    grade: Callable[[Trajectory], Grade],
    *,
    equal: EqualsRule,
    context: CheckContext,
) -> Grade:
    """Grade a run by `grade` as if its free surplus calls had not been made. Modes that compute as published free none.

    Raises CheckError when a check cannot be evaluated.
    """
    rule = rule_of(case, grading, trajectory)
    calls, expected = trajectory.calls, case.expected_calls()
    candidates = frozenset(index for index, record in enumerate(calls) if rule.frees(index, record.tool))
    whole = grade(trajectory)
    if not candidates or _computes_as_published(by, grading):
        return whole
    # `trajectory` itself ignores free calls, unless one of them has taken the place of another call.
    may_displace = bool(rule.corrected) or any(each.is_any for each in expected)
    if by == "trajectory" and (whole.verdict == Status.PASSED or not may_displace):
        return whole
    registry = ToolRegistry(_offered(trajectory) if by == "critics" else ())
    surplus = _Surplus(expected, calls, candidates, equal, context, registry)
    free = surplus.calls(in_order=_compares_places(by, case, grading))
    if not free:
        return whole
    kept = [index for index in range(len(calls)) if index not in free]
    found = _in_the_run(grade(_without(trajectory, free)), kept)
    lines = (*found.pairings, *(CallPairing(None, call, False, 0.0, 0.0, outcome=ALLOWED) for call in sorted(free)))
    reason = f"{found.reason}; surplus calls that extra_calls frees: {len(free)}"
    if not surplus.all_compared:
        reason += f"; {NOT_ALL_COMPARED}"
    published = PublishedGrade._make(whole[: len(PublishedGrade._fields)])
    return found._replace(pairings=lines, reason=reason, published=published)


def _computes_as_published(by: GraderName, grading: Grading) -> bool:
    if by == "dimensions":
        return grading.dimensions.repeated_calls == "as published"
    return by == "critics" and grading.critics.arcade_compatible


def _compares_places(by: GraderName, case: Case, grading: Grading) -> bool:
    """Return whether the order of the calls counts as a whole."""
    if by == "trajectory":
        return not case.unordered and all(isinstance(item, ExpectedCall) for item in case.ordered)
    return by == "decision" or (by == "accuracy" and grading.accuracy.mode == "exact")


class _Surplus:
    """Finds which calls of free tools are surplus: those that are left when as many expectations as possible have the
    call that meets them best. A tool has no more surplus calls than were made beyond the expected ones."""

    def __init__(
        self,
        expected: Sequence[ExpectedCall],
        calls: Sequence[CallRecord],
        candidates: frozenset[int],
        equal: EqualsRule,
        context: CheckContext,
        registry: ToolRegistry,
    ) -> None:
        self._expected = expected
        self._calls = calls
        self._candidates = candidates
        self._equal = equal
        self._context = context
        self._registry = registry
        self.all_compared = True

    def calls(self, *, in_order: bool) -> frozenset[int]:
        """Return the surplus calls by their index. With `in_order`, the grader compares calls place by place."""
        rows, columns = range(len(self._expected)), range(len(self._calls))
        if not any(is_meant(self._expected[row], self._calls[call].tool) for row in rows for call in self._candidates):
            return self._candidates
        if len(rows) * len(columns) > MAX_PAIRS:
            self.all_compared = False
            pairs: dict[int, int] = {}
        else:
            gains = [[self._gain(row, column) for column in columns] for row in rows]
            found = _best_in_order(gains) if in_order else best_pairing(gains)
            pairs = {row: column for row, column in found if gains[row][column]}
        left = [call for call in sorted(self._candidates) if call not in pairs.values()]
        # A call whose expectation has no call is in the wrong place, not one too many.
        for row in rows:
            if row not in pairs:
                waiting = next((call for call in left if is_meant(self._expected[row], self._calls[call].tool)), None)
                if waiting is not None:
                    left.remove(waiting)
        return frozenset(left)

    def _gain(self, row: int, column: int) -> int:
        """Return how well a call serves as the expected one, 0 for another tool. Calls that fit count most, then calls
        that are not free, because they would be wrong as surplus ones, then how nearly a call fits."""
        wanted, record = self._expected[row], self._calls[column]
        if not is_meant(wanted, record.tool):
            return 0
        rows = len(self._expected) + 1
        near, fits = self._nearness(wanted, record)
        return ((fits * rows) + (column not in self._candidates)) * rows * _NEAREST + near

    def _nearness(self, wanted: ExpectedCall, record: CallRecord) -> tuple[int, bool]:
        """Return how nearly a call fits, from 1 to `_NEAREST`, and whether it fits."""
        if record.is_broken:
            return 1, False
        arguments = self._registry.filled(record.tool, record.arguments)
        scores = []
        fits = not wanted.unwanted(record.arguments)
        for name, check in (wanted.args or {}).items():
            verdict = evaluate(check, arguments.get(name), name in arguments, equal=self._equal, context=self._context)
            score = min(max(verdict.score, 0.0), 1.0)
            scores.append(score if verdict.holds else score / 2)
            fits = fits and verdict.holds
        unlisted = len(record.arguments.keys() - (wanted.args or {}).keys())
        if wanted.args == {} and unlisted:
            fits = False
        share = sum(scores) / len(scores) if scores else 1.0
        return 1 + int(share * (_NEAREST - _MAX_UNLISTED - 1)) + _MAX_UNLISTED - min(unlisted, _MAX_UNLISTED), fits


_NEAREST = 100_000
_MAX_UNLISTED = 1_000


def _best_in_order(gains: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Pair rows with columns, both in their order, with the largest sum of gains: the alignment of two sequences."""
    rows, columns = len(gains), len(gains[0]) if gains else 0
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in reversed(range(rows)):
        for column in reversed(range(columns)):
            together = gains[row][column] + best[row + 1][column + 1]
            best[row][column] = max(together, best[row + 1][column], best[row][column + 1])
    pairs = []
    row = column = 0
    while row < rows and column < columns:
        if gains[row][column] and best[row][column] == gains[row][column] + best[row + 1][column + 1]:
            pairs.append((row, column))
            row, column = row + 1, column + 1
        elif best[row][column] == best[row][column + 1]:
            column += 1
        else:
            row += 1
    return pairs


def _without(trajectory: Trajectory, calls: Collection[int]) -> Trajectory:
    """Return a trajectory without some of its calls, by their index."""
    rounds, first = [], 0
    for each in trajectory.rounds:
        kept = tuple(record for index, record in enumerate(each.calls, first) if index not in calls)
        first += len(each.calls)
        rounds.append(replace(each, calls=kept))
    return replace(trajectory, rounds=tuple(rounds))


def _in_the_run(grade: Grade, kept: Sequence[int]) -> Grade:
    """Return the grade of a part of the calls with these counted in the whole run."""
    return grade._replace(
        pairings=tuple(line if line.call is None else line._replace(call=kept[line.call]) for line in grade.pairings),
        issues=tuple(issue if issue.call is None else issue._replace(call=kept[issue.call]) for issue in grade.issues),
    )


def with_way_out(grade: Grade, case: Case, grading: Grading, trajectory: Trajectory) -> tuple[Issue, ...]:
    """Return the issues of a grade. Where the grader's own rule counts a surplus call, its issue names the key that
    frees it."""
    if extra_calls_of(case, grading) is not None or not case.expected_calls() or case.steps or grading.is_compatible:
        return grade.issues
    costs = f"under `{grade.grader}` {surplus_rule(grading, grade.grader)}"
    refused = Counter(trajectory.calls[call].tool for call in _corrected(trajectory))
    surplus = Counter(issue.tool for issue in grade.issues if issue.kind == "extra call")
    free = _read_only(trajectory) | {tool for tool, count in refused.items() if surplus[tool] <= count}
    return tuple(
        issue if issue.kind != "extra call" or issue.decides else _with_key(issue, costs, free)
        for issue in grade.issues
    )


def _with_key(issue: Issue, costs: str, free: Collection[str]) -> Issue:
    """Name the key that frees a surplus call; for the tools `free`, "allow_read_only" does."""
    key = '"allow_read_only"' if issue.tool in free else f'["{issue.tool}"]'
    return issue._replace(why=f"{issue.why}: {costs}; extra_calls = {key} frees it")
