"""The player: a model that plays the user of a conversation. Its messages must follow rules.

The prompt is one text with the player's goal, the conversation, and the facts that the player may mention now. The
player never sees tool calls, results or reasoning. An answer must call `say` or `leave`. A model that calls no tools
answers with an equivalent JSON object."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence

from workbench.config.models import ConfigError, ModelSpec
from workbench.dataclasses import dataclass, json_text
from workbench.engine.agent_loop import ask
from workbench.engine.conversation import ConditionEvaluator, UserError, evaluate_condition
from workbench.engine.judges import parse_json_alone
from workbench.engine.model_specs import cost_of
from workbench.engine.player_cache import PlayerCache
from workbench.engine.recorder import Recorder, TimeLimit
from workbench.engine.script import heard_answers, released_facts, user_messages
from workbench.grading.endpoint_faults import calls_in_text
from workbench.numerals import seconds_text
from workbench.providers.model import Model, ModelError, ModelRequest, RetryPolicy
from workbench.startup import late_pattern
from workbench.suite.user_model import UserTable
from workbench.trajectory.events import (
    JsonValue,
    Message,
    RunStarted,
    ToolDefinition,
    Usage,
    UserEnd,
    UserEnded,
    UserFault,
    UserRefused,
    UserRequestStarted,
    UserSaid,
)
from workbench.trajectory.fold import TrajectoryError
from workbench.trajectory.trajectory import Round, Trajectory

PROMPT = 1
"""The version of the shipped prompt. Answers to a different version are not reused."""

PLAYER_TIMEOUT_S = 120.0
"""The time limit of one answer of the player. Waiting for the endpoint's turn and before a retry does not count."""

SYSTEM = """\
You play a user who talks with an assistant. You are the user: you want something, and the assistant helps you. Never
speak as the assistant, and never offer help.

Write one message at a time, as a person would type it, in the language of the goal. Pursue the goal and nothing else.
You know only what stands in the goal, in the facts and in the conversation: invent no number, name, address or other
detail. If the assistant asks for something that you do not know, say that you do not know it. Tell a fact only when it
matters. Do not repeat an earlier message word for word.

Call the tool `say` with your next message. When the goal is reached, call `leave` with end = "done"; when it cannot be
reached, with end = "gave up". If your message is the last one and you still want the assistant to act on it, call `say`
with `end`. If you cannot call tools, answer with one JSON object and nothing else: {"say": "..."},
{"say": "...", "end": "done"} or {"leave": "done", "why": "..."}."""

_ENDS = ("done", "gave up")
_END: JsonValue = {"type": "string", "enum": ["done", "gave up"]}

SAY_TOOL = ToolDefinition(
    "say",
    "Say the next message of the user.",
    {
        "type": "object",
        "properties": {"text": {"type": "string"}, "end": _END},
        "required": ["text"],
        "additionalProperties": False,
    },
)
LEAVE_TOOL = ToolDefinition(
    "leave",
    "End the conversation without a further message.",
    {
        "type": "object",
        "properties": {"end": _END, "why": {"type": "string", "description": "the reason, in one sentence"}},
        "required": ["end", "why"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, slots=True)
class PlayerAnswer:
    """A parsed answer of the player: a message, a departure, or an invalid answer.

    `text` is `None` for a departure, and `fault` is set for an invalid answer."""

    text: str | None = None
    end: str | None = None
    why: str | None = None
    fault: UserFault | None = None


@dataclass(frozen=True, slots=True)
class PlayerCost:
    """The cost of one answer of the player. A cached answer costs nothing."""

    usage: Usage | None = None
    latency_ms: float = 0.0
    usd: float | None = 0.0


@dataclass(frozen=True)
class PlayerModel:
    """The model that plays users, shared by all runs of a batch. `open` raises ModelError and ConfigError."""

    spec: ModelSpec
    open: Callable[[], Model]
    retries: RetryPolicy
    cache: PlayerCache


class Player:
    """A model that plays the user of one run. `repeat` distinguishes the repeats of a case."""

    can_retry = True

    def __init__(
        self,
        table: UserTable,
        model: PlayerModel,
        recorder: Recorder,
        conditions: ConditionEvaluator,
        repeat: int,
    ) -> None:
        self._table = table
        self._model = model
        self._recorder = recorder
        self._conditions = conditions
        self._repeat = repeat

    async def reply(self, trajectory: Trajectory, turn: int) -> UserSaid | UserEnded:
        """Return the user's message in a turn, or the user's departure.

        A message that breaks a rule is recorded as refused, and the model is asked again. Raises UserError if every
        attempt is refused or the model fails, and ConditionError."""
        table = self._table
        if turn == 1 and table.opening is not None and not _in_turn(trajectory, turn):
            return UserSaid(turn, table.opening, "opening")
        released = await evaluate_condition(
            self._conditions, trajectory, lambda context: released_facts(table, trajectory, context)
        )
        # The turn already has refused messages if a person asked for another message.
        refused = [*trajectory.user_turns[-1].refused] if _in_turn(trajectory, turn) else []
        for attempt in range(len(refused) + 1, len(refused) + table.tries + 1):
            answer, cost = await self._asked(turn, player_prompt(table, released, trajectory, refused), tuple(released))
            fault, detail = answer.fault, ""
            if fault is None:
                fault, detail = find_fault(answer, table, released, trajectory)
            if fault is None:
                return _reply(turn, answer, cost)
            text = answer.text or ""
            refused.append(UserRefused(turn, attempt, text, fault, detail, cost.usage, cost.latency_ms, cost.usd))
            self._recorder.emit(refused[-1])
        raise UserError(broken_rules([each for each in refused if each.fault != "asked again"]))

    async def _asked(self, turn: int, question: str, released: tuple[str, ...]) -> tuple[PlayerAnswer, PlayerCost]:
        model, system = self._model, self._table.prompt or SYSTEM
        key = model.cache.key(model.spec, PROMPT, system, question, self._repeat if self._table.vary else None)
        known = model.cache.find(key)
        self._recorder.emit(UserRequestStarted(turn, model.spec.name, known is not None, released))
        if known is not None:
            return PlayerAnswer(known.get("text"), known.get("end"), known.get("why")), PlayerCost()
        try:
            answer, cost = await _ask(model, system, question)
        except (ModelError, ConfigError, TrajectoryError) as error:
            raise UserError(f"the user's model did not answer: {error}") from error
        except TimeoutError:
            late = seconds_text(PLAYER_TIMEOUT_S)
            raise UserError(f"the user's model did not answer: {model.spec.name} took longer than {late}") from None
        if answer.fault is None:
            model.cache.store(key, {"text": answer.text, "end": answer.end, "why": answer.why}, question)
        return answer, cost


def _in_turn(trajectory: Trajectory, turn: int) -> bool:
    return bool(trajectory.user_turns) and trajectory.user_turns[-1].number == turn


def _reply(turn: int, answer: PlayerAnswer, cost: PlayerCost) -> UserSaid | UserEnded:
    end: UserEnd = "done" if answer.end == "done" else "gave up"
    if answer.text is None:
        return UserEnded(turn, end, answer.why, cost.usage, cost.latency_ms, cost.usd)
    said_end = None if answer.end is None else end
    return UserSaid(turn, answer.text, "model", None, said_end, cost.usage, cost.latency_ms, cost.usd)


async def _ask(model: PlayerModel, system: str, question: str) -> tuple[PlayerAnswer, PlayerCost]:
    opened = model.open()
    recorder = Recorder("user", time.monotonic, lambda _event: None)
    messages, tools = (Message("user", question),), (SAY_TOOL, LEAVE_TOOL)
    recorder.emit(RunStarted("", "", "", opened.name, system, messages, tools, opened.seed, opened.notices))
    async with TimeLimit(PLAYER_TIMEOUT_S) as limit:
        try:
            answer = await ask(opened, ModelRequest(1, system, messages, tools), recorder, model.retries, limit)
        except ModelError as error:
            if error.retryable or "tool" not in str(error).casefold():
                raise
            # If the server refuses tools for this model, the model answers with JSON, as the prompt describes.
            answer = await ask(opened, ModelRequest(2, system, messages, ()), recorder, model.retries, limit)
    assert isinstance(answer, Round), "a player is never an agent with a loop of its own"
    asked = recorder.trajectory
    return answer_in(answer), PlayerCost(asked.usage, asked.model_latency_ms, cost_of(asked, model.spec.price))


def answer_in(answer: Round) -> PlayerAnswer:
    """Return the message or the departure that the player's answer contains."""
    made = [(record.tool, record.arguments) for record in answer.calls if record.call.problem is None]
    # The endpoint may have left the call in the text.
    for tool, given in made or calls_in_text(answer.text, (SAY_TOOL, LEAVE_TOOL)):
        if tool == SAY_TOOL.name:
            return _read(given.get("text"), None, given)
        if tool == LEAVE_TOOL.name:
            return _read(None, given.get("end"), given)
    try:
        found = parse_json_alone(answer.text)
    except ValueError:
        return PlayerAnswer(answer.text or None, fault="no message" if answer.text.strip() else "empty")
    if not isinstance(found, Mapping):
        return PlayerAnswer(answer.text, fault="no message")
    if "leave" in found:
        return _read(None, found["leave"], found)
    return _read(found.get("say", found.get("text")), None, found)


def _read(text: object, left: object, given: Mapping[str, object]) -> PlayerAnswer:
    end, why = left if left is not None else given.get("end"), given.get("why")
    if end is not None and end not in _ENDS:
        return PlayerAnswer(str(text) if text else None, fault="unknown end")
    if left is not None:
        return PlayerAnswer(None, str(end), why if isinstance(why, str) else None)
    if not isinstance(text, str) or not text.strip():
        return PlayerAnswer(fault="empty")
    return PlayerAnswer(text.strip(), None if end is None else str(end))


def player_prompt(
    table: UserTable, released: Mapping[str, str], trajectory: Trajectory, refused_messages: Sequence[UserRefused]
) -> str:
    """Return the player's prompt: goal, style, `released` facts, conversation and refused messages."""
    parts = [f"Your goal:\n{(table.goal or '').strip()}"]
    if table.style is not None:
        parts.append(f"How you speak: {table.style}")
    if released:
        facts = "\n".join(f"- {name}: {value}" for name, value in released.items())
        parts.append(f"Facts that you know:\n{facts}")
    said: list[str] = []
    for round_ in trajectory.rounds:
        if round_.said is not None:
            said.append(f"You: {json_text(round_.said.text)}")
        if round_.stop_reason is not None and not round_.calls_to_answer:
            said.append(f"Assistant: {json_text(round_.text)}")
    if said:
        lines = "\n".join(said)
        parts.append(f"The conversation so far, each message as JSON text:\n{lines}")
        parts.append("Say your next message, or leave.")
    else:
        parts.append("The conversation has not begun. Say your first message.")
    for each in refused_messages:
        what = _FAULTS[each.fault].format(each.detail)
        parts.append(f"You answered {json_text(each.text)}. This was not sent: {what}. Say it differently.")
    return "\n\n".join(parts)


_FAULTS: dict[UserFault, str] = {
    "invented": 'you do not know "{}"',
    "told early": 'nobody has asked you for "{}" yet',
    "empty": "the message is empty",
    "spoke as the assistant": "you are the user, not the assistant",
    "twice word for word": "you said this before, word for word",
    "unknown end": 'the end must be "done" or "gave up"',
    "asked again": "another message is wanted",
    "no message": "call the tool `say` or `leave`, or write the JSON object alone",
}

# Matches e-mail addresses, and words of three or more characters with a digit, such as ids and numbers.
_FACT = late_pattern(r"[\w.+-]+@[\w-]+\.\w+|\b(?=[\w-]*\d)[A-Za-z0-9][\w-]{2,}\b")
_AGENT_PHRASES = late_pattern(r"how (can|may) i (help|assist) you|as an ai\b", re.IGNORECASE)
_ORDINALS_AND_COMMAS = late_pattern(r"(?<=\d),(?=\d{3})|(?<=\d)(st|nd|rd|th)\b")


def plain_text(text: str) -> str:
    """Normalize a text for the comparison of amounts and dates.

    The result is in lower case, without thousands separators and ordinals.

    >>> plain_text("$1,200 on May 20th")
    '$1200 on may 20'
    """
    return _ORDINALS_AND_COMMAS.sub("", text.lower())


def find_fault(
    answer: PlayerAnswer, table: UserTable, released: Mapping[str, str], trajectory: Trajectory
) -> tuple[UserFault | None, str]:
    """Return the rule that the player's message breaks, and the text that breaks it.

    The rule is `None` for a message that may be sent. `released` are the facts that the player may mention."""
    text = answer.text
    if text is None:
        return None, ""
    for name, fact in table.withheld.items():
        if name not in released and _holds_word(text, fact.value):
            return "told early", fact.value
    by_person = [said.text for said in user_messages(trajectory) if said.by == "person"]
    known = [
        table.goal or "",
        table.opening or "",
        table.style or "",
        *released.values(),
        *heard_answers(trajectory),
        *by_person,
    ]
    material = plain_text("\n".join(known))
    for match in _FACT.finditer(plain_text(text)):
        if match[0] not in material:
            return "invented", _as_written(match[0], text)
    if _AGENT_PHRASES.search(text):
        return "spoke as the assistant", ""
    if any(text == said.text for said in user_messages(trajectory)):
        return "twice word for word", ""
    return None, ""


def _holds_word(text: str, value: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value.lower())}(?!\w)", text.lower()) is not None


def _as_written(word: str, text: str) -> str:
    at = text.lower().find(word)
    return text[at : at + len(word)] if at >= 0 else word


_TIMES = {1: "once", 2: "twice", 3: "three times"}


def broken_rules(refused_messages: Sequence[UserRefused]) -> str:
    """Return the error message for a simulated user that broke its rules in every attempt of a turn."""
    last = refused_messages[-1]
    times = _TIMES.get(len(refused_messages), f"{len(refused_messages)} times")
    detail = f' "{last.detail}"' if last.detail else ""
    return f"the simulated user broke its rules in turn {last.turn}, {times}: {last.fault}{detail}"
