"""Forms, which are the output formats of commands: their names, file endings and writers.

A writer is a function. It takes the result of a command, such as an `evaluation.report.Report`, and yields its text in
pieces, one run at a time. The text holds no secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

from workbench.limits import MAX_DOCUMENT_RUNS

Command = Literal[
    "run",
    "grade",
    "history show",
    "history merge",
    "compare",
    "history diff",
    "validate",
    "tools",
    "submission",
    "faults",
]

PLAIN_WIDTH = 120
"""Width in columns of text output that does not go to a terminal."""

_OWN = ""
"""Marks a form whose writer is part of the command."""
_RUN_COMMANDS: tuple[Command, ...] = ("run", "grade", "history show", "history merge")
_FINDING_COMMANDS: tuple[Command, ...] = ("validate", "tools")
_ALL: tuple[Command, ...] = (*_RUN_COMMANDS, "compare", "history diff")


class Form(NamedTuple):
    """An output format. `writers` names, for each command that offers the format, a function as `module:function`."""

    name: str
    endings: tuple[str, ...]
    # The purpose is in the help of commands and in the table of forms in `docs/reports.md`.
    purpose: str
    writers: Mapping[Command, str]
    replaces_report: bool = False
    """Whether the form can only replace the report (`--format`, `--output`).

    `--report` cannot write it beside the report."""
    is_json: bool = False
    """Whether the form's text is JSON or JSON lines."""

    def longest_ending(self, file: Path) -> int:
        """Return the length of the form's longest ending that matches the file's name, or 0 if none matches."""
        name = file.name.lower()
        longest = 0
        for ending in self.endings:
            # `.json` alone is a name without an ending, because nothing precedes it.
            if name.endswith(ending) and len(name) > len(ending):
                longest = max(longest, len(ending))
        return longest


def _of_runs(writer: str) -> dict[Command, str]:
    return dict.fromkeys(_RUN_COMMANDS, f"workbench.show.{writer}")


FORMS: tuple[Form, ...] = (
    Form(
        "text",
        (".txt", ".log"),
        "the text of the terminal, without colours",
        dict.fromkeys((*_ALL, *_FINDING_COMMANDS, "faults"), _OWN),
    ),
    Form(
        "json",
        (".json",),
        "everything, with a JSON schema",
        dict.fromkeys((*_ALL, "tools", "faults"), _OWN)
        | {"submission": "workbench.show.views.submission:json_of_submission"},
        is_json=True,
    ),
    Form(
        "jsonl",
        (".jsonl",),
        "the events of all runs, while they happen",
        {"run": _OWN},
        replaces_report=True,
        is_json=True,
    ),
    Form(
        "github",
        (),
        "the text, with annotations at the lines of cases; the default in a job of GitHub Actions",
        dict.fromkeys(("run", "grade", "history merge", *_FINDING_COMMANDS), _OWN),
        replaces_report=True,
    ),
    Form(
        "records",
        (".jsonl",),
        "a line of JSON for each run, compared case or change",
        {
            **_of_runs("json.report:lines_of_runs"),
            "compare": "workbench.show.json.comparison:lines_of_comparison",
            "history diff": "workbench.show.json.history:lines_of_diff",
        },
        is_json=True,
    ),
    Form(
        "csv",
        (".csv",),
        "a row for each run, compared case or change, for spreadsheets",
        {
            **_of_runs("csv_rows:rows_of_runs"),
            "compare": "workbench.show.csv_rows:rows_of_comparison",
            "history diff": "workbench.show.csv_rows:rows_of_diff",
            "submission": "workbench.show.views.submission:rows_of_submission",
        },
    ),
    Form(
        "junit", (".xml",), "JUnit XML, for GitLab, Jenkins and the actions of GitHub", _of_runs("junit:junit_pieces")
    ),
    Form(
        "markdown",
        (".md", ".markdown"),
        "for a pull request",
        {
            **_of_runs("views.batch_markdown:markdown_pieces"),
            "compare": _OWN,
            "history diff": _OWN,
            "submission": "workbench.show.views.submission:markdown_of_submission",
        },
    ),
    Form(
        "html",
        (".html", ".htm"),
        "a page for a browser, in one file: charts, cases by model, every run in full",
        {**_of_runs("html.runs:page_of_runs"), "compare": _OWN, "history diff": _OWN, "faults": _OWN},
    ),
    Form(
        "sarif",
        (".sarif", ".sarif.json"),
        "findings for code scanning",
        dict.fromkeys(_FINDING_COMMANDS, "workbench.show.views.findings:sarif"),
        is_json=True,
    ),
    Form(
        "codequality",
        (".codequality.json",),
        "findings for merge requests of GitLab",
        dict.fromkeys(_FINDING_COMMANDS, "workbench.show.views.findings:code_quality"),
        is_json=True,
    ),
)


LINES_MAX = 10_000
"""Maximum number of runs or changes in a text. The other forms have no such limit."""
RUN_BY_RUN = "give --format records, JSON lines of one run each, or csv"
# Programs and browsers load a report in one of these forms as a whole, so the number of runs is limited.
_ONE_DOCUMENT = ("json", "html")


def why_too_many(form: str | None, runs: int, instead: str = RUN_BY_RUN) -> str | None:
    """Return a message if there are too many runs for a report of `form`, otherwise `None`.

    `instead` is the advice at the end of the message."""
    if form not in _ONE_DOCUMENT or runs <= MAX_DOCUMENT_RUNS:
        return None
    return MAX_DOCUMENT_RUNS.reached(form=form, runs=runs, instead=instead)


def forms_of(command: Command, *, for_report: bool = False) -> tuple[str, ...]:
    """Return the names of the forms that a command offers.

    With `for_report`, omit forms that `--report` cannot write."""
    names = []
    for form in FORMS:
        # With `--report`, the usual report is printed too. Some forms can only replace that report.
        if command in form.writers and not (for_report and form.replaces_report):
            names.append(form.name)
    return tuple(names)


def form_of_file(file: Path, command: Command, requested: str | None = None, *, for_report: bool = False) -> str | None:
    """Return the name of the command's form whose ending the file has, or `None` if no form has that ending.

    If several forms match, return `requested` if it is one of them, otherwise the form with the longest ending."""
    known = forms_of(command, for_report=for_report)
    endings = {}
    for form in FORMS:
        longest = form.longest_ending(file)
        if form.name in known and longest:
            endings[form.name] = longest
    if requested in endings:
        return requested
    # `.sarif.json` also ends in `.json`, so the longest ending takes precedence.
    return max(endings, key=endings.__getitem__, default=None)


def any_form_of_file(file: Path) -> str | None:
    """Return the name of a form of any command whose ending the file has, or `None` if no form has that ending."""
    for form in FORMS:
        if form.longest_ending(file):
            return form.name
    return None


def is_json(name: str | None) -> bool:
    """Return whether the text of the form with this name is JSON."""
    return any(form.is_json for form in FORMS if form.name == name)


def endings_of(command: Command, *, for_report: bool = False) -> str:
    """Return the file endings of a command's reports as text, such as `.txt, .json`."""
    known = forms_of(command, for_report=for_report)
    endings: dict[str, None] = {}
    for form in FORMS:
        if form.name in known and form.endings:
            endings[form.endings[0]] = None
    return ", ".join(endings)


def pieces_of(form: str, command: Command, subject: Any) -> Iterator[str]:
    """Yield the text of a command's report in pieces. `subject` is the result that the form's writer takes."""
    writer = next(each.writers[command] for each in FORMS if each.name == form)
    module, _, function = writer.partition(":")
    # Lazy import: few commands write more than one form.
    write: Callable[[Any], Iterable[str]] = getattr(import_module(module), function)
    yield from write(subject)
