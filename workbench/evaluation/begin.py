"""Runs with which the app begins, as `workbench run --break` and `workbench compare` ask for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from workbench.engine.breakpoints import Breakpoint
    from workbench.evaluation.options import RunOptions

Opened = Literal["run", "compare"]


@dataclass(frozen=True)
class Begin:
    """What is run at once, where it is held, and what of that is looked at: the first run that is held, or the models
    side by side, then perhaps with `only_differences`. Of the options, `judge_anew` and `own_pace` hold for as long as
    the app is open."""

    options: RunOptions
    breakpoints: tuple[Breakpoint, ...] = ()
    opens: Opened = "run"
    only_differences: bool = False
