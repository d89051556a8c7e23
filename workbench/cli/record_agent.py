"""`workbench record --agent`: let the user talk with an agent, and keep the conversation as a case of a suite."""

from __future__ import annotations

import os
import queue
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from workbench.authoring.case_list import with_new_cases
from workbench.authoring.document import Document
from workbench.authoring.from_calls import case_with_expected_call, case_with_mock
from workbench.authoring.proposal import table_without_secrets
from workbench.cli.approval import approved
from workbench.cli.redaction import ask, redacted, register_suite_secrets, warn, warn_of_problems, write
from workbench.config.agents import AGENT, unknown_agent
from workbench.config.program import Program
from workbench.engine.events import BatchDone, BatchEvent, RunDone, RunEvent
from workbench.engine.plan import ExecutionRules, PlannedRun, plan_runs
from workbench.evaluation.approval import needs_of_plan
from workbench.evaluation.exit_codes import INFRASTRUCTURE, OK, USAGE
from workbench.evaluation.plan import Plan
from workbench.evaluation.planner import has_subject
from workbench.evaluation.runtime import Runtime
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.show.text import Paint, paint_for
from workbench.show.views.trajectory import StepLines
from workbench.show.visible import shortened, visible
from workbench.suite.files import FileState, SavingError, absolute
from workbench.suite.files import save as save_file
from workbench.suite.render import Table
from workbench.suite.suite_file import SuiteFile, load_suite, parse_suite
from workbench.threads import in_thread
from workbench.tools.answer import ToolAnswer
from workbench.trajectory.events import Event, ResponseFinished, TextDelta, UserEnded, UserSaid
from workbench.trajectory.trajectory import Round, Trajectory

_TURNS = 1_000
_MAX_SESSION_S = 86_400
"""The limits of a conversation, so high that the user ends it first: the number of messages, and the agent's time in
seconds."""

_NAME_CELLS = 60
_PIECE_BYTES = 1 << 16
_WAKE_S = 0.5


def talk(agent: str, suite: Path, program: Program, *, execute: bool, trust: bool) -> int:
    """Let the user talk with an agent that has the tools of a suite, and add the conversation to the suite.

    Returns an exit code."""
    file = load_suite(absolute(suite))
    register_suite_secrets(program, [file])
    if file.suite is None:
        warn_of_problems(file.errors, program.secrets)
        return USAGE
    model = agent if has_subject(file, agent) else f"{AGENT}{agent}"
    if not has_subject(file, model) and (why := unknown_agent(model)) is not None:
        warn(why)
        return USAGE
    planned = _planned(file, model)
    plan = Plan.of([planned], program, execution=ExecutionRules(True if execute else None))
    approval = approved(needs_of_plan(plan), program, all_of_them=trust)
    if approval is None:
        return USAGE
    events: _Events = queue.SimpleQueue()
    runtime = Runtime(events.put, program, person=_TypedUser(events))
    try:
        warn(f"talk with {model}: one message a line; Ctrl+D ends the conversation, and keeps it as a case")
        batch = runtime.start(plan, approval)
        done = _print_events(events, runtime, batch)
    finally:
        runtime.close()
    code = OK
    if done.result.status is Status.ERROR:
        warn(done.result.error or "the conversation ended in an error", program.secrets)
        code = INFRASTRUCTURE
    return max(_write_case(done.result.trajectory, file, program), code)


def _planned(file: SuiteFile, model: str) -> PlannedRun:
    user = {"messages": [{"say": "…"}], "max_turns": _TURNS}
    limits = {"timeout_s": _MAX_SESSION_S, "max_rounds": _TURNS}
    case: Table = {"name": "Conversation", "user": user, "limits": limits, "expect_nothing_yet": True}
    made = with_new_cases(Document.of(file.text), [case], "")
    with_case = parse_suite(made.document.text, file.path)
    assert with_case.suite is not None
    [planned] = plan_runs([with_case], models=[model], case_ids=[with_case.suite.cases[-1].id], repeats=1)
    return planned


class _Prompt:
    """Asks for a message of the user. It is an event, so that everything that happened before is printed above it."""


_Events = queue.SimpleQueue[BatchEvent | _Prompt]


class _TypedUser:
    can_retry = False

    def __init__(self, events: _Events) -> None:
        self._events = events
        self._read = b""

    async def reply(self, _trajectory: Trajectory, turn: int) -> UserSaid | UserEnded:
        while True:
            self._events.put(_Prompt())
            line = await in_thread(self._line, name="message of the user")
            if not line:
                return UserEnded(turn, "done")
            if text := line.decode("utf-8", "replace").strip():
                return UserSaid(turn, text, "person")

    def _line(self) -> bytes:
        # `sys.stdin` is not used, because a thread that still reads would hold its lock, and Python would abort at the
        # end.
        while b"\n" not in self._read and (piece := os.read(0, _PIECE_BYTES)):
            self._read += piece
        line, end, self._read = self._read.partition(b"\n")
        return line + end


def _print_events(events: _Events, runtime: Runtime, batch: str) -> RunDone:
    """Print the events of the run until it ends. A signal stops the run."""
    printer = _Printer(paint_for(sys.stdout, {}))
    done: RunDone | None = None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: runtime.stop_batch(batch))
    while True:
        try:
            event = events.get(timeout=_WAKE_S)
        except queue.Empty:
            continue  # the short timeout lets this thread handle a signal that another thread received
        if isinstance(event, RunEvent):
            printer.print_event(event.event)
        elif isinstance(event, _Prompt):
            if sys.stdin.isatty():
                ask(">")
        elif isinstance(event, RunDone):
            done = event
        elif isinstance(event, BatchDone):
            assert done is not None
            return done


class _Printer:
    """Prints a conversation as it happens: answers line by line, with calls, results and notes."""

    def __init__(self, paint: Paint) -> None:
        self._steps = StepLines(paint, verbose=True, width=0)
        self._line = ""

    def print_event(self, event: Event) -> None:
        match event.payload:
            case TextDelta(text=text):
                # Lines are printed as a whole, because a secret may arrive in several pieces.
                *lines, self._line = f"{self._line}{text}".split("\n")
                self._print(map(visible, lines))
            case ResponseFinished() | UserSaid():
                self._end_line()
            case _:
                if lines := self._steps.lines(event):
                    self._end_line()
                    self._print(lines)

    def _end_line(self) -> None:
        if self._line:
            self._print([visible(self._line)])
        self._line = ""

    def _print(self, lines: Iterable[str]) -> None:
        for line in lines:
            write(f"{line}\n")
        sys.stdout.flush()


def _write_case(trajectory: Trajectory, file: SuiteFile, program: Program) -> int:
    table = case_of_conversation(trajectory)
    if table is None:
        warn("nothing was answered, so no case is kept")
        return OK
    try:
        clean = table_without_secrets(table, {}, program.secrets)
        made = with_new_cases(Document.of(file.text), [clean], "")
        after = made.document.text
        if broken := parse_suite(after, file.path).errors:
            raise ValueError(str(broken[0]))
        save_file(file.path, after, FileState(file.hash))
    except (ValueError, SavingError) as error:
        warn(f"the conversation is not kept: {redacted(str(error))}")
        return INFRASTRUCTURE
    answered = sum(1 for _ in _answered_turns(trajectory))
    turns, calls = counted(answered, "message"), counted(len(trajectory.calls), "call")
    write(f"kept {turns} with {calls} as the case {clean['name']!r} in {file.path.name}: check what it expects\n")
    return OK


def case_of_conversation(trajectory: Trajectory) -> Table | None:
    """Return a case whose script repeats the user's messages.

    The case expects the calls that followed each message. Results of servers become mocks. Returns `None` if no message
    was answered."""
    case: Table = {}
    messages: list[Table] = []
    for message_text, rounds in _answered_turns(trajectory):
        message: Table = {"say": message_text}
        for round_ in rounds:
            for call in round_.calls_to_answer:
                message = case_with_expected_call(message, call.tool, call.arguments)
                if call.result is not None and call.result.source == "server":
                    answer = ToolAnswer(call.result.content, call.result.is_error)
                    case = case_with_mock(case, call.tool, call.arguments, answer)
        messages.append(message)
    if not messages:
        return None
    name = shortened(str(messages[0]["say"]), _NAME_CELLS)
    user: Table = {"messages": messages}
    if len(messages) >= 10:
        user["max_turns"] = len(messages) + 1
    new_case: Table = {"name": name, "user": user, **case}
    if not any("ordered" in message for message in messages):
        new_case["expect_no_calls"] = True
    return new_case


def _answered_turns(trajectory: Trajectory) -> Iterator[tuple[str, list[Round]]]:
    for turn in trajectory.user_turns:
        rounds = [round_ for round_ in trajectory.rounds if round_.turn == turn.number]
        if turn.said is not None and any(round_.stop_reason for round_ in rounds):
            yield turn.said.text, rounds
