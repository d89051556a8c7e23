"""The options that say where batches are kept: of `workbench run`, `compare`, `history` and the app."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path


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


def history_of(arguments: argparse.Namespace, paths: Sequence[str | Path]) -> Path | None:
    """The file in which batches of suites at these paths are recorded, `None` when they are not."""
    return None if getattr(arguments, "no_history", False) else history_to_read(arguments, paths)


def history_to_read(arguments: argparse.Namespace, paths: Sequence[str | Path]) -> Path:
    """The history that is named, else the one of the project in which the first of the paths is."""
    from workbench.config.folders import home_in, user_folders
    from workbench.config.history_file import history_file

    if arguments.history is not None:
        named: Path = arguments.history
        return named
    first = Path(paths[0]) if paths else Path()
    return history_file(user_folders(), first if first.is_dir() else first.parent, home_in(os.environ))
