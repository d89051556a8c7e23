"""What `workbench init --draft --add-to` does: put the cases that a model drafts for a suite's tools at its end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from difflib import unified_diff
from pathlib import Path

from workbench.authoring.case_list import with_new_cases
from workbench.authoring.document import Document
from workbench.cli.door import know_suites, printing_to, warn, warn_of_problems, write
from workbench.cli.drafting import confirmed, drafted, keep
from workbench.cli.tool_list import until_signalled
from workbench.cli.trust import approved
from workbench.config.program import Program
from workbench.evaluation.approval import Approval, Needs
from workbench.evaluation.drafting import DraftOptions
from workbench.evaluation.exit_codes import INFRASTRUCTURE, OK, USAGE
from workbench.evaluation.plan import trust_store
from workbench.evaluation.tool_listing import tools_of
from workbench.numerals import counted
from workbench.show.visible import one_line, visible
from workbench.suite.loading import SuiteFile, load_suite, parse_suite
from workbench.suite.saving import FileState, save
from workbench.suite.splice import SpliceError
from workbench.tools.pool import ServerPool
from workbench.trajectory.messages import ToolDefinition

Choose = Callable[[Sequence[ToolDefinition]], Sequence[ToolDefinition]]


def add_drafts(path: Path, choose: Choose, options: DraftOptions, program: Program, *, trust: bool, yes: bool) -> int:
    """Draft cases for the tools of a suite that `choose` leaves, show what changes, and write it; returns an exit code.
    Raises SavingError."""
    file = load_suite(path)
    if file.suite is None:
        warn_of_problems(file.errors, program.secrets)
        return USAGE
    if trust_store(program.folders).is_exempt(file):
        warn(f"nothing was asked: {path} came with Workbench and is not written; add to a copy of it")
        return USAGE
    know_suites(program, [file])
    approval = approved(Needs.of_servers([file], program), program, all_of_them=trust)
    if approval is None:
        return USAGE
    pool, listed = ServerPool(program), list[ToolDefinition]()
    with printing_to(sys.stderr):
        code = asyncio.run(until_signalled(pool, _list(file, approval, pool, program, listed)))
    if code != OK:
        return code
    made = drafted(listed, file.path, options, program, about=choose(listed), like=file.suite, trust=trust, yes=yes)
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
    if made.is_interrupted or not confirmed(f"Write {name}?", yes=yes):
        keep(document.text, path, program)
        return made.code if made.is_interrupted else USAGE
    if broken := parse_suite(document.text, path).errors:
        warn(f"{path} was not written: {broken[0]}", program.secrets)
        return USAGE
    save(file.path, document.text, FileState(file.hash))
    write(f"{path}: {counted(len(made.drafts), 'case')} added, with the tag draft; read them\n")
    return made.code


async def _list(
    file: SuiteFile, approval: Approval, pool: ServerPool, program: Program, listed: list[ToolDefinition]
) -> int:
    """Add the tools that are offered in all cases of a suite; returns an exit code."""
    sources = [source for source in (await tools_of(file, None, pool, approval)).sources if source.case is None]
    failed = [source.error for source in sources if source.error is not None]
    for error in failed:
        warn(error, program.secrets)
    listed += [program.secrets.redacted(tool) for source in sources for tool in source.tools]
    return INFRASTRUCTURE if failed else OK
