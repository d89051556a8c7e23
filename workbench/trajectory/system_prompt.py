"""The system prompt of a request: the text of the suite, and below it the instructions of MCP servers."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.limits import MAX_INSTRUCTIONS_BYTES
from workbench.trajectory.events import ServerInstructions

# The form is Claude Code's, and so is the limit: scores count for users of such a client.
_HEAD = """# MCP Server Instructions

The following MCP servers have provided instructions for how to use their tools and resources:"""


def with_instructions(system: str | None, instructions: Sequence[ServerInstructions]) -> str | None:
    """Return a system prompt with the instructions of servers below it; `None` if there is neither.

    Instructions that the prompt has already, because it was captured from a client that sends them, are not repeated.

    >>> print(with_instructions("Be brief.", [ServerInstructions("shop", "Call `find` first.")]))
    Be brief.
    <BLANKLINE>
    # MCP Server Instructions
    <BLANKLINE>
    The following MCP servers have provided instructions for how to use their tools and resources:
    <BLANKLINE>
    ## shop
    Call `find` first.
    """
    added = []
    for each in instructions:
        if not system or each.text not in system:
            added.append(f"## {each.server}\n{each.text}")
    if not added:
        return system
    parts = [_HEAD, *added]
    if system:
        parts.insert(0, system)
    return "\n\n".join(parts)


def cut_instructions(text: str) -> str:
    """Return the part of a server's instructions that is sent, in whole characters of UTF-8."""
    content = text.strip().encode("utf-8", "replace")
    return content[:MAX_INSTRUCTIONS_BYTES].decode("utf-8", "ignore")


def too_long(text: str) -> str | None:
    """Return the predicate that tells that instructions exceed the limit; `None` if they are sent as a whole."""
    size = len(text.strip().encode("utf-8", "replace"))
    if size <= MAX_INSTRUCTIONS_BYTES:
        return None
    return MAX_INSTRUCTIONS_BYTES.exceeded(size=size)
