"""An agent behind a local endpoint that is right by chance, and the suite that it is asked."""

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
    """A suite of so many cases: Room 1, Room 2, …"""
    return head + "".join(CASE.format(number=number) for number in range(1, cases + 1))


@dataclass
class Booking:
    """Books the right room where that is `right`, by the room and how often it was asked for, from 1; no room
    otherwise."""

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
    """An agent that is right in a share of its runs; `rooms` have shares of their own. Which runs these are
    follows from the seed, the room and how often it was asked for, whatever comes first."""
    own = rooms or {}
    return Booking(lambda room, asked: Random(f"{seed} {room} {asked}").random() < own.get(room, share))
