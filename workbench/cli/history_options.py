"""The options that say where batches are kept: of `workbench run`, `compare`, `history` and the app."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.config.program import Program


def add_history_options(parser: argparse.ArgumentParser, *, may_be_none: bool = True) -> None:
    """Which file the history is; without `may_be_none`, for reading one."""
    purpose = "keep batches in" if may_be_none else "use"
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--history",
        type=Path,
        metavar="FILE",
        help=f"{purpose} this history, instead of the one in the project's '.workbench' folder or your own",
    )
    if may_be_none:
        which.add_argument("--no-history", action="store_true", help="keep nothing of these runs in a history")


def history_for(options: argparse.Namespace, paths: Sequence[str | Path], program: Program) -> Path | None:
    """The file in which batches of suites at these paths are kept, `None` when they are not: that of the first one's
    project."""
    from workbench.config.history_file import history_file

    if getattr(options, "no_history", False):
        return None
    if options.history is not None:
        said: Path = options.history
        return said
    first = Path(paths[0]) if paths else Path()
    return history_file(program.folders, first if first.is_dir() else first.parent, program.environment.home)
