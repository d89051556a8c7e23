"""Runs with which the app begins, as `workbench run --break` and `workbench compare` ask for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.batches.plan import EVERYTHING, Selection
from workbench.config.models import DEFAULT_CONCURRENCY
from workbench.engine.breakpoints import Breakpoint
from workbench.suite.model import GraderName

Opened = Literal["run", "compare"]


@dataclass(frozen=True)
class Begin:
    """Which cases are run at once, how, where they are held, and what of that is looked at: the first run that is held,
    or the models side by side, then perhaps with `only_differences`. `execute` and `execute_all` are those of
    `workbench.batches.single.Execution`; `judge_anew` and `own_pace` hold for as long as the app is open."""

    breakpoints: tuple[Breakpoint, ...]
    selection: Selection = EVERYTHING
    repeats: int | None = None
    by: GraderName | None = None
    execute: bool | None = None
    execute_all: bool = False
    concurrency: int = DEFAULT_CONCURRENCY
    judge_anew: bool = False
    own_pace: bool = False
    opens: Opened = "run"
    only_differences: bool = False
