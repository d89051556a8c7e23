"""Quick add: the user types requests, and accepts the calls of their runs. Each request becomes a case.

Nothing here depends on a screen. `QuickAdd` is the input line and the queue of requests. `Question` asks the user
whether to accept the calls of a request."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Final, Literal, get_args

from workbench.authoring.accept import RunToAccept, proposal_for_all, unmet_reason_of_table
from workbench.authoring.case_list import free_id
from workbench.authoring.document import Document
from workbench.authoring.form.cells import value_text, with_text
from workbench.authoring.form.field_text import CellError, read_value, without_keys
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.proposal import (
    LEAVE_OUT,
    AcceptedArgument,
    AcceptedCall,
    AcceptError,
    CheckChoice,
    Proposal,
)
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.limits import MAX_FIELD_CHARS
from workbench.suite.model import Case, Suite, derived_id
from workbench.suite.problems import did_you_mean
from workbench.suite.render import Table
from workbench.suite.suite_file import SuiteFile, parse_suite
from workbench.suite.suite_text import SpliceError
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.trajectory import Trajectory

RequestKind = Literal["calls expected", "no call", "chain", "empty", "conversation"]
"""The kind of a request's case. The case expects the calls of its run, expects no calls, or has the calls as its steps.
An `empty` case expects nothing yet. A `conversation` has a scripted user, whose first message is the request. Cases of
the last two kinds are not run."""

KINDS: tuple[RequestKind, ...] = get_args(RequestKind)

UNRUN_KINDS: frozenset[RequestKind] = frozenset({"empty", "conversation"})
"""The kinds whose cases are added at once, without a run."""

LAST_MESSAGE: Final = "Thank you, that is all."
"""The message with which the user of a new conversation leaves, until the script is edited."""

MAX_WAITING_ITEMS: Final = 3
"""The maximum number of waiting requests. Users would forget further requests before the results come."""

MAX_RECENT_ITEMS: Final = 20
"""The number of remembered requests. A key can bring back a skipped request."""

MAX_NAME_CELLS: Final = 60
"""The maximum length of a case's name that comes from its request."""


def name_of(request: str, taken: Collection[str] = ()) -> str:
    """Return a name for the case of a request: its first line, cut after a word.

    A number is added if the name is `taken`.

    >>> name_of("Dim the living room.")
    'Dim the living room'"""
    line = next((part.strip() for part in request.splitlines() if part.strip()), "")
    if len(line) > MAX_NAME_CELLS:
        cut = line[: MAX_NAME_CELLS + 1]
        line = cut.rpartition(" ")[0] or cut[:MAX_NAME_CELLS]
    name = re.sub(r"\s+", " ", line).rstrip(" .,;:") or "Request"
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name} {number}"
    return found


@dataclass(eq=False)
class Request:
    """A request that the user typed for a suite. It exists until its case is accepted or skipped.

    `table` is the case without expectations, as it runs. `why` is the reason if the run failed."""

    text: str
    kind: RequestKind
    suite: Path
    table: Table
    state: Literal["waiting", "running", "answered", "failed"] = "waiting"
    run_ids: tuple[str, ...] = ()
    question: Question | None = None
    why: str = ""

    @property
    def name(self) -> str:
        return str(self.table["name"])

    @property
    def case_id(self) -> str:
        return str(self.table.get("id") or derived_id(self.name))

    @property
    def has_ended(self) -> bool:
        """Whether the run of the request has ended. There is then a question or a failure to show."""
        return self.state in ("answered", "failed")


def new_request(text: str, kind: RequestKind, suite: OpenSuite, pending: Iterable[Request]) -> Request:
    """Return a request for a suite. Its case gets a name and an id that no case and no `pending` request has."""
    others = [request for request in pending if request.suite == suite.path]
    names = {outline.name for outline in suite.cases}
    names.update(request.name for request in others)
    ids = {outline.id for outline in suite.cases}
    ids.update(request.case_id for request in others)
    name = name_of(text, names)
    user: JsonValue = text
    if kind == "conversation":
        user = {"messages": [{"say": text}, {"say": LAST_MESSAGE, "end": "done"}]}
    table: Table = {"name": name, "user": user, "expect_nothing_yet": True}
    case_id = free_id(derived_id(name), ids)
    if case_id != derived_id(name):
        table = {"id": case_id, **table}
    return Request(text, kind, suite.path, table)


def suite_to_run(suite: OpenSuite, table: Table) -> SuiteFile | str:
    """Return a copy of the suite that contains only the case to run, or why the open suite cannot run."""
    settings = suite.settings_file
    if settings is None:
        errors = suite.file.errors
        why = f": {errors[0].message}" if errors else ""
        return f"{suite.path.name} has errors{why}"
    document = suite.document
    try:
        if document.in_blocks:
            document = Document.of(document.only(frozenset()))
        file = parse_suite(document.with_new_case(0, table).text, suite.path)
    except SpliceError as error:
        return str(error)
    if file.suite is None:
        return f"{suite.path.name}: {file.errors[0].message}"
    return file


def case_with_request(text: str, suite: OpenSuite) -> str | None:
    """Return the name of a case in the suite that has the same request, or `None` if there is none."""
    if suite.document.parts is None:
        return None
    for outline, table in zip(suite.cases, suite.document.parts.cases, strict=False):
        steps = table.get("steps")
        asked = table.get("user")
        if isinstance(steps, list) and steps and isinstance(steps[0], dict):
            asked = steps[0].get("user")
        match asked:
            case {"messages": [{"say": said}, *_]}:
                asked = said
        if isinstance(asked, str) and asked.strip() == text.strip():
            return outline.name
    return None


@dataclass(frozen=True)
class Question:
    """Asks whether the calls in a request's runs become the expectation of its case.

    `table` is the case that ran, and `runs` are its finished runs. `left_out` are the indices of proposed calls that
    the user excluded. `row` is the index in `rows` that has the focus. `note` explains how the runs of several models
    differ."""

    kind: RequestKind
    suite: Suite
    table: Table
    runs: tuple[RunToAccept, ...]
    proposal: Proposal
    left_out: frozenset[int] = frozenset()
    row: int = 0
    note: str = ""

    @property
    def rows(self) -> tuple[tuple[int, int | None], ...]:
        """The rows that can have the focus, as pairs of the indices of a call and an argument.

        The row of the call itself has `None` as argument. The rows of its arguments follow."""
        rows: list[tuple[int, int | None]] = []
        for number, call in enumerate(self.proposal.calls):
            rows.append((number, None))
            rows += ((number, at) for at in range(len(call.arguments)))
        return tuple(rows)

    @property
    def focus(self) -> tuple[int, int | None] | None:
        """The indices of call and argument in the focused row, or `None` if there is no call."""
        rows = self.rows
        if not rows:
            return None
        return rows[min(self.row, len(rows) - 1)]

    @property
    def kept(self) -> tuple[AcceptedCall, ...]:
        """The calls that become expected."""
        return tuple(call for at, call in enumerate(self.proposal.calls) if at not in self.left_out)

    @property
    def expects_no_call(self) -> bool:
        """Whether the case will expect that no tool is called."""
        return self.kind == "no call" or not self.kept

    @property
    def has_order(self) -> bool:
        """Whether the model made the calls in several answers. The user can then choose whether their order matters."""
        return self.kind != "chain" and len({call.answer for call in self.kept}) > 1

    def is_unordered(self, call: AcceptedCall) -> bool:
        """Return whether a call is expected in any order together with other calls.

        `call` must be one of the kept calls."""
        if self.kind == "chain" or len(self.kept) < 2:
            return False
        return not self.proposal.in_order or replace(self.proposal, calls=self.kept).has_any_order(call)

    @cached_property
    def case(self) -> Table:
        """The case as it will be saved.

        Calls that the user left out are allowed as extra calls if the run would otherwise fail because of them."""
        table = without_keys(self.table, "expect_nothing_yet")
        if self.expects_no_call:
            return {**table, "expect_no_calls": True}
        if self.kind == "chain":
            return self._chain(table)
        expected = replace(self.proposal, calls=self.kept).expectations_in(table)
        if self.left_out and unmet_reason_of_table(self.suite, expected, self.runs) is not None:
            left = dict.fromkeys(self.proposal.calls[at].tool for at in sorted(self.left_out))
            allowed = {**expected, "extra_calls": list(left)}
            if unmet_reason_of_table(self.suite, allowed, self.runs) is None:
                return allowed
        return expected

    def _chain(self, table: Table) -> Table:
        """Return a chain with a step per answer. Each step expects the first call of its answer that is kept."""
        steps: list[Table] = []
        for _, answer in groupby(self.kept, key=lambda call: call.answer):
            steps.append(next(answer).expectation)
        steps[0] = {"user": table["user"], **steps[0]}
        trajectory = self.runs[0].trajectory
        if trajectory.rounds and not trajectory.rounds[-1].calls:
            # If the run ended with an answer without calls, a last step without a tool expects that answer.
            steps.append({})
        return {**without_keys(table, "user"), "steps": steps}

    @cached_property
    def why_not(self) -> str | None:
        """Why one of the runs would fail the case as it will be saved.

        It is `None` if all runs would pass, or if the case is a chain."""
        if self.kind == "chain" and not self.expects_no_call:
            return None
        return unmet_reason_of_table(self.suite, self.case, self.runs)

    def moved(self, step: int) -> Question:
        """Move the focus by `step` rows."""
        return replace(self, row=min(max(self.row + step, 0), max(len(self.rows) - 1, 0)))

    def with_other_check(self, step: int) -> Question:
        """Choose the next (1) or previous (-1) check of the focused argument.

        If the row of a call has the focus, first move it to the call's next argument that has a choice."""
        focus = self.focus
        if focus is None:
            return self
        call, argument = focus
        if argument is None:
            if not self.proposal.calls[call].arguments:
                return self
            return self.moved(1).with_other_check(step)
        return replace(self, proposal=self.proposal.with_other_check(call, argument, step))

    def with_call_left_out(self) -> Question:
        """Leave out the focused call, or expect it again."""
        if self.focus is None:
            return self
        return replace(self, left_out=self.left_out ^ {self.focus[0]})

    def with_other_order(self) -> Question:
        """Switch between expecting the calls in the order of their answers and in any order."""
        return replace(self, proposal=replace(self.proposal, in_order=not self.proposal.in_order))

    @property
    def to_change(self) -> str:
        """The text of the focused row for editing: the value of a check, or the name of a tool."""
        focus = self.focus
        if focus is None:
            return ""
        call = self.proposal.calls[focus[0]]
        if focus[1] is None:
            return call.tool
        argument = call.arguments[focus[1]]
        written = argument.choice.written
        return value_text(argument.value if written is None else written)

    @property
    def name_to_change(self) -> str:
        focus = self.focus
        if focus is None or focus[1] is None:
            return "tool"
        return self.proposal.calls[focus[0]].arguments[focus[1]].name

    def changed(self, text: str, tools: Sequence[ToolDefinition]) -> Question:
        """Replace what the focused row expects by a typed value, or by a typed call such as `set_lights room=kitchen`.

        Raises CellError if the text is not a valid value, or names no tool of `tools`."""
        focus, calls = self.focus, list(self.proposal.calls)
        if focus is None:
            call = _typed_call(text, None, tools)
            proposal = replace(self.proposal, calls=(call,))
            kind: RequestKind = "calls expected" if self.kind == "no call" else self.kind
            return replace(self, kind=kind, proposal=proposal, row=0)
        number, at = focus
        call = calls[number]
        if at is None:
            calls[number] = _typed_call(text, call, tools)
        else:
            calls[number] = _with_typed_value(call, at, text, tools)
        return replace(
            self, proposal=replace(self.proposal, calls=tuple(calls)), left_out=self.left_out.difference({number})
        )


TYPED: Final = "typed"
"""The name of the choice for a typed check."""


def _schemas_of(tool: str, tools: Sequence[ToolDefinition]) -> Mapping[str, object]:
    for each in tools:
        properties = each.parameters.get("properties") if each.name == tool else None
        if isinstance(properties, dict):
            return properties
    return {}


def _with_typed_value(call: AcceptedCall, at: int, text: str, tools: Sequence[ToolDefinition]) -> AcceptedCall:
    argument = call.arguments[at]
    before = argument.value if argument.is_left_out else argument.choice.written
    schema = _schemas_of(call.tool, tools).get(argument.name)
    written = with_text(before, text, schema if isinstance(schema, dict) else None)
    known = tuple(choice for choice in argument.choices if choice.kind != TYPED)
    choices = (CheckChoice(TYPED, written), *known)
    arguments = (*call.arguments[:at], replace(argument, choices=choices, chosen=0), *call.arguments[at + 1 :])
    return replace(call, arguments=arguments)


def _typed_call(text: str, call: AcceptedCall | None, tools: Sequence[ToolDefinition]) -> AcceptedCall:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise CellError(f"a quote is not closed ({error})") from None
    if not words:
        raise CellError("write the name of the tool to call")
    tool, *pairs = words
    names = [each.name for each in tools]
    if names and tool not in names:
        raise CellError(f"there is no tool {tool} here: {did_you_mean(tool, names) or ', '.join(names[:5])}")
    if call is not None and call.tool == tool and not pairs:
        return call
    schemas = _schemas_of(tool, tools)
    arguments: list[AcceptedArgument] = []
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise CellError(f"{pair} is no argument: write name=value")
        if schemas and name not in schemas:
            raise CellError(f"{tool} has no argument {name}: {did_you_mean(name, schemas) or ', '.join(schemas)}")
        schema = schemas.get(name)
        read = read_value(value, schema if isinstance(schema, dict) else None)
        choices = (CheckChoice(TYPED, read), CheckChoice("present", {"present": True}), CheckChoice(LEAVE_OUT))
        arguments.append(AcceptedArgument(name, None, True, choices))
    if not arguments:
        # The tool's arguments that were not typed are listed, but not checked.
        for name in schemas:
            arguments.append(AcceptedArgument(name, None, True, (CheckChoice(LEAVE_OUT),)))
    return AcceptedCall(tool, call.answer if call is not None else 1, tuple(arguments))


def question_for(
    request: Request,
    suite: Suite,
    case: Case,
    trajectories: Sequence[tuple[str, Trajectory]],
    secrets: Secrets,
) -> Question:
    """Return the question about a request's finished runs. `trajectories` has each run with its model's name.

    If no expectation fits all runs, propose the calls of the first run. Raises AcceptError if that is impossible,
    too."""
    runs = tuple(RunToAccept(trajectory) for _, trajectory in trajectories)
    # A case that expects something must not have this key.
    table, note = without_keys(request.table, "expect_nothing_yet"), ""
    try:
        proposal = proposal_for_all(suite, case, table, runs, secrets)
    except AcceptError:
        if len(runs) == 1:
            if request.kind == "no call":
                proposal = Proposal(request.name, (), whole=True)
                return Question(request.kind, suite, request.table, runs, proposal)
            raise
        note = f"the models differ: these are the calls of {trajectories[0][0]}"
        proposal = proposal_for_all(suite, case, table, runs[:1], secrets)
    row = 0
    for number, (_, argument) in enumerate(Question(request.kind, suite, request.table, runs, proposal).rows):
        if argument is not None:
            row = number
            break
    left_out = frozenset[int]()
    if request.kind == "chain":
        left_out = frozenset(_behind_the_first(proposal.calls))
    return Question(request.kind, suite, request.table, runs, proposal, left_out, row, note)


def _behind_the_first(calls: Sequence[AcceptedCall]) -> Iterable[int]:
    """Yield the indices of all calls except the first of each answer. A chain cannot expect them."""
    answers: set[int] = set()
    for number, call in enumerate(calls):
        if call.answer in answers:
            yield number
        answers.add(call.answer)


def calls_shown(question: Question, trajectory: Trajectory) -> dict[int, int]:
    """Map the index of each call in a run to the index of its proposed call.

    If the numbers of calls differ, a call is identified by its tool and its order."""
    found: dict[int, int] = {}
    start = 0
    for number, call in enumerate(question.proposal.calls):
        for at in range(start, len(trajectory.calls)):
            record = trajectory.calls[at]
            if record.tool == call.tool or len(question.proposal.calls) == len(trajectory.calls):
                found[at], start = number, at + 1
                break
    return found


LineState = Literal["ask", "run", "check", "failed", "change"]
"""The purpose of the line: a request, a request while others run, a question, a failure, or a changed expectation."""


@dataclass(eq=False)
class QuickAdd:
    """The input line of quick add, and the queue of requests.

    While the line is empty, the question about the first finished request is shown. Enter, Esc and the arrows then
    answer it, and letters go into the line unless `has_keyboard` is set. While the line has text, finished requests
    wait."""

    text: str = ""
    kind: RequestKind = "calls expected"
    requests: list[Request] = field(default_factory=list)
    recent: list[str] = field(default_factory=list)
    added: int = 0
    is_open: bool = False
    """Whether the question or failure of the first request is shown."""
    has_keyboard: bool = False
    """Whether letters are commands for the question or failure above the line."""
    changing: str | None = None
    """The typed text while the user changes an expectation, otherwise `None`."""
    confirmed: str = ""
    """The request for which Enter was already pressed once, although a case has the same request."""
    _recalled_index: int = -1
    _typed: str = ""

    @property
    def head(self) -> Request | None:
        """The first request of the queue if its run has ended, otherwise `None`.

        Results are shown in the order in which the requests were typed."""
        if self.requests and self.requests[0].has_ended:
            return self.requests[0]
        return None

    @property
    def question(self) -> Question | None:
        """The question that is displayed, if any."""
        if self.head is None or not self.is_open:
            return None
        return self.head.question

    @property
    def state(self) -> LineState:
        if self.changing is not None:
            return "change"
        if self.head is not None and self.is_open:
            return "check" if self.head.state == "answered" else "failed"
        if any(request.state in ("waiting", "running") for request in self.requests):
            return "run"
        return "ask"

    @property
    def running(self) -> Request | None:
        return next((request for request in self.requests if request.state == "running"), None)

    def count(self, *states: str) -> int:
        return sum(request.state in states for request in self.requests)

    @property
    def why_full(self) -> str | None:
        """Why no further request can be queued, or `None` if another request can be queued."""
        if self.count("waiting") < MAX_WAITING_ITEMS:
            return None
        return f"{MAX_WAITING_ITEMS} requests are waiting already, so this one stays in the line"

    def type(self, text: str) -> None:
        """Set the text of the line. If a question is displayed, typing closes it until the line is empty again."""
        if text == self.text:
            return
        if self._recalled_index >= 0 and self._typed.strip():
            # The text that was typed before an earlier request was recalled must not be lost.
            self.remember(self._typed)
        self.text = text[:MAX_FIELD_CHARS]
        self._recalled_index = -1
        self.has_keyboard = False
        if text:
            self.is_open = False

    def next_kind(self) -> None:
        self.kind = KINDS[(KINDS.index(self.kind) + 1) % len(KINDS)]

    def recall(self, step: int) -> bool:
        """Put an earlier (1) or later (-1) request into the line. Return whether there was such a request.

        After the latest request, the line gets the typed text back."""
        at = self._recalled_index + step
        if not -1 <= at < len(self.recent):
            return False
        if self._recalled_index == -1:
            self._typed = self.text
        self._recalled_index = -1
        self.type(self.recent[at] if at >= 0 else self._typed)
        self._recalled_index = at
        return True

    def add(self, request: Request) -> None:
        """Add a request to the queue and empty the line. The kind of the next request is reset to the usual kind."""
        self.requests.append(request)
        self.remember(request.text)
        self.text, self.confirmed, self._recalled_index = "", "", -1
        self.kind = KINDS[0]

    def remember(self, text: str) -> None:
        others = [known for known in self.recent if known != text]
        self.recent = [text, *others][:MAX_RECENT_ITEMS]

    def show_result(self) -> bool:
        """If the line is empty, show the result of the first request. Return whether the result is newly shown."""
        if self.head is None or self.is_open or self.text:
            return False
        self.is_open = True
        return True

    def open(self) -> bool:
        """Show the result of the first finished request, and let letter keys answer it.

        Return whether there is such a result."""
        if self.head is None:
            return False
        self.is_open = self.has_keyboard = True
        return True

    def drop(self) -> Request | None:
        """Remove the first request from the queue if its run has ended, and return it."""
        if self.head is None:
            return None
        self.is_open = self.has_keyboard = False
        self.changing = None
        return self.requests.pop(0)

    def requeue_failed(self) -> None:
        """Put the request whose run failed back into the queue."""
        failed = self.head
        if failed is not None:
            failed.state, failed.why = "waiting", ""
            self.is_open = self.has_keyboard = False

    def replace_question(self, question: Question) -> None:
        if self.head is not None:
            self.head.question = question
