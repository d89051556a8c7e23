"""Write `docs/command-line.md` from the parsers of the commands. A test keeps the two the same.

The script keeps the beginning of the page, and what stands behind the mark "by hand" in the section of a command: what
`--help` cannot say.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from workbench.cli.app import parser_of_app
from workbench.cli.main import COMMANDS, WORDS, parser_of
from workbench.cli.parser import EXIT_CODES

PAGE = Path(__file__).parent / "command-line.md"
_MADE = "<!-- made by docs/make_command_line.py, but for what is marked -->\n"
_BY_HAND = "<!-- by hand -->\n"
_EVERYWHERE = ("2 wrong usage or missing trust", "130 interrupted")
_SECTION = re.compile(r"^#{2,3} `(workbench[^`]*)`\n", re.MULTILINE)


def made_page() -> str:
    """Return the page as the parsers make it, with the parts by hand that it has.

    Raises ValueError for a part by hand that belongs to no command.
    """
    start, _, sections = PAGE.read_text(encoding="utf-8").partition(_MADE)
    _, *parts = _SECTION.split(sections)
    by_hand = {
        title: text.partition(_BY_HAND)[2].strip("\n") for title, text in zip(parts[::2], parts[1::2], strict=True)
    }
    links = " · ".join(f"[{name}](#workbench-{name})" for name in COMMANDS)
    made = [f"{start}{_MADE}\n{links}\n"]
    first_in: dict[str, str] = {}
    for parser in _parsers():
        made.append(_section(parser, first_in))
        if kept := by_hand.pop(parser.prog, ""):
            made.append(f"{_BY_HAND}\n{kept}\n")
    if lost := [title for title, kept in by_hand.items() if kept]:
        raise ValueError(f"no command has these parts by hand: {', '.join(lost)}")
    return "\n".join(made)


def _parsers() -> Iterator[argparse.ArgumentParser]:
    """Yield the parser of every command: `run` first, then the app; each second word after its command."""
    for name in COMMANDS:
        parser = parser_of(name)
        yield parser
        if name == "run":
            yield parser_of_app(COMMANDS)
        yield from _second_words(parser).values()
        yield from (parser_of(words) for words in WORDS if words.startswith(f"{name} "))


def _second_words(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(*found)


def _section(parser: argparse.ArgumentParser, first_in: dict[str, str]) -> str:
    """Return what `--help` says of a command.

    `first_in` names the command that each row was written for: what an earlier command has alike is only named.
    """
    title = parser.prog
    blocks = [f"{'#' * (len(title.split()) if ' ' in title else 2)} `{title}`", str(parser.description)]
    if any(not action.option_strings for action in parser._actions) and not _second_words(parser):
        blocks.append(f"```\n{_usage(parser)}```")
    rows: list[str] = []
    shared: dict[str, list[str]] = {}
    for action in parser._actions:
        if isinstance(action, (argparse._HelpAction, argparse._SubParsersAction)):
            continue
        row = _row(action)
        owner = first_in.setdefault(row, title)
        if owner == title:
            rows.append(row)
        elif action.option_strings:
            shared.setdefault(owner, []).append(f"`{action.option_strings[-1]}`")
    codes = [_codes(str(group.description)) for group in parser._action_groups if group.title == EXIT_CODES]
    for text in codes:
        owner = first_in.setdefault(text, title)
        if owner != title:
            shared.setdefault(owner, []).append("the exit codes")
            codes = []
    if rows:
        blocks.append("\n".join(rows))
    if shared:
        blocks.append(" ".join(f"As for {_link(owner)}: {', '.join(names)}." for owner, names in shared.items()))
    blocks += [f"Exit codes: {_marked(text)}." for text in codes]
    return "\n\n".join(blocks) + "\n"


def _codes(text: str) -> str:
    """Return the exit codes of a command but those that the beginning of the page explains."""
    return "; ".join(code for code in text.split("; ") if code not in _EVERYWHERE)


def _link(title: str) -> str:
    return f"[`{title.removeprefix('workbench ')}`](#{title.replace(' ', '-')})"


def _usage(parser: argparse.ArgumentParser) -> str:
    """Return the usage of a parser without the options, which have rows."""
    if isinstance(parser.usage, str):
        return f"{parser.usage.replace('       ', '')}\n"
    words = argparse.ArgumentParser(parser.prog, add_help=False)
    words._actions = [action for action in parser._actions if not action.option_strings]
    if len(parser._actions) > len(words._actions) + 1:  # more than --help
        words.prog += " [options]"
    return words.format_usage().removeprefix("usage: ")


def _row(action: argparse.Action) -> str:
    """Return the row of an argument or option, with its choices after its meaning if that does not name them."""
    choices = [*map(str, action.choices or ())]
    *short, last = action.option_strings or [""]
    name = ", ".join([*(f"`{each}`" for each in short), f"`{f'{last} {_value(action, choices)}'.strip()}`"])
    # docs/reports.md lists the endings.
    meaning = re.sub(r"(; may be repeated)?: \..*", "", str(action.help) % {**vars(action), "prog": ""})
    if any(choice not in meaning for choice in choices):
        meaning += f": {', '.join(choices)}"
    return f"- {name}: {_marked(meaning)}"


def _value(action: argparse.Action, choices: list[str]) -> str:
    """Return how `--help` calls the value of an argument or option, empty if it lists choices."""
    if not action.option_strings:
        return str(action.metavar or action.dest)
    if len(choices) == 1:
        return choices[0]
    value = str(action.metavar or "")
    return f"[{value}]" if action.nargs == "?" else value


def _marked(text: str) -> str:
    """Return a text of `--help` with its commands and options as code."""
    return re.sub(
        r"(?<!\w)[`']([^`']+)[`'](?!\w)|(?<![\w-])(--[a-z-]+)", lambda found: f"`{found[1] or found[2]}`", text
    )


if __name__ == "__main__":
    PAGE.write_text(made_page(), encoding="utf-8")
