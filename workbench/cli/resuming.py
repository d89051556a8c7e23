"""`--resume`, of `run` and `compare`: which batch goes on, with which runs, and how one that was interrupted can."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from workbench.batches.keeping import cases_as_kept
from workbench.batches.recorded import result_of_recording
from workbench.batches.resuming import Resumption, claim_and_read, learn_secrets_of_rows, suite_of
from workbench.batches.single import Execution
from workbench.batches.specs import Specs
from workbench.cli.history_options import history_for
from workbench.cli.judges import judge_is_known
from workbench.cli.planning import Made, ToRun
from workbench.cli.suites import NoSuitesError, complain
from workbench.cli.trust import trust_store
from workbench.config.history_file import history_option
from workbench.config.models import DEFAULT_CONCURRENCY
from workbench.config.program import Program
from workbench.config.project import project_folder
from workbench.grading.figures import RunSummary
from workbench.history.claims import claimed
from workbench.history.database import Say
from workbench.history.history import History
from workbench.history.records import BatchRow, DamagedError, HistoryError, ResumedBy, RunRow, SuiteRef
from workbench.reports.history_list import called
from workbench.reports.when import ago, local_time
from workbench.suite.loading import SuiteFile, parse_suite
from workbench.suite.model import Case, Gate
from workbench.suite.project import find_suites
from workbench.trajectory.recording import RecordingError

_SETTLED = (
    ("case", "--case"),
    ("tag", "--tag"),
    ("repeats", "--repeats"),
    ("by", "--by"),
    ("execute", "--execute"),
    ("breakpoints", "--break"),
    ("no_history", "--no-history"),
)
"""What the batch says itself: what the options are kept as, and their names."""


def to_resume(options: argparse.Namespace, program: Program, *, in_full: bool) -> ToRun | None:
    """What is missing in the batch of `--resume`; `None` when it cannot be run, which has then been said. `in_full`
    also reads what happened in the runs that are over, as far as that is not damaged, and their suites. Raises
    HistoryError and NoSuitesError."""
    file = history_for(options, options.paths, program)
    if not _fits(options) or file is None:
        return None
    with History(file) as history:
        suites = _suites_at(options.paths)
        chosen = _named(history, options.resume) if options.resume else _lacking(history, suites, program)
        _must_have(chosen, suites, options.model)
        number = chosen.number
        resumption = claim_and_read(history, number, program, options.model)
        batch, rows = resumption.batch, history.runs(number)
        lacking = {row.suite for row in rows if row.missing and not row.is_fork}
        files = {suite: file for suite in lacking for file in resumption.files if file.path == suite.file}
        left_out: list[str] = []
        if in_full:
            files |= dict(_whole_suites(history, batch, lacking, rows, program, left_out.append))
        cases = {suite: cases_as_kept(file, program.secrets) for suite, file in files.items()}
        over = [row for row in rows if not row.missing]
        kept = tuple(_kept(history, over, cases, left_out.append)) if in_full else ()
    for said in dict.fromkeys(left_out):
        complain(f"left out of the report: {said}", program.secrets)
    for said in resumption.as_then:
        complain(said, program.secrets)
    if not _may_go_on(options, resumption, program):
        return None
    if not judge_is_known(options.judge, resumption.files, program):
        return None
    if not options.quiet:
        which = called(batch) if options.resume else f"{called(batch)} of {_when(batch)}"
        complain(f"going on with batch {which}: {len(resumption.runs):,} of {batch.planned:,} runs are missing")
    execution = Execution(resumption.execute, resumption.execute_all, trust_store(program.folders).is_exempt)
    concurrency = options.concurrency if options.concurrency != DEFAULT_CONCURRENCY else resumption.concurrency
    return ToRun(
        tuple(files[suite] for suite in batch.suites if suite in files),
        resumption.runs,
        execution,
        concurrency,
        batch,
        resumption.ticket,
        {row.place: _figures(row, cases.get(row.suite, {})) for row in over},
        kept,
        bool(left_out),
        resumption.specs,
    )


def whole_batch(
    options: argparse.Namespace, program: Program
) -> tuple[BatchRow, list[RunSummary], Mapping[str, Gate]] | None:
    """The batch that `--resume` names where nothing is missing in it, what its runs came to, and the gates of its
    suites; raises as `to_resume` does."""
    file = history_for(options, options.paths, program)
    if file is None or not options.resume or _settled(options):
        return None
    with History(file) as history:
        batch = _named(history, options.resume)
        if batch.missing:
            return None
        _must_have(batch, _suites_at(options.paths), options.model)
        figures = [_figures(row, {}) for row in history.runs(batch.number)]
        return batch, figures, history.gates(batch, complain)


def to_go_on(command: ResumedBy) -> str:
    """What that is good for."""
    return "to go on, and compare all of it" if command == "compare" else "to go on"


def way_to_go_on(file: Path, number: int, command: ResumedBy) -> str:
    """The command that goes on with a batch that was interrupted."""
    return f"workbench {command} --resume {number}{history_option(file)}"


def _fits(options: argparse.Namespace) -> bool:
    given = _settled(options)
    for name in given:
        complain(f"{name} is settled by the batch that --resume goes on with: leave it out")
    return not given


def _settled(options: argparse.Namespace) -> list[str]:
    return [name for kept_as, name in _SETTLED if getattr(options, kept_as, None)]


def _named(history: History, which: str) -> BatchRow:
    try:
        return history.batch(which)
    except HistoryError as error:
        if Path(which).exists():
            raise HistoryError(f"{error}; paths stand before --resume, or behind the number of a batch") from error
        raise


def _lacking(history: History, suites: Sequence[Path], program: Program) -> BatchRow:
    """The latest batch that lacks runs, of those that have some suites; without any, of this project, where the history
    is the user's own and has others too. Raises HistoryError when there is none."""
    lacking = [batch for batch in history.batches() if batch.missing and batch.kind != "fork"]
    found, of_what = lacking, str(history.file)
    if suites:
        found, of_what = [batch for batch in lacking if _has(batch, suites)], ", ".join(map(str, suites))
    elif history.file.resolve() == program.folders.history.resolve():
        project = project_folder(Path(), program.environment.home)
        found, of_what = [batch for batch in lacking if _is_of(batch, project)], str(project)
    free = [batch for batch in found if not claimed(history.file, batch.number)]
    if free:
        return free[0]
    if found:
        raise HistoryError(f"batch {found[0].number} is going on in another program: stop it there, or wait")
    other = f"; of others, batch {lacking[0].number} lacks runs: --resume {lacking[0].number}" if lacking else ""
    raise HistoryError(f"nothing is missing in any batch of {of_what}{other}")


def _has(batch: BatchRow, suites: Sequence[Path]) -> bool:
    return {suite.file.resolve() for suite in batch.suites}.issuperset(path.resolve() for path in suites)


def _is_of(batch: BatchRow, project: Path) -> bool:
    return any(suite.file.is_relative_to(project) for suite in batch.suites)


def _when(batch: BatchRow) -> str:
    return ", ".join(filter(None, (local_time(batch.started_at), ago(batch.started_at, datetime.now(UTC)))))


def _suites_at(paths: list[str]) -> Sequence[Path]:
    found = find_suites(Path(path) for path in paths)
    if paths and not found:
        raise NoSuitesError(f"no suite at {', '.join(paths)}")
    return found


def _must_have(batch: BatchRow, suites: Sequence[Path], models: list[str]) -> None:
    """What is given beside a batch must be about it; raises HistoryError."""
    for path in suites:
        if not _has(batch, [path]):
            raise HistoryError(f"{path} is no suite of batch {batch.number}: paths can be left out behind --resume")
    for model in models:
        if model not in batch.models:
            known = ", ".join(batch.models)
            raise HistoryError(f"{model!r} is no model of batch {batch.number}, which has {known}")


def _whole_suites(
    history: History,
    batch: BatchRow,
    lacking: Collection[SuiteRef],
    rows: Sequence[RunRow],
    program: Program,
    left_out: Say,
) -> Iterator[tuple[SuiteRef, SuiteFile]]:
    """The suites of a batch in which nothing is missing, as they were. Nothing of them is run, so that secrets may be
    missing in their text; `left_out` is told of those that cannot be read any more."""
    specs = Specs(program.models, program.environment)
    for suite in batch.suites:
        if suite in lacking:
            continue
        try:
            file = suite_of(history, batch, suite)[0]
        except HistoryError:
            try:
                file = replace(parse_suite(history.suite_text(suite), suite.file), hash=suite.hash)
            except DamagedError as error:
                left_out(str(error))
                continue
        if file.suite is None:
            left_out(f"{suite.file}, which as it was in batch {batch.number} cannot be read any more")
            continue
        learn_secrets_of_rows(program, file, [row for row in rows if row.suite == suite], specs)
        yield suite, file


def _kept(
    history: History, over: Iterable[RunRow], cases: Mapping[SuiteRef, Mapping[str, Case]], left_out: Say
) -> Iterator[Made]:
    """Runs of the batch that are over, as if they had been made now; `left_out` is told of those that are damaged."""
    readable = (row for row in over if row.suite in cases)
    for row, recording in history.recordings(readable, None, left_out):
        assert row.figures is not None
        try:
            result = result_of_recording(recording)
            case = cases[row.suite][row.case_id]
        except (RecordingError, KeyError) as error:
            why = error if isinstance(error, RecordingError) else f"{row.suite.file} has no case {row.case_id!r}"
            left_out(f"run {row.place + 1} of batch {row.batch} is damaged: {why}")
            continue
        figures = row.figures
        result = replace(
            result, case_id=case.id, case_name=row.case_name, grading=figures.grading, cost_usd=figures.cost_usd
        )
        yield Made(row.place, case, result)


def _figures(row: RunRow, cases: Mapping[str, Case]) -> RunSummary:
    """What a run that is over came to, its suite told apart by its file and its case by its id of today, as in runs
    that are made now."""
    assert row.figures is not None
    case = cases.get(row.case_id)
    return replace(row.figures, suite=str(row.suite.file), case_id=case.id if case is not None else row.case_id)


def _may_go_on(options: argparse.Namespace, resumption: Resumption, program: Program) -> bool:
    number = resumption.batch.number
    if resumption.execute_all and not options.execute_all:
        complain(f"batch {number} really executed all tools, without asking: to go on so, say --execute-all again")
        return False
    if options.execute_all and not resumption.execute_all:
        complain(f"batch {number} did not execute all tools: leave --execute-all out")
        return False
    for difference in resumption.differences:
        complain(difference, program.secrets)
    if resumption.differences and not options.anyway:
        complain(
            "nothing was run: give the options of then again (--model, --base-url, --param, --judge), or --anyway to "
            "go on all the same"
        )
        return False
    return True
