"""Writes `docs/command-line.md` from the parsers of the commands. A test compares the two.

The script preserves the beginning of the page, and the text after the mark "by hand" in the section of a command, which
`--help` cannot provide."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from workbench.cli.app import parser_of_app
from workbench.cli.main import COMMANDS, WORDS, parser_of
from workbench.cli.parser import ABOUT_HELP, EXIT_CODES, words_of
from workbench.config.settings_file import SETTINGS

PAGE = Path(__file__).parent / "command-line.md"
_MADE = "<!-- made by docs/make_command_line.py, but for what is marked -->\n"
_BY_HAND = "<!--by-hand-->\n"
_EVERYWHERE = ("2 wrong usage or missing trust", "130 interrupted")
_OF_RUNS = (
    "--samples",
    "--model",
    "--base-url",
    "--api-key-env",
    "--param",
    "--case",
    "--tag",
    "--repeats",
    "--concurrency",
    "--execute",
    "--execute-all",
    "--judge",
    "--no-judge-cache",
    "--trust",
    "--pace",
    "--no-history",
)
"""Options of all commands that run cases. They have their own section."""
_RUNS = "options of runs"
_LISTED_ELSEWHERE = {
    "--fault": "only this [fault](lab.md#faults)",
    "--kind": "only this kind of [mutant](lab.md#mutants)",
    "--preset": "a [known endpoint](models.md#known-endpoints), with its address and key",
    "--from": "the [form](importing.md#forms), if it is not recognized",
    "--until": "stop as soon as a sequential test [decides](comparing.md#stopping-early)",
    "--shard-by": "[divide runs](beyond-one-terminal.md#shards) in `turn` (default), or by `cost`",
}
"""Options whose values another page explains."""
_PAGES = {
    "workbench grade": "[grading again](recordings.md#grading-again) and [calls](your-agent.md#calls-from-a-file)",
    "workbench attach": "[without a terminal](beyond-one-terminal.md#without-a-terminal)",
    "workbench tools": "[tools and mocks](tools-and-mocks.md)",
    "workbench models": "[models](models.md) and [`--tools`](models.md#how-an-endpoint-handles-tools)",
    "workbench faults": "[faults](lab.md#faults)",
    "workbench mutate": "[mutation](lab.md#mutants)",
    "workbench shrink": "[shrinking](lab.md#the-least-of-a-case-that-fails)",
    "workbench fix-prompt": "[fix prompts](results.md#a-prompt-for-a-coding-agent)",
    "workbench accept": "[accepting runs](recording.md#accept-several-runs)",
    "workbench validate": "[the audit](authoring.md#audit) and [findings](reports.md#findings-in-suites-and-tools)",
    "workbench export": "[exporting](importing.md#exported-forms)",
    "workbench import": "[importing](importing.md)",
    "workbench record": "[recording](recording.md#record-a-program-and-its-model)",
    "workbench mcp": "[coding agents](coding-agents.md)",
    "workbench serve": "[in a browser](beyond-one-terminal.md#in-a-browser)",
    "workbench init": "[a suite for your MCP server](first-steps.md#a-suite-for-your-mcp-server)",
}
"""Links after the purpose of a command."""
_MOST_MISSING = 3
"""The maximum number of missing options of runs that a section lists. Other sections list the options that the command
has."""
_SECTION = re.compile(r"^#{2,3} `(workbench[^`]*)`\n", re.MULTILINE)


def made_page() -> str:
    """Return the page with its handwritten parts. Raises ValueError if a part belongs to no command."""
    start, _, sections = PAGE.read_text(encoding="utf-8").partition(_MADE)
    _, *parts = _SECTION.split(sections)
    by_hand = {
        title: text.partition(_BY_HAND)[2].strip("\n") for title, text in zip(parts[::2], parts[1::2], strict=True)
    }
    first_in: dict[str, str] = {}
    made = [f"{start}{_MADE}", _section_of_runs(first_in)]
    for parser in _parsers():
        made.append(_section(parser, first_in))
        if kept := by_hand.pop(parser.prog, ""):
            made.append(f"{_BY_HAND}\n{kept}\n")
    if lost := [title for title, kept in by_hand.items() if kept]:
        raise ValueError(f"no command has these parts by hand: {', '.join(lost)}")
    return "\n".join(made)


def _parsers() -> Iterator[argparse.ArgumentParser]:
    """Yield the parser of every command: `run` first, then the app, and subcommands after their command."""
    for name in COMMANDS:
        parser = parser_of(name)
        yield parser
        if name == "run":
            yield parser_of_app(COMMANDS)
        yield from _second_words(parser).values()
        yield from (parser_of(words) for words in WORDS if words.startswith(f"{name} "))


def _second_words(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            # Commands without help are former names.
            found = {each.dest: action.choices[each.dest] for each in action._choices_actions}
    return found


def _section_of_runs(first_in: dict[str, str]) -> str:
    """Return the section of the options that all commands that run cases share, in the words of `run`."""
    rows = [_row(parser_of("run")._option_string_actions[option]) for option in _OF_RUNS]
    first_in.update(dict.fromkeys(rows, _RUNS))
    start = f"## {_RUNS.capitalize()}\n\nFor commands that run cases; they take any number of `PATH`s:"
    return "\n".join([start, "", *rows, ""])


def _section(parser: argparse.ArgumentParser, first_in: dict[str, str]) -> str:
    """Return the content of a command's `--help`.

    `first_in` names the section that first has each row. Rows that equal an earlier section's are only named."""
    title = parser.prog
    blocks = [f"{'#' * (len(title.split()) if ' ' in title else 2)} `{title}`", _purpose(parser)]
    rows: list[str] = []
    keys: list[str] = []
    shared: dict[str, list[str]] = {}
    for action in parser._actions:
        option = action.option_strings[-1] if action.option_strings else ""
        if isinstance(action, argparse._SubParsersAction) or _explained(action):
            continue
        row = _row(action)
        if title == "workbench models add" and _sets_key(option):
            keys.append(option)
            continue
        if option == "--format":
            rows.append(row)
            continue
        owner = first_in.setdefault(row, title)
        if owner == title or not option:
            rows.append(row)
        else:
            shared.setdefault(owner, []).append(option)
    codes = [_codes(str(group.description)) for group in parser._action_groups if group.title == EXIT_CODES]
    for text in codes:
        owner = first_in.setdefault(text, title)
        if owner != title:
            shared.setdefault(owner, []).append("exit codes")
            codes = []
    if keys:
        rows.append(f"- {_listed(keys)}: the [keys](models.md#workbenchtoml) of these names")
    if rows:
        blocks.append("\n".join(rows))
    if shared:
        own = {option for action in parser._actions for option in action.option_strings}
        blocks.append(" ".join(_shared(owner, names, own) for owner, names in shared.items()))
    blocks += [f"Exit codes: {_marked(text)}." for text in codes]
    return "\n\n".join(blocks) + "\n"


def _sets_key(option: str) -> bool:
    """Return whether an option of `models add` sets the key of the same name, which docs/models.md explains."""
    name = option.removeprefix("--").replace("-", "_")
    return name in SETTINGS or f"{name}s" in SETTINGS


def _purpose(parser: argparse.ArgumentParser) -> str:
    """Return the purpose of a command, with a link to the page that explains it."""
    links = _PAGES.get(parser.prog)
    return f"{parser.description} See {links}." if links else str(parser.description)


def _explained(action: argparse.Action) -> bool:
    """Return whether an option or the paths are explained at the beginning of the page, or hidden from `--help`."""
    if isinstance(action, ABOUT_HELP) or action.help == argparse.SUPPRESS:
        return True
    paths = action.nargs == "*" and re.fullmatch(r"suite files, or folders of them(; .*)?", str(action.help))
    return "--history" in action.option_strings or bool(paths)


def _shared(owner: str, names: list[str], own: set[str]) -> str:
    """Return a sentence on the rows that a command with the options `own` shares with an earlier section."""
    missing = [option for option in _OF_RUNS if option not in own]
    if owner == _RUNS and len(missing) <= _MOST_MISSING:
        but = f" but {_listed(missing)}" if missing else ""
        return f"Also the {_link(owner)}{but}."
    return f"As in {_link(owner)}: {_listed(names)}."


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" if name.startswith("-") else name for name in names)


def _codes(text: str) -> str:
    """Return the exit codes of a command without those explained at the beginning of the page.

    Success is one of those, unless it has alternatives."""
    success, *others = text.split("; ")
    shown = [code for code in others if code not in _EVERYWHERE]
    return "; ".join([success, *shown] if "or" in success.split() else shown)


def _link(title: str) -> str:
    text = title if title == _RUNS else f"`{title.removeprefix('workbench ')}`"
    return f"[{text}](#{title.replace(' ', '-')})"


def _row(action: argparse.Action) -> str:
    """Return the row of an argument or option. Its choices follow its meaning unless the meaning names them."""
    choices = [*map(str, action.choices or ())]
    *short, last = action.option_strings or [""]
    elsewhere = _LISTED_ELSEWHERE.get(last)
    last = f"{last} {_value(action, choices)}".strip()
    if re.search("; repeatable|A,B for several", str(action.help)):
        last += "..."
    name = ", ".join(f"`{each}`" for each in (*short, last))
    if last.startswith("--format"):  # the beginning of the page explains it
        return f"- {name}: {', '.join(choices)}"
    if elsewhere is not None:
        return f"- {name}: {elsewhere}"
    # docs/reports.md lists the endings, and dots after the name say that an option may be repeated.
    meaning = re.sub(r"(; repeatable)?(: \..*)?$", "", str(action.help) % {**vars(action), "prog": ""})
    if any(choice not in meaning for choice in choices):
        meaning += f": {', '.join(choices)}"
    return f"- {name}: {_marked(meaning)}"


def _value(action: argparse.Action, choices: list[str]) -> str:
    """Return the name of the value in `--help`. It is empty if `--help` lists the choices."""
    if not action.option_strings:
        return words_of(action)
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
