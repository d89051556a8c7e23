"""The system prompt of a request: the suite's text, followed by the instructions of MCP servers and the time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from workbench.limits import MAX_INSTRUCTIONS_BYTES
from workbench.trajectory.events import RunStarted, ServerInstructions

# Claude Code uses this text and this limit, so scores also hold for models in Claude Code.
_HEAD = """# MCP Server Instructions

The following MCP servers have provided instructions for how to use their tools and resources:"""


def with_instructions(system: str | None, instructions: Sequence[ServerInstructions]) -> str | None:
    """Return a system prompt followed by the instructions of servers, or `None` if both are empty.

    Instructions that the prompt already contains are not repeated.

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


def prompt_of(start: RunStarted, system: str | None) -> str | None:
    """Return the complete system prompt of a request.

    `system` is the suite's text at the start of the run or of a step. The servers' instructions and the time follow it.
    """
    prompt = with_instructions(system, start.instructions)
    if start.clock is None:
        return prompt
    # The time comes last, so the text before it can be cached by the provider.
    return "\n\n".join(filter(None, (prompt, time_text(start.clock))))


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def time_text(clock: str) -> str:
    """Return the line of a system prompt with the time of a run.

    >>> time_text("2026-06-09T10:00+02:00 Europe/Berlin")
    'The current time is Tuesday, 2026-06-09T10:00+02:00 (Europe/Berlin).'
    """
    at, zone = clock.split(" ", 1)
    return f"The current time is {_WEEKDAYS[datetime.fromisoformat(at).weekday()]}, {at} ({zone})."


def cut_instructions(text: str) -> str:
    """Cut a server's instructions to the size limit, at a whole character of UTF-8."""
    content = text.strip().encode("utf-8", "replace")
    return content[:MAX_INSTRUCTIONS_BYTES].decode("utf-8", "ignore")


def too_long(text: str) -> str | None:
    """Return a message, without its subject, if instructions exceed the size limit, otherwise `None`."""
    size = len(text.strip().encode("utf-8", "replace"))
    if size <= MAX_INSTRUCTIONS_BYTES:
        return None
    return MAX_INSTRUCTIONS_BYTES.exceeded(size=size)
