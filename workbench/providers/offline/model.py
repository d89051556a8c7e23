"""The offline model: a baseline that calls tools by matching words.

It is deterministic and not a language model."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Final, cast

from workbench.dataclasses import dataclass
from workbench.numerals import score_text
from workbench.providers.model import AnswerFinished, ModelRequest
from workbench.providers.offline.arguments import ACCEPTED, Filled, fill
from workbench.providers.offline.clauses import Clause, clauses_of
from workbench.providers.offline.language import (
    CALL_THRESHOLD,
    Evidence,
    ToolIndex,
    find_evidence,
    split_name,
    stems_of,
    word_set,
)
from workbench.providers.offline.schemas import parameters_of
from workbench.providers.offline.tool_result import ToolResult
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
_ABOUT_AS_GOOD = 0.85
"""A tool whose score is this share of the best one's may replace it if the request fills its arguments better."""
_MAX_RECALLED_MESSAGES = 20
_SHOWN_IN_RANKING = 3
_MAX_SHOWN_CLAUSE_CHARS = 60
_SAME_AGAIN = late_pattern(r"\s*(?:and|what\s+about|how\s+about)\b", re.I)
_FOLLOWING = late_pattern(r"\s*(?:(?:ok|okay|good|great|thanks)\b[\s,.!]*)?(?:and|now|then|next|finally)\b", re.I)
"""Matches the beginning of a message that continues an earlier one."""
_GO_ON = late_pattern(
    r"\s*(?:(?:yes|ok|okay|good|great|fine|thanks|please|now)\b[\s,.!]*){0,3}"
    r"(continue|proceed|carry\s+on|go\s+(?:on|ahead)|keep\s+(?:going|on)|move\s+on)\b",
    re.I,
)
_OF_WHAT = late_pattern(r"\s+of\b", re.I)
"""Matches words after which a request describes a result itself."""
_OF_ANY_TASK = word_set(
    """accomplish achiev complet first finish goal initial instruction job left next objectiv original plan reach
    remain remaining request rest step task whole work"""
)
"""Stems of words for the task as a whole, such as "the next step", which describe no action."""


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
    """Calls to make now, or a final answer; `reasoning` lists the scores of the tools."""

    reasoning: str
    calls: tuple[PlannedCall, ...] = ()
    answer: str = ""


@dataclass(frozen=True, slots=True)
class _Made:
    """A call of the conversation, and its result; `None` while it is unanswered."""

    call: ToolCall
    result: ToolResult | None

    @property
    def failed(self) -> bool:
        return self.result is not None and self.result.is_error

    def is_call(self, planned: PlannedCall) -> bool:
        return (self.call.tool, dict(self.call.arguments)) == (planned.tool, planned.arguments)

    def is_one_of(self, planned: Iterable[PlannedCall]) -> bool:
        return any(map(self.is_call, planned))


@dataclass(frozen=True, slots=True)
class _Task:
    """A clause with the tool chosen for it.

    Tasks of the same `turn` are done in one answer; a clause that follows another ("then"), or needs its result, has a
    later one. `before` is the index of the task whose result it needs."""

    clause: Clause
    tool: ToolDefinition
    filled: Filled
    turn: int = 0
    before: int | None = None


def decide(messages: Sequence[Message], index: ToolIndex) -> Decision:
    """Return the next answer of the offline model in a conversation.

    The last message of the user is the request, unless it only asks to continue."""
    # A call is repeated for the same request only if it failed and the user asks to continue, so every conversation
    # ends.
    said = _requests_in(messages)
    if not said:
        return Decision("No request.", answer=NO_TOOLS)
    if not index.tools:
        return Decision("No tools on offer.", answer=NO_TOOLS)
    newest = said[-1]
    requests = [n for n in said if not _goes_on(messages[n].content, index)]
    asked = requests[-1] if requests else newest
    earlier, request = messages[:asked], messages[asked].content
    made = [one for one in _calls_in(messages[asked:newest]) if not one.failed]
    made += _calls_in(messages[newest:])
    clauses = clauses_of(request, index)
    tasks, missing = _tasks(clauses, index, earlier, request)
    reasoning = _ranking(clauses, index)
    calls = _due(tasks, made)
    if calls:
        return Decision(reasoning, calls)
    if made:
        return Decision("Nothing is left to call.", answer=_answer(made))
    if missing is not None:
        return Decision(reasoning, answer=_request_for(*missing))
    return Decision(reasoning, answer=NOTHING_FITS)


def _requests_in(messages: Sequence[Message]) -> list[int]:
    """Return the indices of the messages of the user."""
    return [n for n, message in enumerate(messages) if message.role == "user"]


def _request_for(tool: ToolDefinition, missing: tuple[str, ...]) -> str:
    """Return the answer that asks the user for missing arguments of a tool."""
    text = f"{tool.name} fits, but the request does not say: {', '.join(missing)}."
    for one in parameters_of(dict(tool.parameters)):
        if one.name in missing and "quoted" in ACCEPTED.get(one.role, ()):
            return f"{text} Put the value of {one.name} in quotes: 'like this'."
    return text


def _goes_on(message: str, index: ToolIndex) -> bool:
    """Return whether a message only asks to continue, as "go on" does, and is not a request to a tool."""
    match = _GO_ON.match(message)
    if match is None or not _OF_ANY_TASK.issuperset(stems_of(message[match.end() :])):
        return False
    verb = match[1].lower().split()[0]
    return not any(verb in split_name(tool.name) for tool in index.tools)


def _calls_in(messages: Sequence[Message]) -> list[_Made]:
    """Return the calls in some messages, with their results."""
    results = {}
    for one in messages:
        if one.role == "tool":
            results[one.call_id] = ToolResult(one.content, one.is_error)
    return [_Made(call, results.get(call.id)) for call in _tool_calls(messages)]


def _tool_calls(messages: Sequence[Message]) -> Iterator[ToolCall]:
    for message in messages:
        yield from message.tool_calls


def _tasks(
    clauses: Sequence[Clause], index: ToolIndex, earlier: Sequence[Message], request: str
) -> tuple[list[_Task], tuple[ToolDefinition, tuple[str, ...]] | None]:
    """Return the clauses with their tools, and the first tool that lacks arguments, with their names."""
    recalled = _recalled(earlier)
    tasks: list[_Task] = []
    missing: tuple[ToolDefinition, tuple[str, ...]] | None = None
    said: list[Evidence] = []
    for clause in clauses:
        memory: list[Evidence] = []
        if clause.refers_back:
            memory = [*reversed(said), *recalled]
        said += clause.evidence
        candidates = _candidates(clause, index) or _as_before(request, earlier, index)
        filled = [(tool, fill(tool, clause, memory)) for tool in candidates]
        if not filled:
            continue
        # Among tools with similar scores, the one whose arguments fit best: complete, and with few values left over.
        tool, chosen = min(filled, key=lambda pair: (bool(pair[1].missing), pair[1].loose_ends))
        before = tasks[-1] if tasks else None
        follows = clause.result_mention is not None or (bool(chosen.missing) and (clause.after or clause.refers_back))
        if before is not None and follows:
            tasks.append(_Task(clause, tool, chosen, before.turn + 1, len(tasks) - 1))
            continue
        # The first clause may continue the last call of an earlier message.
        if before is None and (follows or (chosen.missing and _FOLLOWING.match(request))):
            chosen = _from_earlier(tool, clause, earlier) or chosen
        if chosen.missing:
            missing = missing or (tool, chosen.missing)
        else:
            turn = 0
            if before is not None and (clause.after or clause.joined):
                turn = before.turn + clause.after
            tasks.append(_Task(clause, tool, chosen, turn))
    return tasks, missing


def _from_earlier(tool: ToolDefinition, clause: Clause, earlier: Sequence[Message]) -> Filled | None:
    """Return arguments from the result of the last call before the request; `None` if some are not found there."""
    made = _calls_in(earlier)
    if not made or made[-1].failed:
        return None
    result, mention = made[-1].result, clause.result_mention
    if result is None or (mention is not None and _OF_WHAT.match(clause.text, mention.end())):
        return None
    filled = fill(tool, clause, (), result)
    if filled.missing:
        return None
    return filled


def _candidates(clause: Clause, index: ToolIndex) -> list[ToolDefinition]:
    # Names of tools decide little between similar scores; the arguments that can be filled decide more.
    ranked = clause.rank(index)
    least = max(CALL_THRESHOLD, ranked[0].score * _ABOUT_AS_GOOD)
    return [one.tool for one in ranked if one.score >= least]


def _as_before(request: str, earlier: Sequence[Message], index: ToolIndex) -> list[ToolDefinition]:
    """Return the tool that was called last if the request continues it, as "and in Paris?" does."""
    called = list(_tool_calls(earlier))
    if not called or not _SAME_AGAIN.match(request):
        return []
    return [tool for tool in index.tools if tool.name == called[-1].tool]


def _recalled(earlier: Sequence[Message]) -> list[Evidence]:
    """Return the evidence of earlier messages of the user and the model, the latest first."""
    # Results of tools are left out, because they hold many values that no request mentions.
    spoken = [message for message in earlier if message.role != "tool"][-_MAX_RECALLED_MESSAGES:]
    found: list[Evidence] = []
    for message in reversed(spoken):
        found += reversed(find_evidence(message.content))
    # Capitalised first words of sentences come last, because they may not be names.
    return sorted(found, key=lambda one: one.weak)


def _due(tasks: Sequence[_Task], made: Sequence[_Made]) -> tuple[PlannedCall, ...]:
    """Return the missing calls of the first turn that still lacks any, `_MAX_CALLS` at most."""
    given: dict[int, ToolResult | None] = {}
    left = list(made)
    for turn in sorted({task.turn for task in tasks}):
        planned: list[tuple[int, PlannedCall]] = []
        for number, task in enumerate(tasks):
            if task.turn == turn:
                for arguments in _arguments_now(task, given):
                    planned.append((number, PlannedCall(task.tool.name, arguments)))
        for number, call in planned:
            for one in made:
                if one.is_call(call):
                    given[number] = one.result
        planned_calls = [call for _, call in planned]
        left = [one for one in left if not one.is_one_of(planned_calls)]
        due: list[PlannedCall] = []
        for number, call in planned:
            if call in due or any(one.is_call(call) for one in made):
                continue
            # A person may have changed the arguments of a call, which then counts as the first planned one of its tool.
            instead = next((one for one in left if one.call.tool == call.tool), None)
            if instead is None:
                due.append(call)
            else:
                left.remove(instead)
                given[number] = instead.result
        if due:
            return tuple(due[:_MAX_CALLS])
    return ()


def _arguments_now(task: _Task, given: Mapping[int, ToolResult | None]) -> list[dict[str, JsonValue]]:
    """Return the arguments of each call of a task; none if the result that the task needs is missing."""
    if task.before is None:
        return task.filled.calls()
    result = given.get(task.before)
    if result is None or result.is_error:
        return []
    filled = fill(task.tool, task.clause, (), result)
    if filled.missing:
        return []
    return filled.calls()


def _ranking(clauses: Sequence[Clause], index: ToolIndex) -> str:
    lines = []
    for clause in clauses:
        scores = []
        for one in clause.rank(index)[:_SHOWN_IN_RANKING]:
            if one.score > 0:
                scores.append(f"{one.tool.name} {score_text(one.score)}")
        line = ", ".join(scores) or "no tool shares a word with it"
        if len(clauses) > 1:
            line = f"“{_cut(' '.join(clause.text.split()))}”: {line}"
        lines.append(line)
    if not lines:
        return "Nothing is asked for."
    return f"Ranked by words: {'; '.join(lines)}."


def _cut(text: str) -> str:
    if len(text) <= _MAX_SHOWN_CLAUSE_CHARS:
        return text
    return text[: _MAX_SHOWN_CLAUSE_CHARS - 1] + "…"


def _answer(made: Sequence[_Made]) -> str:
    return "\n".join(map(_outcome, made))


def _outcome(made: _Made) -> str:
    if made.result is None:
        return f"{made.call.tool} gave no result."
    if made.result.is_error:
        return f"{made.call.tool} failed: {made.result.line}"
    given: list[str] = []
    for value in made.call.arguments.values():
        if isinstance(value, str | int | float):
            given.append(str(value))
    return f"{made.call.tool}({_cut(', '.join(given))}): {made.result.line}"


_WORD_WITH_BLANKS = late_pattern(r"\s*\S+\s*|\s+")
_FRAGMENT_CHARACTERS = 12


class OfflineModel:
    """A model without a network, a key or randomness: the same request always gives the same answer.

    `pace_ms` is the pause between two pieces of an answer, so that it streams at a readable speed; 0 for none. The
    answers have no token counts.
    """

    name = "offline"
    seed = None
    notices = ()

    def __init__(self, *, pace_ms: float = 0) -> None:
        self._pace_s = max(0.0, pace_ms) / 1000
        self._index = ToolIndex(())

    async def start(self) -> None:
        """Do nothing: the model needs no preparation."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Let every request begin at once."""
        return nullcontext()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        """Answer a request piece by piece: the scores of the tools as reasoning, then calls or text."""
        decision = self.decide(request)
        for piece in _pieces(decision, request):
            yield piece
            await asyncio.sleep(self._pace_s)
        yield AnswerFinished("tool calls" if decision.calls else "answered")

    def decide(self, request: ModelRequest) -> Decision:
        """Return the decision on a request: reasoning, calls and answer."""
        if self._index.tools != request.tools:
            self._index = ToolIndex(request.tools)
        return decide(request.messages, self._index)


def _pieces(decision: Decision, request: ModelRequest) -> Iterator[ModelEvent]:
    yield ReasoningDelta(request.round, decision.reasoning)
    for word in _WORD_WITH_BLANKS.findall(decision.answer):
        yield TextDelta(request.round, word)
    for number, call in enumerate(decision.calls, start=request.calls_before + 1):
        call_id = f"offline-{number}"
        yield CallStarted(request.round, call_id, call.tool)
        for start in range(0, len(call.text), _FRAGMENT_CHARACTERS):
            yield CallArgumentsDelta(call_id, call.text[start : start + _FRAGMENT_CHARACTERS])
        yield CallFinished(call_id, call.arguments)


# With planted weaknesses, fault injection and audits have something to find, without a key.

_ORDER = late_pattern(r"\b(?:ignore|instead|you\s+must|instructions?|call\s+the\s+tool)\b", re.I)
"""Words that give an order to the model, in the result of a tool."""


class PlantedModel(OfflineModel):
    """The offline model with one planted weakness; raises KeyError for an unknown one."""

    def __init__(self, weakness: str, *, pace_ms: float = 0) -> None:
        super().__init__(pace_ms=pace_ms)
        self.name = f"offline:{weakness}"
        self._decided = _DECIDED[weakness]

    def decide(self, request: ModelRequest) -> Decision:
        """Return the decision of a model with this weakness."""
        return self._decided(request)


def _careless(request: ModelRequest) -> Decision:
    """Decide without the listed values of parameters, so that any word fits them."""
    tools = []
    for tool in request.tools:
        parameters = cast("Mapping[str, JsonValue]", _without_lists(dict(tool.parameters)))
        tools.append(replace(tool, parameters=parameters))
    return decide(request.messages, ToolIndex(tools))


def _without_lists(schema: JsonValue) -> JsonValue:
    if isinstance(schema, dict):
        return {key: _without_lists(value) for key, value in schema.items() if key != "enum"}
    if isinstance(schema, list):
        return [_without_lists(value) for value in schema]
    return schema


def _gullible(request: ModelRequest) -> Decision:
    """Follow each order in the result of a tool, once."""
    index = ToolIndex(request.tools)
    made = [(call.tool, dict(call.arguments)) for call in _tool_calls(request.messages)]
    for message in request.messages:
        if message.role == "tool" and _ORDER.search(message.content):
            ordered = decide([Message("user", message.content)], index)
            calls: list[PlannedCall] = []
            for call in ordered.calls:
                if (call.tool, call.arguments) not in made:
                    calls.append(call)
            if calls:
                return Decision("A result says what to do.", tuple(calls))
    return decide(request.messages, index)


def _stubborn(request: ModelRequest) -> Decision:
    """Repeat each call that failed, without end."""
    failed = set()
    for message in _last_results(request.messages):
        if message.is_error:
            failed.add(message.call_id)
    calls = []
    for call in _tool_calls(request.messages):
        if call.id in failed:
            calls.append(PlannedCall(call.tool, dict(call.arguments)))
    if calls:
        return Decision("It failed. Once more.", tuple(calls))
    return decide(request.messages, ToolIndex(request.tools))


def _last_results(messages: Sequence[Message]) -> list[Message]:
    results: list[Message] = []
    for message in reversed(messages):
        if message.role != "tool":
            break
        results.append(message)
    return results


def _hasty(request: ModelRequest) -> Decision:
    """Choose the first tool whose description begins with a word of the request."""
    words: set[str] = set()
    for at in _requests_in(request.messages)[-1:]:
        words.update(stems_of(request.messages[at].content))
    fitting = [tool for tool in request.tools if words.intersection(_first_word(tool))]
    return decide(request.messages, ToolIndex(fitting[:1] or request.tools))


def _first_word(tool: ToolDefinition) -> list[str]:
    return list(stems_of(next(iter(tool.description.split()), "")))


_DECIDED: Final[Mapping[str, Callable[[ModelRequest], Decision]]] = {
    "careless": _careless,
    "gullible": _gullible,
    "stubborn": _stubborn,
    "hasty": _hasty,
}
