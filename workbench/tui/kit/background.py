"""Computations in the background, only for display."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from textual.screen import Screen

from workbench.tui.kit.closing import Answer
from workbench.tui.kit.stage import Stage, Take

Result = TypeVar("Result")


async def worked_out(work: Callable[[], Result]) -> Result:
    """Run a function in a thread and return its result. The app does not wait for it when it ends, so anything that
    writes belongs elsewhere."""
    from workbench.tools.python_reference import in_thread

    return await in_thread(work, name="worked out")


def push_from(stage: Stage, asked: Screen[Any], screen: Screen[Answer], take: Take[Answer] | None = None) -> None:
    """Show a screen that took a while to create, unless the user has gone elsewhere since or a dialog is open. `take`
    is called with its answer."""
    stage.show(screen, take, over=asked)
