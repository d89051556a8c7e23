"""The parser of every command, and the options that several commands share.

The parser rejects abbreviated options, never prints a key, and suggests a correction for a misspelt word."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import takewhile
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from workbench.config.typed_keys import KEY_OPTION, NO_KEYS_ADVICE, without_keys
from workbench.evaluation.exit_codes import USAGE

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from workbench.show.forms import Command

_Options = TypeVar("_Options", bound="DataclassInstance")


def options_as(kind: type[_Options], arguments: argparse.Namespace) -> _Options:
    """Return the parsed arguments as an instance of a dataclass.

    The fields of the dataclass have the names of the arguments."""
    return kind(**{field.name: getattr(arguments, field.name) for field in fields(kind)})


def did_you_mean(kind: str, word: str, known: Iterable[str]) -> str | None:
    """Return a suggestion for a misspelt word, `None` if no known word is similar."""
    # Lazy import: it is needed only for a misspelt word.
    from difflib import get_close_matches

    if near := get_close_matches(word.lower(), known, n=1, cutoff=0.6):
        return f"Unknown {kind} {word}. Did you mean {near[0]}?"
    return None


def _ending_of(option: str, command: str) -> str | None:
    """Return the file extension for a form of report that was given as an option, such as `.html` for `--html`.

    Used to suggest `--report FILE.html`. Returns `None` for a form that the command lacks."""
    # Lazy import: it is needed only for a misspelt option.
    from workbench.show.forms import FORMS

    for form in FORMS:
        fits = command in form.writers and not form.replaces_report and form.endings
        if f"--{form.name}" == option and fits:
            return form.endings[0]
    return None


_ELSEWHERE = {
    ("compare", "--shard"): "compare has no shards: give --shard to 'workbench run' with all models, merge the shards "
    "with 'workbench history merge', and then 'workbench compare --resume BATCH' compares the models",
    ("run", "--name"): "run has no --name: name the batch when it has ended, with 'workbench history name BATCH NAME'",
    ("validate", "--trust"): "validate starts, imports and asks nothing, so it needs no --trust: omit it",
}
"""The options that users expect in a command that does not have them, each with the remedy."""

_FORMER_OPTIONS = {
    ("compare", "--against"): "--baseline",
    ("import", "--runs"): "--recordings",
    ("init", "--tools"): "--tool",
    ("record", "--suite"): "--output",
    ("record", "--to"): "--output",
    ("shrink", "--most-runs"): "--max-runs",
    ("shrink", "--runs"): "--repeats",
}
"""The current names of renamed options. The former names still work."""

PASS_RATE_ADVICE = (
    "To demand a pass rate of every batch, write min_pass_rate = … into [gate] of the suite; --min-score demands a "
    "mean score"
)
"""The advice on how to require a pass rate or a mean score of a whole batch."""

_DEMANDS = ("--gate", "--min-pass-rate", "--pass-rate", "--threshold", "--fail-under")
"""Options of other programs that require a result of a whole batch."""

_HINTS = {
    ("batches", "argument --stop: expected one argument"): ", the number or name of a batch: 'workbench batches' lists "
    "those that run",
}
"""Hints that are added to messages of argparse."""

COMMAND_METAVAR = "-- COMMAND"
"""The metavar of the command line of another program, which is passed on unparsed."""

SERVER_METAVAR = "SERVER"
"""The metavar of a server's command line. Its first word ends the options of this program, so all later words belong to
the server."""

MAX_USAGE_LINES = 4
"""The maximum number of lines of a usage. More lines would push the help or the error below them off the screen."""

MODELS = "models"
CASES = "cases"
VARIANTS = "variants"
TOOLS = "tools and trust"
GRADING = "grading"
REPORTS = "reports"
RECORDINGS = "recordings"
HISTORY = "history"
BASELINE = "earlier batch"
SPEED = "speed and cost"
STOPPING = "stopping early"
DETACHED = "no terminal"
SHARDS = "shards"
CLUSTER = "cluster"
DEBUGGING = "debugging"
OPTIONS = "options"
"""The headings of options in `--help`. In every command, an option is below the same heading."""

HELP_ALL = "--help-all"

COMMON_OF_RUNS = (
    "--model",
    "--case",
    "--tag",
    "--repeats",
    "--execute",
    "--trust",
    "--format",
    "--report",
    "--resume",
    "--quiet",
)
"""The ten options that `--help` shows first for commands that run cases."""


def group(parser: argparse.ArgumentParser, heading: str) -> argparse._ArgumentGroup:
    """Return the argument group of a parser with this heading. Create it if necessary."""
    for existing in parser._action_groups:
        if existing.title == heading:
            return existing
    return parser.add_argument_group(heading)


def show_first(parser: argparse.ArgumentParser, *options: str) -> None:
    """Let `--help` explain only these options, in this order, and list the names of all others.

    `--help-all` explains all options."""
    # The parsers for the man page and the completions are of another class. They show all options.
    if isinstance(parser, Parser):
        parser.first = options


def words_of(argument: argparse.Action) -> str:
    """Return the usage of a positional argument, such as `[PATH ...]`."""
    name = str(argument.metavar or argument.dest.upper())
    shown = {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} ...", argparse.PARSER: f"{name} ..."}
    return shown.get(str(argument.nargs), name)


def named_in_groups(groups: Mapping[str, Iterable[str]]) -> str:
    """Return the lines for `--help` that list names below the heading of their group."""
    width = shutil.get_terminal_size().columns - 2
    heading_width = max(map(len, groups), default=0) + 2
    lines: list[str] = []
    for heading, names in groups.items():
        start, indent = f"  {heading:<{heading_width}}", " " * (heading_width + 2)
        lines += wrap(", ".join(names), width, initial_indent=start, subsequent_indent=indent, break_on_hyphens=False)
    return "".join(f"{line}\n" for line in lines)


class _HelpAll(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *arguments: object) -> NoReturn:
        parser._print_message(argparse.ArgumentParser.format_help(parser), sys.stdout)
        parser.exit()


ABOUT_HELP = (argparse._HelpAction, _HelpAll)


class HelpLines(argparse.HelpFormatter):
    """A help formatter that fills paragraphs, but keeps the lines of a text with several lines."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return "".join(f"{indent}{line}\n" for line in text.splitlines())
        return super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """An argument parser that suggests the most similar option or subcommand for a misspelt word."""

    def __init__(self, **settings: Any) -> None:
        # Abbreviations are not accepted, because each new option could change their meaning.
        super().__init__(**{"formatter_class": HelpLines} | settings, allow_abbrev=False)
        self.first: tuple[str, ...] = ()
        self._words: Sequence[str] = ()
        self.add_argument(HELP_ALL, action=_HelpAll, nargs=0, help="explain every option")

    def format_usage(self) -> str:
        """Return the usage line. Many options are abbreviated to `[OPTION ...]`."""
        usage: str = super().format_usage()
        if usage.count("\n") <= MAX_USAGE_LINES:
            return usage
        return f"usage: {self._usage_without_options()}\n"

    def _usage_without_options(self) -> str:
        words = map(words_of, self._get_positional_actions())
        return " ".join((self.prog, "[OPTION ...]", *words))

    def format_help(self) -> str:
        """Return the help. If `show_first` was called, only its options are explained, and the others are listed."""
        if not self.first:
            return super().format_help()
        formatter = self._get_formatter()
        formatter.add_usage(self._usage_without_options(), (), ())
        formatter.add_text(self.description)
        formatter.start_section(self._positionals.title)
        formatter.add_arguments(self._positionals._group_actions)
        formatter.end_section()
        formatter.start_section("common options")
        formatter.add_arguments([self._option_string_actions[option] for option in self.first])
        formatter.end_section()
        more = f"more options ({HELP_ALL} explains them and the exit codes):"
        return f"{formatter.format_help()}\n{more}\n{named_in_groups(self._named())}"

    def _named(self) -> dict[str, list[str]]:
        shown = {self._option_string_actions[option] for option in self.first}
        named: dict[str, list[str]] = {}
        for each in self._action_groups:
            for action in each._group_actions:
                hidden = action in shown or action.help == argparse.SUPPRESS or isinstance(action, ABOUT_HELP)
                if action.option_strings and not hidden:
                    named.setdefault(str(each.title), []).append(action.option_strings[-1])
        return named

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        args = [*(sys.argv[1:] if args is None else args)]
        begin = len([*takewhile(lambda word: word != "--", args)])
        if any(action.metavar == SERVER_METAVAR for action in self._get_positional_actions()):
            begin = self._first_bare_word(args)
            # argparse takes everything after `--` as positional arguments.
            if args[begin : begin + 1] != ["--"]:
                args.insert(begin, "--")
        args[:begin] = map(self._renamed, args[:begin])
        self._words = args
        # A key must never be an argument, because every user of the machine can list the arguments of processes.
        if any(map(KEY_OPTION.fullmatch, args[:begin])):
            self.error(NO_KEYS_ADVICE)
        known, unknown = super().parse_known_args(args, namespace)
        for word in unknown:
            if word.startswith("-"):
                self._refuse_if_known_elsewhere(word.partition("=")[0])
        if unknown and not self._took_further_words(known, unknown):
            # Unknown options are reported here, so that a subparser shows its own usage.
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, []

    def _renamed(self, word: str) -> str:
        option, sign, value = word.partition("=")
        if (present := self._present_name(option)) == option:
            return word
        self._print_message(f"{option} is called {present} now\n", sys.stderr)
        return f"{present}{sign}{value}"

    def _present_name(self, option: str) -> str:
        return _FORMER_OPTIONS.get((self.prog.partition(" ")[2], option), option)

    def _first_bare_word(self, words: Sequence[str]) -> int:
        at = 0
        while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "--"):
            word, follows = words[at], words[at + 1 : at + 2]
            at += 1
            action = self._option_string_actions.get(self._present_name(word))
            if action is None and not word.startswith("--"):
                action = self._last_of_letters(word)
            if action is None or action.nargs == 0:
                continue
            # The value of an option with `nargs="?"` is optional.
            if follows and (action.nargs is None or not follows[0].startswith("-")):
                at += 1
        return at

    def _last_of_letters(self, word: str) -> argparse.Action | None:
        """Return the short option in `word`, such as `-fo`, that takes the next word as its value.

        Return `None` if no option takes a value, or if the value is part of `word`."""
        for index, letter in enumerate(word[1:], 2):
            action = self._option_string_actions.get(f"-{letter}")
            if action is not None and action.nargs != 0:
                return action if index == len(word) else None
        return None

    def _refuse_if_known_elsewhere(self, option: str) -> None:
        options = self._option_string_actions
        if "--report" in options and (ending := _ending_of(option, self.prog.split()[-1])) is not None:
            self.exit(USAGE, f"Unknown option {option}. Write --report FILE{ending}\n")
        if (why := _ELSEWHERE.get((self.prog.partition(" ")[2], option))) is not None:
            self.exit(USAGE, f"{why}\n")
        if option in _DEMANDS and "--min-score" in options:
            self.exit(USAGE, f"Unknown option {option}. {PASS_RATE_ADVICE}\n")
        self._refuse_if_near("option", option, options)

    def _took_further_words(self, known: argparse.Namespace, words: Sequence[str]) -> bool:
        """Add words that follow an option to an earlier positional argument that takes several words.

        Returns false if that is impossible."""
        # argparse does not add words after an option to a positional argument that already has words.
        many = []
        for action in self._get_positional_actions():
            if action.nargs in ("*", "+"):
                many.append(action)
        if len(many) != 1 or many[0].metavar == COMMAND_METAVAR or any(word.startswith("-") for word in words):
            return False
        more = [self._get_value(many[0], word) for word in words]
        setattr(known, many[0].dest, [*getattr(known, many[0].dest), *more])
        return True

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            command = f"{self.prog.partition(' ')[2]} command".lstrip()
            self._refuse_if_near(command, value, action.choices)
        super()._check_value(action, value)

    def _refuse_if_near(self, kind: str, word: str, known: Iterable[str]) -> None:
        if (answer := did_you_mean(kind, word, known)) is not None:
            self.exit(USAGE, f"{without_keys(answer, self._words)}\n")

    def error(self, message: str) -> NoReturn:
        message += _HINTS.get((self.prog.partition(" ")[2], message), "")
        usage = self.format_usage()
        if self.first:
            usage = f"usage: {self.prog} …  ('{self.prog} --help' explains the options)\n"
        self.exit(2, f"{usage}{self.prog}: error: {without_keys(message, self._words)}\n")


_FORM = "format of the report (default: by the ending of --output, else text)"


def add_format_option(
    parser: argparse.ArgumentParser,
    command: Command,
    form: str,
    *,
    for_report: bool = False,
    default: str | None = None,
) -> None:
    """Add `--format`. Its help text begins with `form` and lists the formats of the command."""
    # Lazy import: the app starts without report forms.
    from workbench.show.forms import forms_of

    forms = forms_of(command, for_report=for_report)
    group(parser, REPORTS).add_argument(
        "--format", choices=forms, default=default, metavar="FORM", help=f"{form}: {', '.join(forms)}"
    )


def add_report_options(
    parser: argparse.ArgumentParser,
    command: Command,
    form: str = _FORM,
    *,
    for_report: bool = False,
    summary: bool = True,
) -> None:
    """Add the options for the report of a command.

    `form` begins the help of `--format`. With `for_report`, formats that are written during the runs are left
    out. With `summary`, jobs of GitHub Actions get a summary."""
    # Lazy import: the app starts without report forms.
    from workbench.show.forms import endings_of

    reports = group(parser, REPORTS)
    add_format_option(parser, command, form, for_report=for_report)
    reports.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write the report to this file instead, in the form of its ending: "
        f"{endings_of(command, for_report=for_report)}",
    )
    add_report_option(parser, command)
    if command in ("run", "grade", "history merge"):
        add_lean_option(parser)
    if summary:
        reports.add_argument("--no-step-summary", action="store_true", help="write no summary of a GitHub Actions job")


def add_lean_option(parser: argparse.ArgumentParser) -> None:
    """Add `--lean`: smaller JSON reports."""
    help_ = "make JSON reports smaller: each checked argument once, no null or empty values"
    group(parser, REPORTS).add_argument("--lean", action="store_true", help=help_)


def add_report_option(parser: argparse.ArgumentParser, command: Command) -> None:
    # Lazy import: the app starts without report forms.
    from workbench.show.forms import endings_of

    group(parser, REPORTS).add_argument(
        "--report",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="also write the report here, in the form of the ending; repeatable: "
        f"{endings_of(command, for_report=True)}",
    )


QUIET = "print three lines: result, failures, where the rest is"
"""The help of `--quiet` for commands that report on runs."""


def add_amount_options(parser: argparse.ArgumentParser, verbose: str) -> None:
    """Add `--quiet` and `--verbose`, the level of detail of a report. `verbose` is the help of `--verbose`."""
    amount = group(parser, REPORTS).add_mutually_exclusive_group()
    amount.add_argument("-q", "--quiet", action="store_true", help=QUIET)
    amount.add_argument("-v", "--verbose", action="store_true", help=verbose)


EXIT_CODES = "exit codes"
"""The last heading of `--help`, for the exit codes."""


def add_exit_codes(parser: argparse.ArgumentParser, meanings: Mapping[int, str]) -> None:
    """Explain the exit codes at the end of `--help`, success first."""
    parser.add_argument_group(EXIT_CODES, "; ".join(f"{code} {meaning}" for code, meaning in meanings.items()))


def add_samples_option(parser: argparse.ArgumentParser) -> None:
    """Add `--samples`, which selects the bundled samples."""
    group(parser, CASES).add_argument("--samples", action="store_true", help="the installed sample suites")


def paths_of(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the paths in the arguments. `--samples` adds the path of the samples."""
    if not arguments.samples:
        return tuple(arguments.paths)
    # Lazy import: `--help` stays fast.
    from workbench.config.folders import bundled

    return (*arguments.paths, str(bundled("sample_suites")))


def add_history_options(parser: argparse.ArgumentParser, *, may_be_none: bool = True) -> None:
    """Add the options for the history's file.

    If `may_be_none` is false, the command needs a history."""
    purpose = "store batches in" if may_be_none else "use"
    which = group(parser, HISTORY).add_mutually_exclusive_group()
    which.add_argument(
        "--history",
        type=Path,
        metavar="FILE",
        help=f"{purpose} this history instead of the project's or your own",
    )
    if may_be_none:
        which.add_argument("--no-history", action="store_true", help="store no runs")


def history_of(arguments: argparse.Namespace, paths: Sequence[str | Path]) -> Path | None:
    """Return the history file for batches of suites at the paths, `None` if batches are not recorded."""
    if getattr(arguments, "no_history", False):
        return None
    return history_to_read(arguments, paths)


def history_to_read(arguments: argparse.Namespace, paths: Sequence[str | Path]) -> Path:
    """Return the history that `--history` names, otherwise the history of the first path's project."""
    from workbench.config.folders import folder_of, history_file, home_folder, user_folders

    if arguments.history is not None:
        named: Path = arguments.history
        return named
    first = Path(paths[0]) if paths else Path()
    return history_file(user_folders(), folder_of(first), home_folder(os.environ))


def names_batch(name: str) -> bool:
    """Return whether a word can be the name of a batch (`12`, `#12`, `main`) and is not a path."""
    is_path = not name or os.path.lexists(name) or os.sep in name
    return not is_path and not name.endswith((".jsonl", ".json", ".toml"))


def add_named_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a batch of the history, or a recording")
    parser.add_argument(
        "--run", dest="number", type=natural, metavar="N", help="the number of the run in 'history show'"
    )


def natural(text: str) -> int:
    """Parse a number from 1 to 999,999,999."""
    return number_from(text, 1)


def number_from(text: str, minimum: int, maximum: int = 999_999_999) -> int:
    """Parse a number between two bounds."""
    # The length is checked first, because a conversion of thousands of digits is slow.
    if not text.isdecimal() or len(text) > 9 or not minimum <= int(text) <= maximum:
        raise argparse.ArgumentTypeError(f"write a number from {minimum} to {maximum}")
    return int(text)


def grading_number(text: str) -> int | str:
    """Parse the number of a regrade, or `latest`."""
    if text == "latest":
        return text
    try:
        return natural(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, or latest") from None
