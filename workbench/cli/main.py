"""The command `workbench`: finds out which command is meant and hands over. Nothing heavy is imported before that."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from workbench.cli.model_options import add_judge_option, add_model_options, model_options
from workbench.cli.parser import Parser, add_history_options, history_of
from workbench.evaluation.exit_codes import INTERRUPTED, READER_GONE, USAGE
from workbench.version import __version__

if TYPE_CHECKING:
    from workbench.analysis.side_by_side import WhenLeft
    from workbench.config.program import Program
    from workbench.evaluation.options import Begin

COMMANDS = {
    "run": "run the cases of suites and grade them",
    "grade": "regrade recorded runs, without asking a model",
    "compare": "run suites on several models and show them side by side",
    "tools": "list the tools of suites, lint them, or call one",
    "history": "list, compare, regrade and export stored batches",
    "models": "list the models, and check whether they answer",
    "validate": "check suite files, and show what is wrong where",
}
"""Every command and what it does; its code is the module of that name, with `add_arguments` and `execute`."""

_EPILOG = """commands:
{commands}

Without a command the app opens on the paths: suite files, or folders of them.
No path means the current folder if it holds suites, else the bundled samples.
'workbench COMMAND --help' shows more; write a folder named like a command as './run'.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code (`workbench.evaluation.exit_codes`)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _prepare_output()
    try:
        if words and words[0] in COMMANDS:
            return _run_command(words[0], words[1:])
        return _open_app(words)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone (`| head`): nothing is left to say, and nowhere to say it.
        _write_nothing_more()
        return READER_GONE
    except OSError as error:
        _write_nothing_more()
        from workbench.cli.door import warn

        warn(f"cannot continue: {error}")
        return USAGE


def _write_nothing_more() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _nowhere() -> TextIO:
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _prepare_output() -> None:
    """Every line is seen at once, in a pipe too, and a character that the terminal cannot show becomes `?`."""
    # Closed by the caller (`>&-`): there is nobody to write to, which is no reason not to run.
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace", line_buffering=True)


def _run_command(name: str, words: list[str]) -> int:
    code: int = import_module(f"workbench.cli.{name}").execute(parser_of(name).parse_args(words))
    return code


def parser_of(name: str) -> Parser:
    """The parser of a command."""
    parser = Parser(prog=f"workbench {name}", description=f"{COMMANDS[name].capitalize()}.")
    import_module(f"workbench.cli.{name}").add_arguments(parser)
    return parser


def parser_of_app() -> Parser:
    """The parser of what is written without a command."""
    commands = "\n".join(f"  {name:<10} {purpose}" for name, purpose in COMMANDS.items())
    parser = Parser(
        prog="workbench",
        description="A terminal workbench that shows whether language models call your tools correctly.",
        usage="workbench [PATH ...]\n       workbench COMMAND ...",
        epilog=_EPILOG.format(commands=commands),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help="suite files, folders that hold them, recordings")
    add_model_options(parser)
    add_judge_option(parser, "model that judges where a check names none")
    parser.add_argument("--record", type=Path, metavar="DIR", help="record every run into a file of its own")
    add_history_options(parser)
    parser.add_argument("--trust", action="store_true", help="trust the suites for this session, without asking")
    parser.add_argument("--theme", metavar="NAME", help="start with this theme")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII signs only (also WORKBENCH_ASCII=1)")
    parser.add_argument("--version", action="version", version=f"workbench {__version__}")
    return parser


@dataclass(frozen=True)
class AppOptions:
    """How the app is opened: on which paths and models, where its runs are recorded, and how it looks."""

    paths: tuple[str, ...]
    models: tuple[str, ...] = ()
    history: Path | None = None
    record: Path | None = None
    trust: bool = False
    theme: str | None = None
    only_ascii: bool = False


def app_options(arguments: argparse.Namespace) -> AppOptions:
    """The app's part of the arguments of a command that may open it."""
    return AppOptions(
        paths=tuple(arguments.paths),
        models=tuple(arguments.model),
        history=history_of(arguments, arguments.paths),
        record=arguments.record,
        trust=arguments.trust,
        theme=getattr(arguments, "theme", None),
        only_ascii=getattr(arguments, "ascii", False),
    )


def _open_app(words: list[str]) -> int:
    arguments = parser_of_app().parse_args(words)
    # Nothing of what is imported is garbage: looking for some would be a tenth of the start. The app turns it on again.
    gc.disable()
    models = model_options(arguments)
    if models is None:
        return USAGE
    from workbench.cli.door import begin_program

    return show_app(app_options(arguments), begin_program(models))


def show_app(options: AppOptions, program: Program, *, begin: Begin | None = None, left: WhenLeft | None = None) -> int:
    """Open the app and return its exit code. `begin` is what it runs at once; `left` is called with what was compared
    there from the beginning."""
    if options.record is not None:
        from workbench.cli.report_output import can_record_in

        if not can_record_in(options.record):
            return USAGE
    # The only way from the command line to the terminal app.
    from workbench.tui.app import open_app

    return open_app(
        options.paths,
        program,
        models=options.models,
        trust=options.trust,
        theme=options.theme,
        only_ascii=options.only_ascii,
        record=options.record,
        history=options.history,
        begin=begin,
        left=left,
    )


if __name__ == "__main__":
    sys.exit(main())
