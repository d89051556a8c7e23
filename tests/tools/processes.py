"""Whether processes still live, asked of the system. One that has ended but was not yet asked for does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path


def group_is_gone(group: int | None) -> bool:
    """Whether no process of a group runs; the group of a server that was never started is `None`."""
    return group is None or group not in {member_of for _, member_of in _running()}


def is_running(pid: int) -> bool:
    """Whether a process runs."""
    return pid in {running for running, _ in _running()}


async def becomes_true(condition: Callable[[], bool], within_s: float = 10) -> None:
    """Wait until a condition of the system holds; raises TimeoutError when it does not in time."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 (nothing tells of another process's end)
            await asyncio.sleep(0.01)


def _running() -> Iterator[tuple[int, int]]:
    """The id and the group of every process that runs."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = file.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            yield int(file.parent.name), int(group)
