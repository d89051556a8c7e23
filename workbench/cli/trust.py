"""Trust on the command line: what a suite would start is shown, and asked about where someone can answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from workbench.batches.approval import Approval, Proposal, Request, Trust
from workbench.cli.door import ask
from workbench.cli.suites import complain
from workbench.config.folders import Folders
from workbench.config.program import Program
from workbench.config.resources import MissingResourceError, bundled
from workbench.reports.values import counted
from workbench.reports.visible import one_line
from workbench.suite.trust import Needs, TrustError, TrustStore


def approved(proposal: Proposal, program: Program, *, all_of_them: bool, together: bool = False) -> Approval | None:
    """What may be used of a proposal, after asking where that is needed and possible. With `together`, one question is
    about all suites that need the same. Returns `None` when a suite needs trust and did not get it; what trusting it
    allows has then been said."""
    trust = Trust(trust_store(program.folders), all_of_them=all_of_them)
    granted: set[Path] = set()
    refused = False
    alike: dict[tuple[Needs, Path | None], list[Request]] = {}
    for request in proposal.requests:
        if trust.covers(request):
            granted.add(request.file.path)
        elif request.must_ask:
            alike.setdefault((request.needs, None if together else request.file.path), []).append(request)
    for group in alike.values():
        first, others = group[0], len(group) - 1
        more = f" and {counted(others, 'other')} like it" if others else ""
        complain(f"trusting {first.file.path}{more} allows it, on this machine, to:", program.secrets)
        for line in trust.lines(first):
            complain(f"  {line}", program.secrets)
        match _asked(f"{one_line(first.file.path.name)}{more}", mocks=first.mocks):
            case "yes":
                for each in group:
                    try:
                        trust.grant(each, always=True)
                    except TrustError as error:
                        complain(f"{error}; it holds for this run only", program.secrets)
                    granted.add(each.file.path)
            case "no":
                refused = True
    if trust.store.notice is not None:
        complain(trust.store.notice)
    if refused:
        complain("not trusted, nothing was started: answer 'yes' on a terminal, or give --trust for this one run")
    return None if refused else proposal.approved(granted)


def trust_store(folders: Folders) -> TrustStore:
    """What the user trusts, and which suites came with the program."""
    return TrustStore(folders.trust_file, bundled_folder=_bundled_samples())


def _bundled_samples() -> Path | None:
    try:
        return bundled("sample_suites")
    except MissingResourceError:
        return None  # without samples there are none to trust; suites of one's own are asked about as ever


def _asked(suite: str, *, mocks: bool) -> Literal["yes", "no", "mocks"]:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return "no"
    choices = "yes/no/mocks: run without its servers" if mocks else "yes/no"
    ask(f"Trust {suite} and remember it? [{choices}]")
    answer = sys.stdin.readline().strip().lower()
    if mocks and answer in ("mocks", "m"):
        return "mocks"
    return "yes" if answer in ("yes", "y") else "no"
