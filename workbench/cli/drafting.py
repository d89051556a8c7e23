"""What `workbench init --draft` does beside writing: ask a model for cases, run them, and say what came of each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from workbench.cli.door import ask, warn
from workbench.cli.making import make_runs, show_notices, show_of
from workbench.cli.report_output import Output
from workbench.config.models import ConfigError
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.evaluation.drafting import (
    Draft,
    DraftOptions,
    asking_suite,
    checked,
    checking_suite,
    draftable,
    drafts_in,
    expected_use,
    plan_of_asking,
    plan_of_checking,
    told,
    use_text,
)
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, OK, QUALITY_MISSED, USAGE
from workbench.evaluation.plan import Plan, PlanError
from workbench.grading.grade import RunResult
from workbench.numerals import counted
from workbench.suite.model import GraderName, Suite
from workbench.suite.saving import save
from workbench.trajectory.messages import ToolDefinition


class _StopError(Exception):
    """There are no drafts, which has been reported; `code` is the exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class DraftsToWrite:
    """The drafts that hold, and the exit code once they are written. After an interruption they are not written, but
    kept (`keep`)."""

    drafts: tuple[Draft, ...]
    code: int

    @property
    def is_interrupted(self) -> bool:
        return self.code == INTERRUPTED


def keep(text: str, path: Path, program: Program) -> None:
    """Keep a suite that is not written to `path`, since its drafts were paid for, and say where. Raises SavingError."""
    folder = program.folders.drafts
    folder.mkdir(parents=True, exist_ok=True)
    names = (folder / f"{path.stem}.{number}.toml" for number in count(1))
    kept = next(name for name in names if not name.exists())
    save(kept, text, None)
    warn(f"nothing was written to {path}; the suite with its drafts is in {kept}", program.secrets)


def confirmed(question: str, *, yes: bool) -> bool:
    """Whether a person on the terminal agrees; with `yes`, nobody is asked."""
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    ask(f"{question} [yes/no]")
    return sys.stdin.readline().strip().lower() in ("yes", "y")


def drafted(
    tools: Sequence[ToolDefinition],
    path: Path,
    options: DraftOptions,
    program: Program,
    *,
    by: GraderName | None = None,
    about: Sequence[ToolDefinition] | None = None,
    like: Suite | None = None,
    trust: bool,
    yes: bool,
) -> DraftsToWrite | int:
    """Have a model draft cases `about` tools, about all of them without. `path` is the suite's, `like` the suite itself
    where there is one. Returns an exit code where there are none, which has been reported."""
    try:
        wanted = tools if about is None else about
        return _drafted(tools, path, options, program, by=by, about=wanted, like=like, trust=trust, yes=yes)
    except _StopError as error:
        return error.code


def _drafted(
    tools: Sequence[ToolDefinition],
    path: Path,
    options: DraftOptions,
    program: Program,
    *,
    by: GraderName | None,
    about: Sequence[ToolDefinition],
    like: Suite | None,
    trust: bool,
    yes: bool,
) -> DraftsToWrite:
    by_name = draftable(tools)
    names = [tool.name for tool in about if tool.name in by_name]
    for tool in about:
        if tool.name not in by_name:
            warn(f"not drafted: {tool.name}: a suite cannot hold its definition", program.secrets)
    system = like.system if like is not None else None
    if not names:
        raise _StopError(QUALITY_MISSED)
    try:
        asking = plan_of_asking(asking_suite(names, by_name, path, system=system), options, program)
        use = expected_use(asking, by_name, options)
    except PlanError as error:
        show_notices(error.notices, program, quiet=False)
        raise _StopError(USAGE) from error
    except ConfigError as error:
        warn(f"nothing was asked: {error}", program.secrets)
        raise _StopError(USAGE) from error
    warn(use_text(options, len(names), use), program.secrets)
    if not confirmed("Ask?", yes=yes):
        warn("nothing was asked and nothing was written: answer 'yes' on a terminal, or give --yes")
        raise _StopError(USAGE)
    before = [case.user for case in like.cases if case.user] if like is not None else ()
    results, is_interrupted = _results(asking, trust=trust)
    found = drafts_in(results, names, by_name, before, program.secrets)
    for line in told(found):
        warn(line, program.secrets)
    code = INFRASTRUCTURE if found.failed else OK
    if not found.kept:
        warn("nothing was written: there is no draft")
        raise _StopError(INTERRUPTED if is_interrupted else code or QUALITY_MISSED)
    if is_interrupted:
        return DraftsToWrite(checked(found.kept, (), options.repeats).kept, INTERRUPTED)
    warn(f"running {counted(len(found.kept), 'draft')}, {counted(options.repeats, 'time')} each", program.secrets)
    checking = plan_of_checking(checking_suite(found.kept, by_name, path, like, by), options, program)
    results, is_interrupted = _results(checking, trust=trust)
    held = checked(found.kept, results, options.repeats)
    for line in told(held):
        warn(line, program.secrets)
    if not held.kept:
        warn("nothing was written: no draft is left")
        raise _StopError(INTERRUPTED if is_interrupted else code or QUALITY_MISSED)
    if is_interrupted:
        return DraftsToWrite(held.kept, INTERRUPTED)
    if unchecked := [draft for draft in held.kept if draft.unchecked is not None]:
        code = INFRASTRUCTURE
        warn(f"{counted(len(unchecked), 'draft')} could not be checked, and will be skipped: {unchecked[0].unchecked}")
    return DraftsToWrite(held.kept, code)


def _results(plan: Plan, *, trust: bool) -> tuple[Sequence[RunResult], bool]:
    """Make the runs of a plan; returns their results and whether somebody interrupted. There are none where they may
    not be made, which has been reported."""
    quiet = Output(None, quiet=True)
    live = make_runs(plan, show_of(quiet, plan.program), quiet, trust=trust, record=None, command="run")
    if isinstance(live, int):
        return (), False
    if live.outcome.interrupted:
        warn("interrupted")
    return live.outcome.results, live.outcome.interrupted
