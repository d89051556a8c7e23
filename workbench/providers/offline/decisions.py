"""What to do next in a conversation: which calls to make now, or what to answer."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.providers.offline.arguments import Filled, fill
from workbench.providers.offline.clauses import Clause, clauses_of
from workbench.providers.offline.evidence import Evidence, find_evidence
from workbench.providers.offline.ranking import CALL_THRESHOLD, ToolIndex
from workbench.providers.offline.results import ToolResult
from workbench.trajectory.messages import JsonValue, Message, ToolCall, ToolDefinition

NO_TOOLS = "There are no tools on offer, and the offline model can do nothing but choose among tools."
NOTHING_FITS = "None of the tools on offer fits this request."

_MOST_CALLS = 16
"""In one answer."""
_ABOUT_AS_GOOD = 0.85
"""A tool whose score is this share of the best one's may take its place if the request fills its arguments better."""
_MOST_RECALLED_MESSAGES = 20
_SHOWN_IN_RANKING = 3
_LONGEST_SHOWN_CLAUSE = 60
_SAME_AGAIN = re.compile(r"\s*(?:and|what\s+about|how\s+about)\b", re.I)


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call to make now."""

    tool: str
    arguments: dict[str, JsonValue]

    @property
    def text(self) -> str:
        """The arguments as JSON text."""
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Decision:
    """Calls to make now, or else a final answer; the reasoning says how the tools ranked."""

    reasoning: str
    calls: tuple[PlannedCall, ...] = ()
    answer: str = ""


@dataclass(frozen=True, slots=True)
class _Made:
    call: ToolCall
    result: ToolResult | None


@dataclass(frozen=True, slots=True)
class _Task:
    """A clause with the tool chosen for it. `round` is that of the request in which it is due, from 0: a clause that
    needs the result of the one before it comes a round later."""

    clause: Clause
    tool: ToolDefinition
    filled: Filled
    round: int
    before: ToolDefinition | None


def decide(messages: Sequence[Message], index: ToolIndex) -> Decision:
    """What the offline model does at this point of a conversation, the last user message being the request.

    Never repeats a call that it made for the same request, so a conversation with it always ends.
    """
    asked = max((n for n, message in enumerate(messages) if message.role == "user"), default=None)
    if asked is None or not index.tools:
        return Decision("No tools on offer." if asked is not None else "No request.", answer=NO_TOOLS)
    earlier, request = messages[:asked], messages[asked].content
    rounds = _rounds(messages[asked + 1 :])
    clauses = clauses_of(request, index)
    tasks, missing = _tasks(clauses, index, earlier, request)
    reasoning = _ranking(clauses, index)
    calls = _due(tasks, rounds)
    if calls:
        return Decision(reasoning, calls)
    made = [one for round_ in rounds for one in round_]
    if made:
        return Decision("Nothing is left to call.", answer=_answer(made))
    if missing is not None:
        tool, names = missing
        return Decision(reasoning, answer=f"{tool} fits, but the request does not say: {', '.join(names)}.")
    return Decision(reasoning, answer=NOTHING_FITS)


def _rounds(messages: Sequence[Message]) -> list[list[_Made]]:
    """The calls made since the request, round by round, with what came back."""
    results = {one.call_id: ToolResult(one.content, one.is_error) for one in messages if one.role == "tool"}
    return [
        [_Made(call, results.get(call.id)) for call in message.tool_calls]
        for message in messages
        if message.role == "assistant" and message.tool_calls
    ]


def _tasks(
    clauses: Sequence[Clause], index: ToolIndex, earlier: Sequence[Message], request: str
) -> tuple[list[_Task], tuple[str, tuple[str, ...]] | None]:
    """The clauses that some tool can serve; besides, the best tool that lacked arguments, with their names."""
    recalled = _recalled(earlier)
    tasks: list[_Task] = []
    missing: tuple[str, tuple[str, ...]] | None = None
    said: list[Evidence] = []
    for clause in clauses:
        memory = [*reversed(said), *recalled] if clause.refers_back else []
        said += clause.evidence
        candidates = _candidates(clause, index) or _as_before(request, earlier, index)
        filled = [(tool, fill(tool, clause, memory)) for tool in candidates]
        if not filled:
            continue
        tool, chosen = min(filled, key=lambda pair: (bool(pair[1].missing), pair[1].loose_ends))
        before = tasks[-1] if tasks else None
        follows = before is not None and (
            clause.result_mention is not None or (bool(chosen.missing) and (clause.after or clause.refers_back))
        )
        if chosen.missing and not follows:
            missing = missing or (tool.name, chosen.missing)
        elif before is not None and follows:
            tasks.append(_Task(clause, tool, chosen, before.round + 1, before.tool))
        else:
            tasks.append(_Task(clause, tool, chosen, 0, None))
    return tasks, missing


def _candidates(clause: Clause, index: ToolIndex) -> list[ToolDefinition]:
    ranked = clause.rank(index)
    least = max(CALL_THRESHOLD, ranked[0].score * _ABOUT_AS_GOOD)
    return [one.tool for one in ranked if one.score >= least]


def _as_before(request: str, earlier: Sequence[Message], index: ToolIndex) -> list[ToolDefinition]:
    """For "and in Paris?": the tool that was called last."""
    if not _SAME_AGAIN.match(request):
        return []
    called = [call.tool for message in earlier for call in message.tool_calls]
    return [tool for tool in index.tools if called and tool.name == called[-1]]


def _recalled(earlier: Sequence[Message]) -> list[Evidence]:
    """What earlier messages held, the latest first; capitalised first words of sentences, which may be no names, last.

    Results of tools are left out: they hold much that nobody spoke of.
    """
    spoken = [message for message in earlier if message.role != "tool"][-_MOST_RECALLED_MESSAGES:]
    found = [one for message in reversed(spoken) for one in reversed(find_evidence(message.content))]
    return sorted(found, key=lambda one: one.weak)


def _due(tasks: Sequence[_Task], rounds: Sequence[Sequence[_Made]]) -> tuple[PlannedCall, ...]:
    done = [(one.call.tool, dict(one.call.arguments)) for round_ in rounds for one in round_]
    calls: list[PlannedCall] = []
    for task in tasks:
        if task.round != len(rounds):
            continue
        for arguments in _arguments_now(task, rounds):
            call = PlannedCall(task.tool.name, arguments)
            if call not in calls and (call.tool, call.arguments) not in done:
                calls.append(call)
    return tuple(calls[:_MOST_CALLS])


def _arguments_now(task: _Task, rounds: Sequence[Sequence[_Made]]) -> list[dict[str, JsonValue]]:
    """One set of arguments for each call of a task; none if the result that it needs never came."""
    if task.before is None:
        return task.filled.calls()
    results = [one.result for one in rounds[-1] if one.call.tool == task.before.name and one.result is not None]
    if not results or results[-1].is_error:
        return []
    filled = fill(task.tool, task.clause, (), results[-1])
    return [] if filled.missing else filled.calls()


def _ranking(clauses: Sequence[Clause], index: ToolIndex) -> str:
    lines = []
    for clause in clauses:
        best = [one for one in clause.rank(index)[:_SHOWN_IN_RANKING] if one.score > 0]
        scores = ", ".join(f"{one.tool.name} {one.score:.2f}" for one in best) or "no tool shares a word with it"
        shown = " ".join(clause.text.split())
        shown = shown if len(shown) <= _LONGEST_SHOWN_CLAUSE else shown[: _LONGEST_SHOWN_CLAUSE - 1] + "…"
        lines.append(f"“{shown}”: {scores}" if len(clauses) > 1 else scores)
    return "Ranked by words: " + "; ".join(lines) + "." if lines else "Nothing is asked for."


def _answer(made: Sequence[_Made]) -> str:
    return "\n".join(_told(one) for one in made)


def _told(made: _Made) -> str:
    if made.result is None:
        return f"{made.call.tool} gave no result."
    if made.result.is_error:
        return f"{made.call.tool} failed: {made.result.told}"
    given = ", ".join(str(value) for value in made.call.arguments.values() if isinstance(value, str | int | float))
    given = given if len(given) <= _LONGEST_SHOWN_CLAUSE else given[: _LONGEST_SHOWN_CLAUSE - 1] + "…"
    return f"{made.call.tool}({given}): {made.result.told}"
