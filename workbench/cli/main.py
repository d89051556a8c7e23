"""The entry point `workbench`: finds the requested command, and calls its module.

Before that, nothing slow is imported."""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

from workbench.cli.app import execute, parser_of_app
from workbench.cli.parser import Parser, did_you_mean
from workbench.dataclasses import dataclass
from workbench.evaluation.exit_codes import BROKEN_PIPE, INTERRUPTED, USAGE
from workbench.standard_streams import dispensable, open_closed_streams
from workbench.startup import InterruptsRaised, collect_rarely, import_pydantic, options_module

COMMANDS = {
    "run": "run the cases of suites and grade them",
    "grade": "grade finished runs by the present suites, or calls from a file",
    "compare": "compare several models on suites",
    "attach": "show a batch that runs without a terminal",
    "batches": "list or stop running batches",
    "tools": "list, lint or call the tools of suites",
    "login": "log in to a server over OAuth",
    "history": "list, show, compare and merge stored batches",
    "models": "list and check models",
    "faults": "test the reactions of models to faulty tool results",
    "mutate": "find changes of tool definitions that no case notices",
    "shrink": "reduce a failed case to the parts that make it fail",
    "fix-prompt": "print a failed run as a prompt for a coding agent",
    "accept": "make expectations from the calls that several runs share",
    "validate": "check suite files",
    "export": "write runs in other formats, or send them as traces",
    "import": "make suites and recordings from files of other tools",
    "record": "record the traffic of a program and its model, or of a client and its server",
    "mcp": "serve coding agents: run suites and explain failures over MCP",
    "serve": "show the app in browsers",
    "init": "write a first suite for an MCP server, or copy a sample",
    "submission": "run and tabulate the prompts that plugin directories ask for",
    "schema": "print the JSON Schema of a file format",
    "help": "show the options of a command",
    "version": "print the version",
}
"""The commands with their purposes.

Each command has a module of the same name with the functions `add_arguments` and `execute`. Without a command,
`workbench.cli.app` opens the app."""

FORMER_COMMANDS = {"capture": "accept"}
"""The former names of commands, which still work."""

WORDS = {
    "models add": "add a model to a workbench.toml",
    "models list": "list reachable endpoints and their models",
    "models check": "check the endpoint of each model",
}
"""The commands of two words. Their modules have names such as `models_add`."""

DEFAULT_SUBCOMMANDS = {"history": "list"}
"""The default second word of commands that may be written with one word."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code (`workbench.evaluation.exit_codes`)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    open_closed_streams()
    _prepare_output()
    try:
        if words and words[0] in FORMER_COMMANDS:
            words[0] = _renamed(words[0])
        if words and words[0] in COMMANDS:
            return _run_command(words[0], words[1:])
        if words and _names_a_command(words[0]):
            return _refuse(_no_command_advice(words[0]))
        return _open_app(words)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output is gone, as in `| head`, so an error message would not arrive either.
        _silence_output()
        return BROKEN_PIPE
    except OSError as error:
        _silence_output()
        return _refuse(f"cannot continue: {error}")


def _renamed(former: str) -> str:
    """Return the current name of a command that was renamed, and print a notice."""
    from workbench.cli.redaction import warn

    warn(f"'workbench {former}' is called 'workbench {FORMER_COMMANDS[former]}' now")
    return FORMER_COMMANDS[former]


def _names_a_command(word: str) -> bool:
    """Return whether a word can only be a command, because it is not an option and does not look like a path."""
    return not word.startswith("-") and word.replace("-", "").replace("_", "").isalnum() and not os.path.lexists(word)


def _no_command_advice(word: str) -> str:
    return did_you_mean("command", word, COMMANDS) or (
        f"There is no command, no file and no folder {word}. The commands are {', '.join(COMMANDS)}; "
        "'workbench --help' explains them"
    )


def _refuse(message: str) -> int:
    from workbench.cli.redaction import warn

    warn(message)
    return USAGE


def _silence_output() -> None:
    # Python flushes standard output at exit. Without this redirection, that would fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _prepare_output() -> None:
    """Make the standard streams flush every line, and write `?` for characters that the terminal cannot show.

    If standard error cannot be written, the exit code stays the same."""
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, TextIOWrapper):
        sys.stderr = dispensable(sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace", line_buffering=True)


def _run_command(name: str, words: list[str]) -> int:
    collect_rarely()
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from workbench.cli.github import escape_output

        escape_output()
    # `workbench history --limit 3` is `workbench history list --limit 3`.
    if name in DEFAULT_SUBCOMMANDS and (not words or (words[0].startswith("-") and words[0] not in ("-h", "--help"))):
        words = [DEFAULT_SUBCOMMANDS[name], *words]
    if words and f"{name} {words[0]}" in WORDS:
        name, words = f"{name} {words[0]}", words[1:]
    elif words and _names_a_command(words[0]):
        seconds = []
        for word in WORDS:
            if word.startswith(f"{name} "):
                seconds.append(word.removeprefix(f"{name} "))
        if (answer := did_you_mean(f"{name} command", words[0], seconds)) is not None:
            return _refuse(answer)
    options = parser_of(name).parse_args(words)
    # This import must come before Ctrl+C raises exceptions, because pydantic's extension module crashes if an exception
    # interrupts its import.
    import_pydantic(dataclass)
    module = import_module(_module_of(name))
    with InterruptsRaised():
        code: int = module.execute(options)
    return code


def add_arguments_of(name: str, parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a command to a parser. The command's name has one or two words."""
    # To keep `--help` fast, only the part of the module that defines the options is executed.
    options_module(_module_of(name)).add_arguments(parser)


def _module_of(name: str) -> str:
    # `import` is a keyword of Python, so the module is `import_file`.
    module = "import_file" if name == "import" else re.sub("[ -]", "_", name)
    return f"workbench.cli.{module}"


def parser_of(name: str) -> Parser:
    """Return the parser of a command. The command's name has one or two words."""
    purpose = (COMMANDS | WORDS)[name]
    words = [f"  {word:<14}{purpose}" for word, purpose in WORDS.items() if word.startswith(f"{name} ")]
    parser = Parser(prog=f"workbench {name}", description=f"{purpose[:1].upper()}{purpose[1:]}.")
    if words:
        parser.epilog = "\n".join(["also:", *words])
    add_arguments_of(name, parser)
    return parser


def _open_app(words: list[str]) -> int:
    arguments = parser_of_app(COMMANDS).parse_args(words)
    # Imports leave no garbage, and collecting it would take a tenth of the start-up time. The app enables collection
    # again.
    gc.disable()
    # This import must come before Ctrl+C raises exceptions, because pydantic's extension module crashes if an exception
    # interrupts its import.
    import_pydantic(dataclass)
    with InterruptsRaised():
        return execute(arguments)


if __name__ == "__main__":
    sys.exit(main())
