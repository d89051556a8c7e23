"""`workbench history flaky`: find cases whose runs differ in status although the case and its model are unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from workbench.analysis.over_time import FlakyCase, StoredStatus, flaky_cases
from workbench.cli.history_command import HistoryCommand
from workbench.cli.history_list import is_suite, suites_named
from workbench.dataclasses import dataclass
from workbench.evaluation.exit_codes import OK, QUALITY_MISSED
from workbench.history.case_contents import CaseContents
from workbench.history.history import History
from workbench.numerals import counted, counted_of, rates_text
from workbench.show.json.history import FlakyBatch, FlakyCaseReport, FlakyReport
from workbench.show.visible import one_line
from workbench.show.when import local_time

_BATCHES_SHOWN = 12


@dataclass(frozen=True)
class Options:
    """The batches to search, and the form of the result."""

    suite: str | None
    last: int
    format: str


def execute(options: Options, command: HistoryCommand) -> int:
    """Search for flaky cases. Return an exit code, 1 if there are any."""
    with command.history() as history:
        suites = suites_named(history, options.suite, command.file)
        sound = (batch for batch in history.each_batch(forks=False, suites=suites) if batch.damage is None)
        batches = list(islice(sound, options.last))
        command.register_secrets(*batches)
        # The oldest batch comes first, so that the first flaky batch is found.
        numbers = sorted((batch.number, batch.started_at) for batch in batches)
        found = flaky_cases(_statuses(history, numbers, options.suite))
    code = QUALITY_MISSED if found else OK
    if options.format == "json":
        command.write_json(_document(found, len(batches)))
    else:
        command.write(_lines(found, len(batches), command))
    return code


def _statuses(history: History, batches: Sequence[tuple[int, str]], suite: str | None) -> Iterator[StoredStatus]:
    # Contents are read once for each suite, because thousands of runs share a few suites.
    contents = CaseContents(history)
    for number, started_at in batches:
        for run in history.each_run(number):
            if run.figures is None or run.is_fork or (suite is not None and not is_suite(run.suite, suite)):
                continue
            yield StoredStatus(
                suite=run.suite.key,
                suite_name=run.suite.name,
                case_id=run.case_id,
                case_name=run.case_name,
                model=run.model,
                content=contents.of(run),
                batch=number,
                started_at=started_at,
                status=run.figures.status,
            )


def _lines(found: Sequence[FlakyCase], batches: int, command: HistoryCommand) -> Iterator[str]:
    paint = command.paint
    for flaky in found:
        low, high = flaky.interval
        share = f"{counted_of(flaky.good, flaky.runs, 'run')} good ({rates_text(low, high)})"
        title = f"{one_line(flaky.suite_name)} › {one_line(flaky.case_name)}"
        yield f"{paint('◇', 'warned')} {title}  {one_line(flaky.model)}"
        yield f"    {share}, flaky since batch {flaky.since_batch} of {local_time(flaky.since)}"
        course = [f"#{batch} {good}/{runs}" for batch, good, runs in flaky.course[-_BATCHES_SHOWN:]]
        if len(flaky.course) > _BATCHES_SHOWN:
            course.insert(0, "…")
        yield paint(f"    {' '.join(course)}", "muted")
    if found:
        yield ""
    yield paint(f"{counted(len(found), 'flaky case')} in the last {counted(batches, 'batch')}", "muted")


def _document(found: Sequence[FlakyCase], batches: int) -> FlakyReport:
    return FlakyReport(batches=batches, cases=tuple(map(_case_document, found)))


def _case_document(flaky: FlakyCase) -> FlakyCaseReport:
    return FlakyCaseReport(
        suite=flaky.suite,
        suite_name=flaky.suite_name,
        case_id=flaky.case_id,
        case_name=flaky.case_name,
        model=flaky.model,
        since_batch=flaky.since_batch,
        since=flaky.since,
        good=flaky.good,
        runs=flaky.runs,
        low=flaky.interval.low,
        high=flaky.interval.high,
        batches=tuple(FlakyBatch(batch=batch, good=good, runs=runs) for batch, good, runs in flaky.course),
    )
