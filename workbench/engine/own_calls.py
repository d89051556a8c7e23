"""Makes the tool calls that a suite itself defines: `setup` before a run, and `final` after the run."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.checks.check import CheckVerdict
from workbench.checks.combined_kinds import Judged
from workbench.engine.fork import Fork
from workbench.engine.recorder import Recorder, TimeLimit
from workbench.engine.server_questions import CallQuestions
from workbench.grading.final import ReadOnlyTools, error_text, replays_changes
from workbench.numerals import seconds_text
from workbench.suite.model import Case, FinalState, SetupCall
from workbench.tools.answer import ServerError, ToolAnswer, ToolsError
from workbench.tools.audit import Audit, AuditError, Outcome
from workbench.tools.mocks import AskJudge, PlannedAnswer
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import JsonValue, OwnCallAnswered, OwnCallStage, ToolCall


def unseen_change_notices(fork: Fork | None, tools: Toolbox) -> tuple[str, ...]:
    """Return a notice if a fork replays calls that changed something, because the fork's tools lack these changes."""
    if fork is None or not tools.owns_state:
        return ()
    readers = ReadOnlyTools((), tools.definitions)
    changed = []
    for round_ in fork.origin.rounds[: fork.at.rounds]:
        answered = round_.calls
        if round_.number == fork.at.round:
            answered = answered[: fork.at.answered]
        changed += [call.tool for call in answered if not readers.has(call.tool)]
    if not changed:
        return ()
    return (
        f"the tools of this run did not execute the calls that it replays, such as {changed[0]}; their state is new",
    )


class OwnCalls:
    """The tool calls that a case itself defines. They are made with the tools of one run.

    The user approved these calls with the suite, so no permission is requested. Executions are in the audit log.
    `timeout_s` limits each call."""

    def __init__(
        self,
        case: Case,
        timeout_s: float,
        tools: Toolbox,
        recorder: Recorder,
        audit: Audit | None,
        judge: AskJudge | None,
    ) -> None:
        self._case = case
        self._timeout_s = timeout_s
        self._tools = tools
        self._recorder = recorder
        self._audit = audit
        self._judge = judge

    async def run_setup(self) -> None:
        """Make the calls of `setup` in order.

        Raises ToolsError, naming the call, if a call fails."""
        await self._make_all("setup", "setup", self._case.setup)

    async def run_final(self) -> None:
        """Make the calls of `final.state` after the run.

        No call is made if a fork replays calls that changed something, because the fork's tools lack these changes. A
        tool error is a valid answer. Raises ToolsError, naming the call, if a call fails in another way, or if neither
        a mock nor a server answers the call."""
        if not replays_changes(self._case, self._recorder.trajectory):
            await self._make_all("final", "final.state", self._case.final_states)

    async def _make_all(self, stage: OwnCallStage, key: str, calls: Sequence[SetupCall | FinalState]) -> None:
        for number, call in enumerate(calls):
            where = f"{key}[{number}], {call.tool}, failed"
            try:
                async with TimeLimit(self._timeout_s) as limit:
                    await self._make(stage, ToolCall(f"{stage}-{number}", call.tool, dict(call.args)), limit)
            except TimeoutError:
                late = f"no answer within {seconds_text(self._timeout_s)} (raise limits.timeout_s to wait longer)"
                raise ToolsError(f"{where}: {late}") from None
            except ServerError as error:
                raise ServerError(f"{where}: {error}", error.output) from error
            except ToolsError as error:
                raise ToolsError(f"{where}: {error}") from error

    async def _make(self, stage: OwnCallStage, call: ToolCall, limit: TimeLimit) -> None:
        async def judged(check: Judged, value: JsonValue) -> CheckVerdict:
            assert self._judge is not None
            # The judge has its own time limit.
            async with limit.suspended():
                return await self._judge(check, value)

        planned = await self._tools.plan_own(call, judge=judged if self._judge else None)
        if stage == "final" and planned.source == "default":
            raise ToolsError(
                "neither a mock nor a server answers this call, so the state is unknown; mock the tool, or execute it "
                "(execute = true, --execute)"
            )
        began = self._recorder.clock()
        questions = CallQuestions(call, self._tools.answers, self._recorder, judged if self._judge else None)
        async with limit.before(planned.turn()):
            answer = await self._answer(call, planned, questions)
        questions.check()
        server = planned.server if planned.source == "server" else None
        answered = OwnCallAnswered(
            *(stage, call.tool, call.arguments, answer.content, answer.is_error, planned.source),
            self._recorder.ms_since(began),
            server,
        )
        self._recorder.emit(answered)
        # A tool error in `final` is a result for the checks, because it may mean that the run did not create an
        # expected object. A tool error in `setup` and a protocol error are mistakes in the suite.
        if answer.is_error and (stage == "setup" or answer.code is not None):
            raise ToolsError(error_text(answer.content))

    async def _answer(self, call: ToolCall, planned: PlannedAnswer, ask: CallQuestions) -> ToolAnswer:
        if planned.source != "server" or planned.server is None:
            return await planned.run()
        if self._audit is None:
            raise AuditError(f"{call.tool} was not executed: this run has no audit log")
        audited = self._audit.log.begin(self._audit.caller, call, planned.server, "suite")
        began = self._recorder.clock()
        # If the task is cancelled, no ToolsError is raised and the outcome stays unknown.
        outcome: Outcome = "stopped"
        try:
            answer = await planned.run(ask=ask)
            outcome = answer.outcome
        except ToolsError:
            outcome = "server error"
            raise
        finally:
            audited.end(outcome, self._recorder.ms_since(began))
        return answer
