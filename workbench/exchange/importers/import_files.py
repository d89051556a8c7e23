"""Import a file of another tool, or a folder of files in one format.

An import recognizes the format, writes a suite and recordings, and reports the parts that it left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from workbench.analysis.totals import Agreement, AgreementFold, agreements
from workbench.authoring.form.field_text import without_keys
from workbench.authoring.proposal import places_without_secrets, table_without_secrets
from workbench.checks.check import CheckContext
from workbench.config.secrets import Secrets, keys_in
from workbench.dataclasses import dataclass
from workbench.encoding import toml_of
from workbench.engine.conversation import FINISH_REASONS
from workbench.engine.external_run import external_payloads, external_run_started
from workbench.engine.plan import PlannedRun, next_run_id
from workbench.engine.planned_run import result_of
from workbench.engine.recordings import save_recording
from workbench.evaluation.regrade import regrade_result
from workbench.exchange.importers.conversations import (
    ImportedCase,
    ImportedFile,
    ImportedRun,
    ImportedUser,
    Note,
    first_refusal,
    not_imported,
    tool_names,
    tool_of,
    without_tool_note,
)
from workbench.exchange.importers.forms import FORMS, FORMS_WITH_MATCH, format_of, forms_that_fit
from workbench.exchange.importers.scripts import scripts_of
from workbench.exchange.importers.source_files import RefusedError, Source, read_source
from workbench.grading.grade import RunResult
from workbench.grading.status import Status
from workbench.limits import MAX_MILLISECONDS
from workbench.numerals import count_text, counted
from workbench.show.report_files import why_not_writable
from workbench.show.spans import plain
from workbench.show.views.agreement import agreement_lines
from workbench.show.visible import one_line
from workbench.suite.excerpts import Excerpts
from workbench.suite.files import SavingError, save, state_of
from workbench.suite.grading_model import NEW_SUITE_EXTRA_CALLS
from workbench.suite.model import Case, derived_id
from workbench.suite.render import Table, block_text, suite_text
from workbench.suite.suite_file import SuiteFile, load_suite, parse_suite
from workbench.suite.toml_equality import toml_equal
from workbench.tools.listings import definitions_for
from workbench.trajectory.events import (
    Event,
    EventPayload,
    FinishReason,
    JsonValue,
    RequestStarted,
    ResponseFinished,
    RunFinished,
    UserEnded,
    UserSaid,
)
from workbench.trajectory.external_run import ExternalRound
from workbench.trajectory.fold import fold
from workbench.trajectory.recording import RecordingError, recordings_in

# The text of an imported suite looks like that of a suite written by hand.

RULE_OF_NEW_SUITES: Table = {"grading": {"extra_calls": NEW_SUITE_EXTRA_CALLS}}
"""The keys at the top of a suite of recorded conversations, besides its name."""


@dataclass(frozen=True)
class ImportedSuite:
    """A suite without errors that an import made, its cases in order, and the notes that belong to no single case."""

    file: SuiteFile
    cases: tuple[ImportedCase, ...]
    notes: tuple[Note, ...]


def make_suite(imported: ImportedFile, name: str, path: Path, secrets: Secrets) -> ImportedSuite:
    """Make a suite of all cases that a suite file can express. Each other case becomes a note.

    Raises RefusedError if no case is left."""
    shared = table_without_secrets(dict(imported.suite), {}, secrets)
    top: Table = {"format": 1, "name": name} | shared
    notes = [*imported.notes, *_notes_on_secrets("", dict(imported.suite), shared)]
    cases: list[ImportedCase] = []
    for case in imported.cases:
        try:
            table = table_without_secrets(case.table, {}, secrets)
            block_text(("cases",), table, of_array=True)
        except ValueError as error:
            notes.append(not_imported(case.place, str(error)))
        else:
            replaced = _notes_on_secrets(case.place, case.table, table)
            cases.append(replace(case, table=table, notes=(*case.notes, *replaced)))
    file = _file(top, cases, path, secrets)
    if file.suite is None:
        # To find the cases with errors, each is loaded alone. This is slow, so it is done only if the whole suite has
        # errors.
        sound: list[ImportedCase] = []
        for case in cases:
            alone = _file(top, [case], path, secrets)
            if alone.suite is not None:
                sound.append(case)
            else:
                notes.append(not_imported(case.place, alone.errors[0].message))
        cases, file = sound, _file(top, sound, path, secrets)
    if not cases or file.suite is None:
        raise first_refusal(notes[-1:], "holds no case")
    return ImportedSuite(file, tuple(cases), tuple(notes))


def _notes_on_secrets(place: str, before: Table, after: Table) -> Iterator[Note]:
    for why in places_without_secrets(before, after):
        yield Note(place, why)


def fit_to_suite(case: Table, top: Table) -> Table:
    """Return an imported case, changed so that the model gets the same prompt and tools in another suite.

    `top` is the other suite without its cases. Keys of the case that only repeat keys of the suite are left out."""
    shared, tools = _tools(top), _tools(case)
    changed = dict(case)
    changed.pop("tools", None)
    own = []
    for tool in tools:
        if not _is_among(tool, shared):
            own.append(tool)
    if own:
        changed["tools"] = own
    names = tool_names(tools)
    if "offer" not in case and ("servers" in top or not set(tool_names(shared)) <= set(names)):
        changed["offer"] = names
    if (prompt := case.get("system", "")) == top.get("system", ""):
        changed.pop("system", None)
    else:
        changed["system"] = prompt
    return changed


def _file(top: Table, cases: Sequence[ImportedCase], path: Path, secrets: Secrets) -> SuiteFile:
    given = _tools(top)
    tools, tables = _with_shared_tools(_with_ids(case.table for case in cases), bool(given) or "servers" in top)
    if tools := [*given, *tools]:
        top = top | {"tools": tools}
    pieces = [suite_text(top).rstrip("\n")]
    for case, table in zip(cases, tables, strict=True):
        reasons = dict.fromkeys(note.why for note in case.notes)
        comments = [f"# {one_line(secrets.redact(why))}" for why in reasons]
        pieces.append("\n".join([*comments, block_text(("cases",), table, of_array=True)]))
    return parse_suite("\n\n".join(pieces) + "\n", path)


def _with_ids(tables: Iterable[Table]) -> list[Table]:
    """Return cases with unique ids.

    An id is written only if it differs from the id that the suite derives from the case's name."""
    taken: set[str] = set()
    found: list[Table] = []
    for table in tables:
        written = dict(table)
        derived = derived_id(str(table["name"]))
        wanted = written.pop("id", None)
        if not isinstance(wanted, str):
            wanted = derived
        case_id, number = wanted, 1
        while case_id in taken:
            number += 1
            case_id = f"{wanted}-{number}"
        taken.add(case_id)
        found.append(written if case_id == derived else {"id": case_id, **written})
    return found


def _with_shared_tools(tables: list[Table], offers_others: bool) -> tuple[list[Table], list[Table]]:
    """Move tools that several cases share into the suite. Returns these tools and the changed cases.

    A tool is moved if at least two cases offer it and define it in the same way. Other tools stay in their cases. A
    case gets the key `offer` if the suite or a server has tools that the case must not offer. `offers_others` means
    that the servers may have such tools."""
    definitions: dict[str, list[Table]] = {}
    offered: Counter[str] = Counter()
    for table in tables:
        for tool in _tools(table):
            name = str(tool["name"])
            offered[name] += 1
            known = definitions.setdefault(name, [])
            if not _is_among(tool, known):
                known.append(tool)
    # If there is only one case, all of its tools are moved into the suite.
    least = min(2, len(tables))
    shared: dict[str, Table] = {}
    for name, known in definitions.items():
        # A suite can define a tool of each name only once. If cases define a tool differently, it stays in the cases.
        if len(known) == 1 and offered[name] >= least:
            shared[name] = known[0]
    found = []
    for table in tables:
        tools = _tools(table)
        names = tool_names(tools)
        changed = dict(table)
        changed.pop("tools", None)
        if own := _tools_besides(tools, shared):
            changed["tools"] = own
        if "tools" in table and "offer" not in table and (offers_others or not shared.keys() <= set(names)):
            changed["offer"] = names
        found.append(changed)
    return list(shared.values()), found


def _tools(table: Table) -> list[Table]:
    tools = table.get("tools")
    return tools if isinstance(tools, list) else []


def _tools_besides(tools: Iterable[Table], names: Collection[object]) -> list[Table]:
    return [tool for tool in tools if tool.get("name") not in names]


def _is_among(tool: Table, others: Iterable[Table]) -> bool:
    return any(toml_equal(tool, other) for other in others)


# Recordings of imported runs. A recording has the run's events and its grades by the case.


def run_of(file: SuiteFile, case: Case, run: ImportedRun, repeat: int) -> tuple[PlannedRun, list[Event], RunResult]:
    """Grade an imported run by its case, without calling a model or a tool.

    Returns the planned run, its events, and its result."""
    planned = PlannedRun(next_run_id(), file, case, run.model, repeat)
    events: list[Event] = []
    time_ms = 0.0
    for payload in _payloads(planned, run):
        if isinstance(payload, ResponseFinished):
            time_ms = min(time_ms + payload.latency_ms, MAX_MILLISECONDS)
        events.append(Event(planned.run_id, len(events), time_ms, payload))
    return planned, events, regrade_result(result_of(planned, Status.ERROR, fold(events)), planned, CheckContext())


def agreement_of(imported_suite: ImportedSuite) -> tuple[Agreement, ...]:
    """Return how far the grades of imported runs agree with the scores that the source gave them."""
    assert imported_suite.file.suite is not None
    results: list[RunResult] = []
    for case, imported in zip(imported_suite.file.suite.cases, imported_suite.cases, strict=True):
        for repeat, run in enumerate(imported.runs):
            if run.scores:
                results.append(run_of(imported_suite.file, case, run, repeat)[2])
    return agreements(results)


def record_runs(imported_suite: ImportedSuite, folder: Path, secrets: Secrets, agreement: AgreementFold | None) -> int:
    """Save a recording of each imported run in a folder, and return the number of runs.

    The grades of the runs are added to `agreement`. Raises RecordingError."""
    assert imported_suite.file.suite is not None
    count, excerpts = 0, Excerpts()
    for case, imported in zip(imported_suite.file.suite.cases, imported_suite.cases, strict=True):
        for repeat, run in enumerate(imported.runs):
            planned, events, result = run_of(imported_suite.file, case, run, repeat)
            if agreement is not None:
                agreement.add(result)
            started_at = run.started_at or datetime.now(UTC).isoformat(timespec="milliseconds")
            save_recording(folder, planned, events, result, started_at=started_at, secrets=secrets, excerpts=excerpts)
            count += 1
    return count


def _payloads(planned: PlannedRun, run: ImportedRun) -> Iterator[EventPayload]:
    case, suite = planned.case, planned.suite
    tools = []
    for tool in definitions_for(suite, case):
        if case.offer is None or tool.name in case.offer:
            tools.append(tool)
    notice = "imported: the run was made elsewhere"
    yield external_run_started(suite, case, run.model, planned.file.hash, tools, (notice,), run.scores)
    if run.user is not None:
        yield from _conversation(run.rounds, run.user)
        return
    yield from external_payloads(run.rounds)
    # A conversation that ends with calls was cut off. An exception is a single answer with calls in a case that does
    # not check the answer.
    reason: FinishReason = "answered"
    if run.rounds and run.rounds[-1].calls:
        reason = "decided" if len(run.rounds) == 1 and not case.checks_answer else "rounds exhausted"
    yield RunFinished(reason)


def _conversation(rounds: tuple[ExternalRound, ...], user: ImportedUser) -> Iterator[EventPayload]:
    turn = 0
    for payload in external_payloads(rounds):
        if isinstance(payload, RequestStarted) and (text := user.said.get(payload.round - 1)) is not None:
            turn += 1
            yield UserSaid(turn, text, "model")
        yield payload
    for end, reason in FINISH_REASONS.items():
        if reason == user.reason:
            yield UserEnded(turn + 1, end, user.last_words or None)
    yield RunFinished(user.reason)


# If an imported file does not define its tools, a suite or a server's list of tools may define them.


def with_tools_from(imported: ImportedFile, path: Path, output: Path) -> ImportedFile:
    """Return the imported cases with the tools that the file at `path` defines.

    This file is a suite with `tools` and `servers`, or a JSON file with a server's answer to tools/list. Definitions in
    the imported file itself take precedence. Raises RefusedError."""
    if path.suffix.lower() == ".toml":
        tools, servers = _tools_of_suite(path)
    else:
        tools, servers = _tools_of_list(path), []
    if not tools and not servers:
        raise RefusedError(f"{path} defines no tools: it has neither [[tools]] nor [[servers]]")
    own = set()
    for case in imported.cases:
        own.update(tool_names(_tools(case.table)))
    notes = list(imported.notes)
    if doubled := sorted(own & {str(tool.get("name")) for tool in tools}):
        notes.append(Note("", f"{', '.join(doubled)}: defined by the file itself; the definition in {path} is ignored"))
    if servers and path.resolve().parent != output.resolve().parent:
        notes.append(Note("", f"the servers of {path} start in the new suite's folder: check paths in their commands"))
    suite = dict(imported.suite)
    if kept := _tools_besides(tools, own):
        suite["tools"] = kept
    if servers:
        suite["servers"] = servers
    cases: list[ImportedCase] = []
    for case in imported.cases:
        cases.append(replace(case, notes=without_tool_note(case.notes)))
    return ImportedFile(tuple(cases), suite, tuple(notes))


def undefined_tools(file: SuiteFile, path: Path) -> list[Note]:
    """Return a note on the tools that the cases call and neither the suite nor the file at `path` defines."""
    suite = file.suite
    assert suite is not None
    missing: set[str] = set()
    for case in suite.cases:
        known = {tool.name for tool in (*suite.tools, *case.tools)}
        missing |= {call.tool for call in case.alternatives} - known
    if not missing:
        return []
    reason = f"not defined in {path}"
    if suite.servers:
        reason = f"not among the [[tools]] of {path}: its servers must have it"
    return [Note("", f"{', '.join(sorted(missing))}: {reason}")]


def _tools_of_suite(path: Path) -> tuple[list[Table], list[Table]]:
    file = load_suite(path)
    if file.suite is None:
        raise RefusedError(f"{path}: {file.errors[0].message}")
    document = toml_of(file.text)
    return document.get("tools", []), document.get("servers", [])


def _tools_of_list(path: Path) -> list[Table]:
    root = read_source(path).root
    listed = (root.get("result") or root).get("tools") or root
    try:
        tools = {}
        for tool in map(tool_of, listed.items()):
            tools[str(tool["name"])] = tool
    except RefusedError as error:
        raise RefusedError(f"{path}: {error}") from error
    return [*tools.values()]


@dataclass(frozen=True)
class ImportOptions:
    """The file to import, and the files to write.

    `file` may be a folder. `form` is the format; `None` means that it is recognized. `fields` maps the meanings of a
    table's fields to their names. `match` is the value of `--match`, and `tools_from` is a file that defines tools.
    With `force`, an existing suite is replaced, and recordings may be added to those in a folder. With `dry_run`,
    nothing is written. `source` is the output of a Python file that has run
    (`workbench.exchange.importers.scripts.run_script`)."""

    file: Path
    output: Path
    form: str | None = None
    recordings: Path | None = None
    fields: dict[str, str] | None = None
    tools_from: Path | None = None
    force: bool = False
    dry_run: bool = False
    source: Source | None = None
    match: str | None = None

    def read(self, path: Path) -> Source:
        """Read a file as these options require. Raises RefusedError."""
        return replace(read_source(path, self.fields), match=self.match)


@dataclass(frozen=True)
class ImportReport:
    """The result of an import: format, suite, number of recorded runs, and number of keys that became variables."""

    options: ImportOptions
    form: str
    made: ImportedSuite
    recorded: int
    keys: int
    agreement: tuple[Agreement, ...] = ()
    """Agreement between the source's own scores and the grades given here."""

    @property
    def findings(self) -> list[str]:
        """Lines of the report: each case with its imported parts and notes, then the other notes."""
        made = self.made
        found = []
        assert made.file.suite is not None
        for case, imported in zip(made.file.suite.cases, made.cases, strict=True):
            found.append(f"{case.id}  ({imported.place})" if imported.place else case.id)
            found += imported.report
        found += [f"· {note}" for note in made.notes]
        if self.keys == 1:
            found.append("· 1 value that looked like a key became $IMPORTED_KEY_…")
        elif self.keys:
            found.append(f"· {count_text(self.keys)} values that looked like keys became $IMPORTED_KEY_…")
        return found

    @property
    def lines(self) -> list[str]:
        made, options, found = self.made, self.options, self.findings
        verb = "would become" if options.dry_run else "became"
        summary = f"{options.file} ({self.form}) {verb} {options.output}: {counted(len(made.cases), 'case')}"
        if left_out := sum(note.kind == "not imported" for note in made.notes):
            summary += f", {count_text(left_out)} left out"
        if warnings := len(made.file.warnings):
            summary += f", {counted(warnings, 'warning')}"
        found.append(summary)
        runs = sum(len(case.runs) for case in made.cases)
        if self.recorded:
            found.append(
                f"{counted(self.recorded, 'run')} in {options.recordings}: workbench grade {options.recordings}"
            )
        elif runs:
            found.append(f"{counted(runs, 'run')} not recorded: --recordings DIR writes them")
        return [*found, *map(plain, agreement_lines(self.agreement))]


def import_file(options: ImportOptions, secrets: Secrets) -> ImportReport:
    """Import a file, or all files of a folder into one suite.

    If that fails, nothing is written, and RefusedError is raised."""
    if not (options.force or options.dry_run):
        require_unused_paths(options.output, options.recordings, "-o")
    if options.source is None and options.file.suffix.lower() == ".py" and scripts_of(options.file, options.form):
        raise RefusedError(f"{options.file} is a Python file, which runs only after you trust it")
    if options.source is None and options.file.is_dir():
        read, name = _read_folder(options), options.file.resolve().name
    else:
        source = options.source or options.read(options.file)
        form = options.form or _form_of(source)
        read, name = _Read(form, _imported(form, source), [source.root.value]), source.name
    form, imported = read.form, read.imported
    # Keys must be registered before anything else, so that the suite, the recordings and the report do not contain
    # them.
    keys = register_keys(read.values, "IMPORTED_KEY", secrets)
    if options.tools_from is not None:
        imported = with_tools_from(imported, options.tools_from, options.output)
    made = make_suite(imported, name, options.output, secrets)
    if options.tools_from is not None:
        made = replace(made, notes=(*made.notes, *undefined_tools(made.file, options.tools_from)))
    recorded, fold = 0, AgreementFold()
    if not options.dry_run:
        recorded = write_import(made, options.output, options.recordings, secrets, force=options.force, agreement=fold)
    agreement = fold.agreements() if recorded else agreement_of(made)
    return ImportReport(options, form, made, recorded, keys, agreement)


def _imported(form: str, source: Source) -> ImportedFile:
    found = format_of(form)
    grading = dict(found.grading)
    if source.match is not None:
        if form not in FORMS_WITH_MATCH:
            raise RefusedError(f"--match is for {', '.join(FORMS_WITH_MATCH)}, and this file is {form}")
        grading["by"] = "trajectory"
    imported = found.read(source)
    if isinstance(written := imported.suite.get("grading"), dict):
        grading |= written
    if not grading:
        return imported
    return replace(imported, suite=imported.suite | {"grading": grading})


@dataclass(frozen=True)
class _Read:
    form: str
    imported: ImportedFile
    values: list[JsonValue]


def _read_folder(options: ImportOptions) -> _Read:
    """Read the visible files of a folder, without its subfolders, as if they were one file.

    A note gives the reason for each file that is left out. Raises RefusedError if no file can be read, or if the files
    have several formats and `options` chooses no format."""
    read: dict[Path, tuple[str, ImportedFile, JsonValue]] = {}
    notes: list[Note] = []
    for path in _visible_in(options.file):
        try:
            if path.is_dir():
                raise RefusedError("it is a folder: import it by itself")
            if scripts_of(path, options.form):
                raise RefusedError("it is a Python file, which runs only after you trust it: import it by itself")
            source = options.read(path)
            form = options.form or _form_of(source)
            read[path] = form, _imported(form, source), source.root.value
        except RefusedError as error:
            notes.append(not_imported(_within(path, error.place), error.reason))
    if not read:
        why = f"{options.file} has no file that can be imported"
        if notes:
            why += f": {notes[0]}"
        if len(notes) > 1:
            why += f", and {counted(len(notes) - 1, 'other')}"
        raise RefusedError(why)
    # The order is reversed, so that the first file of each format remains in the dictionary.
    forms = {form: file.name for file, (form, _, _) in reversed(read.items())}
    if len(forms) > 1:
        named = ", ".join(f"{name}: {form}" for form, name in forms.items())
        raise RefusedError(f"{options.file} has files of several forms ({named}): choose one form with --from")
    first = next(iter(read))
    top = dict(read[first][1].suite)
    cases: list[ImportedCase] = []
    for file, (_, imported, _) in read.items():
        if without_keys(imported.suite, "name") != without_keys(top, "name"):
            why = f"its settings differ from those of {first.name}, so it needs a suite of its own: import it by itself"
            notes.append(not_imported(file.name, why))
            continue
        if imported.suite.get("name") != top.get("name"):
            top.pop("name", None)
        for case in imported.cases:
            cases.append(replace(case, place=_within(file, case.place), notes=_all_within(file, case.notes)))
        notes += _all_within(file, imported.notes)
    return _Read(
        read[first][0], ImportedFile(tuple(cases), top, tuple(notes)), [value for _, _, value in read.values()]
    )


def _visible_in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise RefusedError(f"{folder} cannot be read: {error.strerror}") from error


def _within(file: Path, place: str) -> str:
    return f"{file.name}: {place}" if place else file.name


def _all_within(file: Path, notes: Iterable[Note]) -> tuple[Note, ...]:
    return tuple(replace(note, place=_within(file, note.place)) for note in notes)


def write_import(
    imported_suite: ImportedSuite,
    suite: Path | None,
    recordings: Path | None,
    secrets: Secrets,
    *,
    force: bool,
    agreement: AgreementFold | None = None,
) -> int:
    """Write a suite and the recordings of its runs, and return the number of recorded runs.

    If a path is `None`, that part is not written. The grades of the runs are added to `agreement`. Raises
    RefusedError."""
    if suite is not None and (why := why_not_writable(suite)) is not None:
        raise RefusedError(f"{suite} cannot be written: {why}")
    try:
        # The suite is written last. If the recordings cannot be written, there is no suite that looks like a finished
        # import.
        recorded = 0
        if recordings is not None:
            recorded = record_runs(imported_suite, recordings, secrets, agreement)
        if suite is not None:
            save(suite, imported_suite.file.text, state_of(suite) if force else None)
    except RecordingError as error:
        raise RefusedError(f"no suite was written, since {error}") from error
    except (SavingError, OSError) as error:
        raise RefusedError(str(error)) from error
    return recorded


def require_unused_paths(suite: Path | None, recordings: Path | None, option: str) -> None:
    """Raise RefusedError if the suite exists or the folder already has recordings.

    `option` is the command's option for the path of the suite, which the message names."""
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
        raise RefusedError(f"{source.path} has no form that can be recognized: name one with --from ({every})")
    raise RefusedError(f"{source.path} could be of several forms: name one with --from ({', '.join(fit)})")


def register_keys(values: Iterable[JsonValue], name: str, secrets: Secrets) -> int:
    """Register each text that looks like a key as a secret, and return the number of such texts.

    The secrets are called `name` with a number."""
    waiting: list[JsonValue] = [*values]
    found: set[str] = set()
    # This is a loop instead of a recursion, because a file may nest more deeply than Python's recursion limit.
    while waiting:
        match waiting.pop():
            case str() as text:
                found.update(keys_in(text))
            case list() as items:
                waiting += items
            case dict() as table:
                waiting += [*table, *table.values()]
    # Sorting gives each key the same number in a second import.
    for number, key in enumerate(sorted(found), start=1):
        secrets.add(f"{name}_{number}", key)
    return len(found)
