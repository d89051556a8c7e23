"""Audits a suite for faults that its cases cannot detect and expectations that can never be met.

Each case is graded by the suite's own graders on the runs of imagined agents. A case that an agent without
understanding passes asks too little; a case that fails an agent doing exactly what is expected asks for the impossible.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, cast

from workbench.analysis.audit.imagined_agents import (
    AGREEING,
    REFUSING,
    ExactAgent,
    careless_agents,
    exact_agent,
    mutants_of,
)
from workbench.analysis.audit.toothless import idle_gates, toothless_checks
from workbench.analysis.audit.unmeetable import (
    NEVER_MET,
    AuditFinding,
    ToolTable,
    Weight,
    audit_calls,
    audit_case_mocks,
    audit_suite_mocks,
)
from workbench.analysis.gates import gate_holds, statistic
from workbench.analysis.measures import measure_of
from workbench.checks.check import Check, NeverHoldsError
from workbench.checks.patterns import CheckError
from workbench.checks.values import describe_value, json_equal
from workbench.dataclasses import dataclass
from workbench.grading.grade import Grade, GradingError
from workbench.grading.requirements import rule_of
from workbench.grading.run import graded_by
from workbench.grading.status import Status
from workbench.numerals import figure, mean_text, score_text
from workbench.suite.model import Aggregate, Case, ExpectedCall, GraderName, Step, Suite
from workbench.suite.problems import Place, written
from workbench.suite.settings import CaseSettings, settings_of
from workbench.suite.suite_file import SuiteFile
from workbench.tools.listings import Listing
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.json_schema import properties_of, resolved
from workbench.trajectory.trajectory import Trajectory

# Measures which tools, parameters and enum values the cases of a suite cover.


@dataclass(frozen=True, slots=True)
class Share:
    """How many of the things some case covers, and the names of the others."""

    covered: int
    total: int
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage of the tools by cases that run.

    Parameters are named `tool.parameter`, values `tool.parameter = value`; those of a tool that no case covers are not
    listed again."""

    tools: Share
    parameters: Share
    values: Share

    @property
    def shares(self) -> tuple[tuple[str, Share], ...]:
        """The shares of the kinds that exist, by their names."""
        named = (("tools", self.tools), ("parameters", self.parameters), ("enum values", self.values))
        return tuple((what, share) for what, share in named if share.total)


def coverage_of(cases: Iterable[Case], table: ToolTable) -> Coverage:
    """Count every expected call; a disallowed one covers its tool, not its arguments."""
    running = [case for case in cases if case.skip is None]
    checks: dict[str, list[tuple[str, Check]]] = {}
    for case in running:
        for place, call in case.written_calls():
            is_own = any(each.name == call.tool for each in case.tools)
            tool = table.find(call.tool) if call.tool is not None and not is_own else None
            if tool is not None:
                checks.setdefault(tool.name, []).extend(_checks(call) if place[0] != "disallowed" else ())
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


def _checks(call: ExpectedCall | Step) -> Iterator[tuple[str, Check]]:
    yield from (call.args or {}).items()


def _parameters(tool: ToolDefinition, checks: Sequence[tuple[str, Check]]) -> Iterator[tuple[str, bool]]:
    checked = {name for name, _ in checks}
    for name in properties_of(tool.parameters):
        yield f"{tool.name}.{name}", name in checked


def _values(tool: ToolDefinition, checks: Sequence[tuple[str, Check]]) -> Iterator[tuple[str, bool]]:
    for name, parameter in properties_of(tool.parameters).items():
        choices = resolved(parameter, tool.parameters).get("enum")
        if isinstance(choices, list):
            expected = [value for argument, check in checks if argument == name for value in _expected(check)]
            for choice in choices:
                place = f"{tool.name}.{name} = {describe_value(choice)}"
                yield place, any(json_equal(choice, value) for value in expected)


def _expected(check: Check) -> tuple[JsonValue, ...]:
    return check.listed or ()


def _share(found: Sequence[tuple[str, bool]]) -> Share:
    missing = tuple(name for name, covered in found if not covered)
    return Share(len(found) - len(missing), len(found), missing)


_MEASURED: tuple[Literal["mean", "median", "minimum", "maximum"], ...] = ("mean", "median", "minimum", "maximum")
"""Statistics that are larger for better runs."""

_MAX_CALLS_GRADED = 5_000
"""Calls of mutants that are graded for one case: a quarter of a second."""

_MAX_SAID = 3
"""Reasons that are named for a case out of reach."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The findings in a suite, in the order of the file, and how much of the tools its cases cover."""

    findings: tuple[AuditFinding, ...]
    coverage: Coverage


def audit_suite(suite: Suite, listings: Mapping[str, Listing]) -> Audit:
    """Audit a valid suite.

    `listings` are the tools that its servers last listed, by server; nothing is started, called or asked."""
    table = ToolTable.of(suite, listings)
    return Audit(tuple(_findings(suite, table)), coverage_of(suite.cases, table))


def _findings(suite: Suite, table: ToolTable) -> Iterator[AuditFinding]:
    for name in table.unlisted:
        number = next(index for index, server in enumerate(suite.servers) if server.name == name)
        message = f"the tools of the server {name!r} are unknown, so names and values were not checked"
        yield AuditFinding("not looked at", "note", ("servers", number), message, "`workbench tools` asks the server")
    yield from audit_suite_mocks(suite, table.of_cases(suite.cases))
    for index in range(len(suite.cases)):
        yield from audit_case(suite, index, table)
    yield from idle_gates(suite)
    yield from _gate(suite, table)
    yield from _aggregates(suite, table)


def audit_case(suite: Suite, index: int, table: ToolTable) -> Iterator[AuditFinding]:
    """Audit one case of a valid suite, skipped or not.

    A case that expects nothing yet is left out."""
    case = suite.cases[index]
    if case.expects_nothing_yet:
        return
    table = table.of_cases([case])
    place: Place = ("cases", index)
    settings = settings_of(suite, case)
    found = [*audit_calls(case, place, table), *audit_case_mocks(case, place, table)]
    found += toothless_checks(case, place, table)
    if not any(finding.kind in NEVER_MET for finding in found):
        found += _out_of_reach(case, place, settings, table)
    if case.skip is None:
        found += _careless(case, place, settings, table)
        if not any(finding.weight == "warning" and finding.kind != "cannot fail" for finding in found):
            found += _unnoticed(case, place, settings, table)
    yield from found


def unsaid(file: SuiteFile, findings: Iterable[AuditFinding]) -> tuple[AuditFinding, ...]:
    """Return the findings that no warning of the suite reports already, each once, in the order of the file."""
    told = set()
    for problem in file.warnings:
        for kind, words in (("unknown tool", "no such tool"), ("unnoticed", "ignores the order of calls")):
            if words in problem.message:
                told.add((kind, problem.where))
    warned = {(problem.where, problem.message) for problem in file.warnings}
    found = [
        each
        for each in dict.fromkeys(findings)
        if (each.kind, written(each.place)) not in told and (written(each.place), each.message) not in warned
    ]
    return tuple(sorted(found, key=lambda each: file.positions.line(each.place)))


def _out_of_reach(case: Case, place: Place, settings: CaseSettings, table: ToolTable) -> Iterator[AuditFinding]:
    grade = _best(case, settings, table)
    if grade is None or grade.status in (Status.PASSED, Status.ERROR):
        return
    why = [issue.why for issue in grade.issues][:_MAX_SAID] or [grade.reason]
    score = f" with {score_text(grade.score)}" if grade.score is not None else ""
    if grade.status == Status.FAILED:
        message = (
            f"no run can pass: one that does exactly what is expected fails{score} ({'; '.join(dict.fromkeys(why))})"
        )
        yield AuditFinding("out of reach", "warning", place, message, "", case.id)
    else:
        message = f"no run can do better than warned: one that does exactly what is expected gets{score or ' that'}"
        yield AuditFinding("out of reach", "note", place, message, "lower warn_threshold", case.id)


def _best(case: Case, settings: CaseSettings, table: ToolTable, by: GraderName | None = None) -> Grade | None:
    """Return the grade of a run that does exactly what is expected, by the deciding grader or another one.

    `None` if such a run cannot be constructed."""
    agent = _exact(case, settings, table)
    if agent is None:
        return None
    return _graded(agent, settings, agent.run(), by)


def _exact(case: Case, settings: CaseSettings, table: ToolTable) -> ExactAgent | None:
    try:
        return exact_agent(case, table, settings.limits.max_rounds)
    except NeverHoldsError:
        return None


def _graded(agent: ExactAgent, settings: CaseSettings, run: Trajectory, by: GraderName | None = None) -> Grade | None:
    try:
        return graded_by(by or settings.grading.by, agent.case, settings, run, AGREEING)
    except (CheckError, GradingError):
        return None


def _unnoticed(case: Case, place: Place, settings: CaseSettings, table: ToolTable) -> Iterator[AuditFinding]:
    """Return the mutants of the exact agent that pass as it does, those of one call together."""
    agent = _exact(case, settings, table)
    exact = None if agent is None else _graded(agent, settings, agent.run())
    if agent is None or exact is None or exact.status != Status.PASSED:
        return
    passing: dict[tuple[Place, Weight, str], dict[str, list[str]]] = {}
    left = _MAX_CALLS_GRADED
    for mutant in mutants_of(agent, table, rule_of(agent.case, settings.grading, agent.run())):
        left -= sum(map(len, mutant.calls))
        if left < 0:
            message = "it expects too many calls to try every wrong run"
            yield AuditFinding("not looked at", "note", place, message, "", case.id)
            break
        grade = _graded(agent, settings, agent.run(mutant.calls))
        if grade is not None and grade.status is not None and grade.status.good:
            # A person looks at a run that is warned.
            weight, verb = (mutant.weight, "passes") if grade.status == Status.PASSED else ("note", "is only warned")
            passing.setdefault((mutant.place, weight, verb), {}).setdefault(mutant.how, []).append(mutant.what)
    for (where, weight, verb), changes in passing.items():
        with_what = "; with ".join(f"{', '.join(dict.fromkeys(what))} {how}" for how, what in changes.items())
        hint = _what_would_notice(changes) if weight == "warning" else ""
        yield AuditFinding("unnoticed", weight, (*place, *where), f"{verb} with {with_what}", hint, case.id)


def _careless(case: Case, place: Place, settings: CaseSettings, table: ToolTable) -> Iterator[AuditFinding]:
    """Return the first agent that passes without understanding anything."""
    for agent in careless_agents(case, table):
        try:
            grade = graded_by(settings.grading.by, case, settings, agent.run, REFUSING)
        except GradingError:
            return
        except CheckError as error:
            message = f"the result of {agent.description} is unknown: {error}"
            yield AuditFinding("not looked at", "note", place, message, "", case.id)
            return
        if grade.status is not None and grade.status.good:
            # A case that expects no call is meant to be passed by silence; it says little all the same.
            meant = case.forbids_all_calls
            message = f"{agent.description} {'passes' if grade.status == 'passed' else 'is no more than warned'}"
            yield AuditFinding(
                "weak case", "note" if meant else "warning", place, message, _what_to_check(case), case.id
            )
            return


def _what_to_check(case: Case) -> str:
    if case.expects_calls_or_none and not case.forbids_all_calls:
        return "check arguments more closely"
    if case.checks_answer:
        return "check the answer for something that the request does not say"
    return "check the answer too"


def _what_would_notice(changes: Mapping[str, Collection[str]]) -> str:
    if "swapped" in changes:
        return "`trajectory` and `accuracy` check the order of calls"
    if "twice" in changes or any(what.startswith("a call of") for what in changes.get("added", ())):
        return 'extra_calls = "forbid" fails surplus calls'
    if "added" in changes:
        return "`forbidden_args` or `only_args` keeps arguments out"
    return "`required = true` makes an argument decide"


def _gate(suite: Suite, table: ToolTable) -> Iterator[AuditFinding]:
    """Find a gate on the mean score that no run of the suite reaches."""
    if suite.gate.min_score is None:
        return
    running = [case for case in suite.cases if case.skip is None]
    grades = []
    for case in running:
        grades.append(_best(case, settings_of(suite, case), table.of_cases([case])))
    scores = []
    for grade in grades:
        if grade is not None and grade.score is not None:
            scores.append(grade.score)
    if scores and sum(scores) / len(scores) < suite.gate.min_score - 1e-9:
        mean = mean_text(sum(scores) / len(scores))
        message = f"out of reach: runs that do exactly what is expected have the mean score {mean}"
        yield AuditFinding("out of reach", "warning", ("gate", "min_score"), message)


def _aggregates(suite: Suite, table: ToolTable) -> Iterator[AuditFinding]:
    """Find gates on averages of grader results that no run of the suite reaches."""
    for index, aggregate in enumerate(suite.aggregates):
        if not measure_of(aggregate.of).by_grader:
            continue
        values = list(_best_values(suite, aggregate, table))
        for key, thresholds in (("at_least", aggregate.at_least), ("above", aggregate.above)):
            for name in _MEASURED:
                threshold = getattr(thresholds, name)
                reached = statistic(name, values)
                if threshold is not None and not gate_holds(reached, threshold, strictly=key == "above"):
                    has = "have no value" if reached is None else f"come to {figure(reached)}"
                    message = f"out of reach: runs that do exactly what is expected {has}"
                    yield AuditFinding("out of reach", "warning", ("aggregates", index, key, name), message)


def _best_values(suite: Suite, aggregate: Aggregate, table: ToolTable) -> Iterator[float]:
    name, _, number = aggregate.of.partition(".")
    for case in suite.cases:
        if case.skip is None and (not aggregate.tags or {*aggregate.tags} & {*suite.tags, *case.tags}):
            by = None if name == "score" else cast("GraderName", name)
            grade = _best(case, settings_of(suite, case), table.of_cases([case]), by)
            value = None if grade is None else grade.numbers.get(number) if number else grade.score
            if value is not None:
                yield value
