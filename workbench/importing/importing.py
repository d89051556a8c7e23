"""Imports a file, or a folder of files of one form: finds out the form, makes a suite and recordings of it, and says
what it could not take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from workbench.config.secret_values import keys_in
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.grading.agreement import Agreement, AgreementFold
from workbench.importing.bounds import RefusedError
from workbench.importing.forms import FORMS, format_of, forms_that_fit
from workbench.importing.imported import Imported, ImportedCase, Note, not_imported
from workbench.importing.reading import Source, read_source
from workbench.importing.run_making import agreement_of, record_runs
from workbench.importing.suite_making import MadeSuite, made_suite
from workbench.importing.tools_from import undefined_tools, with_tools_from
from workbench.reports.agreement import agreement_lines
from workbench.reports.report_files import why_not_writable
from workbench.suite.numerals import counted
from workbench.suite.render import Table
from workbench.suite.saving import SavingError, save, state_of
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.recording import RecordingError, recordings_in


@dataclass(frozen=True)
class ImportOptions:
    """What to import to where; `file` may be a folder. `form` is found out where it is `None`; `fields` says which
    fields of a table are what, `tools_from` which file defines tools. Existing files are replaced, and recordings added
    to others, only with `force`; with `dry` nothing is written. `source` is what a Python file said when it was run
    (`workbench.importing.arcade.executed`)."""

    file: Path
    output: Path
    form: str | None = None
    runs: Path | None = None
    fields: dict[str, str] | None = None
    tools_from: Path | None = None
    force: bool = False
    dry: bool = False
    source: Source | None = None


@dataclass(frozen=True)
class ImportReport:
    """What was imported: the form, the suite, its cases, and how many runs were recorded."""

    options: ImportOptions
    form: str
    made: MadeSuite
    recorded: int
    keys: int
    agreement: tuple[Agreement, ...] = ()
    """How the source's own scores agree with the grades here."""

    @property
    def findings(self) -> list[str]:
        """Each case with what was mapped and what was not, then what is about no one case."""
        made = self.made
        found = []
        assert made.file.suite is not None
        for case, imported in zip(made.file.suite.cases, made.cases, strict=True):
            found.append(f"{case.id}{f'  ({imported.place})' if imported.place else ''}")
            found += [f"  ✓ {line}" for line in imported.mapped]
            found += [f"  · {note.why if note.place == imported.place else note}" for note in imported.notes]
        found += [f"· {note}" for note in made.notes]
        if self.keys:
            what = "1 value that looked like a key" if self.keys == 1 else f"{self.keys:,} values that looked like keys"
            found.append(f"· {what} became $IMPORTED_KEY_…")
        return found

    @property
    def lines(self) -> list[str]:
        """The report for a person: the findings, then the files."""
        made, options, found = self.made, self.options, self.findings
        warnings = len(made.file.warnings)
        verb = "would become" if options.dry else "became"
        said = f"{options.file} ({self.form}) {verb} {options.output}: {counted(len(made.cases), 'case')}"
        left_out = sum(note.kind == "not imported" for note in made.notes)
        said += f", {left_out:,} left out" if left_out else ""
        found.append(f"{said}, {counted(warnings, 'warning')}" if warnings else said)
        runs = sum(len(case.runs) for case in made.cases)
        if self.recorded:
            found.append(f"{counted(self.recorded, 'run')} in {options.runs}: workbench grade {options.runs}")
        elif runs:
            found.append(f"{counted(runs, 'run')} not recorded: --runs FOLDER records them")
        return [*found, *agreement_lines(self.agreement)]


def import_file(options: ImportOptions, secrets: Secrets) -> ImportReport:
    """Import a file, or the files of a folder into one suite. Raises RefusedError, and writes nothing then, where that
    cannot be done."""
    if not (options.force or options.dry):
        must_be_free(options.output, options.runs, "-o")
    if options.source is None and is_code(options.file, options.form):
        raise RefusedError(f"{options.file} is Python, which is run only after trust")
    if options.file.is_dir():
        read, name = _read_folder(options), options.file.resolve().name
    else:
        source = options.source or read_source(options.file, options.fields)
        form = options.form or _form_of(source)
        read, name = _Read(form, _imported(form, source), [source.root.value]), source.name
    form, imported = read.form, read.imported
    keys = learn_keys(read.values, "IMPORTED_KEY", secrets)
    if options.tools_from is not None:
        imported = with_tools_from(imported, options.tools_from, options.output)
    made = made_suite(imported, name, options.output, secrets)
    if options.tools_from is not None:
        made = replace(made, notes=(*made.notes, *undefined_tools(made.file, options.tools_from)))
    recorded, fold = 0, AgreementFold()
    if not options.dry:
        recorded = written(made, options.output, options.runs, secrets, force=options.force, agreement=fold)
    agreement = fold.agreements() if recorded else agreement_of(made)
    return ImportReport(options, form, made, recorded, keys, agreement)


def _imported(form: str, source: Source) -> Imported:
    """Read a file of a form, with the grading of the system that it is of."""
    found = format_of(form)
    imported = found.read(source)
    written = imported.suite.get("grading")
    grading = found.grading | (written if isinstance(written, dict) else {})
    return replace(imported, suite=imported.suite | {"grading": grading}) if grading else imported


@dataclass(frozen=True)
class _Read:
    """What was read: its form, what became of it, and all values of it."""

    form: str
    imported: Imported
    values: list[JsonValue]


def _read_folder(options: ImportOptions) -> _Read:
    """Read the files of a folder, without those in folders below and hidden ones, as one file. Notes say why others are
    left out. Raises RefusedError where none can be read, or they have several forms and `options` name none."""
    read: dict[Path, tuple[str, Imported, JsonValue]] = {}
    notes: list[Note] = []
    for path in _visible_in(options.file):
        try:
            if path.is_dir():
                raise RefusedError("it is a folder: import it by itself")
            if is_code(path, options.form):
                raise RefusedError("it is Python, which is run only after trust: import it by itself")
            source = read_source(path, options.fields)
            form = options.form or _form_of(source)
            read[path] = form, _imported(form, source), source.root.value
        except RefusedError as error:
            place = f"{path.name}: {error.place}" if error.place else path.name
            notes.append(not_imported(place, error.reason))
    if not read:
        why = f": {notes[0]}" if notes else ""
        others = f", and {counted(len(notes) - 1, 'other')}" if len(notes) > 1 else ""
        raise RefusedError(f"{options.file} has no file that can be imported{why}{others}")
    forms = {form: file.name for file, (form, _, _) in reversed(read.items())}
    if len(forms) > 1:
        named = ", ".join(f"{name}: {form}" for form, name in forms.items())
        raise RefusedError(f"{options.file} has files of several forms ({named}): import those of one with --from")
    first = next(iter(read))
    top = dict(read[first][1].suite)
    cases: list[ImportedCase] = []
    for file, (_, imported, _) in read.items():
        if _without_name(imported.suite) != _without_name(top):
            why = f"it needs a suite of its own, set otherwise than that of {first.name}"
            notes.append(not_imported(file.name, why))
            continue
        if imported.suite.get("name") != top.get("name"):
            top.pop("name", None)
        for case in imported.cases:
            cases.append(replace(case, place=_within(file, case.place), notes=_all_within(file, case.notes)))
        notes += _all_within(file, imported.notes)
    return _Read(read[first][0], Imported(tuple(cases), top, tuple(notes)), [value for _, _, value in read.values()])


def _visible_in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise RefusedError(f"{folder} cannot be read: {error.strerror}") from error


def _within(file: Path, place: str) -> str:
    return f"{file.name}: {place}" if place else file.name


def _all_within(file: Path, notes: Iterable[Note]) -> tuple[Note, ...]:
    return tuple(replace(note, place=_within(file, note.place)) for note in notes)


def _without_name(suite: Table) -> Table:
    return {key: value for key, value in suite.items() if key != "name"}


def is_code(file: Path, form: str | None) -> bool:
    """Whether a file must be run to be imported."""
    return file.suffix.lower() == ".py" and form in (None, "arcade")


def written(
    made: MadeSuite,
    suite: Path | None,
    recordings: Path | None,
    secrets: Secrets,
    *,
    force: bool,
    agreement: AgreementFold | None = None,
) -> int:
    """Write a suite and the recordings of its runs, each where there is a place for it, and count these in an
    `agreement`. Returns how many runs were recorded. Raises RefusedError."""
    if suite is not None and (why := why_not_writable(suite)) is not None:
        raise RefusedError(f"{suite} cannot be written: {why}")
    try:
        recorded = record_runs(made, recordings, secrets, agreement) if recordings is not None else 0
        if suite is not None:
            save(suite, made.file.text, state_of(suite) if force else None)
    except RecordingError as error:
        raise RefusedError(f"no suite was written, since {error}") from error
    except (SavingError, OSError) as error:
        raise RefusedError(str(error)) from error
    return recorded


def must_be_free(suite: Path | None, recordings: Path | None, option: str) -> None:
    """Raises RefusedError where a suite exists, which an option names, or a folder has recordings."""
    if suite is not None and suite.exists():
        raise RefusedError(f"{suite} exists: name another file with {option}, or replace it with --force")
    if recordings is None:
        return
    try:
        holds = recordings.is_dir() and recordings_in(recordings)
    except OSError as error:
        raise RefusedError(f"{recordings} cannot be read: {error.strerror}") from error
    if holds:
        raise RefusedError(f"{recordings} has recordings already: name another folder, or add to them with --force")


def _form_of(source: Source) -> str:
    fit = forms_that_fit(source)
    if len(fit) == 1:
        return fit[0]
    every = ", ".join(FORMS)
    if not fit:
        raise RefusedError(f"{source.path} has no form that is plain: name one with --from ({every})")
    raise RefusedError(f"{source.path} could be of several forms: name one with --from ({', '.join(fit)})")


def learn_keys(values: Iterable[JsonValue], name: str, secrets: Secrets) -> int:
    """Make secret whatever in some values looks like a key, as `name` with a number. Returns how many there are."""
    waiting: list[JsonValue] = [*values]
    found: set[str] = set()
    while waiting:
        match waiting.pop():
            case str() as text:
                found.update(keys_in(text))
            case list() as items:
                waiting += items
            case dict() as table:
                waiting += [*table, *table.values()]
    for number, key in enumerate(sorted(found), start=1):
        secrets.add(f"{name}_{number}", key)
    return len(found)
