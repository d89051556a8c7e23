"""Write `docs/command-line.md` from the parsers of the commands. A test keeps the two the same.

The script writes what stands behind `<!-- made -->` and keeps what stands behind `<!-- by hand: NAME -->`: what
`--help` cannot say. NAME is a command, or `start` or `end` of the page.
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
_BY_HAND = re.compile(r"^<!-- by hand: ([\w -]+) -->\n(.*?)(?=^<!-- |\Z)", re.MULTILINE | re.DOTALL)


def made_page() -> str:
    """Return the page as the parsers make it, with the parts by hand that it has.

    Raises ValueError for a part by hand that belongs to no command.
    """
    by_hand = {name: text.strip("\n") for name, text in _BY_HAND.findall(PAGE.read_text(encoding="utf-8"))}

    def kept(name: str) -> str:
        text = by_hand.pop(name, "")
        return f"<!-- by hand: {name} -->\n\n{text}\n\n<!-- made -->\n\n" if text else ""

    parts = [kept("start"), " · ".join(f"[{name}](#workbench-{name})" for name in COMMANDS), "\n\n"]
    first_in: dict[str, str] = {}
    for name, parser in _parsers():
        parts += [_section(name, parser, first_in), "\n\n", kept(name)]
    parts.append(kept("end").removesuffix("\n<!-- made -->\n\n"))
    if by_hand:
        raise ValueError(f"parts by hand of no command: {', '.join(by_hand)}")
    return "".join(parts)


def _parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield every command with its parser: `run` first, the app as `app`, each second word after its command."""
    for name in COMMANDS:
        parser = parser_of(name)
        yield name, parser
        if name == "run":
            yield "app", parser_of_app(COMMANDS)
        yield from ((f"{name} {word}", words) for word, words in _second_words(parser).items())
        yield from ((word, parser_of(word)) for word in WORDS if word.startswith(f"{name} "))


def _second_words(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(*found)


def _section(name: str, parser: argparse.ArgumentParser, first_in: dict[str, str]) -> str:
    """Return what `--help` says of a command.

    `first_in` names the command that each row was written for: what an earlier command has alike is only named.
    """
    title = "workbench" if name == "app" else f"workbench {name}"
    blocks = [f"{'###' if ' ' in name else '##'} `{title}`", str(parser.description)]
    if any(not action.option_strings and action.metavar != "WORD" for action in parser._actions):
        blocks.append(f"```\n{_usage(parser)}```")
    rows: list[str] = []
    shared: dict[str, list[str]] = {}
    for action in parser._actions:
        if isinstance(action, (argparse._HelpAction, argparse._SubParsersAction)):
            continue
        row = _row(action)
        owner = first_in.setdefault(row, name)
        if owner == name:
            rows.append(row)
        elif action.option_strings:
            shared.setdefault(owner, []).append(f"`{action.option_strings[-1]}`")
    codes = [str(group.description) for group in parser._action_groups if group.title == EXIT_CODES]
    for text in codes:
        owner = first_in.setdefault(text, name)
        if owner != name:
            shared.setdefault(owner, []).append("the exit codes")
            codes = []
    if rows:
        blocks.append("\n".join(rows))
    if shared:
        blocks.append(" ".join(f"As for {_link(owner)}: {', '.join(names)}." for owner, names in shared.items()))
    blocks += [f"Exit codes: {_marked(text)}." for text in codes]
    return "\n\n".join(blocks)


def _link(name: str) -> str:
    title = f"workbench {name}".removesuffix(" app")
    return f"[`{name.replace('app', 'workbench')}`](#{title.replace(' ', '-')})"


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
    value = str(action.metavar or (choices[0] if len(choices) == 1 else "" if action.option_strings else action.dest))
    *short, last = action.option_strings or [""]
    name = ", ".join([*(f"`{each}`" for each in short), f"`{f'{last} {value}'.strip()}`"])
    # docs/reports.md lists the endings.
    meaning = re.sub(r"(; may be repeated)?: \..*", "", str(action.help) % {**vars(action), "prog": ""})
    if any(choice not in meaning for choice in choices):
        meaning += f": {', '.join(choices)}"
    return f"- {name}: {_marked(meaning)}"


def _marked(text: str) -> str:
    """Return a text of `--help` with its commands and options as code."""
    return re.sub(
        r"(?<!\w)[`']([^`']+)[`'](?!\w)|(?<![\w-])(--[a-z-]+)", lambda found: f"`{found[1] or found[2]}`", text
    )


if __name__ == "__main__":
    PAGE.write_text(made_page(), encoding="utf-8")
