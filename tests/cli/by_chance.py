"""An agent behind a local endpoint that is right by chance, and a suite for it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from tests.providers.server import Answer, Call, Request, said

SUITE = """
format = 1
name = "Rooms"

[[tools]]
name = "book"
description = "Book a room."
[tools.parameters]
type = "object"
required = ["room"]
[tools.parameters.properties.room]
type = "integer"
"""

CASE = """
[[cases]]
name = "Room {number}"
user = "Book room {number}."
[[cases.ordered]]
tool = "book"
args = {{ room = {number} }}
"""


def suite(cases: int, head: str = SUITE) -> str:
    """Return a suite with the cases Room 1, Room 2, …."""
    return head + "".join(CASE.format(number=number) for number in range(1, cases + 1))


@dataclass
class Booking:
    """Books the correct room if `right` returns true for the room and the number of its request, from 1. Otherwise it
    books no room."""

    right: Callable[[int, int], bool]
    asked: Counter[int] = field(default_factory=Counter)

    def __call__(self, request: Request) -> Answer:
        messages = request.json["messages"]
        if messages[-1]["role"] == "tool":
            return said("openai", "It is booked.")
        found = re.search("[0-9]+", messages[-1]["content"])
        assert found is not None
        room = int(found[0])
        self.asked[room] += 1
        if self.right(room, self.asked[room]):
            return said("openai", "", [Call("book", {"room": room})])
        return said("openai", "Which room do you mean?")


def by_chance(share: float, seed: int, rooms: Mapping[int, float] | None = None) -> Booking:
    """Return an agent that is right in a share of its runs. `rooms` overrides the share of single rooms.

    The runs that are right depend only on the seed, the room and the number of its request, not on the order of
    requests."""
    own = rooms or {}
    return Booking(lambda room, asked: Random(f"{seed} {room} {asked}").random() < own.get(room, share))
