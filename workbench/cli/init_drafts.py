"""Cases for the tools of a server: a model drafts them, runs check them, and the user confirms them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from difflib import unified_diff
from itertools import count
from pathlib import Path
from typing import TypeAlias

from workbench.authoring.case_list import with_new_cases
from workbench.authoring.document import Document
from workbench.cli.approval import approved
from workbench.cli.batch_command import run_plan, show_notices, step_output
from workbench.cli.downloads import announce_download
from workbench.cli.redaction import ask, printing_to, register_suite_secrets, warn, warn_of_problems, write
from workbench.cli.report_output import Output
from workbench.cli.tools import run_until_signal
from workbench.config.models import ConfigError
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.evaluation.approval import Approval, Needs
from workbench.evaluation.case_drafts import (
    Draft,
    DraftOptions,
    accepted_drafts,
    asking_suite,
    checking_suite,
    definable_tools,
    draft_check_plan,
    drafting_plan,
    drafts_in,
    expected_use,
    rejection_lines,
    use_text,
)
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, OK, QUALITY_MISSED, USAGE
from workbench.evaluation.plan import Plan, PlanError
from workbench.evaluation.tool_list import tools_of
from workbench.evaluation.trust import trust_store
from workbench.grading.grade import RunResult
from workbench.numerals import counted
from workbench.show.visible import one_line, visible
from workbench.suite.files import FileState, save
from workbench.suite.grading_model import GraderName
from workbench.suite.model import Suite
from workbench.suite.suite_file import SuiteFile, load_suite, parse_suite
from workbench.suite.suite_text import SpliceError
from workbench.tools.server_pool import ServerPool
from workbench.trajectory.events import ToolDefinition


class _StopError(Exception):
    """Raised to end drafting after the reason was printed. `code` is the exit code of the command."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class DraftsToWrite:
    """The drafts that passed their checks, and the exit code to return after writing them.

    If the user interrupted the drafting, `save_aside` writes them to another file than the suite."""

    drafts: tuple[Draft, ...]
    code: int

    @property
    def is_interrupted(self) -> bool:
        return self.code == INTERRUPTED


def save_aside(text: str, path: Path, program: Program) -> None:
    """Write the text of a suite into the folder of drafts, and print the path.

    Called if drafting was interrupted or the user declines to write `path`, because the drafts may have cost money.
    Raises SavingError."""
    folder = program.folders.drafts
    folder.mkdir(parents=True, exist_ok=True)
    # A number in the name protects earlier drafts.
    names = (folder / f"{path.stem}.{number}.toml" for number in count(1))
    kept = next(name for name in names if not name.exists())
    save(kept, text, None)
    warn(f"nothing was written to {path}; the suite with its drafts is in {kept}", program.secrets)


def confirm(question: str, *, yes: bool) -> bool:
    """Ask the user a yes-or-no question on the terminal. With `yes`, return true without asking."""
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
    grader: GraderName | None = None,
    targets: Sequence[ToolDefinition] | None = None,
    like: Suite | None = None,
    trust: bool,
    yes: bool,
) -> DraftsToWrite | int:
    """Let a model draft cases for the tools in `targets`, by default for all `tools`.

    `path` is the path of the suite, and `like` the existing suite, if any. If there are no drafts, print the reason and
    return an exit code."""
    try:
        wanted = tools if targets is None else targets
        return _draft_and_check(
            tools, path, options, program, grader=grader, targets=wanted, like=like, trust=trust, yes=yes
        )
    except _StopError as error:
        return error.code


def _draft_and_check(
    tools: Sequence[ToolDefinition],
    path: Path,
    options: DraftOptions,
    program: Program,
    *,
    grader: GraderName | None,
    targets: Sequence[ToolDefinition],
    like: Suite | None,
    trust: bool,
    yes: bool,
) -> DraftsToWrite:
    by_name = definable_tools(tools)
    names = [tool.name for tool in targets if tool.name in by_name]
    for tool in targets:
        if tool.name not in by_name:
            warn(f"no draft for {tool.name}: a suite cannot contain its definition", program.secrets)
    if not names:
        raise _StopError(QUALITY_MISSED)
    # The model gets the requests of existing cases, so that its drafts do not repeat them.
    system, before = None, list[str]()
    if like is not None:
        system = like.system
        before += [case.request for case in like.cases if case.request]
    try:
        asking = drafting_plan(asking_suite(names, by_name, path, system=system), options, program)
        use = expected_use(asking, by_name, options)
    except PlanError as error:
        show_notices(error.notices, program, quiet=False)
        raise _StopError(USAGE) from error
    except ConfigError as error:
        warn(f"nothing was asked: {error}", program.secrets)
        raise _StopError(USAGE) from error
    warn(use_text(options, len(names), use), program.secrets)
    if not confirm("Ask?", yes=yes):
        warn("nothing was asked and nothing was written: answer 'yes' on a terminal, or give --yes")
        raise _StopError(USAGE)
    results, is_interrupted = _results(asking, trust=trust)
    found = drafts_in(results, names, by_name, before, program.secrets)
    for line in rejection_lines(found):
        warn(line, program.secrets)
    code = INFRASTRUCTURE if found.failed else OK
    if not found.kept:
        warn("nothing was written: there is no draft")
        raise _StopError(INTERRUPTED if is_interrupted else code or QUALITY_MISSED)
    if is_interrupted:
        # There are no results of runs, so all drafts are kept as unchecked.
        return DraftsToWrite(accepted_drafts(found.kept, (), options.repeats).kept, INTERRUPTED)
    warn(f"running {counted(len(found.kept), 'draft')}, {counted(options.repeats, 'time')} each", program.secrets)
    checking = draft_check_plan(checking_suite(found.kept, by_name, path, like, grader), options, program)
    results, is_interrupted = _results(checking, trust=trust)
    held = accepted_drafts(found.kept, results, options.repeats)
    for line in rejection_lines(held):
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
    """Run a plan. Return the results, and whether the user interrupted the runs.

    If the user does not approve the runs, print that and return no results."""
    quiet = Output(None, quiet=True)
    live = run_plan(plan, step_output(quiet, plan.program), quiet, trust=trust, record=None, command="run")
    if isinstance(live, int):
        return (), False
    if live.outcome.interrupted:
        warn("interrupted")
    return live.outcome.results, live.outcome.interrupted


Choose: TypeAlias = "Callable[[Sequence[ToolDefinition]], Sequence[ToolDefinition]]"


def add_drafts(path: Path, choose: Choose, options: DraftOptions, program: Program, *, trust: bool, yes: bool) -> int:
    """Draft cases for the tools that `choose` selects from a suite, show the change of the suite, and write it.

    Returns an exit code. Raises SavingError."""
    file = load_suite(path)
    if file.suite is None:
        warn_of_problems(file.errors, program.secrets)
        return USAGE
    if trust_store(program.folders).is_exempt(file):
        warn(f"no model was asked: {path} is a bundled sample, which is not changed; add to a copy of it")
        return USAGE
    register_suite_secrets(program, [file])
    approval = approved(Needs.of_servers([file], program), program, all_of_them=trust)
    if approval is None:
        return USAGE
    pool, listed = ServerPool(program, starting=announce_download), list[ToolDefinition]()
    with printing_to(sys.stderr):
        code = asyncio.run(run_until_signal(pool, _adding_drafts_list(file, approval, pool, program, listed)))
    if code != OK:
        return code
    made = drafted(listed, file.path, options, program, targets=choose(listed), like=file.suite, trust=trust, yes=yes)
    if isinstance(made, int):
        return made
    try:
        document = with_new_cases(Document.of(file.text), [draft.table() for draft in made.drafts], "").document
    except SpliceError as error:
        warn(f"nothing was written: {error}", program.secrets)
        return USAGE
    name = one_line(path.name)
    lines = unified_diff(file.text.splitlines(), document.text.splitlines(), name, name, lineterm="")
    write("".join(f"{visible(line)}\n" for line in lines))
    if made.is_interrupted or not confirm(f"Write {name}?", yes=yes):
        save_aside(document.text, path, program)
        return made.code if made.is_interrupted else USAGE
    if broken := parse_suite(document.text, path).errors:
        warn(f"{path} was not written: {broken[0]}", program.secrets)
        return USAGE
    # Saving fails if the file has changed since it was read, because someone may have edited it.
    save(file.path, document.text, FileState(file.hash))
    write(f"{path}: {counted(len(made.drafts), 'case')} added, with the tag draft; read them\n")
    return made.code


async def _adding_drafts_list(
    file: SuiteFile, approval: Approval, pool: ServerPool, program: Program, listed: list[ToolDefinition]
) -> int:
    code = OK
    for source in (await tools_of(file, None, pool, approval)).sources:
        if source.case is not None:
            continue
        if source.error is not None:
            warn(source.error, program.secrets)
            code = INFRASTRUCTURE
        listed += map(program.secrets.redacted, source.tools)
    return code
