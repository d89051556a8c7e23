"""Ask on the terminal whether to trust suites."""

from __future__ import annotations

import sys

from workbench.cli.redaction import ask, warn
from workbench.config.program import Program
from workbench.evaluation.approval import Approval, ApprovalAnswer, Needs, PendingApproval, Trust
from workbench.evaluation.trust import trust_store
from workbench.numerals import counted
from workbench.show.visible import one_line


def approved(needs: Needs, program: Program, *, all_of_them: bool, together: bool = False) -> Approval | None:
    """Ask the user to trust suites where necessary. Return the approval for what the suites need.

    With `together`, one question covers all suites with the same needs. Servers that were typed on the command line
    need no question. If the user refuses a suite, print that and return `None`."""
    trust = Trust(trust_store(program.folders), all_of_them=all_of_them)
    for problem in trust.grant_typed(needs):
        warn(f"{problem}; the trust holds for this run only", program.secrets)
    decision = PendingApproval(needs, trust, together=together)
    for question in decision.questions:
        first, more = question.first, ""
        if others := len(question.requests) - 1:
            more = f" and {counted(others, 'other')} like it"
        warn(f"trusting {first.file.path}{more} allows it, on this machine, to:", program.secrets)
        for line in question.lines:
            warn(f"  {line}", program.secrets)
        answer = _asked(f"{one_line(first.file.path.name)}{more}", mocks=first.can_run_on_mocks)
        for problem in decision.answer(question, answer):
            warn(f"{problem}; the trust holds for this run only", program.secrets)
    if trust.store.notice is not None:
        warn(trust.store.notice)
    if decision.refused:
        warn("not trusted, nothing was started: answer 'yes' on a terminal, or give --trust for this one run")
        return None
    return decision.approval()


def _asked(suite: str, *, mocks: bool) -> ApprovalAnswer:
    # Without a terminal, the user cannot be asked. A CI job passes --trust instead.
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return "no"
    choices = "yes/no/mocks: run without its servers" if mocks else "yes/no"
    ask(f"Trust {suite} and remember it? [{choices}]")
    answer = sys.stdin.readline().strip().lower()
    if mocks and answer in ("mocks", "m"):
        return "mocks"
    return "always" if answer in ("yes", "y") else "no"
