"""Audits a suite for faults that its cases cannot detect, and for expectations that can never be met.

The suite's own graders grade each case on the runs of imagined agents. A case is too lenient if an agent that
understands nothing passes. A case demands the impossible if an agent that does exactly as expected fails. No model is
called."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, cast

from workbench.analysis.audit.contradictions import (
    CONTRADICTION_KINDS,
    AuditFinding,
    AuditKind,
    ToolTable,
    Weight,
    audit_calls,
    audit_case_mocks,
    audit_suite_mocks,
)
from workbench.analysis.audit.imagined_agents import (
    ACCEPT_ALL_CONTEXT,
    DEFAULT_STRATEGY,
    REFUSE_ALL_CONTEXT,
    CallStrategy,
    ExactAgent,
    MutatedAgent,
    careless_agents,
    exact_agent,
    mutated_agents,
    other_strategies,
)
from workbench.analysis.audit.vacuous_checks import vacuous_checks, vacuous_gates
from workbench.analysis.gates import TOLERANCE, gate_holds, statistic
from workbench.analysis.measures import SCORE, measure_of
from workbench.checks.check import Check, NeverHoldsError
from workbench.checks.patterns import CheckError
from workbench.checks.values import describe_value, json_equal
from workbench.dataclasses import dataclass
from workbench.grading.grade import Grade, GradingError
from workbench.grading.requirements import extra_call_rule_of
from workbench.grading.run import grade_by
from workbench.grading.status import Status
from workbench.numerals import figure, mean_text, score_text
from workbench.suite.grading_model import Aggregate, GraderName
from workbench.suite.model import Case, Suite
from workbench.suite.problems import Place, ProblemKind, place_text
from workbench.suite.settings import CaseSettings, settings_of
from workbench.suite.suite_file import SuiteFile
from workbench.tools.listings import Listing
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.json_schema import properties_of, resolved
from workbench.trajectory.trajectory import Trajectory

# The coverage of tools, parameters and enum values by the cases of a suite.


@dataclass(frozen=True, slots=True)
class CoverageShare:
    """The number of covered tools, parameters or values, and the names of those that are not covered."""

    covered: int
    total: int
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """The tools, parameters and enum values that the cases cover. Skipped cases cover nothing.

    A parameter is named `tool.parameter`, and a value is named `tool.parameter = value`. Both are counted only for
    covered tools."""

    tools: CoverageShare
    parameters: CoverageShare
    values: CoverageShare

    @property
    def shares(self) -> tuple[tuple[str, CoverageShare], ...]:
        """The coverage of tools, parameters and enum values, each with its name.

        A coverage with a total of 0 is left out, for example if no tool has enum values."""
        named = (("tools", self.tools), ("parameters", self.parameters), ("enum values", self.values))
        return tuple(entry for entry in named if entry[1].total)


def coverage_of(cases: Iterable[Case], table: ToolTable) -> Coverage:
    """Return the coverage of a table's tools by the cases. A disallowed call covers its tool but no parameter."""
    checks: dict[str, list[tuple[str, Check]]] = {}
    for case in cases:
        if case.skip is not None:
            continue
        own_tools = {tool.name for tool in case.tools}
        for place, call in case.written_calls():
            # A case's own tool replaces the suite's tool of the same name. Calls of the case's tool do not cover the
            # suite's tool.
            if call.tool is None or call.tool in own_tools:
                continue
            tool = table.find(call.tool)
            if tool is None:
                continue
            of_tool = checks.setdefault(tool.name, [])
            if place[0] != "disallowed":
                of_tool += (call.args or {}).items()
    parameters: list[tuple[str, bool]] = []
    values: list[tuple[str, bool]] = []
    for tool in table.tools:
        if tool.name in checks:
            own = checks[tool.name]
            parameters += _parameters(tool, own)
            values += _values(tool, own)
    return Coverage(
        _share([(tool.name, tool.name in checks) for tool in table.tools]), _share(parameters), _share(values)
    )


def _parameters(tool: ToolDefinition, checks: Sequence[tuple[str, Check]]) -> Iterator[tuple[str, bool]]:
    checked = {name for name, _ in checks}
    for name in properties_of(tool.parameters):
        yield f"{tool.name}.{name}", name in checked


def _values(tool: ToolDefinition, checks: Sequence[tuple[str, Check]]) -> Iterator[tuple[str, bool]]:
    for name, parameter in properties_of(tool.parameters).items():
        choices = resolved(parameter, tool.parameters).get("enum")
        if isinstance(choices, list):
            expected: list[JsonValue] = []
            for argument, check in checks:
                if argument == name:
                    expected += check.listed or ()
            for choice in choices:
                place = f"{tool.name}.{name} = {describe_value(choice)}"
                yield place, any(json_equal(choice, value) for value in expected)


def _share(outcomes: Sequence[tuple[str, bool]]) -> CoverageShare:
    missing = []
    for name, covered in outcomes:
        if not covered:
            missing.append(name)
    return CoverageShare(len(outcomes) - len(missing), len(outcomes), tuple(missing))


_HIGHER_IS_BETTER: tuple[Literal["mean", "median", "minimum", "maximum"], ...] = (
    "mean",
    "median",
    "minimum",
    "maximum",
)
"""The statistics for which larger is better."""

_REPEATED: Mapping[ProblemKind, AuditKind] = {
    "unknown tool": "unknown tool",
    "tool of the subject": "unknown tool",
    "order ignored": "unnoticed",
}
"""Kinds of warnings of a suite, each with the kind of the audit's findings that only repeat them."""

_MAX_CALLS_GRADED = 5_000
"""The most mutant calls graded for one case. Grading this many calls takes a quarter of a second."""

_MAX_REASONS = 3
"""The most reasons in the finding that no run can pass a case."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The findings in a suite, and the coverage of its tools."""

    findings: tuple[AuditFinding, ...]
    coverage: Coverage


def audit_suite(suite: Suite, listings: Mapping[str, Listing]) -> Audit:
    """Audit a valid suite, without starting a server or calling a model or judge.

    `listings` holds the last known tools of each server, by the server's name."""
    table = ToolTable.of(suite, listings)
    return Audit(tuple(_findings(suite, table)), coverage_of(suite.cases, table))


def _findings(suite: Suite, table: ToolTable) -> Iterator[AuditFinding]:
    for name in table.unlisted:
        number = next(index for index, server in enumerate(suite.servers) if server.name == name)
        message = f"the tools of the server {name!r} are unknown, so names and values were not checked"
        yield AuditFinding("not looked at", "note", ("servers", number), message, "`workbench tools` asks the server")
    yield from audit_suite_mocks(suite, table.of_cases(suite.cases))
    templates: set[str | None] = {None}
    for index, case in enumerate(suite.cases):
        yield from audit_case(suite, index, table, with_mutants=case.template not in templates or case.template is None)
        templates.add(case.template)
    yield from vacuous_gates(suite)
    yield from _gate(suite, table)
    yield from _aggregates(suite, table)


def audit_case(suite: Suite, index: int, table: ToolTable, *, with_mutants: bool = True) -> Iterator[AuditFinding]:
    """Audit one case of a valid suite, even a skipped one.

    A case that has `expect_nothing_yet` has no findings. All rows of a case have the same expectations, so pass
    `with_mutants` for one row only."""
    case = suite.cases[index]
    if case.expects_nothing_yet:
        return
    table = table.of_cases([case])
    place: Place = ("cases", index)
    settings = settings_of(suite, case)
    found = [*audit_calls(case, place, table), *audit_case_mocks(case, place, table)]
    found += vacuous_checks(case, place, table)
    if not any(finding.kind in CONTRADICTION_KINDS for finding in found):
        found += _out_of_reach(case, place, settings, table)
    if case.skip is None and with_mutants:
        found += _careless(case, place, settings, table)
        # If a case has a more severe finding, many mutants pass for the same reason. Findings on these mutants would
        # only repeat the more severe finding.
        if not any(finding.weight == "warning" and finding.kind != "cannot fail" for finding in found):
            found += _unnoticed(case, place, settings, table)
    yield from found


def findings_without_warning(file: SuiteFile, findings: Iterable[AuditFinding]) -> tuple[AuditFinding, ...]:
    """Return the findings that no warning of the suite already reports, each once, in the order of the file."""
    reported = set()
    for problem in file.warnings:
        reported.add((problem.where, problem.message))
        if (kind := _REPEATED.get(problem.kind)) is not None:
            reported.add((problem.where, kind))
    found: dict[object, AuditFinding] = {}
    for each in findings:
        where = place_text(file.place_in_text(each.place))
        if reported.isdisjoint(((where, each.kind), (where, each.message))):
            # If several rows of a case have the same finding, only the first row reports it.
            found.setdefault((where, each.kind, each.message, each.hint), each)
    return tuple(sorted(found.values(), key=lambda each: file.line_of(each.place)))


def _out_of_reach(case: Case, place: Place, settings: CaseSettings, table: ToolTable) -> Iterator[AuditFinding]:
    for way in (DEFAULT_STRATEGY, *other_strategies(case)):
        grade = _best(case, settings, table, strategy=way)
        if grade is not None and grade.status not in (Status.PASSED, Status.ERROR):
            yield _missed(case, place, grade, way)
            return
        agent = _exact(case, settings, table, way)
        made = 0 if agent is None else sum(map(len, agent.calls))
        if case.at_most is not None and case.at_most.calls is not None and made > case.at_most.calls:
            message = f"not every expected run can pass: one {way.name} makes {made} calls"
            yield AuditFinding("out of reach", "warning", (*place, "at_most", "calls"), message, "", case.id)
            return


def _missed(case: Case, place: Place, grade: Grade, strategy: CallStrategy) -> AuditFinding:
    none, one = "no run can pass", f"one {strategy.name}"
    if strategy is not DEFAULT_STRATEGY:
        none, one = "an expected run cannot pass", f"a run {strategy.name}"
    why = [issue.why for issue in grade.issues][:_MAX_REASONS] or [grade.reason]
    score = ""
    if grade.score is not None:
        score = f" with {score_text(grade.score)}"
    if grade.status == Status.FAILED:
        message = f"{none}: {one} fails{score} ({'; '.join(dict.fromkeys(why))})"
        return AuditFinding("out of reach", "warning", place, message, "", case.id)
    if strategy is DEFAULT_STRATEGY:
        none = "no run can get more than a warning"
    message = f"{none}: {one} gets{score or ' that'}"
    return AuditFinding("out of reach", "note", place, message, "lower warn_threshold", case.id)


def _best(
    case: Case,
    settings: CaseSettings,
    table: ToolTable,
    grader: GraderName | None = None,
    *,
    strategy: CallStrategy = DEFAULT_STRATEGY,
) -> Grade | None:
    agent = _exact(case, settings, table, strategy)
    if agent is None:
        return None
    return _graded(agent, settings, agent.run(), grader)


def _exact(case: Case, settings: CaseSettings, table: ToolTable, strategy: CallStrategy) -> ExactAgent | None:
    try:
        return exact_agent(case, table, settings.limits.max_rounds, strategy)
    except NeverHoldsError:
        return None


def _graded(
    agent: ExactAgent, settings: CaseSettings, run: Trajectory, grader: GraderName | None = None
) -> Grade | None:
    try:
        return grade_by(grader or settings.grading.by, agent.case, settings, run, ACCEPT_ALL_CONTEXT)
    except (CheckError, GradingError):
        return None


def _unnoticed(case: Case, place: Place, settings: CaseSettings, table: ToolTable) -> Iterator[AuditFinding]:
    if case.final_states:
        return
    passing: dict[tuple[Place, Weight, str], dict[str, list[str]]] = {}
    left = _MAX_CALLS_GRADED
    for agent, mutant in _mutants(case, settings, table):
        left -= sum(map(len, mutant.calls))
        if left < 0:
            message = "the case expects too many calls to try every wrong run"
            yield AuditFinding("not looked at", "note", place, message, "", case.id)
            break
        grade = _graded(agent, settings, agent.run(mutant.calls))
        if grade is None or grade.status is None or not grade.status.good:
            continue
        weight, verb = mutant.weight, "passes"
        # People look at runs with warnings and would notice this mutant, so the finding is only a note.
        if grade.status != Status.PASSED:
            weight, verb = "note", "is only warned"
        passing.setdefault((mutant.place, weight, verb), {}).setdefault(mutant.change, []).append(mutant.changed_part)
    for (where, weight, verb), changes in passing.items():
        listed = []
        for how, what in changes.items():
            listed.append(f"{', '.join(dict.fromkeys(what))} {how}")
        hint = _check_that_notices(changes) if weight == "warning" else ""
        yield AuditFinding(
            "unnoticed", weight, (*place, *where), f"{verb} with {'; with '.join(listed)}", hint, case.id
        )


def _mutants(case: Case, settings: CaseSettings, table: ToolTable) -> Iterator[tuple[ExactAgent, MutatedAgent]]:
    """Yield the mutants of each agent that does exactly as expected and passes.

    There is one such agent per alternative of `any_of`."""
    for way in (DEFAULT_STRATEGY, *other_strategies(case)):
        if way is not DEFAULT_STRATEGY and not way.alternative:
            continue
        agent = _exact(case, settings, table, way)
        exact = None if agent is None else _graded(agent, settings, agent.run())
        if agent is not None and exact is not None and exact.status == Status.PASSED:
            for mutant in mutated_agents(agent, table, extra_call_rule_of(agent.case, settings.grading, agent.run())):
                yield agent, mutant


def _careless(case: Case, place: Place, settings: CaseSettings, table: ToolTable) -> Iterator[AuditFinding]:
    # An imagined run has no state for a check of the final state.
    if case.final_states:
        return
    for agent in careless_agents(case, table):
        try:
            grade = grade_by(settings.grading.by, case, settings, agent.run, REFUSE_ALL_CONTEXT)
        except GradingError:
            return
        except CheckError as error:
            message = f"the result of {agent.description} is unknown: {error}"
            yield AuditFinding("not looked at", "note", place, message, "", case.id)
            return
        if grade.status is not None and grade.status.good:
            # If a case forbids all calls, silence is right, and the finding is only a note.
            weight: Weight = "note" if case.forbids_all_calls else "warning"
            result = "passes" if grade.status == Status.PASSED else "is no more than warned"
            message = f"{agent.description} {result}"
            yield AuditFinding("weak case", weight, place, message, _further_checks(case), case.id)
            return


def _further_checks(case: Case) -> str:
    if case.expects_calls_or_none and not case.forbids_all_calls:
        return "check arguments more closely"
    if case.checks_answer:
        return "check the answer for something that the request does not contain"
    return "check the answer too"


def _check_that_notices(changes: Mapping[str, Collection[str]]) -> str:
    if "swapped" in changes:
        return "`trajectory` and `accuracy` check the order of calls"
    if changes.keys() == {"twice"}:
        return 'duplicate_calls = "forbid" fails repeated calls, extra_calls = "forbid" all surplus ones'
    if "twice" in changes or any(what.startswith("a call of") for what in changes.get("added", ())):
        return 'extra_calls = "forbid" fails surplus calls'
    if "added" in changes:
        return "`forbidden_args` or `only_args` keeps arguments out"
    return "`required = true` makes an argument decide"


def _gate(suite: Suite, table: ToolTable) -> Iterator[AuditFinding]:
    if suite.gate.min_score is None:
        return
    scores = []
    for case in suite.cases:
        if case.skip is None:
            grade = _best(case, settings_of(suite, case), table.of_cases([case]))
            if grade is not None and grade.score is not None:
                scores.append(grade.score)
    if scores and sum(scores) / len(scores) < suite.gate.min_score - TOLERANCE:
        mean = mean_text(sum(scores) / len(scores))
        message = f"out of reach: runs that do exactly what is expected have the mean score {mean}"
        yield AuditFinding("out of reach", "warning", ("gate", "min_score"), message)


def _aggregates(suite: Suite, table: ToolTable) -> Iterator[AuditFinding]:
    for index, aggregate in enumerate(suite.aggregates):
        if not measure_of(aggregate.of).by_grader:
            continue
        values = list(_best_values(suite, aggregate, table))
        for key, thresholds in (("at_least", aggregate.at_least), ("above", aggregate.above)):
            for name in _HIGHER_IS_BETTER:
                threshold = getattr(thresholds, name)
                reached = statistic(name, values)
                if threshold is not None and not gate_holds(reached, threshold, strictly=key == "above"):
                    has = "have no value" if reached is None else f"come to {figure(reached)}"
                    message = f"out of reach: runs that do exactly what is expected {has}"
                    yield AuditFinding("out of reach", "warning", ("aggregates", index, key, name), message)


def _best_values(suite: Suite, aggregate: Aggregate, table: ToolTable) -> Iterator[float]:
    name, _, number = aggregate.of.partition(".")
    by: GraderName | None = None
    # Any other name is that of a grader, as `_aggregates` has checked.
    if name != SCORE.name:
        by = cast("GraderName", name)
    for case in suite.cases:
        if case.skip is not None or (aggregate.tags and not {*aggregate.tags} & {*suite.tags, *case.tags}):
            continue
        grade = _best(case, settings_of(suite, case), table.of_cases([case]), by)
        if grade is None:
            continue
        value = grade.numbers.get(number) if number else grade.score
        if value is not None:
            yield value
