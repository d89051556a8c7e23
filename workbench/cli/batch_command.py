"""Shared by commands that run cases: plan, approve, run, print how to resume."""

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
from workbench.cli.live import Live, Show, Watcher, run_live, signals_interrupt
from workbench.cli.pins import FrozenError, check_pins
from workbench.cli.redaction import shown_search, warn
from workbench.cli.report_output import Output, can_record_in, report_width
from workbench.config.folders import history_option
from workbench.config.model_book import described
from workbench.config.models import ConfigError
from workbench.config.program import Program
from workbench.dataclasses import compact_json, dataclass
from workbench.engine.recordings import Recordings, recording_lines
from workbench.evaluation.approval import Approval, needs
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, USAGE
from workbench.evaluation.judges import unknown_judge
from workbench.evaluation.options import RunOptions
from workbench.evaluation.plan import ClusterError, GivenUpError, Notice, NotInstalledError, Plan, PlanError
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
    from workbench.evaluation.baseline import Baseline
    from workbench.show.views.baseline import Confirm, FailOn


def judge_is_known(judge: str | None, files: Iterable[SuiteFile], program: Program) -> bool:
    """Return whether it is known how to reach the model of `--judge` from the suites; if not, that has been
    reported."""
    problems = [*unknown_judge(judge, files, program)]
    for problem in problems:
        warn(problem, program.secrets)
    return not problems


@dataclass(frozen=True)
class Record:
    """Where runs are recorded to; with `only_failed`, those that end well are not."""

    folder: Path
    only_failed: bool = False


@dataclass(frozen=True)
class BaselineOptions:
    """The batch to compare with, the history that has it, and what of the comparison decides the exit code."""

    batch: str
    history: Path
    fail_on: FailOn | None = None
    confirm: Confirm = "reruns"
    confirm_writes: bool = False


def planned(options: RunOptions, program: Program, *, quiet: bool) -> Plan | None:
    """Return the plan of some options, all notices shown; `None` when there is none."""
    try:
        with signals_interrupt(), shown_search(quiet=quiet) as search:
            made = plan(options, program, search)
    except KeyboardInterrupt:
        if options.resume is not None:
            warn(f"stopping; nothing was run{_resuming_again(options)}", program.secrets)
        raise
    except PlanError as error:
        show_notices(error.notices, program, quiet=quiet)
        return None
    show_notices(made.notices, program, quiet=quiet)
    return made


def _resuming_again(options: RunOptions) -> str:
    if options.resume is None or options.history is None:
        return ""
    command = "compare" if options.compares else "run"
    which = f" {shlex.quote(options.resume.batch)}" if options.resume.batch else ""
    return f"; to resume: workbench {command} --resume{which}{history_option(options.history)}"


def show_notices(notices: Iterable[Notice], program: Program, *, quiet: bool) -> None:
    """Notice on standard error; with `quiet`, those that matter."""
    for notice in notices:
        if not (quiet and notice.severity == "detail"):
            warn(notice.text, program.secrets)


def baseline_for(options: BaselineOptions, plan: Plan) -> Baseline | None:
    """Return the baseline of a plan, all notices shown; `None` when the batch cannot be it: the plan is then given
    up."""
    from workbench.evaluation.baseline import baseline_of  # on use: few runs have a baseline

    try:
        baseline, notices = baseline_of(options.batch, options.history, plan, options.fail_on)
    except HistoryError as error:
        plan.abandon()
        warn(f"nothing was run: {error}", plan.program.secrets)
        return None
    for notice in notices:
        warn(notice)
    return replace(baseline, confirm=options.confirm, confirm_writes=options.confirm_writes)


def make_runs(
    plan: Plan,
    show: Show,
    output: Output,
    *,
    trust: bool,
    record: Record | None,
    command: ResumedBy,
    frozen: bool = False,
    from_history: bool = False,
) -> Live | int:
    """Make the runs of a plan; returns an exit code when they cannot be made, which has then been reported before any
    begins. With `frozen`, tools have to be as they are pinned. `from_history` is that of `run_live`."""
    approval = allowed(plan, output, trust=trust, record=record, frozen=frozen)
    if isinstance(approval, int):
        return approval
    return make_allowed(plan, approval, show, output, record, command, from_history=from_history)


def allowed(plan: Plan, output: Output, *, trust: bool, record: Record | None, frozen: bool) -> Approval | int:
    """What the runs of a plan may use; an exit code when they cannot be made, which has then been reported."""
    program = plan.program
    approval = approved(needs(plan), program, all_of_them=trust)
    if (
        approval is None
        or not output.can_write(len(plan.places))
        or (record is not None and not can_record_in(record.folder))
    ):
        plan.abandon()
        return USAGE
    if frozen or any(pin_file(file.path).exists() for file in plan.files):
        try:
            check_pins(plan, approval, frozen=frozen)
        except FrozenError as error:
            plan.abandon()
            warn(str(error), program.secrets)
            return INFRASTRUCTURE
    return approval


def make_allowed(
    plan: Plan,
    approval: Approval,
    show: Show,
    output: Output,
    record: Record | None,
    command: ResumedBy,
    watcher: Watcher | None = None,
    *,
    from_history: bool = False,
) -> Live | int:
    """Make the runs of a plan, as `make_runs` does, that were allowed."""
    program = plan.program
    lines = recording_lines(program.secrets)
    recordings = Recordings(record.folder, lines, only_failed=record.only_failed) if record is not None else None
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
    except HistoryError as error:  # whoever goes on does so for the history
        plan.abandon()
        warn(f"nothing was run: {error}", program.secrets)
        return USAGE
    except ClusterError as error:
        plan.abandon()
        for problem in (*error.problems, "nothing was run"):
            warn(problem, program.secrets)
        return {GivenUpError: INTERRUPTED, NotInstalledError: USAGE}.get(type(error), INFRASTRUCTURE)
    if recordings is not None and recordings.problem is not None:
        live.recorded = False
        warn(recordings.problem, program.secrets)
    if plan.needs_history and live.outcome.unrecorded:
        live.recorded = False
    limited = plan.cost_limit is not None and any(map(is_cost_limited, live.outcome.figures))
    if (live.outcome.interrupted or limited) and live.outcome.batch is not None and plan.history is not None:
        warn(how_to_resume(plan.history, live.outcome.batch, command), program.secrets)
    return live


def show_of(output: Output, program: Program) -> Show:
    """Return where the steps of runs are shown, and how."""
    steps = not output.quiet and (output.is_text or output.file is not None)
    paint = paint_for(sys.stdout, os.environ)
    return Show(sys.stdout, steps, output.verbose, report_width(sys.stdout), paint, program.secrets)


@dataclass(frozen=True)
class Experiment:
    """A plan whose runs are followed by others, made from their results, that may use the same."""

    plan: Plan
    approval: Approval
    show: Show

    def run(self, plan: Plan, undone: str) -> Sequence[RunResult] | None:
        """Make the runs of a plan; `None` when somebody interrupted, which has then been reported with what is
        `undone`."""
        outcome = run_live(plan, self.approval, self.show).outcome
        if outcome.interrupted:
            warn(f"interrupted: {undone}")
            return None
        return outcome.results


def experiment(options: RunOptions, program: Program, output: Output, *, trust: bool) -> Experiment | None:
    """Plan, and ask for what the runs need; `None` when they cannot be made, which has then been reported."""
    plan = planned(options, program, quiet=output.quiet)
    if plan is None or not output.can_write(len(plan.places)):
        return None
    approval = approved(needs(plan), program, all_of_them=trust)
    return Experiment(plan, approval, show_of(output, program)) if approval is not None else None


def how_to_resume(history: Path, number: int, command: ResumedBy) -> str:
    """Tell the command that goes on with a batch that was interrupted."""
    from workbench.history.history import History  # on use: most batches are not interrupted

    purpose = "to resume, and compare all of it" if command == "compare" else "to resume"
    again = limit = ""
    with suppress(HistoryError), History(history) as stored:
        settings = stored.batch(f"#{number}").settings
        again, limit = models_again(settings), _limit_again(settings)
    return f"{purpose}: workbench {command} --resume {number}{again}{history_option(history)}{limit}"


def _limit_again(settings: Mapping[str, JsonValue]) -> str:
    usd = settings.get("cost_limit_usd")
    if not isinstance(usd, int | float):
        return ""
    return f" --max-cost USD (without it, the limit of {cost_text(usd)} holds, of which a part is spent)"


def models_again(settings: Mapping[str, JsonValue]) -> str:
    """Return the options with which models of a batch were given another address, from its settings; empty without any.

    Those about keys are not among them: a history has none."""
    models = settings.get("models")
    options: list[str] = []
    for name, reached in models.items() if isinstance(models, dict) else ():
        if isinstance(reached, dict) and _has_another_address(name, reached):
            params = reached.get("params")
            given = params.items() if isinstance(params, dict) else ()
            options += ["--model", model_of(name).replace(",", "\\,"), "--base-url", str(reached["base_url"])]
            options += [word for key, value in given for word in ("--param", f"{key}={compact_json(value)}")]
    pairs = dict.fromkeys(zip(options[::2], options[1::2], strict=True))
    return "".join(f" {option} {shlex.quote(value)}" for option, value in pairs)


def _has_another_address(name: str, reached: Mapping[str, JsonValue]) -> bool:
    if reached.get("origin") != "command line" or not reached.get("base_url"):
        return False
    try:
        spec = described(model_of(name), "command line")
    except ConfigError:
        return True
    return spec is None or spec.base_url != reached["base_url"]
