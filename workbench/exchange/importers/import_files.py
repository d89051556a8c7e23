"""Imports a file, or a folder of files of one form: finds out the form, makes a suite and recordings of it, and says
what it could not take."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from workbench.analysis.totals import Agreement, AgreementFold, agreements
from workbench.authoring.proposal import places_without_secrets, table_without_secrets
from workbench.checks.check import CheckContext
from workbench.config.secrets import Secrets, keys_in
from workbench.dataclasses import dataclass
from workbench.engine.external_run import started_elsewhere, told_payloads
from workbench.engine.plan import PlannedRun, next_run_id
from workbench.engine.planned_run import result_of
from workbench.engine.recordings import save_recording
from workbench.evaluation.regrade import graded_anew
from workbench.exchange.importers.conversations import (
    NO_TOOLS,
    Imported,
    ImportedCase,
    ImportedRun,
    Note,
    not_imported,
    tool_of,
)
from workbench.exchange.importers.forms import FORMS, format_of, forms_that_fit
from workbench.exchange.importers.source_files import RefusedError, Source, read_source
from workbench.grading.grade import RunResult
from workbench.grading.status import Status
from workbench.limits import MAX_MILLISECONDS
from workbench.numerals import count_text, counted
from workbench.show.report_files import why_not_writable
from workbench.show.spans import plain
from workbench.show.views.agreement import agreement_lines
from workbench.show.visible import one_line
from workbench.suite.files import SavingError, save, state_of
from workbench.suite.model import NEW_SUITES_FREE, Case, derived_id
from workbench.suite.render import Table, block_text, suite_text
from workbench.suite.sameness import same
from workbench.suite.suite_file import Excerpts, SuiteFile, load_suite, parse_suite
from workbench.tools.listings import definitions_for
from workbench.trajectory.events import Event, EventPayload, FinishReason, JsonValue, ResponseFinished, RunFinished
from workbench.trajectory.recording import RecordingError, recordings_in
from workbench.trajectory.trajectory import fold

# Makes the text of a suite out of imported cases, as a person would write it.

RULE_OF_NEW_SUITES: Table = {"grading": {"extra_calls": NEW_SUITES_FREE}}
"""What stands at the top of a suite of recorded conversations beside its name."""


@dataclass(frozen=True)
class MadeSuite:
    """A suite that loads, the cases in it in their order, and what is said of no one case."""

    file: SuiteFile
    cases: tuple[ImportedCase, ...]
    notes: tuple[Note, ...]


def made_suite(imported: Imported, name: str, path: Path, secrets: Secrets) -> MadeSuite:
    """Return the suite of all cases that format 1 can say; the others are among the notes.

    Raises RefusedError where no case is left."""
    shared = table_without_secrets(dict(imported.suite), {}, secrets)
    top: Table = {"format": 1, "name": name} | shared
    notes = [*imported.notes, *(Note("", why) for why in places_without_secrets(dict(imported.suite), shared))]
    cases: list[ImportedCase] = []
    for case in imported.cases:
        try:
            table = table_without_secrets(case.table, {}, secrets)
            block_text(("cases",), table, of_array=True)
        except ValueError as error:
            notes.append(not_imported(case.place, str(error)))
        else:
            replaced = (Note(case.place, why) for why in places_without_secrets(case.table, table))
            cases.append(replace(case, table=table, notes=(*case.notes, *replaced)))
    file = _file(top, cases, path, secrets)
    if file.suite is None:
        sound: list[ImportedCase] = []
        for case in cases:
            alone = _file(top, [case], path, secrets)
            if alone.suite is not None:
                sound.append(case)
            else:
                notes.append(not_imported(case.place, alone.errors[0].message))
        cases, file = sound, _file(top, sound, path, secrets)
    if not cases or file.suite is None:
        why = notes[-1] if notes else Note("", "holds no case")
        raise RefusedError(why.why, why.place)
    return MadeSuite(file, tuple(cases), tuple(notes))


def fitted(case: Table, top: Table) -> Table:
    """Return a case for a suite that has more at its top than the one it was made for: without what the suite says
    already, and asking the model the same."""
    shared, tools = _tools(top), _tools(case)
    own = [tool for tool in tools if not any(same(tool, other) for other in shared)]
    names = [str(tool["name"]) for tool in tools]
    changed = {key: value for key, value in case.items() if key != "tools"}
    if own:
        changed["tools"] = own
    if "offer" not in case and ("servers" in top or not {str(tool["name"]) for tool in shared} <= set(names)):
        changed["offer"] = names
    if (prompt := case.get("system", "")) == top.get("system", ""):
        changed.pop("system", None)
    else:
        changed["system"] = prompt
    return changed


def _file(top: Table, cases: Sequence[ImportedCase], path: Path, secrets: Secrets) -> SuiteFile:
    given = _tools(top)
    tools, tables = _with_shared_tools(_with_ids(case.table for case in cases), bool(given) or "servers" in top)
    tools = [*given, *tools]
    pieces = [suite_text(top | ({"tools": tools} if tools else {})).rstrip("\n")]
    for case, table in zip(cases, tables, strict=True):
        comments = [f"# {one_line(secrets.redact(why))}" for why in dict.fromkeys(note.why for note in case.notes)]
        pieces.append("\n".join([*comments, block_text(("cases",), table, of_array=True)]))
    return parse_suite("\n\n".join(pieces) + "\n", path)


def _with_ids(tables: Iterable[Table]) -> list[Table]:
    """Return cases whose ids are unique; only those have one of their own whose name makes none."""
    taken: set[str] = set()
    found = []
    for table in tables:
        wanted = table["id"] if isinstance(table.get("id"), str) else derived_id(str(table["name"]))
        case_id, number = str(wanted), 1
        while case_id in taken:
            number += 1
            case_id = f"{wanted}-{number}"
        taken.add(case_id)
        written = {key: value for key, value in table.items() if key != "id"}
        found.append({"id": case_id, **written} if case_id != derived_id(str(table["name"])) else written)
    return found


def _with_shared_tools(tables: list[Table], offers_others: bool) -> tuple[list[Table], list[Table]]:
    """Return the tools for the suite, which several cases offer alike, and the cases: with tools of their own, and with
    the names of those on offer where that is not all of the suite's, which may offer others, too."""
    definitions: dict[str, list[Table]] = {}
    offered: Counter[str] = Counter()
    for table in tables:
        for tool in _tools(table):
            name = str(tool["name"])
            offered[name] += 1
            known = definitions.setdefault(name, [])
            if not any(same(tool, other) for other in known):
                known.append(tool)
    most = min(2, len(tables))
    shared = {name: known[0] for name, known in definitions.items() if len(known) == 1 and offered[name] >= most}
    found = []
    for table in tables:
        tools = _tools(table)
        names = [str(tool["name"]) for tool in tools]
        own = [tool for tool in tools if tool["name"] not in shared]
        changed = {key: value for key, value in table.items() if key != "tools"}
        if own:
            changed["tools"] = own
        if "tools" in table and "offer" not in table and (offers_others or not shared.keys() <= set(names)):
            changed["offer"] = names
        found.append(changed)
    return list(shared.values()), found


def _tools(table: Table) -> list[Table]:
    tools = table.get("tools")
    return tools if isinstance(tools, list) else []


# Makes recordings of imported runs: their events, and the grades that their cases give them.


def run_of(file: SuiteFile, case: Case, run: ImportedRun, repeat: int) -> tuple[PlannedRun, list[Event], RunResult]:
    """Return an imported run as one of its case, graded by it.

    No model is asked, and no tool is called."""
    planned = PlannedRun(next_run_id(), file, case, run.model, repeat)
    events: list[Event] = []
    time_ms = 0.0
    for payload in _payloads(planned, run):
        if isinstance(payload, ResponseFinished):
            time_ms = min(time_ms + payload.latency_ms, MAX_MILLISECONDS)
        events.append(Event(planned.run_id, len(events), time_ms, payload))
    return planned, events, graded_anew(result_of(planned, Status.ERROR, fold(events)), planned, CheckContext())


def agreement_of(made: MadeSuite) -> tuple[Agreement, ...]:
    """Return how the scores of the runs where they were made agree with those of their cases."""
    assert made.file.suite is not None
    pairs = zip(made.file.suite.cases, made.cases, strict=True)
    scored = [(case, number, run) for case, each in pairs for number, run in enumerate(each.runs) if run.scores]
    return agreements(run_of(made.file, case, run, number)[2] for case, number, run in scored)


def record_runs(made: MadeSuite, folder: Path, secrets: Secrets, agreement: AgreementFold | None = None) -> int:
    """Record the runs of all cases into a folder, and count them in an `agreement`.

    Returns how many there are. Raises RecordingError."""
    assert made.file.suite is not None
    count, excerpts = 0, Excerpts()
    for case, imported in zip(made.file.suite.cases, made.cases, strict=True):
        for repeat, run in enumerate(imported.runs):
            planned, events, result = run_of(made.file, case, run, repeat)
            if agreement is not None:
                agreement.add(result)
            started_at = run.started_at or datetime.now(UTC).isoformat(timespec="milliseconds")
            save_recording(folder, planned, events, result, started_at=started_at, secrets=secrets, excerpts=excerpts)
            count += 1
    return count


def _payloads(planned: PlannedRun, run: ImportedRun) -> Iterator[EventPayload]:
    case, suite = planned.case, planned.suite
    tools = [tool for tool in definitions_for(suite, case) if case.offer is None or tool.name in case.offer]
    notice = "imported: the run was made elsewhere"
    yield started_elsewhere(suite, case, run.model, planned.file.hash, tools, (notice,), run.scores)
    yield from told_payloads(run.rounds)
    reason: FinishReason = "answered"
    if run.rounds and run.rounds[-1].calls:
        reason = "decided" if len(run.rounds) == 1 and not case.checks_answer else "rounds exhausted"
    yield RunFinished(reason)


# Definitions of tools for a file that has none: those of a suite, or a list of them as servers answer it.


def with_tools_from(imported: Imported, path: Path, output: Path) -> Imported:
    """Return what was imported with the `tools` and `servers` of a suite, or with the tools of a JSON file, as a server
    answers tools/list or as a list. A tool that the imported file defines itself stays as it is there. Raises
    RefusedError."""
    tools, servers = _tools_of_suite(path) if path.suffix.lower() == ".toml" else (_tools_of_list(path), [])
    if not tools and not servers:
        raise RefusedError(f"{path} defines no tools: it has neither [[tools]] nor [[servers]]")
    own = {str(tool["name"]) for case in imported.cases for tool in cast("list[Table]", case.table.get("tools", []))}
    notes = list(imported.notes)
    if doubled := sorted(own & {str(tool.get("name")) for tool in tools}):
        notes.append(Note("", f"{', '.join(doubled)}: as the file itself defines it, not as {path} does"))
    if servers and path.resolve().parent != output.resolve().parent:
        notes.append(Note("", f"the servers of {path} start in the folder of the suite: check paths in their commands"))
    kept = [tool for tool in tools if tool.get("name") not in own]
    suite = imported.suite | ({"tools": kept} if kept else {}) | ({"servers": servers} if servers else {})
    cases = tuple(
        replace(case, notes=tuple(note for note in case.notes if note.why != NO_TOOLS)) for case in imported.cases
    )
    return Imported(cases, suite, tuple(notes))


def undefined_tools(file: SuiteFile, path: Path) -> list[Note]:
    """Return a note of the tools that cases ask for and that are not defined."""
    suite = file.suite
    assert suite is not None
    known = {tool.name for tool in suite.tools}
    missing = {
        call.tool
        for case in suite.cases
        for call in case.expected_calls()
        if call.tool not in known and call.tool not in {tool.name for tool in case.tools}
    }
    if not missing:
        return []
    where = (
        f"not among the [[tools]] of {path}: its servers must have it" if suite.servers else f"not defined in {path}"
    )
    return [Note("", f"{', '.join(sorted(missing))}: {where}")]


def _tools_of_suite(path: Path) -> tuple[list[Table], list[Table]]:
    file = load_suite(path)
    if file.suite is None:
        raise RefusedError(f"{path}: {file.errors[0].message}")
    document = tomllib.loads(file.text)
    return document.get("tools", []), document.get("servers", [])


def _tools_of_list(path: Path) -> list[Table]:
    root = read_source(path).root
    listed = (root.get("result") or root).get("tools") or root
    try:
        tools = {str(tool["name"]): tool for tool in map(tool_of, listed.items())}
    except RefusedError as error:
        raise RefusedError(f"{path}: {error}") from error
    return [*tools.values()]


@dataclass(frozen=True)
class ImportOptions:
    """What to import to where; `file` may be a folder.

    `form` is found out where it is `None`; `fields` says which fields of a table are what, `tools_from` which file
    defines tools. Existing files are replaced, and recordings added to others, only with `force`; with `dry` nothing is
    written. `source` is what a Python file said when it was run (`workbench.exchange.importers.arcade.executed`)."""

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
            what = (
                "1 value that looked like a key"
                if self.keys == 1
                else f"{count_text(self.keys)} values that looked like keys"
            )
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
        said += f", {count_text(left_out)} left out" if left_out else ""
        found.append(f"{said}, {counted(warnings, 'warning')}" if warnings else said)
        runs = sum(len(case.runs) for case in made.cases)
        if self.recorded:
            found.append(f"{counted(self.recorded, 'run')} in {options.runs}: workbench grade {options.runs}")
        elif runs:
            found.append(f"{counted(runs, 'run')} not recorded: --runs FOLDER records them")
        return [*found, *map(plain, agreement_lines(self.agreement))]


def import_file(options: ImportOptions, secrets: Secrets) -> ImportReport:
    """Import a file, or the files of a folder into one suite.

    Raises RefusedError, and writes nothing then, where that cannot be done."""
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
    """Read the files of a folder, without those in folders below and hidden ones, as one file.

    Notes say why others are left out. Raises RefusedError where none can be read, or they have several forms and
    `options` name none."""
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
    """Return whether a file must be run to be imported."""
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
    """Raise RefusedError where a suite exists, which an option names, or a folder has recordings."""
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
    """Make secret whatever in some values looks like a key, as `name` with a number.

    Returns how many there are."""
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
