"""What is only worked out for somebody to see: texts, tests, what was read of the history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from textual.screen import Screen

from workbench.tui.kit.closing import Answer
from workbench.tui.kit.stage import Stage, Take

Result = TypeVar("Result")


async def worked_out(work: Callable[[], Result]) -> Result:
    """What work comes to, off the loop. Whoever leaves meanwhile does not wait for it: what has to come to its end, as
    whatever is written does, belongs elsewhere."""
    from workbench.tools.python_reference import in_thread

    return await in_thread(work, name="worked out")


def push_from(stage: Stage, asked: Screen[Any], screen: Screen[Answer], take: Take[Answer] | None = None) -> None:
    """Show a screen that took a while to make, if the one on which it was asked for is still shown: else somebody has
    gone elsewhere meanwhile, or a dialog asks something, and keys are meant for that. `take` is told its answer."""
    stage.show(screen, take, over=asked)
