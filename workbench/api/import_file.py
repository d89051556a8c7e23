"""Imports files of other tools as suites, without calling a model or running code of the file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path

from workbench.api.suites import LoadedSuite, SuitePath, UsageError, load
from workbench.config.folders import user_folders
from workbench.config.program import create_program
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.exchange.importers.forms import FORMS
from workbench.exchange.importers.import_files import (
    ImportOptions,
    ImportReport,
    require_unused_paths,
    run_of,
    write_import,
)
from workbench.exchange.importers.import_files import import_file as import_by_options
from workbench.exchange.importers.source_files import RefusedError
from workbench.exchange.importers.tables import MEANINGS
from workbench.grading.grade import RunResult
from workbench.suite.suite_file import parse_suite


@dataclass(frozen=True)
class Imported:
    """The suite and the runs that `import_file` made from a file. `save` writes them."""

    form: str
    """The form of the file, by its name in `workbench import --from`."""
    suite: str
    """The text of the suite."""
    report: tuple[str, ...]
    """The notes of the import: for each case the mapped fields (✓) and the dropped or changed fields (·), then notes on
    the file as a whole."""
    _done: ImportReport = field(repr=False)
    _secrets: Secrets = field(repr=False)

    @cached_property
    def results(self) -> tuple[RunResult, ...]:
        """The runs of the file, graded by their cases."""
        made = self._done.made
        if made.file.suite is None:
            return ()
        results = []
        for case, imported in zip(made.file.suite.cases, made.cases, strict=True):
            for repeat, run in enumerate(imported.runs):
                results.append(run_of(made.file, case, run, repeat)[2])
        return tuple(results)

    def save(self, path: SuitePath, recordings: SuitePath | None = None, *, force: bool = False) -> LoadedSuite:
        """Write the suite to `path`, and its runs into the folder `recordings`, if given. Return the suite.

        Raises UsageError if the file or the folder exists. With `force`, the suite is replaced, and the runs are added
        to the folder."""
        suite, folder = Path(path), None
        if recordings is not None:
            folder = Path(recordings)
        made = replace(self._done.made, file=parse_suite(self.suite, suite))
        try:
            # Both paths are checked before anything is written, so a refusal leaves nothing behind.
            if not force:
                require_unused_paths(suite, folder, "path")
            write_import(made, suite, folder, self._secrets, force=force)
        except RefusedError as error:
            raise UsageError(self._secrets.redact(str(error))) from None
        return load(suite)


def import_file(
    path: SuitePath,
    form: str | None = None,
    *,
    fields: Mapping[str, str] | None = None,
    tools_from: SuitePath | None = None,
) -> Imported:
    """Convert a file of another tool into a suite, and its runs into results, as `workbench import` does.

    The form of the file is recognised unless `form` names it. `fields` says which columns of a table to read, such as
    `{"user": "question"}`. `tools_from` is a suite or a JSON file that defines the tools. Only the command line imports
    Python files, because the import executes them. Raises UsageError for a file that cannot be imported.

    >>> import json, pathlib, workbench
    >>> asked = [{"role": "user", "content": "How are you?"}, {"role": "assistant", "content": "Fine."}]
    >>> _ = pathlib.Path("chat.json").write_text(json.dumps(asked))
    >>> imported = workbench.import_file("chat.json")
    >>> imported.form, [result.status for result in imported.results]
    ('openai', ['passed'])
    >>> print(imported.report[2].strip())
    ✓ no call was made → expect_no_calls
    >>> [case.id for case in imported.save("chat.toml").cases]
    ['how-are-you']"""
    program = create_program(user_folders(), os.environ)
    if form is not None and form not in FORMS:
        raise UsageError(f"{form!r} is not one of the forms {', '.join(FORMS)}")
    if unknown := sorted({*(fields or ())} - {*MEANINGS}):
        raise UsageError(f"fields has {unknown[0]!r}, which is not one of {', '.join(MEANINGS)}")
    # With `dry_run`, nothing is written. Until `save` is called, `output` only names the suite, so a file with this
    # name may exist.
    file = Path(path)
    options = ImportOptions(file=file, output=file.with_suffix(".toml"), form=form, dry_run=True)
    if fields is not None:
        options = replace(options, fields=dict(fields))
    if tools_from is not None:
        options = replace(options, tools_from=Path(tools_from))
    try:
        done = import_by_options(options, program.secrets)
    except RefusedError as error:
        raise UsageError(program.secrets.redact(str(error))) from None
    report = tuple(map(program.secrets.redact, done.findings))
    return Imported(done.form, done.made.file.text, report, done, program.secrets)
