"""Probes that test how an endpoint handles tools.

Each probe sends a small request that needs one ability, such as parallel calls. It is graded like a run of a suite."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from workbench.analysis.causes import Cause
from workbench.analysis.failures import failures_of
from workbench.config.models import ModelSpec
from workbench.config.program import Program
from workbench.engine.events import BatchEvent, RunDone
from workbench.engine.plan import PlannedRun, plan_runs
from workbench.engine.planned_run import RunContext, run_planned
from workbench.evaluation.model_list import ListedModel, ProbeResult
from workbench.grading.grade import EXPLAINING_KINDS, Issue, IssueKind, RunResult
from workbench.grading.pairing_issues import describe_call
from workbench.grading.status import Status
from workbench.numerals import counted, counted_of
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.model import RetryPolicy
from workbench.show.views.grades import issue_facts, issue_note
from workbench.show.views.trajectory import deviation_lines
from workbench.show.visible import one_line, shortened
from workbench.suite.model import Case
from workbench.suite.suite_file import load_suite
from workbench.tools.server_pool import ServerPool

_ATTEMPTS = 2
_QUOTED = 100

_OF_ENDPOINT: frozenset[Cause] = frozenset({"endpoint", "broken JSON", "sent too much"})
"""The causes that lie with the endpoint.

The requests are simple, so broken arguments are usually the endpoint's fault too."""

_ON_BROKEN = "check the server's log: its tool parser, or a gateway in front of it, cut or corrupted the arguments"

_ON_UNCLEAR: Mapping[str, str] = {
    "parallel-calls": "if the model can make several calls in one answer, switch on parallel tool calls in the server",
    "round-trip": "check whether the model's chat template includes tool results",
}
"""The advice for each probe if a model made only some of the expected calls."""

_SEEN_IN_REACTION: frozenset[IssueKind] = frozenset({"missing call", "extra call", "wrong tool", "response"})

_NO_USAGE = "no answer reports its tokens: costs are unknown, and tools that never reach the model go unnoticed"
_ADVICE_ON_USAGE = "update the server, or the gateway in front of it: all supported APIs report the tokens of a stream"
_NO_CALLS = "no tool was called in any answer: the model does not call tools, or its endpoint does not pass them on"
_ADVICE_ON_CALLS = (
    "check that the server is started with tool calling and that the model's chat template has tools, or use a model"
    " that was trained to call tools"
)


class ToolProbes:
    """Tests how an endpoint handles tools.

    Requests are sent one after another, because a small server handles one request at a time. Use this object on one
    event loop, and close `endpoints` afterwards."""

    def __init__(self, program: Program, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self._servers = ServerPool(program)

    async def send(self, spec: ModelSpec, environment: Mapping[str, str]) -> AsyncGenerator[ProbeResult]:
        """Send all probes to a model. Yields the result of each probe as soon as it ends."""
        results = list[RunResult]()
        for planned in planned_probes(spec.name):
            result = await self._run(planned, spec, environment)
            if result.status == Status.STOPPED:
                # The run took the cancellation of this task for its own, so the cancellation is raised again.
                raise asyncio.CancelledError
            results.append(result)
            if planned.case.expects_nothing_yet:
                yield _reasoning(result, spec)
            else:
                yield _finding(planned.case, result)
        yield _usage(results)
        # A single probe may fail for another reason. If all probes get no call, the model never calls tools.
        if _calls_nothing(results):
            yield ProbeResult("tools", "wrong", _NO_CALLS, _ADVICE_ON_CALLS)

    async def _run(self, planned: PlannedRun, spec: ModelSpec, environment: Mapping[str, str]) -> RunResult:
        done = list[RunResult]()

        def listen(event: BatchEvent) -> None:
            if isinstance(event, RunDone):
                done.append(event.result)

        context = RunContext(
            listener=listen,
            servers=self._servers,
            open_model=lambda _planned: self._endpoints.open(spec, environment),
            # Probes start no program, so they need no approval.
            grant_of=lambda _path: None,
            retries=RetryPolicy(attempts=_ATTEMPTS),
        )
        await run_planned(planned, context)
        return done[0]


def planned_probes(model: str) -> Sequence[PlannedRun]:
    return plan_runs([load_suite(Path(__file__).with_suffix(".toml"))], models=[model])


async def probe_models(
    models: Sequence[ListedModel], program: Program, on_result: Callable[[ListedModel, ProbeResult], object]
) -> None:
    """Probe the models whose endpoint answered a check.

    Each result is stored with its model and passed to `on_result`. Models of one endpoint are probed one after another.
    Different endpoints are probed at the same time."""
    endpoints = Endpoints(program.secrets)
    probes = ToolProbes(program, endpoints)
    by_endpoint: dict[str, list[ListedModel]] = {}
    for listed in models:
        if listed.check is not None and listed.check.answers:
            by_endpoint.setdefault(listed.spec.base_url, []).append(listed)

    async def probe(of_one: Sequence[ListedModel]) -> None:
        for listed in of_one:
            async for result in probes.send(listed.spec, listed.environment):
                listed.probes.append(result)
                on_result(listed, result)

    try:
        await asyncio.gather(*map(probe, by_endpoint.values()))
    finally:
        await endpoints.close()


def _finding(case: Case, result: RunResult) -> ProbeResult:
    if result.status == Status.ERROR:
        return ProbeResult(case.name, "wrong", result.error or "the endpoint failed")
    if result.status == Status.FAILED:
        return _failure(case, result)
    if repaired := deviation_lines(result.trajectory.deviations):
        return ProbeResult(case.name, "repaired", "; ".join(repaired))
    return ProbeResult(case.name, "works", _reaction(result))


def _failure(case: Case, result: RunResult) -> ProbeResult:
    failed = failures_of([(result, case)]).runs[0]
    issues: Sequence[Issue] = ()
    if result.grade is not None:
        issues = result.grade.issues
    reaction = f"the model {_reaction(result)}"
    first = min(issues, key=lambda issue: issue.kind not in EXPLAINING_KINDS, default=None)
    if first is None:
        return ProbeResult(case.name, "unclear", reaction)
    if failed.main == "broken JSON":
        broken = next((issue for issue in issues if issue.kind == "broken arguments"), first)
        return ProbeResult(case.name, "wrong", f"{broken.reason} ({issue_facts(broken)})", _ON_BROKEN)
    if failed.main in _OF_ENDPOINT:
        return ProbeResult(case.name, "wrong", f"{first.reason} ({issue_facts(first)})", failed.advice)
    advice = None
    if failed.main in ("cut off", "refused"):
        advice = failed.advice
    elif result.called:
        # The usual advice is about descriptions of tools, which the user cannot change here, because the probes' tools
        # are built in.
        advice = _ON_UNCLEAR.get(case.id)
    found = issue_note(first)
    if first.kind in _SEEN_IN_REACTION:
        found = reaction
    return ProbeResult(case.name, "unclear", found, advice)


def _reaction(result: RunResult) -> str:
    trajectory = result.trajectory
    parts = [f"called {one_line(describe_call(call))}" for call in trajectory.calls]
    if answer := trajectory.final_answer:
        parts.append(f"answered “{shortened(one_line(answer), _QUOTED)}”")
    return ", ".join(parts) or "neither called nor answered"


def _reasoning(result: RunResult, spec: ModelSpec) -> ProbeResult:
    name, trajectory = "reasoning apart", result.trajectory
    if result.status == Status.ERROR:
        return ProbeResult(name, "wrong", result.error or "the endpoint failed")
    if repaired := deviation_lines(trajectory.deviations):
        return ProbeResult(name, "repaired", "; ".join(repaired))
    characters = sum(len(answer.reasoning) for answer in trajectory.requested_rounds)
    if characters:
        return ProbeResult(name, "works", f"{counted(characters, 'character')} of reasoning apart from the answer")
    finding = "no reasoning was sent: the model does not reason, or its endpoint hides the reasoning"
    if spec.thoughts == "answer":
        finding += '; thoughts = "answer" leaves it in the answer'
    return ProbeResult(name, "works", finding)


def _usage(results: Sequence[RunResult]) -> ProbeResult:
    name = "usage while streaming"
    answers = counting = tokens = 0
    for answer in chain.from_iterable(result.trajectory.requested_rounds for result in results):
        # An answer that broke off may not have reported its usage.
        if answer.stop_reason is None:
            continue
        answers += 1
        if answer.usage is not None and answer.usage.input_tokens:
            counting += 1
            tokens += answer.usage.input_tokens + answer.usage.output_tokens
    if not answers:
        return ProbeResult(name, "unclear", "no answer came")
    if not counting:
        return ProbeResult(name, "wrong", _NO_USAGE, _ADVICE_ON_USAGE)
    if without := answers - counting:
        missing = f"{counted_of(without, answers, 'answer')} do not report their tokens"
        return ProbeResult(name, "wrong", missing, _ADVICE_ON_USAGE)
    return ProbeResult(name, "works", f"{counted(tokens, 'token')} for all probes")


def _calls_nothing(results: Sequence[RunResult]) -> bool:
    asked = [result for result in results if result.status != Status.ERROR]
    for result in asked:
        issues: Sequence[Issue] = ()
        if result.grade is not None:
            issues = result.grade.issues
        if result.called or any(issue.kind == "endpoint fault" for issue in issues):
            return False
    return bool(asked)
