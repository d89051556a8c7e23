"""Which processes run. A process that has ended does not run, even if its parent has not waited for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple


def group_is_gone(group: int | None) -> bool:
    """Return whether no process of a group runs. The group of a server that was never started is `None`."""
    return group is None or group not in {process.group for process in _running()}


def is_running(pid: int) -> bool:
    return pid in {process.pid for process in _running()}


def members_of(group: int) -> dict[int, str]:
    """Return the running processes of a group with their command lines."""
    return {process.pid: _command_line(process.pid) for process in _running() if process.group == group}


def servers_of(pid: int, script: str) -> list[int]:
    """Return the processes that run a script and descend from a process as child or grandchild."""
    parents = {process.pid: process.parent for process in _running()}

    def is_below(child: int | None) -> bool:
        return child is not None and (parents.get(child) == pid or is_below(parents.get(child)))

    return [child for child in parents if is_below(child) and script in _command_line(child)]


async def becomes_true(condition: Callable[[], bool], within_s: float = 60) -> None:
    """Wait until a condition of the system holds. Raises TimeoutError after `within_s`."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 (nothing tells of another process's end)
            await asyncio.sleep(0.01)


class _Process(NamedTuple):
    pid: int
    parent: int
    group: int


def _running() -> Iterator[_Process]:
    """Yield every running process."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, group = file.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            yield _Process(int(file.parent.name), int(parent), int(group))


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
