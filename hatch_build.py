"""Builds the man page and the completion for bash, zsh and fish, which a wheel installs beside the package.

They are made from the parsers of the commands."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAMES = ("workbench", "toolcall-workbench")
"""The two names of the command."""


class BuildHook(BuildHookInterface):
    """Adds the files to a wheel. An editable installation has none: its commands change with the sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files, and say where they are installed."""
        self._folder: TemporaryDirectory[str] | None = None
        if self.target_name != "wheel" or version == "editable":
            return
        self._folder = TemporaryDirectory()
        folder = Path(self._folder.name)
        for place, text in shared_files(Path(self.root)).items():
            file = folder / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            build_data["shared_data"][str(file)] = place

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what is in the wheel now."""
        if self._folder is not None:
            self._folder.cleanup()


def shared_files(root: Path) -> dict[str, str]:
    """Return the text of each file, by where it is installed.

    `root` is the folder that holds the package."""
    import shtab

    parser = _whole_parser(root)
    files = {f"share/man/man1/{NAMES[0]}.1": _manual(parser)}
    for name in NAMES:
        parser.prog = name
        for shell, place in (
            ("bash", f"bash-completion/completions/{name}"),
            ("zsh", f"zsh/site-functions/_{name}"),
            ("fish", f"fish/vendor_completions.d/{name}.fish"),
        ):
            files[f"share/{place}"] = shtab.complete(parser, shell)
    return files


def _whole_parser(root: Path) -> argparse.ArgumentParser:
    """One parser of all commands. The commands' own are made one at a time, when they are used."""
    sys.path.insert(0, str(root))
    try:
        from workbench.cli.main import COMMANDS, WORDS, add_arguments_of, parser_of_app
    finally:
        sys.path.remove(str(root))
    parser = parser_of_app(COMMANDS)
    parser.epilog = None  # lists the commands once more
    _without_paths(parser)
    commands = parser.add_subparsers(metavar="COMMAND", prog=parser.prog)
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=f"{purpose.capitalize()}.")
        add_arguments_of(name, command)
        words = {word.partition(" ")[2]: what for word, what in WORDS.items() if word.startswith(f"{name} ")}
        if words:
            _without_paths(command)
        second = command.add_subparsers(metavar="WORD", prog=command.prog) if words else None
        for word, what in words.items() if second is not None else ():
            add_arguments_of(f"{name} {word}", second.add_parser(word, help=what, description=f"{what.capitalize()}."))
    _complete_paths(parser)
    return parser


def _without_paths(parser: argparse.ArgumentParser) -> None:
    """Where a word is a command or a path, shells offer the commands, and by themselves files where none fits."""
    for actions in (parser._actions, parser._positionals._group_actions):
        actions[:] = [action for action in actions if action.dest != "paths"]


def _complete_paths(parser: argparse.ArgumentParser) -> None:
    """Have the shells offer files and folders where a command takes some."""
    import shtab

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                _complete_paths(each)
        elif action.metavar in ("PATH", "FILE", "SUITE", "RECORDING"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar in ("DIR", "FOLDER"):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]


def _manual(parser: argparse.ArgumentParser) -> str:
    from argparse_manpage.manpage import Manpage

    parser.man_short_description = "see whether language models call your tools correctly"  # type: ignore[attr-defined]
    about = {"manual_section": "1", "manual_title": "Workbench", "project_name": "workbench"}
    return str(Manpage(parser, about, format="single-commands-section"))
