"""Shared by the commands that run cases: plan, approve, run, and print how to resume."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.approval import approved
from workbench.cli.live import BatchObserver, BatchOutcome, Show, run_live, signals_interrupt
from workbench.cli.pins import FrozenError, check_pins
from workbench.cli.redaction import shown_search, warn
from workbench.cli.report_output import Output, can_record_in, report_width
from workbench.config.folders import history_option
from workbench.config.model_book import spec_from_text
from workbench.config.models import ConfigError
from workbench.config.program import Program
from workbench.config.request_settings import with_query
from workbench.dataclasses import compact_json, dataclass
from workbench.engine.recordings import Recordings, recording_lines
from workbench.evaluation.approval import Approval, needs_of_plan
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, USAGE
from workbench.evaluation.judges import unknown_judge
from workbench.evaluation.options import RunOptions
from workbench.evaluation.plan import ClusterError, Notice, NotInstalledError, Plan, PlanError, WaitCancelledError
from workbench.evaluation.planner import plan
from workbench.grading.grade import RunResult
from workbench.grading.run_summary import is_cost_limited
from workbench.history.records import HistoryError, ResumedBy
from workbench.numerals import cost_text
from workbench.show.text import paint_for
from workbench.suite.suite_file import SuiteFile
from workbench.suite.variants import model_of
from workbench.tools.listings import pin_file
from workbench.trajectory.events import JsonValue

if TYPE_CHECKING:
    from workbench.config.secrets import Secrets
    from workbench.evaluation.baseline import Baseline
    from workbench.show.views.baseline import Confirm, FailOn
    from workbench.show.views.runs_report import BrokenSuite


def judge_is_known(judge: str | None, files: Iterable[SuiteFile], program: Program) -> bool:
    """Return whether the model of `--judge` is known for all suites. Print an error if not."""
    problems = [*unknown_judge(judge, files, program)]
    for problem in problems:
        warn(problem, program.secrets)
    return not problems


@dataclass(frozen=True)
class Record:
    """The folder in which to record runs. With `only_failed`, only failed runs are recorded."""

    folder: Path
    only_failed: bool = False


@dataclass(frozen=True)
class BaselineOptions:
    """The batch to compare with, its history, and the rules for the exit code of the comparison."""

    batch: str
    history: Path
    fail_on: FailOn | None = None
    confirm: Confirm = "reruns"
    confirm_writes: bool = False


def planned(options: RunOptions, program: Program, *, quiet: bool) -> Plan | None:
    """Plan the runs that the options select, and print the plan's notices.

    If no plan can be made, print the reason and return `None`."""
    try:
        with signals_interrupt(), shown_search(quiet=quiet) as search:
            made = plan(options, program, search)
    except KeyboardInterrupt:
        if options.resume is not None:
            warn(f"stopping; nothing was run{_resume_hint(options)}", program.secrets)
        raise
    except PlanError as error:
        show_notices(error.notices, program, quiet=quiet)
        return None
    show_notices(made.notices, program, quiet=quiet)
    return made


def print_broken_suites(broken: Sequence[BrokenSuite], secrets: Secrets) -> None:
    """Print which suites were not run because of errors. Called at the end of a command."""
    if broken:
        # Lazy import: few plans have a suite with errors.
        from workbench.show.views.verdict import broken_text

        warn(broken_text(broken), secrets)


def with_chosen_cases(options: RunOptions, plan: Plan) -> RunOptions:
    """Replace the names and patterns of cases in the options by the ids of the cases that the plan contains."""
    if not options.cases:
        return options
    return replace(options, cases=tuple(dict.fromkeys(run.case.id for run in plan.runs)))


def _resume_hint(options: RunOptions) -> str:
    if options.resume is None or options.history is None:
        return ""
    command = "workbench compare --resume" if options.compares else "workbench run --resume"
    if options.resume.batch:
        command += f" {shlex.quote(options.resume.batch)}"
    return f"; to resume: {command}{history_option(options.history)}"


def show_notices(notices: Iterable[Notice], program: Program, *, quiet: bool) -> None:
    """Print notices on standard error. With `quiet`, leave out details."""
    for notice in notices:
        if not (quiet and notice.severity == "detail"):
            warn(notice.text, program.secrets)


def baseline_for(options: BaselineOptions, plan: Plan) -> Baseline | None:
    """Return the baseline of a plan after printing its notices.

    If the batch cannot be the baseline, abandon the plan and return `None`."""
    # Lazy import: few runs have a baseline.
    from workbench.evaluation.baseline import baseline_of

    try:
        baseline, notices = baseline_of(options.batch, options.history, plan, options.fail_on)
    except HistoryError as error:
        plan.release_claim()
        warn(f"nothing was run: {error}", plan.program.secrets)
        return None
    for notice in notices:
        warn(notice)
    return replace(baseline, confirm=options.confirm, confirm_writes=options.confirm_writes)


def run_plan(
    plan: Plan,
    show: Show,
    output: Output,
    *,
    trust: bool,
    record: Record | None,
    command: ResumedBy,
) -> BatchOutcome | int:
    """Run a plan.

    If no run can begin, print the reason and return an exit code."""
    approval = approve_runs(plan, output, trust=trust, record=record, frozen=False)
    if isinstance(approval, int):
        return approval
    return run_approved(plan, approval, show, output, record, command)


def approve_runs(plan: Plan, output: Output, *, trust: bool, record: Record | None, frozen: bool) -> Approval | int:
    """Return the approval for the runs of a plan. With `frozen`, the tools of servers must equal the pinned tools.

    If the runs cannot start, print the reason and return an exit code."""
    program = plan.program
    # Approval must come before tools are compared with pinned tools, which starts servers.
    approval = approved(needs_of_plan(plan), program, all_of_them=trust)
    can_write = approval is not None and output.can_write(len(plan.places))
    if approval is None or not can_write or (record is not None and not can_record_in(record.folder)):
        plan.release_claim()
        return USAGE
    # Without --frozen, differences from pinned tools are only printed.
    if frozen or any(pin_file(file.path).exists() for file in plan.files):
        try:
            check_pins(plan, approval, frozen=frozen)
        except FrozenError as error:
            plan.release_claim()
            warn(str(error), program.secrets)
            return INFRASTRUCTURE
    return approval


def run_approved(
    plan: Plan,
    approval: Approval,
    show: Show,
    output: Output,
    record: Record | None,
    command: ResumedBy,
    watcher: BatchObserver | None = None,
    *,
    from_history: bool = False,
) -> BatchOutcome | int:
    """Run an approved plan, as `run_plan` does. `watcher` receives the events of the batch."""
    program = plan.program
    lines = recording_lines(program.secrets)
    recordings = None
    if record is not None:
        recordings = Recordings(record.folder, lines, only_failed=record.only_failed)
    try:
        with output.stream() as stream:
            as_lines = lines if output.form == "jsonl" else None
            shown = replace(show, stream=stream)
            live = run_live(
                plan,
                approval,
                shown,
                lines=as_lines,
                record=recordings,
                watcher=watcher,
                from_history=from_history,
            )
    # Only a resumed batch needs the history. A new batch runs even if its history cannot be written.
    except HistoryError as error:
        plan.release_claim()
        warn(f"nothing was run: {error}", program.secrets)
        return USAGE
    except ClusterError as error:
        plan.release_claim()
        for problem in (*error.problems, "nothing was run"):
            warn(problem, program.secrets)
        return {WaitCancelledError: INTERRUPTED, NotInstalledError: USAGE}.get(type(error), INFRASTRUCTURE)
    if recordings is not None and recordings.problem is not None:
        live.recorded = False
        warn(recordings.problem, program.secrets)
    if plan.needs_history and live.outcome.unrecorded:
        live.recorded = False
    # Runs that were skipped because of the cost limit are missing like those of an interrupted batch. They can be
    # resumed with a higher limit.
    limited = plan.cost_limit is not None and any(map(is_cost_limited, live.outcome.figures))
    if (live.outcome.interrupted or limited) and live.outcome.batch is not None and plan.history is not None:
        warn(how_to_resume(plan.history, live.outcome.batch, command), program.secrets)
    return live


def step_output(output: Output, program: Program) -> Show:
    """Return where and how to print the steps of runs."""
    # A program may read the report from standard output, which must then contain nothing else.
    steps = not output.quiet and (output.is_text or output.file is not None)
    paint = paint_for(sys.stdout, os.environ)
    return Show(sys.stdout, steps, output.verbose, report_width(sys.stdout), paint, program.secrets)


@dataclass(frozen=True)
class Experiment:
    """An approved plan for runs in several batches, each of which may depend on earlier results.

    For example, runs without faults come first, and are then repeated with faults."""

    plan: Plan
    approval: Approval
    show: Show

    def run(self, plan: Plan, interrupt_message: str) -> Sequence[RunResult] | None:
        """Run a plan with the approval, and return its results.

        On an interrupt, print `interrupt_message`, which says what was not done, and return `None`."""
        outcome = run_live(plan, self.approval, self.show).outcome
        if outcome.interrupted:
            warn(f"interrupted: {interrupt_message}")
            return None
        return outcome.results


def experiment(options: RunOptions, program: Program, output: Output, *, trust: bool) -> Experiment | None:
    """Plan runs and ask for approval.

    If the runs cannot start, print the reason and return `None`."""
    plan = planned(options, program, quiet=output.quiet)
    if plan is None or not output.can_write(len(plan.places)):
        return None
    approval = approved(needs_of_plan(plan), program, all_of_them=trust)
    if approval is None:
        return None
    return Experiment(plan, approval, step_output(output, program))


def how_to_resume(history: Path, number: int, command: ResumedBy) -> str:
    """Return the command that resumes an interrupted batch."""
    # Lazy import: most batches are not interrupted.
    from workbench.history.history import History

    purpose = "to resume the batch and compare all its runs" if command == "compare" else "to resume"
    again = limit = ""
    # An unreadable history must not prevent the command from being printed.
    with suppress(HistoryError), History(history) as stored:
        settings = stored.batch(f"#{number}").settings
        again, limit = restored_model_options(settings), _limit_again(settings)
    return f"{purpose}: workbench {command} --resume {number}{again}{history_option(history)}{limit}"


def _limit_again(settings: Mapping[str, JsonValue]) -> str:
    usd = settings.get("cost_limit_usd")
    if not isinstance(usd, int | float):
        return ""
    return f" --max-cost USD (without it, the limit stays {cost_text(usd)}, part of which is spent)"


def restored_model_options(settings: Mapping[str, JsonValue]) -> str:
    """Return the options `--model`, `--base-url` and `--param` that resume a batch with the models of its settings.

    Options for keys are left out, because a history holds no keys."""
    models = settings.get("models")
    if not isinstance(models, dict):
        return ""
    # The dict is an ordered set of options. Variants of a model would repeat the options of the model.
    options: dict[tuple[str, str], None] = {}
    for name, reached in models.items():
        if isinstance(reached, dict) and _has_another_address(name, reached):
            options["--model", model_of(name).replace(",", "\\,")] = None
            query = reached.get("query")
            written = dict(query) if isinstance(query, dict) else {}
            # A dollar sign is written as `$$` in settings, but as `$` in an address.
            pairs = [(name, str(value).replace("$$", "$")) for name, value in written.items()]
            options["--base-url", with_query(str(reached["base_url"]), pairs)] = None
            if isinstance(params := reached.get("params"), dict):
                options |= {("--param", f"{key}={compact_json(value)}"): None for key, value in params.items()}
    return "".join(f" {option} {shlex.quote(value)}" for option, value in options)


def _has_another_address(name: str, reached: Mapping[str, JsonValue]) -> bool:
    if reached.get("origin") != "command line" or not reached.get("base_url"):
        return False
    try:
        spec = spec_from_text(model_of(name), "command line")
    except ConfigError:
        return True
    if spec is not None and spec.cloud is not None and not spec.base_url:
        return False  # the address comes from the environment, as in the original batch
    return spec is None or spec.base_url != reached["base_url"]
