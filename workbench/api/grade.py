"""Grades calls that were made elsewhere, in production or by another agent. Calls no model."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import field, replace
from datetime import datetime
from itertools import chain
from pathlib import Path

from workbench.api.approval import Approve, approval_for, approve_nothing
from workbench.api.given_suites import AnySuite, one_suite
from workbench.api.suites import SuiteCase, SuitePath, UsageError
from workbench.checks.check import CheckContext
from workbench.config.folders import user_folders
from workbench.config.models import ConfigError
from workbench.config.program import create_program
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.engine.external_run import RunDocumentError, external_payloads, external_run, external_run_started
from workbench.engine.plan import PlannedRun, next_run_id, with_grader
from workbench.engine.planned_run import result_of
from workbench.engine.suite_secrets import register_secrets
from workbench.evaluation.approval import Needs
from workbench.evaluation.calls_file import calls_of, read_calls, runs_of_calls_file
from workbench.evaluation.plan import FinishedRun
from workbench.evaluation.regrade import (
    GradeOptions,
    RegradePlan,
    RunToGrade,
    grade_recordings,
    regrade_result,
    with_clock,
)
from workbench.evaluation.report import Report
from workbench.grading.grade import Grade, Issue, RunResult
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.providers.function import external_result, plain_call, with_ids
from workbench.providers.wire.tool_calls import read_arguments
from workbench.suite.grading_model import GraderName
from workbench.suite.model import Case
from workbench.tools.listings import definitions_for
from workbench.tools.python_code import PythonFunctions
from workbench.trajectory.events import Event, EventPayload, JsonValue, RunFinished, ToolCall
from workbench.trajectory.external_run import ExternalResult
from workbench.trajectory.fold import fold
from workbench.trajectory.recording import RecordingError

MODEL_NAME = "given calls"
"""The name of the model in results and reports of calls that were made elsewhere."""


def call(tool: str, arguments: Mapping[str, JsonValue] | str | None = None, /, **named: JsonValue) -> ToolCall:
    """Make a tool call, for `grade` or as the answer of an agent.

    Arguments are named, or given as one mapping, or as a model's JSON text. If the text is not a JSON object, the call
    is graded as a call with broken arguments. Raises TypeError for values that JSON cannot hold.

    >>> import workbench
    >>> workbench.call("get_current_time", timezone="Europe/Oslo").arguments
    {'timezone': 'Europe/Oslo'}
    >>> workbench.call("search", {"from": "Oslo"}, limit=5).arguments
    {'from': 'Oslo', 'limit': 5}
    >>> workbench.call("search", '{"from": "Oslo"}').arguments
    {'from': 'Oslo'}
    >>> workbench.call("search", '{"from": "Os').problem
    'JSON that ends too early'"""
    # The parameters are positional-only, so that the tool may have arguments with the same names.
    if isinstance(arguments, str):
        read, problem = read_arguments(arguments)
        if problem is not None:
            if named:
                raise TypeError(f"the arguments of {tool} are {problem}, so none can be added")
            return ToolCall("", tool, raw=arguments, problem=problem)
        arguments = read
    return plain_call(ToolCall("", tool, {**(arguments or {}), **named}))


@dataclass(frozen=True)
class Graded:
    """The result of `grade`: the grades of a case for given calls."""

    result: RunResult
    """The whole result: the grades of all graders, and the trajectory that was graded."""
    _case: SuiteCase = field(repr=False)
    _secrets: Secrets = field(repr=False)

    @property
    def passed(self) -> bool:
        """Whether the case passed, with or without a warning."""
        return self.result.passed

    @property
    def status(self) -> Status:
        """The status: `passed`, `warned`, `failed`, or `error` if the case could not be graded."""
        return self.result.status

    @property
    def score(self) -> float | None:
        """The score of the deciding grader, from 0 to 1. It is `None` if the grader does not apply to the case."""
        return self.result.score

    @property
    def reason(self) -> str | None:
        """The reason why the case did not pass, in one line, or `None` if the case passed."""
        return self.result.reason

    @property
    def grades(self) -> tuple[Grade, ...]:
        """The grades of all graders. The grade that decides the status is first."""
        return self.result.grades

    @property
    def issues(self) -> tuple[Issue, ...]:
        """The issues that the deciding grader found."""
        return self.result.issues

    @property
    def details(self) -> str:
        """The result as text, without secrets: the score, each issue, and the causes."""
        suite = self._case.suite
        return Report(
            runs=(FinishedRun(0, self._case.definition, self.result),),
            suites={str(suite.path): suite.definition},
            started_at="",
            secrets=self._secrets,
        ).text(amount="normal")

    def assert_passed(self) -> None:
        """Raise AssertionError, with `details` as its message, if the case did not pass."""
        if not self.passed:
            raise AssertionError(self.details)


def grade(
    case: SuiteCase,
    calls: Sequence[ToolCall | Sequence[ToolCall]] = (),
    *,
    answer: str | None = None,
    results: Sequence[object] = (),
    now: datetime | None = None,
    latency_ms: float = 0.0,
    by: GraderName | None = None,
    approve: Approve = approve_nothing,
) -> Graded:
    """Grade tool calls by a case of a suite, without asking a model or calling a tool.

    Each of `calls` is one answer of a model: a call, or a list of calls made at once. For a chain, each answer belongs
    to a step, and an empty list is an answer without calls. `answer` is the final text, if any, and `latency_ms` is the
    time of the whole run. `by` names the deciding grader, by default the case's own.

    `results` are the results of the calls, in their order, for cases that check results. Each is a JSON value, an
    exception for a tool error, or `None` if there is no result. `now` is the time of the run, with its UTC offset. It
    sets the clock of a case whose `clock` has no time. Raises UsageError for unfit arguments.

    Checks that call Python functions of the suite need approval: `approve` is as in `evaluate`, and ApprovalError is
    raised without it. A case with a check that a language model judges gets the status `error`.

    >>> import workbench
    >>> case = workbench.load("clock.toml").case("time-in-bergen")
    >>> result = workbench.grade(case, [workbench.call("get_time", timezone="Europe/Oslo")], answer="It is noon.")
    >>> result.passed, result.score
    (True, 1.0)

    >>> result = workbench.grade(case, [workbench.call("get_time", timezone="Oslo")])
    >>> result.status, result.reason
    ('failed', 'wrong argument: get_time.timezone: not equal')"""
    suite, definition = case.suite.definition, with_grader(case.definition, by)
    program = create_program(user_folders(), os.environ)
    # Settings that cannot be read have no secrets to hide, so the error is ignored.
    with suppress(ConfigError):
        register_secrets(program, case.suite.path.parent, suite, case.suite.file.text)
    own = [case.suite.file] if case.suite.is_own else []
    approval = approval_for(Needs.of_grading([(case.suite.file, definition)], program), approve, program, own)
    grant = approval.grant(case.suite.path)
    planned = PlannedRun(next_run_id(), case.suite.file, definition, MODEL_NAME, 0)
    *before, end = _events_of(case, definition, calls, answer, results, latency_ms)
    events = []
    for number, payload in enumerate(before):
        events.append(Event(planned.run_id, number, 0.0, payload))
    trajectory = fold([*events, Event(planned.run_id, len(events), latency_ms, end)])
    if now is not None:
        if now.tzinfo is None:
            raise UsageError("`now` needs an offset: datetime.now().astimezone() has one")
        trajectory = with_clock(trajectory, planned, now.isoformat())
    functions = PythonFunctions(grant.code if grant is not None else None)
    # A result without grades is created first, and then regraded like a stored run.
    ungraded = result_of(planned, Status.ERROR, trajectory)
    graded = regrade_result(ungraded, planned, CheckContext(call_python=functions.answer))
    return Graded(graded, case, program.secrets)


def grade_calls(
    suite: AnySuite,
    calls: SuitePath | Mapping[str, object] | Sequence[Mapping[str, object]],
    *,
    by: GraderName | None = None,
    min_score: float | None = None,
    approve: Approve = approve_nothing,
) -> Report:
    """Grade an agent's recorded calls in many cases of a suite, as `workbench grade --calls` does.

    `calls` is the path of a file of calls (JSON or JSON lines), or its content. The content maps the id of each case to
    a list of calls, to a run with `calls` and `answer`, or to several `runs`. A case without a run is mapped to `None`.
    `by` and `approve` have the same meaning as in `grade`, and `min_score` has the same meaning as in `evaluate`.
    Raises UsageError with all faults of `calls`.

    >>> import workbench
    >>> made = [{"tool": "get_time", "arguments": {"timezone": "Europe/Oslo"}}]
    >>> report = workbench.grade_calls("clock.toml", {"cases": {"time-in-bergen": made, "small-talk": []}})
    >>> report.passed, len(report.runs)
    (True, 2)"""
    program = create_program(user_folders(), os.environ)
    of_suite = one_suite(suite)
    with suppress(ConfigError):
        register_secrets(program, of_suite.path.parent, of_suite.definition, of_suite.file.text)
    # Calls that are given as objects have no file, so messages use the name `calls`.
    path = Path("calls")
    try:
        if isinstance(calls, str | os.PathLike):
            path = Path(calls)
            given = read_calls(path)
        else:
            given = calls_of(json.loads(json.dumps(calls)))
        runs, wrong = runs_of_calls_file(given, of_suite.file, path, by)
    except (RecordingError, RunDocumentError) as error:
        raise UsageError(program.secrets.redact(str(error))) from None
    if wrong:
        raise UsageError(program.secrets.redact("; ".join(wrong)))
    to_grade = (RunToGrade(each.recording, each.recorded, of_suite.file, each.case, given=True) for each in runs)
    regrading = RegradePlan(tuple(to_grade), GradeOptions(calls=(path,), by=by, min_score=min_score), program)
    own = [of_suite.file] if of_suite.is_own else []
    approval = approval_for(regrading.needs(), approve, program, own)
    # The caller may already be in an event loop, so grading runs on a thread with its own loop.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(grade_recordings, regrading, approval).result()


def _events_of(
    case: SuiteCase,
    definition: Case,
    calls: Sequence[ToolCall | Sequence[ToolCall]],
    answer: str | None,
    results: Sequence[object],
    latency_ms: float,
) -> list[EventPayload]:
    suite = case.suite.definition
    rounds = []
    for made in calls:
        at_once = [made] if isinstance(made, ToolCall) else made
        rounds.append([*map(plain_call, at_once)])
    by_id = {}
    if results:
        rounds = _with_ids(rounds)
        flat = [each.id for of_round in rounds for each in of_round]
        if len(results) != len(flat):
            there_are = f"{counted(len(flat), 'call')} and {counted(len(results), 'result')}"
            raise UsageError(f"`results` must have one result for each call, but there are {there_are}")
        for call_id, result in zip(flat, results, strict=True):
            if result is not None:
                by_id[call_id] = _result(result)
    tools = definitions_for(suite, definition)
    return [
        external_run_started(suite, definition, MODEL_NAME, case.suite.file.hash, tools),
        *external_payloads(external_run(rounds, answer, results=by_id, latency_ms=latency_ms).rounds),
        RunFinished("steps done" if definition.steps else "answered"),
    ]


def _with_ids(rounds: Sequence[Sequence[ToolCall]]) -> list[list[ToolCall]]:
    ids = (call_id for call_id, _ in with_ids(list(chain.from_iterable(rounds))))
    named = []
    for made in rounds:
        named.append([replace(each, id=next(ids)) for each in made])
    return named


def _result(value: object) -> ExternalResult:
    try:
        return external_result(value)
    except TypeError as error:
        raise UsageError(str(error)) from None
