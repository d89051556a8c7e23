"""What can be typed for a run that is held."""

from __future__ import annotations

from typing import Literal, get_args

HeldKind = Literal["arguments", "result", "answer", "message"]
"""A call's arguments, its result, an answer in place of the tool, or what is said to the model."""

HELD_KINDS: frozenset[HeldKind] = frozenset(get_args(HeldKind))

ANSWERS: frozenset[HeldKind] = frozenset({"result", "answer"})
"""What can be a tool error."""
