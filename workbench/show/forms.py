"""The forms in which results are written: their names, how their files end, which commands have them, who writes them.

A writer is a function that takes what a command reports on (`evaluation.report.Report` for runs) and yields the text in
pieces that hold no secrets, one run after the other.
"""

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
"""Columns of a text that does not go to a terminal."""

_OWN = ""
"""In the place of a writer: the command knows how."""
_OF_RUNS: tuple[Command, ...] = ("run", "grade", "history show", "history merge")
_OF_FINDINGS: tuple[Command, ...] = ("validate", "tools")
_ALL: tuple[Command, ...] = (*_OF_RUNS, "compare", "history diff")


class Form(NamedTuple):
    """A form, and its writer for each command that has it, as `module:function`."""

    name: str
    endings: tuple[str, ...]
    purpose: str
    writers: Mapping[Command, str]
    only_alone: bool = False
    """Whether it stands only in the place of the report (`--format`, `--output`), not beside it (`--report`)."""
    is_json: bool = False
    """Whether its text is JSON, or lines of JSON."""


def _of_runs(writer: str) -> dict[Command, str]:
    return dict.fromkeys(_OF_RUNS, f"workbench.show.{writer}")


FORMS: tuple[Form, ...] = (
    Form(
        "text",
        (".txt", ".log"),
        "what is shown in a terminal, without colours",
        dict.fromkeys((*_ALL, *_OF_FINDINGS, "faults"), _OWN),
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
        only_alone=True,
        is_json=True,
    ),
    Form(
        "github",
        (),
        "the text, with annotations at the lines of cases; the default in a job of GitHub Actions",
        dict.fromkeys(("run", "grade", "history merge", *_OF_FINDINGS), _OWN),
        only_alone=True,
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
        dict.fromkeys(_OF_FINDINGS, "workbench.show.views.findings:sarif"),
        is_json=True,
    ),
    Form(
        "codequality",
        (".codequality.json",),
        "findings for merge requests of GitLab",
        dict.fromkeys(_OF_FINDINGS, "workbench.show.views.findings:code_quality"),
        is_json=True,
    ),
)


LINES_MAX = 10_000
"""Runs or changes that have lines in a text: nobody reads a longer list, and other forms have all of them."""
RUN_BY_RUN = "give --format records, JSON lines of one run each, or csv"
_ONE_DOCUMENT = ("json", "html")


def why_too_many(form: str | None, runs: int, instead: str = RUN_BY_RUN) -> str | None:
    """Return why a report of a form cannot hold so many runs, and the alternative; `None` if it can."""
    if form not in _ONE_DOCUMENT or runs <= MAX_DOCUMENT_RUNS:
        return None
    return MAX_DOCUMENT_RUNS.reached(form=form, runs=runs, instead=instead)


def forms_of(command: Command, *, beside: bool = False) -> tuple[str, ...]:
    """Return the names of the forms that a command has; with `beside`, of those that `--report` writes."""
    return tuple(form.name for form in FORMS if command in form.writers and not (beside and form.only_alone))


def form_of_file(file: Path, command: Command, asked: str | None = None, *, beside: bool = False) -> str | None:
    """Return the form of a command that a file's name stands for; `None` for none.

    The longest ending decides; among forms with the same ending, `asked`.
    """
    known = forms_of(command, beside=beside)
    found = []
    for form in FORMS:
        for ending in form.endings:
            if _ends(file, ending):
                found.append((len(ending), form.name))
    names = [name for _, name in sorted(found, key=lambda each: -each[0]) if name in known]
    return asked if asked in names else next(iter(names), None)


def any_form_of_file(file: Path) -> str | None:
    """Return which form the name of a file means, whatever command has it."""
    return next((form.name for form in FORMS if any(_ends(file, ending) for ending in form.endings)), None)


def is_json(name: str | None) -> bool:
    """Return whether the text of a form is JSON."""
    return any(form.is_json for form in FORMS if form.name == name)


def _ends(file: Path, ending: str) -> bool:
    return file.name.lower().endswith(ending) and len(file.name) > len(ending)


def endings_of(command: Command, *, beside: bool = False) -> str:
    """Return how files of a command's reports end, in one line: `.txt, .json`."""
    known = forms_of(command, beside=beside)
    return ", ".join(dict.fromkeys(form.endings[0] for form in FORMS if form.name in known and form.endings))


def pieces_of(form: str, command: Command, subject: Any) -> Iterator[str]:
    """Yield the report of a command in a form that has a writer."""
    writer = next(each.writers[command] for each in FORMS if each.name == form)
    module, _, function = writer.partition(":")
    # On use: few commands write more than one form.
    write: Callable[[Any], Iterable[str]] = getattr(import_module(module), function)
    yield from write(subject)
