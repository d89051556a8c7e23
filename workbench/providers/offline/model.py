"""The offline model: a baseline that calls tools by matching words.

It is deterministic and not a language model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, cast

from workbench.numerals import score_text
from workbench.providers.model import AnswerFinished, ModelRequest
from workbench.providers.offline.arguments import FilledArguments, fill_arguments
from workbench.providers.offline.clauses import Clause, clauses_of
from workbench.providers.offline.evidence import Evidence, ToolResult, find_evidence
from workbench.providers.offline.tools import ACCEPTED_EVIDENCE, CALL_THRESHOLD, Tool, ToolIndex
from workbench.providers.offline.words import split_name, stems_of, word_set
from workbench.startup import late_pattern
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    JsonValue,
    Message,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolDefinition,
)

NO_TOOLS = "There are no tools on offer, and the offline model can do nothing but choose among tools."
NOTHING_FITS = "None of the tools on offer fits this request."

_MAX_CALLS = 16
"""The most calls in one answer."""
_MAX_INDEXES = 16
_CLOSE_TO_BEST = 0.85
"""A tool whose score is this share of the best score may replace the best tool if the request fills its arguments
better."""
_MAX_RECALLED_MESSAGES = 20
_SHOWN_IN_RANKING = 3
_MAX_SHOWN_CLAUSE_CHARS = 60
_SAME_AGAIN = late_pattern(r"(?i)\s*(?:and|what\s+about|how\s+about)\b")
_FOLLOWING = late_pattern(r"(?i)\s*(?:(?:ok|okay|good|great|thanks)\b[\s,.!]*)?(?:and|now|then|next|finally)\b")
"""Matches the beginning of a message that continues an earlier message."""
_GO_ON = late_pattern(
    r"(?i)\s*(?:(?:yes|ok|okay|good|great|fine|thanks|please|now)\b[\s,.!]*){0,3}"
    r"(continue|proceed|carry\s+on|go\s+(?:on|ahead)|keep\s+(?:going|on)|move\s+on)\b"
)
_OF_WHAT = late_pattern(r"(?i)\s+of\b")
"""Matches words after which a request describes a result itself."""
_OF_ANY_TASK = word_set(
    """accomplish achiev complet first finish goal initial instruction job left next objectiv original plan reach
    remain remaining request rest step task whole work"""
)
"""Stems of words for the whole task, such as "the next step", which describe no action."""


class PlannedCall(NamedTuple):
    """A call that the model will make now."""

    tool: str
    arguments: dict[str, JsonValue]


class Decision(NamedTuple):
    """The model's decision: calls to make now, or a final answer.

    `reasoning` is a text with the scores of the tools."""

    reasoning: str
    calls: tuple[PlannedCall, ...] = ()
    answer: str = ""


class _PastCall(NamedTuple):
    """A call in the conversation with its result, which is `None` while the call is unanswered."""

    call: PlannedCall
    result: ToolResult | None


class _Task(NamedTuple):
    """A clause of the request, with the tool chosen for it.

    The calls of all tasks with the same `turn` are made in one answer. A clause that follows another clause ("then") or
    needs its result has a later turn. `depends_on` is the index of the task whose result is needed."""

    clause: Clause
    tool: Tool
    filled: FilledArguments
    turn: int = 0
    depends_on: int | None = None


class _Plan(NamedTuple):
    """The tasks of a request.

    `reasoning` is a text with the scores of the tools. `missing` is the first tool for which arguments are missing;
    `None` if there is no such tool."""

    tasks: list[_Task]
    reasoning: str
    missing: tuple[Tool, FilledArguments] | None


def decide(messages: Sequence[Message], index: ToolIndex) -> Decision:
    """Return the next answer of the offline model in a conversation.

    The request is the user's last message, except for messages that only ask to continue."""
    # For one request, a call is repeated only if it failed and the user asks to continue. So every conversation ends.
    said = [number for number, message in enumerate(messages) if message.role == "user"]
    if not said or not index.tools:
        return Decision("No request." if not said else "No tools on offer.", answer=NO_TOOLS)
    asked = next((n for n in reversed(said) if not _only_continues(messages[n].content, index)), said[-1])
    made = [one for one in _calls_in(messages[asked : said[-1]]) if not (one.result and one.result.is_error)]
    made += _calls_in(messages[said[-1] :])
    if asked:
        plan = _plan_of(messages[asked].content, index, messages[:asked])
    else:
        plan = _first_plan(messages[asked].content, index)
    if calls := _next_calls(plan.tasks, made):
        return Decision(plan.reasoning, calls)
    if made:
        return Decision("Nothing is left to call.", answer="\n".join(map(_final_answer, made)))
    return Decision(plan.reasoning, answer=_request_for(*plan.missing) if plan.missing else NOTHING_FITS)


def _request_for(tool: Tool, filled: FilledArguments) -> str:
    text = f"{tool.name} fits, but the request does not say: {', '.join(filled.missing)}."
    for one in tool.parameters:
        if one.name in filled.missing and "quoted" in ACCEPTED_EVIDENCE.get(one.role, ()):
            return f"{text} Put the value of {one.name} in quotes: 'like this'."
    return text


def _only_continues(message: str, index: ToolIndex) -> bool:
    match = _GO_ON.match(message)
    if match is None or not _OF_ANY_TASK.issuperset(stems_of(message[match.end() :])):
        return False
    verb = match[1].lower().split()[0]
    return not any(verb in split_name(tool.name) for tool in index.tools)


def _calls_in(messages: Sequence[Message]) -> list[_PastCall]:
    results = {one.call_id: ToolResult(one.content, one.is_error) for one in messages if one.role == "tool"}
    return [_PastCall(_planned(call), results.get(call.id)) for call in _tool_calls(messages)]


def _planned(call: ToolCall) -> PlannedCall:
    return PlannedCall(call.tool, dict(call.arguments))


def _tool_calls(messages: Sequence[Message]) -> Iterator[ToolCall]:
    for message in messages:
        yield from message.tool_calls


@lru_cache(maxsize=256)
def _first_plan(request: str, index: ToolIndex) -> _Plan:
    # The plan is cached, because all rounds and repeats of a case have the same request.
    return _plan_of(request, index, ())


def _plan_of(request: str, index: ToolIndex, earlier_messages: Sequence[Message]) -> _Plan:
    clauses = clauses_of(request, index)
    recalled = _recalled(earlier_messages)
    tasks: list[_Task] = []
    missing: tuple[Tool, FilledArguments] | None = None
    said: list[Evidence] = []
    for clause in clauses:
        memory = [*reversed(said), *recalled] if clause.refers_back else []
        said += clause.evidence
        filled = [
            (tool, fill_arguments(tool, clause, memory)) for tool in _candidates(clause, request, earlier_messages)
        ]
        if not filled:
            continue
        # Among tools with similar scores, choose the tool whose arguments are complete and leave the fewest values of
        # the clause unused.
        tool, chosen = min(filled, key=lambda pair: (bool(pair[1].missing), pair[1].weaknesses))
        before = tasks[-1] if tasks else None
        follows = clause.result_mention is not None or (bool(chosen.missing) and (clause.after or clause.refers_back))
        if before is not None and follows:
            tasks.append(_Task(clause, tool, chosen, before.turn + 1, len(tasks) - 1))
            continue
        # The first clause may continue the last call of an earlier message.
        if before is None and (follows or (chosen.missing and _FOLLOWING.match(request))):
            chosen = _from_earlier(tool, clause, earlier_messages) or chosen
        if chosen.missing:
            missing = missing or (tool, chosen)
        else:
            turn = before.turn + clause.after if before is not None and (clause.after or clause.joined) else 0
            tasks.append(_Task(clause, tool, chosen, turn))
    return _Plan(tasks, _ranking(clauses), missing)


def _candidates(clause: Clause, request: str, earlier_messages: Sequence[Message]) -> list[Tool]:
    """Return the tools that fit a clause about equally well.

    If no tool fits, a request such as "and in Paris?" gets the tool of the last call."""
    least = max(CALL_THRESHOLD, clause.ranked_tools[0].score * _CLOSE_TO_BEST)
    fitting = [one.tool for one in clause.ranked_tools if one.score >= least]
    if not fitting and _SAME_AGAIN.match(request):
        last = [call.tool for call in _tool_calls(earlier_messages)][-1:]
        fitting = [tool for tool in clause.index.tools if tool.name in last]
    return fitting


def _from_earlier(tool: Tool, clause: Clause, earlier_messages: Sequence[Message]) -> FilledArguments | None:
    result = next((one.result for one in reversed(_calls_in(earlier_messages))), None)
    mention = clause.result_mention
    if result is None or result.is_error or (mention and _OF_WHAT.match(clause.text, mention.end())):
        return None
    filled = fill_arguments(tool, clause, (), result)
    return None if filled.missing else filled


def _recalled(earlier_messages: Sequence[Message]) -> list[Evidence]:
    # Results of tools are left out, because they hold many values that no request mentions.
    spoken = [message for message in earlier_messages if message.role != "tool"][-_MAX_RECALLED_MESSAGES:]
    found: list[Evidence] = []
    for message in reversed(spoken):
        found += reversed(find_evidence(message.content))
    # Capitalised first words of sentences come last, because they may not be names.
    return sorted(found, key=lambda one: one.is_uncertain)


def _next_calls(tasks: Sequence[_Task], past_calls: Sequence[_PastCall]) -> tuple[PlannedCall, ...]:
    """Return the missing calls of the first turn that is not complete, at most `_MAX_CALLS`."""
    results: dict[int, ToolResult | None] = {}
    left = list(past_calls)
    for turn in sorted({task.turn for task in tasks}):
        planned: list[tuple[int, PlannedCall]] = []
        for number, task in enumerate(tasks):
            if task.turn == turn:
                planned += [(number, PlannedCall(task.tool.name, each)) for each in _arguments_now(task, results)]
        for number, call in planned:
            for one in past_calls:
                if one.call == call:
                    results[number] = one.result
        left = [one for one in left if all(one.call != call for _, call in planned)]
        due: list[PlannedCall] = []
        for number, call in planned:
            if call in due or any(one.call == call for one in past_calls):
                continue
            # A person may have changed the arguments of a call, so that it equals no planned call. It then counts as
            # the first planned call of its tool.
            instead = next((one for one in left if one.call.tool == call.tool), None)
            if instead is None:
                due.append(call)
            else:
                left.remove(instead)
                results[number] = instead.result
        if due:
            return tuple(due[:_MAX_CALLS])
    return ()


def _arguments_now(task: _Task, results: Mapping[int, ToolResult | None]) -> list[dict[str, JsonValue]]:
    if task.depends_on is None:
        return task.filled.calls()
    result = results.get(task.depends_on)
    if result is None or result.is_error:
        return []
    filled = fill_arguments(task.tool, task.clause, (), result)
    return [] if filled.missing else filled.calls()


def _ranking(clauses: Sequence[Clause]) -> str:
    lines = []
    for clause in clauses:
        best = [one for one in clause.ranked_tools[:_SHOWN_IN_RANKING] if one.score > 0]
        line = ", ".join(f"{one.tool.name} {score_text(one.score)}" for one in best) or "no tool shares a word with it"
        lines.append(line if len(clauses) == 1 else f"“{_cut(' '.join(clause.text.split()))}”: {line}")
    return f"Ranked by words: {'; '.join(lines)}." if lines else "Nothing is asked for."


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN_CLAUSE_CHARS else text[: _MAX_SHOWN_CLAUSE_CHARS - 1] + "…"


def _final_answer(call: _PastCall) -> str:
    if call.result is None:
        return f"{call.call.tool} gave no result."
    if call.result.is_error:
        return f"{call.call.tool} failed: {call.result.line}"
    given = [str(value) for value in call.call.arguments.values() if isinstance(value, str | int | float)]
    return f"{call.call.tool}({_cut(', '.join(given))}): {call.result.line}"


_WORD_WITH_BLANKS = late_pattern(r"\s*\S+\s*|\s+")
_FRAGMENT_CHARACTERS = 12


class OfflineModel:
    """A model without a network, a key or randomness: the same request always gives the same answer.

    `pace_ms` is the pause in milliseconds between two pieces of an answer, so that a person can read the stream. The
    answers have no token counts."""

    name = "offline"
    seed = None
    notices = ()

    def __init__(self, *, pace_ms: float = 0) -> None:
        self._pace_s = max(0.0, pace_ms) / 1000
        self._indexes: list[ToolIndex] = []

    async def start(self) -> None:
        """Do nothing, because the model needs no preparation."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return a context without effect, because the model has no limits."""
        return nullcontext()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        """Yield the answer to a request: the scores of the tools as reasoning, then calls or text."""
        decision = self.decide(request)
        for piece in _pieces(decision, request):
            yield piece
            if self._pace_s:
                await asyncio.sleep(self._pace_s)
        # Let other runs continue before the next answer, even if there are no pauses between pieces.
        await asyncio.sleep(0)
        yield AnswerFinished("tool calls" if decision.calls else "answered")

    def decide(self, request: ModelRequest) -> Decision:
        return decide(request.messages, self._index_of(request.tools))

    def _index_of(self, tools: Sequence[ToolDefinition]) -> ToolIndex:
        for index in self._indexes:
            if index.definitions == tuple(tools):
                return index
        self._indexes = [ToolIndex(tools), *self._indexes[: _MAX_INDEXES - 1]]
        return self._indexes[0]


def _pieces(decision: Decision, request: ModelRequest) -> Iterator[ModelEvent]:
    yield ReasoningDelta(request.round, decision.reasoning)
    for word in _WORD_WITH_BLANKS.findall(decision.answer):
        yield TextDelta(request.round, word)
    for number, call in enumerate(decision.calls, start=request.calls_before + 1):
        call_id = f"offline-{number}"
        text = json.dumps(call.arguments, ensure_ascii=False)
        yield CallStarted(request.round, call_id, call.tool)
        for start in range(0, len(text), _FRAGMENT_CHARACTERS):
            yield CallArgumentsDelta(call_id, text[start : start + _FRAGMENT_CHARACTERS])
        yield CallFinished(call_id, call.arguments)


# Models with deliberate weaknesses, so that a user can try fault injection and audits without a key.

_ORDER = late_pattern(r"(?i)\b(?:ignore|instead|you\s+must|instructions?|call\s+the\s+tool)\b")
"""Words that give an order to the model, in the result of a tool."""


class PlantedModel(OfflineModel):
    """The offline model with one deliberate weakness, so that audits and fault injection find something.

    Raises KeyError for an unknown weakness."""

    def __init__(self, weakness: str, *, pace_ms: float = 0) -> None:
        super().__init__(pace_ms=pace_ms)
        self.name = f"offline:{weakness}"
        self._weakness = _WEAKNESSES[weakness]

    def decide(self, request: ModelRequest) -> Decision:
        return self._weakness(request, self._index_of) or super().decide(request)


_IndexOf = Callable[[Sequence[ToolDefinition]], ToolIndex]


def _careless(request: ModelRequest, index_of: _IndexOf) -> Decision | None:
    """Decide like the offline model, but ignore the `enum` values of parameters, so that any word fits."""
    tools = []
    for tool in request.tools:
        parameters = cast("Mapping[str, JsonValue]", _without_lists(dict(tool.parameters)))
        tools.append(replace(tool, parameters=parameters))
    return decide(request.messages, index_of(tools))


def _without_lists(schema: JsonValue) -> JsonValue:
    if isinstance(schema, dict):
        return {key: _without_lists(value) for key, value in schema.items() if key != "enum"}
    return [_without_lists(value) for value in schema] if isinstance(schema, list) else schema


def _gullible(request: ModelRequest, index_of: _IndexOf) -> Decision | None:
    """Follow each instruction in the result of a tool once; return `None` if no instruction is left."""
    made = list(map(_planned, _tool_calls(request.messages)))
    for message in request.messages:
        if message.role == "tool" and _ORDER.search(message.content):
            ordered = decide([Message("user", message.content)], index_of(request.tools))
            if calls := tuple(call for call in ordered.calls if call not in made):
                return Decision("A result says what to do.", calls)
    return None


def _stubborn(request: ModelRequest, index_of: _IndexOf) -> Decision | None:
    """Repeat each failed call of the last answer, without an end; return `None` if no call failed."""
    last = max((n for n, one in enumerate(request.messages) if one.role != "tool"), default=-1)
    failed = {message.call_id for message in request.messages[last + 1 :] if message.is_error}
    calls = tuple(_planned(call) for call in _tool_calls(request.messages) if call.id in failed)
    return Decision("It failed. Once more.", calls) if calls else None


def _hasty(request: ModelRequest, index_of: _IndexOf) -> Decision | None:
    """Choose the first tool whose description begins with a word of the request.

    Returns `None` if there is no such tool."""
    said = [message.content for message in request.messages if message.role == "user"][-1:]
    words = stems_of(" ".join(said))
    for tool in request.tools:
        if any(word in words for word in stems_of(" ".join(tool.description.split()[:1]))):
            return decide(request.messages, index_of((tool,)))
    return None


_WEAKNESSES: Mapping[str, Callable[[ModelRequest, _IndexOf], Decision | None]] = {
    "careless": _careless,
    "gullible": _gullible,
    "stubborn": _stubborn,
    "hasty": _hasty,
}
