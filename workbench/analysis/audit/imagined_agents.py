"""Imagined agents: three without understanding, one that does exactly as a case expects, and its mutants.

The calls of an agent become the trajectory of a run, so the graders themselves decide whether the run passes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, pairwise
from typing import Literal

from workbench.analysis.audit.contradictions import ToolTable, Weight, parameter_schema
from workbench.analysis.audit.vacuous_checks import (
    accepted_value,
    all_arguments,
    candidates_of,
    few_other_values,
    other_values,
    required_arguments,
    value_that_meets,
)
from workbench.checks.check import (
    ANY_TEXT,
    AUDIT_CONTEXT,
    Check,
    Checks,
    CheckVerdict,
    NeverHoldsError,
    UnknownSampleError,
)
from workbench.checks.patterns import CheckError
from workbench.checks.value_kinds import Present
from workbench.checks.values import json_equal
from workbench.dataclasses import dataclass
from workbench.grading.extra_call_rule import ExtraCallRule
from workbench.grading.final import ReadOnlyTools
from workbench.suite.expected_calls import ANY_TOOL, AnyOrder, DisallowedCall, ExpectedCall
from workbench.suite.model import Case
from workbench.suite.problems import Place, quoted
from workbench.suite.render import key_text
from workbench.trajectory.events import JsonValue, ResultReceived, RunFinished, RunStarted, ToolCall, ToolDefinition
from workbench.trajectory.json_schema import Schema, properties_of
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

MadeCall = tuple[str, Mapping[str, JsonValue]]
"""A call: the tool and its arguments."""

ACCEPT_ALL_CONTEXT = replace(
    AUDIT_CONTEXT,
    call_python=lambda _reference, _value: True,
    judge=lambda _check, _value: CheckVerdict(1.0, True),
)
"""A judge and Python functions that accept everything. A run that fails with them fails with all others too."""

REFUSE_ALL_CONTEXT = replace(
    AUDIT_CONTEXT,
    call_python=lambda _reference, _value: False,
    judge=lambda _check, _value: CheckVerdict(0.0, False),
)
"""A judge and Python functions that refuse everything. A run that passes with them passes with all others too."""


@dataclass(frozen=True, slots=True)
class ImaginedAgent:
    """An agent that exists only in the audit, with a description and its run of a case."""

    description: str
    run: Trajectory


def careless_agents(case: Case, table: ToolTable) -> tuple[ImaginedAgent, ...]:
    """Return agents that understand nothing. A case is too lenient if such an agent passes it."""
    request = _request(case)
    every = [(tool.name, all_arguments(tool.parameters)) for tool in table.offered(case.offer)]
    tools = _without_unmet_schemas(table, case, every)
    # A case with steps has a round for each step.
    rounds = max(len(case.steps), 1)
    silent: list[list[MadeCall]] = [[]] * rounds
    return (
        ImaginedAgent("an agent that neither calls nor says anything", _run(tools, silent, "")),
        ImaginedAgent("an agent that only repeats the request", _run(tools, silent, request)),
        ImaginedAgent(
            "an agent that calls every tool once and repeats the request", _run(tools, [every] * rounds, request)
        ),
    )


@dataclass(frozen=True, slots=True)
class CallStrategy:
    """One way to meet a case's expectations.

    `name` describes the agent in messages. `alternative` is the index of the alternative to call. With `optional`,
    optional calls are made. With `most`, each call is made as often as `times` allows, but at most two times more than
    without `most`."""

    name: str = "that does exactly what is expected"
    alternative: int = 0
    optional: bool = True
    most: bool = False

    def times(self, call: ExpectedCall) -> int:
        """Return the number of times that the agent makes an expected call."""
        usual = max(call.fewest, 1)
        if self.most:
            return int(min(call.most, usual + 2))
        return usual if self.optional else call.fewest


DEFAULT_STRATEGY = CallStrategy()


def other_strategies(case: Case) -> Iterator[CallStrategy]:
    """Yield the strategies other than the default.

    One strategy calls each further alternative of `any_of`, one makes no optional calls, and one makes as many calls as
    `times` allows."""
    expected = case.expected_calls()
    for number in range(1, max((len(call.any_of) for call in expected), default=0)):
        yield CallStrategy(f"that calls alternative {number + 1} of `any_of`", alternative=number)
    if any(call.fewest == 0 for call in expected):
        yield CallStrategy("that makes no optional call", optional=False)
    if any(call.times is not None and call.most > call.fewest for call in expected):
        yield CallStrategy("that makes as many calls as `times` allows", most=True)


@dataclass(frozen=True, slots=True)
class _PlacedCall:
    """An expected call and where it stands: its place in the case, and the round and index of the agent's call.

    `original` is the expected call as written. `call` is the alternative that the agent called, with checks that the
    agent meets."""

    place: Place
    call: ExpectedCall
    original: ExpectedCall
    round: int
    index: int


@dataclass(frozen=True, slots=True)
class ExactAgent:
    """An agent that does exactly as a case expects.

    `case` is the case that grades the agent. In it, `present` replaces each check for which no value could be
    constructed. `calls` are the agent's calls by round, in the order of the case. `placed_calls` holds the expectation
    behind each call."""

    case: Case
    tools: tuple[ToolDefinition, ...]
    calls: tuple[tuple[MadeCall, ...], ...]
    answer: str
    placed_calls: tuple[_PlacedCall, ...]

    def run(self, calls: Iterable[Sequence[MadeCall]] | None = None) -> Trajectory:
        """Return the run of the agent, with its own calls or with the given calls."""
        return _run(self.tools, self.calls if calls is None else calls, self.answer)


def exact_agent(case: Case, table: ToolTable, max_rounds: int, strategy: CallStrategy) -> ExactAgent:
    """Return an agent that meets the expectations of a case in one way.

    Raises NeverHoldsError if no value meets some check."""
    rounds: list[list[MadeCall]] = []
    found: list[_PlacedCall] = []
    if case.steps:
        steps = []
        for number, each in enumerate(case.steps):
            of_step: list[MadeCall] = []
            steps.append(each)
            if (expected := each.expected_call) is not None:
                met = _with_values(expected, ("steps", number), of_step, found, case, table, strategy, number)
                keys = ("args", "any_of", "result", "is_error")
                steps[-1] = each.model_copy(update={key: getattr(met, key) for key in keys})
            rounds.append(of_step)
        case = case.model_copy(update={"steps": tuple(steps)})
    else:
        made: list[MadeCall] = []
        lists: dict[str, object] = {}
        for key, items in (("ordered", case.ordered), ("unordered", case.unordered)):
            written: list[ExpectedCall | AnyOrder] = []
            for number, item in enumerate(items):
                if isinstance(item, AnyOrder):
                    inner = []
                    for at, call in enumerate(item.any_order):
                        place = (key, number, "any_order", at)
                        inner.append(_with_values(call, place, made, found, case, table, strategy))
                    written.append(item.model_copy(update={"any_order": tuple(inner)}))
                else:
                    written.append(_with_values(item, (key, number), made, found, case, table, strategy))
            lists[key] = tuple(written)
        case = case.model_copy(update=lists)
        case, found = _with_conditions(case, made, found, table)
        rounds.append(made)
    case = _with_changes(case, rounds, found, table)
    case, answer = _answer(case)
    # A run of one round ends with its calls. The model has no round for an answer.
    if max_rounds == 1 and not case.steps and any(rounds):
        answer = ""
    tools = _without_unmet_schemas(table, case, chain.from_iterable(rounds))
    return ExactAgent(case, tools, tuple(map(tuple, rounds)), answer, tuple(found))


def _with_conditions(
    case: Case, calls: list[MadeCall], placed_calls: list[_PlacedCall], table: ToolTable
) -> tuple[Case, list[_PlacedCall]]:
    """Return a case whose prohibitions the agent can obey, and the agent's calls at their new places.

    If an unexpected call must precede one of the agent's calls, the agent makes it first."""
    prohibitions, first = [], list[MadeCall]()
    for call in case.disallowed:
        # Results of imagined calls are unknown, so only the order of the calls is checked.
        others = {key: other.model_copy(update={"result": None, "is_error": None}) for key, other in call.conditions}
        prohibitions.append(call.model_copy(update=others))
        before = prohibitions[-1].before
        if before is None or not any(_meets(call, each) for each in calls):
            continue
        if _first_that_meets(before, (*first, *calls)) is None:
            wanted = before.alternatives[0]
            name = _tool_of(wanted.tool, table.offered(case.offer))
            first.append((name, _values(wanted.args, table.find(name), table)[1]))
    calls[:0] = first
    placed = [replace(each, index=each.index + len(first)) for each in placed_calls]
    return case.model_copy(update={"disallowed": tuple(prohibitions)}), _in_allowed_order(prohibitions, calls, placed)


def _first_that_meets(expected: ExpectedCall, calls: Sequence[MadeCall]) -> int | None:
    for index, each in enumerate(calls):
        if any(_meets(alternative, each) for alternative in expected.alternatives):
            return index
    return None


def _in_allowed_order(
    prohibitions: Sequence[DisallowedCall], calls: list[MadeCall], placed_calls: Sequence[_PlacedCall]
) -> list[_PlacedCall]:
    """Reorder `calls` so that no prohibition's `before` or `after` is broken. Return the moved calls."""
    unordered = {each.index for each in placed_calls if each.place[0] == "unordered"}
    order = list(range(len(calls)))
    # A move may break another order, so several rounds may be needed. Contradictory orders would need endless rounds.
    for _ in calls:
        moves = 0
        for early, late in _orders(prohibitions, calls):
            at, late_at = order.index(early), order.index(late)
            if at > late_at and early in unordered:
                order.insert(late_at, order.pop(at))
                moves += 1
            elif at > late_at and late in unordered:
                order.insert(at, order.pop(late_at))
                moves += 1
        if not moves:
            break
    calls[:] = [calls[index] for index in order]
    return [replace(each, index=order.index(each.index)) for each in placed_calls]


def _orders(prohibitions: Sequence[DisallowedCall], calls: Sequence[MadeCall]) -> Iterator[tuple[int, int]]:
    """Yield pairs of indices in `calls`. The first call of a pair must precede the second."""
    for prohibition in prohibitions:
        for key, other in prohibition.conditions:
            first = _first_that_meets(other, calls)
            for index, each in enumerate(calls):
                if first is not None and index != first and _meets(prohibition, each):
                    yield (first, index) if key == "before" else (index, first)


def _with_changes(case: Case, rounds: list[list[MadeCall]], placed_calls: list[_PlacedCall], table: ToolTable) -> Case:
    """Return a case with conditions in `final` that the agent can meet.

    If the case has no expected calls, the expected changes become the agent's calls. Checks of the final state are
    dropped because an imagined run has no state. If the agent's calls do not make exactly the expected changes, all of
    `final` is dropped."""
    if case.final is None:
        return case
    changes = case.final.changes
    final = None
    if changes is not None and not case.expects_calls_or_none:
        made: list[MadeCall] = []
        meetable = []
        for number, change in enumerate(changes):
            meetable.append(_with_values(change, ("final", "changes", number), made, placed_calls, case, table))
        rounds[-1] += made
        final = case.final.model_copy(update={"changes": tuple(meetable), "state": ()})
    elif changes is not None and _are_made(changes, case, list(chain.from_iterable(rounds)), table):
        final = case.final.model_copy(update={"state": ()})
    return case.model_copy(update={"final": final})


def _are_made(changes: Sequence[ExpectedCall], case: Case, calls: list[MadeCall], table: ToolTable) -> bool:
    assert case.final is not None
    readers = ReadOnlyTools(case.final.readers, table.tools)
    left = [call for call in calls if not readers.has(call[0])]
    for change in changes:
        found = next((call for call in left if _meets(change, call)), None)
        if found is None:
            return False
        left.remove(found)
    return not left


def _without_unmet_schemas(table: ToolTable, case: Case, calls: Iterable[MadeCall]) -> tuple[ToolDefinition, ...]:
    """Return the offered tools. A tool whose schema refuses the arguments of its calls is returned without a schema.

    Valid arguments may exist although none were found, so such a schema must not fail the run."""
    unmet: set[str] = set()
    for name, arguments in calls:
        tool = table.find(name)
        if tool is not None and not table.allows(tool, arguments):
            unmet.add(tool.name)
    tools = []
    for tool in table.offered(case.offer):
        if tool.name in unmet:
            tool = ToolDefinition(tool.name, tool.description, {}, tool.annotations, tool.server)
        tools.append(tool)
    return tuple(tools)


def _with_values(
    call: ExpectedCall,
    place: Place,
    placed: list[MadeCall],
    placed_calls: list[_PlacedCall],
    case: Case,
    table: ToolTable,
    strategy: CallStrategy = DEFAULT_STRATEGY,
    round_index: int = 0,
) -> ExpectedCall:
    """Return an expected call with checks that the agent can meet.

    Append the agent's calls to `placed` and `placed_calls`. `strategy` is the agent's strategy."""
    # Results of imagined calls are unknown, so they are not graded.
    unknown = {"result": None, "is_error": None}
    chosen = min(strategy.alternative, len(call.alternatives) - 1)
    meetable = []
    calls: list[MadeCall] = []
    for alternative in call.alternatives:
        name = _tool_of(alternative.tool, table.offered(case.offer))
        checks, arguments = _values(alternative.args, table.find(name), table)
        meetable.append(alternative.model_copy(update={"args": checks, **unknown}))
        calls.append((name, arguments))
    if call.any_of:
        met = call.model_copy(update={"any_of": tuple(meetable), **unknown})
        place = (*place, "any_of", chosen)
    else:
        met = meetable[0]
    for _ in range(strategy.times(call)):
        placed_calls.append(_PlacedCall(place, meetable[chosen], met, round_index, len(placed)))
        placed.append(calls[chosen])
    return met


def _tool_of(name: str, tools: Sequence[ToolDefinition]) -> str:
    # If any tool will do, the last tool offered is the least likely to be expected elsewhere in the case.
    return tools[-1].name if name == ANY_TOOL and tools else name


def _values(
    checks: Checks | None, tool: ToolDefinition | None, table: ToolTable
) -> tuple[Checks | None, dict[str, JsonValue]]:
    """Return checks that the agent can meet, and arguments that meet these checks and the tool's schema.

    `present` replaces each check for which no value could be constructed."""
    needed: dict[str, JsonValue] = {}
    # An empty table of checks expects no arguments at all.
    if tool is not None and checks != {}:
        needed = required_arguments(tool.parameters)
    if checks is None:
        return None, needed
    meetable: Checks = {}
    arguments: dict[str, JsonValue] = {}
    for name, check in checks.items():
        if check.forbids:
            meetable[name] = check
        else:
            meetable[name], arguments[name] = _argument(check, name, tool, table)
    for name, value in needed.items():
        arguments.setdefault(name, value)
    return meetable, arguments


def _argument(check: Check, name: str, tool: ToolDefinition | None, table: ToolTable) -> tuple[Check, JsonValue]:
    """Return a check, and a value that meets the check and the tool's schema.

    If no such value is found, `present` replaces the check, unless the check lists its values."""
    schema = parameter_schema(tool, name) if tool is not None else None
    if tool is None or schema is None:
        return _value(check)
    if check.accepts_all:
        return check, accepted_value(schema, tool.parameters)
    samples = check.known_samples()
    for value in samples:
        if table.refusal(tool, name, value) is None:
            return check, value
    # The schema refuses all listed values. Another finding reports this.
    if check.listed is not None:
        return check, samples[0]
    try:
        for value in islice(chain(_assembled(check, schema, tool), candidates_of(schema, tool.parameters)), _MAX_TRIED):
            if check.holds(value) and table.refusal(tool, name, value) is None:
                return check, value
    except (CheckError, UnknownSampleError):
        # The values accepted by a judge or a Python function are unknown.
        pass
    return _present(check), accepted_value(schema, tool.parameters)


def _assembled(check: Check, schema: Schema, tool: ToolDefinition) -> Iterator[JsonValue]:
    """Yield a value for a check of fields or elements, or nothing if no value can be constructed."""
    try:
        yield value_that_meets(check, schema, tool.parameters)
    except (NeverHoldsError, UnknownSampleError):
        return


_MAX_TRIED = 60
"""The most values tried for one argument."""


def _present(check: Check) -> Present:
    return Present(present=True, weight=check.weight, optional=check.optional, required=check.required)


def _value(check: Check) -> tuple[Check, JsonValue]:
    if check.accepts_all:
        return check, ANY_TEXT
    try:
        return check, check.samples()[0]
    except UnknownSampleError:
        return _present(check), ANY_TEXT


def _answer(case: Case) -> tuple[Case, str]:
    """Return a case with an answer check that can be met, and an answer that meets it and contains all keywords."""
    words = " ".join(case.response_contains)
    if case.response is None:
        return case, words or ANY_TEXT
    # A text that meets one named check may fail the others, so none of them is graded.
    if isinstance(case.response, dict):
        return case.model_copy(update={"response": None}), words or ANY_TEXT
    check, value = _value(case.response)
    case = case.model_copy(update={"response": check})
    text = value if isinstance(value, str) else str(value)
    lacking = case.missing_keywords(text)
    return case, check.with_words(text, lacking) if lacking else text


def _request(case: Case) -> str:
    return case.opening_text or " ".join(step.user for step in case.steps if step.user) or ANY_TEXT


def _run(tools: Sequence[ToolDefinition], call_rounds: Iterable[Sequence[MadeCall]], answer: str) -> Trajectory:
    """Return the trajectory of a run. Each item of `call_rounds` is a round of calls. A last round holds the answer."""
    rounds: list[Round] = []
    for number, calls in enumerate(call_rounds, 1):
        records = []
        for index, (tool, arguments) in enumerate(calls):
            call_id = f"call-{number}-{index}"
            done = ResultReceived(call_id, "", False, "reported", 0.0)
            records.append(CallRecord(ToolCall(call_id, tool, arguments), number, result=done))
        stop_reason: Literal["tool calls", "answered"] = "tool calls" if records else "answered"
        rounds.append(Round(number, calls=tuple(records), stop_reason=stop_reason))
    rounds.append(Round(len(rounds) + 1, text=answer, stop_reason="answered", latency_ms=0.0))
    start = RunStarted("", "", "", "imagined", None, (), tuple(tools))
    return Trajectory("audit", start, tuple(rounds), RunFinished("answered"))


# The harm of a wrong call, by tool and argument. An audit shows the most harmful mutants first.

# Without `fmt: off`, the formatter would write one word per line.
# fmt: off
_HARMFUL_WORDS = frozenset((
    "approve", "ban", "block", "book", "buy", "cancel", "charge", "close", "delete", "deploy", "destroy",
    "disable", "drop", "email", "erase", "execute", "grant", "invite", "kill", "merge", "order", "pay", "payment",
    "post", "publish", "purchase", "purge", "reboot", "refund", "remove", "reset", "revoke", "run", "sell", "send",
    "shutdown", "submit", "terminate", "trade", "transfer", "unlock", "wipe", "withdraw",
))
_READING_WORDS = frozenset((
    "check", "count", "describe", "fetch", "find", "get", "list", "look", "lookup", "query", "read", "search",
    "show", "view",
))
_HARMFUL_ARGUMENTS = frozenset((
    "account", "all", "amount", "bcc", "cc", "confirm", "confirmed", "delete", "dry_run", "dryrun", "force",
    "notify", "overwrite", "permanent", "preview", "price", "quantity", "recipient", "recipients", "recursive",
    "simulate", "skip_checks", "target", "test_mode", "to", "total",
))
# fmt: on

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def harm_rank(tool: ToolDefinition) -> int:
    """Return how harmful a wrong call of a tool is: 2 if it cannot be undone, 0 if it only reads, otherwise 1."""
    if tool.annotations.get("readOnlyHint") is True:
        return 0
    if tool.annotations.get("destructiveHint") is True:
        return 2
    words = [word.lower() for word in _WORD.findall(tool.name)]
    if words and words[0] in _READING_WORDS:
        return 0
    return 2 if _HARMFUL_WORDS.intersection(words) else 1


def is_harmful_argument(name: str) -> bool:
    """Return whether a wrong value of an argument with this name is usually harmful: `dry_run`, `amount`, `to`."""
    return name.lower().replace("-", "_") in _HARMFUL_ARGUMENTS


# Mutants of the exact agent, each with one change. A mutant that still passes shows a gap in the checks of a case.

CallsByRound = tuple[tuple[MadeCall, ...], ...]
"""The calls of an agent, in a tuple for each round."""


MutantChange = Literal[
    "wrong", "left out", "swapped", "added", "twice", "once too often", "in two answers", "too early", "too late"
]


@dataclass(frozen=True, slots=True)
class MutatedAgent:
    """An `ExactAgent` with one change to its calls.

    `changed_part` names the changed part, such as `"to"`, and `change` says how it changed, such as `wrong`. `place` is
    the changed expectation's place in the case. `calls` are all calls, by round."""

    changed_part: str
    change: Literal[
        "wrong", "left out", "swapped", "added", "twice", "once too often", "in two answers", "too early", "too late"
    ]
    place: Place
    weight: Weight
    calls: CallsByRound


def mutated_agents(agent: ExactAgent, table: ToolTable, rule: ExtraCallRule) -> Iterator[MutatedAgent]:
    """Yield all mutants of an agent, such as one with a changed call, another order, or a further call."""
    written = agent.placed_calls
    for each in written:
        yield from _with_other_arguments(agent, each, table.find(_made_by(agent, each)), table)
    yield from _with_other_order(agent)
    yield from _too_often(agent)
    yield from _split(agent)
    yield from _against_conditions(agent)
    yield from _without_change(agent)
    yield from _with_further_call(agent, table, rule)
    for each in written:
        tool = table.find(_made_by(agent, each))
        if tool is not None:
            yield from _with_further_argument(agent, each, tool)


def _made_by(agent: ExactAgent, written: _PlacedCall) -> str:
    return agent.calls[written.round][written.index][0]


def _with_other_arguments(
    agent: ExactAgent, written: _PlacedCall, tool: ToolDefinition | None, table: ToolTable
) -> Iterator[MutatedAgent]:
    checks = written.call.args or {}
    _, made = agent.calls[written.round][written.index]
    dropped = [name for name, check in checks.items() if _must_be_given(check, name, tool)]
    for name in dropped:
        remaining = dict(made)
        remaining.pop(name, None)
        yield _changed(agent, written, remaining, quoted(name), "left out")
    if len(dropped) > 1:
        yield _changed(agent, written, {}, "all arguments", "left out")
    for name, check in checks.items():
        other = _other_value(check, name, tool, table)
        if other:
            yield _changed(agent, written, {**made, name: other[0]}, quoted(name), "wrong")
        yield from _with_other_parts(agent, written, check, name, tool, table)


def _with_other_parts(
    agent: ExactAgent, written: _PlacedCall, check: Check, name: str, tool: ToolDefinition | None, table: ToolTable
) -> Iterator[MutatedAgent]:
    _, made = agent.calls[written.round][written.index]
    schema = (parameter_schema(tool, name) if tool is not None else None) or {}
    seen: set[str] = set()
    try:
        for value in check.near_misses(made.get(name), schema, few_other_values):
            where = f"{name}{_first_difference(made.get(name), value)}"
            if (
                where in seen
                or check.holds(value)
                or (tool is not None and table.refusal(tool, name, value) is not None)
            ):
                continue
            seen.add(where)
            yield _changed(agent, written, {**made, name: value}, quoted(where), "wrong")
            if len(seen) == _MAX_OF_ARGUMENT:
                return
    except (CheckError, UnknownSampleError):
        # The values refused by a judge or a Python function are unknown.
        return


_MAX_OF_ARGUMENT = 8
"""The most mutants with one part of an argument changed."""


def _first_difference(value: JsonValue, other_value: JsonValue) -> str:
    """Return the path to the first place where two values differ, or an empty text if they differ as a whole."""
    if isinstance(value, dict) and isinstance(other_value, dict):
        for key in (*value, *other_value):
            if key not in value or key not in other_value:
                return f".{key_text(key)}"
            if not json_equal(value[key], other_value[key]):
                return f".{key_text(key)}{_first_difference(value[key], other_value[key])}"
    if isinstance(value, list) and isinstance(other_value, list):
        for number, (left, right) in enumerate(zip(value, other_value, strict=False)):
            if not json_equal(left, right):
                return f"[{number}]{_first_difference(left, right)}"
        if len(value) != len(other_value):
            return f"[{min(len(value), len(other_value))}]"
    return ""


def _must_be_given(check: Check, name: str, tool: ToolDefinition | None) -> bool:
    """Return whether a call without the argument differs from an expected call."""
    if check.if_missing.holds or check.expects_null:
        return False
    schema = parameter_schema(tool, name) if tool is not None else None
    if schema is None or "default" not in schema or check.accepts_all:
        return True
    # Without the argument, the tool uses a default. This default may be an expected value.
    try:
        return not check.holds(schema["default"])
    except CheckError:
        return True


def _other_value(check: Check, name: str, tool: ToolDefinition | None, table: ToolTable) -> tuple[JsonValue, ...]:
    """Return a tuple with a value that the schema allows and the check refuses, or `()` if there is no such value."""
    if check.accepts_all:
        return ()
    schema = (parameter_schema(tool, name) if tool is not None else None) or {}
    try:
        for value in other_values(check, schema):
            if tool is None or table.refusal(tool, name, value) is None:
                return (value,)
    except CheckError:
        # The values refused by a judge or a Python function are unknown.
        pass
    return ()


def _with_other_order(agent: ExactAgent) -> Iterator[MutatedAgent]:
    for first, second in pairwise(agent.placed_calls):
        if (first.place[0], second.place[0]) != ("ordered", "ordered") or first.place[1] == second.place[1]:
            continue
        calls = list(agent.calls[0])
        one, other = calls[first.index], calls[second.index]
        # If each call meets the other's expectation, swapping the calls does no harm.
        if _meets(first.call, other) and _meets(second.call, one):
            continue
        calls[first.index], calls[second.index] = other, one
        what = f"the calls of {quoted(one[0])} and {quoted(other[0])}"
        yield MutatedAgent(what, "swapped", ("ordered",), "warning", (tuple(calls),))


def _too_often(agent: ExactAgent) -> Iterator[MutatedAgent]:
    for number, each in enumerate(agent.placed_calls):
        is_last = number + 1 == len(agent.placed_calls) or agent.placed_calls[number + 1].original is not each.original
        if each.original.times is None or math.isinf(each.original.most) or not is_last:
            continue
        made = sum(other.original is each.original for other in agent.placed_calls)
        calls = list(agent.calls[0])
        calls[each.index : each.index] = [calls[each.index]] * (int(each.original.most) + 1 - made)
        yield MutatedAgent(quoted(_made_by(agent, each)), "once too often", each.place, "warning", (tuple(calls),))


def _split(agent: ExactAgent) -> Iterator[MutatedAgent]:
    for first, second in pairwise(agent.placed_calls):
        key, number = first.place[:2]
        if "any_order" not in first.place or first.place[:2] != second.place[:2]:
            continue
        group = (agent.case.ordered if key == "ordered" else agent.case.unordered)[int(number)]
        begins = first.place[:4] == (key, number, "any_order", 0) and second.original is not first.original
        if isinstance(group, AnyOrder) and group.parallel and begins and first.index < second.index:
            calls = agent.calls[0]
            answers = calls[: second.index], calls[second.index :]
            yield MutatedAgent("the calls of a parallel group", "in two answers", first.place[:2], "warning", answers)


def _against_conditions(agent: ExactAgent) -> Iterator[MutatedAgent]:
    # A case with steps forbids no calls, so only the calls of the first round matter.
    calls = agent.calls[0]
    for number, prohibition in enumerate(agent.case.disallowed):
        for key, other in prohibition.conditions:
            first = _first_that_meets(other, calls)
            forbidden = (at for at, made in enumerate(calls) if at != first and _meets(prohibition, made))
            at = next(forbidden, None)
            if first is None or at is None:
                continue
            moved = list(calls)
            moved.insert(first, moved.pop(at))
            how: MutantChange = "too early" if key == "before" else "too late"
            what = f"the call of {quoted(calls[at][0])}"
            yield MutatedAgent(what, how, ("disallowed", number), "warning", (tuple(moved),))


def _without_change(agent: ExactAgent) -> Iterator[MutatedAgent]:
    if agent.case.final is None or agent.case.final.changes is None:
        return
    *before, last = agent.calls
    for number, change in enumerate(agent.case.final.changes):
        at = _first_that_meets(change, last)
        if at is not None:
            what = f"the change of {quoted(last[at][0])}"
            yield MutatedAgent(
                what, "left out", ("final", "changes", number), "warning", (*before, (*last[:at], *last[at + 1 :]))
            )


def _meets(expected: ExpectedCall, call: MadeCall) -> bool:
    tool, arguments = call
    if (
        not expected.may_be_call_of(tool)
        or (expected.args == {} and arguments)
        or expected.disallowed_arguments(arguments)
    ):
        return False
    try:
        for name, check in (expected.args or {}).items():
            if name not in arguments:
                if not check.if_missing.holds:
                    return False
            elif not check.accepts_all and not check.holds(arguments[name]):
                return False
    except CheckError:
        return False
    return True


def _with_further_call(agent: ExactAgent, table: ToolTable, rule: ExtraCallRule) -> Iterator[MutatedAgent]:
    """Yield mutants with one more call at the end.

    The call is the most harmful call of a tool that the case does not name, or the most harmful expected call a second
    time. A mutant with a call that cannot be undone causes a warning. Tools that the case allows as extra calls are
    left out."""
    named = set()
    for _, call in agent.case.written_calls():
        if call.tool is not None and (tool := table.find(call.tool)) is not None:
            named.add(tool.name)
    *before, last = agent.calls or ((),)
    # An explicit `times` already limits the number of calls.
    limited = {(each.round, each.index) for each in agent.placed_calls if each.original.times is not None}
    made = []
    for index, made_call in enumerate(last):
        if (len(before), index) not in limited and (tool := table.find(made_call[0])) is not None:
            made.append((made_call, tool))
    twice = max(made, key=lambda each: harm_rank(each[1]), default=None)
    others = [tool for tool in agent.tools if tool.name not in named and not rule.is_free_tool(tool.name)]
    if others:
        other = max(others, key=harm_rank)
        added: MadeCall = (other.name, required_arguments(other.parameters))
        weight = _weight(harm_rank(other) == 2)
        yield MutatedAgent(f"a call of {quoted(other.name)}", "added", (), weight, (*before, (*last, added)))
    forbids_twice = agent.case.duplicate_calls == "forbid"
    if twice is not None and (not others or forbids_twice or harm_rank(twice[1]) == 2):
        again, tool = twice
        weight = _weight(harm_rank(tool) == 2)
        yield MutatedAgent(f"the call of {quoted(again[0])}", "twice", (), weight, (*before, (*last, again)))


def _weight(is_harmful: bool) -> Weight:
    return "warning" if is_harmful else "note"


def _with_further_argument(agent: ExactAgent, written: _PlacedCall, tool: ToolDefinition) -> Iterator[MutatedAgent]:
    """Yield a mutant with one more argument, preferably a harmful argument, whose value is not the default."""
    if written.call.args is None:
        return
    _, made = agent.calls[written.round][written.index]
    named = {*made, *written.call.forbidden_args}
    for name in sorted(properties_of(tool.parameters), key=is_harmful_argument, reverse=True):
        schema = dict(parameter_schema(tool, name) or {})
        default = schema.pop("default", None)
        value = accepted_value(schema, tool.parameters)
        if name not in named and value != default:
            weight = _weight(is_harmful_argument(name) and harm_rank(tool) > 0)
            yield _changed(agent, written, {**made, name: value}, quoted(name), "added", weight)
            return


def _changed(
    agent: ExactAgent,
    written: _PlacedCall,
    arguments: Mapping[str, JsonValue],
    description: str,
    change: Literal["wrong", "left out", "added"],
    weight: Weight = "warning",
) -> MutatedAgent:
    calls = [list(made) for made in agent.calls]
    calls[written.round][written.index] = (calls[written.round][written.index][0], arguments)
    return MutatedAgent(description, change, written.place, weight, tuple(map(tuple, calls)))
