"""Decides the next scripted message, the released facts and the end of a conversation.

The decisions depend only on the trajectory, so a fork or a replay decides like the original run."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.checks.check import CheckContext, evaluate
from workbench.dataclasses import dataclass
from workbench.suite.expected_calls import same_tool
from workbench.suite.user_model import ScriptedMessage, TurnCondition, UserTable
from workbench.trajectory.events import UserSaid
from workbench.trajectory.trajectory import Round, Trajectory, tools_of

_MAX_QUOTED = 80


@dataclass(frozen=True, slots=True)
class Departure:
    """The end of a conversation by its user, without another message.

    `is_done` is false for a user who gave up."""

    is_done: bool
    why: str | None = None


def user_messages(trajectory: Trajectory) -> tuple[UserSaid, ...]:
    return tuple([turn.said for turn in trajectory.user_turns if turn.said is not None])


def is_text_answer(answer: Round) -> bool:
    """Return whether an answer is shown to the user. Text in an answer with tool calls is not shown."""
    return answer.stop_reason is not None and not answer.calls_to_answer


def heard_answers(trajectory: Trajectory) -> tuple[str, ...]:
    """Return the answers that the user has read so far."""
    return tuple([each.text for each in trajectory.rounds if is_text_answer(each)])


def turn_condition_holds(
    condition: TurnCondition, answer: str | None, called_tools: Iterable[str], context: CheckContext
) -> bool:
    """Return whether a condition of a conversation is met.

    `answer` is the latest answer shown to the user, `None` before the first answer. `called_tools` has the names of the
    tools called so far. Raises CheckError."""
    made = tuple(called_tools)
    for tool in condition.called:
        if not any(same_tool(tool, each) for each in made):
            return False
    if condition.answer is None:
        return True
    return answer is not None and evaluate(condition.answer, answer, context=context).holds


def next_scripted_message(user: UserTable, trajectory: Trajectory, context: CheckContext) -> UserSaid | Departure:
    """Return the next message of a script.

    The next message is the first unsent message of the script whose condition is met. If no condition is met, it is the
    script's `otherwise` message, or a departure after too many `otherwise` messages.

    Raises CheckError."""
    said = user_messages(trajectory)
    left = _unsaid(user, said)
    turn = len(said) + 1
    if not left:
        return Departure(True)
    heard, called = heard_answers(trajectory), tools_of(trajectory.calls)
    answer = heard[-1] if heard else None
    for message in left:
        if turn_condition_holds(message.when, answer, called, context):
            return UserSaid(turn, message.say, "script", message.id, message.end)
    if len([each for each in said if each.by == "otherwise"]) >= user.patience:
        why = f'no message of the script fits in turn {turn} after the answer "{_shortened(answer or "")}"'
        return Departure(False, why)
    return UserSaid(turn, user.otherwise, "otherwise")


def _unsaid(user: UserTable, messages: Iterable[UserSaid]) -> list[ScriptedMessage]:
    left = list(user.messages)
    for each in messages:
        if each.by != "script" and each.original is None:
            continue
        # A person's text counts as the scripted message that it replaced.
        text = each.text if each.original is None else each.original
        used = next((one for one in left if (one.id, one.say) == (each.message, text)), None)
        if used is not None:
            left.remove(used)
    return left


def released_facts(user: UserTable, trajectory: Trajectory, context: CheckContext) -> dict[str, str]:
    """Return the facts that a user played by a model may disclose, by name.

    A fact is released once its condition is met after an answer. Raises CheckError."""
    released = {name: fact.value for name, fact in user.withheld.items() if fact.when == TurnCondition()}
    called: list[str] = []
    for each in trajectory.rounds:
        called += tools_of(each.calls)
        if not is_text_answer(each):
            continue
        for name, fact in user.withheld.items():
            if name not in released and turn_condition_holds(fact.when, each.text, called, context):
                released[name] = fact.value
    return {name: released[name] for name in user.facts if name in released}


def is_stop_reached(user: UserTable, trajectory: Trajectory, context: CheckContext) -> bool:
    """Return whether the `stop` condition of a conversation is met after its last round.

    Raises CheckError."""
    if user.stop is None:
        return False
    last = trajectory.rounds[-1] if trajectory.rounds else None
    answer = last.text if last is not None and is_text_answer(last) else None
    return turn_condition_holds(user.stop, answer, tools_of(trajectory.calls), context)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    if len(line) > _MAX_QUOTED:
        return f"{line[:_MAX_QUOTED]} …"
    return line
