"""The user of a conversation: a script of messages, or a goal for a model that plays the user."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, Tag

from workbench.checks.answer_checks import AnswerChecks
from workbench.checks.check import Check
from workbench.suite.expected_calls import DisallowedCall, ExpectedCall, OrderedItem, written_items
from workbench.suite.frozen import Frozen, Items, NonEmpty
from workbench.trajectory.events import UserEnd

OTHERWISE: Final = "I don't know. Please go on with what you have."
"""The message that a scripted user sends if no message of the script fits."""


IN_TURNS: Final = ("ordered", "unordered", "disallowed", "response")
"""The keys of a message that state expectations of the message's turn."""


class TurnCondition(Frozen):
    """A condition on the conversation: a check of the last answer's text, and tools that the model has called."""

    answer: Check | None = None
    called: Items[NonEmpty] = ()


class ScriptedMessage(Frozen):
    """A message of a scripted user, with the expectations of the turn that it begins.

    The user sends it once, as soon as `when` holds. With `end`, the user leaves after the answer to this message."""

    say: NonEmpty
    when: TurnCondition = TurnCondition.model_construct()
    id: NonEmpty | None = None
    end: UserEnd | None = None
    ordered: Items[OrderedItem] = ()
    unordered: Items[OrderedItem] = ()
    disallowed: Items[DisallowedCall] = ()
    response: AnswerChecks | None = None

    @property
    def expects(self) -> bool:
        return any(getattr(self, key) for key in IN_TURNS)

    def placed_calls(self) -> Iterator[tuple[tuple[str | int, ...], ExpectedCall]]:
        """Yield the calls that the turn expects or forbids, with their places in the message."""
        for key, items in (("ordered", self.ordered), ("unordered", self.unordered)):
            yield from written_items(items, (key,))
        for index, call in enumerate(self.disallowed):
            yield ("disallowed", index), call
            for key, other in call.conditions:
                yield ("disallowed", index, key), other


class WithheldFact(Frozen):
    """A fact that the model playing the user learns only once the condition `when` has held."""

    value: NonEmpty
    when: TurnCondition = TurnCondition.model_construct()


PLAIN_FACT: Final = "fact"
WITHHELD_FACT: Final = "withheld fact"


def _text_or_table(value: Any) -> str:
    return PLAIN_FACT if isinstance(value, str) else WITHHELD_FACT


WrittenFact = Annotated[
    Annotated[NonEmpty, Tag(PLAIN_FACT)] | Annotated[WithheldFact, Tag(WITHHELD_FACT)], Discriminator(_text_or_table)
]


class UserTable(Frozen):
    """The user of a conversation: scripted with `messages`, or played by a model with `goal`.

    If no message of the script fits, the user sends `otherwise`, up to `patience` times. A played user begins with
    `opening`, speaks in the given `style`, and knows the `facts`. `model` plays the user with the instructions
    `prompt`. A message that breaks the user's rules is tried again up to `tries` times. With `vary`, repeats of a run
    do not share cached messages of the played user. The run ends after `max_turns` messages, or once `stop` holds. With
    `review = "failed"`, a judge looks for faults of the user in failed runs."""

    messages: Items[ScriptedMessage] = ()
    otherwise: NonEmpty = OTHERWISE
    patience: Annotated[int, Field(ge=0)] = 2
    goal: NonEmpty | None = None
    opening: NonEmpty | None = None
    style: NonEmpty | None = None
    facts: dict[NonEmpty, WrittenFact] = Field(default_factory=dict)
    model: NonEmpty | None = None
    prompt: NonEmpty | None = None
    tries: Annotated[int, Field(ge=1, le=10)] = 3
    vary: bool = True
    review: Literal["never", "failed"] = "never"
    max_turns: Annotated[int, Field(ge=1)] = 10
    stop: TurnCondition | None = None

    @property
    def is_played(self) -> bool:
        return self.goal is not None

    @property
    def opening_text(self) -> str:
        """The text that represents the request in lists: the opening, the first scripted message, or the goal."""
        if self.opening is not None:
            return self.opening
        if self.messages:
            return self.messages[0].say
        return self.goal or ""

    @property
    def withheld(self) -> Mapping[str, WithheldFact]:
        """The facts by name, each with its condition. A plain fact has an empty condition."""
        found = {}
        for name, fact in self.facts.items():
            found[name] = WithheldFact.model_construct(value=fact) if isinstance(fact, str) else fact
        return found

    def conditions(self) -> Iterator[tuple[tuple[str | int, ...], TurnCondition]]:
        """Yield every condition on the conversation, with its place in the table."""
        for index, message in enumerate(self.messages):
            yield ("messages", index, "when"), message.when
        for name, fact in self.facts.items():
            if isinstance(fact, WithheldFact):
                yield ("facts", name, "when"), fact.when
        if self.stop is not None:
            yield ("stop",), self.stop


USER_TEXT: Final = "text of the user"
USER_TABLE: Final = "user of a conversation"


def _text_or_user(value: Any) -> str:
    return USER_TABLE if isinstance(value, dict | UserTable) else USER_TEXT


WrittenUser = Annotated[
    Annotated[str, Tag(USER_TEXT)] | Annotated[UserTable, Tag(USER_TABLE)], Discriminator(_text_or_user)
]
"""A request as text, or the user of a whole conversation."""


class SaidText(Frozen):
    """A text that some answer must contain.

    With `after_tool`, only answers after the last call of that tool count."""

    text: NonEmpty
    after_tool: NonEmpty | None = None


SAID_ANYWHERE: Final = "text"
SAID_AFTER: Final = "text after a call"


def _text_or_said(value: Any) -> str:
    return SAID_ANYWHERE if isinstance(value, str) else SAID_AFTER


WrittenSaid = Annotated[
    Annotated[NonEmpty, Tag(SAID_ANYWHERE)] | Annotated[SaidText, Tag(SAID_AFTER)], Discriminator(_text_or_said)
]


def said_text(written: str | SaidText) -> SaidText:
    if isinstance(written, str):
        return SaidText.model_construct(text=written)
    return written
