"""What is only worked out for somebody to see: texts, tests, what was read of the history."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


async def worked_out(work: Callable[[], Result]) -> Result:
    """What work comes to, off the loop. Whoever leaves meanwhile does not wait for it: what has to come to its end, as
    whatever is written does, belongs elsewhere."""
    from workbench.tools.python_reference import in_thread

    return await in_thread(work, name="worked out")
