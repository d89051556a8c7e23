"""An answer that holds more than any suite can mean is not read to its end."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from workbench.limits import MAX_ANSWER_CALLS, MAX_ANSWER_CHARS
from workbench.providers.model import AnswerSize, AnswerTooLargeError
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
)

LONG = "x" * (MAX_ANSWER_CHARS // 4)


def finished(arguments: dict[str, object]) -> CallFinished:
    return CallFinished("c", arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("most", "more", "said"),
    [
        (
            [TextDelta(1, LONG), ReasoningDelta(1, LONG), CallArgumentsDelta("c", LONG), CallArgumentsDelta("d", LONG)],
            TextDelta(1, "x"),
            "2,097,152 characters",
        ),
        ([CallStarted(1, "c", "save")] * MAX_ANSWER_CALLS, CallStarted(1, "c", "save"), "1,000 calls"),
        (
            [finished({f"a{n}": n for n in range(1_000)})] * 2,
            finished({f"a{n}": n for n in range(1_001)}),
            "1,000 arguments of a call",
        ),
        ([finished({"a": [[1]] * 49_999})], finished({"a": {"b": 2}}), "100,000 values in the arguments of calls"),
    ],
    ids=["characters", "calls", "arguments", "values"],
)
def test_an_answer_may_hold_so_much_and_no_more(most: Iterable[ModelEvent], more: ModelEvent, said: str) -> None:
    size = AnswerSize()
    for event in most:
        size.add(event)
    with pytest.raises(AnswerTooLargeError, match=f"the model sent too much: more than {said} in one answer"):
        size.add(more)
